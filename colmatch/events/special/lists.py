"""Special functions over the events: for each row the lists of arguments of which they are true.

``segment_within(seen, now, 12, 3600)`` is one of many lists of arguments that are asked of the
same columns. So a function of given columns is one attribute, of role CALL. Its entries in a row
are the literals (``given/special.py``) that are true of it. ``CallColumns`` adds that column of
lists before a batch is read. Only what is true has a place in it.

A row is not asked every list of arguments, but the arguments are asked for what the row has: the
circles around its place (``circles.py``), the segments and caps of its lists. Few rows have reached
a cap, so a cap has an entry where it is reached. What is found quickest is made once for the old
literals of a matcher and once for the recent ones, which are few.

The sorted arguments that are asked for are searched for each item of a row's lists, so the lists
need not be sorted. Where something that a function reads is NULL, the row has the empty literal. So
NOT of a circle is having neither this circle nor the empty literal, which is one predicate. An
attribute for "is known", which is true of most rows, took longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.frozen import contiguous, freeze
from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import EventError
from colmatch.events.paths import column_at
from colmatch.events.special.circles import circles_of, places_in
from colmatch.events.special.pairs import found_pairs
from colmatch.events.vocabulary import Vocabulary, WordList
from colmatch.given.incoming import doubles_of, plain, refusing
from colmatch.given.schema import Attributes, Role
from colmatch.given.special import BEFORE, CAP, CAP_FIELDS, CIRCLE, FORMS, SEGMENT_FIELDS, SPECIAL, WITHIN, Call
from colmatch.kernels.layout import F64, I64, Literals
from colmatch.kernels.special import BEFORE as IS_BEFORE
from colmatch.kernels.special import REACHED, Circles, Held, Wanted, find_held
from colmatch.kernels.special import WITHIN as IS_WITHIN

MICROSECONDS = 1e6  # in a second
HALF = (1 << 32) - 1  # ids and values of caps have 32 bits, without a sign

Pairs = tuple[I64, I64]  # rows, which ascend, and numbers of literals
_READS = "which a function of the expressions reads"
_NO_TEXTS = pa.nulls(0, pa.large_binary())
_NO_PAIRS: Pairs = (np.empty(0, np.int64), np.empty(0, np.int64))


class CallColumns:
    """Adds the columns of all special functions that the expressions use to batches.

    Parameters
    ----------
    lenient : a column that is not there is NULL in every row; else it is an error
    """

    def __init__(self, attributes: Attributes, literals: Vocabulary | Literals, lenient: bool) -> None:
        self._lenient = lenient
        self._calls = [
            (id, attribute.path[0], Call.of(str(attribute.key)))
            for id, attribute in enumerate(attributes)
            if attribute.role is Role.CALL
        ]
        if self._calls:
            known = literals if isinstance(literals, Vocabulary) else Vocabulary.among(literals)
            known = known.of(len(attributes))
            self._parts = [part for part in (known.old, known.recent) if len(part)]

    def __bool__(self) -> bool:
        return bool(self._calls)

    def added_to(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns a batch with the columns of the functions behind its own.

        Raises EventError: a column that they read is not there, or of another type.
        """
        rows = _Rows(batch, self._lenient)
        arrays = [*batch.columns, *(self._column(rows, id, call) for id, _, call in self._calls)]
        return pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *(name for _, name, _ in self._calls)])

    def _column(self, rows: _Rows, id: int, call: Call) -> pa.Array:
        """For each row a list of the literals that are true of it."""
        found: list[I64] = []
        texts: list[pa.Array] = []
        read = _READERS[call.function](rows, call)
        for part in self._parts:
            asked = _asked_of(part, id, call.function)
            pairs = [read.true_of(asked)]
            if asked.unknown >= 0:
                unknown = np.flatnonzero(~read.known)
                pairs.append((unknown, np.full(len(unknown), asked.unknown)))
            for row, literal in pairs:
                found.append(row)
                texts.append(_strings(part.literals).take(pa.array(literal)))
        row, text = np.concatenate([_NO_PAIRS[0], *found]), pa.chunked_array(texts, pa.large_binary())
        text = text.combine_chunks() if text.num_chunks != 1 else text.chunk(0)
        if sum(len(some) > 0 for some in found) > 1:
            order = np.argsort(row, kind="stable")
            text = text.take(pa.array(order))
        offset = ranges_of(np.bincount(row, minlength=rows.count))
        return pa.LargeListArray.from_arrays(pa.array(offset), text)


def _strings(literals: Literals) -> pa.Array:
    buffers = [None, pa.py_buffer(literals.offset), pa.py_buffer(literals.data)]
    return pa.Array.from_buffers(pa.large_binary(), len(literals.offset) - 1, buffers)


# What is asked: the literals of one attribute
# --------------------------------------------------------------------------


class _Asked(NamedTuple):
    """The lists of arguments that are asked of one function, from one part of the literals.

    ``index`` is what finds them: circles, or what ``_Keyed`` has.
    """

    literal: I64  # the number of each list of arguments among the literals
    unknown: int  # that of the literal of rows that are not known, -1 if nobody asks
    index: Any


class _Keyed(NamedTuple):
    """Lists of arguments by what a row must have in its list of structs."""

    wanted: Wanted
    types: pa.Array  # of caps, distinct: a key is the number of a type, that of a name space, and an id
    spaces: pa.Array


def _asked_of(part: WordList, id: int, function: str) -> _Asked:
    """Returns what is asked of a function; made once for all that read events with these
    literals.
    """
    found = part.kept.get((id, function))
    if found is None:
        found = part.kept[id, function] = _read_asked(part.literals, id, function)
    return found


def _read_asked(literals: Literals, id: int, function: str) -> _Asked:
    begin, end = int(literals.first[id]), int(literals.first[id + 1])
    offset = literals.offset[begin : end + 1]
    length, size = np.diff(offset), FORMS[function].size
    unknown = begin if end > begin and not length[0] else -1
    # an id that has been another attribute's may have literals of other lengths
    fits = np.flatnonzero(length > size if SPECIAL[function].texts else length == size)
    packed = literals.data[offset[fits][:, None] + np.arange(size)]
    if function == CIRCLE:
        circle = packed.view("<f8").astype(np.float64)
        finite = np.isfinite(circle).all(axis=1)
        latitude, longitude, radius = (contiguous(column) for column in circle[finite].T)
        return _Asked(begin + fits[finite], unknown, circles_of(latitude, longitude, radius))
    numbers = packed.view("<i8").astype(np.int64)
    key, most, seconds = numbers[:, 0], numbers[:, 1] & HALF, numbers[:, -1].astype(np.float64)
    types, spaces = _NO_TEXTS, _NO_TEXTS
    if SPECIAL[function].texts:
        tail = ranges_of(length[fits] - size)
        place = members(offset[fits] + size, tail)
        tails = _strings(literals._replace(offset=tail, data=literals.data[place])).dictionary_encode()
        type, space = _cut(tails.dictionary)
        types, spaces = type.unique(), space.unique()
        number = _space_of(type, space, types, spaces)
        key = (number[tails.indices.to_numpy()] << 32) + (key & HALF)
    order = np.argsort(key, kind="stable")
    distinct, first = np.unique(key[order], return_index=True)
    wanted = freeze(Wanted(distinct, np.append(first, len(key)), most[order], seconds[order]))
    return _Asked(begin + fits[order], unknown, _Keyed(wanted, types, spaces))


def _cut(tails: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Cuts distinct types with their name spaces at the zero between them."""
    words = [tail.partition(b"\0") for tail in tails.to_pylist()]
    return tuple([pa.array([word[i] for word in words], pa.large_binary()) for i in (0, 2)])


def _space_of(type: pa.Array, space: pa.Array, types: pa.Array, spaces: pa.Array) -> I64:
    """Returns the number of each type with its name space; -1 where nobody asks for it."""
    number = [
        pc.index_in(one, all).fill_null(-1).to_numpy().astype(np.int64) for one, all in ((type, types), (space, spaces))
    ]
    return np.where(np.minimum(*number) < 0, -1, number[0] * len(spaces) + number[1])


# What rows answer
# --------------------------------------------------------------------------


class _Places:
    """Rows that have a place: in which circles it is."""

    def __init__(self, rows: _Rows, call: Call) -> None:
        self._latitude, self._longitude = (rows.numbers(path) for path in call.columns)
        self.known = ~(np.isnan(self._latitude) | np.isnan(self._longitude))

    def true_of(self, asked: _Asked) -> Pairs:
        circles: Circles = asked.index
        if not len(circles.latitude):
            return _NO_PAIRS
        row, circle = places_in(circles, self._latitude, self._longitude)
        return row, asked.literal[circle]


class _Segments:
    """Rows that have a list of segments: since when they were in those that are asked for."""

    def __init__(self, rows: _Rows, call: Call) -> None:
        now = rows.numbers(call.columns[1])
        row, (id, timestamp) = rows.structs(call.columns[0], SEGMENT_FIELDS)
        key, then = id.to_numpy(), timestamp.to_numpy() / MICROSECONDS
        self._held = freeze(Held(row, key, key, then, now))
        self._test = IS_BEFORE if call.function == BEFORE else IS_WITHIN
        self.known = rows.defined(call.columns[0]) & ~np.isnan(now)

    def true_of(self, asked: _Asked) -> Pairs:
        return _found(asked, self._held, self._test)


class _Caps:
    """Rows that have a list of caps: those that are reached."""

    def __init__(self, rows: _Rows, call: Call) -> None:
        now = rows.numbers(call.columns[1])
        row, (type, id, space, value, timestamp) = rows.structs(call.columns[0], CAP_FIELDS)
        name = ".".join(call.columns[0])
        with refusing(EventError, f"column {name!r} has text that is not UTF-8"):
            for texts in (type, space):
                texts.validate(full=True)
        self._type, self._space = type.cast(pa.large_binary()), space.cast(pa.large_binary())
        id, value = id.to_numpy() & HALF, value.to_numpy() & HALF
        self._held = Held(row, id, contiguous(value), contiguous(timestamp.to_numpy() / MICROSECONDS), now)
        empty = np.bincount(row, minlength=rows.count) == 0
        self.known = rows.defined(call.columns[0]) & (empty | ~np.isnan(now))

    def true_of(self, asked: _Asked) -> Pairs:
        caps: _Keyed = asked.index
        space = _space_of(self._type, self._space, caps.types, caps.spaces)
        key = np.where(space < 0, -1, (space << 32) + self._held.key)
        return _found(asked, freeze(self._held._replace(key=key)), REACHED)


def _found(asked: _Asked, held: Held, test: int) -> Pairs:
    wanted: Wanted = asked.index.wanted
    seen = np.full(len(wanted.key), -1)
    row, which = found_pairs(len(held.row), lambda start, *room: find_held(wanted, held, test, start, seen, *room))
    return row, asked.literal[which]


_READERS: Mapping[str, Any] = {CIRCLE: _Places, WITHIN: _Segments, BEFORE: _Segments, CAP: _Caps}


class _Rows:
    """What functions read of a batch, each column once."""

    def __init__(self, batch: pa.RecordBatch, lenient: bool) -> None:
        self.count = batch.num_rows
        self._batch = batch
        self._lenient = lenient
        self._numbers: dict[tuple[str, ...], F64] = {}
        self._structs: dict[tuple[str, ...], tuple[I64, list[pa.Array]]] = {}

    def _column(self, path: tuple[str, ...]) -> pa.Array:
        column = column_at(self._batch, path, self._lenient, _READS)
        return pa.nulls(self.count) if column is None else plain(column)

    def numbers(self, path: tuple[str, ...]) -> F64:
        """A column of numbers, or of times in seconds: (rows) float64, NaN where it is NULL."""
        found = self._numbers.get(path)
        if found is None:
            column, name = self._column(path), ".".join(path)
            scale = 1.0
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
                scale = MICROSECONDS
            numbers = doubles_of(column, EventError, f"column {name!r}, which a function reads,")
            found = self._numbers[path] = contiguous(numbers.to_numpy(zero_copy_only=False) / scale)
        return found

    def defined(self, path: tuple[str, ...]) -> NDArray[np.bool_]:
        """Returns which rows of a column are not NULL."""
        return np.asarray(self._column(path).is_valid().to_numpy(zero_copy_only=False), np.bool_)

    def structs(self, path: tuple[str, ...], fields: Mapping[str, pa.DataType]) -> tuple[I64, list[pa.Array]]:
        """Returns the row of each struct in a column of lists, ascending, and their fields."""
        found = self._structs.get(path)
        if found is None:
            found = self._structs[path] = _structs(self._column(path), ".".join(path), fields)
        return found


def _structs(column: pa.Array, name: str, fields: Mapping[str, pa.DataType]) -> tuple[I64, list[pa.Array]]:
    type, given = pa.large_list(pa.struct(fields)), getattr(column.type, "value_type", None)
    with refusing(EventError, f"column {name!r} is {column.type!s:.200}, a function of the expressions needs {type}"):
        column = column.cast(type)
    size = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    values = column.flatten()
    structs = values.flatten()
    row = np.repeat(np.arange(len(size)), size)
    nulls = [int(part.is_null().index(True).as_py()) for part in (values, *structs) if part.null_count]
    if nulls:
        had = {field.name for field in given} if given is not None and pa.types.is_struct(given) else set(fields)
        lacks = "".join(f"; its structs lack {name!r}" for name in fields if name not in had)
        raise EventError(
            f"it has NULL within a list, where a function of the expressions needs values{lacks}",
            column=f"column {name!r}",
            event=int(row[min(nulls)]),
        )
    return row, structs


def clocks_of(attributes: Iterable[Any]) -> list[str]:
    """Returns the columns that special functions have for clocks."""
    calls = (Call.of(str(attribute.key)) for attribute in attributes if attribute.role is Role.CALL)
    return list(dict.fromkeys(call.clock for call in calls if call.clock is not None))
