"""Records of 32-bit words: a head, and sections of any length one behind the other.

The head of a record has its length in words, 64 bits for the sections that it has, and the bytes of
each of these. A section begins with a new word.
"""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import I64, U8, U32, Table, Written

HEAD = 3  # words before the sizes of sections: length, low and high half of the bits


@kernel
def write_records(
    data: U8, begin: Written[I64], places: I64, sizes: Table[I64], first: I64, words: Written[U32], out: Written[U8]
) -> None:
    """Writes records out of their sections.

    data (D) uint8 : the first section of all records, then the second, and so on
    begin (S) int64 : start of each section in ``data``; moved to its end
    places (S) int64 : bit of each section, ascending
    sizes (S, N) int64 : bytes that each record has of each section
    first (N + 1) int64 : first word of each record
    words (W) uint32, out (4 W) uint8 : the same memory, which is written; zeros on entry
    """
    for r in range(len(first) - 1):
        # Write the head
        head = first[r]
        words[head] = first[r + 1] - head
        n = head + HEAD
        bits = np.uint64(0)
        for s in range(len(places)):
            if sizes[s, r] > 0:
                bits |= np.uint64(1) << np.uint64(places[s])
                words[n] = sizes[s, r]
                n += 1
        words[head + 1] = bits & np.uint64(0xFFFFFFFF)
        words[head + 2] = bits >> np.uint64(32)
        # Copy the sections
        for s in range(len(places)):
            start, size = begin[s], sizes[s, r]
            for j in range(size):
                out[4 * n + j] = data[start + j]
            begin[s] = start + size
            n += (size + 3) >> 2


@kernel
def check_records(words: U32, first: I64, sections: int) -> int:
    """Checks that records are as long as their heads say, and have only known sections.

    Returns a bit for each section that some record has, or -1 if a check fails.

    words (W) uint32
    first (N + 1) int64 : first word of each record
    sections : number of known sections, at most 62
    """
    seen = np.int64(0)
    for r in range(len(first) - 1):
        # Check the length and the bits of the head
        begin, length = first[r], first[r + 1] - first[r]
        if length < HEAD or np.int64(words[begin]) != length:
            return np.int64(-1)
        bits = np.int64(words[begin + 1]) | np.int64(words[begin + 2]) << 32
        if bits >> sections != 0:
            return np.int64(-1)
        # Subtract the lengths of the sections
        seen |= bits
        n = begin + HEAD
        end = begin + length
        while bits != 0 and n < end:
            length -= 1 + ((np.int64(words[n]) + 3) >> 2)
            bits &= bits - 1
            n += 1
        # Check that nothing is left
        if bits != 0 or length != HEAD:
            return np.int64(-1)
    return seen


@kernel
def find_section(words: U32, first: I64, place: int, start: Written[I64], size: Written[I64]) -> None:
    """Writes the byte where a section begins in each record, and its size: 0 where it is missing.

    words, first : as for ``check_records``
    place : bit of the section
    start, size (N) int64 : written
    """
    for r in range(len(first) - 1):
        # Skip records without the section
        bits = np.int64(words[first[r] + 1]) | np.int64(words[first[r] + 2]) << 32
        start[r] = size[r] = 0
        if not bits >> place & 1:
            continue
        # Add up the sizes of the sections before it
        n = first[r] + HEAD
        count = before = np.int64(0)
        while bits != 0:
            lowest = bits & -bits
            if lowest < np.int64(1) << place:
                before += (np.int64(words[n + count]) + 3) >> 2
            elif lowest == np.int64(1) << place:
                size[r] = words[n + count]
            count += 1
            bits ^= lowest
        # Write its first byte
        start[r] = 4 * (n + count + before)
