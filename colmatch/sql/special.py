"""Calls of special functions from sqlglot's nodes.

Arguments are packed into one literal once the form of their text is known (``with_packings``). So
texts that differ in arguments alone share a form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from sqlglot import exp

from colmatch.expr.ast import Predicate, Refusal, Verb
from colmatch.expr.computed import ComputedValue
from colmatch.expr.elements import find_fault
from colmatch.expr.shared import SharedNodes
from colmatch.expr.special import COLUMNS, WrongArgument, describe_column, literal_of, subject_of
from colmatch.expr.spelling import operand_sql
from colmatch.given.elements import ElementTest
from colmatch.given.session import Session
from colmatch.lowering.forms import ElementPacking, Form, Kind, Leaf, Operand, Packing
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
        columns = [_column(name, argument, place, reading) for place, argument in enumerate(parts[:COLUMNS])]
        literal_of(name, [_value(argument, reading) for argument in parts[COLUMNS:]])
    except WrongArgument as error:
        placed = bool(parts) and parts[error.place].find(exp.Column, exp.Literal) is not None
        raise Refusal(str(error), begin(parts[error.place]) if placed else at) from None
    slots = [int(argument.args["this"]) for argument in parts[COLUMNS:]]
    operands = [reading.operands[slot] for slot in slots]
    packing = Packing(name, tuple([(kind, negative) for kind, _, negative in operands]))
    operand = nodes.operand(Kind.BINARY, slots[0], value=packing)
    return nodes.predicate(Verb.CALL, subject_of(name, columns), (operand,))


class FaultyLiteral(Exception):
    """The error of a literal in a condition on elements, with its slot."""

    def __init__(self, slot: int, message: str) -> None:
        super().__init__(message)
        self.slot = slot


def pack(form: Form, literals: list[Any], session: Session) -> None:
    """Packs literals into one: arguments of a special function, or those of a condition.

    A condition on elements gets a further slot.

    Raises
    ------
    WrongArgument : a function does not take an argument
    FaultyLiteral : a literal in a condition cannot be read
    """
    literals += [b""] * (form.slots - len(literals))
    for slot, packing in form.packings:
        literals[slot] = _pack(packing, slot, literals, session)


def with_literals(leaf: Leaf, literals: list[Any], session: Session) -> Leaf:
    """Returns a leaf with literals in place of slots.

    Raises WrongArgument, FaultyLiteral: as ``pack`` does.
    """

    def with_value(operand: Operand) -> Operand:
        slot, packing = operand.slot, operand.value
        if slot < 0:
            return operand
        if packing is not None:
            return Operand(Kind.BINARY, value=_pack(packing, slot, literals, session))
        return operand._replace(slot=-1, value=tuple(literals[slot]) if operand.many else literals[slot])

    tests = [test._replace(operands=tuple(map(with_value, test.operands))) for test in leaf.tests]
    return leaf._replace(tests=tuple(tests))


def _pack(packing: Packing | ElementPacking, slot: int, literals: list[Any], session: Session) -> bytes:
    if isinstance(packing, ElementPacking):
        return _pack_elements(packing, literals, session)
    function, arguments = packing
    values = zip(arguments, literals[slot : slot + len(arguments)], strict=True)
    signed = [(kind, f"-{text}" if negative else text) for (kind, negative), text in values]
    return literal_of(function, signed)


def _pack_elements(packing: ElementPacking, literals: list[Any], session: Session) -> bytes:
    def with_value(operand: Operand) -> Operand:
        return operand._replace(slot=-1, value=literals[operand.slot])

    for type, op, operand in packing.checks:
        fault = find_fault(type, op, with_value(operand), session) if operand.slot >= 0 else None
        if fault is not None:
            raise FaultyLiteral(operand.slot, fault)
    written = [operand_sql(with_value(operand)) for operand in packing.operands]
    condition = "".join([part for pair in zip_longest(packing.parts, written, fillvalue="") for part in pair])
    return ElementTest(condition, packing.least, packing.maybe).to_bytes()


def with_packings(form: Form) -> Form:
    """Adds to a form the slots that are to be packed."""
    operands = [operand for leaf in form.leaves for test in leaf.tests for operand in test.operands]
    packings = dict.fromkeys((o.slot, o.value) for o in operands if o.slot >= 0 and o.value is not None)
    if not packings:
        return form
    # Literals of a condition may be needed elsewhere, so that each condition gets a separate slot
    own = [packing for _, packing in packings if isinstance(packing, ElementPacking)]
    slots = {packing: form.slots + i for i, packing in enumerate(own)}
    leaves = tuple([_move_operands(leaf, slots) for leaf in form.leaves]) if own else form.leaves
    placed = [(slots.get(packing, slot), packing) for slot, packing in packings]
    return replace(form, leaves=leaves, slots=form.slots + len(own), packings=tuple(placed))


def _move_operands(leaf: Leaf, slots: dict[Any, int]) -> Leaf:
    """Returns a leaf with other slots for its conditions on elements."""
    tests = [
        test._replace(operands=tuple([o._replace(slot=slots.get(o.value, o.slot)) for o in test.operands]))
        for test in leaf.tests
    ]
    return leaf._replace(tests=tuple(tests))


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
