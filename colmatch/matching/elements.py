"""The matcher of conditions on elements of lists (``events/special/elements.py``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from colmatch.events.computed.failed import Doubts
from colmatch.events.special.clock import Clock
from colmatch.events.special.elements import Found
from colmatch.given.elements import ElementCall
from colmatch.given.language import Language
from colmatch.given.options import Options
from colmatch.given.schema import Schema
from colmatch.matching.request import MatchRequest
from colmatch.matching.workers import Workers
from colmatch.updates.initial import build_parts, take_in
from colmatch.updates.memory_set import MemorySet


class ConditionMatcher:
    """A matcher with conditions on elements as its subscriptions.

    Conditions were checked when they were read. A text that is none, which an earlier attribute
    has left, matches nothing.
    """

    def __init__(self, call: ElementCall, conditions: Sequence[str]) -> None:
        options = Options(**call.options, threads=1, missing_columns="null", order="any")  # type: ignore[arg-type]
        language = Language("sql", "false" if call.two_valued else "unknown")
        given = pa.table({"id": np.arange(len(conditions)), "expression": pa.array(conditions, pa.large_string())})
        intake = take_in(given, Schema(call.schema), "auto", options, "collect", language)
        self._set = MemorySet(build_parts(intake, None))
        self._workers = Workers(self._set)

    def find(self, elements: pa.RecordBatch, micros: int) -> Found:
        """Finds the conditions that are true for each element.

        micros : time of the call, microseconds since 1970

        Raises EventError: an element is of a wrong type.
        """
        now, doubtful = self._set.now, list[Doubts]()
        request = MatchRequest(now=Clock.at(micros, self._set.schema), doubts=doubtful)
        schema = now.result_schema
        pairs = pa.Table.from_batches(self._workers.pairs(elements, request, schema), schema)
        element, condition = (column.to_numpy() for column in pairs.columns)
        doubts = Doubts.join(doubtful)
        if len(doubts.row):
            doubts = doubts._replace(number=now.ids.array.to_numpy()[doubts.number])
            # Computed with NULL, they match or not
            known, doubted = (element << 32) + condition, (doubts.row << 32) + doubts.number
            is_certain = ~np.isin(known, doubted, assume_unique=True)
            element, condition = element[is_certain], condition[is_certain]
        return Found(element, condition, doubts)
