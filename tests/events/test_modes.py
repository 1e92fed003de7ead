"""Computed values whose meaning depends on ANSI mode are found, and no others."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.given.session import ANSI

SCHEMA = pa.schema(
    {
        "t": pa.int8(), "i": pa.int32(), "j": pa.int32(), "l": pa.int64(), "f": pa.float32(), "d": pa.float64(),
        "e": pa.decimal128(9, 2), "x": pa.bool_(), "s": pa.string(), "at": pa.timestamp("us", "UTC"), "day": pa.date32(),
        "tags": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.int64()),
    }
)  # fmt: skip
DEPENDS = [
    "i + 1 > 0", "i - j > 0", "l * 2 > 0", "-i > 0", "abs(t) > 0", "d / i > 1", "d % l = 0", "i / 0 IS NULL",
    "CAST(s AS INT) = 1", "CAST(s AS DOUBLE) > 1", "CAST(s AS BOOLEAN)",
    "CAST(l AS INT) = 1", "CAST(d AS BIGINT) = 1", "CAST(e AS SMALLINT) = 1", "CAST(e AS DECIMAL(8, 2)) > 1",
    "CAST(e AS DECIMAL(8, 1)) > 1", "CAST(i AS DECIMAL(9, 0)) > 1", "CAST(x AS DECIMAL(1, 1)) > 0", "f < i",
    "f + 1 > 2", "coalesce(f, l) > 2", "f <=> t", "lower(CAST(i + 1 AS STRING)) = '7'", "CAST(i * 2 AS BIGINT) > l",
    "coalesce(i, 1) + j > 2", "tags[0] = 'x'", "element_at(tags, 2) = 'x'", "lower(tags[1]) = 'x'", "i DIV j = 1", "l DIV -1 = 1",
    "if(i > j, f, l) > 1", "if(x, i + 1, j) = 2", "greatest(f, i) > 1", "round(i + j) = 3",
    "floor(d) = 1", "ceil(f) = 1",
]  # fmt: skip
DOES_NOT = [
    "i > 0", "d + 1 > 0", "d * f > 0", "d / 7 > 1", "f / 2 > 1", "i % 2 = 1", "l % 3 = 0", "d % 2.5D = 0", "i < l",
    "f < d", "CAST(i AS BIGINT) > l", "CAST(i AS DOUBLE) > d", "CAST(i AS FLOAT) > 1", "CAST(x AS INT) = 1",
    "CAST(e AS INT) = 1", "CAST(e AS DECIMAL(10, 3)) > 1", "e + 1 > 2",
    "CAST(i AS DECIMAL(10, 0)) > 1", "CAST(i AS STRING) = '7'", "CAST(i AS BOOLEAN)", "CAST(at AS DATE) > day",
    "hour(at) = 3", "date_trunc('month', at) > day", "length(s) = 1", "concat(s, 'x') = 'x'", "coalesce(i, l) > 1",
    "m['k'] + 0.5D > 1", "i DIV 2 = 1", "if(i > j, d, f) > 1", "if(x, i, l) > 1", "greatest(i, l) > 1",
    "round(d, 1) = 0.5", "floor(e) = 1", "try_cast(s AS INT) = 1", "i & 3 = 1", "date_add(day, 1) > day", "nullif(i, 1) = 2", "isnan(d)",
    "abs(d) > 1", "-d > 1", "i / (1 + 1) > 2", "CAST('7' AS INT) < i",
]  # fmt: skip


@pytest.mark.parametrize("ansi", [False, True])
@pytest.mark.parametrize(
    ("text", "depends"), [*((text, True) for text in DEPENDS), *((text, False) for text in DOES_NOT)]
)
def test_what_depends_on_the_mode(text: str, depends: bool, ansi: bool) -> None:
    of = cm.Matcher.build({1: "i IS NULL", 2: text}, SCHEMA, options=cm.Options(ansi=ansi))
    assert (of.spark_settings.get(ANSI) is not None) == depends
    assert pickle.loads(pickle.dumps(of)).spark_settings.get(ANSI) == of.spark_settings.get(ANSI)


def test_literals_that_cannot_be_computed_depend_on_it() -> None:
    of = cm.Matcher.build({1: "i < 2147483647 + 1", 2: "i = CAST('x' AS INT)", 3: "i < floor(1e300D)"}, SCHEMA)
    assert of.spark_settings.get(ANSI) is not None
    for id in (1, 2):
        of.delete([id])
        of.compact()
        assert of.spark_settings.get(ANSI) is not None


def test_betree_computes_nothing() -> None:
    of = cm.Matcher.build({1: "age > 20"}, cm.betree.Domains("age|integer|false"), language="betree")
    assert of.spark_settings.get(ANSI) is None


def test_a_decimal_that_does_not_fit() -> None:
    """ANSI mode refuses it; the other one has NULL."""
    events = pa.table({"d": pa.array([100], pa.decimal128(10, 2))})
    for ansi in (True, False):
        options = cm.Options(ansi=ansi)
        matcher = cm.Matcher.build({1: "CAST(d AS DECIMAL(3, 1)) IS NULL"}, events.schema, "scan", options)
        if not ansi:
            assert matcher.count(events).tolist() == [1]
            continue
        with pytest.raises(cm.EventError, match="does not fit"):
            matcher.match(events)
