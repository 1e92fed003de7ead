"""Predicates -> postings of ``bitslice``, with the ranks and bounds of predicates in a tile."""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.kinds.bitslice import arrays as bs
from colmatch.kernels.layout import (
    ATTR_MASK,
    FLAG_MULTI,
    FLAG_NONE,
    FLAG_RUN,
    I64,
    REJECT,
    U8,
    U16,
    U32,
    Predicates,
    Written,
)

# Intervals of an access predicate, each with a posting. A predicate with more has one posting, from
# its lowest to its highest code.
MOST_INTERVALS = 16
LONE_CLASS = 256  # an attribute with fewer postings in a stratum has one group of ranges
CLASSES = 18  # equal, and widths up to 4^1, 4^2, ... 4^17


@kernel
def choose_access(
    preds: Predicates,
    code_first: Written[I64],
    uses: Written[I64],
    below: Written[I64],
    open: Written[U8],
    access: Written[I64],
    postings: Written[I64],
) -> None:
    """Writes the access predicate of each conjunction (-1: none) and the number of its postings.

    The access predicate is expected to be satisfied by the fewest events, among the predicates on
    attributes that are open.

    Without a sample of events, a range counts by its share of the attribute's codes. This share is
    multiplied by ``uses``, which estimates how often events have the attribute.

    code_first (A + 1) int64 : place of an attribute's codes in ``below``
    uses (A) int64, open (A) uint8 : number of predicates; 1 if the attribute is open
    below (codes + 1) int64, or (0) : number of a sample's values with a code before each one
    access, postings (C) int64 : written
    """
    programs = len(preds.jump_first) > 0
    for c in range(len(access)):
        access[c] = -1
        postings[c] = 1
        least = np.inf
        program = programs and preds.jump_first[c] >= 0
        for p in range(preds.first[c], preds.first[c + 1]):
            word = np.int64(preds.pred[p, 0])
            a = word & ATTR_MASK
            # Estimate the events that satisfy the predicate, and keep the rarest predicate
            if not word & FLAG_NONE and open[a]:
                share = 0.0
                size = np.int64(1)
                low, high = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
                if word & FLAG_RUN:
                    size = high - low
                    if size > MOST_INTERVALS:
                        size = np.int64(1)
                        share = _share(
                            code_first, uses, below, a, np.int64(preds.run_lo[low]), np.int64(preds.run_hi[high - 1])
                        )
                    else:
                        for j in range(low, high):
                            share += _share(
                                code_first, uses, below, a, np.int64(preds.run_lo[j]), np.int64(preds.run_hi[j])
                            )
                else:
                    share = _share(code_first, uses, below, a, low, high)
                if share < least:
                    least = share
                    access[c] = p
                    postings[c] = size
            if program:  # only its leading predicates that reject must hold in any case
                at = preds.jump_first[c] + p - preds.first[c]
                if preds.jump[at, 1] != REJECT:
                    if access[c] == p:
                        access[c] = -1
                        postings[c] = 1
                    break


@device
def _share(code_first, uses, below, a, low, high):
    """Returns the expected number of events with a code in a range, in an arbitrary unit."""
    if low > high:
        return 0.0
    guess = (high - low + 1) / (code_first[a + 1] - code_first[a]) * uses[a]
    if len(below) == 0:
        return guess
    base = code_first[a] - 1
    return below[base + high + 1] - below[base + low] + 1e-9 * guess  # the guess decides between equals


@kernel
def write_postings(
    preds: Predicates,
    access: Written[I64],
    attributes: int,
    stratum: Written[U8],
    strata: int,
    key: Written[I64],
    hi: Written[U32],
    conj: Written[U32],
) -> int:
    """Writes postings in the order of conjunctions, and returns their number.

    Keys are (attribute * strata + stratum) * 2^32 + lowest code.
    """
    n = 0
    for c in range(len(access)):
        p = access[c]
        # Post a conjunction without an access predicate under the last attribute
        if p < 0:
            key[n] = (attributes * strata + np.int64(stratum[c])) << 32
            hi[n] = 0
            conj[n] = c
            n += 1
            continue
        word = np.int64(preds.pred[p, 0])
        a = ((word & ATTR_MASK) * strata + np.int64(stratum[c])) << 32
        low, high = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
        # Post the others under each interval, or once if there are too many intervals
        if word & FLAG_RUN and high - low <= MOST_INTERVALS:
            for j in range(low, high):
                key[n] = a | np.int64(preds.run_lo[j])
                hi[n] = preds.run_hi[j]
                conj[n] = c
                n += 1
        else:
            if word & FLAG_RUN:
                low, high = np.int64(preds.run_lo[low]), np.int64(preds.run_hi[high - 1])
            key[n] = a | low
            hi[n] = high
            conj[n] = c
            n += 1
    return n


@kernel
def classify(key: Written[I64], hi: Written[U32], in_column: Written[I64]) -> None:
    """Turns keys into (attribute, stratum, class of width, lowest code), which sort into groups.

    in_column ((A + 1) * S): postings of each attribute and stratum.
    """
    for i in range(len(key)):
        a = key[i] >> 32
        low = key[i] & 0xFFFFFFFF
        width = np.int64(hi[i]) - low
        size = 0
        if width > 0:
            size = 1
            while in_column[a] >= LONE_CLASS and width >= 4:
                width >>= 2
                size += 1
        key[i] = (a * CLASSES + size) << 32 | low


@kernel
def count_ends(preds: Predicates, access: Written[I64], code_first: Written[I64], ends: Written[I64]) -> None:
    """Counts the predicates that begin at each code or end just before it.

    Access predicates are left out, and predicates on attributes with several values.

    code_first (A + 1) : place of an attribute's code 1 in ``ends``
    ends (codes) int64 : is added to
    """
    for c in range(len(access)):
        for p in range(preds.first[c], preds.first[c + 1]):
            word = np.int64(preds.pred[p, 0])
            if p == access[c] or word & FLAG_MULTI:
                continue
            a = word & ATTR_MASK
            base = code_first[a] - 1
            top = code_first[a + 1] - code_first[a]
            low, high = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
            if word & FLAG_RUN:
                for j in range(low, high):
                    _add_ends(ends, base, top, np.int64(preds.run_lo[j]), np.int64(preds.run_hi[j]))
            else:
                _add_ends(ends, base, top, low, high)


@device
def _add_ends(ends, base, top, low, high):
    if low > 1:
        ends[base + low] += 1
    if high < top:
        ends[base + high + 1] += 1


@kernel
def cut_bins(
    code_first: Written[I64], ends: Written[I64], bins: Written[I64], bin_of: Written[U8], starts: Written[U8]
) -> None:
    """Cuts the codes of each attribute into bins with equally many ends of predicates.

    Only predicates that begin or end within the bin of an event's value are undecided. Their share
    is alike in all bins, whatever values events have.

    bins (A) int64 : number of bins to cut, at most as many as codes, 0 for none
    bin_of (codes) uint8 : bin of each code, from 1
    starts (codes) uint8 : 1 where a bin begins
    """
    for a in range(len(bins)):
        begin, end = code_first[a], code_first[a + 1]
        # Count the ends of the attribute, then cut its codes into bins
        left = 0
        for code in range(begin, end):
            left += ends[code]
        cuts = bins[a] - 1
        bin = 1
        inside = 0
        for code in range(begin, end):
            starts[code] = 0
            if code == begin:
                starts[code] = 1
            elif cuts > 0:
                inside += ends[code]
                # Cut here if the bin would be full, or if every code left must begin a bin.
                if inside * (cuts + 1) >= left or end - code <= cuts:
                    left -= inside
                    inside = 0
                    cuts -= 1
                    bin += 1
                    starts[code] = 1
            bin_of[code] = bin


@device
def _find_bounds(word, low, high, code_first, bin_of, starts, rank):
    """Returns the rank and bounds of one interval, and whether they are exact."""
    a = word & ATTR_MASK
    if word & FLAG_MULTI:
        return np.int64(rank[a]), bs.PRESENT, False
    if low > high:
        return bs.NO_RANK, bs.NEVER, True
    base = code_first[a] - 1
    top = code_first[a + 1] - code_first[a]
    b_low, b_high = np.int64(bin_of[base + low]), np.int64(bin_of[base + high])
    exact = starts[base + low] == 1 and (high == top or starts[base + high + 1] == 1)
    return np.int64(rank[a]), b_low | (b_high - b_low) << 8, exact


@kernel
def most_entries(preds: Predicates, conj: Written[U32]) -> int:
    """Returns an upper bound on the entries of ``rest``.

    The postings need one for each interval of their predicates, and entry 0.
    """
    n = 1
    for i in range(len(conj)):
        c = np.int64(conj[i])
        n += preds.first[c + 1] - preds.first[c]
        for p in range(preds.first[c], preds.first[c + 1]):
            if preds.pred[p, 0] & FLAG_RUN:
                n += np.int64(preds.pred[p, 2]) - np.int64(preds.pred[p, 1])
    return n


@kernel
def longest_rest(rest_op: U8) -> int:
    """Returns the most entries of ``rest`` that a posting has."""
    longest = begin = 0
    for i in range(len(rest_op)):
        if rest_op[i] & bs.LAST:
            longest = max(longest, i + 1 - begin)
            begin = i + 1
    return longest


@kernel
def write_masks(
    preds: Predicates,
    access: Written[I64],
    conj: Written[U32],
    code_first: Written[I64],
    bin_of: Written[U8],
    starts: Written[U8],
    rank: Written[U32],
    head: Written[U16],
    rest: Written[U16],
    rest_op: Written[U8],
) -> int:
    """Writes ranks and bounds of every posting's predicates, and returns the entries of ``rest``.

    conj (P) : conjunctions on entry. On return subscriptions, or conjunctions with the flags VERIFY
    or PROGRAM
    """
    programs = len(preds.jump_first) > 0
    n = 1
    rest[0], rest[1], rest_op[0] = bs.NO_RANK, bs.ALWAYS, bs.LAST
    for i in range(len(conj)):
        c = np.int64(conj[i])
        flags = 0
        program = programs and preds.jump_first[c] >= 0
        begin_rest = n
        for j in range(3):
            head[8 * i + 2 * j] = bs.NO_RANK
            head[8 * i + 2 * j + 1] = bs.ALWAYS
        heads = 0
        if program:
            flags |= bs.PROGRAM
        for p in range(preds.first[c], preds.first[c + 1]):
            word = np.int64(preds.pred[p, 0])
            a = word & ATTR_MASK
            low, high = np.int64(preds.pred[p, 1]), np.int64(preds.pred[p, 2])
            run = word & FLAG_RUN
            # Skip an access predicate that its posting decides
            if p == access[c] and not program and not (run and high - low > MOST_INTERVALS):
                continue
            # Leave attributes without a rank to verification
            if rank[a] == bs.NO_RANK:
                flags |= bs.VERIFY
                if program:
                    n = _write_entry(
                        rest, rest_op, n, bs.NO_RANK, bs.ALWAYS, bs.VAGUE | (bs.OUTSIDE if word & FLAG_NONE else 0)
                    )
                continue
            # Write a predicate with one interval: the first three go to ``head``
            if not run or word & FLAG_MULTI:
                at, bounds, exact = _find_bounds(word, low, high, code_first, bin_of, starts, rank)
                if not exact:
                    flags |= bs.VERIFY
                if program:
                    op = (0 if exact else bs.VAGUE) | (bs.OUTSIDE if word & FLAG_NONE else 0)
                    n = _write_entry(rest, rest_op, n, at, bounds, op)
                elif word & FLAG_NONE:
                    if exact:
                        n = _write_entry(rest, rest_op, n, at, bounds, bs.OUTSIDE)
                elif heads < 3:
                    head[8 * i + 2 * heads] = at
                    head[8 * i + 2 * heads + 1] = bounds
                    heads += 1
                else:
                    n = _write_entry(rest, rest_op, n, at, bounds, 0)
                continue
            # Write a predicate with several intervals, one entry each
            begin = n
            all_exact = True
            for j in range(low, high):
                at, bounds, exact = _find_bounds(
                    word, np.int64(preds.run_lo[j]), np.int64(preds.run_hi[j]), code_first, bin_of, starts, rank
                )
                all_exact = all_exact and exact
                n = _write_entry(rest, rest_op, n, at, bounds, bs.MORE)
            op = bs.OUTSIDE if word & FLAG_NONE else 0
            if not all_exact:
                flags |= bs.VERIFY
                op |= bs.VAGUE
                if word & FLAG_NONE and not program:
                    n = begin  # a superset of the excluded rows decides nothing
                    continue
            rest_op[n - 1] = op
        # Write the flags, and link the posting to its entries in ``rest``
        conj[i] = (c if flags else np.int64(preds.owner[c])) | flags
        head[8 * i + 6] = 0
        head[8 * i + 7] = 0
        if n > begin_rest:
            head[8 * i + 6] = begin_rest & 65535
            head[8 * i + 7] = begin_rest >> 16
            rest_op[n - 1] |= bs.LAST
            if program:
                rest_op[begin_rest] |= bs.STEP
    return n


@device
def _write_entry(rest, rest_op, n, rank, bounds, op):
    rest[2 * n] = rank
    rest[2 * n + 1] = bounds
    rest_op[n] = op
    return n + 1
