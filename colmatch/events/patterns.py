"""The rows where each text pattern is true, found by the distinct strings of a batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from colmatch.arrays.frozen import freeze_view
from colmatch.events.binding import Binding
from colmatch.events.needs import Needs
from colmatch.events.work import WorkingMemory
from colmatch.given.schema import Attribute, Attributes, made_once
from colmatch.kernels.layout import I32, I64
from colmatch.kernels.text.rows import expand, order_by_value
from colmatch.text.literal_index import LowerCaseTexts, Pairs, TextSlice, lower_texts
from colmatch.text.pattern_index import BasePatterns, Pattern, PatternIndex


class Patterns:
    """The text patterns of a matcher by their base, the attribute without the pattern. Read-only.

    Attributes
    ----------
    attributes : (P) uint32, attribute of each pattern, ascending
    total : number of patterns, which are numbered in the order of the attributes
    bases : attributes without their patterns
    needs : the bases; group g of distinct strings belongs to base g
    index : index of all patterns
    """

    def __init__(self, attributes: Attributes) -> None:
        bases: dict[Attribute, tuple[list[Pattern], list[int]]] = {}
        ids: list[int] = []
        for id, attribute in attributes.items():
            if attribute.pattern is not None:
                patterns, numbers = bases.setdefault(replace(attribute, pattern=None), ([], []))
                patterns.append(attribute.pattern)
                numbers.append(len(ids))
                ids.append(id)
        self.attributes, self.total = freeze_view(np.array(ids, np.uint32)), len(ids)
        self.bases = list(bases)
        self.needs = Needs(enumerate(self.bases), len(self.bases), None)
        searched = [BasePatterns(*members, base.type, base.name) for base, members in bases.items()]
        self.index = PatternIndex(searched, compiles=not attributes.are_chosen)

    def wait(self) -> None:
        """Waits until the patterns are compiled in the background."""
        for regexes in self.index.regexes:
            regexes.wait()


# Making 10,000 patterns takes a fifth of a second: only those that Hyperscan compiles are saved.
patterns_of = made_once(Patterns)


class PatternRows:
    """A finder of the rows of a batch where each text pattern of a matcher is true.

    It reads the distinct strings of the patterns' bases, and searches these for the patterns. One
    thread at a time.
    """

    def __init__(self, attributes: Attributes) -> None:
        self._patterns = patterns_of(attributes)
        self.needs = self._patterns.needs
        self._memory = WorkingMemory(self.needs, self.needs.total)
        self._pairs = Pairs()
        self._first = np.zeros(self._patterns.total + 1, np.int64)
        self._row = np.zeros(64, np.int32)

    def read(self, binding: Binding, address: int, rows: int) -> tuple[I64, I32]:
        """Returns the rows where each pattern is true, as ranges: first, row.

        The next call overwrites them. ``binding`` is a binding of ``needs``; the batch is at
        ``address``.
        """
        # Read the distinct strings
        self._memory.read(binding, address, rows)
        work, distinct = self._memory.results
        pairs, groups = self._pairs, distinct.range
        pairs.clear()
        count = int(distinct.total[0])
        offset = freeze_view(distinct.offset[: count + 1])
        texts = TextSlice(offset, freeze_view(distinct.data[: offset[-1]]), 0, count)
        # Find the patterns in the strings of each base
        lower: LowerCaseTexts | None = None
        index = self._patterns.index
        for group in np.flatnonzero(groups[:, 1] > groups[:, 0]).tolist():
            begin, end = groups[group].tolist()
            needs_lower = index.needs_lower(group)
            if needs_lower and lower is None:
                lower = lower_texts(texts)
            part = lower.part(begin, end) if lower is not None and needs_lower else None
            index.find(texts._replace(begin=begin, end=end), part, pairs, group)
        value, pattern = pairs.arrays()
        # List the patterns of each string
        value_first = np.zeros(count + 2, np.int64)
        value_pattern = np.empty(len(pattern), np.int32)
        order_by_value(value, pattern, value_first, value_pattern)
        # Expand strings to rows, with more room if needed
        base = np.stack([work.col[:-1], work.col[1:], groups[:, 0]], axis=1)
        while True:
            expand(base, work.row, work.key, value_first, value_pattern, self._first, self._row)
            if self._first[-1] <= len(self._row):
                return self._first, self._row
            self._row = np.zeros(max(int(self._first[-1]), 2 * len(self._row)), np.int32)
