"""Spark beside the kernels alone: microseconds a row of each way, in turns within one run.

``kernel`` matches the same Parquet files in one process and one thread, reading included, without
Spark. ``identity`` sends the columns that the expressions use through ``mapInArrow`` and back, and
does nothing with them: what is above it is colmatch's. ``source`` is the data source ``colmatch``,
whose workers read the files themselves. ``ready list`` is a data source that yields as many lists
as long, and neither reads nor matches: what any source of Spark's takes. Results go to Spark's sink
``noop``, so all rows are made and none is kept. A job takes some 0.2 s to start: 0.25 us a row.

    python -m benchmarks.bench_spark [CORES]

``small_tasks`` has 200 tasks of 1,000 rows: what a task costs beside its rows.

    python -m benchmarks.bench_spark tasks
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import colmatch as cm
from benchmarks.measure import medians
from benchmarks.workloads import uniform

ROWS, FILES, REPEAT = 800_000, 4, 3
SUBSCRIPTIONS = 200_000
SHAPES = {  # columns, values of an event, predicates: some 50 and 340 matches an event
    "10 columns, few matches": (10, 10, 9),
    "10 columns, many matches": (10, 10, 7),
    "100 columns, few matches": (100, 30, 4),
    "100 columns, many matches": (100, 30, 3),
}
KERNEL, IDENTITY, READY, TOTALS = "kernel", "identity", "ready list", "totals"
WAYS = (KERNEL, IDENTITY, READY, "match list", "match pairs", "source list", "source pairs", TOTALS)


def measured(shape: str, cores: int, rows: int = ROWS, subscriptions: int = SUBSCRIPTIONS) -> dict[str, float]:
    """Microseconds a row of each way."""
    from colmatch.spark import local_session, match, register_source, totals

    columns, present, predicates = SHAPES[shape]
    work = uniform(subscriptions, rows, columns, present, predicates=predicates)
    table = cm.PredicateTable(work.subscriptions)
    matcher = cm.Matcher.build(table, work.schema, options=cm.Options(threads=1))
    spark = local_session(cores, spark__ui__enabled=False, spark__log__level="ERROR")
    with tempfile.TemporaryDirectory() as folder:
        index, events = str(Path(folder, "index.cm")), Path(folder, "events")
        events.mkdir()
        matcher.save(index)
        size = rows // FILES
        for i in range(FILES):
            pq.write_table(work.events.slice(i * size, size), events / f"{i}.parquet", row_group_size=size)
        df = spark.read.parquet(str(events))
        used = df.select(*matcher.columns)
        register_source(spark)
        spark.dataSource.register(_ready_lists())
        width = round(int(matcher.count(work.events.slice(0, 10_000)).mean()))
        ready = spark.read.format("ready").options(width=width, rows=size, tasks=FILES)
        source = spark.read.format("colmatch").option("index", index).option("rows", size)

        def written(some: Any) -> Callable[[], None]:
            return lambda: some.write.format("noop").mode("overwrite").save()

        def kernel() -> None:
            reader = matcher.match_batches(ds.dataset(events))
            for _ in reader:
                pass

        ways = {
            KERNEL: kernel,
            IDENTITY: written(used.mapInArrow(_same, used.schema)),
            READY: written(ready.load()),
            "match list": written(match(df, index, mode="lists")),
            "match pairs": written(match(df, index)),
            "source list": written(source.option("mode", "lists").load(str(events))),
            "source pairs": written(source.option("mode", "pairs").load(str(events))),
            TOTALS: written(totals(df, index)),
        }
        taken = medians(ways, REPEAT)
    spark.stop()
    return {name: 1e6 * seconds / rows for name, seconds in taken.items()}


def small_tasks(tasks: int = 200, rows: int = 1000) -> dict[str, float]:
    """Milliseconds a task on one core: a match, and other people's task in the same worker."""
    from colmatch.spark import local_session, match

    texts = {i: f"a = {i} AND b = {i % 7}" for i in range(10_000)}
    spark = local_session(1, spark__ui__enabled=False, spark__ui__showConsoleProgress=False)
    df = spark.range(0, tasks * rows, 1, tasks).selectExpr("id AS a", "id % 7 AS b")
    found = match(df, cm.Matcher.build(texts, {"a": "bigint", "b": "bigint"}), mode="count")
    same = df.mapInArrow(_same, df.schema)

    def written(some: Any) -> float:
        began = time.perf_counter()
        some.write.format("noop").mode("overwrite").save()
        return 1e3 * (time.perf_counter() - began) / tasks

    # A worker starts, imports and opens the index. Spark would end it after each task of ``limit``,
    # which does not read to the end.
    written(found)
    taken = {"count": written(found), "identity": written(same)}
    spark.stop()
    return taken


def _same(batches: Any) -> Any:
    yield from batches


def _ready_lists() -> type:
    """A data source of lists that are ready: none is read or matched."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Ready(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ready"

        def schema(self) -> str:
            return "subscriptions array<bigint>"

        def reader(self, schema: Any) -> DataSourceReader:
            width, rows, tasks = (int(self.options[name]) for name in ("width", "rows", "tasks"))

            class Reader(DataSourceReader):
                def partitions(self) -> list[InputPartition]:
                    return [InputPartition(i) for i in range(tasks)]

                def read(self, partition: InputPartition) -> Any:
                    import pyarrow as pa

                    most = 4096
                    ids = pa.array(range(most * width), pa.int64())
                    lists = pa.ListArray.from_arrays(pa.array(range(0, most * width + 1, width), pa.int32()), ids)
                    batch = pa.RecordBatch.from_arrays([lists], ["subscriptions"])
                    for start in range(0, rows, most):
                        yield batch.slice(0, min(most, rows - start))

            return Reader()

    return Ready


class Spark:
    """Microseconds a row, for each way and shape."""

    params = (list(SHAPES), WAYS)
    param_names = ("shape", "way")
    timeout = 1200

    def setup_cache(self) -> dict[tuple[str, str], float]:
        return {(shape, way): value for shape in SHAPES for way, value in measured(shape, 1).items()}

    setup_cache.timeout = 3600  # type: ignore[attr-defined]

    def track_us_a_row(self, taken: dict[tuple[str, str], float], shape: str, way: str) -> float:
        return taken[shape, way]

    track_us_a_row.unit = "us"  # type: ignore[attr-defined]


class SmallTasks:
    """Milliseconds a task of 1,000 rows."""

    params = ("count", "identity")
    timeout = 1200

    def setup_cache(self) -> dict[str, float]:
        return small_tasks()

    setup_cache.timeout = 1200  # type: ignore[attr-defined]

    def track_ms_a_task(self, taken: dict[str, float], way: str) -> float:
        return taken[way]

    track_ms_a_task.unit = "ms"  # type: ignore[attr-defined]


if __name__ == "__main__":
    if sys.argv[1:] == ["tasks"]:
        sys.exit(print({way: round(ms, 1) for way, ms in small_tasks().items()}))
    cores = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for shape in SHAPES:
        found = measured(shape, cores)
        print(f"{shape}, local[{cores}], {pa.cpu_count()} cores here")
        for name, taken in found.items():
            print(f"  {name:14s}{taken:8.1f} us a row {taken / found[KERNEL]:6.2f} x kernel")
