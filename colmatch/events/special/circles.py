"""An index of circles on the Earth: cells of a grid of latitudes and longitudes.

There are grids of several levels, each with cells of half the size, and a circle is in all cells
that it touches of one level: of the finest whose cells are half as large as it is, or larger. So it
has nine cells at most, and a place asks one cell of each level.
"""

from __future__ import annotations

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.ranges import ranges_of
from colmatch.events.special.pairs import found_pairs
from colmatch.kernels.layout import F64, I64
from colmatch.kernels.special import EARTH, FAR, LEVELS, RADIANS, Circles, find_circles

SPARE = 1e-5  # degrees; with a thousandth of a radius, what the formula may be wrong by and more
ALL_LEVELS = 1 << np.arange(LEVELS)


def circles_of(latitude: F64, longitude: F64, radius: F64) -> Circles:
    """Makes the index of circles.

    latitude, longitude : (N) degrees, finite. Circles beyond a pole, or a thousand times around the
        Earth, have no cells and are asked for every place
    radius : (N) km; none is within a negative one
    """
    strange = (np.abs(latitude) > 90) | (np.abs(longitude) > FAR)
    asked = np.flatnonzero(~strange & (radius >= 0))
    angle = np.minimum(np.degrees(radius[asked] / EARTH) * 1.001 + SPARE, 180.0)
    south, north = latitude[asked] - angle, latitude[asked] + angle
    polar = (south <= -90) | (north >= 90)
    sine = np.sin(angle * RADIANS) / np.maximum(np.cos(latitude[asked] * RADIANS), 1e-300)
    half = np.where(polar, 180.0, np.degrees(np.arcsin(np.clip(sine, 0, 1))) * 1.001 + SPARE)
    width = np.minimum(2 * half, 360.0)
    size = np.maximum((north - south) / 180, width / 360)
    level = np.clip(np.floor(-np.log2(np.minimum(size, 1.0))).astype(np.int64) + 1, 0, LEVELS - 1)
    many = ALL_LEVELS[level]
    low = np.clip((south + 90) / 180 * many, 0, many - 1).astype(np.int64)
    rows = np.clip((north + 90) / 180 * many, 0, many - 1).astype(np.int64) - low + 1
    west = (longitude[asked] - half) / 360
    west -= np.floor(west)
    left = np.floor(west * many).astype(np.int64)
    columns = np.minimum(np.floor((west + width / 360) * many).astype(np.int64) - left + 1, many)
    first = ranges_of(rows * columns)
    circle = np.repeat(np.arange(len(asked)), rows * columns)
    number = np.arange(first[-1]) - first[circle]
    down, along = low[circle] + number // columns[circle], (left[circle] + number % columns[circle]) % many[circle]
    key = level[circle] << 32 | down << 16 | along
    order = np.argsort(key, kind="stable")
    cell, begin = np.unique(key[order], return_index=True)
    cells = np.unique(level), cell, np.append(begin, len(key)), asked[circle[order]]
    return freeze(Circles(latitude, longitude, radius, np.cos(latitude * RADIANS), *cells, np.flatnonzero(strange)))


def places_in(circles: Circles, latitude: F64, longitude: F64) -> tuple[I64, I64]:
    """Finds the circles in which places are: rows, which ascend, and numbers of circles."""
    places = contiguous(latitude), contiguous(longitude)
    return found_pairs(len(latitude), lambda start, *room: find_circles(circles, *places, start, *room))
