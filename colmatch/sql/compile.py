"""Forms and literals of expressions: the front end's entry point, with its cache.

A text of a known shape costs a dictionary look-up. A text of a new shape is parsed as a whole. In
columns of texts, kernels find the phrases, so that each phrase is parsed once (``phrases.py``).

Literals within a computed value are a part of its attribute. So texts of one shape share a form
only where these literals are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colmatch.errors import ExpressionError
from colmatch.expr.ast import Expr, Refusal
from colmatch.expr.normalise import Normaliser
from colmatch.expr.shared import TreeForms
from colmatch.expr.size import check_size
from colmatch.expr.special import WrongArgument
from colmatch.given.incoming import is_text
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema, definitions_of
from colmatch.given.session import SessionParts
from colmatch.kinds.settings import Budget
from colmatch.lowering.forms import Form
from colmatch.sql.quotes import Quotes
from colmatch.sql.split import MARK, find_dropped_escape, has_odd_escape, literal_places, split

if TYPE_CHECKING:
    from colmatch.sql.literals import NumberedText


class FormCompiler:
    """A compiler of expressions into forms, over one schema. It is not for several threads at once.

    Parameters
    ----------
    schema : columns that expressions may use
    attributes : collects the attributes that expressions use (also if an expression is refused
        later on)
    budget : how many conjunctions an expression may be multiplied out into
    by_attribute : whether subscriptions give weights to attributes
    two_valued : whether a predicate on an absent value is False instead of Unknown
    """

    def __init__(
        self,
        schema: Schema,
        attributes: Attributes,
        options: Options,
        budget: Budget,
        by_attribute: bool = False,
        two_valued: bool = False,
    ) -> None:
        from colmatch.sql.parse import Parser  # brings sqlglot, which takes longer to import than everything else here

        self.options = options
        self.parser = Parser(
            options.max_depth, two_valued, Quotes(schema, options.double_quotes), options.casts == "spark"
        )
        self.normaliser = Normaliser(schema, attributes, budget, by_attribute, two_valued, options)
        if definitions_of(schema):
            from colmatch.sql.definitions import DefinitionReader

            definitions = DefinitionReader(schema, self.parser, self.normaliser)
            self.normaliser.use(definitions)
            definitions.check()
        self._trees = TreeForms(self.normaliser, self.parser.nodes, options.max_depth)
        self._forms: dict[Any, Form] = {}  # by ``_key``, or by ``_tokens`` for texts that are always read properly
        self._baked: dict[str, list[int]] = {}  # shape -> slots of literals that distinguish forms

    @property
    def session_parts(self) -> SessionParts:
        """Returns computed values that depend on the session."""
        return self.normaliser.typing.session_parts

    def form(self, expression: str | Expr) -> tuple[Form, list[Any]]:
        """Makes the form of an expression, and its literals by slot, as ``_compile`` does.

        Arguments of a special function are one literal, in the first of their slots.
        """
        form, literals = self._compile(expression)
        if form.packings:
            from colmatch.sql.special import FaultyLiteral, pack

            try:
                pack(form, literals, self.normaliser.elements.session)
            except FaultyLiteral as fault:
                place = self.place(expression, fault.slot)
                line, column = (None, None) if place is None else place
                raise ExpressionError(str(fault), line=line, column=column) from None
            except WrongArgument:
                self._refuse(self.parser.quotes.written(str(expression)))
                raise
        return form, literals

    def _compile(self, expression: str | Expr) -> tuple[Form, list[Any]]:
        """Makes the form of an expression, and its literals by slot.

        Every expression of the same shape has the same object for its form.

        A literal is its text, bytes for a binary one, or for a built expression the Python value.
        Negative numbers in a list have their sign. The literal is a list if the slot's operand is
        ``many``.

        Raises ExpressionError: it has no id; if the expression is a text, it has line and column.
        """
        if isinstance(expression, str):
            expression = str.__str__(expression)
            check_size(expression, self.options.max_text_bytes)
            expression = self.parser.quotes.written(expression)
            shape, literals = self._split(expression)
            form = None if shape is None else self._forms.get(self._key(shape, literals))
            return self._read(expression, shape, literals) if form is None else (form, literals)
        if isinstance(expression, Expr):
            return self._compile_tree(expression.node())
        if isinstance(expression, ExpressionError):  # of a text with an unknown parameter
            raise expression
        if expression is None:
            raise ExpressionError("the expression is NULL: write a condition, or TRUE")
        raise ExpressionError(f"an expression is a text or is built with col(...), not {type(expression).__name__}")

    def place(self, expression: str | Expr, slot: int) -> tuple[int, int] | None:
        """Returns line and column, from 1, of the literal in ``slot``; None for a built one."""
        if not isinstance(expression, str):
            return None
        reading = self.parser.read(self.parser.quotes.written(expression))
        return reading.place(reading.literal_at[slot])

    def _split(self, text: str) -> tuple[str | None, list[Any]]:
        """Returns shape and literals of a text.

        The shape is None for a text that must be read properly, since one of its literals may be an
        error.
        """
        if MARK in text or not is_text(text) or self.parser.quotes.needs_reading(text) or has_odd_escape(text):
            return None, []
        try:
            return split(text)
        except ValueError:
            return None, []

    def _key(self, shape: str, literals: list[Any]) -> Any:
        """Returns the key of texts with one form: the shape, and literals in computed values."""
        baked = self._baked.get(shape)
        return shape if baked is None else (shape, repr([literals[slot] for slot in baked]))

    def _read(self, text: str, shape: str | None, literals: list[Any]) -> tuple[Form, list[Any]]:
        """Returns form and literals of a text with a new shape, or one that cannot be trusted."""
        from colmatch.sql.refused import make_error

        reading = None
        try:
            reading = self.parser.read(text)
            if shape is not None and _agree(text, literals, reading):
                form = self._form(reading)
                if reading.baked:
                    self._baked[shape] = sorted(reading.baked)
                self._forms[self._key(shape, literals)] = form
                return form, literals
            key = _tokens(reading)
            cached_form = self._forms.get(key)
            form = self._form(reading) if cached_form is None else cached_form
            if key is not None and not reading.baked:
                self._forms[key] = form
            return form, reading.literals
        except Refusal as refusal:
            raise make_error(refusal, reading, text) from None

    def _form(self, reading: NumberedText) -> Form:
        from colmatch.sql.special import with_packings

        tree = self.normaliser.casts.bind(self.parser.parse(reading), self.parser.literals_of(reading))
        return with_packings(self.normaliser.form(tree, len(reading.literals)))

    def _refuse(self, text: str) -> None:
        """Raises the error of a text of a known form, with its place."""
        from colmatch.sql.refused import make_error

        reading = self.parser.read(text)
        try:
            self.parser.parse(reading)
        except Refusal as refusal:
            raise make_error(refusal, reading, text) from None

    def _compile_tree(self, tree: Expr) -> tuple[Form, list[Any]]:
        """Returns form and literals of a tree with values in it."""
        from colmatch.sql.refused import make_error

        try:
            return self._trees.form(tree)
        except Refusal as refusal:
            raise make_error(refusal, None, None) from None


def _agree(text: str, literals: list[Any], reading: NumberedText) -> bool:
    """Returns whether ``split`` has found the literals of a reading at their places."""
    return (
        not reading.checked
        and not reading.alone
        and literals == reading.literals
        and literal_places(text) == reading.literal_at
    )


def _tokens(reading: NumberedText) -> tuple[Any, ...] | None:
    """Returns a key that is equal for readings that differ in literals alone.

    The key is None where a literal may be within a computed value, or an error.
    """
    if reading.computed or any(find_dropped_escape(reading.text, at) for at in reading.literal_at):
        return None
    return (
        tuple([(token.token_type, token.text) for token in reading.tokens]),
        tuple(reading.operands),
        tuple(reading.subjects),
    )
