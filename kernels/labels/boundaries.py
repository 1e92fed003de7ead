"""Codes with gaps: labels of boundaries, at build and when boundaries are inserted between others.

Two invariants keep room where it is needed. Labels of neighbouring boundaries are at least 1 apart,
and at most as far as their keys. So neighbouring keys have neighbouring labels, small domains of
integers can never run out of labels, and a range of one label is an equality. Labels can run out
only between keys that are further apart than their labels. Then all boundaries are *spaced*: they
get new labels.

An inserted boundary is placed in proportion to its key's distances from its neighbours' keys. It
leaves at least the square root of the gap on either side. Halving gaps, as for keys about which
nothing is known, would use up a gap in as many ascending numbers as it has bits. For ascending
numbers, spacing also gives wide gaps more labels. Values that ascend towards some far end, as times
do, have room there.

Numbers that ascend within a gap of two million labels take some three thousand inserts to use it
up. Halving the gap each time would take 21.
"""

import numpy as np

from colmatch.kernels._jit import brief, device, kernel
from colmatch.kernels.hints import distance
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, I64, LABEL_TOP, U32, Table, Written
from colmatch.kernels.search import first_at_least

LOWEST = 1 << 30  # label of an attribute's lowest boundary after spacing: there is room below
SPAN = 1 << 31  # labels shared out by spacing, with room above


@device
def _limit_distance(low, high, most):
    """Returns the distance of two keys, or ``most`` if that is less."""
    return np.int64(min(distance(low, high), np.uint64(most)))


@device
def _space(bound, begin, end, label):
    """Writes the labels of boundaries ``begin:end``, without regard to others.

    Half of the labels go to all gaps alike, half by the distance of keys.
    """
    gap = SPAN // 2 // (end - begin + 1)
    at = np.int64(LOWEST)
    for b in range(begin, end):
        if b > begin:
            part = np.float64(distance(bound[b - 1], bound[b])) / np.float64(distance(bound[begin], bound[end - 1]))
            at += _limit_distance(bound[b - 1], bound[b], gap + np.int64(part * (SPAN // 2)))
        label[b] = at


@kernel
def space_codes(first: I64, bound: I64, label: Written[U32]) -> None:
    """Spaces all boundaries: writes new labels for them.

    first (A + 1), bound (B) : as in ``layout.Codes``
    label (B + 1) uint32 : written, except the last one
    """
    for a in range(len(first) - 1):
        _space(bound, first[a], first[a + 1], label)


@kernel
def label_predicates(
    pred: Written[Table[U32]], run_lo: Written[U32], run_hi: Written[U32], first: I64, label: U32
) -> None:
    """Replaces dense codes of predicates (``layout.Predicates``) with labels, in place.

    first (A + 1), label (B) : of the boundaries
    """
    for p in range(len(pred)):
        word = pred[p, 0]
        a = np.int64(word & np.uint32(ATTR_MASK))
        begin, end = first[a], first[a + 1]
        low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
        if word & np.uint32(FLAG_RUN):
            for j in range(low, high):
                run_lo[j] = _lowest(label, begin, np.int64(run_lo[j]))
                run_hi[j] = _highest(label, begin, end, np.int64(run_hi[j]))
        elif low <= high:
            pred[p, 1] = _lowest(label, begin, low)
            pred[p, 2] = _highest(label, begin, end, high)


@device
def _lowest(label, begin, code):
    return np.int64(label[begin + code - 2]) if code > 1 else np.int64(1)


@device
def _highest(label, begin, end, code):
    return np.int64(label[begin + code - 1]) - 1 if begin + code - 1 < end else np.int64(LABEL_TOP)


@kernel
def unlabel_predicates(
    pred: Written[Table[U32]], run_lo: Written[U32], run_hi: Written[U32], first: I64, label: U32
) -> None:
    """Replaces labels of predicates (``layout.Predicates``) with dense codes, in place.

    Reverses ``label_predicates``. A kernel cannot take the function for each code as an argument.

    first (A + 1), label (B) : of the boundaries; predicates on other attributes stay
    """
    for p in range(len(pred)):
        word = pred[p, 0]
        a = np.int64(word & np.uint32(ATTR_MASK))
        if a + 1 >= len(first):
            continue
        begin, end = first[a], first[a + 1]
        low, high = np.int64(pred[p, 1]), np.int64(pred[p, 2])
        if word & np.uint32(FLAG_RUN):
            for j in range(low, high):
                run_lo[j] = _code(label, begin, end, np.int64(run_lo[j]))
                run_hi[j] = _code(label, begin, end, np.int64(run_hi[j]))
        elif low <= high:
            pred[p, 1] = _code(label, begin, end, low)
            pred[p, 2] = _code(label, begin, end, high)


@device
def _code(label, begin, end, value):
    return first_at_least(label, begin, end, value + 1) - begin + 1


@brief
def append_predicates(
    more_first: I64,
    more_pred: Table[U32],
    more_lo: U32,
    more_hi: U32,
    more_owner: U32,
    code_first: I64,
    label: U32,
    conjunctions: int,
    predicates: int,
    runs: int,
    shift: int,
    first: Written[I64],
    pred: Written[Table[U32]],
    run_lo: Written[U32],
    run_hi: Written[U32],
    owner: Written[U32],
) -> None:
    """Appends predicates with dense codes to others, with labels instead.

    more_first, more_pred, more_lo, more_hi, more_owner : the new predicates, as in
        ``layout.Predicates``
    code_first (A + 1), label (B) : of the boundaries of their codes
    conjunctions, predicates, runs : numbers of those already there
    shift : is added to each owner
    first, pred, run_lo, run_hi, owner : old and new predicates; the new ones are written, and there
        is room
    """
    for c in range(len(more_owner)):
        owner[conjunctions + c] = more_owner[c] + np.uint32(shift)
        first[conjunctions + c + 1] = predicates + more_first[c + 1]
    for j in range(len(more_lo)):
        run_lo[runs + j], run_hi[runs + j] = more_lo[j], more_hi[j]
    for p in range(len(more_pred)):
        at = runs if more_pred[p, 0] & np.uint32(FLAG_RUN) else 0
        pred[predicates + p, 0] = more_pred[p, 0]
        for k in range(1, 3):
            pred[predicates + p, k] = np.int64(more_pred[p, k]) + at
    label_predicates(pred[predicates : predicates + len(more_pred)], run_lo, run_hi, code_first, label)


@brief
def join_boundaries(
    first: I64,
    bound: I64,
    label: U32,
    new_first: I64,
    new_bound: I64,
    place: Written[I64],
    new_label: Written[U32],
    all_first: Written[I64],
    all_bound: Written[I64],
    all_label: Written[U32],
) -> int:
    """Puts new boundaries among the known boundaries.

    first, bound, label : the known boundaries, as in ``layout.Codes``
    new_first (A + 1), new_bound (N) : new boundaries, of the same attributes or more
    place (N) : scratch
    new_label (N), all_first (A + 1), all_bound, all_label : written. The latter two have room for
        all boundaries and the closing label. They are not written if no boundary is new

    Returns the number of boundaries that are new, or -1 if there is no room for a label.
    """
    for a in range(len(all_first)):
        all_first[a] = first[min(a, len(first) - 1)]
    number = find_boundaries(all_first, bound, new_first, new_bound, place)
    if not label_boundaries(all_first, bound, label, new_first, new_bound, place, new_label):
        return -1
    if number > 0:
        for b in range(len(bound)):
            all_bound[b], all_label[b] = bound[b], label[b]
        enter_boundaries(all_first, new_first, new_bound, new_label, place, number, len(bound), all_bound, all_label)
        all_label[len(bound) + number] = LABEL_TOP
    return number


@device
def find_boundaries(first, bound, new_first, new_bound, place):
    """Writes the places of boundaries among the known ones: place (N), the first that is not below.

    Returns the number of unknown boundaries.

    first, new_first (A + 1), bound, new_bound (N) : as in ``layout.Codes``
    """
    number = 0
    for a in range(len(first) - 1):
        for j in range(new_first[a], new_first[a + 1]):
            p = first_at_least(bound, first[a], first[a + 1], new_bound[j])
            place[j] = p
            if p == first[a + 1] or bound[p] != new_bound[j]:
                number += 1
    return number


@device
def label_boundaries(first, bound, label, new_first, new_bound, place, new_label):
    """Writes the labels of known and new boundaries, with the places that ``find_boundaries``
    wrote.

    Returns False if some boundary has no room.

    new_label (N) uint32 : written
    """
    for a in range(len(first) - 1):
        # Space the boundaries of a new attribute
        begin, end = first[a], first[a + 1]
        j, last = new_first[a], new_first[a + 1]
        if begin == end:
            _space(new_bound, j, last, new_label)
            continue
        # Otherwise keep the labels of known boundaries
        gap = SPAN // (end - begin + 1)
        while j < last:
            p = place[j]
            if p < end and bound[p] == new_bound[j]:
                new_label[j] = label[p]
                j += 1
                continue
            # Find all new boundaries at the same place
            stop = j + 1
            while stop < last and place[stop] == p and (p == end or bound[p] != new_bound[stop]):
                stop += 1
            # Label them below, above or between the known ones
            if p == begin:
                room = _label_below(bound[p], np.int64(label[p]), gap, new_bound, j, stop, new_label)
            elif p == end:
                room = _label_above(bound[p - 1], np.int64(label[p - 1]), gap, new_bound, j, stop, new_label)
            else:
                room = _label_between(
                    bound[p - 1], np.int64(label[p - 1]), bound[p], np.int64(label[p]), new_bound, j, stop, new_label
                )
            if not room:
                return False
            j = stop
    return True


@device
def _label_below(key, at, gap, new_bound, j, stop, new_label):
    """Labels the boundaries ``j:stop`` downwards from a key with the label ``at``."""
    if at - 2 < stop - j:
        return False
    for k in range(stop - 1, j - 1, -1):
        at -= _limit_distance(new_bound[k], key, min(gap, max((at - 2) // (k - j + 2), 1)))
        key = new_bound[k]
        new_label[k] = at
    return True


@device
def _label_above(key, at, gap, new_bound, j, stop, new_label):
    """Labels the boundaries ``j:stop`` upwards from a key with the label ``at``."""
    if LABEL_TOP - at < stop - j:
        return False
    for k in range(j, stop):
        at += _limit_distance(key, new_bound[k], min(gap, max((LABEL_TOP - at) // (stop - k + 1), 1)))
        key = new_bound[k]
        new_label[k] = at
    return True


@device
def _label_between(key, at, key_above, at_above, new_bound, j, stop, new_label):
    """Labels the boundaries ``j:stop`` between two keys and their labels."""
    if at_above - at <= stop - j:
        return False
    for k in range(j, stop):
        room, left = at_above - at, stop - k
        step = place_between(
            room, left, np.float64(distance(key, new_bound[k])), np.float64(distance(new_bound[k], key_above))
        )
        # Keep labels no further from either neighbour than keys
        step = max(step, room - _limit_distance(new_bound[k], key_above, room - 1))
        at += min(step, _limit_distance(key, new_bound[k], room - left))
        key = new_bound[k]
        new_label[k] = at
    return True


@device
def place_between(room, left, below, above):
    """Returns the place of the first of ``left`` new labels in a gap of ``room``.

    below, above : distances of the first from its neighbours, at any scale
    """
    least = max(min(np.int64(np.sqrt(np.float64(room))), room // (left + 1)), 1)
    target = np.int64(room * (below / (below + above)))
    return min(max(target, least), room - left * least)


@device
def enter_boundaries(first, new_first, new_bound, new_label, place, number, known, bound, label):
    """Puts the new ones of N boundaries among the ``known`` ones, in place.

    bound, label : have room for the new boundaries
    first (A + 1) : rewritten
    place (N) : as ``find_boundaries`` wrote it; ``number`` is its result
    """
    # Walk from the last attribute down, so that nothing is overwritten
    out = known + number
    j = len(new_bound) - 1
    old = known
    added = number
    for a in range(len(first) - 2, -1, -1):
        begin = first[a]
        end = first[a + 1]
        first[a + 1] = end + added
        # Put in the new boundaries, and move the known ones above them
        while j >= new_first[a]:
            p = place[j]
            if p == end or bound[p] != new_bound[j]:
                while old > p:
                    old -= 1
                    out -= 1
                    bound[out] = bound[old]
                    label[out] = label[old]
                out -= 1
                bound[out] = new_bound[j]
                label[out] = new_label[j]
                added -= 1
            j -= 1
        if added == 0:
            return
        # Move the rest of this attribute by the number of new boundaries below it
        while old > begin:
            old -= 1
            out -= 1
            bound[out] = bound[old]
            label[out] = label[old]
