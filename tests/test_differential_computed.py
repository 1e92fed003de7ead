"""Computed attributes, checked against Spark SQL, and against DuckDB where it agrees with Spark.

COLMATCH_DIFFERENTIAL=3000 asks for the full count.

DuckDB is not asked for what overflows or is cast down, which is an error there, for ``%`` and ``/``
by what may be zero, for ``concat`` (it passes over NULL), nor for functions that have other names
or meanings.
"""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from installed import needs

import colmatch as cm
from colmatch.events.computed import templates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "250"))
ZONE = "Europe/Berlin"
NAN, INF = float("nan"), float("inf")
UTC = dt.UTC
VALUES = {
    "i8": (pa.int8(), [-128, -7, -1, 0, 1, 2, 100, 127]),
    "i16": (pa.int16(), [-32768, -300, 0, 1, 7, 32767]),
    "i32": (pa.int32(), [-(2**31), -8, -1, 0, 1, 3, 1000, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), -(2**31) - 1, -5, 0, 2, 2**53 + 1, 2**63 - 1]),
    "f32": (pa.float32(), [-INF, -1.5, -0.0, 0.0, 0.1, 3.0, 1e20, INF, NAN]),
    "f64": (pa.float64(), [-INF, -2.5, -0.0, 0.0, 0.1, 7.0, 1e300, 123456789.75, INF, NAN]),
    "d": (pa.decimal128(8, 2), [Decimal("-999999.99"), Decimal("-1.25"), Decimal("0.00"), Decimal("0.05"), Decimal("7.50")]),
    "e": (pa.decimal128(18, 6), [Decimal("-5.000001"), Decimal("0.000000"), Decimal("7.500000"), Decimal("123456789012.5")]),
    "s": (pa.string(), ["", "a", "Abc", "  x ", "ÄÖ straße", "abc", "7", "-1.5 ", "true", "İI", "ΑΣ"]),
    "t": (pa.string(), ["", "A", "abc", " x", "x", "\tx", "äö STRASSE", "no", "12", "99999999999"]),
    "b": (pa.bool_(), [True, False]),
    "c": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 31), dt.date(9999, 12, 31)]),
    "at": (pa.timestamp("us", "UTC"), [dt.datetime(1890, 5, 1, tzinfo=UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
           dt.datetime(2024, 3, 31, 0, 59, 59, tzinfo=UTC), dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
           dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC), dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
           dt.datetime(2025, 1, 1, 0, 0, 1, tzinfo=UTC)]),
    "loc": (pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 5), dt.datetime(2024, 3, 31, 2, 30),
            dt.datetime(2024, 10, 27, 2, 30), dt.datetime(2024, 2, 29)]),
}  # fmt: skip
SCHEMA = pa.schema([(name, type) for name, (type, _) in VALUES.items()])
CLASSES = {
    "number": ["i8", "i16", "i32", "i64", "f32", "f64", "d", "e"], "text": ["s", "t"], "truth": ["b", "c"], "instant": ["day", "at", "loc"],
}  # fmt: skip
DECIMALS = ["DECIMAL(10,2)", "DECIMAL(18,0)"]
SIGNS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]
TAME = {"i8": 3, "i16": 3, "i32": 3, "i64": 3, "f32": 3, "f64": 3, "d": 3, "e": 3}  # no more than this from 0


def some_events(rows: int, tame: bool = False) -> pa.Table:
    rng = Random(1815)

    def value(name: str, values: list) -> object:
        some = [v for v in values if not tame or name not in TAME or abs(v) <= 100]
        return None if rng.random() < 0.12 else rng.choice(some)

    columns = {n: pa.array([value(n, v) for _ in range(rows)], t) for n, (t, v) in VALUES.items()}
    return pa.table(columns, schema=SCHEMA)


class Writer:
    """Writes random expressions, whose parts are of the right class."""

    def __init__(self, rng: Random, names: dict[str, list[str]] = CLASSES, plain: bool = False) -> None:
        self.rng = rng
        self.names = names
        self.plain = plain  # only what DuckDB computes as Spark does

    def number(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.2:
            literal = rng.choice(["1", "2", "7", "-3", "0.5", "1.25", "2.5D", "100L"])
            return literal if rng.random() < 0.2 and not self.plain else rng.choice(self.names["number"])
        deeper = depth - 1
        if self.plain:
            sign = rng.choice("+-*")
            whole = lambda: f"CAST({rng.choice(['i8', 'i16'])} AS BIGINT)"  # noqa: E731
            return rng.choice([f"({whole()} {sign} {whole()})", f"abs({whole()})", f"length({self.text(deeper)})",
                               f"coalesce(i32, {rng.choice([0, 7])})", f"year({rng.choice(['day', 'loc'])})", "month(day)", "hour(loc)",
                               f"({whole()} % {rng.choice([2, 7, -3])})"])  # fmt: skip
        return rng.choice([
            lambda: f"({self.number(deeper)} {rng.choice('+-*')} {self.number(deeper)})",
            lambda: f"({self.number(deeper)} {rng.choice('+-*')} {self.number(deeper)})",
            lambda: f"({self.number(deeper)} {rng.choice('/%')} {self.number(deeper)})",
            lambda: f"({self.number(deeper)} % {rng.choice([2, 7, -3])})",
            lambda: f"abs({self.number(deeper)})",
            lambda: f"(-({self.number(deeper)}))",
            lambda: f"coalesce({self.number(deeper)}, {self.number(deeper)})",
            lambda: f"length({self.text(deeper)})",
            lambda: f"{rng.choice(['year', 'month', 'day', 'quarter', 'dayofyear', 'dayofweek', 'weekday'])}({self.instant(deeper)})",
            lambda: f"{rng.choice(['hour', 'minute', 'second'])}({rng.choice(['at', 'loc'])})",
            lambda: f"CAST({self.number(deeper)} AS {rng.choice(['TINYINT', 'SMALLINT', 'INT', 'BIGINT', 'DOUBLE', 'FLOAT', *DECIMALS])})",
            lambda: f"CAST({self.text(deeper)} AS {rng.choice(['TINYINT', 'INT', 'BIGINT', 'DOUBLE', 'FLOAT', *DECIMALS])})",
            lambda: f"CAST({self.truth(deeper)} AS {rng.choice(['INT', 'DOUBLE'])})",
        ])()  # fmt: skip

    def text(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.3:
            return rng.choice(self.names["text"]) if rng.random() < 0.85 else rng.choice(["'abc'", "''", "' x'", "'Ä'"])
        deeper = depth - 1
        some: list[Callable[[], str]] = [
            lambda: f"trim({self.text(deeper)})",
            lambda: f"coalesce({self.text(deeper)}, {self.text(deeper)})",
            lambda: f"substring({self.text(deeper)}, {rng.choice([1, 2, 3])}, {rng.choice([0, 1, 2, 9])})",
        ]
        if not self.plain:
            some += [
                lambda: f"{rng.choice(['lower', 'upper', 'ltrim', 'rtrim'])}({self.text(deeper)})",
                lambda: f"concat({self.text(deeper)}, {self.text(deeper)})",
                lambda: f"({self.text(deeper)} || {self.text(deeper)})",
                lambda: (
                    f"substring({self.text(deeper)}, {rng.choice([-9, -3, -2, -1, 0, 4])}, {rng.choice([-1, 1, 2, 4])})"
                ),
                lambda: f"substring({self.text(deeper)}, {rng.choice([-2, 0, 2])})",
                lambda: f"CAST({rng.choice(['i8', 'i32', 'i64', 'b'])} AS STRING)",
            ]
        return rng.choice(some)()

    def truth(self, depth: int) -> str:
        return self.rng.choice(["b", "c", "coalesce(b, c)"]) if depth else self.rng.choice("bc")

    def instant(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.5:
            return rng.choice(self.names["instant"] + ["DATE '2024-03-31'"])
        if self.plain:
            return f"coalesce(day, {rng.choice(['day', 'DATE ' + repr('2024-03-31')])})"
        unit = rng.choice(["year", "quarter", "month", "week", "day", "hour", "minute", "second"])
        return rng.choice([
            lambda: f"date_trunc('{unit}', {self.instant(depth - 1)})",
            lambda: f"CAST({self.instant(depth - 1)} AS {rng.choice(['DATE', 'TIMESTAMP', 'TIMESTAMP_NTZ'])})",
            lambda: f"coalesce({self.instant(depth - 1)}, {self.instant(depth - 1)})",
        ])()  # fmt: skip

    def condition(self) -> str:
        rng = self.rng
        kind = rng.choice([self.number, self.number, self.text, self.truth, self.instant])
        one, other = kind(2), kind(2)
        if self.plain:
            same = {"at", "loc", "day"}
            if kind == self.instant and (one in same or other in same):
                one, other = "day", "coalesce(day, DATE '2024-03-31')"
        found = f"{one} {rng.choice(SIGNS[:6] if self.plain else SIGNS)} {other}"
        if kind == self.text and rng.random() < 0.5:
            found = rng.choice(
                [f"{one} IN ('abc', 'x', '7')", f"{one} LIKE '%x%'", f"{one} BETWEEN 'A' AND 'b'", f"{one} LIKE 'a%'"]
            )
        if rng.random() < 0.2:
            found = f"coalesce({found}, {rng.choice(['true', 'false'])})"
        return f"NOT ({found})" if rng.random() < 0.2 else found


class ConstantWriter(Writer):
    """Writes conditions on one column with constants, most of which are solved for the column."""

    def number(self, depth: int) -> str:
        rng = self.rng
        text = rng.choice(self.names["number"])
        if self.plain:  # DuckDB has an error where a narrow type overflows
            text = f"CAST({rng.choice(['i8', 'i16'])} AS BIGINT)"
        for _ in range(rng.randint(0, depth)):
            constant = self.constant()
            steps = [
                f"({text} + {constant})",
                f"({text} - {constant})",
                f"({constant} - {text})",
                f"(-({text}))",
                f"abs({text})",
            ]
            if not self.plain:
                steps += [f"({text} {sign} {rng.choice(['0.25', '1.5D', '-3', '1e3', '2.5'])})" for sign in "*/"]
                steps.append(f"CAST({text} AS {rng.choice(['BIGINT', 'DOUBLE', 'INT', *DECIMALS])})")
            text = rng.choice(steps)
        return text

    def constant(self) -> str:
        some = ["0", "1", "-1", "7", "100", "-128", "127", "128", "32767"]
        wide = [
            "2147483647",
            "-2147483648",
            "9007199254740993",
            "9223372036854775807",
            "0.5",
            "2.5D",
            "1e300",
            "CAST('NaN' AS DOUBLE)",
        ]
        return self.rng.choice(some if self.plain else some + wide)

    def condition(self) -> str:
        rng = self.rng
        kind = rng.choice(["number", "number", "number", "day", "text"])
        text = rng.choice(["'a'", "'abc'", "'b'", "''", "'x'", "'Ä'", "'%'", "'_b'"])
        if kind == "number":
            subject, literal = self.number(3), self.constant
        elif kind == "day":
            subject, literal = self.day()
        else:
            column, size = rng.choice("st"), rng.choice([0, 1, 2, 3, 9])
            found = rng.choice([f"instr({column}, {text}) > 0", f"instr({column}, {text}) = 0", f"length({column}) > {size}",
                                f"left({column}, {size}) = {text}", f"substring({column}, 1, {size}) = {text}"]
                               + ([] if self.plain else [f"locate({text}, {column}) >= 1", f"position({text} IN {column}) > 0",
                                                         f"length({column}) + 2 = {size}"]))  # fmt: skip
            return f"NOT ({found})" if rng.random() < 0.3 else found
        signs = SIGNS[:6] if self.plain else SIGNS
        found = rng.choice(
            [f"{subject} {rng.choice(signs)} {literal()}" for _ in range(4)]
            + [f"{subject} BETWEEN {literal()} AND {literal()}", f"{subject} IN ({literal()}, {literal()})", f"{subject} IS NULL"]
            + [f"{subject} NOT IN ({literal()}, {literal()})"]
        )  # fmt: skip
        return f"NOT ({found})" if rng.random() < 0.2 else found

    def day(self) -> tuple[str, Callable[[], str]]:
        rng = self.rng
        date = lambda: f"DATE '{dt.date(2024, 2, 28) + dt.timedelta(rng.randint(-40, 40))}'"  # noqa: E731
        if self.plain:
            return f"(day - {date()})", lambda: str(rng.randint(-40, 40))
        if rng.random() < 0.5:
            return f"{rng.choice(['date_add', 'date_sub'])}(day, {rng.randint(-40, 40)})", date
        return rng.choice([f"datediff(day, {date()})", f"datediff({date()}, day)"]), lambda: str(rng.randint(-40, 40))


class MemberWriter(ConstantWriter):
    """Writes conditions on values with constants of their own, which a kernel computes together."""

    def number(self, depth: int) -> str:
        rng = self.rng
        names = ["i8", "i16"] if self.plain else ["i8", "i16", "i32", "i64", "f64"]
        whole = lambda: f"CAST({rng.choice(names)} AS BIGINT)" if self.plain else rng.choice(names)  # noqa: E731
        divisor = lambda: rng.choice(["2", "7", "-3", "-1", "100", "127"])  # noqa: E731
        text = whole()
        for _ in range(rng.randint(1, depth)):
            steps = [
                f"({text} % {divisor()})",
                f"({text} + {whole()})",
                f"({text} * {divisor()})",
                f"abs({text})",
                f"(-({text}))",
            ]
            if not self.plain:
                sign = rng.choice("+-*/%&|^")
                steps += [
                    f"({text} {sign} {self.constant()})",
                    f"({self.constant()} {sign} {text})",
                    f"({text} % {self.constant()})",
                ]
                steps += [
                    f"({text} DIV {self.constant()})",
                    f"({self.constant()} DIV {text})",
                    f"({text} / {divisor()})",
                ]
                steps.append(f"CAST({text} AS {rng.choice(['TINYINT', 'INT', 'BIGINT', 'DOUBLE'])})")
            text = rng.choice(steps)
        return text

    def condition(self) -> str:
        signs = SIGNS[:6] if self.plain else SIGNS
        subject = self.number(3)
        found = f"{subject} {self.rng.choice(signs)} {self.rng.choice(['0', '1', '-1', '2', '5', '-7', '1000'])}"
        if self.rng.random() < 0.2:
            found = self.rng.choice(
                [f"{subject} IN (0, 1, -2)", f"{subject} IS NULL", f"{subject} NOT BETWEEN 0 AND 3"]
            )
        return f"NOT ({found})" if self.rng.random() < 0.2 else found


def conditions(writer: Writer, schema: pa.Schema, count: int, **options: object) -> list[str]:
    """Conditions that colmatch takes: others it refuses with an error of its own."""
    found: list[str] = []
    tried = 0
    while len(found) < count:
        texts = {i: writer.condition() for i in range(100)}
        matcher = cm.Matcher.build(texts, schema, errors="collect", max_rejected=1.0, options=cm.Options(**options))  # type: ignore[arg-type]
        refused = {rejected.id for rejected in matcher.rejected}
        found += [text for i, text in texts.items() if i not in refused and text[0] != "'"]
        tried += 100
    assert len(found) > tried / 4, "too many are refused for the test to say much"
    return found[:count]


def differences(texts: list[str], events: pa.Table, truths: list[list[bool | None]], **options: object) -> list[str]:
    """What colmatch says otherwise, of each condition and of whether it is unknown."""
    asked = {f"{i} {text}": text for i, text in enumerate(texts)}
    asked |= {f"{i} unknown {text}": f"({text}) IS UNKNOWN" for i, text in enumerate(texts)}
    matcher = cm.Matcher.build(asked, events.schema, options=cm.Options(**options))  # type: ignore[arg-type]
    matched = set(zip(*matcher.match(events).to_pydict().values()))
    return [
        f"{text}: row {row} {events.slice(row, 1).select(matcher_columns(text, events.schema, **options)).to_pylist()} expected {truth}"
        for i, (text, column) in enumerate(zip(texts, truths, strict=True))
        for row, truth in enumerate(column)
        if ((row, f"{i} {text}") in matched) is not (truth is True)
        or ((row, f"{i} unknown {text}") in matched) is not (truth is None)
    ]


def matcher_columns(text: str, schema: pa.Schema, **options: object) -> list[str]:
    return cm.Matcher.build({0: text}, schema, options=cm.Options(**options)).columns  # type: ignore[arg-type]


@pytest.fixture
def zoned(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")}
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, str(value))


def numbered(spark: SparkSession, events: pa.Table) -> DataFrame:
    with tempfile.TemporaryDirectory() as folder:  # Spark takes Arrow's local timestamps for instants
        path = f"{folder}/events.parquet"
        parquet.write_table(events.append_column("nr", pa.array(range(len(events)), pa.int32())), path)
        frame = spark.read.parquet(path).coalesce(1).cache()
        frame.count()
    return frame


def spark_truths(frame: DataFrame, texts: list[str], at_a_time: int = 50) -> list[list[bool | None]]:
    truths: list[list[bool | None]] = []
    for at in range(0, len(texts), at_a_time):
        some = texts[at : at + at_a_time]
        answer = frame.selectExpr("nr", *(f"({text}) AS c{i}" for i, text in enumerate(some))).toArrow().sort_by("nr")
        truths += [answer[f"c{i}"].to_pylist() for i in range(len(some))]
    return truths


ERRORS = ("ARITHMETIC", "OVERFLOW", "ZERO", "CAST_INVALID", "OUT_OF_RANGE")
WRITERS = pytest.mark.parametrize("writer", [Writer, ConstantWriter, MemberWriter])


@pytest.fixture(autouse=True)
def lone_members(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Lets each value with constants of its own be a member of a template, if it can be."""
    members: list[int] = []
    is_asked = "writer" in request.fixturenames and request.getfixturevalue("writer") is MemberWriter
    if is_asked:
        monkeypatch.setattr(templates, "LEAST", 1)
        find = templates.MemberRows.find
        monkeypatch.setattr(
            templates.MemberRows, "find", lambda rows, *given: members.append(len(rows.groups)) or find(rows, *given)
        )
    yield members
    assert bool(members) is is_asked


@WRITERS
def test_spark_agrees(zoned: SparkSession, writer: type[Writer]) -> None:
    zoned.conf.set("spark.sql.ansi.enabled", "false")
    events = some_events(80)
    texts = conditions(writer(Random(4)), SCHEMA, COUNT, timezone=ZONE)
    wrong = differences(texts, events, spark_truths(numbered(zoned, events), texts), timezone=ZONE)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])


@WRITERS
def test_spark_agrees_in_ansi_mode(zoned: SparkSession, writer: type[Writer]) -> None:
    """Where Spark has no error, colmatch has none, and agrees."""
    zoned.conf.set("spark.sql.ansi.enabled", "true")
    events = some_events(40, tame=True)
    texts = conditions(writer(Random(5)), SCHEMA, COUNT // 5, timezone=ZONE, ansi=True)
    frame, wrong, erred = numbered(zoned, events), list[str](), 0
    for text in texts:
        try:
            truths = spark_truths(frame, [text])
        except Exception as error:
            if not any(word in str(error) for word in ERRORS):
                raise
            erred += 1
            matcher = cm.Matcher.build({0: text}, SCHEMA, options=cm.Options(timezone=ZONE, ansi=True))
            if not matcher.stats()[
                "conjunctions"
            ]:  # no value makes it true, as in BETWEEN 2 AND 1, so nothing is computed
                assert not matcher.match(events)
                continue
            with pytest.raises(cm.EventError, match="cannot be computed"):
                matcher.match(events)
            continue
        wrong += differences([text], events, truths, timezone=ZONE, ansi=True)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])
    assert 0 < erred < len(texts) // 2


GUARDS = [
    "i32 <> 0 AND {} / i32 > 1",
    "b OR {} / i16 < 1",
    "length(t) > 3 OR CAST(t AS INT) > {}",
    "NOT (i8 = 0 OR {} % i8 = 1)",
]


def test_spark_agrees_on_errors_beside_other_conditions(zoned: SparkSession) -> None:
    """Of AND and OR, colmatch answers what Spark answers one way round, if it is no error.

    Each query has one row, and so one truth or one error.
    """
    zoned.conf.set("spark.sql.ansi.enabled", "true")
    events, rng, options = some_events(40), Random(9), cm.Options(timezone=ZONE, ansi=True)
    texts = conditions(Writer(Random(8)), SCHEMA, COUNT // 4, timezone=ZONE, ansi=True)
    texts[::2] = [rng.choice(GUARDS).format(rng.choice(["i8", "i16", "7", "i32"])) for _ in texts[::2]]
    frame = numbered(zoned, events)
    raised = one_way = 0
    for one, other in zip(texts, rng.sample(texts, len(texts)), strict=True):
        sign, row = rng.choice(["AND", "OR"]), rng.randrange(len(events))
        both = [f"({one}) {sign} ({other})", f"({other}) {sign} ({one})"]
        answers = []
        for text in both:
            try:
                answers.append(frame.where(f"nr = {row}").selectExpr(text).first()[0])
            except Exception as error:
                if not any(word in str(error) for word in ERRORS):
                    raise
        assert len(set(answers)) < 2
        for text in both:
            matcher = cm.Matcher.build({0: text}, SCHEMA, options=options)
            if answers:
                assert matcher.exists(events.slice(row, 1)).tolist() == [answers[0] is True], (text, row)
            else:
                raised += raises(matcher, events.slice(row, 1))
        one_way += len(answers) == 1
    assert one_way > len(texts) // 40 and raised > len(texts) // 20, (one_way, raised)


def raises(matcher: cm.Matcher, events: pa.Table) -> bool:
    """Whether a value that cannot be computed is an error; if not, the match depends on none."""
    try:
        found = matcher.exists(events).tolist()
    except cm.EventError as error:
        found, said = None, str(error)
    return found is None and "cannot be computed" in said


@needs("duckdb")
@WRITERS
def test_duckdb_agrees(writer: type[Writer]) -> None:
    import duckdb

    events = some_events(80).drop_columns(["at"])
    names = {"number": ["i8", "i16", "i32", "i64"], "text": ["s", "t"], "truth": ["b", "c"], "instant": ["day"]}
    texts = conditions(writer(Random(6), names, plain=True), events.schema, COUNT)
    connection = duckdb.connect(config={"threads": 1})
    connection.register("arrow", events)
    connection.execute("CREATE TABLE events AS SELECT *, row_number() OVER () AS nr FROM arrow")
    truths: list[list[bool | None]] = []
    for at in range(0, len(texts), 100):
        some = ", ".join(f"({text})" for text in texts[at : at + 100])
        truths += zip(*connection.execute(f"SELECT {some} FROM events ORDER BY nr").fetchall())
    connection.close()
    wrong = differences(texts, events, truths)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])
