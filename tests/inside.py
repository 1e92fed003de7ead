"""The inside of a matcher. No other test reaches into one."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from types import FrameType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import colmatch as cm
from colmatch.arrays.frozen import freeze
from colmatch.given.schema import Attributes
from colmatch.kernels import layout
from colmatch.kernels._jit import forbid_interpreting
from colmatch.kernels.sink import PAIRS
from colmatch.kinds.base import Built, IndexKind
from colmatch.kinds.registry import find
from colmatch.matching.pieces import Piece
from colmatch.matching.worker import Worker
from colmatch.subscriptions.intake import SubscriptionReader
from colmatch.updates.memory_set import MemorySet
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Parts, Version


def parts(matcher: cm.Matcher) -> Parts:
    """Returns what the matcher is made of."""
    return matcher._set.parts()


def version(matcher: cm.Matcher) -> Version:
    """Returns the version that the next batch sees."""
    return matcher._set.now


def count_calls(action: Callable[[], object]) -> int:
    """Returns how often a profile sees a function called, or left, while an action runs.

    The action runs twice before, so that kernels are compiled, and all is made that is kept.
    The garbage collector waits: Hypothesis has functions that it calls, and it comes at any time.
    """
    with forbid_interpreting():
        action()
        action()
    calls: list[str] = []
    gc.disable()
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return len(calls)


def count_lines(action: Callable[[], object], folder: str) -> int:
    """Returns how many lines of the files in a folder run during an action."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if folder not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def live(matcher: cm.Matcher) -> MemorySet:
    return matcher._set


def segment(matcher: cm.Matcher) -> Segment:
    """Returns the youngest segment: the only one, if nothing was inserted."""
    return version(matcher).segments[-1]


def attributes(matcher: cm.Matcher) -> Attributes:
    return version(matcher).attributes


def source_attributes(matcher: cm.Matcher) -> Attributes:
    """Returns the attributes that the next subscriptions are taken in with."""
    return matcher._set._source_for(version(matcher)).attributes


def source(matcher: cm.Matcher) -> SubscriptionReader:
    """Returns what the next subscriptions are taken in by."""
    return matcher._set._source_for(version(matcher))


def idle_event_workers(matcher: cm.Matcher) -> int:
    """Returns how many workers wait for single events."""
    return len(matcher._single._idle)


def predicates(matcher: cm.Matcher) -> layout.Predicates:
    return segment(matcher).predicates


def codes(matcher: cm.Matcher) -> layout.Codes:
    return segment(matcher).codes


def literals(matcher: cm.Matcher) -> layout.Literals:
    return version(matcher).literals


def arrays(matcher: cm.Matcher) -> Any:
    """Returns the arrays of the index."""
    return segment(matcher).index.arrays


def sample(matcher: cm.Matcher) -> NDArray[np.uint8]:
    """Returns the events that are counted whenever a segment is built."""
    return matcher._set.now.sample


def idle(matcher: cm.Matcher) -> list[Worker]:
    """Returns the workers that wait for a batch."""
    return matcher._workers._idle


def run(worker: Worker, matcher: cm.Matcher, batch: pa.RecordBatch) -> list[Piece]:
    """Returns the matches of one batch, in the pieces that a worker makes of it."""
    return list(worker.run(version(matcher), False, batch, PAIRS, 0))


def scratch(worker: Worker, matcher: cm.Matcher) -> Any:
    """Returns the working memory that a worker has for the youngest segment."""
    return worker._scratch[segment(matcher)][0]


def settled(matcher: cm.Matcher) -> Version:
    """Waits until no merge is due or running. Returns the version that there is then."""
    merger = matcher._set.merger
    while merger.is_running or (merger._candidates(version(matcher)) is not None and not merger.is_stopped):
        merger.start_if_due()
        time.sleep(0.001)
    return version(matcher)


def with_index(matcher: cm.Matcher, kind: str, arrays: Any, **changes: Any) -> cm.Matcher:
    """Makes a matcher of the same only segment with another index, and maybe other predicates."""
    (only,) = version(matcher).segments
    built = Built(find(kind), cm.index(kind), freeze(arrays))
    other = Segment(only.codes, freeze(changes.get("predicates", only.predicates)), built, only.size)
    return cm.Matcher(MemorySet(replace(parts(matcher), version=replace(version(matcher), segments=(other,)))))


@contextmanager
def with_step(matcher: cm.Matcher, step: str, instead: Callable[..., Any]) -> Iterator[None]:
    """Puts a function in the place of one of the youngest segment's kind, such as ``insert``."""
    real = segment(matcher).index.kind
    kind = IndexKind(**{name: getattr(real, name) for name in real.__slots__} | {step: instead})  # type: ignore[attr-defined]
    for one in version(matcher).segments:
        if one.index.kind is real:
            one.index = one.index._replace(kind=kind)
    try:
        yield
    finally:
        for one in version(matcher).segments:
            if one.index.kind is kind:
                one.index = one.index._replace(kind=real)


def settle(matcher: cm.Matcher) -> None:
    """Waits until nothing is merged."""
    while any(thread.name == "colmatch-merge" for thread in threading.enumerate()):
        time.sleep(0.001)


def merge_some(matcher: cm.Matcher, rng: Random) -> None:
    """Merges some neighbours among the frozen segments, whether that is due or not."""
    now = version(matcher)
    if not now.frozen_count:
        return
    merge(matcher, now, *sorted(rng.sample(range(now.frozen_count + 1), 2)))


def merge(matcher: cm.Matcher, now: Version, start: int, stop: int) -> bool:
    """Merges frozen segments of a version, also where that is not due.

    Says whether it took their place: they were there still.
    """
    merger, live = matcher._set.merger, matcher._set
    with merger._one.take():
        return merger._publish(live, merger._merge(live, now, start, stop, live.requested))


def turn(matcher: cm.Matcher) -> Any:
    """What updates of the matcher wait for."""
    return matcher._set.turn


def page_file(matcher: cm.Matcher) -> Any:
    """The file of pages that a matcher lives in."""
    return matcher._set.file


def with_constants(module: Any, name: str, **numbers: int) -> Any:
    """Returns a patch of constants that a module reads as ``name.CONSTANT``, as ``bs.MOST_BINS``.

    Kernels keep the constants that they were compiled with.
    """
    return patch.object(module, name, SimpleNamespace(**vars(getattr(module, name)) | numbers))
