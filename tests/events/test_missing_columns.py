"""Events that lack a column which expressions use: an error that names it, or NULL in every row
where that was asked for.
"""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shell import fails, run, write

import colmatch as cm
from colmatch.cli.json_lines import PathWatch, blocks

SCHEMA = pa.schema(
    {
        "price": pa.float64(),
        "dest": pa.string(),
        "user": pa.struct({"age": pa.int64(), "name": pa.string()}),
        "tags": pa.list_(pa.string()),
    }
)
RULES = {
    1: "price < 100",
    2: "dest IS NULL",
    3: "user.age > 17",
    4: "array_contains(tags, 'x')",
    5: "dest RLIKE '^L.*S$'",
}
EVENTS = pa.table(
    {"price": [50.0], "dest": ["LIS"], "user": [{"age": 40, "name": "a"}], "tags": [["x"]]}, schema=SCHEMA
)
LENIENT = cm.Options(missing_columns="null")


def without(*path: str) -> pa.Table:
    if len(path) == 1:
        return EVENTS.drop_columns([path[0]])
    return EVENTS.set_column(EVENTS.column_names.index(path[0]), path[0], pa.array([{"name": "a"}]))


@pytest.mark.parametrize("path", [("price",), ("dest",), ("user",), ("tags",), ("user", "age")], ids=".".join)
def test_a_column_that_is_not_there_is_an_error(path: tuple[str, ...]) -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    for call in (
        matcher.match,
        matcher.count,
        matcher.match_lists,
        lambda events: list(matcher.match_batches(events)),
        matcher.counters,
    ):
        with pytest.raises(cm.EventError, match=f"the events have no .* '{'.'.join(path)}', which the expressions use"):
            call(without(*path))


def test_the_error_names_what_was_meant() -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    with pytest.raises(cm.EventError, match="no column 'price', .* did you mean 'pricee'\\?"):
        matcher.match(EVENTS.rename_columns(["pricee", "dest", "user", "tags"]))
    with pytest.raises(
        cm.EventError, match="no column 'price', .* the batch has 'x'; Options\\(missing_columns='null'\\)"
    ):
        matcher.match(pa.table({"x": [1]}))


def test_columns_that_nothing_uses_may_be_missing() -> None:
    matcher = cm.Matcher.build({1: "price < 100", 2: "user.age = 40"}, SCHEMA)
    assert matcher.count(EVENTS.select(["user", "price"])).tolist() == [2]
    assert matcher.count(pa.table({"Price": [1.0], "USER": [{"Age": 40}]})).tolist() == [2]


def test_null_takes_them_to_be_null() -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA, options=LENIENT)
    assert sorted(matcher.match_lists(without("dest")).to_pylist()[0]) == [1, 2, 3, 4]
    assert sorted(matcher.match_lists(without("user", "age")).to_pylist()[0]) == [1, 4, 5]
    assert matcher.match_lists(pa.table({"x": [1]})).to_pylist() == [[2]]


def test_a_column_of_type_null_is_there() -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    nothing = pa.table({name: pa.nulls(1) for name in SCHEMA.names})
    assert matcher.match_lists(nothing).to_pylist() == [[2]]


def test_the_option_can_be_set_later_and_is_saved(tmp_path: Path) -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    some = without("dest")
    with pytest.raises(cm.EventError):
        matcher.count(some)
    matcher.options = replace(matcher.options, missing_columns="null")
    assert matcher.count(some).tolist() == [4]
    matcher.save(tmp_path / "i")
    opened = cm.Matcher.open(tmp_path / "i")
    assert opened.count(some).tolist() == [4]
    opened.options = replace(opened.options, missing_columns="error")
    with pytest.raises(cm.EventError):  # also by a worker that has read such a batch before
        opened.count(some)


def test_explain_asks_a_table_for_what_its_subscription_uses() -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    assert matcher.explain(pa.table({"price": [3.0]}), 1).matched
    with pytest.raises(cm.EventError, match="no column 'dest'"):
        matcher.explain(pa.table({"price": [3.0]}), 2)
    matcher.options = LENIENT
    assert matcher.explain(pa.table({"price": [3.0]}), 2).matched


@pytest.mark.parametrize("event", [{"price": 3.0}, {}, {"user": {"name": "ada"}}], ids=["some", "none", "of a struct"])
def test_explain_takes_a_single_event_as_match_one_does(event: dict[str, Any]) -> None:
    """A name that a mapping lacks is NULL, whatever the options say of columns."""
    matcher = cm.Matcher.build(RULES, SCHEMA)
    for id in RULES:
        assert matcher.explain(event, id).matched == (id in matcher.match_one(event))


def test_a_sample_and_an_insert_ask_too() -> None:
    with pytest.raises(cm.EventError, match="no column 'dest'"):
        cm.Matcher.build(RULES, SCHEMA, sample=without("dest"))
    matcher = cm.Matcher.build({1: "price < 100"}, SCHEMA, index="scan")
    assert matcher.count(without("dest")).tolist() == [1]
    matcher.insert({2: "dest IS NULL"})
    with pytest.raises(cm.EventError, match="no column 'dest'"):
        matcher.count(without("dest"))


def test_other_values_of_the_option_are_refused() -> None:
    for value in ("ignore", None, True):
        with pytest.raises(cm.OptionError, match="missing_columns"):
            cm.Options(missing_columns=value)  # type: ignore[arg-type]


# The command line


@pytest.fixture
def index(tmp_path: Path) -> Path:
    cm.Matcher.build({1: "price < 100", 2: "dest IS NULL"}, SCHEMA).save(tmp_path / "i")
    return tmp_path / "i"


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        names = list(rows[0])
        path.write_text(
            "\n".join([",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]) + "\n"
        )
    else:
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("extension", ["jsonl", "csv", "parquet"])
def test_a_misspelt_column_of_a_file(tmp_path: Path, index: Path, extension: str) -> None:
    events = written(tmp_path / f"e.{extension}", [{"pricee": 5.0, "dest": "LIS"}] * 3)
    out = tmp_path / "out.parquet"
    for command in (("match", index, events), ("match", index, events, "-o", out), ("match", index, events, "--count")):
        message = fails(*command)
        assert "price" in message
        assert "which is needed" in message and "--missing-columns null" in message
    assert not out.exists()
    if extension != "jsonl":
        assert "did you mean 'pricee'?" in message
    assert run("match", index, events, "--missing-columns", "null").stdout == '"event","subscription"\n'


def test_a_key_that_some_lines_have_is_there(tmp_path: Path, index: Path) -> None:
    """Also when its only values are NULL, when it comes late, or when it is written with
    escapes.
    """
    rows: list[dict[str, Any]] = [{"dest": "LIS"}] * 20_000 + [{"price": None}]
    assert run("match", index, written(tmp_path / "e.jsonl", rows)).stdout == '"event","subscription"\n20000,2\n'
    (tmp_path / "f.jsonl").write_text('{"\\u0070rice": 1, "dest" : "LIS"}\n')
    assert run("match", index, tmp_path / "f.jsonl").stdout == '"event","subscription"\n0,1\n'


def test_keys_are_seen_wherever_blocks_end() -> None:
    text = b'{"x": 1, "v": {"price": 0}, "s": "dest", "u": {"age": null}}\n{"price" : 2, "w": null, "a.b": 1}'
    wanted = [("price",), ("a.b",), ("x",), ("u", "age"), ("w", "age"), ("u", "name"), ("dest",), ("age",)]
    for size in range(1, len(text)):
        keys = PathWatch(wanted)
        found = list(blocks(BytesIO(text), size))
        for block in found:
            keys.look(block.lines)
        assert b"".join(block.lines for block in found) == text + b"\n"
        assert keys.unseen == {("u", "name"), ("dest",), ("age",)}, size
    keys = PathWatch([("é",), ("è",), ("x",)])
    keys.look('{"é": "x", "\\u00e8": 1}'.encode())
    assert keys.unseen == {("x",)}


def test_a_field_that_no_line_has(tmp_path: Path) -> None:
    cm.Matcher.build({1: "u.age IS NULL"}, {"u": pa.struct({"age": pa.int64()})}).save(tmp_path / "i")
    for number, line in enumerate(('{"u": {"aeg": 5}}', '{"u": {}}', '{"v": {"u": 5}}')):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(line + "\n")
        assert "no line has 'u.age'" in fails("match", tmp_path / "i", path), line
    path.write_text('{"u": null}\n')
    assert run("match", tmp_path / "i", path).stdout.endswith("0,1\n")


def test_a_column_of_maps_that_no_line_has(tmp_path: Path) -> None:
    cm.Matcher.build({1: "m['k'] = 1 OR price > 3"}, {"m": pa.map_(pa.string(), pa.int64()), "price": "double"}).save(
        tmp_path / "i"
    )
    events = written(tmp_path / "e.jsonl", [{"m": None, "price": None}, {"m": {"k": 1}}])
    assert run("match", tmp_path / "i", events).stdout.endswith("1,1\n")
    assert "no line has 'm'" in fails(
        "match", tmp_path / "i", written(tmp_path / "e.jsonl", [{"n": {"k": 1}, "price": 4.0}])
    )


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_names_of_files_differ_in_case_as_those_of_batches_do(tmp_path: Path, index: Path, extension: str) -> None:
    events = written(tmp_path / f"e.{extension}", [{"PRICE": 5.0, "Dest": "LIS"}])
    for more in ((), ("--missing-columns", "null")):
        assert run("match", index, events, *more).stdout == '"event","subscription"\n0,1\n'


def test_other_options_are_refused_for_a_matcher_that_is_built() -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA)
    for odd in (None, {}, "x", 3, cm.Options):
        with pytest.raises(cm.OptionError, match="Options\\(...\\) is needed"):
            matcher.options = odd  # type: ignore[assignment]
    for options in (cm.Options(timezone="Europe/Berlin"), cm.Options(max_depth=3)):
        with pytest.raises(cm.OptionError, match="the index was built with .*: rebuild"):
            matcher.options = options
    matcher.options = cm.Options(threads=1, batch_rows=3, missing_columns="null")
    assert matcher.options.batch_rows == 3


def test_a_worker_that_comes_back_late_goes_by_the_new_option() -> None:
    matcher = cm.Matcher.build(RULES, SCHEMA, options=cm.Options(batch_rows=1, threads=1, missing_columns="null"))
    events = pa.concat_tables([without("dest")] * 3)
    late = matcher.match_batches(events)
    next(late)
    matcher.options = cm.Options(batch_rows=1, threads=1)
    with pytest.raises(cm.EventError, match="no column 'dest'"):
        list(late)
    with pytest.raises(cm.EventError, match="no column 'dest'"):
        matcher.count(events)


def test_explain_names_the_row_of_the_file(tmp_path: Path) -> None:
    schema = {"at": pa.timestamp("us")}
    cm.Matcher.build({1: "at IS NOT NULL"}, schema).save(tmp_path / "i")
    events = write(tmp_path / "e.arrow", pa.table({"at": pa.array([0, 0, 2**60], pa.timestamp("s"))}))
    assert "matches" in run("explain", tmp_path / "i", events, "--id", "1", "--row", "1").stdout
    said = "column 'at', event 2: the value is too large"
    assert said in fails("explain", tmp_path / "i", events, "--id", "1", "--row", "2")
    assert said in fails("match", tmp_path / "i", events)


def test_explain_on_the_command_line(tmp_path: Path, index: Path) -> None:
    events = written(tmp_path / "e.csv", [{"price": 5.0}])
    assert "matches" in run("explain", index, events, "--id", "1").stdout
    assert "no column 'dest'" in fails("explain", index, events, "--id", "2")
    assert "matches" in run("explain", index, events, "--id", "2", "--missing-columns", "null").stdout
    events = written(tmp_path / "e.jsonl", [{"price": 5.0}])
    assert "matches" in run("explain", index, events, "--id", "1").stdout
    assert "no column 'dest'" in fails("explain", index, events, "--id", "2")
