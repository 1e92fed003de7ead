"""Events with attributes that may be ranges: two columns hold the ends of a range.

The lower ends are read with all other attributes. A second ``Reader`` reads the upper ends, and a
kernel joins both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import freeze_view
from colmatch.errors import EventError, suggest_names
from colmatch.events.computed.failed import Failures
from colmatch.events.needs import Path
from colmatch.events.reader import Reader
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.schema import UNITS, Attributes, Family, value_type
from colmatch.kernels import _forks
from colmatch.kernels.ends import join_ends
from colmatch.kernels.layout import I64, KEY_MAX, KEY_MIN, U8, Batch

KEPT = 8  # pairs of attributes that are remembered for one matcher


@dataclass(frozen=True, slots=True)
class Range:
    """An attribute that is a range in each event, and the names of the columns of its ends.

    A dot in such a name leads to the field of a struct. ``type`` is the type of the attribute in
    the schema. A range without a bound ends with the least or greatest value of this type.
    """

    path: Path
    type: pa.DataType
    low: str
    high: str

    @property
    def name(self) -> str:
        """Returns the attribute as an expression writes it."""
        return ".".join(self.path)


Ranges = tuple[Range, ...]


def used_ranges(attributes: Attributes, ranges: Ranges, patterns: bool = False) -> dict[int, Range]:
    """Returns the ranges that expressions use, by the id of the attribute, or of a text pattern."""
    by_path = {range.path: range for range in ranges}
    return {
        id: by_path[attribute.path]
        for id, attribute in attributes.items()
        if attribute.path in by_path and (attribute.pattern is not None) == patterns
    }


def columns_of(attributes: Attributes, ranges: Ranges) -> list[str]:
    """Returns the top-level columns that events with these ranges need."""
    by_path = {range.path for range in ranges}
    names = [path[0] for attribute in attributes for path in attribute.paths if path not in by_path]
    for range in used_ranges(attributes, ranges).values():
        names += [range.low.split(".")[0], range.high.split(".")[0]]
    return list(dict.fromkeys(names))


class RangeReader:
    """A reader of record batches for the attributes of one matcher, with ranges among them.

    One thread at a time. The next call of ``read`` overwrites the last result.

    Parameters
    ----------
    lenient : a missing column is NULL in every row, also for an end; otherwise it is an error

    Attributes
    ----------
    failed : as in ``Reader``
    """

    def __init__(self, attributes: Attributes, literals: Vocabulary, lenient: bool, ranges: Ranges) -> None:
        self._attributes, self._literals, self._lenient = attributes, literals, lenient
        self._ranges = used_ranges(attributes, ranges)
        self._schema: pa.Schema | None = None
        self._paths: dict[int, tuple[Path, Path]] = {}
        self._readers: tuple[Reader, Reader] | None = None
        self._is_range = np.zeros(len(attributes), np.uint8)
        self._least, self._most = np.zeros(len(attributes), np.int64), np.zeros(len(attributes), np.int64)
        self._is_range[list(self._ranges)] = 1
        if self._ranges:
            _write_extents(attributes, literals, self._ranges, self._least, self._most)
        self._col = np.zeros(len(attributes) + 1, np.int64)
        self._row, self._key, self._high_key = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
        self.failed = Failures()

    @property
    def is_range(self) -> U8:
        """Returns whether each attribute is a range: (A)."""
        return freeze_view(self._is_range)

    def read(self, batch: pa.RecordBatch) -> tuple[Batch, I64]:
        """Reads the entries of every attribute, with the lower ends of ranges.

        Returns the entries, and the upper end of each, which is the same for an attribute without
        ranges.

        Raises EventError: a column is missing or does not fit the matcher's schema, or a range
        begins above its end.
        """
        # Read both ends
        low, high = self._bound(batch.schema)
        try:
            lower, upper = low.read(batch), high.read(batch)
        except EventError as error:
            self._raise_of_end(error)
            raise
        self.failed = low.failed  # no end of a range is computed
        # Join the ends
        entries = int(lower.col[-1] + upper.col[-1])
        if len(self._row) < entries:
            room = entries * 5 // 4
            self._row, self._key, self._high_key = np.empty(room, np.int32), *np.empty((2, room), np.int64)
        wrong = np.zeros(2, np.int64)
        extents = freeze_view(self._is_range), freeze_view(self._least), freeze_view(self._most)
        if not join_ends(lower, upper, *extents, self._col, self._row, self._key, self._high_key, wrong):
            range, row = self._ranges[int(wrong[0])], int(wrong[1])
            raise EventError(
                f"it is above column {range.high!r}, and {range.name!r} goes from the lower to the higher: "
                "exchange them, or put NULL where there is no bound",
                column=f"column {range.low!r}",
                event=row,
            )
        # Correct unbounded ranges that begin beyond the last value
        end = int(self._col[-1])
        beyond = np.flatnonzero(self._key[:end] > self._high_key[:end])
        if len(beyond):  # an end from a column of a wider type, and no bound: a range of one value
            attr = np.searchsorted(self._col, beyond, "right") - 1
            begin, last = self._key[beyond], self._high_key[beyond]
            self._key[beyond] = self._high_key[beyond] = np.where(last == self._most[attr], begin, last)
        joined = Batch(lower.rows, freeze_view(self._col), freeze_view(self._row[:end]), freeze_view(self._key[:end]))
        return joined, freeze_view(self._high_key[:end])

    def _raise_of_end(self, error: EventError) -> None:
        """Raises a fuller error if an error is about the type of an end."""
        for range in self._ranges.values():
            for name in (range.low, range.high):
                if str(error).startswith((f"column {name!r} is ", f"column {name!r}, ")):
                    message = f"{error.message} (it is an end of the range {range.name!r}: {range.type})"
                    raise EventError(message, column=error.column, event=error.event) from None

    def _bound(self, schema: pa.Schema) -> tuple[Reader, Reader]:
        if self._readers is not None and (schema is self._schema or schema.equals(self._schema)):
            return self._readers
        if not self._lenient:
            for range in self._ranges.values():
                _check_ends(schema, range)
        paths = {id: (tuple(range.low.split(".")), tuple(range.high.split("."))) for id, range in self._ranges.items()}
        if self._readers is None or paths != self._paths:
            lower, upper = _attributes_of(self._attributes, paths)
            self._readers = Reader(lower, self._literals, self._lenient), Reader(upper, self._literals, self._lenient)
            self._paths = paths
        self._schema = schema
        return self._readers


def _check_ends(schema: pa.Schema, range: Range) -> None:
    """Checks that the events have the columns of a range's ends."""
    folded = {column.lower() for column in schema.names}
    for name in (range.low.split(".")[0], range.high.split(".")[0]):
        if name.lower() not in folded:
            hint = suggest_names(name, schema.names, "the batch")
            raise EventError(
                f"the events have no column {name!r}, which is to be an end of {range.name!r}: "
                f"{hint}{'' if hint.endswith('?') else ';'} "
                "Options(missing_columns='null') would take it to be NULL in every row"
            )


_deriving = _forks.lock()
_derived: WeakKeyDictionary[Attributes, dict[tuple[tuple[int, tuple[Path, Path]], ...], tuple[Attributes, Attributes]]]
_derived = WeakKeyDictionary()


def _attributes_of(attributes: Attributes, paths: dict[int, tuple[Path, Path]]) -> tuple[Attributes, Attributes]:
    """Returns the attributes with the lower ends of ranges, and with the upper ends alone.

    They are made once for all readers of a matcher's events, since text patterns are indexed once
    for each ``Attributes`` object.
    """
    key = tuple(sorted(paths.items()))
    with _deriving:
        pairs = _derived.setdefault(attributes, {})
        if key not in pairs:
            if len(pairs) >= KEPT:
                pairs.clear()
            ranges = {attributes[id].path for id in paths}
            low, high = [], []
            for id, attribute in attributes.items():
                spare = attribute.freed()
                own = spare if attribute.pattern is not None and attribute.path in ranges else attribute
                low.append(replace(attribute, path=paths[id][0]) if id in paths else own)
                high.append(replace(attribute, path=paths[id][1]) if id in paths else spare)
            pairs[key] = Attributes(low), Attributes(high)
        return pairs[key]


def _write_extents(
    attributes: Attributes, literals: Vocabulary, ranges: dict[int, Range], least: I64, most: I64
) -> None:
    """Writes the keys of the least and the greatest value of each range, by attribute.

    The values are read like an event, since the key of a string depends on the literals.
    """
    names = {id: str(id) for id in ranges}
    members = [attribute.freed() for attribute in attributes]
    for id, name in names.items():
        members[id] = replace(attributes[id], path=(name,))
    ends = [_extremes(range.type) for range in ranges.values()]
    batch = Reader(Attributes(members), literals).read(pa.RecordBatch.from_arrays(ends, names=list(names.values())))
    for id in ranges:
        begin, end = batch.col[id : id + 2]
        least[id] = batch.key[begin]
        most[id] = batch.key[begin + 1] if end - begin == 2 else KEY_MAX


def _extremes(type: pa.DataType) -> pa.Array:
    """Returns the least and the greatest value of a type, NULL if none is the greatest."""
    types = pa.types
    while types.is_dictionary(type) or types.is_run_end_encoded(type):
        type = type.value_type
    if types.is_boolean(type):
        return pa.array([False, True])
    if types.is_floating(type):
        return pa.array([-np.inf, np.nan])
    if types.is_decimal(type):
        ends = [Decimal((sign, (9,) * min(type.precision, 38), -type.scale)) for sign in (1, 0)]
        return pa.array(ends, type)
    if types.is_integer(type):
        of = np.iinfo(type.to_pandas_dtype())
        return pa.array([of.min, of.max], type)
    if types.is_fixed_size_binary(type):
        return pa.array([b"\x00" * type.byte_width, b"\xff" * type.byte_width])
    if types.is_date(type):
        return pa.array([-(2**31), 2**31 - 1], pa.int32()).view(pa.date32())
    if types.is_timestamp(type):
        return pa.array([KEY_MIN, KEY_MAX], pa.int64()).view(type)
    if types.is_time(type):
        width = pa.int32() if types.is_time32(type) else pa.int64()
        return pa.array([0, 86_400 * UNITS[type.unit] - 1], width).view(type)
    value = value_type(type)
    assert value is not None
    return pa.array(["", None] if value.family is Family.STRING else [b"", None])
