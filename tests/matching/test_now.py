"""The time of the call in expressions: ``now()``, ``current_date`` and ranges that move with it."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from inside import attributes

import colmatch as cm

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "loc": pa.timestamp("us"), "day": pa.date32(), "i": pa.int64()})
NOW = dt.datetime(2024, 3, 31, 12, 30, 0, 123457, dt.UTC)
MICRO = dt.timedelta(microseconds=1)
AGES = [
    dt.timedelta(0),
    MICRO,
    dt.timedelta(days=7) - MICRO,
    dt.timedelta(days=7),
    dt.timedelta(days=7) + MICRO,
    dt.timedelta(-1),
]
EVENTS = pa.table(
    {
        "ts": [*[NOW - age for age in AGES], None],
        "loc": [*[(NOW - age).replace(tzinfo=None) for age in AGES], None],
        "day": [*[(NOW - age).date() for age in AGES], None],
        "i": range(7),
    },
    schema=SCHEMA,
)
RULES = {
    1: "ts > now() - INTERVAL 7 DAYS",
    2: "NOT ts > current_timestamp - INTERVAL '7' DAY",
    3: "now() - ts < INTERVAL '168' HOUR",
    4: "ts - now() >= INTERVAL '-7' DAY",
    5: "ts BETWEEN now() - INTERVAL 1 WEEK AND now()",
    6: "day >= current_date() - 7",
    7: "datediff(current_date, day) = 7",
    8: "loc = localtimestamp",
    9: "current_date = '2024-03-31'",
    10: "unix_timestamp() = 1711888200",
    11: "ts < dateadd(DAY, -7, now())",
    12: "year(now()) = 2024 AND i = 0",
}


def expected(age: dt.timedelta | None, i: int) -> list[int]:
    ids = [9, 10, *([12] if i == 0 else [])]
    if age is not None:
        week = dt.timedelta(days=7)
        days = (NOW.date() - (NOW - age).date()).days
        holds = {1: age < week, 2: age >= week, 3: age < week, 4: age <= week, 5: dt.timedelta(0) <= age <= week,
                 6: days <= 7, 7: days == 7, 8: not age, 11: age > week}  # fmt: skip
        ids += [id for id, is_true in holds.items() if is_true]
    return sorted(ids)


EXPECTED = [expected(age, i) for i, age in enumerate([*AGES, None])]


@pytest.mark.parametrize("index", ["scan", "bitslice", "bestar", "pbtree"])
def test_the_time_of_the_call(index: Any) -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA, index=index)
    assert matcher.match_lists(EVENTS, now=NOW).to_pylist() == EXPECTED
    assert matcher.count(EVENTS, now=NOW).tolist() == list(map(len, EXPECTED))
    assert matcher.columns == matcher.columns_with(now=NOW) == ["ts", "day", "loc", "i"]
    for row, ids in zip(EVENTS.to_pylist(), EXPECTED, strict=True):
        assert sorted(matcher.match_one(row, now=NOW)) == ids
        assert [id for id in RULES if matcher.explain(row, id, now=NOW).matched] == ids
    later = matcher.match_lists(EVENTS, now=NOW + dt.timedelta(days=3)).to_pylist()
    assert [1 in ids for ids in later] == [True, True, False, False, False, True, False]


def test_without_now_it_is_the_present() -> None:
    matcher = cm.Matcher.build(
        {1: "ts > now()", 2: "ts <= now()", 3: "now() > TIMESTAMP '2024-01-01 00:00:00Z'"}, SCHEMA
    )
    present = dt.datetime.now(dt.UTC)
    events = pa.table({"ts": [present - MICRO, present + dt.timedelta(hours=1)]})
    assert matcher.match_lists(events).to_pylist() == [[2, 3], [1, 3]]
    assert matcher.match_one({"ts": present}) == [2, 3]
    assert cm.Matcher.build({1: "now() > DATE '2024-01-01'"}, SCHEMA).match_one({}) == [1]


def test_a_call_has_one_moment() -> None:
    rule = {1: "ts = now()", 2: "ts > now()"}
    matcher = cm.Matcher.build(rule, SCHEMA, options=cm.Options(batch_rows=100, threads=1))
    present = dt.datetime.now(dt.UTC) + dt.timedelta(milliseconds=2)
    many = pa.table({"ts": pa.array([present] * 3000, SCHEMA.field("ts").type)})
    assert len(set(map(tuple, matcher.match_lists(many).to_pylist()))) == 1


def test_files_inserts_and_copies_know_the_time(tmp_path: Path) -> None:
    matcher = cm.Matcher.build({1: RULES[1]}, SCHEMA)
    matcher.insert({id: rule for id, rule in RULES.items() if id > 1})
    matcher.save(tmp_path / "m.colmatch")
    for one in (matcher, cm.Matcher.open(tmp_path / "m.colmatch"), pickle.loads(pickle.dumps(matcher))):
        assert one.match_lists(EVENTS, now=NOW).to_pylist() == EXPECTED


def test_rules_with_intervals_share_a_value() -> None:
    rules = {i: f"ts > now() - INTERVAL {i + 1} MINUTES" for i in range(50)}
    rules |= {i + 50: f"now() - ts > INTERVAL {i + 1} HOURS" for i in range(50)}
    for zone in ("UTC", "Europe/Berlin"):
        matcher = cm.Matcher.build(
            {**rules, 100: "ts < now() - INTERVAL 50 DAYS"}, SCHEMA, options=cm.Options(timezone=zone)
        )
        names = {attribute.path[0] for attribute in attributes(matcher)}
        assert "(ts - current_timestamp())" in names
        if zone == "UTC":
            assert len(names) == 1
    plain = cm.Matcher.build(
        {i: f"ts > TIMESTAMP '2024-01-01 00:00:00' + INTERVAL {i} DAYS" for i in range(50)}, SCHEMA
    )
    assert [attribute.path for attribute in attributes(plain)] == [("ts",)]


WRITTEN = {
    "ts - other > INTERVAL 1 DAY": "(other - ts) < INTERVAL -1 DAYS",
    "ts > now() - INTERVAL 7 DAYS": "(ts - current_timestamp()) > INTERVAL -7 DAYS",
    "ts BETWEEN now() - INTERVAL '1.5' SECOND AND now()":
        "(ts - current_timestamp()) BETWEEN INTERVAL -1500 MILLISECONDS AND INTERVAL 0 DAYS",
    "ts <= other + INTERVAL '0.0000025' SECOND": "(other - ts) >= INTERVAL -2 MICROSECONDS",
    "day >= current_date() - INTERVAL 3 DAYS": "datediff(day, current_date()) >= -3",
    "timestampdiff(HOUR, ts, other) = 4": "timestampdiff(HOUR, ts, other) = 4",
    "cidr_contains('10.0.0.0/8', ip) IS NULL": "cidr_contains('::/0', ip) IS NULL",
}  # fmt: skip


@pytest.mark.parametrize("rule", WRITTEN)
@pytest.mark.usefixtures("kept_predicates")
def test_an_explanation_is_written_as_a_rule(rule: str) -> None:
    at = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)
    rows = [
        {"ts": at + dt.timedelta(hours=hours), "other": at, "day": at.date() + dt.timedelta(hours // 24), "ip": ip}
        for hours, ip in ((0, "10.0.0.1"), (-4, "x"), (30, None), (-700, "8.8.8.8"))
    ]
    schema = {"ts": "timestamp", "other": "timestamp", "day": "date", "ip": "string"}
    matcher, again = (cm.Matcher.build({1: text}, schema) for text in (rule, WRITTEN[rule]))
    for row in rows:
        text = matcher.explain(row, 1, now=at).tree.text
        assert text == WRITTEN[rule]
        assert matcher.match_one(row, now=at) == again.match_one(row, now=at)


def test_the_builder_takes_timedelta() -> None:
    week, now = dt.timedelta(days=7), cm.function("now")
    rules = {
        1: cm.col("ts") > now - week,
        2: now - cm.col("ts") < dt.timedelta(hours=1, milliseconds=5),
        3: cm.col("day") + week > cm.function("current_date"),
    }
    texts = {
        1: "ts > now() - INTERVAL '7' DAY",
        2: "now() - ts < INTERVAL 3600005 MILLISECONDS",
        3: "day + INTERVAL '7' DAY > current_date()",
    }
    each = (rules, texts, {id: str(rule) for id, rule in rules.items()})
    built = [cm.Matcher.build(some, SCHEMA).match_lists(EVENTS, now=NOW).to_pylist() for some in each]
    assert built[0] == built[1] == built[2]
    assert built[0][1] == [1, 2, 3]


def test_a_column_of_that_name_is_a_column() -> None:
    schema = {"current_date": "date32", "now": "int64"}
    matcher = cm.Matcher.build({1: "current_date = '2024-01-31' AND now = 5"}, schema)
    assert matcher.match_one({"current_date": dt.date(2024, 1, 31), "now": 5}) == [1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ts - now() > 5", "is an interval: compare it with INTERVAL 7 DAYS"),
        ("ts > now(3)", "now has too few or too many arguments"),
        ("ts > now() - INTERVAL '7 moons'", "'7 moons' is no interval"),
        ("ts > now() - INTERVAL '1:99' HOUR TO MINUTE", "is no interval"),
        ("ts > now() - INTERVAL 1 MONTH 1 DAY", "years and months, or else days and times"),
        ("ts - now() > INTERVAL 1 MONTH", "takes values of one type"),
        ("timestampadd(MOON, 1, ts) > ts", "begins with a unit"),
        ("i + INTERVAL 1 DAY > 5", "needs numbers, not interval"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    schema = SCHEMA.append(pa.field("items", pa.list_(pa.struct({"at": SCHEMA.field("ts").type}))))
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, schema)
