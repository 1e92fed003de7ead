"""A check that an index of ``bitslice`` leads its kernels to no place outside its arrays."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.bitslice.arrays import (
    CONJ_MASK,
    LAST,
    MORE,
    MOST_BINS,
    NO_RANK,
    PROGRAM,
    STEP,
    VERIFY,
    BitsliceIndex,
)
from colmatch.kernels.layout import Predicates

# Results of a check: the index is sound, or the part of it that is wrong.
SOUND, GROUPS, CODES, CONJUNCTIONS, RANKS, ENTRIES, BINS = range(7)


@kernel
def fault_of_bitslice(index: BitsliceIndex, preds: Predicates, size: int) -> int:
    """Returns the part of an index that is wrong, or ``SOUND``.

    The caller has checked the lengths of arrays, the predicates, and that ``group_first`` and
    ``bin_first`` are ranges.
    """
    group_first, lo, hi, who, head = index.group_first, index.lo, index.hi, index.who, index.head
    rest, rest_op, top, ranks = index.rest, index.rest_op, index.top, index.ranks[0]
    width = len(top)
    strata = len(index.attr_group) // width
    entries = len(rest_op)
    # Check that groups ascend, and the codes of their postings
    before = np.int64(0)
    for a in range(width):
        for s in range(strata):
            g = index.attr_group[s * width + a]
            if g < before or g >= len(group_first):
                return GROUPS
            before = np.int64(g)
        for g in range(index.attr_group[a], index.attr_group[(strata - 1) * width + a]):
            for i in range(group_first[g], group_first[g + 1]):
                if lo[i] > hi[i] + np.int64(1) or np.int64(lo[i]) > top[a] or np.int64(hi[i]) > top[a]:
                    return CODES
                if i > group_first[g] and lo[i] < lo[i - 1]:
                    return CODES
    # Check the bins of each attribute
    for a in range(width - 1):
        bins = index.bin_first[a + 1] - index.bin_first[a]
        if np.int64(index.rank[a]) >= ranks or (bins != 0 and bins < top[a]):
            return BINS
        if bins == 0 and index.rank[a] != NO_RANK and top[a] > MOST_BINS:
            return BINS
    # Check the entries of ``rest``
    if rest_op[entries - 1] & (LAST | MORE) != LAST:
        return ENTRIES
    for e in range(entries):
        if np.int64(rest[2 * e]) >= ranks:
            return RANKS
        if rest_op[e] & (LAST | MORE) == LAST | MORE:
            return ENTRIES
    # Check the postings: ranks, conjunctions, and their entries
    walked = np.int64(0)  # entries of postings: no two share one, so these are ``entries`` at most
    for i in range(len(who)):
        for j in range(3):
            if np.int64(head[8 * i + 2 * j]) >= ranks:
                return RANKS
        c = np.int64(who[i])
        if c & (VERIFY | PROGRAM) and c & CONJ_MASK >= len(preds.owner):
            return CONJUNCTIONS
        if not c & (VERIFY | PROGRAM) and c >= size:
            return CONJUNCTIONS
        own = np.int64(head[8 * i + 6]) | np.int64(head[8 * i + 7]) << 16
        if own >= entries:
            return ENTRIES
        if own > 0:
            steps, behind = _count_steps(rest_op, own)
            walked += behind - own
            if walked > entries:
                return ENTRIES
            if rest_op[own] & STEP and not _is_program(preds, c, steps):
                return ENTRIES
    return SOUND


@device
def _count_steps(rest_op, e):
    """Returns how many predicates a posting has from entry ``e`` on, and the end of its entries."""
    steps = np.int64(1)
    while not rest_op[e] & LAST:
        steps += not rest_op[e] & MORE
        e += 1
    return steps, e + 1


@device
def _is_program(preds, who, steps):
    """Returns whether a posting belongs to a program with ``steps`` predicates."""
    c = who & CONJ_MASK
    if not who & PROGRAM or len(preds.jump_first) == 0 or preds.jump_first[c] < 0:
        return False
    return steps == preds.first[c + 1] - preds.first[c]
