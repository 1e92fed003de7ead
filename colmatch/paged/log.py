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
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.errors import StoreError
from colmatch.paged.cache import PAGE, checksum, write_error
from colmatch.paged.header import FIRST_PAGE
from colmatch.store import locks
from colmatch.store.beside import keep_like, open_beside
from colmatch.store.locks import lock
from colmatch.store.replacing import is_there

_UPDATE = struct.Struct("<6sxxQQIQ")
_CRC = struct.Struct("<I")
BEGIN = 32
UPDATE = _UPDATE.size + _CRC.size
VECTOR_MOST = 1000  # pieces of one call of the system
MAGIC, UPDATE_MAGIC = b"colmatch log", b"update"
NOUN = "a log"


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
            keep_like(handle, path)
            return handle
        locks.close(handle)  # who had it has removed it


def _locked(path: str) -> int:
    try:
        handle = open_beside(log_path(path), path, NOUN, to_write=True)
    except OSError as error:
        raise write_error(path, error) from error
    locked = lock(handle)
    if not locked:
        os.close(handle)
        if locked is None:
            raise StoreError(f"{path} cannot be locked on this system: nothing was changed")
        raise StoreError(
            f"{path} is being changed by another process, or another matcher of this one: close that first"
        )
    return handle


def open_log(path: str) -> int:
    """Opens the log of a file to read it.

    Raises
    ------
    StoreError : it is no file, or another user's
    OSError : as from ``open``
    """
    return open_beside(log_path(path), path, NOUN, to_write=False)


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
    if not any(head):
        size = os.fstat(handle).st_size
        if next(whole_updates(handle, None, BEGIN, size), None) is None:
            return -1
    elif len(head) < BEGIN and MAGIC.startswith(head[: len(MAGIC)].rstrip(b"\0")):
        return -1
    elif (generation := begun_generation(head)) is not None:
        return generation
    raise StoreError(
        f"{log_path(path)} is damaged, or no log: its first {BEGIN} bytes are not what was written; {recover_it(path)}, "
        "or move it away if it is no log"
    )


def begun_generation(head: bytes) -> int | None:
    """Returns the generation that the first bytes of a log name; None where they are damaged."""
    if len(head) < BEGIN or head[:12] != MAGIC:
        return None
    generation: int = struct.unpack_from("<Q", head, 12)[0]
    return generation if head == begin_bytes(generation) else None


def recover_it(path: str) -> str:
    """Returns what is to be done where a log is damaged."""
    return f"`colmatch recover {path}` goes on with what stands before the damage"


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


def whole_updates(handle: int, generation: int | None, at: int, size: int) -> Iterator[Update]:
    """Yields the updates that are whole from some place of a log on, wherever they begin.

    generation : that they are of, None for any
    """
    begin = UPDATE_MAGIC.ljust(8, b"\0") + (b"" if generation is None else struct.pack("<Q", generation))
    rest = os.pread(handle, max(size - at, 0), at)
    place = rest.find(begin)
    while place >= 0:
        own = rest[place + 8 : place + 16]
        update = read_update(handle, struct.unpack("<Q", own)[0], at + place, size) if len(own) == 8 else None
        if update is not None:
            yield update
        place = rest.find(begin, place + 1 if update is None else update.end - at)


def next_update(path: str, handle: int, generation: int, at: int, size: int, pages: int) -> Update | None:
    """Reads the update at a place of a log. None where none is finished there.

    pages : of the file, before that update

    Raises
    ------
    StoreError : the log is damaged, there or behind
    """
    update = read_update(handle, generation, at, size)
    if update is None:
        _check_end(path, handle, generation, at, size)
        return None
    numbers = update.pages
    if update.total > pages + len(numbers) or (numbers < FIRST_PAGE).any() or (numbers >= update.total).any():
        raise StoreError(
            f"{log_path(path)} is damaged: the update at byte {at} has pages that the file cannot have: copy both again"
        )
    return update


def _check_end(path: str, handle: int, generation: int, at: int, size: int) -> None:
    """Checks that no update stands behind one that is not whole: only the last can be unfinished.

    Raises
    ------
    StoreError : there is one, so the log is damaged
    """
    if next(whole_updates(handle, generation, at + 1, size), None) is not None:
        raise StoreError(
            f"{log_path(path)} is damaged: what stands from byte {at} on is not what was written, and updates come "
            f"behind it: {recover_it(path)}, or copy it again"
        )
