"""Folders of shards: on this machine, and elsewhere, which a file system of tests stands for."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
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


COPIER = """
import shutil, sys, time
from pathlib import Path
from colmatch.spark import storage

bucket, copies, place, name, me = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5]
storage._copies = lambda: copies
folder, copy = storage.Folder(bucket), shutil.copyfileobj
folder.is_local = False

def slowly(*given):
    (place / f"copies-{me}").touch()
    while not (place / "go").exists():
        time.sleep(0.01)
    copy(*given)

storage.shutil.copyfileobj = slowly
(place / f"begins-{me}").touch()
print(folder.local(name))
"""


def wait_for(path: Path, process: subprocess.Popen[str], most: float = 120) -> None:
    end = time.monotonic() + most
    while not path.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def test_two_processes_make_one_copy(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    bucket = storage.Folder(tmp_path / "bucket")
    bucket.make()
    name, _ = bucket.put("shard-00001", cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, "scan"))
    given = [str(tmp_path / "bucket"), str(tmp_path / "copies"), str(tmp_path), name]

    def start(me: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", COPIER, *given, me], stdout=subprocess.PIPE, text=True)

    with start("one") as one:
        wait_for(tmp_path / "copies-one", one)
        with start("two") as two:
            wait_for(tmp_path / "begins-two", two)
            wait_for(tmp_path / "copies-two", two, 1)
            (tmp_path / "go").touch()
            said = {two.communicate()[0], one.communicate()[0]}
    assert (one.returncode, two.returncode) == (0, 0) and len(said) == 1
    assert [path.name for path in tmp_path.glob("copies-*")] == ["copies-one"]
    assert cm.Matcher.open(said.pop().strip()).ids.to_pylist() == [1]


def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(storage, "_copies", lambda: tmp_path / "copies")
    folder = storage.Folder(tmp_path / "bucket")
    folder.make()
    folder.is_local = False
    return folder


def test_copies_of_old_versions_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = remote(tmp_path, monkeypatch)
    names = [folder.put("shard-00001", cm.Matcher.build({i: "a = 1"}, {"a": "int64"}, "scan"))[0] for i in range(4)]
    other = folder.put("shard-00002", cm.Matcher.build({9: "a = 1"}, {"a": "int64"}, "scan"))[0]
    folder.local(other)
    first = cm.Matcher.open(folder.local(names[0]), mmap=True)
    for name in names[1:]:
        folder.local(name)
    there = {path.name for path in (tmp_path / "copies").rglob("*.cm")}
    assert there == {*names[2:], other}
    assert first.match_lists(pa.table({"a": [1]})).to_pylist() == [
        [0]
    ]  # a mapped file can be read until its process ends
    folder.local(names[2])
    folder.local(names[0])  # a copy that was used last stays
    assert {path.name for path in (tmp_path / "copies").rglob("*.cm")} == {names[2], names[0], other}


def test_a_broken_copy_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = remote(tmp_path, monkeypatch)
    name, _ = folder.put("shard-00001", cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, "scan"))
    whole = storage.shutil.copyfileobj

    def breaks(stream: object, file: object, size: int) -> None:
        file.write(stream.read(100))
        raise OSError("the connection broke")

    monkeypatch.setattr(storage.shutil, "copyfileobj", breaks)
    with pytest.raises(OSError, match="the connection broke"):
        folder.local(name)
    monkeypatch.setattr(storage.shutil, "copyfileobj", whole)
    assert cm.Matcher.open(folder.local(name)).ids.to_pylist() == [1]


def test_copies_where_others_can_write_are_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage.tempfile, "gettempdir", lambda: str(tmp_path))
    shared = storage._copies.__wrapped__()
    assert shared.parent == tmp_path and shared.stat().st_mode & 0o777 == 0o700
    shared.chmod(0o777)
    assert storage._copies.__wrapped__() == storage.folder_of_process()
