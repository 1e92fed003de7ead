"""The meanings of phrases of texts, each shape once.

Kernels cut a column of texts into phrases (``kernels/sql/``) and number the shapes of these. Here
each new shape is read like any text. Its formulas, one for each mode, become arrays over *leaves*.
With these, kernels put texts together.

A shape cannot be used if its first phrase is no condition by itself, or does not fit the schema. A
special function cannot be used either, nor can at_least. Texts with such a phrase are read one by
one. If the schema refuses its column, the error is kept for texts without any other fault.

A literal that the kernel did not find, such as ``X'1F'``, is a part of the shape. A literal in a
computed value, such as the 7 in ``x % 7 = 1``, becomes such a part once the shape has
been read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.growing import lengthen_array
from colmatch.expr.ast import Refusal, Subject
from colmatch.expr.normalise import Normaliser
from colmatch.expr.tree import Any_, Formula, Least, Modes, fold
from colmatch.given.schema import Type
from colmatch.kernels.sql import arrays as sq
from colmatch.kernels.sql.arrays import Meanings, Phrases, TokenTable
from colmatch.lowering.forms import NO_WEIGHT, PATTERNS, KeyTest, Leaf
from colmatch.lowering.groups import group_key
from colmatch.lowering.lower import WEIGHTS
from colmatch.sql.literals import NumberedText
from colmatch.sql.parse import Parser
from colmatch.sql.refused import make_error
from colmatch.sql.split import members, unescape

I64 = NDArray[np.int64]

LONGEST = 1 << 14  # most bytes of a usable shape
MOST_LITERALS = 256  # of a usable phrase; a list is one


class ConversionKey(NamedTuple):
    """The common part of tests with literals that are converted together."""

    type: Type
    test: KeyTest
    constant: tuple[bool, ...]  # of each operand: it is the same wherever the test is


class ShapeConstant(NamedTuple):
    """The value of an operand that is a part of a phrase's shape."""

    value: Any


class Meaning(NamedTuple):
    """The formulas of a phrase in each mode, and the sources of its literals."""

    depth: int
    formulas: Modes
    given: list[
        int | ShapeConstant
    ]  # by slot: the number of a literal that the kernel found, or a constant of the shape


class RefusedPhrase(NamedTuple):
    """The error for a phrase, wherever it is the only fault of a text."""

    message: str
    depth: int
    literal: int  # the literal of the phrase that is to blame, -1 where its column is
    column: re.Pattern[str]  # its name as a word, in any case

    def column_at(self, text: str) -> int | None:
        """Returns the column's offset in a text, in characters; None where it is there twice."""
        matches = list(self.column.finditer(text))
        return matches[0].start() if len(matches) == 1 else None


class Tests(NamedTuple):
    """The tests of leaves, and their operands."""

    conversion: I64  # of each test
    first: I64  # test -> operands
    literal: I64  # of each operand: a literal of its phrase, or as ``~i`` a constant
    slot: I64  # of each operand: its slot within its phrase, -1 for none
    weight: NDArray[np.float64]  # of each leaf, as ``lowering.lower.WEIGHTS`` has it


class PhraseBook:
    """The shapes of all phrases so far, over one schema.

    Parameters
    ----------
    parser, normaliser : of the compiler that reads texts one by one
    """

    def __init__(self, parser: Parser, normaliser: Normaliser) -> None:
        self._parser, self._normaliser = parser, normaliser
        self.count = 0
        size = 1 << 11
        whole = [np.empty(size, np.int64) for _ in range(4)]
        self.phrases = Phrases(
            np.full(2 * size, -1, np.int32),
            np.zeros(size, np.int64),
            np.empty(32 * size, np.uint8),
            np.empty(size, np.int32),
            *whole,
        )
        self._usable: list[bool] = []
        self._depth: list[int] = []
        self._sizes: list[int] = []
        self._first: list[int] = [0]
        self._formula: list[int] = []
        self._leaves: list[Leaf] = []
        self._leaf_first: list[int] = [0]
        self._numbers: dict[Any, int] = {}  # of leaves, by their ids and literals
        self.conversions: list[ConversionKey] = []
        self._conversion_numbers: dict[Any, int] = {}
        self._conversion: list[int] = []  # of each test
        self._slot_first: list[int] = [0]
        # of each operand of a test: a literal of its phrase, or as ``~i`` a place in ``constants``
        self._slots: list[int] = []
        self._places: list[int] = []  # the slots of these operands within their phrase
        self.constants: list[Any] = []
        self._baked: dict[bytes, int] = {}  # shape -> bits of its literals that distinguish phrases, if there are any
        self.refused: dict[int, RefusedPhrase] = {}  # of some phrases that are not usable
        self._known = 0
        self.meanings, self.tests = self._meanings(), self._tests()

    def make_room(self, size: int) -> None:
        """Makes room for the phrases of a text of ``size`` bytes."""
        old, used = self.phrases, self.count
        self.phrases = old._replace(
            shape=lengthen_array(old.shape, int(old.first[used]), int(old.first[used]) + 2 * size),
            **{
                name: lengthen_array(getattr(old, name), used + 1, used + 1 + size)
                for name in ("first", "literals", "baked", "begin", "end", "literal")
            },
        )
        slots = len(old.slot)
        while slots < 2 * len(self.phrases.begin):
            slots *= 2
        if slots > len(old.slot):
            from colmatch.kernels.sql.cut import enter_phrases

            self.phrases = self.phrases._replace(slot=np.full(slots, -1, np.int32))
            enter_phrases(self.phrases, used)

    def learn(self, data: NDArray[np.uint8], cut: TokenTable) -> bool:
        """Reads the shapes that are new since the last time, in the texts that have them.

        Returns whether texts must be cut again, since a literal of a shape distinguishes phrases.
        """
        again = False
        for phrase in range(self._known, self.count):
            meaning = self._meaning(phrase, data, cut)
            self._add(meaning)
            again |= self.phrases.baked[phrase] > 0
        if self._known < self.count:
            self._known = self.count
            self.meanings, self.tests = self._meanings(), self._tests()
        return again

    def _meaning(self, phrase: int, data: NDArray[np.uint8], cut: TokenTable) -> Meaning | None:
        """Returns the meaning of a phrase; None where it cannot be used."""
        phrases = self.phrases
        shape, _, apart = phrases.shape[phrases.first[phrase] : phrases.first[phrase + 1]].tobytes().partition(b"\0")
        if len(shape) > LONGEST:
            return None
        try:
            alone = data[phrases.begin[phrase] : phrases.end[phrase]].tobytes().decode()
            reading = self._parser.read(alone)
            tree = self._normaliser.casts.bind(self._parser.parse(reading), self._parser.literals_of(reading))
            literals = _find_sources(list(_literals(phrases, phrase, data, cut)), reading)
            if reading.joined or reading.alone or reading.whole or literals is None or len(literals) > MOST_LITERALS:
                return None
            baked = sum(1 << slot for slot in map(literals.__getitem__, reading.baked) if isinstance(slot, int))
            if baked & ~self._baked.get(shape, 0):
                if not apart and baked < 1 << 62:
                    self._baked[shape] = phrases.baked[phrase] = baked
                return None
            try:
                formulas = self._normaliser.modes(tree)
            except Refusal as refusal:
                fault = _find_refused(refusal, reading, literals)
                if fault is not None and not baked:
                    self.refused[phrase] = fault
                return None
        except (Refusal, ValueError):
            return None
        is_decided = any(isinstance(formula, bool) for formula in formulas)  # a constant scores 0: see ``expr/tree.py``
        if (is_decided and self._normaliser.by_attribute) or any(map(_is_apart, formulas)):
            return None
        return Meaning(reading.depth, formulas, literals)

    def _add(self, meaning: Meaning | None) -> None:
        for mode in range(4):
            if meaning is not None:
                self._enter(meaning.formulas[mode], meaning)
            self._first.append(len(self._formula))
        self._usable.append(meaning is not None)
        self._depth.append(0 if meaning is None else meaning.depth)
        self._sizes.append(0 if meaning is None else len(meaning.given))

    def _enter(self, formula: Formula, meaning: Meaning) -> None:
        """Appends a formula to the array of formulas."""
        add = self._formula.append
        if isinstance(formula, bool):
            add(sq.ALWAYS if formula else sq.NEVER)
            return
        fold(
            formula,
            lambda leaf: add(self._number(leaf, meaning)),
            lambda node, parts: add(-(len(parts) << 1 | (sq.EITHER if type(node) is Any_ else sq.EVERY)) - 4),
        )

    def _number(self, leaf: Leaf, meaning: Meaning) -> int:
        """Returns the number of a leaf with the literals of a phrase, and enters a new leaf."""
        operands = [operand for test in leaf.tests for operand in test.operands]
        literals = [meaning.given[o.slot] if o.slot >= 0 else ShapeConstant(o.value) for o in operands]
        shared = (id(leaf), *[one if isinstance(one, int) else repr(one.value) for one in literals])
        number = self._numbers.setdefault(shared, len(self._leaves))
        if number < len(self._leaves):
            return number
        self._leaves.append(leaf)  # holds the leaf, so that no other gets its id
        # Enter the operands, constants apart
        self._places.extend([operand.slot for operand in operands])
        for one in literals:
            self._slots.append(one if isinstance(one, int) else ~len(self.constants))
            if isinstance(one, ShapeConstant):
                self.constants.append(one.value)
        # Enter the tests, each with its conversion
        type_ = self._normaliser.attributes[leaf.attr].type
        for test in leaf.tests:
            first = self._slot_first[-1]
            self._slot_first.append(first + len(test.operands))
            constant = tuple([slot < 0 for slot in self._slots[first : self._slot_first[-1]]])
            key = (*group_key(type_, test.op, test.operands, test.outside), constant)
            self._conversion.append(self._conversion_numbers.setdefault(key, len(self.conversions)))
            if self._conversion[-1] == len(self.conversions):
                self.conversions.append(ConversionKey(type_, test, constant))
        self._leaf_first.append(len(self._conversion))
        return number

    @property
    def sizes(self) -> I64:
        """Returns the most leaves and groups in a formula of each phrase, and a last 0."""
        return np.append(np.diff(self._first).reshape(-1, 4).max(axis=1, initial=1), 0)

    def _meanings(self) -> Meanings:
        """Returns the meanings of the phrases, as kernels take them."""
        leaves, first = self._leaves, np.array(self._leaf_first, np.int64)
        return Meanings(
            np.array(self._usable, np.uint8), np.array(self._depth, np.int64), np.array(self._sizes, np.int64),
            np.array(self._first, np.int64),
            np.array(self._formula, np.int32), np.array([leaf.attr for leaf in leaves], np.int64),
            np.array([leaf.none for leaf in leaves], np.uint8),
            np.array([leaf.tests[0].op not in PATTERNS and leaf.weight == NO_WEIGHT for leaf in leaves], np.uint8), first,
            np.diff(first).max(initial=1, keepdims=True),
        )  # fmt: skip

    def _tests(self) -> Tests:
        """Returns the tests of leaves and their operands, which kernels do not need."""
        conversion, first, literal, slot = (
            np.array(values, np.int64) for values in (self._conversion, self._slot_first, self._slots, self._places)
        )
        weight = np.array([WEIGHTS[leaf.weight] for leaf in self._leaves], np.float64)
        return Tests(conversion, first, literal, slot, weight)


def _find_refused(refusal: Refusal, reading: NumberedText, given: list[int | ShapeConstant]) -> RefusedPhrase | None:
    """Returns the error that all phrases of a shape have.

    The result is None where the error may depend on their literals, or on more than a column.
    """
    subject = None if refusal.predicate is None else refusal.predicate.subject
    if refusal.at is not None or subject is None or subject != Subject(subject.path[:1]) or "`" in reading.text:
        return None
    literal = -1
    if 0 <= refusal.slot < len(given):
        source = given[refusal.slot]
        if not isinstance(source, int):
            return None
        literal = source
    error = make_error(refusal, reading, reading.text)
    each = [member for one in reading.literals for member in (one if isinstance(one, list) else [one])]
    literals = re.compile("|".join(rf"(?<!\w){re.escape(str(one))}(?!\w)" for one in each) or "(?!)")
    if literals.search(error.message):
        return None
    name = re.compile(rf"(?<!\w){re.escape(subject.path[0])}(?!\w)", re.IGNORECASE)
    return RefusedPhrase(error.message, reading.depth, literal, name)


def _is_apart(formula: Formula) -> bool:
    """Returns whether a count, or a special function with packed arguments, is in a formula."""
    if isinstance(formula, bool):
        return False
    result: bool = fold(
        formula,
        lambda leaf: any(o.slot >= 0 and o.value is not None for test in leaf.tests for o in test.operands),
        lambda node, parts: type(node) is Least or any(parts),
    )
    return result


def _find_sources(found: list[tuple[int, Any]], reading: NumberedText) -> list[int | ShapeConstant] | None:
    """Returns the source of each slot: a literal that the kernel found, or a constant.

    A number that the kernel found in an interval, which is a part of a value, stands for the whole.
    The result is None where the kernel took something else for a literal.
    """
    sources: list[int | ShapeConstant] = []
    n = 0
    for slot, literal in enumerate(zip(reading.literal_at, reading.literals, strict=True)):
        is_match = n < len(found) and (
            found[n] == literal or (slot in reading.baked and _begins_interval(found[n], literal))
        )
        sources.append(n if is_match else ShapeConstant(literal[1]))
        n += is_match
    return sources if n == len(found) else None


def _begins_interval(found: tuple[int, Any], literal: tuple[int, Any]) -> bool:
    """Returns whether a literal of the kernel begins an interval, as the 7 of ``7 days``."""
    return found[0] == literal[0] and isinstance(literal[1], str) and literal[1].lstrip("-").startswith(f"{found[1]} ")


def _literals(phrases: Phrases, phrase: int, data: NDArray[np.uint8], cut: TokenTable) -> Iterator[tuple[int, Any]]:
    """Yields the place of each literal within a phrase, in characters, and its value."""
    start, first = int(phrases.begin[phrase]), int(phrases.literal[phrase])
    for literal in range(first, first + int(phrases.literals[phrase])):
        begin, end, mark = int(cut.begin[literal]), int(cut.end[literal]), int(cut.mark[literal])
        raw = data[begin:end].tobytes().decode()
        place, kind = len(data[start:begin].tobytes().decode()), mark & ~sq.ESCAPED
        if kind in (sq.STRINGS, sq.INTS, sq.DECIMALS):
            yield place, members(raw)[1]
        elif kind in (sq.STRING, sq.QUOTED):
            yield place - 1, unescape(f"'{raw}'") if mark & sq.ESCAPED else raw
        else:
            yield place, raw
