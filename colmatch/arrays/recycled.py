"""Memory for results, reused once nobody holds the result any more.

Fresh pages cost a fault each, 2 us in a virtual machine. With fresh memory for each batch,
``match`` of a million ``dense`` subscriptions took 10.6 us an event instead of 8.9.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 1 << 15  # bytes; smaller arrays are not worth it
KEPT = 4  # arrays: events and ids, while the caller still holds both of the previous batch
_PROBE = [object()]
UNUSED = sys.getrefcount(_PROBE[0])  # ``sys.getrefcount`` of an object that only a list holds


class RecycledArrays:
    """A pool of arrays for results, which are reused once nobody holds them.

    One thread at a time calls ``array``; any thread may use and release the results.
    """

    def __init__(self) -> None:
        self._arrays: list[NDArray[np.uint8]] = []

    def array(self, size: int, dtype: type) -> NDArray[Any]:
        """Returns an array (size) of ``dtype``, not initialised.

        Its memory is not reused before the last reference to a part of it is gone.
        """
        if 8 * size < LARGE:  # no element is larger
            return np.empty(size, dtype)
        needed = size * np.dtype(dtype).itemsize
        arrays = self._arrays
        for i in range(len(arrays)):  # by number, since a variable would be another reference
            if sys.getrefcount(arrays[i]) == UNUSED and len(arrays[i]) >= needed:
                return arrays[i][:needed].view(dtype)
        self._arrays = [arrays[i] for i in range(len(arrays)) if sys.getrefcount(arrays[i]) > UNUSED][1 - KEPT :]
        self._arrays.append(np.empty(needed + needed // 8, np.uint8))
        return self._arrays[-1][:needed].view(dtype)
