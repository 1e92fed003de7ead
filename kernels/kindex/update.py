"""Deletion from k-index: a bit for each conjunction."""

import numpy as np

from colmatch.kernels._jit import kernel


@kernel
def bury(conjunctions, dead):
    """Set the bits of conjunctions (n) int64 in dead (words) uint64."""
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        dead[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
