"""Single events: ``match_one`` of a mapping beside ``match`` of a batch of one row, in turns.

All events differ. The rows are made beforehand, the mappings are handed over as they are. The third
way makes a record batch of each mapping first, which is what a service did without ``match_one``.
Two threads are measured beside one in the same run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import colmatch as cm
from benchmarks.measure import medians

EVENTS, REPEAT = 2000, 7
ONE, ROW, MADE, BOTH = "match_one", "match of one row", "row made, then match", "match_one, two threads"
SIZES = ((10_000, 10), (10_000, 30), (200_000, 30))  # subscriptions, columns


class Prepared(NamedTuple):
    matcher: cm.Matcher
    events: list[dict[str, Any]]
    rows: list[pa.RecordBatch]


def prepared(subscriptions: int, columns: int) -> Prepared:
    """A third of the columns are strings; each event has a value for each column."""
    rng = np.random.default_rng(1)
    names = [f"s{i}" if i % 3 == 0 else f"a{i}" for i in range(columns)]
    schema = pa.schema([(name, pa.string() if name[0] == "s" else pa.int64()) for name in names])
    drawn = rng.integers(0, 100, (subscriptions, 4)).tolist()

    def text(i: int, values: list[int]) -> str:
        word, number = names[3 * (i % (columns // 3))], names[3 * (values[3] % (columns // 3)) + 1]
        other = names[3 * (values[2] % (columns // 3)) + 2]
        return (
            f"{word} = 'w{values[0]}' AND {number} > {values[1]} AND {other} BETWEEN {values[2] // 2} AND {values[2]}"
        )

    matcher = cm.Matcher.build(
        [(i, text(i, values)) for i, values in enumerate(drawn)], schema, options=cm.Options(threads=1)
    )
    values = rng.integers(0, 100, (EVENTS, columns)).tolist()
    events = [
        {name: f"w{value}" if name[0] == "s" else value for name, value in zip(names, row, strict=True)}
        for row in values
    ]
    whole = pa.Table.from_pylist(events, schema).combine_chunks().to_batches()[0]
    return Prepared(matcher, events, [whole.slice(i, 1) for i in range(EVENTS)])


def measured(given: Prepared, repeat: int = REPEAT) -> dict[str, float]:
    """Microseconds an event of each way, medians of rounds in turns."""
    matcher, events, rows = given
    schema = matcher.schema.arrow
    assert [matcher.match_one(event) for event in events[:100]] == [
        matcher.match(row)["subscription"].to_pylist() for row in rows[:100]
    ]

    def each(call: Callable[[Any], Any], some: list[Any]) -> None:
        for one in some:
            call(one)

    def both() -> None:
        threads = [threading.Thread(target=each, args=(matcher.match_one, events[i::2])) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    ways: dict[str, Callable[[], None]] = {
        ONE: lambda: each(matcher.match_one, events),
        ROW: lambda: each(matcher.match, rows),
        MADE: lambda: each(lambda event: matcher.match(pa.RecordBatch.from_pylist([event], schema)), events),
        BOTH: both,
    }
    return {name: 1e6 * taken / EVENTS for name, taken in medians(ways, repeat).items()}


class SingleEvents:
    """Microseconds an event, for each way and size."""

    params = ([f"{subscriptions:,} of {columns} columns" for subscriptions, columns in SIZES], (ONE, ROW, MADE, BOTH))
    param_names = ("subscriptions", "way")
    timeout = 600

    def setup_cache(self) -> dict[tuple[str, str], float]:
        return {
            (f"{subscriptions:,} of {columns} columns", way): value
            for subscriptions, columns in SIZES
            for way, value in measured(prepared(subscriptions, columns)).items()
        }

    setup_cache.timeout = 1800  # type: ignore[attr-defined]

    def track_us_an_event(self, taken: dict[tuple[str, str], float], subscriptions: str, way: str) -> float:
        return taken[subscriptions, way]

    track_us_an_event.unit = "us"  # type: ignore[attr-defined]


class QuickSingleEvents:
    """The smallest size, once: that the benchmark can be run."""

    def track_us_an_event(self) -> float:
        return measured(prepared(1000, 9), 1)[ONE]

    track_us_an_event.unit = "us"  # type: ignore[attr-defined]


if __name__ == "__main__":
    for size in SIZES:
        found = measured(prepared(*size))
        print(f"{size[0]:,} subscriptions, {size[1]} columns")
        for name, taken in found.items():
            print(f"  {name:24s}{taken:8.1f} us an event {taken / found[ROW]:6.2f}")
