"""Folders of shards: on this machine, and elsewhere, which a file system of tests stands for."""

from __future__ import annotations

from pathlib import Path

import pytest

import colmatch as cm
from colmatch.store.file import content_hash

storage = pytest.importorskip("colmatch.spark.storage", reason="pyspark is not installed", exc_type=ImportError)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_files(elsewhere: bool, tmp_path: Path) -> None:
    folder = storage.Folder("mock:///bucket/alerts" if elsewhere else tmp_path / "deep" / "alerts")
    folder.make()
    folder.make()
    assert folder.is_local is not elsewhere and not folder.has("a.json")
    folder.write("a.json", b"one")
    folder.write("a.json", b"two")
    assert folder.read("a.json") == b"two" and folder.has("a.json")
    matcher = cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, "scan")
    name, hash, size = folder.put("shard-00001", matcher)
    assert name == f"shard-00001-{hash}.cm" and size > 1000
    local = Path(folder.local(name))
    assert local.is_file() and folder.local(name) == str(local) and content_hash(local) == hash
    assert cm.Matcher.open(local).ids.to_pylist() == [1]
    assert folder.names() == ["a.json", name]
    folder.remove(name)
    folder.remove(name)
    assert folder.names() == ["a.json"]


def test_what_is_no_folder(tmp_path: Path) -> None:
    for given in (None, 3, "", "a\0b"):
        with pytest.raises(cm.StoreError, match="is not the path or address of a folder"):
            storage.Folder(given)
    with pytest.raises(cm.StoreError, match="nowhere://x cannot be opened"):
        storage.Folder("nowhere://x")
    assert storage.Folder(f"{tmp_path}/a/").address == f"{tmp_path}/a"
    assert storage.Folder(f"file://{tmp_path}/a%20b").address == f"{tmp_path}/a b"
