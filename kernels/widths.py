"""Classes of ranges by width, for lists that are ordered by lowest code.

In a list of all widths, a search for the ranges around a value must begin at the first range, which
may be the widest. A list of ranges of one *class* of width is read from as far below the value as
its widest range reaches. Narrow ranges are then neighbours of the value, and most of the ranges
that are read contain it.

Propagation's classes are powers of two. OpIndex's are powers of four: it has a list for each
partition and searches each class of it. So it has classes only where one attribute of a partition
has more than 256 ranges. Shorter lists are read no further down than their widest range reaches.
"""

from colmatch.kernels._jit import device


@device
def width_class(low, high):
    """Returns the class of a range: the number of binary digits of ``high - low``.

    Class 0 is a single code, class k has up to 2^k codes.
    """
    width = high - low
    size = 0
    while width > 0:
        width >>= 1
        size += 1
    return size
