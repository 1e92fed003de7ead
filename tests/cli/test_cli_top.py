"""``colmatch match --top``: the most relevant matches, with weights of the events."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from shell import EVENTS, SCHEMA, fails, invoke, run, write

from colmatch.cli.files import read_table

SUBS = pa.table(
    {
        "id": [1, 2, 3],
        "expression": ["age >= 18", "city LIKE 'L%' AND age > 10", "city IS NOT NULL"],
        "weights": pa.array(
            [[("age", 2.0)], [("age", 0.5), ("city", 1.0)], [("city", 0.25)]], pa.map_(pa.string(), pa.float64())
        ),
        "priority": [1.0, 2.0, 0.0],
    }
)
WEIGHED = EVENTS.append_column("urgency", pa.array([4.0, 8.0, None, 0.0])).append_column(
    "gives",
    pa.array([[], [("city", 8.0), ("age", 0.0)], None, [("age", 0.5)]], pa.map_(pa.string(), pa.float64())),
)
PLAIN = [(0, 3, 0.25), (1, 1, 2.0), (2, 3, 0.25), (3, 1, 2.0)]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    run("build", write(tmp_path / "subs.parquet", SUBS), "--schema", SCHEMA, "-o", tmp_path / "i")
    return tmp_path / "i"


def best(path: Path) -> list[tuple[int, int, float]]:
    return [(row["event"], row["subscription"], row["score"]) for row in read_table(str(path)).to_pylist()]


@pytest.mark.parametrize("form", ["parquet", "jsonl", "arrow"])
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], PLAIN),
        (["--score", "priority"], [(0, 3, 0.0), (1, 2, 2.0), (2, 3, 0.0), (3, 1, 1.0)]),
        (["--event-weights", "city=urgency"], [(0, 3, 1.0), (1, 2, 8.5), (2, 3, 0.25), (3, 1, 2.0)]),
        (["--event-weights", "city=urgency", "--event-weights", "age=0.25"], [(0, 3, 1.0), (1, 2, 8.125), (2, 3, 0.25), (3, 1, 0.5)]),
        (["--event-weights", "gives"], [(0, 3, 0.25), (1, 2, 8.0), (2, 3, 0.25), (3, 1, 1.0)]),
    ],
)  # fmt: skip
def test_the_best(tmp_path: Path, index: Path, form: str, options: list[str], wanted: object) -> None:
    events = write(tmp_path / f"events.{form}", WEIGHED)
    run("match", index, events, "--top", 1, *options, "-o", tmp_path / f"out.{form}")
    assert best(tmp_path / f"out.{form}") == wanted


def test_the_best_of_ranges(tmp_path: Path, index: Path) -> None:
    ends = pa.table({"low": [11, 90], "high": [20, 120], "city": ["Lyon", None], "tags": pa.nulls(2)})
    events = write(tmp_path / "ends.jsonl", ends)
    run("match", index, events, "--top", 2, "--range", "age=low,high", "-o", tmp_path / "out.parquet")
    assert best(tmp_path / "out.parquet") == [(0, 1, 2.0), (0, 2, 1.5), (1, 1, 2.0)]


def test_more_than_one_and_kept_columns(tmp_path: Path, index: Path) -> None:
    events = write(tmp_path / "events.csv", WEIGHED.select(["age", "city", "urgency"]))
    found = run(
        "match",
        index,
        events,
        "--top",
        2,
        "--keep",
        "urgency",
        "--event-weights",
        "city=urgency",
        "--missing-columns",
        "null",
    )
    assert found.stdout.splitlines()[:3] == ['"event","urgency","subscription","score"', "0,4,3,1", "1,8,2,8.5"]
    lines = run("match", index, events, "--top", 1, "--out-format", "jsonl").stdout.splitlines()
    assert json.loads(lines[1]) == {"event": 1, "subscription": 1, "score": 2.0}


def test_what_cannot_be(tmp_path: Path, index: Path) -> None:
    events = write(tmp_path / "events.parquet", WEIGHED)
    for code, message, options in [
        (2, "leave --count out", ["--top", 1, "--count"]),
        (2, "--event-weights goes with --top", ["--event-weights", "gives"]),
        (2, "--score goes with --top", ["--score", "sum"]),
        (2, "should be ATTRIBUTE=COLUMN", ["--top", 1, "--event-weights", "gives", "--event-weights", "age=urgency"]),
        (2, "0 is not in the range", ["--top", 0]),
        (1, "unknown attribute 'agee'", ["--top", 1, "--event-weights", "agee=urgency"]),
        (1, "no column 'urgent'", ["--top", 1, "--event-weights", "age=urgent"]),
        (1, "column 'note' is string: numbers are needed", ["--top", 1, "--event-weights", "age=note"]),
    ]:
        assert message in fails("match", index, events, *options, code=code), options


@pytest.mark.parametrize("options", [[], ["--missing-columns", "null"]])
def test_weights_that_are_not_there_are_missed_before_anything_is_written(
    tmp_path: Path, index: Path, options: list[str]
) -> None:
    for form, columns in (("csv", ["age", "city"]), ("parquet", WEIGHED.column_names), ("arrow", ["age", "city"])):
        events = write(tmp_path / f"events.{form}", WEIGHED.select(columns))
        for weights in ("urgent", "age=urgent"):
            failed = invoke("match", index, events, "--top", 1, "--event-weights", weights, *options)
            assert failed.exit_code == 1 and failed.stdout == "", (form, weights)
            assert "no column 'urgent', which is needed: " in failed.stderr
            assert "(--event-weights names it)" in failed.stderr
        failed = invoke("match", index, events, "--top", 1, "--event-weights", "age=city", *options)
        assert failed.stdout == "" and "column 'city' is string: numbers are needed" in failed.stderr, form


def test_a_wrong_weight_names_the_event(tmp_path: Path) -> None:
    build = ("build", write(tmp_path / "subs.parquet", SUBS), "--schema", SCHEMA, "-o", tmp_path / "i")
    run(*build, "--option", "batch_rows=2")
    events = write(tmp_path / "events.parquet", WEIGHED.set_column(4, "urgency", pa.array([1.0, 1.0, 1.0, -1.0])))
    options = ["--top", 1, "--event-weights", "age=urgency"]
    assert "column 'urgency', event 3: the weight is -1.0" in fails("match", tmp_path / "i", events, *options)


def test_weights_that_no_line_has(tmp_path: Path, index: Path) -> None:
    """Also where it is another case: keys of JSON lines are read as they are written."""
    events = write(tmp_path / "events.jsonl", WEIGHED)
    for name in ("urgent", "URGENCY"):
        options = ["--top", 1, "--event-weights", f"age={name}", "-o", tmp_path / "out.csv"]
        assert f"no line has '{name}', which is needed" in fails("match", index, events, *options, code=1)
        assert not (tmp_path / "out.csv").exists()
        assert f"no line has '{name}'" in fails("match", index, events, *options, "--missing-columns", "null")


@pytest.mark.parametrize("wrong", ["oops", "[1]", '{"price": "much"}', '{"price": null}'])
def test_weights_of_csv_that_are_no_json_name_the_row(tmp_path: Path, wrong: str) -> None:
    subs = tmp_path / "subs.csv"
    quoted = wrong.replace('"', '""')
    subs.write_text(f'id,expression,weights\n1,price < 1,\n2,price < 2,"{quoted}"\n')
    said = fails("build", subs, "-o", tmp_path / "index", "--schema", "price: double")
    assert "row 2 after the header" in said and "are no weights, write them as JSON" in said
