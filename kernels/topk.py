"""The k best subscriptions of each row, gathered as they are found.

Each row has a heap with its worst entry first: the lowest score, and among equal ones the highest
id.
"""

import numpy as np

from colmatch.kernels._jit import device, inlined, kernel
from colmatch.kernels.layout import F64, I64, U32, Top, Written

BASE, SCORING, AGAIN = range(3)  # places of Top.state


@device
def precedes(id, offset, data, a, b):
    """Returns whether subscription ``a`` has a lower id than ``b``: as numbers, or bytes of
    strings.
    """
    if len(id) > 0:
        return id[a] < id[b]
    i, i_end, j, j_end = offset[a], offset[a + 1], offset[b], offset[b + 1]
    while i < i_end and j < j_end:
        if data[i] != data[j]:
            return data[i] < data[j]
        i += 1
        j += 1
    return j_end - j > i_end - i


@device
def is_worse(id, offset, data, score, number, other_score, other):
    """Returns whether a subscription ranks after another one."""
    if score != other_score:
        return score < other_score
    return precedes(id, offset, data, other, number)


@device
def least_score(score, fill, row):
    """Returns the score below which a subscription can no longer be among the best of a row."""
    return score[row, 0] if fill[row] == score.shape[1] else -np.inf


@inlined
def _sift_down(score, number, row, at, count, id, offset, data):
    """Moves the entry at a place down until nothing below it is worse."""
    s, n = score[row, at], number[row, at]
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and is_worse(
            id, offset, data, score[row, below + 1], number[row, below + 1], score[row, below], number[row, below]
        ):
            below += 1
        if not is_worse(id, offset, data, score[row, below], number[row, below], s, n):
            break
        score[row, at], number[row, at] = score[row, below], number[row, below]
        at = below
    score[row, at], number[row, at] = s, n


@inlined
def offer(score, number, fill, row, s, n, repeats, id, offset, data):
    """Enters a subscription with its score if it is among the best of a row.

    repeats : whether the subscription may be there already; the better score counts then
    """
    most, count = score.shape[1], fill[row]
    if most == 0 or (count == most and s < score[row, 0]):
        return
    # Raise the score of a subscription that is there already
    if repeats:
        for i in range(count):
            if number[row, i] == n:
                if s > score[row, i]:
                    score[row, i] = s
                    _sift_down(score, number, row, i, count, id, offset, data)
                return
    # Replace the worst entry of a full heap
    if count == most:
        if is_worse(id, offset, data, score[row, 0], number[row, 0], s, n):
            score[row, 0], number[row, 0] = s, n
            _sift_down(score, number, row, 0, count, id, offset, data)
        return
    # Append an entry, and move it up
    at = count
    fill[row] = count + 1
    while at > 0:
        above = (at - 1) >> 1
        if not is_worse(id, offset, data, s, n, score[row, above], number[row, above]):
            break
        score[row, at], number[row, at] = score[row, above], number[row, above]
        at = above
    score[row, at], number[row, at] = s, n


@kernel
def sort_best(top: Written[Top], rows: int, place: Written[I64], score: Written[F64], number: Written[U32]) -> None:
    """Writes the best subscriptions of each row, the very best first.

    place : (rows + 1) int64, written
    score, number : (places), written; the heaps are destroyed
    """
    id, offset, data = top.id, top.offset, top.data
    n = 0
    place[0] = 0
    for row in range(rows):
        count = top.fill[row]
        for last in range(count - 1, -1, -1):
            score[n + last], number[n + last] = top.score[row, 0], top.number[row, 0]
            top.score[row, 0], top.number[row, 0] = top.score[row, last], top.number[row, last]
            _sift_down(top.score, top.number, row, 0, last, id, offset, data)
        n += count
        place[row + 1] = n
