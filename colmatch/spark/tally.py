"""The numbers of one task: a line in the log, and a row for ``observe``.

A worker has no other way to report numbers to the driver: Spark has no metrics for ``mapInArrow``,
and Connect has no accumulators. So an observed task adds a last row, with the numbers in the column
``OBSERVED``. The column is NULL in all other rows. ``frames.py`` sums it, and drops the row.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from time import perf_counter_ns

import pyarrow as pa
import pyarrow.compute as pc

OBSERVED = "colmatch task"  # a column; no result has a column of this name
NUMBERS = ("rows", "matches", "nanoseconds")  # fields of the column

_NUMBERS = pa.struct([pa.field(name, pa.int64(), nullable=False) for name in NUMBERS])

_SHOWN = logging.INFO - 1  # a level that nobody else sets

log = logging.getLogger("colmatch.spark")


class Tally:
    """The numbers of one task.

    Attributes
    ----------
    rows, matches : numbers so far
    nanoseconds : working time of the task, without waiting for Spark
    """

    def __init__(self) -> None:
        self.rows = self.matches = self.nanoseconds = 0
        self.waited = 0
        self.started = perf_counter_ns()

    def count_rows(self, partition: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a partition, and counts their rows."""
        while True:
            before = perf_counter_ns()
            batch = next(partition, None)
            self.waited += perf_counter_ns() - before
            if batch is None:
                return
            self.rows += batch.num_rows
            yield batch

    def count_matches(
        self, results: Iterator[pa.RecordBatch], matches: Callable[[pa.RecordBatch], int]
    ) -> Iterator[pa.RecordBatch]:
        """Yields results, and counts their matches and the time to make them."""
        while True:
            before, waited = perf_counter_ns(), self.waited
            try:
                batch = next(results, None)
            finally:
                self.nanoseconds += perf_counter_ns() - before - (self.waited - waited)
            if batch is None:
                return
            self.matches += matches(batch)
            yield batch

    def row(self) -> pa.Array:
        """Returns the column ``OBSERVED`` of the last row."""
        return pa.array([{name: getattr(self, name) for name in NUMBERS}], _NUMBERS)

    def tell(self, index: str, version: str, ended: str) -> None:
        """Writes the log line of this task."""
        if log.isEnabledFor(logging.INFO):
            seconds = (perf_counter_ns() - self.started) / 1e9
            log.info(
                "%s (version %s), partition %s: %d rows, %d matches, %.3f s in the matcher, %.3f s in all%s",
                index, version, _partition(), self.rows, self.matches, self.nanoseconds / 1e9, seconds, ended,
            )  # fmt: skip


def no_numbers(rows: int) -> pa.Array:
    """Returns the column ``OBSERVED`` for rows of results: NULL."""
    return pa.nulls(rows, _NUMBERS)


def matches_of(mode: str) -> Callable[[pa.RecordBatch], int]:
    """Returns a function that counts the matches in results of a mode, by the last column."""
    if mode == "pairs":
        return lambda batch: batch.num_rows
    if mode == "lists":
        return lambda batch: len(batch.columns[-1].flatten())
    return lambda batch: pc.sum(batch.columns[-1]).as_py() or 0


def show_log(wanted: bool) -> None:
    """Switches a worker's log on if the driver has one, or if Spark collects logs; otherwise off.

    Nobody else sets up logging in a worker. The worker lives longer than a task.
    """
    collected = "PYSPARK_SPARK_SESSION_UUID" in os.environ  # spark.sql.pyspark.worker.logging.enabled
    if log.level in (logging.NOTSET, _SHOWN):
        log.setLevel(_SHOWN if wanted or collected else logging.NOTSET)
    if wanted and not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
        log.addHandler(handler)


def _partition() -> str:
    """Returns the number of the task's partition; "-" outside Spark."""
    tasks = sys.modules.get("pyspark.taskcontext")
    context = tasks.TaskContext.get() if tasks else None
    return str(context.partitionId()) if context else "-"
