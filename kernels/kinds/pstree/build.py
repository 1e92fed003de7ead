"""Building at once: the choice of access predicates, an order of conjunctions, and spaces.

The tables are new, so the spaces of an attribute are neighbours in the order of their keys. A
predicate is then a range of rows.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.geometry import boundaries_below, code_from
from colmatch.kernels.kinds.pstree.arrays import (
    BASE,
    CELL_USES,
    CELLS,
    ENDS,
    FANOUT,
    FIRST,
    LAST,
    NONE,
    SHIFT,
    START,
    USES,
    PSTree,
)
from colmatch.kernels.kinds.pstree.change import begin_attribute, cut_at
from colmatch.kernels.kinds.pstree.choose import ACCESS, BY_CELL, BY_SPACE, PRESENT, choose
from colmatch.kernels.kinds.pstree.intervals import interval_of, intervals_of
from colmatch.kernels.kinds.pstree.tables import MOST_DIGITS, lacks_rows, new_cells
from colmatch.kernels.layout import ATTR_MASK, I64, U32, Codes, Predicates, Table, Written

LAST_KEY = 2**63 - 1


@kernel
def place_cells(tree: Written[Table[U32]], code_first: I64, label: U32) -> None:
    """Places the cells of attributes that have none, from the lowest code to the highest.

    tree (A, 8) : BASE and SHIFT are written
    code_first, label : of the codes
    """
    for a in range(len(code_first) - 1):
        begin, end = code_first[a], code_first[a + 1]
        if tree[a, CELLS] != NONE or begin == end:
            continue
        lowest, highest = np.int64(1), end - begin + 1
        if len(label) > 0:
            lowest, highest = np.int64(label[begin]), np.int64(label[end - 1])
        shift = np.int64(0)
        while (highest - lowest) >> shift >= FANOUT:
            shift += 1
        tree[a, BASE], tree[a, SHIFT] = lowest, shift


@kernel
def count_predicates(pred: Table[U32], begin: int, end: int, common: Written[U32]) -> None:
    """Counts the predicates ``begin:end`` by attribute.

    common (A) uint32 : added to
    """
    for p in range(begin, end):
        common[np.int64(pred[p, 0]) & ATTR_MASK] += np.uint32(1)


@device
def choose_each(tree, preds, codes, work, key):
    """Chooses the access predicates, and writes keys to order conjunctions by.

    Each kind has a kernel for this, with its tables.

    A key has the first access attribute, and the start of its predicate. So the conjunctions of one
    space are neighbours.

    key (C) int64 : written
    """
    probe = tree.probe
    for c in range(len(key)):
        choose(tree, preds, codes, work.score, c, work.next)
        key[c] = LAST_KEY
        for p in range(preds.first[c], preds.first[c + 1]):
            if np.int64(probe[p]) & ACCESS:
                begin, _ = intervals_of(preds.pred, p)
                lo, _ = interval_of(preds.pred, preds.run_lo, preds.run_hi, p, begin)
                wide = np.int64(1) if np.int64(probe[p]) & BY_CELL else np.int64(0)
                key[c] = min((np.int64(preds.pred[p, 0]) & ATTR_MASK) << 33 | wide << 32 | lo, key[c])


@kernel
def reorder_probes(first: I64, order: Written[U32], probe: Written[U32], to: Written[U32]) -> None:
    """Writes ``probe`` (P) for another order of conjunctions, (C) uint32, to a second array."""
    n = 0
    for c in order:
        for p in range(first[c], first[c + 1]):
            to[n] = probe[p]
            n += 1


@kernel
def count_ends(
    preds: Predicates, codes: Codes, probe: Written[U32], uses: Written[Table[I64]], ends: Written[I64]
) -> None:
    """Counts predicates with spaces, predicates with cells, and the ends of predicates with spaces.

    uses (A, 2), ends (B) int64 : zeros on entry; for attributes, and for boundaries
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    first, label = codes.first, codes.label
    for p in range(len(probe)):
        how = np.int64(probe[p]) & PRESENT
        if how != BY_SPACE and how != BY_CELL:
            continue
        # Count the predicate for its attribute
        a = np.int64(probe[p]) & ATTR_MASK
        uses[a, 0 if how == BY_SPACE else 1] += 1
        # Count the ends of its intervals
        begin, end = intervals_of(pred, p)
        for j in range(begin, end if how == BY_SPACE else begin):
            lo, hi = interval_of(pred, run_lo, run_hi, p, j)
            if lo > hi:
                continue
            low, high = boundaries_below(first, label, a, lo), boundaries_below(first, label, a, hi)
            if low > 0:
                ends[first[a] + low - 1] += 1
            if first[a] + high < first[a + 1]:
                ends[first[a] + high] += 1


@kernel
def make_spaces(
    tree: Written[PSTree],
    codes: Codes,
    uses: Written[Table[I64]],
    ends: Written[I64],
    row: Written[U32],
    progress: Written[I64],
) -> bool:
    """Makes the spaces of predicates. Returns whether there was room.

    uses, ends : as ``count_ends`` left them
    row (B) uint32 : written, the space of each boundary
    progress (2) int64 : next attribute and boundary
    """
    while progress[0] < len(uses):
        a = progress[0]
        if uses[a, 0] > 0:
            # Cut at each boundary where predicates end, and note the space
            while progress[1] < codes.first[a + 1]:
                if lacks_rows(tree, MOST_DIGITS, 1, 2):
                    return False
                begin_attribute(tree, a)
                b = progress[1]
                if ends[b] > 0:
                    s = cut_at(tree, a, np.uint64(code_from(codes, a, b - codes.first[a])))
                    tree.cut[np.int64(tree.space[s, START]), ENDS] = ends[b]
                row[b] = tree.tree[a, LAST]
                progress[1] += 1
            # Finish the attribute, which has a space even without boundaries
            if lacks_rows(tree, 0, 0, 1):
                return False
            begin_attribute(tree, a)
            tree.tree[a, USES] = uses[a, 0]
        progress[0] += 1
        progress[1] = codes.first[a + 1]
    return True


@kernel
def make_cells(tree: Written[PSTree], uses: Written[Table[I64]]) -> bool:
    """Makes the cells of attributes. Returns whether there was room."""
    for a in range(len(uses)):
        if uses[a, 1] > 0 and tree.tree[a, CELLS] == NONE:
            if lacks_rows(tree, 0, 0, FANOUT):
                return False
            tree.tree[a, CELLS] = new_cells(tree)
            tree.tree[a, CELL_USES] = uses[a, 1]
    return True


@device
def rows_of(tree, code_first, label, row, a, lo, hi):
    """Returns the first and the last row of a predicate's spaces."""
    low, high = boundaries_below(code_first, label, a, lo), boundaries_below(code_first, label, a, hi)
    first, begin = np.int64(tree[a, FIRST]), code_first[a]
    return first if low == 0 else np.int64(row[begin + low - 1]), first if high == 0 else np.int64(
        row[begin + high - 1]
    )


@device
def count_run(covers, lists, s, last, is_access):
    """Counts a predicate for a run of rows: plus one at the first row, minus one behind the
    last.
    """
    covers[s] += 1
    covers[last + 1] -= 1
    if is_access:
        lists[s] += 1
        lists[last + 1] -= 1
