"""Events in which an attribute may be a range: two columns hold its ends.

The lower ends are read in the place of the attribute, with all others; the upper ends by a
``Reader`` of their own; a kernel puts them beside each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import frozen
from colmatch.errors import EventError, near
from colmatch.events.computed.failed import Failed
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

    A dot in such a name leads to the field of a struct. ``type`` is that of the attribute, as the
    schema has it: where a range has no bound, it ends with the last value of this type.
    """

    path: Path
    type: pa.DataType
    low: str
    high: str

    @property
    def name(self) -> str:
        """The attribute as an expression writes it."""
        return ".".join(self.path)


Ranges = tuple[Range, ...]


def used_ranges(attributes: Attributes, ranges: Ranges, patterns: bool = False) -> dict[int, Range]:
    """Returns the ranges that expressions use, by the id of the attribute, or of a text pattern."""
    by_path = {range.path: range for range in ranges}
    return {
        id: by_path[attribute.path]
        for id, attribute in enumerate(attributes)
        if attribute.path in by_path and (attribute.pattern is not None) == patterns
    }


def columns_of(attributes: Attributes, ranges: Ranges) -> list[str]:
    """Returns the top-level columns that events need in which attributes are ranges."""
    by_path = {range.path for range in ranges}
    names = [path[0] for attribute in attributes for path in attribute.paths if path not in by_path]
    for range in used_ranges(attributes, ranges).values():
        names += [range.low.split(".")[0], range.high.split(".")[0]]
    return list(dict.fromkeys(names))


class RangeReader:
    """Reads record batches for the attributes of one matcher, some of which are ranges.

    One thread at a time. What ``read`` returns is valid until the next call.

    Parameters
    ----------
    lenient : a column that is not there is NULL in every row, that of an end as well; else it is an
        error

    Attributes
    ----------
    failed : as that of ``Reader``
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
        self.failed: Mapping[str, Failed] = {}

    @property
    def is_range(self) -> U8:
        """Returns whether each attribute is a range: (A)."""
        return frozen(self._is_range)

    def read(self, batch: pa.RecordBatch) -> tuple[Batch, I64]:
        """Reads the entries of every attribute, of ranges the lower ends.

        Returns these, and the upper end of each; it is the same where an attribute is no range.

        Raises EventError: a column is not there or does not fit the schema that the matcher was
        built with, or a range begins above its end.
        """
        low, high = self._bound(batch.schema)
        try:
            lower, upper = low.read(batch), high.read(batch)
        except EventError as error:
            self._raise_of_end(error)
            raise
        self.failed = low.failed  # no end of a range is computed
        entries = int(lower.col[-1] + upper.col[-1])
        if len(self._row) < entries:
            room = entries * 5 // 4
            self._row, self._key, self._high_key = np.empty(room, np.int32), *np.empty((2, room), np.int64)
        wrong = np.zeros(2, np.int64)
        known = frozen(self._is_range), frozen(self._least), frozen(self._most)
        if not join_ends(lower, upper, *known, self._col, self._row, self._key, self._high_key, wrong):
            range, row = self._ranges[int(wrong[0])], int(wrong[1])
            raise EventError(
                f"it is above column {range.high!r}, and {range.name!r} goes from the lower to the higher: "
                "exchange them, or put NULL where there is no bound",
                column=f"column {range.low!r}",
                event=row,
            )
        end = int(self._col[-1])
        beyond = np.flatnonzero(self._key[:end] > self._high_key[:end])
        if len(beyond):  # an end from a column of a wider type, and no bound: a range of one value
            attr = np.searchsorted(self._col, beyond, "right") - 1
            begin, last = self._key[beyond], self._high_key[beyond]
            self._key[beyond] = self._high_key[beyond] = np.where(last == self._most[attr], begin, last)
        found = Batch(lower.rows, frozen(self._col), frozen(self._row[:end]), frozen(self._key[:end]))
        return found, frozen(self._high_key[:end])

    def _raise_of_end(self, error: EventError) -> None:
        """Raises a fuller error where one is about the type of an end."""
        for range in self._ranges.values():
            for name in (range.low, range.high):
                if str(error).startswith((f"column {name!r} is ", f"column {name!r}, ")):
                    said = f"{error.message} (it is an end of the range {range.name!r}: {range.type})"
                    raise EventError(said, column=error.column, event=error.event) from None

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
    """Checks that the events have the columns in which the ends of a range are."""
    folded = {known.lower() for known in schema.names}
    for name in (range.low.split(".")[0], range.high.split(".")[0]):
        if name.lower() not in folded:
            some = near(name, schema.names, "the batch")
            raise EventError(
                f"the events have no column {name!r}, which is to be an end of {range.name!r}: "
                f"{some}{'' if some.endswith('?') else ';'} "
                "Options(missing_columns='null') would take it to be NULL in every row"
            )


_deriving = _forks.lock()
_derived: WeakKeyDictionary[Attributes, dict[tuple[tuple[int, tuple[Path, Path]], ...], tuple[Attributes, Attributes]]]
_derived = WeakKeyDictionary()


def _attributes_of(attributes: Attributes, paths: dict[int, tuple[Path, Path]]) -> tuple[Attributes, Attributes]:
    """Returns what is read for the lower ends and all that is no range, and for the upper ends.

    It is made once for all that read a matcher's events, since what finds text patterns is made
    once for each object.
    """
    key = tuple(sorted(paths.items()))
    with _deriving:
        known = _derived.setdefault(attributes, {})
        if key not in known:
            if len(known) >= KEPT:
                known.clear()
            ranges = {attributes[id].path for id in paths}
            low, high = [], []
            for id, attribute in enumerate(attributes):
                spare = attribute.freed()
                own = spare if attribute.pattern is not None and attribute.path in ranges else attribute
                low.append(replace(attribute, path=paths[id][0]) if id in paths else own)
                high.append(replace(attribute, path=paths[id][1]) if id in paths else spare)
            known[key] = Attributes(low), Attributes(high)
        return known[key]


def _write_extents(
    attributes: Attributes, literals: Vocabulary, ranges: dict[int, Range], least: I64, most: I64
) -> None:
    """Writes the keys of the least and the greatest value of each range, by attribute.

    They are read as any event is, since the key of a string goes by the literals.
    """
    names = {id: str(id) for id in ranges}
    wanted = [attribute.freed() for attribute in attributes]
    for id, name in names.items():
        wanted[id] = replace(attributes[id], path=(name,))
    ends = [_extremes(range.type) for range in ranges.values()]
    found = Reader(Attributes(wanted), literals).read(pa.RecordBatch.from_arrays(ends, names=list(names.values())))
    for id in ranges:
        begin, end = found.col[id : id + 2]
        least[id] = found.key[begin]
        most[id] = found.key[begin + 1] if end - begin == 2 else KEY_MAX


def _extremes(type: pa.DataType) -> pa.Array:
    """Returns the least and the greatest value of a type, NULL where none is the greatest."""
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
