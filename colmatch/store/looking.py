"""Checks of a saved matcher and its journal, which read both as ``open`` does and change nothing.

They take no lock, so a writer may be changing the journal. An error counts only if it happens
again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import NamedTuple, TypeVar

from colmatch.errors import StoreError
from colmatch.store.beside import open_beside
from colmatch.store.file import content_hash, read_arrays
from colmatch.store.journal import JOURNAL, fits
from colmatch.store.log import Log
from colmatch.store.saved import file_name, load, replay

T = TypeVar("T")
TRIES = 3
BETWEEN = 0.1  # seconds


class UnsavedRecords(NamedTuple):
    """The updates of a journal that are not in the saved file beside it."""

    path: str
    records: int
    bytes: int  # of the journal


def find_unsaved(path: str) -> UnsavedRecords | None:
    """Returns the unsaved updates of the journal beside a saved matcher, None without a journal.

    Raises
    ------
    StoreError : the journal is damaged, or belongs to another save
    OSError : as from ``open``
    """
    return _look_again(path, lambda: _describe_unsaved(path, sum(1 for _ in _records(path))))


def check(path: str) -> UnsavedRecords | None:
    """Opens a saved matcher, and replays the updates of its journal, only in memory.

    Raises
    ------
    StoreError : the file or the journal is damaged, or they do not belong together
    OSError : as from ``open``
    """

    def done_again() -> UnsavedRecords | None:
        live = load(path)
        try:
            before = live.now.updates
            replay(live, _records(path, before), _journal_of(path))
            return _describe_unsaved(path, live.now.updates - before)
        finally:
            live.close()

    return _look_again(path, done_again)


def _look_again(path: str, look: Callable[[], T]) -> T:
    """Looks again after an error if there is a journal, which somebody may be writing."""
    for _ in range(TRIES - 1 if os.path.lexists(_journal_of(path)) else 0):
        with suppress(StoreError):
            return look()
        time.sleep(BETWEEN)
    return look()


def _journal_of(path: str) -> str:
    return os.path.realpath(file_name(path)) + JOURNAL.suffix


def _describe_unsaved(path: str, records: int) -> UnsavedRecords | None:
    journal = _journal_of(path)
    with suppress(FileNotFoundError):
        return UnsavedRecords(journal, records, os.stat(journal).st_size)
    return None


def _records(path: str, loaded: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yields number and content of each record that is not in the saved file.

    loaded : number of updates in the file when it was opened
    """
    target, journal = os.path.realpath(file_name(path)), _journal_of(path)
    hash, (header, _) = content_hash(target), read_arrays(target, verify=False)
    if loaded not in (None, header["updates"]):
        raise StoreError(f"{target} was replaced while it was opened: open it again")
    if not os.path.lexists(journal):
        return
    with closing(Log(JOURNAL, target, open_beside(journal, target, JOURNAL.noun, to_write=False))) as log:
        if fits(log, hash, header.get("folded"), header["updates"]):
            for record in log.records():
                if record.number > header["updates"]:
                    yield record.number, record.content
