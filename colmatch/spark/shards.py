"""Subscriptions beyond one machine's memory: a folder of shards, each built by a task of Spark.

The driver holds no shard. It reads the answers of the tasks, and writes a manifest
(``manifest.py``). ``sharded.py`` matches shards one after the other. ``plans.py`` chooses a plan.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, get_args

import pyarrow as pa

from colmatch.errors import (
    DependencyError,
    OptionError,
    Rejected,
    SchemaError,
    StoreError,
    SubscriptionError,
    parse_rejected,
    show_value,
    suggest_names,
)
from colmatch.given.arguments import check_choice, check_whole, file_name

try:
    from pyspark.sql import DataFrame, Window
    from pyspark.sql import functions as F
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
    from pyspark.sql.types import IntegralType, NullType, StringType
except ImportError as error:
    raise DependencyError(f'colmatch.spark needs PySpark 4: pip install "colmatch[spark]" ({error})') from error

from colmatch.given.language import Language, Missing
from colmatch.given.options import Options
from colmatch.given.schema import Attribute, Attributes, Schema
from colmatch.given.session import SessionParts, same_zone
from colmatch.kinds.plan import read_settings
from colmatch.kinds.registry import IndexName, is_in_pages
from colmatch.kinds.settings import Settings
from colmatch.matcher import Matcher
from colmatch.spark.manifest import (
    VERSIONS_KEPT,
    Manifest,
    Shard,
    publish,
    read_present,
    sweep,
)
from colmatch.spark.matchers import options_for, sample_of, schema_for
from colmatch.spark.partitions import spread
from colmatch.spark.probe import check_workers, guard_task
from colmatch.spark.settings import SessionSettings
from colmatch.spark.shard_tasks import (
    ANSWER,
    SHARD,
    BuildTask,
    Recipe,
    UpdateTask,
    parts_of,
    used_attributes,
)
from colmatch.spark.storage import Folder, is_address, locked
from colmatch.subscriptions.change_feed import AFTER, BEFORE, DELETED, KIND, OF_FEED, VERSION
from colmatch.subscriptions.definitions import COLUMN as DEFINE
from colmatch.subscriptions.ids import Ids
from colmatch.subscriptions.intake import Errors
from colmatch.updates.initial import build_parts, take_in
from colmatch.updates.memory_set import MemorySet
from colmatch.updates.records import attribute_of

SHARDS_MOST = 10_000
_COLUMNS = ("id", "expression", "weights", "priority", "tags")


@dataclass(frozen=True)
class ShardSet:
    """A version of a folder of shards.

    Attributes
    ----------
    path : path or address of the folder
    version : 1 for the first build, one more for each build or update since
    sizes : number of subscriptions of each shard
    bytes : size of the file of each shard
    written : numbers of the shards that the call wrote; empty after ``describe_shards``
    rejected : expressions that the call left out, with ``errors="collect"``: at most 1,000 of each
        shard
    """

    path: str
    version: int
    sizes: tuple[int, ...]
    bytes: tuple[int, ...]
    written: tuple[int, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    def __len__(self) -> int:
        return sum(self.sizes)


def build_shards(
    subscriptions: DataFrame,
    df: DataFrame,
    path: str | os.PathLike[str],
    shards: int,
    index: IndexName | Settings = "auto",
    options: Options | None = None,
    errors: Errors = "raise",
    sample: Any = None,
    missing: Missing | None = None,
) -> ShardSet:
    """Indexes subscriptions as shards. A Spark task builds and saves each shard.

    Parameters
    ----------
    subscriptions : columns ``id``, whole numbers or strings, and ``expression``, and optionally
        ``weights``, ``priority`` and ``tags``; as for ``colmatch.spark.build``
    df : a DataFrame with the columns that expressions name, as for ``colmatch.spark.build``
    path : a folder that the driver and all workers see, or its address, such as
        ``s3://bucket/alerts``. New shards replace old ones when all of them are written
    shards : number of shards, at most 10,000, by a hash of the id. A task needs the memory to build
        one
    index, options, errors, sample, missing : as for ``colmatch.spark.build``, for each shard

    Returns
    -------
    ShardSet : sizes of the shards

    Raises
    ------
    SubscriptionError : a column is absent or of a wrong type, or an id is repeated
    ExpressionError : an expression is invalid, with ``errors="raise"``
    OptionError, SchemaError, StoreError, DependencyError : the other arguments cannot be used, or
        workers cannot run colmatch
    """
    count = check_whole("shards={}", shards, 1, SHARDS_MOST)
    table = _check_subscriptions(subscriptions)
    recipe = _recipe(df, index, options, errors, sample, missing)
    folder = _folder_of(path, df)
    folder.make()
    before = _before(folder)
    check_workers(df.sparkSession, isinstance(df, ClassicDataFrame))
    ids = "string" if isinstance(table.schema["id"].dataType, StringType) else "int64"
    manifest = Manifest(1 if before is None else before.version + 1, (None,) * count, ids, "")
    answers = _run_task(_assign_shards(table, count), count, BuildTask(recipe, folder.address))
    return _publish_shards(folder, recipe, manifest, before, answers)


def update_shards(
    changes: DataFrame, df: DataFrame, path: str | os.PathLike[str], errors: Errors = "raise"
) -> ShardSet:
    """Changes subscriptions in shards. Only shards with changes are rewritten.

    A query keeps the version that it was planned with, while that version is among the eight
    newest.

    Parameters
    ----------
    changes : columns as for ``build_shards``. A row replaces the subscription with its id, or adds
        one. A row with NULL in ``expression`` deletes the subscription; an unknown id is no error.
        Of a change feed of Delta Lake (columns ``_change_type`` and ``_commit_version``), the last
        change of each id counts
    df : as for ``build_shards``, of the same schema and session settings
    path : path or address of the folder
    errors : as for ``build_shards``. An invalid expression that is left out does not remove the old
        subscription

    Raises
    ------
    StoreError : the folder holds no shards, or another call changed them during this one: call
        again. At an address, two calls at once are not detected: let one process at a time call
        this
    SubscriptionError, ExpressionError, OptionError, SchemaError, DependencyError : as from
        ``build_shards``
    """
    folder = _folder_of(path, changes)
    before = read_present(folder)
    table = _check_subscriptions(_last_changes(changes))
    model = Matcher.open(folder.local(before.model))
    recipe = _same_recipe(df, model, errors, folder.address)
    if (ids := pa.int64() if isinstance(table.schema["id"].dataType, IntegralType) else pa.string()) != before.id_type:
        raise SubscriptionError(f"ids of the changes are {ids}, and those of {folder.address} are {before.ids}")
    check_workers(df.sparkSession, isinstance(df, ClassicDataFrame))
    _check_unique(table)
    placed = _assign_shards(table, len(before.shards))
    task = UpdateTask(recipe, folder.address, before.shards)
    answers = _run_task(placed, len(before.shards), task)
    if not answers:
        return _summary(folder, before)
    after = replace(before, version=before.version + 1)
    return _publish_shards(folder, recipe, after, before, answers, model)


def describe_shards(path: str | os.PathLike[str]) -> ShardSet:
    """Returns the current version of a folder of shards.

    Raises StoreError: the folder holds no shards, or its manifest is damaged.
    """
    folder = Folder(path)
    return _summary(folder, read_present(folder))


def _check_subscriptions(given: Any) -> DataFrame:
    """Checks subscriptions; returns the columns for shards, ids as long or string."""
    if not isinstance(given, DataFrame):
        raise SubscriptionError(f"subscriptions are a Spark DataFrame here, not {type(given).__name__}")
    if given.isStreaming:
        raise SubscriptionError("subscriptions are a stream: shards are built of a DataFrame that is none")
    for name in ("id", "expression"):
        if name not in given.columns:
            raise SubscriptionError(
                f"the DataFrame of subscriptions has no column {name!r}: {suggest_names(name, given.columns, 'it')}"
            )
    if set(OF_FEED) <= set(given.columns):
        raise SubscriptionError(
            "the DataFrame is a change feed: update_shards() takes it, and build_shards() the table itself"
        )
    if DEFINE in given.columns:
        raise SubscriptionError(
            f"the DataFrame of subscriptions has a column {DEFINE!r}: shards take no definitions, so write them out"
        )
    kept = given.select(*[name for name in _COLUMNS if name in given.columns])
    types = {field.name: field.dataType for field in kept.schema}
    if isinstance(types["expression"], NullType):  # all changes are deletions
        kept = kept.withColumn("expression", F.col("expression").cast("string"))
    elif not isinstance(types["expression"], StringType):
        raise SubscriptionError(f"column 'expression' is {types['expression'].simpleString()}, a string is needed")
    if isinstance(types["id"], IntegralType):
        return kept.withColumn("id", F.col("id").cast("long"))
    if not isinstance(types["id"], StringType):
        raise SubscriptionError(f"column 'id' is {types['id'].simpleString()}, whole numbers or strings are needed")
    return kept


def _last_changes(given: Any) -> Any:
    """Returns the last change of each id in a change feed, and any other DataFrame as it is."""
    if not isinstance(given, DataFrame) or not {"id", "expression", *OF_FEED} <= set(given.columns):
        return given
    kind, is_new = F.col(KIND), F.col(KIND).isin(*AFTER)
    # rank() keeps two new rows of one id, which are an error; a deletion is there once
    window = Window.partitionBy("id").orderBy(F.col(VERSION).desc(), is_new.desc())
    rank = F.when(is_new, F.rank().over(window)).otherwise(F.row_number().over(window))
    unknown = F.raise_error(
        F.concat(F.lit(f"column {KIND!r} has no change of Delta Lake: "), F.coalesce(kind, F.lit("NULL")))
    )
    missing = F.raise_error(
        F.concat(F.lit("column 'expression' is NULL in the new row of id "), F.col("id").cast("string"))
    )
    text = F.when(is_new, F.col("expression")).when(kind.isin(DELETED, BEFORE), F.lit(None)).otherwise(unknown)
    ranked = given.withColumn("expression", text).withColumn("colmatch rank", rank).where("`colmatch rank` = 1")
    text = F.when(is_new, F.coalesce(F.col("expression"), missing))
    return ranked.withColumn("expression", text).drop("colmatch rank", *OF_FEED)


def _check_unique(table: DataFrame) -> None:
    twice = table.groupBy("id").count().where("count > 1").limit(1).collect()
    if twice:
        raise SubscriptionError(f"id {twice[0].id!r} is given more than once: ids must be unique")


def _recipe(
    df: Any, index: Any, options: Options | None, errors: Errors, sample: Any, missing: Missing | None
) -> Recipe:
    check_choice("errors={}", errors, get_args(Errors))
    schema = schema_for(df)
    requested = read_settings(index)
    if is_in_pages(requested):
        raise OptionError(
            f"index={requested.kind!r}: shards are files that workers map into memory: leave its path out"
        )
    recipe = Recipe(schema.arrow, index, options_for(df, options), errors, sample_of(sample), missing)
    recipe.matcher(pa.table({"id": pa.array([], pa.int64()), "expression": pa.array([], pa.string())}))
    return recipe


def _same_recipe(df: Any, model: Matcher, errors: Errors, where: str) -> Recipe:
    """Returns the recipe of existing shards; checks that expressions mean the same for ``df``."""
    check_choice("errors={}", errors, get_args(Errors))
    schema, options = schema_for(df), model.options
    if schema.arrow != model.schema.arrow or schema.case_sensitive != model.schema.case_sensitive:
        raise SchemaError(f"df has other columns, or names them otherwise, than {where} was built for: {model.schema}")
    now = SessionSettings.of(df.sparkSession)
    if now.ansi != options.ansi or not same_zone(now.zone, options.timezone):
        raise OptionError(
            f"this session has spark.sql.session.timeZone={now.zone!r} and spark.sql.ansi.enabled={str(now.ansi).lower()}, and "
            f"{where} was built with {options.timezone!r} and {str(options.ansi).lower()}: set these, or build it again"
        )
    return Recipe(model.schema.arrow, parts_of(model).requested, options, errors, None, model.missing)


def _folder_of(path: Any, df: Any) -> Folder:
    """Returns the folder. With Connect, the path must be absolute: the server uses it, too."""
    name = file_name(path) or ""
    if (
        isinstance(df, DataFrame)
        and not isinstance(df, ClassicDataFrame)
        and not (is_address(name) or os.path.isabs(name))
    ):
        raise StoreError(
            f"{show_value(path)}: with Connect the server and this machine must see the folder: give its path from the root"
        )
    return Folder(path)


def _before(folder: Folder) -> Manifest | None:
    """Returns the present version; None if there is no readable one."""
    try:
        return read_present(folder)
    except StoreError:
        return None


def _assign_shards(table: DataFrame, count: int) -> DataFrame:
    """Adds the number of the shard to subscriptions, as the last column."""
    return table.withColumn(SHARD, F.pmod(F.xxhash64("id"), F.lit(count)).cast("int"))


def _run_task(placed: DataFrame, count: int, task: Any) -> list[dict[str, Any]]:
    """Runs the task for each shard; returns the answers, or raises the error of one."""
    # Spark sorts, since it can do so on disk. By id, so that the same rows are the same file.
    parts = spread(placed, F.col(SHARD), count).sortWithinPartitions(SHARD, "id")
    answers = [one for one in _rows(parts, task) if one is not None]
    for one in answers:
        if "error" in one:
            raise pickle.loads(base64.b64decode(one["error"]))
    return answers


def _rows(df: DataFrame, task: Any) -> Iterator[Any]:
    for row in df.mapInArrow(guard_task(task), ANSWER).collect():
        yield json.loads(row.answer)


def _publish_shards(
    folder: Folder,
    recipe: Recipe,
    manifest: Manifest,
    before: Manifest | None,
    answers: list[dict[str, Any]],
    model: Matcher | None = None,
) -> ShardSet:
    """Publishes the shards that tasks have written."""
    all_shards: list[Shard | None] = list(manifest.shards)
    attributes = [] if model is None else used_attributes(model)
    parts = SessionParts() if model is None else parts_of(model).version.session_parts
    for answer in answers:
        all_shards[answer["number"]] = Shard(**answer["shard"])
        attributes += map(attribute_of, answer["attributes"])
        parts = parts.with_others(SessionParts(*answer["session_parts"]))
    shared = _model(recipe, manifest.id_type, list(dict.fromkeys(attributes)), parts)
    earlier = () if before is None else (*before.earlier, before.name)[-(VERSIONS_KEPT - 1) :]
    manifest = replace(
        manifest,
        shards=tuple(all_shards),
        model=folder.put("model", shared)[0],
        earlier=earlier,
    )
    with _turn(folder):
        now = _before(folder)
        if (now and now.name) != (before and before.name):
            raise StoreError(f"{folder.address} was changed by another call meanwhile: call again")
        manifest = replace(manifest, name=publish(folder, manifest))
        sweep(folder, manifest, before)
    rejected = [parse_rejected(one) for answer in answers for one in answer["rejected"]]
    written = tuple(sorted(answer["number"] for answer in answers))
    return replace(_summary(folder, manifest), written=written, rejected=tuple(rejected))


def _model(recipe: Recipe, ids: pa.DataType, attributes: list[Attribute], parts: SessionParts) -> Matcher:
    """Makes a matcher without subscriptions that knows the attributes of the shards."""
    language = Language.read_arguments("sql", recipe.missing)
    given = take_in(
        {}, Schema(recipe.schema), recipe.index, recipe.options, "raise", language, attributes=Attributes(attributes)
    )
    intake = given.intake._replace(ids=Ids(pa.array([], ids)), session_parts=parts)
    return Matcher(MemorySet(build_parts(given._replace(intake=intake), None, keeps_unused=True)))


def _summary(folder: Folder, manifest: Manifest) -> ShardSet:
    parts = manifest.shards
    return ShardSet(
        folder.address,
        manifest.version,
        tuple(0 if one is None else one.subscriptions for one in parts),
        tuple(0 if one is None else one.bytes for one in parts),
    )


@contextmanager
def _turn(folder: Folder) -> Iterator[None]:
    """Locks the folder, so that no other process of this machine publishes."""
    if not folder.is_local:
        yield
        return
    with locked(os.path.join(folder.address, ".shards.lock")):
        yield
