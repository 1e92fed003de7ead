"""A text -> the tree with values in it that the builder would make of the same condition."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from colmatch.expr.ast import NAN, Expr, Predicate, Refusal, rebuild
from colmatch.expr.computed import ComputedValue
from colmatch.expr.elements import Lambda
from colmatch.given.options import Options
from colmatch.lowering.forms import Kind, Operand
from colmatch.sql.literals import NumberedText
from colmatch.sql.parse import Parser
from colmatch.sql.refused import make_error


def parse(text: str, options: Options | None = None) -> Expr:
    """Makes the tree of a text, with the literals' values in it.

    Raises
    ------
    ExpressionError : with line and column
    """
    parser = Parser((options or Options()).max_depth)
    reading: NumberedText | None = None
    try:
        reading = parser.read(text)
        tree = parser.parse(reading)
        return with_values(tree, reading)
    except Refusal as refusal:
        raise make_error(refusal, reading, text) from None


def with_values(tree: Expr, reading: NumberedText) -> Expr:
    """Puts the literals of its reading into the slots of a tree."""

    def value(operand: Operand | None) -> Operand | None:
        if operand is None or operand.slot < 0:
            return operand
        literal = reading.literals[operand.slot]
        if operand.many:
            return Operand(
                operand.kind, many=True, value=tuple([_value(operand.kind, text, False) for text in literal])
            )
        return Operand(operand.kind, value=_value(operand.kind, literal, operand.negative))

    def within(part: Any) -> Any:
        if isinstance(part, Lambda):
            return Lambda(part.parameter, with_values(part.condition, reading))
        if isinstance(part, ComputedValue) and part.function not in ("column", "literal"):
            return ComputedValue(part.function, tuple(map(within, part.arguments)))
        return part

    def change(p: Predicate) -> Predicate:
        subject = p.subject._replace(computed=within(p.subject.computed))
        return replace(p, subject=subject, operands=tuple([value(operand) for operand in p.operands]))

    return rebuild(tree, change)


def _value(kind: Kind, text: Any, negative: bool) -> Any:
    """The Python value of a literal's text, or the text where Python has no such date or time."""
    if kind is Kind.INT:
        return -int(text) if negative else int(text)
    if kind is Kind.DECIMAL:
        return -Decimal(text) if negative else Decimal(text)
    if kind is Kind.DOUBLE:
        number = -float(text) if negative else float(text)
        return NAN if number != number else number
    try:
        if kind is Kind.DATE and len(text) == 10:
            return date.fromisoformat(text)
        if kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ) and len(text) in (19, 25, 26, 32) and text[10] == " ":
            found = datetime.fromisoformat(text)
            return found if str(found) == text else text
    except ValueError:
        pass
    return text
