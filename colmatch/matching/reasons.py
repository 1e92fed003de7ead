"""Reasons why subscriptions match nothing: the events that one predicate alone has turned away.

A kernel (``kernels/reasons.py``) tests each subscription for 64 events at once, like ``scan``. But
it goes on after the first false predicate. A subscription that has matched an event is not tested
again. So the cost depends on the number of subscriptions that match nothing.

300,000 ``dense`` subscriptions and 4,096 events take 1.7 s of processor time (2026-11-23).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.given.arguments import check_choice
from colmatch.given.schema import Attribute
from colmatch.kernels import reasons as kernels
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, FLAG_RUN, I64, U8, Predicates
from colmatch.kernels.tiles import TILE_ROWS
from colmatch.lowering.written import LiteralTexts, key_runs, name_of, predicate_text
from colmatch.matching.worker import BatchJob, SegmentJob
from colmatch.updates.literals import whole
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Version

By = Literal["attribute", "predicate"]


def check_by(by: object) -> By:
    """Checks the argument ``by`` and returns it.

    Raises OptionError: it is neither ``"attribute"`` nor ``"predicate"``.
    """
    return check_choice("by={}", by, get_args(By))


class SegmentReasons(NamedTuple):
    """Counts of a segment, for S subscriptions with T slots and P predicates.

    A slot has predicates of one subscription that share a count.
    """

    slot: I64  # (P) slot of each predicate, within its subscription
    begin: I64  # (S + 1) subscription -> its slots
    sample: I64  # (T) a predicate of each slot
    alone: I64  # (T) events that the slot alone has turned away
    several: I64  # (S) events that no slot alone has turned away
    done: U8  # (S) 1 for a subscription that has matched, or is left out

    @staticmethod
    def of(segment: Segment, base: int, version: Version, by: By) -> SegmentReasons:
        """Returns the counts of a segment before the first event."""
        predicates = segment.predicates
        count = len(predicates.pred)
        slot, begin, sample = np.empty(count, np.int64), np.empty(segment.size + 1, np.int64), np.empty(count, np.int64)
        left_out = version.deleted.among(base, segment.size).astype(np.uint8)
        none = contiguous(np.empty(0, np.int64))
        name = _name_numbers(version, predicates, left_out) if by == "attribute" else none
        slots = kernels.number_slots(predicates, *segment.conjunctions, name, slot, begin, sample)
        return SegmentReasons(
            slot, begin, sample[:slots], np.zeros(slots, np.int64), np.zeros(segment.size, np.int64), left_out
        )


class Reasons:
    """The reasons why subscriptions match nothing, collected from batches of events.

    Parameters
    ----------
    version : version that all batches are matched with
    by : predicates of a subscription that share a count: equal ones, or all on one attribute
    names : of definitions, by the attribute of each
    """

    def __init__(self, version: Version, by: By, names: Mapping[Attribute, str]) -> None:
        self._version = version
        self._by = by
        self._names = names
        self._found = [
            SegmentReasons.of(segment, base, version, by)
            for segment, base in zip(version.segments, version.bases, strict=True)
        ]

    def look(self, job: BatchJob, part: SegmentJob, valid: U8) -> None:
        """Counts the events of a job, with the codes of a part, for the part's segment.

        valid : (rows) 0 for events without a required value, which match nothing
        """
        counts, segment = self._found[part.place], part.segment
        predicates, most = segment.predicates, int(np.diff(counts.begin).max(initial=0))
        longest = int(np.diff(predicates.first).max(initial=0)) + 1
        scratch = (
            np.zeros(len(segment.codes.multi) * TILE_ROWS, np.uint32),
            np.empty(most, np.uint64),
            np.empty(most, np.uint64),
            np.empty(longest, np.uint64),
            np.zeros(longest, np.uint64),
        )
        segment_arrays = predicates, *segment.conjunctions, (counts.slot, counts.begin), segment.codes.multi
        kernels.count_reasons(*segment_arrays, job.events, valid, counts.done, scratch, counts.alone, counts.several)

    def table(self) -> pa.Table:
        """Returns the table of ``Matcher.reasons``."""
        parts = [self._of_segment(i, counts) for i, counts in enumerate(self._found)]
        number, slot, events, place = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((-events, slot < 0, number))
        number, slot, events, place = number[order], slot[order], events[order], place[order]
        attribute, text = self._name_slots(place, slot)
        columns = {"subscription": self._version.ids.take(number), "attribute": attribute}
        if self._by == "predicate":
            columns["predicate"] = text
        return pa.table(columns | {"events": pa.array(events, pa.int64())})

    def _of_segment(self, place: int, found: SegmentReasons) -> tuple[NDArray[np.int64], ...]:
        """Returns rows of the table: numbers, slots or -1 for none, events, and ``place``."""
        left = found.done == 0
        of = np.repeat(np.arange(len(left)), np.diff(found.begin))
        causes = np.flatnonzero((found.alone > 0) & left[of])
        none = np.flatnonzero(left & ((found.several > 0) | (np.bincount(of[causes], minlength=len(left)) == 0)))
        number = np.concatenate([of[causes], none]) + self._version.bases[place]
        slot = np.concatenate([causes, np.full(len(none), -1)])
        events = np.concatenate([found.alone[causes], found.several[none]])
        return number, slot, events, np.full(len(number), place)

    def _name_slots(self, place: NDArray[np.int64], slot: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
        """Returns the attribute and the predicate of each slot, NULL for no slot.

        Equal predicates of a segment get their text only once.
        """
        attributes, literals_of_all = self._version.attributes, whole(self._version.literals)
        name, text = np.full(len(slot), -1, np.int32), np.full(len(slot), -1, np.int32)
        names: dict[str, int] = {}
        texts: dict[str, int] = {}
        for i, segment in enumerate(self._version.segments):
            # Find the distinct predicates of the segment
            at = np.flatnonzero((place == i) & (slot >= 0))
            sample = self._found[i].sample[slot[at]]
            pred = segment.predicates.pred[sample].astype(np.int64)
            pred[pred[:, 0] & FLAG_RUN != 0, 1:] = sample[pred[:, 0] & FLAG_RUN != 0, None]  # no run equals another
            if self._by == "attribute":
                pred = pred[:, :1] & ATTR_MASK
            _, first, each = np.unique(pred, axis=0, return_index=True, return_inverse=True)
            # Make and number their texts
            own: list[tuple[int, int]] = []
            for p in sample[first].tolist():
                word = int(segment.predicates.pred[p, 0])
                attribute, wording = attributes[word & ATTR_MASK], ""
                if attribute in self._names:
                    attribute = replace(attribute, path=(self._names[attribute],))
                if self._by == "predicate":
                    literals = LiteralTexts(literals_of_all, word & ATTR_MASK)
                    runs = key_runs(segment.predicates, segment.codes, p)
                    wording = predicate_text(attribute, literals, runs, bool(word & FLAG_NONE))
                own.append((names.setdefault(name_of(attribute), len(names)), texts.setdefault(wording, len(texts))))
            name[at], text[at] = np.array(own, np.int32).reshape(-1, 2)[each.ravel()].T
        return _dictionary(name, names), _dictionary(text, texts)


def _dictionary(place: NDArray[np.int32], names: dict[str, int]) -> pa.Array:
    """Returns texts by their places, NULL for a place below 0."""
    return pa.DictionaryArray.from_arrays(pa.array(place, mask=place < 0), pa.array(list(names), pa.string()))


def _name_numbers(version: Version, predicates: Predicates, left_out: U8) -> I64:
    """Returns the number of each attribute's name; attributes of one name share a number.

    Attributes of no subscription but those left out have the number 0.
    """
    asked = np.repeat(left_out[predicates.owner] == 0, np.diff(predicates.first))
    numbers, names = np.zeros(len(version.attributes), np.int64), dict[str, int]()
    for attr in np.unique(predicates.pred[asked, 0] & ATTR_MASK).tolist():
        numbers[attr] = names.setdefault(name_of(version.attributes[attr]), len(names))
    return contiguous(numbers)
