"""Files of events: columns of folders as in Spark, columns of all files, and many files at once."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import colmatch as cm

source = pytest.importorskip("colmatch.spark.source", reason="pyspark is not installed", exc_type=ImportError)
from colmatch.spark.settings import SessionSettings  # noqa: E402

NEW_YORK = SessionSettings("America/New_York", True, False)
NONE = "__HIVE_DEFAULT_PARTITION__"


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def found(tmp_path: Path, rules: dict[int, str], schema: Any, keep: str, **options: str) -> pa.Table:
    cm.Matcher.build(rules, schema, options=cm.Options(missing_columns="null")).save(tmp_path / "alerts.cm")
    given = {"index": str(tmp_path / "alerts.cm"), "path": str(tmp_path / "events"), "keep": keep, **options}
    query = source.query_of(given, "", NEW_YORK)
    reader = source.MatchedReader(query, query.result)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return pa.Table.from_batches(batches, query.result)


@pytest.mark.parametrize(
    ("names", "type", "values"),
    [
        (["1.5", "2", NONE], pa.float64(), [1.5, 2.0, None]),
        (["3000000000", "4"], pa.int64(), [3_000_000_000, 4]),
        (["01", "2"], pa.int32(), [1, 2]),
        (["3000000000", "1.5"], pa.string(), ["3000000000", "1.5"]),
        (["NaN", "inf"], pa.string(), ["NaN", "inf"]),
        (["2026-13-01"], pa.string(), ["2026-13-01"]),
        (["2026-01-31", NONE], pa.date32(), [dt.date(2026, 1, 31), None]),
        (
            ["2026-01-31 10%3A00%3A00", "2026-01-31 11%3A00%3A00.5", "2026-02-01"],
            pa.timestamp("us", "UTC"),
            [dt.datetime(2026, 1, 31, 15), dt.datetime(2026, 1, 31, 16, 0, 0, 500_000), dt.datetime(2026, 2, 1, 5)],
        ),
        (["2026-01-31 10%3A00%3A00.25"], pa.string(), ["2026-01-31 10:00:00.25"]),
    ],
)
def test_folders_are_columns_as_in_spark(tmp_path: Path, names: list[str], type: Any, values: list[Any]) -> None:
    for i, name in enumerate(names):
        write(tmp_path / "events" / f"x={name}" / "1.parquet", a=[i])
    table = found(tmp_path, {1: "a >= 0"}, {"a": "int64"}, "a,x").sort_by("a")
    assert table.schema.field("x").type == type
    if pa.types.is_timestamp(type):
        values = [value.replace(tzinfo=dt.UTC) for value in values]
    assert table["x"].to_pylist() == values
    rule = {1: "x IS NOT NULL"}
    assert len(found(tmp_path, rule, {"x": type}, "x")) == sum(value is not None for value in values)


@pytest.mark.parametrize("name", ["30000000000000000000", "1e3"])
def test_folders_of_decimals_are_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "events" / f"x={name}" / "1.parquet", a=[1])
    with pytest.raises(cm.EventError, match=f"the folder x={name} has a value that Spark reads as a decimal"):
        found(tmp_path, {1: "a >= 0"}, {"a": "int64"}, "a")


def test_a_first_file_lacks_a_column(tmp_path: Path) -> None:
    write(tmp_path / "events" / "1.parquet", a=pa.array([1], pa.int32()))
    write(tmp_path / "events" / "2.parquet", a=pa.array([2], pa.int64()), z=[5])
    rules, schema = {1: "z = 5", 2: "z IS NULL"}, {"z": "int64"}
    assert found(tmp_path, rules, schema, "a,z").to_pylist() == [
        {"a": 1, "z": None, "subscription": 2},
        {"a": 2, "z": 5, "subscription": 1},
    ]
    write(tmp_path / "events" / "3.parquet", z=["five"])
    with pytest.raises(cm.EventError, match=r"3\.parquet.*(int64 vs string|string vs int64)"):
        found(tmp_path, rules, schema, "a")


def test_lines_of_a_later_file_have_more_columns(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    for name, line in (("1", '{"a": 1}'), ("2", '{"a": 2, "z": 5}')):
        (tmp_path / "events" / f"{name}.json").write_text(line + "\n")
    assert found(tmp_path, {1: "z = 5"}, {"z": "int64"}, "a", format="json")["a"].to_pylist() == [2]
    # Of such a file pyarrow reads NULL
    (tmp_path / "events" / "late.json").write_text('{"a": 3, "z": 5}')
    with pytest.raises(cm.EventError, match="late.json' is one line without a line break"):
        found(tmp_path, {1: "z = 5"}, {"z": "int64"}, "a", format="json")


def test_many_small_files_are_one_partition(tmp_path: Path) -> None:
    write(tmp_path / "events" / "0.parquet", a=[1])
    data = (tmp_path / "events" / "0.parquet").read_bytes()
    for i in range(1, 2_000):
        (tmp_path / "events" / f"{i}.parquet").write_bytes(data)
    assert len(found(tmp_path, {1: "a = 1"}, {"a": "int64"}, "a")) == 2_000
