"""Keys of events -> codes, as ``kernels/transpose.py`` does it and by other locators.

What it is compared with: *single*, hints and one key after the other; *ahead*, the same, but hints
asked for some entries of the column ahead, and then the boundaries that they lead to; and *tiles*,
boundaries of each attribute in the layout of Eytzinger, many keys going down together
(``locators/kernels/eytzinger.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.measure import medians, seconds
from numpy.typing import NDArray
from workload import Workload

import colmatch as cm
from colmatch.arrays.frozen import freeze, freeze_view
from colmatch.arrays.hints import hints_of
from colmatch.kernels import hints, layout
from colmatch.kernels._jit import kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.hints import cell_of, distance, find_code
from colmatch.kernels.transpose import code_rows, transpose
from colmatch.matching import worker
from locators.eytzinger import arranged
from locators.figures import DRAWS

ROWS = 4096
ENTRIES = 1 << 19  # of all batches of a run: what one batch has left in the caches is not what the next one wants
TILE = int(hints.TILE)
AHEAD = 16
WAYS = ("single", "hints", "tiles")
SMALL = "small"  # keys that are the boundaries: a cell of hints has one key


def drawn(draw: str, rng: np.random.Generator, n: int, boundaries: int) -> NDArray[np.int64]:
    return rng.integers(0, boundaries, n) if draw == SMALL else DRAWS[draw](rng, n)


@kernel
def code_tiles(col, key, place, first, tree_first, tree, space, code):
    """Code each column, ``TILE`` keys at once; space (TILE) int64 is scratch."""
    for a in range(len(col) - 1):
        root = np.uint64(tree_first[a])
        size = tree_first[a + 1] - tree_first[a]
        most = first[a + 1] - first[a]
        for begin in range(np.uint64(col[a]), np.uint64(col[a + 1]), np.uint64(TILE)):
            keys = min(np.uint64(begin) + np.uint64(TILE), np.uint64(col[a + 1])) - np.uint64(begin)
            space[:] = 1
            half = size >> 1
            while half > 0:
                for i in range(keys):
                    at = np.uint64(space[i])
                    space[i] = np.int64(at + at + np.uint64(tree[root + at] <= key[np.uint64(begin) + np.uint64(i)]))
                half >>= 1
            for i in range(keys):
                code[np.uint64(place[np.uint64(begin) + np.uint64(i)])] = min(space[i] - size, most) + 1


@kernel
def code_single(col, key, place, first, bound, hints, code):
    """Code each column, one key after the other."""
    for a in range(len(col) - 1):
        begin, cells, shift = first[a], hints.first[a], hints.shift[a]
        lowest, highest = hints.lowest[a], hints.highest[a]
        for e in range(np.uint64(col[a]), np.uint64(col[a + 1])):
            code[np.uint64(place[e])] = find_code(bound, begin, lowest, highest, cells, shift, hints.below, key[e])


@kernel
def code_ahead(col, key, place, first, bound, hints, code):
    """Code each column, with what is needed soon on its way from memory."""
    below = hints.below
    for a in range(len(col) - 1):
        begin, cells, shift = first[a], np.uint64(hints.first[a]), hints.shift[a]
        lowest, highest, last = hints.lowest[a], hints.highest[a], np.uint64(col[a + 1] - 1)
        for e in range(np.uint64(col[a]), np.uint64(col[a + 1])):
            soon = min(max(key[min(e + np.uint64(2 * AHEAD), last)], lowest), highest)
            ask_for(below, cells + cell_of(distance(lowest, soon), shift))
            soon = min(max(key[min(e + np.uint64(AHEAD), last)], lowest), highest)
            ask_for(bound, np.uint64(begin) + np.uint64(below[cells + cell_of(distance(lowest, soon), shift)]))
            code[np.uint64(place[e])] = find_code(
                bound, begin, lowest, highest, hints.first[a], hints.shift[a], below, key[e]
            )


def coded(attributes: int, boundaries: int, draw: str, repeat: int) -> dict[str, float]:
    """Nanoseconds of an entry by each way, in turns; all must write the same codes."""
    rng = np.random.default_rng(1)
    every = [np.unique(drawn(draw, rng, 2 * boundaries, boundaries)) for _ in range(attributes)]
    bounds = [np.sort(rng.permutation(some)[:boundaries]) for some in every]
    first = freeze_view(np.cumsum([0, *map(len, bounds)]))
    codes = freeze(layout.Codes(first, np.concatenate(bounds), np.zeros(attributes, np.uint8)))
    made = freeze(hints_of(codes.first, codes.bound))
    trees = [arranged(freeze_view(bound)) for bound in bounds]
    tree_first, tree = freeze_view(np.cumsum([0, *map(len, trees)])), freeze_view(np.concatenate(trees))
    batches = [batch(attributes, boundaries, draw, rng) for _ in range(max(1, ENTRIES // (attributes * ROWS)))]
    used, next = freeze_view(np.ones(attributes, np.uint8)), np.empty(attributes, np.int64)
    code, space = np.empty(attributes * ROWS, np.uint32), np.empty(TILE, np.int64)
    found = np.empty(TILE, np.uint32)
    ways: dict[str, Callable[[layout.Batch, Any, NDArray[np.int32]], None]] = {
        "hints": lambda b, rows, place: code_rows(b, codes, made, used, next, rows, place, found, code),
        "single": lambda b, rows, place: code_single(b.col, b.key, place, codes.first, codes.bound, made, code),
        "ahead": lambda b, rows, place: code_ahead(b.col, b.key, place, codes.first, codes.bound, made, code),
        "tiles": lambda b, rows, place: code_tiles(b.col, b.key, place, codes.first, tree_first, tree, space, code),
    }
    results = {}
    for name, way in ways.items():
        way(*batches[0])
        results[name] = code.copy()
    if any((result != results["hints"]).any() for result in results.values()):
        raise SystemExit("not all write the same codes")
    actions = {name: lambda way=way: [way(*some) for some in batches] for name, way in ways.items()}
    taken = medians(actions, repeat, 60.0, time.process_time)
    return {name: value / (len(batches) * attributes * ROWS) * 1e9 for name, value in taken.items()}


def matched(workload: Workload, rows: int, repeat: int) -> dict[str, tuple[float, float]]:
    """Microseconds that ``match`` takes for an event, and coding of it, by each of ``WAYS``.

    Another kernel stands in for ``code_rows`` in the worker. All must find the same.
    """
    options = cm.Options(threads=1, batch_rows=ROWS)
    matcher = cm.Matcher.build(workload.predicate_table(), workload.schema(), index="bitslice", options=options)
    events = workload.events(rows)
    trees: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    space, coding, compiled = np.empty(TILE, np.int64), [0.0], worker.entry

    def tiles(b: layout.Batch, codes: layout.Codes, place: NDArray[np.int32], code: NDArray[np.uint32]) -> None:
        if id(codes.bound) not in trees:
            some = [arranged(codes.bound[a:z]) for a, z in zip(codes.first[:-1], codes.first[1:])]
            trees[id(codes.bound)] = freeze_view(np.cumsum([0, *map(len, some)])), freeze_view(np.concatenate(some))
        col = b.col[: len(codes.first)]
        code_tiles(col, b.key, place, codes.first, *trees[id(codes.bound)], space, code)

    def standing_in(kernel: Any, way: str) -> Any:
        def run(
            b: Any, codes: Any, of: Any, used: Any, next: Any, first: Any, place: Any, found: Any, code: Any
        ) -> None:
            began = time.process_time()
            if way == "tiles":
                tiles(b, codes, place, code)
            elif way == "single":
                col = b.col[: len(codes.first)]
                compiled(code_single)(col, b.key, place, codes.first, codes.bound, of, code)
            else:
                compiled(kernel)(b, codes, of, used, next, first, place, found, code)
            coding[0] += time.process_time() - began

        return run if kernel is code_rows else compiled(kernel)

    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    pairs = set()
    try:
        for _ in range(1 + repeat):
            for way, times in taken.items():
                worker.entry = lambda kernel, way=way: standing_in(kernel, way)
                coding[0] = 0.0
                whole = seconds(lambda: pairs.add(len(matcher.match(events))), time.process_time)
                times.append((whole / rows * 1e6, coding[0] / rows * 1e6))
    finally:
        worker.entry = compiled
    if len(pairs) > 1:
        raise SystemExit(f"not all find the same number of pairs, {pairs}")
    return {way: tuple(np.median(times[1:], 0).tolist()) for way, times in taken.items()}  # type: ignore[misc]


def batch(
    attributes: int, boundaries: int, draw: str, rng: np.random.Generator
) -> tuple[layout.Batch, Any, NDArray[np.int32]]:
    """Events that have all attributes; where rows begin; where each entry stands in its row."""
    entries = attributes * ROWS
    of = freeze(
        layout.Batch(
            np.array([ROWS]),
            np.arange(attributes + 1) * ROWS,
            np.tile(np.arange(ROWS, dtype=np.int32), attributes),
            np.concatenate([drawn(draw, rng, ROWS, boundaries) for _ in range(attributes)]),
        )
    )
    first, attr, place = np.empty(ROWS + 1, np.int64), np.empty(entries, np.uint32), np.empty(entries, np.int32)
    transpose(of, np.ones(attributes, np.uint8), np.empty(attributes, np.int64), first, attr, place)
    return of, first, place
