"""Values of rules whose type decides their meaning.

A value is a list of cases: the first case whose condition is true says which leaf the value is, a
literal or something computed from columns. So ``if`` as a value, a NULL, and a Boolean are cases
like any other, and each comparison is made between two leaves whose types are known.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.expr.ast import Expr, Predicate, Subject, Verb
from colmatch.expr.build import ColumnHandle
from colmatch.expr.build_computed import make_computed
from colmatch.expr.computed import DEEPEST, ComputedValue
from colmatch.rules.joined import Condition, both, choose, constant, constant_of
from colmatch.rules.refusal import Unusable

MOST_CASES = 1000  # of a value
NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT, MOMENT, DURATION, ANY = (
    "null", "boolean", "number", "string", "array", "object", "moment", "duration", "any",
)  # fmt: skip
_KINDS: dict[type, str] = {
    type(None): NULL, bool: BOOLEAN, int: NUMBER, float: NUMBER, str: STRING, list: ARRAY, tuple: ARRAY, dict: OBJECT,
    dt.datetime: MOMENT, dt.timedelta: DURATION,
}  # fmt: skip


class Literal(NamedTuple):
    """A constant of a rule. An array is a list of values, or None if nobody may look at them."""

    kind: str
    value: Any


class Variable(NamedTuple):
    """A column, or a value computed from columns. Its kind is ``any`` if no schema says it."""

    kind: str
    handle: ColumnHandle
    type: pa.DataType | None = None


Leaf = Literal | Variable


class Value(NamedTuple):
    """The leaf of the first case whose condition is true, else the last leaf."""

    cases: tuple[tuple[Condition, Leaf], ...]
    last: Leaf

    @property
    def only(self) -> Leaf | None:
        """Returns the leaf of a value without cases."""
        return None if self.cases else self.last


def kind_of(value: Any) -> str:
    """Returns the kind of a JSON value."""
    return _KINDS.get(type(value), ANY)


def literal(value: Any) -> Value:
    return Value((), Literal(kind_of(value), value))


NOTHING, YES, NO = literal(None), literal(True), literal(False)


def decide(value: Value, test: Callable[[Leaf], Condition], place: str) -> Condition:
    """Makes the condition that the leaf of a value passes a test."""
    made = test(value.last)
    for condition, leaf in reversed(value.cases):
        made = choose(condition, test(leaf), made, place)
    return made


def is_null(value: Value, place: str) -> Condition:
    return decide(value, lambda leaf: constant(leaf.kind == NULL), place)


def change(value: Value, make: Callable[[Leaf], Value], place: str) -> Value:
    """Makes another value of each leaf."""
    cases: list[tuple[Condition, Leaf]] = []
    for condition, leaf in value.cases:
        cases += _within(condition, make(leaf), place)
    last = make(value.last)
    return _cases([*cases, *last.cases], last.last, place)


def pair_leaves(make: Callable[[Leaf, Leaf], Value], place: str, left: Value, right: Value) -> Value:
    """Makes another value of each two leaves."""
    return change(left, lambda one: change(right, lambda other: make(one, other), place), place)


def select(branches: list[tuple[Condition, Value]], last: Value, place: str) -> Value:
    """Makes the value of the first branch whose condition is true, else the last value."""
    cases: list[tuple[Condition, Leaf]] = []
    for condition, value in branches:
        known = constant_of(condition)
        if known:
            last = value
            break
        if known is None:
            cases += _within(condition, value, place)
    return _cases([*cases, *last.cases], last.last, place)


def _within(condition: Condition, value: Value, place: str) -> list[tuple[Condition, Leaf]]:
    inner = [(both(condition, test, place), leaf) for test, leaf in value.cases]
    return [*[(test, leaf) for test, leaf in inner if constant_of(test) is not False], (condition, value.last)]


def _cases(cases: list[tuple[Condition, Leaf]], last: Leaf, place: str) -> Value:
    tests = [test.expr for test, _ in cases]
    cases = [case for number, case in enumerate(cases) if tests[number] is not tests[number - 1] or not number]
    if len(cases) > MOST_CASES:
        raise Unusable(place, f"it may have more than {MOST_CASES:,} values, by conditions within conditions")
    return Value(tuple(cases), last)


def of_condition(condition: Condition) -> Value:
    """Returns a condition as a value."""
    known = constant_of(condition)
    return literal(known) if known is not None else Value(((condition, YES.last),), NO.last)


def of_column(kind: str, handle: ColumnHandle, type: pa.DataType | None = None) -> Value:
    """Returns a column as a value, which is null where the column is NULL."""
    if kind == NULL:
        return NOTHING
    is_null = Condition(handle.is_null()), NOTHING.last
    if kind == BOOLEAN:
        return Value((is_null, (Condition(handle.node()), YES.last)), NO.last)
    return Value((is_null,), Variable(kind, handle, type))


def variable_of(value: Value) -> Variable | None:
    """Returns the column that a value is where it is not null; None for any other value."""
    is_column = len(value.cases) == 1 and value.cases[0][1] == NOTHING.last and isinstance(value.last, Variable)
    return value.last if is_column and isinstance(value.last, Variable) else None


def computed(function: str, *arguments: Any) -> ColumnHandle:
    """Makes a computed value: a function of columns and constants."""
    made = tuple([one if isinstance(one, ComputedValue) else make_computed(one) for one in arguments])
    return _handle(ComputedValue(function, made))


def _handle(value: ComputedValue) -> ColumnHandle:
    if _depth(value) > DEEPEST:
        raise Unusable("", f"a computed value nests deeper than {DEEPEST} levels: compute a part of it before")
    return ColumnHandle(Subject((), computed=value))


def _depth(value: ComputedValue) -> int:
    return 1 + max([_depth(part) for part in value.arguments if isinstance(part, ComputedValue)], default=0)


def cast(handle: ColumnHandle, type: str, function: str = "cast") -> ColumnHandle:
    """Casts a value; ``try_cast`` is NULL where the cast fails."""
    return _handle(ComputedValue(function, (make_computed(handle), type)))


def computed_test(function: str, *arguments: Any) -> Expr:
    """Makes a condition that is a function of columns and constants."""
    return Predicate(Verb.BARE, computed(function, *arguments)._subject)


def size_of(handle: ColumnHandle) -> ColumnHandle:
    """Returns the number of elements of a list, or of entries of a map."""
    return (
        handle.size() if handle._subject.computed is None and handle._subject.key is None else computed("size", handle)
    )
