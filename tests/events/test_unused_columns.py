"""Columns of types that expressions cannot use stand beside others, and hinder nothing."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from installed import needs

import colmatch as cm
from colmatch.cli.commands import cli

PLACES = pa.array([0, 1, 0], pa.int8())
SPARSE = pa.UnionArray.from_sparse(PLACES, [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
DENSE = pa.UnionArray.from_dense(PLACES, pa.array([0, 0, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a"])])
CODES = pa.array([0, 0, None], pa.int8())
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([1, 2]))

ODD: dict[str, Any] = {
    "sparse union": SPARSE,
    "dense union": DENSE,
    "struct of a union": pa.StructArray.from_arrays([SPARSE], ["u"]),
    "list of unions": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), DENSE),
    "interval": pa.array([pa.MonthDayNano([1, 2, 3]), None, None]),
    "duration": pa.array([1, 2, None], pa.duration("ns")),
    "map of lists": pa.array([[("a", [1])], None, []], pa.map_(pa.string(), pa.list_(pa.int64()))),
    "map by doubles": pa.array([[(1.5, 1)], None, []], pa.map_(pa.float64(), pa.int64())),
    "null": pa.nulls(3),
    "list of nulls": pa.array([[None], None, []], pa.list_(pa.null())),
    "list of lists": pa.array([[[1]], None, []], pa.list_(pa.list_(pa.int64()))),
    "struct without fields": pa.array([{}, None, {}], pa.struct([])),
    "uuid": pa.array([b"0" * 16, None, b"1" * 16], pa.uuid()),
    "json": pa.array(["1", None, "2"], pa.json_()),
    "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "x", "y"), pa.array([1, 0, None], pa.int64())),
    "tensor": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int64(), 2)).cast(pa.fixed_shape_tensor(pa.int64(), [2])),
    "runs of structs": pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array([{"a": 1}])),
    "struct of runs": pa.StructArray.from_arrays([RUNS], ["r"]),
    "bytes of no width": pa.array([b"", None, b""], pa.binary(0)),
    "dictionary of structs": pa.DictionaryArray.from_arrays(CODES, pa.array([{"a": 1}])),
    "dictionary of durations": pa.DictionaryArray.from_arrays(CODES, pa.array([1], pa.duration("s"))),
    "decimal256": pa.array([None] * 3, pa.decimal256(76, 2)),
}
RULES = {1: "a > 1", 2: "a + 1 > 2", 3: "s.a > 1", 4: "a = 0"}
FOUND = [[], [1, 2], [1, 2, 3]]


@pytest.fixture(params=[pytest.param(array, id=name.replace(" ", "-")) for name, array in ODD.items()])
def events(request: pytest.FixtureRequest) -> pa.Table:
    """Rows with the column beside others, and within a struct of which another field is used."""
    numbers = pa.array([1, 2, 3])
    beside = request.param
    together = pa.StructArray.from_arrays([pa.array([None, 1, 2]), beside], ["a", "odd"])
    return pa.table({"a": numbers, "odd": request.param, "s": together})


def lists(matcher: cm.Matcher, events: Any) -> Any:
    return matcher.match_lists(events).to_pylist()


def test_it_is_built_and_matched_in_every_way(events: pa.Table, tmp_path: Path) -> None:
    matcher = cm.Matcher.build(RULES, events.schema, options=cm.Options(batch_rows=5))
    twice = pa.concat_tables([events, events])
    assert lists(matcher, events) == FOUND and lists(matcher, twice.to_reader()) == FOUND + FOUND
    matcher.insert({5: "a = 4"})
    matcher.delete([5])
    assert lists(pickle.loads(pickle.dumps(matcher)), events.to_batches()[0]) == FOUND
    assert matcher.match_one({"a": 2, "odd": None}) == [1, 2]
    matcher.save(tmp_path / "saved")
    opened = cm.Matcher.open(tmp_path / "saved")
    assert opened.schema == matcher.schema and lists(opened, events) == FOUND
    pages = cm.index("pbtree", path=str(tmp_path / "pages"))
    with cm.Matcher.build(RULES, events.schema, pages) as paged:
        assert lists(paged, events) == FOUND
    with cm.Matcher.open(tmp_path / "pages") as paged:
        assert lists(paged, events) == FOUND


def test_it_is_in_a_sample_and_observed(events: pa.Table) -> None:
    watching = cm.Options(observe=256)
    matcher = cm.Matcher.build(RULES, events.schema, "propagation", sample=events, options=watching)
    many = pa.concat_tables([events] * 1000)
    for _ in range(4):
        assert matcher.exists(many).sum() == 2000
    matcher.compact()
    assert lists(matcher, events) == FOUND


def test_rules_that_use_it_say_that_they_cannot(events: pa.Table) -> None:
    found = events.schema.field("odd").type
    if pa.types.is_struct(found) or found in (
        pa.binary(0),
        pa.uuid(),
        pa.json_(),
    ):  # these can be used, or their fields
        return
    for rule in ("odd = 1", "odd + 1 > 2", "odd IN (1, 2)", "odd = 'a'"):
        if "decimal" in str(found) and "'a'" not in rule:
            continue
        with pytest.raises(cm.ExpressionError, match="'odd' is "):
            cm.Matcher.build({1: rule}, events.schema)


@pytest.mark.parametrize(
    ("type", "said"),
    [
        (pa.null(), "is null, .*: no value of it says what type it is: declare one in the schema"),
        (pa.duration("s"), r"is duration\[s\], .*: cast it to a number, such as seconds"),
        (pa.month_day_nano_interval(), "is month_day_nano_interval, .*: cast it to a number"),
        (pa.list_(pa.struct({"a": pa.int64()})), "is list<.*: give events its fields as separate columns"),
        (pa.opaque(pa.null(), "object", "pandas"), "is object of pandas, .*: cast it to a type of Arrow"),
        (pa.list_(pa.json_()), "is list<.*json.*: give events its fields as separate columns"),
    ],
    ids=str,
)
def test_rules_that_use_it_are_told_what_to_do(type: pa.DataType, said: str) -> None:
    schema = pa.schema([("odd", type)])
    with pytest.raises(cm.ExpressionError, match=f"column 'odd' {said}"):
        cm.Matcher.build({1: "odd = 5"}, schema)
    table = cm.PredicateTable(pa.table({"id": [1], "attribute": ["odd"], "op": ["="], "operands": [[5]]}))
    with pytest.raises(cm.ColmatchError, match=f"column 'odd' {said}"):
        cm.Matcher.build(table, schema)


def test_the_command_takes_files_with_it(events: pa.Table, tmp_path: Path) -> None:
    if "run_end" in str(events.schema.field("odd").type):  # Arrow reads no such structs from a file as they were
        alone = pa.StructArray.from_arrays([pa.array([None, 1, 2])], ["a"])
        events = events.set_column(2, "s", alone)
    (tmp_path / "rules.csv").write_text("id,expression\n" + "".join(f'{id},"{text}"\n' for id, text in RULES.items()))
    with pa.OSFile(str(tmp_path / "events.arrow"), "wb") as sink, pa.ipc.new_file(sink, events.schema) as writer:
        writer.write_table(events)
    given = [str(tmp_path / name) for name in ("rules.csv", "events.arrow", "index")]
    built = CliRunner().invoke(cli, ["build", given[0], "--like", given[1], "-o", given[2]])
    assert built.exit_code == 0, built.output
    matched = CliRunner().invoke(cli, ["match", given[2], given[1], "--out-format", "jsonl"])
    assert matched.exit_code == 0, matched.output
    assert matched.output.count("\n") == sum(map(len, FOUND))


@needs("pandas")
def test_a_data_frame_of_pandas_has_what_arrow_has_not() -> None:
    import pandas as pd

    odd = {"mixed": [1, "x", object()], "complex": [1j, 2j, 3j], "sparse": pd.arrays.SparseArray([0, 0, 1])}
    frame = pd.DataFrame({"a": [1, 2, 3], **odd})
    matcher = cm.Matcher.build({1: "a > 1"}, frame)
    assert lists(matcher, frame) == [[], [1], [1]]
    assert matcher.match_lists(frame.set_index("mixed")).to_pylist() == [[], [1], [1]]
    with pytest.raises(cm.ExpressionError, match="'mixed' is .*object.*pandas"):
        cm.Matcher.build({1: "mixed = 1"}, frame)


@needs("polars")
def test_a_data_frame_of_polars_has_what_arrow_has_not() -> None:
    import polars as pl

    frame = pl.DataFrame({"a": [1, 2, 3], "large": [1, 2, 3]}, schema_overrides={"large": pl.Int128})
    for declared in (frame, frame.schema, frame.lazy()):
        matcher = cm.Matcher.build({1: "a > 1"}, declared)
        assert lists(matcher, frame) == [[], [1], [1]]
    with pytest.raises(cm.ExpressionError, match="'large' is .*Int128.*polars"):
        cm.Matcher.build({1: "large = 1"}, frame)


@needs("pyspark")
def test_a_schema_of_spark_has_what_arrow_has_not() -> None:
    from pyspark.sql import types

    odd = [types.CalendarIntervalType(), types.YearMonthIntervalType()]
    fields = [types.StructField(f"odd{i}", type) for i, type in enumerate(odd)]
    declared = types.StructType([types.StructField("a", types.LongType()), *fields])
    matcher = cm.Matcher.build({1: "a > 1"}, declared)
    assert lists(matcher, pa.table({"a": [1, 2]})) == [[], [1]]
    with pytest.raises(cm.ExpressionError, match="'odd0' is .*interval.*Spark"):
        cm.Matcher.build({1: "odd0 = 1"}, declared)


def test_a_data_frame_of_spark_is_matched_beside_it(spark: Any) -> None:
    from colmatch.spark import match

    frame = spark.sql(
        "SELECT 2L AS a, make_interval(1) AS calendar, INTERVAL '1-2' YEAR TO MONTH AS months, "
        "map('a', array(1)) AS lists, INTERVAL '3' DAY AS days, NULL AS nothing"
    )
    matcher = cm.Matcher.build({1: "a > 1"}, frame)
    assert [row.subscription for row in match(frame, matcher).collect()] == [1]


@needs("duckdb")
def test_duckdb_hands_over_what_no_rule_uses() -> None:
    import duckdb

    kinds = ["UNION(i INT, s VARCHAR)", "INTERVAL", "BIT", "TIMETZ", "UUID", "MAP(INT, INT[])", "INT[3]"]
    some = ", ".join(f"NULL::{kind} AS c{i}" for i, kind in enumerate(kinds))
    events = duckdb.sql(f"SELECT 2::BIGINT AS a, {some}")
    assert lists(cm.Matcher.build({1: "a > 1"}, events), events) == [[1]]


def test_a_delta_of_time_as_python_has_it() -> None:
    matcher = cm.Matcher.build({1: "a > 1"}, {"a": "int64", "odd": pa.duration("us")})
    assert matcher.match_one({"a": 2, "odd": dt.timedelta(1)}) == [1]
