"""Tasks for shards of subscriptions in Spark's workers: building, updating, matching.

Tasks that build answer with rows of JSON, one for each shard, since the driver holds no shard.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import ColmatchError
from colmatch.given.language import Missing
from colmatch.given.options import Options
from colmatch.given.schema import Attribute, Schema
from colmatch.kinds.registry import IndexName
from colmatch.kinds.settings import Settings
from colmatch.matcher import Matcher
from colmatch.spark.manifest import Shard
from colmatch.spark.sharded import ShardedMatcher
from colmatch.spark.storage import Folder
from colmatch.spark.worker import PartitionTask, in_folder, open_index
from colmatch.subscriptions.intake import Errors
from colmatch.updates.records import attribute_entry
from colmatch.updates.versions import Parts

ANSWER = "answer string"  # schema of the answers of tasks that build
SHARD = "colmatch shard"  # a column that is added to subscriptions and events
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
        return save_shard(Folder(self.folder), shard, self.recipe.matcher(subscriptions))


@dataclass(frozen=True)
class UpdateTask:
    """A task that changes shards by the rows of a partition.

    The last column has the number of the shard. A row without an expression deletes.

    shards : the shards by number; None for a shard that does not exist yet
    """

    recipe: Recipe
    folder: str
    shards: tuple[Shard | None, ...]

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answers([catch_error(partial(self._update_shard, shard, rows)) for shard, rows in by_shard(partition)])

    def _update_shard(self, shard: int, changes: pa.Table) -> dict[str, Any] | None:
        folder, before = Folder(self.folder), self.shards[shard]
        kept = pc.is_valid(changes["expression"])
        new, lost = changes.filter(kept), changes.filter(pc.invert(kept))["id"]
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
        if len(new):
            matcher.upsert(new, self.recipe.errors)
        if len(matcher.stats()["segments"]) > SEGMENTS_MOST:
            matcher.compact()
        answer = save_shard(folder, shard, matcher, set(new["id"].to_pylist()) if matcher.rejected else None)
        matcher.close()
        return answer


@dataclass(frozen=True)
class RoutedTask:
    """A task that matches rows with one shard each: their last column has its number."""

    task: PartitionTask

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sharded = open_index(self.task.index)
        assert isinstance(sharded, ShardedMatcher)
        for number, batches in groupby(_of_one(partition, SHARD), key=lambda batch: batch.column(-1)[0].as_py()):
            shard = sharded.manifest.shards[number]
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


def save_shard(folder: Folder, number: int, matcher: Matcher, new: set[Any] | None = None) -> dict[str, Any]:
    """Saves a shard; returns the answer for the driver.

    new : the answer reports rejected expressions only for these ids; None for all
    """
    file, size = folder.put(f"shard-{number:05}", matcher)
    rejected = matcher.rejected
    return {
        "number": number,
        "shard": asdict(Shard(file, len(matcher), size)),
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
