"""Locks of files (``flock``), which a forked child does not share.

Such a lock belongs to the open file, and a child has all open files of its parent. So the child
would keep the lock when its parent has ended. A child that unlocked the file would take the lock
from its parent. So it closes the file instead, and opens ``os.devnull`` under the same handle. The
handle can then be closed as usual.

Files that may be locked are closed by ``close``, which keeps account of the handles.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from colmatch.kernels import _forks

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

THERE_ARE = fcntl is not None


class _LockedFiles:
    """The files that this process has locked.

    Attributes
    ----------
    files : device and inode of each file, by its handle
    """

    def __init__(self) -> None:
        self.files: dict[int, tuple[int, int]] = {}
        _forks.renew_in_child(self)

    def in_child(self) -> None:
        files, self.files = self.files, {}
        for handle, file in files.items():
            with suppress(OSError):  # the handle was closed otherwise
                if _identity(handle) == file:
                    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                    os.dup2(nothing, handle, inheritable=False)
                    os.close(nothing)


_held = _LockedFiles()


def lock(handle: int) -> bool | None:
    """Locks a file. Returns whether this process has the lock.

    The result is None if the system has no such locks.
    """
    if fcntl is None:
        return None
    with _forks.hold_off_forks():
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        _held.files[handle] = _identity(handle)
    return True


def unlock(handle: int) -> None:
    """Releases the lock of a file."""
    if fcntl is not None:
        with _forks.hold_off_forks():
            fcntl.flock(handle, fcntl.LOCK_UN)
            _held.files.pop(handle, None)


def duplicate(handle: int) -> int:
    """Returns another handle of a file. Both share its lock, until the last one is closed."""
    with _forks.hold_off_forks():
        copy = os.dup(handle)
        if handle in _held.files:
            _held.files[copy] = _held.files[handle]
    return copy


def close(handle: int) -> None:
    """Closes a file, and releases its lock. A handle of -1 is no file."""
    if handle < 0:
        return
    with _forks.hold_off_forks():
        _held.files.pop(handle, None)
        os.close(handle)


def _identity(handle: int) -> tuple[int, int]:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino
