"""The idea of a batch matcher with bit masks in its simplest form.

An engine that elaborates on it must beat it.

Conjunctions of intervals on integer attributes with the domain 0 to ``cardinality - 1``; no other
operators, types or programs, no codes, no plan, no updates. The most selective predicate of a
subscription is its access predicate. Subscriptions are grouped by their access attribute and
ordered by access interval, then by the attribute of the next predicate. For each access attribute
the rows of the batch that have it are sorted by value, so that an access interval is a range of
positions. For 64 rows at a time ``T[b][a]`` has the rows whose attribute ``a`` is below boundary
``b``; an interval is then ``T[hi + 1] & ~T[lo]``, a conjunction is an AND that ends at the first
zero word, and what is left are matches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from colmatch.kernels.bits import ctz

# of 64 rows, whose tables are made together: 0.3 MB for 100 attributes of 100 values, which stays
# in a cache of the second level
WORDS = 4


class Index(NamedTuple):
    group: NDArray[np.uint64]  # (attributes + 1) access attribute -> its runs
    run: NDArray[np.uint64]  # (runs + 1) run -> its subscriptions, all of which have the same access interval
    lo: NDArray[np.uint64]  # (runs)
    above: NDArray[np.uint64]  # (runs) one more than the highest value
    first: NDArray[np.uint32]  # (subscriptions + 1) -> its other predicates
    # (2 * predicates) (hi + 1) * attributes + attribute and lo * attributes + attribute, uint16 or
    # uint32
    code: NDArray[Any]
    sub: NDArray[np.int64]  # (subscriptions) as the caller numbers them


def build(
    first: NDArray[np.int64], attr: NDArray[Any], lo: NDArray[Any], hi: NDArray[Any], attributes: int, cardinality: int
) -> Index:
    """Subscription ``s`` is true where attribute ``attr[p]`` is from ``lo[p]`` to ``hi[p]`` for
    each ``p`` of ``first[s]:first[s + 1]``.
    """
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    order = np.lexsort((attr, hi - lo, owner))  # narrowest first; where all are wide, equal ones share an attribute
    attr, lo, hi = attr[order].astype(np.int64), lo[order].astype(np.int64), hi[order].astype(np.int64)
    head = first[:-1]
    second = np.where(np.diff(first) > 1, attr[np.minimum(head + 1, len(attr) - 1)], -1)
    subs = np.lexsort((second, hi[head], lo[head], attr[head]))
    size = np.diff(first)[subs] - 1
    starts = np.concatenate([[0], np.cumsum(size)])
    rest = np.arange(starts[-1]) + np.repeat(head[subs] + 1 - starts[:-1], size)
    interval = np.column_stack([attr[head], lo[head], hi[head]])[subs]
    runs = np.flatnonzero(np.concatenate([[True], (interval[1:] != interval[:-1]).any(axis=1)]))
    code = np.empty(2 * len(rest), np.uint16 if attributes * (cardinality + 1) <= 1 << 16 else np.uint32)
    code[0::2] = (hi[rest] + 1) * attributes + attr[rest]
    code[1::2] = lo[rest] * attributes + attr[rest]
    group = np.searchsorted(interval[runs, 0], np.arange(attributes + 1))
    parts = (group, np.append(runs, len(subs)), interval[runs, 1], interval[runs, 2] + 1)
    groups, lists, lows, above = (part.astype(np.uint64) for part in parts)
    return Index(groups, lists, lows, above, starts.astype(np.uint32), code, subs)


def matcher(index: Index, attributes: int, cardinality: int) -> Any:
    """A function from events, (rows, attributes) integers with -1 for absent, to the rows and
    subscriptions of all matches.
    """
    size = attributes * (cardinality + 1)
    made, table = np.zeros(size, np.uint64), np.zeros(WORDS * size, np.uint64)
    found = [np.empty(1 << 16, np.int64), np.empty(1 << 16, np.int64)]

    def match(events: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        while (n := int(match_all(index, events, np.uint64(cardinality), made, table, *found))) > len(found[0]):
            found[:] = np.empty(n, np.int64), np.empty(n, np.int64)
        return found[0][:n], found[1][:n]

    return match


@njit(nogil=True)
def match_all(index, events, cardinality, made, table, out_row, out_sub):  # type: ignore[no-untyped-def]
    """Number of matches, of which as many are written as there is room for."""
    group, run, lo, above = index.group, index.run, index.lo, index.above
    first, code, sub = index.first, index.code, index.sub
    one, sixty_four, every = np.uint64(1), np.uint64(64), ~np.uint64(0)
    rows, attributes = np.uint64(events.shape[0]), np.uint64(events.shape[1])
    size, room, n = np.uint64(len(made)), np.uint64(len(out_row)), np.uint64(0)
    start, entry = entries(events)
    order, place = np.empty(rows, np.uint64), np.empty(cardinality + one, np.uint64)
    for access in range(attributes):
        have = sort_rows(events, access, order, place)
        for begin in range(np.uint64(0), have, np.uint64(WORDS * 64)):
            end = min(begin + np.uint64(WORDS * 64), have)
            for low in range(begin, end, sixty_four):
                fill(
                    start,
                    entry,
                    order,
                    low,
                    min(low + sixty_four, end),
                    attributes,
                    made,
                    table,
                    (low - begin) // sixty_four * size,
                )
            for r in range(group[access], group[access + 1]):
                p, q = max(place[lo[r]], begin), min(place[above[r]], end)
                if p >= q:
                    continue
                w0, w1 = (p - begin) // sixty_four, (q - begin - one) // sixty_four
                left = every << ((p - begin) & np.uint64(63))
                right = every >> (np.uint64(63) - ((q - begin - one) & np.uint64(63)))
                for s in range(run[r], run[r + one]):
                    c0, c1 = np.uint64(first[s]), np.uint64(first[s + one])
                    for w in range(w0, w1 + one):
                        low, base = begin + w * sixty_four, w * size
                        word = left if w == w0 else every
                        if w == w1:
                            word &= right
                        for c in range(c0, c1):
                            word &= table[base + np.uint64(code[c + c])] & ~table[base + np.uint64(code[c + c + one])]
                            if word == 0:
                                break
                        while word != 0:
                            if n < room:
                                out_row[n] = order[low + ctz(word)]
                                out_sub[n] = sub[s]
                            word &= word - one
                            n += one
    return n


@njit(nogil=True)
def entries(events):  # type: ignore[no-untyped-def]
    """Row -> ``(value + 1) * attributes + attribute`` of what it has.

    So a row that is visited often is read once.
    """
    rows, attributes = events.shape
    start, entry = np.zeros(rows + 1, np.uint64), np.empty(rows * attributes, np.uint32)
    n = 0
    for row in range(rows):
        for attribute in range(attributes):
            entry[n] = (events[row, attribute] + 1) * attributes + attribute
            n += events[row, attribute] >= 0
        start[row + 1] = n
    return start, entry


@njit(nogil=True)
def sort_rows(events, access, order, place):  # type: ignore[no-untyped-def]
    """Rows that have the attribute, by its value; ``place[v]`` is the first one of value ``v``
    or more.
    """
    place[:] = 0
    for row in range(len(events)):
        if events[row, access] >= 0:
            place[events[row, access]] += np.uint64(1)
    total = np.uint64(0)
    for value in range(len(place)):
        total += place[value]
        place[value] = total
    for row in range(len(events) - 1, -1, -1):
        if events[row, access] >= 0:
            place[events[row, access]] -= np.uint64(1)
            order[place[events[row, access]]] = row
    return total


@njit(nogil=True)
def fill(start, entry, order, low, high, attributes, made, table, base):  # type: ignore[no-untyped-def]
    """The table of up to 64 rows: their bits, then each boundary ORed with the one below it.

    ``made`` is zero before and after.
    """
    bit = np.uint64(1)
    for i in range(low, high):
        for e in range(start[order[i]], start[order[i] + np.uint64(1)]):
            made[np.uint64(entry[e])] |= bit
        bit <<= np.uint64(1)
    for i in range(attributes):
        table[base + i] = 0
    for i in range(attributes, np.uint64(len(made))):
        table[base + i] = table[base + i - attributes] | made[i]
    for i in range(low, high):
        for e in range(start[order[i]], start[order[i] + np.uint64(1)]):
            made[np.uint64(entry[e])] = 0
