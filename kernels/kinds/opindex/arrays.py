"""The arrays of an OpIndex: conjunctions by pivot attribute, their predicates by operator.

A *partition* holds the conjunctions of one pivot attribute, which a matching event must have. Each
conjunction has a *slot* there: a counter of the predicates that are met. For each operator, a
partition has a *list* of predicates, in order of attribute and operand. The predicates of one
attribute are a *run*. Runs are grouped into *segments* by a hash of the attribute. Each segment has
a signature of 64 bits, which excludes predicates that are not in it. A value of an event is looked
up in each list of the event's partitions. Every predicate that it meets is counted in its slot.

Ranges with two ends are read before it is known whether a value meets them. More than ``UNDIVIDED``
of them on one attribute are divided into a run for each class of width. Most ranges read in such a
run hold (``kernels/widths.py``).

Example: ``a = 1 AND b <= 5`` and ``a >= 3 AND b = 2`` with the pivot a::

    partition a    slots 0, 1, with 2 predicates each to be counted
      =            run a: (1, slot 0)    run b: (2, slot 1)
      <=           run b: (5, slot 0)
      >=           run a: (3, slot 1)

Operators are pairs of a *shape* and a *mode*. Predicates that must not be met come first, and stop
a slot from ever becoming complete. Predicates that count come next. The alternatives of clauses
come last: a bitmap for each slot remembers the clauses counted so far.
"""

from typing import Annotated, NamedTuple

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.layout import I64, U8, U16, U32, U64, Fixed, Table
from colmatch.kernels.widths import width_class

EQUAL, AT_MOST, AT_LEAST, BETWEEN = 0, 1, 2, 3  # shapes
NEVER, COUNT, CLAUSE = 0, 4, 8  # modes, added to a shape; an event's values meet them in this order
OPERATORS = 12
NONE = 2**32 - 1  # no list

MOST_CLAUSES = 64
CLAUSE_BITS = 6  # bits of the clause in an entry's slot word, in the lists of mode CLAUSE
MOST_NEEDED = 0x3FFF
VERIFY = 0x8000  # flag of ``needed``: the counted predicates are only necessary
STOPPED = 0x8000  # flag of a counter: above every possible count
UNDIVIDED = 256  # ranges that one run may hold, whatever their widths
ALL_WIDTHS = 32  # added to the class of the widest range in such a run
STAMP_BITS = 16
NO_STAMP = 1 << STAMP_BITS

LISTS, SEGMENTS, RUNS, WORDS, SLOTS, ALWAYS, REPEATS, SIGNED, BUILT, STATES = range(10)  # places of ``state``

HASH, WORD, SIZE, ROOM, WIDTH = range(5)  # columns of ``run``
RUN_WORDS = 5

# Most runs a segment has on average, the runs of an attribute counted as one. After inserts it may
# be twice as many, before a list gets more segments.
RUNS_A_SEGMENT = 4
CHUNK = 2048  # slots of entries that are gathered before they are counted


class OpIndex(NamedTuple):
    """The arrays for A attributes, L lists, S segments, R runs, W words, P slots.

    They may have room behind the used part, which ``state`` counts.
    """

    frequency: I64  # (A) estimate of how often events have an attribute: the pivot is the rarest
    top: I64  # (A) highest code of an attribute when the index was built
    lists: Annotated[U32, OPERATORS]  # (A, OPERATORS) pivot and operator -> list, or NONE
    partition: Annotated[
        U32, 4
    ]  # (A, 4) pivot -> first slot, slots in use or free again, room, 1 + first of the free ones or 0
    list: Annotated[U32, 3]  # (L, 3) list -> first segment, binary logarithm of the number of its segments, attributes
    segment: Annotated[U64, 2]  # (S, 2) signature; first run in the low half, number of runs in the high half
    segment_room: U32  # (S)
    run: Annotated[U32, RUN_WORDS]  # (R, 5) hash of the attribute, first word, entries, room, class of width.
    # A segment's runs ascend by hash and class
    # (W) a run's operands, ascending, then its slots, then for BETWEEN its upper operands, with
    # equal room for each
    word: U32
    conj: U32  # (P) slot -> conjunction; or if it is free, 1 + the next free slot of its partition
    needed: U16  # (P) slot -> number of predicates or clauses to be counted, and VERIFY
    always: U32  # conjunctions that are verified for each event
    # (STATES) used parts of the arrays; 1 if a pair may be found twice; 1 if there are signatures;
    # conjunctions at the build
    state: I64


class OpIndexScratch(NamedTuple):
    head: U32  # (A) zero between calls; 1 + last entry of the attribute in the block
    chain: U32  # (E) entry -> 1 + the entry before it with the same attribute, in another row
    row: U32  # (E) row of an entry
    key: U64  # (E) hash of the attribute in the high half, code in the low one
    bit: Table[U8]  # (2, E) signature bits of an entry: for = and for the other shapes
    found: U32  # (A + 1) pivots of the block's rows
    counter: U32  # (slots of the largest partition) stamp, STOPPED, and the count
    mask: U64  # (the same) clauses counted so far
    done: U32  # (the same + 1) complete slots: all of their predicates have been counted
    buffer: U32  # (CHUNK)
    stamp: I64  # (1)
    table: U32  # (A) zero between calls; for verification
    multi: Fixed[U8]  # (A)


@device
def hash_of(attr):
    """Returns the hash of an attribute, a number below 2^32. Its high bits are the segment.

    No two attributes have the same hash.
    """
    return np.uint64(attr) * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)


@device
def signature_bit(hash, shape, code):
    """Returns the signature bit of a predicate, or of the predicates that a value can meet."""
    if shape == EQUAL:
        hash = (hash ^ np.uint64(code) * np.uint64(0xC2B2AE35)) & np.uint64(0xFFFFFFFF)
    return hash * np.uint64(0x85EBCA6B) >> np.uint64(26) & np.uint64(63)


@device
def class_of(lower, upper):
    """Returns the class of width of a range with two ends: class k has up to 4^k codes."""
    return np.int64(width_class(lower, upper) + 1) >> 1


@device
def find_run(run, low, high, hash):
    """Returns the first of the runs ``low:high`` with a hash not below ``hash``."""
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if run[middle, HASH] < hash:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@device
def count_below(word, begin, size, value):
    """Returns how many of the ``size`` ascending words from ``begin`` are below ``value``."""
    low, high = begin, begin + size
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if word[middle] < value:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low - begin
