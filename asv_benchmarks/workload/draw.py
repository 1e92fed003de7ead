"""What a workload is drawn with: sizes, sets of different attributes, values.

numpy alone; the caller's generator is all that is random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


def zipf(size: int, exponent: float) -> F64:
    """Returns the probabilities of the ranks 1 to ``size``: C / rank**exponent.

    See the PS-Tree paper, section 7.1. An exponent of 0 makes all alike.
    """
    weight = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    return np.asarray(weight / weight.sum(), np.float64)


def ranks(rng: np.random.Generator, count: int, size: int, exponent: float) -> I64:
    """``count`` ranks from 0 to ``size - 1``, distributed as 1 / (rank + 1)**exponent.

    The distribution is a continuous one, cut to whole numbers: a table of probabilities would not
    fit where ``size`` is 250M.
    """
    if exponent == 0:
        return rng.integers(0, size, count)
    u = rng.random(count)
    if exponent == 1:
        drawn = (size + 1.0) ** u
    else:
        drawn = (1 + u * ((size + 1.0) ** (1 - exponent) - 1)) ** (1 / (1 - exponent))
    return np.minimum(drawn.astype(np.int64) - 1, size - 1)


def sizes(rng: np.random.Generator, count: int, low: int, high: int, mean: float | None) -> NDArray[np.int32]:
    """Draws ``count`` sizes from ``low`` to ``high``.

    All are alike, or P(k) is proportional to r**k where ``r`` gives the mean.
    """
    if mean is None:
        return rng.integers(low, high + 1, count, dtype=np.int32)
    return (low + np.searchsorted(_truncated_geometric(low, high, mean), rng.random(count), side="right")).astype(
        np.int32
    )


def _truncated_geometric(low: int, high: int, mean: float) -> F64:
    """Cumulative probabilities, without the last.

    The mean grows with the slope, so bisection finds it.
    """
    k = np.arange(high - low + 1, dtype=np.float64)
    least, most = -50.0, 50.0
    for _ in range(100):
        slope = (least + most) / 2
        p = np.exp(slope * k - max(slope * k[-1], 0))
        p /= p.sum()
        least, most = (slope, most) if p @ k < mean - low else (least, slope)
    return np.asarray(np.cumsum(p)[:-1], np.float64)


def subsets(rng: np.random.Generator, size: NDArray[np.int32], among: NDArray[np.int32]) -> NDArray[np.int32]:
    """Draws for each row ``size[i]`` different numbers less than ``among[i]``, ascending.

    All sets are equally likely.

    Rows one after the other.
    """
    order, chosen, active = _prepare(size)
    pool = among[order]
    for i, rows in enumerate(active):
        left = pool[:rows] - i
        drawn = np.minimum((rng.random(rows) * left).astype(np.int32), left - 1)
        for j in range(i):  # the drawn-th of those not yet chosen: skip the chosen ones below it
            drawn += drawn >= chosen[j, :rows]
        _insert(chosen, i, drawn)
    return _flat(size, order, chosen)


def weighted_subsets(rng: np.random.Generator, size: NDArray[np.int32], probability: F64) -> NDArray[np.int32]:
    """Draws for each row ``size[i]`` different numbers less than ``len(probability)``, ascending.

    They are drawn one after the other, each by the probabilities of those that are left.
    """
    order, chosen, active = _prepare(size)
    end = np.cumsum(probability)
    begin = end - probability
    taken = np.zeros(len(size))  # probability of what each row has chosen
    for i, rows in enumerate(active):
        u = rng.random(rows) * (end[-1] - taken[:rows])
        for j in range(i):
            place = chosen[j, :rows]
            u += np.where(u >= begin[place], probability[place], 0)
        drawn = np.minimum(np.searchsorted(end, u, side="right"), len(end) - 1).astype(np.int32)
        if i:  # the last bit of a float may hit what is chosen already: take the next one
            while (again := (chosen[:i, :rows] == drawn).any(axis=0)).any():
                drawn[again] = (drawn[again] + 1) % len(end)
        taken[:rows] += probability[drawn]
        _insert(chosen, i, drawn)
    return _flat(size, order, chosen)


def _prepare(size: NDArray[np.int32]) -> tuple[I64, NDArray[np.int32], list[int]]:
    """Rows by size, room for their numbers, and how many rows draw each time.

    The largest come first, so that the rows that draw once more are always the first ones.
    """
    order = np.argsort(-size, kind="stable")
    most = int(size.max(initial=0))
    rows_of = np.bincount(size, minlength=most + 1)
    active = np.cumsum(rows_of[::-1])[::-1][1:]
    return order, np.zeros((most, len(size)), np.int32), active.tolist()


def _insert(chosen: NDArray[np.int32], i: int, drawn: NDArray[np.int32]) -> None:
    """Puts the i-th of each row among its ``i`` ascending ones."""
    rows = len(drawn)
    for j in range(i):
        lower = np.minimum(chosen[j, :rows], drawn)
        np.maximum(chosen[j, :rows], drawn, out=drawn)
        chosen[j, :rows] = lower
    chosen[i, :rows] = drawn


def _flat(size: NDArray[np.int32], order: I64, chosen: NDArray[np.int32]) -> NDArray[np.int32]:
    back = np.empty((len(size), len(chosen)), np.int32)
    back[order] = chosen.T
    return back[np.arange(len(chosen)) < size[:, None]]
