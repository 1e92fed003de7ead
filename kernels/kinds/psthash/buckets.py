"""Spaces of several attributes: found by a hash table, made and freed."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import mix
from colmatch.kernels.kinds.psthash import arrays as psh
from colmatch.kernels.kinds.psthash.arrays import PSTHash
from colmatch.kernels.kinds.pstree.arrays import CELLS, FANOUT, NEXT, NONE
from colmatch.kernels.kinds.pstree.change import run_of
from colmatch.kernels.kinds.pstree.choose import ACCESS, BY_CELL
from colmatch.kernels.kinds.pstree.intervals import cells_within, interval_of, intervals_of
from colmatch.kernels.layout import ATTR_MASK, Written


@device
def place_of(slots, prefix, last):
    return mix(np.int64(prefix) << 32 | np.int64(last), 0) & (slots - 1)


@device
def find_bucket(bucket, slot, prefix, last):
    """Returns the bucket with a key, or -1."""
    h = place_of(len(slot), prefix, last)
    while slot[h] != 0:
        b = np.int64(slot[h]) - 1
        if bucket[b, psh.PREFIX] == prefix and bucket[b, psh.LAST_SPACE] == last:
            return b
        h = (h + 1) & (len(slot) - 1)
    return np.int64(-1)


@device
def _note(bucket, slot, b):
    h = place_of(len(slot), np.int64(bucket[b, psh.PREFIX]), np.int64(bucket[b, psh.LAST_SPACE]))
    while slot[h] != 0:
        h = (h + 1) & (len(slot) - 1)
    slot[h] = b + 1


@kernel
def note_buckets(tree: Written[PSTHash]) -> None:
    """Enters all buckets into the hash table, which must be empty."""
    tree.state[psh.SLOTS] = 0
    for b in range(tree.state[psh.BUCKETS]):
        if tree.bucket[b, psh.PREFIX] != NONE:
            _note(tree.bucket, tree.slot, b)
            tree.state[psh.SLOTS] += 1


@device
def _forget(bucket, slot, b):
    """Removes a bucket from the hash table, and moves up buckets behind it in its run."""
    mask = len(slot) - 1
    h = place_of(len(slot), np.int64(bucket[b, psh.PREFIX]), np.int64(bucket[b, psh.LAST_SPACE]))
    while slot[h] != b + 1:
        h = (h + 1) & mask
    hole = h
    while True:
        h = (h + 1) & mask
        if slot[h] == 0:
            break
        other = np.int64(slot[h]) - 1
        home = place_of(len(slot), np.int64(bucket[other, psh.PREFIX]), np.int64(bucket[other, psh.LAST_SPACE]))
        if ((h - home) & mask) >= ((h - hole) & mask):
            slot[hole] = slot[h]
            hole = h
    slot[hole] = 0


@device
def lacks_buckets(tree, n):
    """Returns whether there is no room for so many more buckets."""
    return tree.state[psh.BUCKETS] + n > len(tree.bucket) or 2 * (tree.state[psh.SLOTS] + n) > len(tree.slot)


@device
def make_bucket(bucket, slot, space, state, prefix, last, a):
    """Returns the bucket with a key, and makes it if needed. There must be room.

    a : attribute of the last space, -1 without one
    """
    # Return an existing bucket
    if a >= 0:
        _pair(bucket, space, prefix, a)
    b = find_bucket(bucket, slot, prefix, last)
    if b >= 0:
        return b
    # Take a free row, or a new one
    b = state[psh.FREE_BUCKET]
    if b != NONE:
        state[psh.FREE_BUCKET] = bucket[b, psh.LAST_SPACE]
    else:
        b = state[psh.BUCKETS]
        state[psh.BUCKETS] += 1
    # Write the bucket
    for i in range(psh.BUCKET_WORDS):
        bucket[b, i] = 0
    bucket[b, psh.PREFIX], bucket[b, psh.LAST_SPACE] = prefix, last
    bucket[b, psh.BUCKET_LIST] = bucket[b, psh.BUCKET_SIZE] = NONE
    _note(bucket, slot, b)
    state[psh.SLOTS] += 1
    if prefix & psh.BUCKET:
        bucket[prefix ^ psh.BUCKET, psh.LONGER] += 1
    return b


@device
def _pair(bucket, space, prefix, a):
    """Notes that a prefix continues with an attribute."""
    low = np.uint32(1 << (a & 31)) if a & 32 == 0 else np.uint32(0)
    high = np.uint32(0) if a & 32 == 0 else np.uint32(1 << (a & 31))
    if prefix & psh.BUCKET:
        bucket[prefix ^ psh.BUCKET, psh.PARTNERS_LOW] |= low
        bucket[prefix ^ psh.BUCKET, psh.PARTNERS_HIGH] |= high
    else:
        space[prefix, psh.PARTNERS_LOW] |= low
        space[prefix, psh.PARTNERS_HIGH] |= high


@device
def free_empty(tree, b):
    """Frees a bucket that is empty and no prefix, and then its prefix likewise."""
    bucket = tree.bucket
    while bucket[b, psh.BUCKET_COUNT] == 0 and bucket[b, psh.LONGER] == 0:
        prefix = np.int64(bucket[b, psh.PREFIX])
        _forget(bucket, tree.slot, b)
        tree.state[psh.SLOTS] -= 1
        bucket[b, psh.PREFIX], bucket[b, psh.LAST_SPACE] = NONE, tree.state[psh.FREE_BUCKET]
        tree.state[psh.FREE_BUCKET] = b
        if prefix & psh.BUCKET == 0:
            return
        b = prefix ^ psh.BUCKET
        bucket[b, psh.LONGER] -= 1


@device
def next_access(probe, begin, end, after):
    """Returns the access predicate among ``begin:end`` on the lowest attribute above ``after``, or
    -1.
    """
    best, lowest = np.int64(-1), np.int64(0)
    for p in range(begin, end):
        a = np.int64(probe[p]) & ATTR_MASK
        if np.int64(probe[p]) & ACCESS and a > after and (best < 0 or a < lowest):
            best, lowest = np.int64(p), a
    return best


@device
def collect(tree, preds, work, c, only, s):
    """Lists the spaces of a conjunction's access predicates, by ascending attributes.

    Returns the number of buckets that they make.

    only, s : an attribute with just one space to list; -1 for none
    """
    spaces, dims, most = work.spaces, work.dims, len(work.spaces) // 4
    n, buckets = np.int64(0), np.int64(1)
    p = next_access(tree.probe, preds.first[c], preds.first[c + 1], np.int64(-1))
    while p >= 0:
        # List the spaces or cells of the next access predicate
        a, count = np.int64(tree.probe[p]) & ATTR_MASK, np.int64(0)
        at = n * most
        if a == only:
            spaces[at], count = s, np.int64(1)
        elif np.int64(tree.probe[p]) & BY_CELL:
            cells = cells_within(tree.tree, preds.pred, preds.run_lo, preds.run_hi, p)
            for i in range(FANOUT):
                if (cells >> i) & 1:
                    spaces[at + count] = np.int64(tree.tree[a, CELLS]) + i
                    count += 1
        else:
            begin, end = intervals_of(preds.pred, p)
            for j in range(begin, end):
                lo, hi = interval_of(preds.pred, preds.run_lo, preds.run_hi, p, j)
                if lo > hi:
                    continue
                own, last = run_of(tree, a, lo, hi)
                spaces[at + count] = own
                count += 1
                while own != last:
                    own = np.int64(tree.space[own, NEXT])
                    spaces[at + count] = own
                    count += 1
        # Note their number
        n += 1
        dims[2 * n - 1], dims[2 * n] = count, a
        buckets *= count
        p = next_access(tree.probe, preds.first[c], preds.first[c + 1], a)
    dims[0] = n
    return buckets if n > 0 else np.int64(0)


@device
def make_nth(bucket, slot, space, state, spaces, dims, n):
    """Returns the n-th bucket of the collected spaces. There must be room for it and its
    prefixes.
    """
    most = len(spaces) // 4
    s = np.int64(spaces[n % dims[1]])
    n //= dims[1]
    if dims[0] == 1:
        return make_bucket(bucket, slot, space, state, s, np.int64(NONE), np.int64(-1))
    prefix = s
    for d in range(1, dims[0]):
        s = np.int64(spaces[d * most + n % dims[2 * d + 1]])
        n //= dims[2 * d + 1]
        prefix = make_bucket(bucket, slot, space, state, prefix, s, dims[2 * d + 2]) | psh.BUCKET
    return prefix ^ psh.BUCKET


@device
def find_nth(tree, work, n):
    """Returns the n-th bucket of the collected spaces, which must exist."""
    spaces, dims, most = work.spaces, work.dims, len(work.spaces) // 4
    s = np.int64(spaces[n % dims[1]])
    n //= dims[1]
    if dims[0] == 1:
        return find_bucket(tree.bucket, tree.slot, s, np.int64(NONE))
    prefix = s
    for d in range(1, dims[0]):
        s = np.int64(spaces[d * most + n % dims[2 * d + 1]])
        n //= dims[2 * d + 1]
        prefix = find_bucket(tree.bucket, tree.slot, prefix, s) | psh.BUCKET
    return prefix ^ psh.BUCKET
