"""When segments are merged, and which.

Younger segments are merged with an older neighbour of at most ``TIER`` times their subscriptions,
so there are few segments. Each costs about one microsecond an event of 30 values. After a build of
a million ``bitslice``, then 10,000 inserts and 50,000 deletes, an event takes 1.2 times as long as
when all is merged. The ratio is the same in a batch and alone.
"""

from __future__ import annotations

from colmatch.updates.versions import Version

GROWING_MOST = 512  # numbers that the growing segment may have; more that come at once are a segment of their own
TIER = 16  # a segment is left alone while it has more than so many times the subscriptions of all younger ones
DELETED_SHARE = 4  # a segment is built anew when more than one of so many of its subscriptions was deleted
DELETED_LEAST = 256  # deleted subscriptions that are left alone however few the others
SEGMENTS_MOST = 16  # an update waits for a merge when there are more
UNUSED_SHARE = 4  # of string literals and attributes, one of so many may be unused
RECENT_MOST = 8192  # recent string literals; with more they become old ones
RECENT_KEPT = 1024  # recent string literals that are left alone after a merge
UNUSED_LEAST = 256  # unused ones that are left alone however few the others


def due(version: Version) -> tuple[int, int] | None:
    """Returns which frozen segments are to be merged: the first, and the one behind the last.

    Neighbours are merged, since subscriptions are numbered by age. All are, and get new numbers,
    when a quarter of their numbers is of no subscription any more. What was deleted in the growing
    segment does not count: no merge could take it away.
    """
    frozen = version.frozen
    if not frozen:
        return None
    sizes, start = version.alive, frozen - 1
    numbers = version.bases[-1] if version.growing else len(version.ids)
    if numbers - sum(sizes[:frozen]) > max(DELETED_LEAST, numbers // DELETED_SHARE):
        return 0, frozen
    total = sizes[start]
    while start and sizes[start - 1] <= TIER * total:
        start -= 1
        total += sizes[start]
    if start < frozen - 1:
        return start, frozen
    for i in range(frozen):
        deleted = version.stale[i]
        if deleted > max(DELETED_LEAST, (sizes[i] + deleted) // DELETED_SHARE):
            return i, i + 1
    return None


def is_much(unused: int, there: int) -> bool:
    """Returns whether so many string literals or attributes are unused that they are to go."""
    return unused > max(UNUSED_LEAST, there // UNUSED_SHARE)
