"""Propagation: the predicates that an event satisfies are found first, then the conjunctions behind
them are checked on a bit vector.

Source: Fabret et al.'s Propagation, as "PS-Tree-Based Efficient Boolean Expression Matching for
High-Dimensional and Dense Workloads" describes it (section 2, Related Work). Where that leaves the
choice, or this departs from it:

- Only the words of the bit vector that an event has set are cleared. That all of it has to be, is
  what the document holds against it.
- Not only an equality can be an access predicate: without one, the inequality that is thought to
  hold least often is. Otherwise a third of the subscriptions of the documents' dense workloads
  would be checked for every event.
- Ranges are found by lists of like width, not by one list for each operator: an event looks at few
  that do not hold.
- A predicate that is true of absent values too (IS NULL, NOT a <=> 5) has no bit of its own: it is
  the negation of another. An expression kept as a program is evaluated itself, on the event.

CONJUNCTIONS and CANDIDATES count the entries of clusters that are checked, PREDICATES the bits
tested (and predicates of programs), NODES the bits set and what was looked at to find them: slots
of the hash table, entries of the lists.
"""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import freeze
from colmatch.errors import OptionError
from colmatch.index.base import IndexKind
from colmatch.index.statistics import Sample, Statistics
from colmatch.kernels.layout import ATTR_MASK, F64, FLAG_MULTI, I64, U32, Codes, Predicates
from colmatch.kernels.propagation import build as kernels
from colmatch.kernels.propagation import entries as propagation_entries
from colmatch.kernels.propagation import match as propagation
from colmatch.kernels.propagation import slabs as propagation_update
from colmatch.options import Options

FIRST_SLOTS = 1 << 10
MOST_WORDS = 2**32 - 1


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, options: Options
) -> tuple[propagation.PropagationIndex, Predicates]:
    estimates = _estimates(preds, codes, sample)
    key, number = _number(preds, estimates)
    used = len(key)
    truth = np.empty(used, np.float64)
    entries = kernels.describe(preds, key, *estimates, truth)
    attr_class, lo, hi, bit = (
        np.empty(entries, np.int64),
        np.empty(entries, np.uint32),
        np.empty(entries, np.uint32),
        np.empty(entries, np.uint32),
    )
    kernels.list_entries(preds, key, used, attr_class, lo, hi, bit)
    order = np.argsort(attr_class << 32 | lo, kind="stable")
    group_of, group = _groups(attr_class[order], lo[order], hi[order], len(codes.multi))
    access, uses = np.empty(len(preds.owner), np.int64), np.zeros(used, np.uint32)
    kernels.choose(preds, number, truth, access, uses)
    by_access = np.argsort(access, kind="stable")
    sorted_access = access[by_access]
    columns = sorted_access & 0xFFFFFFFF
    slabs = np.count_nonzero(sorted_access[1:] != sorted_access[:-1]) + min(len(access), 1)
    words = 1 + slabs * propagation.HEADER + int(np.where(columns == propagation.PROGRAM, 1, columns + 1).sum())
    pool, slab, bits = (
        np.zeros(_pool_words(int(words), int(words)), np.uint32),
        np.zeros(used, np.uint32),
        np.zeros((used + 63) // 64, np.uint64),
    )
    always = kernels.fill_pool(preds, number, access, by_access, pool, slab, bits)
    slot = np.zeros(_slots(used), np.uint32)
    kernels.fill_slots(preds, key, np.arange(1, used + 1, dtype=np.uint32), slot)
    state = np.zeros(propagation.STATE_WORDS, np.int64)
    state[propagation.BITS] = state[propagation.SLOTS] = used
    state[propagation.GROUPS], state[propagation.ENTRIES], state[propagation.POOL] = len(group), entries, words
    state[propagation.ALWAYS] = always
    state[propagation.PROGRAMS] = (preds.jump_first >= 0).any()
    state[propagation.SEVERAL] = (preds.owner[1:] == preds.owner[:-1]).any()
    present, intervals, top, code_first, label = estimates[:5]
    index = propagation.PropagationIndex(
        key,
        slot,
        uses,
        truth,
        slab,
        bits,
        group_of,
        group,
        lo[order],
        hi[order],
        bit[order],
        pool,
        present,
        intervals,
        top,
        code_first,
        label,
        codes.multi,
        state,
    )
    return index, preds


def _estimates(preds: Predicates, codes: Codes, sample: Sample | None) -> tuple[F64, F64, F64, I64, U32, I64]:
    """What ``kernels.propagation_predicates.expected`` goes by."""
    attributes = len(codes.multi)
    attr = preds.pred[:, 0] & ATTR_MASK
    intervals = np.diff(codes.first) + 1
    code_first = np.concatenate([[0], np.cumsum(intervals)])
    below = np.empty(0, np.int64) if sample is None else np.concatenate([[0], np.cumsum(sample.hits)])
    present = (
        np.bincount(attr, minlength=attributes) if sample is None else below[code_first[1:]] - below[code_first[:-1]]
    )
    top = np.ones(attributes)
    kernels.highest_codes(preds, top)
    return present.astype(np.float64), intervals.astype(np.float64), top, code_first, codes.label.copy(), below


def _slots(used: int) -> int:
    return max(1 << (2 * used - 1).bit_length(), FIRST_SLOTS) if used else FIRST_SLOTS


def _number(preds: Predicates, estimates: tuple[F64, F64, F64, I64, U32, I64]) -> tuple[U32, U32]:
    """Distinct predicates (D, 3), ordered by attribute, class of width and lowest code, and the
    place there of each predicate (P).
    """
    number = np.empty(len(preds.pred), np.uint32)
    key, slot, used = (
        np.empty((FIRST_SLOTS // 2, 3), np.uint32),
        np.zeros(FIRST_SLOTS, np.uint32),
        np.zeros(1, np.int64),
    )
    conj = 0
    while (conj := kernels.number_predicates(preds, conj, *estimates, key, slot, used, number)) < len(preds.owner):
        size = 4 * len(key)
        key = np.concatenate([key, np.empty((size - len(key), 3), np.uint32)])
        slot, old = np.zeros(2 * size, np.uint32), slot
        kernels.fill_slots(preds, key, old, slot)
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


def scratch(
    index: propagation.PropagationIndex, codes: Codes, rows: int, entries: int
) -> propagation.PropagationScratch:
    words = (len(index.key) + 63) // 64
    return propagation.PropagationScratch(
        np.zeros(words, np.uint64),
        np.empty(words + 1, np.uint32),
        np.empty(propagation.HITS, np.uint32),
        np.empty(propagation.BLOCK, np.uint32),
        np.zeros(max(len(codes.multi), 1), np.uint32),
    )


def insert(
    arrays: propagation.PropagationIndex, preds: Predicates, begin: int, end: int
) -> propagation.PropagationIndex:
    """Enter the conjunctions ``begin:end`` of ``preds``.

    They must come after all that were entered before.

    What there is room for is written into the arrays themselves. Those that are read-only, or too
    small, are replaced by copies, larger by half. Working memory is good for as long as ``key`` and
    ``group_of`` keep their lengths. An interval is put into a sorted list, so its cost grows with
    the number of intervals of like width on its attribute: a copy of up to that many entries, 12
    bytes each.
    """
    preds = freeze(preds)
    arrays = _with_attributes(_writable(arrays), preds, begin, end)
    ids = np.empty(int(np.diff(preds.first[begin : end + 1]).max(initial=0)), np.uint32)
    progress = np.zeros(propagation_entries.PROGRESS_WORDS, np.int64)
    progress[propagation_entries.CONJ], progress[propagation_entries.BIT] = begin, -1
    none = np.empty(0, np.int64)
    while lacking := propagation_update.enter(arrays, preds, end, none, ids, progress):
        arrays = _grow(arrays, preds, lacking, int(progress[propagation_entries.NEEDED]))
    return arrays


def delete(arrays: propagation.PropagationIndex, preds: Predicates, conjunctions: I64) -> propagation.PropagationIndex:
    """Take conjunctions out, which ``preds`` must still have, and predicates that no other has.

    Those that are not there are passed over.

    Written into the arrays themselves, or into copies of those that are read-only. The predicates'
    intervals in ``run_lo`` and ``run_hi`` must stay where they are as long as the index is changed:
    another conjunction may have the same predicate.
    """
    arrays = _writable(arrays)
    propagation_update.remove(arrays, freeze(preds), np.ascontiguousarray(conjunctions, np.int64))
    return arrays


def _writable(arrays: propagation.PropagationIndex) -> propagation.PropagationIndex:
    return propagation.PropagationIndex(*(array if array.flags.writeable else array.copy() for array in arrays))  # type: ignore[arg-type]


def _with_attributes(
    arrays: propagation.PropagationIndex, preds: Predicates, begin: int, end: int
) -> propagation.PropagationIndex:
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


def _grow(
    arrays: propagation.PropagationIndex, preds: Predicates, lacking: int, needed: int
) -> propagation.PropagationIndex:
    """With more room for what there was no room for."""
    if lacking == propagation_entries.NEED_BITS:
        size = _larger(len(arrays.key))
        grown = {name: _extended(getattr(arrays, name), size) for name in ("key", "uses", "truth", "slab")}
        return arrays._replace(**grown, access=_extended(arrays.access, (size + 63) // 64))
    if lacking == propagation_entries.NEED_SLOTS:
        slot = np.zeros(2 * len(arrays.slot), np.uint32)
        kernels.fill_slots(preds, arrays.key, arrays.slot, slot)
        return arrays._replace(slot=slot)
    if lacking == propagation_entries.NEED_GROUPS:
        return arrays._replace(group=_extended(arrays.group, _larger(len(arrays.group))))
    if lacking == propagation_entries.NEED_ENTRIES:
        used = int(arrays.group[: arrays.state[propagation.GROUPS], propagation.ROOM].sum(dtype=np.int64))
        lo, hi, bit = (np.zeros(_larger(used + needed), np.uint32) for _ in range(3))
        propagation_entries.move_entries(arrays, lo, hi, bit)
        return arrays._replace(entry_lo=lo, entry_hi=hi, entry_bit=bit)
    used = int(arrays.state[propagation.POOL] - arrays.state[propagation.WASTE])
    pool = np.zeros(_pool_words(_larger(used + needed), used + needed), np.uint32)
    propagation_update.move_slabs(arrays, pool)
    return arrays._replace(pool=pool)


def _larger(size: int) -> int:
    return size + size // 2 + 64


def _extended(array: np.ndarray, size: int) -> np.ndarray:
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _pool_words(wanted: int, needed: int) -> int:
    """Words for a pool: places in it are uint32."""
    if needed > MOST_WORDS:
        raise OptionError("index='propagation': 16 GB of clusters are too many; take another kind")
    return min(wanted, MOST_WORDS)


def repeats(index: propagation.PropagationIndex) -> bool:
    return bool(index.state[propagation.SEVERAL])


def cost(statistics: Statistics) -> float:
    # Phase 1 costs what is distinct, of which there is hardly more beyond half a million; phase 2
    # the candidates. For dense this was 0.15 ms at 100,000 subscriptions, 0.6 to 0.8 at a million
    # (asv_benchmarks/compare.py).
    return 1000.0 + 0.2 * min(statistics.predicates, 500_000) + 0.5 * statistics.conjunctions


KIND = IndexKind(
    "propagation", propagation.PropagationIndex, build, scratch, propagation.match, cost, repeats, insert, delete
)
