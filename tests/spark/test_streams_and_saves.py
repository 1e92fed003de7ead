"""Streams while their index is saved anew: a plan keeps its version, a batch takes the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import colmatch as cm
from colmatch.spark import match


def saved(path: Path, version: int) -> None:
    cm.Matcher.build({version: "id >= 0"}, {"id": "bigint"}, options=cm.Options(threads=1)).save(path)


@pytest.fixture
def source(spark: Any, tmp_path: Path) -> Any:
    """Three files of two rows, each of which is a batch of its own."""
    for start in (0, 2, 4):
        spark.range(start, start + 2, 1, 1).write.mode("append").parquet(str(tmp_path / "in"))
    return spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))


def run(stream: Any, each: Callable[[Any, int], None], folder: Path) -> None:
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(folder / "checkpoint"))
    assert query.trigger(availableNow=True).start().awaitTermination(120)


def test_each_batch_takes_up_what_was_saved_before_it(source: Any, tmp_path: Path) -> None:
    path, found = tmp_path / "alerts", []
    saved(path, 0)

    def fire(batch: Any, number: int) -> None:
        found.append(sorted(row.subscription for row in match(batch, path, keep=["id"]).collect()))
        saved(path, number + 1)  # as another process would

    run(source, fire, tmp_path)
    assert found == [[0, 0], [1, 1], [2, 2]]


def test_a_stream_that_was_planned_keeps_its_version(source: Any, tmp_path: Path) -> None:
    path, found = tmp_path / "alerts", []
    saved(path, 0)

    def take(batch: Any, number: int) -> None:
        found.append(sorted(row.subscription for row in batch.collect()))
        saved(path, number + 1)

    run(match(source, path, keep=["id"]), take, tmp_path)
    assert found == [[0, 0]] * 3


def test_a_stream_that_shares_the_path_ends_with_an_error(source: Any, tmp_path: Path) -> None:
    path = tmp_path / "alerts"
    saved(path, 76)
    shared = match(source, path, keep=["id"], shared=True)
    saved(path, 77)  # no worker has opened 76
    with pytest.raises(Exception, match="was replaced .* give versions names of their own while queries run"):
        run(shared, lambda batch, _: batch.collect(), tmp_path)
