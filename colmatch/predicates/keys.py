"""Predicates by key instead of code: keys do not depend on other predicates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.ranges import ranges_of, sizes_of
from colmatch.kernels.layout import ATTR_MASK, I64, KEY_MAX, KEY_MIN, U8, Codes, Predicates
from colmatch.kernels.segments.keys import write_intervals
from colmatch.predicates.columns import has_runs


class KeyIntervals(NamedTuple):
    """The closed intervals of P predicates. An empty interval is [0, -1]."""

    first: I64  # (P + 1) predicate -> its intervals
    low: I64
    high: I64

    def part(self, begin: int, end: int) -> KeyIntervals:
        """Returns the intervals of the predicates ``begin:end``."""
        first = self.first[begin : end + 1]
        return KeyIntervals(first - first[0], self.low[first[0] : first[-1]], self.high[first[0] : first[-1]])


def keys_of(preds: Predicates, codes: Codes, is_code: bool = False) -> KeyIntervals:
    """Returns the intervals of predicates.

    is_code : by code instead of key; open ends are KEY_MIN and KEY_MAX all the same
    """
    preds, codes = freeze(preds), freeze(codes)
    sizes = np.where(has_runs(preds), preds.pred[:, 2].astype(np.int64) - preds.pred[:, 1], 1)
    first = contiguous(ranges_of(sizes))
    low, high = np.empty(first[-1], np.int64), np.empty(first[-1], np.int64)
    write_intervals(codes.first, codes.bound, is_code, preds, first, low, high)
    return KeyIntervals(first, low, high)


def to_codes(preds: Predicates, keys: KeyIntervals, multi: U8) -> tuple[Predicates, Codes]:
    """Returns predicates with codes, and these ``Codes``, made of the predicates' own boundaries.

    multi (A) : whether each attribute may have several values in a row
    """
    # Sort the boundaries by attribute and key
    low, high, sizes = keys.low, keys.high, sizes_of(keys.first)
    attr = np.repeat((preds.pred[:, 0] & np.uint32(ATTR_MASK)).astype(np.int64), sizes)
    real = low <= high
    has_low, has_high = real & (low > KEY_MIN), real & (high < KEY_MAX)
    bound_attr = np.concatenate([attr[has_low], attr[has_high]])
    bound = np.concatenate([low[has_low], high[has_high] + 1])
    order = np.lexsort((bound, bound_attr))
    bound_attr, bound = bound_attr[order], bound[order]
    # Number the distinct boundaries
    new = np.ones(len(order), bool)
    new[1:] = (bound_attr[1:] != bound_attr[:-1]) | (bound[1:] != bound[:-1])
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(new) - 1
    first = np.searchsorted(bound_attr[new], np.arange(len(multi) + 1)).astype(np.int64)
    # Compute the codes of the intervals' ends
    lowest, highest = np.ones(len(attr), np.int64), np.where(real, sizes_of(first)[attr] + 1, 0)
    number = int(np.count_nonzero(has_low))
    lowest[has_low] = place[:number] - first[attr[has_low]] + 2
    highest[has_high] = place[number:] - first[attr[has_high]] + 1
    # Write single intervals into the predicates, the others as runs
    several = has_runs(preds)
    runs, in_run = ranges_of(sizes * several), np.repeat(several, sizes)
    begin = keys.first[:-1]
    pred = preds.pred.copy()
    pred[:, 1] = np.where(several, runs[:-1], lowest[begin])
    pred[:, 2] = np.where(several, runs[1:], highest[begin])
    run_lo, run_hi = lowest[in_run].astype(np.uint32), highest[in_run].astype(np.uint32)
    return freeze(preds._replace(pred=pred, run_lo=run_lo, run_hi=run_hi)), freeze(Codes(first, bound[new], multi))
