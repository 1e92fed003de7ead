"""SCAN: looks at every conjunction.

Source: the sequential scan that all source documents compare with.

Deviation: predicates are packed and ordered most selective first, which the documents leave open,
so that the yardstick is an honest one. Events of a batch are tested 64 at once (``tiles``); the
yardstick is the scan without that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colmatch.arrays.growing import extended
from colmatch.indexing.base import IndexKind
from colmatch.indexing.settings import Settings, setting
from colmatch.indexing.statistics import Sample, Statistics
from colmatch.kernels.layout import ATTR_MASK, FLAG_MULTI, I64, Codes, Predicates
from colmatch.kernels.scan.arrays import (
    HEAD_BLOCK,
    HEADS,
    ROW_BLOCK,
    TILE_LEAST,
    TILE_MOST,
    TILE_ROWS,
    TILES,
    ScanIndex,
    ScanScratch,
)
from colmatch.kernels.scan.match import enter, match


@dataclass(frozen=True, slots=True, repr=False)
class ScanSettings(Settings):
    """Whether scan shares work between events, and what it keeps whole."""

    kind = "scan"
    about = "a look at every subscription for every event, its most selective predicate first"

    tiles: bool = setting(
        True,
        "test 64 events of a batch at once; without, they are looked at one by one, as the documents do",
        (True, False),
    )


def build(
    preds: Predicates, codes: Codes, sample: Sample | None, settings: ScanSettings
) -> tuple[ScanIndex, Predicates]:
    count = len(preds.owner)
    index = ScanIndex(
        np.empty((count, 3), np.uint32),
        np.empty((count, 3), np.uint32),
        codes.multi,
        np.array([count, settings.tiles], np.int64),
    )
    enter(preds, 0, count, len(codes.label) > 0, index.head, index.second)
    return index, preds


def insert(index: ScanIndex, preds: Predicates, begin: int, end: int) -> ScanIndex:
    """Append the heads of the conjunctions ``begin:end``, the first of which is the next that
    the index has not.
    """
    word = preds.pred[preds.first[begin] : preds.first[end], 0]
    index = _writable(index, end, int((word & ATTR_MASK).max(initial=0)) + 1 if len(word) else 0)
    index.multi[word[(word & FLAG_MULTI) != 0] & ATTR_MASK] = 1
    enter(preds, begin, end, True, index.head, index.second)
    index.state[HEADS] = end
    return index


def delete(index: ScanIndex, preds: Predicates, conjunctions: I64) -> ScanIndex:
    """Heads cannot be closed up, since a conjunction's number is its place: these become ranges
    that nothing lies in.
    """
    index = _writable(index, 0, 0)
    index.head[conjunctions, 1:] = 1, 0
    return index


def _writable(index: ScanIndex, heads: int, attributes: int) -> ScanIndex:
    """The arrays, copied if they are read-only, with room for at least so many conjunctions and
    attributes.
    """
    if not index.state.flags.writeable:
        index = ScanIndex(*(array.copy() for array in index))  # type: ignore[arg-type]
    used = len(index.head)
    index = index._replace(head=extended(index.head, used, heads), second=extended(index.second, used, heads))
    if attributes > len(index.multi):
        index = index._replace(multi=np.append(index.multi, np.zeros(attributes - len(index.multi), np.uint8)))
    return index


def scratch(index: ScanIndex, codes: Codes, rows: int, entries: int) -> ScanScratch:
    attributes = max(len(codes.multi), 1)
    tile = attributes * TILE_ROWS if index.state[TILES] and rows >= TILE_LEAST else 0
    return ScanScratch(
        np.zeros(attributes, np.uint32),
        np.zeros(tile if tile <= TILE_MOST else 0, np.uint32),
        np.empty(HEAD_BLOCK, np.uint32),
        np.empty(ROW_BLOCK, np.int64),
    )


def cost(statistics: Statistics) -> float:
    # A program of ten predicates takes as long as what 300 conjunctions take.
    return 0.6 * statistics.conjunctions + 0.22 * statistics.intervals + 200 * statistics.programs


KIND = IndexKind(ScanSettings, ScanIndex, build, scratch, match, cost, insert=insert, delete=delete)
