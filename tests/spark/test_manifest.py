"""The manifest of shards: its content, and the order in which its files appear."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import colmatch as cm

manifests = pytest.importorskip("colmatch.spark.manifest", reason="pyspark is not installed", exc_type=ImportError)
from colmatch.spark.manifest import Manifest, Shard  # noqa: E402
from colmatch.spark.storage import Folder  # noqa: E402

FIRST = Manifest(1, (Shard(f"shard-00000-{'a' * 32}.cm", 5, 99), None), "int64", f"model-{'b' * 32}.cm")


def test_the_pointer_is_written_after_its_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    first = manifests.publish(folder, FIRST)
    write, written = Folder.write, []

    def fails(self: Any, name: str, data: bytes) -> None:
        if written:
            raise OSError("the disk is full")
        written.append(name)
        write(self, name, data)

    monkeypatch.setattr(Folder, "write", fails)
    with pytest.raises(OSError, match="the disk is full"):
        manifests.publish(folder, replace(FIRST, version=2))
    assert written[0].startswith("manifest-")
    assert manifests.read_present(folder).name == first


def test_a_manifest_says_all_of_a_version(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    whole = replace(FIRST, version=7, earlier=("manifest-1.json", "manifest-2.json"))
    name = manifests.publish(folder, whole)
    read = manifests.read_present(folder)
    assert read == whole and read.name == name
    assert read.files == {name, FIRST.model, FIRST.shards[0].file}  # type: ignore[union-attr]
    said = json.loads((tmp_path / name).read_bytes())
    assert said == {
        "format": manifests.FORMAT,
        "version": 7,
        "shards": [{"file": f"shard-00000-{'a' * 32}.cm", "subscriptions": 5, "bytes": 99}, None],
        "ids": "int64",
        "model": f"model-{'b' * 32}.cm",
        "earlier": ["manifest-1.json", "manifest-2.json"],
    }


def test_a_manifest_whose_content_is_another_is_refused(tmp_path: Path) -> None:
    name = manifests.publish(Folder(tmp_path), FIRST)
    path = tmp_path / name
    path.write_text(path.read_text().replace('"subscriptions":5', '"subscriptions":6'))
    with pytest.raises(cm.StoreError, match="its content is not what its name says"):
        manifests.read_present(Folder(tmp_path))
