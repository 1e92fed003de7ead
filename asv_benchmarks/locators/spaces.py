"""What kinds of locators by boundaries share: the spaces, the lists of these, and their updates.

A kind adds how the space of a key is found. An update makes all arrays anew, of which only the
lists of the spaces at hand change: to copy the others is to move memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.frozen import freeze, freeze_view, seal
from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import OptionError
from colmatch.kernels.layout import I64, KEY_MAX, KEY_MIN
from locators.base import Found, LocatorKind, bytes_of
from locators.kernels import spaces
from locators.kernels.counting import N_TOUCHED
from locators.kernels.spaces import Spaces

MOST_ENTRIES = 1 << 27  # of all lists together: half a gigabyte


class Located(NamedTuple):
    """Spaces, and what a kind has made to find them."""

    spaces: Spaces
    search: Any


class Cut(NamedTuple):
    """Where n intervals cut the keys."""

    bound: I64  # (B) boundaries
    uses: NDArray[np.uint32]  # (B) ends at each
    begin: I64  # (n) first space that each covers
    last: I64  # (n) last one


def cut(low: I64, high: I64) -> Cut:
    """Cuts the keys at both ends of intervals."""
    inner, open_below, open_above = len(low), low == KEY_MIN, high == KEY_MAX
    ends = np.concatenate([low[~open_below], high[~open_above] + 1])
    bound, place, uses = np.unique(ends, return_inverse=True, return_counts=True)
    begin, last = np.zeros(inner, np.int64), np.full(inner, len(bound))
    begins = inner - np.count_nonzero(open_below)
    begin[~open_below] = place[:begins] + 1
    last[~open_above] = place[begins:]
    return Cut(bound, uses.astype(np.uint32), begin, last)


def build_spaces(low: I64, high: I64) -> Spaces:
    """Cuts the keys at both ends of intervals, and lists the intervals of each space."""
    parts = cut(low, high)
    begin, last = seal(parts.begin), seal(parts.last)
    _check_room(int((last - begin + 1).sum()))
    first = np.empty(len(parts.bound) + 2, np.int64)
    spaces.count_lists(begin, last, first)
    member = np.empty(first[-1], np.uint32)
    spaces.fill_lists(begin, last, first, member)
    return freeze(Spaces(parts.bound, parts.uses, first, member))


def _check_room(entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise OptionError(
            f"intervals stand {entries:,} times in the lists of the spaces that they cover, and {MOST_ENTRIES:,} is "
            "the most: use 'interval-tree', which has each twice, or 'segment-tree'"
        )


def insert_spaces(old: Spaces, low: int, high: int, number: int) -> Spaces:
    """Enter an interval: up to two spaces are divided, and it is put at the end of each list."""
    a, b = np.searchsorted(old.bound, [low, high], "right").tolist()
    divides_a, divides_b = int(not _begins(old, a, low)), int(not _ends(old, b, high))
    # The spaces from a to b again: each has the list of an old one, and most the new interval.
    source = np.concatenate([np.full(divides_a, a), np.arange(a, b + 1), np.full(divides_b, b)])
    covered = np.ones(len(source), np.int64)
    covered[:divides_a] = 0
    covered[len(source) - divides_b :] = 0
    size = np.diff(old.first)
    inner = ranges_of(size[source] + covered)
    _check_room(len(old.member) - int(size[a : b + 1].sum()) + int(inner[-1]))
    member = np.full(inner[-1], number, np.uint32)
    kept = np.ones(len(member), bool)
    kept[inner[1:][covered == 1] - 1] = False
    member[kept] = old.member[members(old.first[source], ranges_of(size[source]))]
    bound = np.concatenate(
        [old.bound[:a], np.full(divides_a, low), old.bound[a:b], np.full(divides_b, high + divides_b), old.bound[b:]]
    )
    uses = np.concatenate(
        [old.uses[:a], np.zeros(divides_a, np.uint32), old.uses[a:b], np.zeros(divides_b, np.uint32), old.uses[b:]]
    )
    _use(uses, a - 1 + divides_a, b + divides_a, low, high, 1)
    return freeze(
        Spaces(
            bound,
            uses,
            ranges_of(np.concatenate([size[:a], np.diff(inner), size[b + 1 :]])),
            np.concatenate([old.member[: old.first[a]], member, old.member[old.first[b + 1] :]]),
        )
    )


def _begins(of: Spaces, space: int, low: int) -> bool:
    """Whether a space that has ``low`` begins with it."""
    return low == KEY_MIN or bool(space and of.bound[space - 1] == low)


def _ends(of: Spaces, space: int, high: int) -> bool:
    """Whether a space that has ``high`` ends with it."""
    return high == KEY_MAX or bool(space < len(of.bound) and of.bound[space] == high + 1)


def _use(uses: NDArray[np.uint32], at_low: int, at_high: int, low: int, high: int, change: int) -> None:
    """Note at both boundaries of an interval that it has come or gone."""
    if low != KEY_MIN:
        uses[at_low] += np.int32(change)
    if high != KEY_MAX:
        uses[at_high] += np.int32(change)


def delete_spaces(old: Spaces, low: int, high: int, number: int) -> Spaces | None:
    """Take an interval out of all lists, and boundaries at which no other one ends.

    None if it is not there.
    """
    a, b = np.searchsorted(old.bound, [low, high], "right").tolist()
    begin, end = old.first[a], old.first[b + 1]
    kept = np.ones(len(old.member), bool)
    kept[begin:end] = old.member[begin:end] != number
    if (
        not _begins(old, a, low)
        or not _ends(old, b, high)
        or np.count_nonzero(~kept) != b - a + 1
        or _stands_in(old, a - 1, number)
        or _stands_in(old, b + 1, number)
    ):
        return None
    uses = old.uses.copy()
    _use(uses, a - 1, b, low, high, -1)
    gone = np.flatnonzero(uses == 0)
    size = np.diff(old.first)
    # A space behind a boundary that is gone has the list of the one before.
    kept[members(old.first[gone + 1], ranges_of(size[gone + 1]))] = False
    size[a : b + 1] -= 1
    return freeze(
        Spaces(
            np.delete(old.bound, gone), np.delete(uses, gone), ranges_of(np.delete(size, gone + 1)), old.member[kept]
        )
    )


def _stands_in(old: Spaces, space: int, number: int) -> bool:
    return 0 <= space <= len(old.bound) and number in old.member[old.first[space] : old.first[space + 1]]


def boundary_kind(
    name: str,
    says: str,
    ready: Callable[[I64], Any],
    locate: Callable[[Located, I64, I64], None],
    touch: Callable[[Located, I64, I64], None],
) -> LocatorKind:
    """Makes a kind of how it finds spaces.

    ready : boundaries (B), ascending -> what it searches in. locate : spaces and that, points (m),
    space (m), which it writes. touch : spaces and that, points, counters
    """

    def located(of: Spaces) -> Located:
        return Located(of, ready(of.bound))

    def spaces_of(arrays: Located, points: I64) -> I64:
        space = np.empty(len(points), np.int64)
        locate(arrays, points, space)
        return space

    def count(arrays: Located, points: I64) -> I64:
        hits = np.empty(len(points), np.int64)
        spaces.count_spaces(arrays.spaces.first, seal(spaces_of(arrays, points)), hits)
        return hits

    def stab(arrays: Located, points: I64) -> Found:
        space, hits = seal(spaces_of(arrays, points)), np.empty(len(points), np.int64)
        spaces.count_spaces(arrays.spaces.first, space, hits)
        first = ranges_of(hits)
        found = np.empty(first[-1], np.uint32)
        spaces.copy_lists(arrays.spaces.first, arrays.spaces.member, space, freeze_view(first), found)
        return first, found

    def touched(arrays: Located, points: I64) -> I64:
        counters = np.zeros(N_TOUCHED, np.int64)
        touch(arrays, points, counters)
        return counters

    def delete(arrays: Located, low: int, high: int, number: int) -> Located | None:
        left = delete_spaces(arrays.spaces, low, high, number)
        return None if left is None else located(left)

    return LocatorKind(
        name,
        says,
        build=lambda low, high: located(build_spaces(low, high)),
        count=count,
        stab=stab,
        touch=touched,
        sizes=bytes_of,
        locate=spaces_of,
        insert=lambda arrays, low, high, number: located(insert_spaces(arrays.spaces, low, high, number)),
        delete=delete,
    )
