"""Memory that kernels read by address, and threads that make readers of one vocabulary."""

from __future__ import annotations

from unittest.mock import patch
from weakref import ref

import pyarrow as pa
from reading import STRING, entries, literals, value

from colmatch.events import vocabulary
from colmatch.events.reader import Reader
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.schema import Attributes
from colmatch.kernels.layout import I64, U8


def test_readers_made_at_the_same_time_keep_their_memory() -> None:
    """The second begins while the first makes the prefixes, as another thread may."""
    words = Vocabulary.among(literals([[b"a", b"b", b"c"]]))
    attributes = Attributes([value("x", STRING)])
    make = vocabulary.prefixes
    begun: list[bool] = []
    made: list[ref[I64]] = []
    readers: list[Reader] = []

    def interrupted(offset: I64, data: U8) -> I64:
        if not begun:
            begun.append(True)
            readers.append(Reader(attributes, words))
        found = make(offset, data)
        made.append(ref(found))
        return found

    with patch.object(vocabulary, "prefixes", interrupted):
        readers.append(Reader(attributes, words))
    assert len(made) == 3  # the old part twice
    # Both readers have the first one's old part, so nothing holds that of the second.
    assert [array() is not None for array in made].count(False) == 1
    batch = pa.record_batch({"x": ["c", "b"]})
    assert [entries(reader.read(batch)) for reader in readers] == [[[(0, 5), (1, 3)]]] * 2
