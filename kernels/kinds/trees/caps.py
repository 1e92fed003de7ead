"""Bounds of scores where events give weights to attributes.

A *cap* is the most that an attribute adds to the score of a conjunction, before the event's weight
multiplies it. It is the largest sum of positive weights that one conjunction has on the attribute.
A given sum of weights reaches the highest score on the event's heaviest attributes, each filled up
to its cap. So filling caps, the heaviest attribute first, finds the lowest sum that can reach a
score. Bounds are compared with this sum instead of the score. Entries of a leaf stay ordered by
their sums. As without event weights, a leaf is left at the first entry with too low a sum.

Two simpler bounds ignore one half each. The paper's bound adds up caps times event weights, and
ignores the sum of the conjunction. The sum times the event's largest weight ignores the caps.
Filling caps is never above either bound.

Caps of a leaf exclude more than caps of the whole tree, but take a search for each heavy attribute
of each event. So 64 events together search them only in leaves that four or fewer of them reach. In
``dense``, all events shared all leaves. There, searching took a third more time and excluded
nothing (``relevance.py event-weights``). Searching also has a budget: ``ASKS`` for the events of a
call, and one more for each ``WORTH`` entries that it excludes. So it ends soon where it does not
pay.

One variant was rejected: events with weights went down one by one, with the caps of every leaf.
They took 10 to 15 % less time in ``bestar`` and twice as long in ``dense``.

Source: "Relevance Matters", III.C and VI.

Caps of a leaf are eight bytes for each of its attributes, 25 to 50 bytes a subscription in
``bestar``. Only sets with weights have them. With one of 15 attributes at weight 10, the five best
of ``bestar`` take 40 to 60 % of the conjunctions. The sum of a conjunction times the event's
largest weight excludes nothing as soon as one attribute is heavy.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.trees.arrays import BY_PRIORITY, BY_WEIGHTS, COUNT, HEAVIEST, LEAF, NONE
from colmatch.kernels.kinds.trees.bounds import HIGHEST, INFINITE, MARGIN, code_of_bound
from colmatch.kernels.kinds.trees.buckets import order_by
from colmatch.kernels.layout import (
    ADDED,
    ATTR_MASK,
    F64,
    FLAG_NONE,
    I64,
    LARGEST,
    MAX,
    PRIORITY,
    U32,
    Predicates,
    Table,
    Written,
)

ASKS = 64  # searches of a leaf's caps that the events of one call may make at first
WORTH = 16  # entries that take as long to look at as a search of a leaf's caps


@device
def _take_in(attr, weight, count, a, given, factor):
    """Enters an attribute among the heaviest of a row. Returns their number, and the factor.

    attr, weight (HEAVIEST) : the row's heaviest attributes, and their weights
    factor : the largest weight of an attribute that is not among them
    """
    at = count
    while at > 0 and weight[at - 1] < given:
        at -= 1
    if at == HEAVIEST:
        return count, max(factor, given)
    if count == HEAVIEST:
        count -= 1
        factor = max(factor, weight[count])
    for i in range(count, at, -1):
        attr[i], weight[i] = attr[i - 1], weight[i - 1]
    attr[at], weight[at] = a, given
    return count + 1, factor


@device
def weigh_attributes(index, rows, row, weights, scoring, weight_of, scratch, lane):
    """Notes the heaviest attributes of a row, and the factor of all others.

    weight_of (A) : the weights that the row gives
    lane : place of the row in ``scratch``
    """
    # Handle rows without bounds, and rows without weights
    scratch.heaviest[lane] = 0
    if index.bounded[0] != (BY_PRIORITY if scoring == PRIORITY else BY_WEIGHTS):
        scratch.factor[lane] = -1.0
        return
    if len(weights.first) == 0:  # also for scores that ignore the weights of events
        scratch.factor[lane] = 1.0
        return
    # Enter the negations, with the event's largest weight
    attr, weight, cap, cap_all = scratch.heavy_attr[lane], scratch.heavy[lane], scratch.heavy_cap[lane], index.cap_all
    last = len(cap_all) - 1
    count, factor, lightest = np.int64(0), 0.0, np.inf
    if cap_all[last] > 0:  # negations are also true of an absent attribute
        most = 1.0
        for e in range(weights.first[row], weights.first[row + 1]):
            most = max(most, weights.value[e])
        count, factor = _take_in(attr, weight, count, np.uint32(NONE), most, factor)
    # Enter each attribute of the event
    before = np.int64(-1)
    for e in range(rows.first[row], rows.first[row + 1]):
        a = np.int64(rows.attr[e])
        if a != before:  # entries of one attribute are neighbours
            lightest = min(lightest, weight_of[a])
            count, factor = _take_in(attr, weight, count, rows.attr[e], weight_of[a], factor)
            before = a
    # Drop attributes that are no heavier than the factor
    if lightest < np.inf:
        factor = max(factor, lightest)
    while count > 0 and weight[count - 1] <= factor:
        count -= 1
    # Note the caps of the others
    for i in range(count):
        cap[i] = bound_of_code(cap_all[min(np.int64(attr[i]), last)])
    scratch.heaviest[lane], scratch.factor[lane] = count, factor


@device
def goes_by_largest(index, scoring):
    """Returns whether the bounds of buckets are the largest weights, for the largest product.

    The lowest sum that can reach a score is no higher than a single weight that reaches it. So both
    kinds of bounds are compared with the same floors.
    """
    return scoring == MAX and len(index.most_below) > 0


@device
def bound_of_code(code):
    """Returns the bound of a number that ``code_of_bound`` gave."""
    return np.float64(np.uint32(code).view(np.float32))


@device
def _find_cap(cap, begin, end, a):
    """Returns the cap of an attribute among the caps of a leaf, 0 where the leaf lacks it."""
    while begin < end:
        middle = (begin + end) >> 1
        if cap[middle, 0] < a:
            begin = middle + 1
        elif cap[middle, 0] > a:
            end = middle
        else:
            return bound_of_code(cap[middle, 1])
    return 0.0


@device
def lowest_bound(least, factor, count, attr, weight, most, cap, begin, end):
    """Returns the number of the lowest bound that can reach a score; 0 where all can.

    Parameters
    ----------
    least : the score
    factor : the largest weight of an attribute that is not among the ``count`` heaviest; below 0
        where bounds do not apply to the row's scores
    attr, weight (HEAVIEST) : the heaviest attributes, and their weights
    most (HEAVIEST) : their caps in the whole tree
    cap (K, 2), begin, end : the caps of a leaf, which count instead if there are any
    """
    if factor < 0.0 or least <= 0.0:
        return np.uint32(0)
    filled = 0.0
    for i in range(count):
        own = most[i] if begin == end else _find_cap(cap, begin, end, attr[i])
        if least <= own * weight[i]:
            factor = weight[i]
            break
        least -= own * weight[i]
        filled += own
    if factor == 0.0:
        return np.uint32(NONE)
    return np.float32(min((filled + least / factor) * (1.0 - MARGIN), HIGHEST)).view(np.uint32)


@device
def find_floor(scratch, lane, least, cap, begin, end):
    """Returns the number of the lowest bound that is high enough for a row.

    The arguments are those of ``lowest_bound``.
    """
    attr, weight, most = scratch.heavy_attr[lane], scratch.heavy[lane], scratch.heavy_cap[lane]
    return lowest_bound(least, scratch.factor[lane], scratch.heaviest[lane], attr, weight, most, cap, begin, end)


@device
def find_leaf_floor(index, n, scratch, lane, least):
    """Returns the number of the lowest bound that is high enough for a row in the leaf of a bucket.

    The leaf's own caps are searched as long as that pays, if bounds apply to the row's scores and
    the row has heavy attributes.

    least : the score that a conjunction must reach
    """
    floor, bound = scratch.floor[lane], index.bound
    if scratch.asks[0] == 0 or scratch.heaviest[lane] == 0 or least <= 0.0:
        return floor
    begin, last = np.int64(index.node[n, LEAF]), np.int64(index.node[n, LEAF]) + np.int64(index.node[n, COUNT]) - 1
    if bound[begin] < floor:
        return floor
    own = find_floor(scratch, lane, least, index.cap, np.int64(index.cap_first[n]), np.int64(index.cap_first[n + 1]))
    spared = np.int64(0)
    while last >= begin and bound[last] < own:
        spared += bound[last] >= floor
        last -= 1
    scratch.asks[0] += spared // WORTH - 1
    return max(floor, own)


@device
def _raise_caps(preds, c, negated, own, largest, highest, touched, count):
    """Raises the caps of a leaf to the most that the attributes of one of its conjunctions add.

    negated : place of the cap of negations
    own, largest (A + 1) float64 : zeros, and zeros again at the end
    highest (A + 1) float64 : the caps, written
    touched : the ``count`` attributes with a cap other than 0

    Returns the new number of these attributes.
    """
    first, last = preds.first[c], preds.first[c + 1]
    for p in range(first, last):
        a = negated if preds.pred[p, 0] & FLAG_NONE else np.int64(preds.pred[p, 0] & ATTR_MASK)
        own[a] += max(preds.weight[p, ADDED], 0.0)
        largest[a] = max(largest[a], preds.weight[p, LARGEST])
    for p in range(first, last):
        a = negated if preds.pred[p, 0] & FLAG_NONE else np.int64(preds.pred[p, 0] & ATTR_MASK)
        most = max(own[a], largest[a])
        own[a] = largest[a] = 0.0
        if most > highest[a]:
            if highest[a] == 0.0:
                touched[count] = a
                count += 1
            highest[a] = most
    return count


@kernel
def find_caps(
    node: Written[Table[U32]],
    preds: Predicates,
    table: Written[Table[F64]],
    touched: Written[U32],
    order: Written[U32],
    tally: Written[I64],
    first: Written[U32],
    cap: Written[Table[U32]],
    all: Written[U32],
) -> int:
    """Writes the caps of each leaf, and of the whole tree. Returns the number of the leaves' caps.

    Parameters
    ----------
    node (N, 16) : nodes of a packed tree
    table (3, A + 1) float64 : zeros
    touched, order (A + 1) uint32, tally int64 : scratch
    first (N + 1), cap (K, 2), all (A + 1) : zeros, written as in ``Tree``. There is room for as
        many caps as there are predicates
    """
    own, largest, highest = table[0], table[1], table[2]
    negated, n = len(all) - 1, np.int64(0)
    for leaf in range(len(node)):
        first[leaf] = n
        count = np.int64(0)
        # Raise the leaf's caps by each conjunction
        for c in range(np.int64(node[leaf, LEAF]), np.int64(node[leaf, LEAF]) + np.int64(node[leaf, COUNT])):
            count = _raise_caps(preds, c, negated, own, largest, highest, touched, count)
        # Write them by attribute, and clear them
        if count > 0:
            order_by(touched, order, count, tally)
        for i in range(count):
            a = np.int64(touched[order[i]])
            code = min(code_of_bound(highest[a]) + np.uint32(1), INFINITE)  # rounded up, even the smallest floats
            cap[n, 0], cap[n, 1] = NONE if a == negated else a, code
            all[a] = max(all[a], code)
            highest[a] = 0.0
            n += 1
    first[len(node)] = n
    return n
