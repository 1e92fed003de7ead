"""``colmatch match`` among some subscriptions: ``--ids``, ``--tag``; and ``--exists``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shell import EVENTS, PAIRS, SCHEMA, SUBS, fails, invoke, run, write

from colmatch.cli.files import read_table

TAGS = {1: ["x", "7"], 2: ["y"], 3: None, 7: ["x"]}


def made(folder: Path, ids: list[Any], form: str = "parquet") -> Path:
    tags = [TAGS[id] for id in SUBS]
    column = pa.array(tags, pa.list_(pa.string()))
    if form == "csv":
        column = pa.array(['["x", "7"]', "y", None, '["x"]'])
    table = pa.table({"id": ids, "expression": list(SUBS.values()), "tags": column})
    run("build", write(folder / f"subs.{form}", table), "--schema", SCHEMA, "-o", folder / "i")
    return folder / "i"


def found(folder: Path, *options: Any) -> list[tuple[Any, ...]]:
    out = folder / "out.parquet"
    run("match", folder / "i", write(folder / "events.parquet", EVENTS), *options, "-o", out)
    return [tuple(row.values()) for row in read_table(str(out)).to_pylist()]


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_tags_of_a_file(tmp_path: Path, form: str) -> None:
    made(tmp_path, list(SUBS), form)
    assert found(tmp_path, "--tag", "x") == [(1, 1), (3, 1)]
    assert found(tmp_path, "--tag", "7", "--tag", "y") == [(0, 2), (1, 1), (2, 2), (3, 1)]
    assert found(tmp_path, "--tag", "x", "--ids", "2,3,7") == []
    assert found(tmp_path, "--tag", "y", "--count") == [(0, 1), (1, 0), (2, 1), (3, 0)]
    assert found(tmp_path, "--tag", "y", "--lists") == [(0, [2]), (1, []), (2, [2]), (3, [])]
    assert [row[:2] for row in found(tmp_path, "--tag", "y", "--top", 1)] == [(0, 2), (2, 2)]


def test_single_tags_of_csv_that_look_like_numbers(tmp_path: Path) -> None:
    table = pa.table({"id": list(SUBS), "expression": list(SUBS.values()), "tags": [7, 8, None, 7]})
    run("build", write(tmp_path / "subs.csv", table), "--schema", SCHEMA, "-o", tmp_path / "i")
    assert found(tmp_path, "--tag", "8") == [(0, 2), (2, 2)]


def test_ids(tmp_path: Path) -> None:
    made(tmp_path, list(SUBS))
    wanted = [pair for pair in PAIRS if pair[1] in (1, 3)]
    vip = write(tmp_path / "vip.csv", pa.table({"id": [3, 1, 99]}))
    for ids in ("1, 3,99", f"@{vip}"):
        assert found(tmp_path, "--ids", ids) == wanted
    assert found(tmp_path, "--exists") == [(0, True), (1, True), (2, True), (3, True)]
    assert found(tmp_path, "--exists", "--ids", "3", "--keep", "note") == [
        (0, "w", False), (1, "x", True), (2, "y", False), (3, "z", False),
    ]  # fmt: skip


def test_ids_that_are_strings(tmp_path: Path) -> None:
    made(tmp_path, ["1", "2", "3", "7"])
    vip = write(tmp_path / "vip.csv", pa.table({"id": [3, 1, 99]}))
    for ids in ("1,3", f"@{vip}"):
        assert found(tmp_path, "--ids", ids) == [(1, "1"), (1, "3"), (3, "1")]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_reasons(tmp_path: Path, form: str) -> None:
    index, out = made(tmp_path, list(SUBS)), tmp_path / f"out.{form}"
    events = write(tmp_path / f"events.{form}", EVENTS.drop_columns("tags"))
    run("reasons", index, events, "-o", out)
    assert read_table(str(out)).to_pylist() == [{"subscription": 7, "attribute": "age", "events": 4}]
    run("reasons", index, events, "--by", "predicate", "--tag", "x", "-o", out)
    wanted = {"subscription": 7, "attribute": "age", "predicate": "age > 100", "events": 4}
    assert read_table(str(out)).to_pylist() == [wanted]
    shown = run("reasons", index, events, "--ids", "1,2").output.replace('"', "")
    assert shown == "subscription,attribute,events\n"


def test_what_is_wrong(tmp_path: Path) -> None:
    index, events = made(tmp_path, list(SUBS)), write(tmp_path / "e.parquet", EVENTS)
    assert "'x' is no id: those of this index are numbers" in invoke("match", index, events, "--ids", "1,x").output
    none = write(tmp_path / "none.csv", pa.table({"key": [1]}))
    assert "there is no column 'id' among key" in fails("match", index, events, "--ids", f"@{none}")
    assert "nowhere.csv" in fails("match", index, events, "--ids", "@nowhere.csv")
    assert (
        "--top has rows of its own: leave --exists out" in invoke("match", index, events, "--top", 1, "--exists").output
    )
    for text in ('["x", 5]', '["x"', "[[]]"):
        table = pa.table({"id": [1], "expression": ["age > 1"], "tags": [text]})
        said = fails("build", write(tmp_path / "bad.csv", table), "--schema", SCHEMA, "-o", tmp_path / "j")
        assert "row 1 after the header" in said and "are no tags, write them as JSON" in said
