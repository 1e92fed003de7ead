"""The command line, as a user meets it: what comes out, where, and with which exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shell import EVENTS, PAIRS, SCHEMA, SUBS, an_index, fails, invoke, pairs, run, subscriptions, write

import colmatch as cm
from colmatch.cli import options
from colmatch.cli.commands import cli
from colmatch.cli.files import read_table
from colmatch.cli.places import FORMATS
from colmatch.cli.writing import writing


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return an_index(tmp_path)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    write(tmp_path / "events.parquet", EVENTS)
    return tmp_path / "events.parquet"


# build


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet", "arrow", "arrows", "csv.gz"])
def test_build_reads_every_format(tmp_path: Path, events: Path, extension: str) -> None:
    subs = subscriptions(tmp_path / f"subs.{extension}")
    result = run("build", subs, "--like", events, "-o", tmp_path / "i")
    assert result.stdout == ""
    assert "4 subscriptions, index" in result.stderr
    run("match", tmp_path / "i", events, "-o", tmp_path / "out.parquet")
    assert pairs(tmp_path / "out.parquet") == PAIRS


def test_build_from_standard_input(tmp_path: Path, events: Path) -> None:
    run(
        "build",
        "-",
        "--format",
        "csv",
        "--schema",
        SCHEMA,
        "-o",
        tmp_path / "i",
        input='id,expression\n1,"age >= 18"\n',
    )
    run("match", tmp_path / "i", events, "-o", tmp_path / "out.arrow")
    assert pairs(tmp_path / "out.arrow") == [(1, 1), (3, 1)]


def test_build_from_several_files(tmp_path: Path, events: Path) -> None:
    first = subscriptions(tmp_path / "a.csv", {1: SUBS[1], 2: SUBS[2]})
    second = subscriptions(tmp_path / "b.parquet", {3: SUBS[3]})
    run("build", first, second, "--like", events, "-o", tmp_path / "i")
    run("match", tmp_path / "i", events, "-o", tmp_path / "out.parquet")
    assert pairs(tmp_path / "out.parquet") == PAIRS


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_build_from_predicate_tables(tmp_path: Path, events: Path, extension: str) -> None:
    numbers = {
        "id": [1, 4, 4],
        "attribute": ["age", "age", "age"],
        "op": [">=", "between", "is not null"],
        "operands": [[18], [10, 40], []],
    }
    texts = {"id": [4], "attribute": ["city"], "op": ["in"], "operands": [["Nice", "Lyon"]]}
    a, b = write(tmp_path / f"a.{extension}", pa.table(numbers)), write(tmp_path / f"b.{extension}", pa.table(texts))
    run("build", a, b, "--like", events, "-o", tmp_path / "i")
    run("match", tmp_path / "i", events, "-o", tmp_path / "out.parquet")
    assert pairs(tmp_path / "out.parquet") == [(0, 4), (1, 1), (1, 4), (3, 1)]
    assert "build them apart" in fails(
        "build", a, subscriptions(tmp_path / "s.csv"), "--like", events, "-o", tmp_path / "j"
    )


def test_ids_are_text_when_asked(tmp_path: Path, events: Path) -> None:
    (tmp_path / "s.csv").write_text("id,expression\n007,age >= 18\n")
    run("build", tmp_path / "s.csv", "--ids", "string", "--like", events, "-o", tmp_path / "i")
    assert run("match", tmp_path / "i", events).stdout == '"event","subscription"\n1,"007"\n3,"007"\n'


@pytest.mark.parametrize(
    "text", ["age bigint, city string", "age: bigint, city: varchar(20)", "age long COMMENT 'years', city text"]
)
def test_schema_as_a_text(tmp_path: Path, text: str) -> None:
    run("build", subscriptions(tmp_path / "s.csv"), "--schema", text, "-o", tmp_path / "i")
    assert cm.Matcher.open(tmp_path / "i").schema.arrow == pa.schema({"age": pa.int64(), "city": pa.string()})
    for wrong in ("age bigint), city string", "nofile.txt", "age bigint, city"):
        assert "schema" in fails("build", tmp_path / "s.csv", "--schema", wrong, "-o", tmp_path / "j").lower()


@pytest.mark.parametrize("name", ["schema.txt", "schema.json"])
def test_schema_from_a_file(tmp_path: Path, name: str) -> None:
    text = "age: int64  # years\ncity: string\n" if name.endswith("txt") else '{"age": "int64", "city": "string"}'
    (tmp_path / name).write_text(text)
    run("build", subscriptions(tmp_path / "s.csv"), "--schema", tmp_path / name, "-o", tmp_path / "i")
    assert cm.Matcher.open(tmp_path / "i").schema.arrow == pa.schema({"age": pa.int64(), "city": pa.string()})


def test_options_reach_the_matcher(tmp_path: Path) -> None:
    subs = subscriptions(tmp_path / "s.csv")
    run(
        "build",
        subs,
        "--schema",
        SCHEMA,
        "--option",
        "batch_rows=16",
        "--option",
        "timezone=Europe/Paris",
        "-o",
        tmp_path / "i",
    )
    assert cm.Matcher.open(tmp_path / "i").options == cm.Options(batch_rows=16, timezone="Europe/Paris")
    assert "from 1 to" in fails("build", subs, "--schema", SCHEMA, "--option", "batch_rows=0", "-o", tmp_path / "i")
    assert "from 0 to" in fails("build", subs, "--schema", SCHEMA, "--option", "threads=+-5", "-o", tmp_path / "i")
    assert "time zone" in fails("build", subs, "--schema", SCHEMA, "--option", "timezone=5", "-o", tmp_path / "i")
    assert "a name out of batch_rows" in fails(
        "build", subs, "--schema", SCHEMA, "--option", "rows=1", "-o", tmp_path / "i", code=2
    )


BAD = {1: "age >= 18", 2: "age >= 'x'", 3: "citi = 'Nice'", 4: "age >=\n AND"}


def test_a_bad_expression_is_shown_with_its_place(tmp_path: Path) -> None:
    says = fails(
        "build",
        subscriptions(tmp_path / "s.parquet", {1: "age > 1", 5: "age > 1 AND\n citi = 'Nice'"}),
        "--schema",
        SCHEMA,
        "-o",
        tmp_path / "i",
    )
    assert "unknown attribute 'citi': did you mean 'city'?" in says
    assert "subscription 5" in says
    assert "line 2, column 2" in says
    assert not (tmp_path / "i").exists()


def test_a_load_in_which_all_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "subs.csv").write_text("id,expression\n1,nope = 1\n2,a ==\n")
    out = tmp_path / "i"
    build = ["build", tmp_path / "subs.csv", "--schema", "a bigint", "-o", out]
    result = invoke(*build, "--errors", "collect")
    assert result.exit_code == 1 and "rejected 1: unknown attribute 'nope'" in result.stderr
    assert "error: no subscription is left: all 2 were rejected, and nothing is saved" in result.stderr
    assert "no subscription is left" in fails(*build, "--rejected", tmp_path / "bad.csv")
    assert not out.exists() and len((tmp_path / "bad.csv").read_text().splitlines()) == 3


def test_bad_expressions_are_collected(tmp_path: Path) -> None:
    subs = subscriptions(tmp_path / "s.parquet", BAD)
    result = run("build", subs, "--schema", SCHEMA, "--errors", "collect", "-o", tmp_path / "i")
    assert "1 subscriptions, 3 rejected" in result.stderr
    assert "rejected 3: unknown attribute 'citi'" in result.stderr
    run("build", subs, "--schema", SCHEMA, "--rejected", tmp_path / "bad.csv", "-o", tmp_path / "i")
    bad = read_table(str(tmp_path / "bad.csv")).to_pylist()
    assert [row["id"] for row in bad] == [2, 3, 4]
    assert bad[1]["line"] == 1
    assert bad[1]["column"] == 1
    run(
        "build",
        subscriptions(tmp_path / "s.csv"),
        "--schema",
        SCHEMA,
        "--rejected",
        tmp_path / "none.parquet",
        "-o",
        tmp_path / "i",
    )
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["build", "s.csv", "-o", "i"], "--schema or --like, or both"),
        (
            ["build", "s.csv", "-o", "i", "--schema", "a:int64", "--errors", "raise", "--rejected", "r.csv"],
            "--errors collect",
        ),
        (["build", "-o", "i", "--schema", "a:int64"], "Missing argument"),
        (["build", "s.csv", "--schema", "a:int64"], "Missing option"),
        (["build", "s.csv", "-o", "i", "--schema", "a:int64", "--format", "excel"], "'excel' is not one of"),
        (["match", "i"], "Missing argument"),
        (["frobnicate"], "No such command"),
    ],
)
def test_wrong_usage_is_exit_code_2(args: list[str], says: str) -> None:
    assert says in fails(*args, code=2)


def test_errors_of_build(tmp_path: Path, events: Path) -> None:
    subs, out = subscriptions(tmp_path / "s.csv"), tmp_path / "i"
    assert "no.csv: No such file" in fails("build", tmp_path / "no.csv", "--schema", SCHEMA, "-o", out)
    assert "no.csv: No such file" in fails("build", subs, "--like", tmp_path / "no.csv", "-o", out)
    assert "no such file, and not a schema" in fails("build", subs, "--schema", tmp_path / "no", "-o", out)
    assert "no type is called 'int65'" in fails("build", subs, "--schema", "age: int65", "-o", out)
    assert "there is no column 'id'" in fails("build", events, "--schema", SCHEMA, "-o", out)
    assert "names no format" in fails("build", subs, "--schema", SCHEMA, "--rejected", tmp_path / "r.xls", "-o", out)
    assert "kindless" in fails("build", subs, "--schema", SCHEMA, "--index", "kindless", "-o", out)
    assert "i" in fails("build", subs, "--schema", SCHEMA, "-o", tmp_path / "nowhere" / "i")
    (tmp_path / "twice.csv").write_text("id,expression\n1,age > 1\n1,age > 2\n")
    assert "id 1 is given more than once" in fails("build", tmp_path / "twice.csv", "--schema", SCHEMA, "-o", out)
    (tmp_path / "null.csv").write_text("id,expression\n1,\n")
    assert "NULL" in fails("build", tmp_path / "null.csv", "--schema", SCHEMA, "-o", out)
    (tmp_path / "empty.csv").touch()
    assert "empty.csv" in fails("build", tmp_path / "empty.csv", "--schema", SCHEMA, "-o", out)
    assert not out.exists()


# match


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet", "arrow", "arrows"])
def test_match_in_and_out(tmp_path: Path, index: Path, extension: str) -> None:
    table = EVENTS.drop_columns(["tags"]) if extension == "csv" else EVENTS
    path = write(tmp_path / f"e.{extension}", table)
    result = run("match", index, path, "-o", tmp_path / f"out.{extension}")
    assert result.output == ""
    assert pairs(tmp_path / f"out.{extension}") == PAIRS


def test_match_prints_csv(index: Path, events: Path) -> None:
    assert run("match", index, events).stdout == '"event","subscription"\n' + "".join(
        f"{event},{id}\n" for event, id in PAIRS
    )


def test_count_lists_and_keep(tmp_path: Path, index: Path, events: Path) -> None:
    run("match", index, events, "--count", "-o", tmp_path / "c.parquet")
    assert pq.read_table(tmp_path / "c.parquet").to_pydict() == {"event": [0, 1, 2, 3], "matches": [1, 2, 1, 1]}
    run("match", index, events, "--lists", "--keep", "note", "-o", tmp_path / "l.parquet")
    assert pq.read_table(tmp_path / "l.parquet").to_pydict() == {
        "event": [0, 1, 2, 3],
        "note": ["w", "x", "y", "z"],
        "subscriptions": [[2], [1, 3], [2], [1]],
    }
    lines = run("match", index, events, "--lists").stdout.splitlines()
    assert [json.loads(line) for line in lines][1] == {"event": 1, "subscriptions": [1, 3]}
    run("match", index, events, "--keep", "note,city", "--keep", "tags", "-o", tmp_path / "k.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "k.jsonl").read_text().splitlines()]
    assert rows[2] == {"event": 1, "note": "x", "city": "Lyon", "tags": ["a", "b"], "subscription": 3}
    assert list(rows[0]) == ["event", "note", "city", "tags", "subscription"]


def test_events_are_numbered_through_many_batches(tmp_path: Path) -> None:
    run(
        "build", subscriptions(tmp_path / "s.csv"), "--schema", SCHEMA, "--option", "batch_rows=3", "-o", tmp_path / "i"
    )
    table = pa.concat_tables([EVENTS] * 10)
    with writing(str(tmp_path / "e.arrows"), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=7):
            writer.write_batch(batch)
    expected = [(4 * i + event, id) for i in range(10) for event, id in PAIRS]
    run("match", tmp_path / "i", tmp_path / "e.arrows", "--keep", "note", "-o", tmp_path / "o.parquet")
    assert pairs(tmp_path / "o.parquet") == expected
    assert pq.read_table(tmp_path / "o.parquet")["note"].to_pylist() == ["wxyz"[event % 4] for event, _ in expected]
    run("match", tmp_path / "i", tmp_path / "e.arrows", "--count", "-o", tmp_path / "c.parquet")
    assert pq.read_table(tmp_path / "c.parquet")["matches"].to_pylist() == [1, 2, 1, 1] * 10


def test_no_events_and_no_subscriptions(tmp_path: Path, index: Path) -> None:
    empty = write(tmp_path / "e.parquet", EVENTS.slice(0, 0))
    assert run("match", index, empty).stdout == '"event","subscription"\n'
    assert run("match", index, empty, "--lists").stdout == ""
    (tmp_path / "e.csv").write_text("age,city\n")
    assert run("match", index, tmp_path / "e.csv", "--count").stdout == '"event","matches"\n'
    none = write(
        tmp_path / "s.parquet", pa.table({"id": pa.array([], pa.int64()), "expression": pa.array([], pa.string())})
    )
    run("build", none, "--schema", SCHEMA, "-o", tmp_path / "i")
    full = write(tmp_path / "full.parquet", EVENTS)
    assert run("match", tmp_path / "i", full).stdout == '"event","subscription"\n'
    assert run("match", tmp_path / "i", full, "--count").stdout == '"event","matches"\n0,0\n1,0\n2,0\n3,0\n'


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet"])
def test_expressions_that_use_no_column(tmp_path: Path, extension: str) -> None:
    run("build", subscriptions(tmp_path / "s.csv", {1: "TRUE", 2: "FALSE"}), "--schema", SCHEMA, "-o", tmp_path / "i")
    path = write(tmp_path / f"e.{extension}", EVENTS.select(["age", "note"]))
    assert run("match", tmp_path / "i", path).stdout == '"event","subscription"\n0,1\n1,1\n2,1\n3,1\n'


def test_a_missing_column_may_be_null_and_that_is_said(tmp_path: Path, index: Path) -> None:
    path = write(tmp_path / "e.parquet", EVENTS.select(["age"]))
    result = run("match", index, path, "--missing-columns", "null")
    assert "no column 'city'" in result.stderr
    assert "NULL" in result.stderr
    assert result.stdout == '"event","subscription"\n1,1\n3,1\n'


def test_texts_that_mean_null(tmp_path: Path, index: Path) -> None:
    (tmp_path / "e.csv").write_text("age,city\nNA,Nice\n17,NA\n")
    assert run("match", index, tmp_path / "e.csv", "--null", "NA").stdout == '"event","subscription"\n0,2\n'
    assert "'NA'" in fails("match", index, tmp_path / "e.csv")


def test_errors_of_match(tmp_path: Path, index: Path, events: Path) -> None:
    out = tmp_path / "out.parquet"
    assert "no.colmatch: no such index" in fails("match", tmp_path / "no.colmatch", events, "-o", out)
    assert "no.csv: No such file" in fails("match", index, tmp_path / "no.csv", "-o", out)
    assert "has no column 'colour' to keep" in fails("match", index, events, "--keep", "colour", "-o", out)
    wrong = write(tmp_path / "wrong.parquet", pa.table({"age": ["old"], "city": ["Nice"]}))
    assert "age" in fails("match", index, wrong, "-o", out)
    taken = write(tmp_path / "taken.parquet", EVENTS.append_column("event", [["a", "b", "c", "d"]]))
    assert "cannot be kept" in fails("match", index, taken, "--keep", "event", "-o", out)
    assert "names no format" in fails("match", index, events, "-o", tmp_path / "out.xls")
    assert "no such folder" in fails("match", index, events, "-o", tmp_path / "nowhere" / "out.csv")
    assert "CSV cannot carry lists" in fails("match", index, events, "--lists", "-o", tmp_path / "out.csv", code=2)
    assert "standard stream" in fails("match", index, events, "--out-format", "parquet")
    assert "CSV cannot carry" in fails("match", index, events, "--keep", "tags")
    assert "say which of" in fails("match", index, "-", input=b"")
    assert "e.csv" in fails("match", index, tmp_path / "e.csv")
    assert sorted(os.listdir(tmp_path)) == [
        "events.parquet",
        "i.colmatch",
        "subs.csv",
        "taken.parquet",
        "wrong.parquet",
    ]


@pytest.mark.parametrize("damage", ["truncated", "foreign", "flipped", "empty", "folder"])
def test_a_damaged_index(tmp_path: Path, index: Path, events: Path, damage: str) -> None:
    if index.is_dir():
        pytest.skip("an index is a folder")
    data = index.read_bytes()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0xFF
    broken = tmp_path / "broken"
    if damage == "folder":
        broken.mkdir()
    else:
        broken.write_bytes(
            {
                "truncated": data[: len(data) // 2],
                "foreign": b"id,expression\n" * 100,
                "flipped": bytes(flipped),
                "empty": b"",
            }[damage]
        )
    for args in (["match", broken, events], ["stats", broken], ["explain", broken, events, "--id", "1"]):
        assert "broken" in fails(*args)


# explain, stats, help


def test_explain(index: Path, events: Path) -> None:
    shown = run("explain", index, events, "--row", "1", "--id", "3").stdout
    assert "subscription 3: matches" in shown
    assert "'Lyon'" in shown
    assert "does not match" in run("explain", index, events, "--id", "3").stdout
    shown = run("explain", index, "-", "--format", "jsonl", "--id", "1", input='{"age": 50, "other": [1]}\n').stdout
    assert "subscription 1: matches" in shown


def test_errors_of_explain(index: Path, events: Path) -> None:
    assert "has 4 rows, so there is no row 4" in fails("explain", index, events, "--row", "4", "--id", "3")
    assert "99" in fails("explain", index, events, "--id", "99")
    assert "whole numbers" in fails("explain", index, events, "--id", "x", code=2)
    assert "--row" in fails("explain", index, events, "--id", "1", "--row", "-1", code=2)


def test_stats(index: Path) -> None:
    shown = run("stats", index).stdout
    assert "subscriptions" in shown
    figures = json.loads(run("stats", index, "--json").stdout)
    assert figures["index"] in cm.index_kinds()
    assert figures["bytes"] > 0


def test_explanations_and_kinds_are_json(index: Path, events: Path) -> None:
    told = json.loads(run("explain", index, events, "--row", "1", "--id", "3", "--json").stdout)
    assert told["id"] == 3 and told["matched"] is True and told["tree"]["truth"] is True
    assert "'Lyon'" in told["tree"]["text"] or "Lyon" in json.dumps(told["tree"])
    kinds = json.loads(run("kinds", "--json").stdout)
    assert list(kinds) == [*cm.index_kinds(), "auto"]
    assert kinds["scan"]["settings"]["tiles"]["default"] is True


def test_a_value_that_json_has_not_is_null(tmp_path: Path) -> None:
    cm.Matcher.build({1: "x > 1 AND y < 2"}, {"x": "double", "y": "double"}).save(tmp_path / "x.cm")
    rows = pa.table({"x": [float("nan")], "y": [float("-inf")]})
    pq.write_table(rows, tmp_path / "x.parquet")
    said = run("explain", tmp_path / "x.cm", tmp_path / "x.parquet", "--row", "0", "--id", "1", "--json").stdout
    told = json.loads(said, parse_constant=pytest.fail)
    assert told["matched"] is True and [child["value"] for child in told["tree"]["children"]] == [None, None]


def test_a_result_has_one_form(index: Path, events: Path) -> None:
    said = fails("match", index, events, "--count", "--exists", code=2)
    assert "--count and --exists have rows of their own" in said


def test_rows_are_no_schema(tmp_path: Path) -> None:
    events = tmp_path / "events.csv"
    events.write_text("a,b\n1,2\n")
    said = fails("build", subscriptions(tmp_path / "s.csv"), "--schema", events, "-o", tmp_path / "x")
    assert f"--like {events} finds them" in said


def test_version_and_help() -> None:
    assert run("--version").stdout == f"colmatch {cm.__version__}\n"
    for command in ("build", "match", "explain", "stats", "kinds", "demo"):
        assert command in run("--help").stdout
        assert f"colmatch {command}" in run(command, "--help").stdout


def test_formats_are_listed_without_importing_arrow() -> None:
    assert tuple(options.FORMATS) == FORMATS


def test_examples_in_help_stand_on_lines_of_their_own() -> None:
    for name, command in cli.commands.items():
        shown = command.help or ""
        assert "\b\n" in shown and shown.count("\b") == shown.count("\b\n"), name
