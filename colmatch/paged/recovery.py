"""Goes on with a file of pages whose log is damaged: with the updates before the damage.

A power cut may leave a hole in a log: the system writes blocks in any order, and without ``fsync``
nobody waits for them. Updates change pages that those before have made, so what comes behind a hole
is lost.

Opening such a file would lose finished updates without a word, so ``open`` refuses. The last update
of a log alone cannot be told from an unfinished one: damaged, it counts as never finished. If only
a header is damaged, it is written again, since all of its contents stand elsewhere, too.
"""

from __future__ import annotations

import os

from colmatch.errors import StoreError
from colmatch.paged.cache import PAGE, write_error
from colmatch.paged.header import header_bytes, read_header
from colmatch.paged.log import (
    BEGIN,
    begin_bytes,
    begun_generation,
    locked_log,
    log_path,
    read_update,
    whole_updates,
)
from colmatch.store import locks
from colmatch.store.recovery import Recovered, set_aside


def recover_log(path: str) -> Recovered | None:
    """Cuts off what is damaged of the log of a file of pages. None where nothing is.

    Raises
    ------
    StoreError : another changes the file, or the file itself is damaged
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
    generation, stamp, _ = read_header(main, path)
    size = os.fstat(log).st_size
    own = begun_generation(os.pread(log, BEGIN, 0))
    if own == generation + 1:
        return _with_header(path, main, log, own)
    end, kept = BEGIN, stamp
    while (update := read_update(log, generation, end, size)) is not None:
        end, kept = update.end, update.stamp
    later = [update.stamp for update in whole_updates(log, generation, end, size)]
    if own is not None and not later:
        return None  # an older log, or the end of one, which was never finished
    if own is None and end == BEGIN and next(whole_updates(log, None, 0, size), None) is None:
        return None  # nothing was begun, or it is no log
    said = f"{log_path(path)} is damaged from byte {0 if own is None else end} of {size} on"
    copy = set_aside(log_path(path), path, log)
    if later or end == BEGIN:
        os.ftruncate(log, end if end > BEGIN else 0)
    if own is None and end > BEGIN:
        os.pwrite(log, begin_bytes(generation), 0)
    os.fsync(log)
    lost = max(later) - kept if later else 0
    return Recovered(kept - stamp, lost, size - end if later or end == BEGIN else 0, copy, said)


def _with_header(path: str, main: int, log: int, generation: int) -> Recovered:
    """Writes the header again that a log follows. All that it said stands elsewhere, too."""
    size = os.fstat(log).st_size
    first = read_update(log, generation, BEGIN, size)
    if first is None:
        raise StoreError(f"{path} and {log_path(path)} are damaged, both at their beginnings: build it again")
    copy = set_aside(log_path(path), path, log)
    pages = os.fstat(main).st_size // PAGE
    os.pwrite(main, header_bytes(generation, first.stamp - 1, pages), generation % 2 * PAGE)
    os.fsync(main)
    return Recovered(0, 0, 0, copy, f"the newer header of {path} was not what was written")
