"""Events in long form: a row for each value, as columnar and sparse as data comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import EventError, show_value
from colmatch.given.arguments import text, whole_number
from colmatch.given.incoming import decode_runs, find_only, is_table, is_text, refusing, table_of

__all__ = ["from_pairs"]

COLUMNS = ("event", "attribute", "value")
PAIRS_MOST = 2**31 - 1  # Arrow's maps have offsets of 32 bits


def from_pairs(pairs: Any, column: str = "attrs", rows: int | None = None) -> pa.RecordBatch:
    """Makes a batch with one map column of (event, attribute, value) rows.

    Expressions name the map's entries, as in ``attrs['a17'] > 3``.

    Pairs in one chunk are not copied; several chunks are joined first. Attributes and values keep
    their types. A dictionary of attributes stays one and is read fastest.

    Parameters
    ----------
    pairs : anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``, or a dict of columns.
        All but these three columns are ignored:

        - ``event`` : row number of the event, ascending integers
        - ``attribute`` : key of the map: strings, a dictionary of strings, or signed integers of up
          to 64 bits (unsigned: 32)
        - ``value`` : of any type, the same for all attributes. NULL is NULL

        Of several pairs with the same event and attribute, the first counts.
    column : name of the map column
    rows : number of events; events after the last pair have no entries. None for one more than the
        last event's number

    Returns
    -------
    batch : ``rows`` rows; ``column`` is a map from ``attribute``'s type to ``value``'s. A row
        without pairs is an empty map, never NULL

    Raises
    ------
    EventError : A column is missing or of another type. Events do not ascend, are negative, NULL,
        or not below ``rows``. An attribute is NULL. There are more than 2**31 - 1 pairs. Errors
        count rows of ``pairs`` from 0

    Examples
    --------
    >>> pairs = {"event": [0, 0, 2], "attribute": ["age", "km", "age"], "value": [31, 12, 47]}
    >>> from_pairs(pairs).to_pylist()
    [{'attrs': [('age', 31), ('km', 12)]}, {'attrs': []}, {'attrs': [('age', 47)]}]
    """
    count = None if rows is None else whole_number(rows)
    if rows is not None and (count is None or count < 0):
        raise EventError(f"rows is {show_value(rows)}: give the number of events, or None")
    name = text(column)
    if name is None or not is_text(name):
        raise EventError(f"column is {show_value(column)}: give the name of the map column")
    event_column, attribute_column, value_column = _columns(pairs)
    event = _events(event_column)
    if count is None:
        count = int(event[-1]) + 1 if len(event) else 0
    _check_events(event, count)
    attribute = _attributes(attribute_column)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(event, minlength=count), out=offsets[1:])
    with refusing(EventError, "column 'value' of the pairs cannot be read"):
        entries = pa.MapArray.from_arrays(pa.array(offsets), attribute, value_column)
    return pa.RecordBatch.from_arrays([entries], names=[name])


def _columns(pairs: Any) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Returns the three columns, each in one piece."""
    if not (isinstance(pairs, dict) or is_table(pairs)):
        raise EventError(
            f"pairs cannot be read from {type(pairs).__name__}: pass a table or data frame with the columns {', '.join(COLUMNS)}"
        )
    table = table_of(pairs, EventError, "pairs")
    if table.num_rows > PAIRS_MOST:
        raise EventError(
            f"{table.num_rows:,} pairs are too many for one batch ({PAIRS_MOST:,}): pass them in parts, cut between events"
        )
    event, attribute, value = (_piece(table, name) for name in COLUMNS)
    return event, attribute, value


def _piece(table: pa.Table, name: str) -> pa.Array:
    """Returns a column in one piece, otherwise unchanged: only runs cannot be read."""
    column = find_only(table, name, EventError, "pairs")
    with refusing(EventError, f"column {name!r} of the pairs is {column.type!s:.200} and cannot be read"):
        column.validate(full=name == "attribute")
        chunks = column.chunks or [pa.nulls(0, column.type)]
        piece = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        return decode_runs(piece) if pa.types.is_run_end_encoded(piece.type) else piece


def _events(column: pa.Array) -> NDArray[np.int64]:
    if pa.types.is_null(column.type) and not len(column):
        return np.zeros(0, np.int64)
    if not pa.types.is_integer(column.type):
        raise EventError(
            f"column 'event' of the pairs is {column.type}: it should be row numbers, integers that ascend"
        )
    if column.null_count:
        raise EventError(
            f"pairs, row {_first(pc.is_null(column))}: event is NULL: give each pair the row number of its event"
        )
    events: NDArray[Any] = column.to_numpy(zero_copy_only=True)
    if column.type == pa.uint64() and len(events) and events.max() > PAIRS_MOST:
        raise EventError(
            f"pairs, row {int(events.argmax())}: event {events.max()} is too large: number the events from 0"
        )
    return events.astype(np.int64, copy=False)


def _check_events(event: NDArray[np.int64], rows: int) -> None:
    """Checks that event numbers ascend and that each is a row of the batch."""
    falls = event[1:] < event[:-1]
    if falls.any():
        i = int(falls.argmax()) + 1
        raise EventError(f"pairs, row {i}: event {event[i]} comes after event {event[i - 1]}: sort the pairs by event")
    if len(event) and event[0] < 0:
        raise EventError(f"pairs, row 0: event {event[0]} is negative: number the events from 0")
    if rows > PAIRS_MOST:
        raise EventError(f"{rows:,} events are too many for one batch ({PAIRS_MOST:,}): number the events from 0")
    if len(event) and event[-1] >= rows:
        i = int(np.searchsorted(event, rows))
        raise EventError(f"pairs, row {i}: event {event[i]} is not below rows={rows}: give more rows, or None")


def _attributes(column: pa.Array) -> pa.Array:
    types = pa.types
    type = column.type
    if types.is_null(type) and not len(column):
        return pa.array([], pa.string())
    coded = types.is_dictionary(type)
    value = type.value_type if coded else type
    textual = types.is_string(value) or types.is_large_string(value) or types.is_string_view(value)
    if not textual and (coded or not types.is_integer(type) or type == pa.uint64()):
        raise EventError(
            f"column 'attribute' of the pairs is {type}: cast it to string, to a dictionary of strings, or to int64"
        )
    null = pc.is_null(column) if column.null_count else None
    if null is None and coded and column.dictionary.null_count:
        null = column.dictionary.is_null().take(column.indices)
    if null is not None and pc.any(null).as_py():
        raise EventError(f"pairs, row {_first(null)}: attribute is NULL: name it, or leave the pair out")
    return column


def _first(mask: pa.Array) -> int:
    return int(pc.index(mask, True).as_py())
