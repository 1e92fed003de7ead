"""Files of pages on the command line: built, matched, shown, checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import EVENTS, PAIRS, an_index, fails, pairs, run, subscriptions, write


@pytest.fixture
def events(tmp_path: Path) -> Path:
    write(tmp_path / "events.parquet", EVENTS)
    return tmp_path / "events.parquet"


def test_a_file_of_pages_is_built_shown_and_checked(tmp_path: Path, events: Path) -> None:
    path = tmp_path / "alerts.pages"
    run(
        "build", subscriptions(tmp_path / "subs.csv"), "--like", events, "--index", "pbtree", "--set", f"path={path}",
        "-o", tmp_path / "copy",
    )  # fmt: skip
    for index in (path, tmp_path / "copy"):
        run("match", index, events, "-o", tmp_path / "out.parquet")
        assert pairs(tmp_path / "out.parquet") == PAIRS
        shown = run("stats", index).stdout
        assert "pages by kind" in shown and "depth" in shown and "fill" in shown
        assert "as it was written" in run("check", index).stdout
    data = bytearray(path.read_bytes())
    data[3 * 4096 + 100] ^= 1
    path.write_bytes(data)
    assert "is damaged: page 3" in fails("check", path)
    assert "as it was written" in run("check", an_index(tmp_path)).stdout
