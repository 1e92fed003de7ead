"""The spaces of a row, combined into buckets, give the candidates.

Source: algorithm 7 of "PS-Tree-Based Efficient Boolean Expression Matching for High-Dimensional and
Dense Workloads".
"""

import numpy as np

from colmatch.kernels._jit import device, inlined, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.geometry import attribute_bit
from colmatch.kernels.kinds.psthash import arrays as psh
from colmatch.kernels.kinds.psthash.arrays import PSTHash, Scratch
from colmatch.kernels.kinds.psthash.buckets import place_of
from colmatch.kernels.kinds.pstree.arrays import ALWAYS, CELLS, COUNT, FOUND, LIST, NONE
from colmatch.kernels.kinds.pstree.intervals import cell_of
from colmatch.kernels.kinds.pstree.search import find_together
from colmatch.kernels.kinds.pstree.verify import BLOCK, LINE, verify
from colmatch.kernels.layout import ATTR_MASK, CONJUNCTIONS, I64, NODES, Predicates, Rows, Sink, Written
from colmatch.kernels.predicates import clear, spread
from colmatch.kernels.sink import FILL, stops


@device
def read_partners(table, row):
    """Returns bits of the attributes that follow a space or bucket."""
    return np.uint64(table[row, psh.PARTNERS_LOW]) | np.uint64(table[row, psh.PARTNERS_HIGH]) << np.uint64(32)


@device
def _list_spaces(index, event, walk, space_attr, own):
    """Lists the spaces and cells of an event's values. Returns their number."""
    tree, attr, code, begin, end = index.tree, event.attr, event.code, event.begin, event.end
    n = 0
    find_together(index, event, walk)
    for e in range(begin, end):
        a, s = np.int64(attr[e]), np.int64(walk[e - begin, FOUND])
        if s != NONE:
            space_attr[n], own[n] = a, s
            n += 1
        s = np.int64(tree[a, CELLS])
        if s != NONE:
            space_attr[n], own[n] = a, s + cell_of(tree, a, np.int64(code[e]))
            n += 1
    return n


@inlined
def _note_bucket(slot, key, place, n, prefix, last, i):
    """Notes a bucket to look for, and prefetches its place in the hash table.

    i : place of its last space among the spaces of the row
    """
    h = place_of(len(slot), prefix, last)
    ask_for(slot, np.uint64(h))
    key[n, 0], key[n, 1], key[n, 2], place[n] = prefix, last, i, h
    return n + 1


@device
def _note_possible(space, bucket, slot, stack, height, attr, own, count, key, place):
    """Notes the possible buckets of the prefixes on the stack, up to ``BLOCK`` of them.

    Returns the number of noted buckets, and the number of prefixes left; the last one may be begun.

    Only prefixes as long as the top one are used. Prefixes are pushed when no other prefix of their
    length is left, so at most ``BLOCK`` have one length. Single spaces are all spaces of the row.
    """
    requests, length = 0, stack[height - 1, 3]
    while height > 0 and requests < BLOCK and stack[height - 1, 3] == length:
        # Read the top prefix and the attributes that follow it
        prefix, after = np.int64(stack[height - 1, 0]), np.int64(stack[height - 1, 1])
        i = np.int64(stack[height - 1, 2])
        pairs = read_partners(bucket, prefix ^ psh.BUCKET) if prefix & psh.BUCKET else read_partners(space, prefix)
        # Note the bucket of a single space
        if i == after:
            i += 1
            if prefix & psh.BUCKET == 0:
                requests = _note_bucket(slot, key, place, requests, prefix, np.int64(NONE), after)
        # Note the buckets with one space more
        while i < count and requests < BLOCK:
            if attr[i] != attr[after] and pairs & attribute_bit(attr[i]) != 0:
                requests = _note_bucket(slot, key, place, requests, prefix, np.int64(own[i]), i)
            i += 1
        # Go on behind the last space tried, or with the next prefix
        stack[height - 1, 2] = i
        if i >= count:
            height -= 1
    return requests, height


@device
def _find_buckets(bucket, slot, entry, key, place, n):
    """Finds the noted buckets, and writes them to ``place``. Returns their number."""
    kept = 0
    # Leave out keys with an empty slot, and prefetch the other buckets
    for k in range(n):
        b = np.int64(slot[place[k]])
        if b != 0:
            ask_for(bucket, np.uint64(b - 1) * np.uint64(psh.BUCKET_WORDS))
            key[kept, 0], key[kept, 1], key[kept, 2] = key[k, 0], key[k, 1], key[k, 2]
            place[kept] = place[k]
            kept += 1
    # Compare the keys, and prefetch the lists
    n, kept = kept, 0
    for k in range(n):
        h, b = place[k], np.int64(slot[place[k]]) - 1
        while b >= 0 and (bucket[b, psh.PREFIX] != key[k, 0] or bucket[b, psh.LAST_SPACE] != key[k, 1]):
            h = (h + 1) & (len(slot) - 1)
            b = np.int64(slot[h]) - 1
        if b >= 0:
            if bucket[b, psh.BUCKET_COUNT] > 0:
                ask_for(entry, np.uint64(3) * np.uint64(bucket[b, psh.BUCKET_LIST]))
                ask_for(entry, np.uint64(3) * np.uint64(bucket[b, psh.BUCKET_LIST]) + np.uint64(LINE))
            place[kept], key[kept, 2] = b, key[k, 2]
            kept += 1
    return kept


@inlined
def _note_entries(entry, begin, end, table, conj, n, first):
    """Notes the entries ``begin:end`` with their next attributes present. Returns the number noted.

    n : number of entries noted before
    """
    for i in range(begin, end):
        one, two = np.int64(entry[i, 1]), np.int64(entry[i, 2])
        there = one == 0 or table[one & ATTR_MASK] != 0
        if there and (two == 0 or table[two & ATTR_MASK] != 0):
            conj[n] = entry[i, 0]
            ask_for(first, np.uint64(entry[i, 0]))
            n += 1
    return n


@kernel
def match(
    index: PSTHash,
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

    The stack has the prefixes of buckets: the row's spaces, and buckets that begin longer ones.
    """
    entry, bucket, slot, multi = index.entry, index.bucket, index.slot, index.multi
    table, space_attr, own = scratch.table, scratch.attr, scratch.space
    stack, key, place, conj = scratch.stack, scratch.key, scratch.slot, scratch.conj
    space, first = index.space, preds.first
    for row in range(start, stop):
        fill = sink.state[FILL]
        # List the spaces of the row
        event = spread(rows, row, multi, table)
        count = _list_spaces(index, event, scratch.walk, space_attr, own)
        # Verify the conjunctions without access predicate
        noted, fits, looked_at = np.int64(0), True, np.int64(space[ALWAYS, COUNT])
        at, last = np.int64(space[ALWAYS, LIST]), np.int64(space[ALWAYS, LIST]) + looked_at
        while at < last and fits:
            noted = _note_entries(entry, at, min(at + BLOCK, last), table, conj, noted, first)
            fits = verify(preds, row, event, conj, noted, sink, counters)
            at, noted = at + BLOCK, np.int64(0)
        # Push the single spaces
        for i in range(count):
            stack[i, 0], stack[i, 1], stack[i, 2], stack[i, 3] = own[i], i, i, 1
        height = count
        while height > 0 and fits:
            # Find the buckets with the top prefixes
            length = stack[height - 1, 3] + 1
            requests, height = _note_possible(space, bucket, slot, stack, height, space_attr, own, count, key, place)
            counters[NODES] += requests
            buckets = _find_buckets(bucket, slot, entry, key, place, requests)
            for k in range(buckets):
                # Note the entries of a bucket, and verify each full block
                b = place[k]
                size = np.int64(bucket[b, psh.BUCKET_COUNT])
                at, last = np.int64(bucket[b, psh.BUCKET_LIST]), np.int64(bucket[b, psh.BUCKET_LIST]) + size
                looked_at += size
                while at < last and fits:
                    stop_at = min(at + BLOCK - noted, last)
                    noted = _note_entries(entry, at, stop_at, table, conj, noted, first)
                    at = stop_at
                    if noted == BLOCK:
                        fits = verify(preds, row, event, conj, noted, sink, counters)
                        noted = np.int64(0)
                # Push a bucket that begins longer ones
                if bucket[b, psh.LONGER] > 0:
                    stack[height, 0], stack[height, 1], stack[height, 2] = b | psh.BUCKET, key[k, 2], key[k, 2]
                    stack[height, 3] = length
                    height += 1
        # Verify the rest, and clear the table
        if fits:
            fits = verify(preds, row, event, conj, noted, sink, counters)
        counters[CONJUNCTIONS] += looked_at
        clear(event)
        if not fits and stops(sink, fill, counters):
            return row
    return stop
