"""bitslice: masks over words of 64 rows. Ours; ARCHITECTURE.md has the idea and what was measured.

Postings are ordered by attribute, width class and lowest code, and the conjunctions with them, so that what a batch reads
together stands together.
"""

from __future__ import annotations

import numpy as np

from colmatch.index.base import IndexKind
from colmatch.kernels import bitslice, lower, masks
from colmatch.kernels import bitslice_build as kernels
from colmatch.kernels.layout import ATTR_MASK, I64, U8, Codes, Predicates
from colmatch.stats import Sample, Statistics

SLOTS = 12_288  # words of a mask table, if attributes are not more: 96 KiB, in the second-level cache with what else is in use


def build(preds: Predicates, codes: Codes, sample: Sample | None) -> tuple[bitslice.BitsliceIndex, Predicates]:
    attributes, count = len(codes.multi), len(preds.owner)
    top = np.diff(codes.first) + 1
    uses = np.bincount(preds.pred[:, 0] & ATTR_MASK, minlength=attributes)
    access, postings = np.empty(count, np.int64), np.empty(count, np.int64)
    code_first = np.concatenate([[0], np.cumsum(top)])
    below = np.empty(0, np.int64) if sample is None else np.concatenate([[0], np.cumsum(sample.hits)])
    kernels.choose_access(preds, code_first, uses, below, access, postings)
    total = int(postings.sum())
    key, hi, conj = np.empty(total, np.int64), np.empty(total, np.uint32), np.empty(total, np.uint32)
    kernels.write_postings(preds, access, attributes, key, hi, conj)
    kernels.classify(key, hi, np.bincount(key >> 32, minlength=attributes + 1))
    order = np.argsort(key)
    key, hi, conj = key[order], hi[order], conj[order]
    del order
    preds, access, conj = _arrange(preds, access, conj)
    group, begins = np.unique(key >> 32, return_index=True)
    group_first = np.append(begins, total)
    lo = (key & 0xFFFFFFFF).astype(np.uint32)
    del key
    reach = np.maximum.reduceat(hi - lo, begins) if total else np.empty(0, np.uint32)
    attr_group = np.searchsorted(group // kernels.CLASSES, np.arange(attributes + 2))

    ends = np.zeros(code_first[-1], np.int64)
    kernels.count_ends(preds, access, code_first, ends)
    bins, step, rank = _share_slots(top, uses)
    bin_of, starts = np.empty(len(ends), np.uint16), np.empty(len(ends), np.uint8)
    cut_first, cut = np.empty(attributes + 1, np.int64), np.empty(int(np.maximum(bins - 1, 0).sum()), np.uint32)
    kernels.cut_bins(code_first, ends, bins, bin_of, starts, cut_first, cut)
    del ends

    owner = preds.owner
    own = np.bincount(owner, minlength=1)
    several: U8 = (own[owner] > 1).astype(np.uint8)
    there = access >= 0
    several[there] |= codes.multi[preds.pred[access[there], 0] & ATTR_MASK]
    size = kernels.most_entries(preds, conj)
    head, rest, rest_op = np.empty(8 * total, np.uint16), np.empty(2 * size, np.uint16), np.empty(size, np.uint8)
    size = kernels.write_masks(preds, access, conj, several, code_first, bin_of, starts, bins, step, rank, head, rest, rest_op)
    rest, rest_op = rest[: 2 * size].copy(), rest_op[:size].copy()
    exact = (bins == top).astype(np.uint8)
    index = bitslice.BitsliceIndex(
        attr_group, reach, group_first, lo, hi, conj, head, rest, rest_op, step, rank, cut_first, cut, exact, codes.multi,
        np.append(top, 1), np.array([several.any()], np.uint8),
    )  # fmt: skip
    return index, preds


def _arrange(preds: Predicates, access: I64, conj: np.ndarray) -> tuple[Predicates, I64, np.ndarray]:
    """Conjunctions in the order of their first postings."""
    count = len(preds.owner)
    if len(conj) == count:
        order = conj.astype(np.int64)
        conj = np.arange(count, dtype=np.uint32)
    else:
        _, first = np.unique(conj, return_index=True)
        order = np.argsort(first).astype(np.int64)
        number = np.empty(count, np.uint32)
        number[order] = np.arange(count, dtype=np.uint32)
        conj = number[conj]
    offset = access - preds.first[:-1]
    offset[access < 0] = -1
    preds = reorder(preds, order)
    offset = offset[order]
    return preds, np.where(offset < 0, -1, offset + preds.first[:-1]), conj


def reorder(preds: Predicates, order: I64) -> Predicates:
    first, pred, weight = np.empty_like(preds.first), np.empty_like(preds.pred), np.empty_like(preds.weight)
    lower.reorder(preds.first, preds.pred, preds.weight, order, first, pred, weight)
    jump_first, tree_first, tree = preds.jump_first, preds.tree_first, preds.tree
    if len(jump_first):
        jump_first = jump_first[order]
        size = np.diff(tree_first)[order]
        new = np.concatenate([[0], np.cumsum(size)])
        tree = tree[np.repeat(tree_first[:-1][order] - new[:-1], size) + np.arange(new[-1])]
        tree_first = new
    return preds._replace(
        first=first, pred=pred, owner=preds.owner[order], weight=weight, jump_first=jump_first, tree_first=tree_first, tree=tree
    )


def _share_slots(top: I64, uses: I64) -> tuple[I64, I64, np.ndarray]:
    """Bins of each attribute, slots of each step, place of each attribute within a step."""
    used = uses > 0
    room = masks.MOST_SLOTS - 2 * masks.FIRST_STEP
    if used.sum() > room:  # one slot each, and none for the least used
        used = np.zeros(len(top), bool)
        used[np.argsort(-uses, kind="stable")[:room]] = True
    low, high = 1, int(top.max(initial=1))
    while low < high:  # the highest limit of bins an attribute for which there is room
        limit = (low + high + 1) // 2
        if np.minimum(top[used], limit).sum() <= SLOTS:
            low = limit
        else:
            high = limit - 1
    bins = np.where(used, np.minimum(top, low), 0)
    order = np.argsort(-bins, kind="stable")
    rank = np.full(len(top), kernels.NO_RANK, np.uint32)
    rank[order] = np.arange(len(top))
    rank[~used] = kernels.NO_RANK
    widths = np.searchsorted(-bins[order], -np.arange(1, int(bins.max(initial=0)) + 1), side="right")  # attributes with at least k bins
    step = np.concatenate([[0, masks.FIRST_STEP], masks.FIRST_STEP + np.cumsum(widths)]).astype(np.int64)
    return bins, step, rank


def scratch(index: bitslice.BitsliceIndex, codes: Codes, rows: int, entries: int) -> bitslice.BitsliceScratch:
    attributes = len(codes.multi)
    longest = int((index.group_first[index.attr_group[1:]] - index.group_first[index.attr_group[:-1]]).max(initial=0))
    ends = np.flatnonzero(index.rest_op & masks.LAST)
    target = int(np.diff(ends).max(initial=0)) + 1  # entries of a posting: no fewer than predicates of a program
    u32, i64 = np.uint32, np.int64
    return bitslice.BitsliceScratch(
        slot=np.empty(entries, np.uint16),
        column=np.empty(attributes + 2, i64),
        row=np.empty(entries + rows, u32),
        code=np.empty(entries + rows, u32),
        spare_row=np.empty(entries + rows, u32),
        spare_code=np.empty(entries + rows, u32),
        histogram=np.empty(256, i64),
        sorted=np.empty(attributes + 1, np.uint8),
        table=np.zeros(int(index.step[-1]), np.uint64),
        survivor=np.empty(4 * bitslice.BUFFER, u32),
        mask=np.empty(2 * bitslice.BUFFER, np.uint64),
        active=np.empty(longest + 1, u32),
        active_from=np.empty(longest + 1, u32),
        active_to=np.empty(longest + 1, u32),
        upcoming=np.empty(len(index.reach), i64),
        ahead=np.empty(2 * bitslice.BUFFER, u32),
        segment=np.empty((bitslice.SEGMENTS, 3), i64),
        bits=np.empty(bitslice.SEGMENTS, np.uint64),
        code_place=np.empty(int(index.top.max()) + 2, i64),
        target=np.zeros(target, np.uint64),
        candidate_row=np.empty(bitslice.CANDIDATES_KEPT, u32),
        candidate_conj=np.empty(bitslice.CANDIDATES_KEPT, u32),
        ordered=np.empty(bitslice.CANDIDATES_KEPT, u32),
        place=np.empty(rows + 1, i64),
        values=np.zeros(max(attributes, 1), u32),
    )


def repeats(index: bitslice.BitsliceIndex) -> bool:
    return bool(index.any_repeats[0])


def cost(statistics: Statistics) -> float:
    return 2000.0 + 0.012 * statistics.conjunctions


KIND = IndexKind("bitslice", bitslice.BitsliceIndex, build, scratch, bitslice.match, cost, repeats)
