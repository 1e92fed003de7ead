"""A search for the literals of many text patterns in strings.

Every pattern needs a literal in a string: at its start, at its end, anywhere or as all of it. The
patterns of a base are searched in its strings alone (``automaton.py``). Three walks find literals:
down a trie from the string's start, down another from its end, and through an automaton. For most
patterns that decides. The others are candidates, for ``kernels/text/verify.py`` or for a regular
expression.

``ahocorasick_rs`` took twice as long where nothing matches. With 560,000 matches it took fourteen
times as long, since each match is a Python object.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, inlined, kernel
from colmatch.kernels.layout import I32, I64, U8, Table, Written
from colmatch.kernels.text.automaton import Links, Trie, descend, state_of, step

FILL, MARK = 0, 1
SIZE, FIRST, MIDDLE, LAST = 0, 1, 2, 3
LONG = 64  # least bytes of a string that is searched in another way
ONE, THREE, FOUR = np.uint64(1), np.uint64(3), np.uint64(4)
PARTS = np.uint64(8)  # such a string is at least so many times as long as the longest literal


class Posted(NamedTuple):
    """Patterns of each of L literals."""

    first: I64  # (L + 1) literal -> its range in ``pattern``
    pattern: I32


class Filters(NamedTuple):
    """P patterns of G bases by their literals, numbered among themselves."""

    heads: Trie  # literals that begin the string
    prefix: Posted  # patterns that need no more than that
    whole: Posted  # patterns that need the string to end there
    tails: Trie  # literals that end the string, their bytes backwards
    suffix: Posted
    inside: Trie  # literals anywhere
    links: Links
    within: Posted
    # (M, 4) for literals inside their SIZE, FIRST, MIDDLE and LAST byte
    few: Table[I64]
    few_first: I64  # (G + 1) base -> its range in ``few``; it has none there if it has many literals
    longest: I64  # (G) bytes of the longest literal inside
    room: I64  # (G) most pairs of a string and a pattern before they are verified
    also: I32  # (P) a literal that must be somewhere as well, or -1


class TextHits(NamedTuple):
    """Pairs of strings and patterns, and scratch. Owned by one thread."""

    value: I32  # (capacity) number of the string
    pattern: I32  # (capacity)
    state: I64  # (2) FILL: pairs there are; MARK: one more for each string ever looked at
    stamp: I64  # (at least L) literal -> mark of the string that it was last found in


@inlined
def put(posted, i, pattern, fill):
    """Notes the patterns of a literal. Returns the number of patterns noted."""
    for k in range(posted.first[i], posted.first[i + 1]):
        pattern[fill] = posted.pattern[k]
        fill += 1
    return fill


@inlined
def has_literals(trie, base):
    """Returns whether a base has any literal in a trie."""
    return trie.literal[base] >= 0 or trie.child[base] < trie.child[base + 1]


@inlined
def find_heads(filters, base, data, start, stop, pattern, fill):
    """Notes the patterns with a literal that begins a string, or is all of it."""
    heads, node, at = filters.heads, base, start
    while node >= 0:
        i = heads.literal[node]
        if i >= 0:
            fill = put(filters.prefix, i, pattern, fill)
            if at == stop:
                fill = put(filters.whole, i, pattern, fill)
        if at == stop:
            break
        node = descend(node, data[at], heads.child, heads.byte)
        at += 1
    return fill


@inlined
def find_tails(filters, base, data, start, stop, pattern, fill):
    """Notes the patterns with a literal that ends a string."""
    tails, node, at = filters.tails, base, stop
    while node >= 0:
        i = tails.literal[node]
        if i >= 0:
            fill = put(filters.suffix, i, pattern, fill)
        if at == start:
            break
        at -= 1
        node = descend(node, data[at], tails.child, tails.byte)
    return fill


@inlined
def next_state(trie, links, rows, classes, state, letter):
    """Returns the state of the automaton after another byte."""
    node = state >> ONE
    if node < rows:
        return np.uint64(links.dense[node * classes + np.uint64(links.kind[letter])])
    return np.uint64(
        step(
            np.int64(node),
            letter,
            trie.child,
            trie.byte,
            links.fail,
            links.hit,
            links.kind,
            links.dense,
            np.int64(classes),
            np.int64(rows),
        )
    )


@device
def note(state, literal, fail, hit, posted, stamp, mark, pattern, fill):
    """Notes the patterns of the literals that end in a state, each literal once a string."""
    t = hit[state >> ONE]
    while t >= 0:
        i = literal[t]
        if stamp[i] == mark:
            break  # and so are all that the links lead to
        stamp[i] = mark
        fill = put(posted, i, pattern, fill)
        t = hit[fail[t]]
    return fill


@inlined
def find_inside(filters, base, data, start, stop, stamp, mark, pattern, fill):
    """Notes the patterns with a literal anywhere in a string.

    A long string is read at four places in turns, since a processor waits for each state. This
    takes 0.8 ns a byte instead of 3.5 (AMD EPYC, 2026-11-26). Each part is read until the literals
    that begin in it have ended.
    """
    trie, links, posted = filters.inside, filters.links, filters.within
    fail, hit, literal = links.fail, links.hit, trie.literal
    classes, reach = np.uint64(links.classes[0]), np.uint64(filters.longest[base])
    rows = np.uint64(len(links.dense)) // classes
    root = np.uint64(state_of(base, hit))
    # Note patterns with an empty literal
    if root & ONE:
        fill = note(root, literal, fail, hit, posted, stamp, mark, pattern, fill)
    s, at, end = root, np.uint64(start), np.uint64(stop)  # numba need not look whether these are negative
    # Read a long string at four places
    if stop - start >= LONG and end - at >= PARTS * reach:
        size = (end - at + THREE * reach) // FOUR
        first = at
        second = first + size - reach
        third = second + size - reach
        at = third + size - reach
        last = at + size
        s1 = s2 = s3 = root
        while at < last:
            s1 = next_state(trie, links, rows, classes, s1, data[first])
            s2 = next_state(trie, links, rows, classes, s2, data[second])
            s3 = next_state(trie, links, rows, classes, s3, data[third])
            s = next_state(trie, links, rows, classes, s, data[at])
            if (s1 | s2 | s3 | s) & ONE:
                fill = note(s1, literal, fail, hit, posted, stamp, mark, pattern, fill)
                fill = note(s2, literal, fail, hit, posted, stamp, mark, pattern, fill)
                fill = note(s3, literal, fail, hit, posted, stamp, mark, pattern, fill)
                fill = note(s, literal, fail, hit, posted, stamp, mark, pattern, fill)
            first += ONE
            second += ONE
            third += ONE
            at += ONE
    # Read the rest byte by byte
    while at < end:
        s = next_state(trie, links, rows, classes, s, data[at])
        if s & ONE:
            fill = note(s, literal, fail, hit, posted, stamp, mark, pattern, fill)
        at += ONE
    return fill


@device
def may_have(text, few):
    """Returns whether one of a few literals may be in a string (uint8).

    Its first, middle and last byte are there, at the same distances. A processor compares many
    bytes at once: 0.04 ns a byte and literal (AMD EPYC, 2026-11-26).
    """
    for j in range(len(few)):
        size = few[j, SIZE]
        if size > len(text):
            continue
        first_byte, middle_byte, last_byte = np.uint8(few[j, FIRST]), np.uint8(few[j, MIDDLE]), np.uint8(few[j, LAST])
        middle, last = text[size // 2 :], text[size - 1 :]
        matches = False
        for i in range(len(last)):
            matches |= (text[i] == first_byte) & (middle[i] == middle_byte) & (last[i] == last_byte)
        if matches:
            return True
    return False


@kernel
def find(
    offset: I64, data: U8, begin: int, end: int, shift: int, base: int, filters: Filters, found: Written[TextHits]
) -> int:
    """Writes pairs for the strings ``begin:end`` of a base, until there is no room.

    Returns the first string that is not done. Each string needs room for ``filters.room[base]``
    pairs.

    offset, data : int64, uint8, the strings
    shift : added to the numbers of strings
    """
    has_heads, has_tails = has_literals(filters.heads, base), has_literals(filters.tails, base)
    has_inside, room = has_literals(filters.inside, base), filters.room[base]
    few = filters.few[filters.few_first[base] : filters.few_first[base + 1]]
    also, value, pattern, state, stamp = filters.also, found.value, found.pattern, found.state, found.stamp
    fill, mark = state[FILL], state[MARK]
    v = begin
    while v < end and fill + room <= len(value):
        mark += 1
        start, stop, top = offset[v], offset[v + 1], fill
        # Note the patterns of all literals in the string
        if has_heads:
            fill = find_heads(filters, base, data, start, stop, pattern, fill)
        if has_tails:
            fill = find_tails(filters, base, data, start, stop, pattern, fill)
        is_long = stop - start >= LONG
        if has_inside and (not is_long or len(few) == 0 or may_have(data[start:stop], few)):
            fill = find_inside(filters, base, data, start, stop, stamp, mark, pattern, fill)
        # Keep patterns with their second literal in the string
        kept = top
        for j in range(top, fill):
            p = pattern[j]
            if also[p] < 0 or stamp[also[p]] == mark:
                value[kept] = v + shift
                pattern[kept] = p
                kept += 1
        fill = kept
        v += 1
    state[FILL] = fill
    state[MARK] = mark
    return v
