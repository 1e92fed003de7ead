"""Binary searches in sorted arrays."""

from colmatch.kernels._jit import device


@device
def first_at_least(code, begin, end, value):
    """Returns the place of the first code that is not below ``value``.

    This is a binary search without a branch on the comparison.
    """
    base = begin
    size = end - begin
    while size > 0:
        half = (size + 1) >> 1
        if code[base + half - 1] < value:
            base += half
        size -= half
    return base


@device
def first_at_least_from(code, begin, end, value):
    """Returns the place of the first code that is not below ``value``, by galloping.

    This is quick where the place is likely to be near ``begin``.
    """
    step = 1
    low = begin
    while low + step <= end and code[low + step - 1] < value:
        low += step
        step += step
    return first_at_least(code, low, min(low + step, end), value)
