"""Logs: a file with the updates that have come since the file beside it was written.

A saved matcher has a *journal*, a file of pages a *log*. Both are logs, with another *payload*::

    48 bytes   "colmatch log", format version, 16 bytes for what the log follows, number of the last
               update in that, checksum of these bytes
    records    24 bytes: length of the content, number of the update, checksum of the content,
               checksum of these bytes; the content; the 24 bytes once more

A record is one write, behind the last one. So a process that is killed leaves the beginning of one
record, and a power cut leaves zeros in it. That record was never finished, and is dropped:

- the log ends within the record;
- from some place in the record on, all is zero to the end of the log, which ends with the record,
  if its head is whole. No record ends with zeros;
- blocks in it are zero, if no content has so many zeros. The record's second head tells of the
  first one.

Anything else that is not as it was written is damage, and an error. Who writes a log holds a lock
on it, which goes with the process.
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
VERSION = 1
MAGIC = b"colmatch log".ljust(16, b"\0")
PIECE = 2**20  # bytes that are read at once
VECTOR_MOST = 1000  # pieces of one call of the system

_HEADER, _HEAD, _CHECKSUM = struct.Struct("<16sI16sQ"), struct.Struct("<QQI"), struct.Struct("<I")
HEADER, HEAD = _HEADER.size + _CHECKSUM.size, _HEAD.size + _CHECKSUM.size


class Head(NamedTuple):
    """What stands before and behind the content of a record."""

    length: int  # of the content
    number: int  # of the update
    checksum: int  # of the content, as its payload makes it


class Record(NamedTuple, Generic[T]):
    """A record that is whole, and where it ends."""

    number: int
    content: T
    end: int


class Payload(NamedTuple, Generic[T]):
    """What the records of a log have, and how errors name such a log.

    Attributes
    ----------
    noun, suffix : a word with an article; what its name has behind the name of the other file
    busy, unlocked : what is said if another writes it, and where nothing can be locked
    read : returns the content that begins at a place, None if it has not the checksum in the head
    hole : so many zeros in a row are in no content; 0 if any number may be
    """

    noun: str
    suffix: str
    busy: str
    unlocked: str
    read: Callable[[Log[T], Head, int], T | None]
    hole: int


class Damage(StoreError):
    """A log that is not as it was written: what is wrong, and in the message what to do as well."""

    def __init__(self, what: str, to_do: str = "") -> None:
        super().__init__(what + to_do)
        self.what = what


class Log(Generic[T]):
    """An open log.

    Attributes
    ----------
    target, path : the file that it belongs to, without links, and its own
    base, start : what it follows, and the number of the last update in that
    ends : where records end, by number, as far as who writes it needs to know
    """

    handle = -1  # until it has one: its finaliser asks

    def __init__(self, payload: Payload[T], target: str, handle: int = -1) -> None:
        self.payload, self.target, self.path = payload, target, target + payload.suffix
        self.handle = handle
        self.base, self.start = b"", 0
        self.ends: dict[int, int] = {}

    def close(self) -> None:
        handle, self.handle = self.handle, -1
        locks.close(handle)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():  # modules are gone then, and the system closes what is open
            self.close()

    @property
    def size(self) -> int:
        return os.fstat(self.handle).st_size

    # Reading

    def is_begun(self) -> bool:
        """Reads the header; says whether there is one: who made the log may have been killed.

        Raises StoreError: it is damaged, or of something else.
        """
        header, size = os.pread(self.handle, HEADER, 0), self.size
        begun, known, is_whole = header.rstrip(b"\0"), header[: len(MAGIC)], _is_whole(header, HEADER)
        if known == MAGIC and is_whole:
            _, version, self.base, self.start = _HEADER.unpack_from(header)
            if version != VERSION:
                raise StoreError(
                    f"{self.path} has format version {version}, this colmatch reads version {VERSION}: open the file with "
                    "the colmatch that wrote it, and save it there"
                )
            return True
        if len(begun) < HEADER and MAGIC.startswith(begun[: len(MAGIC)]) and self._is_zero(len(begun), size):
            return False
        if not begun and self._only_end(HEADER, size):  # it was to come with the first record
            return False
        was_log = known == MAGIC or not any(known) or self._head(HEADER) or self._head(size - HEAD)
        if was_log and not is_whole:
            raise Damage(
                f"{self.path} is damaged in its first {HEADER} bytes, so nothing says what its updates follow",
                f": copy it again, or {self._recover_it()}",
            )
        raise StoreError(f"{self.path} is not {self.payload.noun} of colmatch: move it away")

    def records(self) -> Iterator[Record[T]]:
        """Yields each record that is whole.

        Raises Damage: one is damaged; says which and where.
        """
        at, number, size = HEADER, self.start, self.size
        while (record := self.record(at, number, size)) is not None:
            number, at = record.number, record.end
            yield record

    def record(self, at: int, number: int, size: int) -> Record[T] | None:
        """Reads the record at a place of a log of some size. None if none was finished there.

        number : of the update before

        Raises Damage: it is damaged.
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
        """Returns the head at a place, None if none is whole there."""
        data = os.pread(self.handle, HEAD, max(at, 0))
        return Head(*_HEAD.unpack_from(data)) if _is_whole(data, HEAD) else None

    def _only_end(self, at: int, size: int) -> Head | None:
        """Returns the head behind the record at a place, if the one before it is zero alone.

        That is so where the log ends with the record, and the record may have holes.
        """
        head = self._head(size - HEAD)
        is_own = head is not None and head.length == size - at - 2 * HEAD
        return head if is_own and self.payload.hole and self._is_zero(at, at + HEAD) else None

    def _is_zero(self, at: int, end: int) -> bool:
        """Says whether all is zero from one place to another.

        What the system has not stored is not read: a file may seem larger than the disk.
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
        """Says whether more zeros stand together between two places than any content has."""
        zeros = bytes(self.payload.hole)
        return bool(zeros) and any(
            zeros in os.pread(self.handle, min(PIECE + len(zeros), end - at), at) for at in range(begin, end, PIECE)
        )

    def _recover_it(self) -> str:
        return f"`colmatch recover {self.target}` goes on with the updates before that"

    # Writing

    def header(self) -> bytes:
        """Returns the first bytes of the log, by what it follows."""
        return _sealed(_HEADER.pack(MAGIC, VERSION, self.base, self.start))

    def append(
        self, at: int, number: int, content: list[Any], checksum: int, sync: Callable[[int], None] | None = None
    ) -> int:
        """Writes a record at a place, and nothing behind it. Returns where the record ends.

        The first record comes with the header. What cannot be written, or put on the disk by
        ``sync``, is cut off.
        """
        head = _sealed(_HEAD.pack(sum(map(len, content)), number, checksum))
        parts = [head, *content, head]
        if self.size > at:  # what is left of an update that failed
            os.ftruncate(self.handle, at)
        try:
            end = write(self.handle, [self.header(), *parts], 0) if at == HEADER else write(self.handle, parts, at)
            if sync is not None:
                sync(self.handle)
        except BaseException:
            os.ftruncate(self.handle, at)
            raise
        return end


def locked(payload: Payload[T], target: str) -> Log[T]:
    """Opens the log of a file, which has no links, with the right to change both.

    Raises
    ------
    StoreError : another has that right
    OSError : as from ``open``
    """
    while True:
        log = Log(payload, target, open_beside(target + payload.suffix, target, payload.noun, to_write=True))
        has = lock(log.handle)
        if not has:
            said, holder = payload.unlocked if has is None else payload.busy, _holder(os.fstat(log.handle))
            log.close()
            raise StoreError(said.format(path=log.path, target=target, holder=holder))
        if is_there(log.path, log.handle):
            keep_like(log.handle, target)
            return log
        log.close()  # who had it has removed it


def _holder(status: os.stat_result) -> str:
    """Returns who has the lock of a file, as far as the system tells."""
    with suppress(OSError, ValueError), open("/proc/locks") as held:
        for line in held:
            # 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{status.st_ino}"):
                return "this process" if int(words[4]) == os.getpid() else f"process {words[4]}"
    return "another process"


def write(handle: int, parts: list[Any], at: int) -> int:
    """Writes all of some bytes, in one call if the system takes it so. Returns where they end."""
    for begin in range(0, len(parts), VECTOR_MOST):
        some = parts[begin : begin + VECTOR_MOST]
        end = at + sum(map(len, some))
        at += os.pwritev(handle, some, at)
        while at < end:  # the disk is full, or there was a signal
            at += os.pwrite(handle, memoryview(b"".join(some))[at - end :], at)
    return at


def _sealed(data: bytes) -> bytes:
    return data + _CHECKSUM.pack(zlib.crc32(data))


def _is_whole(data: bytes, size: int) -> bool:
    return len(data) == size and data == _sealed(data[: -_CHECKSUM.size])
