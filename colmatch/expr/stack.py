"""Room on Python's stack for what recurses deep.

The limit belongs to the whole process, so all who need more share one raise of it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0  # how many threads are in ``room`` now
_before = 0  # the limit that the first of them found
_raised = 0  # the limit that they made of it


@contextmanager
def room(frames: int) -> Iterator[None]:
    """``frames`` more than anybody else has, for as long as the block runs.

    The limit only rises while some thread is inside, and the last to leave puts it back, unless
    somebody else has changed it meanwhile.
    """
    global _inside, _before, _raised
    with _lock:
        limit = sys.getrecursionlimit()
        if not _inside or limit != _raised:
            _before = limit
        _inside += 1
        _raised = max(limit, _before + frames)
        if _raised > limit:
            sys.setrecursionlimit(_raised)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and sys.getrecursionlimit() == _raised > _before:
                sys.setrecursionlimit(_before)
