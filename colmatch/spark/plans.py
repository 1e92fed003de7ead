"""Plans for rows and shards: tasks take the shards in turn, or rows are routed to all shards.

In turn, no row leaves its machine, and each machine reads all shards. Routed, only one task reads a
shard, and a row is shuffled once for each shard. Results that need all matches of a
row together (lists, counts, the best matches) are found in turn.
"""

from __future__ import annotations

from typing import Literal, get_args

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from colmatch.errors import OptionError
from colmatch.given.arguments import check_choice
from colmatch.spark.manifest import read_manifest
from colmatch.spark.partitions import spread
from colmatch.spark.probe import guard_task
from colmatch.spark.shard_tasks import SHARD, RoutedTask
from colmatch.spark.storage import Folder
from colmatch.spark.worker import Mode, PartitionTask

Plan = Literal["auto", "in_turn", "routed"]


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


def apply_plan(events: DataFrame, task: PartitionTask, schema: StructType, plan: Plan, name: str) -> DataFrame:
    """Returns the result of a task over all shards.

    ``explain()`` shows the plan by the names of functions.

    name : name of a task that matches (``task_name``)
    """
    count = len(read_manifest(Folder(task.index.folder), task.index.path).shards)
    if plan != "routed":
        return events.mapInArrow(guard_task(task, f"{name}: {count} shards in turn"), schema)
    rows = spread(events.withColumn(SHARD, F.explode(F.sequence(F.lit(0), F.lit(count - 1)))), F.col(SHARD), count)
    return rows.mapInArrow(guard_task(RoutedTask(task), f"{name}: one of {count} shards each"), schema)
