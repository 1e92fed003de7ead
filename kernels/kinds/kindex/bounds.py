"""Bounds of scores: the most that a segment or a part adds to the score of a conjunction.

Source: Whang et al., "Indexing Boolean Expressions": the largest weight of the entries of each
list. ``KIndex`` lists the bounds. A set without weights has none of them.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.kindex.arrays import NO_CLAUSE, Numbering
from colmatch.kernels.layout import ADDED, F32, F64, FLAG_NONE, I64, LARGEST, U32, Predicates, Written

SHORTENED = 1.0 + 1e-6  # weights of entries have 24 bits
LEAST, MOST = 1e-30, 3e38  # smaller weights would lose bits, or become 0; greater ones do not fit


@device
def largest_score(weight, p):
    """Returns the most that a predicate adds to a score, if the event gives no weights."""
    return max(weight[p, ADDED], weight[p, LARGEST], 0.0)


@device
def entry_score(weight, p):
    """Returns ``largest_score``, with the 24 bits that an entry has for it."""
    most = largest_score(weight, p)
    if most > MOST:
        return np.float32(np.inf)
    return np.float32(max(most, LEAST) if most > 0.0 else 0.0)


@kernel
def weigh_segments(
    entry: Written[U32], entry_weight: Written[F32], segment_first: Written[U32], segment_weight: Written[F64]
) -> None:
    """Writes the most that the predicates of each segment add to the score of one conjunction.

    A segment of the last plane may have several entries of a conjunction.
    """
    for s in range(len(segment_weight)):
        most, total, number = np.float64(0.0), np.float64(0.0), np.int64(-1)
        for i in range(segment_first[s], segment_first[s + 1]):
            if np.int64(entry[i]) >> 1 != number:
                number, total = np.int64(entry[i]) >> 1, np.float64(0.0)
            total += entry_weight[i]
            most = max(most, total)
        segment_weight[s] = most * SHORTENED


@kernel
def weigh_rests(
    preds: Predicates, numbering: Written[Numbering], part_first: Written[I64], part_rest: Written[F64]
) -> None:
    """Writes the most that predicates without positive entries add to a score in each part."""
    clause, weight = numbering.clause, preds.weight
    for part in range(len(part_rest)):
        part_rest[part] = 0.0
        for number in range(part_first[part], part_first[part + 1]):
            c, total = numbering.conj[number], 0.0
            for p in range(preds.first[c], preds.first[c + 1]):
                posted = number < numbering.begin or clause[p] != NO_CLAUSE
                if preds.pred[p, 0] & FLAG_NONE or not posted:
                    total += largest_score(weight, p)
            part_rest[part] = max(part_rest[part], total)
