"""A matcher as a function of a column, from structs of events' columns to matches.

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

from colmatch.errors import EventError, OptionError, show_value
from colmatch.events.binding import require
from colmatch.events.gather import check_layout, match_names
from colmatch.given.arguments import check_choice, text
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.request import Among, SomeIds, SomeTags, Time
from colmatch.matching.topk.arguments import Score
from colmatch.show.names import listed_names

__all__ = ["MatchColumn", "match_column"]


def __dir__() -> list[str]:
    return listed_names(__all__, globals())


EventMode = Literal["lists", "count", "exists"]
ColumnMode = Literal["lists", "count", "exists", "topk"]
Structs: TypeAlias = pa.StructArray | pa.ChunkedArray


class Finder(Protocol):
    """A matcher, whole or divided into shards."""

    def match_lists(self, events: Any, ranges: RangeNames | None = None, **among: Unpack[Among]) -> pa.ChunkedArray: ...
    def count(self, events: Any, ranges: RangeNames | None = None, **among: Unpack[Among]) -> NDArray[np.int64]: ...
    def exists(self, events: Any, ranges: RangeNames | None = None, **among: Unpack[Among]) -> NDArray[np.bool_]: ...


@dataclass(frozen=True)
class Best:
    """The number of best matches to find, and their score.

    Fields are as in ``Matcher.match_topk``.
    """

    k: int
    score: Score = "dot"
    event_weights: str | Mapping[str, str | float] | None = None


def match_structs(
    rows: object,
    matcher: Finder,
    mode: EventMode,
    among: Among,
    hint: str,
    ranges: RangeNames | None = None,
) -> pa.ChunkedArray:
    """Returns the matches of each struct of a column: (rows) lists of ids, int64 or bool.

    A NULL struct is an event with NULL in all columns.

    hint : notation of a struct column, for errors

    Raises
    ------
    EventError : the column has no structs, or they do not fit the matcher's schema. Rows are
        counted within the batch, since engines do not report its start
    """
    events = _structs(rows, hint)
    with _within(events):
        if mode == "lists":
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
    type : type of the results
    hint : the engine's notation of a struct column, for errors
    """

    matcher: Matcher
    mode: ColumnMode
    type: pa.DataType
    hint: str
    among: Among
    ranges: RangeNames | None
    best: Best | None

    def __call__(self, rows: object) -> pa.ChunkedArray:
        """Returns the matches of each struct; with mode ``"topk"``, lists of structs.

        Raises
        ------
        EventError : as from ``match_structs``
        OptionError : the ids have another type now; the matcher was empty before
        """
        if self.mode != "topk":
            matches = match_structs(rows, self.matcher, self.mode, self.among, self.hint, self.ranges)
        else:
            matches = self._best(_structs(rows, self.hint))
        if matches.type == self.type:
            return matches
        if len(matches) and pc.sum(pc.list_value_length(matches)).as_py():
            raise OptionError(
                f"the matcher was empty when this function was made, for {self.type}, and now has {matches.type}: "
                "make the function again"
            )
        return pa.chunked_array([pa.array([[]] * len(matches), self.type)])

    def array(self, rows: object) -> pa.Array:
        """Returns the results as one array."""
        return pa.concat_arrays([pa.array([], self.type), *self(rows).chunks])

    def events_of(self, schema: pa.Schema) -> list[str]:
        """Returns the columns of a table that its struct column must have, as the table names them.

        These are the columns that the expressions use now, or the first column if they use none.

        Raises EventError: a column is absent.
        """
        best = () if self.best is None else (self.best.k, self.best.score, self.best.event_weights)
        names = self.matcher.columns_with(self.ranges, self.among.get("now"), *best)
        if self.matcher.options.missing_columns == "error":
            require(schema, [(name,) for name in names])
        return match_names(schema.names, names) or schema.names[:1]

    def _best(self, events: Structs) -> pa.ChunkedArray:
        assert self.best is not None
        k, score, weights = self.best.k, self.best.score, self.best.event_weights
        with _within(events):
            matches = self.matcher.match_topk(events, k, score, weights, ranges=self.ranges, **self.among)
        ends = np.searchsorted(matches["event"].to_numpy(), np.arange(len(events) + 1))
        pairs = matches.select(["subscription", "score"]).to_struct_array()
        values = pa.concat_arrays([pa.array([], pairs.type), *pairs.chunks])
        return pa.chunked_array([pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)])


def match_column(
    matcher: Matcher,
    mode: ColumnMode = "lists",
    *,
    hint: str = "a struct column",
    k: int | None = None,
    score: Score = "dot",
    event_weights: str | Mapping[str, str | float] | None = None,
    ranges: RangeNames | None = None,
    ids: SomeIds | None = None,
    tags: SomeTags | None = None,
    now: Time | None = None,
) -> MatchColumn:
    """Makes a function of a struct column that returns the matches of each row.

    Parameters
    ----------
    mode : result for each row. ``"lists"`` is a list of ids, ``"count"`` their number, and
        ``"exists"`` True if any subscription matches. ``"topk"`` is a list of the k best, the best
        first: structs of subscription and score
    hint : the engine's notation of a struct column, for errors
    k, score, event_weights : with ``"topk"``, as for ``Matcher.match_topk``
    ranges, ids, tags, now : as for ``Matcher.match``

    Raises
    ------
    OptionError, SubscriptionError : an argument cannot be used
    """
    check_matcher(matcher)
    check_choice("mode={}", mode, ("lists", "count", "exists", "topk"))
    if (mode == "topk") != (k is not None):
        raise OptionError(
            f'mode={mode!r}, k={show_value(k)}: the best matches are mode="topk" with k, how many of them'
        )
    if mode != "topk" and (score != "dot" or event_weights is not None):
        raise OptionError(
            f"mode={mode!r}, score={show_value(score)}, event_weights={show_value(event_weights)}: "
            'scores and weights are for mode="topk": leave them out'
        )
    among = Among(ids=None if ids is None and tags is None else matcher.subset(ids, tags), now=now)
    matcher.columns_with(ranges, now, k, None if k is None else score, event_weights)  # checks all
    best = None if k is None else Best(k, score, event_weights)
    id = matcher.match_lists(pa.table({})).type.value_type
    types: dict[str, pa.DataType] = {
        "lists": pa.list_(id), "count": pa.int64(), "exists": pa.bool_(),
        "topk": pa.list_(pa.struct({"subscription": id, "score": pa.float64()})),
    }  # fmt: skip
    return MatchColumn(matcher, mode, types[mode], hint, among, ranges, best)


def check_matcher(matcher: object) -> Matcher:
    """Returns ``matcher`` if it is one. Raises OptionError: it is something else."""
    if not isinstance(matcher, Matcher):
        raise OptionError(f"matcher={show_value(matcher)}: a Matcher is needed")
    return matcher


def function_name(name: object, own: Collection[str] = ()) -> str:
    """Returns the name of a SQL function, in lower case, as SQL reads it without quotes.

    Engines fold only the letters of ASCII.

    own : names of existing functions that must not be replaced

    Raises OptionError: ``name`` is not an identifier, or is among ``own``.
    """
    called = text(name)
    if called is None or not called.isidentifier():
        raise OptionError(f"name={show_value(name)}: the name of a function of SQL is needed, such as 'alerts'")
    lower = _fold_name(called)
    if lower in map(_fold_name, own):
        raise OptionError(f"name={called!r}: there is a function of that name already: choose another")
    return lower


def _fold_name(name: str) -> str:
    return name.encode().lower().decode()


def _structs(rows: object, hint: str) -> Structs:
    if isinstance(rows, pa.Array | pa.ChunkedArray) and pa.types.is_struct(rows.type):
        check_layout(rows)
        return rows
    type_name = str(rows.type) if isinstance(rows, pa.Array | pa.ChunkedArray) else type(rows).__name__
    raise EventError(f"a column is {type_name}, a struct of the events' columns is needed: {hint}")


@contextmanager
def _within(events: Structs) -> Iterator[None]:
    """Adds to errors that their row numbers count within a batch."""
    try:
        yield
    except EventError as error:
        if error.event is None:
            raise
        place = "" if error.column is None else f"{error.column}: "
        raise EventError(f"{place}{error.message} (row {error.event} of a batch of {len(events)})") from None
