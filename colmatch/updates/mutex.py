"""Turns: a lock that is free again when its holder is gone, however it went.

An exception may come at any line, from a signal or from memory that is used up, also between the
end of a ``with`` block and the call that would release a lock. Nobody could take that lock again.

Kernels of single updates keep the interpreter's lock (``brief`` of ``kernels/_jit.py``). Without
``Throttle``, a batch beside a loop of updates waited for up to 120 ms.
"""

from __future__ import annotations

import time
import weakref
from contextlib import suppress
from threading import get_ident

from colmatch.errors import OptionError
from colmatch.kernels import _forks

FIRST_WAIT, LONGEST_WAIT = 1e-4, 1e-3  # seconds between two looks at who is first
BUSY_MOST, GAP, PAUSE = 1e-3, 1e-4, 5e-5  # seconds, see Throttle


class Token:
    """A turn lasts as long as this object is there. It is to be used in a ``with`` only."""

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


class FairMutex:
    """Lets one thread in at a time, in the order in which they came: ``with turn.take():``."""

    def __init__(self) -> None:
        # Who stands in line, with his thread: appending is one step for all threads, and only who
        # is first takes away what is before him.
        self._line: list[tuple[weakref.ref[Token], int]] = []
        _forks.renewed(self)

    def in_child(self) -> None:
        self._line = [one for one in self._line if one[1] == get_ident()]

    def take(self) -> Token:
        """Waits for a turn. It ends when nobody holds what is returned, at the end of the block.

        Raises OptionError: the thread has a turn already, and would wait for itself.
        """
        token = Token()
        own = weakref.ref(token), get_ident()
        try:
            self._line.append(own)
            wait = FIRST_WAIT
            while not self._is_first(own):
                time.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
            while self._line[0] is not own:
                del self._line[0]
            return token
        except BaseException:  # whose traceback may outlast it, and holds what this call holds
            with suppress(ValueError):
                self._line.remove(own)
            raise

    def _is_first(self, own: tuple[weakref.ref[Token], int]) -> bool:
        for other in list(self._line):
            if other is own:
                break
            if other[0]() is not None:
                if other[1] == own[1]:
                    raise OptionError(
                        "this thread is in the middle of an update of the matcher, which a signal handler or a finaliser "
                        "has interrupted: make one update after the other"
                    )
                return False
        return True


class Throttle:
    """Pauses in the middle of updates that follow one another without a gap.

    Their kernels keep the interpreter's lock, which would be quicker to take back than other
    threads are to wake up: batches and merges would wait until Python hands it over, after 5 ms.
    """

    def __init__(self) -> None:
        self._since = self._last = 0.0

    def ended(self, began: float) -> None:
        """Pauses if this update, which ``began`` then, and those before it took long enough."""
        now = time.perf_counter()
        if began - self._last > GAP:
            self._since = began
        if now - self._since > BUSY_MOST:
            time.sleep(PAUSE)
            self._since = now = time.perf_counter()
        self._last = now
