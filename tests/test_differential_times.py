"""Values of dates and times, checked against Spark SQL with ANSI off and on.

COLMATCH_DIFFERENTIAL=5000 asks for that many expressions of each family.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from inside import attributes
from test_differential_computed import numbered

import colmatch as cm
from colmatch.events.computed.derived import DerivedColumns
from colmatch.given.schema import Role

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "60"))
ZONES = ("Europe/Berlin", "UTC", "Asia/Kathmandu")
UTC = dt.UTC
DATES = [
    "2024",
    "2024-03",
    "2024-3-1",
    "1999-12-31",
    "2024-02-30",
    "0001-01-01",
    "-0044-03-15",
    "12024-01-01",
    "1582-10-10",
    "99999",
]
TIMES = ["", "T12", " 12:30", "T12:30:15", " 1:2:3.5", "T23:59:59.9999999", "T24", " 12:60", "T02:30:00", " x"]
PLACES = ["", "Z", "+01:00", "UTC+1", " Europe/Berlin", "-0930", "PST", "+1:3", " Nowhere", "GMT+05:45"]
NOW = "TIMESTAMP '2024-04-02 10:11:12.131415Z'"
ODD = ["", " ", "12:30x", "now", " 2024-03-01 ", "\t2024\n", "２０２４-01-01", "2024-03-31 02:30:00", "2024-10-27T02:30:00",
       "31/01/2024 12:30", "1/2/24", "20240131", "Jan 31, 2024 11:05 pm", "12/31/1999", "2024-01-31T12:30:00.123Z"]  # fmt: skip
FORMATS = ["yyyy-MM-dd", "dd/MM/yyyy HH:mm", "d/M/yy", "yyyyMMdd", "MMM d, yyyy hh:mm a", "MM/dd/yyyy", "yyyy", "yyyy-MM",
           "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "yyyy-MM-dd'T'HH:mm:ss[.SSS]'Z'", "yyyy-M-d[ HH:mm[:ss]]", "HH:mm", "y-M-d"]  # fmt: skip
WRITTEN = [*FORMATS, "EEEE, MMMM dd yyyy", "E h a", "K k", "SSSSSS", "yy Q D", "yyyyy", "''yyyy''", "x Z XXX"]
AT = [
    dt.datetime.fromisoformat(f"{text}+00:00")
    for text in ("1890-05-01", "1969-12-31 23:59:59.999999", "2024-03-31 00:59:59", "2024-03-31 01:30", "2024-10-27 00:30",
                 "2024-02-29 17:00:00.120000", "2040-07-01 12:00", "9999-12-31 01:00", "0001-01-03")
]  # fmt: skip
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "s": (pa.string(), []),
    "t": (pa.string(), ["2024-03-01", "2024-03-31 02:30:00", "1999-12-31T23:59:59Z", "no"]),
    "at": (pa.timestamp("us", "UTC"), AT),
    "other": (pa.timestamp("us", "UTC"), AT),
    "loc": (pa.timestamp("us"), [at.replace(tzinfo=None) for at in AT]),
    "day": (pa.date32(), [at.date() for at in AT]),
    "due": (pa.date32(), [at.date() for at in AT]),
    "i32": (pa.int32(), [0, 1, -1, 1_700_000_000, 2**31 - 1, -(2**31)]),
    "i64": (pa.int64(), [0, -1, 1_706_704_200, 1_711_846_800, -62_135_596_800, 253_402_300_799]),
    "n": (pa.int32(), [0, 1, -1, 2, 30, 365, -13, 1000]),
    "f64": (pa.float64(), [0.0, 1.5, -0.000001, 1_706_704_200.123456, float("nan"), float("inf"), -1e30]),
}
SCHEMA = pa.schema([(name, type) for name, (type, _) in VALUES.items()])


def moment(rng: Random) -> str:
    return (
        rng.choice(DATES) + rng.choice(TIMES) + rng.choice(PLACES) * (rng.random() < 0.5)
        if rng.random() < 0.7
        else rng.choice(ODD)
    )


def some_events(rows: int) -> pa.Table:
    rng = Random(1582)

    def value(name: str) -> object:
        if rng.random() < 0.1:
            return None
        return moment(rng) if name == "s" else rng.choice(VALUES[name][1])

    return pa.table({name: pa.array([value(name) for _ in range(rows)], type) for name, (type, _) in VALUES.items()})


def a_cast(rng: Random) -> str:
    text = rng.choice(["s", "s", "t", "trim(s)", "concat(t, '')"])
    return rng.choice([
        lambda: f"{rng.choice(['CAST', 'TRY_CAST'])}({text} AS {rng.choice(['DATE', 'TIMESTAMP', 'TIMESTAMP_NTZ'])})",
        lambda: f"{rng.choice(['date', 'timestamp', 'to_date', 'to_timestamp', 'to_timestamp_ntz', 'try_to_timestamp'])}({text})",
        lambda: f"{text}::{rng.choice(['date', 'timestamp'])}",
        lambda: f"CAST({rng.choice(['at', 'loc', 'day', 'date(s)', 'timestamp(t)'])} AS STRING)",
        lambda: f"CAST({rng.choice(['at', 'timestamp(t)'])} AS {rng.choice(['BIGINT', 'DOUBLE', 'INT'])})",
        lambda: f"CAST({rng.choice(['i32', 'i64', 'f64'])} AS TIMESTAMP)",
        lambda: f"year({rng.choice(['date(s)', 'timestamp(s)', 'to_date(t)'])})",
        lambda: f"{rng.choice(['timestamp_seconds', 'timestamp_millis', 'timestamp_micros'])}({rng.choice(['i32', 'i64'])})",
        lambda: f"{rng.choice(['unix_timestamp', 'to_unix_timestamp', 'unix_seconds'])}({rng.choice(['at', 'timestamp(t)'])})",
        lambda: "timestamp_seconds(f64)",
        lambda: f"extract(SECOND FROM {rng.choice(['at', 'loc', 'timestamp(s)'])})",
    ])()  # fmt: skip


def a_format(rng: Random) -> str:
    quoted = lambda formats: "'" + rng.choice(formats).replace("'", "\\'") + "'"  # noqa: E731
    text = rng.choice(["s", "s", "s", "t"])
    return rng.choice([
        lambda: f"to_date({text}, {quoted(FORMATS)})",
        lambda: f"{rng.choice(['to_timestamp', 'try_to_timestamp'])}({text}, {quoted(FORMATS)})",
        lambda: f"{rng.choice(['unix_timestamp', 'to_unix_timestamp'])}({text}, {quoted(FORMATS)})",
        lambda: f"unix_timestamp({text})",
        lambda: f"date_format({rng.choice(['at', 'loc', 'day', 'date_add(day, 3)'])}, {quoted(WRITTEN)})",
        lambda: f"from_unixtime({rng.choice(['i32', 'i64'])}, {quoted(WRITTEN)})",
        lambda: f"from_unixtime({rng.choice(['i32', 'i64'])})",
        lambda: f"to_timestamp(date_format(at, {quoted(FORMATS)}), {quoted(FORMATS)})",
    ])()  # fmt: skip


INTERVALS = ["INTERVAL 7 DAYS", "INTERVAL '1' HOUR", "INTERVAL '90' MINUTE", "INTERVAL '1 day 2 hours'", "INTERVAL '1:30' HOUR TO MINUTE",
             "INTERVAL 2 WEEKS", "INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL -3 DAYS", "INTERVAL 1 DAY 30 MINUTES",
             "INTERVAL '0.25' SECOND", "INTERVAL 10 MILLISECONDS"]  # fmt: skip
LONG = [
    "INTERVAL 2 MONTHS",
    "INTERVAL '1-2' YEAR TO MONTH",
    "INTERVAL '1' YEAR",
    "INTERVAL -1 MONTH",
    "INTERVAL 1 YEAR 2 MONTHS",
]
UNITS = ["MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"]


def a_moment(rng: Random, depth: int = 2) -> str:
    some = rng.choice(["at", "at", "other", "loc", "day", "due", NOW])
    if depth and rng.random() < 0.5:
        return f"({a_moment(rng, depth - 1)} {rng.choice('+-')} {rng.choice([*INTERVALS, *LONG])})"
    return some


def a_sum(rng: Random) -> str:
    moment = lambda: a_moment(rng, 1)  # noqa: E731
    return rng.choice([
        lambda: a_moment(rng),
        lambda: f"{rng.choice(INTERVALS + LONG)} + {moment()}",
        lambda: f"{rng.choice(['day', 'due'])} {rng.choice('+-')} {rng.choice(['7', 'n', 'INTERVAL 3 DAYS', 'INTERVAL 1 MONTH'])}",
        lambda: f"timestampadd({rng.choice(UNITS)}, {rng.choice(['n', '3', '-1'])}, {rng.choice(['at', 'loc', 'day'])})",
        lambda: f"dateadd({rng.choice(UNITS)}, {rng.choice(['n', '3', '-1'])}, {rng.choice(['at', 'loc'])})",
        lambda: f"{rng.choice(['timestampdiff', 'datediff'])}({rng.choice(UNITS)}, {moment()}, {moment()})",
        lambda: f"months_between({moment()}, {moment()}{rng.choice(['', ', false'])})",
        lambda: f"trunc({moment()}, '{rng.choice(['MM', 'year', 'quarter', 'week'])}')",
        lambda: f"{rng.choice(['from_utc_timestamp', 'to_utc_timestamp'])}({moment()}, '{rng.choice(['Europe/Berlin', '+05:45', 'UTC'])}')",
        lambda: f"date_trunc('{rng.choice(['day', 'hour', 'month'])}', {moment()})",
        lambda: f"datediff({moment()}, {moment()})",
        lambda: "CASE WHEN {0} THEN 1 WHEN NOT ({0}) THEN 0 END".format(
            f"({moment()}) - {moment()} {rng.choice(['<', '>=', '='])} {rng.choice(INTERVALS)}"
        ),
    ])()  # fmt: skip


FAMILIES: dict[str, Callable[[Random], str]] = {"casts": a_cast, "formats": a_format, "intervals": a_sum}


def computed(text: str, events: pa.Table, zone: str, ansi: bool) -> tuple[list[Any], list[bool]] | str:
    """What colmatch computes, and the rows that fail; the words where it refuses the expression."""
    try:
        matcher = cm.Matcher.build({0: f"({text}) IS NULL"}, SCHEMA, options=cm.Options(timezone=zone, ansi=ansi))
    except cm.ExpressionError as error:
        return str(error)
    (batch,) = events.combine_chunks().to_batches()
    members = attributes(matcher)
    if not len(members):
        return "it is constant"
    if all(attribute.role is not Role.COMPUTED for attribute in members):
        return "it is solved"
    with_values, failed = DerivedColumns(members, True).add_to(batch)
    rows = [False] * batch.num_rows
    for failure in failed.values():
        rows = [one or bool(other) for one, other in zip(rows, failure.rows, strict=True)]
    return plain(with_values.column(with_values.num_columns - 1)), rows


def plain(values: Any) -> list[Any]:
    """Values of Python, with moments and intervals as numbers: some are beyond 9999."""
    type = values.type
    if pa.types.is_date(type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(type) or pa.types.is_duration(type):
        values = values.cast(pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def is_same(one: Any, other: Any) -> bool:
    return one == other or (one != one and other != other)


def a_condition(rng: Random) -> str:
    one, other = (rng.choice(["at", "loc", "day", "now()", "other", a_moment(rng, 1)]) for _ in range(2))
    sign = rng.choice(["<", "<=", ">", ">=", "=", "<>", "<=>"])
    span = rng.choice(INTERVALS)
    return rng.choice([
        lambda: f"{one} {sign} now() {rng.choice('+-')} {span}",
        lambda: f"now() {rng.choice('+-')} {span} {sign} {one}",
        lambda: f"{one} {sign} {other} - {span}",
        lambda: f"at BETWEEN now() - {span} AND now()",
        lambda: f"{rng.choice(['at', 'loc'])} - now() {sign} {span}",
        lambda: f"now() - {rng.choice(['at', 'other'])} {sign} {span}",
        lambda: f"day {sign} current_date() {rng.choice('+-')} {rng.choice([30, 0, 400])}",
        lambda: f"{rng.choice(['day', 'due'])} {sign} date_sub(current_date, {rng.choice([30, 1])})",
        lambda: f"datediff(current_date(), {one}) {sign} {rng.choice([7, 0, -30])}",
        lambda: f"{rng.choice(['at', 'loc', 'day'])} {sign} TIMESTAMP '2024-03-31 01:00:00' + {rng.choice(INTERVALS + LONG)}",
        lambda: f"{rng.choice(['at', 'loc'])} {sign} {rng.choice(['localtimestamp', 'current_timestamp'])}",
        lambda: f"at {sign} dateadd({rng.choice(['DAY', 'HOUR', 'MONTH'])}, {rng.choice([-7, 30])}, now())",
        lambda: f"unix_timestamp() - {rng.choice([86400, 5])} {sign} unix_timestamp(at)",
    ])()  # fmt: skip


@pytest.mark.parametrize("ansi", [False, True], ids=["plain", "ansi"])
@pytest.mark.parametrize("zone", ZONES)
def test_conditions_on_the_time_of_the_call(spark: SparkSession, conf: Any, zone: str, ansi: bool) -> None:
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    rng, events = Random(zone), some_events(80)
    texts = list(dict.fromkeys(a_condition(rng) for _ in range(COUNT)))
    rules = dict(enumerate(texts)) | {i + COUNT: f"NOT ({text})" for i, text in enumerate(texts)}
    options = cm.Options(timezone=zone, ansi=ansi)
    rejected = {
        one.id: one.error
        for one in cm.Matcher.build(rules, SCHEMA, options=options, errors="collect", max_rejected=1.0).rejected
    }
    assert len(rejected) < 0.4 * len(texts), rejected
    kept = {i: text for i, text in rules.items() if i not in rejected}
    matcher = cm.Matcher.build(kept, SCHEMA, options=options)
    now = dt.datetime(2024, 4, 2, 10, 11, 12, 131415, UTC)
    ours = matcher.match_lists(events, now=now).to_pylist()
    frame, wrong = numbered(spark, events).cache(), []
    word = {"now()": NOW, "current_timestamp": NOW, "current_date()": f"date({NOW})", "current_date": f"date({NOW})",
            "localtimestamp": f"CAST({NOW} AS TIMESTAMP_NTZ)", "unix_timestamp()": f"unix_seconds({NOW})"}  # fmt: skip
    asked = {i: text for i, text in kept.items() if i < COUNT}
    numbers = list(asked)
    for at in range(0, len(numbers), 40):
        part = numbers[at : at + 40]
        written = [re.sub("|".join(map(re.escape, word)), lambda found: word[found[0]], asked[i]) for i in part]
        answer = frame.selectExpr("nr", *(f"{text} AS c{i}" for i, text in zip(part, written, strict=True))).toArrow()
        answer = answer.sort_by("nr")
        for i in part:
            theirs = answer[f"c{i}"].to_pylist()
            found = [True if i in some else False if i + COUNT in some else None for some in ours]
            rows = [row for row, pair in enumerate(zip(found, theirs, strict=True)) if pair[0] is not pair[1]]
            wrong += [
                f"{asked[i]}: {events.slice(row, 1).to_pylist()} {found[row]}, Spark {theirs[row]}" for row in rows[:1]
            ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:30])


def errors(ours: list[bool], frame: DataFrame, text: str) -> list[str]:
    """A row that fails here must fail in Spark, too."""
    row = ours.index(True)
    try:
        found = frame.where(f"nr = {row}").selectExpr(f"{text} AS c").toArrow()
    except Exception as error:
        return [] if "SQLSTATE" in str(error) or "Exception" in str(error) else [f"{text}: {error}"]
    return [f"{text}: row {row} fails, Spark has {plain(found['c'])}"]


@pytest.mark.parametrize("ansi", [False, True], ids=["plain", "ansi"])
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("family", FAMILIES)
def test_spark_computes_the_same(spark: SparkSession, conf: Any, family: str, zone: str, ansi: bool) -> None:
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    rng, events = Random(f"{zone} {family}"), some_events(80)
    texts = list(dict.fromkeys(FAMILIES[family](rng) for _ in range(COUNT)))
    frame, wrong, refused = numbered(spark, events).cache(), [], []
    ours: dict[str, tuple[list[Any], list[bool]]] = {}
    for text in texts:
        found = computed(text, events, zone, ansi)
        if isinstance(found, str):
            refused.append(f"{text}: {found}")
        else:
            ours[text] = found
    assert len(refused) < 0.2 * len(texts), "\n".join(refused)
    groups: dict[tuple[int, ...], list[str]] = {}
    for text, (_, failed) in ours.items():
        groups.setdefault(tuple(i for i, fails in enumerate(failed) if not fails), []).append(text)
    for rows, asked in groups.items():
        some = frame.where(f"nr IN ({', '.join(map(str, rows)) or '-1'})")
        for at in range(0, len(asked), 40):
            part = asked[at : at + 40]
            answer = some.selectExpr("nr", *(f"{text} AS c{i}" for i, text in enumerate(part))).toArrow().sort_by("nr")
            for i, text in enumerate(part):
                theirs = plain(answer[f"c{i}"].combine_chunks())
                pairs = [(row, ours[text][0][row], their) for row, their in zip(rows, theirs, strict=True)]
                bad = [pair for pair in pairs if not is_same(*pair[1:])]
                wrong += [f"{text}: {events.slice(row, 1).to_pylist()} {a!r}, Spark {b!r}" for row, a, b in bad[:1]]
    for text, (_, failed) in ours.items():
        if any(failed):
            wrong += errors(failed, frame, text)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:30])
