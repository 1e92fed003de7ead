"""Building at once: members of spaces, and buckets, with their lists side by side."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import ask_for
from colmatch.kernels.kinds.psthash.arrays import (
    BUCKET,
    BUCKET_COUNT,
    BUCKET_LIST,
    BUCKET_WORDS,
    BUCKETS,
    DIMENSIONS_MOST,
    PSTHash,
    UpdateScratch,
)
from colmatch.kernels.kinds.psthash.buckets import collect, lacks_buckets, make_bucket, place_of
from colmatch.kernels.kinds.pstree.arrays import ALWAYS, CELLS, COUNT, FANOUT, LIST, NONE, PREDS, SPACES
from colmatch.kernels.kinds.pstree.build import choose_each
from colmatch.kernels.kinds.pstree.change import run_of
from colmatch.kernels.kinds.pstree.choose import ACCESS, BY_CELL, DIMENSIONS, is_placed
from colmatch.kernels.kinds.pstree.intervals import cells_within, interval_of, intervals_of
from colmatch.kernels.layout import ATTR_MASK, I64, U32, Codes, Predicates, Table, Written

# Columns of the buckets that ``count_buckets`` lists. ATTRIBUTE is the attribute of the last space,
# or ALONE for a single space, or DONE for a complete bucket. PLACE is in the hash table.
LAST, ATTRIBUTE, PLACE, KEY_WORDS = range(4)
ALONE, DONE = -1, -2


@kernel
def choose_all(
    tree: Written[PSTHash], preds: Predicates, codes: Codes, work: Written[UpdateScratch], key: Written[I64]
) -> None:
    """Chooses the access predicates, and writes keys to order conjunctions by."""
    choose_each(tree, preds, codes, work, key)


@kernel
def count_members(tree: Written[PSTHash], preds: Predicates, buckets: Written[I64]) -> None:
    """Counts the predicates of each space and cell, and its members.

    buckets (C + 1) int64 : written, number of buckets of all conjunctions before each
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    space, probe = tree.space, tree.probe
    for c in range(len(preds.owner)):
        product = np.int64(1)
        for p in range(preds.first[c], preds.first[c + 1]):
            how, a, n = np.int64(probe[p]), np.int64(probe[p]) & ATTR_MASK, np.int64(0)
            if how & ACCESS == 0:
                continue
            # Count the predicate at its cells
            if how & BY_CELL:
                cells = cells_within(tree.tree, pred, run_lo, run_hi, p)
                for i in range(FANOUT):
                    if (cells >> i) & 1:
                        space[np.int64(tree.tree[a, CELLS]) + i, PREDS] += 1
                        n += 1
            else:
                # Count it at its spaces
                begin, end = intervals_of(pred, p)
                for j in range(begin, end):
                    lo, hi = interval_of(pred, run_lo, run_hi, p, j)
                    if lo > hi:
                        continue
                    s, last = run_of(tree, a, lo, hi)
                    for row in range(s, last + 1):  # neighbours, since they were made in order
                        space[row, PREDS] += 1
                        space[row, COUNT] += 1
                    n += last + 1 - s
            # Count the buckets: one for each combination of spaces
            product *= n
        # Count a conjunction without access predicate
        if not is_placed(probe, preds.first, c):
            space[ALWAYS, COUNT] += 1
            product = np.int64(0)
        buckets[c + 1] = buckets[c] + product


@device
def _list_keys(tree, preds, work, c, level, bucket, key, n):
    """Lists the next spaces of a conjunction's buckets, in rows from n on. Returns the row behind.

    bucket : prefixes of the buckets; level 1 writes their first spaces
    """
    of = collect(tree, preds, work, c, np.int64(-1), 0)
    spaces, dims = work.spaces, work.dims
    begin, before = level * (len(spaces) // DIMENSIONS_MOST), np.int64(1)
    for d in range(level):
        before *= dims[2 * d + 1]
    for i in range(of):
        if level == 1:
            bucket[n] = spaces[i % dims[1]]
        if level < dims[0]:
            key[n, LAST] = spaces[begin + i // before % dims[2 * level + 1]]
            key[n, ATTRIBUTE] = dims[2 * level + 2]
        else:
            key[n, LAST], key[n, ATTRIBUTE] = NONE, ALONE if level == 1 else DONE
        n += 1
    return n


@device
def _make_listed(tree, bucket, key, n):
    """Makes the listed buckets. Their places are prefetched together."""
    buckets, slot, space, state = tree.bucket, tree.slot, tree.space, tree.state
    for i in range(n):
        key[i, PLACE] = place_of(len(slot), np.int64(bucket[i]), key[i, LAST])
        ask_for(slot, np.uint64(key[i, PLACE]))
    for i in range(n):
        if slot[key[i, PLACE]] != 0:
            ask_for(buckets, np.uint64(BUCKET_WORDS) * np.uint64(slot[key[i, PLACE]] - 1))
    for i in range(n):
        a = key[i, ATTRIBUTE]
        if a != DONE:
            b = make_bucket(buckets, slot, space, state, np.int64(bucket[i]), key[i, LAST], a)
            bucket[i] = b if a == ALONE else b | BUCKET


@kernel
def count_buckets(
    tree: Written[PSTHash],
    preds: Predicates,
    work: Written[UpdateScratch],
    first: Written[I64],
    bucket: Written[U32],
    key: Written[Table[I64]],
    begin: int,
) -> int:
    """Makes the buckets of conjunctions from ``begin`` on, and counts their entries.

    Returns the number of finished conjunctions: fewer than all if there is no room.

    first (C + 1) : as ``count_members`` left it
    bucket (first[C]) uint32 : written
    key (N, 3) int64 : scratch, for the buckets of one conjunction at least
    """
    count = len(preds.owner)
    while begin < count:
        # Take as many conjunctions as ``key`` has room for
        end = begin + 1
        while end < count and first[end + 1] - first[begin] <= len(key):
            end += 1
        n = first[end] - first[begin]
        if lacks_buckets(tree, n * DIMENSIONS_MOST):
            return begin
        # Make their buckets, from short prefixes to long ones
        own = bucket[first[begin] : first[end]]
        for level in range(1, max(tree.plan[DIMENSIONS], 2)):
            n = np.int64(0)
            for c in range(begin, end):
                n = _list_keys(tree, preds, work, c, level, own, key, n)
            _make_listed(tree, own, key, n)
        # Count the entries
        for i in range(n):
            own[i] &= np.uint32(BUCKET - 1)
            tree.bucket[own[i], BUCKET_COUNT] += 1
        begin = end
    return count


@kernel
def begin_lists(tree: Written[PSTHash]) -> int:
    """Writes the start of each counted list. Returns the number of entries."""
    n = np.int64(0)
    for s in range(tree.state[SPACES]):
        if tree.space[s, COUNT] > 0:
            tree.space[s, LIST] = n
            n += np.int64(tree.space[s, COUNT])
            tree.space[s, COUNT] = 0
    for b in range(tree.state[BUCKETS]):
        if tree.bucket[b, BUCKET_COUNT] > 0:
            tree.bucket[b, BUCKET_LIST] = n
            n += np.int64(tree.bucket[b, BUCKET_COUNT])
            tree.bucket[b, BUCKET_COUNT] = 0
    return n


@kernel
def fill_lists(
    tree: Written[PSTHash], preds: Predicates, next: Written[Table[U32]], first: Written[I64], bucket: Written[U32]
) -> None:
    """Writes the lists, which must have room.

    next (C, 2) uint32 : tests of each conjunction for its entries
    first, bucket : as ``count_buckets`` left them
    """
    pred, run_lo, run_hi = preds.pred, preds.run_lo, preds.run_hi
    space, probe, entry, buckets = tree.space, tree.probe, tree.entry, tree.bucket
    for c in range(len(preds.owner)):
        # List the conjunction in its buckets
        tree.at[c] = 1
        for i in range(first[c], first[c + 1]):
            b = np.int64(bucket[i])
            at = np.int64(buckets[b, BUCKET_LIST]) + np.int64(buckets[b, BUCKET_COUNT])
            entry[at, 0], entry[at, 1], entry[at, 2] = c, next[c, 0], next[c, 1]
            buckets[b, BUCKET_COUNT] += 1
        # List it for every event if it has no access predicate
        begin_space, end_space = np.int64(ALWAYS), np.int64(ALWAYS) + 1
        if is_placed(probe, preds.first, c):
            end_space = np.int64(ALWAYS)
        for row in range(begin_space, end_space):
            at = np.int64(space[row, LIST]) + np.int64(space[row, COUNT])
            entry[at, 0], entry[at, 1], entry[at, 2] = c, next[c, 0], next[c, 1]
            space[row, COUNT] += 1
        # List it as a member of its spaces
        for p in range(preds.first[c], preds.first[c + 1]):
            how, a = np.int64(probe[p]), np.int64(probe[p]) & ATTR_MASK
            if how & ACCESS == 0 or how & BY_CELL:
                continue
            begin, end = intervals_of(pred, p)
            for j in range(begin, end):
                lo, hi = interval_of(pred, run_lo, run_hi, p, j)
                if lo > hi:
                    continue
                s, last = run_of(tree, a, lo, hi)
                for row in range(s, last + 1):
                    at = np.int64(space[row, LIST]) + np.int64(space[row, COUNT])
                    entry[at, 0], entry[at, 1], entry[at, 2] = c, next[c, 0], next[c, 1]
                    space[row, COUNT] += 1
