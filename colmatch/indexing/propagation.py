"""Propagation finds the predicates that an event satisfies, then checks conjunctions behind them.

Conjunctions are checked on a bit vector.

Source: Fabret et al.'s Propagation, as "PS-Tree-Based Efficient Boolean Expression Matching for
High-Dimensional and Dense Workloads" describes it (section 2, Related Work). Where that leaves the
choice, or this departs from it:

- Only the words of the bit vector that an event has set are cleared. The document criticises
  Propagation for clearing all of it.
- Not only an equality can be an access predicate: without one, it is the inequality that is
  expected to hold least often. Otherwise a third of the subscriptions of the documents' dense
  workloads would be checked for every event.
- Ranges are found by lists of like width, not by one list for each operator: an event looks at few
  that do not hold.
- A predicate that is true of absent values too (IS NULL, NOT a <=> 5) has no bit of its own: it is
  the negation of another. An expression kept as a program is evaluated itself, on the event.

CONJUNCTIONS and CANDIDATES count the entries of clusters that are checked, PREDICATES the bits
tested (and predicates of programs), NODES the bits set and what was looked at to find them: slots
of the hash table, entries of the lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from colmatch.arrays.frozen import freeze
from colmatch.arrays.growing import extended, with_room
from colmatch.errors import OptionError
from colmatch.indexing.base import IndexKind, uses_of, writable
from colmatch.indexing.settings import Settings
from colmatch.indexing.statistics import WINDOW, Sample, Statistics, window_of
from colmatch.kernels.layout import ATTR_MASK, F64, FLAG_MULTI, I64, U32, Codes, Predicates
from colmatch.kernels.propagation import arrays as pr
from colmatch.kernels.propagation.arrays import Estimates, PropagationIndex, PropagationScratch
from colmatch.kernels.propagation.build import (
    choose,
    classify,
    describe,
    fill_pool,
    fill_slots,
    highest_codes,
    list_entries,
    number_predicates,
    renumber,
)
from colmatch.kernels.propagation.entries import (
    BIT,
    CONJ,
    NEED_BITS,
    NEED_ENTRIES,
    NEED_GROUPS,
    NEED_SLOTS,
    NEEDED,
    PROGRESS_WORDS,
    move_entries,
)
from colmatch.kernels.propagation.match import match
from colmatch.kernels.propagation.slabs import enter, move_slabs, remove

FIRST_SLOTS = 1 << 10
MOST_WORDS = 2**32 - 1


@dataclass(frozen=True, slots=True, repr=False)
class PropagationSettings(Settings):
    """What propagation keeps whole."""

    kind = "propagation"
    by_predicate = True
    about = (
        "Propagation: the distinct predicates that hold as bits, then the subscriptions behind the most selective ones"
    )


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: PropagationSettings
) -> tuple[PropagationIndex, Predicates]:
    estimates = _estimates(preds, codes, sample)
    key, number = _number(preds, estimates)
    used = len(key)
    truth = np.empty(used, np.float64)
    entries = describe(preds, key, estimates, truth)
    attr_class, lo, hi, bit = (
        np.empty(entries, np.int64),
        np.empty(entries, np.uint32),
        np.empty(entries, np.uint32),
        np.empty(entries, np.uint32),
    )
    list_entries(preds, key, used, attr_class, lo, hi, bit)
    order = np.argsort(attr_class << 32 | lo, kind="stable")
    group_of, group = _groups(attr_class[order], lo[order], hi[order], len(codes.multi))
    access, uses = np.empty(len(preds.owner), np.int64), np.zeros(used, np.uint32)
    choose(preds, number, truth, access, uses)
    by_access = np.argsort(access, kind="stable")
    sorted_access = access[by_access]
    columns = sorted_access & 0xFFFFFFFF
    slabs = np.count_nonzero(sorted_access[1:] != sorted_access[:-1]) + min(len(access), 1)
    words = 1 + slabs * pr.HEADER + int(np.where(columns == pr.PROGRAM, 1, columns + 1).sum())
    pool, slab, bits = (
        np.zeros(_pool_words(int(words), int(words)), np.uint32),
        np.zeros(used, np.uint32),
        np.zeros((used + 63) // 64, np.uint64),
    )
    always = fill_pool(preds, number, access, by_access, pool, slab, bits)
    slot = np.zeros(_slots(used), np.uint32)
    fill_slots(preds, key, np.arange(1, used + 1, dtype=np.uint32), slot)
    state = np.zeros(pr.STATE_WORDS, np.int64)
    state[pr.BITS] = state[pr.SLOTS] = used
    state[pr.GROUPS], state[pr.ENTRIES], state[pr.POOL] = len(group), entries, words
    state[pr.ALWAYS] = always
    state[pr.PROGRAMS] = (preds.jump_first >= 0).any()
    state[pr.SEVERAL] = (preds.owner[1:] == preds.owner[:-1]).any()
    index = PropagationIndex(
        key, slot, uses, truth, slab, bits, group_of, group, lo[order], hi[order], bit[order], pool,
        estimates.present, estimates.codes, estimates.top, multi=codes.multi, state=state,
        **window_of(sample if len(codes.label) else None, codes),
    )  # fmt: skip
    return index, preds


def _estimates(preds: Predicates, codes: Codes, sample: Sample | None) -> Estimates:
    attributes = len(codes.multi)
    present = uses_of(preds, attributes) if sample is None else sample.values(codes)
    top = np.ones(attributes)
    highest_codes(preds, top)
    intervals = (np.diff(codes.first) + 1).astype(np.float64)
    return _told(present.astype(np.float64), intervals, top, window_of(sample, codes), codes)


def _told(present: F64, intervals: F64, top: F64, window: dict[str, Any], codes: Codes) -> Estimates:
    own = freeze(codes)
    return Estimates(present, intervals, top, **window, code_first=own.first, bound=own.bound, label=own.label)


def _slots(used: int) -> int:
    return max(1 << (2 * used - 1).bit_length(), FIRST_SLOTS) if used else FIRST_SLOTS


def _number(preds: Predicates, estimates: Estimates) -> tuple[U32, U32]:
    """Distinct predicates (D, 3) and the place there of each predicate (P).

    They are ordered by attribute, class of width and lowest code.
    """
    number = np.empty(len(preds.pred), np.uint32)
    key, slot, used = (
        np.empty((FIRST_SLOTS // 2, 3), np.uint32),
        np.zeros(FIRST_SLOTS, np.uint32),
        np.zeros(1, np.int64),
    )
    conj = 0
    while (conj := number_predicates(preds, conj, estimates, key, slot, used, number)) < len(preds.owner):
        size = 4 * len(key)
        key = np.concatenate([key, np.empty((size - len(key), 3), np.uint32)])
        slot, old = np.zeros(2 * size, np.uint32), slot
        fill_slots(preds, key, old, slot)
    key = key[: used[0]]
    order = np.empty(len(key), np.int64)
    classify(key, order)
    rank = np.empty(len(key), np.uint32)
    rank[np.argsort(order)] = np.arange(len(key), dtype=np.uint32)
    ordered = np.empty_like(key)
    renumber(number, key, rank, ordered)
    return ordered, number


def _groups(attr_class: I64, lo: U32, hi: U32, attributes: int) -> tuple[U32, U32]:
    """``group_of`` and ``group`` of entries in their order."""
    kinds, start = np.unique(attr_class, return_index=True)
    group = np.zeros((len(kinds), pr.GROUP_WORDS), np.uint32)
    group_of = np.zeros(attributes, np.uint32)
    if len(kinds):
        attr = kinds >> 6
        length = np.diff(np.append(start, len(lo)))
        group[:-1, pr.GROUP_NEXT] = np.where(attr[1:] == attr[:-1], np.arange(2, len(kinds) + 1), 0)
        group[:, pr.CLASS] = kinds & 63
        group[:, pr.START] = start
        group[:, pr.LENGTH] = group[:, pr.ROOM] = length
        group[:, pr.REACH] = np.maximum.reduceat(hi - lo, start)
        first = np.concatenate([[True], attr[1:] != attr[:-1]])
        group_of[attr[first]] = 1 + np.flatnonzero(first)
    return group_of, group


def scratch(index: PropagationIndex, codes: Codes, rows: int, entries: int) -> PropagationScratch:
    words = (len(index.key) + 63) // 64
    return PropagationScratch(
        np.zeros(words, np.uint64),
        np.empty(words + 1, np.uint32),
        np.empty(pr.HITS, np.uint32),
        np.empty(pr.BLOCK, np.uint32),
        np.zeros(max(len(codes.multi), 1), np.uint32),
    )


def insert(arrays: PropagationIndex, preds: Predicates, codes: Codes, begin: int, end: int) -> PropagationIndex:
    """Enter the conjunctions ``begin:end`` of ``preds``.

    They must come after all that were entered before.

    What there is room for is written into the arrays themselves. Those that are read-only, or too
    small, are replaced by copies, larger by half. Working memory is good for as long as ``key`` and
    ``group_of`` keep their lengths. An interval is put into a sorted list, so its cost grows with
    the number of intervals of like width on its attribute: a copy of up to that many entries, 12
    bytes each.
    """
    preds = freeze(preds)
    arrays = _with_attributes(writable(arrays), preds, begin, end)
    ids = np.empty(int(np.diff(preds.first[begin : end + 1]).max(initial=0)), np.uint32)
    progress = np.zeros(PROGRESS_WORDS, np.int64)
    progress[CONJ], progress[BIT] = begin, -1
    window = {name: getattr(arrays, name) for name in WINDOW}
    estimates = _told(arrays.present, arrays.codes, arrays.top, window, codes)
    while lacking := enter(arrays, preds, end, estimates, ids, progress):
        arrays = _grow(arrays, preds, lacking, int(progress[NEEDED]))
    return arrays


def delete(arrays: PropagationIndex, preds: Predicates, codes: Codes, conjunctions: I64) -> PropagationIndex:
    """Take conjunctions out, which ``preds`` must still have, and predicates that no other has.

    Those that are not there are passed over.

    Written into the arrays themselves, or into copies of those that are read-only. The predicates'
    intervals in ``run_lo`` and ``run_hi`` must stay where they are as long as the index is changed:
    another conjunction may have the same predicate.
    """
    arrays = writable(arrays)
    remove(arrays, freeze(preds), np.ascontiguousarray(conjunctions, np.int64))
    return arrays


def _with_attributes(arrays: PropagationIndex, preds: Predicates, begin: int, end: int) -> PropagationIndex:
    """With room for the attributes of new conjunctions.

    Of one that no conjunction had, nothing is known: it is thought to be rare.
    """
    word = preds.pred[preds.first[begin] : preds.first[end], 0]
    more = int((word & ATTR_MASK).max(initial=0)) + 1 - len(arrays.group_of)
    if more <= 0:
        return arrays
    multi = np.append(arrays.multi, np.zeros(more, np.uint8))
    multi[word[(word & FLAG_MULTI) != 0] & ATTR_MASK] = 1
    one = np.ones(more)
    return arrays._replace(
        group_of=np.append(arrays.group_of, np.zeros(more, np.uint32)), multi=multi,
        present=np.append(arrays.present, one), codes=np.append(arrays.codes, one), top=np.append(arrays.top, one),
    )  # fmt: skip


def _grow(arrays: PropagationIndex, preds: Predicates, lacking: int, needed: int) -> PropagationIndex:
    """With more room for what there was no room for."""
    if lacking == NEED_BITS:
        used = len(arrays.key)
        grown = {name: extended(getattr(arrays, name), used, used + 1) for name in ("key", "uses", "truth", "slab")}
        words = (len(grown["key"]) + 63) // 64
        return arrays._replace(**grown, access=extended(arrays.access, len(arrays.access), words))
    if lacking == NEED_SLOTS:
        slot = np.zeros(2 * len(arrays.slot), np.uint32)
        fill_slots(preds, arrays.key, arrays.slot, slot)
        return arrays._replace(slot=slot)
    if lacking == NEED_GROUPS:
        return arrays._replace(group=extended(arrays.group, len(arrays.group), len(arrays.group) + 1))
    if lacking == NEED_ENTRIES:
        used = int(arrays.group[: arrays.state[pr.GROUPS], pr.ROOM].sum(dtype=np.int64))
        lo, hi, bit = (np.zeros(with_room(used + needed), np.uint32) for _ in range(3))
        move_entries(arrays, lo, hi, bit)
        return arrays._replace(entry_lo=lo, entry_hi=hi, entry_bit=bit)
    used = int(arrays.state[pr.POOL] - arrays.state[pr.WASTE])
    pool = np.zeros(_pool_words(with_room(used + needed), used + needed), np.uint32)
    move_slabs(arrays, pool)
    return arrays._replace(pool=pool)


def _pool_words(wanted: int, needed: int) -> int:
    """Words for a pool: places in it are uint32."""
    if needed > MOST_WORDS:
        raise OptionError("index='propagation': 16 GB of clusters are too many; take another kind")
    return min(wanted, MOST_WORDS)


def repeats(index: PropagationIndex) -> bool:
    return bool(index.state[pr.SEVERAL])


def cost(statistics: Statistics) -> float:
    # A program is evaluated for every event. Phase 1 costs what is distinct, of which there is
    # hardly more beyond half a million; phase 2 the candidates. For dense this was 0.15 ms at
    # 100,000 subscriptions, 0.6 to 0.8 at a million (asv_benchmarks/compare.py).
    distinct, checked = min(statistics.predicates, 500_000), statistics.conjunctions
    return 1000.0 + 0.2 * distinct + 0.5 * checked + 200 * statistics.programs


KIND = IndexKind(
    PropagationSettings,
    PropagationIndex,
    build,
    scratch,
    match,
    cost,
    repeats,
    insert,
    delete,
    grows_by_sample=lambda requested: True,
)
