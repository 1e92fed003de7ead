"""Events that a worker cannot read, called by their number within the partition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.spark.worker import IndexFile, Mode, PartitionTask
from colmatch.store.file import content_hash
from colmatch.tables.columns import Best

WEIGHTS = pa.array([[("price", 1.0)]], pa.map_(pa.string(), pa.float64()))
RULES = pa.table({"id": [1], "expression": ["price = 5"], "weights": WEIGHTS})


@pytest.mark.parametrize("mode", ["pairs", "lists", "count", "exists", "totals"])
def test_a_wrong_event_is_counted_within_its_partition(tmp_path: Path, mode: Mode) -> None:
    path = tmp_path / "index"
    cm.Matcher.build(RULES, {"price": "int64"}, options=cm.Options(batch_rows=2)).save(path)
    index = IndexFile(content_hash(path), str(path), str(path), artifact=False)
    rows = pa.table({"low": [1] * 5 + [9], "high": [2] * 6})
    used, ranges = ((0, "low"), (1, "high")), {"price": ("low", "high")}
    task = PartitionTask(index, 0, used, mode, ("subscription",), ranges=ranges)
    with pytest.raises(cm.EventError, match="column 'low', event 5: it is above column 'high'"):
        list(task(iter(rows.to_batches(max_chunksize=3))))
    if mode == "pairs":
        weighed = pa.table({"price": [5] * 6, "w": [1.0] * 5 + [-1.0]})
        best = Best(1, "dot", {"price": "w"})
        task = PartitionTask(index, 0, ((0, "price"), (1, "w")), mode, ("subscription", "score"), best)
        with pytest.raises(cm.EventError, match="column 'w', event 5: the weight is -1.0"):
            list(task(iter(weighed.to_batches(max_chunksize=3))))
