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
    name, size = folder.put("shard-00001", matcher)
    assert size > 1000
    local = Path(folder.local(name))
    assert local.is_file() and folder.local(name) == str(local) and name == f"shard-00001-{content_hash(local)}.cm"
    assert cm.Matcher.open(local).ids.to_pylist() == [1]
    assert list(folder.files()) == ["a.json", name] and max(folder.files().values()) < 600
    folder.remove(name)
    folder.remove(name)
    assert list(folder.files()) == ["a.json"]
    with pytest.raises(FileNotFoundError):
        folder.local("gone.cm")


def test_what_is_no_folder(tmp_path: Path) -> None:
    for given in (None, 3, "", "a\0b"):
        with pytest.raises(cm.StoreError, match="is not the path or address of a folder"):
            storage.Folder(given)
    for address in ("nowhere://x", "dbfs:/alerts"):
        with pytest.raises(cm.StoreError, match=f"{address} cannot be opened"):
            storage.Folder(address)
    (tmp_path / "file").write_text("x")
    with pytest.raises(cm.StoreError, match="is a file, and a folder is needed"):
        storage.Folder(tmp_path / "file").make()
    assert storage.Folder(f"{tmp_path}/a/").address == f"{tmp_path}/a"
    assert storage.Folder(f"file://{tmp_path}/a%20b").address == f"{tmp_path}/a b"
