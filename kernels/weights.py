"""Weights that maps of the events give to attributes, one range of weights a row."""

from colmatch.kernels._jit import kernel
from colmatch.kernels.layout import F64, I64, U8, U32, Written


@kernel
def join_weights(
    place: I64,
    name: I64,
    value: F64,
    target_first: I64,
    target: I64,
    exact: U8,
    slot: Written[I64],
    rank: Written[U8],
    first: Written[I64],
    attr: Written[U32],
    weight: Written[F64],
) -> None:
    """Fills ``layout.EventWeights`` from the entries of a map with names of attributes as keys.

    If two entries of a row are for one attribute, the more specific name counts, else the later
    entry.

    Parameters
    ----------
    place : (N + 1) int64, row -> its entries
    name : (E) int64, number of an entry's name, -1 where it means nothing
    value : (E) float64
    target_first, target : (M + 1), (T) int64, name -> attributes that it counts for
    exact : (M) uint8, whether a name is a specific one
    slot : (A) int64, scratch, -1 on entry
    rank : (at least as many as ``attr``) uint8, scratch
    first, attr, weight : (N + 1) int64, uint32, float64, written. There are at most as many weights
        as the names of all entries have attributes
    """
    n = 0
    first[0] = 0
    for row in range(len(place) - 1):
        begin = n
        for e in range(place[row], place[row + 1]):
            m = name[e]
            if m < 0:
                continue
            for t in range(target_first[m], target_first[m + 1]):
                a = target[t]
                i = slot[a]
                # Take a new place for the first entry of the row for an attribute
                if i < begin:
                    i = n
                    n += 1
                    slot[a] = i
                    attr[i] = a
                elif rank[i] > exact[m]:
                    continue
                # Write the weight unless a more specific name has given one
                rank[i] = exact[m]
                weight[i] = value[e]
        first[row + 1] = n
