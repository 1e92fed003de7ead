"""Conjunctions, with codes for their predicates as soon as all boundaries are known.

They come piece by piece, and the leaves of a conjunction on one attribute are merged at once. The
keys of intervals wait for their codes, and take more memory than all else. So small ones are
narrowed to int32, and widened again for kernels, some at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.growing import extend_array
from colmatch.arrays.hints import hints_of
from colmatch.arrays.ranges import ranges_of
from colmatch.kernels import layout
from colmatch.kernels.lowering.codes import Spare, close_gaps, code_predicates, count_boundaries, gather_boundaries
from colmatch.kernels.lowering.conjunctions import LeafTable, measure, merge_conjunctions

I64 = NDArray[np.int64]

PIECE = 1 << 18  # leaves of the largest addition whose keys are narrowed, and conjunctions coded at a time
LOWEST, HIGHEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max  # for ``KEY_MIN`` and ``KEY_MAX`` if keys are narrow


class Ends(NamedTuple):
    """The boundaries of each of A attributes."""

    number: I64  # (A) number, equal ones included
    least: I64  # (A) none is below
    most: I64  # (A) none is above


class CodedConjunctions(NamedTuple):
    """Conjunctions of predicates with codes, see ``layout.Predicates``."""

    codes: layout.Codes
    keep: NDArray[np.uint8]  # (C) 0 for conjunctions that can never be true
    program: NDArray[np.uint8]  # (C)
    first: I64  # (C + 1)
    pred: NDArray[np.uint32]  # (P, 3)
    weight: NDArray[np.float64]  # (P, 2), or (0, 2)
    run_lo: NDArray[np.uint32]
    run_hi: NDArray[np.uint32]
    owner: NDArray[np.uint32]  # (C)


class Conjunctions:
    """C conjunctions of P predicates with M intervals; the arrays have room for more.

    See ``merge_conjunctions`` of ``kernels/lowering/conjunctions.py``.
    """

    def __init__(self) -> None:
        self.size = (0, 0, 0)
        self.first = np.zeros(1, np.int64)  # (C + 1)
        # (C)
        self.keep, self.program, self.owner = np.empty(0, np.uint8), np.empty(0, np.uint8), np.empty(0, np.uint32)
        self.pred, self.weight = np.empty((0, 3), np.uint32), np.empty((0, 2))  # (P), and no weights or (P)
        self.lo: NDArray[Any] = np.empty(0, np.int32)  # (M) narrow, or int64
        self.hi: NDArray[Any] = np.empty(0, np.int32)
        self.ends = Ends(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))

    def reserve(self, conjunctions: int, predicates: int, intervals: int, weighted: bool) -> None:
        """Makes room for that many more. Unused room costs no memory, only addresses."""
        c, p, m = self.size
        self.first = extend_array(self.first, c + 1, c + 1 + conjunctions)
        self.keep, self.program = (extend_array(x, c, c + conjunctions) for x in (self.keep, self.program))
        self.owner = extend_array(self.owner, c, c + conjunctions)
        self.pred, self.weight = (
            extend_array(self.pred, p, p + predicates),
            extend_array(self.weight, p, p + predicates) if weighted else self.weight,
        )
        self.lo, self.hi = extend_array(self.lo, m, m + intervals), extend_array(self.hi, m, m + intervals)

    def add(
        self, owner: I64, program: NDArray[np.uint8], start: I64, refs: I64, leaves: LeafTable, multi: NDArray[np.uint8]
    ) -> None:
        """Adds conjunctions ``start`` (C + 1) of leaves ``refs``; owner, program (C)."""
        # Make room, with weights for all conjunctions or for none.
        longest, room = measure(start, refs, leaves.run_first)
        weighted = len(leaves.weight) > 0 or len(self.weight) > 0
        if weighted and not len(leaves.weight):
            leaves = leaves._replace(weight=np.zeros(len(leaves.attr)))
        if weighted and not len(self.weight):
            self.weight = np.zeros((len(self.pred), 2))  # of conjunctions added without weights
        self.reserve(len(owner), len(refs), room, weighted)
        if len(refs) > PIECE:
            self._widen()
        (c, p, m), more = self.size, len(owner)
        self.owner[c : c + more], self.program[c : c + more] = owner, program
        # Make room for the boundaries of new attributes.
        old, self.ends = self.ends, Ends(*(np.full(len(multi), x) for x in (0, layout.KEY_MAX, layout.KEY_MIN)))
        for new, earlier in zip(self.ends, old, strict=True):
            new[: len(earlier)] = earlier
        # Merge the leaves of each conjunction, and count the boundaries.
        spare, first = np.empty((2, 3 * (longest + 2)), np.int64), self.first[c : c + more + 1]
        narrow = self.lo.dtype != np.int64
        lo, hi = np.empty((2, room), np.int64) if narrow else (self.lo[m:], self.hi[m:])
        predicates, intervals = merge_conjunctions(
            start, refs, program, leaves, multi, spare,
            self.keep[c : c + more], first, self.pred[p:], self.weight[p:], lo, hi,
        )  # fmt: skip
        count_boundaries(self.pred[p : p + predicates], lo, hi, *self.ends)
        first += p
        if narrow:
            self._keep_narrow(m, lo[:intervals], hi[:intervals])
        self.size = (c + more, p + predicates, m + intervals)

    def _keep_narrow(self, m: int, lo: I64, hi: I64) -> None:
        """Keeps keys from place ``m`` on; if they are not narrow, none is from now on."""
        small_lo, small_hi = _narrow(lo), _narrow(hi)
        if small_lo is None or small_hi is None:
            self._widen()
            small_lo, small_hi = lo, hi
        self.lo[m : m + len(lo)], self.hi[m : m + len(hi)] = small_lo, small_hi

    def _widen(self) -> None:
        """Turns narrow keys into int64, with the same room."""
        if self.lo.dtype != np.int64:
            m, room = self.size[2], len(self.lo)
            self.lo, self.hi = (extend_array(_wide(keys[:m]), m, room) for keys in (self.lo, self.hi))

    def _pieces(self) -> Iterator[tuple[slice, slice, I64, I64]]:
        """Yields conjunctions with their predicates, and the keys of these as int64."""
        c, m = self.size[0], 0
        step = PIECE if self.lo.dtype != np.int64 else max(c, 1)
        for begin in range(0, c, step):
            end = min(begin + step, c)
            some = slice(int(self.first[begin]), int(self.first[end]))
            before, m = m, m + int(self.pred[some, 1].sum(dtype=np.int64))
            yield slice(begin, end), some, _wide(self.lo[before:m]), _wide(self.hi[before:m])

    def code(self, multi: NDArray[np.uint8]) -> CodedConjunctions:
        """Gives all predicates their codes; nothing can be added afterwards."""
        c, p, _ = self.size
        first, pred, weight = self.first[: c + 1].copy(), self.pred[:p], self.weight[:p]
        keep, program, owner = self.keep[:c], self.program[:c], self.owner[:c].copy()
        # Find the boundaries.
        codes = self._codes(multi)
        hints = hints_of(codes.first, codes.bound)
        # Code the predicates, with room for the intervals of lists.
        several = pred[:, 1] > 1
        many = int(pred[several, 1].sum(dtype=np.int64))
        del several
        code_lo, code_hi = np.empty(many, np.uint32), np.empty(many, np.uint32)
        longest = int((first[1:] - first[:-1]).max(initial=0))
        spare = Spare(np.empty(longest), np.empty((longest, 3), np.uint32), np.empty((longest, 2)))
        runs = 0
        for some, preds, lo, hi in self._pieces():
            own = first[some.start : some.stop + 1]
            run_lo, run_hi = code_lo[runs:], code_hi[runs:]
            added = code_predicates(own, weight, lo, hi, program[some], codes, hints, pred, run_lo, run_hi, spare)
            # Lead to the runs of all pieces
            if runs and added:
                several = preds.start + np.flatnonzero(pred[preds, 0] & np.uint32(layout.FLAG_RUN))
                pred[several, 1:] += np.uint32(runs)
            runs += added
        self.lo = self.hi = np.empty(0, np.int64)
        return CodedConjunctions(codes, keep, program, first, pred, weight, code_lo, code_hi, owner)

    def _codes(self, multi: NDArray[np.uint8]) -> layout.Codes:
        """Finds the distinct boundaries of each attribute.

        Boundaries are marked in a row of bytes if the attribute has few keys, else they are sorted.
        """
        count, least, most = self.ends
        span = most.view(np.uint64) - least.view(np.uint64)  # from the least to the most, perhaps beyond int64
        marked = (count > 0) & (span < (4 * count).view(np.uint64))
        marks = np.where(marked, span.view(np.int64) + 1, 0)
        first, mark_first = ranges_of(np.where(marked, marks, count)), np.where(marked, ranges_of(marks)[:-1], -1)
        mark, bound = np.zeros(marks.sum(), np.uint8), np.empty(first[-1], np.int64)
        place = first[:-1].copy()
        for _, some, lo, hi in self._pieces():
            gather_boundaries(self.pred[some], lo, hi, least, mark_first, mark, place, bound)
        for a in np.flatnonzero(~marked & (count > 1)).tolist():
            bound[first[a] : first[a + 1]].sort()
        distinct = np.empty(len(first), np.int64)
        left = close_gaps(first, least, mark_first, mark, bound, distinct)
        return layout.Codes(distinct, bound[:left].copy(), multi)


def _narrow(keys: I64) -> NDArray[Any] | None:
    """Returns keys that int32 can hold, as ``_wide`` reads them; None if there are others."""
    if keys.min(initial=0) > LOWEST and keys.max(initial=0) < HIGHEST:
        return keys
    narrow = keys.clip(LOWEST, HIGHEST).astype(np.int32)
    return narrow if np.array_equal(_wide(narrow), keys) else None


def _wide(keys: NDArray[Any]) -> I64:
    """Returns keys as int64."""
    if keys.dtype == np.int64:
        return keys
    wide = keys.astype(np.int64)
    if keys.min(initial=0) == LOWEST or keys.max(initial=0) == HIGHEST:
        wide[keys == LOWEST], wide[keys == HIGHEST] = layout.KEY_MIN, layout.KEY_MAX
    return wide
