"""Rows of the tables of PS-Trees: taken and given back."""

from colmatch.kernels._jit import device
from colmatch.kernels.pstree.arrays import (
    CHILDREN,
    COUNT,
    CUTS,
    FANOUT,
    FREE_CELLS,
    FREE_CUT,
    FREE_INNER,
    FREE_SPACE,
    INNERS,
    LIST,
    NEXT,
    NONE,
    PARTNERS_HIGH,
    PARTNERS_LOW,
    PREDS,
    SIZE,
    SPACES,
    START,
)

MOST_DIGITS = 16  # of a key


@device
def lacks_rows(tree, inners, cuts, spaces):
    """Whether there is no room for so many rows more."""
    state = tree.state
    return (
        state[INNERS] + inners > len(tree.inner)
        or state[CUTS] + cuts > len(tree.cut)
        or state[SPACES] + spaces > len(tree.space)
    )


@device
def _new_row(state, table, used, free):
    row = state[free]
    if row != NONE:
        state[free] = table[row, 0]
        return row
    row = state[used]
    state[used] += 1
    return row


@device
def new_inner(tree):
    n = _new_row(tree.state, tree.inner, INNERS, FREE_INNER)
    for digit in range(FANOUT):
        tree.inner[n, digit] = NONE
    tree.inner[n, CHILDREN] = 0
    return n


@device
def free_inner(tree, n):
    tree.inner[n, 0] = tree.state[FREE_INNER]
    tree.state[FREE_INNER] = n


@device
def new_cut(tree):
    return _new_row(tree.state, tree.cut, CUTS, FREE_CUT)


@device
def free_cut(tree, n):
    tree.cut[n, 0] = tree.state[FREE_CUT]
    tree.state[FREE_CUT] = n


@device
def _clear(tree, s):
    tree.space[s, NEXT] = tree.space[s, START] = tree.space[s, LIST] = tree.space[s, SIZE] = NONE
    tree.space[s, PREDS] = tree.space[s, COUNT] = 0
    tree.space[s, PARTNERS_LOW] = tree.space[s, PARTNERS_HIGH] = 0


@device
def new_space(tree):
    s = _new_row(tree.state, tree.space, SPACES, FREE_SPACE)
    _clear(tree, s)
    return s


@device
def free_space(tree, s):
    """Gives a space back, which has no list."""
    _clear(tree, s)
    tree.space[s, 0] = tree.state[FREE_SPACE]
    tree.state[FREE_SPACE] = s


@device
def new_cells(tree):
    """16 spaces side by side."""
    s = tree.state[FREE_CELLS]
    if s != NONE:
        tree.state[FREE_CELLS] = tree.space[s, 0]
    else:
        s = tree.state[SPACES]
        tree.state[SPACES] += FANOUT
    for i in range(FANOUT):
        _clear(tree, s + i)
    return s


@device
def free_cells(tree, s):
    tree.space[s, 0] = tree.state[FREE_CELLS]
    tree.state[FREE_CELLS] = s
