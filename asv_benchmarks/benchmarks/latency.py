"""How long a call of ``match`` takes: by itself, between updates, beside updates, beside merges.

All is measured in one run and in turns, with the same segments but for what the updates change, so
that ratios to the quiet calls say what updates and merges cost a batch.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import colmatch as cm

QUIET = "quiet"
IN_TURNS = "after an update each"  # in the thread that matches
PACED = "beside 100 updates a second"
UNPACED = "beside updates without a pause"
MERGE = "beside a merge of all"
UPDATES = "(an update between two calls)"
PHASES = (QUIET, IN_TURNS, PACED, UNPACED, MERGE)
PACE = 0.01  # seconds from one update to the next
STAY = 200  # subscriptions that updates have inserted and not deleted yet
AFTER = 3  # calls after a merge, which find a new segment
YOUNG = 100  # a merge has one of so many subscriptions in a segment of its own
PIECES = 64  # different events, or batches

Times = dict[str, list[float]]


class Percentiles(NamedTuple):
    """Seconds of some calls."""

    p50: float
    p99: float
    worst: float
    calls: int

    @classmethod
    def of(cls, times: list[float]) -> Percentiles:
        p50, p99, worst = np.percentile(times, [50, 99, 100]).tolist()
        return cls(p50, p99, worst, len(times))


class Churn:
    """Takes subscriptions into a matcher and out again.

    ``more`` : pairs of id and expression, which are not in the matcher
    """

    def __init__(self, matcher: cm.Matcher, more: Iterable[tuple[Any, Any]]) -> None:
        self.matcher = matcher
        self.updates = 0
        self._out = deque(more)
        self._in: deque[tuple[Any, Any]] = deque()

    def one(self) -> None:
        """Inserts a subscription; every other time deletes the oldest that came so instead."""
        if len(self._in) > STAY and self.updates % 2:
            gone = self._in.popleft()
            self.matcher.delete([gone[0]])
            self._out.append(gone)
        else:
            self._in.append(self._out.popleft())
            self.matcher.insert([self._in[-1]])
        self.updates += 1

    def many(self, count: int) -> None:
        """Inserts so many in one call, and deletes what came in."""
        self.matcher.delete([id for id, _ in self._in])
        self._out.extend(self._in)
        self._in = deque(self._out.popleft() for _ in range(min(count, len(self._out) // 2)))
        self.matcher.insert(list(self._in))


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[None]:
    """Has this thread run on the first of some cores alone, if there are any."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores[:1] or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def beside(action: Callable[[], None], cores: Sequence[int] = ()) -> Iterator[threading.Thread]:
    """Does something in another thread, on the last of some cores, and waits for it at the end."""

    def run() -> None:
        with pinned(cores[-1:]):
            action()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join()


def measure(
    matcher: cm.Matcher,
    churn: Churn,
    events: pa.Table,
    batch: int,
    seconds: float,
    rounds: int,
    cores: Sequence[int] = (),
) -> Times:
    """Seconds of each call of ``match`` with ``batch`` events, by phase; and those of updates.

    ``seconds`` : of each phase in a round but that of the merge. ``cores`` : on whose last one runs
    what is beside
    """
    matcher.compact()
    many = max(len(matcher) // YOUNG, 1)
    pieces = cycle([events.slice(start, batch) for start in range(0, min(events.num_rows, PIECES * batch), batch)])
    times: Times = {name: [] for name in (*PHASES, UPDATES)}

    def call(phase: str) -> None:
        times[phase].append(_seconds(lambda: matcher.match(next(pieces))))

    for number in range(-1, rounds):  # the first round compiles, and is thrown away
        end = seconds if number >= 0 else 0.05
        churn.many(many)
        churn.one()
        _settle(matcher)
        gc.collect()
        for phase in (QUIET, IN_TURNS, PACED, UNPACED):
            stop = threading.Event()
            pause = {PACED: PACE, UNPACED: 0.0}.get(phase)
            with beside(lambda stop=stop, pause=pause: _update(churn, pause, stop), cores):  # type: ignore[misc]
                began = time.perf_counter()
                while not times[phase] or time.perf_counter() - began < end:
                    if phase == IN_TURNS:
                        times[UPDATES].append(_seconds(churn.one))
                    call(phase)
                stop.set()
            _settle(matcher)
        with beside(matcher.compact, cores) as thread:
            while thread.is_alive():
                call(MERGE)
        for _ in range(AFTER):
            call(MERGE)
        if number < 0:
            times = {name: [] for name in times}
    return times


def _update(churn: Churn, pause: float | None, stop: threading.Event) -> None:
    while pause is not None and not stop.wait(pause):
        churn.one()


def _seconds(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _settle(matcher: cm.Matcher) -> None:
    while matcher.stats()["merging"]:
        time.sleep(0.02)
