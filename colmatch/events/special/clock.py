"""The time of events, given with a call instead of a column."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import pyarrow as pa

from colmatch.errors import OptionError, show_value
from colmatch.events.computed.clock import MOMENT, present, uses_clock
from colmatch.events.computed.nodes import CLOCK
from colmatch.events.gather import match_names
from colmatch.events.special.lists import clocks_of
from colmatch.given.arguments import number
from colmatch.given.incoming import refusing
from colmatch.given.schema import Attributes, Schema
from colmatch.given.session import time_zone

NOW = "now"  # this column has the time, too, if it is in the schema and can hold one
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class TimedVersion(Protocol):
    """The version of a matcher that a batch is matched with."""

    @property
    def attributes(self) -> Attributes: ...


Seen = TypeVar("Seen", bound=TimedVersion)


class Clock(NamedTuple):
    """The time of all events of a call.

    A time that is given with the call replaces the clock columns of special functions, and ``now``.
    Any time is that of ``current_timestamp()``.
    """

    seconds: int | float  # since 1970 began in UTC
    micros: int  # the same
    schema: Schema
    is_given: bool

    @staticmethod
    def at(micros: int, schema: Schema) -> Clock:
        """Returns a clock that shows a time to expressions, and replaces no column of events.

        micros : since 1970 began in UTC
        """
        return Clock(micros / 1e6, micros, schema, False)

    def names(self, attributes: Attributes) -> list[str]:
        """Returns the columns that the clock replaces."""
        moment = [CLOCK] if uses_clock(attributes) else []
        if not self.is_given:
            return moment
        own = [NOW] if NOW in self.schema.arrow.names and _holds(self.schema.arrow.field(NOW).type) else []
        return list(dict.fromkeys([*clocks_of(attributes), *own, *moment]))

    def without(self, columns: list[str], attributes: Attributes) -> list[str]:
        """Returns the columns that events still need."""
        names = self.names(attributes)
        return [column for column in columns if column not in names] if names else columns

    def show_to(self, batches: Iterable[tuple[pa.RecordBatch, Seen]]) -> Iterator[tuple[pa.RecordBatch, Seen]]:
        """Yields batches with columns for the time, each with its version."""
        names: list[str] = []
        before: TimedVersion | None = None
        for batch, version in batches:
            if version is not before:
                before, names = version, self.names(version.attributes)
            yield (self.add_to(batch, names) if names else batch), version

    def add_to(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Returns a batch with the time in columns of these names.

        Raises OptionError: a column of the schema cannot hold the time.
        """
        if not names:
            return batch
        gone = match_names(batch.schema.names, names)
        kept = [i for i, name in enumerate(batch.schema.names) if name not in gone]
        types = [MOMENT if name == CLOCK else self.schema.arrow.field(name).type for name in names]
        columns = [pa.repeat(self._value(*pair), batch.num_rows) for pair in zip(types, names, strict=True)]
        return pa.RecordBatch.from_arrays(
            [*(batch.column(i) for i in kept), *columns], [*(batch.schema.names[i] for i in kept), *names]
        )

    def _value(self, type: pa.DataType, name: str) -> pa.Scalar:
        with refusing(OptionError, f"now={self.seconds!r} does not fit column {name!r}, which is {type}"):
            if pa.types.is_timestamp(type):
                micros = pa.scalar(self.micros, pa.timestamp("us", type.tz))
                return micros.cast(type, safe=False)
            if pa.types.is_integer(type):
                return pa.scalar(math.floor(self.seconds), type)
            return pa.scalar(float(self.seconds), pa.float64()).cast(type, safe=False)


def _holds(type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(type) or types.is_floating(type) or types.is_timestamp(type))


def clock_of(now: object, schema: Schema, zone: str) -> Clock:
    """Returns the checked clock of a call, which shows the present if no time is given.

    now : a datetime, or seconds since 1970 began in UTC, or a clock
    zone : time zone of a datetime without one

    Raises OptionError: ``now`` is neither, or no finite number.
    """
    if now is None:
        return Clock.at(present(), schema)
    if isinstance(now, Clock):
        return now
    if isinstance(now, dt.datetime):
        if now != now:  # pandas' NaT
            raise OptionError("now=NaT: a datetime is needed, or seconds since 1970 as a number")
        since = (now if now.tzinfo is not None else now.replace(tzinfo=time_zone(zone))) - EPOCH
        whole = since.days * 86_400 + since.seconds
        micros = whole * 1_000_000 + since.microseconds
        return Clock(whole + since.microseconds / 1e6 if since.microseconds else whole, micros, schema, True)
    seconds = number(now)
    if seconds is not None and (
        -(1 << 63) <= seconds < 1 << 63 if isinstance(seconds, int) else math.isfinite(seconds)
    ):
        return Clock(seconds, math.floor(seconds * 1_000_000), schema, True)
    raise OptionError(f"now={show_value(now)}: a datetime is needed, or seconds since 1970 as a number")
