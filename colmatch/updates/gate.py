"""How batches and updates take turns.

Only the arrays of the index change in place, so an update waits for the batches that kernels are at
work on, and these for it. A batch whose results are handed out in several parts lets updates pass
in between; it *pins* its version, and an update leaves the arrays of a pinned version alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from colmatch.updates.versions import Version


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
        """Lets a batch in, as soon as no update is made or waits."""
        with self._changed:
            while self._waiting or self._updating:
                self._changed.wait()
            self._batches += 1

    def leave(self) -> None:
        """Lets a batch out."""
        with self._changed:
            self._batches -= 1
            if not self._batches:
                self._changed.notify_all()

    def pin(self, version: Version) -> None:
        """Keeps the arrays of a version as they are until ``unpin``."""
        with self._changed:
            version.pins += 1

    def unpin(self, version: Version) -> None:
        """Takes back one ``pin``."""
        with self._changed:
            version.pins -= 1

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Holds the gate for a batch, which uses the arrays of the present version."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    @contextmanager
    def update(self) -> Iterator[None]:
        """Holds the gate for an update, while no batch is in."""
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
