"""Computed values of single events are those of batches, whichever way an event goes."""

from __future__ import annotations

import datetime as dt
import math
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from contract import NO_JIT
from inside import count_calls
from sizes import SMALL

import colmatch as cm
from colmatch.errors import EventError

SCHEMA = pa.schema(
    {
        "i": pa.int32(), "b": pa.int64(), "t": pa.int8(), "x": pa.float64(), "y": pa.float64(), "s": pa.string(), "r": pa.string(),
        "d": pa.date32(), "e": pa.date32(), "o": pa.bool_(), "p": pa.bool_(), "at": pa.timestamp("us"),
    }
)  # fmt: skip
WORDS = ["", "a", "Ab", " é x ", "İstanbul", "ß", "10.0.0.1", "x" * 5, "abcabc", "  ", "::1"]
DOUBLE_VALUES = [0.0, -0.0, 1.0, -1.5, 0.1, 1e308, 2.5, math.nan, math.inf, -math.inf]


class Drawn:
    """Random values that are computed of the columns."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)

    def whole(self, depth: int) -> str:
        rng, more = self.rng, depth - 1
        if depth == 0 or rng.random() < 0.25:
            return rng.choice(["i", "b", "t", "i", "b", "t", str(rng.randint(-5, 5)), "100"])
        parts = rng.choice(["year", "month", "day", "quarter", "dayofweek", "weekday", "weekofyear", "dayofyear"])
        signs = ("+", "-", "*", "%", "div", "&", "|", "^")
        return rng.choice(
            [f"({self.whole(more)} {rng.choice(signs)} {self.whole(more)})" for _ in range(6)]
            + [
                f"abs({self.whole(more)})",
                f"length({self.text(more)})",
                f"instr({self.text(more)}, '{rng.choice('abé')}')",
            ]
            + [
                f"{parts}({self.day(more)})",
                f"datediff({self.day(more)}, {self.day(more)})",
                f"CAST({self.whole(more)} AS SMALLINT)",
            ]
            + [f"coalesce({self.whole(more)}, {self.whole(more)})", f"nullif({self.whole(more)}, 0)"]
            + [f"CASE WHEN {self.condition(more)} THEN {self.whole(more)} ELSE {self.whole(more)} END"]
        )

    def double(self, depth: int) -> str:
        rng, more = self.rng, depth - 1
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(["x", "y", "1.5D", "0D"])
        some = [f"({self.double(more)} {sign} {self.double(more)})" for sign in "+-*/%"]
        return rng.choice(
            [*some, f"CAST({self.whole(more)} AS DOUBLE)", f"abs({self.double(more)})", f"-({self.double(more)})"]
        )

    def text(self, depth: int) -> str:
        rng, more = self.rng, depth - 1
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(["s", "r", "s", "r", "'ab'"])
        one = self.text(more)
        return rng.choice(
            [f"{name}({one})" for name in ("lower", "upper", "trim", "ltrim", "rtrim", "reverse")]
            + [
                f"concat({one}, {self.text(more)}, 'z')",
                f"substring({one}, {rng.randint(-3, 3)}, {rng.randint(-1, 3)})",
            ]
            + [f"replace({one}, 'a', 'zz')", f"substring({one}, {rng.randint(-3, 3)})"]
        )

    def day(self, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.5:
            return self.rng.choice(["d", "e"])
        return f"date_add({self.day(depth - 1)}, {self.rng.choice(['3', '-40', 't'])})"

    def condition(self, depth: int) -> str:
        rng, signs = self.rng, ["<", "=", ">=", "<>", "<=>"]
        return rng.choice(
            [rng.choice(["o", "p", "NOT o", "s IS NULL"]), f"(o {rng.choice(['AND', 'OR'])} p)"]
            + [
                f"{make(depth)} {rng.choice(signs)} {make(depth)}"
                for make in (self.whole, self.double, self.text, self.day)
            ]
            + [
                f"startswith({self.text(depth)}, 'a')",
                f"endswith({self.text(depth)}, 'b')",
                f"contains({self.text(depth)}, 'é')",
            ]
        )

    def predicate(self) -> str:
        some = [
            self.condition(2),
            f"{self.whole(2)} > {self.rng.randint(-3, 3)}",
            f"{self.text(2)} LIKE '%{self.rng.choice('aéb')}%'",
        ]
        text = self.rng.choice([*some, f"cidr_contains('10.0.0.0/8', {self.text(1)})"])
        return self.rng.choice([text, text, text, f"NOT ({text})", f"({text}) IS NULL"])

    def event(self) -> dict[str, Any]:
        rng = self.rng

        def whole(bits: int) -> int:
            far = 2 ** (bits - 1)
            return rng.choice([rng.randint(-4, 4), rng.randint(-4, 4), -far, far - 1, rng.randint(-far, far - 1)])

        far = dt.timedelta(rng.choice([0, -1, 60, -700000, 2900000, rng.randint(-9999, 9999)]))
        values = {
            "i": whole(32), "b": whole(64), "t": whole(8), "x": rng.choice([*DOUBLE_VALUES, 3]), "y": rng.choice(DOUBLE_VALUES),
            "s": rng.choice(WORDS), "r": rng.choice(WORDS), "d": dt.date(1970, 1, 1) + far, "e": dt.date(2024, 2, 29),
            "o": rng.random() < 0.5, "p": rng.random() < 0.5,
        }  # fmt: skip
        return {name: None if rng.random() < 0.1 else value for name, value in values.items() if rng.random() < 0.92}


def _outcome(find: Any) -> list[Any] | str:
    try:
        return list(find())
    except EventError as error:
        return error.message


def _agree(rules: dict[int, str], events: list[dict[str, Any]], ansi: bool = False) -> list[str]:
    """Returns the errors, the same in both ways."""
    matcher = cm.Matcher.build(rules, SCHEMA, options=cm.Options(ansi=ansi), errors="collect")
    errors = []
    for event in events:
        table = pa.Table.from_pylist([event], schema=SCHEMA)
        one = _outcome(lambda event=event: matcher.match_one(event))
        many = _outcome(lambda table=table: matcher.match_lists(table).to_pylist()[0])
        assert one == many, (event, rules)
        errors += [one] if isinstance(one, str) else []
    return errors


@pytest.mark.parametrize("ansi", [False, True])
def test_single_events_compute_what_batches_compute(direct: list[bool], ansi: bool) -> None:
    errors = []
    for seed in range(4 if SMALL else 60):
        drawn = Drawn(seed)
        rules = {i: drawn.predicate() for i in range(8)}
        errors += _agree(rules, [drawn.event() for _ in range(20 if SMALL else 60)], ansi)
    assert sum(direct) > len(direct) / 2
    assert bool(errors) is ansi


def test_values_that_need_arrow_are_null_where_a_column_is(direct: list[bool]) -> None:
    """No batch is made of an event that lacks a column of such a value."""
    rules = {1: "round(x, 1) > 1", 2: "at > TIMESTAMP '2024-01-01 00:00:00' AND i = 1"}
    _agree({1: "round(x, 1) > 1 AND i = 1", 2: "hour(at) > 3", 3: "i = 1"}, [{"i": 1}, {"i": 1, "x": None}])
    assert all(direct)
    _agree({1: "round(x, 1) > 1", 3: "i = 1"}, [{"i": 1, "x": 1.5}])
    assert not direct[-1]
    _agree({1: "greatest(x, y) > 1", 3: "i = 1"}, [{"i": 1}])
    assert not direct[-1], "NULL is not always NULL there"
    _agree(rules, [{"i": 1}])
    assert not direct[-1]


def test_values_of_nothing_are_those_of_batches() -> None:
    """Some functions have a value where a column is NULL; nothing else says which."""
    values = [
        "isnan(x)",
        "nanvl(x, 1)",
        "coalesce(x, 1.5)",
        "greatest(x, y)",
        "least(x, 1.5)",
        "sign(x)",
        "sqrt(x)",
        "floor(x)",
    ]
    values += [
        "ceil(x)",
        "round(x, 1)",
        "nvl2(i, 1, 2)",
        "nullif(i, 1)",
        "if(o, 1, 2)",
        "decode(i, 1, 2, 3)",
        "i <=> b",
        "o AND p",
        "o OR p",
    ]
    values += [
        "i IS NULL",
        "-i",
        "abs(i)",
        "i + b",
        "x / y",
        "i % b",
        "i div b",
        "i & b",
        "CAST(s AS INT)",
        "try_cast(s AS INT)",
        "s < r",
    ]
    values += [
        "concat(s, r)",
        "left(s, 1)",
        "right(s, 1)",
        "instr(s, 'a')",
        "reverse(s)",
        "s LIKE 'a_'",
        "rlike(s, 'a')",
        "hour(at)",
    ]
    values += [
        "date_trunc('month', at)",
        "year(d)",
        "date_add(d, t)",
        "datediff(d, e)",
        "CAST(at AS DATE)",
        "size(l)",
        "l[0]",
        "m['k']",
    ]
    values += [
        "map_contains_key(m, 'k')",
        "size(m)",
        "cidr_contains('10.0.0.0/8', s)",
        "replace(s, 'a')",
        "CAST(o AS INT)",
        "upper(s)",
    ]
    schema = pa.schema([*SCHEMA, ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int64()))])
    nothing = pa.Table.from_pylist([{}], schema=schema)
    for value in values:
        for text in (f"({value}) IS NULL", f"NOT coalesce(({value}) = ({value}), false)", f"({value}) = ({value})"):
            matcher = cm.Matcher.build({1: text}, schema)
            assert matcher.match_one({}) == matcher.match_lists(nothing).to_pylist()[0], text
    matcher = cm.Matcher.build({1: "isnan(x)", 2: "NOT isnan(x)"}, schema)
    assert [matcher.match_one({"x": x}) for x in (math.nan, 1.0, None)] == [[1], [2], [2]]


@pytest.mark.parametrize(
    "event",
    [
        {"i": True},
        {"i": 2.0},
        {"x": 2**60},
        {"s": "a\ud800"},
        {"d": dt.datetime(2024, 1, 1)},
        {"s": 1},
        {"o": 1},
    ],
)
def test_odd_values_of_columns_are_left_to_the_batch(event: dict[str, Any]) -> None:
    rules = {1: "i % 2 = 0", 2: "x / y > 0", 3: "upper(s) = 'A'", 4: "year(d) = 2024", 5: "o = p", 6: "b % 2 = 0"}
    computing = cm.Matcher.build(rules, SCHEMA)
    plain = cm.Matcher.build({1: "i >= 0 OR x > 0 OR s > '' OR d > DATE '2000-01-01' OR o"}, SCHEMA)
    outcomes = [_outcome(lambda matcher=matcher: matcher.match_one(event)) for matcher in (computing, plain)]
    assert isinstance(outcomes[0], str) is isinstance(outcomes[1], str), outcomes
    if isinstance(outcomes[0], str):
        assert outcomes[0] == outcomes[1]


def test_a_number_beyond_the_type_is_refused_as_in_a_batch() -> None:
    matcher = cm.Matcher.build({1: "i % 2 = 0"}, SCHEMA)
    for find in (lambda: matcher.match_one({"i": 2**31}), lambda: matcher.match(pa.table({"i": [2**31]}))):
        with pytest.raises(EventError, match="2147483648 is int64, the expressions compute with int32"):
            find()


@pytest.mark.skipif(NO_JIT, reason="steps of kernels are steps of Python")
def test_no_step_of_python_is_taken_for_a_rule_with_a_constant() -> None:
    def steps(rules: int) -> int:
        texts = {c: f"i + {c} > 1000000 AND user_id % 100 < 5" for c in range(rules)}
        matcher = cm.Matcher.build(texts, {"i": "int64", "user_id": "int64"})
        event = {"i": 5, "user_id": 3}
        for _ in range(4):  # the first calls look up machine code
            assert matcher.match_one(event) == []
        return count_calls(lambda: matcher.match_one(event))

    assert steps(2_000 if not SMALL else 200) == steps(20)
