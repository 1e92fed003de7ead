"""Definitions: conditions with names, which other expressions use like Boolean columns.

A definition is read once, and its formulas have its literals as values. So all expressions that use
it share its leaves. A larger definition is a computed value, which each event has computed once,
however many expressions use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import TypeVar

from colmatch.errors import ExpressionError
from colmatch.expr.ast import Refusal
from colmatch.expr.computed import ComputedValue
from colmatch.expr.normalise import Normaliser
from colmatch.expr.tree import All, Formula, Modes, fold, size_of
from colmatch.given.schema import Schema, definition_named, definitions_of
from colmatch.lowering.forms import Leaf
from colmatch.sql.literals import NumberedText
from colmatch.sql.parse import Parser
from colmatch.sql.refused import make_error
from colmatch.sql.special import FaultyLiteral, with_literals

_DEEPEST = 32  # definitions within one another
MOST_PREDICATES = 10_000  # of a definition, with those of other definitions that are written out
MOST_PARTS = 500  # of a value; beyond, a definition consists of conditions on the values of others

Meaning = TypeVar("Meaning")


class DefinitionReader:
    """A reader of the definitions of one schema.

    Parameters
    ----------
    parser, normaliser : of the compiler whose expressions use them
    """

    def __init__(self, schema: Schema, parser: Parser, normaliser: Normaliser) -> None:
        self._schema, self._texts = schema, definitions_of(schema)
        self._parser, self._normaliser = parser, normaliser
        self._within: list[str] = []  # names of definitions that are being read
        self._modes: dict[str, Modes] = {}
        self._values: dict[str, ComputedValue] = {}
        self._sizes: dict[str, int] = {}

    def check(self) -> None:
        """Reads all definitions.

        Raises ExpressionError: one is invalid. Its message begins with the name.
        """
        for name in self._texts:
            try:
                self.modes(name)
            except ExpressionError as error:
                message = error.message.removeprefix(f"definition {name!r}: ")
                raise ExpressionError(f"definition {name!r}: {message}", line=error.line, column=error.column) from None

    def modes(self, name: str) -> Modes:
        """Returns the formulas of a definition, with its literals as values.

        Raises ExpressionError: the definition is invalid, or uses itself.
        """
        if name not in self._modes:
            self._modes[name] = self._read(name, self._modes_of)
        return self._modes[name]

    def value(self, name: str) -> ComputedValue:
        """Returns a definition as a computed value.

        Raises Refusal: the definition has a condition that cannot be a part of a value.
        """
        if name not in self._values:
            try:
                self._values[name] = self._read(name, self._parser.value)
            except ExpressionError as error:
                raise Refusal(f"definition {name!r} cannot be a part of a value: {error.message}") from None
        if self._size(name) > MOST_PARTS:
            raise Refusal(f"definition {name!r} is too large for a part of a value")
        return self._values[name]

    def _size(self, name: str) -> int:
        """Returns the number of parts of a definition as a value, other definitions written out.

        Raises Refusal: as ``value`` does, of this definition or of one in it.
        """
        if name not in self._sizes:
            size, stack = 0, [self._values[name]]
            with self._reading(name):
                while stack:
                    part = stack.pop()
                    size += 1
                    if part.function == "column":
                        other = definition_named(self._schema, part.arguments)
                        if other is not None:
                            self.value(other)
                            size += self._size(other)
                    else:
                        stack += [inner for inner in part.arguments if isinstance(inner, ComputedValue)]
            self._sizes[name] = size
        return self._sizes[name]

    def _read(self, name: str, meaning_of: Callable[[NumberedText], Meaning]) -> Meaning:
        text = self._parser.quotes.written(self._texts[name])
        reading = None
        try:
            with self._reading(name):
                reading = self._parser.read(text)
                return meaning_of(reading)
        except Refusal as refusal:
            raise make_error(refusal, reading, text) from None

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """Notes that a definition is being read.

        Raises Refusal: it is being read already, so it uses itself.
        """
        if name in self._within:
            circle = [*self._within[self._within.index(name) :], name]
            raise Refusal(f"definitions use one another in a circle: {' -> '.join(circle):.500}")
        if len(self._within) >= _DEEPEST:
            raise Refusal(f"definitions use one another more than {_DEEPEST} deep: write some of them out")
        self._within.append(name)
        try:
            yield
        finally:
            self._within.pop()

    def _modes_of(self, reading: NumberedText) -> Modes:
        bound = self._normaliser.casts.bind(self._parser.parse(reading), self._parser.literals_of(reading))
        session, known = self._normaliser.elements.session, dict[int, Leaf]()

        def fixed(leaf: Leaf) -> Leaf:
            if id(leaf) not in known:
                known[id(leaf)] = with_literals(leaf, reading.literals, session)
            return known[id(leaf)]

        def with_parts(group: All, parts: list[Formula]) -> All:
            other = copy(group)
            other.parts, other.scored = parts, None if group.scored is None else fixed(group.scored)
            return other

        def copied(formula: Formula) -> Formula:
            if isinstance(formula, bool):
                return formula
            result: Formula = fold(formula, fixed, with_parts)
            return result

        true, false, not_true, not_false = modes = self._normaliser.modes(bound)
        if any(not isinstance(one, bool) and size_of(one) > MOST_PREDICATES for one in modes):
            raise Refusal(
                f"written out, this has more than {MOST_PREDICATES:,} predicates: use fewer definitions in it"
            )
        try:
            return copied(true), copied(false), copied(not_true), copied(not_false)
        except FaultyLiteral as fault:
            raise Refusal(str(fault), slot=fault.slot) from None
