"""Results of a match kernel: written by blocks of rows, ordered afterwards by counting."""

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.layout import MATCHES

FILL = 0  # places of Sink.state
WANTED = 1


@device
def emit(sink, row, sub, counters):
    """Note a match. False when pairs are wanted and there is no room: the caller rolls its block of rows back."""
    if sink.state[WANTED]:
        n = sink.state[FILL]
        if n == len(sink.sub):
            return False
        sink.row[n] = row
        sink.sub[n] = sub
        sink.state[FILL] = n + 1
    sink.hits[row] += 1
    counters[MATCHES] += 1
    return True


@device
def roll_back(sink, fill, start, stop, counters):
    """Forget what was emitted for rows ``start:stop`` since the fill was ``fill``."""
    sink.state[FILL] = fill
    for row in range(start, stop):
        counters[MATCHES] -= sink.hits[row]
        sink.hits[row] = 0


@kernel
def order_by_row(sink, start, offset, place, event, sub):
    """The sink's pairs -> ordered by row, the order within a row kept.

    start : first row of the pairs; event numbers are rows + ``offset``
    place (rows) int64 : on entry the first pair of each row from ``start``, on return that of the next
    event, sub (pairs) int64, uint32 : written
    """
    for i in range(sink.state[FILL]):
        row = sink.row[i]
        to = place[row - start]
        place[row - start] = to + 1
        event[to] = row + offset
        sub[to] = sink.sub[i]
