"""The journal beside a saved matcher, which has each update since it was saved.

A saved file names the save before it, which the journal followed. So a process may be killed before
or after the journal follows the new save. Numbers identify the records that are in the file
already. A journal changes only under its lock, and the next one is locked before it has the name.
``log.py`` describes the contents.
"""

from __future__ import annotations

import logging
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from colmatch.errors import OptionError, StoreError
from colmatch.kernels import _forks
from colmatch.store import locks
from colmatch.store.log import HEADER, PIECE, Head, Log, Payload, open_locked, write
from colmatch.store.replacing import is_there, replacing, sync_folder
from colmatch.updates.mutex import FairMutex

_log = logging.getLogger("colmatch")


def _read_content(log: Log[bytes], head: Head, begin: int) -> bytes | None:
    content = b""
    while more := os.pread(log.handle, head.length - len(content), begin + len(content)):
        content += more  # one read suffices for up to 2 GB
    return content if zlib.crc32(content) == head.checksum else None


JOURNAL = Payload(
    noun="a journal",
    suffix=".journal",
    busy="{path} is being written by {holder}: one process at a time makes updates; without journal=True the last save "
    "is opened",
    unlocked="{path} cannot be locked on this system: open the matcher without a journal",
    read=_read_content,
    hole=0,
)


class Journal:
    """The journal of a saved matcher, held by its only writer.

    Attributes
    ----------
    target : the saved file
    path : the journal
    saving : held while the matcher is saved to its own file
    """

    def __init__(self, target: str, fsync: bool) -> None:
        """Opens and locks the journal of a saved file, and makes a missing one.

        Raises
        ------
        StoreError : another writer has it, or it is no journal
        OSError : as from ``open``
        """
        self.target = os.path.realpath(target)
        self.fsync = fsync
        self.saving = FairMutex()
        self._file: Log[bytes] | None = open_locked(JOURNAL, self.target)
        self._coming: Log[bytes] | None = None
        self.path = self._file.path
        self._owner = os.getpid()
        self._saved = b"", 0
        _forks.renew_in_child(self)

    def in_child(self) -> None:
        self.close()  # the journal is the parent's

    @property
    def is_open(self) -> bool:
        return self._file is not None

    # Reading

    def follow(self, hash: str, folded: str | None, updates: int) -> None:
        """Checks that the journal belongs to a save, or begins it if it has no updates.

        hash, updates : content hash of the file, and number of updates in it
        folded : the save that the journal followed when this save was made

        Raises StoreError: the journal has updates of another save, or is damaged.
        """
        log = self._current()
        goes_on = fits(log, hash, folded, updates)
        self._saved = bytes.fromhex(hash), updates
        if not goes_on:
            self._begin(log)

    def _begin(self, log: Log[bytes]) -> None:
        """Empties the journal, which then follows the current save."""
        log.base, log.start = self._saved
        os.ftruncate(log.handle, 0)
        write(log.handle, [log.header()], 0)
        os.fsync(log.handle)
        sync_folder(os.path.dirname(self.path))

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yields number and content of each record that is not in the saved file.

        An unfinished record at the end is cut off, and the next one is written there.

        Raises StoreError: a record is damaged; the message says which and where.
        """
        log = self._current()
        number, end = log.start, HEADER
        for record in log.records():
            number, end = record.number, record.end
            if number > self._saved[1]:
                yield number, record.content
        if number < self._saved[1]:  # a power cut took records that the file has
            self._begin(log)
            number, end = log.start, HEADER
        elif log.size > end:
            _log.warning("%s: an unfinished update of %d bytes at byte %d is dropped", self.path, log.size - end, end)
            os.ftruncate(log.handle, end)
        log.ends = {number: end}

    # Writing

    def append(self, before: int, record: bytes) -> None:
        """Writes the record of the update that follows update number ``before``.

        If an update was recorded but never published, its record is overwritten.

        Raises
        ------
        StoreError : the record cannot be written; the journal is as it was
        OptionError : the journal is closed, or belongs to the parent process
        """
        log = self._current()
        begin = log.ends[before]
        try:
            end = log.append(begin, before + 1, [record], zlib.crc32(record), sync if self.fsync else None)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written ({error.strerror}): nothing was changed; see that there is room, and "
                "do it again"
            ) from error
        log.ends = {before: begin, before + 1: end}

    def mark(self, number: int) -> tuple[str, int]:
        """Returns the save that the journal follows, and the end of an update's record."""
        log = self._current()
        return log.base.hex(), log.ends[number]

    def follow_next(self, hash: str, updates: int, begin: int, number: int) -> None:
        """Makes the journal follow a new save of the file, with the updates that came since.

        hash, updates : content hash of the file, and number of updates in it
        begin : end of the record of the last of these updates
        number : of the last published update
        """
        log = self._current()
        end = log.ends[number]
        with replacing(self.path) as new:
            coming = Log(JOURNAL, self.target)
            coming.base, coming.start, coming.ends = bytes.fromhex(hash), updates, {number: HEADER + end - begin}
            new.write(coming.header())
            at = begin
            while at < end:
                at += new.write(os.pread(log.handle, min(PIECE, end - at), at))
            new.flush()
            coming.handle = locks.duplicate(new.fileno())
            self._coming = coming
        self._current()

    def _current(self) -> Log[bytes]:
        """Returns the log with this name: the new one once it has the name, even after an error."""
        log, coming = self._file, self._coming
        if self._owner != os.getpid():
            raise OptionError(
                f"the journal {self.path} belongs to the parent process: make updates there, or in a matcher that is "
                "opened without it"
            )
        if log is None:
            raise OptionError("the matcher is closed and takes no updates any more: open it again")
        if coming is not None:
            if is_there(self.path, coming.handle):
                self._file = log = coming
            self._coming = None
        if not is_there(self.path, log.handle):
            raise StoreError(
                f"{self.path} was removed or replaced by somebody: no update is made; save the matcher under another "
                "name, and open that"
            )
        return log

    # Ending

    def close(self) -> None:
        """Closes the file, and releases its lock."""
        log, coming, self._file, self._coming = self._file, self._coming, None, None
        for one in (log, coming):
            if one is not None:
                one.close()

    def stats(self, updates: int) -> dict[str, Any] | None:
        """Returns the path, the number of records and the bytes. None if the journal is closed."""
        log = self._file
        if log is None:
            return None
        return {"path": self.path, "records": updates - log.start, "bytes": max(log.ends.values())}


def fits(log: Log[bytes], hash: str, folded: str | None, updates: int) -> bool:
    """Checks whether a journal goes on from a save. A journal that does not has no updates.

    hash, folded, updates : as for ``Journal.follow``

    Raises StoreError: the journal has updates of another save, or is damaged.
    """
    begun, base = log.read_header(), log.base.hex()
    goes_on = begun and base in (hash, folded) and (base != hash or log.start == updates)
    if begun and not goes_on and next(log.records(), None) is not None:
        raise StoreError(
            f"{log.path} belongs to another save than {log.target}, and has updates: put the file back that it belongs "
            "to, or move the journal away to go on without its updates"
        )
    return goes_on


@contextmanager
def lock_journal(target: str) -> Iterator[None]:
    """Takes the right to replace a file by a save that ignores its journal.

    Nobody can open the journal during that time, and it is removed at the end.

    Raises StoreError: another writer has the journal, or it has updates or is no journal.
    """
    target = os.path.realpath(target)
    try:
        there = os.lstat(target + JOURNAL.suffix).st_mode
    except OSError:
        there = 0
    if not (stat.S_ISREG(there) or stat.S_ISLNK(there)):
        yield
        return
    with closing(open_locked(JOURNAL, target)) as log:
        if log.read_header() and next(log.records(), None) is not None:
            raise StoreError(
                f"{log.path} has updates, which would be lost: open {target} with journal=True and save that, or move "
                "the journal away"
            )
        yield
        os.unlink(log.path)


def sync(handle: int) -> None:
    """Waits until the written bytes are on the disk."""
    getattr(os, "fdatasync", os.fsync)(handle)
