"""Workloads of text patterns: any part comes out alike, and rules match some events, not all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shell import fails, pairs, run

import colmatch as cm
from colmatch.workload import TextWorkload
from colmatch.workload.strings import CHUNK, NAMES


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_alike(name: str) -> None:
    workload = TextWorkload(name, subscriptions=CHUNK + 50)
    texts, events = workload.texts(), workload.events(CHUNK + 50)
    assert (len(texts), len(events)) == (CHUNK + 50, CHUNK + 50)
    assert workload.texts(CHUNK - 3, 10) == texts.slice(CHUNK - 3, 10)
    assert workload.events(10, CHUNK - 3) == events.slice(CHUNK - 3, 10)
    assert workload.events(0).schema == workload.schema() and len(workload.texts(5, 0)) == 0
    again = TextWorkload(name, subscriptions=CHUNK + 50, seed=1)
    assert again.texts(0, 20) != texts.slice(0, 20) and again.events(20) != events.slice(0, 20)


@pytest.mark.parametrize("name", NAMES)
def test_rules_match_some_events(name: str) -> None:
    workload = TextWorkload(name, subscriptions=400)
    matcher = cm.Matcher.build(workload.texts(), workload.schema())
    counts = matcher.count(workload.events(300))
    assert 3 < sum(count > 0 for count in counts) < 300
    expressions = set(workload.texts()["expression"].to_pylist())
    assert len(expressions) > 390


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "dense"}, "a workload of texts called 'dense': 'detections' or 'user-agents' is needed"),
        ({"name": "detections", "subscriptions": -1}, "subscriptions=-1"),
        ({"name": "detections", "subscriptions": 2.5}, "subscriptions=2.5"),
        ({"name": "detections", "seed": "x"}, "seed='x'"),
    ],
)
def test_errors(given: dict[str, Any], message: str) -> None:
    with pytest.raises(cm.OptionError) as error:
        TextWorkload(**given)
    assert message in str(error.value)


def test_parts_that_are_not_there() -> None:
    workload = TextWorkload("detections", subscriptions=10)
    with pytest.raises(cm.OptionError, match="there are no subscriptions 5 to 15, but 10 in all"):
        workload.texts(5, 10)
    with pytest.raises(cm.OptionError, match="rows=-1"):
        workload.events(-1)


def test_command(tmp_path: Path) -> None:
    out = tmp_path / "made"
    run("generate", "user-agents", "--subscriptions", 300, "--rows", 50, "--seed", 3, "-o", out)
    run("build", out / "subs.parquet", "--like", out / "events.parquet", "-o", tmp_path / "i")
    run("match", tmp_path / "i", out / "events.parquet", "-o", tmp_path / "out.parquet")
    workload = TextWorkload("user-agents", 300, 3)
    found = cm.Matcher.build(workload.texts(), workload.schema()).match(workload.events(50))
    assert pairs(tmp_path / "out.parquet") == [tuple(row.values()) for row in found.to_pylist()]
    assert isinstance(found, pa.Table | pa.RecordBatch) and len(found) > 0
    said = fails("generate", "detections", "--event-size", "1,2", "-o", tmp_path / "x", code=2)
    assert "--event-size says nothing of detections" in said
    said = fails("generate", "detections", "--predicates", "-o", tmp_path / "x", code=2)
    assert "the subscriptions of detections are expressions" in said
    assert not (tmp_path / "x" / "events.parquet").exists()
