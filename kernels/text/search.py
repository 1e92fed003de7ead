"""Which literals of many text patterns are in strings.

Every pattern has a literal without which it cannot be true: at the start of the string, at its end,
anywhere or as all of it. Three walks find those that are there: down a trie from the string's
start, down another from its end, and through an automaton. For most patterns that decides; the
others are candidates, for ``kernels/text/verify.py`` or for a regular expression.

The step of the automaton is written out: as a function with six arrays it counted references, 30 ns
a byte instead of 5. So are the walks down the tries. As functions that took tuples, and called
another for each literal found, they needed 410 ns a string instead of 255 with 9,000 literals at
the start, and 30 % more for strings of 6 to 12 bytes with literals of all sorts.

``ahocorasick_rs`` took twice as long where nothing matches, and fourteen times as long with 560,000
matches, each of which is a Python object.
"""

from typing import NamedTuple

from colmatch.kernels._jit import kernel
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


class Found(NamedTuple):
    """Pairs of strings and patterns, and scratch. Owned by one thread."""

    value: I32  # (capacity) number of the string
    pattern: I32  # (capacity)
    state: I64  # (2) FILL: pairs there are; MARK: one more for each string ever looked at
    stamp: I64  # (at least L) literal -> mark of the string that it was last found in


@kernel
def find(offset, data, begin, end, shift, filters, found):
    """Writes pairs for the strings ``begin:end`` (offset int64, data uint8), until there is no
    room.

    Returns the first string that is not done.

    Room for as many pairs as there are entries in all ``Posted`` is needed for each string.
    ``shift`` is added to the numbers of strings.
    """
    h_child, h_byte, h_literal = filters.heads.child, filters.heads.byte, filters.heads.literal
    t_child, t_byte, t_literal = filters.tails.child, filters.tails.byte, filters.tails.literal
    child, byte, literal = filters.inside.child, filters.inside.byte, filters.inside.literal
    fail, hit, kind, dense = filters.links.fail, filters.links.hit, filters.links.kind, filters.links.dense
    prefix_first, prefix_pattern = filters.prefix.first, filters.prefix.pattern
    whole_first, whole_pattern = filters.whole.first, filters.whole.pattern
    suffix_first, suffix_pattern = filters.suffix.first, filters.suffix.pattern
    within_first, within_pattern = filters.within.first, filters.within.pattern
    also = filters.also
    value, pattern, state, stamp = found.value, found.pattern, found.state, found.stamp
    classes = kind[256]
    rows = len(dense) // classes
    room = len(prefix_pattern) + len(whole_pattern) + len(suffix_pattern) + len(within_pattern)
    has_heads = len(prefix_pattern) + len(whole_pattern) > 0
    has_tails = len(suffix_pattern) > 0
    has_inside = len(within_first) > 1
    fill = state[FILL]
    mark = state[MARK]
    v = begin
    while v < end and fill + room <= len(value):
        mark += 1
        start = offset[v]
        stop = offset[v + 1]
        top = fill
        if has_heads:
            node = 0
            at = start
            while node >= 0:
                i = h_literal[node]
                if i >= 0:
                    for k in range(prefix_first[i], prefix_first[i + 1]):
                        pattern[fill] = prefix_pattern[k]
                        fill += 1
                    if at == stop:
                        for k in range(whole_first[i], whole_first[i + 1]):
                            pattern[fill] = whole_pattern[k]
                            fill += 1
                if at == stop:
                    break
                node = descend(node, data[at], h_child, h_byte)
                at += 1
        if has_tails:
            node = 0
            at = stop
            while node >= 0:
                i = t_literal[node]
                if i >= 0:
                    for k in range(suffix_first[i], suffix_first[i + 1]):
                        pattern[fill] = suffix_pattern[k]
                        fill += 1
                if at == start:
                    break
                at -= 1
                node = descend(node, data[at], t_child, t_byte)
        if has_inside:
            node = 0
            at = start
            while True:
                t = hit[node]
                while t >= 0:
                    i = literal[t]
                    if stamp[i] == mark:
                        break  # and so are all that the links lead to
                    stamp[i] = mark
                    for k in range(within_first[i], within_first[i + 1]):
                        pattern[fill] = within_pattern[k]
                        fill += 1
                    t = hit[fail[t]]
                if at == stop:
                    break
                letter = data[at]
                at += 1
                while node >= rows:
                    low = child[node]
                    end_child = child[node + 1]
                    high = end_child
                    while low < high:
                        middle = (low + high) >> 1
                        if byte[middle] < letter:
                            low = middle + 1
                        else:
                            high = middle
                    if low < end_child and byte[low] == letter:
                        break
                    node = fail[node]
                if node < rows:
                    node = dense[node * classes + kind[letter]]
                else:
                    node = low
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
