"""Updates as the log of a file of pages has them: how one is written, read and looked for.

::

    40 bytes   "update", generation, its number, pages, pages of the file, checksum of this,
               of the numbers and of the pages' own checksums
    4 bytes    for each page: its number
    PAGE bytes for each page: it, with a checksum of its own
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.paged.cache import PAGE, checksum

_UPDATE = struct.Struct("<6sxxQQIQ")
_CRC = struct.Struct("<I")
UPDATE = _UPDATE.size + _CRC.size
MAGIC = b"update\0\0"
NUMBERS = 1024  # of pages that are read at once
PIECE = 1 << 20  # bytes that are looked through at once, some pages


class Head(NamedTuple):
    """What an update says at its beginning."""

    at: int  # where in the log
    update_number: int
    many: int  # pages
    total: int  # pages of the file

    @property
    def begin(self) -> int:
        """Returns where its first page begins."""
        return self.at + UPDATE + 4 * self.many

    @property
    def end(self) -> int:
        return self.begin + PAGE * self.many


class Update(NamedTuple):
    """An update that is whole."""

    head: Head
    pages: NDArray[np.int64]


def update_bytes(generation: int, update_number: int, total: int, pages: NDArray[np.int64], sums: bytes) -> bytes:
    """Returns what stands before the pages of an update; ``sums`` are their checksums."""
    head = _UPDATE.pack(MAGIC[:6], generation, update_number, len(pages), total)
    numbers = pages.astype(np.uint32).tobytes()
    return head + _CRC.pack(_sum(head, [numbers], sums)) + numbers


def _sum(head: bytes, numbers: list[bytes], sums: bytes | bytearray) -> int:
    known = zlib.crc32(head)
    for some in numbers:
        known = zlib.crc32(some, known)
    return zlib.crc32(sums, known)


def beginning(generation: int, update_number: int | None = None) -> bytes:
    """Returns the first bytes of an update of a generation, as far as they are known."""
    return MAGIC + struct.pack("<Q", generation) + (b"" if update_number is None else struct.pack("<Q", update_number))


def read_update(handle: int, generation: int, at: int, size: int) -> Update | None:
    """Reads an update at a place of a log of some size. None where none is whole there.

    Only as much is read as is whole, whatever the update says of itself.
    """
    data = os.pread(handle, UPDATE, at)
    if len(data) < UPDATE or not data.startswith(beginning(generation)):
        return None
    head = _head(data, at)
    if head.end > size:
        return None
    numbers: list[bytes] = []
    sums = bytearray()
    for first in range(0, head.many, NUMBERS):
        some = os.pread(handle, 4 * min(NUMBERS, head.many - first), at + UPDATE + 4 * first)
        for i, (page,) in enumerate(_CRC.iter_unpack(some[: len(some) // 4 * 4])):
            own = os.pread(handle, PAGE, head.begin + PAGE * (first + i))
            if len(own) < PAGE or checksum(own, page) != _CRC.unpack_from(own)[0]:
                return None
            sums += own[:4]
        numbers.append(some)
    if len(sums) < 4 * head.many or _CRC.unpack_from(data, _UPDATE.size)[0] != _sum(
        data[: _UPDATE.size], numbers, sums
    ):
        return None
    return Update(head, np.frombuffer(b"".join(numbers), np.uint32).astype(np.int64))


def _head(data: bytes, at: int) -> Head:
    _, _, update_number, many, total = _UPDATE.unpack_from(data)
    return Head(at, update_number, many, total)


def heads(handle: int, generation: int, at: int, size: int) -> Iterator[Head]:
    """Yields what begins as an update of a generation does, from some place of a log on.

    Whether it is whole is not looked at: each would name the pages behind it, so that reading
    them again for each could take the square of the size.
    """
    begin = beginning(generation)
    for place, piece in pieces(handle, at, size, UPDATE - 1):
        found = piece.find(begin)
        while 0 <= found <= len(piece) - UPDATE:
            yield _head(piece[found : found + UPDATE], place + found)
            found = piece.find(begin, found + 1)


def pieces(handle: int, at: int, size: int, more: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields the contents of a log from some place on, by pieces, and where each begins.

    Pieces that the system has not stored, as they are zero, are passed over: a file may seem to be
    much larger than the disk.

    more : bytes of the following piece that come with each
    """
    while at < size:
        at += (_stored(handle, at, size) - at) // PIECE * PIECE
        if at < size:
            yield at, os.pread(handle, min(PIECE + more, size - at), at)
        at += PIECE


def _stored(handle: int, at: int, size: int) -> int:
    """Returns where the next bytes are that the system has stored, as far as it tells."""
    where = getattr(os, "SEEK_DATA", None)
    if where is None:
        return at
    with suppress(OSError):
        return os.lseek(handle, at, where)
    return size
