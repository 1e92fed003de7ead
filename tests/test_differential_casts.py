"""Casts of ``Options(casts="spark")``, checked against Spark SQL with ANSI off and on.

COLMATCH_DIFFERENTIAL=2500 asks for that many expressions of each mode.

Left out here: AND and OR, of which colmatch answers either side first, and casts of floats and
doubles to texts, which colmatch refuses. Literals beyond 64 bits are left out of BETWEEN, as in
``test_differential_spark.py``. A CASE has no constants for results, which Spark may compare
without asking which it is.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from test_differential_computed import ERRORS, differences, numbered, spark_truths

import colmatch as cm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "200"))
NAN, INF, UTC = float("nan"), float("inf"), dt.UTC
TEXTS = ["", " ", "0", "5", "05", " 5 ", "+5", "-3", "5.0", "5.5", "1e3", "0x10", "5L", "5d", "NaN", "Infinity", "-inf", ".5", "5.", ".",
         "127", "128", "32768", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "1" * 20,
         "true", "T", "no", "2024-01-31", "2024-1-31", "2024", "2024-01-31 12:30:00", "x", "é", "1,5", "٣", "-0"]  # fmt: skip
PLAIN = ["0", "5", "05", " 5 ", "+5", "-3", "12", "127", "1"]  # whole numbers, which ANSI mode reads
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "s": (pa.string(), TEXTS),
    "t": (pa.string(), ["5", "05", "12", "-3", "x", "", "2024-01-31", "true", "1.50", "5.0"]),
    "i8": (pa.int8(), [-128, -3, 0, 1, 5, 127]),
    "i32": (pa.int32(), [-(2**31), -3, 0, 1, 5, 12, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), -3, 0, 5, 2**31, 2**53 + 1, 2**63 - 1]),
    "f32": (pa.float32(), [-INF, -3.0, -0.0, 0.1, 5.0, 1e20, NAN]),
    "f64": (pa.float64(), [-3.0, -0.0, 0.1, 5.0, 5.5, 1e300, INF, NAN]),
    "d": (pa.decimal128(8, 2), [Decimal("-3.00"), Decimal("0.00"), Decimal("0.10"), Decimal("1.50"), Decimal("5.00"),
          Decimal("999999.99")]),
    "e": (pa.decimal128(20, 0), [Decimal(-3), Decimal(0), Decimal(5), Decimal(10**19 + 1)]),
    "g": (pa.decimal128(20, 9), [Decimal("0.000000000"), Decimal("0.000000015"), Decimal("5.000000000")]),
    "b": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [dt.date(2024, 1, 31), dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(1582, 10, 15)]),
    "at": (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 31, 12, 30, tzinfo=UTC), dt.datetime(2024, 1, 31, tzinfo=UTC)]),
    "loc": (pa.timestamp("us"), [dt.datetime(2024, 1, 31, 12, 30), dt.datetime(2024, 1, 31)]),
    "tags": (pa.list_(pa.string()), [["5", "x"], [" 5 "], [], ["05", None]]),
    "nums": (pa.list_(pa.int32()), [[5, 1], [-3], [], [12, None]]),
    "attrs": (pa.map_(pa.string(), pa.string()), [[("k", "5")], [("k", "05")], [("k", "x")], [("j", "1")]]),
}  # fmt: skip
SCHEMA = pa.schema([(name, type) for name, (type, _) in VALUES.items()])
TAME = {
    "s": PLAIN, "t": ["5", "12", "-3", "05"], "i8": [-3, 0, 5], "i32": [-3, 0, 5, 12], "i64": [-3, 0, 5, 2**31],
    "tags": [["5"], ["05", None], []], "f32": [-3.0, 0.5, NAN], "attrs": [[("k", "5")], [("k", "05")], [("j", "1")]],
}  # fmt: skip  # for ANSI mode
FAILURES = (*ERRORS, "INVALID_ARRAY_INDEX", "DATETIME_FIELD")  # of values in ANSI mode
SIGNS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
NUMBERS = ["5", "05", "0", "-3", "12", "127", "128", "5L", "5S", "5Y", "5.0", "5.5", "1.50", "5D", "5e0", "2147483647", "2147483648",
           "9223372036854775807", "5BD", "99999999999999999999"]  # fmt: skip
LITERALS = [
    *NUMBERS,
    "true",
    "false",
    "DATE'2024-01-31'",
    "TIMESTAMP'2024-01-31 12:30:00'",
    "TIMESTAMP_NTZ'2024-01-31 12:30:00'",
    "NULL",
]
OTHERS = [
    "i8",
    "i32",
    "i64",
    "f32",
    "f64",
    "d",
    "e",
    "g",
    "b",
    "day",
    "at",
    "loc",
    "year(day)",
    "length(t)",
    "size(tags)",
    "nums[0]",
    "abs(i32)",
]
OF_TEXT = ["s", "s", "s", "t", "lower(s)", "trim(s)", "attrs['k']", "tags[0]", "coalesce(s, t)", "CAST(i32 AS STRING)"]
OF_NUMBER = [
    "abs",
    "negative",
    "sqrt",
    "floor",
    "ceil",
    "round",
    "sign",
    "isnan",
    "factorial",
    "bin",
    "exp",
    "degrees",
    "positive",
]
OF_STRING = [
    "length",
    "upper",
    "lower",
    "trim",
    "reverse",
    "initcap",
    "ascii",
    "hex",
    "luhn_check",
    "bit_length",
    "url_encode",
]


def some_events(rows: int, tame: bool = False) -> pa.Table:
    rng = Random(1936)
    columns = {}
    for name, (type, values) in VALUES.items():
        some = TAME.get(name, values) if tame else values
        each = some if rows >= len(some) else rng.sample(some, rows)
        each = [*each, *[None if rng.random() < 0.1 else rng.choice(some) for _ in range(rows - len(each))]]
        rng.shuffle(each)
        columns[name] = pa.array(each, type)
    return pa.table(columns, schema=SCHEMA)


class Writer:
    """Writes conditions in which a text meets a value of another type.

    texts : literals
    """

    def __init__(self, rng: Random, texts: list[str]) -> None:
        self.rng = rng
        self.texts = texts

    def literal_text(self) -> str:
        return f"'{self.rng.choice(self.texts)}'"

    def pair(self) -> tuple[str, str]:
        """A text and what it meets, at most one of them a literal."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(OF_TEXT), rng.choice(LITERALS if rng.random() < 0.3 else NUMBERS)
        if kind < 0.7:
            return self.literal_text(), rng.choice(OTHERS)
        return rng.choice(OF_TEXT), rng.choice(OTHERS)

    def mixed(self) -> list[str]:
        """A value, and some of both classes."""
        rng = self.rng
        value = rng.choice([*OF_TEXT, *OTHERS])
        some = [rng.choice([self.literal_text, lambda: rng.choice(NUMBERS[:-1])])() for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.2:
            some.append(rng.choice([*OF_TEXT, *OTHERS, "NULL"]))
        return [value, *some]

    def number(self) -> str:
        one, other = self.pair()
        if self.rng.random() < 0.2:
            one, other = self.rng.choice("st"), self.rng.choice("st")
        if self.rng.random() < 0.5:
            one, other = other, one
        return f"({one} {self.rng.choice(['+', '-', '*', '/', '%', 'DIV', '&', '|'])} {other})"

    def chosen(self) -> str:
        one, other = self.pair()
        if self.rng.random() < 0.5:
            one, other = other, one
        third = self.rng.choice([*OF_TEXT, *OTHERS, *NUMBERS])
        return self.rng.choice([
            f"coalesce({one}, {other})", f"coalesce({one}, {other}, {third})", f"nvl2({third}, {one}, {other})",
            f"CASE WHEN b THEN {one} ELSE {other} END", f"if(b, {one}, {other})", f"nullif({one}, {other})",
            f"CASE WHEN b THEN {one} WHEN NOT b THEN {third} ELSE {other} END",
            f"CASE {one} WHEN {other} THEN i8 WHEN {third} THEN i32 ELSE i64 END", f"decode({one}, {other}, t, {third}, s, 'c')",
        ])  # fmt: skip

    def called(self) -> str:
        rng, other = self.rng, self.rng.choice([*OTHERS, *NUMBERS[:6]])
        text = rng.choice(OF_TEXT)
        return rng.choice([
            f"{rng.choice(OF_NUMBER)}({text})", f"{rng.choice(OF_STRING)}({other})", f"concat({text}, {other})", f"({other} || {text})",
            f"concat_ws('-', {other}, {text})", f"substring({other}, 1, 2)", f"replace({other}, '5', {rng.choice(NUMBERS[:4])})",
            f"instr({other}, {rng.choice(NUMBERS[:4])})", f"pow({text}, 2)", f"pmod({text}, 3)", f"try_add({text}, {other})",
            f"make_date({text}, 1, 31)", f"lpad({other}, 5, '0')", f"shiftleft({text}, 1)", f"(-{text})", f"left({other}, 1)",
            f"date_add(day, {text})", f"nanvl({text}, 0)", f"translate({other}, '5', '6')", f"repeat({other}, 2)",
            f"mod({text}, {other})", f"date_add(day, '{rng.choice(PLAIN)}')", f"repeat({text}, ' {rng.randint(-1, 3)} ')",
            f"decode({rng.choice(['i8', 's'])}, 5, {other}, '0', i64)",
        ])  # fmt: skip

    def plain(self) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.3:
            one, other = self.pair()
            return f"{one} {rng.choice(SIGNS)} {other}" if rng.random() < 0.7 else f"{other} {rng.choice(SIGNS)} {one}"
        if kind < 0.48:
            value, *some = self.mixed()
            return f"{value} {rng.choice(['IN', 'NOT IN'])} ({', '.join(some)})"
        if kind < 0.6:
            value, low, high = (*self.mixed(), "5", "'12'")[:3]
            return f"{value} {rng.choice(['BETWEEN', 'NOT BETWEEN'])} {low} AND {high}"
        if kind < 0.88:
            value = rng.choice([self.number, self.chosen, self.called])()
            return f"{value} {rng.choice(SIGNS)} {rng.choice([self.literal_text(), *NUMBERS[:14], *OF_TEXT, *OTHERS])}"
        return rng.choice([
            f"{rng.choice(OTHERS)} LIKE '{rng.choice(['5%', '%0%', '2024-01%', 'tr_e', '-_'])}'", f"{rng.choice(OTHERS)} RLIKE '^[05]'",
            f"startswith({rng.choice(OTHERS)}, {rng.choice(NUMBERS[:4])})", f"contains({rng.choice(OF_TEXT)}, {rng.choice(NUMBERS[:4])})",
            f"({rng.choice(OF_TEXT)}) IS {rng.choice(['TRUE', 'NOT TRUE', 'FALSE'])}", "NOT t",
            f"exists(tags, x -> x {rng.choice(SIGNS)} {rng.choice(NUMBERS)})", f"exists(tags, x -> x IN ({rng.choice(NUMBERS)}, '5'))",
            f"exists(nums, x -> x {rng.choice(SIGNS)} {self.literal_text()})", "exists(nums, x -> x = s)",
            f"forall(nums, x -> x IN ({self.literal_text()}, 5))",
        ])  # fmt: skip

    def condition(self) -> str:
        found = self.plain()
        if self.rng.random() < 0.15:
            return f"NOT ({found})"
        return f"coalesce({found}, false)" if self.rng.random() < 0.1 else found


def taken(writer: Writer, frame: DataFrame, count: int, **options: object) -> list[str]:
    """Conditions that Spark and colmatch take."""
    found, tried = list[str](), 0
    while len(found) < count:
        texts = [text for text in dict.fromkeys(writer.condition() for _ in range(100)) if is_taken(frame, text)]
        matcher = cm.Matcher.build(
            dict(enumerate(texts)),
            SCHEMA,
            errors="collect",
            max_rejected=1.0,
            options=cm.Options(casts="spark", **options),  # type: ignore[arg-type]
        )
        refused = {rejected.id for rejected in matcher.rejected}
        found += [text for i, text in enumerate(texts) if i not in refused]
        tried += len(texts)
    assert len(found) > tried / 2, "too many are refused for the test to say much"
    return found[:count]


def is_taken(frame: DataFrame, text: str) -> bool:
    from pyspark.errors import AnalysisException, ParseException

    try:
        frame.selectExpr(text)
    except (AnalysisException, ParseException):
        return False
    return True


def fails(text: str, events: pa.Table) -> bool:
    """Whether a condition is an error of some event, or no value makes it true."""
    matcher = cm.Matcher.build({0: text}, SCHEMA, options=cm.Options(casts="spark", ansi=True))
    try:
        matcher.match(events)
    except cm.EventError as error:
        return "cannot be computed" in str(error)
    return not matcher.stats()["conjunctions"]


@pytest.fixture(params=[False, True], ids=["off", "ansi"])
def ansi(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[bool]:
    """The mode of Spark and of colmatch."""
    names = ("spark.sql.ansi.enabled", "spark.sql.legacy.sizeOfNull")
    before = {name: spark.conf.get(name) for name in names}
    for name, value in zip(names, (request.param, False)):
        spark.conf.set(name, str(value).lower())
    yield request.param
    for name, value in before.items():
        spark.conf.set(name, str(value))


@pytest.mark.parametrize("ansi", [False], indirect=True)
def test_spark_agrees(spark: SparkSession, ansi: bool) -> None:
    events = some_events(90)
    frame = numbered(spark, events)
    texts = taken(Writer(Random(31), TEXTS), frame, COUNT)
    wrong = differences(texts, events, spark_truths(frame, texts), casts="spark")
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("ansi", [True], indirect=True)
@pytest.mark.parametrize("is_odd", [False, True], ids=["plain", "odd"])
def test_spark_agrees_in_ansi_mode(spark: SparkSession, ansi: bool, is_odd: bool) -> None:
    """Where Spark has no error, colmatch has none, and agrees.

    Odd texts are asked about in one row, so that many of them are no error.
    """
    events = some_events(1) if is_odd else some_events(40, tame=True)
    frame, wrong, erred = numbered(spark, events), list[str](), 0
    texts = taken(Writer(Random(32 + is_odd), PLAIN), frame, COUNT // 2, ansi=True)
    for text in texts:
        try:
            truths = spark_truths(frame, [text])
        except Exception as error:
            if not any(word in str(error) for word in FAILURES):
                raise
            erred += 1
            if not fails(text, events):
                wrong.append(f"{text}: no error")
            continue
        wrong += differences([text], events, truths, casts="spark", ansi=True)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])
    assert 0 < erred < len(texts) / 2
