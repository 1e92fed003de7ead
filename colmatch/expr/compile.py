"""Expressions -> forms and literals: the front end's door, with the form cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colmatch.errors import ExpressionError
from colmatch.expr.ast import Constant, Expr, Predicate, Refusal, Truth, rebuild, walk
from colmatch.expr.forms import Form, Kind, Operand
from colmatch.expr.normalise import Normaliser
from colmatch.expr.split import MARK, places, split
from colmatch.options import Options
from colmatch.schema import Attributes, Schema

if TYPE_CHECKING:
    from colmatch.expr.tokens import Reading


class Compiler:
    """Turns expressions into forms, over one schema. Not for several threads at once.

    Parameters
    ----------
    schema : columns that expressions may use
    attributes : takes up the attributes that they do use (also those of an expression that is refused later on)
    """

    def __init__(self, schema: Schema, attributes: Attributes, options: Options) -> None:
        from colmatch.expr.parse import Parser  # brings sqlglot, which takes longer to import than everything else here

        self._max_depth = options.max_depth
        self._parser = Parser(options.max_depth)
        self._normaliser = Normaliser(schema, attributes, options)
        self._shapes: dict[str, Form | None] = {}  # by split(text)[0]; None: its texts must be read properly
        self._readings: dict[Any, Form] = {}  # by the tokens of a proper reading
        self._trees: dict[Any, Form] = {}  # by structure

    def form(self, expression: str | Expr) -> tuple[Form, list[Any]]:
        """The form, the same object for every expression of the same shape, and its literals by slot.

        A literal is its text (of a negative number in a list: with the sign), bytes for a binary one, or for a built expression the
        Python value; where the slot's operand is ``many``, a list of them.

        Raises
        ------
        ExpressionError : without id; with line and column when it is a text
        """
        if isinstance(expression, str):
            try:
                shape, literals = split(expression)
            except ValueError:
                return self._read(expression, None, None)
            form = self._shapes.get(shape)
            if form is not None and (expression.isascii() or _is_text(expression)):
                return form, literals
            return self._read(expression, shape, literals)
        if isinstance(expression, Expr):
            return self._built(expression.node())
        raise ExpressionError(f"an expression is a text or is built with col(...), not {type(expression).__name__}")

    def place(self, expression: str | Expr, slot: int) -> tuple[int, int] | None:
        """Line and column, from 1, of the literal in ``slot``; None for a built expression."""
        if not isinstance(expression, str):
            return None
        reading = self._parser.read(expression)
        return reading.place(reading.literal_at[slot])

    def _read(self, text: str, shape: str | None, literals: list[Any] | None) -> tuple[Form, list[Any]]:
        """The form of a text whose shape is new, or that ``split`` cannot be trusted with."""
        from colmatch.expr.parse import refused

        parser, reading = self._parser, None
        try:
            reading = parser.read(text)
            if shape is not None and shape not in self._shapes and MARK not in text:
                if literals == reading.literals and places(text) == reading.literal_at:
                    form = self._normaliser.form(parser.parse(reading), len(literals))
                    self._shapes[shape] = form
                    return form, literals
                self._shapes[shape] = None
            key = _key(reading)
            found = self._readings.get(key)
            if found is None:
                found = self._readings[key] = self._normaliser.form(parser.parse(reading), len(reading.literals))
            return found, reading.literals
        except Refusal as refusal:
            raise refused(refusal, reading, text) from None

    def _built(self, tree: Expr) -> tuple[Form, list[Any]]:
        """The form of a tree with values in it."""
        from colmatch.expr.parse import refused

        try:
            key, literals = self._structure(tree)
            found = self._trees.get(key)
            if found is None:
                found = self._trees[key] = self._normaliser.form(self._slotted(tree), len(literals))
            return found, literals
        except Refusal as refusal:
            raise refused(refusal, None, None) from None

    def _structure(self, tree: Expr) -> tuple[tuple[Any, ...], list[Any]]:
        """What two trees share when they differ in their literals alone, and the literals."""
        key: list[Any] = []
        literals: list[Any] = []
        for node, children in walk(tree, self._max_depth):
            if isinstance(node, Predicate):
                key.append(node.verb)
                key.append(node.subject)
                for operand in node.operands:
                    if operand is None:
                        key.append(None)
                    elif operand.kind is Kind.BOOL:
                        key.append((operand.many, operand.value))
                    else:
                        key.append(-operand.kind - 1 if operand.many else operand.kind)
                        literals.append(list(operand.value) if operand.many else operand.value)
                key.append("")
            elif isinstance(node, (Truth, Constant)):
                key.append((type(node), node.value))
            else:
                key.append((type(node), children))
        return tuple(key), literals

    def _slotted(self, tree: Expr) -> Expr:
        """``tree`` with slots, numbered in reading order, for values."""
        parser, slot = self._parser, 0

        def place(operand: Operand | None) -> Operand | None:
            nonlocal slot
            if operand is None:
                return None
            if operand.kind is Kind.BOOL:
                return operand if operand.many else parser.boolean(bool(operand.value))
            slot += 1
            return parser.operand(operand.kind, slot - 1, operand.many)

        return rebuild(tree, lambda p: parser.predicate(p.verb, p.subject, tuple([place(operand) for operand in p.operands])))


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(reading: Reading) -> tuple[Any, ...]:
    """What two readings share when they differ in their literals alone."""
    return (tuple([(token.token_type, token.text) for token in reading.tokens]), tuple(reading.operands), tuple(reading.subjects))
