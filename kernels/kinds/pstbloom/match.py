"""The spaces of a row give the candidates, and the signatures that candidates must be in.

Source: algorithm 5 of "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional and
Dense Workloads".
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.kinds.pstbloom.arrays import CELL_WORDS, EVERYBODY, SPACES_FROM, STRIDE, WORDS, PSTBloom, Scratch
from colmatch.kernels.kinds.pstbloom.sign import first_of_cell
from colmatch.kernels.kinds.pstree.arrays import ALWAYS, CELLS, COUNT, FOUND, LIST, NONE
from colmatch.kernels.kinds.pstree.choose import ACCESS
from colmatch.kernels.kinds.pstree.intervals import cell_of
from colmatch.kernels.kinds.pstree.search import find_together
from colmatch.kernels.kinds.pstree.verify import BLOCK, verify
from colmatch.kernels.layout import ATTR_MASK, CONJUNCTIONS, I64, NODES, Predicates, Rows, Sink, Written
from colmatch.kernels.predicates import clear, spread
from colmatch.kernels.sink import FILL, stops

# A word of ``probe``: mask of the attribute, place of the test, and a bound of tested words.
LOW, HIGH, TESTED = np.uint64(ATTR_MASK), np.uint64(29), np.uint64(ACCESS)


@device
def _visit_spaces(index, event, walk, place, visit):
    """Notes the spaces and cells of an event's values. Returns the number of spaces with lists.

    walk : has the spaces of keys
    place : written, the start of their signatures; the signature of everybody for tests of presence
    """
    tree, space, state = index.tree, index.space, index.state
    attr, code, begin, end = event.attr, event.code, event.begin, event.end
    n, stride, of_cells = 0, state[STRIDE], state[CELL_WORDS] > 0
    # Visit the conjunctions without access predicate
    if space[ALWAYS, COUNT] > 0:
        visit[0] = ALWAYS
        n = 1
    for e in range(begin, end):
        # Note the space of the value
        a = np.int64(attr[e])
        place[4 * a + 3] = EVERYBODY
        s = np.int64(walk[e - begin, FOUND])
        if s != NONE:
            place[4 * a + 1] = SPACES_FROM + s * stride if stride > 0 else EVERYBODY
            if space[s, COUNT] > 0:
                visit[n] = s
                n += 1
        # Note the cell of the value
        s = np.int64(tree[a, CELLS])
        if s != NONE:
            i = cell_of(tree, a, np.int64(code[e]))
            place[4 * a + 2] = first_of_cell(state, a, i) if of_cells else EVERYBODY
            s += i
            if space[s, COUNT] > 0:
                visit[n] = s
                n += 1
    return n


@device
def _note_entries(entry, begin, end, place, signature, mask, conj, one, two, n):
    """Notes the entries ``begin:end`` with their next two attributes present, and prefetches
    signatures.

    Returns the number of noted entries; ``n`` is the number before.
    """
    for i in range(begin, end):
        first_word, second_word = np.uint64(entry[i, 1]), np.uint64(entry[i, 2])
        by_first = place[(first_word & LOW) << np.uint64(2) | first_word >> HIGH]
        by_second = place[(second_word & LOW) << np.uint64(2) | second_word >> HIGH]
        if by_first != 0 and by_second != 0:
            c = np.uint64(entry[i, 0])
            by_first += (c & mask[first_word >> HIGH]) >> np.uint64(6)
            by_second += (c & mask[second_word >> HIGH]) >> np.uint64(6)
            ask_for(signature, by_first)
            ask_for(signature, by_second)
            conj[n], one[n], two[n] = c, by_first, by_second
            n += np.uint64(1)
    return n


@device
def _is_signed(probe, begin, end, place, signature, mask, c):
    """Returns whether all predicates ``begin:end`` can be true according to signatures."""
    shift = c & np.uint64(63)
    for p in range(np.uint64(begin), np.uint64(end)):
        word = np.uint64(probe[p])
        if word != 0 and word < TESTED:
            where = place[(word & LOW) << np.uint64(2) | word >> HIGH]
            if where != 0:
                where += (c & mask[word >> HIGH]) >> np.uint64(6)
            if (signature[where] >> shift) & np.uint64(1) == 0:
                return False
    return True


@device
def _filter_signed(conj, one, two, n, place, signature, mask, first, probe):
    """Keeps the conjunctions, out of n, that signatures let through. Returns their number."""
    # Test the two words noted for each conjunction
    kept = np.uint64(0)
    for k in range(n):
        c = np.uint64(conj[k])
        if (signature[one[k]] & signature[two[k]]) >> (c & np.uint64(63)) & np.uint64(1) != 0:
            ask_for(first, c)
            conj[kept] = c
            kept += np.uint64(1)
    for k in range(kept):
        ask_for(probe, np.uint64(first[conj[k]]))
    # Test all predicates of the conjunctions left
    n, kept = kept, np.uint64(0)
    for k in range(n):
        c = np.uint64(conj[k])
        if _is_signed(probe, first[c], first[c + np.uint64(1)], place, signature, mask, c):
            conj[kept] = c
            kept += np.uint64(1)
    return kept


@kernel
def match(
    index: PSTBloom,
    preds: Predicates,
    rows: Written[Rows],
    start: int,
    stop: int,
    scratch: Written[Scratch],
    sink: Written[Sink],
    counters: Written[I64],
) -> int:
    """Matches rows ``start:stop``.

    Returns the first unfinished row: ``stop``, unless the sink became full.
    """
    space, entry, signature, probe, state = index.space, index.entry, index.sign, index.probe, index.state
    first, multi = preds.first, index.multi
    table, place, walk, visit = scratch.table, scratch.place, scratch.walk, scratch.visit
    conj, one, two = scratch.conj, scratch.one, scratch.two
    # Prepare the masks for conjunctions' numbers
    mask = scratch.mask
    mask[0] = mask[3] = 0
    mask[1] = 64 * state[WORDS] - 1 if state[WORDS] > 0 else 0
    mask[2] = 64 * state[CELL_WORDS] - 1 if state[CELL_WORDS] > 0 else 0
    place[0] = EVERYBODY  # for conjunctions without further predicates
    for row in range(start, stop):
        fill = sink.state[FILL]
        # Find the spaces of the row, and prefetch their lists
        event = spread(rows, row, multi, table)
        find_together(index, event, walk)
        visits = _visit_spaces(index, event, walk, place, visit)
        for v in range(visits):
            ask_for(entry, np.uint64(3) * np.uint64(space[visit[v], LIST]))
        v, at, last = 0, np.uint64(0), np.uint64(0)
        looked_at, fits = np.int64(0), True
        while fits and (at < last or v < visits):
            # Note a block of entries with their attributes present
            noted = np.uint64(0)
            while noted < BLOCK and (at < last or v < visits):  # the next block goes on in the same list
                if at == last:
                    at = np.uint64(space[visit[v], LIST])
                    last = at + np.uint64(space[visit[v], COUNT])
                    looked_at += np.int64(last - at)
                    v += 1
                until = min(at + np.uint64(BLOCK) - noted, last)
                noted = _note_entries(entry, at, until, place, signature, mask, conj, one, two, noted)
                at = until
            # Test their signatures, and verify the rest
            noted = _filter_signed(conj, one, two, noted, place, signature, mask, first, probe)
            fits = verify(preds, row, event, conj, np.int64(noted), sink, counters)
        # Clear the tables of the row
        clear(event)
        for e in range(event.begin, event.end):
            for how in range(1, 4):
                place[4 * np.int64(event.attr[e]) + how] = 0
        counters[NODES] += visits
        counters[CONJUNCTIONS] += looked_at
        if not fits and stops(sink, fill, counters):
            return row
    return stop
