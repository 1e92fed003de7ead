"""Propagation: finds the predicates that an event satisfies, then checks conjunctions behind them.

Conjunctions are checked on a bit vector.

Source: Fabret et al.'s Propagation, as "PS-Tree-Based Efficient Boolean Expression Matching for
High-Dimensional and Dense Workloads" describes it (section 2, Related Work). Deviations, and
choices that the source leaves open:

- Only the words of the bit vector that an event has set are cleared. The paper criticises
  Propagation for clearing all of it.
- An access predicate need not be an equality. Without one, it is the inequality that is expected to
  hold least often. Otherwise, a third of the subscriptions of the papers' dense workloads would be
  checked for every event. With a sample, it is any predicate that holds least often.
- Ranges are found by lists of similar width, not by one list for each operator, so an event reads
  few that do not hold.
- A predicate that holds for absent values too (IS NULL, NOT a <=> 5) has no bit: it is the negation
  of another. An expression kept as a program is evaluated itself, on the event.

CONJUNCTIONS and CANDIDATES count the checked entries of clusters, PREDICATES the bits tested and
the predicates of programs. NODES counts the bits set, and the slots of the hash table and entries
of lists that were read to find them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colmatch.arrays.frozen import freeze
from colmatch.errors import OptionError
from colmatch.kernels.kinds.propagation import arrays as pr
from colmatch.kernels.kinds.propagation.arrays import Estimates, PropagationIndex, PropagationScratch
from colmatch.kernels.kinds.propagation.build import (
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
from colmatch.kernels.kinds.propagation.match import match
from colmatch.kernels.layout import I64, U32, Codes, Predicates
from colmatch.kinds.base import IndexKind, uses_of
from colmatch.kinds.settings import Settings
from colmatch.kinds.statistics import Sample, window_of

FIRST_SLOTS = 1 << 10
MOST_WORDS = 2**32 - 1


@dataclass(frozen=True, slots=True, repr=False)
class PropagationSettings(Settings):
    """Settings of propagation: the budget."""

    kind = "propagation"
    by_predicate = True
    about = (
        "Propagation: the distinct predicates that hold as bits, then the subscriptions behind the most selective ones"
    )


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: PropagationSettings
) -> tuple[PropagationIndex, Predicates]:
    # Number the distinct predicates.
    estimates = _estimates(preds, codes, sample)
    key, number = _number(preds, estimates)
    used = len(key)
    ranks = np.empty(used, np.float64)
    # List the intervals by attribute, class of width and lowest code.
    entries = describe(preds, key, estimates, ranks)
    attr_class, (lo, hi, bit) = np.empty(entries, np.int64), (np.empty(entries, np.uint32) for _ in range(3))
    list_entries(preds, key, used, attr_class, lo, hi, bit)
    order = np.argsort(attr_class << 32 | lo, kind="stable")
    group_of, group = _groups(attr_class[order], lo[order], hi[order], len(codes.multi))
    # Choose the access predicates, and sort the conjunctions by them.
    access = np.empty(len(preds.owner), np.int64)
    choose(preds, number, ranks, access)
    by_access = np.argsort(access, kind="stable")
    sorted_access = access[by_access]
    # Write the clusters.
    columns = sorted_access & 0xFFFFFFFF
    slabs = np.count_nonzero(sorted_access[1:] != sorted_access[:-1]) + min(len(access), 1)
    words = 1 + int(slabs) * pr.HEADER + int(np.where(columns == pr.PROGRAM, 1, columns + 1).sum())
    if words > MOST_WORDS:  # places in the pool are uint32
        raise OptionError("index='propagation': 16 GB of clusters are too many; take another kind")
    pool, slab, bits = np.zeros(words, np.uint32), np.zeros(used, np.uint32), np.zeros((used + 63) // 64, np.uint64)
    always = fill_pool(preds, number, access, by_access, pool, slab, bits)
    # Fill the hash table of predicates.
    slot = np.zeros(max(1 << (2 * used - 1).bit_length() if used else 0, FIRST_SLOTS), np.uint32)
    fill_slots(preds, key, np.arange(1, used + 1, dtype=np.uint32), slot)
    state = np.zeros(pr.STATE_WORDS, np.int64)
    state[pr.ALWAYS] = always
    state[pr.PROGRAMS] = (preds.jump_first >= 0).any()
    state[pr.SEVERAL] = (preds.owner[1:] == preds.owner[:-1]).any()
    index = PropagationIndex(
        key, slot, slab, bits, group_of, group, lo[order], hi[order], bit[order], pool,
        codes.multi, state,
    )  # fmt: skip
    return index, preds


def _estimates(preds: Predicates, codes: Codes, sample: Sample | None) -> Estimates:
    attributes = len(codes.multi)
    present = uses_of(preds, attributes) if sample is None else sample.values(codes)
    top = np.ones(attributes)
    highest_codes(preds, top)
    intervals = (np.diff(codes.first) + 1).astype(np.float64)
    own = freeze(codes)
    return Estimates(
        present.astype(np.float64), intervals, top, **window_of(sample, codes),
        code_first=own.first, bound=own.bound, label=own.label,
    )  # fmt: skip


def _number(preds: Predicates, estimates: Estimates) -> tuple[U32, U32]:
    """Returns the distinct predicates (D, 3), and the place there of each predicate (P).

    Distinct predicates are ordered by attribute, class of width and lowest code.
    """
    # Number the predicates, and enlarge the hash table whenever it is full.
    number = np.empty(len(preds.pred), np.uint32)
    key, slot = np.empty((FIRST_SLOTS // 2, 3), np.uint32), np.zeros(FIRST_SLOTS, np.uint32)
    used, conj = np.zeros(1, np.int64), 0
    while (conj := number_predicates(preds, conj, estimates, key, slot, used, number)) < len(preds.owner):
        size = 4 * len(key)
        key = np.concatenate([key, np.empty((size - len(key), 3), np.uint32)])
        slot, old = np.zeros(2 * size, np.uint32), slot
        fill_slots(preds, key, old, slot)
    # Order the distinct ones.
    key = key[: used[0]]
    order = np.empty(len(key), np.int64)
    classify(key, order)
    rank = np.empty(len(key), np.uint32)
    rank[np.argsort(order)] = np.arange(len(key), dtype=np.uint32)
    ordered = np.empty_like(key)
    renumber(number, key, rank, ordered)
    return ordered, number


def _groups(attr_class: I64, lo: U32, hi: U32, attributes: int) -> tuple[U32, U32]:
    """Returns ``group_of`` and ``group`` of entries in their order."""
    kinds, start = np.unique(attr_class, return_index=True)
    group = np.zeros((len(kinds), pr.GROUP_WORDS), np.uint32)
    group_of = np.zeros(attributes, np.uint32)
    if len(kinds):
        attr = kinds >> 6
        length = np.diff(np.append(start, len(lo)))
        group[:-1, pr.GROUP_NEXT] = np.where(attr[1:] == attr[:-1], np.arange(2, len(kinds) + 1), 0)
        group[:, pr.START] = start
        group[:, pr.LENGTH] = length
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


KIND = IndexKind(
    PropagationSettings, PropagationIndex, build, scratch, match, lambda index: bool(index.state[pr.SEVERAL])
)
