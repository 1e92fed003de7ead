"""Read-only arrays.

To numba, a read-only array has another type. So each array of an index or a plan that kernels read
must always be read-only.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = TypeVar("Array", bound=NDArray[Any])
Arrays = TypeVar("Arrays")


def freeze_view(array: Array) -> Array:
    """Returns a view that cannot be written; the array itself is unchanged."""
    view = array.view()
    view.setflags(write=False)
    return view


NO_I64: NDArray[np.int64] = freeze_view(np.empty(0, np.int64))
NO_I32: NDArray[np.int32] = freeze_view(np.empty(0, np.int32))
NO_U64: NDArray[np.uint64] = freeze_view(np.empty(0, np.uint64))


def seal(array: Array) -> Array:
    """Makes the array itself read-only, after the last write, and returns it."""
    array.setflags(write=False)
    return array


def freeze(arrays: Arrays) -> Arrays:
    """Returns a NamedTuple with its arrays made contiguous and read-only."""
    return type(arrays)(*map(contiguous, arrays))  # type: ignore[call-overload]


def contiguous(array: Array) -> Array:
    """Returns the array if it is contiguous and read-only, else a view or a copy that is."""
    flags = array.flags
    if not flags.c_contiguous:
        array = np.ascontiguousarray(array)  # type: ignore[assignment]
    return freeze_view(array) if flags.writeable or array.flags.writeable else array
