"""String literals with gaps between their labels, which are keys.

Literals can be inserted between others without a change to any boundary's key.

A label is at least 2 from the next, since the key between two literals is the lower one's label
plus one. If two labels are too near for new ones between them, the attribute's literals are
*spaced*. All of them get new labels, and the attribute's boundaries get new keys. Codes stay.
"""

import numpy as np

from colmatch.kernels._jit import brief, device, kernel
from colmatch.kernels.labels.boundaries import place_between
from colmatch.kernels.layout import I64, U8, Literals, Written
from colmatch.kernels.search import first_at_least, first_at_least_from

LOWEST = 1 << 61  # label of the lowest literal after spacing: there is room below
HIGHEST = 1 << 62  # no label is above, so that distances of keys stay within int64
GAP = 1 << 40
HEAD = 6  # bytes that measure the distance between strings: as many as a float64 holds


@kernel
def space_literals(first: I64, which: U8, label: Written[I64]) -> None:
    """Spaces the literals of the attributes ``which`` (A) uint8: writes new labels for them.

    first (A + 1) : as in ``layout.Literals``
    label (L) int64 : written
    """
    for a in range(len(first) - 1):
        if which[a]:
            gap = min(GAP, LOWEST // (first[a + 1] - first[a] + 1))
            for r in range(first[a], first[a + 1]):
                label[r] = LOWEST + (r - first[a]) * gap


@device
def _key(first, bound, literal_first, label):
    for a in range(len(first) - 1):
        base = literal_first[a]
        if base == literal_first[a + 1]:
            continue
        for b in range(first[a], first[a + 1]):
            key = bound[b]
            bound[b] = label[base + ((key - 1) >> 1)] + 1 - (key & 1)


@kernel
def key_boundaries(first: I64, bound: Written[I64], literal_first: I64, label: I64) -> None:
    """Replaces keys of boundaries by numbers of literals with keys by labels, in place.

    ``layout.Literals`` describes both kinds of keys.

    first (A + 1), bound (B), literal_first (A + 1), label (L). No boundary has the key 0.
    """
    _key(first, bound, literal_first, label)


@device
def _compare(a, i, i_end, b, j, j_end):
    """Compares the bytes ``i:i_end`` of a with the bytes ``j:j_end`` of b.

    The result is below 0, 0 or above 0, as the former are less, equal or greater.
    """
    while i < i_end and j < j_end:
        if a[i] != b[j]:
            return -1 if a[i] < b[j] else 1
        i += 1
        j += 1
    return (i_end - i) - (j_end - j)


@kernel
def find_literals(literals: Literals, new: Literals, place: Written[I64], known: Written[U8]) -> int:
    """Finds the places of literals among the known ones. Returns the number of unknown literals.

    literals, new : ``layout.Literals``
    place (N) : the first known literal that is not below, written
    known (N) uint8 : whether this is the same literal, written
    """
    first, offset, data = literals.first, literals.offset, literals.data
    new_first, new_offset, new_data = new.first, new.offset, new.data
    number = 0
    for a in range(len(first) - 1):
        low = first[a]
        for j in range(new_first[a], new_first[a + 1]):
            low, there = _search(offset, data, low, first[a + 1], new_data, new_offset[j], new_offset[j + 1])
            place[j], known[j] = low, there
            if not there:
                number += 1
    return number


@device
def _search(offset, data, low, high, text, begin, end):
    """Returns the first of the literals ``low:high`` that is not below ``text[begin:end]``.

    Also returns whether it is the same.
    """
    while low < high:
        middle = (low + high) >> 1
        order = _compare(text, begin, end, data, offset[middle], offset[middle + 1])
        if order == 0:
            return middle, True
        if order > 0:
            low = middle + 1
        else:
            high = middle
    return low, False


def _key_known(
    first: I64,
    offset: I64,
    data: U8,
    label: I64,
    recent_first: I64,
    recent_offset: I64,
    recent_data: U8,
    recent_label: I64,
    new_first: I64,
    new_offset: I64,
    new_data: U8,
    new_label: Written[I64],
    code_first: I64,
    bound: Written[I64],
) -> bool:
    """Replaces keys by numbers of new literals with keys by labels, in place, if all literals are
    known.

    first, offset, data, label, and the same of recent ones : the known literals
    new_first (A + 1), new_offset, new_data : as in ``layout.Literals``
    new_label (N) : scratch
    code_first (A + 1), bound (B) : as for ``key_boundaries``; left alone if some literals are not
        known

    Returns whether all literals are known.
    """
    for a in range(len(new_first) - 1):
        for j in range(new_first[a], new_first[a + 1]):
            start, end = new_offset[j], new_offset[j + 1]
            place, there = _search(offset, data, first[a], first[a + 1], new_data, start, end)
            if there:
                new_label[j] = label[place]
                continue
            place, there = _search(
                recent_offset, recent_data, recent_first[a], recent_first[a + 1], new_data, start, end
            )
            if not there:
                return False
            new_label[j] = recent_label[place]
    _key(code_first, bound, new_first, new_label)
    return True


key_known, key_few = kernel(_key_known), brief(_key_known)


@device
def _head(data, begin, end, at):
    """Returns the ``HEAD`` bytes from place ``at`` of a string on, as a number."""
    number = 0.0
    for i in range(HEAD):
        number = number * 256.0 + (np.float64(data[begin + at + i]) if begin + at + i < end else 0.0)
    return number


@device
def _count_common(a, i, i_end, b, j, j_end):
    size = 0
    while i + size < i_end and j + size < j_end and a[i + size] == b[j + size]:
        size += 1
    return size


@kernel
def label_literals(
    literals: Literals, new: Literals, place: I64, known: U8, new_label: Written[I64], crowded: Written[U8]
) -> None:
    """Writes the labels of literals at the places that ``find_literals`` wrote: new_label (N).

    crowded (A) uint8 : set for attributes without room, which have to be spaced
    """
    first, offset, data, label = literals.first, literals.offset, literals.data, literals.label
    new_first, new_offset, new_data = new.first, new.offset, new.data
    for a in range(len(first) - 1):
        # Note new attributes, which have to be spaced
        begin, end = first[a], first[a + 1]
        j, last = new_first[a], new_first[a + 1]
        crowded[a] = 1 if begin == end and j < last else 0
        while j < last and not crowded[a]:
            # Keep the labels of known literals
            p = place[j]
            if known[j]:
                new_label[j] = label[p]
                j += 1
                continue
            # Find all new literals at the same place
            stop = j + 1
            while stop < last and place[stop] == p and not known[stop]:
                stop += 1
            if p == begin:
                # Label them downwards from the lowest known literal
                at = label[p]
                for k in range(stop - 1, j - 1, -1):
                    if at < 2 * (k - j + 1) + 1:
                        crowded[a] = 1
                        break
                    at -= min(GAP, max((at - 1) // (k - j + 2), 2))
                    new_label[k] = at
            elif p == end:
                # Label them upwards from the highest known literal
                at = label[p - 1]
                for k in range(j, stop):
                    if HIGHEST - at < 2 * (stop - k):
                        crowded[a] = 1
                        break
                    at += min(GAP, max((HIGHEST - at) // (stop - k + 1), 2))
                    new_label[k] = at
            else:
                # Label them between two known literals, by the distances of strings
                at, above = label[p - 1], label[p]
                same = _count_common(data, offset[p - 1], offset[p], data, offset[p], offset[p + 1])
                low, high = _head(data, offset[p - 1], offset[p], same), _head(data, offset[p], offset[p + 1], same)
                for k in range(j, stop):
                    room, left = (above - at) >> 1, stop - k  # a label takes two keys, with the key behind it
                    if room <= left:
                        crowded[a] = 1
                        break
                    here = _head(new_data, new_offset[k], new_offset[k + 1], same)
                    at += 2 * place_between(room, left, max(here - low, 0.0) + 1.0, max(high - here, 0.0) + 1.0)
                    low = here
                    new_label[k] = at
            j = stop


@kernel
def merge_literals(
    literals: Literals,
    new: Literals,
    new_label: I64,
    place: I64,
    known: U8,
    merged: Written[Literals],
    moved: Written[I64],
    new_moved: Written[I64],
) -> None:
    """Merges known and new literals.

    merged : ``layout.Literals``, written
    moved (L), new_moved (N) : the new place of each literal, written
    """
    first, offset, data, label = literals.first, literals.offset, literals.data, literals.label
    new_first, new_offset, new_data = new.first, new.offset, new.data
    out_first, out_offset, out_data, out_label = merged.first, merged.offset, merged.data, merged.label
    out = 0
    end = 0
    out_first[0] = 0
    out_offset[0] = 0
    for a in range(len(first) - 1):
        r = first[a]
        for j in range(new_first[a], new_first[a + 1] + 1):
            # Copy the known literals before the next new one
            last = j == new_first[a + 1]
            upto = first[a + 1] if last else place[j]
            while r < upto:
                for i in range(offset[r], offset[r + 1]):
                    out_data[end] = data[i]
                    end += 1
                out_label[out] = label[r]
                moved[r] = out
                out += 1
                out_offset[out] = end
                r += 1
            # Copy the new literal, unless it is known
            if last:
                break
            new_moved[j] = out
            if known[j]:
                continue
            for i in range(new_offset[j], new_offset[j + 1]):
                out_data[end] = new_data[i]
                end += 1
            out_label[out] = new_label[j]
            out += 1
            out_offset[out] = end
        out_first[a + 1] = out


@kernel
def move_boundaries(
    first: I64, bound: Written[I64], literal_first: I64, label: I64, moved: I64, new_label: I64, which: U8
) -> None:
    """Replaces keys of boundaries of the attributes ``which`` (A) with keys by new labels, in
    place.

    literal_first (A + 1), label (L), moved (L) : of the old literals
    new_label : of all literals, after spacing
    """
    for a in range(len(first) - 1):
        if not which[a]:
            continue
        for b in range(first[a], first[a + 1]):
            r = first_at_least(label, literal_first[a], literal_first[a + 1], bound[b])
            after = 0
            if r == literal_first[a + 1] or label[r] != bound[b]:
                r -= 1
                after = 1
            bound[b] = new_label[moved[r]] + after


@kernel
def mark_literals(first: I64, bound: I64, literal_first: I64, label: I64, used: Written[U8]) -> None:
    """Marks the literals with boundaries at their labels, or at the keys behind them: used (L)
    uint8.

    first (A + 1), bound (B); literal_first (at least A + 1), label (L).
    """
    for a in range(len(first) - 1):
        r, end = literal_first[a], literal_first[a + 1]
        for b in range(first[a], first[a + 1]):
            r = first_at_least_from(label, r, end, bound[b] - 1)
            if r < end and label[r] <= bound[b]:
                used[r] = 1


@kernel
def take_literals(literals: Literals, place: I64, taken: Written[Literals]) -> None:
    """Writes the literals at some places, which ascend.

    literals, taken : ``layout.Literals``; ``first`` of the latter is filled already
    """
    offset, data, label = literals.offset, literals.data, literals.label
    out_offset, out_data, out_label = taken.offset, taken.data, taken.label
    end = 0
    out_offset[0] = 0
    for n in range(len(place)):
        r = place[n]
        for i in range(offset[r], offset[r + 1]):
            out_data[end] = data[i]
            end += 1
        out_label[n] = label[r]
        out_offset[n + 1] = end


@kernel
def find_neighbours(first: I64, new_first: I64, place: I64, near_first: Written[I64], near: Written[I64]) -> int:
    """Writes the places of the literals before and at the places of new literals, each once.

    Returns their number.

    first (A + 1), new_first (A + 1)
    place (N) : as ``find_literals`` writes it
    near_first (A + 1), near (2 N) : written
    """
    n = 0
    near_first[0] = 0
    for a in range(len(first) - 1):
        for j in range(new_first[a], new_first[a + 1]):
            for r in range(max(place[j] - 1, first[a]), min(place[j] + 1, first[a + 1])):
                if n == near_first[a] or near[n - 1] < r:
                    near[n] = r
                    n += 1
        near_first[a + 1] = n
    return n
