"""Lowering of a few expressions, from the floors of their literals to predicates with codes, in one
call.

For many expressions, Python calls these kernels one after the other and uses NumPy in between. This
costs some microseconds each time: for one expression, ten times as much as the work itself.
"""

import numpy as np

from colmatch.kernels._jit import brief, device
from colmatch.kernels.hints import Hints, count_below, cut_cells
from colmatch.kernels.layout import F64, I64, KEY_MAX, KEY_MIN, U8, U32, Codes, Table, Written
from colmatch.kernels.lowering.codes import (
    Spare,
    close_gaps,
    code_predicates,
    count_boundaries,
    find_repeats,
    gather_boundaries,
)
from colmatch.kernels.lowering.conjunctions import LeafTable, merge_conjunctions
from colmatch.kernels.lowering.intervals import interval
from colmatch.kernels.lowering.operators import BETWEEN, IN, PREFIX, PRESENT
from colmatch.kernels.lowering.runs import group_intervals, merge_runs, sort_intervals

HEAD, LEAF, TEST = 4, 2, 3  # words of an expression before its leaves, of each leaf, of each test
NUMBERS, FLAGS = 14, 6  # rows of ``numbers`` and ``flags``


@brief
def lower_few(
    words: Written[I64],
    values: Written[I64],
    multi: Written[U8],
    longs: Written[I64],
    shorts: Written[U32],
    numbers: Written[Table[I64]],
    flags: Written[Table[U8]],
    below: Written[U32],
    moved: Written[Table[U32]],
    share: Written[F64],
    runs: Written[Table[I64]],
) -> tuple[int, int, int, int]:
    """Lowers expressions without programs.

    words : the expressions one after the other. Each consists of
        - the numbers of its leaves, tests and conjunctions, and of all leaves of the conjunctions
        - of each leaf the attribute, and whether the leaf is true where no entry is
        - of each test the leaf, the operator, and whether the test is true outside
        - of each conjunction the number of its leaves
        - the leaves of all conjunctions
    values : floor and place of each literal, test by test; the literals of an IN follow their
        number
    multi (A) : as in ``layout.Codes``
    numbers (NUMBERS, N), flags (FLAGS, N), below (N), moved (N, 3), share (N), runs (2, N) :
        scratch. N is at least 4 times the number of possible intervals and attributes together
    longs (3 N) int64 : written, one behind the other: ``first`` of the predicates, ``first`` and
        ``bound`` of the codes
    shorts (6 N) uint32 : written, one behind the other: ``pred``, ``owner``, ``run_lo`` and
        ``run_hi``

    Python passes plain arrays in a third of the time of NamedTuples, and copies two arrays sooner
    than seven.

    Returns the numbers of conjunctions, predicates, intervals of predicates with several, and
    boundaries.
    """
    # Divide the arrays
    n = len(share)
    out_first, code_first, bound = longs[:n], longs[n : 2 * n], longs[2 * n :]
    out_pred, out_owner = shorts[: 3 * n].reshape((n, 3)), shorts[3 * n : 4 * n]
    run_lo, run_hi = shorts[4 * n : 5 * n], shorts[5 * n :]
    codes = Codes(code_first[: len(multi) + 1], bound, multi, below[:0])
    # Read the expressions
    leaves, conjunctions = _read(words, values, numbers, flags, out_owner)
    start, lo, hi, no_weight = numbers[1][: conjunctions + 1], numbers[6], numbers[7], share[:0]
    weight = no_weight.reshape((0, 2))
    leaf = numbers[2][: start[conjunctions]]
    merged = LeafTable(
        numbers[0][:leaves], flags[0][:leaves], no_weight, numbers[3][: leaves + 1], numbers[4], numbers[5]
    )
    program, keep, repeated, dropped = flags[1], flags[2], flags[3], flags[4]
    # Merge leaves into predicates
    for c in range(conjunctions):
        program[c] = 0
    first, owner = out_first[: conjunctions + 1], out_owner[:conjunctions]
    predicates, _ = merge_conjunctions(
        start, leaf, program, merged, codes.multi, runs, keep, first, out_pred, weight, lo, hi
    )
    # Find the boundaries, and code the predicates
    pred = out_pred[:predicates]
    boundaries = _find_boundaries(pred, lo, hi, numbers, codes)
    hints = _hints(codes, numbers, below)
    spare = Spare(share, moved, weight)
    intervals = code_predicates(first, weight, lo, hi, program, codes, hints, pred, run_lo, run_hi, spare)
    # Drop contradictions and repeats
    for c in range(conjunctions):
        dropped[c] = 1 - keep[c]  # repeats none
    find_repeats(first, pred, weight, run_lo, run_hi, owner, dropped, repeated)
    conjunctions, predicates = _close_gaps(first, pred, owner, keep, repeated)
    # Close the gaps in the results
    at = _move(longs, n, conjunctions + 1, len(multi) + 1)
    _move(longs, 2 * n, at, boundaries)
    at = _move(shorts, 3 * n, 3 * predicates, conjunctions)
    at = _move(shorts, 4 * n, at, intervals)
    _move(shorts, 5 * n, at, intervals)
    return conjunctions, predicates, intervals, boundaries


@device
def _move(array, start, at, count):
    """Moves some elements down to place ``at``. Returns their end."""
    for i in range(count):
        array[at + i] = array[start + i]
    return at + count


@device
def _read(words, values, numbers, flags, owner):
    """Writes leaves, their runs and conjunctions: rows 0 to 5 of ``numbers``, row 0 of ``flags``.

    Returns the numbers of leaves and conjunctions.
    """
    # Name the rows
    attr, start, leaf, run_first, run_lo, run_hi = (
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        numbers[4],
        numbers[5],
    )
    lo, hi, test_of, leaf_of, first, test_first = (
        numbers[6],
        numbers[7],
        numbers[8],
        numbers[9],
        numbers[10],
        numbers[11],
    )
    none, outside = flags[0], flags[5]
    leaves, tests, conjunctions, refs, expression = 0, 0, 0, 0, 0
    i, v, m = 0, 0, 0
    start[0] = 0
    while i < len(words):
        # Read the head of an expression
        base, leaves = leaves, leaves + words[i]
        last_test, last_conjunction, last_ref = tests + words[i + 1], conjunctions + words[i + 2], refs + words[i + 3]
        i += HEAD
        # Read its leaves
        for f in range(base, leaves):
            attr[f] = words[i]
            none[f] = words[i + 1]
            i += LEAF
        # Read its tests, and the intervals of each
        while tests < last_test:
            leaf_of[tests] = base + words[i]
            outside[tests] = words[i + 2]
            v, end = _write_intervals(words[i + 1], values, v, lo, hi, m)
            while m < end:
                test_of[m] = tests
                m += 1
            tests += 1
            i += TEST
        # Read its conjunctions and their leaves
        while conjunctions < last_conjunction:
            owner[conjunctions] = expression
            start[conjunctions + 1] = start[conjunctions] + words[i]
            conjunctions += 1
            i += 1
        while refs < last_ref:
            leaf[refs] = base + words[i]
            refs += 1
            i += 1
        expression += 1
    # Merge the intervals of each test into a run
    group_intervals(test_of[:m], lo, hi, first[: tests + 1], run_lo, run_hi)
    merge_runs(first[: tests + 1], run_lo, run_hi, outside[:tests], test_first, lo, hi)
    # Merge the runs of each leaf's tests
    for t in range(tests):
        for j in range(test_first[t], test_first[t + 1]):
            test_of[j] = leaf_of[t]
    m = test_first[tests]
    run_first = run_first[: leaves + 1]
    group_intervals(test_of[:m], lo, hi, run_first, run_lo, run_hi)
    merge_runs(run_first, run_lo, run_hi, outside[:0], run_first, run_lo, run_hi)
    return leaves, conjunctions


@device
def _write_intervals(op, values, v, lo, hi, m):
    """Writes the intervals of a test from place ``m`` on. Returns the ends of its values and
    intervals.
    """
    points = 1
    if op == IN:
        points = values[v]
        v += 1
    for _ in range(points):
        floor, place, end, end_place = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        if op != PRESENT:
            floor, place = values[v], values[v + 1]
            v += 2
        if op == BETWEEN or op == PREFIX:
            end, end_place = values[v], values[v + 1]
            v += 2
        lo[m], hi[m] = interval(op, floor, place, end, end_place)
        m += 1
    return v, m


@device
def _find_boundaries(pred, lo, hi, numbers, codes):
    """Writes the boundaries into ``codes``. Returns their number."""
    attributes = len(codes.multi)
    number, least, most, mark_first = numbers[8], numbers[9], numbers[10], numbers[11]
    place, first, no_marks = numbers[12], numbers[13], codes.multi[:0]
    for a in range(attributes):
        number[a], least[a], most[a], mark_first[a] = 0, KEY_MAX, KEY_MIN, -1
    count_boundaries(pred, lo, hi, number, least, most)
    first[0] = 0
    for a in range(attributes):
        place[a] = first[a]
        first[a + 1] = first[a] + number[a]
    gather_boundaries(pred, lo, hi, least, mark_first, no_marks, place, codes.bound)
    for a in range(attributes):
        if number[a] > 1:
            sort_intervals(codes.bound, codes.bound, first[a], first[a + 1])  # intervals of one key each
    return close_gaps(first[: attributes + 1], least, mark_first, no_marks, codes.bound, codes.first)


@device
def _hints(codes, numbers, below):
    attributes = len(codes.multi)
    lowest, highest, shift = numbers[8][:attributes], numbers[9][:attributes], numbers[10][:attributes]
    first = numbers[11][: attributes + 1]
    cut_cells(codes.first, codes.bound, lowest, highest, first, shift)
    count_below(codes.first, codes.bound, first, shift, below)
    return Hints(lowest, highest, first, shift, below)


@device
def _close_gaps(first, pred, owner, keep, repeated):
    """Removes conjunctions that can never be true or repeat others.

    Returns the numbers of conjunctions and predicates left.
    """
    left, n = 0, 0
    for c in range(len(owner)):
        if keep[c] <= repeated[c]:
            continue
        owner[left] = owner[c]
        for p in range(first[c], first[c + 1]):
            for k in range(3):
                pred[n, k] = pred[p, k]
            n += 1
        left += 1
        first[left] = n
    return left, n
