"""Predicates by key to sections of records, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.ranges import ranges_of, rows_of, sizes_of
from colmatch.kernels.layout import I64, Predicates
from colmatch.predicates.columns import CONJUNCTION, EMPTY, GIVEN, has_runs
from colmatch.predicates.keys import KeyIntervals
from colmatch.predicates.records import RecordReader, Section, Sections, check, sums

# C conjunctions, P predicates and so on, as in ``layout``. A range is written as its size.
_U4, _I8 = np.dtype("<u4"), np.dtype("<i8")
SECTIONS = {
    "size": Section(_U4),  # (C) predicates
    "owner": Section(_U4, fill=0),  # (C) subscription
    "word": Section(_U4),  # (P) attribute and flags
    "intervals": Section(_U4, fill=1),  # (P)
    "low": Section(_I8),  # of each interval: its lowest key
    "high": Section(_I8),
    "program": Section(np.dtype("u1"), fill=0),  # (C) whether it is a program
    "jump": Section(np.dtype("<i4"), 2),
    "tree_size": Section(_U4, fill=0),  # (C)
    "tree": Section(np.dtype("<i4")),
    **{name: Section(getattr(EMPTY, name).dtype, (*getattr(EMPTY, name).shape, 1)[1], 0) for name in GIVEN},
}


def sections_of(preds: Predicates, keys: KeyIntervals, conj_first: I64, sub_first: I64) -> Sections:
    """Returns predicates as sections of N records.

    keys : intervals of the predicates
    conj_first, sub_first (N + 1) : starts of each record's conjunctions and subscriptions
    """
    pred_first = preds.first[conj_first]
    interval_first = keys.first[pred_first]
    owner = preds.owner - np.repeat(sub_first[:-1], sizes_of(conj_first)).astype(np.uint32)
    sections: Sections = {
        "size": (sizes_of(preds.first), conj_first),
        "word": (preds.pred[:, 0], pred_first),
        "low": (keys.low, interval_first),
        "high": (keys.high, interval_first),
    }
    sections |= {"owner": (owner, conj_first), "intervals": (sizes_of(keys.first), pred_first)}
    for name, per in GIVEN.items():
        sections[name] = getattr(preds, name), conj_first if per == CONJUNCTION else pred_first
    if len(preds.jump_first):
        program = preds.jump_first >= 0
        jump_first = ranges_of(sizes_of(preds.first) * program)
        sections["program"] = program, conj_first
        sections["jump"] = rows_of(preds.jump, preds.jump_first, jump_first), jump_first[conj_first]
        sections["tree_size"] = sizes_of(preds.tree_first), conj_first
        sections["tree"] = preds.tree, preds.tree_first[conj_first]
    return sections


def predicates_of(records: RecordReader, subs: I64) -> tuple[Predicates, KeyIntervals]:
    """Reads the predicates of all records, with keys and without codes.

    subs (N) : number of subscriptions in each record; owners are numbered across records

    Raises ValueError: the sections of a record do not fit each other.
    """
    size, conjunctions, predicates = records["size"], records.counts("size"), records.counts("word")
    check((sums(size, conjunctions) == predicates).all())
    # Read the predicates, without their intervals, and the owners
    pred = np.zeros((len(records["word"]), 3), np.uint32)
    pred[:, 0] = records["word"]
    intervals, owner = records.fill_rows("intervals", predicates), records.fill_rows("owner", conjunctions)
    check((owner < np.repeat(subs, conjunctions)).all())
    columns: dict[str, Any] = {"first": ranges_of(size), "pred": pred, "owner": owner + shifts(subs, conjunctions)}
    for name, per in GIVEN.items():
        if name in records:
            columns[name] = records.fill_rows(name, conjunctions if per == CONJUNCTION else predicates)
    # Read the programs
    program, tree_size = records.fill_rows("program", conjunctions) > 0, records.fill_rows("tree_size", conjunctions)
    jumps = size * program
    check((sums(jumps, conjunctions) == records.counts("jump")).all())
    check((sums(tree_size, conjunctions) == records.counts("tree")).all())
    if program.any():
        columns["jump_first"] = np.where(program, ranges_of(jumps)[:-1], -1)
        columns |= {"jump": records["jump"], "tree_first": ranges_of(tree_size), "tree": records["tree"]}
    preds = EMPTY._replace(**columns)
    # Check the intervals
    check(((intervals == 1) | (has_runs(preds) & (intervals > 0))).all())
    for name in ("low", "high"):
        check((sums(intervals, predicates) == records.counts(name)).all())
    return preds, KeyIntervals(ranges_of(intervals), records["low"], records["high"])


def shifts(sizes: I64, counts: I64) -> NDArray[np.uint32]:
    """Returns the sum of ``sizes`` of earlier records, for each of ``counts`` rows of a record."""
    return np.repeat(ranges_of(sizes)[:-1], counts).astype(np.uint32)
