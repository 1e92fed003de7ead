"""``colmatch match --hits``: how many events each subscription matches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from shell import EVENTS, SUBS, an_index, fails, run, write

from colmatch.cli.files import read_table


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return an_index(tmp_path)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow", "arrows"])
def test_subscriptions_that_match_most_come_first(tmp_path: Path, index: Path, form: str) -> None:
    events, out = write(tmp_path / f"e.{form if form != 'csv' else 'jsonl'}", EVENTS), tmp_path / f"out.{form}"
    run("match", index, events, events, "--hits", "-o", out)
    assert read_table(str(out)).to_pylist() == [
        {"subscription": id, "events": events} for id, events in ((1, 4), (2, 4), (3, 2))
    ]


def test_a_count_for_each_subscription_goes_with_what_chooses_events_and_rules(tmp_path: Path, index: Path) -> None:
    events = write(tmp_path / "e.parquet", EVENTS)
    assert run("match", index, events, "--hits", "--ids", "3,7").stdout == '"subscription","events"\n3,1\n'
    assert run("match", index, events, "--hits", "--ids", "7").stdout == '"subscription","events"\n'
    shown = run("match", index, events, "--hits", "--out-format", "table").stdout
    assert [line.split() for line in shown.splitlines()][:2] == [["subscription", "events"], ["1", "2"]]
    ends = pa.table({"low": [10, 90], "high": [20, 120], "city": [None, "Lyon"], "tags": pa.nulls(2)})
    ranged = run("match", index, write(tmp_path / "r.jsonl", ends), "--hits", "--range", "age=low,high").stdout
    assert ranged == '"subscription","events"\n1,2\n3,1\n7,1\n'


def test_what_has_no_row_for_an_event_goes_without_what_is_said_of_one(tmp_path: Path, index: Path) -> None:
    events = write(tmp_path / "e.parquet", EVENTS)
    for options, said in (
        (["--keep", "note"], "--hits has no row for an event: leave --keep or --hits out"),
        (["--lists"], "--hits and --lists have rows of their own"),
        (["--top", 2], "--top has rows of its own: leave --hits out"),
        (["--score", "sum"], "--score goes with --top"),
    ):
        assert said in fails("match", index, events, "--hits", *options, code=2)


def test_errors_of_events_are_those_of_other_matches(tmp_path: Path, index: Path) -> None:
    lacking = write(tmp_path / "e.parquet", EVENTS.drop_columns("city"))
    said = fails("match", index, lacking, "--hits")
    assert said == fails("match", index, lacking, "--count") and "there is no column 'city'" in said
    assert len(SUBS) == 4 and "1,2" in run("match", index, lacking, "--hits", "--missing-columns", "null").stdout
    bad = tmp_path / "bad.csv"
    bad.write_text("age,city,tags\n1,a,\nx,b,\n")
    assert "bad.csv: line 3, column 'age': invalid value 'x'" in fails("match", index, bad, "--hits")
