"""What stands in a log behind its last whole update: one that was never finished, or damage.

An update is one write, and the next one begins when that has returned. So a process that is killed
leaves the beginning of one update behind the whole ones, and a power cut leaves zeros in places of
it. That update was never finished, and is dropped. It is damage instead, which may have cost
finished updates, where

- an update with a later number begins behind it;
- the log goes on behind the end that it says it has;
- neither its first bytes nor zeros stand where it should begin;
- a page behind is whole, and says that a later update wrote it.

What cannot be told: how many updates were in zeros that go on to the end of the log; whether the
last one, if it alone is damaged, was finished before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from colmatch.paged.cache import PAGE, number_of, update_number_of
from colmatch.paged.header import FIRST_PAGE, State
from colmatch.paged.logged import UPDATE, beginning, heads, pieces


class Damage(NamedTuple):
    """More than one update that was not finished."""

    last: int | None  # number of the last finished update of the log, None where nothing tells


def damage(handle: int, known: State, at: int, size: int) -> Damage | None:
    """Looks at what stands behind the last whole update of a log. None for no damage.

    known : the state after that update, which the next one follows
    at, size : where that update ends, and the log
    """
    if at >= size:
        return None
    following = known.update_number + 1
    later = own = None
    for head in heads(handle, known.generation, at, size):
        if head.at == at and head.update_number == following:
            own = head
        elif head.update_number > following and head.at > at:
            later = head
    if later is None and own is not None and own.end >= size:
        return None
    update_numbers = dict(_whole_pages(handle, known, at, size))
    last = update_numbers.get(size)
    if later is not None:
        return Damage(_likely(known, size - at, last or _finished(later.update_number, later.end, size)))
    if last == following:  # the log ends with a page of it
        return None
    if own is not None or max(update_numbers.values(), default=0) > following or not _may_be_begun(handle, known, at):
        return Damage(_likely(known, size - at, last))
    return None


def _finished(update_number: int, end: int, size: int) -> int | None:
    """Returns the number of the last finished update, by the last one that begins in a log."""
    return None if end < size else update_number - (end > size)


def _likely(known: State, size: int, update_number: int | None) -> int | None:
    """Returns a number that so many bytes have room for, None for any other."""
    if update_number is None or update_number - known.update_number > size // (UPDATE + PAGE) + 1:
        return None
    return update_number


def _may_be_begun(handle: int, known: State, at: int) -> bool:
    """Says whether what stands somewhere is how an update begins, but for bytes that are zero."""
    begin = beginning(known.generation, known.update_number + 1)
    return all(byte in (0, own) for byte, own in zip(os.pread(handle, len(begin), at), begin))


def _whole_pages(handle: int, known: State, at: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields end and update number of whole pages: the last of a log, and others of its update."""
    room = (size - at) // PAGE
    for place, piece in pieces(handle, size - room * PAGE, size):
        for end in range(PAGE, len(piece) + 1, PAGE):
            page = piece[end - PAGE : end]
            if FIRST_PAGE <= number_of(page) < known.pages + room:
                yield place + end, update_number_of(page)
