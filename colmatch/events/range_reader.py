"""Events in which an attribute may be a range: two columns hold its ends.

The lower ends are read in the place of the attribute, with all others; the upper ends by a
``Reader`` of their own; a kernel puts them beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import frozen
from colmatch.errors import EventError, near
from colmatch.events.needs import Path
from colmatch.events.reader import Reader
from colmatch.events.vocabulary import Vocabulary
from colmatch.kernels.ends import join_ends
from colmatch.kernels.layout import I64, KEY_MAX, KEY_MIN, U8, Batch
from colmatch.schema import Attributes, Family, Type

KEPT = 8  # pairs of attributes that are remembered for one matcher


@dataclass(frozen=True, slots=True)
class Range:
    """An attribute that is a range in each event, and the names of the columns of its ends.

    A dot in such a name leads to the field of a struct.
    """

    path: Path
    low: str
    high: str

    @property
    def name(self) -> str:
        """The attribute as an expression writes it."""
        return ".".join(self.path)


Ranges = tuple[Range, ...]


def used_ranges(attributes: Attributes, ranges: Ranges) -> dict[int, Range]:
    """Returns the ranges that expressions use, by the id of the attribute."""
    by_path = {range.path: range for range in ranges}
    return {
        id: by_path[attribute.path]
        for id, attribute in enumerate(attributes)
        if attribute.path in by_path and attribute.pattern is None
    }


def used_patterns(attributes: Attributes, ranges: Ranges) -> dict[int, Range]:
    """Returns the ranges that text patterns are about, by the id of the pattern."""
    by_path = {range.path: range for range in ranges}
    return {
        id: by_path[attribute.path]
        for id, attribute in enumerate(attributes)
        if attribute.pattern is not None and attribute.path in by_path
    }


def columns_of(attributes: Attributes, ranges: Ranges) -> list[str]:
    """Returns the top-level columns that events need in which attributes are ranges."""
    by_path = {range.path for range in ranges}
    names = [attribute.path[0] for attribute in attributes if attribute.path and attribute.path not in by_path]
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
    """

    def __init__(self, attributes: Attributes, literals: Vocabulary, lenient: bool, ranges: Ranges) -> None:
        self._attributes, self._literals, self._lenient = attributes, literals, lenient
        self._ranges = used_ranges(attributes, ranges)
        self._schema: pa.Schema | None = None
        self._paths: dict[int, tuple[Path, Path]] = {}
        self._readers: tuple[Reader, Reader] | None = None
        self._is_range = np.zeros(len(attributes), np.uint8)
        self._least, self._most = np.zeros(len(attributes), np.int64), np.zeros(len(attributes), np.int64)
        for id in self._ranges:
            self._is_range[id] = 1
            self._least[id], self._most[id] = _extent(attributes[id].type)
        self._col = np.zeros(len(attributes) + 1, np.int64)
        self._row, self._key, self._high_key = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)

    @property
    def is_range(self) -> U8:
        """Whether each attribute is a range: (A)."""
        return frozen(self._is_range)

    def read(self, batch: pa.RecordBatch) -> tuple[Batch, I64]:
        """Reads the entries of every attribute, of ranges the lower ends.

        Returns these, and the upper end of each; it is the same where an attribute is no range.

        Raises
        ------
        EventError : a column is not there or does not fit the schema that the matcher was built
            with, or a range begins above its end
        """
        low, high = self._bound(batch.schema)
        lower, upper = low.read(batch), high.read(batch)
        entries = int(lower.col[-1] + upper.col[-1])
        if len(self._row) < entries:
            room = entries * 5 // 4
            self._row, self._key, self._high_key = np.empty(room, np.int32), *np.empty((2, room), np.int64)
        wrong = np.zeros(2, np.int64)
        if not join_ends(
            lower,
            upper,
            frozen(self._is_range),
            frozen(self._least),
            frozen(self._most),
            self._col,
            self._row,
            self._key,
            self._high_key,
            wrong,
        ):
            range, row = self._ranges[int(wrong[0])], int(wrong[1])
            raise EventError(
                f"it is above column {range.high!r}, and {range.name!r} goes from the lower to the higher: "
                "exchange them, or put NULL where there is no bound",
                column=f"column {range.low!r}",
                event=row,
            )
        end = int(self._col[-1])
        return (
            Batch(lower.rows, frozen(self._col), frozen(self._row[:end]), frozen(self._key[:end])),
            frozen(self._high_key[:end]),
        )

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


_deriving = Lock()
_derived: WeakKeyDictionary[Attributes, dict[tuple[tuple[int, tuple[Path, Path]], ...], tuple[Attributes, Attributes]]]
_derived = WeakKeyDictionary()


def _attributes_of(attributes: Attributes, paths: dict[int, tuple[Path, Path]]) -> tuple[Attributes, Attributes]:
    """What is read for the lower ends and all that is no range, and for the upper ends.

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


# keys of the lowest float64 and of NaN (``colmatch/lowering/keys.py``)
_FLOATS = int(np.float64(-np.inf).view(np.int64)) ^ KEY_MAX, int(np.float64(np.nan).view(np.int64))


def _extent(type: Type) -> tuple[int, int]:
    """The lowest and the highest key of a type: those of a range without a bound."""
    if type.family is Family.BOOL:
        return 0, 1
    if type.family is Family.FLOAT:
        return _FLOATS
    return (0 if type.textual else KEY_MIN), KEY_MAX
