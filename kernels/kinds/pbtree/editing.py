"""PB+tree: pages that an operation reads and changes, so that it can be repeated.

An operation does not know beforehand which pages it needs. If a page is not in memory, the
operation gets frame 0, a page without use, and ``state`` names the missed page. The shadow copies
then undo the changes of the operation. It begins again when the page is in memory.

Finding out beforehand which pages an insert needs would take a second copy of every split and
merge.
"""

from typing import Annotated, NamedTuple

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pbtree.arrays import FREE, HEAD, KIND, NEXT, PREV, TABLE, WORDS
from colmatch.kernels.layout import I32, I64, U8, U32

# Places of ``PageCache.state``.
MISSED, NO_ROOM, WRONG, FRESH, FREED, SHADOWS, REUSED, OFFERED, PLACES = range(9)
NO_SHADOW, NO_FRESH, NO_FREED = 1, 2, 3  # values of ``state[NO_ROOM]``

EDITED, EDITED_NOW = 1, 2  # values of ``PageCache.dirty`` for a changed frame


class PageCache(NamedTuple):
    """A cache, as operations see it."""

    mem: U32  # (frames * WORDS)
    frame: I32  # (pages) page -> frame, -1 if it is not in memory
    used: U8  # (frames) 1 if it was read
    dirty: U8  # (frames) ``EDITED`` or ``EDITED_NOW`` if this update has changed it, else 0
    shadow: U32  # (shadows * WORDS) pages as they were before this operation
    shadow_of: Annotated[I64, 2]  # (shadows, 2) frame, and its ``dirty`` before
    fresh: I64  # unused pages, in memory and empty
    # Pages that are no longer used. The first ``REUSED`` have been taken again. Others up to
    # ``OFFERED`` may be taken: earlier operations have freed them
    freed: I64
    carried: I64  # (LISTS) scratch
    state: I64  # (PLACES)


@device
def has_failed(pages):
    """Says whether the operation cannot go on."""
    return pages.state[MISSED] != 0 or pages.state[NO_ROOM] != 0 or pages.state[WRONG] != 0


@device
def locate_page(pages, page):
    """Returns the place of a page in memory, or 0 if it is missing or invalid."""
    if page <= 0 or page >= len(pages.frame):
        if not has_failed(pages):  # after a miss, numbers of pages mean nothing
            pages.state[WRONG] = 1
        return np.int64(0)
    where = np.int64(pages.frame[page])
    if where < 0:
        if pages.state[MISSED] == 0:
            pages.state[MISSED] = page
        return np.int64(0)
    pages.used[where] = 1
    return where * WORDS


@device
def edit(pages, page):
    """Returns the place of a page that is about to change. It is copied to a shadow once in each
    operation.
    """
    base = locate_page(pages, page)
    where = base // WORDS
    if where == 0 or pages.dirty[where] == EDITED_NOW:
        return base
    n = pages.state[SHADOWS]
    if n == len(pages.shadow_of):
        pages.state[NO_ROOM] = NO_SHADOW
        return np.int64(0)
    for i in range(WORDS):
        pages.shadow[n * WORDS + i] = pages.mem[base + i]
    pages.shadow_of[n, 0], pages.shadow_of[n, 1] = where, pages.dirty[where]
    pages.dirty[where] = EDITED_NOW
    pages.state[SHADOWS] = n + 1
    return base


@device
def take_page(pages, kind):
    """Returns an unused page, 0 if none is left.

    A page that an earlier operation has freed is preferred to a fresh one.
    """
    # Choose a page
    again, n = pages.state[REUSED], pages.state[FRESH]
    is_again = again < pages.state[OFFERED]
    if not is_again and n == len(pages.fresh):
        pages.state[NO_ROOM] = NO_FRESH
        return np.int64(0)
    page = pages.freed[again] if is_again else pages.fresh[n]
    # Clear it
    base = edit(pages, page)
    if has_failed(pages):
        return np.int64(0)
    for i in range(WORDS):
        pages.mem[base + i] = 0
    pages.mem[base + KIND] = kind
    # Note that it is taken
    if is_again:
        pages.state[REUSED] = again + 1
    else:
        pages.state[FRESH] = n + 1
    return page


@device
def free_page(pages, page):
    base = edit(pages, page)
    if pages.state[FREED] == len(pages.freed):
        pages.state[NO_ROOM] = NO_FREED
    if has_failed(pages):
        return
    for i in range(WORDS):
        pages.mem[base + i] = 0
    pages.mem[base + KIND] = FREE
    pages.freed[pages.state[FREED]] = page
    pages.state[FREED] += 1


@device
def unlink(pages, page):
    """Takes a page out of a chain. Returns the pages before and behind it."""
    mem, base = pages.mem, edit(pages, page)
    before, behind = np.int64(mem[base + PREV]), np.int64(mem[base + NEXT])
    if before != 0:
        mem[edit(pages, before) + NEXT] = behind
    if behind != 0:
        mem[edit(pages, behind) + PREV] = before
    return before, behind


@device
def link_behind(pages, page, fresh):
    """Puts a new page into a chain, behind another."""
    mem, base, other = pages.mem, edit(pages, page), edit(pages, fresh)
    behind = np.int64(mem[base + NEXT])
    mem[other + PREV], mem[other + NEXT], mem[base + NEXT] = page, behind, fresh
    if behind != 0:
        mem[edit(pages, behind) + PREV] = fresh


@device
def end_operation(pages, fresh, freed, reused):
    """Keeps the changes of an operation, or undoes them if it failed. Returns whether they are
    kept.

    fresh, freed, reused : their values in ``state`` before the operation
    """
    good = not has_failed(pages)
    for n in range(pages.state[SHADOWS]):
        where = pages.shadow_of[n, 0]
        if good:
            pages.dirty[where] = EDITED
            continue
        for i in range(WORDS):
            pages.mem[where * WORDS + i] = pages.shadow[n * WORDS + i]
        pages.dirty[where] = pages.shadow_of[n, 1]
    pages.state[SHADOWS] = 0
    if good:
        pages.state[OFFERED] = pages.state[FREED]
    else:
        pages.state[FRESH], pages.state[FREED], pages.state[REUSED] = fresh, freed, reused
    return good


@device
def reach_table_page(pages, top, i):
    """Returns page ``i`` of the entries of a table, and makes it if there is none."""
    # Find its middle page, or make it
    base = locate_page(pages, top)
    if has_failed(pages):
        return np.int64(0)
    place = HEAD + i // (WORDS - HEAD)
    if i // (WORDS - HEAD) >= WORDS - HEAD:
        pages.state[WRONG] = 1
        return np.int64(0)
    if pages.mem[base + place] == 0:
        fresh = take_page(pages, TABLE)
        base = edit(pages, top)
        if has_failed(pages):
            return np.int64(0)
        pages.mem[base + place] = fresh
    # Find the page, or make it
    middle = np.int64(pages.mem[base + place])
    base = locate_page(pages, middle)
    if has_failed(pages):
        return np.int64(0)
    place = HEAD + i % (WORDS - HEAD)
    if pages.mem[base + place] == 0:
        fresh = take_page(pages, TABLE)
        base = edit(pages, middle)
        if has_failed(pages):
            return np.int64(0)
        pages.mem[base + place] = fresh
    return np.int64(pages.mem[base + place])
