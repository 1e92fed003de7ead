"""bitslice: the index in memory, and the scratch of a match.

The postings of a group share an attribute, a stratum (``strata.py``) and a class of width of their
access intervals. ``tiles.py`` defines ranks, bins and bounds.
"""

from typing import Annotated, NamedTuple

import numpy as np

from colmatch.kernels.layout import F64, I64, U8, U16, U32, U64, Table

WORD = 64
ALL = np.uint64(2**64 - 1)

BUFFER = 1024  # postings visited between two rounds of refinement
CANDIDATES_KEPT = 1 << 18  # candidates verified at once; room for 64 rows of every survivor of a round
SEGMENTS = 4096  # most segments of a tile, which has no more rows

MOST_BINS = 254
MOST_RANKS = 1 << 16  # ranks are uint16
NO_RANK = 0

# Bounds of a predicate: its lowest bin in the low byte, the number of its further bins in the high
# byte.
ALWAYS = 255 << 8
NEVER = 255
PRESENT = 1 | (MOST_BINS - 1) << 8

# The high bits of ``BitsliceIndex.who``.
VERIFY = 1 << 31  # masks are a superset: verify
PROGRAM = 1 << 30
CONJ_MASK = (1 << 30) - 1

# ``BitsliceIndex.rest_op``.
MORE = 1  # another interval of the same predicate follows
OUTSIDE = 2  # the predicate is true where none of its intervals holds
VAGUE = 4  # in a program: the mask is a superset of the truth
LAST = 8  # the last entry of its posting
STEP = 16  # the first entry of a program

# Places of ``BitsliceScratch.progress``.
FOUND = 0  # matches written, and matches counted after the sink is full
NOTED = 1  # candidates that wait for verification
LOOKED = 2  # postings looked at, each once for 64 rows
TILES = 3  # tiles filled


class BitsliceIndex(NamedTuple):
    """P postings in G groups, conjunctions in S strata."""

    # ((S + 1) * (A + 1)) begin of each attribute's groups in each stratum, and at last their end in
    # the last stratum. Attribute A has the postings without an access predicate, which always
    # apply. A slice from one stratum on makes an index of the strata in it
    attr_group: I64
    best: Annotated[
        F64, 4
    ]  # (S, 4) highest score of each stratum, by ``layout.DOT`` and so on, if no event gives weights
    expected: F64  # (S) expected matches of an event in each stratum
    reach: U32  # (G) width of the group's widest interval: highest minus lowest code
    group_first: I64  # (G + 1) group -> its postings
    # (G) lowest ``lo`` of the group. This and the next four are hints (``hints.py``) for the place
    # of a code among the group's ``lo``
    lowest: I64
    highest: I64  # (G)
    cell_first: I64  # (G + 1)
    cell_shift: I64  # (G)
    below: U32  # (H)
    lo: U32  # (P) lowest code of the access interval; ascending within a group
    hi: U32  # (P) highest code of the access interval
    who: U32  # (P) subscription, or conjunction if VERIFY or PROGRAM is set; and these flags
    # (8 * P) ranks and bounds of three predicates (see ``tiles.py``); and the first entry in
    # ``rest``, low and high half
    head: U16
    rest: U16  # (2 * R) rank and bounds of the other predicates. Entry 0 belongs to postings that have none
    rest_op: U8  # (R)
    ranks: I64  # (1) number of ranks, NO_RANK included
    rank: U32  # (A) attribute -> its place in a tile, or NO_RANK
    bin_first: I64  # (A + 1) attribute -> its part of ``bin_of``, empty where bins are codes
    bin_of: U8  # code - 1 -> bin
    multi: U8  # (A)
    top: I64  # (A + 1) number of codes
    repeats: U8  # (1) 1 if a subscription may be found twice for a row


class GroupHints(NamedTuple):
    """Hints for the place of a code among a group's lowest codes, taken out of the index.

    With the whole index as an argument, the kernel took 17 % longer for one event of
    ``pstree-sparse`` at 100,000 subscriptions.
    """

    lo: U32
    lowest: I64
    highest: I64
    cell_first: I64
    cell_shift: I64
    below: U32


class Survivors(NamedTuple):
    """Postings that hold for some rows of a tile, by the tests so far."""

    posting: U32  # (2 * BUFFER)
    place: U32  # (2 * BUFFER) position in the tile of the first of up to 64 rows
    mask: U64  # (2 * BUFFER) rows left


class Active(NamedTuple):
    """Range postings that some sorted rows meet."""

    posting: U32  # (most postings of an attribute)
    begin: U32  # (the same) position in the tile of the first row in the range
    end: U32  # (the same) one past the last


class Candidates(NamedTuple):
    """Pairs of row and conjunction that masks do not decide."""

    row: U32  # (CANDIDATES_KEPT) counted from the first row of the call
    conj: U32  # (CANDIDATES_KEPT)


class BitsliceScratch(NamedTuple):
    """Working memory for a block of up to N rows with E entries."""

    progress: I64  # (4) counts of the call so far: FOUND, NOTED, LOOKED, TILES
    slot: U32  # (E + 7 * N)
    slot_first: U64  # (N + 1)
    attr: U32  # (A + 1) attribute of each column; A has every row
    column: I64  # (A + 2) column -> its rows
    tally: I64  # (A) zero between calls
    row: U32  # (E + N)
    code: U32  # (E + N)
    spare_row: U32  # (E)
    spare_code: U32  # (E)
    histogram: I64  # (256)
    sorted: U8  # (A + 1) 1 for columns that are sorted
    stride: I64  # (1) rows of a tile
    tile: U8  # (ranks * stride + 64) zero between calls
    survivors: Survivors
    active: Active
    # (S, 3) begin and end of the postings to visit; position of the first row, or the code that
    # their intervals must reach
    segment: Table[U32]
    bits: U64  # (strata * SEGMENTS) rows of the segments of a tile
    found: Table[U32]  # (S, 4) segments of rows before they are ordered: row, then as ``segment``
    segment_first: I64  # (N + 1) row -> its segments
    code_place: I64  # (most codes + 2)
    target: U64  # (longest program + 1) zero between calls
    candidates: Candidates
    ordered: U32  # (CANDIDATES_KEPT) conjunctions of candidates by row
    order: I64  # (N + 1) row -> its candidates
    values: U32  # (A) table of one row for verification, zero between calls
