"""SCAN: looks at every conjunction. Source: the sequential scan that all source documents compare with.

Deviation: predicates are packed and ordered most selective first, which the documents leave open, so that the yardstick is an honest one.
"""

from __future__ import annotations

import numpy as np

from colmatch.index.base import IndexKind
from colmatch.kernels import scan
from colmatch.kernels.layout import Codes, Predicates
from colmatch.options import Options
from colmatch.stats import Sample, Statistics


def build(preds: Predicates, codes: Codes, sample: Sample | None, options: Options) -> tuple[scan.ScanIndex, Predicates]:
    count = len(preds.owner)
    index = scan.ScanIndex(np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.uint32), codes.multi)
    scan.build(preds, index.attr, index.lo, index.hi)
    return index, preds


def scratch(index: scan.ScanIndex, codes: Codes, rows: int, entries: int) -> scan.ScanScratch:
    return scan.ScanScratch(
        np.zeros(max(len(codes.multi), 1), np.uint32), np.empty(scan.HEAD_BLOCK, np.uint32), np.empty(scan.ROW_BLOCK, np.int64)
    )


def cost(statistics: Statistics) -> float:
    return 0.6 * statistics.conjunctions + 0.22 * statistics.intervals


KIND = IndexKind("scan", scan.ScanIndex, build, scratch, scan.match, cost)
