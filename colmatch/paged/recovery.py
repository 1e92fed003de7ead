"""Goes on with a file of pages whose log is damaged: with the updates before the damage.

A power cut may leave a hole in a log: the system writes blocks in any order, and without ``fsync``
nobody waits for them. Updates change pages that those before have made, so what comes behind a hole
is lost.

Opening such a file would lose finished updates without a word, so ``open`` refuses. The last update
of a log alone cannot be told from an unfinished one: damaged, it counts as never finished. If only
a header is damaged, it is written again, since all of its contents stand elsewhere, too.

The command keeps a copy of the log. It counts the lost updates by the last number in the log.
Nothing behind the damage is read further: each beginning there could name the same pages, and a
crafted log of 1.6 MB had 249 MB read.
"""

from __future__ import annotations

import os
from contextlib import suppress

from colmatch.errors import StoreError
from colmatch.paged.cache import PAGE, write_error
from colmatch.paged.header import State, header_bytes, read_header
from colmatch.paged.log import BEGIN, MAGIC, begin_bytes, generation_of, locked_log, log_path
from colmatch.paged.logged import heads, read_update
from colmatch.paged.unfinished import damage
from colmatch.store import locks
from colmatch.store.recovery import Recovered, set_aside


def recover_log(path: str) -> Recovered | None:
    """Cuts off what is damaged of the log of a file of pages. None where nothing is.

    Raises StoreError: another changes the file, or the file itself is damaged.
    """
    path = os.path.realpath(path)
    if not os.path.lexists(log_path(path)):
        return None
    log = locked_log(path)
    try:
        main = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return _recovered(path, main, log)
        finally:
            os.close(main)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        locks.close(log)


def _recovered(path: str, main: int, log: int) -> Recovered | None:
    known = read_header(main, path)
    size, head, own = os.fstat(log).st_size, os.pread(log, BEGIN, 0), None
    with suppress(StoreError):  # the beginning is damaged, or it is no log
        own = generation_of(path, log, known)
    if own == known.generation + 1:
        return _with_header(path, main, log, own)
    if own is not None and own != known.generation:
        return None  # nothing was begun, or all of it is in the file
    state, end = known, BEGIN
    while (
        update := read_update(log, known.generation, end, size)
    ) and update.head.update_number == state.update_number + 1:
        state, end = State(known.generation, update.head.update_number, update.head.total), update.head.end
    found = damage(log, state, end, size)
    if own is not None and found is None:
        return None
    if own is None and end == BEGIN:
        _check_log(path, log, head, known.generation, size)
    said = f"{log_path(path)} is damaged from byte {0 if own is None else end} of {size} on"
    copy = set_aside(log_path(path), path, log)
    is_cut = found is not None or end == BEGIN
    if is_cut:
        os.ftruncate(log, end if end > BEGIN else 0)
    if own is None and end > BEGIN:
        os.pwrite(log, begin_bytes(known.generation), 0)
    os.fsync(log)
    lost = 0 if found is None else None if found.last is None else found.last - state.update_number
    return Recovered(state.update_number - known.update_number, lost, size - end if is_cut else 0, copy, said)


def _check_log(path: str, log: int, head: bytes, generation: int, size: int) -> None:
    """Checks that something damaged, from which no update can be read, was a log of the file.

    Raises StoreError: it looks like none, or follows a header that is damaged as well.
    """
    if next(heads(log, generation + 1, BEGIN, size), None) is not None:
        raise _both_damaged(path)
    is_log = not any(head) or head.startswith(MAGIC) or next(heads(log, generation, BEGIN, size), None) is not None
    if not is_log:
        raise StoreError(f"{log_path(path)} is no log of {path}, or nothing of it can be read: move it away to go on")


def _with_header(path: str, main: int, log: int, generation: int) -> Recovered:
    """Writes the header again that a log follows. All that it said stands elsewhere, too."""
    size = os.fstat(log).st_size
    first = read_update(log, generation, BEGIN, size)
    if first is None:
        raise _both_damaged(path)
    copy = set_aside(log_path(path), path, log)
    pages = os.fstat(main).st_size // PAGE
    os.pwrite(main, header_bytes(generation, first.head.update_number - 1, pages), generation % 2 * PAGE)
    os.fsync(main)
    return Recovered(0, 0, 0, copy, f"the newer header of {path} was not what was written")


def _both_damaged(path: str) -> StoreError:
    return StoreError(f"{path} and {log_path(path)} are damaged, both at their beginnings: build it again")
