"""Time zones by name, and which matchers depend on the zone of their options."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.given.session import ZONE, same_zone, time_zone

SCHEMA = {"seen": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"), "day": "date32[day]", "text": "string"}


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("Z", 0),
        ("UTC", 0),
        ("+02:00", 2),
        ("-3", -3),
        ("UTC+5:30", 5.5),
        ("GMT-1", -1),
        ("+0130", 1.5),
        ("Etc/GMT+1", -1),
        ("Asia/Kolkata", 5.5),
    ],
)
def test_zones_by_name(name: str, hours: float) -> None:
    assert time_zone(name).utcoffset(dt.datetime(2020, 1, 1)) == dt.timedelta(hours=hours)
    assert cm.Options(timezone=name).timezone == name


@pytest.mark.parametrize(
    "name",
    [
        "Mars/Olympus",
        "",
        "+19",
        "+01:60",
        "UTC+",
        "..",
        "/etc/passwd",
        "Europe",
        "\0",
        "localtime",
        "posixrules",
        "+18:30",
    ],
)
def test_names_of_no_zone(name: str) -> None:
    with pytest.raises(ValueError, match="zone|offset"):
        time_zone(name)
    with pytest.raises(cm.OptionError, match="not a known time zone"):
        cm.Options(timezone=name)


def test_zones_that_are_the_same() -> None:
    assert (
        same_zone("UTC", "Etc/UTC")
        and same_zone("GMT", "Z")
        and same_zone("+01:00", "Etc/GMT-1")
        and same_zone("no zone", "no zone")
    )
    for one, other in [
        ("UTC", "Europe/London"),
        ("UTC", "Antarctica/Troll"),  # differs in July alone
        ("Europe/Berlin", "Europe/Vienna"),
        ("+01:00", "Africa/Lagos"),
        ("UTC", "PST"),
        ("UTC", ""),
    ]:
        assert not same_zone(one, other), (one, other)


LOCAL: list[Any] = [
    "seen >= TIMESTAMP '2024-01-01 00:00:00'",
    "seen >= '2024-01-01'",
    "seen IN ('2024-01-01 00:00:00Z', '2024-01-01')",
    "seen > DATE '2024-01-01'",
    "seen < TIMESTAMP_NTZ '2024-01-01 00:00:00'",
    "local >= TIMESTAMP '2024-01-01 00:00:00+01:00'",
    cm.col("seen") > dt.datetime(2024, 1, 1),
]
NOT_LOCAL: list[Any] = [
    "seen >= TIMESTAMP '2024-01-01 00:00:00Z'",
    "seen IS NOT NULL",
    "local >= '2024-01-01'",
    "local >= TIMESTAMP '2024-01-01 00:00:00'",
    "day >= '2024-01-01'",
    "text >= '2024-01-01'",
    cm.col("seen") > dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
]


def test_which_expressions_depend_on_the_zone(tmp_path: Path) -> None:
    for expression in LOCAL:
        literal = cm.Matcher.build([(1, expression)], SCHEMA).spark_settings.get(ZONE)
        assert literal is not None and "2024-01-01" in literal, expression
    for expression in NOT_LOCAL:
        assert cm.Matcher.build([(1, expression)], SCHEMA).spark_settings.get(ZONE) is None, expression


def test_predicate_tables_depend_on_the_zone_like_texts() -> None:
    for zone, column, local in [
        (None, "seen", True),
        ("UTC", "seen", False),
        (None, "local", False),
        ("Europe/Paris", "local", True),
    ]:
        operands = pa.array([[dt.datetime(2024, 1, 1)]], pa.list_(pa.timestamp("us", zone)))
        table = pa.table({"id": [1], "attribute": [column], "op": [">="], "operands": operands})
        assert (cm.Matcher.build(cm.PredicateTable(table), SCHEMA).spark_settings.get(ZONE) is not None) is local


def test_it_is_kept(tmp_path: Path) -> None:
    matcher = cm.Matcher.build({1: NOT_LOCAL[0]}, SCHEMA, index="scan")
    for made in (pickle.loads(pickle.dumps(matcher)), matcher):
        assert made.spark_settings.get(ZONE) is None
        made.insert({2: LOCAL[0]})
        assert made.spark_settings.get(ZONE) == "2024-01-01 00:00:00"
        made.save(tmp_path / "i")
        assert cm.Matcher.open(tmp_path / "i").spark_settings.get(ZONE) == "2024-01-01 00:00:00"
        made.insert({3: LOCAL[1]})
        made.delete([2])
        assert made.spark_settings.get(ZONE) == "2024-01-01 00:00:00"


def test_the_literal_stays_known_without_its_subscription() -> None:
    """It is documented so: another would have to be looked for among all that are left."""
    matcher = cm.Matcher.build({1: "day = '2024-01-01'"}, SCHEMA)
    matcher.insert({2: "seen > '2024-05-01 00:00:00'"})
    assert matcher.spark_settings.get(ZONE) == "2024-05-01 00:00:00"
    matcher.delete([2])
    matcher.compact()
    assert matcher.spark_settings.get(ZONE) == "2024-05-01 00:00:00"
    assert "It stays when" in str(cm.Matcher.spark_settings.__doc__)
