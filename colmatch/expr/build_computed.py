"""Values computed from columns, written in Python: ``col("price") * col("qty")``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from colmatch.errors import ExpressionError
from colmatch.expr.ast import Expr, Predicate, Subject, Verb
from colmatch.expr.build_literals import literal
from colmatch.expr.computed import DEEPEST, NULL, ComputedValue, comparison, literal_of
from colmatch.expr.intervals import DAY, DAYS, TIMES
from colmatch.given.arguments import text
from colmatch.lowering.forms import Kind


class Computing:
    """The operators of a column or a computed value."""

    __slots__ = ()
    _subject: Subject

    def _node(self, function: str, *arguments: Any) -> Self:
        value = ComputedValue(function, tuple([make_computed(argument) for argument in arguments]))
        return type(self)(Subject((), computed=value))  # type: ignore[call-arg]

    def __add__(self, other: Any) -> Self:
        return self._node("+", self, other)

    def __radd__(self, other: Any) -> Self:
        return self._node("+", other, self)

    def __sub__(self, other: Any) -> Self:
        return self._node("-", self, other)

    def __rsub__(self, other: Any) -> Self:
        return self._node("-", other, self)

    def __mul__(self, other: Any) -> Self:
        return self._node("*", self, other)

    def __rmul__(self, other: Any) -> Self:
        return self._node("*", other, self)

    def __truediv__(self, other: Any) -> Self:
        return self._node("/", self, other)

    def __rtruediv__(self, other: Any) -> Self:
        return self._node("/", other, self)

    def __mod__(self, other: Any) -> Self:
        return self._node("%", self, other)

    def __rmod__(self, other: Any) -> Self:
        return self._node("%", other, self)

    def __neg__(self) -> Self:
        return self._node("negate", self)

    def __abs__(self) -> Self:
        return self._node("abs", self)

    def cast(self, type: str) -> Self:
        """Casts the value to another type, written as in SQL: ``"bigint"``."""
        name = text(type)
        if name is None:
            raise ExpressionError("cast takes the name of a type, as in cast('bigint')")
        value = ComputedValue("cast", (make_computed(self), name.strip().lower()))
        return self.__class__(Subject((), computed=value))  # type: ignore[call-arg]


def make_comparison(sign: str, left: Computing, right: Computing | timedelta | list[Any]) -> Expr:
    """Makes the comparison of two columns or computed values."""
    value, negated = comparison(sign, make_computed(left), make_computed(right))
    return Predicate(Verb.BARE, Subject((), computed=value), negated=negated)


def make_computed(value: Any, depth: int = 0) -> ComputedValue:
    """Converts a column, a computed value or a Python value to an argument.

    depth : number of lists that the value is within

    Raises
    ------
    ExpressionError : nothing can be computed with the value
    """
    if isinstance(value, Computing):
        subject = value._subject
        if subject.computed is not None:
            return subject.computed
        column = ComputedValue("column", subject.path)
        if subject.size and subject.key is None:
            return ComputedValue("size", (column,))
        return column if subject.key is None else ComputedValue("entry", (column, subject.key))
    if isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
        return ComputedValue("interval", (TIMES if micros % DAY else DAYS, micros))
    if isinstance(value, list):
        if depth == DEEPEST:
            raise ExpressionError(f"a list nests deeper than {DEEPEST} levels")
        return ComputedValue("array", tuple([NULL if one is None else make_computed(one, depth + 1) for one in value]))
    operand = literal(value)
    if operand is None or operand.kind is Kind.BINARY:
        raise ExpressionError("NULL and bytes cannot be computed with")
    return literal_of(operand.kind, operand.value)
