"""PB+tree: conjunctions that counting alone cannot decide are verified on their predicates."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import I64, PREDICATES, U8, U32, Codes, Predicates, Written
from colmatch.kernels.predicates import Event, conditions_of, conjunction_holds


@kernel
def verify_pairs(
    preds: Predicates,
    codes: Codes,
    rows: tuple[I64, I64, I64],
    pairs: tuple[I64, I64],
    scratch: Written[tuple[U32, U32, U32]],
    held: Written[U8],
    counters: Written[I64],
) -> None:
    """Writes 1 for each pair of row and conjunction that is true, 0 for others.

    Parameters
    ----------
    codes : of the predicates; entries of a row get codes if it has a pair
    rows : first, attr, key of the entries of all rows
    pairs : rows, ascending; conjunctions
    scratch : a table, zero, with a place for each attribute; attributes and codes of a row
    """
    first, attr, key = rows
    pair_row, pair_conj = pairs
    table, own_attr, own_code = scratch
    last, size, conds = np.int64(-1), np.int64(0), conditions_of(preds)
    for i in range(len(pair_row)):
        row = pair_row[i]
        if row != last:
            # Clear the table of the last row
            for e in range(size):
                table[own_attr[e]] = 0
            # Find the codes of the next row
            size = first[row + 1] - first[row]
            for e in range(size):
                a = attr[first[row] + e]
                own_attr[e] = a
                low, high = codes.first[a], codes.first[a + 1]
                while low < high:
                    middle = (low + high) >> 1
                    if codes.bound[middle] <= key[first[row] + e]:
                        low = middle + 1
                    else:
                        high = middle
                own_code[e] = low - codes.first[a] + 1
            # Enter them into the table
            for e in range(size - 1, -1, -1):
                table[own_attr[e]] = 1 + e if codes.multi[own_attr[e]] else own_code[e]
            last = row
        # Verify the conjunction
        event = Event(own_attr, own_code, np.int64(0), size, table)
        holds, steps = conjunction_holds(conds, np.int64(pair_conj[i]), event)
        held[i] = holds
        counters[PREDICATES] += steps
    for e in range(size):
        table[own_attr[e]] = 0
