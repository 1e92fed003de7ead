"""The journal beside a saved matcher, which has each update since it was saved.

A save names the save that the journal followed until then. So it does not matter whether a process
is killed before the journal follows the new save or after: records that are in the file already are
known by their numbers.

Who writes a journal holds a lock on it, which goes with the process. A file changes only under the
lock, and the next one is locked before it has the name. ``journal_file.py`` says what stands in it.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from colmatch.errors import OptionError, StoreError
from colmatch.kernels import _forks
from colmatch.store import locks
from colmatch.store.beside import keep_like, open_beside
from colmatch.store.journal_file import (
    HEADER,
    PIECE,
    SUFFIX,
    JournalFile,
    header_of,
    is_begun,
    record_of,
    records_of,
    sync,
    write,
)
from colmatch.store.locks import lock
from colmatch.store.replacing import is_there, replacing, sync_folder
from colmatch.updates.mutex import FairMutex

_log = logging.getLogger("colmatch")


class Journal:
    """The journal of a saved matcher, in the hand of its only writer.

    Attributes
    ----------
    target : the saved file
    path : the journal
    saving : held by who saves the matcher to its own file
    """

    def __init__(self, target: str, fsync: bool) -> None:
        """Opens and locks the journal of a saved file; makes one if there is none.

        Raises
        ------
        StoreError : another one writes it, or it is none
        OSError : as from ``open``
        """
        self.target = os.path.realpath(target)
        self.path = self.target + SUFFIX
        self.fsync = fsync
        self.saving = FairMutex()
        self._file: JournalFile | None = locked_journal(self.path, self.target)
        self._coming: JournalFile | None = None
        self._owner = os.getpid()
        self._saved = "", 0
        _forks.renewed(self)

    def in_child(self) -> None:
        self.close()  # the journal is the parent's

    @property
    def is_open(self) -> bool:
        return self._file is not None

    # Reading

    def follow(self, hash: str, folded: str | None, updates: int) -> None:
        """Checks that the journal belongs to a save, and begins it if it has nothing to say.

        hash, updates : content hash of the file, and how many updates are in it
        folded : the save that the journal followed when this one was made

        Raises StoreError: it belongs to another save, or it is damaged.
        """
        file = self._current()
        goes_on = fits(file, self.path, self.target, hash, folded, updates)
        self._saved = hash, updates
        if not goes_on:
            self._begin(file)

    def _begin(self, file: JournalFile) -> None:
        """Makes an empty journal of the file, which follows the save that there is."""
        os.ftruncate(file.handle, 0)
        write(file.handle, header_of(*self._saved), 0)
        os.fsync(file.handle)
        sync_folder(os.path.dirname(self.path))
        file.base, file.start = self._saved

    def records(self) -> Iterator[tuple[int, bytes]]:
        """Yields number and content of each record that is not in the saved file.

        An unfinished one at the end is cut off, and what comes then is written there.

        Raises StoreError: a record is damaged; says which and where.
        """
        file = self._current()
        number, end = file.start, HEADER
        for own, record, behind in records_of(file, self.path):
            number, end = own, behind
            if number > self._saved[1]:
                yield number, record
        size = os.fstat(file.handle).st_size
        if number < self._saved[1]:  # a power cut took records that the file has
            self._begin(file)
            number, end = file.start, HEADER
        elif size > end:
            _log.warning("%s: an unfinished update of %d bytes at byte %d is dropped", self.path, size - end, end)
            os.ftruncate(file.handle, end)
        file.ends = {number: end}

    # Writing

    def append(self, before: int, record: bytes) -> None:
        """Writes the record of the update that follows the one of number ``before``.

        An update that was not published after its record was written is written over.

        Raises
        ------
        StoreError : it cannot be written; the journal is as it was
        OptionError : the journal is closed, or is the parent process's
        """
        file = self._current()
        begin = file.ends[before]
        whole = record_of(before + 1, record)
        try:
            if before + 1 in file.ends:
                os.ftruncate(file.handle, begin)
            file.ends = {before: begin, before + 1: begin + len(whole)}
            try:
                write(file.handle, whole, begin)
                if self.fsync:
                    sync(file.handle)
            except BaseException:
                os.ftruncate(file.handle, begin)
                raise
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written ({error.strerror}): nothing was changed; see that there is room, and "
                "do it again"
            ) from error

    def mark(self, number: int) -> tuple[str, int]:
        """Returns the save that the journal follows, and where the record of an update ends."""
        file = self._current()
        return file.base, file.ends[number]

    def follow_next(self, hash: str, updates: int, begin: int, number: int) -> None:
        """Goes on behind a new save of the file, with the updates that came since.

        hash, updates : content hash of the file, and how many updates are in it
        begin : where the record of the last of these ends
        number : of the last update that was published
        """
        file = self._current()
        end = file.ends[number]
        with replacing(self.path) as new:
            new.write(header_of(hash, updates))
            at = begin
            while at < end:
                at += new.write(os.pread(file.handle, min(PIECE, end - at), at))
            new.flush()
            coming = JournalFile(locks.copied(new.fileno()))
            coming.base, coming.start, coming.ends = hash, updates, {number: HEADER + end - begin}
            self._coming = coming
        self._current()

    def _current(self) -> JournalFile:
        """Returns the file of this name: a new one if it got the name, whatever happened then."""
        file, coming = self._file, self._coming
        if self._owner != os.getpid():
            raise OptionError(
                f"the journal {self.path} is the parent process's: updates are to be made there, or in a matcher that "
                "is opened without it"
            )
        if file is None:
            raise OptionError("the matcher is closed and takes no updates any more: open it again")
        if coming is not None:
            if is_there(self.path, coming.handle):
                self._file = file = coming
            self._coming = None
        if not is_there(self.path, file.handle):
            raise StoreError(
                f"{self.path} was removed or replaced by somebody: no update is made; save the matcher under another "
                "name, and open that"
            )
        return file

    # Ending

    def close(self) -> None:
        """Lets go of the file and its lock."""
        file, coming, self._file, self._coming = self._file, self._coming, None, None
        for one in (file, coming):
            if one is not None:
                one.close()

    def stats(self, updates: int) -> dict[str, Any] | None:
        """Returns where it is, how many records it has and their bytes; None if it is closed."""
        file = self._file
        if file is None:
            return None
        return {"path": self.path, "records": updates - file.start, "bytes": max(file.ends.values())}


def fits(file: JournalFile, path: str, target: str, hash: str, folded: str | None, updates: int) -> bool:
    """Says whether a journal goes on from a save; it may have nothing to say.

    hash, folded, updates : as for ``Journal.follow``

    Raises StoreError: it belongs to another save, or it is damaged.
    """
    begun = is_begun(file, path)
    goes_on = begun and file.base in (hash, folded) and (file.base != hash or file.start == updates)
    if begun and not goes_on and next(records_of(file, path), None) is not None:
        raise StoreError(
            f"{path} belongs to another save than {target}, and has updates: put the file back that it belongs to, or "
            "move the journal away to go on without its updates"
        )
    return goes_on


@contextmanager
def unjournalled(target: str) -> Iterator[None]:
    """Sees that a file may be replaced by a save that knows nothing of its journal.

    Nobody can open the journal meanwhile, and it is removed at the end.

    Raises StoreError: somebody writes the journal, or it has updates or is none.
    """
    path = os.path.realpath(target) + SUFFIX
    try:
        there = os.lstat(path).st_mode
    except OSError:
        there = 0
    if not (stat.S_ISREG(there) or stat.S_ISLNK(there)):
        yield
        return
    file = locked_journal(path, target)
    try:
        if is_begun(file, path) and next(records_of(file, path), None) is not None:
            raise StoreError(
                f"{path} has updates, which would be lost: open {target} with journal=True and save that, or move the "
                "journal away"
            )
        yield
        os.unlink(path)
    finally:
        file.close()


def locked_journal(path: str, target: str) -> JournalFile:
    while True:
        file = JournalFile(open_beside(path, target, "a journal", to_write=True))
        locked = lock(file.handle)
        if locked is None:
            raise StoreError(f"{path} cannot be locked on this system: open the matcher without a journal")
        if not locked:
            raise StoreError(
                f"{path} is being written by {_holder(os.fstat(file.handle))}: one process at a time makes updates; without "
                "journal=True the last save is opened"
            )
        if is_there(path, file.handle):
            keep_like(file.handle, target)
            return file
        file.close()


def _holder(status: os.stat_result) -> str:
    """Returns who has the lock of a file, as far as the system tells."""
    with suppress(OSError, ValueError), open("/proc/locks") as locks:
        for line in locks:
            # 1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{status.st_ino}"):
                return "this process" if int(words[4]) == os.getpid() else f"process {words[4]}"
    return "another process"
