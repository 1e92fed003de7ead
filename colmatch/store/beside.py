"""Files that belong to another file beside them: its journal, or its log.

Their names follow from the name of the file. Another user of the folder may have put something else
there before. So a link, a pipe and a file of another user are refused.
"""

from __future__ import annotations

import errno
import os
import stat

from colmatch.errors import StoreError
from colmatch.kernels import _folders
from colmatch.store.replacing import make_like

_LINKED = (errno.ELOOP, errno.EMLINK)  # errors of O_NOFOLLOW, by system
_FLAGS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


def open_beside(path: str, target: str, noun: str, to_write: bool) -> int:
    """Opens a file that belongs to another. With ``to_write``, makes it if it is missing.

    path, target : the file, and the file that it belongs to; both without links
    noun : a word for the file, with an article

    Raises
    ------
    StoreError : the file is a link, a pipe or a device, or another user's, or has a second name
    OSError : as from ``open``
    """
    owner = _status(target)
    mode = 0o666 if owner is None else 0o600  # until it gets the permissions of the target
    try:
        handle = os.open(path, _FLAGS | (os.O_RDWR | os.O_CREAT if to_write else os.O_RDONLY), mode)
    except OSError as error:
        if error.errno in _LINKED and os.path.islink(path):
            raise StoreError(
                f"{path} is a link, which is not followed: {noun} is a file; see where the link leads, and remove it"
            ) from error
        raise
    try:
        _check(path, target, os.fstat(handle), owner, noun, to_write)
    except BaseException:
        os.close(handle)
        raise
    return handle


def keep_like(handle: int, target: str) -> None:
    """Gives a file the owner, group and permissions of the file that it belongs to."""
    owner = _status(target)
    if owner is not None and os.name == "posix":
        make_like(handle, target, owner)


def _status(target: str) -> os.stat_result | None:
    try:
        return os.stat(target)
    except FileNotFoundError:
        return None


def _check(
    path: str, target: str, status: os.stat_result, owner: os.stat_result | None, noun: str, to_write: bool
) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path} is a pipe or a device: {noun} is a file")
    if os.name != "posix":
        return
    if to_write and status.st_nlink > 1:
        raise StoreError(
            f"{path} has another name as well, which would be changed with it: {noun} has one name; copy the file to a "
            "new one of this name"
        )
    users = {0, os.geteuid(), *([] if owner is None else [owner.st_uid])}
    if status.st_uid in users:
        return
    # Users who may write the target may have made the file that belongs to it.
    if owner is None or _folders.let_others_write(owner, target, *users) is None:
        raise StoreError(
            f"{path} belongs to user {status.st_uid}, who may not write the file that it is of: look at it, and remove it"
        )
