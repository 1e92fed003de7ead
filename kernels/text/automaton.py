"""Many literals as tries, and the Aho-Corasick automaton over them.

The automaton finds all literals that occur in a string in one pass.

There is one trie for each base (column of strings), and all tries are in the same arrays: node b is
the root of base b. A search begins at its root and never leaves its trie.

Nodes are numbered by depth and, within one depth, in the order of their bases and texts. So the
children of a node are adjacent, in the order of their last bytes, and need no pointers. A node
takes 9 bytes in the trie and 8 more in the automaton. The next state of most nodes is searched for
among their few children. Nodes near the roots, where nearly all bytes of a text are read, have a
row of a table (``dense``). A *state* is twice the number of a node, plus one if a literal ends
there. So a reader has to look at nothing else after most bytes.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I32, I64, U8, Fixed, Written


class Trie(NamedTuple):
    """N nodes, the G roots first; L literals."""

    child: I32  # (N + 1) node -> its children
    byte: U8  # (N) last byte of the node's text
    literal: I32  # (N) literal that is the node's text, or -1


class Links(NamedTuple):
    """The links that make tries an automaton, with C classes of bytes and K nodes with a row."""

    fail: I32  # (N) node of the longest proper suffix of the node's text; of a root the root itself
    hit: I32  # (N) first node with a literal, from this one along ``fail``; -1 when there is none
    kind: Fixed[U8]  # (256) byte -> its class; bytes that no literal has share class 0
    classes: Fixed[I64]  # (1) C
    dense: I32  # (K * C), K >= G: node and class -> next state


@kernel
def share(offset: I64, data: U8, base: I32, shared: Written[I32]) -> None:
    """Writes the number of bytes that each of L literals has in common with the one before.

    The literals are sorted by base and text. Those of different bases have nothing in common.

    offset : (L + 1) int64
    data : uint8
    base : (L) int32
    shared : (L) int32, written
    """
    for i in range(len(shared)):
        n = 0
        if i and base[i] == base[i - 1]:
            before = offset[i - 1]
            start = offset[i]
            while before + n < start and start + n < offset[i + 1] and data[before + n] == data[start + n]:
                n += 1
        shared[i] = n


@kernel
def fill_trie(
    offset: I64, data: U8, base: I32, shared: Written[I32], next: Written[I64], path: Written[I64], trie: Written[Trie]
) -> None:
    """Writes the tries of literals that are distinct, and sorted by base and text.

    Parameters
    ----------
    offset, data, base, shared : int64, uint8, int32, int32, the literals as for ``share``, and its
        result
    next : (D + 2) int64, depth -> number of its first node; used up
    path : (D + 1) int64, scratch
    trie : written
    """
    child, byte, literal = trie.child, trie.byte, trie.literal
    nodes = len(byte)
    for n in range(nodes):
        child[n] = literal[n] = -1
    child[nodes] = nodes
    for i in range(len(shared)):
        path[0] = base[i]
        # Add nodes for the bytes that the literal before does not have
        start = offset[i]
        length = offset[i + 1] - start
        for d in range(shared[i], length):
            node = next[d + 1]
            next[d + 1] = node + 1
            byte[node] = data[start + d]
            parent = path[d]
            if child[parent] < 0:
                child[parent] = node
            path[d + 1] = node
        literal[path[length]] = i
    # Give nodes without children an empty range
    for n in range(nodes - 1, -1, -1):
        if child[n] < 0:
            child[n] = child[n + 1]


@device
def descend(node, wanted, child, byte):
    """Returns the child of a node that ends with a byte, or -1."""
    low = child[node]
    end = child[node + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if byte[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and byte[low] == wanted else -1


@device
def step(node, wanted, child, byte, fail, hit, kind, dense, classes, rows):
    """Returns the state after one more byte."""
    while node >= rows:
        target = descend(node, wanted, child, byte)
        if target >= 0:
            return state_of(target, hit)
        node = fail[node]
    return dense[node * classes + np.int64(kind[wanted])]


@device
def state_of(node, hit):
    return np.int32(2 * node + (hit[node] >= 0))


@kernel
def fill_links(trie: Trie, roots: int, classes: int, links: Written[Links]) -> None:
    """Writes failure links, and the rows of the first nodes.

    The link of a node below the roots has a smaller number than the node. So one pass in the order
    of numbers is enough.

    ``links.kind`` is read, the rest written.
    """
    child, byte, literal = trie.child, trie.byte, trie.literal
    fail, hit, kind, dense = links.fail, links.hit, links.kind, links.dense
    rows = len(dense) // classes
    for n in range(roots):
        fail[n] = n
        hit[n] = n if literal[n] >= 0 else -1
    for n in range(len(byte)):
        if n < rows:
            # Begin with the row of the link
            for k in range(classes):
                dense[n * classes + k] = state_of(n, hit) if n < roots else dense[fail[n] * classes + k]
        # Link the children
        for m in range(child[n], child[n + 1]):
            suffix = n
            if n >= roots:
                suffix = step(fail[n], byte[m], child, byte, fail, hit, kind, dense, classes, rows) >> 1
            fail[m] = suffix
            hit[m] = m if literal[m] >= 0 else hit[suffix]
        if n < rows:
            # Enter the children into the row
            for m in range(child[n], child[n + 1]):
                dense[n * classes + np.int64(kind[byte[m]])] = state_of(m, hit)
