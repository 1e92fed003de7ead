"""Literals from cut texts -> columns of texts."""

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I64, U8, Written
from colmatch.kernels.sql.arrays import ESCAPED, STRINGS

COMMA, QUOTE, BACKSLASH = 44, 39, 92
PERCENT, UNDERSCORE = 37, 95
CLASS = ESCAPED - 1  # bits of the class in a mark


@device
def copy_string(data, at, end, escaped, out, size):
    """Copies the value of a string to ``out[size:]``. Returns its end."""
    while at < end:
        # Replace an escape by its byte
        byte = data[at]
        if escaped and byte == QUOTE:
            at += 1  # the quote is written twice
        elif escaped and byte == BACKSLASH:
            at += 1
            byte = data[at]
            if byte == 48:
                byte = 0
            elif byte == 98:
                byte = 8
            elif byte == 110:
                byte = 10
            elif byte == 114:
                byte = 13
            elif byte == 116:
                byte = 9
            elif byte == 90:
                byte = 26
            elif byte == PERCENT or byte == UNDERSCORE:
                out[size] = BACKSLASH
                size += 1
        # Copy the byte
        out[size] = byte
        size += 1
        at += 1
    return size


@kernel
def copy_literals(
    data: U8,
    begin: Written[I64],
    end: Written[I64],
    mark: Written[U8],
    which: Written[I64],
    offset: Written[I64],
    out: Written[U8],
) -> None:
    """Copies the values of some literals, one after the other.

    which : (n) int64, their numbers
    offset : (n + 1) int64, written
    """
    size = 0
    offset[0] = 0
    for i in range(len(which)):
        literal = which[i]
        size = copy_string(data, begin[literal], end[literal], mark[literal] >= ESCAPED, out, size)
        offset[i + 1] = size


@device
def is_between(byte):
    """Returns whether a byte separates members of a list."""
    return byte == COMMA or byte == 32 or byte == 9 or byte == 10 or byte == 13


@device
def next_member(data, at, end, strings):
    """Returns the start and end of a list's next member, and the place to go on from."""
    # Skip separators
    while is_between(data[at]):
        at += 1
    at += strings
    begin = at
    # Find the end of the member, then of the separators after it
    if strings:
        while data[at] != QUOTE or data[at + 1] == QUOTE:  # a parenthesis is after the last one
            at += 2 if data[at] == BACKSLASH or data[at] == QUOTE else 1
    else:
        while at < end and not is_between(data[at]):
            at += 1
    last = at
    at += strings
    while at < end and is_between(data[at]):
        at += 1
    return begin, last, at


@kernel
def count_members(
    data: U8, begin: Written[I64], end: Written[I64], mark: Written[U8], which: Written[I64], members: Written[I64]
) -> int:
    """Writes the number of members of each list. Returns the bytes of all members."""
    size = 0
    for i in range(len(which)):
        at, stop = begin[which[i]] + 1, end[which[i]] - 1
        strings = mark[which[i]] & CLASS == STRINGS
        members[i] = 0
        while at < stop:
            first, last, at = next_member(data, at, stop, strings)
            members[i] += 1
            size += last - first
    return size


@kernel
def copy_members(
    data: U8,
    begin: Written[I64],
    end: Written[I64],
    mark: Written[U8],
    which: Written[I64],
    offset: Written[I64],
    out: Written[U8],
) -> None:
    """Copies the values of the members of some lists, one after the other.

    offset : (members + 1) int64, written
    """
    n, size = 0, 0
    offset[0] = 0
    for i in range(len(which)):
        at, stop = begin[which[i]] + 1, end[which[i]] - 1
        strings = mark[which[i]] & CLASS == STRINGS
        while at < stop:
            first, last, at = next_member(data, at, stop, strings)
            size = copy_string(data, first, last, mark[which[i]] >= ESCAPED, out, size)
            n += 1
            offset[n] = size
