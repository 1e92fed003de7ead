"""OpIndex: partitions by pivot attribute, lists by operator, counters.

Source: "An Efficient Publish/Subscribe Index for E-Commerce Databases", sections 4 to 6.1.

Deviations:

- Section 4.2 rewrites an interval as >= and <=. Here BETWEEN is a separate operator, sorted by
  lower operand and stored with the upper one. With a million subscriptions of the workload
  ``dense`` an event then meets 261,000 entries in 0.8 ms instead of 769,000 in 1.6 ms. A
  subscription takes 62 bytes instead of 78. BETWEEN lists are cut by class of width, as
  Propagation's are, if one attribute has more than some hundred ranges. Otherwise, every range that
  starts below a value would be read. An event takes 1.4 us with 50,000 narrow ranges on one
  attribute; uncut they took 19.8.
- Section 4.3 gives each list the same number of segments, 32. Here it follows the attributes in the
  list, 4 to a segment, so that short lists are small and long ones are cut finely. Attributes are
  in the order of a hash, and the segment is its high bits.
- Lists are found by a table of attribute and operator with 48 bytes an attribute. Lists and their
  contents exist only where there are predicates.
- Counters are one array as long as the largest partition, reset by a stamp when they are first
  touched. They count up, not down: then the step needs no branch, which halved the time of an
  event. Slots of a partition are in the order of the predicates on its pivot.
- A block of rows passes over a partition before the next one. The paper matches one event at a
  time.
- A negated predicate is an entry that stops its slot's counter; the paper only calls other
  operators similar. A conjunction of only negated predicates has no pivot and is verified for each
  event.
- Predicates that two values of an attribute may meet are clauses of section 6.1: its bitmap counts
  each once.
- Expressions that are neither conjunctions nor CNF are entered by their best clause and verified.
- A CNF may be found once by each of its pivots, so a pair may repeat; the caller drops it.

Codes are only compared, never counted with. So they may be labels, with gaps for later inserts.
Only the highest code of each attribute is taken from ``Codes``, and kept: a range up to it has no
upper end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.growing import with_room
from colmatch.arrays.ranges import ranges_of
from colmatch.errors import OptionError
from colmatch.kernels.kinds.opindex import arrays as oi
from colmatch.kernels.kinds.opindex import update
from colmatch.kernels.kinds.opindex.arrays import OpIndex, OpIndexScratch
from colmatch.kernels.kinds.opindex.build import (
    DIGIT,
    OperatorEntries,
    count_entries,
    count_runs,
    cut_runs,
    number_slots,
    sort_entries,
    write_entries,
)
from colmatch.kernels.kinds.opindex.entries import ENTRY_WORDS, RESULTS, Expansion, most_entries
from colmatch.kernels.kinds.opindex.match import match
from colmatch.kernels.layout import ATTR_MASK, CODE_MAX, I64, LABEL_TOP, U32, U64, Codes, Predicates
from colmatch.kinds.base import IndexKind, highest_codes, uses_of
from colmatch.kinds.settings import Budget, Settings, setting
from colmatch.kinds.statistics import Sample
from colmatch.predicates.columns import take


@dataclass(frozen=True, slots=True, repr=False)
class OpIndexSettings(Settings):
    """Settings of opindex: signatures, construction and budgets."""

    kind = "opindex"
    about = "OpIndex: subscriptions by their rarest attribute, predicates by operator, counters"

    cnf_budget: int = setting(
        4,
        "dnf_budget of an AND of predicates and ORs of predicates, whose clauses have counters; it is "
        "multiplied out if it is within both",
        range(1, 4097),
    )
    signatures: bool = setting(
        True, "skip segments of lists by their signatures; without them it is the papers' OpIndex-BS", (True, False)
    )
    construction: str = setting("bulk", "all at once, or one by one", ("bulk", "dynamic"))

    @property
    def budget(self) -> Budget:
        return Budget(self.dnf_budget, min(self.dnf_budget, self.cnf_budget), oi.MOST_CLAUSES)

    @classmethod
    def under(cls, dnf_budget: int) -> Self:
        return cls(dnf_budget=dnf_budget, cnf_budget=dnf_budget)


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: OpIndexSettings
) -> tuple[OpIndex, Predicates]:
    frequency = _frequency(preds, codes, sample)
    if settings.construction == "bulk":
        return _build_all(preds, codes, frequency, settings.signatures), preds
    nothing = _build_all(freeze(take(preds, np.arange(0))), codes, frequency, settings.signatures)
    return insert(nothing, freeze(preds), codes, 0, len(preds.owner)), preds


def _build_all(preds: Predicates, codes: Codes, frequency: I64, signatures: bool) -> OpIndex:
    """Indexes all conjunctions at once."""
    # Count the entries, and the slots of each partition.
    attributes, count, top = len(codes.multi), len(preds.owner), highest_codes(codes)
    expansion, slots = _expansion(preds, np.arange(count)), np.zeros(attributes, np.int64)
    size, always, several = count_entries(preds, frequency, top, expansion, slots)
    first = ranges_of(slots)
    if 3 * size > CODE_MAX or slots.max(initial=0) >> (32 - oi.CLAUSE_BITS):
        raise OptionError(f"index='opindex': {size:,} entries are too many for it")

    # Write the entries, and sort them by partition, operator, hash of the attribute and operand.
    by_hash = np.argsort(np.arange(attributes) * 0x9E3779B1 & 0xFFFFFFFF).astype(np.int64)
    place = np.empty(attributes, np.int64)
    place[by_hash] = np.arange(attributes)
    bits = attributes.bit_length()
    key, entries = np.empty(size, np.uint64), _no_entries(size)
    conj, needed, checked = np.empty(first[-1], np.uint32), np.empty(first[-1], np.uint16), np.empty(always, np.uint32)
    write_entries(preds, frequency, top, place, bits, expansion, first[:-1].copy(), key, entries, conj, needed, checked)
    key, order = _sort_entries(key, entries.operand, (attributes * oi.OPERATORS).bit_length() + bits)

    # Number the slots in the order of the predicates on their pivots.
    number, new_conj, new_needed = np.empty_like(conj), np.empty_like(conj), np.empty_like(needed)
    number_slots(
        key, order, entries.slot, bits, place, first, first[:-1].copy(), conj, needed, number, new_conj, new_needed
    )

    # Cut the lists into segments and runs.
    lists, list_, segments, runs, words = _lists(key, order, entries, bits, attributes, signatures)
    repeats = several > 0 or bool((preds.owner[1:] == preds.owner[:-1]).any())
    used = [len(list_), segments, runs, words, len(conj), always, repeats, signatures, count]
    index = OpIndex(
        frequency=frequency,
        top=top,
        lists=lists,
        partition=np.column_stack([first[:-1], slots, slots, np.zeros_like(slots)]).astype(np.uint32),
        list=list_,
        segment=np.empty((segments, 2), np.uint64),
        segment_room=np.zeros(segments, np.uint32),
        run=np.empty((runs, oi.RUN_WORDS), np.uint32),
        word=np.empty(words, np.uint32),
        conj=new_conj,
        needed=new_needed,
        always=checked,
        state=np.array(used, np.int64),
    )
    cut_runs(key, order, entries, number, bits, by_hash, np.empty(oi.ALL_WIDTHS + 1, np.int64), index)
    if not signatures:
        index.segment[:, 0] = 2**64 - 1
    return index


def _no_entries(size: int) -> OperatorEntries:
    """Returns entries with room for ``size`` of them."""
    operand, upper, slot = (np.empty(size, np.uint32) for _ in range(3))
    return OperatorEntries(operand, upper, slot, np.empty(size, np.uint8))


def _lists(
    key: U64, order: U32, entries: OperatorEntries, bits: int, attributes: int, signatures: bool
) -> tuple[U32, U32, int, int, int]:
    """Returns ``OpIndex.lists`` and ``list`` of the sorted entries, and the number of segments,
    runs and words that they take.
    """
    # Count the attributes in each list, and number the lists.
    there = np.zeros((attributes, oi.OPERATORS), np.uint32)
    shapes, sizes = np.array([2, 2, 2, 3] * (oi.OPERATORS // 4)), np.empty(oi.ALL_WIDTHS + 1, np.int64)
    runs, count, words = count_runs(key, order, entries.operand, entries.upper, bits, there, shapes, sizes)
    lists = np.full(there.shape, oi.NONE, np.uint32)
    lists[there > 0] = np.arange(count)
    # Give each list a power of two of segments.
    in_list = there[there > 0].astype(np.int64)
    logs = np.zeros(count, np.int64)
    if signatures:
        logs = np.ceil(np.log2(np.maximum(in_list / oi.RUNS_A_SEGMENT, 1))).astype(np.int64)
    begins = ranges_of(1 << logs)
    return lists, np.column_stack([begins[:-1], logs, in_list]).astype(np.uint32), int(begins[-1]), runs, words


def _frequency(preds: Predicates, codes: Codes, sample: Sample | None) -> I64:
    """Returns how often events have each attribute.

    The sample decides. Without it, or if it has equal counts, the predicates decide (section 4.1).
    """
    uses = uses_of(preds, len(codes.multi))
    if sample is None:
        return uses
    frequency: I64 = sample.values(codes) * (uses.max(initial=0) + 1) + uses
    return frequency


def _sort_entries(key: U64, operand: U32, bits: int) -> tuple[U64, U32]:
    """Returns the sorted keys, and the order of the entries: by key, then by operand."""
    size = len(key)
    order: U32 = np.arange(size, dtype=np.uint32)
    ends = operand != CODE_MAX
    limit = int(operand.max(where=ends, initial=0)) + 1  # a missing upper end needs no more bits than the others
    # Sort by key and operand at once if both fit into a word, else by operand, then by key.
    low = np.minimum(operand, limit)
    low_bits = limit.bit_length()
    begins = np.empty(1 << DIGIT, np.int64)
    if bits + low_bits <= 64:
        key = key << np.uint64(low_bits)
        key |= low
        parts = [(key, bits + low_bits)]
    else:
        parts = [(low.astype(np.uint64), low_bits), (key, bits)]
    for i, (part, width) in enumerate(parts):
        part = part[order] if i else part
        spare, spare_order = np.empty_like(part), np.empty_like(order)
        swapped = sort_entries(part, order, spare, spare_order, width, begins)
        key, order = (spare, spare_order) if swapped else (part, order)
    if len(parts) == 1:
        key >>= np.uint64(low_bits)
    return key, order


def _expansion(preds: Predicates, conjunctions: I64) -> Expansion:
    """Returns working memory for any one of these conjunctions."""
    room = most_entries(preds, contiguous(conjunctions))
    return Expansion(np.empty((room, ENTRY_WORDS), np.uint32), np.empty(room, np.uint32), np.empty(RESULTS, np.int64))


def scratch(index: OpIndex, codes: Codes, rows: int, entries: int) -> OpIndexScratch:
    attributes, largest = len(codes.multi), int(index.partition[:, 2].max(initial=0))
    u32 = np.uint32
    return OpIndexScratch(
        head=np.zeros(attributes, u32),
        chain=np.empty(entries, u32),
        row=np.empty(entries, u32),
        key=np.empty(entries, np.uint64),
        bit=np.empty((2, entries), np.uint8),
        found=np.empty(attributes + 1, u32),
        counter=np.zeros(largest, u32),
        mask=np.empty(largest, np.uint64),
        done=np.empty(largest + 1, u32),
        buffer=np.empty(oi.CHUNK, u32),
        stamp=np.zeros(1, np.int64),
        table=np.zeros(max(attributes, 1), u32),
        multi=codes.multi,
    )


def insert(index: OpIndex, preds: Predicates, codes: Codes, begin: int, end: int) -> OpIndex:
    """Enters the conjunctions ``begin:end`` (section 4.3, algorithm 1).

    Returns writable arrays: the same ones, if they were writable.

    Attributes that the build did not know count as the rarest. A scratch made before must not be
    used any more. Raises OptionError when there are too many entries.
    """
    used = preds.pred[preds.first[begin] : preds.first[end], 0] & ATTR_MASK
    index = _make_writable(index, int(used.max(initial=0)) + 1)
    expansion = _expansion(preds, np.arange(begin, end))
    progress = np.array([begin, 0, 0, -1, 0], np.int64)
    while not update.insert(index, preds, end, progress, expansion):
        index = _grow(index, int(progress[update.WANTED]))
    return index


def delete(index: OpIndex, preds: Predicates, codes: Codes, conjunctions: I64) -> OpIndex:
    """Takes conjunctions out; ``preds`` still has them.

    Returns writable arrays: the same ones, if they were writable.
    """
    index = _make_writable(index, 0)
    conjunctions = contiguous(conjunctions)
    update.delete(index, preds, conjunctions, _expansion(preds, conjunctions))
    return index


def _make_writable(index: OpIndex, attributes: int) -> OpIndex:
    """Returns the arrays, copied if they are read-only, with room for so many attributes."""
    if not index.state.flags.writeable:
        index = OpIndex(*(array.copy() for array in index))  # type: ignore[arg-type]
    have = len(index.lists)
    if attributes <= have:
        return index
    new = with_room(attributes) - have
    return index._replace(
        frequency=np.append(index.frequency, np.full(new, -1)),
        top=np.append(index.top, np.full(new, LABEL_TOP)),
        lists=np.concatenate([index.lists, np.full((new, oi.OPERATORS), oi.NONE, np.uint32)]),
        partition=np.concatenate([index.partition, np.zeros((new, 4), np.uint32)]),
    )


def _grow(index: OpIndex, wanted: int) -> OpIndex:
    """Returns everything in arrays with room for more, for ``wanted`` at least."""
    sizes = np.empty(oi.STATES, np.int64)
    update.measure(index, sizes)
    lists, segments, runs, words, slots, always = (with_room(size + wanted) for size in sizes[: oi.REPEATS].tolist())
    if words > CODE_MAX:
        raise OptionError(f"index='opindex': {words:,} words of entries are too many for it")
    u32 = np.uint32
    fresh = index._replace(
        list=np.concatenate([index.list, np.empty((max(lists - len(index.list), 0), 3), u32)]),
        segment=np.empty((segments, 2), np.uint64),
        segment_room=np.empty(segments, u32),
        run=np.empty((runs, oi.RUN_WORDS), u32),
        word=np.empty(words, u32),
        conj=np.empty(slots, u32),
        needed=np.empty(slots, np.uint16),
        always=np.concatenate([index.always, np.empty(max(always - len(index.always), 0), u32)]),
        partition=index.partition.copy(),
        state=index.state.copy(),
    )
    update.copy(index, fresh)
    return fresh


KIND = IndexKind(
    OpIndexSettings, OpIndex, build, scratch, match, lambda index: bool(index.state[oi.REPEATS]), insert, delete,
    grows_by_sample=lambda requested: True,
)  # fmt: skip
