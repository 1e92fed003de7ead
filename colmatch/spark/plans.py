"""Plans for rows and shards: tasks take the shards in turn, or rows are routed to their shards.

In turn, no row leaves its machine, and each machine reads all shards. Routed, only one task reads a
shard, and a row is shuffled once for each shard that it needs. Results that need all matches of a
row together (lists, counts, the best matches) are found in turn.
"""

from __future__ import annotations

from typing import Literal, get_args

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from colmatch.errors import OptionError
from colmatch.given.arguments import check_choice
from colmatch.spark.manifest import read_manifest
from colmatch.spark.partitions import keys_of
from colmatch.spark.probe import guard_task
from colmatch.spark.shard_tasks import SHARD, RoutedTask, RouteTask
from colmatch.spark.storage import Folder
from colmatch.spark.worker import Mode, PartitionTask

Plan = Literal["auto", "in_turn", "routed"]
IN_TURN_MOST = 16 << 30  # bytes of all shards that a machine is assumed to keep in memory


def check_plan(plan: object, given: object, mode: Mode, best: bool) -> Plan:
    """Returns the plan if it suits the index and the mode.

    given : a ``Folder`` if there are shards

    Raises OptionError: there is no such plan, or it does not suit the index or the mode.
    """
    chosen: Plan = check_choice("plan={}", plan, get_args(Plan))
    if chosen != "auto" and not isinstance(given, Folder):
        raise OptionError(f"plan={chosen!r} is for a folder of shards, and this is a single matcher: leave it out")
    if chosen == "routed" and (best or mode not in ("pairs", "totals")):
        raise OptionError(
            f"plan='routed' is for pairs and totals: {'the best matches' if best else mode} need plan='in_turn'"
        )
    return chosen


def apply_plan(events: DataFrame, task: PartitionTask, schema: StructType, plan: Plan) -> DataFrame:
    """Returns the result of a task over all shards.

    ``explain()`` shows the plan by the names of functions.
    """
    folder = Folder(task.index.folder)
    manifest = read_manifest(folder, task.index.path)
    routed = plan == "routed"
    if plan == "auto" and manifest.by == "pivot" and task.mode in ("pairs", "totals") and task.best is None:
        size = sum(shard.bytes for shard in manifest.shards if shard is not None)
        routed = size > IN_TURN_MOST and task.ranges is None
    count = len(manifest.shards)
    if not routed:
        return events.mapInArrow(guard_task(task, f"match_{count}_shards_in_turn"), schema)
    keys = keys_of(events, count)
    keyed = StructType([*events.schema.fields, StructField(SHARD, LongType(), nullable=False)])
    route = RouteTask(task.index, task.used, keys, task.ranges, task.now, task.clock)
    rows = events.mapInArrow(guard_task(route, f"send_rows_to_{count}_shards"), keyed)
    return rows.repartition(count, SHARD).mapInArrow(guard_task(RoutedTask(task, keys), "match_one_shard_each"), schema)
