"""Formats of what commands write, and bars while they work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shell import EVENTS, SCHEMA, SUBS, an_index, fails, invoke, run, subscriptions, write

import colmatch as cm


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    an_index(tmp_path)
    write(Path("e.parquet"), EVENTS)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)


TABLE = """\
event  city  tags        subscription
    0  Nice  ["a"]                  2
    1  Lyon  ["a", "b"]             1
    1  Lyon  ["a", "b"]             3
    2  Nice  []                     2
    3  null  null                   1
"""


def test_a_table_is_for_people() -> None:
    assert run("match", "i.colmatch", "e.parquet", "--keep", "city,tags", "--out-format", "table").stdout == TABLE
    assert run("match", "i.colmatch", "e.parquet", "--ids", "7", "--out-format", "table").stdout == (
        "event  subscription\nno rows\n"
    )
    printed = run("reasons", "i.colmatch", "e.parquet", "--out-format", "table").stdout
    assert printed == "subscription  attribute  events\n           7  age             4\n"


def test_a_terminal_gets_a_table(terminal: None) -> None:
    assert run("match", "i.colmatch", "e.parquet", "--keep", "city,tags").stdout == TABLE
    assert run("reasons", "i.colmatch", "e.parquet").stdout.startswith("subscription  attribute  events\n")
    assert "subscriptions" in run("match", "i.colmatch", "e.parquet", "--lists").stdout
    assert "Arrow is not for a terminal" in fails("match", "i.colmatch", "e.parquet", "--out-format", "arrows", code=2)
    assert run("match", "i.colmatch", "e.parquet", "--out-format", "csv").stdout.startswith('"event","subscription"\n')


def test_a_table_shows_the_first_rows_and_counts_the_others() -> None:
    write(Path("many.parquet"), pa.table({"age": [20] * 1000, "city": ["\x1b[31mred\n" + "x" * 500] * 1000}))
    lines = run("match", "i.colmatch", "many.parquet", "--keep", "city", "--out-format", "table").stdout.splitlines()
    assert len(lines) == 42 and lines[-1] == "… and 960 more rows: -o FILE writes them all"
    assert "\x1b" not in lines[1] and '"\\u001b[31mred\\nxxx' in lines[1] and len(lines[1]) <= 80


def test_wide_columns_leave_a_place_for_the_others() -> None:
    write(Path("wide.parquet"), pa.table({"age": [20], "city": ["x" * 500], "note": ["y" * 500]}))
    printed = run("match", "i.colmatch", "wide.parquet", "--keep", "city,note", "--out-format", "table").stdout
    head, line = printed.splitlines()
    assert head.split() == ["event", "city", "note", "subscription"] and len(head) <= 80
    assert line.split()[-1].isdigit() and "xxx…" in line and "yyy…" in line


@pytest.mark.parametrize("command", [("match",), ("reasons",)], ids=" ".join)
def test_formats_that_do_not_fit(command: tuple[str, ...]) -> None:
    args = (*command, "i.colmatch", "e.parquet")
    assert "a table is for people" in fails(*args, "--out-format", "table", "-o", "x.txt", code=2)
    assert "cannot go through a standard stream" in fails(*args, "--out-format", "parquet")
    assert "the extension '.txt' names no format" in fails(*args, "-o", "x.txt")
    assert not list(Path().glob("x*"))
    run(*args, "-o", "x.txt", "--out-format", "jsonl")
    assert Path("x.txt").read_text().startswith("{")


def test_what_stops_in_the_middle_shows_no_table() -> None:
    Path("e.jsonl").write_text('{"age": 20, "city": "x"}\n' * 300_000 + '{"age": "x"}\n')
    assert run("match", "i.colmatch", "e.parquet", "--out-format", "table").stdout
    result = invoke("match", "i.colmatch", "e.jsonl", "--out-format", "table")
    assert (result.exit_code, result.stdout) == (1, "") and "line 300001" in result.stderr


# Bars


def test_events_have_a_bar_at_a_terminal(terminal: None) -> None:
    many = write(Path("many.parquet"), pa.concat_tables([EVENTS] * 5000))
    assert "/20.0k" in run("match", "i.colmatch", many, "-o", "o.csv").stderr  # of how many
    write(Path("many.csv"), pa.concat_tables([EVENTS] * 5000).drop_columns(["tags"]))
    shown = run("match", "i.colmatch", "many.csv", "-o", "o.csv").stderr
    assert " events" in shown and "/20.0k" not in shown


def test_subscriptions_have_a_bar_at_a_terminal(terminal: None) -> None:
    subs = subscriptions(Path("s.csv"), {id: f"age > {id}" for id in range(5000)})
    shown = run("build", subs, "--schema", SCHEMA, "-o", "j").stderr
    assert "/5.00k" in shown and " subscriptions/s" in shown


def test_a_matcher_is_built_with_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    cm.Matcher.build(dict.fromkeys(range(3000), "age > 1"), {"age": "bigint"}, progress=True)
    assert "/3.00k" in capsys.readouterr().err
    cm.Matcher.build(SUBS, SCHEMA)
    assert capsys.readouterr().err == ""
    with pytest.raises(cm.OptionError, match="progress=1"):
        cm.Matcher.build(SUBS, SCHEMA, progress=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("by_kernels", [False, True])
def test_a_bar_counts_each_text_once(by_kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    @contextmanager
    def bar(total: int, unit: str, shown: bool) -> Iterator[Any]:
        yield SimpleNamespace(update=told.append)

    monkeypatch.setattr("colmatch.subscriptions.intake.bar", bar)
    monkeypatch.setattr("colmatch.subscriptions.intake.FEWEST_TEXTS", 1)
    monkeypatch.setattr("colmatch.subscriptions.texts.TextReader.is_ready", lambda self: by_kernels)
    texts = [f"age = {i}" + " -- by itself" * (i % 3 == 0) for i in range(100)]
    cm.Matcher.build(dict(enumerate(texts)), {"age": "bigint"})
    assert sum(told) == 100


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str) -> None:
    def asked(what: str, **more: Any) -> str:
        env = {**os.environ, "_COLMATCH_COMPLETE": f"{shell}_{what}", **more}
        command = [sys.executable, "-c", "import sys; sys.argv[0] = 'colmatch'; from colmatch.cli import main; main()"]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=shell != "bash").stdout

    if what := asked("source"):
        assert "_COLMATCH_COMPLETE" in what
    words = {"COMP_WORDS": "colmatch ma", "COMP_CWORD": "ma" if shell == "fish" else "1"}
    assert "match" in asked("complete", **words)
    words = {"COMP_WORDS": "colmatch build --index ps", "COMP_CWORD": "ps" if shell == "fish" else "3"}
    assert {"pstbloom", "psthash"} <= set(asked("complete", **words).replace(",", " ").split())


@pytest.mark.parametrize("suffix", ["arrows", "arrow"])
def test_arrow_files_with_offsets_that_lead_nowhere_are_refused(suffix: str, tmp_path: Path) -> None:
    """Arrow hands over buffers as they are in the file."""
    offsets = pa.py_buffer(np.array([0, -1_761_607_679, 3, 3], np.int32))
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abc")])
    table = pa.table({"s": broken})
    path = tmp_path / f"events.{suffix}"
    make = pa.ipc.new_stream if suffix == "arrows" else pa.ipc.new_file
    with make(str(path), table.schema) as writer:
        writer.write_table(table)
    write(tmp_path / "rules.csv", pa.table({"id": [1], "expression": ["s = 'abc'"]}))
    run("build", tmp_path / "rules.csv", "--schema", "s: string", "-o", tmp_path / "r.cm")
    said = fails("match", tmp_path / "r.cm", path)
    assert "offset" in said.lower() and str(path) in said


@pytest.mark.parametrize("lines", [b"\n\n{\n", b'\n \nd"id": 1}\n', b"\n\n\n5\n"])
def test_blank_lines_before_a_bad_line_of_json(lines: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    path.write_bytes(lines)
    said = fails("build", path, "--schema", "a: int64", "-o", tmp_path / "r.cm")
    assert "line %d" % (lines.rstrip().count(b"\n") + 1) in said  # noqa: UP031
