"""Results of a match kernel: written by blocks of rows, ordered afterwards by counting."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.layout import MATCHES

FILL = 0  # places of Sink.state
WANTED = 1
NEEDED = 2
BASE = 3

# What ``state[WANTED]`` asks for: how many matches a row has, the pairs, or whether there is one.
COUNTS, PAIRS, ANY = 0, 1, 2

AHEAD = 32  # pairs whose places are on their way from memory: a store that waits for its place holds up all after it


@device
def is_dead(dead, number):
    """Says whether a subscription was deleted, by its number: whether its bit is set.

    dead (W) uint64; the bits behind its end are 0
    """
    word = number >> np.uint64(6)
    return word < np.uint64(len(dead)) and (dead[word] >> (number & np.uint64(63))) & np.uint64(1) != 0


@device
def take(sink, row, sub, counters):
    """Note a match, unless the subscription was deleted.

    False when pairs are wanted and there is no room: the caller rolls its block of rows back.
    """
    number = np.uint64(sub + sink.state[BASE])
    if is_dead(sink.dead, number):
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
    """Says whether nothing more is wanted of a row."""
    return sink.state[WANTED] == ANY and sink.hits[row] > 0


@device
def emit(sink, row, sub, counters):
    """Note a match as ``take`` does. False also when nothing more is wanted of the row.

    Then the caller asks ``stops`` which of both it is.
    """
    return take(sink, row, sub, counters) and not is_decided(sink, row)


@device
def stops(sink, fill, counters):
    """Says whether there was no room when ``emit`` said False, and rolls the row back then."""
    if sink.state[WANTED] == ANY:
        return False
    roll_back(sink, fill, counters)
    return True


@device
def roll_back(sink, fill, counters):
    """Forget what was emitted since the fill was ``fill``: pairs, since only these need room."""
    for i in range(fill, sink.state[FILL]):
        sink.hits[sink.row[i]] -= 1
    counters[MATCHES] -= sink.state[FILL] - fill
    sink.state[FILL] = fill


@kernel
def order_by_row(sink, start, place, sub):
    """The subscriptions of the sink's pairs, ordered by row, the order within a row kept.

    start : first row of the pairs place (rows) int64 : on entry the first pair of each row from
    ``start``, on return that of the next sub (pairs) uint32 : written
    """
    sink_row, sink_sub = sink.row, sink.sub
    count = np.uint64(sink.state[FILL])
    for i in range(count):
        soon = min(i + np.uint64(AHEAD), count - np.uint64(1))
        ask_for(sub, np.uint64(place[np.uint64(sink_row[soon]) - np.uint64(start)]))
        row = np.uint64(sink_row[i]) - np.uint64(start)
        sub[place[row]] = sink_sub[i]
        place[row] += 1


@kernel
def order_ids(sink, start, place, ids, id):
    """Orders the pairs by row as ``order_by_row`` does, and writes the id of each.

    id (pairs) int64 is written, out of ids (subscriptions) int64.
    """
    sink_row, sink_sub = sink.row, sink.sub
    count = np.uint64(sink.state[FILL])
    for i in range(count):
        soon = min(i + np.uint64(AHEAD), count - np.uint64(1))
        ask_for(id, np.uint64(place[np.uint64(sink_row[soon]) - np.uint64(start)]))
        ask_for(ids, np.uint64(sink_sub[soon]))
        row = np.uint64(sink_row[i]) - np.uint64(start)
        id[place[row]] = ids[sink_sub[i]]
        place[row] += 1


@kernel
def number_events(place, first, event):
    """Writes the event of each pair.

    place (rows + 1): row -> its pairs; ``first``: number of the first row; event (pairs) int64 is
    written.
    """
    for row in range(len(place) - 1):
        for i in range(np.uint64(place[row]), np.uint64(place[row + 1])):
            event[i] = first + row


@kernel
def drop_repeats(place, sub, base, stamp):
    """Drop subscriptions that stand twice among those of one row, in place; the first stays.

    Returns how many pairs are left.

    place (rows + 1) int64 : row -> its pairs, rewritten. stamp (subscriptions) int64 : the row that
    last had it, as a number above ``base`` that never comes again
    """
    kept = 0
    begin = place[0]
    for row in range(len(place) - 1):
        end = place[row + 1]
        for i in range(begin, end):
            mark = base + row + 1
            if stamp[sub[i]] != mark:
                stamp[sub[i]] = mark
                sub[kept] = sub[i]
                kept += 1
        begin = end
        place[row + 1] = kept
    return kept
