"""The log beside a file of pages: what updates have made of pages, until it is copied there.

::

    32 bytes   "colmatch log", generation of the file that it follows, checksum
    updates    as ``logged.py`` says, whose numbers follow each other

An update is there when all of it is. What comes behind the first that is not was never finished, or
is damage (``unfinished.py``).
"""

from __future__ import annotations

import os
import struct
import zlib

from colmatch.errors import StoreError
from colmatch.paged.cache import write_error
from colmatch.paged.header import FIRST_PAGE, State
from colmatch.paged.logged import Update, heads, read_update
from colmatch.paged.unfinished import damage
from colmatch.store import locks
from colmatch.store.beside import keep_like, open_beside
from colmatch.store.locks import lock
from colmatch.store.replacing import is_there

_CRC = struct.Struct("<I")
BEGIN = 32
VECTOR_MOST = 1000  # pieces of one call of the system
MAGIC = b"colmatch log"
NOUN = "a log"


def log_path(path: str) -> str:
    """Returns the name of the log of a file."""
    return path + ".log"


def locked_log(path: str) -> int:
    """Opens the log of a file with the right to change both, which goes when it is closed.

    Raises StoreError: another has that right, or nothing can be written there.
    """
    while True:
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
        if is_there(log_path(path), handle):
            keep_like(handle, path)
            return handle
        locks.close(handle)  # who had it has removed it


def begin_bytes(generation: int) -> bytes:
    """Returns the first bytes of a log."""
    head = MAGIC + struct.pack("<Q", generation)
    return (head + _CRC.pack(zlib.crc32(head))).ljust(BEGIN, b"\0")


def generation_of(path: str, handle: int, known: State) -> int:
    """Returns the generation of a log, -1 for one that was not begun.

    known : the state of the file without its log

    Raises StoreError: it is damaged, or no log.
    """
    head = os.pread(handle, BEGIN, 0)
    if len(head) < BEGIN and MAGIC.startswith(head[: len(MAGIC)].rstrip(b"\0")):
        return -1
    if (generation := begun_generation(head)) is not None:
        return generation
    if not any(head) and not _has_updates(handle, known):
        return -1
    raise StoreError(
        f"{log_path(path)} is damaged, or no log: its first {BEGIN} bytes are not what was written; {recover_it(path)}, "
        "or move it away if it is no log"
    )


def _has_updates(handle: int, known: State) -> bool:
    """Says whether a log without a beginning has more than one update that was not finished."""
    size = os.fstat(handle).st_size
    newer = heads(handle, known.generation + 1, BEGIN, size)  # behind a header that is damaged, too
    return (
        read_update(handle, known.generation, BEGIN, size) is not None
        or damage(handle, known, BEGIN, size) is not None
        or next(newer, None) is not None
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


def write_at(handle: int, at: int, parts: list[memoryview]) -> int:
    """Writes all of something, with nothing behind it. Returns where it ends."""
    if os.fstat(handle).st_size > at:  # what is left of an update that failed
        os.ftruncate(handle, at)
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


def next_update(path: str, handle: int, known: State, at: int, size: int) -> Update | None:
    """Reads the update at a place of a log. None where none is finished there.

    known : the state before that update

    Raises StoreError: the log is damaged, there or behind.
    """
    update = read_update(handle, known.generation, at, size)
    if update is None or update.head.update_number != known.update_number + 1:
        # of another size by now, it is being written
        if damage(handle, known, at, size) is not None and os.fstat(handle).st_size == size:
            raise StoreError(
                f"{log_path(path)} is damaged: what stands from byte {at} on is not what was written, and more than "
                f"the last update: {recover_it(path)}, or copy it again"
            )
        return None
    numbers, total = update.pages, update.head.total
    if total > known.pages + len(numbers) or (numbers < FIRST_PAGE).any() or (numbers >= total).any():
        raise StoreError(
            f"{log_path(path)} is damaged: the update at byte {at} has pages that the file cannot have: copy both again"
        )
    return update
