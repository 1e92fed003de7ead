"""Events with ranges as attributes: their two ends, read separately, are joined here."""

import numpy as np

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import I32, I64, U8, Batch, Written


@kernel
def join_ends(
    low: Batch,
    high: Batch,
    is_range: U8,
    least: I64,
    most: I64,
    col: Written[I64],
    row: Written[I32],
    key: Written[I64],
    high_key: Written[I64],
    wrong: Written[I64],
) -> bool:
    """Joins the upper ends of ranges to the lower ends, which are among all other entries.

    A missing end means no bound, and a range without both ends has no entry. Returns whether no
    range begins above its end. If one does, ``wrong`` has its attribute and row.

    low, high : ``layout.Batch`` with the entries of all attributes, and of ranges only
    is_range : (A) uint8
    least, most : (A) int64, keys in place of missing ends
    col, row, key : (A + 1), (E), (E), written like those of a batch, with the lower ends
    high_key : (E) int64, written with the upper ends, or with ``key`` where an attribute is no
        range
    wrong : (2) int64
    """
    low_col, low_row, low_key = low.col, low.row, low.key
    other_col, other_row, other_key = high.col, high.row, high.key
    n = np.int64(0)
    col[0] = 0
    for a in range(len(is_range)):
        e, e_end = low_col[a], low_col[a + 1]
        if not is_range[a]:
            # Copy the entries of an attribute that is no range
            for i in range(e, e_end):
                row[n] = low_row[i]
                key[n] = high_key[n] = low_key[i]
                n += 1
        else:
            # Merge the lower and upper ends by row
            i, i_end = other_col[a], other_col[a + 1]
            while e < e_end or i < i_end:
                begin, end = least[a], most[a]
                below = e < e_end and (i == i_end or low_row[e] <= other_row[i])
                above = i < i_end and (e == e_end or other_row[i] <= low_row[e])
                row[n] = low_row[e] if below else other_row[i]
                if below:
                    begin = low_key[e]
                    e += 1
                if above:
                    end = other_key[i]
                    i += 1
                # Stop at a range that begins above its end
                if below and above and begin > end:
                    wrong[0], wrong[1] = a, row[n]
                    return False
                key[n], high_key[n] = begin, end
                n += 1
        col[a + 1] = n
    return True
