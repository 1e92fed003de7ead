"""Special functions of events: for each row, the lists of arguments that make a function true.

``segment_within(seen, now, 12, 3600)`` has one of many lists of arguments for the same columns. So
a function of given columns is one attribute, of role CALL. Its entries in a row are the literals
(``given/special.py``) that hold for the row. ``CallRows`` finds them before a batch is read, and
they need no strings: a literal is known by its key.

A row does not test every list of arguments. Instead, the values of the row look up the arguments:
the circles around its place (``circles.py``), the segments and caps of its lists. Few rows have
reached a cap, so a cap has an entry if it is reached. The index for this is made once for the old
literals of a matcher, and once for the few recent ones.

Each item of a row's lists is looked up in the sorted arguments, so the lists need not be sorted. If
a function reads a NULL, the row has the empty literal. So NOT of a circle means having neither this
circle nor the empty literal, which is one predicate. An attribute for "is known", which holds for
most rows, took longer.
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
from colmatch.events.computed.failed import Doubts
from colmatch.events.paths import column_at
from colmatch.events.special.circles import circles_of, places_in
from colmatch.events.special.elements import ElementRows, conditions_of
from colmatch.events.special.pairs import find_pairs
from colmatch.events.vocabulary import Vocabulary, WordList
from colmatch.given.elements import EXISTS, ElementCall
from colmatch.given.incoming import doubles_of, plain, refusing
from colmatch.given.schema import Attributes, Role
from colmatch.given.special import BEFORE, CAP, CAP_FIELDS, CIRCLE, FORMS, SEGMENT_FIELDS, SPECIAL, WITHIN, Call
from colmatch.kernels.layout import F64, I32, I64, Literals
from colmatch.kernels.special import BEFORE as IS_BEFORE
from colmatch.kernels.special import REACHED, Circles, KeyArguments, RowStructs, find_held
from colmatch.kernels.special import WITHIN as IS_WITHIN

MICROSECONDS = 1e6  # in a second
HALF = (1 << 32) - 1  # ids and values of caps have 32 bits, without a sign

Pairs = tuple[I64, I64]  # rows, which ascend, and numbers of literals
_READS = "which a function of the expressions reads"
_NO_TEXTS = pa.nulls(0, pa.large_binary())
_NO_PAIRS: Pairs = (np.empty(0, np.int64), np.empty(0, np.int64))


class CallRows:
    """A finder of the literals of special functions that hold for the rows of a batch.

    Parameters
    ----------
    lenient : a missing column is NULL in every row; otherwise it is an error

    Attributes
    ----------
    attributes : ids of the functions, ascending
    doubts : id -> literals of the last batch that are in doubt, since a value in them fails
    """

    def __init__(self, attributes: Attributes, literals: Vocabulary | Literals, lenient: bool) -> None:
        self._lenient = lenient
        self._calls = [
            _CallOf(id, str(attribute.key), *_read_call(str(attribute.key)))
            for id, attribute in attributes.items()
            if attribute.role is Role.CALL
        ]
        self.attributes = [call.id for call in self._calls]
        self.doubts: dict[int, Doubts] = {}
        if self._calls:
            vocabulary = literals if isinstance(literals, Vocabulary) else Vocabulary.among(literals)
            vocabulary = vocabulary.of(len(attributes))
            self._parts = [part for part in (vocabulary.old, vocabulary.recent) if len(part)]

    def read(self, batch: pa.RecordBatch) -> tuple[I64, I32, I64]:
        """Returns the rows of each function and the keys of their literals: ranges, rows, keys.

        Raises EventError: a column of a function is missing, or of another type.
        """
        columns = _BatchColumns(batch, self._lenient)
        self.doubts = {}
        pairs = [self._pairs(columns, call) for call in self._calls]
        row, key = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
        return ranges_of([len(rows) for rows, _ in pairs]), row.astype(np.int32), key

    def _pairs(self, columns: _BatchColumns, call: _CallOf) -> Pairs:
        """Returns pairs of a row and the key of a literal that holds for it, by row."""
        rows, keys = [_NO_PAIRS[0]], [_NO_PAIRS[1]]
        of, doubts = call.elements, list[Doubts]()
        read = _ConditionRows(columns, of) if of is not None else _READERS[call.call.function](columns, call.call)
        for part in self._parts:
            arguments = _find_arguments(part, call)
            pairs = [read.true_of(arguments)]
            if of is not None and len(read.doubts.row):
                doubts.append(read.doubts._replace(number=_keys(part, call, read.doubts.number)))
            if arguments.unknown >= 0:
                unknown = np.flatnonzero(~read.known)
                pairs.append((unknown, np.full(len(unknown), arguments.unknown)))
            for row, literal in pairs:
                rows.append(row)
                keys.append(_keys(part, call, literal))
        if doubts:
            self.doubts[call.id] = Doubts.join(doubts)
        row, key = np.concatenate(rows), np.concatenate(keys)
        if sum(len(some) > 0 for some in rows) > 1:
            order = np.argsort(row, kind="stable")
            row, key = row[order], key[order]
        return row, key


class _CallOf(NamedTuple):
    """A function: the id and the key of its attribute, and the call."""

    id: int
    key: str
    call: Call
    elements: ElementCall | None  # the call, if it tests elements of lists


def _keys(part: WordList, call: _CallOf, literal: I64) -> I64:
    """Returns the keys of literals."""
    label, first = part.literals.label, part.literals.first
    # Without labels, the places of literals are their keys (``layout.Literals``)
    return label[literal] if len(label) else 2 * (literal - first[call.id]) + 1


def _read_call(key: str) -> tuple[Call, ElementCall | None]:
    call = Call.of(key)
    return call, ElementCall.of(call) if call.function == EXISTS else None


def _strings(literals: Literals) -> pa.Array:
    buffers = [None, pa.py_buffer(literals.offset), pa.py_buffer(literals.data)]
    return pa.Array.from_buffers(pa.large_binary(), len(literals.offset) - 1, buffers)


# Lists of arguments: the literals of one attribute
# --------------------------------------------------------------------------


class _ArgumentLists(NamedTuple):
    """The lists of arguments of one function, from one part of the literals.

    ``index`` finds them: it is circles, ``_KeyedArguments``, or conditions on elements.
    """

    literal: I64  # the number of each list of arguments among the literals
    unknown: int  # number of the empty literal, for rows with a NULL; -1 without it
    index: Any


class _KeyedArguments(NamedTuple):
    """Lists of arguments, by the key of the struct that a row's list must have."""

    wanted: KeyArguments
    types: pa.Array  # of caps, distinct: a key has the numbers of a type and a name space, and an id
    spaces: pa.Array


def _find_arguments(part: WordList, call: _CallOf) -> _ArgumentLists:
    """Returns the lists of arguments of a function, made once for all readers of the literals."""
    arguments = part.kept.get((call.id, call.key))
    if arguments is None:
        if call.elements is not None:
            arguments = _read_conditions(part.literals, call.id, call.elements)
        else:
            arguments = _read_asked(part.literals, call.id, call.call.function)
        part.kept[call.id, call.key] = arguments
    return arguments


def _read_conditions(literals: Literals, id: int, call: ElementCall) -> _ArgumentLists:
    begin, end = int(literals.first[id]), int(literals.first[id + 1])
    texts: list[bytes] = _strings(literals).slice(begin, end - begin).to_pylist()
    place, conditions = conditions_of(call, texts)
    return _ArgumentLists(begin + place, begin if texts and not texts[0] else -1, conditions)


def _read_asked(literals: Literals, id: int, function: str) -> _ArgumentLists:
    begin, end = int(literals.first[id]), int(literals.first[id + 1])
    offset = literals.offset[begin : end + 1]
    length, size = np.diff(offset), FORMS[function].size
    unknown = begin if end > begin and not length[0] else -1
    # a reused id may have an earlier attribute's literals, of other lengths
    fits = np.flatnonzero(length > size if SPECIAL[function].texts else length == size)
    # Unpack the arguments
    packed = literals.data[offset[fits][:, None] + np.arange(size)]
    if function == CIRCLE:
        circle = packed.view("<f8").astype(np.float64)
        finite = np.isfinite(circle).all(axis=1)
        latitude, longitude, radius = (contiguous(column) for column in circle[finite].T)
        return _ArgumentLists(begin + fits[finite], unknown, circles_of(latitude, longitude, radius))
    numbers = packed.view("<i8").astype(np.int64)
    key, most, seconds = numbers[:, 0], numbers[:, 1] & HALF, numbers[:, -1].astype(np.float64)
    types, spaces = _NO_TEXTS, _NO_TEXTS
    # Number the types and name spaces of caps
    if SPECIAL[function].texts:
        tail = ranges_of(length[fits] - size)
        place = members(offset[fits] + size, tail)
        tails = _strings(literals._replace(offset=tail, data=literals.data[place])).dictionary_encode()
        type, space = _cut(tails.dictionary)
        types, spaces = type.unique(), space.unique()
        number = _space_of(type, space, types, spaces)
        key = (number[tails.indices.to_numpy()] << 32) + (key & HALF)
    # Sort by key
    order = np.argsort(key, kind="stable")
    distinct, first = np.unique(key[order], return_index=True)
    by_key = freeze(KeyArguments(distinct, np.append(first, len(key)), most[order], seconds[order]))
    return _ArgumentLists(begin + fits[order], unknown, _KeyedArguments(by_key, types, spaces))


def _cut(tails: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Cuts distinct types with their name spaces at the zero between them."""
    words = [tail.partition(b"\0") for tail in tails.to_pylist()]
    return tuple([pa.array([word[i] for word in words], pa.large_binary()) for i in (0, 2)])


def _space_of(type: pa.Array, space: pa.Array, types: pa.Array, spaces: pa.Array) -> I64:
    """Returns the number of each type with its name space; -1 if no argument has them."""
    number = [
        pc.index_in(one, all).fill_null(-1).to_numpy().astype(np.int64) for one, all in ((type, types), (space, spaces))
    ]
    return np.where(np.minimum(*number) < 0, -1, number[0] * len(spaces) + number[1])


# Rows and the literals that hold for them
# --------------------------------------------------------------------------


class _RowCircles:
    """The places of rows, which are looked up among circles."""

    def __init__(self, rows: _BatchColumns, call: Call) -> None:
        self._latitude, self._longitude = (rows.numbers(path) for path in call.columns)
        self.known = ~(np.isnan(self._latitude) | np.isnan(self._longitude))

    def true_of(self, asked: _ArgumentLists) -> Pairs:
        circles: Circles = asked.index
        if not len(circles.latitude):
            return _NO_PAIRS
        row, circle = places_in(circles, self._latitude, self._longitude)
        return row, asked.literal[circle]


class _Segments:
    """The segments of rows and their times, which are looked up by id."""

    def __init__(self, rows: _BatchColumns, call: Call) -> None:
        now = rows.numbers(call.columns[1])
        row, (id, timestamp) = rows.structs(call.columns[0], SEGMENT_FIELDS)
        key, then = id.to_numpy(), timestamp.to_numpy() / MICROSECONDS
        self._held = freeze(RowStructs(row, key, key, then, now))
        self._test = IS_BEFORE if call.function == BEFORE else IS_WITHIN
        self.known = rows.find_defined(call.columns[0]) & ~np.isnan(now)

    def true_of(self, asked: _ArgumentLists) -> Pairs:
        return _match_held(asked, self._held, self._test)


class _Caps:
    """The caps of rows, which are looked up by id, type and name space."""

    def __init__(self, rows: _BatchColumns, call: Call) -> None:
        now = rows.numbers(call.columns[1])
        row, (type, id, space, value, timestamp) = rows.structs(call.columns[0], CAP_FIELDS)
        name = ".".join(call.columns[0])
        with refusing(EventError, f"column {name!r} has text that is not UTF-8"):
            for texts in (type, space):
                texts.validate(full=True)
        self._type, self._space = type.cast(pa.large_binary()), space.cast(pa.large_binary())
        id, value = id.to_numpy() & HALF, value.to_numpy() & HALF
        self._held = RowStructs(row, id, contiguous(value), contiguous(timestamp.to_numpy() / MICROSECONDS), now)
        empty = np.bincount(row, minlength=rows.count) == 0
        self.known = rows.find_defined(call.columns[0]) & (empty | ~np.isnan(now))

    def true_of(self, asked: _ArgumentLists) -> Pairs:
        caps: _KeyedArguments = asked.index
        space = _space_of(self._type, self._space, caps.types, caps.spaces)
        key = np.where(space < 0, -1, (space << 32) + self._held.key)
        return _match_held(asked, freeze(self._held._replace(key=key)), REACHED)


class _ConditionRows(ElementRows):
    """The elements of rows, which are looked up among conditions."""

    doubts: Doubts  # literals that are in doubt, of the last ``true_of``

    def __init__(self, rows: _BatchColumns, call: ElementCall) -> None:
        super().__init__(call, rows.batch, rows.column)

    def true_of(self, asked: _ArgumentLists) -> Pairs:
        if asked.index is None:
            self.doubts = Doubts.join([])
            return _NO_PAIRS
        row, condition, doubts = self.find(asked.index)
        self.doubts = doubts._replace(number=asked.literal[doubts.number])
        return row, asked.literal[condition]


def _match_held(asked: _ArgumentLists, held: RowStructs, test: int) -> Pairs:
    by_key: KeyArguments = asked.index.wanted
    seen = np.full(len(by_key.key), -1)
    row, which = find_pairs(len(held.row), lambda start, *room: find_held(by_key, held, test, start, seen, *room))
    return row, asked.literal[which]


_READERS: Mapping[str, Any] = {CIRCLE: _RowCircles, WITHIN: _Segments, BEFORE: _Segments, CAP: _Caps}


class _BatchColumns:
    """The columns of a batch that functions read, each read once."""

    def __init__(self, batch: pa.RecordBatch, lenient: bool) -> None:
        self.count = batch.num_rows
        self.batch = batch
        self._lenient = lenient
        self._numbers: dict[tuple[str, ...], F64] = {}
        self._structs: dict[tuple[str, ...], tuple[I64, list[pa.Array]]] = {}

    def column(self, path: tuple[str, ...]) -> pa.Array | None:
        """Returns a column or a field of a struct as it is, None if it is NULL in every row.

        Raises EventError: the column is missing, and missing columns are errors.
        """
        return column_at(self.batch, path, self._lenient, _READS)

    def _column(self, path: tuple[str, ...]) -> pa.Array:
        column = self.column(path)
        return pa.nulls(self.count) if column is None else plain(column)

    def numbers(self, path: tuple[str, ...]) -> F64:
        """Returns a column of numbers, or of times in seconds: (rows) float64, NaN for NULL."""
        doubles = self._numbers.get(path)
        if doubles is None:
            column, name = self._column(path), ".".join(path)
            scale = 1.0
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
                scale = MICROSECONDS
            numbers = doubles_of(column, EventError, f"column {name!r}, which a function reads,")
            doubles = self._numbers[path] = contiguous(numbers.to_numpy(zero_copy_only=False) / scale)
        return doubles

    def find_defined(self, path: tuple[str, ...]) -> NDArray[np.bool_]:
        """Returns whether each row of a column is not NULL."""
        return np.asarray(self._column(path).is_valid().to_numpy(zero_copy_only=False), np.bool_)

    def structs(self, path: tuple[str, ...], fields: Mapping[str, pa.DataType]) -> tuple[I64, list[pa.Array]]:
        """Returns the row of each struct in a column of lists, ascending, and their fields."""
        parts = self._structs.get(path)
        if parts is None:
            parts = self._structs[path] = _structs(self._column(path), ".".join(path), fields)
        return parts


def _structs(column: pa.Array, name: str, fields: Mapping[str, pa.DataType]) -> tuple[I64, list[pa.Array]]:
    type, inner = pa.large_list(pa.struct(fields)), getattr(column.type, "value_type", None)
    with refusing(EventError, f"column {name!r} is {column.type!s:.200}, a function of the expressions needs {type}"):
        column = column.cast(type)
    size = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    values = column.flatten()
    structs = values.flatten()
    row = np.repeat(np.arange(len(size)), size)
    nulls = [int(part.is_null().index(True).as_py()) for part in (values, *structs) if part.null_count]
    if nulls:
        had = {field.name for field in inner} if inner is not None and pa.types.is_struct(inner) else set(fields)
        lacks = "".join(f"; its structs lack {name!r}" for name in fields if name not in had)
        raise EventError(
            f"it has NULL within a list, where a function of the expressions needs values{lacks}",
            column=f"column {name!r}",
            event=int(row[min(nulls)]),
        )
    return row, structs


def clocks_of(attributes: Iterable[Any]) -> list[str]:
    """Returns the clock columns of special functions."""
    calls = (Call.of(str(attribute.key)) for attribute in attributes if attribute.role is Role.CALL)
    return list(dict.fromkeys(call.clock for call in calls if call.clock is not None))
