"""What runs in Spark's workers where subscriptions are shards: placing, building, routing.

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
from colmatch.spark.worker import IndexFile, Task, in_folder, open_index
from colmatch.subscriptions.intake import Errors
from colmatch.updates.records import attribute_entry
from colmatch.updates.versions import Parts

ANSWER = "answer string"  # of tasks that build
SHARD, OWN, NEEDS = "shard", "own", "needs"  # columns that are added to subscriptions
SEGMENTS_MOST = 4  # of a shard, before they are merged
TEXT_MOST = 1 << 30  # bytes of texts that are sure to fit Arrow's smaller type in one piece
REJECTED_MOST = 1000  # of a shard, that its build tells of


@dataclass(frozen=True)
class Recipe:
    """How each shard is built; as for ``Matcher.build``."""

    schema: pa.Schema
    index: IndexName | Settings
    options: Options
    errors: Errors
    sample: pa.Table | None
    missing: Missing | None

    def matcher(self, subscriptions: pa.Table) -> Matcher:
        """Builds a matcher."""
        schema, sample = Schema(self.schema), self.sample
        return Matcher.build(
            subscriptions, schema, self.index, self.options, self.errors, sample, missing=self.missing
        )  # fmt: skip

    def pivot_reader(self, uses: dict[Route, int]) -> PivotReader:
        """Returns what finds pivots."""
        return PivotReader(Schema(self.schema), self.options, Language.asked_for("sql", self.missing), uses)


@dataclass(frozen=True)
class NeedsTask:
    """Counts what rows must have for the expressions of a partition to be true."""

    recipe: Recipe

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader, counts = self.recipe.pivot_reader({}), Counter[Route]()
        for batch in partition:
            counts += reader.needs(numbered(batch))
        yield answers([[route, count] for route, count in counts.items()])


@dataclass(frozen=True)
class PivotsTask:
    """Counts the pivots of the subscriptions of a partition.

    uses : what ``NeedsTask`` has counted
    """

    recipe: Recipe
    uses: dict[Route, int]

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader, counts = self.recipe.pivot_reader(self.uses), Counter[Route | None]()
        for batch in partition:
            pivots, rows = reader.pivots(numbered(batch))
            known = [*pivots.known, None]
            found = np.bincount(homes(pivots, len(rows)) % len(known), minlength=len(known))
            counts += Counter({known[i]: int(found[i]) for i in np.flatnonzero(found)})
        yield answers([[route, count] for route, count in counts.items()])


@dataclass(frozen=True)
class PlaceTask:
    """Says what rows each subscription needs, and to which shard it belongs, in two last columns.

    They take the place of a hash of the id. What cannot be understood goes where subscriptions
    without a pivot go: that shard's build says what is wrong with it.
    """

    recipe: Recipe
    uses: dict[Route, int]
    layout: Layout

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = self.recipe.pivot_reader(self.uses)
        for batch in partition:
            pivots, rows = reader.pivots(numbered(batch))
            home = np.full(len(batch), -1)
            home[rows] = homes(pivots, len(rows))
            shard = self.layout.shard_of(pivots, home, batch.column(-1).to_numpy())
            columns = [*batch.columns[:-1], _needs(pivots, rows, len(batch)), pa.array(shard.astype(np.int32))]
            yield pa.RecordBatch.from_arrays(columns, [*batch.schema.names[:-1], NEEDS, SHARD])


@dataclass(frozen=True)
class BuildTask:
    """Builds a shard of the subscriptions of a partition, whose last column says which.

    folder : address of the folder
    """

    recipe: Recipe
    folder: str

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answers([answered(partial(self._built, shard, rows)) for shard, rows in by_shard(partition)])

    def _built(self, shard: int, subscriptions: pa.Table) -> dict[str, Any]:
        subscriptions, needs = without_needs(subscriptions)
        return saved(Folder(self.folder), shard, self.recipe.matcher(subscriptions), needs)


@dataclass(frozen=True)
class UpdateTask:
    """Changes a shard by the rows of a partition, which say what is its own, and which it is.

    A subscription that belongs to the shard is inserted, or takes the place of one. Of other rows,
    those without an expression among them, the shard loses the subscription.

    shards : files of the shards, by number; None where there is none yet
    """

    recipe: Recipe
    folder: str
    shards: tuple[Shard | None, ...]

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield answers([answered(partial(self._changed, shard, rows)) for shard, rows in by_shard(partition)])

    def _changed(self, shard: int, changes: pa.Table) -> dict[str, Any] | None:
        folder, before = Folder(self.folder), self.shards[shard]
        own = pc.and_(changes[OWN], pc.is_valid(changes["expression"]))
        new, lost = changes.filter(own).drop([OWN]), changes.filter(pc.invert(own))["id"]
        if before is None:
            if not len(new):
                return None
            return BuildTask(self.recipe, self.folder)._built(shard, new)
        matcher = Matcher.open(folder.local(before.file), trusted=True)
        gone = lost.filter(pc.is_in(lost, matcher.ids))
        if not len(new) and not len(gone):
            return None
        if len(gone):
            matcher.delete(gone)
        new, needs = without_needs(new)
        if len(new):
            matcher.replace(new, self.recipe.errors)
        if len(matcher.stats()["segments"]) > SEGMENTS_MOST:
            matcher.compact()
        answer = saved(folder, shard, matcher, needs, set(new["id"].to_pylist()) if matcher.rejected else None)
        matcher.close()
        return answer


@dataclass(frozen=True)
class RouteTask:
    """Sends rows to the shards that need them: a row comes once for each, with its key last.

    used, ranges, now : as for ``Task``
    keys : of each shard
    """

    index: IndexFile
    used: tuple[tuple[int, str], ...]
    keys: tuple[int, ...]
    ranges: RangeNames | None = None
    now: Any = None

    def __call__(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sharded = open_index(self.index)
        assert isinstance(sharded, ShardedMatcher)
        for batch in partition:
            events = batch.select([i for i, _ in self.used]).rename_columns([name for _, name in self.used])
            for shard, rows in sharded.routes(events, self.ranges, self.now).items():
                part = batch if rows is None else batch.take(rows)
                last = pa.array(np.full(len(part), self.keys[shard]))
                yield pa.RecordBatch.from_arrays([*part.columns, last], [*part.schema.names, SHARD])


@dataclass(frozen=True)
class RoutedTask:
    """Matches the rows of a partition with the shard that their last column, a key, is of."""

    task: Task
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
    """Yields batches in each of which all rows have one value of a column."""
    for batch in partition:
        values = batch.column(name).unique()
        if len(values) == 1:
            yield batch
            continue
        for value in values:
            yield batch.filter(pc.equal(batch.column(name), value))


def by_shard(partition: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Yields the number of each shard, and its rows.

    Rows come by shard, and their order is kept.
    """
    for shard, batches in groupby(_of_one(partition, SHARD), key=lambda batch: batch[SHARD][0].as_py()):
        rows = pa.Table.from_batches(batches).drop([SHARD])
        if rows["expression"].nbytes > TEXT_MOST:
            large = rows["expression"].cast(pa.large_string())
            rows = rows.set_column(rows.column_names.index("expression"), "expression", large)
        yield shard, rows.combine_chunks()  # what reads them would keep both


def numbered(batch: pa.RecordBatch) -> pa.Table:
    """Returns the expressions of a batch, with the numbers of its rows for ids."""
    return pa.table({"id": np.arange(len(batch)), "expression": batch.column("expression")})


def _needs(pivots: Pivots, rows: NDArray[np.int64], count: int) -> pa.ListArray:
    """Returns the pivots of each of ``count`` subscriptions, as JSON; NULL for what was unread."""
    pair = np.unique(np.stack([rows[pivots.owner], pivots.pivot]), axis=1)
    texts = pa.array([*pivots.text, "null"], pa.string())
    offsets = np.searchsorted(pair[0], np.arange(count + 1)).astype(np.int32)
    unread = np.ones(count, bool)
    unread[rows] = False
    values = texts.take(pa.array(pair[1] % len(texts)))
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(unread))


def without_needs(subscriptions: pa.Table) -> tuple[pa.Table, list[Any] | None]:
    """Returns subscriptions, and what rows they need together; None where that is not known."""
    if NEEDS not in subscriptions.column_names:
        return subscriptions, None
    needs = pc.unique(pc.list_flatten(subscriptions[NEEDS])).drop_null().to_pylist()
    return subscriptions.drop([NEEDS]), list(map(json.loads, needs))


def saved(
    folder: Folder, number: int, matcher: Matcher, needs: list[Any] | None, new: set[Any] | None = None
) -> dict[str, Any]:
    """Saves a shard; returns what the driver needs to know of it.

    new : ids whose rejected expressions it is to tell; None for all
    """
    file, size = folder.put(f"shard-{number:05}", matcher)
    rejected = matcher.rejected
    return {
        "number": number,
        "shard": asdict(Shard(file, len(matcher), size, None)),
        "needs": needs,
        "attributes": list(map(attribute_entry, used_attributes(matcher))),
        "literal": matcher.local_literal,
        "rejected": [list(one) for one in rejected if new is None or one.id in new][:REJECTED_MOST],
    }


def parts_of(matcher: Matcher) -> Parts:
    """Returns what a matcher in memory is made of."""
    parts: Parts = matcher._set.parts()
    return parts


def used_attributes(matcher: Matcher) -> list[Attribute]:
    """Returns the attributes that have an id in a matcher."""
    return [one for one in parts_of(matcher).version.attributes if not one.is_free]


def answered(ask: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """Returns an answer, or what went wrong, for the driver to raise."""
    try:
        return ask()
    except ColmatchError as error:
        return {"error": base64.b64encode(pickle.dumps(error)).decode()}


def answers(found: list[Any]) -> pa.RecordBatch:
    """Returns what a task answers as Spark takes it."""
    return pa.record_batch({"answer": pa.array([json.dumps(one) for one in found], pa.string())})
