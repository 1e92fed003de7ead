"""Many regular expressions over the strings of a batch.

Those with a literal that must be there are run on the strings that have it, which is found for all
of them at once. Of the rest, many are run together where google-re2 is installed (``pip install
"colmatch[regex]"``), else each is run on every string. It is RE2 that says what matches in any
case.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import frozen
from colmatch.text.filters import Filter
from colmatch.text.like import Place
from colmatch.text.literal_index import LiteralIndex, Pairs, Texts
from colmatch.text.regex_literals import requirement
from colmatch.text.regex_sets import SIZE, RegexSet, available

PIECE = 1 << 20  # candidates whose strings are gathered at a time
LEAST_BYTES = 2  # bytes of a literal: one byte is in so many strings that gathering them costs more than it spares
SEVERAL = 64  # expressions without a literal that are worth a warning, or a set

_log = logging.getLogger("colmatch")


class RegexIndex:
    """Finds the strings in which regular expressions match. May be used by any number of threads.

    Parameters
    ----------
    regexes : in RE2's syntax, known to be sound
    numbers : what the results call them
    characters : strings are UTF-8, else bytes
    name : of the attribute, for the log
    """

    def __init__(self, regexes: Sequence[str], numbers: Sequence[int], characters: bool, name: str) -> None:
        self._regexes = regexes
        self._numbers = np.array(numbers, np.int32)
        exact, folded = ([], []), ([], [])  # type: tuple[list[Filter], list[int]], tuple[list[Filter], list[int]]
        self._rest: list[int] = []
        for i, regex in enumerate(regexes):
            found = requirement(regex)
            if found.literals and min(map(len, found.literals)) >= LEAST_BYTES:
                filters, places = folded if found.folded else exact
                filters.append(Filter(Place.INSIDE, found.literals))
                places.append(i)
            else:
                self._rest.append(i)
        self._exact, self._folded = LiteralIndex(*exact), LiteralIndex(*folded)
        self._sets: list[RegexSet] = []
        if len(self._rest) < SEVERAL:
            return
        if available():
            rest = [regexes[i] for i in self._rest]
            self._sets = [
                RegexSet(rest[start : start + SIZE], characters, _places) for start in range(0, len(rest), SIZE)
            ]
        else:
            what = f"{len(self._rest):,} regular expressions over {name!r} have no literal that must be in a string"
            _log.warning(
                '%s, so each is run on every string: pip install "colmatch[regex]" (google-re2) runs them together',
                what,
            )

    def __bool__(self) -> bool:
        return bool(self._regexes)

    def find(self, texts: Texts, strings: pa.Array, pairs: Pairs) -> None:
        """Adds the pairs that are true, each once. ``strings`` are those of ``texts``."""
        first = texts.begin + texts.shift
        if self._exact:
            self._find(self._exact, texts, first, strings, pairs)
        if self._folded:
            data = texts.data[texts.offset[texts.begin] : texts.offset[texts.end]].copy()
            data[(data >= ord("A")) & (data <= ord("Z"))] |= 0x20
            offset = texts.offset[texts.begin : texts.end + 1] - texts.offset[texts.begin]
            lower = Texts(frozen(offset), frozen(data), 0, len(strings), first)
            self._find(self._folded, lower, first, strings, pairs)
        if self._sets:
            rest, raw = np.array(self._rest), strings.cast(pa.large_binary()).to_pylist()
            for start, regexes in zip(range(0, len(rest), SIZE), self._sets):
                value, regex = regexes.matches(strings, raw)
                pairs.extend((value + first).astype(np.int32), self._numbers[rest[start + regex]])
            return
        for i in self._rest:
            value = _places(strings, self._regexes[i])
            pairs.extend((value + first).astype(np.int32), np.full(len(value), self._numbers[i], np.int32))

    def _find(self, index: LiteralIndex, searched: Texts, first: int, strings: pa.Array, pairs: Pairs) -> None:
        """Adds the pairs of an index; ``first`` is what results call the first of ``strings``."""
        candidates, begin = Pairs(), searched.begin
        while begin < searched.end:
            candidates.clear()
            begin = index.find(searched._replace(begin=begin), candidates, PIECE)
            value, pattern = candidates.arrays()
            # by pattern, and once where several literals are there
            pair = np.unique(pattern.astype(np.int64) << 32 | (value - np.int64(first)))
            value, pattern = pair & 0xFFFFFFFF, pair >> 32
            ends = np.flatnonzero(np.diff(pattern, append=-1)) + 1
            gathered = strings.take(pa.array(value))
            truths, start = [], 0
            for end in ends.tolist():
                regex = self._regexes[pattern[start]]
                truths.append(pc.match_substring_regex(gathered.slice(start, end - start), pattern=regex))
                start = end
            if truths:
                true = np.flatnonzero(pa.concat_arrays(truths).to_numpy(zero_copy_only=False))
                pairs.extend((value[true] + first).astype(np.int32), self._numbers[pattern[true]])


def _places(strings: pa.Array, regex: str) -> NDArray[np.int64]:
    return np.flatnonzero(pc.match_substring_regex(strings, pattern=regex).to_numpy(zero_copy_only=False))
