"""An index over all text patterns of one attribute.

It finds the patterns that match each distinct string of a batch.

These are the lists of OpIndex's operator extension (OpIndex paper, section 6.2), each with a
separate index. But they are not separate for each pivot attribute: truth is found once for a
distinct string, for all subscriptions and kinds of index.

- ``contains``, ``endswith`` and LIKE: one ``LiteralIndex``, with a trie for suffixes and an
  automaton for the rest;
- ILIKE: another one, over the strings in lower case. A kernel lowers ASCII, Arrow the strings that
  have other characters;
- RLIKE: ``RegexIndex``.

Prefix patterns are not here: they are intervals of labels (``colmatch/text/reduce.py``), which one
binary search finds for all of them.

Kernels find the literals, not Hyperscan. It took 0.2 us for a user agent without any of 10,000
words, the kernels 0.4. But each match calls Python there: for 57 matches a string it took 11.0 us,
the kernels 1.4 (1,000 ``contains``, AMD EPYC, 2026-11-26). ``ahocorasick_rs`` does so, too. It ran
10,000 literals over 10,000 strings of 20 to 100 bytes, in turns with the kernels on a busy machine.
Without a match, the kernels took 24 ms and ``ahocorasick_rs`` 47. For 250,000 pairs they took 33
and 170, for 560,000 pairs 19 and 270. The kernels write arrays, let other threads go on, know
suffixes and LIKE, and are no dependency.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.given.schema import Family, Type
from colmatch.text.filters import filters_of
from colmatch.text.literal_index import (
    LiteralIndex,
    LowerCaseTexts,
    Pairs,
    TextSlice,
    find_among,
    lower_texts,
    texts_of,
)
from colmatch.text.regex_index import RegexIndex

Pattern = tuple[str, str]  # operator (like, ilike, rlike, endswith, contains) and operand, already checked


class PatternIndex:
    """An index that is read-only once it is built.

    Any number of threads may use it, each with separate ``Pairs``.

    Parameters
    ----------
    patterns : all over one attribute
    numbers : number of each in the results
    type : of the attribute's values; in binary ones, ``_`` is a byte
    name : of the attribute, for the log
    """

    def __init__(self, patterns: Sequence[Pattern], numbers: Sequence[int], type: Type, name: str = "") -> None:
        self._strings = pa.large_string() if type.family is Family.STRING else pa.large_binary()
        characters = type.family is Family.STRING
        groups: dict[str, tuple[list[Pattern], list[int]]] = {group: ([], []) for group in ("plain", "ilike", "rlike")}
        for pattern, number in zip(patterns, numbers):
            members, member_numbers = groups.get(pattern[0]) or groups["plain"]
            members.append(pattern)
            member_numbers.append(number)
        (plain, plain_numbers), (lower, lower_numbers), (regex, regex_numbers) = groups.values()
        operands = pc.utf8_lower(pa.array([operand for _, operand in lower], pa.string())).to_pylist()
        self._plain = LiteralIndex(filters_of(plain), plain_numbers, characters)
        self._lower = LiteralIndex(filters_of([("like", operand) for operand in operands]), lower_numbers, characters)
        self.regex = RegexIndex([operand for _, operand in regex], regex_numbers, characters, name)

    def matches(self, strings: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Returns the numbers of matching strings and patterns, each pair once.

        No order is promised.

        ``strings`` are of any string or binary type, without NULL.
        """
        pairs, texts = Pairs(), texts_of(strings.cast(self._strings))
        self.find(texts, lower_texts(texts), pairs)
        return pairs.arrays()

    @property
    def needs_lower(self) -> bool:
        """Returns whether it looks at strings in lower case."""
        return bool(self._lower or self.regex)

    def find(self, texts: TextSlice, lower: LowerCaseTexts | None, pairs: Pairs) -> None:
        """Adds the matching pairs of ``texts`` and patterns, each once.

        lower : the same strings in lower case, None if not needed
        """
        if self._plain:
            self._plain.find(texts, pairs)
        if lower is None:
            return
        if lower.ascii is None and self._lower:
            self._lower.find(lower.texts, pairs)
        if not self.regex and (lower.ascii is None or not self._lower):
            return
        buffers = [None, pa.py_buffer(texts.offset[texts.begin : texts.end + 1]), pa.py_buffer(texts.data)]
        strings = pa.Array.from_buffers(self._strings, texts.end - texts.begin, buffers)
        if lower.ascii is not None and self._lower:
            self._find_lower(lower.texts, lower.ascii, strings, pairs)
        if self.regex:
            self.regex.find(texts, lower.texts, strings, pairs)

    def _find_lower(self, lower: TextSlice, ascii: NDArray[np.bool_], strings: pa.Array, pairs: Pairs) -> None:
        found, first = Pairs(), lower.begin + lower.shift
        self._lower.find(lower, found)
        value, pattern = found.arrays()
        kept = ascii[value - first]
        pairs.extend(value[kept], pattern[kept])

        def find(others: pa.Array, found: Pairs) -> None:
            self._lower.find(texts_of(pc.utf8_lower(others)), found)

        find_among(~ascii, strings, first, find, pairs)
