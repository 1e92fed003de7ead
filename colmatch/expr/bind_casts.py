"""Casts of Spark in comparisons with literals (``Options.casts``).

A literal is cast once, and a column becomes a computed value. The cast may depend on the literal:
without ANSI, ``s = 5`` is a comparison of INTs, and ``s = 5000000000`` one of BIGINTs. So these
literals distinguish forms, as literals in computed values do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from colmatch.errors import EventError
from colmatch.events.computed.derived import constant
from colmatch.events.computed.nodes import FRACTIONS, INSTANTS, INTEGERS, ValueNode, is_decimal, is_number
from colmatch.expr.ast import NAN, And, Expr, Or, Predicate, Refusal, Subject, Truth, Verb, rebuild, walk
from colmatch.expr.casts import common_type, compared_type, is_shown
from colmatch.expr.computed import NULL, ComputedValue, literal_of
from colmatch.expr.computed_types import Typing
from colmatch.expr.elements import Lambda
from colmatch.expr.tree import COUNTLESS
from colmatch.lowering.forms import Kind, Operand

LiteralsOf = Callable[[Operand], list[ComputedValue]]  # the literals of an operand
_BOTH_SIDES = frozenset({Verb.EQ, Verb.NE, Verb.LT, Verb.LE, Verb.GT, Verb.GE, Verb.SAME})
_PATTERNS = frozenset({Verb.LIKE, Verb.ILIKE, Verb.RLIKE, Verb.STARTSWITH, Verb.ENDSWITH, Verb.CONTAINS})
_KINDS = {int: Kind.INT, Decimal: Kind.DECIMAL, float: Kind.DOUBLE, str: Kind.STRING, bool: Kind.BOOL}
_DATE = re.compile(r"(?!0000)\d{4}-\d\d-\d\d", re.ASCII)  # a date of Python


class CastBinder:
    """Inserts casts into comparisons of a tree with literals.

    Parameters
    ----------
    typing : types of values, over the schema
    check_elements : raises Refusal if a condition on elements is not taken as it is
    """

    def __init__(self, typing: Typing, check_elements: Callable[[Predicate], Any]) -> None:
        self._typing = typing
        self._check_elements = check_elements
        self._known: dict[Predicate, Predicate] = {}  # equal ones are one object

    def bind(self, tree: Expr, literals_of: LiteralsOf) -> Expr:
        """Returns a tree with all casts; without ``Options(casts="spark")``, the tree itself.

        literals_of : returns the literals of an operand. It is called for those that must be known

        Raises Refusal: a literal cannot be cast, or Spark does not compare such values.
        """
        if not self._typing.is_cast:
            return tree
        asked = {id(node.part) for node, _ in walk(tree, COUNTLESS) if isinstance(node, Truth)}
        if not self._typing.is_ansi:
            bare = asked
        else:
            bare = asked | {id(node) for node, _ in walk(tree, COUNTLESS) if node is not tree}

        def change(p: Predicate) -> Expr:
            try:
                return self._bind(p, id(p) in bare, literals_of)
            except Refusal as refusal:
                refusal.predicate = refusal.predicate or p
                raise

        return rebuild(tree, change)

    def _bind(self, p: Predicate, is_within: bool, literals_of: LiteralsOf) -> Expr:
        """Returns a predicate with casts.

        is_within : it is a part of AND, OR, NOT or IS
        """
        if p.verb is Verb.CALL and not p.operands:
            return self._bind_elements(p, literals_of)
        value = _value_of(p.subject)
        node = None if value is None or p.verb is Verb.CALL or p.verb is Verb.NULL else self._node(value)
        if value is None or node is None:
            return p
        if p.verb is Verb.BARE:
            return (
                self._share(replace(p, subject=_cast(value, "boolean"))) if node.type == "string" and is_within else p
            )
        if p.verb in _PATTERNS:
            return self._bind_pattern(p, value, node.type, literals_of)
        if not self._is_bound(p, node.type):
            return p
        self._typing.note_casts(value)
        found = [[NULL] if one is None else literals_of(one) for one in p.operands]
        if p.verb in _BOTH_SIDES:
            return self._share(self._compare(p, value, node.type, found[0][0]))
        if p.verb is Verb.BETWEEN:
            return self._between(p, value, node.type, found[0][0], found[1][0])
        return self._share(self._member(p, value, node.type, [one for some in found for one in some]))

    def _share(self, p: Predicate) -> Predicate:
        return self._known.setdefault(p, p)

    def _node(self, value: ComputedValue) -> ValueNode | None:
        """Returns the typed tree of a value; None if the schema refuses it, which others say."""
        try:
            node: ValueNode = self._typing.node(self._typing.normal(value))
        except Refusal:
            return None
        return node

    def _is_bound(self, p: Predicate, type: str) -> bool:
        """Returns whether the literals of a comparison decide its casts."""
        kinds = {operand.kind for operand in p.operands if operand is not None}
        if p.verb not in (*_BOTH_SIDES, Verb.BETWEEN, Verb.IN):
            return False
        if type == "string" or Kind.STRING not in kinds:
            return type == "string" and bool(kinds - {Kind.STRING, Kind.BINARY})
        return is_number(type) or (type in INSTANTS and p.verb is Verb.IN and not self._typing.is_ansi)

    def _bind_elements(self, p: Predicate, literals_of: LiteralsOf) -> Predicate:
        """Writes the literals of a condition on elements into it, if it needs casts.

        The condition itself has its casts where it is compiled.
        """
        try:
            self._check_elements(p)
        except Refusal:
            return _write_elements(p, literals_of)
        return p

    def _bind_pattern(self, p: Predicate, value: ComputedValue, type: str, literals_of: LiteralsOf) -> Predicate:
        """Casts a value and a pattern to texts."""
        operand = p.operands[0]
        if operand is not None and operand.kind in (Kind.INT, Kind.DECIMAL, Kind.DOUBLE, Kind.BOOL):
            text = self._constant(literals_of(operand)[0], "string")
            p = replace(p, operands=(Operand(Kind.STRING, value=text),))
        if is_shown(type) or type == "boolean":
            p = replace(p, subject=_cast(value, "string"))
        return self._share(p)

    def _compare(self, p: Predicate, value: ComputedValue, type: str, literal: ComputedValue) -> Predicate:
        to = self._compared(p, type, literal)
        if to is None:
            return p
        return replace(p, subject=self._cast_subject(p, value, type, to), operands=(self._operand(literal, to),))

    def _compared(self, p: Predicate, type: str, literal: ComputedValue) -> str | None:
        is_equality = p.verb in (Verb.EQ, Verb.NE, Verb.SAME)
        return compared_type(type, _type_of(literal), self._typing.is_ansi, is_equality)

    def _between(self, p: Predicate, value: ComputedValue, type: str, low: ComputedValue, high: ComputedValue) -> Expr:
        """Casts both ends of BETWEEN, which may get different types."""
        ends = [self._compared(p, type, end) for end in (low, high)]
        if ends[0] == ends[1] and ends[0] is not None:
            operands = self._operand(low, ends[0]), self._operand(high, ends[0])
            return self._share(replace(p, subject=self._cast_subject(p, value, type, ends[0]), operands=operands))
        if p.weighs is not None:
            raise Refusal("the ends of BETWEEN get different types here: write two comparisons, each with a weight")
        verbs = (Verb.LT, Verb.GT) if p.negated else (Verb.GE, Verb.LE)
        parts = [
            self._share(self._compare(replace(p, verb=verb, operands=(operand,), negated=False), value, type, end))
            for verb, operand, end in zip(verbs, p.operands, (low, high), strict=True)
        ]
        return Or(tuple(parts)) if p.negated else And(tuple(parts))

    def _member(self, p: Predicate, value: ComputedValue, type: str, members: list[ComputedValue]) -> Predicate:
        """Casts a value and the literals of an IN to one type."""
        types = [type, *map(_type_of, members)]
        to = common_type(types, self._typing.is_ansi, self._typing.wider)
        if to is None:
            return p
        operands = [self._operand(member, to) for member in members]
        if to != "string" or type == "string":
            return replace(p, subject=self._cast_subject(p, value, type, to), operands=_join(operands))
        # A value that becomes a text is one of few values, unless several have the same text
        is_plain = all(one is None or _DATE.fullmatch(str(one.value)) for one in operands)
        if type in INTEGERS or is_decimal(type) or (type == "date" and is_plain):
            values = [None if one is None else self._value_written(str(one.value), type) for one in operands]
            kept = [one for one, text in zip(values, operands, strict=True) if one is not None or text is None]
            if any(one is not None for one in kept):
                return replace(p, operands=_join(kept))
        return replace(p, subject=_cast(value, "string"), operands=_join(operands))

    def _value_written(self, text: str, type: str) -> Operand | None:
        """Returns the value that Spark writes as a text, None if there is none."""
        literal = ComputedValue("literal", ("string", text))
        value = self._constant(literal, type)
        if value is None or self._constant(literal, type, "string") != text:
            return None
        return Operand(Kind.DATE if type == "date" else _KINDS[value.__class__], value=value)

    def _cast_subject(self, p: Predicate, value: ComputedValue, type: str, to: str) -> Subject:
        """Returns a text as a value of another type; numbers meet literals of all types."""
        return _cast(value, to) if type != to and "string" in (type, to) else p.subject

    def _operand(self, literal: ComputedValue, to: str) -> Operand | None:
        """Returns the operand of a literal that is cast, None for NULL."""
        type = _type_of(literal)
        if type == "void":
            return None
        if "string" not in (type, to) and (type in FRACTIONS or to not in FRACTIONS):
            return _literal_operand(literal)
        value = self._constant(literal, to)
        if value is None:
            return None
        value = NAN if isinstance(value, float) and math.isnan(value) else value
        return Operand(_KINDS[value.__class__], value=value)

    def _constant(self, literal: ComputedValue, *types: str) -> Any:
        """Returns the value of a literal that is cast to types, one after the other.

        Raises Refusal: with ANSI, it does not fit.
        """
        value = literal
        for type in types:
            value = ComputedValue("cast", (value, type))
        normal = self._typing.normal(value)
        node = self._typing.node(normal)
        self._typing.note(normal, node)
        try:
            return constant(node).as_py()
        except EventError as error:
            raise Refusal(f"{value.sql()} cannot be computed: {error}") from None


def _value_of(subject: Subject) -> ComputedValue | None:
    """Returns the value that a subject is; None for a list or the like."""
    if subject.computed is not None:
        return subject.computed
    column = ComputedValue("column", subject.path)
    if subject.size:
        return ComputedValue("size", (column,)) if subject.key is None else None
    return column if subject.key is None else ComputedValue("entry", (column, subject.key))


def _cast(value: ComputedValue, type: str) -> Subject:
    return Subject((), computed=ComputedValue("cast", (value, type)))


def _type_of(literal: ComputedValue) -> str:
    return "void" if literal.function == "null" else str(literal.arguments[0])


def _literal_operand(literal: ComputedValue) -> Operand:
    """Returns the operand of a literal as it is written."""
    type, text = literal.arguments
    if type in INTEGERS:
        return Operand(Kind.INT, value=int(text))
    if is_decimal(type):
        return Operand(Kind.DECIMAL, value=Decimal(text))
    if type in FRACTIONS:
        return Operand(Kind.DOUBLE, value=float(text) if text != "nan" else NAN)
    if type == "boolean":
        return Operand(Kind.BOOL, value=text == "true")
    return Operand(Kind[type.upper()], value=text)


def _join(operands: Sequence[Operand | None]) -> tuple[Operand | None, ...]:
    """Returns the operands of a list; those of one kind are one operand."""
    kinds = {None if one is None else one.kind for one in operands}
    if kinds in ({Kind.INT}, {Kind.DECIMAL}, {Kind.STRING}):
        return (Operand(kinds.pop(), many=True, value=tuple([one.value for one in operands if one is not None])),)  # type: ignore[arg-type]
    return tuple(operands)


def _write(p: Predicate, literals_of: LiteralsOf) -> Predicate:
    """Writes the literals of a predicate instead of their slots."""
    if p.verb is Verb.CALL and not p.operands:
        return _write_elements(p, literals_of)
    operands: list[Operand | None] = []
    for operand in p.operands:
        if operand is None or operand.slot < 0:
            operands.append(operand)
        else:
            operands += [_written(one) for one in literals_of(operand)]
    return replace(p, operands=tuple(operands))


def _write_elements(p: Predicate, literals_of: LiteralsOf) -> Predicate:
    """Writes the literals of a condition on elements."""
    assert p.subject.computed is not None
    function, (list_of, test, *count) = p.subject.computed
    test = Lambda(test.parameter, rebuild(test.condition, lambda inner: _write(inner, literals_of)))
    return replace(p, subject=Subject((), computed=ComputedValue(function, (list_of, test, *count))))


def _written(literal: ComputedValue) -> Operand:
    """Returns the operand of a literal, which keeps its suffix."""
    type, text = literal.arguments
    if type == "float":
        raise Refusal(f"{literal.sql()} is a FLOAT, which is not cast on elements: write {text}D")
    is_suffixed = type in INTEGERS and literal != literal_of(Kind.INT, text)
    return Operand(Kind.INT, value=literal.sql()) if is_suffixed else _literal_operand(literal)


def value_literals(operand: Operand) -> list[ComputedValue]:
    """Returns the literals of an operand that has its values."""
    values = operand.value if operand.many else [operand.value]
    return [literal_of(operand.kind, one) for one in values]


def given_literals(operand: Operand) -> list[ComputedValue]:
    """Returns the literals of an operand within a condition on elements.

    Raises Refusal: they have slots, so they must be written first.
    """
    if operand.slot >= 0:
        raise Refusal("a literal is not known")
    return value_literals(operand)
