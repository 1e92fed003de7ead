"""The headers of a file of pages, its first two pages. The header of higher generation counts."""

from __future__ import annotations

import os
import struct
import zlib
from typing import NamedTuple

from colmatch.errors import StoreError
from colmatch.paged.cache import PAGE, make_damage_error

MAGIC = b"colmatch pages\n"
VERSION = 5
FIRST_PAGE = 2  # number of the first page behind the two headers
_HEADER = struct.Struct("<15sxIQQQ")  # magic, version, generation, update number, pages


class FileState(NamedTuple):
    """The state of a file after an update."""

    generation: int
    update_number: int  # of that update
    pages: int


def header_bytes(generation: int, update_number: int, pages: int) -> bytes:
    """Returns a header page with its checksum."""
    head = _HEADER.pack(MAGIC, VERSION, generation, update_number, pages).ljust(PAGE - 4, b"\0")
    return head + struct.pack("<I", zlib.crc32(head))


def headers(generation: int, update_number: int, pages: int) -> bytes:
    """Returns both headers of a new file: of this generation, and of the next one, which counts."""
    numbers = sorted((generation, generation + 1), key=lambda number: number % 2)
    return b"".join(header_bytes(number, update_number, pages) for number in numbers)


def is_pages(path: str) -> bool:
    """Checks by the first bytes of its headers whether a file is a file of pages."""
    try:
        if not os.path.isfile(path):
            return False  # reading from a pipe would wait for a writer
        with open(path, "rb") as file:
            first = file.read(len(MAGIC))
            file.seek(PAGE)
            return MAGIC in (first, file.read(len(MAGIC)))
    except OSError:
        return False  # opening it reports the reason


def read_header(handle: int, path: str) -> FileState:
    """Returns the state of an open file from the header that counts.

    Raises StoreError: neither header is whole, or it has another format, or names more pages than
    there are.
    """
    best: FileState | None = None
    for page in (0, 1):
        data = os.pread(handle, PAGE, page * PAGE)
        if len(data) == PAGE and zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0]:
            magic, version, *numbers = _HEADER.unpack_from(data)
            if magic == MAGIC and version != VERSION:
                raise StoreError(
                    f"{path} has pages of format {version}, this colmatch reads {VERSION}: build it again, or open it with "
                    "the colmatch that wrote it"
                )
            if magic == MAGIC and (best is None or numbers[0] > best.generation):
                best = FileState(*numbers)
    if best is None:
        raise StoreError(f"{path} is damaged, or no index: neither of its two headers is whole")
    there = os.fstat(handle).st_size // PAGE
    if not FIRST_PAGE < best.pages <= there or max(best) >> 63:  # the next numbers need room, too
        raise make_damage_error(path, min(best.pages, there))
    return best
