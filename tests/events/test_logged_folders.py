"""Folders whose files are rows only as far as a log says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from click.testing import CliRunner

import colmatch as cm
from colmatch.cli.commands import cli
from colmatch.events.places import place_of

LOGS = {
    "_delta_log/00000000000000000000.json": "Delta Lake", ".hoodie/hoodie.properties": "Hudi", "_spark_metadata/0": "a stream of Spark",
    "metadata/v1.metadata.json": "Iceberg",
}  # fmt: skip


def table(folder: Path, log: str, data: str) -> Path:
    for name in (log, data):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / log).write_text("{}")
    parquet.write_table(pa.table({"a": [1, 2]}), folder / data)
    return folder


def place(path: Path | str) -> Any:
    return place_of(str(path), lambda _: False)


@pytest.mark.parametrize("log", LOGS)
def test_a_table_with_a_log_is_refused(log: str, tmp_path: Path) -> None:
    root = table(tmp_path / "t", log, "data/day=1/a.parquet")
    for path in (
        root,
        tmp_path,
        root / "data",
        root / "data" / "day=1",
        root / "data" / "*" / "*.parquet",
        f"file://{root}",
    ):
        with pytest.raises(cm.EventError, match=f"{root.name} is .*{LOGS[log]}.*match the DataFrame"):
            place(path)
    file = root / "data" / "day=1" / "a.parquet"
    assert place(file).files == [str(file)]  # a file that is named is read


def test_a_log_can_be_read_itself(tmp_path: Path) -> None:
    root = table(tmp_path / "t", "_delta_log/0.json", "a.parquet")
    assert place(root / "_delta_log").files == [str(root / "_delta_log" / "0.json")]


def test_other_folders_are_read(tmp_path: Path) -> None:
    root = table(tmp_path / "t", "metadata/notes.json", "data/a.parquet")
    assert len(place(root / "data").files) == 1
    table(tmp_path / "u", "other/v1.metadata.json", "a.parquet")
    assert len(place(tmp_path / "u").files) == 2


def test_the_command_line_refuses_it(tmp_path: Path) -> None:
    root = table(tmp_path / "t", "_delta_log/0.json", "a.parquet")
    cm.Matcher.build({1: "a = 1"}, {"a": "int64"}).save(tmp_path / "m.cm")
    result = CliRunner().invoke(cli, ["match", str(tmp_path / "m.cm"), str(root)])
    assert result.exit_code == 1 and "Delta Lake" in result.output and "Traceback" not in result.output
