"""Strings in lower case, and a test for ASCII."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import I64, U8, Bools, Written


@kernel
def lower(data: U8, out: Written[U8]) -> bool:
    """Writes bytes with a to z in place of A to Z. Returns whether all of them are ASCII.

    data, out : uint8, of one length
    """
    seen = np.uint8(0)
    for i in range(len(out)):
        letter = data[i]
        seen |= letter
        out[i] = letter + np.uint8(32) if (letter >= 65) & (letter <= 90) else letter
    return seen < 0x80


@kernel
def ascii_only(offset: I64, data: U8, begin: int, end: int, but: int, which: Written[Bools]) -> None:
    """Writes for each of the strings ``begin:end`` whether it is ASCII.

    offset, data : int64, uint8, the strings
    but : a byte that they must not have, or 0x80
    which : (end - begin) bool
    """
    for v in range(begin, end):
        text = data[offset[v] : offset[v + 1]]
        odd = False
        for i in range(len(text)):
            odd |= (text[i] >= 0x80) | (text[i] == but)
        which[v - begin] = not odd
