"""Files that a path, a pattern, a folder or an address stands for."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pa_fs
import pytest

import colmatch as cm
from colmatch.events import places

FILES = [
    "a.csv",
    "b.csv",
    "_SUCCESS",
    ".b.csv.crc",
    "day=1/c.csv",
    "day=1/deep/d.csv",
    "_temporary/e.csv",
    "day=2/f.json",
]
PATTERNS = {
    "ev/*.csv": ["a.csv", "b.csv"],
    "ev/**/*.csv": ["a.csv", "b.csv", "day=1/c.csv", "day=1/deep/d.csv"],
    "ev/**": ["a.csv", "b.csv", "day=1/c.csv", "day=1/deep/d.csv", "day=2/f.json"],
    "ev/*/*.csv": ["day=1/c.csv"],
    "ev/day=[1-9]/*": ["day=1/c.csv", "day=1/deep/d.csv", "day=2/f.json"],
    "ev": ["a.csv", "b.csv", "day=1/c.csv", "day=1/deep/d.csv", "day=2/f.json"],
}


@pytest.fixture(params=["here", "elsewhere"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder of files, on this machine or in a file system that stands for another one."""
    if request.param == "here":
        for name in FILES:
            (tmp_path / "ev" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "ev" / name).write_text("x")
        return f"{tmp_path}/"
    system, _ = pa_fs.FileSystem.from_uri("mock:///")
    for name in FILES:
        system.create_dir(str(Path("ev", name).parent), recursive=True)
        with system.open_output_stream(f"ev/{name}") as file:
            file.write(b"x")

    class Systems:
        def __getattr__(self, name: str) -> object:
            return getattr(pa_fs, name)

        class FileSystem:
            @staticmethod
            def from_uri(path: str) -> tuple[pa_fs.FileSystem, str]:
                return system, path.removeprefix("mock://")

    monkeypatch.setattr(places, "pa_fs", Systems())
    return "mock://"


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_file_is_named_once(root: str, pattern: str) -> None:
    place = places.place_of(root + pattern, lambda _: True)
    assert [name[name.index("ev/") + 3 :] for name in sorted(place.files)] == sorted(PATTERNS[pattern])


def test_a_pattern_of_nothing(root: str) -> None:
    with pytest.raises(cm.EventError, match="no file of rows is in this pattern"):
        places.place_of(root + "ev/*.orc", lambda _: True)
    with pytest.raises(FileNotFoundError):
        places.place_of(root + "ev/nowhere", lambda _: True)
