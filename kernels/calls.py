"""Special functions of expressions, for all rows of a batch: one call for each argument list."""

import math

from colmatch.kernels._jit import kernel

EARTH = 6372.8  # km, its radius as the be-tree library takes it
RADIANS = math.pi / 180.0


@kernel
def within_circle(latitude, longitude, lat, lon, radius, out):
    """Finds out whether a place is within some kilometres of another, on a great circle.

    latitude, longitude (R) float64 : degrees, NaN where they are unknown. out (R) uint8 : written
    """
    cosine = math.cos(lat * RADIANS)
    beyond = abs(lat) > 90  # over the pole and down again
    for r in range(len(out)):
        north = (latitude[r] - lat) * RADIANS
        out[r] = 0
        # else it is farther away by latitude alone
        if beyond or abs(latitude[r]) > 90 or abs(north) * EARTH <= radius * 1.001:
            up, across = math.sin(north / 2), math.sin((longitude[r] - lon) * RADIANS / 2)
            chord = up * up + math.cos(latitude[r] * RADIANS) * cosine * across * across
            out[r] = 2 * EARTH * math.asin(math.sqrt(min(chord, 1.0))) <= radius
