"""Folders of shards without a session: what shards find together, and which files stay."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.spark.manifest import VERSIONS_KEPT, Manifest, Shard, publish, read_present, sweep
from colmatch.spark.sharded import ShardedMatcher
from colmatch.spark.storage import Folder


def a_shard(file: str) -> Shard:
    return Shard(file, 1, 1)


def a_manifest(version: int, *shards: str, earlier: tuple[str, ...] = ()) -> Manifest:
    return Manifest(version, tuple(map(a_shard, shards)), "int64", "model.cm", earlier=earlier)


SCHEMA = {"a": "long"}
RULES = pa.table({"id": range(8), "expression": ["a > 0"] * 8, "priority": [1.0, 2, 3, 4, 50, 60, 70, 80]})
EVENTS = pa.record_batch({"a": [1, 0, 2], "user": ["x", "y", "z"], "day": [7, 8, 9]})


@pytest.fixture
def whole() -> cm.Matcher:
    return cm.Matcher.build(RULES, SCHEMA)


@pytest.fixture
def sharded(tmp_path: Path) -> ShardedMatcher:
    files = {f"{i}.cm": cm.Matcher.build(RULES.slice(4 * i, 4), SCHEMA) for i in (0, 1)}
    files["model.cm"] = cm.Matcher.build({}, SCHEMA)
    return ShardedMatcher(Folder(tmp_path), a_manifest(1, "0.cm", "1.cm"), files.__getitem__)


@pytest.mark.parametrize("k", [1, 3, 5, 100])
def test_the_best_may_all_be_in_one_shard(whole: cm.Matcher, sharded: ShardedMatcher, k: int) -> None:
    """Each shard gives as many as are wanted, and kept columns stay apart."""
    found = pa.Table.from_batches(sharded.match_topk_batches(EVENTS, k, "priority", None, keep=["user", "day"]))
    assert found.to_pydict() == whole.match_topk(EVENTS, k, "priority", keep=["user", "day"]).to_pydict()
    ends, ranges = pa.record_batch({"low": [-3, 1], "high": [0, 2]}), {"a": ("low", "high")}
    found = pa.Table.from_batches(sharded.match_topk_batches(ends, k, "priority", None, ranges=ranges))
    assert found.to_pydict() == whole.match_topk(ends, k, "priority", ranges=ranges).to_pydict()


def test_totals_of_several_pieces(whole: cm.Matcher, sharded: ShardedMatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colmatch.spark.sharded.PIECE_ROWS", 2)
    events = pa.concat_tables([pa.table(EVENTS)] * 3)
    found = sharded.hits(events.to_reader())
    assert found.sort_by("subscription").to_pydict() == whole.hits(events).to_pydict()


def test_a_file_that_is_written_anew_is_another_file(tmp_path: Path) -> None:
    """Whoever reads the old one reads all of it."""
    folder = Folder(tmp_path)
    folder.write("shards.json", b"old")
    with open(tmp_path / "shards.json", "rb") as reader:
        folder.write("shards.json", b"the new one")
        assert reader.read() == b"old"
    assert folder.read("shards.json") == b"the new one"


def test_files_of_the_versions_that_are_kept_stay(tmp_path: Path) -> None:
    """A version that goes shares a file with one that stays."""
    folder, before = Folder(tmp_path), None
    names = {version: f"shard-00000-{version // 4:032x}.cm" for version in range(VERSIONS_KEPT + 3)}
    for version, name in names.items():
        (tmp_path / name).touch()
        earlier = () if before is None else (*before.earlier, before.name)[-(VERSIONS_KEPT - 1) :]
        publish(folder, a_manifest(version, name, earlier=earlier))
        now = read_present(folder)
        sweep(folder, now, before)
        before = now
        there = {path.name for path in tmp_path.glob("shard-*")}
        assert there == {names[kept] for kept in range(max(0, version + 1 - VERSIONS_KEPT), version + 1)}


def test_a_manifest_of_another_version_of_colmatch_says_so(tmp_path: Path) -> None:
    data = json.dumps({"format": 99}).encode()
    name = f"manifest-{hashlib.sha256(data).hexdigest()[:32]}.json"
    folder = Folder(tmp_path)
    folder.write(name, data)
    folder.write("shards.json", json.dumps({"manifest": name}).encode())
    with pytest.raises(cm.StoreError, match=r"is of another version of colmatch: build the shards again$") as told:
        read_present(folder)
    assert "damaged" not in str(told.value)
