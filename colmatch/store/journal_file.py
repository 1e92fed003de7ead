"""The file of a journal: what stands where, and how it is read.

::

    48 bytes   "colmatch journal", format version, content hash of the save that it follows, number
               of that save's last update, checksum of these bytes
    records    24 bytes: length, number, checksum of what follows, checksum of these bytes;
               as many bytes as that; "finished"

A record is there when it is there to the end. One that is cut short, or is zero from some place on
to the end of the file as after a power cut, is of an update that was not finished, and is dropped:
no record ends with zeros. Whatever else is not as it was written is damage, and an error.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator

from colmatch.errors import StoreError
from colmatch.store import locks

VERSION = 2
SUFFIX = ".journal"

_MAGIC = b"colmatch journal"
_HEADER = struct.Struct("<16sI16sQ")
_RECORD = struct.Struct("<QQI")
_CHECKSUM = struct.Struct("<I")
HEADER, RECORD = _HEADER.size + _CHECKSUM.size, _RECORD.size + _CHECKSUM.size
FINISHED = b"finished"
PIECE = 2**20  # bytes that are read at once


class JournalFile:
    """An open, locked journal.

    Attributes
    ----------
    base, start : the save that it follows, and the number of its last update
    ends : where the record of an update ends, by its number: of the last that was published, and of
        the one that is being written
    """

    handle = -1  # until it has one: its finaliser asks

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.base, self.start = "", 0
        self.ends: dict[int, int] = {}

    def close(self) -> None:
        handle, self.handle = self.handle, -1
        if handle >= 0:
            locks.close(handle)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():  # modules are gone then, and the system closes what is open
            self.close()


def header_of(base: str, start: int) -> bytes:
    """Returns the first bytes of a journal."""
    header = _HEADER.pack(_MAGIC, VERSION, bytes.fromhex(base), start)
    return header + _CHECKSUM.pack(zlib.crc32(header))


def is_begun(file: JournalFile, path: str) -> bool:
    """Reads the header; says whether there is one: whoever made the file may have been killed.

    Raises StoreError: it is damaged, or of something else.
    """
    header = os.pread(file.handle, HEADER, 0)
    known = header[: len(_MAGIC)]
    if len(header) == HEADER and zlib.crc32(header[: _HEADER.size]) == _CHECKSUM.unpack_from(header, _HEADER.size)[0]:
        magic, version, base, file.start = _HEADER.unpack_from(header)
        if magic == _MAGIC and version == VERSION:
            file.base = base.hex()
            return True
        if magic == _MAGIC:
            raise StoreError(
                f"{path} has format version {version}, this colmatch reads version {VERSION}: open the file with the "
                "colmatch that wrote it, and save it there"
            )
    elif _end_of_content(file.handle) < HEADER and _MAGIC.startswith(known.rstrip(b"\0")):
        return False
    elif known == _MAGIC or not any(known) or later_records(file, 0):
        raise StoreError(
            f"{path} is damaged in its first {HEADER} bytes, so nothing says which save its updates follow: copy it "
            f"again, or {recover_it(path)}"
        )
    raise StoreError(f"{path} is not a journal of colmatch: move it away")


def records_of(file: JournalFile, path: str) -> Iterator[tuple[int, bytes, int]]:
    """Yields number, content and end of each record that is whole.

    Raises StoreError: a record is damaged; says which and where.
    """
    handle, at, number = file.handle, HEADER, file.start
    size = os.fstat(handle).st_size

    def damaged(what: str) -> StoreError:
        return StoreError(
            f"{path} is damaged: {what} of record {number - file.start + 1}, at byte {at} of {size}; copy it again, "
            f"or {recover_it(path)}, which are {number - file.start}"
        )

    while at + RECORD <= size:
        head = _read(handle, RECORD, at)
        length, own, checksum = _RECORD.unpack_from(head)
        if zlib.crc32(head[: _RECORD.size]) != _CHECKSUM.unpack_from(head, _RECORD.size)[0]:
            if _end_of_content(handle) < at + RECORD:
                return
            raise damaged("the head")
        end = at + RECORD + length + len(FINISHED)
        if end > size:
            return
        record = _read(handle, length, at + RECORD)
        if zlib.crc32(record) != checksum:
            if _end_of_content(handle) <= end - len(FINISHED):
                return
            raise damaged("the content")
        if own != number + 1:
            raise damaged(f"the number {own}")
        number, at = own, end
        yield number, record, end


def recover_it(path: str) -> str:
    """Returns the words of an error that say how to go on without the damaged part."""
    return f"`colmatch recover {path.removesuffix(SUFFIX)}` goes on with the updates before that"


def later_records(file: JournalFile, at: int) -> list[tuple[int, int, int]]:
    """Returns number, begin and end of all records behind some place whose heads are whole.

    Such a record is looked for behind the end of another one, or behind the head of the journal.
    """
    rest = _read(file.handle, os.fstat(file.handle).st_size - at, at)
    place, found = HEADER - at if at < HEADER else rest.find(FINISHED) + len(FINISHED), []
    while place >= len(FINISHED):
        head = rest[place : place + RECORD]
        if len(head) == RECORD and zlib.crc32(head[: _RECORD.size]) == _CHECKSUM.unpack_from(head, _RECORD.size)[0]:
            length, number, _ = _RECORD.unpack_from(head)
            found.append((int(number), at + place, at + place + RECORD + length + len(FINISHED)))
        place = rest.find(FINISHED, place) + len(FINISHED)
    return found


def _end_of_content(handle: int) -> int:
    """Returns where the zeros begin that a file ends with."""
    size = os.fstat(handle).st_size
    while size:
        begin = max(size - PIECE, 0)
        left = _read(handle, size - begin, begin).rstrip(b"\0")
        if left:
            return begin + len(left)
        size = begin
    return 0


def _read(handle: int, size: int, at: int) -> bytes:
    """Returns so many bytes, which are there."""
    read = os.pread(handle, size, at)
    while len(read) < size:  # a system reads no more than 2 GB at once
        more = os.pread(handle, size - len(read), at + len(read))
        if not more:
            raise StoreError("the journal has become shorter while it was read: only its writer may change it")
        read += more
    return read


def record_of(number: int, content: bytes) -> bytes:
    """Returns a record as it is written."""
    head = _RECORD.pack(len(content), number, zlib.crc32(content))
    return b"".join([head, _CHECKSUM.pack(zlib.crc32(head)), content, FINISHED])


def write(handle: int, data: bytes, at: int) -> None:
    """Writes all of it, in one call where the system takes it so."""
    written = os.pwrite(handle, data, at)
    while written < len(data):
        written += os.pwrite(handle, memoryview(data)[written:], at + written)


def sync(handle: int) -> None:
    """Returns when what was written is on the disk."""
    getattr(os, "fdatasync", os.fsync)(handle)
