"""A matcher as a function of a column: a struct of an event's columns in, what matches it out.

Spark, DuckDB and lazy queries of polars call such a function batch by batch. Any engine with
functions over Arrow can call it: docs/tables.md does so with DataFusion and ibis.

>>> found = match_column(matcher)  # doctest: +SKIP
>>> found.array(pa.array([{"price": 89.5}]))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import EventError, OptionError, shown
from colmatch.events.binding import require
from colmatch.events.gather import check_layout, meant
from colmatch.given.arguments import checked_choice, text
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.request import Among
from colmatch.matching.topk.arguments import Score

__all__ = ["MatchColumn", "match_column"]

EventMode = Literal["list", "count", "exists"]
ColumnMode = Literal["list", "count", "exists", "topk"]
Structs: TypeAlias = pa.StructArray | pa.ChunkedArray


class Finder(Protocol):
    """A matcher, or one that is divided among shards."""

    def match_lists(self, events: Any, ranges: RangeNames | None = None, **among: Unpack[Among]) -> pa.ChunkedArray: ...
    def count(self, events: Any, ranges: RangeNames | None = None, **among: Unpack[Among]) -> NDArray[np.int64]: ...
    def exists(self, events: Any, ranges: RangeNames | None = None, **among: Unpack[Among]) -> NDArray[np.bool_]: ...


@dataclass(frozen=True)
class Best:
    """The number of the most relevant matches that are wanted, and their score.

    Fields are as in ``Matcher.match_topk``.
    """

    k: int
    score: Score = "dot"
    event_weights: str | Mapping[str, str | float] | None = None


def found_in(
    rows: object,
    matcher: Finder,
    mode: EventMode,
    among: Among,
    hint: str,
    ranges: RangeNames | None = None,
) -> pa.ChunkedArray:
    """Returns what matches each struct of a column: (rows) lists of ids, int64 or bool.

    A struct that is NULL is an event whose columns are all NULL.

    hint : how such a column is written

    Raises
    ------
    EventError : the column has no structs, or they do not fit the matcher's schema. A row is
        counted within the batch, of which an engine does not say where it began
    """
    events = _structs(rows, hint)
    with _within(events):
        if mode == "list":
            return matcher.match_lists(events, ranges, **among)
        ask = matcher.count if mode == "count" else matcher.exists
        return pa.chunked_array([ask(events, ranges, **among)])


@dataclass(frozen=True)
class MatchColumn:
    """A function of a struct column, which ``match_column`` makes.

    A NULL struct is an event with NULL in all columns. Each batch sees the subscriptions of the
    moment when it is matched.

    Attributes
    ----------
    type : of its results
    hint : how the engine writes a struct column
    """

    matcher: Matcher
    mode: ColumnMode
    type: pa.DataType
    hint: str
    among: Among
    ranges: RangeNames | None
    best: Best | None

    def __call__(self, rows: object) -> pa.ChunkedArray:
        """Returns what matches each struct, as ``found_in`` does; of the best, lists of structs.

        Raises
        ------
        EventError : as from ``found_in``
        OptionError : the ids are of another type by now, since the matcher was empty before
        """
        if self.mode != "topk":
            found = found_in(rows, self.matcher, self.mode, self.among, self.hint, self.ranges)
        else:
            found = self._best(_structs(rows, self.hint))
        if found.type == self.type:
            return found
        if len(found) and pc.sum(pc.list_value_length(found)).as_py():
            raise OptionError(
                f"the matcher was empty when this function was made, for {self.type}, and now has {found.type}: "
                "make the function again"
            )
        return pa.chunked_array([pa.array([[]] * len(found), self.type)])

    def array(self, rows: object) -> pa.Array:
        """Returns the results in one piece."""
        return pa.concat_arrays([pa.array([], self.type), *self(rows).chunks])

    def events_of(self, schema: pa.Schema) -> list[str]:
        """Returns the columns of a table that its struct column must have, as the table names them.

        They are those that the expressions use now; where they use none, the first column.

        Raises EventError: one is not there.
        """
        wanted = self.matcher.columns_with(self.ranges, self.among.get("now"))
        if self.best is not None:
            wanted = [*wanted, *self.matcher.columns_of_weights(self.best.k, self.best.score, self.best.event_weights)]
        if self.matcher.options.missing_columns == "error":
            require(schema, [(name,) for name in wanted])
        return meant(schema.names, wanted) or schema.names[:1]

    def _best(self, events: Structs) -> pa.ChunkedArray:
        assert self.best is not None
        k, score, weights = self.best.k, self.best.score, self.best.event_weights
        with _within(events):
            found = self.matcher.match_topk(events, k, score, weights, ranges=self.ranges, **self.among)
        ends = np.searchsorted(found["event"].to_numpy(), np.arange(len(events) + 1))
        pairs = found.select(["subscription", "score"]).to_struct_array()
        values = pa.concat_arrays([pa.array([], pairs.type), *pairs.chunks])
        return pa.chunked_array([pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)])


def match_column(
    matcher: Matcher,
    mode: ColumnMode = "list",
    *,
    hint: str = "a struct column",
    k: int | None = None,
    score: Score = "dot",
    event_weights: str | Mapping[str, str | float] | None = None,
    ranges: RangeNames | None = None,
    ids: Any = None,
    tags: Any = None,
    now: Any = None,
) -> MatchColumn:
    """Makes a function of a struct column that returns the matches of each row.

    Parameters
    ----------
    mode : result for each row. ``"list"`` is a list of ids, ``"count"`` their number, and
        ``"exists"`` True if any subscription matches. ``"topk"`` is a list of the k best, the best
        first: structs of subscription and score
    hint : how the engine writes a struct column, for errors
    k, score, event_weights : with ``"topk"``, as for ``Matcher.match_topk``
    ranges, ids, tags, now : as for ``Matcher.match``

    Raises
    ------
    OptionError, SubscriptionError : an argument cannot be used
    """
    checked_matcher(matcher)
    checked_choice("mode={}", mode, ("list", "count", "exists", "topk"))
    if (mode == "topk") != (k is not None):
        raise OptionError(f'mode={mode!r}, k={shown(k)}: the best matches are mode="topk" with k, how many of them')
    if mode != "topk" and (score != "dot" or event_weights is not None):
        raise OptionError(
            f"mode={mode!r}, score={shown(score)}, event_weights={shown(event_weights)}: "
            'scores and weights are for mode="topk": leave them out'
        )
    among = Among(ids=None if ids is None and tags is None else matcher.subset(ids, tags), now=now)
    matcher.columns_with(ranges, now)  # checks both
    best = None if k is None else Best(k, score, event_weights)
    if best is not None:
        matcher.columns_of_weights(best.k, best.score, best.event_weights)
    id = matcher.match_lists(pa.table({})).type.value_type
    types: dict[str, pa.DataType] = {
        "list": pa.list_(id), "count": pa.int64(), "exists": pa.bool_(),
        "topk": pa.list_(pa.struct({"subscription": id, "score": pa.float64()})),
    }  # fmt: skip
    return MatchColumn(matcher, mode, types[mode], hint, among, ranges, best)


def checked_matcher(matcher: object) -> Matcher:
    """Returns the argument, which must be a matcher. Raises OptionError: it is something else."""
    if not isinstance(matcher, Matcher):
        raise OptionError(f"matcher={shown(matcher)}: a Matcher is needed")
    return matcher


def function_name(name: object, own: Collection[str] = ()) -> str:
    """Returns the name of a function of SQL, in lower case, as SQL takes it without quotes.

    Engines fold the letters of ASCII and no others.

    own : names of functions that are there and that nothing may replace

    Raises OptionError: it is no name, or the engine's own.
    """
    called = text(name)
    if called is None or not called.isidentifier():
        raise OptionError(f"name={shown(name)}: the name of a function of SQL is needed, such as 'alerts'")
    lower = _folded(called)
    if lower in map(_folded, own):
        raise OptionError(f"name={called!r}: there is a function of that name already: choose another")
    return lower


def _folded(name: str) -> str:
    return name.encode().lower().decode()


def _structs(rows: object, hint: str) -> Structs:
    if isinstance(rows, pa.Array | pa.ChunkedArray) and pa.types.is_struct(rows.type):
        check_layout(rows)
        return rows
    told = str(rows.type) if isinstance(rows, pa.Array | pa.ChunkedArray) else type(rows).__name__
    raise EventError(f"a column is {told}, a struct of the events' columns is needed: {hint}")


@contextmanager
def _within(events: Structs) -> Iterator[None]:
    """Says of a row in an error that it is counted within a batch."""
    try:
        yield
    except EventError as error:
        if error.event is None:
            raise
        place = "" if error.column is None else f"{error.column}: "
        raise EventError(f"{place}{error.message} (row {error.event} of a batch of {len(events)})") from None
