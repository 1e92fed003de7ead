"""Many literals as a trie, and the Aho-Corasick automaton over it.

The automaton finds all that occur in a string in one pass.

Nodes are numbered by depth and, within one, in the order of their texts. So the children of a node
stand together, in the order of their last bytes, and need no pointers: 9 bytes a node for the trie,
8 more for the automaton. The next state of most nodes is searched among their few children; those
near the root, where nearly all bytes of a text are read, have a row of a table (``dense``). A
*state* is twice the number of a node, and one more if a literal ends there: so a reader has to look
at nothing else behind most bytes.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I32, I64, U8, Fixed, Written

CLASSES, LONGEST = 0, 1


class Trie(NamedTuple):
    """N nodes, the root first; L literals."""

    child: I32  # (N + 1) node -> its children
    byte: U8  # (N) last byte of the node's text
    literal: I32  # (N) literal that is the node's text, or -1


class Links(NamedTuple):
    """What makes a trie an automaton. C classes of bytes, K nodes with a row."""

    fail: I32  # (N) node of the longest proper suffix of the node's text
    hit: I32  # (N) first node, from this one along ``fail``, whose text is a literal; -1 when there is none
    kind: Fixed[U8]  # (256) byte -> its class; those that no literal has share class 0
    sizes: Fixed[I64]  # (2) CLASSES: C; LONGEST: how long the longest literal is
    dense: I32  # (K * C), K > 0: node and class -> next state


@kernel
def share(offset: I64, data: U8, shared: Written[I32]) -> None:
    """Writes how many bytes each of L sorted literals has in common with the one before:
    ``shared``, int32. offset int64 (L + 1), data uint8.
    """
    for i in range(len(shared)):
        n = 0
        if i:
            before = offset[i - 1]
            start = offset[i]
            while before + n < start and start + n < offset[i + 1] and data[before + n] == data[start + n]:
                n += 1
        shared[i] = n


@kernel
def fill_trie(
    offset: I64, data: U8, shared: Written[I32], next: Written[I64], path: Written[I64], trie: Written[Trie]
) -> None:
    """Writes the trie of sorted, distinct literals.

    Parameters
    ----------
    offset (int64), data (uint8), shared (int32) : the literals and what ``share`` says of them
    next : (D + 2) int64 depth -> number of its first node; used up
    path : (D + 1) int64 scratch
    trie : written
    """
    child, byte, literal = trie.child, trie.byte, trie.literal
    nodes = len(byte)
    for n in range(nodes):
        child[n] = literal[n] = -1
    child[nodes] = nodes
    path[0] = 0
    for i in range(len(shared)):
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
    """Returns the state behind one more byte."""
    while node >= rows:
        found = descend(node, wanted, child, byte)
        if found >= 0:
            return state_of(found, hit)
        node = fail[node]
    return dense[node * classes + np.int64(kind[wanted])]


@device
def state_of(node, hit):
    return np.int32(2 * node + (hit[node] >= 0))


@kernel
def fill_links(trie: Trie, classes: int, links: Written[Links]) -> None:
    """Failure links, and rows of the first nodes.

    A node's link has a smaller number than the node: one pass in the order of numbers.

    ``links.kind`` is read, the rest written.
    """
    child, byte, literal = trie.child, trie.byte, trie.literal
    fail, hit, kind, dense = links.fail, links.hit, links.kind, links.dense
    rows = len(dense) // classes
    fail[0] = 0
    hit[0] = 0 if literal[0] >= 0 else -1
    for n in range(len(byte)):
        if n < rows:
            for k in range(classes):
                dense[n * classes + k] = dense[fail[n] * classes + k] if n else state_of(0, hit)
        for m in range(child[n], child[n + 1]):
            found = 0
            if n:
                found = step(fail[n], byte[m], child, byte, fail, hit, kind, dense, classes, rows) >> 1
            fail[m] = found
            hit[m] = m if literal[m] >= 0 else hit[found]
        if n < rows:
            for m in range(child[n], child[n + 1]):
                dense[n * classes + np.int64(kind[byte[m]])] = state_of(m, hit)
