"""A matcher over a Spark DataFrame, batch or streaming, classic or Connect.

``match`` selects the columns that the expressions use, and checks their names and types. It makes
the index readable for the workers (``shipping.py``), and passes a task (``worker.py``) to
``mapInArrow``. Errors are raised here as far as possible, before a job starts.

Kernels are compiled once for each machine and kept on disk (``kernels/_jit.py``). ``match`` runs
one row of NULLs through the matcher, so workers on this machine find them compiled. The first
workers on another machine compile them into the user's cache folder there, which takes seconds. To
avoid this, copy this machine's cache folder (README, Two commands) to a folder that they see. Then
set ``spark.executorEnv.COLMATCH_CACHE_DIR`` to the copy. It fits only the same processor. Without a
readable or writable cache folder, each worker compiles for itself.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import pyarrow as pa

from colmatch.errors import DependencyError, EventError, OptionError, show_value, suggest_names
from colmatch.events.computed.clock import uses_clock
from colmatch.given.arguments import check_choice, check_flag, text
from colmatch.tables.columns import Best

try:
    from pyspark.errors import PySparkException
    from pyspark.sql import Column, DataFrame, Observation
    from pyspark.sql import functions as F
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
    from pyspark.sql.types import ArrayType, BooleanType, DoubleType, LongType, StringType, StructField, StructType
except ImportError as error:
    raise DependencyError(f'colmatch.spark needs PySpark 4: pip install "colmatch[spark]" ({error})') from error

from colmatch.matcher import Matcher
from colmatch.matching.kept import read_keep
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.request import SomeIds, SomeTags, Time
from colmatch.matching.topk.arguments import Score, check_topk
from colmatch.spark import tally
from colmatch.spark.plans import Plan, apply_plan, check_plan
from colmatch.spark.probe import check_workers, guard_task, refuse_pipelines, task_name
from colmatch.spark.settings import SessionSettings, arrow_schema, check_settings, is_on, zone_of
from colmatch.spark.shipping import PinnedIndex, pin_index, ship_index
from colmatch.spark.tally import OBSERVED, log
from colmatch.spark.worker import VERSION_DIGITS, Mode, PartitionTask

MatchMode = Literal["pairs", "lists", "count", "exists"]
NUMBERS = StructType([StructField(name, LongType(), nullable=False) for name in tally.NUMBERS])
# The columns that each mode adds to the kept columns.
RESULTS: dict[Mode, tuple[str, ...]] = {
    "pairs": ("subscription",),
    "lists": ("subscriptions",),
    "count": ("count",),
    "exists": ("exists",),
    "totals": ("subscription", "rows"),
}


_WRITTEN_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # a key in Spark's metadata of a column
_COLLATED = re.compile(r" collate (?!UTF8_BINARY\b)")
_CHAR = re.compile(r"char\(\d+\)", re.IGNORECASE)


class MatchScope(NamedTuple):
    """Further arguments of a call, as for ``Matcher.match``."""

    ids: Any = None
    tags: Any = None
    now: Any = None


@refuse_pipelines()
def match(
    df: DataFrame,
    matcher: Matcher | str | os.PathLike[str],
    keep: Sequence[str] = (),
    mode: MatchMode = "pairs",
    shared: bool | None = None,
    ranges: RangeNames | None = None,
    ids: SomeIds | None = None,
    tags: SomeTags | None = None,
    now: Time | None = None,
    plan: Plan = "auto",
    observe: str | Observation | None = None,
) -> DataFrame:
    """Matches each row of ``df`` against all subscriptions.

    Parameters
    ----------
    df : events; may be streaming. Columns that neither the expressions nor ``keep`` name are
        dropped before they reach Python
    matcher : path of a saved matcher, or a matcher, which is saved once to a temporary file that
        lives as long as this process. Or the folder or address that ``build_shards`` wrote
    keep : columns of ``df`` to add to the result. Each match repeats its row's values
    mode : ``"pairs"`` gives a row for each match, with the column ``subscription``. All others give
        a row for each event. ``"lists"`` has the column ``subscriptions``, an array that is empty
        without matches; ``"count"`` the column ``count``, the number of matches; and ``"exists"``
        the column ``exists``, True if any subscription matches
    shared : True if workers can open the given path, False to send them the file. None sends it
        unless ``df`` belongs to a classic session with a local master
    ranges : attributes that are ranges in the events, as for ``Matcher.match``
    ids, tags, now : as for ``Matcher.match``. They go to the workers with each task
    plan : strategy for shards. ``"in_turn"``: each task takes one shard after the other.
        ``"routed"``: each row goes to a task of each shard, for pairs and totals. ``"auto"`` is
        ``"in_turn"``. ``explain()`` of the result shows the plan
    observe : a name, or for a batch an ``Observation``, for metrics of the job that reads the
        result, as from ``DataFrame.observe``: ``rows``, ``matches``, ``tasks``, ``matcher_seconds``
        (the sum of the tasks' working time) and ``index_version``. A routed row counts once for
        each shard

    Returns
    -------
    DataFrame : the kept columns, then the ids: long or string, as in the matcher. With
        ``mode="count"`` a long, with ``mode="exists"`` a Boolean

    Raises
    ------
    EventError : a column that the expressions or ``keep`` name is missing, or has a type that the
        matcher was not built for
    OptionError : ``keep``, ``mode``, ``shared``, ``ranges``, ``tags``, ``plan`` or ``observe``
        cannot be used. Or the matcher does not fit the session. For example, it read timestamp
        literals in a zone other than ``spark.sql.session.timeZone``. Or its ``Options(ansi=...)``
        differs from ``spark.sql.ansi.enabled`` and matters to a computed value. Or this is a query
        function of a declarative pipeline: use ``hits``
    SubscriptionError : ``ids`` is not a list of ids
    StoreError, OSError : the path does not hold a matcher
    DependencyError : workers cannot run this version of colmatch, or get no Arrow data

    Notes
    -----
    The first call in a session runs one task of one row, to check that workers can run colmatch.
    All other work is done when a job reads the result.
    """
    mode = check_arguments(matcher, mode, shared)
    beside = MatchScope(ids, tags, now)
    return _match_events(df, matcher, keep, mode, shared, beside, ranges=ranges, plan=plan, observe=observe)


@refuse_pipelines()
def totals(
    df: DataFrame,
    matcher: Matcher | str | os.PathLike[str],
    shared: bool | None = None,
    ranges: RangeNames | None = None,
    ids: SomeIds | None = None,
    tags: SomeTags | None = None,
    now: Time | None = None,
    plan: Plan = "auto",
    observe: str | Observation | None = None,
) -> DataFrame:
    """Counts the rows of ``df`` that each subscription matches.

    Each task counts its own rows, so at most one row per subscription and task is shuffled.

    Parameters
    ----------
    df, matcher, shared, ranges, ids, tags, now, plan, observe : as for ``match``

    Returns
    -------
    DataFrame : ``subscription``, and the long ``rows``. A subscription that matches no row is
        absent

    Raises
    ------
    EventError, OptionError, SubscriptionError, StoreError, OSError, DependencyError : as from
        ``match``
    """
    check_arguments(matcher, "pairs", shared)
    beside = MatchScope(ids, tags, now)
    counted = _match_events(df, matcher, (), "totals", shared, beside, ranges=ranges, plan=plan, observe=observe)
    return counted.groupBy("subscription").sum("rows").toDF("subscription", "rows")


@refuse_pipelines()
def match_topk(
    df: DataFrame,
    matcher: Matcher | str | os.PathLike[str],
    k: int,
    score: Score = "dot",
    event_weights: str | Mapping[str, str | float] | None = None,
    keep: Sequence[str] = (),
    shared: bool | None = None,
    ids: SomeIds | None = None,
    tags: SomeTags | None = None,
    now: Time | None = None,
    observe: str | Observation | None = None,
    ranges: RangeNames | None = None,
) -> DataFrame:
    """Finds the most relevant subscriptions among those that are true for each row of ``df``.

    Parameters
    ----------
    df, matcher, keep, shared, ids, tags, now, observe, ranges : as for ``match``
    k, score, event_weights : as for ``Matcher.match_topk``; columns of weights are those of ``df``

    Returns
    -------
    DataFrame : the kept columns, ``subscription`` and ``score``, with a row for each of the best
        matches. Spark promises no order of rows: sort by the kept columns of an event and by
        ``score``

    Raises
    ------
    OptionError : ``k``, ``score`` or ``event_weights`` cannot be used, or as from ``match``
    EventError, StoreError, OSError : as from ``match``. An invalid weight raises an EventError in
        the job, with event numbers that count within a partition
    """
    check_arguments(matcher, "pairs", shared)
    best = Best(k, score, dict(event_weights) if isinstance(event_weights, Mapping) else event_weights)
    return _match_events(
        df, matcher, keep, "pairs", shared, MatchScope(ids, tags, now), best, ranges=ranges, observe=observe
    )


def _match_events(
    df: DataFrame,
    matcher: Matcher | PinnedIndex | str | os.PathLike[str],
    keep: Sequence[str],
    mode: Mode,
    shared: bool | None,
    beside: MatchScope,
    best: Best | None = None,
    ranges: RangeNames | None = None,
    plan: Plan = "auto",
    observe: str | Observation | None = None,
) -> DataFrame:
    results = ["subscription", "score"] if best is not None else list(RESULTS[mode])
    kept = read_keep(keep)
    _check_observe(observe)
    if not isinstance(df, DataFrame):
        raise EventError(f"events are a Spark DataFrame here, not {type(df).__name__}: Matcher.match takes others")
    columns = ColumnNames(df)
    _check_kept(kept, columns, [*results, OBSERVED])
    origin, file, hash, opened = pin_index(matcher)
    plan = check_plan(plan, origin, mode, best is not None)
    check_settings(SessionSettings.of(df.sparkSession), opened)
    ids, tags, now = beside
    subset = None if ids is None and tags is None else opened.subset(ids, tags)
    # Kept columns come first, so the worker needs only their number. Expressions may use some, too.
    sent = [columns.find(name, "keep") for name in kept]
    used: list[tuple[int, str]] = []

    def use(name: str, wanted_by: str) -> None:
        found = columns.find(name, wanted_by)
        if found not in sent:
            sent.append(found)
        used.append((sent.index(found), name))

    lenient = opened.options.missing_columns == "null"
    for name in opened.columns_with(ranges, now):
        if not lenient or name in columns:
            use(name, "an expression" if ranges is None else "an expression or a range")
    if best is not None:
        for name in check_topk(best.k, best.score, best.event_weights, opened.schema).columns:
            if name not in [other for _, other in used]:
                use(name, "event_weights")
    # Columns get new names, since mapInArrow does not quote a name with a dot in it.
    selected = [columns.column(name).alias(f"c{i}") for i, name in enumerate(sent)]
    clock = len(sent) if now is None and uses_clock(opened._set.now.attributes) else None
    if clock is not None:  # Spark's is the same in all tasks of a query
        selected.append(F.current_timestamp().alias(f"c{clock}"))
    events = df.select(*selected) if selected else df.selectExpr("true AS c0")
    _check_types(events, used, opened, best, ranges, now)

    id = LongType() if pa.types.is_integer(opened.ids.type) else StringType()
    types = {
        "subscription": id, "subscriptions": ArrayType(id, containsNull=False), "score": DoubleType(),
        "count": LongType(), "exists": BooleanType(), "rows": LongType(),
    }  # fmt: skip
    fields = zip(sent[: len(kept)], events.schema.fields)
    schema = StructType([StructField(name, field.dataType, field.nullable, field.metadata) for name, field in fields])
    for name in results:
        schema.add(name, types[name], nullable=False)
    check_workers(df.sparkSession, isinstance(df, ClassicDataFrame))
    index = ship_index(df, origin, file, hash, shared, opened)
    task = PartitionTask(
        index, len(kept), tuple(used), mode, tuple(schema.names), best, ranges and dict(ranges), subset, now,
        clock, observe is not None, log.isEnabledFor(logging.INFO),
    )  # fmt: skip
    if observe is not None:
        schema = schema.add(OBSERVED, NUMBERS)
    name = task_name("match", index.origin, hash, [name for _, name in used])
    plain = not index.folder
    found = events.mapInArrow(guard_task(task, name), schema) if plain else apply_plan(events, task, schema, plan, name)
    return found if observe is None else _observe_numbers(found, observe, hash)


def _observe_numbers(found: DataFrame, observe: str | Observation, hash: str) -> DataFrame:
    """Has Spark observe the numbers of tasks, and drops the rows that hold the numbers."""
    rows, matches, nanoseconds = (F.coalesce(F.sum(f"`{OBSERVED}`.{name}"), F.lit(0)) for name in NUMBERS.names)
    seen = found.observe(
        observe,
        rows.alias("rows"),
        matches.alias("matches"),
        F.count(f"`{OBSERVED}`").alias("tasks"),
        (nanoseconds / 1e9).alias("matcher_seconds"),
        F.lit(hash[:VERSION_DIGITS]).alias("index_version"),
    )
    return seen.where(f"`{OBSERVED}` IS NULL").drop(OBSERVED)


def _check_observe(observe: object) -> None:
    # Connect has another class of this name, which can be imported only with Connect.
    if observe is not None and not text(observe) and type(observe).__name__ != "Observation":
        raise OptionError(f"observe={show_value(observe)}: a name or an Observation is needed")


def check_arguments(matcher: object, mode: object, shared: object) -> MatchMode:
    """Checks the arguments that do not depend on the DataFrame; returns the mode."""
    chosen: MatchMode = check_choice("mode={}", mode, get_args(MatchMode))
    if shared is not None and check_flag("shared={}", shared) and isinstance(matcher, Matcher):
        raise OptionError(
            "shared=True needs a path that the workers see: call matcher.save(path) there and pass the path"
        )
    return chosen


def _check_kept(kept: list[str], columns: ColumnNames, results: list[str]) -> None:
    """Checks that no column is kept twice or named as a column of the result."""
    for name in kept:
        if columns.fold_name(name) in results:
            raise OptionError(
                f"keep has {name!r}, which is a name of the result: rename the column, df.withColumnRenamed({name!r}, …)"
            )
    for name, times in Counter(map(columns.fold_name, kept)).items():
        if times > 1:
            raise OptionError(f"keep has {name!r} {times} times")


class ColumnNames:
    """The names of a DataFrame's columns, looked up as Spark does.

    Case matters only if ``spark.sql.caseSensitive`` is true.
    """

    def __init__(self, df: DataFrame) -> None:
        self.df = df
        self.sensitive = is_on(df.sparkSession, "spark.sql.caseSensitive")
        self.names: dict[str, list[str]] = {}
        for name in df.columns:
            self.names.setdefault(self.fold_name(name), []).append(name)

    def __contains__(self, name: str) -> bool:
        return self.fold_name(name) in self.names

    def fold_name(self, name: str) -> str:
        """Returns the form of a name for comparisons."""
        return name if self.sensitive else name.lower()

    def find(self, name: str, wanted_by: str) -> str:
        """Returns the name as the DataFrame spells it."""
        matches = self.names.get(self.fold_name(name), [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise EventError(
                f"the DataFrame has {len(matches)} columns called {name!r}, which {wanted_by} names: rename all but one"
            )
        raise EventError(
            f"the DataFrame has no column {name!r}, which {wanted_by} names: {suggest_names(name, self.df.columns, 'it')}"
        )

    def column(self, name: str) -> Column:
        """Returns a column by its quoted name: Spark would read a dot as access to a field."""
        return self.df["`" + name.replace("`", "``") + "`"]


def _check_types(
    events: DataFrame,
    used: list[tuple[int, str]],
    matcher: Matcher,
    best: Best | None,
    ranges: RangeNames | None,
    now: Any,
) -> None:
    """Raises the errors that a worker would raise on its first batch.

    The matcher matches a row of NULLs, with the types that Spark will send.
    """
    for i, name in used:
        if char := _CHAR.fullmatch(str(events.schema.fields[i].metadata.get(_WRITTEN_TYPE, ""))):
            raise EventError(
                f"column {name!r} is {char[0].upper()}, whose texts Spark pads with spaces before it compares them: "
                f"take them away, df.withColumn({name!r}, F.rtrim({name!r}))"
            )
        if _COLLATED.search(type := events.schema.fields[i].dataType.simpleString()):
            raise EventError(
                f"column {name!r} is {type}, expressions compare strings by bytes: cast it to STRING COLLATE UTF8_BINARY"
            )
    zone = zone_of(events.sparkSession)
    try:
        types = arrow_schema(events.schema, zone).types
    except (PySparkException, ValueError) as error:  # ValueError: a map without types
        types = ", ".join(field.dataType.simpleString() for field in events.schema)
        raise EventError(
            f"Spark cannot hand over columns of these types as Arrow: {types} ({error}); give map() types, as in "
            "CAST(map() AS MAP<STRING, STRING>)"
        ) from error
    nulls = pa.record_batch([pa.nulls(1, type) for type in types], names=events.columns)
    row = nulls.select([i for i, _ in used]).rename_columns([name for _, name in used])
    if best is None:
        matcher.match(row, ranges, now=now)
    else:
        matcher.match_topk(row, best.k, best.score, best.event_weights, ranges=ranges, now=now)
