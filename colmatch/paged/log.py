"""The log of a file of pages: pages that updates have changed since the last checkpoint.

A record (``store/log.py``) has the pages of one update::

    8 bytes    number of pages of the file
    4 bytes    for each page: its number
    PAGE bytes for each page: its contents, with the number of the update and a checksum

The checksum of a record covers the first two parts and the checksums of the pages. It starts from
the generation of the file, so no record counts for another file.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.paged.cache import PAGE, checksum, write_error
from colmatch.store.log import Head, Log, Payload, open_locked

_TOTAL = struct.Struct("<Q")
NUMBERS = 1024  # of pages, read at once


class LoggedPages(NamedTuple):
    """The pages of an update in the log."""

    total: int  # pages of the file
    numbers: NDArray[np.int64]
    begin: int  # offset of the first of them


def first_part(generation: int, total: int, numbers: NDArray[np.int64], sums: bytes) -> tuple[bytes, int]:
    """Returns the bytes before the pages of an update, and the checksum of the record.

    sums : the checksums of the pages
    """
    first = _TOTAL.pack(total) + numbers.astype(np.uint32).tobytes()
    return first, zlib.crc32(sums, zlib.crc32(first, generation & 0xFFFFFFFF))


def _read_pages(log: Log[LoggedPages], head: Head, begin: int) -> LoggedPages | None:
    """Returns the pages of a record, None if they are not whole. Stops at the first fault."""
    many, odd = divmod(head.length - _TOTAL.size, 4 + PAGE)
    prefix = os.pread(log.handle, _TOTAL.size, begin)
    if odd or len(prefix) < _TOTAL.size:
        return None
    numbers, sums, first = bytearray(), bytearray(), begin + head.length - PAGE * many
    for i in range(many):
        if i % NUMBERS == 0:
            numbers += os.pread(log.handle, 4 * min(NUMBERS, many - i), begin + _TOTAL.size + 4 * i)
        own, number = os.pread(log.handle, PAGE, first + PAGE * i), int.from_bytes(numbers[4 * i : 4 * i + 4], "little")
        if len(own) < PAGE or own[:4] != checksum(own, number).to_bytes(4, "little"):
            return None
        sums += own[:4]
    (total,), pages = _TOTAL.unpack(prefix), np.frombuffer(numbers, np.uint32).astype(np.int64)
    is_whole = first_part(generation_of(log), total, pages, bytes(sums))[1] == head.checksum
    return LoggedPages(total, pages, first) if is_whole else None


PAGES = Payload(
    noun="a log",
    suffix=".log",
    busy="{target} is being changed by another process, or another matcher of this one: close that first",
    unlocked="{target} cannot be locked on this system: nothing was changed",
    read=_read_pages,
    hole=PAGE,  # no page is all zeros, since each has the number of its update
)


def open_log(path: str) -> Log[LoggedPages]:
    """Opens the log of a file, with the right to change both until the log is closed.

    Raises StoreError: another writer has that right, or nothing can be written there.
    """
    try:
        return open_locked(PAGES, path)
    except OSError as error:
        raise write_error(path, error) from error


def base_of(generation: int, update_number: int) -> tuple[bytes, int]:
    """Returns ``Log.base`` and ``Log.start`` for the log of a file in this state."""
    return generation.to_bytes(16, "little"), update_number


def generation_of(log: Log[LoggedPages]) -> int:
    """Returns the generation of the file that a log follows."""
    return int.from_bytes(log.base, "little")
