"""Goes on with a journal that is damaged: with the updates before the damage.

Nothing does so unasked, since what comes behind the damage is lost. The damaged journal is kept
beside the new one.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from colmatch.errors import StoreError
from colmatch.store.beside import keep_like, open_beside
from colmatch.store.journal import locked_journal
from colmatch.store.journal_file import HEADER, PIECE, SUFFIX, is_begun, later_records, records_of, write
from colmatch.store.replacing import sync_folder


class Recovered(NamedTuple):
    """The repair of a journal or a log: what was kept, and what is lost."""

    kept: int  # updates in it before the damage
    lost: int | None  # updates behind it, as far as can be told; None where none can be counted
    lost_bytes: int
    copy: str  # of what was damaged
    error: str

    def as_dict(self) -> dict[str, Any]:
        """Returns figures by name."""
        lost = "unknown" if self.lost is None else self.lost
        return {
            "damage": self.error,
            "updates before the damage": self.kept,
            "updates lost": lost,
            "bytes lost": self.lost_bytes,
            "damaged copy": self.copy,
        }


def set_aside(path: str, target: str, handle: int) -> str:
    """Copies an open file beside itself, under a name that was free. Returns the name."""
    number = 1
    while os.path.lexists(name := f"{path}.damaged-{number}"):
        number += 1
    copy = open_beside(name, target, "a copy", to_write=True)
    try:
        keep_like(copy, target)
        at = 0
        while data := os.pread(handle, PIECE, at):
            write(copy, data, at)
            at += len(data)
        os.fsync(copy)
    finally:
        os.close(copy)
    sync_folder(os.path.dirname(path))
    return name


def recover_journal(path: str) -> Recovered | None:
    """Cuts off what is damaged of the journal of a saved matcher. None where nothing is.

    Raises
    ------
    StoreError : another has the journal, or it is none
    OSError : as from ``open``
    """
    target = os.path.realpath(path)
    journal = target + SUFFIX
    if not os.path.lexists(journal):
        return None
    file = locked_journal(journal, target)
    try:
        size, end, kept, number = os.fstat(file.handle).st_size, 0, 0, 0
        try:
            if is_begun(file, journal):
                end, number = HEADER, file.start
                for own, _, behind in records_of(file, journal):
                    end, kept, number = behind, kept + 1, own
            return None
        except StoreError as error:
            if not end and "damaged" not in str(error):
                raise  # no journal, or one of another version
            said = str(error).split(";")[0].split(": copy")[0]
        later = later_records(file, end)
        first = number if end else later[0][0] - 1 if later and later[0][1] == HEADER else None
        # They are counted where the last record is whole, and the number before the damage known.
        lost = later[-1][0] - first if first is not None and later and later[-1][2] == size else None
        copy = set_aside(journal, target, file.handle)
        os.ftruncate(file.handle, end)
        os.fsync(file.handle)
        return Recovered(kept, lost, size - end, copy, said)
    finally:
        file.close()
