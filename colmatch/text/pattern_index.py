"""An index over all text patterns of one attribute.

It says which of them are true of which of a batch's distinct strings.

The lists of OpIndex's operator extension (OpIndex paper, section 6.2), each with an index of its
own. But there is not one for each pivot attribute: truth is found once for a distinct string,
whatever subscriptions ask for it and whatever kind of index they are in.

- ``contains``, ``endswith`` and LIKE: one ``LiteralIndex``, with a trie for suffixes and an
  automaton for the rest;
- ILIKE: another one, over the strings in lower case;
- RLIKE: ``RegexIndex``.

Prefix patterns are not here: they are intervals of labels (``colmatch/text/reduce.py``), which one
binary search finds for all of them.

Kernels find the literals, not ``ahocorasick_rs``. For 10,000 literals over 10,000 strings of 20 to
100 bytes, in turns on a busy machine, the kernels took 24 ms when none was there and
``ahocorasick_rs`` 47; 33 and 170 for 250,000 pairs, 19 and 270 for 560,000, since each match is a
Python object there, repeated ones too. The kernels write arrays, let other threads go on, know
suffixes and LIKE, and are no dependency.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import frozen
from colmatch.arrays.ranges import ranges_of
from colmatch.schema import Family, Type
from colmatch.text.filters import filters_of
from colmatch.text.literal_index import LiteralIndex, Pairs, Texts
from colmatch.text.regex_index import RegexIndex

Pattern = tuple[str, str]  # operator (like, ilike, rlike, endswith, contains) and operand, known to be sound


class PatternIndex:
    """Read-only once it is built: any number of threads may use it, each with ``Pairs`` of its own.

    Parameters
    ----------
    patterns : all over one attribute
    numbers : what the results call each of them
    type : of the attribute's values; in binary ones, ``_`` is a byte
    name : of the attribute, for the log
    """

    def __init__(self, patterns: Sequence[Pattern], numbers: Sequence[int], type: Type, name: str = "") -> None:
        self._strings = pa.large_string() if type.family is Family.STRING else pa.large_binary()
        characters = type.family is Family.STRING
        groups: dict[str, tuple[list[Pattern], list[int]]] = {group: ([], []) for group in ("plain", "ilike", "rlike")}
        for pattern, number in zip(patterns, numbers):
            members, known = groups.get(pattern[0]) or groups["plain"]
            members.append(pattern)
            known.append(number)
        (plain, plain_numbers), (lower, lower_numbers), (regex, regex_numbers) = groups.values()
        lowered = pc.utf8_lower(pa.array([operand for _, operand in lower], pa.string())).to_pylist()
        self._plain = LiteralIndex(filters_of(plain), plain_numbers, characters)
        self._lower = LiteralIndex(filters_of([("like", operand) for operand in lowered]), lower_numbers, characters)
        self._regex = RegexIndex([operand for _, operand in regex], regex_numbers, characters, name)

    def matches(self, strings: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Returns the numbers of strings and of patterns that are true of them, each pair once.

        No order is promised.

        ``strings`` are of any string or binary type, without NULL.
        """
        pairs = Pairs()
        self.find(_texts(strings.cast(self._strings)), pairs)
        return pairs.arrays()

    def find(self, texts: Texts, pairs: Pairs) -> None:
        """Adds the pairs that are true of ``texts``, each once."""
        self._plain.find(texts, pairs)
        if not self._lower and not self._regex:
            return
        buffers = [None, pa.py_buffer(texts.offset[texts.begin : texts.end + 1]), pa.py_buffer(texts.data)]
        strings = pa.Array.from_buffers(self._strings, texts.end - texts.begin, buffers)
        if self._lower:
            self._lower.find(_texts(pc.utf8_lower(strings), texts.begin + texts.shift), pairs)
        if self._regex:
            self._regex.find(texts, strings, pairs)


def _texts(strings: pa.Array, shift: int = 0) -> Texts:
    """Returns the bytes of large strings, put together anew.

    Only ``colmatch/events/reader.py`` reads Arrow's buffers, which may begin anywhere.
    """
    offset = ranges_of(pc.binary_length(strings).to_numpy())
    one = pa.LargeListArray.from_arrays(pa.array([0, len(strings)], pa.int64()), strings.cast(pa.large_binary()))
    data = np.frombuffer(pc.binary_join(one, pa.scalar(b"", pa.large_binary()))[0].as_buffer(), np.uint8)
    return Texts(frozen(offset), frozen(data), 0, len(strings), shift)
