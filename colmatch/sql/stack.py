"""Room on Python's stack for deep recursion.

The limit belongs to the whole process, so all threads that need more share one higher limit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import get_ident

from colmatch.kernels import _forks

_lock = _forks.lock()
_inside: list[int] = []  # ids of threads that are in ``room`` now, once for each call
_before = 0  # the limit before the first of them
_raised = 0  # the limit while they are inside


@contextmanager
def room(frames: int) -> Iterator[None]:
    """Makes room for ``frames`` frames above the usual limit while the block runs.

    The limit only rises while some thread is inside. The last thread to leave restores it, unless
    other code has changed it.
    """
    global _before, _raised
    with _lock:
        limit = sys.getrecursionlimit()
        if not _inside or limit != _raised:
            _before = limit
        _inside.append(get_ident())
        _raised = max(limit, _before + frames)
        if _raised > limit:
            sys.setrecursionlimit(_raised)
    try:
        yield
    finally:
        with _lock:
            _inside.remove(get_ident())
            if not _inside and sys.getrecursionlimit() == _raised > _before:
                sys.setrecursionlimit(_before)


class _StackShares:
    """The shares of threads in the limit. A forked child drops shares of threads that it lacks."""

    def in_child(self) -> None:
        _inside[:] = [thread for thread in _inside if thread == get_ident()]
        if not _inside and sys.getrecursionlimit() == _raised > _before:
            with suppress(RecursionError):  # the thread that forked is already deeper
                sys.setrecursionlimit(_before)


_shares = _StackShares()
_forks.renew_in_child(_shares)
