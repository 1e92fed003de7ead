"""Events as the caller has them, cut and gathered into record batches of a useful size.

A batch that is as it should be is handed on untouched: for a single event, selecting 100 columns
takes longer than reading them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa

from colmatch.errors import EventError
from colmatch.incoming import refusing

Seen = TypeVar("Seen")
_NOTHING = object()

SEEN_MOST = 8  # schemas whose columns are known, in this process


def batches(events: object, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Events as record batches of ``rows`` rows, the last one of what is left.

    Larger batches are cut without copying; smaller ones that follow each other are gathered. Takes
    from the source only what the next batch needs. Batches without rows are left out.

    Parameters
    ----------
    events : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` whose rows are structs: a
        table, data frame, record batch, reader, struct array; or a dataset of pyarrow, or a scanner
    rows : at least 1
    columns : those that are needed, by name or else by a name that differs in case alone; all when
        None. Others are left out where that saves more than it costs

    Raises EventError: ``events`` is something else. Errors of the source come through as they are.
    """
    return (batch for batch, _ in seen_batches(events, rows, lambda: None, lambda _: columns))


def seen_batches(
    events: object, rows: int, see: Callable[[], Seen], needed: Callable[[Seen], list[str] | None]
) -> Iterator[tuple[pa.RecordBatch, Seen]]:
    """As ``batches``, each with what was seen when its rows began to come.

    All rows of one batch of the source have seen the same object, however it is cut, and so have
    all of a table, or of anything else that is in memory or has a length: only readers have none.

    see : what there is to be seen
    needed : the columns that are needed by one who has seen it, as for ``batches``
    """
    if _is_dataset(events):
        return _scanned(events, rows, see(), needed)
    if _is_frame(events):
        seen = see()
        reader = _source(_narrowed(events, needed(seen)))[0]
        return _gather(reader, rows, lambda: seen, needed)
    source, whole = _source(events)
    return _gather(source, rows, cache(see) if whole else see, needed)


def _is_dataset(events: object) -> bool:
    """Says whether events are a dataset, which pyarrow reads column by column."""
    dataset = sys.modules.get("pyarrow.dataset")  # who has one has imported this
    return dataset is not None and isinstance(events, dataset.Dataset)


def _is_frame(events: object) -> bool:
    """Says whether events are a data frame that may have columns of types that Arrow has not."""
    return type(events).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(events, "columns")


def _narrowed(frame: Any, columns: list[str] | None) -> Any:
    """Returns a data frame with the needed columns alone, since Arrow may have no type for others.

    All stay where one that is needed is not there, so that an error can name them.
    """
    names = list(map(str, frame.columns))
    found = None if columns is None else meant(names, columns)
    if not found or not {name.lower() for name in columns or ()} <= {name.lower() for name in names}:
        return frame
    wanted = set(found)
    kept = [i for i, name in enumerate(names) if name in wanted]
    return pa.Table.from_pandas(frame.iloc[:, kept], preserve_index=False) if hasattr(frame, "iloc") else frame[:, kept]


def _scanned(
    events: Any, rows: int, seen: Seen, needed: Callable[[Seen], list[str] | None]
) -> Iterator[tuple[pa.RecordBatch, Seen]]:
    """Yields the batches of a dataset, of which only the needed columns are read.

    All have seen the same, as the rows of a table have: columns are chosen once.
    """
    columns, names = needed(seen), events.schema.names
    kept = None if columns is None else _kept(events.schema, columns)
    wanted = None if kept is None else [names[i] for i in kept] or names[:1]
    with refusing(EventError, "the dataset cannot be read"):
        reader = events.scanner(columns=wanted).to_reader()
    yield from _gather(reader, rows, lambda: seen, needed)


def _source(events: object) -> tuple[Iterable[pa.RecordBatch], bool]:
    """Returns the batches, and whether they are one whole: all of them are there already."""
    if isinstance(events, pa.RecordBatch):
        return (events,), False  # a single one sees one object anyway
    if isinstance(events, pa.RecordBatchReader):
        return events, False  # exported, its errors would lose their type
    if isinstance(events, pa.Table):
        return events.to_reader(), True
    dataset = sys.modules.get("pyarrow.dataset")
    if dataset is not None and isinstance(events, dataset.Scanner):
        return events.to_reader(), True
    if isinstance(events, pa.ChunkedArray) and pa.types.is_struct(events.type):
        # unlike the stream, takes NULL structs
        return map(pa.RecordBatch.from_struct_array, events.iterchunks()), True
    with refusing(
        EventError,
        f"events are rows of named columns, which cannot be read from this {type(events).__name__}: put it into a table",
    ):
        if hasattr(events, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(events), hasattr(events, "__len__")  # a data frame has a length
        if hasattr(events, "__arrow_c_array__"):
            array = pa.array(events)
            if pa.types.is_struct(array.type):
                return (pa.RecordBatch.from_struct_array(array),), True
            raise EventError(f"events are rows of named columns, this is an array of {array.type}: put it into a table")
    raise EventError(
        f"events cannot be read from {type(events).__name__}: pass a table, data frame, record batch or reader that offers "
        "__arrow_c_stream__ or __arrow_c_array__ (pyarrow, polars, duckdb, pandas)"
    )


def _gather(
    source: Iterable[pa.RecordBatch], rows: int, see: Callable[[], Seen], needed: Callable[[Seen], list[str] | None]
) -> Iterator[tuple[pa.RecordBatch, Seen]]:
    pending: list[pa.RecordBatch] = []
    held, columns = 0, None
    before: Any = _NOTHING
    for batch in source:
        seen = see()
        if seen is not before:
            if pending:  # what came before has seen something else
                yield from ((piece, before) for piece in _joined(pending, columns))
                pending, held = [], 0
            before, columns = seen, needed(seen)
        if columns is not None:
            kept = _kept(batch.schema, columns)
            # Each column kept costs twice what exporting one does.
            if kept is not None and 3 * len(kept) <= batch.num_columns:
                batch = batch.select(kept)
        start = 0
        while start < batch.num_rows:
            piece = batch if start == 0 and batch.num_rows <= rows - held else batch.slice(start, rows - held)
            start += piece.num_rows
            held += piece.num_rows
            pending.append(piece)
            if held == rows:
                yield from ((piece, seen) for piece in _joined(pending, columns))
                pending, held = [], 0
    if pending:
        yield from ((piece, before) for piece in _joined(pending, columns))


def _joined(pieces: list[pa.RecordBatch], columns: list[str] | None) -> list[pa.RecordBatch]:
    if len(pieces) == 1:
        return pieces
    if columns is not None:
        kept = [(piece, _kept(piece.schema, columns)) for piece in pieces]
        pieces = [piece if numbers is None else piece.select(numbers) for piece, numbers in kept]
    try:
        return [pa.concat_batches(pieces)]
    except pa.ArrowException:  # of different schemas, or of a type that cannot be joined: small batches are only slower
        return pieces


def meant(names: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """Returns the names that are wanted: as written, or else but for their case.

    Which of several is meant is for the Reader to say.
    """
    exact = set(wanted) & set(names)
    folded = {name.lower() for name in wanted if name not in exact}
    return [name for name in names if name in exact or name.lower() in folded]


def _kept(schema: pa.Schema, columns: list[str]) -> list[int] | None:
    """Returns the numbers of the columns that may be meant.

    None when all may be, or when some column is not there.

    Which of several is meant is for the Reader to say.
    """
    global _seen
    for known, asked, kept in _seen:
        if asked == columns and known.equals(schema):
            return kept
    names = schema.names
    wanted, folded = set(meant(names, columns)), {name.lower() for name in names}
    found = [i for i, name in enumerate(names) if name in wanted]
    # With all columns, an error can say which one was meant instead of one that is not there.
    absent = any(column.lower() not in folded for column in columns)
    kept = None if len(found) == len(names) or absent else found
    _seen = ((schema, list(columns), kept), *_seen[: SEEN_MOST - 1])
    return kept


# What ``_kept`` found last: it takes longer than a small batch takes to be read. Replaced as a
# whole, for threads.
_seen: tuple[tuple[pa.Schema, list[str], list[int] | None], ...] = ()
