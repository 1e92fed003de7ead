"""Propagation: the predicates that an event satisfies are found first, then the conjunctions behind them are checked on a bit vector.

Source: Fabret et al.'s Propagation, as "PS-Tree-based Efficient Boolean Expression Matching for High Dimensional and Dense Workloads" describes
it in its related work.
"""

from __future__ import annotations

import numpy as np

from colmatch.index.base import IndexKind
from colmatch.kernels import propagation
from colmatch.kernels import propagation_build as kernels
from colmatch.kernels.layout import ATTR_MASK, F64, I64, U32, Codes, Predicates
from colmatch.options import Options
from colmatch.stats import Sample, Statistics

FIRST_SLOTS = 1 << 10


def build(preds: Predicates, codes: Codes, sample: Sample | None, options: Options) -> tuple[propagation.PropagationIndex, Predicates]:
    estimates = _estimates(preds, codes, sample)
    key, number = _number(preds, estimates)
    used = len(key)
    truth = np.empty(used, np.float64)
    entries = kernels.describe(preds, key, *estimates, truth)
    attr_class, lo, hi, bit = np.empty(entries, np.int64), np.empty(entries, np.uint32), np.empty(entries, np.uint32), np.empty(entries, np.uint32)
    kernels.list_entries(preds, key, used, attr_class, lo, hi, bit)
    order = np.argsort(attr_class << 32 | lo, kind="stable")
    group_of, group = _groups(attr_class[order], lo[order], hi[order], len(codes.multi))
    access, uses = np.empty(len(preds.owner), np.int64), np.zeros(used, np.uint32)
    kernels.choose(preds, number, truth, key, access, uses)
    by_access = np.argsort(access, kind="stable")
    sorted_access = access[by_access]
    columns = sorted_access & 0xFFFFFFFF
    slabs = np.count_nonzero(sorted_access[1:] != sorted_access[:-1]) + min(len(access), 1)
    words = 1 + slabs * propagation.HEADER + int(np.where(columns == propagation.PROGRAM, 1, columns + 1).sum())
    if words > 2**32 - 1:
        raise ValueError("too large")
    pool, slab, bits = np.zeros(words, np.uint32), np.zeros(used, np.uint32), np.zeros((used + 63) // 64, np.uint64)
    always = kernels.fill_pool(preds, number, access, by_access, pool, slab, bits)
    slot = np.zeros(_slots(used), np.uint32)
    kernels.fill_slots(preds, key, used, slot)
    state = np.zeros(propagation.STATE_WORDS, np.int64)
    state[propagation.BITS] = state[propagation.SLOTS] = used
    state[propagation.GROUPS], state[propagation.ENTRIES], state[propagation.POOL] = len(group), entries, words
    state[propagation.ALWAYS] = always
    state[propagation.PROGRAMS] = (preds.jump_first >= 0).any()
    state[propagation.SEVERAL] = (preds.owner[1:] == preds.owner[:-1]).any()
    present, intervals, top = estimates[:3]
    index = propagation.PropagationIndex(
        key, slot, uses, truth, slab, bits, group_of, group, lo[order], hi[order], bit[order], pool, present, intervals, top, codes.multi, state
    )
    return index, preds


def _estimates(preds: Predicates, codes: Codes, sample: Sample | None) -> tuple[F64, F64, F64, I64, I64]:
    """What ``kernels.propagation_predicates.expected`` goes by."""
    attributes = len(codes.multi)
    attr = preds.pred[:, 0] & ATTR_MASK
    intervals = np.diff(codes.first) + 1
    code_first = np.concatenate([[0], np.cumsum(intervals)])
    below = np.empty(0, np.int64) if sample is None else np.concatenate([[0], np.cumsum(sample.hits)])
    present = np.bincount(attr, minlength=attributes) if sample is None else below[code_first[1:]] - below[code_first[:-1]]
    top = intervals
    return present.astype(np.float64), intervals.astype(np.float64), top.astype(np.float64), code_first, below


def _slots(used: int) -> int:
    return max(1 << (2 * used - 1).bit_length(), FIRST_SLOTS) if used else FIRST_SLOTS


def _number(preds: Predicates, estimates: tuple[F64, F64, F64, I64, I64]) -> tuple[U32, U32]:
    """Distinct predicates (D, 3), ordered by attribute, class of width and lowest code, and the place there of each predicate (P)."""
    number = np.empty(len(preds.pred), np.uint32)
    key, slot, used = np.empty((FIRST_SLOTS // 2, 3), np.uint32), np.zeros(FIRST_SLOTS, np.uint32), np.zeros(1, np.int64)
    conj = 0
    while (conj := kernels.number_predicates(preds, conj, *estimates, key, slot, used, number)) < len(preds.owner):
        size = 4 * len(key)
        key = np.concatenate([key, np.empty((size - len(key), 3), np.uint32)])
        slot = np.zeros(2 * size, np.uint32)
        kernels.fill_slots(preds, key, used[0], slot)
    key = key[: used[0]]
    order = np.empty(len(key), np.int64)
    kernels.classify(key, order)
    rank = np.empty(len(key), np.uint32)
    rank[np.argsort(order)] = np.arange(len(key), dtype=np.uint32)
    ordered = np.empty_like(key)
    kernels.renumber(number, key, rank, ordered)
    return ordered, number


def _groups(attr_class: I64, lo: U32, hi: U32, attributes: int) -> tuple[U32, U32]:
    """``group_of`` and ``group`` of entries in their order."""
    kinds, start = np.unique(attr_class, return_index=True)
    group = np.zeros((len(kinds), propagation.GROUP_WORDS), np.uint32)
    group_of = np.zeros(attributes, np.uint32)
    if len(kinds):
        attr = kinds >> 6
        length = np.diff(np.append(start, len(lo)))
        group[:-1, propagation.GROUP_NEXT] = np.where(attr[1:] == attr[:-1], np.arange(2, len(kinds) + 1), 0)
        group[:, propagation.CLASS] = kinds & 63
        group[:, propagation.START] = start
        group[:, propagation.LENGTH] = group[:, propagation.ROOM] = length
        group[:, propagation.REACH] = np.maximum.reduceat(hi - lo, start)
        first = np.concatenate([[True], attr[1:] != attr[:-1]])
        group_of[attr[first]] = 1 + np.flatnonzero(first)
    return group_of, group


def scratch(index: propagation.PropagationIndex, codes: Codes, rows: int, entries: int) -> propagation.PropagationScratch:
    words = (len(index.key) + 63) // 64
    return propagation.PropagationScratch(
        np.zeros(words, np.uint64), np.empty(words + 1, np.uint32), np.empty(propagation.BLOCK, np.uint32), np.zeros(max(len(codes.multi), 1), np.uint32)
    )


def repeats(index: propagation.PropagationIndex) -> bool:
    return bool(index.state[propagation.SEVERAL])


def cost(statistics: Statistics) -> float:
    return 800.0 + 0.7 * statistics.conjunctions


KIND = IndexKind("propagation", propagation.PropagationIndex, build, scratch, propagation.match, cost, repeats)
