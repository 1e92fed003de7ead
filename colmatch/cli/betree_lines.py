"""JSON lines of events whose attributes are the be-tree library's domains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from colmatch.betree.events import event_batches, nullable
from colmatch.cli.files import Input, guarded, naming, opened


@contextmanager
def reading_events_of(path: str, schema: pa.Schema) -> Iterator[Input]:
    """Opens a file of events, or with ``-`` standard input: valid until the block ends.

    Raises
    ------
    OSError : the file cannot be opened
    ColmatchError : a line cannot be read; the message begins with the path
    """
    shown = "standard input" if path == "-" else path
    with naming(shown), opened(path) as source:
        columns = nullable(schema)
        yield Input(columns, guarded(event_batches(source, schema), shown), None, columns.names)
