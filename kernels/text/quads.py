"""Dotted quads, the texts of addresses of version 4, as texts in the order of their numbers."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import I64, U8, Bools, Table, Written

DOT, ZERO, NINE, FOUR, LETTER = ord("."), ord("0"), ord("9"), ord("4"), ord("a")
DIGITS = 7  # of 5 bits each
LEAST, MOST = 7, 15  # bytes of a quad


@kernel
def read_quads(offset: I64, data: U8, out: Written[Table[U8]], is_quad: Written[Bools]) -> None:
    """Writes whether each string is a dotted quad, and then its text (``text/addresses.py``).

    Each of its four numbers is at most 255 and has no leading zero, as in Python's ``ipaddress``.

    offset, data : int64, uint8, the strings
    out : (strings, 8) uint8, left as it is where a string is no quad
    is_quad : (strings) bool
    """
    for v in range(len(is_quad)):
        begin, end = offset[v], offset[v + 1]
        is_quad[v] = False
        # Read the four numbers
        number, part, digits, dots = np.int64(0), np.int64(0), 0, 0
        right = LEAST <= end - begin <= MOST
        i = begin
        while right and i < end:
            letter = np.int64(data[i])
            if letter == DOT:
                right = digits > 0
                number = number << 8 | part
                part, digits, dots = np.int64(0), 0, dots + 1
            else:
                right = ZERO <= letter <= NINE and (digits == 0 or part > 0)
                part = 10 * part + letter - ZERO
                right = right and part <= 255
                digits += 1
            i += 1
        if not right or digits == 0 or dots != 3:
            continue
        # Write the text
        number = number << 8 | part
        is_quad[v] = True
        out[v, 0] = FOUR
        for place in range(DIGITS):
            digit = number >> 5 * (DIGITS - 1 - place) & 31
            out[v, 1 + place] = ZERO + digit if digit < 10 else LETTER + digit - 10
