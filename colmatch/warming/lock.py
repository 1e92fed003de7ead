"""One process at a time compiles into a folder; the others wait, and then load what it has kept.

The lock is that of a file in the folder. The system releases it when the process ends, however it
ends.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from colmatch.store import locks

NAME = "warming.lock"
SAY_AFTER = 1.0  # seconds of waiting
TICK = 0.1  # seconds between two tries

_log = logging.getLogger("colmatch")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Waits until no other process, or thread, warms a folder, and keeps the others waiting.

    It waits for nobody where the system has no such locks, or the lock's file cannot be written.
    Such a folder may have all that is needed.
    """
    try:
        handle = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError:
        yield
        return
    try:
        began, said = time.monotonic(), False
        while locks.lock(handle) is False:
            if not said and time.monotonic() - began >= SAY_AFTER:
                said = True
                _log.warning("another process compiles kernels into %s: waiting until it has ended", folder)
            time.sleep(TICK)
        yield
    finally:
        locks.close(handle)
