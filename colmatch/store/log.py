"""Logs: files with the updates that have come since another file was written.

A saved matcher has a *journal*, and a file of pages has a *log*. Both are logs, with different
*payloads*. A log follows a *base*: one save, or one checkpoint::

    48 bytes   "colmatch log", format version, 16 bytes for the base, number of the last update in
               the base, checksum of these bytes
    records    24 bytes: length of the content, number of the update, checksum of the content,
               checksum of these bytes; the content; the 24 bytes once more

A record is one write, behind the last one. So a killed process leaves the beginning of one record,
and a power cut leaves zeros in it. Such a record was never finished, and is dropped:

- the log ends within the record;
- zeros fill the log from some place in the record to the end. If the head of the record is whole,
  the log ends with the record. No record ends with zeros;
- blocks in the record are zero, and no content has so many zeros. If the first head is zero, the
  second one replaces it.

Any other change of the written bytes is damage, and an error. The writer of a log holds a lock on
it, which ends with the process.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

from colmatch.errors import StoreError
from colmatch.store import locks
from colmatch.store.beside import keep_like, open_beside
from colmatch.store.locks import lock
from colmatch.store.replacing import is_there

T = TypeVar("T")
VERSION = 3
MAGIC = b"colmatch log".ljust(16, b"\0")
PIECE = 2**20  # bytes read at once
VECTOR_MOST = 1000  # pieces in one system call

_HEADER, _HEAD, _CHECKSUM = struct.Struct("<16sI16sQ"), struct.Struct("<QQI"), struct.Struct("<I")
HEADER, HEAD = _HEADER.size + _CHECKSUM.size, _HEAD.size + _CHECKSUM.size


class Head(NamedTuple):
    """The head of a record, written before and behind its content."""

    length: int  # of the content
    number: int  # of the update
    checksum: int  # of the content, as the payload computes it


class Record(NamedTuple, Generic[T]):
    """A record that is whole, and where it ends."""

    number: int
    content: T
    end: int


class Payload(NamedTuple, Generic[T]):
    """The contents of the records of a log, and the words for such a log in errors.

    Attributes
    ----------
    noun, suffix : a word with an article; the end of the log's name, behind the other file's name
    busy, unlocked : error messages if another process writes it, and if nothing can be locked
    read : returns the content that begins at a place, None if the checksum in the head differs
    hole : number of zeros in a row that no content has, 0 if any number is possible
    """

    noun: str
    suffix: str
    busy: str
    unlocked: str
    read: Callable[[Log[T], Head, int], T | None]
    hole: int


class Damage(StoreError):
    """The damage of a log. The message names it, and also the remedy."""

    def __init__(self, what: str, to_do: str = "") -> None:
        super().__init__(what + to_do)
        self.what = what


class Log(Generic[T]):
    """An open log, to be read, or written by the holder of its lock.

    Attributes
    ----------
    target, path : the path of the file that the log belongs to, without links, and its own path
    base, start : the base of the log, and the number of the last update in it
    ends : the ends of records, by number, as far as the writer needs them
    """

    handle = -1  # until it has one, since its finaliser reads it

    def __init__(self, payload: Payload[T], target: str, handle: int = -1) -> None:
        self.payload, self.target, self.path = payload, target, target + payload.suffix
        self.handle = handle
        self.base, self.start = b"", 0
        self.ends: dict[int, int] = {}

    def close(self) -> None:
        handle, self.handle = self.handle, -1
        locks.close(handle)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():  # modules are gone then, and the system closes open files
            self.close()

    @property
    def size(self) -> int:
        return os.fstat(self.handle).st_size

    # Reading

    def read_header(self) -> bool:
        """Reads the header. Returns False if there is none, as after a kill of the first writer.

        Raises StoreError: the header is damaged, or of another kind or format version.
        """
        header, size = os.pread(self.handle, HEADER, 0), self.size
        begun, magic, is_whole = header.rstrip(b"\0"), header[: len(MAGIC)], _is_whole(header, HEADER)
        if magic == MAGIC and is_whole:
            _, version, self.base, self.start = _HEADER.unpack_from(header)
            if version != VERSION:
                raise StoreError(
                    f"{self.path} has format version {version}, this colmatch reads version {VERSION}: open the file with "
                    "the colmatch that wrote it, and save it there"
                )
            return True
        if len(begun) < HEADER and MAGIC.startswith(begun[: len(MAGIC)]) and self._is_zero(len(begun), size):
            return False
        if not begun and self._only_end(HEADER, size):  # it should have come with the first record
            return False
        was_log = magic == MAGIC or not any(magic) or self._head(HEADER) or self._head(size - HEAD)
        if was_log and not is_whole:
            raise Damage(
                f"{self.path} is damaged in its first {HEADER} bytes, so nothing says what its updates follow",
                f": copy it again, or {self._recover_it()}",
            )
        raise StoreError(f"{self.path} is not {self.payload.noun} of colmatch: move it away")

    def records(self) -> Iterator[Record[T]]:
        """Yields each whole record.

        Raises Damage: a record is damaged; the message says which and where.
        """
        at, number, size = HEADER, self.start, self.size
        while (record := self.record(at, number, size)) is not None:
            number, at = record.number, record.end
            yield record

    def record(self, at: int, number: int, size: int) -> Record[T] | None:
        """Reads the record at a place. Returns None if no record was finished there.

        number : of the update before
        size : of the log

        Raises Damage: the record is damaged.
        """

        def damage(what: str) -> Damage:
            before = number - self.start
            return Damage(
                f"{self.path} is damaged: {what} of record {before + 1}, at byte {at} of {size}",
                f"; copy it again, or {self._recover_it()}, which are {before}",
            )

        head = self._head(at)
        if head is None:
            begun = os.pread(self.handle, HEAD, at).rstrip(b"\0")
            if len(begun) < HEAD and self._is_zero(at + len(begun), size):
                return None
            last = self._only_end(at, size)
            if last is not None and last.number == number + 1:
                return None
            raise damage("the head")
        if head.number != number + 1:
            raise damage(f"the number {head.number}")
        begin, end = at + HEAD, at + 2 * HEAD + head.length
        if end > size:
            return None
        content = self.payload.read(self, head, begin)
        if content is not None:
            return Record(head.number, content, end)
        may_be_last = end == size or not self.payload.hole
        if may_be_last and (self._is_zero(end - HEAD, size) or self._has_hole(begin, end)):
            return None
        raise damage("the content")

    def _head(self, at: int) -> Head | None:
        """Returns the head at a place, None if it is not whole."""
        data = os.pread(self.handle, HEAD, max(at, 0))
        return Head(*_HEAD.unpack_from(data)) if _is_whole(data, HEAD) else None

    def _only_end(self, at: int, size: int) -> Head | None:
        """Returns the head behind the record at a place, if the head before it is all zeros.

        The log must end with the record, and its payload must make holes visible.
        """
        head = self._head(size - HEAD)
        is_own = head is not None and head.length == size - at - 2 * HEAD
        return head if is_own and self.payload.hole and self._is_zero(at, at + HEAD) else None

    def _is_zero(self, at: int, end: int) -> bool:
        """Checks whether all bytes from one place to another are zero.

        Holes that the system has not stored are skipped: a file may seem larger than the disk.
        """
        while at < end:
            try:
                at = max(at, os.lseek(self.handle, at, getattr(os, "SEEK_DATA", os.SEEK_SET)))
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return True
            if os.pread(self.handle, min(PIECE, max(end - at, 0)), at).rstrip(b"\0"):
                return False
            at += PIECE
        return True

    def _has_hole(self, begin: int, end: int) -> bool:
        """Checks whether there is a longer run of zeros between two places than in any content."""
        zeros = bytes(self.payload.hole)
        return bool(zeros) and any(
            zeros in os.pread(self.handle, min(PIECE + len(zeros), end - at), at) for at in range(begin, end, PIECE)
        )

    def _recover_it(self) -> str:
        return f"`colmatch recover {self.target}` goes on with the updates before that"

    # Writing

    def header(self) -> bytes:
        """Returns the header of the log."""
        return _add_checksum(_HEADER.pack(MAGIC, VERSION, self.base, self.start))

    def append(
        self, at: int, number: int, content: list[Any], checksum: int, sync: Callable[[int], None] | None = None
    ) -> int:
        """Writes a record at a place, and cuts the log there first. Returns the end of the record.

        The first record comes with the header. A record that cannot be written, or put on the disk
        by ``sync``, is cut off.
        """
        head = _add_checksum(_HEAD.pack(sum(map(len, content)), number, checksum))
        parts = [head, *content, head]
        if self.size > at:  # the rest of an update that failed
            os.ftruncate(self.handle, at)
        try:
            end = write(self.handle, [self.header(), *parts], 0) if at == HEADER else write(self.handle, parts, at)
            if sync is not None:
                sync(self.handle)
        except BaseException:
            os.ftruncate(self.handle, at)
            raise
        return end


def open_locked(payload: Payload[T], target: str) -> Log[T]:
    """Opens the log of a file with the right to change both. ``target`` has no links.

    Raises
    ------
    StoreError : another writer has that right, or the system has no locks
    OSError : as from ``open``
    """
    while True:
        log = Log(payload, target, open_beside(target + payload.suffix, target, payload.noun, to_write=True))
        has = lock(log.handle)
        if not has:
            message, holder = payload.unlocked if has is None else payload.busy, _find_holder(os.fstat(log.handle))
            log.close()
            raise StoreError(message.format(path=log.path, target=target, holder=holder))
        if is_there(log.path, log.handle):
            keep_like(log.handle, target)
            return log
        log.close()  # the last holder has removed it


def _find_holder(status: os.stat_result) -> str:
    """Returns a name for the holder of a file's lock, as far as the system shows it."""
    with suppress(OSError, ValueError), open("/proc/locks") as held:
        for line in held:
            # 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{status.st_ino}"):
                return "this process" if int(words[4]) == os.getpid() else f"process {words[4]}"
    return "another process"


def write(handle: int, parts: list[Any], at: int) -> int:
    """Writes all parts, in one system call if possible. Returns their end."""
    for begin in range(0, len(parts), VECTOR_MOST):
        group = parts[begin : begin + VECTOR_MOST]
        end = at + sum(map(len, group))
        at += os.pwritev(handle, group, at)
        while at < end:  # the disk is full, or there was a signal
            at += os.pwrite(handle, memoryview(b"".join(group))[at - end :], at)
    return at


def _add_checksum(data: bytes) -> bytes:
    return data + _CHECKSUM.pack(zlib.crc32(data))


def _is_whole(data: bytes, size: int) -> bool:
    return len(data) == size and data == _add_checksum(data[: -_CHECKSUM.size])
