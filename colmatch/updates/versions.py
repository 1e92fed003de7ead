"""What a batch is matched with, and how batches and updates take turns.

An update makes a new *version*. Versions share memory: what comes to a matcher is appended behind
what the older ones see. Only the arrays of the index change in place, so an update waits for the
batches that kernels are at work on, and these for it. A batch whose results are handed out in
several parts lets updates pass in between; it *pins* its version, and an update leaves the arrays
of a pinned version alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.hints import hints_of
from colmatch.index import Built
from colmatch.kernels import hints, layout
from colmatch.schema import Attributes


class Reading:
    """What is needed to read events and to code them.

    The same object as long as nothing of it has changed, and so are its parts.

    The arrays of codes and literals are frozen.
    """

    def __init__(self, attributes: Attributes, codes: layout.Codes, literals: layout.Literals) -> None:
        self.attributes = attributes
        self.codes = codes
        self.literals = literals

    @cached_property
    def hints(self) -> hints.Hints:
        return freeze(hints_of(self.codes.first, self.codes.bound))

    @cached_property
    def columns(self) -> list[str]:
        """Top-level columns that the attributes need."""
        return list(dict.fromkeys(attribute.path[0] for attribute in self.attributes if attribute.path))


class Version:
    """All that a batch is matched with.

    Attributes
    ----------
    ids : id of each subscription by number, those that were deleted included
    numbers : the same as an array, where ids are int64
    pins : batches that are not finished and shall see this version to their end
    """

    def __init__(self, reading: Reading, predicates: layout.Predicates, index: Built, ids: pa.Array) -> None:
        self.reading = reading
        self.predicates = freeze(predicates)
        self.index = Built(index.kind, freeze(index.arrays))
        self.ids = ids
        self.numbers: NDArray[np.int64] | None = contiguous(ids.to_numpy()) if pa.types.is_int64(ids.type) else None
        self.pins = 0

    @cached_property
    def results(self) -> pa.Schema:
        """Schema of matches."""
        return pa.schema([("event", pa.int64()), ("subscription", self.ids.type)])


class Gate:
    """Lets many batches in at a time, or one update.

    An update that waits goes before batches that come after it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._batches = 0
        self._waiting = 0
        self._updating = False

    def enter(self) -> None:
        with self._changed:
            while self._waiting or self._updating:
                self._changed.wait()
            self._batches += 1

    def leave(self) -> None:
        with self._changed:
            self._batches -= 1
            if not self._batches:
                self._changed.notify_all()

    def pin(self, version: Version) -> None:
        with self._changed:
            version.pins += 1

    def unpin(self, version: Version) -> None:
        with self._changed:
            version.pins -= 1

    @contextmanager
    def batch(self) -> Iterator[None]:
        self.enter()
        try:
            yield
        finally:
            self.leave()

    @contextmanager
    def update(self) -> Iterator[None]:
        with self._changed:
            self._waiting += 1
            try:
                while self._batches or self._updating:
                    self._changed.wait()
                self._updating = True
            finally:
                self._waiting -= 1
                if not self._updating:  # interrupted: batches may have waited for it
                    self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._updating = False
                self._changed.notify_all()
