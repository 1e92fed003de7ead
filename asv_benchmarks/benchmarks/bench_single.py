"""Single events: ``match_one`` of a mapping beside ``match`` of a batch of one row, in turns.

All events differ. The rows are made beforehand, the mappings are handed over as they are. The third
way makes a record batch of each mapping first, which is what a service did without ``match_one``.
Two threads are measured beside one in the same run.

    python -m benchmarks.bench_single
    python -m benchmarks.bench_single --batches
    python -m benchmarks.bench_single --shapes
    python -m benchmarks.bench_single --patterns
    python -m benchmarks.bench_single --public FOLDER FOLDER FOLDER

With ``--batches``, the calls for batches of 1, 10 and 100 rows: what a call costs before its rows
do. Each call is timed by itself, and all batches differ.

With ``--shapes`` the subscriptions differ in what they read: plain columns alone, a text pattern in
one of them, fields of a struct, lists and maps, or a cap in each, of events with no cap and with
100. Each call is timed by itself. Flags are 306 rules on plain columns, and then one more with a
share of users.

With ``--patterns``, subscriptions are ``s LIKE '%word%'``, each with a word of its own, and the
detection rules of ``workload``, which look for 20 texts each in columns that most events lack.
``--public`` has public detection rules, filters of URLs and rules of a firewall, from the folders
of ``public.py``.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from workload import TextWorkload

import colmatch as cm
from benchmarks import public
from benchmarks.measure import machine, medians, one_thread

EVENTS, REPEAT = 2000, 7
ONE, ROW, MADE, BOTH = "match_one", "match of one row", "row made, then match", "match_one, two threads"
SIZES = ((10_000, 10), (10_000, 30), (200_000, 30))  # subscriptions, columns
PLAIN, PATTERN, CAPS_0, CAPS_100 = "plain columns", "one LIKE", "caps, none in an event", "caps, 100 in an event"
NESTED = "struct, list and map"
SHAPES = (PLAIN, PATTERN, NESTED, CAPS_0, CAPS_100)
NOW = 1_700_000_000
CAPS = pa.list_(
    pa.struct({"type": pa.string(), "id": pa.int64(), "ns": pa.string(), "value": pa.int64(), "timestamp": pa.int64()})
)


class Prepared(NamedTuple):
    matcher: cm.Matcher
    events: list[dict[str, Any]]
    rows: list[pa.RecordBatch]


def prepared(subscriptions: int, columns: int, shape: str = PLAIN, count: int = EVENTS) -> Prepared:
    """A third of the columns are strings; each event has a value for each column."""
    rng = np.random.default_rng(1)
    names = [f"s{i}" if i % 3 == 0 else f"a{i}" for i in range(columns)]
    fields: dict[str, pa.DataType] = {name: pa.string() if name[0] == "s" else pa.int64() for name in names}
    if shape == NESTED:
        fields |= {
            "st": pa.struct({"f": pa.int64()}),
            "l": pa.list_(pa.string()),
            "m": pa.map_(pa.string(), pa.int64()),
        }
    capped = shape in (CAPS_0, CAPS_100)
    schema = pa.schema(fields | ({"caps": CAPS, "now": pa.int64()} if capped else {}))
    drawn = rng.integers(0, 100, (subscriptions, 4)).tolist()

    def text(i: int, values: list[int]) -> str:
        word, number = names[3 * (i % (columns // 3))], names[3 * (values[3] % (columns // 3)) + 1]
        other = names[3 * (values[2] % (columns // 3)) + 2]
        cap = f" AND within_frequency_cap(caps, now, 'offer', {i % 1000}, 'shown', 3, 3600)" if capped else ""
        if shape == NESTED:
            cap = f" AND (st.f = {values[0]} OR array_contains(l, 'w{values[1]}') OR m['w{values[2]}'] = {i % 100})"
        return (
            f"{word} = 'w{values[0]}' AND {number} > {values[1]} AND "
            f"{other} BETWEEN {values[2] // 2} AND {values[2]}{cap}"
        )

    texts = [(i, text(i, values)) for i, values in enumerate(drawn)]
    if shape == PATTERN:
        texts[0] = (0, "s0 LIKE '%1'")
    matcher = cm.Matcher.build(texts, schema, options=cm.Options(threads=1))
    values = rng.integers(0, 100, (count, columns)).tolist()
    events: list[dict[str, Any]] = [
        {name: f"w{value}" if name[0] == "s" else value for name, value in zip(names, row, strict=True)}
        for row in values
    ]
    if shape == NESTED:
        for event, (f, *parts) in zip(events, values, strict=True):
            event["st"], event["l"] = {"f": f}, [f"w{part}" for part in parts[:4]]
            event["m"] = {f"w{part}": f for part in parts[4:8]}
    if capped:
        for event in events:
            ids = rng.choice(1000, 100 if shape == CAPS_100 else 0, replace=False).tolist()
            event["now"] = NOW
            event["caps"] = [
                {"type": "offer", "id": id, "ns": "shown", "value": id % 5, "timestamp": (NOW - id) * 10**6}
                for id in ids
            ]
    return _with_rows(matcher, events)


def patterns(subscriptions: int, count: int = EVENTS) -> Prepared:
    """One text pattern each; an event is a sentence of words, of which some are looked for."""
    rng = np.random.default_rng(2)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(word) for word in letters[rng.integers(0, 26, (2 * subscriptions, 7))]]
    texts = [(i, f"s LIKE '%{word}%'") for i, word in enumerate(words[:subscriptions])]
    matcher = cm.Matcher.build(texts, {"s": "string"}, options=cm.Options(threads=1))
    chosen = rng.integers(0, len(words), (count, 10)).tolist()
    events = [{"s": " ".join(words[place] for place in row)} for row in chosen]
    return _with_rows(matcher, events)


def detections(count: int = EVENTS) -> Prepared:
    """The detection rules of ``workload``, and events without their NULLs."""
    workload = TextWorkload("detections")
    options = cm.Options(threads=1, missing_columns="null")
    matcher = cm.Matcher.build(workload.texts(), workload.schema(), options=options)
    rows = workload.events(count).to_pylist()
    return _with_rows(matcher, [{name: value for name, value in row.items() if value is not None} for row in rows])


def flags(share: bool, count: int = EVENTS) -> Prepared:
    """Feature flags: rules on three columns, and one more for 5 % of the users."""
    rng = np.random.default_rng(3)
    countries, plans = ["DE", "FR", "US", "PT", "ES", "IT"], ["pro", "team", "free"]
    drawn = rng.integers(0, [6, 2, 80], (306, 3)).tolist()
    texts = [
        (i, f"country = '{countries[country]}' AND plan IN ('free', '{plans[plan]}') AND age > {age}")
        for i, (country, plan, age) in enumerate(drawn)
    ]
    schema = {"user_id": "int64", "country": "string", "plan": "string", "age": "int64"}
    matcher = cm.Matcher.build(texts + [(306, "user_id % 100 < 5")] * share, schema, options=cm.Options(threads=1))
    values = rng.integers(0, [10**9, 6, 3, 90], (count, 4)).tolist()
    events: list[dict[str, Any]] = [
        {"user_id": user, "country": countries[country], "plan": plans[plan], "age": age}
        for user, country, plan, age in values
    ]
    return _with_rows(matcher, events)


def of_public(given: public.Given, count: int) -> Prepared:
    """Public rules, and ``count`` of their events without NULLs, from all parts of the events."""
    options = cm.Options(threads=1, missing_columns="null")
    matcher = cm.Matcher.build(given.rules, given.schema, errors="collect", options=options)
    rows = given.events.take(list(range(0, given.events.num_rows, max(given.events.num_rows // count, 1)))).to_pylist()
    return _with_rows(matcher, [{name: value for name, value in row.items() if value is not None} for row in rows])


def _with_rows(matcher: cm.Matcher, events: list[dict[str, Any]]) -> Prepared:
    whole = pa.Table.from_pylist(events, matcher.schema.arrow).combine_chunks().to_batches()[0]
    return Prepared(matcher, events, [whole.slice(i, 1) for i in range(len(events))])


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


Ways = dict[str, tuple[Callable[[Any], Any], list[Any]]]  # name -> the call, and what it is called with


def ways_of(given: Prepared) -> Ways:
    """The ways of single events."""
    matcher, events, rows = given
    schema = matcher.schema.arrow
    return {
        ONE: (matcher.match_one, events),
        ROW: (matcher.match, rows),
        MADE: (lambda event: matcher.match(pa.RecordBatch.from_pylist([event], schema)), events),
    }


def ways_of_batches(given: Prepared, rows: int) -> Ways:
    """The calls for up to 200 batches of so many rows, copies that share no memory."""
    matcher, _, singles = given
    starts = range(0, min(len(singles) - rows + 1, 200 * rows), rows)
    some = [pa.concat_batches(singles[start : start + rows]) for start in starts]
    calls = matcher.match, matcher.match_lists, matcher.count, matcher.exists, matcher.hits
    return {call.__name__: (call, some) for call in calls}


def typical(ways: Ways, rounds: int = 5) -> dict[str, float]:
    """Microseconds of one call of each way: the median of all calls, in rounds in turns."""
    taken: dict[str, list[int]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, (call, some) in ways.items():
            for one in some:
                began = time.perf_counter_ns()
                call(one)
                if number:  # after a round that loads what is needed
                    taken[name].append(time.perf_counter_ns() - began)
    return {name: statistics.median(times) / 1e3 for name, times in taken.items()}


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

    def track_us_a_batch(self) -> float:
        return typical(ways_of_batches(prepared(1000, 9, count=100), 10), 1)["match"]

    track_us_a_batch.unit = "us"  # type: ignore[attr-defined]

    def track_us_an_event_of_patterns(self) -> float:
        return measured(patterns(1000), 1)[ONE]

    track_us_an_event_of_patterns.unit = "us"  # type: ignore[attr-defined]
    track_us_an_event.unit = "us"  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--batches", action="store_true", help="batches of 1, 10 and 100 rows")
    parser.add_argument("--shapes", action="store_true", help="what subscriptions read, in place of sizes and threads")
    parser.add_argument("--patterns", action="store_true", help="subscriptions of text patterns")
    parser.add_argument(
        "--public", nargs=3, type=Path, metavar="FOLDER", help="public rules: detections, filters, a firewall"
    )
    given = parser.parse_args()
    print(machine())
    if given.patterns or given.public:
        one_thread()
        kinds: dict[str, Callable[[], Prepared]] = {
            f"{count:,} of LIKE": lambda count=count: patterns(count, 200)  # type: ignore[misc]
            for count in (1000, 10_000, 100_000)
        } | {"detections": lambda: detections(200)}
        if given.public:
            kinds = {
                "public detections": lambda: of_public(public.detections(given.public[0]), 300),
                "public filters of URLs": lambda: of_public(public.filters(given.public[1]), 300),
                "public firewall rules": lambda: of_public(public.firewall(given.public[2]), 2000),
            }
        for name, make in kinds.items():
            found = typical(ways_of(make()))
            print(f"{name:24s}" + "".join(f"{way} {taken:.1f} us   " for way, taken in found.items()), flush=True)
        return
    if given.batches:
        one_thread()
        for subscriptions in (100, 10_000):
            events = prepared(subscriptions, 10)
            for rows in (1, 10, 100):
                found = typical(ways_of_batches(events, rows))
                times = "".join(f"{name} {taken:.1f} us   " for name, taken in found.items())
                print(f"{subscriptions:8,} subscriptions, {rows:4} rows   {times}", flush=True)
        return
    if given.shapes:
        one_thread()
        for shape in SHAPES:
            for subscriptions in (100, 10_000, 100_000):
                found = typical(ways_of(prepared(subscriptions, 10, shape, 200)))
                times = "".join(f"{name} {taken:.1f} us   " for name, taken in found.items())
                print(f"{shape:24s}{subscriptions:8,} subscriptions   {times}", flush=True)
        for share in (False, True):
            found = typical(ways_of(flags(share, 200)))
            times = "".join(f"{name} {taken:.1f} us   " for name, taken in found.items())
            print(f"{'flags':24s}{306 + share:8,} subscriptions   {times}", flush=True)
        return
    for size in SIZES:
        found = measured(prepared(*size))
        print(f"{size[0]:,} subscriptions, {size[1]} columns")
        for name, taken in found.items():
            print(f"  {name:24s}{taken:8.1f} us an event {taken / found[ROW]:6.2f}")


if __name__ == "__main__":
    main()
