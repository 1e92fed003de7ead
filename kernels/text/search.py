"""Which literals of many text patterns are in strings.

Every pattern has a literal without which it cannot be true: at the start of the string, at its end,
anywhere or as all of it. Three walks find those that are there: down a trie from the string's
start, down another from its end, and through an automaton. For most patterns that decides; the
others are candidates, for ``kernels/text/verify.py`` or for a regular expression.

``ahocorasick_rs`` took twice as long where nothing matches, and fourteen times as long with 560,000
matches, each of which is a Python object.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import inlined, kernel
from colmatch.kernels.layout import I32, I64
from colmatch.kernels.text.automaton import Links, Trie, descend

FILL, MARK = 0, 1


class Posted(NamedTuple):
    """Patterns of each of L literals."""

    first: I64  # (L + 1) literal -> its range in ``pattern``
    pattern: I32


class Filters(NamedTuple):
    """P patterns by their literals, numbered among themselves."""

    heads: Trie  # literals that begin the string
    prefix: Posted  # patterns that want no more than that
    whole: Posted  # patterns that want nothing behind it
    tails: Trie  # literals that end the string, their bytes backwards
    suffix: Posted
    inside: Trie  # literals anywhere
    links: Links
    within: Posted
    also: I32  # (P) a literal that must be somewhere as well, or -1


class TextHits(NamedTuple):
    """Pairs of strings and patterns, and scratch. Owned by one thread."""

    value: I32  # (capacity) number of the string
    pattern: I32  # (capacity)
    state: I64  # (2) FILL: pairs there are; MARK: one more for each string ever looked at
    stamp: I64  # (at least L) literal -> mark of the string that it was last found in


@inlined
def put(posted, i, pattern, fill):
    """Notes the patterns of a literal. Returns how many are noted."""
    for k in range(posted.first[i], posted.first[i + 1]):
        pattern[fill] = posted.pattern[k]
        fill += 1
    return fill


@inlined
def find_heads(filters, data, start, stop, pattern, fill):
    """Notes the patterns whose literal begins a string, or is all of it."""
    heads, node, at = filters.heads, 0, start
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
def find_tails(filters, data, start, stop, pattern, fill):
    """Notes the patterns whose literal ends a string."""
    tails, node, at = filters.tails, 0, stop
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
def next_node(trie, links, rows, classes, node, letter):
    """Returns the node of the automaton behind another byte: the first ``rows`` have a table."""
    while node >= rows:
        low, end = trie.child[node], trie.child[node + 1]
        high = end
        while low < high:
            middle = (low + high) >> 1
            if trie.byte[middle] < letter:
                low = middle + 1
            else:
                high = middle
        if low < end and trie.byte[low] == letter:
            return low
        node = links.fail[node]
    return links.dense[node * classes + links.kind[letter]]


@inlined
def find_inside(filters, data, start, stop, stamp, mark, pattern, fill):
    """Notes the patterns whose literal is anywhere in a string."""
    trie, links = filters.inside, filters.links
    classes = links.kind[256]
    rows = len(links.dense) // classes
    node, at = np.int32(0), start
    while True:
        t = links.hit[node]
        while t >= 0:
            i = trie.literal[t]
            if stamp[i] == mark:
                break  # and so are all that the links lead to
            stamp[i] = mark
            fill = put(filters.within, i, pattern, fill)
            t = links.hit[links.fail[t]]
        if at == stop:
            return fill
        node = next_node(trie, links, rows, classes, node, data[at])
        at += 1


@kernel
def find(offset, data, begin, end, shift, filters, found):
    """Writes pairs for the strings ``begin:end`` (offset int64, data uint8), until there is no
    room.

    Returns the first string that is not done.

    Room for as many pairs as there are entries in all ``Posted`` is needed for each string.
    ``shift`` is added to the numbers of strings.
    """
    heads = len(filters.prefix.pattern) + len(filters.whole.pattern)
    tails, within = len(filters.suffix.pattern), len(filters.within.pattern)
    has_inside = len(filters.within.first) > 1
    also, value, pattern, state, stamp = filters.also, found.value, found.pattern, found.state, found.stamp
    fill, mark = state[FILL], state[MARK]
    v = begin
    while v < end and fill + heads + tails + within <= len(value):
        mark += 1
        start, stop, top = offset[v], offset[v + 1], fill
        if heads > 0:
            fill = find_heads(filters, data, start, stop, pattern, fill)
        if tails > 0:
            fill = find_tails(filters, data, start, stop, pattern, fill)
        if has_inside:
            fill = find_inside(filters, data, start, stop, stamp, mark, pattern, fill)
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
