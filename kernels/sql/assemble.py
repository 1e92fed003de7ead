"""Tokens -> conjunctions of leaves, as ``expr/assemble.py`` makes them from one text.

A text is a tree of groups. Each group has a mode of ``expr/modes.py``. NOT and IS TRUE change the
mode of their operand, and in two modes an AND becomes an OR. Groups are flat, without constants.
Their leaves of one attribute are merged where the result is one leaf (``expr/tree.py``). Then the
tree is multiplied out within the budget, and parts beyond the budget become programs. A text is
unsure if a program of it would be divided.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import ACCEPT, I64, REJECT, Written
from colmatch.kernels.sql import arrays as sq
from colmatch.kernels.sql.arrays import LoweredTexts, Meanings, Phrases, TokenTable

LEAF, TRUE, FALSE = 2, 3, 4  # kinds of nodes, besides EVERY and EITHER
COUNTLESS = 1 << 40
NONE = -1
LEAVES, TESTS, CONJUNCTIONS, REFS, PROGRAMS, JUMPS, TREES = range(7)  # places in ``filled``
DNF, CNF, CLAUSES, DIVIDED, DEPTH = range(5)  # places in ``limits``


class Nodes(NamedTuple):
    """The tree of one text, in arrays as long as it can have nodes; A attributes."""

    kind: I64
    child: I64  # first child; of a leaf, its number among the leaves that were made, or NONE
    last: I64  # last child; of a leaf, the first literal of its phrase
    next: I64  # next child of the same group
    leaf: I64  # of a leaf: leaf of ``Meanings``
    slot: I64  # of a leaf: literals of the text before its phrase
    more: I64  # of a leaf: the next one to unite its tests with
    tail: I64  # of a leaf: the last of these
    conjunctions: I64  # number of conjunctions that it is multiplied out to
    size: I64  # leaves in it
    stack: I64  # open groups, parts of a phrase, or nodes left to be visited
    choice: I64  # parallel to ``stack``: a mode, the number of a node's wanted conjunction, or its first leaf
    yes: I64  # parallel to ``stack``: the next leaf of a program when the node is true
    no: I64  # and when it is false
    room: I64  # (7) room that the text needs, by places of ``filled``
    owner: I64  # (A) the last group that met the attribute, by ``serial``
    place: I64  # (A) the leaf that it met
    serial: I64  # (1) number of groups that were closed


@device
def new_node(nodes, n, kind):
    """Makes node ``n`` without children, and returns it."""
    nodes.kind[n] = kind
    nodes.child[n] = nodes.last[n] = nodes.next[n] = nodes.more[n] = NONE
    nodes.tail[n] = n
    nodes.conjunctions[n] = nodes.size[n] = 1
    return n


@device
def append(nodes, group, part):
    """Makes a node the last child of a group, or its children if it is of the same kind."""
    first, last = part, part
    if nodes.kind[part] == nodes.kind[group]:
        first, last = nodes.child[part], nodes.last[part]
    if nodes.child[group] == NONE:
        nodes.child[group] = first
    else:
        nodes.next[nodes.last[group]] = first
    nodes.last[group] = last


@device
def merge_leaf(nodes, part, every, meanings):
    """Merges a leaf of an open group into an earlier one of its attribute, if the result is one
    leaf.

    Returns whether it was merged.
    """
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
    """Returns the node that replaces a complete group: the group, its only part, or a constant."""
    every = nodes.kind[group] == sq.EVERY
    decides, vain = (FALSE, TRUE) if every else (TRUE, FALSE)
    nodes.serial[0] += 1
    part = nodes.child[group]
    last, parts, count, size = np.int64(NONE), 0, (1 if every else 0), 0
    while part != NONE:
        after, kind = nodes.next[part], nodes.kind[part]
        nodes.next[part] = NONE
        # Let a constant decide the group
        if kind == decides:
            nodes.kind[group] = decides
            return group
        # Keep a part unless it is neutral or merged, and count conjunctions
        if kind != vain and not (kind == LEAF and merge_leaf(nodes, part, every, meanings)):
            if last == NONE:
                nodes.child[group] = part
            else:
                nodes.next[last] = part
            last = part
            parts += 1
            more = nodes.conjunctions[part]
            if every and count > COUNTLESS // more:  # the product may be too much for 64 bits
                count = COUNTLESS
            else:
                count = min(count * more if every else count + more, COUNTLESS)
            size += nodes.size[part]
        part = after
    # Replace a group with one part or none
    if parts == 0:
        nodes.kind[group] = vain
        return group
    if parts == 1:
        return last
    nodes.last[group], nodes.conjunctions[group], nodes.size[group] = last, count, size
    return group


@device
def phrase_node(nodes, n, top, question, literal, slot, meanings):
    """Makes the nodes of a phrase in one mode, from node ``n`` on.

    ``question`` is four times the phrase, plus the mode. Returns the root, and the number of nodes
    then. ``stack[top:]`` is free.
    """
    base = top
    for f in range(meanings.first[question], meanings.first[question + 1]):
        what = np.int64(meanings.formula[f])
        node = np.int64(n)
        if what >= 0:
            # Make a leaf
            new_node(nodes, node, LEAF)
            nodes.leaf[node] = what
            nodes.last[node] = literal
            nodes.slot[node] = slot
        elif what == sq.ALWAYS or what == sq.NEVER:
            new_node(nodes, node, TRUE if what == sq.ALWAYS else FALSE)
        else:
            # Make a group of the last nodes on the stack
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
def is_straight(mode):
    """Returns whether a mode is TRUE or NOT_FALSE, where an AND stays an AND."""
    return mode == 0 or mode == 3


@device
def inside_mode(mode, token):
    """Returns the mode inside parentheses."""
    if token == sq.OPEN_NOT_TRUE or token == sq.OPEN_NOT_FALSE:
        mode ^= 1
    if token == sq.OPEN_TRUE or token == sq.OPEN_NOT_TRUE:
        return np.int64(0 if is_straight(mode) else 2)
    if token == sq.OPEN_FALSE or token == sq.OPEN_NOT_FALSE:
        return np.int64(1 if is_straight(mode) else 3)
    return np.int64(mode)


@device
def text_node(nodes, cut, text, phrases, meanings, most_depth):
    """Makes the tree of a text. Returns its root, NONE where the text is unsure, and the number of
    nodes.

    Each parenthesis has two open groups on the stack, of OR and of AND, and a mode.
    """
    literal = cut.literal_first[text]
    n, top, slot, mode, turned = 0, 0, np.int64(0), np.int64(0), np.int64(0)
    begin, end = cut.first[text], cut.first[text + 1]
    for t in range(begin - 1, end + 1):  # in parentheses
        token = np.int64(sq.OPEN if t < begin else sq.CLOSE if t == end else cut.token[t])
        node = np.int64(NONE)
        if token == sq.NOT:
            turned ^= 1
        elif token == sq.OPEN or token <= sq.OPEN_TRUE:
            # Open a parenthesis with its two groups
            nodes.choice[top] = mode
            mode = inside_mode(mode ^ turned, token)
            turned = np.int64(0)
            nodes.stack[top] = new_node(nodes, n, sq.EITHER if is_straight(mode) else sq.EVERY)
            nodes.stack[top + 1] = new_node(nodes, n + 1, sq.EVERY if is_straight(mode) else sq.EITHER)
            n += 2
            top += 2
        elif token == sq.OR or token == sq.CLOSE:
            # Close the inner group, and at a parenthesis the outer one
            append(nodes, nodes.stack[top - 2], close(nodes, nodes.stack[top - 1], meanings))
            if token == sq.OR:
                nodes.stack[top - 1] = new_node(nodes, n, sq.EVERY if is_straight(mode) else sq.EITHER)
                n += 1
            else:
                node = close(nodes, nodes.stack[top - 2], meanings)
                top -= 2
                mode = nodes.choice[top]
        elif token >= 0:
            # Make the nodes of a phrase, unless the text is unsure
            if not meanings.usable[token] or cut.depth[text] + meanings.depth[token] > most_depth:
                return np.int64(NONE), n
            node, n = phrase_node(nodes, n, top, 4 * token + (mode ^ turned), literal, slot, meanings)
            literal += phrases.literals[token]
            slot += meanings.slots[token]
            turned = np.int64(0)
        # Return the root, or append a node to the innermost group
        if top == 0:
            return node, n
        if node != NONE:
            append(nodes, nodes.stack[top - 1], node)
    return np.int64(NONE), n


@device
def make_leaf(nodes, node, text, meanings, made, filled):
    """Returns the number of a leaf, which is made with its tests at its first use."""
    if nodes.child[node] != NONE:
        return nodes.child[node]
    number, test = filled[LEAVES], filled[TESTS]
    made.leaf[number] = nodes.leaf[node]
    made.leaf_text[number] = text
    nodes.child[node] = number
    # Write the tests of all leaves that are united
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
    """Pushes the parts of an AND so that the first is taken first. Returns the new top.

    Conjunction ``which`` of the AND consists of one conjunction of each part. Its number is pushed
    with the part.
    """
    first, left = top, nodes.conjunctions[node]
    part = nodes.child[node]
    while part != NONE:  # the number of the first part changes slowest
        left //= nodes.conjunctions[part]
        nodes.stack[top], nodes.choice[top] = part, which // left
        which %= left
        top += 1
        part = nodes.next[part]
    # Reverse the parts
    low, high = first, top - 1
    while low < high:
        nodes.stack[low], nodes.stack[high] = nodes.stack[high], nodes.stack[low]
        nodes.choice[low], nodes.choice[high] = nodes.choice[high], nodes.choice[low]
        low += 1
        high -= 1
    return top


@device
def make_conjunction(nodes, root, which, text, meanings, made, filled):
    """Writes conjunction ``which`` of those that a tree is multiplied out to."""
    begin = ref = filled[REFS]
    top = 1
    nodes.stack[0], nodes.choice[0] = root, which
    while top > 0:
        top -= 1
        node, which = nodes.stack[top], nodes.choice[top]
        if nodes.kind[node] == LEAF:
            made.ref[ref] = make_leaf(nodes, node, text, meanings, made, filled)
            ref += 1
        elif nodes.kind[node] == sq.EVERY:
            top = push_parts(nodes, node, which, top)
        else:
            # Go on to the part of an OR that has the conjunction
            part = nodes.child[node]
            while which >= nodes.conjunctions[part]:
                which -= nodes.conjunctions[part]
                part = nodes.next[part]
            nodes.stack[top], nodes.choice[top] = part, which
            top += 1
    # Enter the conjunction
    made.owner[filled[CONJUNCTIONS]] = text
    made.size[filled[CONJUNCTIONS]] = ref - begin
    filled[CONJUNCTIONS] += 1
    filled[REFS] = ref


@device
def is_clauses(nodes, part, meanings, limits):
    """Returns whether an AND has few enough parts, all of them leaves or ORs of leaves.

    Leaves of an OR must need an entry.
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
def is_program(nodes, part, left, meanings, limits):
    """Returns whether a part exceeds the budget, or its remainder ``left``."""
    count = nodes.conjunctions[part]
    if count == 1:
        return False
    most = limits[CNF] if is_clauses(nodes, part, meanings, limits) else limits[DNF]
    return count > left or count > most


@device
def measure(nodes, root, n, meanings, limits):
    """Writes the room that a tree of ``n`` nodes needs. Returns whether no part is unsure."""
    room, left = nodes.room, 16 * limits[DNF]
    # Leave room for all nodes as leaves
    room[:] = 0
    room[LEAVES], room[TESTS] = n, n * meanings.most_tests[0]
    room[CONJUNCTIONS] = nodes.kind[root] == TRUE
    if nodes.kind[root] > LEAF:
        return True
    # Add up the room for each part of the tree
    part = nodes.child[root] if nodes.kind[root] == sq.EITHER else root
    while part != NONE:
        count = nodes.conjunctions[part]
        if is_program(nodes, part, left, meanings, limits):
            if limits[DIVIDED]:
                return False
            room[PROGRAMS] += 1
            room[JUMPS] += nodes.size[part]
            room[TREES] += 2 * nodes.size[part]
            count = np.int64(1)
        elif count > 1:
            left -= count
        room[CONJUNCTIONS] += count
        room[REFS] += count * nodes.size[part]
        part = nodes.next[part] if part != root else np.int64(NONE)
    return True


@device
def put_leaves_first(nodes, group):
    """Puts the leaves of a group before its groups, since an index finds candidates by leaves."""
    part = nodes.child[group]
    leaf, last_leaf, other, last_other = np.int64(NONE), np.int64(NONE), np.int64(NONE), np.int64(NONE)
    # Divide the children into leaves and groups
    while part != NONE:
        after = nodes.next[part]
        nodes.next[part] = NONE
        if nodes.kind[part] == LEAF:
            if last_leaf == NONE:
                leaf = part
            else:
                nodes.next[last_leaf] = part
            last_leaf = part
        else:
            if last_other == NONE:
                other = part
            else:
                nodes.next[last_other] = part
            last_other = part
        part = after
    # Join the two lists
    if last_leaf == NONE:
        leaf = other
    else:
        nodes.next[last_leaf] = other
    nodes.child[group] = leaf


@device
def make_program(nodes, root, text, meanings, made, filled):
    """Writes a tree as a program with forward jumps only."""
    first, jump, tree, top = filled[REFS], filled[JUMPS], filled[TREES], 1
    nodes.stack[0], nodes.choice[0], nodes.yes[0], nodes.no[0] = root, 0, ACCEPT, REJECT
    while top > 0:
        top -= 1
        node, start, yes, no = nodes.stack[top], nodes.choice[top], nodes.yes[top], nodes.no[top]
        if nodes.kind[node] == LEAF:
            # Write a leaf and its jumps
            made.ref[first + start] = make_leaf(nodes, node, text, meanings, made, filled)
            made.jump[jump + start, 0], made.jump[jump + start, 1] = yes, no
            continue
        # Push the parts with the places where they begin and go on
        part = nodes.child[node]
        while part != NONE:
            after, last = start + nodes.size[part], nodes.next[part] == NONE
            every = nodes.kind[node] == sq.EVERY
            nodes.stack[top], nodes.choice[top] = part, start
            nodes.yes[top] = after if every and not last else yes
            nodes.no[top] = after if not every and not last else no
            top += 1
            start = after
            part = nodes.next[part]
    # Enter the program and its tree
    made.program[filled[PROGRAMS]] = filled[CONJUNCTIONS]
    made.tokens[filled[PROGRAMS]] = write_tree(nodes, root, made.tree, tree) - tree
    made.owner[filled[CONJUNCTIONS]] = text
    made.size[filled[CONJUNCTIONS]] = nodes.size[root]
    filled[REFS] += nodes.size[root]
    filled[JUMPS] += nodes.size[root]
    filled[TREES] += made.tokens[filled[PROGRAMS]]
    filled[PROGRAMS] += 1
    filled[CONJUNCTIONS] += 1


@device
def write_tree(nodes, root, tree, at):
    """Writes a tree in postfix from ``at`` on. Returns its end.

    A leaf is its number, and a group ``-2 * parts``, less 1 for an OR.
    """
    leaf, top = 0, 1
    nodes.stack[0], nodes.choice[0] = root, nodes.child[root]
    while top > 0:
        node, part = nodes.stack[top - 1], nodes.choice[top - 1]
        if part != NONE:
            # Visit the next part
            nodes.choice[top - 1] = nodes.next[part]
            if nodes.kind[part] == LEAF:
                tree[at] = leaf
                leaf += 1
                at += 1
            else:
                nodes.stack[top], nodes.choice[top] = part, nodes.child[part]
                top += 1
            continue
        # Write the group after its parts
        parts, part = 0, nodes.child[node]
        while part != NONE:
            parts += 1
            part = nodes.next[part]
        tree[at] = -2 * parts - (nodes.kind[node] == sq.EITHER)
        at += 1
        top -= 1
    return at


@device
def has_room(room, made, filled):
    """Returns whether there is as much room as a text needs."""
    return (
        filled[LEAVES] + room[LEAVES] <= len(made.leaf)
        and filled[TESTS] + room[TESTS] <= len(made.test)
        and filled[CONJUNCTIONS] + room[CONJUNCTIONS] <= len(made.owner)
        and filled[REFS] + room[REFS] <= len(made.ref)
        and filled[PROGRAMS] + room[PROGRAMS] <= len(made.program)
        and filled[JUMPS] + room[JUMPS] <= len(made.jump)
        and filled[TREES] + room[TREES] <= len(made.tree)
    )


@device
def make_parts(nodes, root, text, meanings, limits, made, filled):
    """Makes the conjunctions and programs of a tree."""
    left = 16 * limits[DNF]
    part = nodes.child[root] if nodes.kind[root] == sq.EITHER else root
    while part != NONE:
        after = nodes.next[part] if part != root else np.int64(NONE)
        count = nodes.conjunctions[part]
        if is_program(nodes, part, left, meanings, limits):
            put_leaves_first(nodes, part)
            make_program(nodes, part, text, meanings, made, filled)
        else:
            left -= count if count > 1 else 0
            for which in range(count):
                make_conjunction(nodes, part, which, text, meanings, made, filled)
        part = after


@kernel
def assemble_texts(
    cut: Written[TokenTable],
    start: int,
    phrases: Written[Phrases],
    meanings: Written[Meanings],
    limits: Written[I64],
    nodes: Written[Nodes],
    made: Written[LoweredTexts],
    filled: Written[I64],
) -> int:
    """Makes conjunctions of texts from ``start`` on.

    Parameters
    ----------
    limits : (5) int64, most conjunctions of any part, most of an AND of clauses, most clauses;
        whether programs are divided; most depth
    nodes : scratch
    filled : (7) int64, numbers of leaves, tests, conjunctions, their leaves, programs, their leaves
        and tokens so far; changed

    Returns
    -------
    text : the first without room, see ``nodes.room``; all texts before it were made, or are unsure
        now
    """
    text = start
    while text < len(cut.unsure):
        if cut.unsure[text]:
            text += 1
            continue
        # Make the tree, and measure the room for it
        root, n = text_node(nodes, cut, text, phrases, meanings, limits[DEPTH])
        if root == NONE or not measure(nodes, root, n, meanings, limits):
            cut.unsure[text] = sq.UNSURE
        elif not has_room(nodes.room, made, filled):
            break
        elif nodes.kind[root] == TRUE:
            # A text that is always true has one empty conjunction
            made.owner[filled[CONJUNCTIONS]] = text
            made.size[filled[CONJUNCTIONS]] = 0
            filled[CONJUNCTIONS] += 1
        elif nodes.kind[root] != FALSE:
            make_parts(nodes, root, text, meanings, limits, made, filled)
        text += 1
    return text
