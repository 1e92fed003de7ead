"""The time of a call, which expressions name ``current_timestamp()`` or ``now()``.

Batches have it in a column that no event needs (``events/special/clock.py``).
"""

from __future__ import annotations

import time

import pyarrow as pa

from colmatch.events.computed.nodes import CLOCK, node_of, reads_now
from colmatch.given.schema import Attributes, Role, made_once
from colmatch.given.special import Call

MOMENT = pa.timestamp("us", "UTC")


def present() -> int:
    """Returns the microseconds since 1970."""
    return time.time_ns() // 1000


def _uses_clock(attributes: Attributes) -> bool:
    return any(
        reads_now(node_of(str(attribute.key)))
        if attribute.role is Role.COMPUTED
        else attribute.role is Role.CALL and bool((Call.of(str(attribute.key)).details or {}).get("reads_clock"))
        for attribute in attributes
    )


uses_clock = made_once(_uses_clock)


def moment_of(batch: pa.RecordBatch) -> pa.Scalar:
    """Returns the time of a batch: that of its column, or else the present."""
    place = batch.schema.get_field_index(CLOCK)
    if place >= 0 and batch.num_rows:
        return batch.column(place)[0]
    return pa.scalar(present(), MOMENT)
