"""bitslice: predicates tested for up to 64 rows at once.

Our own kind; ``kernels/kinds/bitslice/__init__.py`` explains the idea, and lists failed attempts.

Postings are ordered by attribute, width class and lowest code, and the conjunctions with them. So a
batch reads neighbouring places in memory.

**Columns with few postings are closed** (``_choose_access``; ``close_columns=False`` switches it
off). Sorting a column and making tiles of its rows takes as long for one posting as for a thousand.
It takes 13 ns an event for an attribute that a third of the events have, so 1.3 us for all columns
of ``dense``. Testing a posting for all rows takes 0.1 ns an event. So a column with fewer postings
than this is worth is closed, half of such columns at a time. Its postings move to the next best
access predicate with an open column, or to the one tile that all rows share. An event then takes
1.2 us instead of 2.25 with 2,000 ``dense`` subscriptions, 1.55 instead of 1.95 with 9,700, reading
included. From 30,000 on all columns stay open. Columns that few events have are never closed: they
are matched by row. None is closed where many predicates are lists: testing each value for all rows
cost ``ads`` a sixth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from colmatch.arrays.frozen import freeze
from colmatch.arrays.hints import hints_of
from colmatch.arrays.ranges import are_new, ranges_of
from colmatch.kernels.kinds.bitslice import arrays as bs
from colmatch.kernels.kinds.bitslice.arrays import Active, BitsliceIndex, BitsliceScratch, Candidates, Survivors
from colmatch.kernels.kinds.bitslice.build import (
    CLASSES,
    choose_access,
    classify,
    count_ends,
    cut_bins,
    longest_rest,
    most_entries,
    write_masks,
    write_postings,
)
from colmatch.kernels.kinds.bitslice.match import match
from colmatch.kernels.kinds.bitslice.sound import fault_of_bitslice
from colmatch.kernels.kinds.bitslice.strata import expect_matches
from colmatch.kernels.layout import ATTR_MASK, F64, I32, I64, U32, Codes, Predicates
from colmatch.kinds.base import IndexKind, Strata, uses_of
from colmatch.kinds.settings import Settings, setting
from colmatch.kinds.sound import UnsoundError, check_below, check_equal, check_fault, check_lengths, check_ranges
from colmatch.kinds.statistics import Sample
from colmatch.kinds.strata import ScoreStrata, cut_strata, is_ranked, whole
from colmatch.predicates.columns import take

TILE = 1 << 18  # bytes of a tile, unless attributes are too many; it stays in the second-level cache
MOST_ROWS = bs.SEGMENTS - 64  # of a tile
EVENT_SIZE = 30  # values that an event is assumed to have
A_COLUMN = 500  # postings: testing them for all rows takes as long as the tiles of a column of all rows
OFTEN = 1 / 16  # share of all events; a column with fewer is hardly ever sorted
WORTH = 0.75  # share of the cost with all columns open, below which some are closed
LISTS = 0.25  # intervals of lists for each predicate, above which no column is closed
AN_ENTRY = 2  # room for segments of rows, for each entry; all rows at once are cheapest
MOST_SEGMENTS = 1 << 19  # 14 MB
FAULTS = ("", "groups", "codes of postings", "conjunctions of postings", "ranks", "entries", "bins")


@dataclass(frozen=True, slots=True, repr=False)
class BitsliceSettings(Settings):
    """Settings of bitslice: closed columns, and the budget."""

    kind = "bitslice"
    about = "sorted columns of a batch: predicates tested for 64 rows at once"

    close_columns: bool = setting(
        True,
        "do not sort a column for few subscriptions: they are met by another one, or tested for all rows",
        (True, False),
    )


class Arrangement(NamedTuple):
    """Postings in their order, and conjunctions in the order of their first postings."""

    access: I32  # (C) place of the access predicate in its conjunction, or -1
    strata: ScoreStrata
    group: I64  # groups of postings: attribute, stratum and class of width
    group_first: I64  # start of each; its end is the start of the next
    lo: U32  # of each posting: lowest code, highest code, place of its conjunction in the order
    hi: U32
    conj: U32


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: BitsliceSettings
) -> tuple[BitsliceIndex, Predicates]:
    order, arrangement = arrange(preds, codes, sample, settings)
    preds = freeze(take(preds, order))
    return build_arranged(preds, codes, arrangement), preds


def arrange(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: BitsliceSettings
) -> tuple[U32, Arrangement]:
    """Chooses access predicates, and puts their postings and the conjunctions in order."""
    attributes, count = len(codes.multi), len(preds.owner)
    access, postings = np.empty(count, np.int64), np.empty(count, np.int64)
    # Choose access predicates, and cut the conjunctions into strata.
    code_first = ranges_of(np.diff(codes.first) + 1)
    below = np.empty(0, np.int64) if sample is None else ranges_of(sample.hits)
    uses = uses_of(preds, attributes)
    _choose_access(preds, code_first, uses, below, settings.close_columns, access, postings)
    total = int(postings.sum())
    del postings
    strata = _cut(preds, code_first, uses, below)
    # Write the postings, and sort them by attribute, stratum, class of width and lowest code.
    key, hi, conj = np.empty(total, np.int64), np.empty(total, np.uint32), np.empty(total, np.uint32)
    write_postings(preds, access, attributes, strata.stratum, len(strata.best), key, hi, conj)
    classify(key, hi, np.bincount(key >> 32, minlength=(attributes + 1) * len(strata.best)))
    offset = _offsets(access, preds)
    del access
    posted = np.argsort(key)
    hi = hi[posted]
    conj = conj[posted]
    key = key[posted]
    del posted
    lo = key.astype(np.uint32)
    # Find the groups.
    key >>= 32
    begins = np.flatnonzero(are_new(key))
    group = key[begins]
    del key
    # Order the conjunctions by their first postings.
    if total == count:
        order = conj
        conj = np.arange(count, dtype=np.uint32)
    else:
        first = np.empty(count, np.uint32)
        first[conj[::-1]] = np.arange(total, dtype=np.uint32)[::-1]
        leads = np.zeros(total, bool)
        leads[first] = True
        order = conj[leads]
        del first, leads
        number = np.empty(count, np.uint32)
        number[order] = np.arange(count, dtype=np.uint32)
        conj = number[conj]
    return order, Arrangement(offset[order], strata, group, np.append(begins, total), lo, hi, conj)


def build_arranged(preds: Predicates, codes: Codes, arrangement: Arrangement) -> BitsliceIndex:
    """Makes the index of predicates with conjunctions in the order of the arrangement."""
    # Find the groups of each attribute in each stratum.
    offset, strata, group, group_first, lo, hi, conj = arrangement
    attributes, total, top = len(codes.multi), len(conj), np.diff(codes.first) + 1
    code_first, access = ranges_of(top), offset + preds.first[:-1]
    access[offset < 0] = -1
    reach = np.maximum.reduceat(hi - lo, group_first[:-1]) if total else np.empty(0, np.uint32)
    count = len(strata.best)
    begins = np.searchsorted(group // CLASSES, np.arange((attributes + 1) * count + 1))
    attr_group = np.concatenate([begins[s : s + (attributes + 1) * count : count] for s in range(count + 1)])

    # Cut the codes of each attribute into bins with as many ends of predicates each.
    ends = np.zeros(code_first[-1], np.int64)
    count_ends(preds, access, code_first, ends)
    bins, rank, ranks = _ranks(top, uses_of(preds, attributes))
    bin_of, starts = np.empty(len(ends), np.uint8), np.empty(len(ends), np.uint8)
    cut_bins(code_first, ends, bins, bin_of, starts)
    del ends

    # Pairs repeat if a subscription has several conjunctions, or an event several entries.
    seen = np.zeros(int(preds.owner.max(initial=0)) + 1, bool)
    seen[preds.owner] = True
    several = np.count_nonzero(seen) < len(preds.owner)
    many = codes.multi.any() and codes.multi[preds.pred[access[access >= 0], 0] & ATTR_MASK].any()
    repeats = bool(several or many)
    del seen
    # Write the tests of each posting's other predicates.
    size = most_entries(preds, conj)
    head, rest, rest_op = np.empty(8 * total, np.uint16), np.empty(2 * size, np.uint16), np.empty(size, np.uint8)
    size = write_masks(preds, access, conj, code_first, bin_of, starts, rank, head, rest, rest_op)
    del access
    rest, rest_op = rest[: 2 * size].copy(), rest_op[:size].copy()
    # Keep the bins of attributes with fewer bins than codes.
    coarse = (bins > 0) & (bins < top)
    bin_first, bin_of = ranges_of(np.where(coarse, top, 0)), bin_of[np.repeat(coarse, top)]
    near = hints_of(group_first, lo.astype(np.int64))
    return BitsliceIndex(
        attr_group, strata.best, strata.expected, reach,
        group_first, near.lowest, near.highest, near.first, near.shift, near.below, lo, hi, conj, head, rest, rest_op,
        ranks, rank, bin_first, bin_of, codes.multi, np.append(top, 1), np.array([repeats], np.uint8),
    )  # fmt: skip


def _offsets(access: I64, preds: Predicates) -> I32:
    """Returns the places of access predicates in their conjunctions, or -1."""
    offset = np.empty(len(access), np.int32)
    np.subtract(access, preds.first[:-1], out=offset, casting="unsafe")
    offset[access < 0] = -1
    return offset


def _choose_access(
    preds: Predicates, code_first: I64, uses: I64, below: I64, close: bool, access: I64, postings: I64
) -> None:
    """Writes ``access`` and ``postings``, with access predicates in columns that are worth sorting.

    Sorting a column and making its tiles takes as long for few postings as for many. So the
    postings of a column with few are tested for all rows, which are a column too, or move to
    another column. About half of these columns are closed at a time: the moved postings may be
    enough for the others. The cheapest step on the way is taken, if its gain is large: estimates
    are rough. All columns stay open where many predicates are lists of values, since each value is
    a test.
    """
    # Find the least postings that keep each column open.
    share = _presence(uses, code_first, below)
    close = close and len(preds.run_lo) < LISTS * len(preds.pred)
    least = np.where(share >= OFTEN, share * A_COLUMN * close, 0.0)
    open, best, best_cost = np.ones(len(uses), np.uint8), None, np.inf
    while True:
        # Estimate the cost with these columns open, and remember the cheapest choice.
        choose_access(preds, code_first, uses, below, open, access, postings)
        there = access >= 0
        held = np.bincount(preds.pred[access[there], 0] & ATTR_MASK, minlength=len(uses))
        others = len(access) - int(np.count_nonzero(there))
        cost = share[held > 0].sum() + others / A_COLUMN + (others > 0)
        if cost < best_cost:
            best, best_cost = open.copy(), cost if best is not None else WORTH * cost
        # Close the poorer half of the columns with too few postings.
        poor = np.flatnonzero((held < least) & (held > 0))
        if not len(poor):
            break
        order = np.argsort(held[poor] / least[poor], kind="stable")
        open[poor[order[: (len(poor) + 1) // 2]]] = 0
        open[held == 0] = 0
    if best is not None and not np.array_equal(best, open):
        choose_access(preds, code_first, uses, below, best, access, postings)


def _cut(preds: Predicates, code_first: I64, uses: I64, below: I64) -> ScoreStrata:
    """Cuts the conjunctions into strata, if some may be better than others."""
    if not is_ranked(preds):
        return whole(len(preds.owner))
    expected = np.empty(len(preds.owner))
    expect_matches(preds, code_first, _presence(uses, code_first, below), below, expected)
    return cut_strata(preds, expected)


def _presence(uses: I64, code_first: I64, below: I64) -> F64:
    """Returns the share of events that are expected to have each attribute."""
    seen = uses if not len(below) else below[code_first[1:]] - below[code_first[:-1]]
    share: F64 = np.minimum(seen * (EVENT_SIZE / max(int(seen.sum()), 1)), 1.0)
    return share


def _ranks(top: I64, uses: I64) -> tuple[I64, np.ndarray, I64]:
    """Returns the bins of each attribute, its rank, and the number of ranks.

    All used attributes have a rank, or the most used ones of too many.
    """
    order = np.argsort(-uses, kind="stable")[: min(np.count_nonzero(uses), bs.MOST_RANKS - 1)]
    rank = np.full(len(top), bs.NO_RANK, np.uint32)
    rank[order] = 1 + np.arange(len(order))
    bins = np.where(rank == bs.NO_RANK, 0, np.minimum(top, bs.MOST_BINS))
    return bins, rank, np.array([1 + len(order)])


def scratch(index: BitsliceIndex, codes: Codes, rows: int, entries: int) -> BitsliceScratch:
    attributes = len(codes.multi)
    strata, places = len(index.best), index.group_first[index.attr_group].reshape(-1, attributes + 1)
    longest = int((places[-1] - places[0]).max(initial=0))
    ranks = int(index.ranks[0])
    lines = min(TILE // ranks, MOST_ROWS, rows + 63) // 64
    stride = 64 * (lines | 1)  # an odd number of cache lines: attributes do not compete for the same places
    target = longest_rest(index.rest_op) + 1  # entries of a posting: no fewer than predicates of a program
    segments = max(strata * bs.SEGMENTS, min(AN_ENTRY * entries, MOST_SEGMENTS))
    u32, i64 = np.uint32, np.int64
    return BitsliceScratch(
        progress=np.empty(4, i64),
        slot=np.empty(entries + 7 * rows, u32),
        slot_first=np.empty(rows + 1, np.uint64),
        attr=np.empty(attributes + 1, u32),
        column=np.empty(attributes + 2, i64),
        tally=np.zeros(attributes, i64),
        row=np.empty(entries + rows, u32),
        code=np.empty(entries + rows, u32),
        spare_row=np.empty(entries + rows, u32),
        spare_code=np.empty(entries + rows, u32),
        histogram=np.empty(256, i64),
        sorted=np.empty(attributes + 1, np.uint8),
        stride=np.array([stride]),
        tile=np.zeros(ranks * stride + 64, np.uint8),
        survivors=Survivors(
            np.empty(2 * bs.BUFFER, u32), np.empty(2 * bs.BUFFER, u32), np.empty(2 * bs.BUFFER, np.uint64)
        ),
        active=Active(np.empty(longest, u32), np.empty(longest, u32), np.empty(longest, u32)),
        segment=np.empty((segments, 3), u32),
        bits=np.empty(strata * bs.SEGMENTS, np.uint64),
        found=np.empty((segments, 4), u32),
        segment_first=np.empty(rows + 1, i64),
        code_place=np.empty(int(index.top.max()) + 2, i64),
        target=np.zeros(target, np.uint64),
        candidates=Candidates(np.empty(bs.CANDIDATES_KEPT, u32), np.empty(bs.CANDIDATES_KEPT, u32)),
        ordered=np.empty(bs.CANDIDATES_KEPT, u32),
        order=np.empty(rows + 1, i64),
        values=np.zeros(max(attributes, 1), u32),
    )


def sound(index: BitsliceIndex, preds: Predicates, codes: Codes, size: int) -> BitsliceIndex:
    attributes, groups, postings, entries = len(codes.multi), len(index.reach), len(index.lo), len(index.rest_op)
    strata = len(index.best)
    sizes = {"group_first": groups + 1, "hi": postings, "who": postings, "head": 8 * postings, "rest": 2 * entries}
    sizes |= {"rank": attributes, "bin_first": attributes + 1, "multi": attributes, "top": attributes + 1}
    sizes |= {"attr_group": (strata + 1) * (attributes + 1), "expected": strata, "ranks": 1, "repeats": 1}
    check_lengths(index, sizes)
    check_ranges("group_first", index.group_first, postings)
    check_ranges("bin_first", index.bin_first, len(index.bin_of))
    check_equal("multi", index.multi, codes.multi)
    check_equal("top", index.top, np.append(np.diff(codes.first) + 1, 1))
    check_below("ranks", index.ranks - 1, bs.MOST_RANKS)
    if not strata or not entries or len(codes.label):
        raise UnsoundError("it has no stratum or no entry, or is of labels")
    check_fault(fault_of_bitslice(index, preds, size), FAULTS)
    near = hints_of(index.group_first, index.lo.astype(np.int64))
    index = index._replace(lowest=near.lowest, highest=near.highest, below=near.below)
    return freeze(index._replace(cell_first=near.first, cell_shift=near.shift))


def strata(index: BitsliceIndex) -> Strata:
    rows = index.attr_group.reshape(-1, len(index.top))  # starts of the groups of each stratum
    return Strata(
        index.best, index.expected, lambda begin, end: index._replace(attr_group=rows[begin : end + 1].ravel())
    )


KIND = IndexKind(
    BitsliceSettings, BitsliceIndex, build, scratch, match, lambda index: bool(index.repeats[0]),
    arrange=arrange, build_arranged=build_arranged, strata=strata, sound=sound,
)  # fmt: skip
