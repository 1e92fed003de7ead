"""Rows of the tables of PS-Trees, and their allocation."""

from colmatch.kernels._jit import device
from colmatch.kernels.kinds.pstree import arrays as ps

MOST_DIGITS = 16  # most digits of a key


@device
def lacks_rows(tree, inners, cuts, spaces):
    """Returns whether there is no room for so many more rows."""
    state = tree.state
    return (
        state[ps.INNERS] + inners > len(tree.inner)
        or state[ps.CUTS] + cuts > len(tree.cut)
        or state[ps.SPACES] + spaces > len(tree.space)
    )


@device
def _new_row(state, table, used, free):
    row = state[free]
    if row != ps.NONE:
        state[free] = table[row, 0]
        return row
    row = state[used]
    state[used] += 1
    return row


@device
def new_inner(tree):
    n = _new_row(tree.state, tree.inner, ps.INNERS, ps.FREE_INNER)
    for digit in range(ps.FANOUT):
        tree.inner[n, digit] = ps.NONE
    tree.inner[n, ps.CHILDREN] = 0
    return n


@device
def free_inner(tree, n):
    tree.inner[n, 0] = tree.state[ps.FREE_INNER]
    tree.state[ps.FREE_INNER] = n


@device
def new_cut(tree):
    return _new_row(tree.state, tree.cut, ps.CUTS, ps.FREE_CUT)


@device
def free_cut(tree, n):
    tree.cut[n, 0] = tree.state[ps.FREE_CUT]
    tree.state[ps.FREE_CUT] = n


@device
def _clear(tree, s):
    tree.space[s, ps.NEXT] = tree.space[s, ps.START] = tree.space[s, ps.LIST] = tree.space[s, ps.SIZE] = ps.NONE
    tree.space[s, ps.PREDS] = tree.space[s, ps.COUNT] = 0
    tree.space[s, ps.PARTNERS_LOW] = tree.space[s, ps.PARTNERS_HIGH] = 0


@device
def new_space(tree):
    s = _new_row(tree.state, tree.space, ps.SPACES, ps.FREE_SPACE)
    _clear(tree, s)
    return s


@device
def free_space(tree, s):
    """Frees a space without a list."""
    _clear(tree, s)
    tree.space[s, 0] = tree.state[ps.FREE_SPACE]
    tree.state[ps.FREE_SPACE] = s


@device
def new_cells(tree):
    """Returns the first of 16 new spaces side by side."""
    s = tree.state[ps.FREE_CELLS]
    if s != ps.NONE:
        tree.state[ps.FREE_CELLS] = tree.space[s, 0]
    else:
        s = tree.state[ps.SPACES]
        tree.state[ps.SPACES] += ps.FANOUT
    for i in range(ps.FANOUT):
        _clear(tree, s + i)
    return s


@device
def free_cells(tree, s):
    tree.space[s, 0] = tree.state[ps.FREE_CELLS]
    tree.state[ps.FREE_CELLS] = s
