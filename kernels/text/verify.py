"""LIKE on candidates: pairs of a string and a pattern that has its literal in the string.

The *program* of a pattern is the pieces between its ``%``. In a piece, ``_`` is byte 0xFF, which
UTF-8 never has. Each piece is matched at its first place after the piece before. Since a piece has
a fixed number of characters, this is right.

In strings that are not UTF-8, some bytes are part of no character. ``%`` between two pieces and
``_`` never match such a byte, as in RE2. So no match extends over it, and the search starts again
after it.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I32, I64, U8, Written

ONE = 0xFF
OPEN_START, OPEN_END, CHARACTERS = 1, 2, 4


class LikePrograms(NamedTuple):
    """LIKE patterns, with pieces for those of P patterns that a literal does not decide."""

    number: I32  # (P) number of a pattern in the results
    first: I64  # (P + 1) pattern -> its pieces; none when its literal decides
    # (P) OPEN_START: a % before the first piece; OPEN_END: one after the last; CHARACTERS: _ is a
    # character of UTF-8, else a byte
    mode: U8
    piece: I64  # (pieces + 1) piece -> its bytes, at least one
    text: U8


@device
def width(data, at, end):
    """Returns the bytes of the character at a place; 0 where there is none.

    A character is anything that RE2's ``.`` matches, including overlong forms of three or four
    bytes, and surrogates.
    """
    letter = data[at]
    if letter < 0x80:
        return np.uint64(1)
    if letter < 0xC2 or letter > 0xF4:
        return np.uint64(0)
    n = np.uint64(2) if letter < 0xE0 else np.uint64(3) if letter < 0xF0 else np.uint64(4)
    if at + n > end:
        return np.uint64(0)
    i = at + np.uint64(1)
    while i < at + n:
        if data[i] & 0xC0 != 0x80:
            return np.uint64(0)
        i += np.uint64(1)
    return n


@kernel
def verify(
    offset: I64,
    data: U8,
    shift: int,
    programs: LikePrograms,
    begin: int,
    end: int,
    value: Written[I32],
    pattern: Written[I32],
) -> int:
    """Keeps the true ones of pairs ``begin:end``, with the numbers of their patterns.

    Returns the end of the pairs that are kept.

    Parameters
    ----------
    offset, data, shift : int64, uint8, the strings; ``value`` has number ``v + shift`` for string v
    value, pattern : int32, changed in place
    """
    number, program, modes, piece, text = programs.number, programs.first, programs.mode, programs.piece, programs.text
    kept = begin
    for j in range(begin, end):
        p = pattern[j]
        first = np.uint64(program[p])
        last = np.uint64(program[p + 1])
        true = first == last
        if not true:
            at = np.uint64(offset[value[j] - shift])
            stop = np.uint64(offset[value[j] - shift + 1])
            mode = modes[p]
            moves = mode & OPEN_START != 0
            k = first
            while True:
                # One turn: piece k at this place, or the next place.
                i = np.uint64(piece[k])
                letter = text[i]
                # Skip bytes that cannot begin the piece
                if moves and letter != ONE:
                    while at < stop and data[at] != letter and data[at] < 0x80:
                        at += np.uint64(1)
                i_end = np.uint64(piece[k + np.uint64(1)])
                # Compare the piece
                q = at
                while i < i_end and q < stop:
                    letter = text[i]
                    if letter != ONE:
                        if data[q] != letter:
                            break
                        q += np.uint64(1)
                    elif data[q] < 0x80 or mode & CHARACTERS == 0:
                        q += np.uint64(1)
                    else:
                        n = width(data, q, stop)
                        if n == 0:
                            break
                        q += n
                    i += np.uint64(1)
                # Go on to the next piece after this one, or accept
                if i == i_end and (k + np.uint64(1) < last or mode & OPEN_END or q == stop):
                    k += np.uint64(1)
                    if k == last:
                        true = True
                        break
                    at = q
                    moves = True
                    continue
                if at >= stop or not moves:
                    break
                # Move on by a character, or start again after a byte that is none
                n = np.uint64(1)
                if k > first and mode & CHARACTERS:
                    n = width(data, at, stop)
                if n:
                    at += n
                elif mode & OPEN_START:
                    k = first
                    at += np.uint64(1)
                else:
                    break
        if true:
            value[kept] = value[j]
            pattern[kept] = number[p]
            kept += 1
    return kept
