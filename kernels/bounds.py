"""How high the score of a conjunction can be, whatever event it is true for.

A true conjunction has all of its predicates, so their positive weights bound what it scores, and
are its score where none is negative and no event gives weights.
"""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import ADDED, DOT, F64, LARGEST, MAX, PRIORITY, SUM, Predicates, Table, Written

ROUNDED = 1.0 + 1e-9  # more than the rounding of a sum of weights can be


@kernel
def bound_scores(preds: Predicates, stack: Written[F64], most: Written[Table[F64]]) -> None:
    """Writes how high each conjunction can score if all attributes weigh 1.

    most (C, 4) float64 : by ``DOT`` and so on. stack float64 : as long as the longest tree of a
    program
    """
    first, weight, priority = preds.first, preds.weight, preds.priority
    weighted, programs = len(weight) > 0, len(preds.jump_first) > 0
    for c in range(len(preds.owner)):
        added, largest = 0.0, 0.0
        if weighted:
            for p in range(first[c], first[c + 1]):
                added += max(weight[p, ADDED], 0.0)
                largest = weight[p, LARGEST] if p == first[c] else max(largest, weight[p, LARGEST])
            if programs and preds.jump_first[c] >= 0:
                height = np.int64(0)
                for t in range(preds.tree_first[c], preds.tree_first[c + 1]):
                    token = np.int64(preds.tree[t])
                    if token >= 0:
                        stack[height] = max(weight[first[c] + token, ADDED], 0.0)
                        height += 1
                        continue
                    either, parts = token & 1, -token >> 1
                    height -= parts
                    total = stack[height]
                    for i in range(height + 1, height + parts):
                        total = max(total, stack[i]) if either else total + stack[i]
                    stack[height] = total
                    height += 1
                added = stack[0]
        most[c, DOT] = added
        most[c, SUM] = added
        most[c, MAX] = largest
        most[c, PRIORITY] = priority[c] if len(priority) > 0 else 0.0
