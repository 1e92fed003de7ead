"""What an index kind is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from colmatch.kernels.layout import Codes, Predicates
from colmatch.options import Options
from colmatch.stats import Sample, Statistics

Arrays = TypeVar("Arrays")


@dataclass(frozen=True, slots=True)
class IndexKind:
    """A pair of modules, ``kernels/<kind>.py`` and ``index/<kind>.py``, seen from outside.

    Attributes
    ----------
    name : also written into the saved form
    arrays : NamedTuple of numpy arrays: what the kernel reads, what is saved and memory-mapped
    build : predicates, codes, what a sample of events said, options -> arrays, and the predicates, whose conjunctions it may have reordered
    scratch : arrays, codes, rows, entries -> working memory of one thread, for batches of up to so many rows and entries
    match : the kernel: ``match(index, predicates, rows, start, stop, scratch, sink, counters) -> first row not finished``
    cost : statistics -> estimated nanoseconds an event, for the plan
    repeats : arrays -> whether the kernel may write a pair more than once
    """

    name: str
    arrays: type
    build: Callable[[Predicates, Codes, Sample | None, Options], tuple[Any, Predicates]]
    scratch: Callable[[Any, Codes, int, int], Any]
    match: Callable[..., int]
    cost: Callable[[Statistics], float]
    repeats: Callable[[Any], bool] = lambda arrays: False


class Built(NamedTuple):
    """An index: its kind and its arrays."""

    kind: IndexKind
    arrays: Any


def freeze(arrays: Arrays) -> Arrays:
    """The same NamedTuple with contiguous read-only arrays: to a kernel, read-only is another type, so it must always be so."""
    frozen = []
    for array in arrays:  # type: ignore[attr-defined]
        fixed = np.ascontiguousarray(array)
        if fixed.flags.writeable:
            fixed = fixed.view()
            fixed.setflags(write=False)
        frozen.append(fixed)
    return type(arrays)(*frozen)
