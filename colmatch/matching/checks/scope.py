"""The subscriptions and events that checks read, and the table that they fill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from colmatch.kernels.layout import I64, Bools
from colmatch.matching.checks.boxes import Box, TooManyError
from colmatch.matching.checks.confirm import PIECE, Examples
from colmatch.updates.versions import Parts

Check = Literal["never", "always", "duplicate", "contained", "overlaps", "dead column", "odd literal"]
PROVEN, DISPROVEN, UNDECIDED = "proven", "disproven", "undecided"
ROUNDS = 3  # times that events are made for what is undecided
MOST_TRIED = 10_000  # subscriptions for which events are made, if none are asked for
_MOST_MADE = 16  # boxes of a pair of subscriptions that get an event in each round


class Rows:
    """The rows of the table, column by column."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._parts: list[tuple[str, I64, I64, str, pa.Array, I64]] = []
        self._events: list[pa.RecordBatch] = []
        self._count = 0

    def keep(self, events: pa.RecordBatch, which: I64) -> I64:
        """Keeps some events as examples. Returns their places."""
        if len(which):
            self._events.append(events.take(pa.array(which)))
        self._count += len(which)
        return np.arange(self._count - len(which), self._count)

    def add(
        self, finding: str, id: I64, other: I64 | None = None, status: str = PROVEN,
        reason: pa.Array | list[str] | str | None = None, example: I64 | None = None,
    ) -> None:  # fmt: skip
        """Adds rows of a finding; -1 is no other subscription, and no example."""
        none = np.full(len(id), -1)
        if isinstance(reason, list):
            reason = pa.array(reason, pa.string())
        elif not isinstance(reason, pa.Array):
            reason = pa.array([reason], pa.string()).take(pa.array(np.zeros(len(id), np.int64)))
        other, example = (none if column is None else column for column in (other, example))
        self._parts.append((finding, id, other, status, reason, example))

    def table(self, ids: pa.Array) -> pa.Table:
        """Returns the table, ordered by finding and id."""
        none = np.empty(0, np.int64)
        id, other, example = (np.concatenate([none, *(part[i] for part in self._parts)]) for i in (1, 2, 5))
        size = [len(part[1]) for part in self._parts]
        reasons = pa.chunked_array([part[4] for part in self._parts], pa.string())
        rank = np.repeat(np.array([get_args(Check).index(part[0]) for part in self._parts], np.int64), size)
        order = np.lexsort((other, id, rank))
        words = [pa.array([part[i] for part in self._parts], pa.string()) for i in (0, 3)]
        of = pa.array(np.repeat(np.arange(len(size)), size)[order])
        shape = pa.struct(list(self._schema))
        events = pa.concat_arrays([pa.nulls(0, shape), *(events.to_struct_array() for events in self._events)])
        return pa.table(
            {
                "id": ids.take(pa.array(id[order])),
                "finding": words[0].take(of),
                "other": ids.take(pa.array(other[order], mask=other[order] < 0)),
                "status": words[1].take(of),
                "reason": reasons.take(pa.array(order)),
                "example": events.take(pa.array(example[order], mask=example[order] < 0)),
            }
        )


class Scope:
    """The subscriptions that are checked, the events for them, and the rows found so far.

    Parameters
    ----------
    numbers : of the subscriptions, ascending
    is_asked : whether the caller has named them, so that each gets an answer
    sample : events
    """

    def __init__(self, parts: Parts, numbers: I64, is_asked: bool, sample: list[pa.RecordBatch]) -> None:
        self.version = parts.version
        self.examples = Examples(parts)
        self.states = self.examples.states
        self.numbers = numbers
        self.is_asked = is_asked
        self.sample = sample
        self.rows = Rows(self.examples.maker.schema)

    def boxes(self, number: int) -> list[Box] | None:
        """Returns the boxes of a subscription, of -1 that of all events; None if too many."""
        try:
            return self.examples.boxes.of(number) if number >= 0 else [{}]
        except TooManyError:
            return None

    def left(self, inner: int, outer: int) -> list[Box] | None:
        """Returns boxes of events that the first subscription may match and the second does not.

        None if there are too many.
        """
        boxes, others = self.boxes(inner), self.boxes(outer)
        if boxes is None or others is None:
            return None
        try:
            return [rest for box in boxes for rest in self.examples.boxes.left(box, others)]
        except TooManyError:
            return None

    def contains(self, inner: int, outer: int) -> tuple[bool, list[Box]]:
        """Returns whether the second subscription surely matches what the first does, and otherwise
        boxes where an event may show the contrary.
        """
        left = self.left(inner, outer)
        return left == [] and not self.examples.may_fail[outer], left or self.boxes(inner) or [{}]

    def disprove(self, inner: I64, outer: I64, boxes: list[list[Box]], keep: bool) -> tuple[I64, I64]:
        """Makes events in boxes of pairs, for one that the first matches and the second does not.

        Returns places of pairs that have such an event, and with ``keep`` of their examples.
        """
        found: dict[int, int] = {}
        for _ in range(ROUNDS):
            for some in pieces([i for i in range(len(inner)) if i not in found]):
                asked = [(i, box) for i in some for box in boxes[i][:_MOST_MADE]]
                events = self.examples.of_boxes([box for _, box in asked])
                of = np.array([i for i, _ in asked], np.int64)
                ours = np.unique(np.concatenate([inner[of], outer[of]]))
                pairs = self.examples.match(events, ours[ours >= 0])
                is_in = meets(inner[of], pairs.event, pairs.number)
                all_events = np.flatnonzero(inner[of] < 0)
                is_in[all_events[np.isin(all_events, pairs.matched)]] = True
                shown = np.flatnonzero(is_in & ~meets(outer[of], pairs.event, pairs.number))
                pair, first = np.unique(of[shown], return_index=True)
                example = self.rows.keep(events, shown[first]) if keep else shown[first]
                found.update(zip(pair.tolist(), example.tolist(), strict=True))
        return np.array(list(found), np.int64), np.array(list(found.values()), np.int64)


def meets(wanted: I64, event: I64, number: I64) -> Bools:
    """Returns which events match the subscription that is wanted of each."""
    out = np.zeros(len(wanted), bool)
    out[event[wanted[event] == number]] = True
    return out


def pieces(values: list[int], size: int = PIECE) -> Iterator[list[int]]:
    """Yields a list in pieces."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
