"""A first-come lock, which is free again even if an exception interrupts its holder.

A signal or a lack of memory may raise an exception at any line. This may be between the end of a
``with`` block and the call that would release a lock. No thread could take that lock again.

Kernels of single updates keep the interpreter's lock (``brief`` of ``kernels/_jit.py``). Without
``Throttle``, a batch during a loop of updates waited for up to 120 ms.
"""

from __future__ import annotations

import time
import weakref
from contextlib import suppress
from threading import get_ident

from colmatch.errors import OptionError
from colmatch.kernels import _forks

FIRST_WAIT, LONGEST_WAIT = 1e-4, 1e-3  # seconds between two looks at the first in line
BUSY_MOST, GAP, PAUSE = 1e-3, 1e-4, 5e-5  # seconds, see Throttle


class Turn:
    """A turn, which lasts as long as this object exists. It is for use in a ``with`` only."""

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


class FairMutex:
    """A lock that admits threads in the order of their arrival: ``with turn.take():``."""

    def __init__(self) -> None:
        # Tokens in line, each with its thread. Appending is one step for all threads. Only the
        # first live token removes the entries before it.
        self._line: list[tuple[weakref.ref[Turn], int]] = []
        _forks.renew_in_child(self)

    def in_child(self) -> None:
        self._line = [one for one in self._line if one[1] == get_ident()]

    def take(self) -> Turn:
        """Waits for a turn. The turn ends when its token is freed, at the end of the block.

        Raises OptionError: the thread has a turn already, and would wait for itself.
        """
        token = Turn()
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
        except BaseException:  # its traceback may outlast the call, and holds the token
            with suppress(ValueError):
                self._line.remove(own)
            raise

    def _is_first(self, own: tuple[weakref.ref[Turn], int]) -> bool:
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
    """A throttle, which pauses between updates that follow one another without a gap.

    Kernels of updates keep the interpreter's lock. The updating thread would take it back before
    other threads wake up. Batches and merges would wait until Python hands it over, after 5 ms.
    """

    def __init__(self) -> None:
        self._since = self._last = 0.0

    def pause_after(self, began: float) -> None:
        """Pauses if this update and those right before it took long enough together.

        began : when this update began
        """
        now = time.perf_counter()
        if began - self._last > GAP:
            self._since = began
        if now - self._since > BUSY_MOST:
            time.sleep(PAUSE)
            self._since = now = time.perf_counter()
        self._last = now
