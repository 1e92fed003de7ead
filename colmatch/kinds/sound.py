"""Checks of the arrays of an index from a file.

A file from elsewhere may have right checksums and still lead kernels out of their arrays. Some
kinds define how their arrays depend on each other; their indexes are checked when a file is opened.
The index of any other kind is rebuilt from its predicates, which are checked for all kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.kernels.layout import KEY_MAX, KEY_MIN, LABEL_TOP, U8, Codes, Predicates
from colmatch.kernels.sound import fault_of_order, fault_of_predicates, fault_of_ranges
from colmatch.kinds.base import highest_codes
from colmatch.predicates.columns import CONJUNCTION, GIVEN

_FAULTS = ("", "ranges", "owners", "attributes", "codes", "runs", "programs", "trees")


class UnsoundError(ValueError):
    """An array with wrong contents; the message names it."""


def check_lengths(arrays: Any, wanted: Mapping[str, int]) -> None:
    """Checks the lengths of arrays of a NamedTuple."""
    for name, length in wanted.items():
        if len(getattr(arrays, name)) != length:
            raise UnsoundError(f"{name} has {len(getattr(arrays, name)):,} rows, not {length:,}")


def check_ranges(name: str, first: NDArray[np.int64], end: int) -> None:
    """Checks that ranges follow one another from 0 to an end."""
    if fault_of_ranges(contiguous(first), end):
        raise UnsoundError(f"{name} does not ascend from 0 to {end:,}")


def check_below(name: str, values: NDArray[Any], bound: int) -> None:
    """Checks that numbers are at least 0, and below a bound."""
    if len(values) and (int(values.min()) < 0 or int(values.max()) >= bound):
        raise UnsoundError(f"{name} has a number that is not below {bound:,}")


def check_equal(name: str, values: NDArray[Any], others: NDArray[Any]) -> None:
    """Checks that an array has the values of another."""
    if not np.array_equal(values, others):
        raise UnsoundError(f"{name} is not what the rest of the file says")


def check_fault(fault: int, names: Sequence[str]) -> None:
    """Checks the result of a kernel: 0 for no fault, else the place of a name."""
    if fault:
        raise UnsoundError(f"{names[fault]} are out of their bounds")


def check_codes(codes: Codes) -> None:
    """Checks the boundaries of attributes, and their labels."""
    check_ranges("first", codes.first, len(codes.bound))
    check_lengths(codes, {"multi": len(codes.first) - 1})
    check_below("multi", codes.multi, 2)
    first = contiguous(codes.first)
    wrong = fault_of_order(first, contiguous(codes.bound), KEY_MIN, KEY_MAX)
    if len(codes.label):
        check_lengths(codes, {"label": len(codes.bound) + 1})
        wrong |= fault_of_order(first, contiguous(codes.label.astype(np.int64)), 2, LABEL_TOP)
        check_equal("the closing label", codes.label[-1:], np.array([LABEL_TOP]))
    if wrong:
        raise UnsoundError("boundaries, or their labels, do not ascend")


def check_predicates(preds: Predicates, codes: Codes, size: int) -> None:
    """Checks the predicates of ``size`` subscriptions, for codes that are sound."""
    count, predicates, programs = len(preds.owner), len(preds.pred), len(preds.jump_first) > 0
    sizes = {"first": count + 1, "run_hi": len(preds.run_lo), "tree_first": (count + 1) * programs}
    columns = {name: (getattr(preds, name), count if per == CONJUNCTION else predicates) for name, per in GIVEN.items()}
    sizes |= {name: rows for name, (column, rows) in columns.items() if len(column)}
    sizes |= {"jump_first": count} if programs else {"jump": 0, "tree": 0}
    check_lengths(preds, sizes)
    check_ranges("first", preds.first, predicates)
    if programs:
        check_ranges("tree_first", preds.tree_first, len(preds.tree))
    multi: U8 = contiguous(codes.multi)
    top = contiguous(highest_codes(codes))
    check_fault(fault_of_predicates(freeze(preds), top, multi, size), _FAULTS)
    for name, (column, _) in columns.items():
        if not np.isfinite(column).all():
            raise UnsoundError(f"a {name} is no number")
