"""The inside of a matcher. No other test reaches into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import colmatch as cm
from colmatch.indexing.base import Built, IndexKind
from colmatch.indexing.registry import find
from colmatch.kernels import layout
from colmatch.matching.worker import Worker
from colmatch.parts import Parts
from colmatch.schema import Attributes
from colmatch.updates.versions import Version


def parts(matcher: cm.Matcher) -> Parts:
    """Returns what the matcher is made of."""
    return matcher._parts()


def version(matcher: cm.Matcher) -> Version:
    """Returns the version that the next batch sees."""
    return matcher._live.now


def attributes(matcher: cm.Matcher) -> Attributes:
    return version(matcher).coding.attributes


def predicates(matcher: cm.Matcher) -> layout.Predicates:
    return version(matcher).predicates


def codes(matcher: cm.Matcher) -> layout.Codes:
    return version(matcher).coding.codes


def literals(matcher: cm.Matcher) -> layout.Literals:
    return version(matcher).coding.literals


def arrays(matcher: cm.Matcher) -> Any:
    """Returns the arrays of the index."""
    return version(matcher).index.arrays


def sample(matcher: cm.Matcher) -> NDArray[np.uint8]:
    """Returns the events that are counted whenever the index is built."""
    return matcher._live.sample


def idle(matcher: cm.Matcher) -> list[Worker]:
    """Returns the workers that wait for a batch."""
    return matcher._workers._idle


def new_worker(matcher: cm.Matcher) -> Worker:
    """Makes a worker that the matcher does not know."""
    return Worker(matcher._live)


def with_arrays(matcher: cm.Matcher, kind: str, arrays: Any, **changes: Any) -> cm.Matcher:
    """Makes a matcher of the same parts with another index, and maybe other changes."""
    return cm.Matcher(replace(parts(matcher), index=Built(find(kind), cm.index(kind), arrays), **changes))


@contextmanager
def with_step(matcher: cm.Matcher, step: str, instead: Callable[..., Any]) -> Iterator[None]:
    """Puts a function in the place of one of the index kind, such as ``insert``."""
    before = version(matcher)
    real = before.index
    kind = IndexKind(**{name: getattr(real.kind, name) for name in real.kind.__slots__} | {step: instead})  # type: ignore[attr-defined]
    before.index = real._replace(kind=kind)
    try:
        yield
    finally:
        before.index = real
        now = version(matcher)
        now.index = now.index._replace(kind=real.kind)
