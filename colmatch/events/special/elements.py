"""Conditions on elements of lists: for each row, the conditions that hold for some elements.

The conditions over one list are the subscriptions of a separate matcher, with the elements as
its events. So 100,000 conditions are indexed like 100,000 expressions. The matcher is made once for
the old literals of an attribute, and once for the few recent ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import EventError
from colmatch.events.computed.clock import moment_of
from colmatch.events.computed.elements import as_lists, map_part
from colmatch.events.computed.failed import Doubts
from colmatch.events.paths import column_at
from colmatch.given.elements import ElementCall, ElementTest
from colmatch.kernels import _forks
from colmatch.kernels.layout import I64

Path = tuple[str, ...]


class Found(NamedTuple):
    """Pairs of an element, or a row, and the number of a condition that is true for it.

    ``doubts`` are further pairs, of which it is not known, since a value fails.
    """

    row: I64
    number: I64
    doubts: Doubts


class ElementMatcher(Protocol):
    """A matcher of elements: its subscriptions are numbered as their conditions were given."""

    def find(self, elements: pa.RecordBatch, micros: int) -> Found:
        """Finds the conditions that are true for each element.

        micros : time of the call, microseconds since 1970
        """


class ElementConditions:
    """The conditions of one attribute, from one part of the literals.

    They are indexed when elements first come.

    Attributes
    ----------
    least : (conditions) least number of elements
    """

    def __init__(self, call: ElementCall, conditions: Sequence[str], least: I64) -> None:
        self.least = least
        self._unread: tuple[ElementCall, Sequence[str]] | None = (call, conditions)
        self._matcher: ElementMatcher | None = None
        self._making = _forks.lock()

    @property
    def matcher(self) -> ElementMatcher:
        """Returns the matcher of the conditions."""
        with self._making:
            if self._matcher is None and self._unread is not None:
                # A matcher is on a higher floor than the events, so it is imported here
                self._matcher = import_module("colmatch.matching.elements").ConditionMatcher(*self._unread)
                self._unread = None
            assert self._matcher is not None
            return self._matcher


def conditions_of(call: ElementCall, literals: Sequence[bytes]) -> tuple[I64, ElementConditions | None]:
    """Makes the index of conditions.

    Returns the places of the literals that are conditions, and the index. Literals of an earlier
    attribute with the same id are none.
    """
    tests = [ElementTest.of(literal) for literal in literals]
    place = np.array([i for i, test in enumerate(tests) if test is not None], np.int64)
    if not len(place):
        return place, None
    texts = [f"({t.condition}) IS NOT FALSE" if t.maybe else t.condition for t in tests if t is not None]
    least = np.array([max(test.least, 1) for test in tests if test is not None], np.int64)
    return place, ElementConditions(call, texts, least)


class ElementRows:
    """The elements of the rows of a batch, which are looked up among conditions.

    Parameters
    ----------
    batch : the events, with the time of the call if conditions read it
    column_of : returns the column of a path, None if all of it is NULL

    Attributes
    ----------
    known : (rows) whether a row has a list

    Raises EventError: a column has no lists.
    """

    def __init__(self, call: ElementCall, batch: pa.RecordBatch, column_of: Callable[[Path], pa.Array | None]) -> None:
        self.call = call
        self._column_of = column_of
        rows = batch.num_rows
        self.micros: int = moment_of(batch).value
        column, self._rows = column_of(call.column), rows
        if column is None or pa.types.is_null(column.type):
            kind = pa.list_(call.schema.field(0).type)
            column = pa.nulls(rows, pa.map_(pa.string(), pa.string()) if call.part else kind)
        self._lists = as_lists(map_part(column, call.part) if call.part else column, ".".join(call.column))
        self.known: NDArray[np.bool_] = np.asarray(self._lists.is_valid().to_numpy(zero_copy_only=False))
        self._elements: tuple[I64, pa.RecordBatch] | None = None

    def find(self, conditions: ElementConditions) -> Found:
        """Finds the conditions that hold for each row, by row.

        Raises EventError: an element is of a wrong type.
        """
        if self._elements is None:
            self._elements = self.explode()
        row, elements = self._elements
        if not len(row):
            return Found(row, row, Doubts.join([]))
        try:
            found = conditions.matcher.find(elements, self.micros)
        except EventError as error:
            if error.event is None:
                raise
            column = f"an element of {'.'.join(self.call.column)!r}"
            raise EventError(error.message, column=column, event=int(row[error.event])) from None
        # Count the elements of each pair of a row and a condition
        total, doubts = len(conditions.least), found.doubts
        certain = row[found.row] * total + found.number
        pair, count = np.unique(certain, return_counts=True)
        pair = pair[count >= conditions.least[pair % total]]
        if not len(doubts.row):
            return Found(pair // total, pair % total, doubts)
        # Count again with the elements in doubt, which come first
        maybe = np.concatenate([row[doubts.row] * total + doubts.number, certain])
        maybe, first, count = np.unique(maybe, return_index=True, return_counts=True)
        more = (count >= conditions.least[maybe % total]) & ~np.isin(maybe, pair, assume_unique=True)
        maybe, first, name = maybe[more], first[more], ".".join(self.call.column)
        reason = lambda i: f"{doubts.reason(int(first[i]))}, for an element of {name!r}"  # noqa: E731
        return Found(pair // total, pair % total, Doubts(maybe // total, maybe % total, reason))

    def explode(self) -> tuple[I64, pa.RecordBatch]:
        """Returns the row of each element, and a batch of the elements with the outer columns."""
        schema = self.call.schema
        # Not ``list_parent_indices``, which has the places of NULLs in lists of a fixed size
        size = pc.fill_null(pc.list_value_length(self._lists), 0).to_numpy()
        row, values = np.repeat(np.arange(self._rows), size), self._lists.flatten()
        leaves = {path: self._column_of(path) for path in self.call.outer}
        repeated = {path: None if leaf is None else leaf.take(pa.array(row)) for path, leaf in leaves.items()}
        columns = [_assemble(field, (field.name,), repeated, len(row)) for field in list(schema)[1:]]
        return row, pa.RecordBatch.from_arrays([values, *columns], schema.names)


class Judged(NamedTuple):
    """The truth of a condition for one row, and the elements that pass.

    The truth is that of ``exists`` where one element is enough: it is None, which is Unknown, if
    the condition is Unknown for some element and true for none. It is also None if the condition
    cannot be computed, and ``failure`` says why.
    """

    truth: bool | None
    passing: list[int]
    failure: str = ""


def judge(call: ElementCall, test: ElementTest, batch: pa.RecordBatch) -> Judged:
    """Judges a condition for the only row of a batch."""

    def column_of(path: Path) -> pa.Array | None:
        return column_at(batch, path, True, "")

    rows = ElementRows(call, batch, column_of)
    if not rows.known[0]:
        return Judged(None, [])
    wanted = [ElementTest(test.condition, maybe=maybe).to_bytes() for maybe in (False, True)]
    conditions = conditions_of(call, wanted)[1]
    assert conditions is not None
    element, number, doubts = conditions.matcher.find(rows.explode()[1], rows.micros)
    passing, least = np.sort(element[number == 0]).tolist(), max(test.least, 1)
    if len(passing) >= least:
        return Judged(True, passing)
    is_unknown = not test.least and bool((number == 1).any())
    # The condition is in doubt, or whether it is Unknown
    wrong = doubts.number <= (not test.least and not is_unknown)
    if len(passing) + wrong.sum() >= least:
        return Judged(None, passing, doubts.reason(int(wrong.argmax())))
    return Judged(None if is_unknown else False, passing)


def _assemble(field: pa.Field, path: Path, leaves: Mapping[Path, pa.Array | None], rows: int) -> pa.Array:
    """Returns a column, or a struct that is made of the fields that conditions read."""
    if path in leaves:
        leaf = leaves[path]
        return pa.nulls(rows, field.type) if leaf is None else leaf
    parts = [_assemble(part, (*path, part.name), leaves, rows) for part in field.type]
    return pa.StructArray.from_arrays(parts, [part.name for part in field.type])
