"""Values in variants, and paths with wildcards into JSON texts, checked against Spark SQL.

COLMATCH_DIFFERENTIAL=2000 asks for that many triples of a document, a path and a type.
"""

from __future__ import annotations

import json
import os
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from test_differential_computed import numbered
from test_differential_functions import computed, document, is_same, plain

import colmatch as cm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "150"))
PAIRS = 15  # pairs of a path and a type, each asked of many documents
ZONES = {False: "Europe/Berlin", True: "Asia/Kathmandu"}  # by the mode
TYPES = [
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal(38,10)", "decimal(18,0)",
    "date", "timestamp", "timestamp_ntz",
]  # fmt: skip
PATHS = [
    "$",
    "$.a",
    "$.a",
    "$.b",
    "$.a.b",
    "$.b.a",
    "$[0]",
    "$[1]",
    "$.a[0]",
    "$[0].a",
    "$['a b']",
    '$["b"][1]',
    "$.é",
    "$.a b",
    "$['']",
]
WILD = [
    "$[*]", "$.a[*]", "$[*].a", "$.a[*].b", "$[*][*]", "$[*].a[*]", "$[*].a[*].b", "$[0][*]", "$.a[0][*].b", "$[*][0]", "$.*", "$[*].*",
    "$.a.*", "$[*][*].a", "$[*][*][*]", "$.a[*][*].b", "$[*][1][*]", "$[\\'*\\']", "$. a", "$.b[*].a.b", "$[1][*][*]", "$[0].a[*][0]",
]  # fmt: skip
KEYS = ["a", "a", "b", "b", "a b", "é", "", "😀", "z"]
SCALARS = [
    '""', '"x"', '"é€"', '"😀"', '"\\ud83d\\ude00"', '"a\\n\\"/\\/\\u0001"', '"\u2028\x7f"', "true", "false", "null", '"true"', '" 7 "',
    '"7"', '"1.50"', '"1e3"', '"-0"', '"128"', '"2024-02-29"', '"2024-03-31 02:30:00"', '"2024-10-27T02:30:00+01:00"', '"12:30"', '"T"',
    '"NaN"', '"1969-12-31 23:59:59.999999Z"', "0", "-0", "127", "128", "-32769", "2147483648", "9223372036854775807",
    "-9223372036854775808", "9223372036854775808", "1" + "0" * 37, "9" * 38, "1" + "0" * 38, "1.50", "100.00", "0.0000001", "-0.0", "0.005",
    "-1.999", "123456789.123456789", "1e3", "1E400", "-2.5e-3", "1e7", "1e-4", "12345678.5e0", "4.9e-324", "0." + "1" * 38, "0." + "1" * 39,
    "9223372036854.775807", "9223372036855", "1706692830.5", "1.5e18", "3.4028236e38", "999.995", "-999.994",
]  # fmt: skip
WRONG = ["NaN", "tru", "01", "1.", "+1", '"\\x"', "-", "'x'", '"\t"', '"\\ud800"', '{"a":1,"a":2}', "truex"]
TYPED = [  # variants that no JSON makes
    "DATE'2024-02-29'", "DATE'9999-12-31'", "TIMESTAMP'2024-03-31 01:30:00.123450'", "TIMESTAMP_NTZ'2024-10-27 02:30:00'",
    "TIMESTAMP'1890-05-01 00:00:00'", "X'6162'", "CAST(0.1 AS FLOAT)", "CAST(1e20 AS FLOAT)", "CAST(1e-5 AS FLOAT)",
    "CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS FLOAT)", "1.50BD", "CAST(7 AS TINYINT)", "'x'", "array(DATE'2024-02-29', NULL)",
    "named_struct('a', TIMESTAMP'2024-01-31 10:20:30.5', 'é', X'ff', 'b', CAST(16777217 AS FLOAT), 'c', named_struct('b', 1.10BD))",
]  # fmt: skip


def strict_document(rng: Random) -> str:
    """A JSON text, or rarely what is nearly one."""

    def value(depth: int) -> str:
        kind = rng.random() * (0.7 if depth == top else 1)
        if depth and kind < 0.45:
            keys = dict.fromkeys([*rng.choice(["ab", "ba", "a", ""]), *rng.choices(KEYS, k=rng.randint(0, 4))])
            keys |= dict.fromkeys(map(str, range(rng.choice([0, 0, 0, 40])))) if depth == 3 else {}
            return "{" + ", ".join([f"{json.dumps(key)}: {value(depth - 1)}" for key in keys]) + "}"
        if depth and kind < 0.7:
            count = rng.choice([0, 1, 2, 3, 300]) if depth == 1 else rng.randint(0, 3)
            return "[" + ",".join([value(depth - 1) for _ in range(count)]) + "]"
        return rng.choice(SCALARS if rng.random() < 0.99 else WRONG)

    top = rng.choice([0, 1, 1, 2, 2, 3])
    return rng.choice(["", " "]) + value(top) + rng.choice(["", "", "", " x", "}", "1"])


def triples(rng: Random) -> list[tuple[str, str]]:
    first = rng.sample(TYPES, len(TYPES))
    return [(rng.choice(PATHS), first[i % len(first)]) for i in range(max(PAIRS, COUNT // 40))]


@pytest.mark.parametrize("ansi", [False, True])
def test_spark_finds_and_casts_the_same_in_variants(spark: SparkSession, conf: Any, ansi: bool) -> None:
    zone = ZONES[ansi]
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    rng = Random(f"variants {ansi} {COUNT}")
    pairs = triples(rng)
    texts = pa.table({"doc": [strict_document(rng) for _ in range(max(-(-COUNT // len(pairs)), 30))]})
    frame = numbered(spark, texts).selectExpr("nr", "doc", "try_parse_json(doc) AS v")
    compare(frame, [("v", path, type) for path, type in pairs], zone, ansi)
    compare(frame.drop("v"), [("parse_json(doc)", path, type) for path, type in pairs], zone, ansi)


@pytest.mark.parametrize("ansi", [False, True])
def test_spark_casts_typed_variants_the_same(spark: SparkSession, conf: Any, ansi: bool) -> None:
    zone = ZONES[ansi]
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    some = " UNION ALL ".join(
        f"SELECT {i} AS nr, {'to_variant_object(' + one + ')' if '(D' in one or 'struct' in one else f'CAST({one} AS VARIANT)'} AS v"
        for i, one in enumerate(TYPED)
    )
    paths = ["$", "$.a", "$.b"]
    compare(spark.sql(some), [("v", path, type) for path in paths for type in TYPES], zone, ansi)


def compare(frame: DataFrame, triples: list[tuple[str, str, str]], zone: str, ansi: bool) -> None:
    """Compares the values of variants, and the rows where a cast fails."""
    events = collected(frame)
    wrong, good = [], 0
    for source, path, type in triples:
        written = path.replace("'", "\\'")
        call = f"variant_get({source}, '{written}', '{type}')"
        found, tried = (computed(text, events, zone, ansi) for text in (call, f"try_{call}"))
        assert found is not None and tried is not None, call
        safe = f"try_{source}" if "(" in source else source
        within = f"variant_get({safe}, '{written}')"
        answer = frame.selectExpr(
            "nr",
            f"try_variant_get({safe}, '{written}', '{type}') AS value",
            f"coalesce({within} IS NOT NULL AND NOT is_variant_null({within}), false) AS there",
            f"{safe} IS NULL AND {'doc' if '(' in source else 'NULL'} IS NOT NULL AS fails",
            f"is_variant_null({within}) AS null_of_json",
        )
        theirs = answer.toArrow().sort_by("nr")
        no_json = theirs["fails"].to_pylist()
        for row, value in enumerate(plain(theirs["value"])):
            fails = no_json[row] or (theirs["there"][row].as_py() and value is None)
            mine = found.values[row], found.failed[row]
            if not is_same(mine[0], value) or mine[1] != fails or not is_same(tried.values[row], value):
                wrong.append(f"{call} of {events.slice(row, 1).to_pylist()}: {mine!r}, Spark {value!r} {fails}")
            if tried.failed[row] != no_json[row]:
                wrong.append(f"try_{call} of {events.slice(row, 1).to_pylist()} fails: {tried.failed[row]}")
            good += value is not None
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(one[:600] for one in wrong[:30])
    assert good > len(triples) / 2


def collected(frame: DataFrame) -> pa.Table:
    """The rows in order. Spark's own toArrow fails for a variant that is NULL."""
    rows = frame.orderBy("nr").collect()
    columns = {}
    if "v" in frame.columns:
        values = [None if row.v is None else {"value": row.v.value, "metadata": row.v.metadata} for row in rows]
        columns["v"] = pa.array(values, cm.Schema("v variant").arrow.field("v").type)
    if "doc" in frame.columns:
        columns["doc"] = pa.array([row.doc for row in rows])
    schema = cm.Schema(", ".join(f"{name} {'variant' if name == 'v' else 'string'}" for name in columns)).arrow
    return pa.table(columns, schema=schema)


def test_a_failing_cast_is_an_error_of_spark_in_both_modes(spark: SparkSession, conf: Any) -> None:
    for ansi in ("true", "false"):
        conf("spark.sql.ansi.enabled", ansi)
        for text in (
            "variant_get(parse_json('\"x\"'), '$', 'int')",
            "parse_json('{\"a\": [1]}'):a::int",
            "parse_json('{')",
        ):
            with pytest.raises((PySparkException, Py4JError)):
                spark.sql(f"SELECT {text}").collect()


def test_spark_finds_the_same_by_wildcards(spark: SparkSession) -> None:
    rng = Random(f"wildcards {COUNT}")
    documents = pa.table({"doc": [(strict_document if i % 3 else document)(rng) for i in range(4 * COUNT)]})
    frame = numbered(spark, documents)
    calls = [f"get_json_object(doc, '{path}')" for path in WILD]
    answer = frame.selectExpr("nr", *(f"{call} AS c{i}" for i, call in enumerate(calls))).toArrow().sort_by("nr")
    wrong, found = [], 0
    for i, call in enumerate(calls):
        one = computed(call, documents, "UTC")
        assert one is not None, call
        pairs = zip(documents["doc"].to_pylist(), one.values, answer[f"c{i}"].to_pylist(), strict=True)
        wrong += [f"{call} of {doc!r}: {mine!r}, Spark {other!r}" for doc, mine, other in pairs if mine != other]
        found += sum(value is not None for value in one.values)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(one[:600] for one in wrong[:30])
    assert found > COUNT
