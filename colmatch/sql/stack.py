"""Room on Python's stack for what recurses deep.

The limit belongs to the whole process, so all who need more share one raise of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import get_ident

from colmatch.kernels import _forks

_lock = _forks.lock()
_inside: list[int] = []  # ids of threads that are in ``room`` now, once for each call
_before = 0  # the limit that the first of them found
_raised = 0  # the limit that they made of it


@contextmanager
def room(frames: int) -> Iterator[None]:
    """``frames`` more than anybody else has, for as long as the block runs.

    The limit only rises while some thread is inside, and the last to leave puts it back, unless
    somebody else has changed it meanwhile.
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


class _Shares:
    """The shares of threads in the limit; a child drops those of threads that it does not have."""

    def in_child(self) -> None:
        _inside[:] = [thread for thread in _inside if thread == get_ident()]
        if not _inside and sys.getrecursionlimit() == _raised > _before:
            with suppress(RecursionError):  # the thread that forked is already deeper
                sys.setrecursionlimit(_before)


_shares = _Shares()
_forks.renewed(_shares)
