"""What must be true of the tables of PS-Trees, and of what hangs at them, whatever was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.kinds.pstree.arrays import FANOUT, NONE
from colmatch.kernels.kinds.pstree.choose import ACCESS, BY_CELL, BY_SPACE, PRESENT
from colmatch.kernels.layout import ATTR_MASK, FLAG_RUN, Predicates

Range = tuple[int, list[tuple[int, int]]]  # of a predicate: attribute, and intervals of keys
Lists = dict[int, list[int]]


def free_rows(head: int, next: Callable[[int], Any]) -> Iterator[int]:
    while head != NONE:
        yield int(head)
        head = int(next(int(head)))


class Walker:
    """Walks all trees once and checks all that it sees.

    Attributes
    ----------
    spaces : of each attribute, the lowest key of each and its row, ascending
    cuts : of each attribute, keys and rows
    """

    def __init__(self, tables: Any) -> None:
        self.tables = tables
        self.inner: list[int] = []
        self.cuts: dict[int, list[tuple[int, int]]] = {}
        self.spaces: dict[int, list[tuple[int, int]]] = {}

    def check(self, ranges: list[Range], wide: list[Range] | None = None, reserved: int = 0) -> None:
        """ranges, wide : the predicates that there are, with spaces and with cells

        reserved : spaces of no attribute
        """
        t = self.tables
        for attribute in range(len(t.tree)):
            self._check_attribute(attribute, [own for of, own in ranges if of == attribute])
            self._check_cells(attribute, [own for of, own in wide or [] if of == attribute])
        state = t.state
        free = list(free_rows(state[ps.FREE_INNER], lambda n: t.inner[n, 0]))
        assert sorted(self.inner + free) == list(range(state[ps.INNERS]))
        free = list(free_rows(state[ps.FREE_CUT], lambda n: t.cut[n, 0]))
        used = [row for cuts in self.cuts.values() for _, row in cuts]
        assert sorted(used + free) == list(range(state[ps.CUTS]))
        free = list(free_rows(state[ps.FREE_SPACE], lambda s: t.space[s, 0]))
        used = [row for spaces in self.spaces.values() for _, row in spaces]
        cells = [int(s) for s in t.tree[:, ps.CELLS] if s != NONE]
        cells += free_rows(state[ps.FREE_CELLS], lambda s: t.space[s, 0])
        cells = [s + i for s in cells for i in range(FANOUT)]
        assert sorted([*range(reserved), *used, *free, *cells]) == list(range(state[ps.SPACES]))

    def _check_attribute(self, attribute: int, predicates: list[list[tuple[int, int]]]) -> None:
        t, row, lowest = self.tables, self.tables.tree[attribute].tolist(), int(self.tables.state[ps.LOWEST])
        highest = int(t.highest[attribute])
        ranges = [r for own in predicates for r in own]
        assert row[ps.USES] == len(predicates)
        ends = sorted([lo for lo, _ in ranges if lo > lowest] + [hi + 1 for _, hi in ranges if hi < highest])
        self.cuts[attribute] = list(self._below(row[ps.ROOT], int(t.top[attribute]), 0))
        assert [key for key, _ in self.cuts[attribute]] == sorted(set(ends)), "spaces end where predicates do"
        assert (row[ps.ROOT] == NONE) == (not ends)
        self.spaces[attribute] = found = []
        if not predicates:
            assert row[ps.FIRST] == row[ps.LAST] == NONE
            return
        s, starts = row[ps.FIRST], [lowest, *sorted(set(ends))]
        for i, start in enumerate(starts):
            end = starts[i + 1] - 1 if i + 1 < len(starts) else highest
            assert s != NONE
            found.append((start, s))
            assert t.space[s, ps.PREDS] == sum(lo <= start and end <= hi for lo, hi in ranges)
            if i == 0:
                assert t.space[s, ps.START] == NONE
            else:
                key, cut = self.cuts[attribute][i - 1]
                assert t.space[s, ps.START] == cut and t.key[cut] == key == start
                assert t.cut[cut].tolist() == [found[i - 1][1], s, ends.count(key)]
            s = int(t.space[s, ps.NEXT])
        assert s == NONE and row[ps.LAST] == found[-1][1]

    def _below(self, n: int, shift: int, path: int) -> Iterator[tuple[int, int]]:
        """Keys and rows of the cuts below an inner node, ascending."""
        if n == NONE:
            return
        t = self.tables
        self.inner.append(n)
        assert t.inner[n, ps.CHILDREN] == sum(1 << d for d in range(FANOUT) if t.inner[n, d] != NONE) != 0
        for digit in range(FANOUT):
            child = int(t.inner[n, digit])
            if child == NONE:
                continue
            key = path | digit << shift
            if shift == 0:
                yield key, child
            else:
                yield from self._below(child, max(shift - 4, 0), key)

    def _check_cells(self, attribute: int, predicates: list[list[tuple[int, int]]]) -> None:
        t, row = self.tables, self.tables.tree[attribute].tolist()
        assert row[ps.CELL_USES] == len(predicates)
        assert (row[ps.CELLS] == NONE) == (not predicates)
        if predicates:
            for i in range(FANOUT):
                within = sum(i in self.cells(attribute, own) for own in predicates)
                assert t.space[row[ps.CELLS] + i, ps.PREDS] == within
                assert t.space[row[ps.CELLS] + i, ps.START] == NONE

    def cells(self, attribute: int, intervals: list[tuple[int, int]]) -> set[int]:
        """Returns the cells in which a predicate has keys."""
        base, shift = self.tables.tree[attribute, [ps.BASE, ps.SHIFT]].tolist()

        def cell(key: int) -> int:
            return min(max(key - base, 0) >> shift, FANOUT - 1)

        return {i for lo, hi in intervals for i in range(cell(lo), cell(hi) + 1)}

    def find(self, attribute: int, key: int) -> int:
        """The space of a key, by comparing it with all."""
        return max((start, s) for start, s in self.spaces[attribute] if start <= key)[1]

    def is_empty(self) -> bool:
        return not self.inner and not any(self.cuts.values()) and not any(self.spaces.values())


def rows_used(tables: Any) -> list[int]:
    return np.asarray(tables.state)[[ps.INNERS, ps.CUTS, ps.SPACES]].tolist()


class KindWalker(Walker):
    """Walks the tables of PSTBloom or PSTHash, which have conjunctions.

    Attributes
    ----------
    own : of each conjunction and predicate that is tested, the rows of its spaces or cells
    """

    def __init__(self, index: Any, preds: Predicates, there: set[int]) -> None:
        super().__init__(index)
        self.preds, self.there = preds, there
        self.own: dict[int, dict[int, list[int]]] = {}

    def intervals(self, p: int) -> list[tuple[int, int]]:
        word, lo, hi = self.preds.pred[p].tolist()
        run = zip(self.preds.run_lo[lo:hi].tolist(), self.preds.run_hi[lo:hi].tolist())
        return [(low, high) for low, high in (run if word & FLAG_RUN else [(lo, hi)]) if low <= high]

    def how(self, p: int) -> int:
        return int(self.tables.probe[p]) & PRESENT

    def is_access(self, p: int) -> bool:
        return bool(self.tables.probe[p] & ACCESS)

    def predicates(self, c: int) -> list[int]:
        return [p for p in range(self.preds.first[c], self.preds.first[c + 1]) if self.how(p) in (BY_SPACE, BY_CELL)]

    def check_all(self) -> None:
        t = self.tables
        assert set(np.flatnonzero(t.at).tolist()) == self.there
        predicates = [p for c in self.there for p in self.predicates(c)]
        by = {how: [(int(t.probe[p]) & ATTR_MASK, self.intervals(p)) for p in predicates if self.how(p) == how]
              for how in (BY_SPACE, BY_CELL)}  # fmt: skip
        self.check(by[BY_SPACE], by[BY_CELL], ps.RESERVED)
        for c in self.there:
            self.own[c] = {p: self._rows(p) for p in self.predicates(c)}

    def _rows(self, p: int) -> list[int]:
        t, attribute = self.tables, int(self.tables.probe[p]) & ATTR_MASK
        if self.how(p) == BY_CELL:
            return [int(t.tree[attribute, ps.CELLS]) + i for i in self.cells(attribute, self.intervals(p))]
        spaces = self.spaces[attribute]
        return [
            s for lo, hi in self.intervals(p) for start, s in spaces if lo <= start <= hi or self._begins(lo, start)
        ]

    def _begins(self, lo: int, start: int) -> bool:
        return lo <= self.tables.state[ps.LOWEST] and start <= lo

    def unplaced(self) -> list[int]:
        return sorted(c for c in self.there if not any(self.is_access(p) for p in self.predicates(c)))

    def lists_of(self, table: Any, rows: int) -> Lists:
        """The conjunctions of each row that has a list, and its block among ``blocks``."""
        found: Lists = {}
        for row in range(rows):
            at, count, size = table[row, [ps.LIST, ps.COUNT, ps.SIZE]].tolist()
            if size != NONE:
                self.blocks.append((at, 2 << size))
                assert count <= 2 << size
            if count:
                found[row] = sorted(self.tables.entry[at : at + count, 0].tolist())
        return found

    def check_blocks(self, packed: int) -> None:
        """Whether blocks stand side by side, behind lists that were built at once."""
        state, begin = self.tables.state, packed
        for size in range(ps.STATE_WORDS - ps.FREE_BLOCK):
            head = state[ps.FREE_BLOCK + size]
            self.blocks += [(at, 2 << size) for at in free_rows(head, lambda at: self.tables.entry[at, 0])]
        for at, room in sorted(self.blocks):
            assert at == begin, "entries of nobody, or of two"
            begin += room
        assert begin == state[ps.ENTRIES]

    def check_lists(self, wanted: Lists, packed: int, buckets: Any = None, count: int = 0) -> Lists:
        """Whether spaces have these lists. Returns those of buckets."""
        self.blocks: list[tuple[int, int]] = []
        if unplaced := self.unplaced():
            wanted[ps.ALWAYS] = unplaced
        found = self.lists_of(self.tables.space, int(self.tables.state[ps.SPACES]))
        assert found == {row: sorted(some) for row, some in wanted.items() if some}
        others = self.lists_of(buckets, count) if buckets is not None else {}
        self.check_blocks(packed)
        return others


def check_pstbloom(index: Any, preds: Predicates, there: set[int], packed: int = 0) -> KindWalker:
    from colmatch.kernels.kinds.pstbloom import arrays as psb

    walker = KindWalker(index, preds, there)
    walker.check_all()
    lists: Lists = {}
    state, signed, signatures = index.state, {BY_SPACE: 0, BY_CELL: 0}, np.zeros_like(index.sign)
    signatures[psb.EVERYBODY], some = 2**64 - 1, {psb.EVERYBODY}
    for c, own in walker.own.items():
        for p, rows in own.items():
            for s in rows:
                if walker.is_access(p):
                    lists.setdefault(s, []).append(c)
                    continue
                signed[walker.how(p)] += 1
                attribute = int(index.probe[p]) & ATTR_MASK
                words, at = int(state[psb.WORDS]), psb.SPACES_FROM + s * int(state[psb.STRIDE])
                if walker.how(p) == BY_CELL:
                    cell = attribute * FANOUT + s - int(index.tree[attribute, ps.CELLS])
                    words, at = int(state[psb.CELL_WORDS]), int(state[psb.FIRST_CELL] + cell * state[psb.CELL_STRIDE])
                if words:
                    signatures[at + c // 64 % words] |= np.uint64(1) << np.uint64(c % 64)
                    some.update(range(at, at + words))
    assert [signed[BY_SPACE], signed[BY_CELL]] == state[[psb.SIGNED, psb.CELL_SIGNED]].tolist()
    assert (index.sign & signatures == signatures).all(), "a conjunction is not in its signature"
    assert set(np.flatnonzero(index.sign).tolist()) <= some, "a signature of nobody"
    walker.check_lists(lists, packed)
    return walker


def check_psthash(index: Any, preds: Predicates, there: set[int], packed: int = 0) -> KindWalker:
    from colmatch.kernels.kinds.psthash import arrays as psh

    walker = KindWalker(index, preds, there)
    walker.check_all()
    members: Lists = {}
    wanted: dict[tuple[int, ...], list[int]] = {}
    for c, own in walker.own.items():
        assert all(walker.is_access(p) for p in own)
        for p, rows in own.items():
            for s in rows if walker.how(p) == BY_SPACE else []:
                members.setdefault(s, []).append(c)
        ordered = sorted(own, key=lambda p: int(index.probe[p]) & ATTR_MASK)
        for spaces in product(*(own[p] for p in ordered)) if own else []:
            wanted.setdefault(spaces, []).append(c)
    used = int(index.state[psh.BUCKETS])
    free = list(free_rows(index.state[psh.FREE_BUCKET], lambda b: index.bucket[b, psh.LAST_SPACE]))
    here = sorted(set(range(used)) - set(free))
    spaces_of: dict[int, tuple[int, ...]] = {}

    def key(b: int) -> tuple[int, ...]:
        prefix, last = index.bucket[b, [psh.PREFIX, psh.LAST_SPACE]].tolist()
        before = key(prefix ^ psh.BUCKET) if prefix & psh.BUCKET else (prefix,)
        return before if last == NONE else (*before, last)

    for b in here:
        spaces_of[b] = key(b)
    lists = walker.check_lists(members, packed, index.bucket, used)
    assert not set(lists) & set(free)
    assert {spaces_of[b]: some for b, some in lists.items()} == {key: sorted(some) for key, some in wanted.items()}
    prefixes = Counter(
        int(index.bucket[b, psh.PREFIX]) ^ psh.BUCKET for b in here if index.bucket[b, psh.PREFIX] & psh.BUCKET
    )
    for b in here:
        assert index.bucket[b, psh.LONGER] == prefixes[b] and (prefixes[b] or b in lists), "a bucket of nobody"
    assert sorted(index.slot[index.slot != 0].tolist()) == [b + 1 for b in here]
    assert index.state[psh.SLOTS] == len(here)
    return walker
