"""Files that appear whole: written under another name beside their place, then put there at once.

A killed process leaves its temporary file. The next process that writes into the folder removes it
if no living process owns it. The owner holds a lock (``flock``), which the system releases when the
process ends in any way. Another machine with the same folder mounted may not see a lock, so the
name of the file identifies its machine. Files of other machines are removed when they have not
changed for a day. On a system without locks, this holds for all files.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO

from colmatch.errors import StoreError
from colmatch.store import locks
from colmatch.store.locks import lock

DAY = 24 * 60 * 60.0  # seconds

_LEFT = re.compile(r"\..+\.([0-9a-f]{8})[0-9a-f]{8}\.colmatch-tmp", re.DOTALL)
_ACL = "system.posix_acl_access"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a new file to write, which takes the place of ``path`` at the end.

    The new file is removed after an error. It keeps the permissions of the old one and, as far as
    this process may, its owner and group. Links are followed.

    Raises
    ------
    StoreError : ``path`` is a folder, a pipe or a device
    OSError : as from ``open``
    """
    path = os.path.realpath(path)
    before = check_replaceable(path)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "there is no such folder to write to", folder)
    clear(folder)
    temporary, handle = _begin(folder, name, 0o666 if before is None else 0o600)
    try:
        try:
            with open(handle, "wb", closefd=False) as file:
                yield file
                file.flush()
                if before is not None and locks.THERE_ARE:
                    make_like(handle, path, before)
                os.fsync(handle)
                if locks.THERE_ARE:  # while it is still locked
                    os.replace(temporary, path)
        finally:
            locks.close(handle)
        if not locks.THERE_ARE:  # Windows cannot rename a file that is open
            os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Makes new names in a folder outlast a power cut, if the system can do so."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def clear(folder: str) -> None:
    """Removes the temporary files in a folder that no living process owns."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            left = _LEFT.fullmatch(entry.name)
            if left:
                with suppress(OSError):  # another process has cleared it, or it is another user's
                    _clear(entry.path, left[1] == _machine())


def _clear(path: str, ours: bool) -> None:
    if not locks.THERE_ARE:
        if _is_old(os.stat(path)):
            os.unlink(path)  # fails if it is open
        return
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return
        locked = lock(handle)
        # Remove it under the lock: if its owner has not locked it yet, it sees the loss and makes
        # another file.
        if locked is not False and ((ours and locked) or _is_old(status)):
            os.unlink(path)
    finally:
        locks.close(handle)


def _is_old(status: os.stat_result) -> bool:
    return time.time() - status.st_mtime > DAY


@cache
def _machine() -> str:
    """Returns eight hexadecimal digits for this machine since its start, the range of its locks."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            name = file.read()
    except OSError:
        import platform

        name = platform.node()
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def check_replaceable(path: str) -> os.stat_result | None:
    """Returns the status of a file that is to be replaced, None if there is no file.

    Raises StoreError: ``path`` is a folder, a pipe or a device.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{path} is a folder: give the name of a file")
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path} is a pipe or a device, which a saved matcher cannot replace: give the name of a file")
    return status


def _begin(folder: str, name: str, mode: int) -> tuple[str, int]:
    """Makes a temporary file of this process, locked if the system has locks.

    Returns its name and a handle to write it.
    """
    if len(os.fsencode(name)) > 200:  # of the 255 bytes that a name may have
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    while True:
        temporary = os.path.join(folder, f".{name}.{_machine()}{os.urandom(4).hex()}.colmatch-tmp")
        try:
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        except FileExistsError:
            continue
        if not locks.THERE_ARE or (lock(handle) is not False and is_there(temporary, handle)):
            return temporary, handle
        locks.close(handle)  # another process takes it for an abandoned file, and removes it


def is_there(path: str, handle: int) -> bool:
    """Checks whether an open file still has this name. A link to the file does not count."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def make_like(file: int, path: str, before: os.stat_result) -> None:
    """Gives a file the owner, group and permissions of the file that it replaces."""
    now = os.fstat(file)
    mode = before.st_mode & 0o777
    if now.st_uid != before.st_uid:
        with suppress(OSError):
            os.fchown(file, before.st_uid, -1)
    try:
        if now.st_gid != before.st_gid:
            os.fchown(file, -1, before.st_gid)
        acl = _acl(path)
        if acl is not None:
            os.setxattr(file, _ACL, acl)
    except OSError:  # rights of the old group are not meant for another one
        mode = mode & 0o707 | (mode & 0o007) << 3
    with suppress(OSError):
        os.fchmod(file, mode)


def _acl(path: str) -> bytes | None:
    """Returns the access list of a file, None if there is none.

    With a list, the permissions of the group are the most that anybody in the list has.
    """
    if sys.platform != "linux":
        return None
    try:
        return os.getxattr(path, _ACL)
    except OSError:
        return None
