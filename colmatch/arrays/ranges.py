"""Ranges that follow each other: the i-th is ``first[i]:first[i + 1]``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from colmatch.arrays.frozen import Array, contiguous
from colmatch.kernels.ranges import copy_ranges, list_members


def ranges_of(sizes: ArrayLike) -> NDArray[np.int64]:
    """Returns the starts of ranges of these sizes, and the last end: (n) integers -> (n + 1)."""
    sizes = np.asarray(sizes)
    first = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=first[1:])
    return first


def sizes_of(first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the sizes of ranges from their starts and the last end: (n + 1) -> (n)."""
    return first[1:] - first[:-1]  # ``np.diff`` takes ten times as long for a few


def members(start: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the members of n ranges, one range after the other. The ranges may lie anywhere.

    start (n) : start of each range
    first (n + 1) : ``ranges_of`` the sizes of the ranges
    """
    place = np.empty(first[-1], np.int64)
    list_members(contiguous(start), contiguous(first), place)  # ``np.repeat`` would keep the interpreter's lock
    return place


def put_rows(
    rows: NDArray[Any], start: NDArray[np.int64], size: NDArray[np.int64], at: NDArray[np.int64], out: NDArray[Any]
) -> None:
    """Copies n ranges of rows to places of ``out``, which has rows of the same type.

    start, size, at (n) : start, number of rows and place in ``out`` of each range
    """
    unit = np.dtype(np.uint8 if rows.itemsize % 4 else np.uint32)
    width = rows.itemsize // unit.itemsize * math.prod(rows.shape[1:])
    flat, into = contiguous(rows).reshape(-1).view(unit), out.reshape(-1).view(unit)
    copy_ranges(flat, width, contiguous(start), contiguous(size), contiguous(at), into)


def rows_of(rows: Array, start: NDArray[np.int64], first: NDArray[np.int64]) -> Array:
    """Returns n ranges of rows, joined.

    start, first : as for ``members``
    """
    out = np.empty((int(first[-1]), *rows.shape[1:]), rows.dtype)
    put_rows(rows, start, sizes_of(first), first[:-1], out)
    return out  # type: ignore[return-value]


def are_new(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns whether each value differs from the one before; the first one does."""
    new = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new


def distinct(values: Array) -> Array:
    """Returns the distinct values, ascending. ``np.unique`` takes five to ten times as long."""
    ascending = np.sort(values)
    return ascending[are_new(ascending)]  # type: ignore[return-value]
