"""What a query touches, as counts that are the same on every machine."""

from colmatch.kernels._jit import device

NODES = 0  # boundaries, nodes or intervals that a point was compared with
LINES = 1  # cache lines read, in a row of reads of one array: what stands near the last is not counted again
N_TOUCHED = 2

LINE = 3  # 2^3 keys have a cache line of 64 bytes


@device
def read_key(counters, at, line):
    """Note that the key at ``at`` of an array was compared, and return its line.

    ``line`` is that of the key before, -1 for none.
    """
    counters[NODES] += 1
    now = at >> LINE
    if now != line:
        counters[LINES] += 1
    return now
