"""Labels of strings: their places among the sorted literals of their attribute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.pieces import concat
from colmatch.arrays.ranges import ranges_of
from colmatch.kernels import layout

I64 = NDArray[np.int64]


def string_labels(
    attrs: Sequence[I64], texts: Sequence[pa.Array], attributes: int
) -> tuple[list[I64], layout.Literals]:
    """Sorts the literals of each attribute, and labels them.

    Parameters
    ----------
    attrs : id of the attribute of each literal, an array for each of ``texts``
    texts : literals, large binary
    attributes : number of attributes

    Returns
    -------
    labels : an array for each of ``texts``
    literals : the literals behind the labels
    """
    if not texts:
        return [], layout.Literals(np.zeros(attributes + 1, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))
    encoded = pa.chunked_array(texts).combine_chunks().dictionary_encode()
    ascending = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(ascending), np.int64)
    rank[ascending] = np.arange(len(ascending))
    pairs = (concat(attrs) << 32) | rank[encoded.indices.to_numpy()]
    distinct, place = np.unique(pairs, return_inverse=True)
    first = np.searchsorted(distinct >> 32, np.arange(attributes + 1))
    data = encoded.dictionary.take(pa.array(ascending[distinct & 0xFFFFFFFF])).to_pylist()
    offset = ranges_of(np.fromiter(map(len, data), np.int64, len(data)))
    literals = layout.Literals(first.astype(np.int64), offset, np.frombuffer(b"".join(data), np.uint8))
    labels = 2 * (place - first[distinct[place] >> 32]) + 1
    return np.split(labels, np.cumsum([len(attr) for attr in attrs[:-1]])), literals
