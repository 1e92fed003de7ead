"""Room for later entries, in lists that grow within a larger array."""

from colmatch.kernels._jit import device


@device
def add_room(size):
    """Returns a length for a list of ``size`` entries that is about to grow: half as much again.

    Appending n entries one by one then copies some 3 n entries in all.
    """
    return size + (size >> 1) + 1
