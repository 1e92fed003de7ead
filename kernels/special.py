"""Special functions of expressions: places within circles, and the contents of lists of structs."""

import math
from typing import NamedTuple

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import F64, I64, Written
from colmatch.kernels.search import first_at_least

EARTH = 6372.8  # km, its radius as the be-tree library takes it
RADIANS = math.pi / 180.0
FAR = 1e6  # degrees of longitude beyond which cells are not used
LEVELS = 15  # of cells: 2 ** level of them from pole to pole, and as many around


class Circles(NamedTuple):
    """N circles, and K cells that they touch.

    A cell is a level, and the numbers of a row of latitudes and of a column of longitudes.
    """

    latitude: F64  # (N) degrees
    longitude: F64  # (N) degrees
    radius: F64  # (N) km
    cosine: F64  # (N) of the latitude
    levels: I64  # levels that cells have
    cell: I64  # (K) level << 32 | row << 16 | column, ascending
    first: I64  # (K + 1) cell -> member
    member: I64  # numbers of circles
    anywhere: I64  # numbers of circles that have no cells


@device
def is_within(circles, i, latitude, longitude, cosine):
    """Returns whether a place is in circle ``i``, by the haversine of the great circle."""
    north = (latitude - circles.latitude[i]) * RADIANS
    if abs(latitude) <= 90 and abs(circles.latitude[i]) <= 90 and abs(north) * EARTH > circles.radius[i] * 1.001:
        return False  # farther away by latitude alone
    up = math.sin(north / 2)
    across = math.sin((longitude - circles.longitude[i]) * RADIANS / 2)
    chord = up * up + cosine * circles.cosine[i] * across * across
    if chord < 0:  # beyond a pole
        return False
    return 2 * EARTH * math.asin(math.sqrt(min(chord, 1.0))) <= circles.radius[i]


@kernel
def find_circles(
    circles: Circles,
    latitude: F64,
    longitude: F64,
    start: int,
    row: Written[I64],
    found: Written[I64],
    state: Written[I64],
) -> int:
    """Finds the circles that contain places, from row ``start`` on.

    Returns the first row without room. Pairs ascend by row.

    latitude, longitude : (R) float64, degrees. NaN and infinite ones are in no circle
    row, found : (M) int64, written, row and number of the circle of each pair
    state : ``state[0]`` is the number of pairs so far
    """
    for r in range(start, len(latitude)):
        here, there = latitude[r], longitude[r]
        # Skip places that are not finite
        if not (abs(here) < math.inf and abs(there) < math.inf):
            continue
        before = fill = state[0]
        cosine = math.cos(here * RADIANS)
        # Reduce the longitude to a part of one turn
        regular = abs(here) <= 90 and abs(there) <= FAR
        turn = there / 360
        turn -= math.floor(turn)
        # Search the circles without cells, then the place's cell of each level
        for step in range(-1, len(circles.levels) if regular else 0):
            begin, end = 0, len(circles.anywhere) if regular else len(circles.latitude)
            if step >= 0:
                level = circles.levels[step]
                many = 1 << level
                down = min(int((here + 90) / 180 * many), many - 1)
                along = min(int(turn * many), many - 1)
                cell = level << 32 | down << 16 | along
                k = first_at_least(circles.cell, 0, len(circles.cell), cell)
                if k == len(circles.cell) or circles.cell[k] != cell:
                    continue
                begin, end = circles.first[k], circles.first[k + 1]
            for m in range(begin, end):
                # Test each circle exactly
                i = m
                if step >= 0:
                    i = circles.member[m]
                elif regular:
                    i = circles.anywhere[m]
                if is_within(circles, i, here, there, cosine):
                    if fill == len(row):
                        state[0] = before
                        return r
                    row[fill], found[fill] = r, i
                    fill += 1
        state[0] = fill
    return len(latitude)


class KeyArguments(NamedTuple):
    """W lists of arguments, each about one of K keys in a list of structs."""

    key: I64  # (K) ascending
    first: I64  # (K + 1) key -> lists of arguments
    most: I64  # (W) of caps: highest count
    seconds: F64  # (W)


class RowStructs(NamedTuple):
    """The structs of all rows of a batch, by row."""

    row: I64  # (S) ascending
    key: I64  # (S)
    value: I64  # (S) of caps: count so far
    then: F64  # (S) seconds
    now: F64  # (R) seconds, NaN where they are unknown


WITHIN, BEFORE, REACHED = range(3)


@kernel
def find_held(
    wanted: KeyArguments,
    held: RowStructs,
    test: int,
    start: int,
    seen: Written[I64],
    row: Written[I64],
    found: Written[I64],
    state: Written[I64],
) -> int:
    """Finds the lists of arguments that hold for the structs of rows, from struct ``start`` on.

    If structs of a row have the same key, the first one counts. Returns the first struct without
    room.

    test : WITHIN, BEFORE or REACHED
    seen : (K) int64, scratch, the last row with each key; at first -1
    row, found : (M) int64, written, row and list of arguments of each pair
    state : ``state[0]`` is the number of pairs so far
    """
    for s in range(start, len(held.row)):
        k = first_at_least(wanted.key, 0, len(wanted.key), held.key[s])
        r = held.row[s]
        # Skip keys without a list of arguments, and repeated keys
        if k == len(wanted.key) or wanted.key[k] != held.key[s] or seen[k] == r:
            continue
        fill, now, then = state[0], held.now[r], held.then[s]
        if fill + wanted.first[k + 1] - wanted.first[k] > len(row):
            return s
        # Test each list of arguments about the key
        seen[k] = r
        for w in range(wanted.first[k], wanted.first[k + 1]):
            seconds = wanted.seconds[w]
            if test == WITHIN:
                true = now - seconds <= then
            elif test == BEFORE:
                true = now - seconds > then
            else:
                free = wanted.most[w] > held.value[s] or (seconds != 0 and now - then > seconds)
                true = not free and not math.isnan(now)
            if true:
                row[fill], found[fill] = r, w
                fill += 1
        state[0] = fill
    return len(held.row)
