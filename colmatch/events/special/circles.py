"""An index of circles on the Earth: cells of a grid of latitudes and longitudes.

There are grids of several levels, each with cells of half the size. A circle is in all cells that
it touches on one level: the finest with cells at least half as large as the circle. So it has nine
cells at most, and a place looks up one cell on each level.
"""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.ranges import ranges_of
from colmatch.events.special.pairs import find_pairs
from colmatch.kernels.layout import F64, I64
from colmatch.kernels.special import EARTH, FAR, LEVELS, RADIANS, Circles, find_circles

SPARE = 1e-5  # degrees; with a thousandth of a radius, more than the error of the formula
ALL_LEVELS = 1 << np.arange(LEVELS)


def circles_of(latitude: F64, longitude: F64, radius: F64) -> Circles:
    """Makes the index of circles.

    latitude, longitude : (N) degrees, finite. Circles beyond a pole, or a thousand times around the
        Earth, have no cells and are tested for every place
    radius : (N) km; no place is within a negative one
    """
    # Set apart the circles without cells
    strange = (np.abs(latitude) > 90) | (np.abs(longitude) > FAR)
    regular = np.flatnonzero(~strange & (radius >= 0))
    # Bound the circles by latitudes and longitudes
    angle = np.minimum(np.degrees(radius[regular] / EARTH) * 1.001 + SPARE, 180.0)
    south, north = latitude[regular] - angle, latitude[regular] + angle
    polar = (south <= -90) | (north >= 90)
    sine = np.sin(angle * RADIANS) / np.maximum(np.cos(latitude[regular] * RADIANS), 1e-300)
    half = np.where(polar, 180.0, np.degrees(np.arcsin(np.clip(sine, 0, 1))) * 1.001 + SPARE)
    width = np.minimum(2 * half, 360.0)
    # Choose the level of each circle by its size
    size = np.maximum((north - south) / 180, width / 360)
    level = np.clip(np.floor(-np.log2(np.minimum(size, 1.0))).astype(np.int64) + 1, 0, LEVELS - 1)
    many = ALL_LEVELS[level]
    # Find the rows and columns of cells that each circle touches
    low = np.clip((south + 90) / 180 * many, 0, many - 1).astype(np.int64)
    rows = np.clip((north + 90) / 180 * many, 0, many - 1).astype(np.int64) - low + 1
    west = (longitude[regular] - half) / 360
    west -= np.floor(west)
    left = np.floor(west * many).astype(np.int64)
    columns = np.minimum(np.floor((west + width / 360) * many).astype(np.int64) - left + 1, many)
    # List these cells, and group the circles by cell
    first = ranges_of(rows * columns)
    circle = np.repeat(np.arange(len(regular)), rows * columns)
    number = np.arange(first[-1]) - first[circle]
    down, along = low[circle] + number // columns[circle], (left[circle] + number % columns[circle]) % many[circle]
    key = level[circle] << 32 | down << 16 | along
    order = np.argsort(key, kind="stable")
    cell, begin = np.unique(key[order], return_index=True)
    cells = np.unique(level), cell, np.append(begin, len(key)), regular[circle[order]]
    return freeze(Circles(latitude, longitude, radius, np.cos(latitude * RADIANS), *cells, np.flatnonzero(strange)))


def places_in(circles: Circles, latitude: F64, longitude: F64) -> tuple[I64, I64]:
    """Returns the circles around places: rows, which ascend, and numbers of circles."""
    places = contiguous(latitude), contiguous(longitude)
    return find_pairs(len(latitude), lambda start, *room: find_circles(circles, *places, start, *room))
