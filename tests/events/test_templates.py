"""Computed values with constants of their own: every kind finds what plain Python computes."""

from __future__ import annotations

import ctypes
import math
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind
from inside import attributes, version
from sizes import SMALL

import colmatch as cm
from colmatch.events.computed import templates
from colmatch.events.reader import Reader
from colmatch.kernels._jit import kernel
from colmatch.kernels.templates import find_rests

SCHEMA = pa.schema({"t": pa.int8(), "i": pa.int32(), "b": pa.int64(), "x": pa.float64(), "s": pa.string()})
WHOLE = {
    "t": [-128, -7, 0, 1, 127],
    "i": [-(2**31), -9, -1, 0, 1, 12, 1000, 2**31 - 1],
    "b": [-(2**63), -(2**53) - 1, 1 - 2**52, -3, 0, 7, 2**52 - 1, 2**52, 2**53 + 1, 2**63 - 1],
}
DOUBLES = [-math.inf, -2.5, -0.0, 0.0, 0.1, 7.0, 1e300, math.inf, math.nan]
WRAP: dict[str, Callable[[int], int]] = {
    "i": lambda v: ctypes.c_int32(v).value,
    "b": lambda v: ctypes.c_int64(v).value,
    "t": lambda v: ctypes.c_int8(v).value,
}


def rest(one: int, other: int) -> int | None:
    """The remainder as Spark has it: with the sign of the dividend, NULL for a division by zero."""
    return None if other == 0 else int(math.copysign(1, one)) * (abs(one) % abs(other))


def quotient(one: int, other: int) -> int | None:
    return None if other == 0 else WRAP["b"](abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1))


def real(one: float, other: float) -> float | None:
    if other == 0:
        return None
    return math.nan if math.isinf(one) or math.isnan(one) else math.fmod(one, other)


# A form with the constant c, its columns, and what it computes of their values.
FORMS: dict[str, tuple[str, Callable[..., Any]]] = {
    "i % {c}": ("i", lambda c, i: rest(i, c)),
    "b % {c}": ("b", lambda c, b: rest(b, c)),
    "b % {c} % 7": ("b", lambda c, b: None if c == 0 else rest(rest(b, c) or 0, 7)),
    "{c} % b": ("b", lambda c, b: rest(c, b)),
    "b DIV {c}": ("b", lambda c, b: quotient(b, c)),
    "{c} DIV i": ("i", lambda c, i: quotient(c, i)),
    "b & {c}": ("b", lambda c, b: b & c),
    "(i | {c}) ^ 5": ("i", lambda c, i: (i | c) ^ 5),
    "b * 100 + {c}": ("b", lambda c, b: WRAP["b"](b * 100 + c)),
    "abs(i * 77 - {c})": ("i", lambda c, i: WRAP["i"](abs(WRAP["i"](WRAP["i"](i * 77) - c)))),
    "-(b - {c}) % 1000": ("b", lambda c, b: rest(WRAP["b"](-WRAP["b"](b - c)), 1000)),
    "(i + b) % {c}": ("ib", lambda c, i, b: rest(WRAP["b"](i + b), c)),
    "CAST(b % {c} AS TINYINT)": ("b", lambda c, b: None if c == 0 else WRAP["t"](rest(b, c) or 0)),
    "length(s) % {c}": ("s", lambda c, s: rest(len(s), c)),
    "x % {c}e0": ("x", lambda c, x: real(x, c)),
    "abs(x % {c}e0) + x": ("x", lambda c, x: None if c == 0 else abs(real(x, c) or 0.0) + x),
    "x * t - {c}e0": ("xt", lambda c, x, t: x * t - c),
    "-(CAST(i % {c} AS DOUBLE) / x)": ("ix", lambda c, i, x: None if x == 0 or c == 0 else -(float(rest(i, c) or 0) / x)),
}  # fmt: skip
TESTS: dict[str, Callable[[Any], bool | None]] = {
    "= 1": lambda v: v == 1,
    "<> 1": lambda v: v != 1,
    "IN (0, 3, -2)": lambda v: v in (0, 3, -2),
    "< 2": lambda v: v < 2,
    "NOT BETWEEN -1 AND 1": lambda v: (v == v and not -1 <= v <= 1) or v != v,
    ">= -5": lambda v: v >= -5 or v != v,
}
CONSTANTS = [*range(-4, 20), 1000, 123456]
Rule = tuple[str, int, str]


def drawn_rules(rng: Random, count: int) -> list[Rule]:
    return [(rng.choice(list(FORMS)), rng.choice(CONSTANTS), rng.choice(list(TESTS))) for _ in range(count)]


def text(rule: Rule) -> str:
    form, constant, test = rule
    return f"{form.format(c=constant)} {test}"


def drawn_events(rng: Random, count: int) -> list[dict[str, Any]]:
    values = WHOLE | {
        "x": DOUBLES,
        "s": ["", "abc", "äöü"],
        "b": [*WHOLE["b"], *(rng.randint(-(10**6), 10**6) for _ in range(8))],
    }
    return [
        {name: None if rng.random() < 0.1 else rng.choice(some) for name, some in values.items()} for _ in range(count)
    ]


def is_true(rule: Rule, event: dict[str, Any]) -> bool:
    columns, compute = FORMS[rule[0]]
    values = [event[name] for name in columns]
    value = None if None in values else compute(rule[1], *values)
    return value is not None and bool(TESTS[rule[2]](value))


def check(matcher: cm.Matcher, rules: dict[int, Rule], events: list[dict[str, Any]]) -> None:
    wanted = [[id for id, rule in sorted(rules.items()) if is_true(rule, event)] for event in events]
    table = pa.Table.from_pylist(events, schema=SCHEMA)
    assert [sorted(ids) for ids in matcher.match_lists(table).to_pylist()] == wanted
    assert [sorted(matcher.match_one(event)) for event in events] == wanted
    assert matcher.count(table).tolist() == [len(ids) for ids in wanted]


@every_kind
def test_members_are_what_python_computes(
    kind: str, tmp_path: Path, direct: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first, after inserts and deletes, which change what predicates can reach, and saved."""
    monkeypatch.setattr(templates, "LEAST", 3)
    rng = Random(f"members {kind}")
    given = dict(enumerate(drawn_rules(rng, 120 if SMALL else 600)))
    events = drawn_events(rng, 25 if SMALL else 80)
    rules = {i: rule for i, rule in given.items() if i % 3}
    matcher = cm.Matcher.build({i: text(rule) for i, rule in rules.items()}, SCHEMA, index=kind)
    assert len(templates.templates_of(attributes(matcher)).attributes) > len(rules) // 4
    check(matcher, rules, events)
    for i in range(0, len(given), 3):
        if i % 30 == 0:
            check(matcher, rules, events[:5])
        matcher.insert({i: text(given[i])})
        rules[i] = given[i]
    rules = dict(sorted(rules.items()))
    check(matcher, rules, events)
    gone = rng.sample(list(rules), len(rules) // 2)
    matcher.delete(gone)
    rules = {i: rule for i, rule in rules.items() if i not in gone}
    check(matcher, rules, events)
    matcher.save(str(tmp_path / "matcher"))
    check(cm.Matcher.open(str(tmp_path / "matcher")), rules, events)
    check(pickle.loads(pickle.dumps(matcher)), rules, events)
    assert all(direct) and direct


@kernel
def rests(one, other, out, there):
    find_rests(one, other, len(one), out, there)


def drawn_double(rng: Random) -> float:
    """Any bits, a whole number times a power of two, something ordinary, or something odd."""
    any_bits: float = struct.unpack("<d", rng.randbytes(8))[0]
    odd = rng.choice([*DOUBLES, 5e-324, -(2.0**-1022), 2.0**53, 1.7976931348623157e308])
    return rng.choice(
        [any_bits, rng.randint(-(2**53), 2**53) * 2.0 ** rng.randint(-60, 60), rng.uniform(-1e6, 1e6), odd]
    )


def test_remainders_of_doubles_are_exact() -> None:
    """The bits of the C library, also next to a multiple of the divisor, alone and in a block."""
    rng = Random(11)
    drawn: list[tuple[float, float]] = []
    for _ in range(1000 if SMALL else 60_000):
        one, other = drawn_double(rng), drawn_double(rng)
        if rng.random() < 0.5 and abs(other) < 1e280:
            one = math.nextafter(other * rng.randrange(1, 2 ** rng.randrange(1, 54)), rng.choice([math.inf, 0.0, one]))
        drawn.append((one, other))
    for size in (1, 3):
        for begin in range(0, len(drawn) - size, size):
            pairs = drawn[begin : begin + size]
            out, there = np.empty(size), np.ones(size, np.uint8)
            with np.errstate(all="ignore"):  # without the JIT, NumPy computes
                rests(np.array([one for one, _ in pairs]), np.array([other for _, other in pairs]), out, there)
            for (one, other), value, is_there in zip(pairs, out.tolist(), there.tolist(), strict=True):
                wanted = math.nan if math.isnan(other) else real(one, other)
                assert is_there == (wanted is not None), (one, other)
                assert wanted is None or math.isnan(wanted) == math.isnan(value), (one, other, value)
                assert wanted is None or math.isnan(wanted) or struct.pack("<d", wanted) == struct.pack("<d", value)


def entries_of(reader: Reader, batch: pa.RecordBatch, reach: Any = None) -> list[tuple[int, list[int], list[int]]]:
    read = reader.read(batch, reach)
    spans = zip(read.col[:-1].tolist(), read.col[1:].tolist())
    return [(a, read.row[i:j].tolist(), read.key[i:j].tolist()) for a, (i, j) in enumerate(spans)]


def test_all_members_are_what_arrow_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with more members than a block, and more results than there is room for at first."""
    rules = {
        i: text((form, constant, "= 1"))
        for i, (form, constant) in enumerate(
            (form, constant) for form in FORMS for constant in [*range(-200, 200), 2**31 - 1]
        )
    }
    events = pa.RecordBatch.from_pylist(drawn_events(Random(3), 70), schema=SCHEMA)

    def read(least: int) -> tuple[int, list[Any]]:
        monkeypatch.setattr(templates, "LEAST", least)
        now = version(cm.Matcher.build(rules, SCHEMA, index="scan"))
        reader = Reader(now.attributes, now.literals)
        return len(templates.templates_of(now.attributes).groups), entries_of(reader, events)

    (groups, ours), (none, arrows) = read(2), read(10**9)
    assert (groups, none) == (len(FORMS), 0)
    assert ours == arrows


def test_results_that_no_predicate_reaches_are_left_out() -> None:
    rules = {i: f"i % {i + 20} = {i % 3}" for i in range(40)} | {100: "i % 20 > 10", 101: "i % 21 IS NULL"}
    now = version(cm.Matcher.build(rules, SCHEMA))
    events = pa.RecordBatch.from_pylist([{"i": 5}, {"i": None}, {"i": 61}, {"i": 19}], schema=SCHEMA)
    reader = Reader(now.attributes, now.literals)
    assert reader.has_members
    numbers = {now.attributes[a].path[0]: a for a in range(len(now.attributes))}
    entries = entries_of(reader, events, now.reach)
    assert entries[numbers["i % 20"]][1:] == ([0, 2, 3], [5, 1, 19])  # from 0 on
    assert entries[numbers["i % 21"]][1:] == ([0, 2, 3], [5, 19, 19])  # IS NULL asks for all
    assert entries[numbers["i % 30"]][1:] == ([2], [1])
    assert sum(len(rows) for _, rows, _ in entries) < len(rules)
    assert sum(len(rows) for _, rows, _ in entries_of(reader, events)) == 3 * 40


@pytest.mark.parametrize("ansi", [False, True])
def test_what_may_fail_is_computed_by_arrow(ansi: bool) -> None:
    """With ANSI, a division by a constant other than zero never fails, and a sum may."""
    forms = {"i % {0}": True, "b DIV {0}": True, "i + {0} * i": not ansi, "b % ({0} - i)": not ansi,
             "CAST(b % {0} AS TINYINT)": not ansi, "x * {0} + x": True, "(i | {0}) & 9": True}  # fmt: skip
    for form, is_member in forms.items():
        rules = {i: f"{form.format(i + 2)} = 1" for i in range(templates.LEAST)}
        matcher = cm.Matcher.build(rules, SCHEMA, options=cm.Options(ansi=ansi))
        members = templates.templates_of(attributes(matcher)).attributes
        assert len(members) == (templates.LEAST if is_member else 0), form
    matcher = cm.Matcher.build({i: f"i % {i} = 1" for i in range(30)}, SCHEMA, options=cm.Options(ansi=True))
    with pytest.raises(cm.EventError, match=r"i % 0 cannot be computed: division by zero \(subscription 0\)"):
        matcher.match(pa.table({"i": pa.array([7], pa.int32())}))
    with pytest.raises(cm.EventError, match=r"i % 0 cannot be computed"):
        matcher.match_one({"i": 7})
    assert matcher.match_one({"i": None}) == []
    matcher = cm.Matcher.build({i: f"b DIV {-i} = 1" for i in range(1, 30)}, SCHEMA, options=cm.Options(ansi=True))
    with pytest.raises(cm.EventError, match=r"b div -1 cannot be computed: the result is too large \(subscription 1\)"):
        matcher.match(pa.table({"b": [-(2**63)]}))


@pytest.mark.parametrize(
    "form",
    [
        "CAST(i % {0} AS STRING) = '1'",
        "CAST(i % {0} AS BOOLEAN)",
        "CAST(i % {0} AS DECIMAL(10, 2)) = 1",
        "CAST(i % {0} AS FLOAT) < -1",
        "CAST(i % {0} AS FLOAT) * CAST(t AS FLOAT) < -1",
        "CAST(i AS FLOAT) + {0} > 16777219",
        "CAST(x * {0} AS INT) = 1",
        "length(concat_ws('-', s, CAST(t AS STRING))) % {0} = 1",
        "date_add(DATE '2024-01-01', i % {0}) > DATE '2024-01-02'",
        "coalesce(i % {0}, 7) = 1",
        "(i + pow(2, NULL)) % {0} IS NULL",
    ],
)
def test_values_of_other_types_are_the_same_one_by_one(form: str) -> None:
    rules = {c: form.format(c) for c in range(3, 40)}
    events = pa.Table.from_pylist([{"i": i, "t": t, "x": 0.1, "s": s} for i in (1, -7, 16777217, None, 40)
                                   for t, s in ((2, "abcd"), (-6, None), (None, None))], schema=SCHEMA)  # fmt: skip
    alone = {c: cm.Matcher.build({c: rule}, SCHEMA).exists(events).tolist() for c, rule in rules.items()}
    matcher = cm.Matcher.build(rules, SCHEMA)
    wanted = [[c for c, found in alone.items() if found[row]] for row in range(len(events))]
    assert matcher.match_lists(events).to_pylist() == wanted
    assert [matcher.match_one(event) for event in events.to_pylist()] == wanted


def test_a_value_beyond_the_column_is_an_error() -> None:
    matcher = cm.Matcher.build({i: f"i % {i + 1} = 1" for i in range(30)}, SCHEMA)
    for call in (lambda: matcher.match(pa.table({"i": [5 * 10**9]})), lambda: matcher.match_one({"i": 5 * 10**9})):
        with pytest.raises(cm.EventError, match="5000000000 is int64, the expressions compute with int32"):
            call()


def test_a_missing_column_is_null_or_an_error() -> None:
    rules = {i: f"i % {i + 1} IS NULL" for i in range(30)}
    events = pa.table({"b": [1]})
    assert cm.Matcher.build(rules, SCHEMA, options={"missing_columns": "null"}).count(events).tolist() == [30]
    with pytest.raises(cm.EventError, match="no column 'i'"):
        cm.Matcher.build(rules, SCHEMA).match(events)
