"""Turns: a lock that is free again when its holder is gone, however it went.

An exception may come at any line, from a signal or from memory that is used up, also between the
end of a ``with`` block and the call that would release a lock. Nobody could take that lock again.
"""

from __future__ import annotations

import time
import weakref

FIRST_WAIT, LONGEST_WAIT = 1e-4, 1e-2  # seconds between two looks at a turn that somebody has


class Held:
    """Somebody's turn: it is his until this object has gone. To be used in a ``with`` only."""

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


class Turn:
    """Lets one thread in at a time: ``with turn.take():``."""

    def __init__(self) -> None:
        # Turns are numbered. Who enters himself under the number after the last has his turn; the
        # one before must be over.
        self._holders: dict[int, weakref.ref[Held]] = {}

    def take(self) -> Held:
        """Waits for a turn. It ends when nobody holds what is returned, at the end of the block."""
        held = self._try()
        wait = FIRST_WAIT
        while held is None:
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
            held = self._try()
        return held

    def _try(self) -> Held | None:
        last = max(list(self._holders), default=0)
        for older in list(self._holders):
            if older < last:
                self._holders.pop(older, None)
        holder = self._holders.get(last)
        if holder is not None and holder() is not None:
            return None
        return _enter(self._holders, last + 1, Held())


def _enter(holders: dict[int, weakref.ref[Held]], number: int, held: Held) -> Held | None:
    # One line: who is interrupted after it holds nothing, or what is returned.
    return held if holders.setdefault(number, own := weakref.ref(held)) is own else None
