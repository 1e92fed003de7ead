"""Calls of special functions from sqlglot's nodes.

Arguments are packed into one literal once the form of their text is known (``with_packings``). So
texts that differ in arguments alone share a form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from colmatch.expr.ast import Predicate, Refusal, Verb
from colmatch.expr.computed import ComputedValue
from colmatch.expr.shared import SharedNodes
from colmatch.expr.special import COLUMNS, WrongArgument, check_arguments, describe_column, literal_of, subject_of
from colmatch.lowering.forms import Form, Kind, Packing
from colmatch.sql.checks import strip_parentheses
from colmatch.sql.literals import NumberedText


def parse_call(
    name: str, arguments: list[Any], nodes: SharedNodes, reading: NumberedText, begin: Callable[[Any], int], at: int
) -> Predicate:
    """Makes the predicate of a call. Its operand is the slots of the arguments.

    begin : returns the offset of an argument
    at : offset of the call

    Raises Refusal: the function does not take an argument.
    """
    parts = list(map(strip_parentheses, arguments))
    try:
        check_arguments(name, len(parts))
        columns = [_column(name, argument, place, reading) for place, argument in enumerate(parts[:COLUMNS])]
        literal_of(name, [_value(argument, reading) for argument in parts[COLUMNS:]])
    except WrongArgument as error:
        placed = bool(parts) and parts[error.place].find(exp.Column, exp.Literal) is not None
        raise Refusal(str(error), begin(parts[error.place]) if placed else at) from None
    slots = [int(argument.args["this"]) for argument in parts[COLUMNS:]]
    operands = [reading.operands[slot] for slot in slots]
    packing = Packing(name, tuple([(kind, negative) for kind, _, negative in operands]))
    operand = nodes.operand(Kind.BINARY, slots[0], packing=packing)
    return nodes.predicate(Verb.CALL, subject_of(name, columns), (operand,))


def pack(form: Form, literals: list[Any]) -> None:
    """Packs the arguments of each special function into one literal, in the first of their slots.

    Raises WrongArgument: the function does not take one of them.
    """
    for slot, (function, arguments) in form.packings:
        values = zip(arguments, literals[slot : slot + len(arguments)], strict=True)
        signed = [(kind, f"-{text}" if negative else text) for (kind, negative), text in values]
        literals[slot] = literal_of(function, signed)


def with_packings(form: Form) -> Form:
    """Adds to a form the slots that are to be packed."""
    operands = [operand for leaf in form.leaves for test in leaf.tests for operand in test.operands]
    packings = {(o.slot, o.value) for o in operands if o.slot >= 0 and o.value is not None}
    return replace(form, packings=tuple(sorted(packings))) if packings else form


def _column(name: str, node: Any, place: int, reading: NumberedText) -> ComputedValue:
    number = node.args["this"].args["this"] if type(node) is exp.Column else ""
    if not number.isdigit() or reading.subjects[int(number)].key is not None:
        raise WrongArgument(place, describe_column(name))
    return ComputedValue("column", reading.subjects[int(number)].path)


def _value(node: Any, reading: NumberedText) -> tuple[Kind | None, Any]:
    if type(node) is not exp.Literal:
        return None, None
    slot = int(node.args["this"])
    kind, many, negative = reading.operands[slot]
    text = reading.literals[slot]
    return (None, None) if many else (kind, f"-{text}" if negative else text)
