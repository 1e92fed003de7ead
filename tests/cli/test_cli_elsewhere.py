"""Files that others made: other names of columns, semicolons, times without a zone; and slips."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import fails, run

import colmatch as cm


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rules = {1: "price < 100 AND at > '2025-01-01'"}
    cm.Matcher.build(rules, {"price": "double", "at": "timestamp[us, tz=UTC]"}).save("i.cm")


def test_other_names_of_columns() -> None:
    Path("rules.csv").write_text('id,rule_id,where_clause\na,1,price < 100\nb,2,"price > 5, "\n'.replace(', "', '"'))
    run(
        "build",
        "rules.csv",
        "--schema",
        "price double",
        "--id",
        "rule_id",
        "--expression",
        "where_clause",
        "-o",
        "r.cm",
    )
    matcher = cm.Matcher.open("r.cm")
    assert matcher.to_table().to_pylist() == [
        {"id": 1, "expression": "price < 100"},
        {"id": 2, "expression": "price > 5"},
    ]
    failed = fails("build", "rules.csv", "--schema", "price double", "-o", "r.cm")
    assert "there is no column 'expression'" in failed
    remedy = "--expression NAME of `colmatch build` and `colmatch check` takes another column for it"
    assert remedy in failed and remedy in fails("check", "rules.csv", "--schema", "price double")


def test_semicolons_between_the_fields() -> None:
    Path("rules.csv").write_text("id;expression\n1;price < 100 AND dest IN ('a', 'b')\n2;\"dest = 'x;y'\"\n")
    run("build", "rules.csv", "--schema", "price double, dest string", "-o", "r.cm")
    Path("events.csv").write_text('price;dest\n5;b\n7;"x;y"\n')
    assert run("match", "r.cm", "events.csv", "--out-format", "csv").stdout == '"event","subscription"\n0,1\n1,2\n'
    Path("events.csv").write_text("price;dest\n5;b\ndear;b\n")
    assert "events.csv: line 3, column 'price'" in fails("match", "r.cm", "events.csv")
    Path("events.csv").write_text("price,dest;other\n5,b\n")  # a comma decides
    assert "no column 'dest'" in fails("match", "r.cm", "events.csv")


@pytest.mark.parametrize(
    ("file", "text"),
    [("e.csv", "price,at\n5,2026-01-01 10:00:00\n"), ("e.jsonl", '{"price": 5, "at": "2026-01-01 10:00:00"}\n')],
)
def test_a_time_without_a_zone(file: str, text: str) -> None:
    Path(file).write_text(text)
    failed = fails("match", "i.cm", file)
    assert (
        f"{file}: line" in failed
        and "column 'at'" in failed
        and "write one behind the time, as in 2026-11-23T10:00:00Z" in failed
    )
    Path(file).write_text(text.replace("10:00:00", "10:00:00Z"))
    assert "0,1" in run("match", "i.cm", file, "--out-format", "csv").stdout


def test_slips() -> None:
    Path("e.csv").write_text("price,at\n5,2026-01-01 10:00:00Z\n")
    assert "e.csv has no column 'prise' to keep: did you mean 'price'?" in fails(
        "match", "i.cm", "e.csv", "--keep", "prise"
    )
    assert "say which of arrows, csv and jsonl it carries, as with --format csv" in fails("match", "i.cm", "-")
