"""The Python data source ``colmatch``, which matches files of events where they are read.

Spark hands rows to Python through the JVM, which takes longer than matching. Here, Spark's Python
workers read files with pyarrow, and only the columns that expressions and ``keep`` name. Spark gets
only the matches.

A partition is some row groups of Parquet files, or whole files of another format. Spark applies the
filters of a query to the matches. The source takes no filters. Up to Spark 4.3, the filters of one
query would stay with its DataFrame, and other queries of the DataFrame would lack rows.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import StructType

from colmatch.errors import EventError, OptionError, show_value, suggest_names
from colmatch.events.gather import match_names
from colmatch.given.arguments import check_choice, check_whole
from colmatch.matcher import Matcher
from colmatch.matching.kept import find_kept_fields
from colmatch.spark.event_files import FORMATS, check_json, read_dataset
from colmatch.spark.frames import RESULTS, MatchMode
from colmatch.spark.probe import check_workers
from colmatch.spark.settings import SessionSettings, arrow_schema, check_settings
from colmatch.spark.worker import IndexFile, PartitionTask, open_index
from colmatch.store import saved
from colmatch.store.file import content_hash
from colmatch.tables.columns import Best

ROWS = 1 << 20  # rows of a partition, about
AHEAD = 2  # batches of results that are made before Spark takes them
OPTIONS = {
    "index": "the file of a saved matcher, which all workers see",
    "path": "files, folders or patterns of events, which load() names",
    "paths": "several of them, as load() says it",
    "keep": "columns of the events in the result, separated by commas, or a list as JSON",
    "mode": "pairs, or for each event a row: list, with all subscriptions; count; or exists",
    "k": "the best matches of each event, so many",
    "score": "with k, what they are best by: dot, sum, max or priority",
    "ids": "only these subscriptions, separated by commas, or a list as JSON",
    "tags": "only subscriptions with one of these tags, separated by commas, or a list as JSON",
    "format": f"of the files: {', '.join(FORMATS)}",
    "rows": "of a partition, about; 1048576 by default",
}


def register_source(spark: SparkSession) -> None:
    """Registers the data source ``colmatch`` with a session.

    >>> spark.read.format("colmatch").option("index", "alerts.cm").load("events/")  # doctest: +SKIP

    The result has the columns of ``keep``, then ``subscription``, and with ``k`` the ``score``. In
    other modes, ``subscriptions``, ``count`` or ``exists`` takes their place. ``OPTIONS`` lists all
    options.

    Raises
    ------
    DependencyError : Spark's workers cannot run colmatch
    """
    check_workers(spark, not type(spark).__module__.startswith("pyspark.sql.connect"))
    # A subclass carries these values to Spark's workers.
    here = {"folder": os.getcwd(), "settings": SessionSettings.of(spark)}
    spark.dataSource.register(type("SessionFiles", (MatchedFiles,), here))


@dataclass(frozen=True)
class Query:
    """The checked options of a query.

    Attributes
    ----------
    dataset : the events
    columns : columns to read: first the kept columns, then the others that expressions use
    result : schema of the result
    ids : only these subscriptions, None for all
    tags : only subscriptions with one of these, None for all
    rows : rows of a partition, about
    """

    dataset: ds.Dataset
    index: IndexFile
    columns: tuple[str, ...]
    used: tuple[tuple[int, str], ...]
    kept: int
    result: pa.Schema
    mode: MatchMode
    best: Best | None
    ids: list[Any] | None
    tags: list[str] | None
    rows: int

    def task(self) -> PartitionTask:
        """Returns the task for batches of ``columns``."""
        among = None
        if self.ids is not None or self.tags is not None:
            among = open_index(self.index).subset(self.ids, self.tags)
        names = tuple(self.result.names)
        return PartitionTask(self.index, self.kept, self.used, self.mode, names, self.best, None, among)


class MatchedFiles(DataSource):
    """The data source ``colmatch``.

    Attributes
    ----------
    folder : folder that relative paths begin at
    settings : settings of the session when it registered the source; None to check none
    """

    folder = ""
    settings: SessionSettings | None = None

    @classmethod
    def name(cls) -> str:
        return "colmatch"

    def schema(self) -> StructType:
        return from_arrow_schema(self._query().result)

    def reader(self, schema: StructType) -> DataSourceReader:
        # Sail passes an Arrow schema.
        return MatchedReader(self._query(), schema if isinstance(schema, pa.Schema) else arrow_schema(schema, "UTC"))

    def _query(self) -> Query:
        return query_of(self.options, self.folder, self.settings)


class MatchedReader(DataSourceReader):
    """A reader that matches the files of a query.

    Attributes
    ----------
    schema : schema of the result, as Spark expects it
    """

    def __init__(self, query: Query, schema: pa.Schema) -> None:
        if schema.names != query.result.names:
            raise OptionError(f"the columns of the result are {', '.join(query.result.names)}: leave .schema(...) out")
        self.query, self.schema = query, schema

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in _parts(self.query)] or [InputPartition([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        fragments: list[ds.Fragment] = partition.value
        if not fragments:
            return
        first, query = fragments[0], self.query
        if isinstance(first.format, ds.JsonFileFormat):
            for fragment in fragments:
                check_json(fragment)
        dataset = ds.FileSystemDataset(fragments, query.dataset.schema, first.format, first.filesystem)
        events = dataset.scanner(columns=list(query.columns)).to_reader()
        for batch in _make_ahead(query.task()(iter(events))):
            columns = [column.cast(field.type) for column, field in zip(batch.columns, self.schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _make_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields batches while a thread makes the next ones.

    Spark's pipe holds little. Without the thread, a worker waits for the JVM to take matches, and
    the JVM waits for the worker to find more.
    """
    thread = ThreadPoolExecutor(1, "colmatch-source")
    try:
        futures = deque(thread.submit(next, batches, None) for _ in range(AHEAD))
        while (batch := futures.popleft().result()) is not None:
            futures.append(thread.submit(next, batches, None))
            yield batch
    finally:
        thread.shutdown(cancel_futures=True)


def query_of(options: Mapping[str, str], folder: str = "", settings: SessionSettings | None = None) -> Query:
    """Checks options and returns the query; relative paths begin at ``folder``.

    settings : settings of the session, where expressions must mean the same; None to check none

    Raises
    ------
    OptionError : an option is unknown, missing, or cannot be used. Or an expression means something
        else in the session
    EventError : the files cannot be read, or lack a column that is needed
    StoreError : the index is absent or damaged
    """
    unknown = [name for name in options if name.lower() not in OPTIONS]
    if unknown:
        raise OptionError(f"there is no option {unknown[0]!r}: {suggest_names(unknown[0], OPTIONS, 'the source')}")
    if "index" not in options:
        raise OptionError('the index is missing: .option("index", "alerts.cm")')
    path = os.path.join(folder, saved.file_name(options["index"]))
    matcher = Matcher.open(path)
    if settings is not None:
        check_settings(settings, matcher)
    mode: MatchMode = check_choice("mode={}", options.get("mode", "pairs"), get_args(MatchMode))
    best = None
    if "k" in options:
        if mode != "pairs":
            raise OptionError(f"mode={mode} has no place for scores: leave mode, or k, out")
        best = Best(_whole(options, "k"), options.get("score", "dot"), None)  # type: ignore[arg-type]
    elif "score" in options:
        raise OptionError("score is for the best matches: give k, too")
    dataset = read_dataset(options, folder, "UTC" if settings is None else settings.zone)
    keep = _read_list(options, "keep") or []
    id_type = pa.int64() if pa.types.is_integer(matcher.ids.type) else pa.string()
    types = {
        "subscription": id_type, "subscriptions": pa.list_(id_type), "count": pa.int64(), "exists": pa.bool_(),
        "score": pa.float64(),
    }  # fmt: skip
    names = [*RESULTS[mode], *(["score"] if best is not None else [])]
    answer = [pa.field(name, types[name], nullable=False) for name in names]

    fields = find_kept_fields(keep, dataset.schema, names, ())
    for field in fields:
        try:
            from_arrow_type(field.type)
        except PySparkException:
            raise EventError(
                f"keep has {field.name!r} of the type {field.type}, which Spark has not: leave it out, or cast it in the files"
            ) from None
    columns, used = [field.name for field in fields], []
    needed = matcher.columns if best is None else matcher.columns_with(k=best.k, score=best.score)
    for name in needed:
        matches = match_names(dataset.schema.names, [name])
        if len(matches) != 1:
            if not matches and matcher.options.missing_columns == "null":
                continue
            why = suggest_names(name, dataset.schema.names, "each file")
            raise EventError(
                f"the events have {len(matches) or 'no'} column {name!r}, which the expressions use: {why}"
            )
        if matches[0] not in columns:
            columns.append(matches[0])
        used.append((columns.index(matches[0]), name))
    one = pa.RecordBatch.from_arrays(
        [pa.nulls(1, dataset.schema.field(columns[i]).type) for i, _ in used], [name for _, name in used]
    )
    matcher.count(one)  # raises the error for a column of a wrong type before a job begins
    ids = _read_list(options, "ids")
    return Query(
        dataset=dataset,
        index=IndexFile(content_hash(path), path, path, artifact=False),
        columns=tuple(columns),
        used=tuple(used),
        kept=len(fields),
        result=pa.schema([*fields, *answer]),
        mode=mode,
        best=best,
        ids=ids if ids is None or id_type == pa.string() else [_number(id) for id in ids],
        tags=_read_list(options, "tags"),
        rows=_whole(options, "rows") if "rows" in options else ROWS,
    )


def _parts(query: Query) -> Iterator[list[ds.Fragment]]:
    """Yields the fragments of each partition: row groups of Parquet, else whole files."""
    part: list[ds.Fragment] = []
    rows = 0
    for fragment in query.dataset.get_fragments():
        pieces = fragment.split_by_row_group() if isinstance(fragment, ds.ParquetFileFragment) else [fragment]
        for piece in pieces:
            count = (
                sum(group.num_rows for group in piece.row_groups)
                if isinstance(piece, ds.ParquetFileFragment)
                else query.rows
            )
            if part and rows + count > query.rows:
                yield part
                part, rows = [], 0
            part.append(piece)
            rows += count
    if part:
        yield part


def _read_list(options: Mapping[str, str], name: str) -> list[str] | None:
    """Returns the list in an option: separated by commas, or as JSON, for names with commas."""
    value = options.get(name)
    if value is None or not value.lstrip().startswith("["):
        return None if value is None else [one.strip() for one in value.split(",") if one.strip()]
    try:
        listed = json.loads(value)
    except ValueError as error:
        raise OptionError(
            f"{name}={show_value(value)}: what begins with [ is a list as JSON, and this is none: {error}"
        ) from None
    wrong = [one for one in listed if isinstance(one, bool) or not isinstance(one, str | int)]
    if wrong:
        raise OptionError(
            f"{name}={show_value(value)}: a list as JSON has texts here, and numbers as ids, not {show_value(wrong[0])}"
        )
    return [str(one) for one in listed]


def _whole(options: Mapping[str, str], name: str) -> int:
    return check_whole(f"{name}={{}}", _number(options[name]), 1, 2**31 - 1)


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text
