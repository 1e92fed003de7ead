"""Columns of texts to leaves and conjunctions, by kernels.

Texts are cut into phrases; the shapes of phrases are read once (``sql/phrases.py``); then trees of
phrases are put together and multiplied out, and literals become columns. A text that kernels are
not sure of is left to the reader of single texts, which says the same.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.growing import longer
from colmatch.arrays.ranges import ranges_of
from colmatch.events.reader import texts_of
from colmatch.kernels.sql import assemble, cut, literals
from colmatch.kernels.sql.arrays import DIGIT, DOT, LETTER, PLAIN, REFUSED, SPACE, Cut, Made, Meanings
from colmatch.lowering.lower import Lowering, Programs
from colmatch.sql.compile import Compiler
from colmatch.sql.phrases import PhraseBook

I64 = NDArray[np.int64]
Arrays = TypeVar("Arrays", Cut, Made)


def _kinds() -> NDArray[np.uint8]:
    """Returns the class of each byte."""
    kinds = np.full(256, PLAIN, np.uint8)
    kinds[:32] = kinds[127] = REFUSED
    for text, kind in (("\t\n\r ", SPACE), ("0123456789", DIGIT), (".", DOT), ("#$;?@\\{}~", REFUSED)):
        kinds[list(text.encode())] = kind
    kinds[list(b"_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") + list(range(128, 256))] = LETTER
    return kinds


KINDS = _kinds()
FILLED = (  # arrays of ``Made`` that are filled together
    ("leaf", "leaf_text"), ("test", "test_leaf", "test_base", "test_slot"), ("owner", "size"), ("ref",),
    ("program", "tokens"), ("jump",), ("tree",),
)  # fmt: skip


class TextReader:
    """Reads columns of texts, again and again.

    Parameters
    ----------
    compiler : what reads single texts; it must not give weights to attributes
    limits : most conjunctions of a part of an expression, of one with clauses, most clauses, most
        depth
    """

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        self._book = PhraseBook(compiler.parser, compiler.normaliser)
        self._attributes = compiler.normaliser.attributes
        budget, options = compiler.normaliser.budget, compiler.options
        self._limits = np.array(
            [budget.dnf, budget.cnf, budget.clauses, budget.programs, options.max_depth], np.int64
        )
        self._most = options.max_text_bytes

    def read(self, texts: pa.StringArray, first: int, lowering: Lowering) -> I64:
        """Gives texts to the lowering, but for those that kernels are not sure of.

        first : number of the subscription that the first text is of

        Returns the places of the others, ascending.
        """
        missing = texts.is_null().to_numpy(zero_copy_only=False)
        offset, data = texts_of(texts.fill_null("") if missing.any() else texts)
        left = missing | (np.diff(offset) > self._most)
        found = self._cut(data, offset, left)
        while self._book.learn(data, found):
            found = self._cut(data, offset, left)
        made = self._assembled(found)
        self._add(data, found, made, first, lowering)
        return np.flatnonzero(found.unsure)

    def _cut(self, data: NDArray[np.uint8], offset: NDArray[np.int32], left: NDArray[np.bool_]) -> Cut:
        """Cuts all texts but those that are left out."""
        book, size = self._book, len(offset) - 1
        some = int(offset[-1] - offset[0]) // 8 + size
        found = Cut(
            np.zeros(size + 1, np.int64), np.empty(some, np.int32), np.zeros(size + 1, np.int64), np.empty(some, np.int64),
            np.empty(some, np.int64), np.empty(some, np.uint8), np.zeros(size, np.int64), left.astype(np.uint8),
        )  # fmt: skip
        filled = np.array([book.count, 0, 0])
        text = 0
        while True:
            text = cut.cut_texts(data, offset, text, KINDS, book.phrases, found, filled)
            book.count = int(filled[0])
            if text == size:
                return found
            needed = int(offset[text + 1] - offset[text]) + 1
            book.make_room(needed)
            found = _with_room(found, {"token": (filled[1], needed), **dict.fromkeys(("begin", "end", "mark"), (filled[2], needed))})

    def _assembled(self, found: Cut) -> Made:
        """Makes leaves, tests and conjunctions of the texts that were cut."""
        meanings = self._book.meanings()
        tokens = int(np.diff(found.first).max(initial=0)) + 2
        nodes = _nodes(tokens * (2 + self._book.longest), len(self._attributes))
        some = int(found.first[-1]) + 64
        whole, small = (np.empty(0, np.int64), np.empty(0, np.int32))
        made = Made(small, whole, small, *[whole] * 7, whole, np.empty((0, 2), np.int32), small)
        filled = np.zeros(7, np.int64)
        text = 0
        while True:
            made = _with_room(made, {name: (filled[place], some) for place, names in enumerate(FILLED) for name in names})
            text = assemble.assemble_texts(found, text, self._book.phrases, meanings, self._limits, nodes, made, filled)
            if text == len(found.unsure):
                break
            some = len(nodes.kind) * max(int(meanings.most_tests[0]), 16 * int(self._limits[0]))
        return Made(**{name: getattr(made, name)[: filled[place]] for place, names in enumerate(FILLED) for name in names})

    def _add(self, data: NDArray[np.uint8], found: Cut, made: Made, first: int, lowering: Lowering) -> None:
        meanings = self._book.meanings()
        base = lowering.leaves(
            meanings.leaf_attr[made.leaf], meanings.leaf_none[made.leaf], first + made.leaf_text, None
        )
        programs = Programs(made.program, made.size[made.program], made.jump, made.tokens, made.tree)
        lowering.conjunctions(first + made.owner, made.size, base + made.ref, programs)
        book, tests = self._book, self._book.tests()
        which = tests.conversion[made.test]
        order = np.argsort(which, kind="stable")
        bounds = np.searchsorted(which[order], np.arange(len(book.conversions) + 1))
        constants = np.empty(len(book.constants), object)
        constants[:] = book.constants
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
                    some = made.test_base[rows] + literal[k]
                    values.append(_lists(data, found, some) if operand.many else _texts(data, found, some))
            slots = np.where(slot < 0, slot, slot + made.test_slot[rows][:, None])
            lowering.groups.of_columns(type, test, constant).add(base + made.test_leaf[rows], values, slots)


def _with_room(arrays: Arrays, needed: dict[str, tuple[Any, int]]) -> Arrays:
    """Returns arrays with room; ``needed`` says of some how much is used and how much more they
    need.
    """
    made = {name: longer(getattr(arrays, name), int(used), int(used) + more) for name, (used, more) in needed.items()}
    return arrays._replace(**made)


def _nodes(most: int, attributes: int) -> assemble.Nodes:
    return assemble.Nodes(
        *(np.empty(most, np.int64) for _ in range(14)), np.zeros(4, np.int64),
        np.zeros(attributes, np.int64), np.zeros(attributes, np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


def _texts(data: NDArray[np.uint8], found: Cut, which: I64) -> pa.Array:
    """Returns some literals as strings."""
    offset = np.empty(len(which) + 1, np.int64)
    out = np.empty(int((found.end[which] - found.begin[which]).sum()), np.uint8)
    literals.copy_literals(data, found.begin, found.end, found.mark, which, offset, out)
    return _strings(offset, out)


def _lists(data: NDArray[np.uint8], found: Cut, which: I64) -> pa.Array:
    """Returns some lists of literals as lists of strings."""
    members = np.empty(len(which), np.int64)
    size = literals.count_members(data, found.begin, found.end, found.mark, which, members)
    first = ranges_of(members)
    offset, out = np.empty(first[-1] + 1, np.int64), np.empty(size, np.uint8)
    literals.copy_members(data, found.begin, found.end, found.mark, which, offset, out)
    return pa.LargeListArray.from_arrays(pa.array(first), _strings(offset, out))


def _strings(offset: I64, data: NDArray[np.uint8]) -> pa.Array:
    return pa.Array.from_buffers(pa.large_string(), len(offset) - 1, [None, pa.py_buffer(offset), pa.py_buffer(data)])
