"""LIKE on candidates: pairs of a string and a pattern whose literal is in it.

The *program* of a pattern is the pieces between its ``%``, in which ``_`` is byte 0xFF, which no
UTF-8 has. Each piece is found where it is first, from where the one before ended. That is right
since a piece has a fixed number of characters.

In strings that are not UTF-8, ``%`` between two pieces and ``_`` never stand for a byte that is
part of no character, as RE2 has it. So no match goes over such a byte, and the search begins anew
behind it.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I32, I64, U8, Written

ONE = 0xFF
OPEN_START, OPEN_END, CHARACTERS = 1, 2, 4


class Programs(NamedTuple):
    """LIKE patterns, for those of P patterns that a literal does not decide."""

    number: I32  # (P) what a pattern is called in the results
    first: I64  # (P + 1) pattern -> its pieces; none when its literal decides
    # (P) OPEN_START: a % before the first piece; OPEN_END: one after the last; CHARACTERS: _ is one
    # of UTF-8, else a byte
    mode: U8
    piece: I64  # (pieces + 1) piece -> its bytes, at least one
    text: U8


@device
def width(data, at, end):
    """Bytes of the character there; 0 where there is none.

    What RE2's ``.`` takes for one: overlong forms and surrogates too.
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
    programs: Programs,
    begin: int,
    end: int,
    value: Written[I32],
    pattern: Written[I32],
) -> int:
    """Keeps the true ones of pairs ``begin:end``, with the numbers of their patterns.

    Returns the end of what is kept.

    Parameters
    ----------
    offset (int64), data (uint8), shift : strings; ``value`` says number ``v + shift`` for string v
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
                if moves and letter != ONE:
                    while at < stop and data[at] != letter and data[at] < 0x80:
                        at += np.uint64(1)
                i_end = np.uint64(piece[k + np.uint64(1)])
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
