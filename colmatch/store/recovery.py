"""Recovery of the updates before the damage in a log.

Recovery happens only on request. It loses the updates behind the damage, since they depend on
earlier ones. The damaged log is kept beside the new one.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from colmatch.errors import StoreError
from colmatch.store.beside import keep_like, open_beside
from colmatch.store.journal import JOURNAL
from colmatch.store.log import HEADER, PIECE, Damage, Log, open_locked, write
from colmatch.store.replacing import sync_folder


def recover_journal(path: str) -> dict[str, Any] | None:
    """Cuts the journal of a saved matcher at its first damage, as ``cut`` does.

    Raises
    ------
    StoreError : another writer has the journal, or it is no journal
    OSError : as from ``open``
    """
    target = os.path.realpath(path)
    if not os.path.lexists(target + JOURNAL.suffix):
        return None
    with closing(open_locked(JOURNAL, target)) as log:
        return cut(log)


def cut(log: Log[Any], own: tuple[bytes, int] | None = None, newest: int = 0) -> dict[str, Any] | None:
    """Cuts a log at its first damage, and keeps a copy. Returns None without damage.

    own : the base and start of the log, if they are known without its header
    newest : number of the last update with parts in the file already

    Returns figures by name.

    Raises StoreError: it is no log, or of another version, or the file needs the damaged updates.
    """
    kept, end, size, error = 0, HEADER, log.size, ""
    try:
        if not log.read_header():
            return None
    except Damage as damage:
        end, error = 0, damage.what
        log.base, log.start = own or (b"", 0)
    try:
        for record in log.records() if end or own else ():
            kept, end = kept + 1, record.end
    except Damage as damage:
        error = error or damage.what
    if not error:
        return None
    if newest > log.start + kept:
        raise StoreError(f"{log.target} has parts of updates that are damaged in {log.path}: build it again")
    copy = set_aside(log)
    os.ftruncate(log.handle, end)
    if end:
        write(log.handle, [log.header()], 0)
    os.fsync(log.handle)
    return figures(error, kept, size - end, copy)


def figures(error: str, kept: int, lost: int, copy: str) -> dict[str, Any]:
    """Returns the findings and results of a repair, by name."""
    return {"damage": error, "updates before the damage": kept, "bytes lost": lost, "damaged copy": copy}


def set_aside(log: Log[Any]) -> str:
    """Copies a log to the same folder, under an unused name. Returns the name."""
    number = 1
    while os.path.lexists(name := f"{log.path}.damaged-{number}"):
        number += 1
    copy = open_beside(name, log.target, "a copy", to_write=True)
    try:
        keep_like(copy, log.target)
        at = 0
        while data := os.pread(log.handle, PIECE, at):
            at = write(copy, [data], at)
        os.fsync(copy)
    finally:
        os.close(copy)
    sync_folder(os.path.dirname(log.path))
    return name
