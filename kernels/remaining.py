"""A search for the rows of a batch that may have a better match in the next stratum.

``colmatch/matching/strata.py`` matches these rows with it, and no others.
"""

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bounds import ROUNDED
from colmatch.kernels.layout import DOT, I64, MAX, EventWeights, Rows, Top, Written
from colmatch.kernels.topk import SCORING, least_score


@device
def highest_score(best, scoring, first, value, row):
    """Returns the highest score in a row of a match that scores ``best`` without event weights.

    first, value : of ``layout.EventWeights``
    """
    if scoring != DOT and scoring != MAX:
        return best * ROUNDED if best > 0.0 else best
    largest = 1.0  # for attributes that the event gives no weight to
    if len(first) > 0:
        for e in range(first[row], first[row + 1]):
            largest = max(largest, value[e])
        best = max(best, 0.0)  # a weight below zero counts little where the event's is little
    return best * largest * ROUNDED if best > 0.0 else best


@kernel
def gather_remaining(
    rows: Written[Rows],
    start: int,
    stop: int,
    best: float,
    weights: EventWeights,
    top: Written[Top],
    row: Written[I64],
    remaining: Written[Rows],
) -> int:
    """Copies the rows where a match that scores ``best`` would be among those wanted.

    Returns the number of these rows.

    best : float64, highest score of the subscriptions that follow, without event weights
    row : (stop - start) int64, written, the number of each row in the batch
    remaining : ``layout.Rows``, written
    """
    scoring, entries, n = top.state[SCORING], 0, 0
    first, attr, code = rows.first, rows.attr, rows.code
    remaining.first[0] = 0
    for r in range(start, stop):
        if least_score(top.score, top.fill, r) > highest_score(best, scoring, weights.first, weights.value, r):
            continue
        for e in range(first[r], first[r + 1]):
            remaining.attr[entries] = attr[e]
            remaining.code[entries] = code[e]
            entries += 1
        row[n] = r
        n += 1
        remaining.first[n] = entries
    return n
