"""Many text patterns as the arrays of ``kernels/text/search.py``, and the data of a search.

A second literal of a LIKE pattern (``Filter.also``) is looked up before the pattern is verified:
10,000 patterns ``%ab%cd%`` take 0.35 s with it and 2.5 s without. No index of patterns is saved,
since 10,000 patterns are ready in half a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze, freeze_view
from colmatch.arrays.ranges import ranges_of
from colmatch.kernels._jit import entry
from colmatch.kernels.layout import I64, U8
from colmatch.kernels.text import automaton, search, verify
from colmatch.kernels.text.lower import ascii_only, lower
from colmatch.text.filters import Filter
from colmatch.text.like import LiteralPosition

DENSE_CELLS = 1 << 20  # of the table of states near the root (4 bytes each): they fit into a processor's second cache
FEW = 8  # most literals to search in long strings one by one, before the automaton
CANDIDATES = 1 << 16  # least room for pairs before they are verified

_Literal = tuple[int, bytes]  # base and text


class TextSlice(NamedTuple):
    """Strings ``begin:end`` of those with bytes ``data[offset[v]:offset[v + 1]]``.

    Results call string v ``v + shift``. The arrays are read-only.
    """

    offset: I64
    data: U8
    begin: int
    end: int
    shift: int = 0


def texts_of(strings: pa.Array, shift: int = 0) -> TextSlice:
    """Returns the bytes of large strings, joined in a new array.

    Only ``colmatch/events/reader.py`` reads Arrow's buffers, which may begin anywhere.
    """
    offset = ranges_of(pc.binary_length(strings).to_numpy())
    one = pa.LargeListArray.from_arrays(pa.array([0, len(strings)], pa.int64()), strings.cast(pa.large_binary()))
    data = np.frombuffer(pc.binary_join(one, pa.scalar(b"", pa.large_binary()))[0].as_buffer(), np.uint8)
    return TextSlice(freeze_view(offset), freeze_view(data), 0, len(strings), shift)


class LowerCaseTexts(NamedTuple):
    """Strings with a to z in place of A to Z, with the numbers of the original strings."""

    texts: TextSlice
    ascii: NDArray[np.bool_] | None  # which of ``begin:end`` are ASCII; None if all are

    def part(self, begin: int, end: int) -> LowerCaseTexts:
        """Returns the strings ``begin:end`` of strings that are numbered from 0."""
        ascii = None if self.ascii is None or self.ascii[begin:end].all() else self.ascii[begin:end]
        return LowerCaseTexts(self.texts._replace(begin=begin, end=end), ascii)


def lower_texts(texts: TextSlice) -> LowerCaseTexts:
    """Lowers all strings of ``texts``, which are numbered from 0."""
    out = np.empty(texts.offset[texts.end], np.uint8)
    is_ascii = lower(texts.data, out)
    return LowerCaseTexts(texts._replace(data=freeze_view(out)), None if is_ascii else only_ascii(texts))


class Pairs:
    """Pairs of strings and patterns, added one after the other.

    Its memory is used again after ``clear``; one thread at a time.
    """

    def __init__(self) -> None:
        state = np.zeros(2, np.int64)
        self._found = search.TextHits(np.empty(0, np.int32), np.empty(0, np.int32), state, np.zeros(0, np.int64))

    def __len__(self) -> int:
        return int(self._found.state[search.FILL])

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Returns the numbers of strings and of patterns, valid until the next change."""
        return self._found.value[: len(self)], self._found.pattern[: len(self)]

    def clear(self) -> None:
        """Forgets all pairs, and keeps the memory."""
        self._found.state[search.FILL] = 0

    def extend(self, values: NDArray[np.int32], patterns: NDArray[np.int32]) -> None:
        """Adds pairs: n numbers of strings, n of patterns."""
        hits, fill = self.room(len(values), 0), len(self)
        hits.value[fill : fill + len(values)] = values
        hits.pattern[fill : fill + len(values)] = patterns
        hits.state[search.FILL] += len(values)

    def room(self, pairs: int, literals: int) -> search.TextHits:
        """Returns the arrays, with room for so many more pairs."""
        hits, fill = self._found, len(self)
        if fill + pairs > len(hits.value):
            size = max(fill + pairs, 2 * len(hits.value), 1024)
            value, pattern = np.empty(size, np.int32), np.empty(size, np.int32)
            value[:fill], pattern[:fill] = hits.value[:fill], hits.pattern[:fill]
            hits = hits._replace(value=value, pattern=pattern)
        if literals > len(hits.stamp):
            hits = hits._replace(stamp=np.zeros(literals, np.int64))
        self._found = hits
        return hits


def only_ascii(texts: TextSlice, but: int = 0x80) -> NDArray[np.bool_]:
    """Returns (n): whether each string is ASCII without the byte ``but``."""
    is_ascii = np.empty(texts.end - texts.begin, np.bool_)
    ascii_only(texts.offset, texts.data, texts.begin, texts.end, but, is_ascii)
    return is_ascii


def find_among(
    which: NDArray[np.bool_], strings: pa.Array, first: int, find: Callable[[pa.Array, Pairs], None], pairs: Pairs
) -> None:
    """Adds the pairs that ``find`` finds in some of n strings.

    which : (n)
    first : number of the first of all strings in the results
    """
    place, hits = np.flatnonzero(which), Pairs()
    find(strings.filter(pa.array(which)), hits)
    value, pattern = hits.arrays()
    pairs.extend((place[value] + first).astype(np.int32), pattern)


class LiteralIndex:
    """An index to find the strings that match each of many patterns.

    Read-only once it is built: any number of threads.

    Parameters
    ----------
    filters : of each pattern
    numbers : number of each pattern in the results
    characters : whether ``_`` is a character of UTF-8 in a pattern; else it is a byte
    base : base of each pattern. The patterns of a base are searched in its strings alone
    bases : number of bases

    Attributes
    ----------
    filters, programs : arguments of the kernels
    literals : number of literals anywhere in a string
    """

    def __init__(
        self,
        filters: Sequence[Filter],
        numbers: Sequence[int],
        characters: bool | Sequence[bool] = True,
        base: Sequence[int] | None = None,
        bases: int = 1,
    ) -> None:
        base = [0] * len(filters) if base is None else base
        # Sort the literals of each place.
        by_place: list[list[tuple[_Literal, int]]] = [[] for _ in LiteralPosition]
        for p, (filter, b) in enumerate(zip(filters, base, strict=True)):
            by_place[filter.place] += [((b, literal), p) for literal in filter.literals]
        whole, head, tail, inside = by_place
        tail = [((b, literal[::-1]), p) for (b, literal), p in tail]
        also = [(b, filter.also) for filter, b in zip(filters, base, strict=True)]
        heads = sorted({literal for literal, _ in (*whole, *head)})
        tails = sorted({literal for literal, _ in tail})
        insides = sorted({literal for literal, _ in inside} | {literal for literal in also if literal[1]})
        # Build the tries and the automaton, with the patterns of each literal.
        place = {literal: i for i, literal in enumerate(insides)}
        inside_trie, few = _trie(insides, bases), _few(insides, bases)
        longest = np.zeros(bases, np.int64)
        for b, text in insides:
            longest[b] = max(longest[b], len(text))
        bases_posted = [b for posted in (whole, head, tail, inside) for (b, _), _ in posted]
        room = np.bincount(np.array(bases_posted, np.int64), minlength=bases)
        self.filters = search.Filters(
            _trie(heads, bases),
            _post_patterns(head, heads),
            _post_patterns(whole, heads),
            _trie(tails, bases),
            _post_patterns(tail, tails),
            inside_trie,
            _links(inside_trie, bases),
            _post_patterns(inside, insides),
            freeze_view(np.array([row for rows in few for row in rows], np.int64).reshape(-1, 4)),
            freeze_view(ranges_of(list(map(len, few)))),
            freeze_view(longest),
            freeze_view(room),
            freeze_view(np.array([place[literal] if literal[1] else -1 for literal in also], np.int32)),
        )
        self.programs = _programs(filters, numbers, characters)
        self.literals = len(insides)
        self._has_any = bool(room.any())

    def __bool__(self) -> bool:
        return self._has_any

    def has(self, base: int) -> bool:
        """Returns whether a base has patterns."""
        return bool(self.filters.room[base])

    def find(self, texts: TextSlice, pairs: Pairs, most: int | None = None, base: int = 0) -> int:
        """Adds the pairs of strings and patterns of a base, each once, until there are ``most``.

        There may be some more. Returns the first string that was not searched.

        With filters of several literals a pair may be there more than once.
        """
        begin, room = texts.begin, max(int(self.filters.room[base]), CANDIDATES)
        while begin < texts.end and (most is None or len(pairs) < most):
            hits, fill = pairs.room(room, self.literals), len(pairs)
            begin = entry(search.find)(
                texts.offset, texts.data, begin, texts.end, texts.shift, base, self.filters, hits
            )
            if len(pairs) > fill:
                hits.state[search.FILL] = entry(verify.verify)(
                    texts.offset, texts.data, texts.shift, self.programs, fill, len(pairs), hits.value, hits.pattern
                )
        return begin

    def find_in_one(self, text: bytes) -> list[int]:
        """Returns the numbers of the patterns that one string may match, each once."""
        pairs, end = Pairs(), freeze_view(np.array([0, len(text)], np.int64))
        self.find(TextSlice(end, np.frombuffer(text, np.uint8), 0, 1), pairs)
        return list(dict.fromkeys(pairs.arrays()[1].tolist()))


def _flat(texts: Sequence[bytes]) -> tuple[I64, U8]:
    offset = ranges_of(list(map(len, texts)))
    data = np.frombuffer(b"".join(texts), np.uint8)
    return freeze_view(offset), data


def _trie(literals: Sequence[_Literal], bases: int) -> automaton.Trie:
    """Makes the tries of sorted, distinct literals."""
    # Count the nodes of each depth: bytes that a literal does not share with the one before.
    offset, data = _flat([text for _, text in literals])
    base, length = freeze_view(np.array([b for b, _ in literals], np.int32)), np.diff(offset)
    shared = np.zeros(len(literals), np.int32)
    automaton.share(offset, data, base, shared)
    depths = int(length.max(initial=0))
    nodes = np.cumsum(np.bincount(shared + 1, minlength=depths + 2) - np.bincount(length + 1, minlength=depths + 2))
    nodes[0] = bases
    next = ranges_of(nodes[: depths + 1])
    size = int(next[-1])
    if size >= 2**30:
        raise OverflowError(f"the text patterns have {size:,} different prefixes, more than 2**30")
    # Fill the nodes by depth.
    trie = automaton.Trie(np.empty(size + 1, np.int32), np.zeros(size, np.uint8), np.empty(size, np.int32))
    automaton.fill_trie(offset, data, base, shared, next, np.zeros(depths + 1, np.int64), trie)
    return freeze(trie)


def _links(trie: automaton.Trie, bases: int) -> automaton.Links:
    size = len(trie.byte)
    used = np.unique(trie.byte[bases:])
    lowest = 1 if len(used) < 256 else 0  # class 0 is of bytes that are not used, if there are any
    kind = np.zeros(256, np.uint8)
    kind[used] = np.arange(lowest, lowest + len(used))
    classes = lowest + len(used)
    rows = min(size, max(DENSE_CELLS // classes, bases))
    dense = np.empty(rows * classes, np.int32)
    links = automaton.Links(
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        freeze_view(kind),
        freeze_view(np.array([classes], np.int64)),
        dense,
    )
    automaton.fill_links(trie, bases, classes, links)
    return freeze(links)


def _few(literals: Sequence[_Literal], bases: int) -> list[list[tuple[int, int, int, int]]]:
    """Returns, by base, literals to search in a string before the automaton walks through it."""
    few: list[list[tuple[int, int, int, int]]] = [[] for _ in range(bases)]
    for b, rows in groupby(literals, key=lambda literal: literal[0]):
        texts = [text for _, text in rows]
        if len(texts) <= FEW and b"" not in texts:
            few[b] = [(len(text), text[0], text[len(text) // 2], text[-1]) for text in texts]
    return few


def _post_patterns(entries: Iterable[tuple[_Literal, int]], literals: Sequence[_Literal]) -> search.Posted:
    place = {literal: i for i, literal in enumerate(literals)}
    pairs = np.array([(place[literal], p) for literal, p in entries], np.int64).reshape(-1, 2)
    first = ranges_of(np.bincount(pairs[:, 0], minlength=len(literals)))
    return freeze(search.Posted(first, pairs[np.argsort(pairs[:, 0], kind="stable"), 1].astype(np.int32)))


def _programs(
    filters: Sequence[Filter], numbers: Sequence[int], characters: bool | Sequence[bool]
) -> verify.LikePrograms:
    each = [characters] * len(filters) if isinstance(characters, bool) else characters
    first = ranges_of([len(filter.pieces) for filter in filters])
    modes = [
        filter.open_start * verify.OPEN_START | filter.open_end * verify.OPEN_END | is_text * verify.CHARACTERS
        for filter, is_text in zip(filters, each, strict=True)
    ]
    piece, text = _flat([piece for filter in filters for piece in filter.pieces])
    return freeze(verify.LikePrograms(np.array(numbers, np.int32), first, np.array(modes, np.uint8), piece, text))
