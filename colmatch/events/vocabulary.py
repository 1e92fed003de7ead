"""String literals for reading events, in two parts: many old literals and a few recent ones.

An update adds to the recent part, so neither the update nor the next batch takes time for all
literals. The parts have one order of labels, and each string literal is in one of them.

With a million literals, an insert with a new one takes 0.8 ms and the next event 1.0 ms. One table,
copied and prepared again for reading, took 165 and 360 ms. A string is looked up in both parts, and
the higher key is its key among all literals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze_view
from colmatch.kernels._forks import cached_property
from colmatch.kernels.layout import I64, U8, Literals

_ZERO = freeze_view(np.zeros(1, np.int64))
NONE = Literals(_ZERO, _ZERO, freeze_view(np.empty(0, np.uint8)), freeze_view(np.empty(0, np.int64)))


class WordList:
    """Sorted literals of each attribute, with prefixes for a quick search."""

    def __init__(self, literals: Literals) -> None:
        self.literals = literals
        self.kept: dict[Any, Any] = {}  # arguments of special functions made of them (``special/lists.py``)

    @cached_property
    def prefix(self) -> I64:
        """Returns the ``prefixes`` of the literals, their first 8 bytes."""
        return prefixes(self.literals.offset, self.literals.data)

    def __len__(self) -> int:
        return len(self.literals.offset) - 1

    def of(self, attributes: int) -> WordList:
        """Returns the same literals for another number of attributes; added ones have none."""
        first = self.literals.first
        if len(first) == attributes + 1:
            return self
        starts = first[: attributes + 1]
        first = contiguous(np.append(starts, np.full(attributes + 1 - len(starts), first[-1])))
        words = WordList(self.literals._replace(first=first))
        if "prefix" in self.__dict__:
            words.__dict__["prefix"] = self.prefix
        words.kept = self.kept
        return words


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The literals of A attributes in two parts. All literals in the recent part are labelled."""

    old: WordList
    recent: WordList

    @staticmethod
    def among(literals: Literals) -> Vocabulary:
        """Returns a vocabulary of these literals."""
        return Vocabulary(WordList(literals), WordList(NONE).of(len(literals.first) - 1))

    def __len__(self) -> int:
        return len(self.old) + len(self.recent)

    def of(self, attributes: int) -> Vocabulary:
        """Returns the same literals for another number of attributes; added ones have none."""
        old, recent = self.old.of(attributes), self.recent.of(attributes)
        return self if old is self.old and recent is self.recent else Vocabulary(old, recent)


def prefixes(offset: I64, data: U8) -> I64:
    """Returns the first 8 bytes of each string as a number, zeros after its end.

    The numbers have the order of the bytes.
    """
    numbers = np.empty(len(offset) - 1, np.int64)
    for start in range(0, len(numbers), 1 << 16):
        begin, end = offset[start : start + (1 << 16)], offset[start + 1 : start + 1 + (1 << 16)]
        begin = begin[: len(end)]
        place = begin[:, None] + np.arange(8)
        head = np.zeros(place.shape, np.uint8)
        inside = place < end[:, None]
        head[inside] = data[place[inside]]
        flipped = head.view(">u8").astype(np.uint64).ravel() ^ np.uint64(1 << 63)
        numbers[start : start + len(end)] = flipped.view(np.int64)
    return numbers
