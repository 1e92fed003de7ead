"""Attributes that are ranges in the events: what callers may say, and what they are told."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from contract import NO_JIT, lists
from shell import fails, invoke, run, write

import colmatch as cm

SCHEMA = pa.schema(
    {
        "price": pa.int64(),
        "dest": pa.string(),
        "user": pa.struct({"age": pa.int32()}),
        "tags": pa.list_(pa.string()),
        "at": pa.timestamp("us"),
    }
)
PRICE = {"price": ("low", "high")}


def events(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def found(rules: dict[str, str], rows: pa.Table, ranges: Any, **options: Any) -> list[list[str]]:
    matcher = cm.Matcher.build(rules, SCHEMA, options=cm.Options(**options))
    return lists(matcher.match_lists(rows, ranges=ranges))


def test_a_range_is_met() -> None:
    rules = {
        "both": "price > 3 AND price < 5",
        "out": "price < 3 OR price > 9",
        "not four": "price <> 4",
        "null": "price IS NULL",
    }
    rows = events(low=[4, 5, 1, None, None, 4], high=[4, 9, None, 2, None, 5])
    assert found(rules, rows, PRICE) == [
        ["both"],
        ["not four"],
        ["both", "not four", "out"],
        ["not four", "out"],
        ["null"],
        ["both", "not four"],
    ]


def test_what_is_known_to_be_absent_is_no_range_and_what_may_be_is_met_by_other_values() -> None:
    rules = {"not five": "NOT (price <=> 5)", "not low": "(price <= 5) IS NOT TRUE"}
    rows = events(low=[5, 5, None], high=[5, 6, None])
    assert found(rules, rows, PRICE) == [[], ["not five", "not low"], ["not five", "not low"]]


def test_a_column_of_the_attribute_need_not_be_there_but_may() -> None:
    rows = events(low=[4], high=[5], price=[100])
    assert found({"a": "price = 5"}, rows, PRICE) == [["a"]]
    assert found({"a": "price = 100"}, rows, PRICE) == [[]]
    assert found({"a": "price = 100"}, rows, None) == [["a"]]


def test_fields_of_structs_are_ranges_and_ends() -> None:
    ages = [{"from": 17, "to": 20}, {"from": 30, "to": None}]
    assert found({"a": "user.age = 18"}, events(years=ages), {"user.age": ("years.from", "years.to")}) == [["a"], []]


def test_names_are_found_in_any_case() -> None:
    assert found({"a": "price = 5"}, events(Low=[4], HIGH=[5]), {"PRICE": ("low", "high")}) == [["a"]]


def test_types_are_converted_as_in_any_column() -> None:
    low, high = pa.array([1], pa.timestamp("s")), pa.array([1_500], pa.timestamp("ms"))
    rules = {"in": "at = TIMESTAMP '1970-01-01 00:00:01.5'", "out": "at > TIMESTAMP '1970-01-01 00:00:01.5'"}
    assert found(rules, pa.table({"a": low, "b": high}), {"at": ("a", "b")}) == [["in"]]


def test_what_no_expression_uses_needs_no_columns() -> None:
    assert found({"a": "dest = 'LIS'"}, events(dest=["LIS"]), PRICE) == [["a"]]


def test_prefixes_are_ranges_themselves() -> None:
    rules = {"a": "dest LIKE 'L%'", "b": "dest >= 'M'"}
    assert found(rules, events(x=["K", "K", "LZ"], y=["KZ", "LA", "M"]), {"dest": ("x", "y")}) == [
        [],
        ["a"],
        ["a", "b"],
    ]


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        ([("price", "low", "high")], "ranges are {attribute: (lowest, highest)}, names of columns, not list"),
        ({"pricee": ("low", "high")}, "ranges: unknown attribute 'pricee': did you mean 'price'?"),
        ({"price": "low"}, "'price' goes from one column to another, two names, not 'low'"),
        ({"price": ("low", 3)}, "two names, not ('low', 3)"),
        ({1: ("low", "high")}, "the name of an attribute is a string, not 1"),
        ({"tags": ("low", "high")}, "column 'tags' is list<"),
        ({"user": ("low", "high")}, "only one value can be a range"),
        ({"price": ("low", "high"), "Price": ("low", "high")}, "'price' is there twice"),
    ],
)
def test_ranges_that_cannot_be_understood(ranges: Any, said: str) -> None:
    matcher = cm.Matcher.build({"a": "price = 5"}, SCHEMA)
    for ask in (matcher.match, matcher.match_lists, matcher.match_batches, matcher.count, matcher.counters):
        with pytest.raises(cm.OptionError) as error:
            ask(events(low=[1], high=[2]), ranges=ranges)
        assert said in str(error.value)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"low": [1, 5], "high": [1, 4]}, "column 'low', event 1: it is above column 'high', and 'price'"),
        (
            {"low": [1.5], "high": [2.5]},
            "1.5 is double, the schema says int64, which has no such value: cast it (it is an end of the range 'price': int64)",
        ),
        ({"low": [1], "high": [[2]]}, "column 'high' is list<"),
    ],
)
def test_events_that_have_no_ranges(columns: dict[str, list[Any]], said: str) -> None:
    for lenient in ("null", "error"):
        with pytest.raises(cm.EventError) as error:
            found({"a": "price = 5"}, events(**columns), PRICE, missing_columns=lenient)
        assert said in str(error.value)


def test_an_end_that_is_not_there() -> None:
    """An error, or no bound where a column may be missing: a column or a field of one."""
    rules = {"a": "price = 5", "none": "price IS NULL"}
    said = "no column 'high', which is to be an end of 'price': the batch has 'low'; Options(missing_columns='null')"
    with pytest.raises(cm.EventError) as error:
        found(rules, events(low=[1]), PRICE)
    assert said in str(error.value)
    with pytest.raises(cm.EventError, match="no field 'x.high'"):
        found(rules, events(x=[{"low": 1}]), {"price": ("x.low", "x.high")})
    assert found(rules, events(low=[1, 6, None]), PRICE, missing_columns="null") == [["a"], [], ["none"]]
    assert found(rules, events(high=[1, 6]), PRICE, missing_columns="null") == [[], ["a"]]
    assert found(rules, events(dest=["x"]), PRICE, missing_columns="null") == [["none"]]
    fields = events(x=[{"low": 1}, {"low": 6}])
    assert found(rules, fields, {"price": ("x.low", "x.high")}, missing_columns="null") == [["a"], []]
    assert found(rules, fields, {"price": ("x.low", "y.high")}, missing_columns="null") == [["a"], []]


def test_an_error_names_the_event_and_not_the_row_of_a_batch() -> None:
    rows = events(low=[1] * 5 + [9], high=[2] * 6)
    matcher = cm.Matcher.build({"a": "price = 5"}, SCHEMA, options=cm.Options(batch_rows=2, threads=1))
    for ask in (matcher.match, matcher.match_lists, matcher.count, matcher.counters):
        with pytest.raises(cm.EventError, match="^column 'low', event 5: it is above column 'high'") as error:
            ask(rows, ranges=PRICE)
        again = pickle.loads(pickle.dumps(error.value))
        assert str(again) == str(error.value) and again.event == 5
    maps = pa.array([[("k", 1)]] * 5 + [[("k", 2**50)]], pa.map_(pa.string(), pa.timestamp("s")))
    schema = {"m": pa.map_(pa.string(), pa.timestamp("us"))}
    for threads in (1, 2):
        options = cm.Options(batch_rows=2, threads=threads)
        other = cm.Matcher.build({1: "m['k'] = TIMESTAMP '1970-01-01'"}, schema, options=options)
        with pytest.raises(cm.EventError, match="^column 'm', event 5: the value is too large"):
            other.match(pa.table({"m": maps}))
        with pytest.raises(cm.EventError, match="^column 'm', event 5: the value is too large"):
            cm.Matcher.build({1: "m['k'] IS NULL"}, schema, options=options, sample=pa.table({"m": maps}))


def test_a_pattern_cannot_be_asked_of_a_range() -> None:
    rows = events(x=["a"], y=["b"])
    matcher = cm.Matcher.build({"a": "dest LIKE '%x'", "b": "dest = 'b'"}, SCHEMA)
    with pytest.raises(cm.EventError, match="'dest' cannot be a range: expressions compare it with a text pattern"):
        matcher.match(rows, ranges={"dest": ("x", "y")})
    matcher.delete(["a"])
    matcher.compact()
    assert lists(matcher.match_lists(rows, ranges={"dest": ("x", "y")})) == [["b"]]


@pytest.mark.parametrize("kind", cm.index_kinds())
def test_a_program_that_asks_too_much_of_ranges_is_refused(kind: str) -> None:
    """Each of the columns has eight values of its own: 9 ** 4 combinations would be tried."""
    columns = ["a", "b", "c", "d"]
    hard = " AND ".join(
        "(" + " OR ".join([*(f"{name} = {10 * i}" for name in columns), f"x = {i}"]) + ")" for i in range(8)
    )
    schema = dict.fromkeys([*columns, "x"], "int64")
    ranges = {name: (f"{name}0", f"{name}1") for name in columns}
    rows = pa.table(
        {name: [0] if name.endswith("0") else [100] for pair in ranges.values() for name in pair} | {"x": [1]}
    )
    matcher = cm.Matcher.build({"hard": hard, "easy": "a = 50"}, schema, index=cm.index(kind, dnf_budget=1))
    with pytest.raises(cm.EventError, match="subscription 'hard' asks too much of the range '[abcd]'"):
        matcher.match(rows, ranges=ranges)
    few = {"a": ranges["a"]}
    points = rows.append_column("b", pa.array([20])).append_column("c", pa.array([0])).append_column("d", pa.array([1]))
    assert lists(matcher.match_lists(points, ranges=few)) == [["easy"]]
    matcher.delete(["hard"])
    assert lists(matcher.match_lists(rows, ranges=ranges)) == [["easy"]]


def test_one_value_does_for_all_conditions_of_a_program() -> None:
    rules = {
        "never": "(price < 3 OR dest = 'x') AND (price > 7 OR dest = 'y')",
        "at": "(price < 6 OR dest = 'x') AND (price > 4 OR dest = 'y')",
    }
    matcher = cm.Matcher.build(rules, SCHEMA, index=cm.index("kindex", dnf_budget=1))
    rows = events(low=[0, 5, 0], high=[9, 9, 4], dest=["", "", ""])
    assert lists(matcher.match_lists(rows, PRICE)) == [["at"], ["at"], []]


def test_scan_tests_its_heads_first() -> None:
    rules = {i: f"price = {i} AND dest = 'LIS'" for i in range(500)}
    rows = events(low=[10], high=[19], dest=["LIS"])
    counted = {
        kind: cm.Matcher.build(rules, SCHEMA, index=kind).counters(rows, ranges=PRICE) for kind in ("scan", "bitslice")
    }
    assert counted["scan"]["candidates"] == counted["scan"]["matches"] == 10
    assert counted["bitslice"]["candidates"] == 500


@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_nothing_of_it_is_compiled_before_it_is_used() -> None:
    code = (
        "import colmatch as cm, pyarrow as pa\n"
        "m = cm.Matcher.build({'a': 'x = 1'}, {'x': 'int64'})\n"
        "m.match(pa.table({'x': [1]}))\n"
        "from colmatch.kernels import meets, ends\n"
        "assert not meets.meet_all.signatures and not ends.join_ends.signatures\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_line_takes_ranges(tmp_path: Any) -> None:
    index, rows = tmp_path / "index", tmp_path / "rows.csv"
    cm.Matcher.build({1: "price = 5", 2: "dest = 'LIS' AND price > 9"}, SCHEMA).save(index)
    rows.write_text("low,high,dest\n4,6,LIS\n,10,LIS\n7,8,\n")
    out = run("match", index, rows, "--range", "price=low,high", "--lists").stdout
    found = [json.loads(line)["subscriptions"] for line in out.splitlines()]
    assert [sorted(ids) for ids in found] == [[1], [1, 2], []]
    assert "'price=low' should be NAME=LOW,HIGH" in fails("match", index, rows, "--range", "price=low", code=2)
    assert "no column 'price'" in fails("match", index, rows)


def written(path: Any, rows: list[dict[str, Any]]) -> Any:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    return write(path, pa.Table.from_pylist(rows))


@pytest.mark.parametrize("extension", ["csv", "parquet", "jsonl"])
def test_files_without_the_column_of_an_end(tmp_path: Any, extension: str) -> None:
    index = tmp_path / "index"
    cm.Matcher.build({1: "price = 5"}, SCHEMA).save(index)
    rows = written(tmp_path / f"rows.{extension}", [{"low": 4}, {"low": 7}])
    given = ("match", index, rows, "--range", "price=low,high")
    assert run(*given, "--missing-columns", "null").stdout == '"event","subscription"\n0,1\n'
    failed = invoke(*given)
    said = "no line has 'high', which is needed" if extension == "jsonl" else "no column 'high', which is needed: "
    assert failed.exit_code == 1 and said in failed.stderr
    assert "(--missing-columns null takes it to be NULL)" in failed.stderr
    if extension != "jsonl":  # it is known behind the last line
        assert failed.stdout == ""


def test_what_does_not_fit_is_said_before_anything_is_written(tmp_path: Any) -> None:
    index = tmp_path / "index"
    cm.Matcher.build({1: "price = 5"}, SCHEMA).save(index)
    for rows, said in [
        ({"x": {"low": 4}}, "no field 'x.high'"),
        ({"x": {"low": 4, "high": "5"}}, "column 'x.high' is string, the schema says int64"),
    ]:
        events = written(tmp_path / "rows.parquet", [rows])
        failed = invoke("match", index, events, "--range", "price=x.low,x.high")
        assert failed.exit_code == 1 and failed.stdout == "" and said in failed.stderr


def test_nothing_is_written_before_the_first_batch_is_good(tmp_path: Any) -> None:
    """Whatever is wrong in its rows, and from standard input, too."""
    index, rows = tmp_path / "index", tmp_path / "rows.csv"
    cm.Matcher.build({1: "price = 5"}, SCHEMA).save(index)
    rows.write_text("low,high\n3,2\n")
    for path, text in ((rows, None), ("-", rows.read_bytes())):
        failed = invoke("match", index, path, "--format", "csv", "--range", "price=low,high", input=text)
        assert failed.exit_code == 1 and failed.stdout == "" and "event 0: it is above" in failed.stderr
    rows.write_text("low,high\n")
    assert run("match", index, rows, "--range", "price=low,high").stdout == '"event","subscription"\n'


def test_checks_begin_anew_with_other_ranges() -> None:
    matcher = cm.Matcher.build({1: "dest LIKE '%a' AND price > 1"}, SCHEMA, index="scan", options=cm.Options(threads=1))
    rows = events(dest=["ba"], low=[1], high=[5], price=[3], a=["a"], b=["c"])
    assert lists(matcher.match_lists(rows, ranges=PRICE)) == [[1]]
    with pytest.raises(cm.EventError, match="'dest' cannot be a range"):
        matcher.match_lists(rows, ranges={"dest": ("a", "b")})


def test_files_whose_ranges_are_wrong_name_the_event(tmp_path: Any) -> None:
    index, rows = tmp_path / "index", tmp_path / "rows.csv"
    cm.Matcher.build({1: "price = 5"}, SCHEMA, options=cm.Options(batch_rows=2)).save(index)
    rows.write_text("low,high\n" + "1,2\n" * 5 + "3,2\n")
    assert "column 'low', event 5: it is above" in fails("match", index, rows, "--range", "price=low,high")


def test_the_best_matches_have_the_best_score_of_any_value() -> None:
    """What overlaps a range in several places scores by the best of them, for each event and k."""
    price, nights = cm.col("price"), cm.col("dest")
    either = ((price < 3).weight(1.0) & (nights == "LIS").weight(1.0)) | (price > 7).weight(1.5)
    wide = price.between(0, 100).weight(1.25)
    narrow = (price == 5).weight(9.0) & (price != 6).weight(-1.0)
    matcher = cm.Matcher.build([("either", either), ("wide", wide), ("narrow", narrow)], SCHEMA)
    rows = events(low=[1, 4, 4, 6, None], high=[9, 9, 6, 6, None], dest=["LIS", "LIS", None, None, None])
    best = matcher.match_topk(rows, 2, ranges=PRICE, keep="dest")
    assert list(zip(*best.select(["event", "subscription", "score"]).to_pydict().values(), strict=True)) == [
        (0, "narrow", 8.0), (0, "either", 2.0), (1, "narrow", 8.0), (1, "either", 1.5),
        (2, "narrow", 8.0), (2, "wide", 1.25), (3, "wide", 1.25),
    ]  # fmt: skip
    given = matcher.match_topk(rows, 1, "dot", {"price": 0.0}, ranges=PRICE)
    assert given["subscription"].to_pylist() == ["either", "either", "narrow", "wide"]
    with pytest.raises(cm.OptionError, match="unknown attribute 'prize'"):
        matcher.match_topk(rows, 1, ranges={"prize": ("low", "high")})
