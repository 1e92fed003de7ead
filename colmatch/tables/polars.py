"""Matchers for polars, in a namespace ``colmatch`` of frames and struct expressions.

>>> import colmatch.tables.polars  # doctest: +SKIP
>>> offers.colmatch.match(matcher, keep="user")  # doctest: +SKIP
>>> pl.scan_parquet("offers/").colmatch.match_lists(matcher).sink_parquet("out/")  # doctest: +SKIP
>>> offers.select(pl.struct("price", "dest").colmatch.match_lists(matcher))  # doctest: +SKIP

A ``DataFrame`` is matched at once, with all threads of the matcher. A ``LazyFrame`` or an
expression is matched when the query runs, part by part in the streaming engine. Polars then reads
only the columns that are needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import pyarrow as pa

from colmatch.errors import DependencyError
from colmatch.given.declared import schema_of
from colmatch.matcher import Matcher
from colmatch.matching.kept import find_kept_fields
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.request import Among, Keep, SomeIds, SomeTags, Time, among_of
from colmatch.matching.topk.arguments import Score
from colmatch.show.names import listed_names
from colmatch.tables.columns import ColumnMode, EventMode, MatchColumn, check_matcher, match_column

if __name__ == "polars":
    raise ImportError(
        "this is colmatch.tables.polars: Python looks for polars in the folder of colmatch, so start it elsewhere"
    )
try:
    import polars as pl
    import polars.selectors as cs
except ImportError as error:
    raise DependencyError('colmatch.tables.polars needs polars: pip install "colmatch[polars]"') from error

__all__ = ["DataFrameMatches", "ExprMatches", "LazyFrameMatches"]


def __dir__() -> list[str]:
    return listed_names(__all__, globals())


HINT = 'pl.struct("price", "dest").colmatch'
NUMBER = "\0event"  # a name that no column of a frame has
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def _dtype(type: pa.DataType) -> Any:
    """Returns the polars type for an Arrow type."""
    return pl.Series(pa.array([], type)).dtype


def _of(column: MatchColumn, structs: pl.Expr) -> pl.Expr:
    """Returns an expression for the matches of each struct."""

    def matched(rows: pl.Series) -> pl.Series:
        return pl.Series(rows.name, column(pa.chunked_array(rows)), dtype=dtype)

    dtype = _dtype(column.type)
    return structs.map_batches(matched, return_dtype=dtype, is_elementwise=True)


@pl.api.register_expr_namespace("colmatch")
class ExprMatches:
    """The namespace ``pl.struct(...).colmatch``: one value for each struct of an event's columns.

    A NULL struct is an event with NULL in all columns. polars passes errors of colmatch on; their
    row numbers count within a batch. Arguments are those of ``Matcher.match``.
    """

    def __init__(self, structs: pl.Expr) -> None:
        self._structs = structs

    def match_lists(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pl.Expr:
        """Returns the ids that match each event: lists of Int64 or String."""
        return self._match_structs(matcher, "lists", ranges, among_of(ids, tags, now))

    def count(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pl.Expr:
        """Returns the number of subscriptions that match each event: Int64."""
        return self._match_structs(matcher, "count", ranges, among_of(ids, tags, now))

    def exists(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pl.Expr:
        """Returns True for each event that any subscription matches: Boolean."""
        return self._match_structs(matcher, "exists", ranges, among_of(ids, tags, now))

    def match_topk(
        self,
        matcher: Matcher,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        ranges: RangeNames | None = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pl.Expr:
        """Returns the best matches of each event: lists of structs (subscription, score).

        Arguments are those of ``Matcher.match_topk``.
        """
        column = match_column(
            matcher,
            "topk",
            hint=HINT,
            k=k,
            score=score,
            event_weights=event_weights,
            ranges=ranges,
            ids=ids,
            tags=tags,
            now=now,
        )
        return _of(column, self._structs)

    def _match_structs(self, matcher: Matcher, mode: ColumnMode, ranges: RangeNames | None, among: Among) -> pl.Expr:
        return _of(match_column(matcher, mode, hint=HINT, ranges=ranges, **among), self._structs)


class _Matches(Generic[Frame]):
    """The methods of both kinds of frames."""

    def __init__(self, frame: Frame) -> None:
        self._frame: Frame = frame

    def match_lists(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        name: str = "subscriptions",
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> Frame:
        """Returns the frame with a column of the ids that match each row, lists of Int64 or String.

        Parameters
        ----------
        name : name of the new column
        """
        return self._frame.with_columns(self._value(matcher, "lists", ranges, among_of(ids, tags, now)).alias(name))

    def count(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        name: str = "count",
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> Frame:
        """Returns the frame with a column of the number of matches of each row: Int64.

        Parameters
        ----------
        name : name of the new column
        """
        return self._frame.with_columns(self._value(matcher, "count", ranges, among_of(ids, tags, now)).alias(name))

    def exists(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        name: str = "exists",
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> Frame:
        """Returns the frame with a column that is True where any subscription matches: Boolean.

        Parameters
        ----------
        name : name of the new column
        """
        return self._frame.with_columns(self._value(matcher, "exists", ranges, among_of(ids, tags, now)).alias(name))

    def filter(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> Frame:
        """Returns the rows that any subscription matches."""
        return self._frame.filter(self._value(matcher, "exists", ranges, among_of(ids, tags, now)))

    def _value(self, matcher: Matcher, mode: EventMode, ranges: RangeNames | None, among: Among) -> Any:
        """Returns the matches of each row, as a column for polars."""
        raise NotImplementedError


@pl.api.register_lazyframe_namespace("colmatch")
class LazyFrameMatches(_Matches[pl.LazyFrame]):
    """The namespace ``lf.colmatch``: queries that match part by part when they run.

    Each part sees the subscriptions of the moment when it is matched. The query reads the columns
    that the expressions used when it was made. Arguments are those of ``Matcher.match``.
    """

    def match(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pl.LazyFrame:
        """Finds the subscriptions that are true for each row.

        Returns
        -------
        LazyFrame : event (Int64, number of the row), subscription (Int64 or String), and the kept
            columns, in the order of ``Matcher.match``

        Raises
        ------
        EventError, OptionError, SubscriptionError : as from ``Matcher.match``. An absent column, or
            one that cannot be kept, is an error when the query is made
        """
        return self._pairs(match_column(matcher, hint=HINT, ranges=ranges, ids=ids, tags=tags, now=now), keep)

    def match_topk(
        self,
        matcher: Matcher,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        ranges: RangeNames | None = None,
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pl.LazyFrame:
        """Finds the most relevant subscriptions of each row, as ``Matcher.match_topk`` does.

        Returns
        -------
        LazyFrame : event, subscription, score (Float64), and the kept columns
        """
        column = match_column(
            matcher,
            "topk",
            hint=HINT,
            k=k,
            score=score,
            event_weights=event_weights,
            ranges=ranges,
            ids=ids,
            tags=tags,
            now=now,
        )
        return self._pairs(column, keep).unnest("subscription")

    def _structs(self, column: MatchColumn) -> pl.Expr:
        return pl.struct(cs.by_name(*column.events_of(schema_of(self._frame))))  # pl.col takes patterns, too

    def _value(self, matcher: Matcher, mode: EventMode, ranges: RangeNames | None, among: Among) -> pl.Expr:
        column = match_column(matcher, mode, hint=HINT, ranges=ranges, **among)
        return _of(column, self._structs(column))

    def _pairs(self, column: MatchColumn, keep: Keep) -> pl.LazyFrame:
        """Returns a row for each match; best matches are structs of subscription and score."""
        own = ["event", "subscription", *(["score"] if column.best is not None else [])]
        kept = [] if keep is None else find_kept_fields(keep, schema_of(self._frame), own, ())
        number = pl.col(NUMBER).cast(pl.Int64).alias("event")
        matches = _of(column, self._structs(column)).alias("subscription")
        lists = self._frame.with_row_index(NUMBER).select(number, matches, cs.by_name(*(field.name for field in kept)))
        return lists.explode("subscription", empty_as_null=False)


@pl.api.register_dataframe_namespace("colmatch")
class DataFrameMatches(_Matches[pl.DataFrame]):
    """The namespace ``df.colmatch``: matches of all rows, which see the same updates.

    Arguments and errors are those of ``Matcher.match``.
    """

    def match(
        self,
        matcher: Matcher,
        ranges: RangeNames | None = None,
        *,
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pl.DataFrame:
        """Finds the subscriptions that are true for each row.

        Returns
        -------
        DataFrame : event (Int64, number of the row), subscription (Int64 or String), and the kept
            columns, in the order of ``Matcher.match``
        """
        return pl.DataFrame(check_matcher(matcher).match(self._frame, ranges, keep=keep, ids=ids, tags=tags, now=now))

    def match_topk(
        self,
        matcher: Matcher,
        k: int,
        score: Score = "dot",
        event_weights: str | Mapping[str, str | float] | None = None,
        *,
        ranges: RangeNames | None = None,
        keep: Keep = None,
        ids: SomeIds | None = None,
        tags: SomeTags | None = None,
        now: Time | None = None,
    ) -> pl.DataFrame:
        """Finds the most relevant subscriptions of each row, as ``Matcher.match_topk`` does.

        Returns
        -------
        DataFrame : event, subscription, score (Float64), and the kept columns
        """
        best = check_matcher(matcher).match_topk_batches(
            self._frame, k, score, event_weights, ranges=ranges, keep=keep, ids=ids, tags=tags, now=now
        )
        return pl.DataFrame(best.read_all())

    def _value(self, matcher: Matcher, mode: EventMode, ranges: RangeNames | None, among: Among) -> pl.Series:
        checked = check_matcher(matcher)
        if mode == "lists":
            lists = checked.match_lists(self._frame, ranges, **among)
            return pl.Series(lists, dtype=_dtype(lists.type))
        return pl.Series((checked.count if mode == "count" else checked.exists)(self._frame, ranges, **among))
