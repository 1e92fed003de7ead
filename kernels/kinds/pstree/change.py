"""Spaces are made at the ends of predicates, and merged when no predicate ends there.

Source: Ji and Jacobsen, "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional
and Dense Workloads" (section 4, algorithms 1 to 3, and 4.4). The paper leaves the rest to its
technical report, and it is done as follows. A cut counts the predicates that begin at it or end
before it. If none is left, the spaces on both sides have the same predicates and become one.
"""

import numpy as np

from colmatch.kernels._jit import device
from colmatch.kernels.bits import popcount
from colmatch.kernels.kinds.pstree import arrays as ps
from colmatch.kernels.kinds.pstree.search import digit_of, find_space, next_shift
from colmatch.kernels.kinds.pstree.tables import (
    free_cells,
    free_cut,
    free_inner,
    free_space,
    new_cut,
    new_inner,
    new_space,
)


@device
def begin_attribute(tree, a):
    """Gives an attribute without predicates its first space, with all keys."""
    if tree.tree[a, ps.FIRST] == ps.NONE:
        tree.tree[a, ps.FIRST] = tree.tree[a, ps.LAST] = new_space(tree)


@device
def end_attribute(tree, a):
    """Frees the last space of an attribute if no predicate uses it."""
    if tree.tree[a, ps.USES] == 0:
        free_space(tree, np.int64(tree.tree[a, ps.FIRST]))
        tree.tree[a, ps.FIRST] = tree.tree[a, ps.LAST] = ps.NONE


@device
def needs_cut_below(tree, lo):
    """Returns whether a predicate that begins at ``lo`` needs a cut there."""
    return np.uint64(lo) > np.uint64(tree.state[ps.LOWEST])


@device
def needs_cut_above(tree, a, hi):
    """Returns whether a predicate that ends at ``hi`` needs a cut at the next key."""
    return np.uint64(hi) < tree.highest[a]


@device
def cut_at(tree, a, key):
    """Counts an end of a predicate at a key, and divides the space there if needed.

    Returns the new upper part, or NONE. The lower part is the old space, and its list and signature
    apply to both parts. There must be room for a row of each table, and an inner node for each
    digit.
    """
    # Go down to the cut, and make missing nodes
    below = find_space(tree.tree, tree.top, tree.inner, tree.cut, a, key)
    if tree.tree[a, ps.ROOT] == ps.NONE:
        tree.tree[a, ps.ROOT] = new_inner(tree)
    n, shift = np.int64(tree.tree[a, ps.ROOT]), np.uint64(tree.top[a])
    while True:
        digit = digit_of(key, shift)
        there = (np.uint64(tree.inner[n, ps.CHILDREN]) >> digit) & np.uint64(1) != 0
        if not there:
            tree.inner[n, ps.CHILDREN] |= np.uint32(1 << np.int64(digit))
            tree.inner[n, digit] = new_cut(tree) if shift == 0 else new_inner(tree)
        n = np.int64(tree.inner[n, digit])
        if shift == 0:
            break
        shift = next_shift(shift)
    # Count the end at an existing cut
    if there:
        tree.cut[n, ps.ENDS] += 1
        return np.int64(ps.NONE)
    # Link a new space above the old one
    s = new_space(tree)
    above = np.int64(tree.space[below, ps.NEXT])
    tree.space[s, ps.NEXT], tree.space[s, ps.START], tree.space[s, ps.PREDS] = above, n, tree.space[below, ps.PREDS]
    tree.space[below, ps.NEXT] = s
    if above != ps.NONE:
        tree.cut[np.int64(tree.space[above, ps.START]), ps.LESS] = s
    else:
        tree.tree[a, ps.LAST] = s
    # Write the new cut
    tree.cut[n, ps.LESS], tree.cut[n, ps.EQUAL], tree.cut[n, ps.ENDS] = below, s, 1
    tree.key[n] = key
    return s


@device
def uncut_at(tree, a, key):
    """Removes an end of a predicate at a key, and the cut if it was the last end there.

    Returns the space that began at a removed cut, for the caller to free, or NONE. The space below
    has the same conjunctions.
    """
    # Go down to the cut
    n, shift = np.int64(tree.tree[a, ps.ROOT]), np.uint64(tree.top[a])
    fork, fork_shift = np.int64(ps.NONE), shift  # the lowest node of the path with other children
    while True:
        if popcount(np.uint64(tree.inner[n, ps.CHILDREN])) > 1:
            fork, fork_shift = n, shift
        n = np.int64(tree.inner[n, digit_of(key, shift)])
        if shift == 0:
            break
        shift = next_shift(shift)
    # Keep the cut if other predicates end there
    tree.cut[n, ps.ENDS] -= 1
    if tree.cut[n, ps.ENDS] > 0:
        return np.int64(ps.NONE)
    # Unlink the space above the cut
    below, s = np.int64(tree.cut[n, ps.LESS]), np.int64(tree.cut[n, ps.EQUAL])
    above = np.int64(tree.space[s, ps.NEXT])
    tree.space[below, ps.NEXT] = above
    if above != ps.NONE:
        tree.cut[np.int64(tree.space[above, ps.START]), ps.LESS] = below
    else:
        tree.tree[a, ps.LAST] = below
    # Remove the cut and the path to it
    free_cut(tree, n)
    _forget(tree, a, key, fork, fork_shift)
    tree.state[ps.MERGED] += 1
    return s


@device
def _forget(tree, a, key, fork, shift):
    """Removes the path to a cut from the tree, below the node ``fork``, or all of it for NONE."""
    # Unlink the path
    if fork == ps.NONE:
        n, shift = np.int64(tree.tree[a, ps.ROOT]), np.uint64(tree.top[a])
        tree.tree[a, ps.ROOT] = ps.NONE
    else:
        digit = digit_of(key, shift)
        n = np.int64(tree.inner[fork, digit])
        tree.inner[fork, digit] = ps.NONE
        tree.inner[fork, ps.CHILDREN] ^= np.uint32(1 << np.int64(digit))
        if shift == 0:
            return
        shift = next_shift(shift)
    # Free its nodes
    while True:
        child = np.int64(tree.inner[n, digit_of(key, shift)])
        free_inner(tree, n)
        if shift == 0:
            return
        n, shift = child, next_shift(shift)


@device
def leave_cells(tree, a):
    """Subtracts a predicate from the uses of an attribute's cells, and frees the cells after the
    last one.

    Their lists and signatures must be empty.
    """
    tree.tree[a, ps.CELL_USES] -= 1
    if tree.tree[a, ps.CELL_USES] == 0:
        free_cells(tree, np.int64(tree.tree[a, ps.CELLS]))
        tree.tree[a, ps.CELLS] = ps.NONE


@device
def run_of(tree, a, lo, hi):
    """Returns the first and the last space of an interval that is cut at its ends."""
    trees, top, inner, cut = tree.tree, tree.top, tree.inner, tree.cut
    return find_space(trees, top, inner, cut, a, np.uint64(lo)), find_space(trees, top, inner, cut, a, np.uint64(hi))


@device
def count_spaces(space, s, last, column, step):
    """Adds ``step`` to a column of the spaces from ``s`` to ``last``. Returns their number."""
    n = 1
    space[s, column] = np.int64(space[s, column]) + step
    while s != last:
        s = np.int64(space[s, ps.NEXT])
        space[s, column] = np.int64(space[s, column]) + step
        n += 1
    return n
