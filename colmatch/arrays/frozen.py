"""Read-only arrays.

To numba, read-only is another type, so whatever kernels read of an index or a plan must always be
so.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = TypeVar("Array", bound=NDArray[Any])
Arrays = TypeVar("Arrays")


def frozen(array: Array) -> Array:
    """A view that cannot be written; the array itself stays as it is."""
    view = array.view()
    view.setflags(write=False)
    return view


def sealed(array: Array) -> Array:
    """Returns the array itself, which nobody writes any more."""
    array.setflags(write=False)
    return array


def freeze(arrays: Arrays) -> Arrays:
    """A NamedTuple with its arrays made contiguous and read-only."""
    return type(arrays)(*map(contiguous, arrays))  # type: ignore[call-overload]


def contiguous(array: Array) -> Array:
    """The array if it is contiguous and read-only, else a view or a copy that is."""
    flags = array.flags
    if not flags.c_contiguous:
        array = np.ascontiguousarray(array)  # type: ignore[assignment]
    return frozen(array) if flags.writeable or array.flags.writeable else array
