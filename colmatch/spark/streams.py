"""Streams that use each new version of their index, and repeat a batch with its first version.

``match_stream`` uses ``foreachBatch``. At the beginning of a batch it records the version that the
pointer names. If the batch is repeated, it reads the record instead (``records.py``). The sink then
gets the matches. With Connect, ``_Batches`` is sent to the server, and all of this runs there.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from colmatch.errors import EventError, OptionError, StoreError, show_value, suggest_names
from colmatch.given import arguments
from colmatch.matching.kept import read_keep
from colmatch.matching.range_worker import RangeNames
from colmatch.matching.topk.arguments import Score
from colmatch.spark.frames import ColumnNames, MatchMode, check_arguments, match, match_topk
from colmatch.spark.plans import Plan
from colmatch.spark.probe import check_workers
from colmatch.spark.records import StreamRecords
from colmatch.spark.storage import Folder, is_address
from colmatch.spark.tally import log, show_log
from colmatch.spark.worker import VERSION_DIGITS
from colmatch.store.replacing import replacing

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from colmatch.spark.shipping import PinnedIndex

Sink = str | os.PathLike[str] | Callable[[DataFrame, int], object]

VERSION = "index_version"  # a column of the result
BATCH = "batch"  # a column that files get from the names of their folders
NAME = "colmatch"  # name of the numbers in the progress of a query
OBSERVED_SECONDS = 2.0  # to wait for the numbers of a job

_BESIDE = ("keep", "shared", "ids", "tags", "now")
_ALL = (*_BESIDE, "mode", "ranges", "plan")
_TOP_K = (*_BESIDE, "ranges", "k", "score", "event_weights")


class MatchArguments(TypedDict, total=False):
    """Keyword arguments of ``match``, and with ``k`` those of ``match_topk``."""

    keep: str | Sequence[str]
    mode: MatchMode
    k: int
    score: Score
    event_weights: Any
    shared: bool | None
    ranges: RangeNames | None
    plan: Plan
    ids: Any
    tags: Any
    now: Any


def match_stream(
    df: DataFrame,
    pointer: str | os.PathLike[str],
    sink: Sink,
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    format: str = "parquet",
    records: str | os.PathLike[str] | None = None,
    event_time: str | None = None,
    **matching: Unpack[MatchArguments],
) -> DataStreamWriter:
    """Matches a stream, each batch with the version of the index that is current when it begins.

    >>> match_stream(offers, "alerts.cm", "fired", "checkpoint").start()  # doctest: +SKIP

    The version is chosen and recorded when a batch begins. A batch that is repeated after a crash
    has the same rows and the same version.

    Parameters
    ----------
    df : events, streaming
    pointer : place of the current version: a saved matcher that is saved over, a folder of saved
        matchers, or a folder of shards. Or a text file with the path of one of them. Of several
        saved matchers, the last by name is current, with digits compared as numbers
    sink : a folder; batch ``n`` is its folder ``batch=n``, overwritten if the batch is repeated.
        Or a function of a DataFrame and the number of its batch, which runs one job
    checkpoint : a folder where Spark keeps the progress of the stream
    format : format of the files in the folder ``sink``
    records : a folder for records and for index files; by default the folder ``colmatch`` in
        ``checkpoint``. It is required if ``checkpoint`` is not a folder of this machine
    event_time : a timestamp column. The record of a batch has its latest value, and the delay until
        the batch was matched
    matching : ``keep``, ``mode``, ``shared``, ``ranges``, ``plan``, ``ids``, ``tags`` and ``now``
        as for ``match``; with ``k``, also ``score`` and ``event_weights``, as for ``match_topk``.
        ``now`` is the same for all batches: give events a column of times instead

    Returns
    -------
    DataStreamWriter : a writer with its ``foreachBatch`` and checkpoint set. Set its trigger and
        its name if you wish, and start it. The sink gets the columns of ``match`` or
        ``match_topk``, and the string ``index_version``, the first 12 digits of the content hash

    Raises
    ------
    EventError : ``df`` is not streaming or lacks a column, or as from ``match``
    OptionError : an argument cannot be used, or as from ``match``
    SubscriptionError : ``ids`` are not ids, or of another type
    StoreError, OSError : the pointer names no saved matcher, or the folder cannot be written to.
        With Connect, paths are those of the server, and the first batch raises the error
    DependencyError : as from ``match``
    """
    if not isinstance(df, DataFrame):
        raise EventError(f"events are a streaming DataFrame of Spark here, not {type(df).__name__}")
    if not df.isStreaming:
        raise EventError("df is no stream: use colmatch.spark.match, or make df with spark.readStream")
    classic = isinstance(df, ClassicDataFrame)
    if checkpoint is None:
        raise OptionError("checkpoint is missing: name the folder in which Spark is to keep how far the stream is")
    kept_at = _path(checkpoint, "checkpoint", classic)
    batches = _Batches(
        pointer=_local(_path(pointer, "pointer", classic), "pointer"),
        checkpoint=kept_at,
        folder=_records_folder(records, kept_at, classic),
        sink=sink if callable(sink) else _path(sink, "sink", classic, " or a function"),
        format=_check_format(format),
        event_time=_check_event_time(df, event_time),
        matching=_check_matching(df, matching, to_files=not callable(sink)),
        log=log.isEnabledFor(logging.INFO),
    )
    check_workers(df.sparkSession, classic)
    if classic:
        batches.records.prepare()
        batches.plan_match(df, batches.records.current(Path(batches.pointer)), None)
    writer: DataStreamWriter = df.observe(NAME, *batches.make_metrics(df)).writeStream.foreachBatch(batches)
    return writer.option("checkpointLocation", kept_at)


@dataclass
class _Batches:
    """The function for ``foreachBatch``, with the checked arguments of ``match_stream``."""

    pointer: str
    checkpoint: str
    folder: str
    sink: Any
    format: str
    event_time: str
    matching: dict[str, Any]
    log: bool
    _records: StreamRecords | None = field(default=None, init=False)

    @property
    def records(self) -> StreamRecords:
        if self._records is None:
            there = None if is_address(self.checkpoint) else Path(self.checkpoint)
            self._records = StreamRecords(Path(self.folder), there)
        return self._records

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_records": None}  # a Connect server makes its own

    def __call__(self, batch: DataFrame, number: int) -> None:
        if not isinstance(batch, ClassicDataFrame):
            show_log(self.log)  # this is a process of the server
        started, records = time.time(), self.records
        records.prepare()
        with records.turn():
            self._batch(batch, number, started, records)

    def _batch(self, batch: DataFrame, number: int, started: float, records: StreamRecords) -> None:
        index = records.read_version(number, Path(self.pointer))
        self._check_owner(records)
        replayed = index is not None
        if index is None:
            index = records.current(Path(self.pointer))
        events, results = Observation(), Observation()
        # A version that does not fit the stream raises an error here, before it is recorded.
        matched = self.plan_match(batch.observe(events, *self.make_metrics(batch)), index, results)
        version = index.hash[:VERSION_DIGITS]
        record = {
            "batch": number, VERSION: version, "index": index.hash, "started": _utc(started), "replayed": replayed
        }  # fmt: skip
        record["ids"] = ids = str(index.opened.ids.type)
        if not callable(self.sink) and (before := records.ids()) not in (None, ids):
            raise StoreError(
                f"the ids of version {version} are {ids}, and those in {self.sink} are {before}: such files cannot be "
                "read together; save a version with ids of that type, or start a stream with another sink"
            )
        if isinstance(index.given, Folder):
            record["shards"] = index.given.address
        if not replayed:
            records.write(number, record)
        records.clear()
        try:
            self._write(matched.withColumn(VERSION, F.lit(version)), number)
        except Exception as error:
            error.add_note(f"when batch {number} comes again, it is matched with the version in {records.path(number)}")
            raise
        self._own(records)
        ended, until = time.time(), time.monotonic() + OBSERVED_SECONDS
        record |= {"seconds": round(ended - started, 3)} | _read_numbers(results, until)
        latest = _read_numbers(events, until).get("event_time")
        if latest is not None:
            record["lag"] = round(ended - latest / 1e6, 3)
            with suppress(ValueError, OverflowError, OSError):  # a year that Python lacks
                record["event_time"] = _utc(latest / 1e6)
        records.write(number, record)
        log.info("%s, batch %d: %s", self.pointer, number, record)

    def make_metrics(self, events: DataFrame) -> list[Column]:
        """Returns the figures of a batch that Spark observes: rows, and the latest event time."""
        rows = [F.count(F.lit(1)).alias("rows")]
        if self.event_time:
            time = ColumnNames(events).column(self.event_time).cast("timestamp")
            rows.append(F.unix_micros(F.max(time)).alias("event_time"))
        return rows

    def plan_match(self, df: DataFrame, index: PinnedIndex, observe: Any) -> DataFrame:
        """Returns the matches of a DataFrame; a job that reads them does the work."""
        find: Callable[..., DataFrame] = match_topk if "k" in self.matching else match
        return find(df, index, observe=observe, **self.matching)

    def _check_owner(self, records: StreamRecords) -> None:
        """Checks that the folder of results has no batches of another stream (StoreError)."""
        owner = self._owner()
        if owner is None or not owner.is_file():
            return
        try:
            query = json.loads(owner.read_bytes())["query"]
        except (ValueError, KeyError, TypeError):
            query = "?"
        if query != records.query():
            raise StoreError(
                f"{self.sink} has the batches of another stream (query {query}): give each stream a folder of its own, and "
                "remove that folder when you remove the checkpoint"
            )

    def _own(self, records: StreamRecords) -> None:
        owner, query = self._owner(), records.query()
        if owner is not None and query and owner.parent.is_dir() and not owner.is_file():
            with replacing(owner) as file:
                file.write(json.dumps({"query": query}).encode() + b"\n")

    def _owner(self) -> Path | None:
        """Returns the file that names the stream of a folder of results; None if not local."""
        return None if callable(self.sink) or is_address(self.sink) else Path(self.sink) / "_colmatch.json"

    def _write(self, matched: DataFrame, number: int) -> None:
        if callable(self.sink):
            self.sink(matched, number)
        else:
            matched.write.format(self.format).mode("overwrite").save(f"{self.sink}/{BATCH}={number}")


def _read_numbers(observation: Observation, until: float) -> dict[str, Any]:
    """Returns the numbers of a job; none if no job has finished by ``until``.

    A classic session has the numbers a little later than the result. It would wait forever for a
    job that never runs.
    """
    java_observation = getattr(observation, "_jo", None)
    while java_observation is not None and not java_observation.future().isCompleted():
        if time.monotonic() > until:
            return {}
        time.sleep(0.01)
    numbers: dict[str, Any] = observation.get
    return numbers


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _path(value: object, what: str, classic: bool, otherwise: str = "") -> str:
    """Returns a path as an absolute path, and an address unchanged."""
    name = arguments.file_name(value)
    if not name or "\0" in name:
        raise OptionError(f"{what}={show_value(value)}: a path{otherwise} is needed")
    if is_address(name):
        return name
    if not classic and not os.path.isabs(name):
        raise OptionError(f"{what}={show_value(name)}: with Connect a path is one of the server: give it from the root")
    return os.path.abspath(name)


def _local(path: str, what: str) -> str:
    if is_address(path):
        raise OptionError(f"{what}={show_value(path)}: a path of this machine is needed; mount what it is on")
    return path


def _records_folder(records: object, checkpoint: str, classic: bool) -> str:
    if records is not None:
        return _local(_path(records, "records", classic), "records")
    if is_address(checkpoint):
        raise OptionError(
            f"the checkpoint is elsewhere, {show_value(checkpoint)}: pass a folder of this machine, records=…"
        )
    return os.path.join(checkpoint, "colmatch")


def _check_format(format: object) -> str:
    name = arguments.text(format)
    if not name:
        raise OptionError(f"format={show_value(format)}: the name of a format is needed, such as 'parquet'")
    return name


def _check_event_time(df: DataFrame, event_time: object) -> str:
    """Returns the name of the column as the DataFrame spells it, "" for none."""
    if event_time is None:
        return ""
    name = arguments.text(event_time)
    if name is None:
        raise OptionError(f"event_time={show_value(event_time)}: the name of a column is needed")
    column = ColumnNames(df).find(name, "event_time")
    type = df.schema[column].dataType.simpleString()
    if not type.startswith("timestamp"):
        raise OptionError(f"event_time={column!r}: the column is {type}, and a timestamp is needed")
    return column


def _check_matching(df: DataFrame, given: MatchArguments, to_files: bool) -> dict[str, Any]:
    """Checks arguments for ``match``, as far as possible without an index, and returns them."""
    names = _TOP_K if "k" in given else _ALL
    for name in given:
        if name not in names:
            raise OptionError(
                f"match_stream has no {name}= {'with' if 'k' in given else 'without'} k=: {suggest_names(name, names, 'it')}"
            )
    check_arguments("", given.get("mode", "pairs"), given.get("shared"))
    columns = ColumnNames(df)
    kept = read_keep(given.get("keep", ()))
    for name in kept:
        columns.find(name, "keep")
        if columns.fold_name(name) == VERSION or (to_files and columns.fold_name(name) == BATCH):
            raise OptionError(
                f"keep has {name!r}, which is a name of the result: rename the column, df.withColumnRenamed({name!r}, …)"
            )
    # Every batch reads the arguments, but an iterator can be read only once.
    once = {name: list(value) for name, value in given.items() if isinstance(value, Iterator)}
    return {**given, **once, "keep": kept}
