"""The right to replace a file of pages by another file.

The new file has a higher generation than the old file and its log. So a log that is left behind
does not count. A lock on a log that has lost its name keeps nobody out, so its holder checks the
name. Names are resolved first, so a link and its target share a log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from colmatch.errors import StoreError
from colmatch.paged.cache import write_error
from colmatch.paged.file import PageFile
from colmatch.paged.header import is_pages
from colmatch.paged.log import PAGES, LoggedPages, open_log
from colmatch.store.journal import lock_journal
from colmatch.store.log import MAGIC, Log
from colmatch.store.replacing import check_replaceable


@contextmanager
def taking_place(path: str) -> Iterator[int]:
    """Takes the right to put a file of pages at a path. Yields a generation for it.

    No file or log of the path has had this generation, and hardly any other file has it.

    path : without links. Its log has nothing for the new file, and is removed at the end

    Raises StoreError: another writer changes the old file, or the file has a journal with updates.
    Or a file with the name of its log is no log, or the path is a log or cannot be written.
    """
    _check_name(path)
    try:
        check_replaceable(path)
    except OSError as error:
        raise write_error(path, error) from error
    with lock_journal(path), _hold_log(path) as log:
        there = is_pages(path)
        if not there and os.pread(log.handle, len(MAGIC), 0) not in (b"", MAGIC):
            raise StoreError(
                f"{log.path} is no log of a file of pages, and would be removed: move it away, or give another name"
            )
        generation = _generation_of(path) if there else 0
        yield 1 + (generation or int.from_bytes(os.urandom(7), "little"))


@contextmanager
def lock_pages(path: str) -> Iterator[None]:
    """Takes the right to replace a file by one without pages, as ``taking_place`` does.

    Raises StoreError: the file has pages that another writer changes, or is the log of another.
    """
    path = os.path.realpath(path)
    _check_name(path)
    if not os.path.isfile(path) or not is_pages(path):
        yield
        return
    with _hold_log(path):
        yield


def _check_name(path: str) -> None:
    name = path.removesuffix(PAGES.suffix)
    if name != path and is_pages(name):
        raise StoreError(f"{path} is the log of {name}, which would be lost: give another name")


@contextmanager
def _hold_log(path: str) -> Iterator[Log[LoggedPages]]:
    """Holds the right to change a file of pages, and removes its log at the end.

    After an error, only a new log is removed.
    """
    with closing(open_log(path)) as log:
        is_new = log.size == 0
        try:
            yield log
        except BaseException:
            if is_new:
                _remove(log.path)
            raise
        _remove(log.path)


def _remove(path: str) -> None:
    with suppress(OSError):  # it has another generation, so nobody reads it
        os.unlink(path)


def _generation_of(path: str) -> int:
    """Returns the generation of a file of pages, 0 for a damaged file."""
    try:
        return PageFile(path, 0).generation
    except (OSError, StoreError):
        return 0
