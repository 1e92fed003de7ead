"""Conditions of rules, joined and counted.

A condition that is Unknown counts as not true, so each NOT is around ``IS TRUE`` and the result
means the same with two values and with three. This costs nothing: normalisation then asks "is it
not true" (``expr/modes.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from colmatch.expr.ast import And, Constant, Expr, Not, Or, Predicate, Truth, Verb, conjoin, truth
from colmatch.expr.computed import SIGNS, ComputedValue
from colmatch.rules.refusal import Unusable

MOST_CONDITIONS = 1_000_000  # conditions of a rule, with its named conditions
_NEVER_OF_NULL = {"<=>"}
_OF_NULL = {Verb.NULL, Verb.SAME}


class Condition(NamedTuple):
    """A condition of the builder, and the number of predicates in it."""

    expr: Expr
    size: int = 1


TRUE, FALSE = Condition(Constant(True)), Condition(Constant(False))


def constant(value: bool) -> Condition:
    return TRUE if value else FALSE


def constant_of(condition: Condition) -> bool | None:
    """Returns the value of a condition that no event changes; None for any other."""
    return condition.expr.value if isinstance(condition.expr, Constant) else None


def all_of(parts: Iterable[Condition], place: str) -> Condition:
    """Joins conditions by AND; without any, the result is true."""
    return _join(list(parts), And, place)


def any_of(parts: Iterable[Condition], place: str) -> Condition:
    """Joins conditions by OR; without any, the result is false."""
    return _join(list(parts), Or, place)


def _join(parts: list[Condition], kind: type[And] | type[Or], place: str) -> Condition:
    size = sum(part.size for part in parts) or 1
    if size > MOST_CONDITIONS:
        raise Unusable(place, f"with the named conditions there are more than {MOST_CONDITIONS:,} conditions")
    decisive = kind is Or
    values = [constant_of(part) for part in parts]
    open = [part.expr for part, value in zip(parts, values, strict=True) if value is None]
    if decisive in values or not open:
        return Condition(Constant(decisive if decisive in values else not decisive), size)
    return Condition(conjoin(kind, open), size)


def negate(part: Condition) -> Condition:
    """Makes "it is not true", which is never Unknown."""
    expr = part.expr
    if isinstance(expr, Constant):
        return Condition(Constant(not expr.value), part.size)
    if isinstance(expr, Not) and isinstance(expr.part, Truth) and expr.part.value is True:
        return Condition(expr.part.part, part.size)
    if isinstance(expr, Not) and _is_null_test(expr.part):
        return Condition(expr.part, part.size)
    return Condition(Not(expr if _is_null_test(expr) else truth(expr, True)), part.size)


def choose(test: Condition, then: Condition, other: Condition, place: str) -> Condition:
    """Makes "then, if the test is true, else other"."""
    if (known := constant_of(then)) is not None and known is constant_of(other):
        return then
    if constant_of(then) is True:
        return any_of([test, other], place)
    if constant_of(then) is False:
        return other if _is_false_at_null(other.expr, test.expr) else all_of([negate(test), other], place)
    yes, no = both(test, then, place), all_of([negate(test), other], place)
    return any_of([yes, other if _is_false_at_null(other.expr, test.expr) else no], place)


def both(outer: Condition, inner: Condition, place: str) -> Condition:
    """Makes "both are true", shorter where one of them is a test for NULL."""
    if _is_null_test(outer.expr) and outer.expr == inner.expr:
        return outer
    return FALSE if _is_false_at_null(inner.expr, outer.expr) else all_of([outer, inner], place)


def _is_null_test(expr: Expr) -> bool:
    return isinstance(expr, Predicate) and expr.verb is Verb.NULL


def _is_false_at_null(expr: Expr, test: Expr) -> bool:
    """Returns whether a condition is never true where ``test``, a test for NULL, is true."""
    if not (isinstance(test, Predicate) and test.verb is Verb.NULL):
        return False
    if isinstance(expr, Not):
        return expr.part == test if _is_null_test(expr.part) else False
    if isinstance(expr, And):
        return any(_is_false_at_null(part, test) for part in expr.parts)
    if not isinstance(expr, Predicate) or expr.verb in _OF_NULL:
        return False
    if expr.subject._replace(size=False) == test.subject:
        return True
    value, path = expr.subject.computed, test.subject.path
    if value is None or test.subject.key is not None or not path:
        return False
    sides = value.arguments if value.function in SIGNS - _NEVER_OF_NULL else (value,)
    return any(_reads(side, path) for side in sides)


_STRICT = (
    "cast", "try_cast", "semver", "exists", "forall", "size", "concat", "murmur3_32", "lower", "upper", "trim", "length",
)  # fmt: skip


def _reads(value: object, path: tuple[str, ...]) -> bool:
    """Returns whether a value is a column, or is NULL with it."""
    if isinstance(value, ComputedValue) and value.function in _STRICT:
        return any(_reads(argument, path) for argument in value.arguments)
    return value == ComputedValue("column", path)
