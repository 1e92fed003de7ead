"""Values that are solved for their column give what computing them gives."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from inside import attributes, source_attributes
from sizes import SMALL

import colmatch as cm
from colmatch.errors import EventError
from colmatch.expr.computed_types import Typing
from colmatch.given.schema import Role
from colmatch.lowering import solve as solving
from colmatch.lowering.keys import float_key
from colmatch.lowering.solve import DOUBLES, Step
from colmatch.subscriptions import intake

INTEGERS = {"t": 8, "u": 16, "i": 32, "b": 64}
SCHEMA = pa.schema(
    {
        "t": pa.int8(), "u": pa.uint16(), "i": pa.int32(), "b": pa.int64(), "x": pa.float64(), "f": pa.float32(),
        "d": pa.date32(), "m": pa.decimal128(9, 2),
    }
)  # fmt: skip
DOUBLE_VALUES = [0.0, -0.0, 1.0, -1.5, 0.1, 0.3, 2.5, 1e16, -1e16, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf]


def _wrap(number: int, bits: int, of: int) -> int:
    """Returns a number of so many bits, if the key that it comes of has no more."""
    far = 1 << (bits - 1) if bits else 0
    return (number + far) % (2 * far) - far if -far <= of < far else number


def _double(key: int) -> float:
    return float(np.int64(key if key >= 0 else key ^ (2**63 - 1)).view(np.float64))


def _apply(step: Step, key: int) -> int:
    """Returns the key of a step's value, with Python's own numbers."""
    if step.function == "linear":
        return _wrap(step.scale * key + step.constant, step.bits, key)  # type: ignore[arg-type]
    if step.function == "abs":
        return _wrap(abs(key), step.bits, key)
    if step.function == "double":
        return float_key(float(key))
    x = np.float64(_double(key))
    with np.errstate(all="ignore"):
        return float_key(float(abs(x) if step.function == "distance" else DOUBLES[step.function](x, step.constant)))  # type: ignore[arg-type]


def _some_step(rng: Random) -> Step:
    function = rng.choice(["linear", "abs", "distance", "double", *DOUBLES])
    if function in DOUBLES:
        return Step(function, constant=rng.choice([1.0, -1.0, 0.1, -0.3, 1e16, 1e300, 5e-324, -1e-310, 2.5, 1e308]))
    bits = rng.choice([0, 8, 16, 32, 64]) if function in ("linear", "abs") else 0
    if function != "linear":
        return Step(function, bits)
    far = 2 ** (bits - 1) if bits else 10**15
    return Step(function, bits, rng.choice([1, -1, 2, -3, 7, 32, -32]), rng.choice([0, 1, -1, 5, far - 1, -far]))


def _some_key(rng: Random, step: Step) -> int:
    if step.function not in ("linear", "abs", "double"):
        return float_key(rng.choice([*DOUBLE_VALUES, rng.uniform(-3, 3), 10.0 ** rng.randint(-300, 300)]))
    far = 2 ** (step.bits - 1) if step.bits else 10**17
    return rng.choice(
        [rng.randint(-6, 6), far - 1 - rng.randint(0, 4), -far + rng.randint(0, 4), rng.randint(-far, far - 1)]
    )


def test_each_step_is_followed_backwards() -> None:
    """A key is in the intervals before a step if the step leads it into the interval, else not."""
    rng = Random(1)
    for _ in range(300 if SMALL else 6000):
        step = _some_step(rng)
        low, high = sorted(_apply(step, _some_key(rng, step)) + rng.randint(-2, 2) for _ in range(2))
        low, high = max(low, -(2**63)), min(high, 2**63 - 1)
        low, high = rng.choice([(low, high), (low, high), (-(2**63), high), (low, 2**63 - 1), (high, low)])
        if not -(2**63) <= low < 2**63 or not -(2**63) <= high < 2**63:
            continue
        of = solving._precede([step], np.zeros(1, np.int64), np.array([low]), np.array([high]))
        before = list(zip(of.low.tolist(), of.high.tolist(), strict=True))
        assert not of.source.any() and all(first <= last for first, last in before)
        keys = [_some_key(rng, step) for _ in range(12)]
        if step.function in ("linear", "abs", "double"):  # the neighbours of doubles may be none
            far = 2**63 if step.bits else 10**17
            keys += [key for ends in before for end in ends for key in (end - 1, end, end + 1) if -far <= key < far]
        else:
            keys += [end for ends in before for end in ends if abs(end) <= float_key(math.inf)]
        for key in keys:
            value = _apply(step, key)
            if -(2**63) <= value < 2**63:
                assert (low <= value <= high) is any(first <= key <= last for first, last in before), (step, key)


# Whole expressions: solved, and computed


def _number(rng: Random) -> str:
    return str(
        rng.choice([0, 1, -1, 2, 3, -7, 100, 127, 128, 32768, 2147483647, -2147483648, 9223372036854775807, "3L"])
    )


def _value(rng: Random) -> tuple[str, bool]:
    """Returns a value of one column, and whether it is a date."""
    text = rng.choice([*INTEGERS, "x", "f", "d", "m"])
    if text == "d":
        days = [
            "datediff(d, DATE '2000-02-01')",
            "datediff(DATE '1969-12-30', d)",
            f"date_add(d, {rng.randint(-40, 40)})",
        ]
        text = rng.choice(days)
        if text.startswith("date_add"):
            return text, True
    for _ in range(rng.randint(1, 3)):
        other = rng.choice(["1.5D", "-0.1D", "1e3", "2.5", "0.25", "10.125BD", "3", "-2"])
        text = rng.choice(
            [f"({text} + {_number(rng)})", f"({text} - {_number(rng)})", f"({_number(rng)} - {text})", f"(-({text}))", f"abs({text})"]
            + [f"({text} {sign} {other})" for sign in "*+/-"]
            + [f"CAST({text} AS {type})" for type in ("BIGINT", "DOUBLE", "INT", "DECIMAL(15, 3)")]
        )  # fmt: skip
    return text, False


def _predicate(rng: Random) -> str:
    value, is_date = _value(rng)

    def literal() -> str:
        if is_date:
            return f"DATE '{dt.date(1970, 1, 1) + dt.timedelta(rng.randint(-60, 60))}'"
        return rng.choice(
            [_number(rng), "0.5", "-1.5e0", "2.50", "CAST('NaN' AS DOUBLE)", "1e300", str(rng.randint(-12, 12))]
        )

    text = rng.choice(
        [f"{value} {rng.choice(['<', '<=', '>', '>=', '=', '<>', '<=>'])} {literal()}" for _ in range(4)]
        + [f"{value} BETWEEN {literal()} AND {literal()}", f"{value} IN ({literal()}, {literal()})", f"{value} IS NULL"]
        + [f"{value} NOT IN ({literal()}, {literal()})"]
    )  # fmt: skip
    text = rng.choice([text, text, f"NOT ({text})"])
    return rng.choice([text, text, f"({text}) IS {rng.choice(['TRUE', 'FALSE', 'UNKNOWN', 'NOT TRUE'])}"])


def _events(rng: Random, rows: int) -> pa.Table:
    def whole(name: str) -> int:
        low, high = (0, 65535) if name == "u" else (-(2 ** (INTEGERS[name] - 1)), 2 ** (INTEGERS[name] - 1) - 1)
        near = [
            max(low, rng.randint(-12, 12)),
            low + rng.randint(0, 3),
            high - rng.randint(0, 3),
            rng.randint(low, high),
        ]
        return rng.choice(near)

    def row() -> dict[str, Any]:
        values: dict[str, Any] = {name: whole(name) for name in INTEGERS}
        values |= {
            "x": rng.choice([*DOUBLE_VALUES, rng.uniform(-9, 9)]),
            "f": rng.choice([0.0, 1.5, -2.25, math.nan, math.inf]),
        }
        values["d"] = dt.date(1970, 1, 1) + dt.timedelta(rng.choice([0, 1, -700000, 2900000, rng.randint(-40, 40)]))
        values["m"] = rng.choice(
            [Decimal("9999999.99"), Decimal("-9999999.99"), Decimal(rng.randint(-500, 500)).scaleb(-2)]
        )
        return {name: None if rng.random() < 0.1 else value for name, value in values.items()}

    return pa.Table.from_pylist([row() for _ in range(rows)], schema=SCHEMA)


def _outcome(matcher: cm.Matcher, events: pa.Table) -> list[list[int]] | str:
    try:
        return [sorted(row) for row in matcher.match_lists(events).to_pylist()]
    except EventError as error:
        return str(error)


def _both(rules: dict[int, str], ansi: bool) -> tuple[cm.Matcher, cm.Matcher]:
    """Returns a matcher, and one that computes all values."""
    solved = cm.Matcher.build(rules, SCHEMA, options=cm.Options(ansi=ansi), errors="collect", max_rejected=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Typing, "solved", lambda typing, value: None)
        computed = cm.Matcher.build(rules, SCHEMA, options=cm.Options(ansi=ansi), errors="collect", max_rejected=1.0)
    assert [(one.id, one.message) for one in solved.rejected] == [(one.id, one.message) for one in computed.rejected]
    assert ansi or len(attributes(solved)) < len(attributes(computed)) / 2
    return solved, computed


@pytest.mark.parametrize("seed", range(1 if SMALL else 6))
def test_solved_values_match_as_computed_ones(seed: int) -> None:
    rng = Random(seed)
    rules = {
        i: " AND ".join([_predicate(rng) for _ in range(rng.choice([1, 1, 1, 2]))])
        for i in range(200 if SMALL else 1000)
    }
    solved, computed = _both(rules, ansi=False)
    events = _events(rng, 60 if SMALL else 400)
    found, expected = _outcome(solved, events), _outcome(computed, events)
    assert found == expected
    assert isinstance(found, list) and sum(map(len, found)) > len(rules)


def test_errors_of_ansi_mode_stay() -> None:
    rng = Random(9)
    solved, computed = _both({i: _predicate(rng) for i in range(60 if SMALL else 200)}, ansi=True)
    events = _events(rng, 30 if SMALL else 100)
    each = [events.slice(row, 1) for row in range(len(events))]
    outcomes = [_outcome(solved, row) for row in each]
    assert outcomes == [_outcome(computed, row) for row in each]
    assert any(isinstance(outcome, str) for outcome in outcomes)


@pytest.mark.parametrize(
    "text",
    [
        "{c} + i > 5", "i - {c} > 5", "{c} - i <= 5", "-(i) < {c}", "abs(i - {c}) < 5", "abs({c} - i) = 2", "i * 3 = {c}",
        "x + {c} > 5", "{c} - x > 5", "x * {c} > 1", "x / {c} < 1", "i / {c} > 0.5", "datediff(d, DATE '2024-01-01') < {c}",
        "date_add(d, {c}) > DATE '2024-01-01'", "date_sub(d, {c}) = DATE '2024-01-01'", "m + {c}.5 > 3", "m * {c} > 3", "b + {c} > 2",
    ],
)  # fmt: skip
def test_constants_of_ones_own_need_one_column(text: str) -> None:
    rules = {c: text.format(c=c) for c in range(1, 40)}
    matcher = cm.Matcher.build(rules, SCHEMA)
    assert [attribute.role for attribute in attributes(matcher)] == [Role.VALUE]
    matcher.insert({100: text.format(c=77)})
    assert [attribute.role for attribute in attributes(matcher)] == [Role.VALUE]


@pytest.mark.parametrize(
    "text", ["i % 7 = 0", "x * 0 = 0", "1 / x > 2", "i + x > 2", "i * 1000 = 5", "b * b = 4", "i + 1 + x = 2"]
)
def test_what_is_not_solved_is_computed(text: str) -> None:
    assert Role.COMPUTED in [attribute.role for attribute in attributes(cm.Matcher.build({1: text}, SCHEMA))]


def test_a_computed_value_has_not_the_weight_of_its_column() -> None:
    """Predicates with weights are computed, so that scores do not depend on what can be solved."""
    schema = {"a": "int64", "s": "string", "w": "float64"}
    rules = {1: (cm.col("a") + 3 > 5).weight(2.0), 2: (cm.col("a") % 7 == 0).weight(2.0), 3: "a + 3 > 5"}
    matcher = cm.Matcher.build(rules, schema)
    events = pa.table({"a": [7], "s": ["x"], "w": [10.0]})
    best = matcher.match_topk(events, 3, event_weights={"a": "w"})
    assert dict(zip(best["subscription"].to_pylist(), best["score"].to_pylist(), strict=True)) == {
        1: 2.0,
        2: 2.0,
        3: 0.0,
    }
    texts = ["a + 3 > 5", "instr(s, 'x') > 0", "left(s, 1) = 'x'", "a % 7 = 0", "s = 'x'"]
    weights = [[("s", 400.0), ("a", 60.0)]] * len(texts)
    given = pa.table(
        {"id": list(range(5)), "expression": texts, "weights": pa.array(weights, pa.map_(pa.string(), pa.float64()))}
    )
    best = cm.Matcher.build(given, schema).match_topk(events, 5)
    assert dict(zip(best["subscription"].to_pylist(), best["score"].to_pylist(), strict=True)) == {
        0: 0,
        1: 0,
        2: 0,
        3: 0,
        4: 400,
    }


def test_the_mode_of_a_solved_value_is_known(tmp_path: Path) -> None:
    """A sum that wraps means something else in ANSI mode, in a saved matcher, too."""
    setting = "spark.sql.ansi.enabled"
    matcher = cm.Matcher.build({1: "b + 3 > 5"}, SCHEMA)
    assert matcher.spark_settings == {setting: "3 + b"}
    matcher.save(tmp_path / "a.cm")
    assert cm.Matcher.open(tmp_path / "a.cm").spark_settings == {setting: "3 + b"}
    plain = cm.Matcher.build({2: "x + 3 > 5", 3: "m + 3.5 > 2"}, SCHEMA)
    assert plain.spark_settings == {}
    plain.insert({4: "i - 7 > 5"})
    assert plain.spark_settings == {setting: "i - 7"}


def test_the_mode_is_in_journals_and_pages(tmp_path: Path) -> None:
    for name, index in (("a.cm", "bitslice"), ("a.pages", "pbtree")):
        cm.Matcher.build({1: "i = 1"}, SCHEMA, index=index).save(tmp_path / name)
        with cm.Matcher.open(tmp_path / name, journal=True) as matcher:
            matcher.insert({2: "b + 3 > 5"})
        with cm.Matcher.open(tmp_path / name, journal=True) as matcher:
            assert matcher.spark_settings == {"spark.sql.ansi.enabled": "3 + b"}
            assert matcher.match_one({"b": 3}) == [2]


def test_values_are_forgotten_with_the_forms_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "FORMS_KEPT", 20)
    matcher = cm.Matcher.build({0: "i = 0"}, SCHEMA)
    for c in range(1, 60):
        matcher.insert({c: f"i + {c} > 100"})
        assert len(source_attributes(matcher).solved) <= 22
    assert matcher.match_one({"i": 50}) == list(range(51, 60))


@pytest.mark.usefixtures("kept_predicates")
def test_an_explanation_names_the_column() -> None:
    matcher = cm.Matcher.build({1: "b + 3 > 5 AND x * 2 < 3", 2: "d > DATE '2024-01-31' AND x + 1 < 2"}, SCHEMA)
    shown = str(matcher.explain({"b": 7, "x": 1.0}, 1))
    assert "b BETWEEN 3 AND 9223372036854775804   [7]" in shown and "x < 1.5   [1.0]" in shown


def test_numbers_beyond_the_type_of_the_column_are_computed_with_as_they_are() -> None:
    """Events may have a wider column, whose numbers are compared as numbers elsewhere, too."""
    rules = {
        1: "i + 3 > 5",
        2: "NOT i + 3 > 5",
        3: "i + 3 IS NULL",
        4: "i > 5",
        5: "abs(i) > 5",
        6: "5 - i < 0",
        7: "i * 2 = 6",
    }
    matcher = cm.Matcher.build(rules, SCHEMA)
    events = pa.table({"i": [2**31, 5 * 10**9, -5 * 10**9, -(2**63), 2**63 - 1]})
    assert matcher.match_lists(events).to_pylist() == [[1, 4, 5, 6], [1, 4, 5, 6], [2, 5], [2, 5], [1, 4, 5, 6]]
