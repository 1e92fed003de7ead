"""Many regular expressions over the strings of a batch, or over a text of an event.

If Hyperscan is installed (``pip install "colmatch[regex]"``), it runs the expressions that mean the
same to it, once it has compiled them. It reads only the strings on which they mean the same
(``hyperscan_syntax.py``). In all other cases RE2 decides. An expression with a necessary literal is
run on the strings that have it, which are found for all such expressions at once. Each of the rest
is run on every string.

A batch needs ``FEWEST`` expressions for Hyperscan, and they are compiled when the index is made. A
single string needs one, and the first such string has a few compiled.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.text import hyperscan_sets
from colmatch.text.filters import Filter
from colmatch.text.hyperscan_sets import HyperscanSet
from colmatch.text.hyperscan_syntax import HyperscanPattern, for_hyperscan, is_plain, plain
from colmatch.text.like import LiteralPosition
from colmatch.text.literal_index import LiteralIndex, Pairs, TextSlice, find_among, lower_texts, texts_of
from colmatch.text.regex_literals import requirement

PIECE = 1 << 20  # candidates to gather at a time
LEAST_BYTES = 2  # bytes of a literal: one byte is in so many strings that gathering them costs more than it saves
FEWEST = 4  # fewest expressions for Hyperscan in a batch: 0.3 us a string where RE2 alone took 0.7
SEVERAL = 64  # expressions without a literal that are worth a warning

_log = logging.getLogger("colmatch")


class RegexIndex:
    """An index to find the strings that regular expressions match, for any number of threads.

    Parameters
    ----------
    regexes : in RE2's syntax, already checked
    numbers : number of each in the results
    characters : strings are UTF-8, else bytes
    name : of the attribute, for the log
    compiles : whether Hyperscan may compile the expressions
    """

    def __init__(
        self, regexes: Sequence[str], numbers: Sequence[int], characters: bool, name: str, compiles: bool = True
    ) -> None:
        self._regexes = regexes
        self._strings = pa.large_string() if characters else pa.large_binary()
        self._numbers = np.array(numbers, np.int32)
        is_available = compiles and hyperscan_sets.is_available()
        self._re2 = Re2Index(regexes, numbers, name if compiles and not is_available else None)
        self._sets: list[HyperscanSet] = []  # the first that is compiled is used
        self._shares: _EngineShares | None = None
        self._place: dict[HyperscanPattern, int] = {}
        self._is_exact = np.zeros(len(regexes) + 1, np.bool_)
        if not is_available:
            return
        for i, regex in enumerate(regexes):
            translated = for_hyperscan(regex, characters)
            if translated is not None and self._place.setdefault(translated, i) == i:
                self._is_exact[i] = translated.exact
        if len(self._place) >= FEWEST:
            self._start_sets()

    def __bool__(self) -> bool:
        return bool(self._regexes)

    def _start_sets(self) -> None:
        """Has the expressions compiled in the background, even a few for single strings."""
        if self._place and not self._sets:
            self._sets = hyperscan_sets.sets_for(list(self._place))

    def wait(self) -> None:
        """Waits until Hyperscan has compiled its expressions."""
        self._start_sets()
        for each in self._sets[:1]:
            each.wait()

    def find(self, texts: TextSlice, lower: TextSlice, strings: pa.Array, pairs: Pairs) -> None:
        """Adds the pairs that are true, each once.

        lower : ``texts`` with a to z in place of A to Z
        strings : ``texts`` as an array
        """
        shares = self._shares_now() if len(self._place) >= FEWEST else None
        if shares is None:
            self._re2.find(texts, lower, strings, pairs)
            return
        # Run Hyperscan on the plain strings.
        is_plain = plain(texts)
        place = np.flatnonzero(is_plain)
        everything = len(place) == len(strings)
        chosen = strings if everything else strings.filter(pa.array(is_plain))
        value, expression = shares.set.scan(chosen.cast(pa.large_binary()).to_pylist())
        regex = shares.regex[expression]
        # Check its matches by RE2 if the translation is not exact.
        true = self._is_exact[regex]
        doubtful = np.flatnonzero(~true & (regex >= 0))
        true[doubtful] = _truths(strings, place[value[doubtful]], regex[doubtful], self._regexes)
        first = texts.begin + texts.shift
        pairs.extend((place[value[true]] + first).astype(np.int32), self._numbers[regex[true]])
        # Run RE2 on the rest.
        if everything:
            shares.rest.find(texts, lower, strings, pairs)
            return
        find_among(is_plain, strings, first, shares.rest.find_strings, pairs)
        find_among(~is_plain, strings, first, self._re2.find_strings, pairs)

    def find_in_one(self, string: bytes) -> list[int]:
        """Returns the numbers of the expressions that match one string, in no order."""
        self._start_sets()
        shares = self._shares_now()
        if shares is None or not is_plain(string):
            return self._re2.find_in_one(string, self._strings)
        numbers = shares.rest.find_in_one(string, self._strings)
        expressions = shares.set.scan_one(string)
        if not expressions:
            return numbers
        regex = shares.regex[expressions]
        for i in regex[regex >= 0].tolist():
            if self._is_exact[i] or self._re2.is_true(i, string, self._strings):
                numbers.append(int(self._numbers[i]))
        return numbers

    def _shares_now(self) -> _EngineShares | None:
        for each in self._sets:
            if self._shares is not None and self._shares.set is each:
                return self._shares
            if each.taken is None:
                each.start()  # again, in a child process
                continue
            regex = np.array([self._place.get(expression, -1) for expression in each.expressions], np.int64)
            regex[~each.taken] = -1
            rest = np.setdiff1d(np.arange(len(self._regexes)), regex).tolist()
            others = Re2Index([self._regexes[i] for i in rest], self._numbers[rest], None)
            self._shares = _EngineShares(each, regex, others)
            return self._shares
        return None


class _EngineShares(NamedTuple):
    """The shares of Hyperscan and RE2 in the expressions."""

    set: HyperscanSet
    regex: NDArray[np.int64]  # place of each expression of the set in ``regexes``, -1 if it is not there
    rest: Re2Index


class Re2Index:
    """Expressions that RE2 runs.

    regexes, numbers : as for ``RegexIndex``
    name : of the attribute, or None for no warning
    """

    def __init__(self, regexes: Sequence[str], numbers: Sequence[int] | NDArray[np.int32], name: str | None) -> None:
        self._regexes = regexes
        self._numbers = np.array(numbers, np.int32)
        exact, folded = ([], []), ([], [])  # type: tuple[list[Filter], list[int]], tuple[list[Filter], list[int]]
        self._rest: list[int] = []
        for i, regex in enumerate(regexes):
            needed = requirement(regex)
            if needed.literals and min(map(len, needed.literals)) >= LEAST_BYTES:
                filters, places = folded if needed.folded else exact
                filters.append(Filter(LiteralPosition.INSIDE, needed.literals))
                places.append(i)
            else:
                self._rest.append(i)
        self._exact, self._folded = LiteralIndex(*exact), LiteralIndex(*folded)
        if len(self._rest) >= SEVERAL and name is not None:
            what = f"{len(self._rest):,} regular expressions over {name!r} have no literal that must be in a string"
            _log.warning(
                '%s, so each is run on every string: pip install "colmatch[regex]" runs them together',
                what,
            )

    def __bool__(self) -> bool:
        return bool(self._regexes)

    def find_strings(self, strings: pa.Array, pairs: Pairs) -> None:
        """Adds the pairs that are true, each once."""
        texts = texts_of(strings)
        self.find(texts, lower_texts(texts).texts, strings, pairs)

    def find(self, texts: TextSlice, lower: TextSlice, strings: pa.Array, pairs: Pairs) -> None:
        """Adds the pairs that are true, each once, as ``RegexIndex`` does."""
        first = texts.begin + texts.shift
        if self._exact:
            self._find(self._exact, texts, first, strings, pairs)
        if self._folded:
            self._find(self._folded, lower, first, strings, pairs)
        for i in self._rest:
            value = _places(strings, self._regexes[i])
            pairs.extend((value + first).astype(np.int32), np.full(len(value), self._numbers[i], np.int32))

    def find_in_one(self, string: bytes, type: pa.DataType) -> list[int]:
        """Returns the numbers of the expressions that match one string, in no order.

        Only an expression whose literal is in the string, or that has none, makes an array of it.
        """
        candidates = list(self._rest)
        if self._exact:
            candidates += self._exact.find_in_one(string)
        if self._folded:
            candidates += self._folded.find_in_one(string.lower())
        return [int(self._numbers[i]) for i in candidates if self.is_true(i, string, type)]

    def is_true(self, i: int, string: bytes, type: pa.DataType) -> bool:
        """Returns whether expression ``i`` matches a string, which becomes an array of a type."""
        array = pa.array([string], pa.large_binary()).cast(type)
        return bool(pc.match_substring_regex(array, pattern=self._regexes[i])[0].as_py())

    def _find(self, index: LiteralIndex, searched: TextSlice, first: int, strings: pa.Array, pairs: Pairs) -> None:
        """Adds the pairs of an index; ``first`` is the number of the first string in results."""
        candidates, begin = Pairs(), searched.begin
        while begin < searched.end:
            candidates.clear()
            begin = index.find(searched._replace(begin=begin), candidates, PIECE)
            value, pattern = candidates.arrays()
            # by pattern, and once if several literals are there
            pair = np.unique(pattern.astype(np.int64) << 32 | (value - np.int64(first)))
            value, pattern = pair & 0xFFFFFFFF, pair >> 32
            true = _truths(strings, value, pattern, self._regexes)
            pairs.extend((value[true] + first).astype(np.int32), self._numbers[pattern[true]])


def _truths(strings: pa.Array, value: NDArray[Any], regex: NDArray[Any], regexes: Sequence[str]) -> NDArray[np.bool_]:
    """Returns the truth of n pairs of a string and an expression, by RE2."""
    order = np.argsort(regex, kind="stable")
    value, regex = value[order], regex[order]
    ends = np.flatnonzero(np.diff(regex, append=-1)) + 1
    gathered = strings.take(pa.array(value))
    truths = np.empty(len(value), np.bool_)
    start = 0
    for end in ends.tolist():
        piece = gathered.slice(start, end - start)
        matches = pc.match_substring_regex(piece, pattern=regexes[regex[start]])
        truths[order[start:end]] = matches.to_numpy(zero_copy_only=False)
        start = end
    return truths


def _places(strings: pa.Array, regex: str) -> NDArray[np.int64]:
    return np.flatnonzero(pc.match_substring_regex(strings, pattern=regex).to_numpy(zero_copy_only=False))
