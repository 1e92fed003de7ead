"""Recovery of a file of pages with a damaged log, up to the damage.

A power cut may leave a hole in a log. The system writes blocks in any order, and without ``fsync``
nobody waits for them. If only a header is damaged, it is written again, since all of its contents
are elsewhere, too.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from typing import Any

from colmatch.paged.cache import PAGE, update_number_of, write_error
from colmatch.paged.header import FIRST_PAGE, header_bytes, read_header
from colmatch.paged.log import PAGES, LoggedPages, base_of, generation_of, open_log
from colmatch.store.log import Damage, Log
from colmatch.store.recovery import cut, figures, set_aside


def recover_log(path: str) -> dict[str, Any] | None:
    """Cuts the log of a file of pages at its first damage, as ``cut`` does.

    Raises StoreError: another writer is changing the file, or the file itself is damaged.
    """
    path = os.path.realpath(path)
    if not os.path.lexists(path + PAGES.suffix):
        return None
    with closing(open_log(path)) as log:
        try:
            main = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                return _recover(main, log)
            finally:
                os.close(main)
        except OSError as error:
            raise write_error(path, error) from error


def _recover(main: int, log: Log[LoggedPages]) -> dict[str, Any] | None:
    state = read_header(main, log.target)
    own = base_of(state.generation, state.update_number)
    with suppress(Damage):
        if log.read_header() and log.base != own[0]:
            # The log follows a lost header, or all of it is in the file
            return _rewrite_header(main, log) if generation_of(log) == state.generation + 1 else None
    return cut(log, own, update_number_of(os.pread(main, PAGE, FIRST_PAGE * PAGE)))


def _rewrite_header(main: int, log: Log[LoggedPages]) -> dict[str, Any]:
    """Rewrites the header that a log follows, from the log and the size of the file."""
    copy, generation, pages = set_aside(log), generation_of(log), os.fstat(main).st_size // PAGE
    os.pwrite(main, header_bytes(generation, log.start, pages), generation % 2 * PAGE)
    os.fsync(main)
    return figures(f"the newer header of {log.target} was not what was written", 0, 0, copy)
