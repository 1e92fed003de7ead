"""Rows where text patterns are true, from the distinct strings that make them true."""

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import I32, I64, Table, Written
from colmatch.kernels.ranges import begin_ranges, rewind_ranges


@kernel
def order_by_value(
    value: Written[I32], pattern: Written[I32], value_first: Written[I64], value_pattern: Written[I32]
) -> None:
    """Orders pairs (int32) of strings and patterns by string, in two passes.

    Parameters
    ----------
    value_first : (V + 2) int64, zeros; then string -> its range in ``value_pattern``, the last one
        unused
    value_pattern : int32, written
    """
    for i in range(len(value)):
        value_first[value[i] + 2] += 1
    for v in range(2, len(value_first)):
        value_first[v] += value_first[v - 1]
    for i in range(len(value)):
        v = value[i] + 1
        value_pattern[value_first[v]] = pattern[i]
        value_first[v] += 1


@kernel
def expand(
    base: Written[Table[I64]],
    row: Written[I32],
    value: Written[I64],
    value_first: Written[I64],
    value_pattern: Written[I32],
    first: Written[I64],
    out_row: Written[I32],
) -> None:
    """Writes the rows where each pattern is true, from the distinct strings that make it true.

    Parameters
    ----------
    base : (N, 3) int64, for each attribute under patterns its range in ``row`` and ``value``, and
        the number of its first distinct string
    row, value : int32, int64, entries, with the number of the string among those of the attribute
    value_first : (V + 2) int64, distinct string -> its range in ``value_pattern``
    value_pattern : int32, patterns that the string makes true
    first : (P + 1) int64, written, pattern -> its range in ``out_row``
    out_row : int32, written if there is room for ``first[P]``; else call again with more
    """
    for p in range(len(first)):
        first[p] = 0
    # Count the rows of each pattern
    for n in range(len(base)):
        for j in range(base[n, 0], base[n, 1]):
            v = base[n, 2] + value[j]
            for k in range(value_first[v], value_first[v + 1]):
                first[value_pattern[k] + 1] += 1
    begin_ranges(first, len(first) - 1)
    if first[len(first) - 1] > len(out_row):
        return
    # Write the rows
    for n in range(len(base)):
        for j in range(base[n, 0], base[n, 1]):
            v = base[n, 2] + value[j]
            for k in range(value_first[v], value_first[v + 1]):
                p = value_pattern[k]
                out_row[first[p]] = row[j]
                first[p] += 1
    rewind_ranges(first, len(first) - 1)
