"""Tokens -> conjunctions of leaves, as ``expr/assemble.py`` makes them of one text.

A text is a tree of groups, and NOT says for each phrase whether it is asked "is true" or "is
false"; a group that is asked the latter is one of the other kind. Groups are flat, without
constants, and have leaves of one attribute merged where that is one leaf (``expr/tree.py``). Then
the tree is multiplied out within the budget. A text beyond it is unsure.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import I64
from colmatch.kernels.sql.arrays import ALWAYS, CLOSE, EITHER, EVERY, NEVER, NOT, OPEN, OR, UNSURE

LEAF, TRUE, FALSE = 2, 3, 4  # kinds of nodes beside EVERY and EITHER
COUNTLESS = 1 << 40
NONE = -1
LEAVES, TESTS, CONJUNCTIONS, REFS = range(4)  # places in ``filled``
DNF, CNF, CLAUSES, DEPTH = range(4)  # places in ``limits``


class Nodes(NamedTuple):
    """The tree of one text, in arrays as long as it can have nodes; A attributes."""

    kind: I64
    child: I64  # first child; of a leaf, its number among the leaves that were made, or NONE
    last: I64  # last child; of a leaf, the first literal of its phrase
    next: I64  # next child of the same group
    leaf: I64  # of a leaf: leaf of ``Meanings``
    slot: I64  # of a leaf: literals of the text before its phrase
    more: I64  # of a leaf: the next one whose tests are united with its own
    tail: I64  # of a leaf: the last of these
    count: I64  # conjunctions that it is multiplied out to
    size: I64  # leaves in it
    stack: I64  # groups that are open, parts of a phrase, or what is left to be walked
    choice: I64  # beside ``stack``: a mode, or which conjunction of a node is wanted
    owner: I64  # (A) the last group that met the attribute, by ``serial``
    place: I64  # (A) the leaf that it met
    serial: I64  # (1) groups that were closed


@device
def new_node(nodes, n, kind):
    """Makes node ``n`` without children, and returns it."""
    nodes.kind[n] = kind
    nodes.child[n] = nodes.last[n] = nodes.next[n] = nodes.more[n] = NONE
    nodes.tail[n] = n
    nodes.count[n] = nodes.size[n] = 1
    return n


@device
def append(nodes, group, part):
    """Makes a node the last child of a group, or its children where it is of the same kind."""
    first, last = part, part
    if nodes.kind[part] == nodes.kind[group]:
        first, last = nodes.child[part], nodes.last[part]
    if nodes.child[group] == NONE:
        nodes.child[group] = first
    else:
        nodes.next[nodes.last[group]] = first
    nodes.last[group] = last


@device
def is_merged(nodes, part, every, meanings):
    """Merges a leaf of an open group into an earlier one of its attribute, if that is one leaf."""
    leaf = nodes.leaf[part]
    if not meanings.leaf_merges[leaf] or (meanings.leaf_none[leaf] != 0) != every:
        return False
    attr, serial = meanings.leaf_attr[leaf], nodes.serial[0]
    if nodes.owner[attr] != serial:
        nodes.owner[attr] = serial
        nodes.place[attr] = part
        return False
    one = nodes.place[attr]
    nodes.more[nodes.tail[one]] = part
    nodes.tail[one] = nodes.tail[part]
    return True


@device
def close(nodes, group, meanings):
    """Returns the node that a group comes to: itself, its only part, or a constant."""
    every = nodes.kind[group] == EVERY
    decides, vain = (FALSE, TRUE) if every else (TRUE, FALSE)
    nodes.serial[0] += 1
    part = nodes.child[group]
    last, parts, count, size = np.int64(NONE), 0, (1 if every else 0), 0
    while part != NONE:
        after, kind = nodes.next[part], nodes.kind[part]
        nodes.next[part] = NONE
        if kind == decides:
            nodes.kind[group] = decides
            return group
        if kind != vain and not (kind == LEAF and is_merged(nodes, part, every, meanings)):
            if last == NONE:
                nodes.child[group] = part
            else:
                nodes.next[last] = part
            last = part
            parts += 1
            count = min(count * nodes.count[part] if every else count + nodes.count[part], COUNTLESS)
            size += nodes.size[part]
        part = after
    if parts == 0:
        nodes.kind[group] = vain
        return group
    if parts == 1:
        return last
    nodes.last[group], nodes.count[group], nodes.size[group] = last, count, size
    return group


@device
def phrase_node(nodes, n, top, question, literal, slot, meanings):
    """Makes the nodes of a phrase that is asked a question, from node ``n`` on.

    Returns its root, and how many nodes there are then. ``stack[top:]`` is free.
    """
    base = top
    for f in range(meanings.first[question], meanings.first[question + 1]):
        what = np.int64(meanings.formula[f])
        node = np.int64(n)
        if what >= 0:
            new_node(nodes, node, LEAF)
            nodes.leaf[node] = what
            nodes.last[node] = literal
            nodes.slot[node] = slot
        elif what == ALWAYS or what == NEVER:
            new_node(nodes, node, TRUE if what == ALWAYS else FALSE)
        else:
            what = -4 - what
            new_node(nodes, node, what & 1)
            first = top - (what >> 1)
            for k in range(first, top):
                append(nodes, node, nodes.stack[k])
            top = first
            node = close(nodes, node, meanings)
        n += 1
        nodes.stack[top] = node
        top += 1
    return nodes.stack[base], n


@device
def text_node(nodes, cut, text, phrases, meanings, most_depth):
    """Makes the tree of a text. Returns its root, NONE where the text is unsure, and how many nodes
    there are.

    Each parenthesis has two open groups on the stack, of OR and of AND, and a mode.
    """
    literal = cut.literal_first[text]
    n, top, slot, mode, turned = 0, 0, np.int64(0), np.int64(0), np.int64(0)
    begin, end = cut.first[text], cut.first[text + 1]
    for t in range(begin - 1, end + 1):  # in parentheses
        token = np.int64(OPEN if t < begin else CLOSE if t == end else cut.token[t])
        node = np.int64(NONE)
        if token == NOT:
            turned ^= 1
        elif token == OPEN:
            nodes.choice[top] = mode
            mode ^= turned
            turned = np.int64(0)
            nodes.stack[top] = new_node(nodes, n, EVERY if mode else EITHER)
            nodes.stack[top + 1] = new_node(nodes, n + 1, EITHER if mode else EVERY)
            n += 2
            top += 2
        elif token == OR or token == CLOSE:
            append(nodes, nodes.stack[top - 2], close(nodes, nodes.stack[top - 1], meanings))
            if token == OR:
                nodes.stack[top - 1] = new_node(nodes, n, EITHER if mode else EVERY)
                n += 1
            else:
                node = close(nodes, nodes.stack[top - 2], meanings)
                top -= 2
                mode = nodes.choice[top]
        elif token >= 0:
            if not meanings.usable[token] or cut.depth[text] + meanings.depth[token] > most_depth:
                return np.int64(NONE), n
            node, n = phrase_node(nodes, n, top, 2 * token + (mode ^ turned), literal, slot, meanings)
            literal += phrases.literals[token]
            slot += meanings.slots[token]
            turned = np.int64(0)
        if top == 0:
            return node, n
        if node != NONE:
            append(nodes, nodes.stack[top - 1], node)
    return np.int64(NONE), n


@device
def make_leaf(nodes, node, text, meanings, made, filled):
    """Returns the number of a leaf among those made; at its first use it is made, with its
    tests.
    """
    if nodes.child[node] != NONE:
        return nodes.child[node]
    number, test = filled[LEAVES], filled[TESTS]
    made.leaf[number] = nodes.leaf[node]
    made.leaf_text[number] = text
    nodes.child[node] = number
    one = node
    while one != NONE:
        leaf = nodes.leaf[one]
        for k in range(meanings.leaf_first[leaf], meanings.leaf_first[leaf + 1]):
            made.test[test] = k
            made.test_leaf[test] = number
            made.test_base[test] = nodes.last[one]
            made.test_slot[test] = nodes.slot[one]
            test += 1
        one = nodes.more[one]
    filled[LEAVES], filled[TESTS] = number + 1, test
    return number


@device
def push_parts(nodes, node, which, top):
    """Pushes the parts of an AND so that the first is taken first, each with its conjunction in the
    one that is wanted of all. Returns the new top.
    """
    first, left = top, nodes.count[node]
    part = nodes.child[node]
    while part != NONE:  # the choice of the first part changes slowest
        left //= nodes.count[part]
        nodes.stack[top], nodes.choice[top] = part, which // left
        which %= left
        top += 1
        part = nodes.next[part]
    low, high = first, top - 1
    while low < high:
        nodes.stack[low], nodes.stack[high] = nodes.stack[high], nodes.stack[low]
        nodes.choice[low], nodes.choice[high] = nodes.choice[high], nodes.choice[low]
        low += 1
        high -= 1
    return top


@device
def make_conjunction(nodes, root, which, text, meanings, made, filled):
    """Writes one of the conjunctions that a tree is multiplied out to."""
    begin = ref = filled[REFS]
    top = 1
    nodes.stack[0], nodes.choice[0] = root, which
    while top > 0:
        top -= 1
        node, which = nodes.stack[top], nodes.choice[top]
        if nodes.kind[node] == LEAF:
            made.ref[ref] = make_leaf(nodes, node, text, meanings, made, filled)
            ref += 1
        elif nodes.kind[node] == EVERY:
            top = push_parts(nodes, node, which, top)
        else:
            part = nodes.child[node]
            while which >= nodes.count[part]:
                which -= nodes.count[part]
                part = nodes.next[part]
            nodes.stack[top], nodes.choice[top] = part, which
            top += 1
    made.owner[filled[CONJUNCTIONS]] = text
    made.size[filled[CONJUNCTIONS]] = ref - begin
    filled[CONJUNCTIONS] += 1
    filled[REFS] = ref


@device
def is_clauses(nodes, part, meanings, limits):
    """Returns whether an AND has only leaves, and ORs of leaves that want an entry, and no more
    than are allowed.
    """
    clauses, clause = 0, nodes.child[part]
    while clause != NONE:
        clauses += 1
        if nodes.kind[clause] != LEAF:
            leaf = nodes.child[clause]
            while leaf != NONE:
                if nodes.kind[leaf] != LEAF or meanings.leaf_none[nodes.leaf[leaf]]:
                    return False
                leaf = nodes.next[leaf]
        clause = nodes.next[clause]
    return clauses <= limits[CLAUSES]


@device
def measure(nodes, root, meanings, limits):
    """Returns how many conjunctions a tree is multiplied out to, -1 where that is too many, and
    the most leaves that they can have together.
    """
    left, total, refs = 16 * limits[DNF], 0, 0
    part = nodes.child[root] if nodes.kind[root] == EITHER else root
    while part != NONE:
        count = nodes.count[part]
        if count > 1:
            most = limits[CNF] if is_clauses(nodes, part, meanings, limits) else limits[DNF]
            if count > left or count > most:
                return -1, refs
            left -= count
        total += count
        refs += count * nodes.size[part]
        part = nodes.next[part] if part != root else np.int64(NONE)
    return total, refs


@kernel
def assemble_texts(cut, start, phrases, meanings, limits, nodes, made, filled):
    """Makes conjunctions of texts from ``start`` on.

    Parameters
    ----------
    limits : (4) int64: most conjunctions of any part, those of an AND of clauses, clauses, depth
    nodes : scratch
    filled : (4) how many leaves, tests, conjunctions and their leaves were made; changed

    Returns
    -------
    text : the first for which there is no room; all before it were made, or are unsure now
    """
    text = start
    while text < len(cut.unsure):
        if cut.unsure[text]:
            text += 1
            continue
        root, n = text_node(nodes, cut, text, phrases, meanings, limits[DEPTH])
        count, refs = np.int64(-1), np.int64(0)
        if root != NONE:
            kind = nodes.kind[root]
            count = np.int64(kind == TRUE)
            if kind != TRUE and kind != FALSE:
                count, refs = measure(nodes, root, meanings, limits)
        if count < 0:
            cut.unsure[text] = UNSURE
            text += 1
            continue
        if (
            filled[LEAVES] + n > len(made.leaf)
            or filled[TESTS] + n * meanings.most_tests[0] > len(made.test)
            or filled[CONJUNCTIONS] + count > len(made.owner)
            or filled[REFS] + refs > len(made.ref)
        ):
            break
        if refs == 0 and count:
            made.owner[filled[CONJUNCTIONS]] = text
            made.size[filled[CONJUNCTIONS]] = 0
            filled[CONJUNCTIONS] += 1
        elif count:
            part = nodes.child[root] if nodes.kind[root] == EITHER else root
            while part != NONE:
                for which in range(nodes.count[part]):
                    make_conjunction(nodes, part, which, text, meanings, made, filled)
                part = nodes.next[part] if part != root else np.int64(NONE)
        text += 1
    return text
