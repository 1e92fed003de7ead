"""Tasks for shards of subscriptions in Spark's workers: placing, building, routing.

Tasks that build answer with rows of JSON, one for each shard, since the driver holds no shard.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.errors import ColmatchError
from colmatch.given.language import Language, Missing
from colmatch.given.options import Options
from colmatch.given.schema import Attribute, Schema
from colmatch.kinds.registry import IndexName
from colmatch.kinds.settings import Settings
from colmatch.matcher import Matcher
from colmatch.matching.range_worker import RangeNames
from colmatch.spark.manifest import Route, Shard
from colmatch.spark.pivots import Layout, PivotReader, Pivots, homes
from colmatch.spark.sharded import ShardedMatcher
from colmatch.spark.storage import Folder
from colmatch.spark.worker import IndexFile, PartitionTask, in_folder, open_index, query_clock
from colmatch.subscriptions.intake import Errors
from colmatch.updates.records import attribute_entry
from colmatch.updates.versions import Parts

ANSWER = "answer string"  # schema of the answers of tasks that build
SHARD, OWN, NEEDS = "shard", "own", "needs"  # columns that are added to subscriptions
SEGMENTS_MOST = 4  # segments of a shard; more are merged
TEXT_MOST = 1 << 30  # bytes of texts that surely fit one array of Arrow's smaller type
REJECTED_MOST = 1000  # rejected expressions that the build of a shard reports


@dataclass(frozen=True)
class Recipe:
    """The arguments for building each shard, as for ``Matcher.build``."""

    schema: pa.Schema
    index: IndexName | Settings
    options: Options
    errors: Errors
    sample: pa.Table | None
    missing: Missing | None

    def matcher(self, subscriptions: pa.Table) -> Matcher:
        schema, sample = Schema(self.schema), self.sample
        most = 1.0 if self.errors == "collect" else None  # of one shard, all may be bad
        return Matcher.build(
            subscriptions, schema, self.index, self.options, self.errors, sample, missing=self.missing, max_rejected=most
        )  # fmt: skip

    def pivot_reader(self, uses: dict[Route, int]) -> PivotReader:
        return PivotReader(Schema(self.schema), self.options, Language.read_arguments("sql", self.missing), uses)


@dataclass(frozen=True)
class NeedsTask:
    """A task that counts, for each route, the predicates of a partition that need it."""

    recipe: Recipe

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader, counts = self.recipe.pivot_reader({}), Counter[Route]()
        for batch in partition:
            counts += reader.needs(number_rows(batch))
        yield answers([[route, count] for route, count in counts.items()])


@dataclass(frozen=True)
class PivotsTask:
    """A task that counts the pivots of the subscriptions of a partition.

    uses : the counts of ``NeedsTask``
    """

    recipe: Recipe
    uses: dict[Route, int]

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader, counts = self.recipe.pivot_reader(self.uses), Counter[Route | None]()
        for batch in partition:
            pivots, rows = reader.pivots(number_rows(batch))
            routes = [*pivots.known, None]
            frequencies = np.bincount(homes(pivots, len(rows)) % len(routes), minlength=len(routes))
            counts += Counter({routes[i]: int(frequencies[i]) for i in np.flatnonzero(frequencies)})
        yield answers([[route, count] for route, count in counts.items()])


@dataclass(frozen=True)
class PlaceTask:
    """A task that adds the pivots and the shard of each subscription, in two last columns.

    The columns replace a hash of the id. An invalid expression is placed like a subscription
    without a pivot: the build of that shard reports the error.
    """

    recipe: Recipe
    uses: dict[Route, int]
    layout: Layout

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = self.recipe.pivot_reader(self.uses)
        for batch in partition:
            pivots, rows = reader.pivots(number_rows(batch))
            home = np.full(len(batch), -1)
            home[rows] = homes(pivots, len(rows))
            shard = self.layout.shard_of(pivots, home, batch.column(-1).to_numpy())
            columns = [*batch.columns[:-1], _needs(pivots, rows, len(batch)), pa.array(shard.astype(np.int32))]
            yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names[:-1], NEEDS, SHARD])


@dataclass(frozen=True)
class BuildTask:
    """A task that builds the shards of a partition, numbered in its last column.

    folder : address of the folder
    """

    recipe: Recipe
    folder: str

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answers([catch_error(partial(self._build_shard, shard, rows)) for shard, rows in by_shard(partition)])

    def _build_shard(self, shard: int, subscriptions: pa.Table) -> dict[str, Any]:
        subscriptions, needs = without_needs(subscriptions)
        return save_shard(Folder(self.folder), shard, self.recipe.matcher(subscriptions), needs)


@dataclass(frozen=True)
class UpdateTask:
    """A task that changes shards by the rows of a partition.

    The last columns mark the shard's own subscriptions, and have its number. The shard inserts or
    replaces its own subscriptions. It deletes those of other rows, and of rows without an
    expression.

    shards : the shards by number; None for a shard that does not exist yet
    """

    recipe: Recipe
    folder: str
    shards: tuple[Shard | None, ...]

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answers([catch_error(partial(self._update_shard, shard, rows)) for shard, rows in by_shard(partition)])

    def _update_shard(self, shard: int, changes: pa.Table) -> dict[str, Any] | None:
        folder, before = Folder(self.folder), self.shards[shard]
        own = pc.and_(changes[OWN], pc.is_valid(changes["expression"]))
        new, lost = changes.filter(own).drop([OWN]), changes.filter(pc.invert(own))["id"]
        if before is None:
            if not len(new):
                return None
            return BuildTask(self.recipe, self.folder)._build_shard(shard, new)
        matcher = Matcher.open(folder.local(before.file), trusted=True)
        gone = lost.filter(pc.is_in(lost, matcher.ids))
        if not len(new) and not len(gone):
            return None
        if len(gone):
            matcher.delete(gone)
        new, needs = without_needs(new)
        if len(new):
            matcher.upsert(new, self.recipe.errors)
        if len(matcher.stats()["segments"]) > SEGMENTS_MOST:
            matcher.compact()
        answer = save_shard(folder, shard, matcher, needs, set(new["id"].to_pylist()) if matcher.rejected else None)
        matcher.close()
        return answer


@dataclass(frozen=True)
class RouteTask:
    """A task that repeats each row for all shards that need it, with the shard's key last.

    used, ranges, now, clock : as for ``PartitionTask``
    keys : key of each shard, as in ``partitions.py``
    """

    index: IndexFile
    used: tuple[tuple[int, str], ...]
    keys: tuple[int, ...]
    ranges: RangeNames | None = None
    now: Any = None
    clock: int | None = None

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sharded = open_index(self.index)
        assert isinstance(sharded, ShardedMatcher)
        for batch in partition:
            events = batch.select([i for i, _ in self.used]).rename_columns([name for _, name in self.used])
            now = self.now if self.clock is None or not len(batch) else query_clock(batch.column(self.clock), sharded)
            for shard, rows in sharded.routes(events, self.ranges, now).items():
                part = batch if rows is None else batch.take(rows)
                last = pa.array(np.full(len(part), self.keys[shard]))
                yield pa.RecordBatch.from_arrays([*part.columns, last], [*part.schema.names, SHARD])


@dataclass(frozen=True)
class RoutedTask:
    """A task that matches rows with one shard each: their last column has the key of the shard."""

    task: PartitionTask
    keys: tuple[int, ...]

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sharded = open_index(self.task.index)
        assert isinstance(sharded, ShardedMatcher)
        shards = dict(zip(self.keys, sharded.manifest.shards, strict=True))
        for key, batches in groupby(_of_one(partition, SHARD), key=lambda batch: batch.column(-1)[0].as_py()):
            shard = shards[key]
            if shard is not None:
                task = replace(self.task, index=in_folder(sharded.folder, shard.file))
                yield from task(batch.select(range(batch.num_columns - 1)) for batch in batches)


def _of_one(partition: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """Splits batches, so that all rows of a batch have the same value in a column."""
    for batch in partition:
        values = batch.column(name).unique()
        if len(values) == 1:
            yield batch
            continue
        for value in values:
            yield batch.filter(pc.equal(batch.column(name), value))


def by_shard(partition: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Yields the number of each shard with its rows, in their order.

    The partition is sorted by shard.
    """
    for shard, batches in groupby(_of_one(partition, SHARD), key=lambda batch: batch[SHARD][0].as_py()):
        rows = pa.Table.from_batches(batches).drop([SHARD])
        if rows["expression"].nbytes > TEXT_MOST:
            large = rows["expression"].cast(pa.large_string())
            rows = rows.set_column(rows.column_names.index("expression"), "expression", large)
        yield shard, rows.combine_chunks()  # a reader would keep both copies


def number_rows(batch: pa.RecordBatch) -> pa.Table:
    """Returns the expressions of a batch, with row numbers as ids."""
    return pa.table({"id": np.arange(len(batch)), "expression": batch.column("expression")})


def _needs(pivots: Pivots, rows: NDArray[np.int64], count: int) -> pa.ListArray:
    """Returns the pivots of each of ``count`` subscriptions, as JSON; NULL for invalid ones."""
    pair = np.unique(np.stack([rows[pivots.owner], pivots.pivot]), axis=1)
    texts = pa.array([*pivots.text, "null"], pa.string())
    offsets = np.searchsorted(pair[0], np.arange(count + 1)).astype(np.int32)
    unread = np.ones(count, bool)
    unread[rows] = False
    values = texts.take(pa.array(pair[1] % len(texts)))
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(unread))


def without_needs(subscriptions: pa.Table) -> tuple[pa.Table, list[Any] | None]:
    """Returns subscriptions without their pivots, and the distinct pivots; None if unknown."""
    if NEEDS not in subscriptions.column_names:
        return subscriptions, None
    needs = pc.unique(pc.list_flatten(subscriptions[NEEDS])).drop_null().to_pylist()
    return subscriptions.drop([NEEDS]), list(map(json.loads, needs))


def save_shard(
    folder: Folder, number: int, matcher: Matcher, needs: list[Any] | None, new: set[Any] | None = None
) -> dict[str, Any]:
    """Saves a shard; returns the answer for the driver.

    new : the answer reports rejected expressions only for these ids; None for all
    """
    file, size = folder.put(f"shard-{number:05}", matcher)
    rejected = matcher.rejected
    return {
        "number": number,
        "shard": asdict(Shard(file, len(matcher), size, None)),
        "needs": needs,
        "attributes": list(map(attribute_entry, used_attributes(matcher))),
        "session_parts": list(parts_of(matcher).version.session_parts),
        "rejected": [list(one) for one in rejected if new is None or one.id in new][:REJECTED_MOST],
    }


def parts_of(matcher: Matcher) -> Parts:
    parts: Parts = matcher._set.parts()
    return parts


def used_attributes(matcher: Matcher) -> list[Attribute]:
    """Returns the attributes that have an id in a matcher."""
    return [one for one in parts_of(matcher).version.attributes if not one.is_free]


def catch_error(ask: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """Returns an answer, or a pickled error for the driver to raise."""
    try:
        return ask()
    except ColmatchError as error:
        return {"error": base64.b64encode(pickle.dumps(error)).decode()}


def answers(found: list[Any]) -> pa.RecordBatch:
    """Returns the answers of a task as a record batch of JSON."""
    return pa.record_batch({"answer": pa.array([json.dumps(one) for one in found], pa.string())})
