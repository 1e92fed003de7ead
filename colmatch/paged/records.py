"""Subscriptions as records of 32-bit words: what stands in pages, by key, and how it is read.

A record is a header of 13 words and its sections one after the other: of each conjunction its slot
and how many predicates it has, of each predicate five words (attribute and flags, lowest and
highest key; or which of the intervals that follow), and so on. Records are read together: as
predicates whose codes are those of their own boundaries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.ranges import members, ranges_of, sizes_of
from colmatch.events.reader import texts_of
from colmatch.indexing.sound import UnsoundError
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, I64, KEY_MAX, KEY_MIN, Codes, Predicates
from colmatch.kernels.ranges import put_rows
from colmatch.subscriptions.ids import Ids
from colmatch.subscriptions.tags import Tags

U32s = NDArray[np.uint32]
HEADER = 13
(LENGTH, FLAGS, CONJUNCTIONS, PREDICATES, RUNS, JUMPS, TREES, ID_BYTES, TAGS, TAG_BYTES, ID, ID_HIGH,
 WEIGHTS) = range(HEADER)  # fmt: skip
TEXT_ID, PROGRAMS, PRIORITY = 1, 2, 4


class Keyed(NamedTuple):
    """Subscriptions by key. Predicates have no codes but keys, as ``kernels/pbtree/plan`` has them.

    ``predicates.pred`` has attributes and flags, and where the intervals of some are.
    """

    predicates: Predicates
    keys: tuple[I64, I64, I64, I64]  # lowest and highest of predicates, and of runs
    ids: Ids
    tags: Tags
    slots: NDArray[np.uint32]  # of each conjunction; and of each subscription without any, behind these
    sizes: I64  # (S) conjunctions


def slots_needed(owner: NDArray[np.uint32], subscriptions: int) -> tuple[I64, NDArray[np.int64]]:
    """Returns how many conjunctions subscriptions have, and those that have none."""
    sizes = np.bincount(owner, minlength=subscriptions).astype(np.int64)
    return sizes, np.flatnonzero(sizes == 0)


class _Section(NamedTuple):
    counts: I64  # (S) how many there are of each subscription
    data: U32s  # (all of them, words)


def _words(values: NDArray[np.generic], each: int) -> U32s:
    return np.ascontiguousarray(values).view(np.uint32).reshape(-1, each)


def _padded(first: I64, data: NDArray[np.uint8]) -> _Section:
    """Returns bytes as words, of which the last are filled with zeros.

    first (S + 1) : where those of each subscription begin
    """
    size = sizes_of(first)
    counts = -(-size // 4)
    ends = ranges_of(counts)
    filled = np.zeros(4 * int(ends[-1]), np.uint8)
    filled[members(4 * ends[:-1], ranges_of(size))] = data[first[0] : first[-1]]
    return _Section(counts, filled.view(np.uint32).reshape(-1, 1))


def _slots_by_record(some: Keyed) -> tuple[I64, NDArray[np.uint32]]:
    """Returns how many slots each record has, and those of all in turn."""
    sizes, conjunctions = some.sizes, len(some.predicates.owner)
    if len(some.slots) == conjunctions:
        return sizes, some.slots
    counts = np.maximum(sizes, 1)
    without = np.repeat(sizes == 0, counts)
    slots = np.empty(len(some.slots), np.uint32)
    slots[~without], slots[without] = some.slots[:conjunctions], some.slots[conjunctions:]
    return counts, slots


def packed(some: Keyed) -> tuple[U32s, I64]:
    """Returns the words of all records, and where each begins (S + 1)."""
    preds, (low, high, runs_low, runs_high), count = some.predicates, some.keys, len(some.ids)
    sizes = some.sizes
    conj_first = ranges_of(sizes)
    slot_counts, slots = _slots_by_record(some)
    pred_first = preds.first[conj_first]
    pred_counts = sizes_of(pred_first)
    several = preds.pred[:, 0] & np.uint32(FLAG_RUN) != 0
    run_counts = np.zeros(count, np.int64)
    runs = np.empty((0, 4), np.uint32)
    if several.any():
        each = np.where(several, high - low, 0)
        run_ends = ranges_of(each)
        run_counts = sizes_of(run_ends[pred_first])
        places = members(low[several], ranges_of(each[several]))
        runs = np.concatenate([_words(runs_low[places], 2), _words(runs_high[places], 2)], axis=1)
        of_record = np.repeat(run_ends[pred_first[:-1]], pred_counts)
        low = np.where(several, run_ends[:-1] - of_record, low)
        high = np.where(several, run_ends[1:] - of_record, high)
    pred = np.empty((len(preds.pred), 5), np.uint32)
    pred[:, 0], pred[:, 1:3], pred[:, 3:5] = preds.pred[:, 0], _words(low, 2), _words(high, 2)
    numbers = some.ids.numbers
    head = np.zeros((count, HEADER), np.uint32)
    flags = 0 if numbers is not None else TEXT_ID
    sections = [
        _Section(np.ones(count, np.int64), head),
        _Section(slot_counts, slots.reshape(-1, 1)),
        _Section(sizes, _words(sizes_of(preds.first).astype(np.uint32), 1)),
        _Section(pred_counts, pred),
        _Section(run_counts, runs),
    ]
    if len(preds.weight):
        sections.append(_Section(pred_counts, _words(preds.weight, 4)))
        head[:, WEIGHTS] = 1
    if len(preds.jump_first):
        flags |= PROGRAMS
        is_program = preds.jump_first >= 0
        jumps = np.where(is_program, sizes_of(preds.first), 0)
        tree_sizes = sizes_of(preds.tree_first)
        jump_ends, tree_ends = ranges_of(jumps), preds.tree_first - preds.tree_first[0]
        sections += [
            _Section(sizes, is_program.astype(np.uint32).reshape(-1, 1)),
            _Section(sizes, tree_sizes.astype(np.uint32).reshape(-1, 1)),
            _Section(
                sizes_of(jump_ends[conj_first]),
                _words(preds.jump[members(preds.jump_first[is_program], ranges_of(jumps[is_program]))], 2),
            ),
            _Section(sizes_of(tree_ends[conj_first]), _words(preds.tree, 1)),
        ]
        head[:, JUMPS], head[:, TREES] = sections[-2].counts, sections[-1].counts
    if len(preds.priority):
        flags |= PRIORITY
        sections.append(_Section(sizes, _words(preds.priority, 2)))
    if numbers is None:
        offset, texts = texts_of(some.ids.array)
        id_first = offset.astype(np.int64)
        sections.append(_padded(id_first, texts))
        head[:, ID_BYTES] = sizes_of(id_first)
    if len(some.tags):
        tags = some.tags.sections(count)
        tag_first = ranges_of(tags["tag_size"])[ranges_of(tags["tags"])]
        sections.append(_Section(tags["tags"], tags["tag_size"].astype(np.uint32).reshape(-1, 1)))
        sections.append(_padded(tag_first, tags["tag_data"]))
        head[:, TAGS], head[:, TAG_BYTES] = tags["tags"], sizes_of(tag_first)
    head[:, FLAGS], head[:, CONJUNCTIONS], head[:, PREDICATES] = flags, sizes, pred_counts
    head[:, RUNS] = run_counts
    if numbers is not None:
        head[:, ID : ID_HIGH + 1] = _words(numbers, 2)
    sections[0] = _Section(sections[0].counts, head)
    lengths = sum((section.counts * section.data.shape[1] for section in sections), np.zeros(count, np.int64))
    head[:, LENGTH] = lengths
    first = ranges_of(lengths)
    words, at = np.empty(int(first[-1]), np.uint32), first[:-1].copy()
    for section in sections:
        put_rows(words, at, contiguous(section.counts), contiguous(section.data))
    return words, first


class _Reader:
    """Takes section after section out of records."""

    def __init__(self, words: U32s, at: I64) -> None:
        self.words, self.at = words, at.copy()

    def take(self, counts: I64, width: int = 1) -> U32s:
        places = members(self.at, ranges_of(counts * width))
        self.at += counts * width
        return self.words[places].reshape(-1, width)


def _check(is_right: NDArray[np.bool_]) -> None:
    """Raises an error unless something is right for all records, or parts of them."""
    if not is_right.all():
        raise UnsoundError("a record of a subscription is not as long as its parts are")


def _lengths(head: I64) -> I64:
    """Returns how many words records have, by their headers."""
    conjunctions, predicates, flags = head[:, CONJUNCTIONS], head[:, PREDICATES], head[:, FLAGS]
    bytes_ = -(-head[:, ID_BYTES] // 4) - (-head[:, TAG_BYTES] // 4)
    found: I64 = HEADER + np.maximum(conjunctions, 1) + conjunctions + 5 * predicates + 4 * head[:, RUNS]
    found += np.where(head[:, WEIGHTS] > 0, 4 * predicates, 0) + np.where(flags & PRIORITY, 2 * conjunctions, 0)
    found += np.where(flags & PROGRAMS, 2 * conjunctions, 0) + 2 * head[:, JUMPS] + head[:, TREES]
    found += head[:, TAGS] + bytes_
    return found


def _header_of(reader: _Reader, first: I64) -> I64:
    """Reads the headers of records, and checks lengths against those of their parts."""
    _check(sizes_of(first) >= HEADER)
    head = reader.take(np.ones(len(first) - 1, np.int64), HEADER).astype(np.int64)
    _check((head[:, LENGTH] == sizes_of(first)) & (_lengths(head) == sizes_of(first)))
    _check((head[:, FLAGS] ^ head[:1, FLAGS]) & TEXT_ID == 0)
    _check((head[:, FLAGS] & PROGRAMS > 0) | (head[:, JUMPS] + head[:, TREES] == 0))
    _check((head[:, FLAGS] & TEXT_ID > 0) | (head[:, ID_BYTES] == 0))
    return head


def _sums(values: I64, counts: I64) -> I64:
    """Returns sums of neighbouring values; ``counts`` says how many make each sum."""
    return sizes_of(ranges_of(values)[ranges_of(counts)])


def _check_runs(head: I64, low: I64, high: I64, several: NDArray[np.bool_]) -> None:
    """Checks the intervals of predicates that have several: all of them are their record's."""
    counts, runs = head[:, PREDICATES], head[:, RUNS]
    _check(~several | ((low >= 0) & (low <= high) & (high <= np.repeat(runs, counts))))
    _check(_sums(np.where(several, high - low, 0), counts) == runs)


def unpacked(words: U32s, first: I64) -> Keyed:
    """Reads records from words, ``first`` (S + 1) being where each begins. Owners count from 0 on.

    Raises
    ------
    UnsoundError : a record is not as long as its parts are
    """
    count = len(first) - 1
    reader = _Reader(words, first[:-1])
    head = _header_of(reader, first)
    flags = int(np.bitwise_or.reduce(head[:, FLAGS])) if count else 0
    sizes, size_of_preds = head[:, CONJUNCTIONS], head[:, PREDICATES]
    slots = reader.take(np.maximum(sizes, 1)).ravel()
    without = np.repeat(sizes == 0, np.maximum(sizes, 1))
    slots = np.concatenate([slots[~without], slots[without]])
    pred_counts = reader.take(sizes).ravel().astype(np.int64)
    _check(_sums(pred_counts, sizes) == size_of_preds)
    pred_words = reader.take(size_of_preds, 5)
    low, high = _int64(pred_words[:, 1:3]), _int64(pred_words[:, 3:5])
    runs = reader.take(head[:, RUNS], 4)
    several = pred_words[:, 0] & np.uint32(FLAG_RUN) != 0
    _check_runs(head, low, high, several)
    base = np.repeat(ranges_of(head[:, RUNS])[:-1], size_of_preds)
    low, high = np.where(several, low + base, low), np.where(several, high + base, high)
    weights = np.where(head[:, WEIGHTS] > 0, size_of_preds, 0)
    weight = np.zeros((0, 2))
    if weights.any():
        weight = np.zeros((len(low), 2))
        weight[np.repeat(head[:, WEIGHTS] > 0, size_of_preds)] = (
            np.ascontiguousarray(reader.take(weights, 4)).view(np.float64).reshape(-1, 2)
        )
    owner = np.repeat(np.arange(count), sizes).astype(np.uint32)
    pred_first = ranges_of(pred_counts)
    pred = np.zeros((len(low), 3), np.uint32)
    pred[:, 0] = pred_words[:, 0]
    pred[several, 1], pred[several, 2] = low[several], high[several]
    none, no_jumps, no_tree = np.empty(0, np.int64), np.empty((0, 2), np.int32), np.empty(0, np.int32)
    jump_first, jump, tree_first, tree = none, no_jumps, none, no_tree
    if flags & PROGRAMS:
        own = np.where(head[:, FLAGS] & PROGRAMS, sizes, 0)
        there = np.repeat(head[:, FLAGS] & PROGRAMS > 0, sizes)
        is_program, tree_sizes = np.zeros(len(owner), bool), np.zeros(len(owner), np.int64)
        is_program[there] = reader.take(own).ravel() > 0
        tree_sizes[there] = reader.take(own).ravel()
        _check(_sums(tree_sizes, sizes) == head[:, TREES])
        _check(_sums(np.where(is_program, pred_counts, 0), sizes) == head[:, JUMPS])
        jump = np.ascontiguousarray(reader.take(head[:, JUMPS], 2)).view(np.int32)
        tree = np.ascontiguousarray(reader.take(head[:, TREES])).view(np.int32).ravel()
        jump_first = np.full(len(owner), -1)
        jump_first[is_program] = ranges_of(pred_counts[is_program])[:-1]
        tree_first = ranges_of(tree_sizes)
    priority = np.empty(0)
    if flags & PRIORITY:
        own = np.where(head[:, FLAGS] & PRIORITY, sizes, 0)
        priority = np.zeros(len(owner))
        priority[np.repeat(own > 0, sizes)] = np.ascontiguousarray(reader.take(own, 2)).view(np.float64).ravel()
    if flags & TEXT_ID:
        offset = ranges_of(head[:, ID_BYTES]).astype(np.int32)
        texts = _bytes(reader, head[:, ID_BYTES])
        ids = Ids(pa.StringArray.from_buffers(count, pa.py_buffer(offset), pa.py_buffer(texts)))
    else:
        ids = Ids(contiguous(_int64(head[:, ID : ID_HIGH + 1].astype(np.uint32))))
    tag_size = reader.take(head[:, TAGS]).ravel().astype(np.int64)
    _check(_sums(tag_size, head[:, TAGS]) == head[:, TAG_BYTES])
    tags = Tags.of_sections(head[:, TAGS], tag_size, _bytes(reader, head[:, TAG_BYTES]))
    predicates = Predicates(
        pred_first,
        pred,
        *(np.zeros(len(runs), np.uint32),) * 2,
        owner,
        weight,
        jump_first,
        jump,
        tree_first,
        tree,
        priority,
    )
    keys = (low, high, _int64(runs[:, :2]), _int64(runs[:, 2:]))
    return Keyed(predicates, keys, ids, tags, slots, sizes)


def _int64(words: U32s) -> I64:
    found: I64 = np.ascontiguousarray(words).view(np.int64).ravel()
    return found


def _bytes(reader: _Reader, sizes: I64) -> NDArray[np.uint8]:
    """Takes bytes as ``_padded`` has them, and leaves the zeros out."""
    counts = -(-sizes // 4)
    data = np.ascontiguousarray(reader.take(counts)).view(np.uint8).ravel()
    return data[members(4 * ranges_of(counts)[:-1], ranges_of(sizes))]


def coded(some: Keyed, multi: NDArray[np.uint8]) -> tuple[Predicates, Codes]:
    """Returns the predicates with codes, and these: of the boundaries that they have themselves.

    multi (A) : whether attributes may have several values in a row
    """
    preds, (low, high, runs_low, runs_high) = some.predicates, some.keys
    several = preds.pred[:, 0] & np.uint32(FLAG_RUN) != 0
    attr = (preds.pred[:, 0] & np.uint32(ATTR_MASK)).astype(np.int64)
    run_attr = np.zeros(len(runs_low), np.int64)
    each = ranges_of((high - low)[several])
    run_attr[members(low[several], each)] = np.repeat(attr[several], np.diff(each))
    attrs = np.concatenate([attr[~several], run_attr])
    lows, highs = np.concatenate([low[~several], runs_low]), np.concatenate([high[~several], runs_high])
    real = lows <= highs
    has_low, has_high = real & (lows > KEY_MIN), real & (highs < KEY_MAX)
    bound_attr = np.concatenate([attrs[has_low], attrs[has_high]])
    bound = np.concatenate([lows[has_low], highs[has_high] + 1])
    order = np.lexsort((bound, bound_attr))
    bound_attr, bound = bound_attr[order], bound[order]
    new = np.ones(len(order), bool)
    new[1:] = (bound_attr[1:] != bound_attr[:-1]) | (bound[1:] != bound[:-1])
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(new) - 1
    first = np.searchsorted(bound_attr[new], np.arange(len(multi) + 1))
    lowest, highest = np.ones(len(attrs), np.int64), np.where(real, np.diff(first)[attrs] + 1, 0)
    number = int(np.count_nonzero(has_low))
    lowest[has_low] = place[:number] - first[attrs[has_low]] + 2
    highest[has_high] = place[number:] - first[attrs[has_high]] + 1
    pred = preds.pred.copy()
    plain = int(np.count_nonzero(~several))
    pred[~several, 1], pred[~several, 2] = lowest[:plain], highest[:plain]
    codes = Codes(first.astype(np.int64), bound[new], multi)
    run_lo, run_hi = lowest[plain:].astype(np.uint32), highest[plain:].astype(np.uint32)
    return freeze(preds._replace(pred=pred, run_lo=run_lo, run_hi=run_hi)), freeze(codes)
