"""What must be true of the tables of a tree, whatever was done to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import inside
import numpy as np

import colmatch as cm
from colmatch.arrays.frozen import freeze
from colmatch.kernels.bits import mix
from colmatch.kernels.kinds.trees import arrays as bt
from colmatch.kernels.kinds.trees.arrays import NONE, Tree
from colmatch.kernels.layout import ATTR_MASK, FLAG_NONE, FLAG_RUN, REJECT, Codes, Predicates
from colmatch.kinds.registry import find
from colmatch.kinds.statistics import Sample

Hull = dict[int, tuple[int, int]]  # range by attribute


class Walked(NamedTuple):
    entries: list[int]
    own: Hull
    all: Hull


def empty_tree(scan: cm.Matcher, kind: str, sample: Sample | None = None, **settings: Any) -> Tree:
    """A tree without conjunctions, for those of a matcher."""
    preds = inside.predicates(scan)
    none = preds._replace(first=preds.first[:1], pred=preds.pred[:0], owner=preds.owner[:0])
    return find(kind).build(freeze(none), inside.codes(scan), sample, cm.index(kind, **settings))[0]


def union(one: Hull, other: Hull) -> Hull:
    joined = dict(one)
    for attribute, (lo, hi) in other.items():
        low, high = joined.get(attribute, (lo, hi))
        joined[attribute] = min(lo, low), max(hi, high)
    return joined


def placing(preds: Predicates, c: int) -> dict[int, tuple[int, int]]:
    """The range of each attribute that can place a conjunction: of its first predicate."""
    begin, end = int(preds.first[c]), int(preds.first[c + 1])
    if len(preds.jump_first) and preds.jump_first[c] >= 0:
        jump = preds.jump[preds.jump_first[c] :]
        n = 0
        while begin + n < end and jump[n, 1] == REJECT and (n == 0 or jump[n - 1, 0] == n):
            n += 1
        end = begin + n
    found: dict[int, tuple[int, int]] = {}
    for word, low, high in preds.pred[begin:end].tolist():
        if not word & FLAG_NONE:
            run = (int(preds.run_lo[low]), int(preds.run_hi[high - 1])) if word & FLAG_RUN else (low, high)
            found.setdefault(word & ATTR_MASK, run)
    return found


def side_by_side(rows: list[tuple[int, int]], begin: int, end: int) -> None:
    """Whether ranges of rows, first one and number, are all rows of a table, each once."""
    for at, count in sorted(rows):
        assert at == begin, "rows of nobody, or of two"
        begin += count
    assert begin == end, "rows of nobody"


class Walker:
    """Walks the tree once and checks all that it sees."""

    def __init__(self, tree: Tree, preds: Predicates, codes: Codes) -> None:
        self.tree = tree
        self.codes = codes
        self.placing = [placing(preds, c) for c in range(len(preds.owner))]
        self.nodes: list[int] = []
        self.parts: list[int] = []
        self.blocks: list[tuple[int, int]] = []
        self.boxes: list[tuple[int, int]] = []

    def check(self, there: set[int], packed: int = 0) -> None:
        """packed : conjunctions that the tree was built with, which stand in front of all blocks"""
        tree, state = self.tree, self.tree.state
        always, root = self._walk(bt.ALWAYS, []), self._walk(bt.ROOT, [])
        assert sorted(always.entries + root.entries) == sorted(there)
        assert all(self.placing[c] for c in root.entries) and not any(self.placing[c] for c in always.entries)
        assert {c for c in range(len(tree.at)) if tree.at[c] != NONE} == there
        free = list(self._free(state[bt.FREE_NODE], lambda n: tree.above[n, bt.NEXT_FREE]))
        assert sorted(self.nodes + free) == list(range(state[bt.NODES]))
        free = list(self._free(state[bt.FREE_PART], lambda p: tree.part[p, bt.NEXT]))
        assert sorted(self.parts + free) == list(range(state[bt.N_PARTS]))
        assert sorted(tree.slot[tree.slot != 0].tolist()) == sorted(part + 1 for part in self.parts)
        assert state[bt.SLOTS] == len(self.parts)
        for size in range(bt.FREE_BOX - bt.FREE_BLOCK):
            room = 4 << size
            self.blocks += [(at, room) for at in self._free(state[bt.FREE_BLOCK + size], lambda at: tree.entry[at])]
        side_by_side(self.blocks, packed, int(state[bt.ENTRIES]))
        for level in range(bt.STATE_WORDS - bt.FREE_BOX):
            self.boxes += [(at, level) for at in self._free(state[bt.FREE_BOX + level], lambda at: tree.box[at, 0])]
        side_by_side(self.boxes, 0, int(state[bt.BOXES]))

    def _free(self, head: int, next: object) -> Iterator[int]:
        while head != NONE:
            yield int(head)
            head = int(next(head))  # type: ignore[operator]

    def _walk(self, n: int, path: list[int]) -> Walked:
        """path : attributes of the parts above, the nearest first"""
        tree, node, above = self.tree, self.tree.node[n].astype(np.int64), self.tree.above[n].astype(np.int64)
        self.nodes.append(n)
        assert above[bt.LEVEL] == len(path) and len(set(path)) == len(path)
        leaf, count = node[bt.LEAF], node[bt.COUNT]
        if above[bt.SIZE] != NONE:
            self.blocks.append((int(leaf), 4 << int(above[bt.SIZE])))
            assert count <= 4 << int(above[bt.SIZE])
        entries = tree.entry[leaf : leaf + count].tolist() if count else []
        own: Hull = {}
        for i, c in enumerate(entries):
            assert tree.at[c] == n
            own = union(own, {attribute: self.placing[c][attribute] for attribute in path})
            if path:
                assert tuple(tree.reach[leaf + i].tolist()) == self.placing[c][path[0]]
            assert tree.need[leaf + i] == sum({1 << (attribute & 63) for attribute in self.placing[c]})
        parts, _ = self._directory(n, node, path)
        for walked in parts:
            entries = entries + walked.entries
            own = union(own, {attribute: bounds for attribute, bounds in walked.all.items() if attribute in path})
        whole, here = dict(own), list(entries)
        halves = []
        for side, low, high in ((bt.LEFT, bt.LEFT_LO, bt.LEFT_HI), (bt.RIGHT, bt.RIGHT_LO, bt.RIGHT_HI)):
            if node[side] == NONE:
                continue
            half = int(node[side])
            assert tree.above[half, bt.UP] == n and tree.above[half, bt.PART] == above[bt.PART]
            assert tree.node[half, bt.ATTR] == node[bt.ATTR]
            walked = self._walk(half, path)
            self._within(walked.all, path, node[low], node[high])
            halves.append((int(node[low]), int(node[high])))
            entries, whole = entries + walked.entries, union(whole, walked.all)
        if len(halves) == 2 and all(low <= high for low, high in halves):
            assert halves[0][1] < halves[1][0], "halves meet"
        if tree.plan[bt.RIGID]:
            for low, high in halves:
                assert not any(low <= lo and hi <= high for lo, hi in (self.placing[c][path[0]] for c in here))
            if len(halves) == 2:
                assert (halves[0][0], halves[0][1] + 1, halves[1][1]) == (
                    node[bt.OWN_LO],
                    halves[1][0],
                    node[bt.OWN_HI],
                )
        if path:
            self._within(own, path, node[bt.OWN_LO], node[bt.OWN_HI])
        if above[bt.BOX] != NONE:
            self.boxes.append((int(above[bt.BOX]), len(path)))
            self._check_box(int(above[bt.BOX]), path, own, whole)
        assert above[bt.BELOW] == len(entries)
        return Walked(entries, own, whole)

    def _within(self, hull: Hull, path: list[int], low: int, high: int) -> None:
        """Ranges that follow what is in them are as narrow as that; halves of a domain are not."""
        if path[0] in hull:
            assert low <= hull[path[0]][0] and hull[path[0]][1] <= high
        if not self.tree.plan[bt.RIGID]:
            assert (low, high) == hull.get(path[0], (NONE, 0)), "bounds are not tight"

    def _check_box(self, at: int, path: list[int], own: Hull, whole: Hull) -> None:
        for i, attribute in enumerate(path):
            low, high, all_low, all_high = self.tree.box[at + i].tolist()
            assert (low, high) == own.get(attribute, (NONE, 0))
            assert (all_low, all_high) == whole.get(attribute, (NONE, 0))

    def _directory(self, n: int, node: np.ndarray, path: list[int]) -> tuple[list[Walked], int]:
        tree, found, bits = self.tree, [], 0
        part, before = int(node[bt.FIRST]), NONE
        while part != NONE:
            row = tree.part[part].astype(np.int64)
            assert row[bt.OWNER] == n and row[bt.BEFORE] == before
            assert self._find(n, int(row[bt.PART_ATTR])) == part
            self.parts.append(part)
            top = int(row[bt.TOP])
            assert tree.above[top, bt.PART] == part and tree.above[top, bt.UP] == NONE
            walked = self._walk(top, [int(row[bt.PART_ATTR]), *path])
            assert row[bt.PART_COUNT] == len(walked.entries) > 0
            self._within(walked.all, [int(row[bt.PART_ATTR]), *path], row[bt.PART_LO], row[bt.PART_HI])
            found.append(walked)
            bits |= 1 << (int(row[bt.PART_ATTR]) & 63)
            part, before = int(row[bt.NEXT]), part
        assert len(found) == node[bt.PARTS]
        mask = int(node[bt.MASK_LOW]) | int(node[bt.MASK_HIGH]) << 32
        assert mask & bits == bits and (len(found) > 64 or mask == bits)
        return found, bits

    def _find(self, n: int, attribute: int) -> int:
        slots = len(self.tree.slot)
        h = mix(n, attribute) % slots
        while self.tree.slot[h]:
            part = int(self.tree.slot[h]) - 1
            if tuple(self.tree.part[part, [bt.OWNER, bt.PART_ATTR]]) == (n, attribute):
                return part
            h = (h + 1) % slots
        return -1
