"""Columns of texts to leaves and conjunctions, by kernels.

Texts are cut into phrases. The shape of each phrase is read once (``sql/phrases.py``). Then trees
of phrases are assembled and multiplied out, and literals become columns. If kernels are not sure of
a text, the reader of single texts reads it, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.growing import extend_array
from colmatch.arrays.ranges import ranges_of
from colmatch.errors import ExpressionError
from colmatch.events.reader import texts_of
from colmatch.kernels._jit import is_ready
from colmatch.kernels.layout import DTYPES
from colmatch.kernels.sql import arrays as sq
from colmatch.kernels.sql import assemble, cut, literals
from colmatch.kernels.sql.arrays import LoweredTexts, TokenTable
from colmatch.lowering.lower import JumpPrograms, Lowering
from colmatch.sql.compile import FormCompiler
from colmatch.sql.literals import NumberedText
from colmatch.sql.phrases import PhraseBook
from colmatch.sql.split import ODD_ESCAPE, REGEX_WORDS
from colmatch.subscriptions.given import ArrowTexts
from colmatch.subscriptions.readers import Unread

I64 = NDArray[np.int64]
Arrays = TypeVar("Arrays", TokenTable, LoweredTexts, assemble.Nodes)
_HINTS: dict[Any, dict[str, Any]] = {  # finding them takes a quarter of a millisecond each
    kind: get_type_hints(kind, include_extras=True) for kind in (TokenTable, LoweredTexts, assemble.Nodes)
}


def _kinds() -> NDArray[np.uint8]:
    """Returns the class of each byte."""
    kinds = np.full(256, sq.PLAIN, np.uint8)
    kinds[:32] = kinds[127] = sq.REFUSED
    for text, kind in (
        ("\t\n\r ", sq.SPACE),
        ("0123456789", sq.DIGIT),
        (".", sq.DOT),
        ("`", sq.LETTER),
        ("#$;?@\\{}~", sq.REFUSED),
    ):
        kinds[list(text.encode())] = kind
    kinds[list(b"_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") + list(range(128, 256))] = sq.LETTER
    return kinds


KINDS = _kinds()
_BACKSLASH = ord("\\")
FILLED = (  # arrays of ``LoweredTexts`` that are filled together
    ("leaf", "leaf_text"), ("test", "test_leaf", "test_base", "test_slot"), ("owner", "size"), ("ref",),
    ("program", "tokens"), ("jump",), ("tree",),
)  # fmt: skip


class TextReader:
    """A reader of columns of texts, for repeated use.

    Parameters
    ----------
    compiler : compiler of single texts
    """

    def __init__(self, compiler: FormCompiler) -> None:
        self.compiler = compiler
        self._book = PhraseBook(compiler.parser, compiler.normaliser)
        self._attributes = compiler.normaliser.attributes
        budget, options = compiler.normaliser.budget, compiler.options
        self._limits = np.array([budget.dnf, budget.cnf, budget.clauses, budget.programs, options.max_depth], np.int64)
        self._most = options.max_text_bytes
        self._ready = False

    @property
    def phrases(self) -> int:
        """Returns how many shapes of phrases the reader has met."""
        return self._book.count

    def is_ready(self) -> bool:
        """Returns whether all kernels are compiled.

        If a kernel is not, another process is asked to compile it.
        """
        if self._ready:
            return True
        offset, data = texts_of(pa.array([""]))
        cuts, whole, bytes_ = _empty(TokenTable), np.empty(0, np.int64), np.empty(0, np.uint8)
        phrases, more = (
            self._book.phrases,
            (self._book.meanings, self._limits, _empty(assemble.Nodes), _empty(LoweredTexts)),
        )
        literals_ = data, whole, whole, bytes_, whole, whole
        calls: list[tuple[Any, tuple[Any, ...]]] = [
            (cut.cut_texts, (data, offset, 0, KINDS, phrases, cuts, whole)),
            (cut.enter_phrases, (phrases, 0)),
            (assemble.assemble_texts, (cuts, 0, phrases, *more, whole)),
            (literals.copy_literals, (*literals_, bytes_)),
            (literals.count_members, literals_),
            (literals.copy_members, (*literals_, bytes_)),
        ]
        states = [is_ready(kernel, arguments) for kernel, arguments in calls]  # a list, so that all are requested
        self._ready = all(states)
        return self._ready

    def read(self, expressions: Sequence[Any], numbers: Sequence[int], lowering: Lowering, stop: bool) -> Unread:
        """Passes texts to the lowering, except texts that kernels are not sure of.

        It works as ``ExpressionReader.read`` does; the numbers are a range.
        """
        # Leave odd texts to the next reader
        first = numbers[0]
        texts = _strings_of(expressions, first, first + len(numbers))
        if texts is None:
            return numbers, {}
        missing = texts.is_null().to_numpy(zero_copy_only=False)
        texts, left = self.compiler.parser.quotes.of_column(texts.fill_null("") if missing.any() else texts)
        offset, data = texts_of(texts)
        left |= missing | (np.diff(offset) > self._most)
        if len(data) and (data == _BACKSLASH).any():
            is_odd = pc.match_substring_regex(texts, ODD_ESCAPE), pc.match_substring_regex(texts, REGEX_WORDS)
            left |= pc.and_(*is_odd).to_numpy(zero_copy_only=False)
        # Cut the others, and add their parts
        cuts = self._cut(data, offset, left)
        while self._book.learn(data, cuts):
            cuts = self._cut(data, offset, left)
        is_cut = cuts.unsure == 0
        parts = self._assemble(cuts)
        self._add(data, cuts, parts, first, lowering)
        errors = self._errors(texts, offset, cuts, is_cut & (cuts.unsure > 0))
        cuts.unsure[list(errors)] = 0
        return (first + np.flatnonzero(cuts.unsure)).tolist(), {first + text: error for text, error in errors.items()}

    def _errors(
        self, texts: pa.StringArray, offset: NDArray[np.int32], found: TokenTable, wanted: NDArray[np.bool_]
    ) -> dict[int, ExpressionError]:
        """Returns the errors of texts with a single fault: a phrase that is known to be refused."""
        refused, used = self._book.refused, int(found.first[-1])
        if not refused or not wanted.any():
            return {}
        # Find the bad tokens
        token = found.token[:used]
        phrase = np.maximum(token, 0)
        is_bad = np.where(token < 0, token <= sq.OPEN_TRUE, self._book.meanings.usable[phrase] == 0)
        bad = np.flatnonzero(is_bad)
        first = np.searchsorted(bad, found.first)
        literal = ranges_of(np.where(token < 0, 0, self._book.phrases.literals[phrase]))
        # Place the error of each text with one of them
        errors: dict[int, ExpressionError] = {}
        for text in np.flatnonzero(wanted & (np.diff(first) == 1)).tolist():
            at = bad[first[text]]
            why = refused.get(int(token[at]))
            if why is None or found.depth[text] + why.depth > self._limits[-1]:
                continue
            written = texts[text].as_py()
            if why.literal < 0:
                place = why.column_at(written)
            else:
                which = found.literal_first[text] + literal[at] - literal[found.first[text]] + why.literal
                is_quoted = int(found.mark[which]) & ~sq.ESCAPED in (sq.STRING, sq.QUOTED)
                place = len(written.encode()[: found.begin[which] - offset[text]].decode()) - is_quoted
            if place is not None:
                line, column = NumberedText(written).place(place)
                errors[text] = ExpressionError(why.message, line=line, column=column)
        return errors

    def _cut(self, data: NDArray[np.uint8], offset: NDArray[np.int32], left: NDArray[np.bool_]) -> TokenTable:
        """Cuts all texts except those in ``left``."""
        book, size = self._book, len(offset) - 1
        cuts = _empty(TokenTable)._replace(
            first=np.zeros(size + 1, np.int64), literal_first=np.zeros(size + 1, np.int64),
            depth=np.zeros(size, np.int64), unsure=left.astype(np.uint8),
        )  # fmt: skip
        filled = np.array([book.count, 0, 0])
        text, more = 0, int(offset[-1] - offset[0]) // 8 + size
        while True:
            cuts = _with_room(cuts, (("token",), ("begin", "end", "mark")), filled[1:], [more, more])
            text = cut.cut_texts(data, offset, text, KINDS, book.phrases, cuts, filled)
            book.count = int(filled[0])
            if text == size:
                return cuts
            more = int(offset[text + 1] - offset[text]) + 1
            book.make_room(more)

    def _assemble(self, found: TokenTable) -> LoweredTexts:
        """Makes leaves, tests and conjunctions of the texts that were cut."""
        # Make room for the nodes of the longest text
        meanings, phrases = self._book.meanings, self._book.phrases
        token = found.token[: found.first[-1]]
        sizes = ranges_of(2 + np.where(token < 0, 0, self._book.sizes[np.maximum(token, 0)]))
        most = int(np.diff(sizes[found.first]).max(initial=0)) + 4
        attributes = len(self._attributes) + len(self._attributes.solved)  # ids below 0 count from the end
        nodes = assemble.Nodes(*(np.zeros(most, np.int64) for _ in assemble.Nodes._fields))._replace(
            room=np.full(7, found.first[-1]), owner=np.zeros(attributes, np.int64), place=np.zeros(attributes, np.int64),
            serial=np.zeros(1, np.int64),
        )  # fmt: skip
        # Assemble texts, with more room for each call
        parts, filled, text = _empty(LoweredTexts), np.zeros(7, np.int64), 0
        while text < len(found.unsure):
            parts = _with_room(parts, FILLED, filled, nodes.room)
            text = assemble.assemble_texts(found, text, phrases, meanings, self._limits, nodes, parts, filled)
        used = {name: getattr(parts, name)[:size] for names, size in zip(FILLED, filled, strict=True) for name in names}
        return LoweredTexts(**used)

    def _add(
        self, data: NDArray[np.uint8], found: TokenTable, made: LoweredTexts, first: int, lowering: Lowering
    ) -> None:
        # Add leaves and conjunctions
        meanings, tests = self._book.meanings, self._book.tests
        weight = tests.weight[made.leaf] if self.compiler.normaliser.by_attribute else None
        base = lowering.leaves(
            meanings.leaf_attr[made.leaf], meanings.leaf_none[made.leaf], first + made.leaf_text, weight
        )
        programs = JumpPrograms(made.program, made.size[made.program], made.jump, made.tokens, made.tree)
        lowering.conjunctions(first + made.owner, made.size, base + made.ref, programs)
        # Sort the tests by conversion
        book = self._book
        which = tests.conversion[made.test].astype(
            np.int16 if len(book.conversions) < 1 << 15 else np.int64
        )  # quicker to sort
        order = np.argsort(which, kind="stable")
        bounds = np.searchsorted(which[order], np.arange(len(book.conversions) + 1))
        constants = np.empty(len(book.constants), object)
        constants[:] = book.constants
        # Add the tests of each conversion
        for number, (type, test, constant) in enumerate(book.conversions):
            rows = order[bounds[number] : bounds[number + 1]]
            if not len(rows):
                continue
            operands = tests.first[made.test[rows]][:, None] + np.arange(len(constant))
            literal, slot = tests.literal[operands].T, tests.slot[operands]
            values: list[Any] = []
            for k, operand in enumerate(test.operands):
                if constant[k]:
                    values.append(constants[~literal[k]].tolist())
                else:
                    places = made.test_base[rows] + literal[k]
                    values.append(_lists(data, found, places) if operand.many else _texts(data, found, places))
            slots = np.where(slot < 0, slot, slot + made.test_slot[rows][:, None])
            lowering.groups.of_columns(type, test, constant).add(base + made.test_leaf[rows], values, slots)


def _strings_of(expressions: Sequence[Any], start: int, stop: int) -> pa.StringArray | None:
    """Returns some expressions as strings; None where one is something else."""
    values = expressions[start:stop] if not isinstance(expressions, ArrowTexts) else None
    if values is not None and set(map(type, values)) != {str}:
        return None
    try:  # 2 GB of texts are too many for an array, and half a surrogate pair is no text
        texts = expressions.slice(start, stop) if values is None else pa.array(values, pa.string())  # type: ignore[attr-defined]
    except (UnicodeEncodeError, pa.ArrowException):
        return None
    return texts if isinstance(texts, pa.StringArray) else None


def _empty(kind: type[Arrays]) -> Arrays:
    """Returns arrays without rows."""
    arrays: dict[str, Any] = {}
    for name, hint in _HINTS[kind].items():
        columns: tuple[int, ...] = getattr(hint, "__metadata__", ())
        dtype: Any = DTYPES[hint.__origin__ if columns else hint]
        arrays[name] = np.empty((0, *columns), dtype)
    return kind(**arrays)


def _with_room(arrays: Arrays, names: Sequence[tuple[str, ...]], used: Iterable[int], more: Iterable[int]) -> Arrays:
    """Returns the arrays, with more rows where a group needs them.

    names : groups of arrays that are filled together
    used, more : how many rows of each group are filled, and how many more it needs
    """
    grown = {
        name: extend_array(getattr(arrays, name), int(size), int(size) + int(needed))
        for group, size, needed in zip(names, used, more, strict=True)
        for name in group
    }
    return arrays._replace(**grown)


def _texts(data: NDArray[np.uint8], found: TokenTable, which: I64) -> pa.Array:
    """Returns some literals as strings."""
    offset = np.empty(len(which) + 1, np.int64)
    out = np.empty(int((found.end[which] - found.begin[which]).sum()), np.uint8)
    literals.copy_literals(data, found.begin, found.end, found.mark, which, offset, out)
    return _strings(offset, out)


def _lists(data: NDArray[np.uint8], found: TokenTable, which: I64) -> pa.Array:
    """Returns some lists of literals as lists of strings."""
    members = np.empty(len(which), np.int64)
    size = literals.count_members(data, found.begin, found.end, found.mark, which, members)
    first = ranges_of(members)
    offset, out = np.empty(first[-1] + 1, np.int64), np.empty(size, np.uint8)
    literals.copy_members(data, found.begin, found.end, found.mark, which, offset, out)
    return pa.LargeListArray.from_arrays(pa.array(first), _strings(offset, out))


def _strings(offset: I64, data: NDArray[np.uint8]) -> pa.Array:
    return pa.Array.from_buffers(pa.large_string(), len(offset) - 1, [None, pa.py_buffer(offset), pa.py_buffer(data)])
