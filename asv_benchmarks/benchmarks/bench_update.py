"""Updates: subscriptions in and out of a matcher, one at a time and in bulk.

Parsing is included, and what matching costs afterwards, in between and at the same time is measured
too (``latency.py``).

A million subscriptions only with the environment variable COLMATCH_BENCHMARKS=full.
"""

from __future__ import annotations

import os
import pickle
from itertools import islice
from time import perf_counter, sleep, thread_time
from typing import Any

import numpy as np
from workload import named

import colmatch as cm
from benchmarks import workloads
from benchmarks.latency import PHASES, QUIET, Churn, Percentiles, measure
from benchmarks.measure import medians

FULL = os.environ.get("COLMATCH_BENCHMARKS") == "full"
SIZES = (100_000, 1_000_000)
KINDS = (*cm.index_kinds(), "auto")
THREADS = (1, 2)
ONE_BY_ONE, IN_BULK, ROWS = 2000, 20_000, 64

Taken = dict[tuple[int, str], dict[str, float]]  # size, kind, name of a figure


def figures(n: int, kind: str, one_by_one: int = ONE_BY_ONE, in_bulk: int = IN_BULK) -> dict[str, float]:
    """Microseconds of an update and of matching an event before and after all updates.

    For single updates, the figures are median and p99; for one of many subscriptions, that of each.
    """
    texts = workloads.shaped_texts(n + one_by_one + in_bulk)
    matcher = cm.Matcher.build(texts[:n], workloads.SHOP, index=kind, options=cm.Options(threads=1))
    events = workloads.shop_events(ROWS)
    matcher.insert(texts[:0])
    later = iter(texts[n:])
    for pair in islice(later, 100):  # compiles, and begins the segment that grows
        matcher.insert([pair])
    matcher.delete([texts[0][0]])
    taken = {"match_before": _matching(matcher, events)}
    single = list(islice(later, one_by_one - 100))
    taken["insert"], taken["insert_p99"] = _percentiles(lambda pair: matcher.insert([pair]), single)
    bulk = list(later)
    taken["insert_in_bulk"] = _microseconds(lambda: matcher.insert(bulk), len(bulk))
    taken["match_after"] = _matching(matcher, events)
    few = single[: ROWS // 4]
    taken["replace_and_match"] = _microseconds(
        lambda: [(matcher.upsert([pair]), matcher.count(events.slice(0, 1))) for pair in few], len(few)
    )
    old = [id for id, _ in texts[1 : len(single)]]
    taken["delete"], taken["delete_p99"] = _percentiles(lambda id: matcher.delete([id]), old)
    taken["delete_in_bulk"] = _microseconds(lambda: matcher.delete([id for id, _ in bulk]), len(bulk))
    taken["merges"] = matcher.stats()["merges"]
    taken["compact"] = _microseconds(matcher.compact, len(matcher))
    matcher.close()
    return taken


def aged(
    n: int, kind: str, inserted: int = 10_000, deleted: float = 0.05, rows: int = 4096, repeat: int = 9
) -> dict[str, float]:
    """How many times as long matching takes after updates as when all is merged; of ``dense``.

    Single inserts, so that there are a growing segment and young ones; then deletes of old ones.
    """
    workload = named("dense", subscriptions=n + inserted)
    index = cm.Matcher.build(workload.predicate_table(0, n), workload.schema(), index=kind)
    index.options = cm.Options(threads=1)
    texts = workload.texts(n, None)
    for pair in zip(texts["id"].to_pylist(), texts["expression"].to_pylist(), strict=True):
        index.insert([pair])
    ids = index.ids.slice(0, n)
    index.delete(ids.take(np.arange(0, n, round(1 / deleted))))
    while index.stats()["merging"]:
        sleep(0.01)
    fresh = pickle.loads(pickle.dumps(index))
    fresh.compact()
    events = workload.events(rows)
    single = [events.slice(i, 1) for i in range(0, rows, rows // 50)]
    taken = {}
    for name, calls in (("batch", [events]), ("one", single)):
        actions = {
            age: lambda matcher=matcher, calls=calls: [matcher.match(each) for each in calls]
            for age, matcher in (("aged", index), ("fresh", fresh))
        }
        medians(actions, 2)
        times = medians(actions, repeat, clock=thread_time)
        taken[name] = times["aged"] / times["fresh"]
    index.close()
    fresh.close()
    return taken


def _percentiles(action: Any, each: list[Any]) -> tuple[float, float]:
    times = []
    for one in each:
        began = perf_counter()
        action(one)
        times.append((perf_counter() - began) * 1e6)
    return float(np.median(times)), float(np.percentile(times, 99))


def _matching(matcher: cm.Matcher, events: Any) -> float:
    """Microseconds of an event, when kernels and working memory are there."""
    matcher.count(events)
    return _microseconds(lambda: matcher.count(events), ROWS)


def _microseconds(action: Any, parts: int) -> float:
    began = perf_counter()
    action()
    return (perf_counter() - began) / parts * 1e6


class Updates:
    """Microseconds each, by kind of index; ``merges`` are those of segments on the way.

    The last one, of all segments, is in microseconds a subscription.
    """

    params = (SIZES, KINDS)
    param_names = ("subscriptions", "kind")
    timeout = 60

    def setup_cache(self) -> Taken:
        sizes = [n for n in SIZES if n == SIZES[0] or FULL]
        return {
            (n, kind): figures(n, kind) | {f"aged_{name}": times for name, times in aged(n, kind).items()}
            for n in sizes
            for kind in KINDS
        }

    setup_cache.timeout = 3600  # type: ignore[attr-defined]

    def setup(self, taken: Taken, n: int, kind: str) -> None:
        if (n, kind) not in taken:
            raise NotImplementedError("only with COLMATCH_BENCHMARKS=full")

    def track_insert(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["insert"]

    def track_insert_in_bulk(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["insert_in_bulk"]

    def track_insert_p99(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["insert_p99"]

    def track_delete_p99(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["delete_p99"]

    def track_batch_when_aged(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["aged_batch"]

    def track_event_when_aged(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["aged_one"]

    def track_delete(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["delete"]

    def track_delete_in_bulk(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["delete_in_bulk"]

    def track_replace_and_match(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["replace_and_match"]

    def track_match_before(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["match_before"]

    def track_match_after(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["match_after"]

    def track_merges(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["merges"]

    def track_compact(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["compact"]


Waits = dict[tuple[str, int, int, str], Percentiles]  # kind, threads, events of a call, phase


def waits(n: int, kinds: tuple[str, ...], calls: tuple[int, ...], seconds: float, rounds: int) -> Waits:
    """Percentiles of calls of ``match`` by what goes on beside them, with one thread and two."""
    workload = named("dense", subscriptions=n + n // 10 + 2000)
    found: Waits = {}
    for kind in kinds:
        with cm.Matcher.build(workload.predicate_table(0, n), workload.schema(), index=kind) as matcher:
            churn = Churn(matcher, zip(*workload.texts(n).to_pydict().values(), strict=True))
            for threads in THREADS:
                matcher.options = cm.Options(threads=threads)
                for rows in calls:
                    times = measure(matcher, churn, workload.events(max(256, 4 * rows)), rows, seconds, rounds)
                    found |= {(kind, threads, rows, phase): Percentiles.of(times[phase]) for phase in PHASES}
    return found


class _Latency:
    """Times that a call takes, and times of the quiet calls of the same run."""

    param_names = ("kind", "threads", "events", "phase")
    timeout = 60

    def track_ms_median(self, found: Waits, *which: Any) -> float:
        return 1e3 * found[which].p50

    def track_p99_to_quiet(self, found: Waits, *which: Any) -> float:
        return found[which].p99 / found[*which[:3], QUIET].p99

    def track_worst_to_quiet(self, found: Waits, *which: Any) -> float:
        return found[which].worst / found[*which[:3], QUIET].worst

    track_ms_median.unit = "ms"  # type: ignore[attr-defined]
    track_p99_to_quiet.unit = track_worst_to_quiet.unit = "times"  # type: ignore[attr-defined]


class Latency(_Latency):
    params = (("propagation", "opindex", "bitslice"), THREADS, (1, 4096), PHASES)

    def setup_cache(self) -> Waits:
        return waits(SIZES[FULL], self.params[0], self.params[2], 2.0, 3)

    setup_cache.timeout = 3600  # type: ignore[attr-defined]


class QuickLatency(_Latency):
    """2,000 subscriptions for a moment, for CI."""

    params = (("bitslice",), THREADS, (1, 4096), PHASES)

    def setup_cache(self) -> Waits:
        return waits(2000, self.params[0], self.params[2], 0.05, 1)

    setup_cache.timeout = 900  # type: ignore[attr-defined]
