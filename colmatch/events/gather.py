"""A caller's events, cut and gathered into record batches of a useful size.

A suitable batch is passed on untouched: for a single event, selecting 100 columns takes longer than
reading them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from colmatch.errors import EventError, show_value
from colmatch.given.declared import schema_of
from colmatch.given.incoming import refusing
from colmatch.given.scans import Scan, scan_of

Seen = TypeVar("Seen")
_NOTHING = object()

SEEN_MOST = 8  # schemas with remembered columns, in this process


class Source(NamedTuple):
    """Events of any kind, described before the first batch comes.

    schema : names of the columns that are kept -> schema of the rows
    batches : the batches that are there, of one schema
    is_whole : whether all batches are there already
    read : names of columns, None for all -> batches. For sources that read, compute or convert only
        chosen columns; ``batches`` is empty then
    """

    schema: Callable[[list[str]], pa.Schema]
    batches: Iterable[pa.RecordBatch]
    is_whole: bool
    read: Callable[[list[str] | None], Iterable[pa.RecordBatch]] | None = None


def batches(events: object, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Returns events as record batches of ``rows`` rows; the last batch has the rest.

    Larger batches are cut without copying, and small neighbours are gathered. The source is read
    only as far as the next batch needs. Batches without rows are left out.

    Parameters
    ----------
    events : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` that has structs as rows:
        a table, data frame, record batch, reader or struct array. Or a table that ``scan_of`` knows
    rows : at least 1
    columns : names of the needed columns, compared exactly, or else without regard to case; None
        for all. Others are left out where that saves more than it costs

    Raises EventError: ``events`` is something else. Errors of the source come through unchanged.
    """
    return (batch for batch, _ in gather_with_state(events, rows, lambda: None, lambda _: columns))


def gather_with_state(
    events: object, rows: int, see: Callable[[], Seen], needed: Callable[[Seen], list[str] | None]
) -> Iterator[tuple[pa.RecordBatch, Seen]]:
    """Returns the same as ``batches``, each with the result of ``see`` when its rows began to come.

    All rows of one batch of the source get the same result, however the batch is cut. So do all
    rows of a table, or of any other source in memory or with a length: only readers have none.

    see : returns the present state, such as a version of the matcher
    needed : returns the columns that a state needs, as for ``batches``
    """
    source = source_of(events)
    if source.read is not None:
        # All rows get the same state, as in a table: columns are chosen once.
        seen = see()
        return _gather(source.read(needed(seen)), rows, lambda: seen, needed)
    return _gather(source.batches, rows, see, needed, source.is_whole)


def _is_frame(events: object) -> bool:
    """Returns whether events are a data frame, which may have columns of types that Arrow lacks."""
    kind = type(events)
    return (
        kind.__module__.partition(".")[0] in ("pandas", "polars")
        and hasattr(kind, "columns")
        and hasattr(kind, "__len__")
    )


def _select_columns(frame: Any, columns: list[str] | None) -> Any:
    """Returns a data frame with only the needed columns, since Arrow may have no type for others.

    All columns stay if a needed one is missing, so that an error can name them. Levels of a pandas
    index are columns, too.
    """
    levels = [str(name) for name in frame.index.names if name is not None] if hasattr(frame, "index") else []
    names = [*map(str, frame.columns), *levels]
    matches = None if columns is None else match_names(names, columns)
    if not matches or not {name.lower() for name in columns or ()} <= {name.lower() for name in names}:
        return frame
    chosen = set(matches)
    kept = [i for i, name in enumerate(names[: len(frame.columns)]) if name in chosen]
    if not hasattr(frame, "iloc"):
        return frame[:, kept]
    with refusing(EventError, "the data frame cannot be read"):
        return pa.Table.from_pandas(frame.iloc[:, kept], preserve_index=not chosen.isdisjoint(levels))


def _of_frame(frame: object) -> Source:
    """Returns the source of a data frame; only the needed columns are converted."""
    return Source(
        lambda columns: _of_arrow(_select_columns(frame, columns))[0],
        (),
        True,
        lambda columns: _check_batches(_of_arrow(_select_columns(frame, columns))[1]),
    )


def check_layout(data: pa.RecordBatch | pa.Array | pa.ChunkedArray) -> None:
    """Checks that arrays are as long as Arrow says, without a look at their values.

    Up to 1.42, polars exports slices of struct columns with fields that are too short.

    Raises EventError: an array has a wrong length.
    """
    with refusing(
        EventError, "the events are no valid Arrow data, ask for a later version of the library they are from"
    ):
        data.validate()


def _check_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        check_layout(batch)
        yield batch


def _choose_columns(schema: pa.Schema, columns: list[str] | None) -> list[str] | None:
    """Returns the columns to read, one at least; None for all."""
    kept = None if columns is None else _find_columns(schema, columns)
    return None if kept is None else [schema.names[i] for i in kept] or schema.names[:1]


def _of_scan(scan: Scan, schema: pa.Schema, name: str) -> Source:
    """Returns the source of a table that reads, or computes, only the needed columns."""

    def read(columns: list[str] | None) -> Iterable[pa.RecordBatch]:
        with refusing(EventError, f"this {name} cannot be read"):
            return _check_batches(scan.read(_choose_columns(schema, columns)))

    return Source(lambda _: schema, (), True, read)


def source_of(events: object) -> Source:
    """Returns the source of events of any kind. A reader is not read yet.

    Raises EventError: the object is something else.
    """
    if isinstance(events, Source):
        return events
    if isinstance(events, pa.RecordBatch):
        return Source(lambda _: events.schema, (events,), False)  # a single batch gets one state anyway
    if isinstance(events, pa.Table):
        return Source(lambda _: events.schema, events.to_reader(), True)
    if _is_frame(events):
        return _of_frame(events)
    name = type(events).__name__
    with refusing(EventError, f"this {name} cannot be read"):
        scan = scan_of(events)
    if scan is not None:
        return _of_scan(scan, schema_of(scan.schema), name)
    schema, parts, is_whole = _of_arrow(events)
    return Source(lambda _: schema, parts, is_whole)


def _of_arrow(events: Any) -> tuple[pa.Schema, Iterable[pa.RecordBatch], bool]:
    """Returns schema and batches of Arrow data, and whether all batches are there already.

    Raises EventError: the object is something else.
    """
    if isinstance(events, pa.RecordBatchReader):
        return events.schema, events, False  # an export would lose the type of its errors
    if isinstance(events, pa.ChunkedArray) and pa.types.is_struct(events.type):
        # unlike the stream, takes NULL structs
        return pa.schema(list(events.type)), map(pa.RecordBatch.from_struct_array, events.iterchunks()), True
    with refusing(
        EventError,
        f"events are rows of named columns, which cannot be read from this {type(events).__name__}: put it into a table",
    ):
        if hasattr(events, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(events)
            return reader.schema, reader, hasattr(events, "__len__")  # a data frame has a length
        if hasattr(events, "__arrow_c_array__"):
            array = pa.array(events)
            if pa.types.is_struct(array.type):
                return pa.schema(list(array.type)), (pa.RecordBatch.from_struct_array(array),), True
            raise EventError(f"events are rows of named columns, this is an array of {array.type}: put it into a table")
    raise EventError(f"events cannot be read from {type(events).__name__}: {_instead(events)}")


def _instead(events: object) -> str:
    """Returns the advice of an error about an object that has no events."""
    first = events[0] if isinstance(events, (list, tuple)) and events else None
    if isinstance(events, (str, os.PathLike)):
        return f"of files, pyarrow.dataset.dataset({show_value(os.fspath(events))}) are events"
    if isinstance(events, Mapping) or is_dataclass(events) or hasattr(events, "_asdict"):
        return "match_one(event) takes a single event; of columns, pyarrow.table(columns) are events"
    if isinstance(first, pa.RecordBatch):
        return "pyarrow.Table.from_batches(events) makes a table of batches"
    return (
        "pass a table, data frame, record batch or reader that offers __arrow_c_stream__ or __arrow_c_array__ "
        "(pyarrow, polars, duckdb, pandas), or a list of mappings"
    )


def _gather(
    source: Iterable[pa.RecordBatch],
    rows: int,
    see: Callable[[], Seen],
    needed: Callable[[Seen], list[str] | None],
    see_once: bool = False,
) -> Iterator[tuple[pa.RecordBatch, Seen]]:
    pending: list[pa.RecordBatch] = []
    held, columns = 0, None
    before: Any = _NOTHING
    for batch in source:
        seen = before if see_once and before is not _NOTHING else see()
        if seen is not before:
            if pending:  # earlier rows have another state
                for piece in _join_pieces(pending, columns):
                    yield piece, before
                pending, held = [], 0
            before, columns = seen, needed(seen)
        if columns is not None:
            kept = _find_columns(batch.schema, columns)
            # Keeping a column costs twice as much as exporting it.
            if kept is not None and 3 * len(kept) <= batch.num_columns:
                batch = batch.select(kept)
        start = 0
        while start < batch.num_rows:
            piece = batch if start == 0 and batch.num_rows <= rows - held else batch.slice(start, rows - held)
            start += piece.num_rows
            held += piece.num_rows
            pending.append(piece)
            if held == rows:
                for piece in _join_pieces(pending, columns):
                    yield piece, seen
                pending, held = [], 0
    for piece in _join_pieces(pending, columns):
        yield piece, before


def _join_pieces(pieces: list[pa.RecordBatch], columns: list[str] | None) -> list[pa.RecordBatch]:
    if len(pieces) <= 1:
        return pieces
    if columns is not None:
        kept = [(piece, _find_columns(piece.schema, columns)) for piece in pieces]
        pieces = [piece if numbers is None else piece.select(numbers) for piece, numbers in kept]
    try:
        return [pa.concat_batches(pieces)]
    except pa.ArrowException:  # of different schemas, or of a type that cannot be joined: small batches are only slower
        return pieces


def match_names(names: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """Returns the names that match a wanted name: exactly, or else but for case.

    The Reader decides among several matches.
    """
    exact = set(wanted) & set(names)
    folded = {name.lower() for name in wanted if name not in exact}
    return [name for name in names if name in exact or name.lower() in folded]


def _find_columns(schema: pa.Schema, columns: list[str]) -> list[int] | None:
    """Returns the numbers of the columns that may be meant.

    The result is None for all columns, or if a wanted column is missing. The Reader decides among
    several matches.
    """
    global _seen
    for seen_schema, seen_columns, kept in _seen:
        if (seen_columns is columns or seen_columns == columns) and seen_schema.equals(schema):
            return kept
    names = schema.names
    matches, folded = set(match_names(names, columns)), {name.lower() for name in names}
    numbers = [i for i, name in enumerate(names) if name in matches]
    # With all columns, an error can suggest one in place of a missing column.
    absent = any(column.lower() not in folded for column in columns)
    kept = None if len(numbers) == len(names) or absent else numbers
    _seen = ((schema, columns, kept), *_seen[: SEEN_MOST - 1])
    return kept


# The last results of ``_find_columns``, which takes longer than reading a small batch. Replaced as
# a whole, for threads.
_seen: tuple[tuple[pa.Schema, list[str], list[int] | None], ...] = ()
