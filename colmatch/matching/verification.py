"""The index of a matcher compared with a scan, for events that it has just matched.

Both find their matches from the same predicates, by code that is not the same. So a difference is a
fault of an index: of the kind's code, or of memory or a file that was changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import freeze
from colmatch.errors import StoreError
from colmatch.events.gather import batches
from colmatch.events.rows import events_of
from colmatch.kinds.base import Built
from colmatch.kinds.registry import FEWEST
from colmatch.matching.workers import Workers
from colmatch.predicates.columns import take
from colmatch.updates.growing import GrowingSegment
from colmatch.updates.memory_set import MemorySet
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Parts


def check_indexes(parts: Parts) -> None:
    """Checks that no index leads outside its arrays, where the kind has such a check.

    Raises StoreError: one does.
    """
    for number, segment in enumerate(parts.version.segments):
        kind, arrays = segment.index.kind, segment.index.arrays
        if kind.sound is None or isinstance(segment, GrowingSegment):
            continue
        damaged = f"the index {kind.name} of segment {number} is damaged"
        try:
            right = kind.sound(arrays, segment.predicates, segment.codes, segment.size)
        except ValueError as error:
            raise StoreError(f"{damaged}: {error}: build it again") from error
        for name, array, made in zip(arrays._fields, arrays, right, strict=True):
            if not np.array_equal(array, made):
                raise StoreError(f"{damaged}: {name} is not what follows from the rest: build it again")


def scanned(parts: Parts) -> Workers:
    """Returns workers that match with a scan of the same predicates."""
    version = parts.version
    segments = tuple(map(_scan, version.segments))
    stale = tuple(segment.size - alive for segment, alive in zip(segments, version.alive, strict=True))
    return Workers(
        MemorySet(replace(parts, version=version.with_changes(segments=segments, stale=stale, growing=False)))
    )


def _scan(segment: Segment) -> Segment:
    preds = segment.predicates
    if np.any(preds.owner[1:] < preds.owner[:-1]):
        preds = freeze(take(preds, np.argsort(preds.owner, kind="stable")))
    settings = FEWEST.settings()
    arrays, preds = FEWEST.build(preds, segment.codes, None, settings)
    return Segment(segment.codes, freeze(preds), Built(FEWEST, settings, freeze(arrays)), segment.size)


def differences(matched: Workers, parts: Callable[[], Parts], events: Any) -> pa.Table:
    """Returns the table of ``Matcher.verify``.

    matched : matches with the index
    parts : returns what it matches with now
    """
    judged = parts()
    judge, offset = scanned(judged), 0
    rows: list[tuple[int, Any, bool]] = []
    for batch in batches(events_of(events, judged.schema), judged.options.batch_rows):
        while True:
            id_type, updates = judged.version.id_type, judged.version.updates
            found, wanted = (_lists(workers, batch, id_type) for workers in (matched, judge))
            if found.equals(wanted):
                break
            judged = parts()
            if judged.version.updates == updates:  # else there was an update in between
                rows += _differences(found, wanted, offset)
                break
            judge = scanned(judged)
        offset += batch.num_rows
    columns = {"event": pa.int64(), "subscription": judged.version.id_type, "found": pa.bool_()}
    values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        [pa.array(value, type) for value, type in zip(values, columns.values(), strict=True)], list(columns)
    )


def _lists(workers: Workers, batch: pa.RecordBatch, type: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array(list(workers.lists(batch, type, workers.request())), pa.list_(type))


def _differences(found: pa.ChunkedArray, wanted: pa.ChunkedArray, offset: int) -> list[tuple[int, Any, bool]]:
    rows = []
    for event, (ids, others) in enumerate(zip(found.to_pylist(), wanted.to_pylist(), strict=True), offset):
        rows += [(event, id, id in ids) for id in sorted(set(ids) ^ set(others))]
    return rows
