"""SCAN: the index in memory, and the scratch of a match."""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import I64, U8, U32

ROW_BLOCK = 256
HEAD_BLOCK = 4096

# Places of ``ScanIndex.state``.
HEADS = 0
TILES = 1


class ScanIndex(NamedTuple):
    """Two predicates of each conjunction, as ranges of the event table (``kernels/predicates.py``).
    There may be room for more.

    A deleted conjunction has a head with an empty range.
    """

    head: Annotated[U32, 3]  # (C, 3) predicate tested first: attribute, lowest, highest
    second: Annotated[U32, 3]  # (C, 3) predicate tested next, or the range of all values
    multi: U8  # (A) attribute may have several entries in a row
    state: I64  # (2) number of conjunctions; 1 if tiles may be used


class ScanScratch(NamedTuple):
    """Working memory of one thread."""

    table: U32  # (A) zero between calls
    tile: U32  # (A * TILE_ROWS) zero between calls; (0) if there are too many attributes
    survivor: U32  # (HEAD_BLOCK)
    last: I64  # (ROW_BLOCK) last subscription emitted for each row of the block
