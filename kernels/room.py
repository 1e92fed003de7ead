"""Room for what comes later, for lists that grow within a larger array."""

from colmatch.kernels._jit import device


@device
def with_room(size):
    """Length for a list that has ``size`` entries and is about to get more: half as much again.

    To append n entries one by one then copies some 3 n of them in all.
    """
    return size + (size >> 1) + 1
