"""Upper bounds of a conjunction's score, for all events that make it true.

A true conjunction has all of its predicates, so the sum of their positive weights bounds its score.
The bound is exact where no weight is negative and no event gives weights.
"""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import ADDED, DOT, F64, LARGEST, MAX, PRIORITY, SUM, Predicates, Table, Written

ROUNDED = 1.0 + 1e-9  # exceeds any rounding error of a sum of weights


@kernel
def bound_scores(preds: Predicates, stack: Written[F64], most: Written[Table[F64]]) -> None:
    """Writes the highest possible score of each conjunction if all attributes weigh 1.

    stack : float64, as long as the longest tree of a program
    most : (C, 4) float64, with a column for ``DOT`` and so on
    """
    first, weight, priority = preds.first, preds.weight, preds.priority
    weighted, programs = len(weight) > 0, len(preds.jump_first) > 0
    for c in range(len(preds.owner)):
        added, largest = 0.0, 0.0
        if weighted:
            # Add up the positive weights, and find the largest weight
            for p in range(first[c], first[c + 1]):
                added += max(weight[p, ADDED], 0.0)
                largest = weight[p, LARGEST] if p == first[c] else max(largest, weight[p, LARGEST])
            # Evaluate the tree of a program, where an OR counts its best part
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
        # Write the bounds
        most[c, DOT] = added
        most[c, SUM] = added
        most[c, MAX] = largest
        most[c, PRIORITY] = priority[c] if len(priority) > 0 else 0.0
