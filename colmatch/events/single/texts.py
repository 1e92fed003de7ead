"""Text patterns over the texts of single events, found without a batch of Arrow.

Only regular expressions that Hyperscan does not decide, and ILIKE on texts that are not ASCII, make
an array of Arrow for one text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.arrays.frozen import freeze_view
from colmatch.events.patterns import Patterns
from colmatch.kernels._jit import entry
from colmatch.kernels.event import EventValues, find_in_event
from colmatch.kernels.layout import U8
from colmatch.kernels.text.search import FILL, TextHits

# Bytes of a text under patterns. The kernel keeps the interpreter's lock, so events with longer
# ones become a batch, whose kernels let other threads run.
BYTES_MOST = 1 << 16


class EventPatterns:
    """A finder of the patterns that match the texts of an event. One thread at a time.

    Parameters
    ----------
    values : the event's values, whose arrays stay the same
    total : number of attributes
    most : largest number of values and matching patterns

    Attributes
    ----------
    merged : the values and the patterns that match
    """

    def __init__(self, patterns: Patterns, values: EventValues, total: int, most: int) -> None:
        index = patterns.index.literals
        room = patterns.total  # each is found once: by a literal, or as a regular expression
        self._hits = TextHits(
            np.empty(room, np.int32),
            np.empty(room, np.int32),
            np.zeros(2, np.int64),
            np.zeros(index.literals, np.int64),
        )
        self._base = np.empty(len(values.end), np.int64)
        self.merged = values._replace(attr=np.empty(most, np.uint32), value=np.empty(most, np.int64))
        self._arguments = index.filters, index.programs, patterns.attributes, self._hits
        self._seen = np.zeros((total + 63) // 64, np.uint64), np.zeros(total // 64**2 + 1, np.uint64)
        self._values, self._frozen_base = values, freeze_view(self._base)

    def find(self, count: int, data: U8, bases: Sequence[int], known: Sequence[int]) -> int:
        """Writes the values and the matching patterns to ``merged``, and returns their number.

        count : number of values
        data : the bytes of all texts
        bases : base of each text in the index of literals, or -1
        known : numbers of patterns that are known to match
        """
        self._base[: len(bases)] = bases
        self._hits.pattern[: len(known)] = known
        self._hits.state[FILL] = len(known)
        total: int = entry(find_in_event)(
            self._values, count, data, self._frozen_base, len(bases), *self._arguments, *self._seen, self.merged
        )
        assert total >= 0, "hits has room for all patterns"
        return total


def lower_text(text: str, data: bytes) -> bytes:
    """Returns a text in lower case as ILIKE sees it, with its bytes given."""
    lower: bytes = data.lower() if data.isascii() else pc.utf8_lower(pa.scalar(text)).as_py().encode()
    return lower
