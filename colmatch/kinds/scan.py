"""SCAN: looks at every conjunction.

Source: the sequential scan that all papers compare with.

Deviation: predicates are packed and ordered most selective first, which the papers leave open. So
the yardstick is an honest one. Events of a batch are tested 64 at once (``tiles``); the yardstick
is the scan without tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colmatch.arrays.frozen import contiguous, freeze_view
from colmatch.kernels._jit import entry
from colmatch.kernels.kinds.scan.arrays import HEAD_BLOCK, ROW_BLOCK, TILES, ScanIndex, ScanScratch
from colmatch.kernels.kinds.scan.match import enter, enter_few, match
from colmatch.kernels.kinds.scan.ranges import match_ranges
from colmatch.kernels.layout import I64, Codes, Predicates
from colmatch.kernels.tiles import TILE_LEAST, TILE_MOST, TILE_ROWS
from colmatch.kinds.base import IndexKind
from colmatch.kinds.settings import Settings, setting
from colmatch.kinds.sound import check_below, check_equal, check_lengths
from colmatch.kinds.statistics import Sample


@dataclass(frozen=True, slots=True, repr=False)
class ScanSettings(Settings):
    """Settings of scan: the shared work between events, and the budget."""

    kind = "scan"
    about = "a look at every subscription for every event, its most selective predicate first"

    tiles: bool = setting(
        True,
        "test 64 events of a batch at once; without, they are looked at one by one, as the papers do",
        (True, False),
    )


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: ScanSettings
) -> tuple[ScanIndex, Predicates]:
    none = freeze_view(np.empty((0, 3), np.uint32))
    empty = ScanIndex(none, none, codes.multi, np.array([0, settings.tiles], np.int64))
    return _enter_heads(empty, preds, 0, len(preds.owner), len(codes.label) > 0), preds


def insert(index: ScanIndex, preds: Predicates, codes: Codes, begin: int, end: int) -> ScanIndex:
    """Appends the heads of the conjunctions ``begin:end``, after ``begin`` heads so far."""
    return _enter_heads(index._replace(multi=codes.multi), preds, begin, end, True)


def _enter_heads(index: ScanIndex, preds: Predicates, begin: int, end: int, labelled: bool) -> ScanIndex:
    """Returns the index with the conjunctions ``begin:end``."""
    head, second = contiguous(index.head), contiguous(index.second)
    first, pred, run_lo, run_hi, _, _, jump_first, jump, *_ = preds
    heads, seconds = np.empty((end, 3), np.uint32), np.empty((end, 3), np.uint32)
    entry(enter_few if begin else enter)(
        head, second, first, pred, run_lo, run_hi, jump_first, jump, labelled, begin, end, heads, seconds
    )
    return ScanIndex(heads, seconds, index.multi, np.array([end, index.state[TILES]], np.int64))


def delete(index: ScanIndex, preds: Predicates, codes: Codes, conjunctions: I64) -> ScanIndex:
    """Makes the heads of these conjunctions ranges that nothing lies in.

    Heads cannot be closed up, since the place of a head is the conjunction's number.
    """
    head = index.head.copy()
    head[conjunctions, 1:] = 1, 0
    return index._replace(head=head)


def scratch(index: ScanIndex, codes: Codes, rows: int, entries: int) -> ScanScratch:
    attributes = max(len(codes.multi), 1)
    tile = attributes * TILE_ROWS if index.state[TILES] and rows >= TILE_LEAST else 0
    return ScanScratch(
        np.zeros(attributes, np.uint32),
        np.zeros(tile if tile <= TILE_MOST else 0, np.uint32),
        np.empty(HEAD_BLOCK, np.uint32),
        np.empty(ROW_BLOCK, np.int64),
    )


def sound(index: ScanIndex, preds: Predicates, codes: Codes, size: int) -> ScanIndex:
    count, attributes = len(preds.owner), len(codes.multi)
    check_lengths(index, {"head": count, "second": count, "multi": attributes, "state": 2})
    check_equal("multi", index.multi, codes.multi)
    check_equal("state", index.state[:1], np.array([count]))
    for name in ("head", "second"):
        check_below(name, getattr(index, name)[:, 0], max(attributes, 1))  # TRUE has no attribute, but 0 in its place
    return index


KIND = IndexKind(
    ScanSettings, ScanIndex, build, scratch, match,
    insert=insert, delete=delete, match_ranges=match_ranges, sound=sound,
)  # fmt: skip
