"""Figures of the index kinds on a user's own data, which ``colmatch bench`` prints.

All matchers of one size are built first and then measured in turns, so that other work of the
machine affects all of them alike.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import ColmatchError, OptionError
from colmatch.given.options import Options
from colmatch.kernels import _jit
from colmatch.kinds.registry import find
from colmatch.kinds.settings import Settings
from colmatch.matcher import Matcher, index_kinds
from colmatch.subscriptions.table import PredicateTable

__all__ = ["Line", "choose_kinds", "count", "default_sizes", "measure", "prefix", "table"]

SMALLEST = 64  # events in a measurement, at least: a single batch of one event shows little
LONG = 20.0  # seconds after which no new round of measurements begins


class Line(NamedTuple):
    """The figures of one kind of index, with a number of subscriptions and a size of batches."""

    kind: str
    subscriptions: int
    batch: int
    build: float  # seconds
    bytes: float  # per subscription
    event: float  # seconds per event, median, results included
    matches: float  # per event
    # seconds of the first match after the build, of one event: it loads kernels, or compiles them
    # the first time
    first: float


def choose_kinds(names: Sequence[str]) -> list[str]:
    """Returns the kinds that ``--index`` names; ``all`` names every kind.

    Raises
    ------
    OptionError : there is no such kind
    """
    if "all" in names:
        return list[str](index_kinds())
    return list(dict.fromkeys(name if name == "auto" else find(name).name for name in names))


def count(subscriptions: pa.Table | PredicateTable) -> int:
    """Counts the subscriptions."""
    return subscriptions.num_rows if isinstance(subscriptions, pa.Table) else len(_ids(subscriptions))


def prefix(subscriptions: pa.Table | PredicateTable, n: int) -> pa.Table | PredicateTable:
    """Returns the first ``n`` subscriptions; of a predicate table, all their rows."""
    if isinstance(subscriptions, pa.Table):
        return subscriptions.slice(0, n)
    ids = _ids(subscriptions).slice(0, n)
    parts = [table.filter(pc.is_in(table["id"], ids)) for table in subscriptions.tables]
    return PredicateTable(*([part for part in parts if part.num_rows] or parts[:1]))


def _ids(subscriptions: PredicateTable) -> pa.Array:
    return pc.unique(pa.chunked_array([chunk for table in subscriptions.tables for chunk in table["id"].chunks]))


def default_sizes(n: int) -> list[int]:
    """Returns 1,000, 10,000, … below ``n``, and ``n``; up to 1,000 a quarter, a half and all."""
    powers = [10**power for power in range(3, 12) if 10**power < n]
    return [*(powers or sorted({max(n // 4, 1), max(n // 2, 1)} - {n})), n]


def measure(
    subscriptions: pa.Table | PredicateTable,
    schema: pa.Schema,
    events: pa.Table,
    *,
    indexes: Sequence[Settings],
    batches: Sequence[int],
    sizes: Sequence[int],
    repeat: int,
    options: Options,
) -> Iterator[Line]:
    """Builds matchers and measures them, size by size.

    Parameters
    ----------
    indexes : kinds of index, each once
    batches : sizes of batches, each at least 1; larger ones count as the number of events
    sizes : numbers of subscriptions, counted from the first, each at least 1
    repeat : rounds; the result is their median

    Raises
    ------
    ColmatchError : there are no events or subscriptions, fewer subscriptions than a size, or they
        cannot be used. Or the kinds find different numbers of matches
    """
    total = count(subscriptions)
    if not total or not events.num_rows:
        raise ColmatchError(f"there are no {'events' if total else 'subscriptions'} to measure with")
    if max(sizes) > total:
        raise OptionError(f"{max(sizes):,} subscriptions are asked for, and there are {total:,}")
    with _jit.forbid_interpreting(), _freeze_objects():
        # Load the parser and the kernels that build, so that the first kind does not pay for them.
        for index in indexes:
            Matcher.build(prefix(subscriptions, min(total, 20)), schema, index=index, options=options)
        for size in sorted(set(sizes)):
            part = prefix(subscriptions, size)
            builds = [_build(part, schema, index, options, events) for index in indexes]
            for batch in sorted({min(batch, events.num_rows) for batch in batches}):
                rows = min(max(batch, SMALLEST), events.num_rows)
                pieces = [events.slice(start, min(batch, rows - start)) for start in range(0, rows, batch)]
                counts = {line.kind: sum(matcher.match(piece).num_rows for piece in pieces) for matcher, line in builds}
                if len(set(counts.values())) > 1:
                    raise ColmatchError(f"the kinds do not agree, please report this as a bug: {counts}")
                for (_, line), seconds in zip(builds, _medians([m for m, _ in builds], pieces, repeat), strict=True):
                    yield line._replace(batch=batch, event=seconds / rows, matches=counts[line.kind] / rows)


@contextmanager
def _freeze_objects() -> Iterator[None]:
    """Keeps existing objects out of the garbage collection before each measurement.

    It would take longer than the measurement itself: a tenth of a second with kernels loaded.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _build(
    subscriptions: pa.Table | PredicateTable, schema: pa.Schema, index: Settings, options: Options, events: pa.Table
) -> tuple[Matcher, Line]:
    gc.collect()
    began = time.perf_counter()
    matcher = Matcher.build(subscriptions, schema, index=index, options=options)
    built = time.perf_counter()
    matcher.match(events.slice(0, 1))
    first = time.perf_counter() - built
    kind = matcher.kind if index.kind != "auto" else f"auto ({matcher.kind})"
    size = float(matcher.stats()["bytes_per_subscription"])
    return matcher, Line(kind, len(matcher), 0, built - began, size, 0.0, 0.0, first)


def _medians(matchers: Sequence[Matcher], pieces: Sequence[pa.Table], repeat: int) -> list[float]:
    """Measures matchers in turns and returns the median seconds that each takes for all pieces.

    There are ``repeat`` rounds, but none begins after ``LONG`` seconds.
    """
    taken: list[list[float]] = [[] for _ in matchers]
    start = time.perf_counter()
    for number in range(repeat):
        if number and time.perf_counter() - start > LONG:
            break
        for matcher, times in zip(matchers, taken, strict=True):
            gc.collect()
            began = time.perf_counter()
            for piece in pieces:
                matcher.match(piece)
            times.append(time.perf_counter() - began)
    return list(map(statistics.median, taken))


HEAD = ("index", "subscriptions", "batch", "build", "bytes/sub", "an event", "events/s", "matches/event", "first match")


def table(lines: Iterable[Line]) -> Iterator[str]:
    """Yields lines of text, each as soon as its figures are known."""
    width = [18, 14, 8, 10, 10, 10, 12, 14, 12]

    def row(cells: Sequence[str]) -> str:
        return cells[0].ljust(width[0]) + "".join(cell.rjust(w) for cell, w in zip(cells[1:], width[1:], strict=True))

    for number, line in enumerate(lines):
        if not number:
            yield row(HEAD)
        yield row(
            [
                line.kind,
                f"{line.subscriptions:,}",
                f"{line.batch:,}",
                duration(line.build),
                f"{line.bytes:,.1f}",
                duration(line.event),
                f"{1 / line.event:,.0f}",
                f"{line.matches:,.4g}" if line.matches < 1000 else f"{line.matches:,.0f}",
                duration(line.first),
            ]
        )


def duration(seconds: float) -> str:
    """Writes seconds with three digits and a unit: ``13.6 us``."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 0.9995:
            return f"{float(np.format_float_positional(seconds * factor, 3, fractional=False)):g} {unit}"
    return f"{float(np.format_float_positional(seconds * 1e9, 3, fractional=False)):g} ns"
