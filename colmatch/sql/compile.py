"""Expressions -> forms and literals: the front end's door, with its caches.

A text whose shape is known costs a dictionary look-up. A text whose shape is new is put together
from its *phrases*, the pieces between the ANDs and ORs outside parentheses: nothing binds weaker
than these two, so a phrase means the same by itself, and ``a1 BETWEEN <int> AND <int>`` is parsed
once however many texts have it. Of 100,000 texts without two of one shape, the parser sees a few
thousand phrases; to parse the texts took four times as long. Whatever does not work out so is
parsed as a whole, which also finds the place of errors.

Literals within a computed value are a part of its attribute. So texts of one shape share a form
only where these literals are equal (``ByLiterals``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from colmatch.errors import ExpressionError
from colmatch.expr.ast import And, Expr, Or, Refusal, conjoin
from colmatch.expr.normalise import Normaliser
from colmatch.expr.shared import TreeForms
from colmatch.expr.size import check_size
from colmatch.expr.special import WrongArgument
from colmatch.given.incoming import is_text
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema
from colmatch.kinds.settings import Budget
from colmatch.lowering.forms import Form
from colmatch.sql.quotes import Quotes
from colmatch.sql.split import MARK, fill, has_odd_escape, raw_literals, split

if TYPE_CHECKING:
    from colmatch.sql.literals import Reading


# without the look-behind, a megabyte of spaces takes an hour
_JOIN = re.compile(r"(?<!\s)(\s+(?:and|or)\s+)", re.IGNORECASE)
_PIECES = 8  # most pieces of a phrase; with more ANDs in parentheses, the text is parsed as a whole


class Phrase(NamedTuple):
    """A condition that stands between the ANDs and ORs of a text."""

    tree: Expr  # with slots from 0
    slots: int
    placed: dict[int, Expr]  # the tree with slots from another number
    baked: tuple[int, ...]  # slots of literals that are a part of what is computed, as in x % 7 = 1


class ByLiterals(NamedTuple):
    """What texts of one shape come to that differ in literals of computed values.

    These are in ``baked`` slots; ``known`` has the form, or the phrase, for each of their values.
    """

    baked: tuple[int, ...]
    known: dict[tuple[Any, ...], Any]

    def key(self, literals: list[Any], first: int = 0) -> tuple[Any, ...]:
        """Returns the literals that matter, of a text in which those of the shape begin at
        ``first``.
        """
        found = [literals[first + slot] for slot in self.baked]
        return tuple([tuple(one) if isinstance(one, list) else one for one in found])


def _kept(known: dict[str, Any], shape: str, baked: Iterable[int], literals: list[Any], first: int, found: Any) -> None:
    """Keeps what was found for a shape, or for those of its texts that have the same literals."""
    if not baked:
        known[shape] = found
        return
    same = known.get(shape)
    if not isinstance(same, ByLiterals):
        same = known[shape] = ByLiterals(tuple(baked), {})
    same.known[same.key(literals, first)] = found


class Compiler:
    """Turns expressions into forms, over one schema. Not for several threads at once.

    Parameters
    ----------
    schema : columns that expressions may use
    attributes : takes up the attributes that they do use (also those of an expression that is
        refused later on)
    budget : how many conjunctions an expression may be multiplied out into
    by_attribute : whether subscriptions give weights to attributes
    two_valued : whether what is said of an absent value is False instead of Unknown
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
        self.parser = Parser(options.max_depth, two_valued, Quotes(schema, options.double_quotes))
        self.normaliser = Normaliser(schema, attributes, budget, by_attribute, two_valued, options)
        self._trees = TreeForms(self.normaliser, self.parser.nodes, options.max_depth)
        # by split(text)[0]; None: its texts must be read properly
        self._shapes: dict[str, Form | ByLiterals | None] = {}
        # by their shape; None: not a condition by itself
        self._phrases: dict[str, Phrase | ByLiterals | None] = {}
        self._readings: dict[Any, Form] = {}  # by the tokens of a proper reading

    @property
    def zoned(self) -> str | None:
        """A computed value that depends on the time zone of the options, if there is one."""
        return self.normaliser.typing.zoned

    def form(self, expression: str | Expr) -> tuple[Form, list[Any]]:
        """Makes the form of an expression, and its literals by slot, as ``_unpacked`` does.

        Arguments of special functions are one literal in the first of their slots.
        """
        try:
            form, literals = self._unpacked(expression)
        finally:
            self.parser.forget()
        if form.packings:
            from colmatch.sql.special import pack

            try:
                pack(form, literals)
            except WrongArgument:
                self._refuse(str(expression))
                raise
        return form, literals

    def _unpacked(self, expression: str | Expr) -> tuple[Form, list[Any]]:
        """Makes the form of an expression, and its literals by slot.

        Every expression of the same shape has the same object for its form.

        A literal is its text (of a negative number in a list: with the sign), bytes for a binary
        one, or for a built expression the Python value; where the slot's operand is ``many``, a
        list of them.

        Raises ExpressionError: without id; with line and column when it is a text.
        """
        if isinstance(expression, str):
            expression = str.__str__(expression)
            check_size(expression, self.options.max_text_bytes)
            quotes = self.parser.quotes
            expression = quotes.written(expression)
            try:
                shape, literals = split(expression)
            except ValueError:
                return self._read(expression, None, None)
            if MARK not in expression and is_text(expression) and not _is_odd(expression, quotes):
                form = self._shapes.get(shape)
                several = type(form) is ByLiterals
                if several:
                    form = form.known.get(form.key(literals))  # type: ignore[union-attr]
                if form is None and (several or shape not in self._shapes):
                    form = self._assembled(expression, shape, literals)
                if form is not None:
                    return form, literals  # type: ignore[return-value]
            return self._read(expression, shape, literals)
        if isinstance(expression, Expr):
            return self._built(expression.node())
        if expression is None:
            raise ExpressionError("the expression is NULL: write a condition, or TRUE")
        raise ExpressionError(f"an expression is a text or is built with col(...), not {type(expression).__name__}")

    def place(self, expression: str | Expr, slot: int) -> tuple[int, int] | None:
        """Line and column, from 1, of the literal in ``slot``; None for a built expression."""
        if not isinstance(expression, str):
            return None
        reading = self.parser.read(self.parser.quotes.written(expression))
        return reading.place(reading.literal_at[slot])

    def _assembled(self, text: str, shape: str, literals: list[Any]) -> Form | None:
        """Returns the form of a new shape, put together from its phrases.

        None where it has other parts than phrases that can stand alone.
        """
        if "--" in shape or "/*" in shape or shape.count("(") != shape.count(")"):
            return None
        baked: list[int] = []
        tree = self._tree(text, shape, literals, baked)
        if tree is None:
            return None
        try:
            form = self._form(tree, len(literals))
        except Refusal:
            return None
        _kept(self._shapes, shape, baked, literals, 0, form)
        return form

    def _refuse(self, text: str) -> None:
        """Raises what is wrong with a text of a known form, with its place."""
        from colmatch.sql.refused import refused

        reading = self.parser.read(self.parser.quotes.written(text))
        try:
            self.parser.parse(reading)
        except Refusal as refusal:
            raise refused(refusal, reading, text) from None

    def _form(self, tree: Expr, slots: int) -> Form:
        from colmatch.sql.special import with_packings

        return with_packings(self.normaliser.form(tree, slots))

    def _tree(self, text: str, shape: str, literals: list[Any], baked: list[int]) -> Expr | None:
        """Returns the tree that the phrases of a text make; ``baked`` takes in their baked
        slots.
        """
        words = _JOIN.split(shape)
        either: list[Expr] = []
        every: list[Expr] = []
        raw: list[str] = []  # the text's literals, once some phrase is new
        slot = i = 0
        while i < len(words):
            piece = words[i]
            phrase = self._phrase(piece, slot, text, raw, literals)
            for _ in range(_PIECES):
                if phrase is not None or i + 2 >= len(words):
                    break
                piece += words[i + 1] + words[i + 2]
                i += 2
                phrase = self._phrase(piece, slot, text, raw, literals)
            if phrase is None:
                return None
            tree = phrase.placed.get(slot)
            if tree is None:
                tree = phrase.placed[slot] = self.parser.nodes.shifted(phrase.tree, slot)
            every.append(tree)
            baked += [slot + i for i in phrase.baked]
            slot += phrase.slots
            if i + 1 < len(words) and words[i + 1].strip() in ("OR", "or", "Or", "oR"):
                either.append(conjoin(And, every))
                every = []
            i += 2
        either.append(conjoin(And, every))
        return conjoin(Or, either)

    def _phrase(self, piece: str, slot: int, text: str, raw: list[str], known: list[Any]) -> Phrase | None:
        """Returns the phrase of this shape, None where it is not a condition by itself.

        Its literals in ``text`` begin with number ``slot``.

        ``known`` are all literals of ``text``, and ``raw`` is filled with how they are written.
        """
        try:
            phrase = self._phrases[piece]
        except KeyError:
            pass
        else:
            if type(phrase) is not ByLiterals:
                return phrase  # type: ignore[return-value]
            same = phrase.known.get(phrase.key(known, slot))
            if same is not None:
                return same  # type: ignore[no-any-return]
        if piece.count("(") > piece.count(")"):
            return None
        found: Phrase | None = None
        count = piece.count(MARK)
        if not raw:
            raw.extend([literal for literal, _ in raw_literals(text)])
        alone = fill(piece, raw[slot : slot + count])
        try:
            shape, literals = (piece, known) if alone == text else split(alone)
            reading = self.parser.read(alone)
            if not reading.joined and shape == piece and _agree(alone, literals, reading):
                tree = self.parser.parse(reading)
                found = Phrase(tree, count, {0: tree}, tuple(sorted(reading.baked)))
        except (Refusal, ValueError):
            pass
        if found is not None or piece not in self._phrases:
            _kept(self._phrases, piece, found.baked if found else (), known, slot, found)
        return found

    def _read(self, text: str, shape: str | None, literals: list[Any] | None) -> tuple[Form, list[Any]]:
        """Returns the form of a text whose shape is new, or that ``split`` cannot be trusted
        with.
        """
        from colmatch.sql.refused import refused

        parser, reading = self.parser, None
        try:
            reading = parser.read(text)
            if shape is not None and shape not in self._shapes and MARK not in text:
                if literals is not None and _agree(text, literals, reading):
                    form = self._form(parser.parse(reading), len(literals))
                    _kept(self._shapes, shape, sorted(reading.baked), literals, 0, form)
                    return form, literals
                self._shapes[shape] = None
            if reading.computed:  # literals may be a part of its attributes
                return self._form(parser.parse(reading), len(reading.literals)), reading.literals
            key = _key(reading)
            found = self._readings.get(key)
            if found is None:
                found = self._form(parser.parse(reading), len(reading.literals))
                if not reading.baked:
                    self._readings[key] = found
            return found, reading.literals
        except Refusal as refusal:
            raise refused(refusal, reading, text) from None

    def _built(self, tree: Expr) -> tuple[Form, list[Any]]:
        """Returns the form of a tree with values in it."""
        from colmatch.sql.refused import refused

        try:
            return self._trees.form(tree)
        except Refusal as refusal:
            raise refused(refusal, None, None) from None


def _is_odd(text: str, quotes: Quotes) -> bool:
    """Returns whether a text may have a literal that is an error, though its shape is none."""
    return quotes.needs_reading(text) or has_odd_escape(text)


def _agree(text: str, literals: list[Any], reading: Reading) -> bool:
    """Returns whether ``split`` has found the literals that are there, where they are."""
    return (
        not reading.checked
        and not reading.alone
        and literals == reading.literals
        and [at for _, at in raw_literals(text)] == reading.literal_at
    )


def _key(reading: Reading) -> tuple[Any, ...]:
    """Returns what two readings share when they differ in their literals alone."""
    return (
        tuple([(token.token_type, token.text) for token in reading.tokens]),
        tuple(reading.operands),
        tuple(reading.subjects),
    )
