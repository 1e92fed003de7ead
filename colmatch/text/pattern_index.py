"""An index over all text patterns of a matcher.

It finds the patterns that match each distinct string of a batch, or each text of an event.

These are the lists of OpIndex's operator extension (OpIndex paper, section 6.2), each with a
separate index. But they are not separate for each pivot attribute: truth is found once for a
distinct string, for all subscriptions and kinds of index.

- ``contains``, ``endswith`` and LIKE: one ``LiteralIndex`` for all columns, with tries for prefixes
  and suffixes, and an automaton for the rest;
- ILIKE: the same index, over the strings in lower case. A kernel lowers ASCII, Arrow the strings
  that have other characters;
- RLIKE: a ``RegexIndex`` for each base.

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
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.given.schema import Family, Type
from colmatch.text.filters import Filter, filters_of
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


class BasePatterns(NamedTuple):
    """The text patterns of one base, an attribute without a pattern.

    Attributes
    ----------
    numbers : number of each pattern in the results
    type : of the base's values; in binary ones, ``_`` is a byte
    name : of the base, for the log
    """

    patterns: Sequence[Pattern]
    numbers: Sequence[int]
    type: Type
    name: str = ""


class PatternIndex:
    """An index over the patterns of all bases. It is read-only once it is built.

    Any number of threads may use it, each with separate ``Pairs``.

    Parameters
    ----------
    compiles : whether Hyperscan may compile regular expressions

    Attributes
    ----------
    literals : index of the patterns that literals find. Base b has two bases there: ``2 * b`` for
        strings as they are, ``2 * b + 1`` for strings in lower case
    regexes : the regular expressions of each base
    """

    def __init__(self, bases: Sequence[BasePatterns], compiles: bool = True) -> None:
        filters: list[Filter] = []
        numbers: list[int] = []
        base: list[int] = []
        characters: list[bool] = []
        self.regexes: list[RegexIndex] = []
        self._strings: list[pa.DataType] = []
        for b, (patterns, numbers_of_base, type, name) in enumerate(bases):
            is_text = type.family is Family.STRING
            groups: dict[str, tuple[list[Pattern], list[int]]] = {op: ([], []) for op in ("like", "ilike", "rlike")}
            for pattern, number in zip(patterns, numbers_of_base, strict=True):
                members, member_numbers = groups.get(pattern[0]) or groups["like"]
                members.append(pattern)
                member_numbers.append(number)
            plain, (lower, lower_numbers), (regexes, regex_numbers) = groups.values()
            operands = pc.utf8_lower(pa.array([operand for _, operand in lower], pa.string())).to_pylist()
            by_case = plain, ([("like", operand) for operand in operands], lower_numbers)
            for is_lower, (members, member_numbers) in enumerate(by_case):
                filters += filters_of(members)
                numbers += member_numbers
                characters += [is_text] * len(members)
                base += [2 * b + is_lower] * len(members)
            self.regexes.append(RegexIndex([operand for _, operand in regexes], regex_numbers, is_text, name, compiles))
            self._strings.append(pa.large_string() if is_text else pa.large_binary())
        self.literals = LiteralIndex(filters, numbers, characters, base, 2 * len(self._strings))

    def matches(self, strings: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Returns the numbers of matching strings and patterns of the first base, each pair once.

        No order is promised.

        ``strings`` are of any string or binary type, without NULL.
        """
        pairs, texts = Pairs(), texts_of(strings.cast(self._strings[0]))
        self.find(texts, lower_texts(texts), pairs)
        return pairs.arrays()

    def has_lower(self, base: int) -> bool:
        """Returns whether a base has patterns over strings in lower case, which literals find."""
        return self.literals.has(2 * base + 1)

    def needs_lower(self, base: int) -> bool:
        """Returns whether a base looks at strings in lower case."""
        return self.has_lower(base) or bool(self.regexes[base])

    def find(self, texts: TextSlice, lower: LowerCaseTexts | None, pairs: Pairs, base: int = 0) -> None:
        """Adds the matching pairs of ``texts`` and the patterns of a base, each once.

        lower : the same strings in lower case, None if not needed
        """
        regex, has_lower = self.regexes[base], self.has_lower(base)
        if self.literals.has(2 * base):
            self.literals.find(texts, pairs, base=2 * base)
        if lower is None:
            return
        if lower.ascii is None and has_lower:
            self.literals.find(lower.texts, pairs, base=2 * base + 1)
        if not regex and (lower.ascii is None or not has_lower):
            return
        buffers = [None, pa.py_buffer(texts.offset[texts.begin : texts.end + 1]), pa.py_buffer(texts.data)]
        strings = pa.Array.from_buffers(self._strings[base], texts.end - texts.begin, buffers)
        if lower.ascii is not None and has_lower:
            self._find_lower(lower.texts, lower.ascii, strings, pairs, base)
        if regex:
            regex.find(texts, lower.texts, strings, pairs)

    def _find_lower(
        self, lower: TextSlice, ascii: NDArray[np.bool_], strings: pa.Array, pairs: Pairs, base: int
    ) -> None:
        found, first = Pairs(), lower.begin + lower.shift
        self.literals.find(lower, found, base=2 * base + 1)
        value, pattern = found.arrays()
        kept = ascii[value - first]
        pairs.extend(value[kept], pattern[kept])

        def find(others: pa.Array, found: Pairs) -> None:
            self.literals.find(texts_of(_lower(others)), found, base=2 * base + 1)

        find_among(~ascii, strings, first, find, pairs)


def _lower(strings: pa.Array) -> pa.Array:
    """Returns strings in lower case. One that is not UTF-8 has small letters of ASCII alone."""
    try:
        return pc.utf8_lower(strings)
    except pa.ArrowInvalid:
        octets = strings.cast(pa.large_binary()).to_pylist()
        return pa.array(list(map(_lower_octets, octets)), pa.large_binary()).view(strings.type)


def _lower_octets(octets: bytes) -> bytes:
    try:
        text: str = pc.utf8_lower(pa.scalar(octets.decode())).as_py()
    except UnicodeDecodeError:
        return octets.lower()
    return text.encode()
