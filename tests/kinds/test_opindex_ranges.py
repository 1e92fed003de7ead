"""Ranges with two ends in OpIndex: few are read that do not hold, whatever came and went."""

from __future__ import annotations

from random import Random

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from numpy.typing import NDArray
from sizes import SMALL
from test_opindex import with_arrays
from test_opindex_updates import start_with

import colmatch as cm
import colmatch.kinds.opindex
from colmatch.kernels.kinds.opindex.arrays import ALL_WIDTHS, HASH, NONE, UNDIVIDED, WIDTH, OpIndex

MODULE = colmatch.kinds.opindex


def ranges(count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ranges of all widths, most of them narrow."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 10_000, count), 2 ** rng.integers(0, 13, count)


def check_runs(index: OpIndex) -> None:
    """What must hold of ranges whatever was done: they ascend, and none is wider than its run
    says.
    """
    lists = {
        int(index.lists[a, op]) for a in range(len(index.lists)) for op in (3, 7, 11) if index.lists[a, op] != NONE
    }
    for number in lists:
        first, log = index.list[number, :2].tolist()
        for s in range(first, first + (1 << log)):
            begin, size = int(index.segment[s, 1]) & 0xFFFFFFFF, int(index.segment[s, 1]) >> 32
            runs = index.run[begin : begin + size].astype(np.int64)
            order = [(hash, width) for hash, width in runs[:, [HASH, WIDTH]].tolist()]
            assert order == sorted(set(order))
            for _, start, entries, room, width in runs.tolist():
                low, high = (
                    index.word[start : start + entries].astype(np.int64),
                    index.word[start + 2 * room :][:entries].astype(np.int64),
                )
                classes = [(one.bit_length() + 1) >> 1 for one in (high - low).tolist()]
                assert (np.diff(low) >= 0).all()
                if width < ALL_WIDTHS:
                    assert set(classes) <= {width}
                else:
                    assert entries <= UNDIVIDED and max(classes, default=0) <= width - ALL_WIDTHS


def test_few_ranges_are_read_that_do_not_hold() -> None:
    count = 400 if SMALL else 4000
    low, width = ranges(count, 5)
    matcher = built_of_ranges(low, width)
    assert len(inside.arrays(matcher).run) > 5
    check_runs(inside.arrays(matcher))
    values = np.random.default_rng(6).integers(0, 10_000, 50)
    hold = int(((low <= values[:, None]) & (values[:, None] <= low + width)).sum())
    counters = matcher.counters(pa.table({"a": values}))
    assert counters["matches"] == counters["candidates"] == hold
    assert hold < counters["predicates"] < 2.5 * hold  # all that start below the value would be nine times as many


def test_few_narrow_ranges_are_not_all_read() -> None:
    """Too few to be divided: the run knows how wide its widest is."""
    count = UNDIVIDED
    matcher = built_of_ranges(np.arange(count) * 100, np.full(count, 3))
    assert len(inside.arrays(matcher).run) == 1
    assert matcher.counters(pa.table({"a": [100 * count - 50, 100 * count - 98]}))["predicates"] == 1


def built_of_ranges(low: NDArray[np.int64], width: NDArray[np.int64], index: str = "opindex") -> cm.Matcher:
    texts = {i: f"a BETWEEN {x} AND {x + w}" for i, (x, w) in enumerate(zip(low.tolist(), width.tolist()))}
    return cm.Matcher.build(texts, {"a": "int64"}, index=index)


@pytest.mark.parametrize("start", [0, 200, 300])
def test_ranges_that_come_and_go_are_divided_by_width(start: int) -> None:
    count = 700 if SMALL else 3000
    low, width = ranges(count, 7)
    scan = built_of_ranges(low, width, "scan")
    preds, codes, events = (
        inside.predicates(scan),
        inside.codes(scan),
        pa.table({"a": np.random.default_rng(8).integers(0, 10_000, 30)}),
    )
    arrays, rng = start_with(scan, start), Random(9)
    there = set(range(start))
    for c in range(start, count):
        arrays = MODULE.insert(arrays, preds, codes, c, c + 1)
        there.add(c)
        if rng.random() < 0.2:
            gone = rng.choice(sorted(there))
            arrays = MODULE.delete(arrays, preds, codes, np.array([gone]))
            there.remove(gone)
        if c % 100 == 99:
            check_runs(arrays)
    check_runs(arrays)
    found = with_arrays(scan, arrays)
    wanted = [pair for pair in pairs(scan.match(events)) if pair[1] in there]
    assert wanted and pairs(found.match(events)) == wanted
    assert found.counters(events)["predicates"] < 2.5 * len(wanted)
    for c in sorted(there):
        arrays = MODULE.delete(arrays, preds, codes, np.array([c]))
    assert with_arrays(scan, arrays).counters(events)["predicates"] == 0


def test_prefixes_are_narrow_ranges() -> None:
    """A prefix is a range of literals: of thousands, an event reads the few around its value."""
    count = 300 if SMALL else 3000
    rng = Random(10)
    words = {"".join(rng.choice("abcdefgh") for _ in range(rng.randrange(4, 8))) for _ in range(count)}
    matcher = cm.Matcher.build(
        {i: f"s LIKE '{word}%'" for i, word in enumerate(sorted(words))}, {"s": "string"}, index="opindex"
    )
    values = ["".join(rng.choice("abcdefgh") for _ in range(9)) for _ in range(50)]
    counters = matcher.counters(pa.table({"s": values}))
    assert counters["matches"] == sum(value.startswith(word) for value in values for word in words)
    assert counters["predicates"] < 20 * 50
