"""Results of a match kernel: written by blocks of rows, then ordered by row and number.

A kernel may write a block in any order of subscriptions and rows. A kernel that may find a pair
twice declares this (``repeats`` of ``kinds/base.py``), and the second pair is dropped here.

Within a row, numbers ascend. So results do not change when ``auto`` chooses another kind or
segments are merged. A pair becomes a key of 32 bits: the row within its group of rows, then the
number of the subscription. A group has some 8,192 pairs, which fit into the cache next to the
processor. Each group is ordered by two or three digits of its keys, the lowest first. This costs 4
ns a pair more than the order of rows alone, which ``Options(order="any")`` selects. Half of that is
the look-up of ids, since the ids of a row are in different lines of memory: consecutive ids are
counted instead. The best matches are ordered by score, so this step is left out there.

Slower ways were tried, in ns a pair with 382 matches of a million subscriptions. There ordering by
row alone takes 3.9, and ``order_groups`` 6.8:

- ordering all pairs by two digits of the number, then by row: 9.4, since each pass goes through the
  next cache;
- buckets by the high bits of the number, each ordered in the cache, then by row: 9.3;
- one pass by the high bits for each group, then insertion within a row: 7.7, and slow where
  neighbours match;
- the same with ids looked up first and moved with the keys: 8.3;
- counting the values of both digits in one pass: 6.6 to 8.0;
- kernels write some 9 rows of a subscription together. Ordering these runs by number, and their
  pairs by row: 7.1, since the runs of a row are then read from all over the memory.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.layout import I64, MATCHES, U32, Sink, Written

FILL = 0  # places of Sink.state
WANTED = 1
NEEDED = 2
BASE = 3

# Values of ``state[WANTED]``: count the matches of a row, list the pairs, or find out whether a row
# has a match.
COUNTS, PAIRS, ANY = 0, 1, 2

# Places are prefetched this many pairs ahead: a store that waits for memory delays all later ones
PAIRS_AHEAD = 32


@device
def is_deleted(deleted_bits, number):
    """Returns whether a subscription was deleted: whether the bit of its number is set.

    deleted_bits : (W) uint64; the bits beyond its end are 0
    """
    word = number >> np.uint64(6)
    return word < np.uint64(len(deleted_bits)) and (deleted_bits[word] >> (number & np.uint64(63))) & np.uint64(1) != 0


@device
def take(sink, row, sub, counters):
    """Notes a match, unless the subscription was deleted.

    Returns False when pairs are wanted and there is no room. The caller then rolls its block of
    rows back.
    """
    number = np.uint64(sub + sink.state[BASE])
    if is_deleted(sink.deleted_bits, number):
        return True
    if sink.state[WANTED] == PAIRS:
        n = sink.state[FILL]
        if n == len(sink.sub):
            return False
        sink.row[n] = row
        sink.sub[n] = number
        sink.state[FILL] = n + 1
    sink.hits[row] += 1
    counters[MATCHES] += 1
    return True


@device
def is_decided(sink, row):
    """Returns whether no further match of a row is wanted."""
    return sink.state[WANTED] == ANY and sink.hits[row] > 0


@device
def emit(sink, row, sub, counters):
    """Notes a match like ``take``. Returns False also when no further match of the row is wanted.

    The caller then distinguishes the two cases with ``stops``.
    """
    return take(sink, row, sub, counters) and not is_decided(sink, row)


@device
def stops(sink, fill, counters):
    """Returns whether ``emit`` returned False for lack of room, and then rolls back to ``fill``."""
    if sink.state[WANTED] == ANY:
        return False
    roll_back(sink, fill, counters)
    return True


@device
def roll_back(sink, fill, counters):
    """Removes the pairs that were emitted since the fill was ``fill``. Only pairs need room."""
    for i in range(fill, sink.state[FILL]):
        sink.hits[sink.row[i]] -= 1
    counters[MATCHES] -= sink.state[FILL] - fill
    sink.state[FILL] = fill


@kernel
def order_by_row(sink: Written[Sink], start: int, place: Written[I64], sub: Written[U32]) -> None:
    """Writes the subscriptions of the sink's pairs by row, keeping their order within a row.

    start : first row of the pairs
    place : (rows) int64, the first pair of each row from ``start`` on; on return, of the next row
    sub : (pairs) uint32, written
    """
    sink_row, sink_sub = sink.row, sink.sub
    count = np.uint64(sink.state[FILL])
    for i in range(count):
        soon = min(i + np.uint64(PAIRS_AHEAD), count - np.uint64(1))
        ask_for(sub, np.uint64(place[np.uint64(sink_row[soon]) - np.uint64(start)]))
        row = np.uint64(sink_row[i]) - np.uint64(start)
        sub[place[row]] = sink_sub[i]
        place[row] += 1


@kernel
def order_ids(sink: Written[Sink], start: int, place: Written[I64], ids: I64, first: int, id: Written[I64]) -> None:
    """Orders the pairs by row like ``order_by_row``, and writes the id of each.

    ids : (subscriptions) int64, or (0) where subscription number n has the id ``first + n``
    id : (pairs) int64, written
    """
    sink_row, sink_sub = sink.row, sink.sub
    count = np.uint64(sink.state[FILL])
    for i in range(count):
        soon = min(i + np.uint64(PAIRS_AHEAD), count - np.uint64(1))
        ask_for(id, np.uint64(place[np.uint64(sink_row[soon]) - np.uint64(start)]))
        row = np.uint64(sink_row[i]) - np.uint64(start)
        if len(ids):
            ask_for(ids, np.uint64(sink_sub[soon]))
            id[place[row]] = ids[sink_sub[i]]
        else:
            id[place[row]] = first + np.int64(sink_sub[i])
        place[row] += 1


@kernel
def group_keys(sink: Written[Sink], start: int, size: int, bits: int, place: Written[I64], key: Written[U32]) -> None:
    """Writes a key for each pair of the sink, by groups of rows.

    A key is the row within its group, with the number of the subscription in its low bits.

    start : first row of the pairs
    size : a group has 2**size rows
    bits : number of bits of a subscription's number
    place : (groups) int64, the start of each group's keys on entry, and their end on return
    key : (pairs) uint32, written
    """
    sink_row, sink_sub = sink.row, sink.sub
    size, bits = np.uint64(size), np.uint64(bits)
    within = (np.uint64(1) << size) - np.uint64(1)
    for i in range(np.uint64(sink.state[FILL])):
        row = np.uint64(sink_row[i]) - np.uint64(start)
        k = np.uint64(place[row >> size])
        key[k] = (row & within) << bits | np.uint64(sink_sub[i])
        place[row >> size] = np.int64(k + np.uint64(1))


@device
def order_digit(source, first, count, shift, place, target):
    """Moves keys to another array, ordered by some of their bits, from ``shift`` on.

    The keys are ``source[first:first + count]``.

    place : (2**digit) uint32, scratch
    """
    mask = np.uint64(len(place)) - np.uint64(1)
    # Count the keys with each digit
    for d in range(np.uint64(len(place))):
        place[d] = 0
    for i in range(count):
        place[(np.uint64(source[first + i]) >> shift) & mask] += np.uint32(1)
    # Turn the counts into places, and move the keys there
    total = np.uint32(0)
    for d in range(np.uint64(len(place))):
        begin = total
        total = np.uint32(total + place[d])
        place[d] = begin
    for i in range(count):
        one = source[first + i]
        d = (np.uint64(one) >> shift) & mask
        target[np.uint64(place[d])] = one
        place[d] += np.uint32(1)


@kernel
def order_groups(
    key: Written[U32],
    size: int,
    bits: int,
    digits: int,
    scratch: Written[tuple[U32, U32, U32]],
    repeats: bool,
    place: Written[I64],
    ids: I64,
    first: int,
    id: Written[I64],
    sub: Written[U32],
) -> int:
    """Orders the pairs of each group by row and number, and writes their ids, or their numbers.

    Returns the number of pairs.

    key, size, bits : as for ``group_keys``, which writes the keys
    digits : number of digits that keys are ordered by
    scratch : room for the keys of a group (K) uint32, twice, and for the values of a digit (2**d)
        uint32
    repeats : whether there may be pairs twice; the second is dropped
    place : (rows + 1) int64, row -> its pairs, rewritten
    ids : (S) int64, or (0) where subscription number n has the id ``first + n``
    id, sub : (pairs) int64 or (0), (pairs) uint32 or (0); one of them is written
    """
    rows, kept, end = len(place) - 1, np.uint64(0), np.uint64(place[0])
    mask, width = (np.uint64(1) << np.uint64(bits)) - np.uint64(1), np.uint64(0)
    while np.uint64(1) << width < np.uint64(len(scratch[2])):
        width += np.uint64(1)
    for row in range(0, rows, 1 << size):
        last = min(row + (1 << size), rows)
        begin, end = end, np.uint64(place[last])
        count = end - begin
        # Order the group by each digit, moving its keys between two arrays
        source, at, target, other = key, begin, scratch[0], scratch[1]
        for d in range(digits):
            order_digit(source, at, count, np.uint64(d) * width, scratch[2], target)
            source, at = target, np.uint64(0)
            target, other = other, target
        # Write the ids or numbers, without changing places
        if not repeats:
            for i in range(count):
                number = np.uint64(source[at + i]) & mask
                if len(ids):
                    id[kept + i] = ids[number]
                elif len(id):
                    id[kept + i] = first + np.int64(number)
                else:
                    sub[kept + i] = number
            kept += count
            continue
        # Drop repeats, and rewrite the places of rows
        r = row
        for i in range(count):
            one = np.uint64(source[at + i])
            if i > 0 and one == np.uint64(source[at + i - np.uint64(1)]):
                continue
            while r - row < np.int64(one >> np.uint64(bits)):
                r += 1
                place[r] = kept
            if len(ids):
                id[kept] = ids[one & mask]
            elif len(id):
                id[kept] = first + np.int64(one & mask)
            else:
                sub[kept] = one & mask
            kept += np.uint64(1)
        while r < last:
            r += 1
            place[r] = kept
    return kept


@kernel
def number_events(place: Written[I64], first: int, event: Written[I64]) -> None:
    """Writes the event of each pair.

    place : (rows + 1) int64, row -> its pairs
    first : number of the first row
    event : (pairs) int64, written
    """
    for row in range(len(place) - 1):
        for i in range(np.uint64(place[row]), np.uint64(place[row + 1])):
            event[i] = first + row


@kernel
def add_hits(sub: Written[U32], total: Written[I64]) -> None:
    """Counts the pairs of each subscription.

    sub : (pairs) uint32, numbers of subscriptions
    total : (S) int64, added to
    """
    for i in range(np.uint64(len(sub))):
        total[np.uint64(sub[i])] += 1
