"""Special functions over the events: a derived column for each distinct list of arguments.

``segment_within(seen, 12, 3600)`` is true or false of a whole row, whatever expression asks. So it
is an attribute like any other, of role CALL: a Boolean column that the events have not and that
``CallColumns`` adds before a batch is read. It is NULL instead of false, since an expression asks
for True alone and what is NULL has no entry.

Few rows are in a segment or have reached a cap. So a batch is asked what segments and caps it has,
and only the functions that ask for these are evaluated, for the rows that have them: a thousand
lists of arguments cost little more than the rows' own segments and caps. A cap is asked whether it
is reached, which few are, and ``CAPS_KNOWN`` whether anything is known of a row's caps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous
from colmatch.errors import EventError, near
from colmatch.events.gather import meant
from colmatch.incoming import doubles_of, refusing
from colmatch.kernels.calls import within_circle
from colmatch.kernels.layout import F64, I64
from colmatch.schema import Attributes, Role

CAPS_KNOWN, CAP_REACHED, CIRCLE = "frequency_caps_known", "frequency_cap_reached", "geo_within_radius"
MICROSECONDS = 1e6  # in a second
CAP = {"type": pa.string(), "id": pa.int64(), "ns": pa.string(), "value": pa.int64(), "timestamp": pa.int64()}
HALF = (1 << 32) - 1  # ids and values of caps have 32 bits, without a sign


class Call(NamedTuple):
    """A special function, the columns that it reads and its other arguments."""

    function: str
    columns: tuple[str, ...]
    arguments: tuple[Any, ...]

    @property
    def key(self) -> str:
        """What an attribute has for its key."""
        return json.dumps(self)

    @staticmethod
    def of(key: str) -> Call:
        """Returns the call whose key it is."""
        function, columns, arguments = json.loads(key)
        return Call(function, tuple(columns), tuple(arguments))


Rows = NDArray[np.int64]
Calls = list[tuple[int, Call]]  # with the places of their columns


class CallColumns:
    """Adds the columns of all special functions that the expressions use to batches.

    Parameters
    ----------
    lenient : a column that is not there is NULL in every row; else it is an error
    """

    def __init__(self, attributes: Attributes, lenient: bool) -> None:
        self._lenient = lenient
        self._names: list[str] = []
        self._circles: Calls = []
        self._known: Calls = []
        self._segments: dict[tuple[str, ...], dict[int, Calls]] = {}  # by the columns they read, and by id
        self._caps: dict[tuple[str, str, int], Calls] = {}  # by type, name space and id
        for attribute in attributes:
            if attribute.role is Role.CALL:
                self._enter(len(self._names), Call.of(str(attribute.key)))
                self._names.append(attribute.path[0])
        self._keys = _CapKeys(self._caps)

    def _enter(self, place: int, call: Call) -> None:
        if call.function == CIRCLE:
            self._circles.append((place, call))
        elif call.function == CAPS_KNOWN:
            self._known.append((place, call))
        elif call.function == CAP_REACHED:
            type, space, id = call.arguments[:3]
            self._caps.setdefault((type, space, id & HALF), []).append((place, call))
        else:
            of_column = self._segments.setdefault(call.columns, {})
            of_column.setdefault(call.arguments[0], []).append((place, call))

    def __bool__(self) -> bool:
        return bool(self._names)

    def added_to(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a batch with the columns of the functions behind its own.

        Raises
        ------
        EventError : a column that they read is not there, or of another type
        """
        count = batch.num_rows
        rows = _Rows(batch, self._lenient)
        arrays, own = batch.columns, batch.num_columns
        arrays += [pa.nulls(count, pa.bool_())] * len(self._names)
        for found in (self._in_circles(rows), self._in_segments(rows), self._of_caps(rows)):
            for place, true in found:
                out = np.zeros(count, np.uint8)
                out[true] = 1
                bits = pa.py_buffer(np.packbits(out, bitorder="little"))
                arrays[own + place] = pa.Array.from_buffers(pa.bool_(), count, [bits, bits])  # what is true is valid
        return pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *self._names])

    def _in_circles(self, rows: _Rows) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yields the place of each column, and whether each row is true."""
        for place, call in self._circles:
            latitude, longitude, radius = map(float, call.arguments)
            north, east = (rows.numbers(name) for name in call.columns)
            out = np.empty(len(north), np.uint8)
            within_circle(north, east, latitude, longitude, radius, out)
            yield place, out.view(np.bool_)

    def _in_segments(self, rows: _Rows) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yields the place of each column that is not all NULL, and its true rows."""
        for (column, clock), by_id in self._segments.items():
            now = rows.numbers(clock)
            row, members = rows.structs(column, {"id": pa.int64(), "timestamp": pa.int64()})
            for id, some, of in _groups(members[0].to_numpy(), row, list(by_id)):
                then = members[1].to_numpy()[some] / MICROSECONDS
                for place, call in by_id[id]:
                    since = now[of] - float(call.arguments[1])
                    yield place, of[since > then if call.function == "segment_before" else since <= then]

    def _of_caps(self, rows: _Rows) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yields the place of each column that is not all NULL, and its true rows."""
        if not self._known:
            return
        now = rows.numbers(self._known[0][1].columns[1])
        row, (type, id, ns, value, at) = rows.structs("frequency_caps", CAP)
        empty = np.bincount(row, minlength=len(now)) == 0
        known = rows.defined("frequency_caps") & (empty | ~np.isnan(now))
        for place, _ in self._known:
            yield place, known
        if not self._caps:
            return
        key = self._keys.of(type, ns, id.to_numpy())
        values, since = value.to_numpy() & HALF, at.to_numpy() / MICROSECONDS
        for wanted, some, of in _groups(key, row, self._keys.wanted):
            for place, call in self._keys.calls[wanted]:
                most, length = call.arguments[3] & HALF, float(call.arguments[4])
                free = most > values[some]
                if length:
                    free |= now[of] - since[some] > length
                yield place, of[~free]


def _groups(key: I64, row: Rows, wanted: list[int]) -> Iterator[tuple[int, Rows, Rows]]:
    """Yields wanted keys that are there, where each stands first in a row, and these rows."""
    order = np.argsort(key, kind="stable")
    key, of = key[order], row[order]
    first = np.append(True, (key[1:] != key[:-1]) | (of[1:] != of[:-1]))[: len(key)]
    order, key, of = order[first], key[first], of[first]
    asked = np.array(wanted, np.int64)
    begin, end = np.searchsorted(key, asked, "left"), np.searchsorted(key, asked, "right")
    for i in np.flatnonzero(end > begin).tolist():
        some = slice(begin[i], end[i])
        yield wanted[i], order[some], of[some]


class _CapKeys:
    """Types, name spaces and ids of caps, as one number for each."""

    def __init__(self, caps: Mapping[tuple[str, str, int], Calls]) -> None:
        self._types = {name: i for i, name in enumerate(dict.fromkeys(type for type, _, _ in caps))}
        self._spaces = {name: i for i, name in enumerate(dict.fromkeys(space for _, space, _ in caps))}
        self.calls = {
            (self._types[type] * len(self._spaces) + self._spaces[space] << 32) + id: calls
            for (type, space, id), calls in caps.items()
        }
        self.wanted = list(self.calls)

    def of(self, type: pa.Array, space: pa.Array, id: I64) -> I64:
        """Returns the keys of caps; -1 where no function asks for any such."""
        with refusing(EventError, "column 'frequency_caps' has text that is not UTF-8"):
            types, spaces = _numbers(type, self._types), _numbers(space, self._spaces)
        keys: I64 = (types * len(self._spaces) + spaces << 32) + (id & HALF)
        return np.where((types < 0) | (spaces < 0), -1, keys)


def _numbers(names: pa.Array, known: Mapping[str, int]) -> I64:
    """The number of each name, -1 of those that are not known."""
    encoded = names.dictionary_encode()
    of = np.array([known.get(name, -1) for name in encoded.dictionary.to_pylist()], np.int64)
    found: I64 = of[encoded.indices.to_numpy()] if len(of) else np.empty(0, np.int64)
    return found


class _Rows:
    """What functions read of a batch, each column once."""

    def __init__(self, batch: pa.RecordBatch, lenient: bool) -> None:
        self._batch = batch
        self._lenient = lenient
        self._numbers: dict[str, F64] = {}

    def numbers(self, name: str) -> F64:
        """A column of numbers, NaN where it is NULL."""
        found = self._numbers.get(name)
        if found is None:
            numbers = doubles_of(self._column(name), EventError, f"column {name!r}, which a function reads,")
            found = self._numbers[name] = contiguous(numbers.to_numpy(zero_copy_only=False))
        return found

    def _column(self, name: str) -> pa.Array:
        same = meant(self._batch.schema.names, [name])
        if not same and self._lenient:
            return pa.nulls(self._batch.num_rows)
        if len(same) != 1:
            said = f"there are {len(same)} columns" if same else "the events have no column"
            raise EventError(
                f"{said} {name!r}, which a function of the expressions reads: "
                f"{near(name, self._batch.schema.names, 'the batch')}"
            )
        return self._batch.column(same[0])

    def defined(self, name: str) -> NDArray[np.bool_]:
        """Which rows of a column are not NULL."""
        return np.asarray(self._column(name).is_valid().to_numpy(zero_copy_only=False), np.bool_)

    def structs(self, name: str, fields: Mapping[str, pa.DataType]) -> tuple[Rows, list[pa.Array]]:
        """The row of each struct in a column of lists, ascending, and their fields."""
        column, type = self._column(name), pa.large_list(pa.struct(fields))
        with refusing(
            EventError, f"column {name!r} is {column.type!s:.200}, a function of the expressions needs {type}"
        ):
            column = column.cast(type)
        size = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        values = column.flatten()
        members = values.flatten()
        if values.null_count or any(member.null_count for member in members):
            raise EventError(
                f"column {name!r} has NULL within a list, where a function of the expressions needs values"
            )
        return np.repeat(np.arange(len(size)), size), members
