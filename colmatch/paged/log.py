"""The log beside a file of pages: what updates have made of pages, until it is copied there.

::

    32 bytes   "colmatch log", generation of the file that it follows, checksum
    updates    40 bytes: "update", generation, stamp, pages, pages of the file, checksum of this and
               of the numbers; the numbers of the pages; the pages

A page has a checksum of its own, which is among what the update's checksum is about. So an update
is there when all of it is, and what comes behind the first that is not was never finished.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.errors import StoreError
from colmatch.paged.cache import PAGE, checksum, write_error
from colmatch.store.replacing import is_there, lock

_UPDATE = struct.Struct("<6sxxQQIQ")
_CRC = struct.Struct("<I")
BEGIN = 32
UPDATE = _UPDATE.size + _CRC.size
VECTOR_MOST = 1000  # pieces of one call of the system
MAGIC, UPDATE_MAGIC = b"colmatch log", b"update"


class Update(NamedTuple):
    """An update that a log has."""

    stamp: int
    total: int  # pages of the file
    pages: NDArray[np.int64]
    offset: int  # of the first page
    end: int


def log_path(path: str) -> str:
    """Returns the name of the log of a file."""
    return path + ".log"


def locked_log(path: str) -> int:
    """Opens the log of a file with the right to change both, which goes when it is closed.

    Raises
    ------
    StoreError : another has that right, or nothing can be written there
    """
    while True:
        handle = _locked(path)
        if is_there(log_path(path), handle):
            return handle
        os.close(handle)  # who had it has removed it


def _locked(path: str) -> int:
    try:
        handle = os.open(log_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise write_error(path, error) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StoreError(f"{log_path(path)} is a pipe or a device: a log is a file")
    locked = lock(handle)
    if not locked:
        os.close(handle)
        if locked is None:
            raise StoreError(f"{path} cannot be locked on this system: nothing was changed")
        raise StoreError(
            f"{path} is being changed by another process, or another matcher of this one: close that first"
        )
    return handle


def begin_bytes(generation: int) -> bytes:
    """Returns the first bytes of a log."""
    head = MAGIC + struct.pack("<Q", generation)
    return (head + _CRC.pack(zlib.crc32(head))).ljust(BEGIN, b"\0")


def generation_of(path: str, handle: int) -> int:
    """Returns the generation of a log, -1 for one that was not begun.

    Raises
    ------
    StoreError : it is damaged, or no log
    """
    head = os.pread(handle, BEGIN, 0)
    if len(head) < BEGIN or not any(head):
        return -1
    if head[:12] != MAGIC or head != begin_bytes(struct.unpack_from("<Q", head, 12)[0]):
        raise StoreError(
            f"{log_path(path)} is damaged, or no log: its first {BEGIN} bytes are not what was written; where it has no "
            f"updates that you miss, remove it, or else take a copy of it and of {path}, or build it again"
        )
    return int(struct.unpack_from("<Q", head, 12)[0])


def update_bytes(generation: int, stamp: int, total: int, pages: NDArray[np.int64], sums: bytes) -> bytes:
    """Returns what stands before the pages of an update; ``sums`` are their checksums."""
    head = _UPDATE.pack(UPDATE_MAGIC, generation, stamp, len(pages), total)
    numbers = pages.astype(np.uint32).tobytes()
    return head + _CRC.pack(zlib.crc32(sums, zlib.crc32(numbers, zlib.crc32(head)))) + numbers


def write_at(handle: int, at: int, parts: list[memoryview]) -> int:
    """Writes all of something. Returns where it ends."""
    for begin in range(0, len(parts), VECTOR_MOST):
        some = parts[begin : begin + VECTOR_MOST]
        size = sum(map(len, some))
        done = os.pwritev(handle, some, at)
        if done < size:  # the disk is full, or there was a signal
            rest = b"".join(some)
            while done < size:
                done += os.pwrite(handle, rest[done:], at + done)
        at += size
    return at


def read_update(handle: int, generation: int, at: int, size: int) -> Update | None:
    """Reads an update at a place of a log of some size. None where none is finished there."""
    head = os.pread(handle, UPDATE, at)
    if len(head) < UPDATE or head[:6] != UPDATE_MAGIC:
        return None
    _, own, stamp, count, total = _UPDATE.unpack_from(head)
    offset = at + UPDATE + 4 * count
    end = offset + PAGE * count
    if own != generation or end > size:
        return None
    numbers = os.pread(handle, 4 * count, at + UPDATE)
    pages = np.frombuffer(numbers, np.uint32).astype(np.int64)
    sums = b""
    for i, page in enumerate(pages.tolist()):
        data = os.pread(handle, PAGE, offset + PAGE * i)
        if len(data) < PAGE or checksum(data, page) != _CRC.unpack_from(data)[0]:
            return None
        sums += data[:4]
    if _CRC.unpack_from(head, _UPDATE.size)[0] != zlib.crc32(
        sums, zlib.crc32(numbers, zlib.crc32(head[: _UPDATE.size]))
    ):
        return None
    return Update(stamp, total, pages, offset, end)


def check_end(path: str, handle: int, generation: int, at: int, size: int) -> None:
    """Checks that no update stands behind one that is not whole: only the last can be unfinished.

    Raises
    ------
    StoreError : there is one, so the log is damaged
    """
    begin = UPDATE_MAGIC.ljust(8, b"\0") + struct.pack("<Q", generation)
    rest = os.pread(handle, size - at, at)
    place = rest.find(begin, 1)
    while place >= 0:
        if read_update(handle, generation, at + place, size) is not None:
            raise StoreError(
                f"{log_path(path)} is damaged: what stands from byte {at} on is not what was written, and updates come "
                f"behind it: take a copy of it and of {path}, or build it again"
            )
        place = rest.find(begin, place + 1)
