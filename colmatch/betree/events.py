"""Events of the be-tree library: JSON objects, one a line -> an Arrow table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import pyarrow as pa

from colmatch.betree.domains import (
    BOOLEAN,
    ENUM,
    FLOAT,
    FREQUENCY,
    INTEGER,
    INTEGERS,
    SEGMENTS,
    STRING,
    STRINGS,
    Domain,
    Domains,
    domains_of,
)
from colmatch.errors import EventError, show_value, suggest_names
from colmatch.given.arguments import is_listed, text
from colmatch.given.incoming import is_text, refusing
from colmatch.given.schema import Schema

ROWS = 8192  # lines that are read at a time
TOLD = 10  # most faulty lines that an error lists


def events(lines: object, domains: object) -> pa.Table:
    """Reads events, one JSON object per line, from attribute to value.

    ``null`` and absent attributes are NULL. Names are read in lower case, and the last of equal
    names wins. A segment is ``[id, microseconds]``, and a cap is
    ``[["type", id, "ns"], value, microseconds]``.

    Parameters
    ----------
    lines : an open file, any other iterable of lines, or one text. A line may also be a mapping
        that is already parsed. Empty lines are skipped
    domains : as ``Domains`` takes them, or a ``Domains``, a schema, or ``matcher.schema``

    Returns
    -------
    pyarrow.Table : a column for each domain. An event may have NULL in a column that must be
        defined; it matches nothing

    Raises
    ------
    EventError : some lines are invalid. The message has the fault of each of the first ten
    """
    schema = schema_of(domains)
    return pa.Table.from_batches(event_batches(lines, schema), nullable(schema))


def schema_of(domains: object) -> pa.Schema:
    """Returns the columns of domains; arguments are a schema, or as for ``Domains``."""
    if isinstance(domains, (pa.Schema, Schema)) or hasattr(domains, "__arrow_c_schema__"):
        return Schema(domains).arrow
    return Domains(domains).arrow


def nullable(schema: pa.Schema) -> pa.Schema:
    """Returns columns of the same names and types that may be NULL."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def event_batches(lines: object, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields the rows of ``events``, in batches of ``ROWS``."""
    domains = domains_of(schema)
    columns = nullable(schema)
    numbered = enumerate(_lines(lines), 1)
    while True:
        reading = _EventRows(domains)
        for number, line in numbered:
            reading.take(number, line)
            if reading.rows == ROWS:
                break
        if reading.wrong:
            raise EventError("; ".join(reading.wrong[:TOLD]))
        if not reading.rows:
            return
        yield reading.batch(columns)


class _Wrong(Exception):
    """A line cannot be read."""


def _name(given: object) -> str:
    name = text(given)
    if name is None:
        raise _Wrong(f"{show_value(given)} is no name of an attribute")
    return name.lower()


class _EventRows:
    """Rows of lines that were read: the values of each attribute that a line has, by row."""

    def __init__(self, known: Mapping[str, Domain]) -> None:
        self.known = known
        self.rows = 0
        self.wrong: list[str] = []
        self._values: dict[str, tuple[list[int], list[Any]]] = {}  # rows and values, by name of the column

    def take(self, number: int, line: object) -> None:
        """Adds the row of a line, or notes the fault of the line."""
        try:
            if isinstance(line, (str, bytes)) and not line.strip():
                return
            event = _object(line)
            for name, value in {_name(name): value for name, value in event.items()}.items():
                if value is not None:
                    self._enter(name, value)
        except _Wrong as error:
            self.wrong.append(f"line {number}: {error}")
        self.rows += 1

    def _enter(self, name: str, value: Any) -> None:
        domain = self.known.get(name)
        if domain is None:
            raise _Wrong(
                f"unknown attribute {name!r:.80}: {suggest_names(name[:200], self.known, 'the list of domains')}"
            )
        read, needed = _READ[domain.type]
        try:
            result = read(value)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise _Wrong(f"{name!r} is {show_value(value)}: {needed} is needed") from None
        rows, values = self._values.setdefault(domain.name, ([], []))
        rows.append(self.rows)
        values.append(result)

    def batch(self, columns: pa.Schema) -> pa.RecordBatch:
        """Returns the rows as a record batch."""
        arrays = []
        for field in columns:
            rows, values = self._values.get(field.name, ([], []))
            if len(rows) < self.rows:
                whole: list[Any] = [None] * self.rows
                for row, value in zip(rows, values, strict=True):
                    whole[row] = value
                values = whole
            with refusing(EventError, f"the values of {field.name!r} do not fit its column"):
                arrays.append(pa.array(values, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _lines(lines: Any) -> Iterator[object]:
    if isinstance(lines, str):
        lines = lines.split("\n")
    elif isinstance(lines, bytes):
        lines = lines.split(b"\n")
    if isinstance(lines, Mapping) or not is_listed(lines):
        raise EventError(
            f"events are lines of JSON: an open file, a list or a text is needed, not {type(lines).__name__}"
        )
    for i, line in enumerate(lines):  # the first line without a byte order mark
        if i == 0 and isinstance(line, (str, bytes)):
            line = line.removeprefix("\ufeff") if isinstance(line, str) else line.removeprefix(b"\xef\xbb\xbf")
        yield line


def _object(line: object) -> Mapping[Any, Any]:
    if isinstance(line, Mapping):
        return line
    if not isinstance(line, (str, bytes)):
        raise _Wrong(f"a line of JSON is needed, not {type(line).__name__}")
    try:
        event = json.loads(line, parse_constant=_refuse)
    except RecursionError:
        raise _Wrong("lists within lists, too deep") from None
    except ValueError as error:  # also for bytes that are no text
        raise _Wrong(f"this is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise _Wrong(f"a JSON object is needed, not {show_value(event)}")
    return event


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


# Values: each function returns a value for an array, and raises for any other value
# --------------------------------------------------------------------------


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise ValueError


def _integer(value: Any) -> int:
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    raise ValueError


def _float(value: Any) -> float:
    if type(value) is float or type(value) is int:
        number = float(value)
        if math.isfinite(number):
            return number
    raise ValueError


def _string(value: Any) -> str:
    if isinstance(value, str) and is_text(value):
        return value
    raise ValueError


def _list_of(read: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def members(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError
        return [read(one) for one in value]

    return members


def _segment(value: Any) -> dict[str, Any]:
    id, timestamp = value
    return {"id": _integer(id), "timestamp": _integer(timestamp)}


def _cap(value: Any) -> dict[str, Any]:
    (type, id, ns), count, timestamp = value
    numbers = {"id": _integer(id), "value": _integer(count), "timestamp": _integer(timestamp)}
    return {"type": _string(type), "ns": _string(ns), **numbers}


_WHOLE = "a whole number of 64 bits"
_READ: dict[str, tuple[Callable[[Any], Any], str]] = {
    BOOLEAN: (_boolean, "true or false"),
    INTEGER: (_integer, _WHOLE),
    ENUM: (_integer, _WHOLE),
    FLOAT: (_float, "a number"),
    STRING: (_string, "a string"),
    INTEGERS: (_list_of(_integer), "a list of whole numbers of 64 bits"),
    STRINGS: (_list_of(_string), "a list of strings"),
    SEGMENTS: (_list_of(_segment), "a list of [id, microseconds]"),
    FREQUENCY: (_list_of(_cap), 'a list of [["type", id, "ns"], value, microseconds]'),
}
