"""SCAN: how the index lies in memory, and the scratch of a match."""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import I64, U8, U32

ROW_BLOCK = 256
HEAD_BLOCK = 4096

# Places of ``ScanIndex.state``.
HEADS = 0
TILES = 1


class ScanIndex(NamedTuple):
    """Two predicates of each conjunction, as ranges of the event table (``kernels/predicates.py``);
    there may be room for more.

    One that was deleted has a head that nothing lies in.
    """

    head: Annotated[U32, 3]  # (C, 3) the first that is tested: attribute, lowest, highest
    second: Annotated[U32, 3]  # (C, 3) the next one, or a range that everything lies in
    multi: U8  # (A) attribute may have several entries in a row
    state: I64  # (2) conjunctions; 1 where tiles are to be made


class ScanScratch(NamedTuple):
    """Working memory of one thread."""

    table: U32  # (A) zero between calls
    tile: U32  # (A * TILE_ROWS) zero between calls; (0) where attributes are too many
    survivor: U32  # (HEAD_BLOCK)
    last: I64  # (ROW_BLOCK) last subscription emitted for each row of the block
