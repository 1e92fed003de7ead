"""Files of rows: every format there and back, and what happens when they are not what they seem."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import os
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from colmatch.cli.files import read_table, reading
from colmatch.cli.places import format_of
from colmatch.cli.writing import writing
from colmatch.errors import ColmatchError, SchemaError
from colmatch.given.declared import parse_schema

NOON = datetime.datetime(2013, 7, 4, 12, 0, 0, 250)
FLAT = pa.table(
    {
        "i": pa.array([1, None, -(2**63)], pa.int64()),
        "u": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "s": pa.array(['say "no"\\\n\té', None, ""]),
        "f": pa.array([0.1, None, 1e300]),
        "b": pa.array([True, None, False]),
        "d": pa.array([NOON.date(), None, NOON.date()], pa.date32()),
        "t": pa.array([NOON, None, NOON], pa.timestamp("us")),
        "z": pa.array([NOON, None, NOON], pa.timestamp("us", "America/New_York")),
        "n": pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(10, 2)),
        "k": pa.array(["x", "y", None]).dictionary_encode(),
    }
)
NESTED = pa.table(
    {
        "tags": pa.array([["a", None, 'q"'], None, []], pa.list_(pa.string())),
        "deep": pa.array([[[1], [], None], None, [[2, 3]]], pa.list_(pa.list_(pa.int64()))),
        "who": pa.array(
            [{"x": 1, "y": "é"}, None, {"x": None, "y": None}], pa.struct([("x", pa.int8()), ("y", pa.string())])
        ),
    }
)
MAPS = pa.table({"attrs": pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int64()))})


def whole(*tables: pa.Table) -> pa.Table:
    columns = {name: table[name] for table in tables for name in table.column_names}
    return pa.table(columns)


def write(path: Path, table: pa.Table, format: str | None = None) -> str:
    with writing(str(path), table.schema, format) as writer:
        for batch in table.to_batches(max_chunksize=2):
            writer.write_batch(batch)
    return str(path)


def read(path: str, **how: Any) -> pa.Table:
    with reading(path, **how) as rows:
        return pa.Table.from_batches(rows.batches, rows.schema)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("t.parquet", whole(FLAT, NESTED, MAPS)),
        ("t.arrow", whole(FLAT, NESTED, MAPS)),
        ("t.feather", whole(FLAT, NESTED, MAPS)),
        ("t.arrows", whole(FLAT, NESTED, MAPS)),
        ("t.csv", FLAT),
        ("t.csv.gz", FLAT),
        ("t.jsonl", whole(FLAT, NESTED)),
        ("t.jsonl", whole(FLAT, NESTED, MAPS)),
        ("t.ndjson.gz", whole(FLAT, NESTED, MAPS)),
        ("t.jsonl", MAPS),
    ],
)
@pytest.mark.parametrize("rows", [(0, 3), (1, 2), (0, 0)])
def test_there_and_back(tmp_path: Path, name: str, table: pa.Table, rows: tuple[int, int]) -> None:
    part = table.slice(*rows)
    path = write(tmp_path / name, part)
    got = read(path, schema=table.schema)
    got.validate(full=True)
    assert got.to_pylist() == part.to_pylist()
    assert got.schema.names == part.schema.names
    assert [field.type for field in got.schema] == [field.type for field in part.schema]
    assert os.listdir(tmp_path) == [name]


def test_json_lines_are_json(tmp_path: Path) -> None:
    odd = pa.table(
        {
            'a "name"': ["\x00\x1f\u2028\\", 'x"'],
            "f": [float("nan"), float("-inf")],
            "m": pa.array([[("k", 1)], None], MAPS["attrs"].type),
        }
    )
    path = write(tmp_path / "t.jsonl", odd)
    lines = [json.loads(line) for line in Path(path).read_text().split("\n")[:-1]]
    assert lines == [
        {'a "name"': "\x00\x1f\u2028\\", "f": None, "m": {"k": 1}},
        {'a "name"': 'x"', "f": None, "m": None},
    ]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.arrows", "t.csv", "t.jsonl"])
def test_only_the_columns_wanted(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, FLAT.select(["i", "s", "f"]))
    with reading(path, columns=["f", "i", "absent"], schema=FLAT.select(["i", "f"]).schema) as rows:
        assert rows.schema.names == ["i", "f"]
        assert next(rows.batches).schema.names == ["i", "f"]
    with reading(path, columns=["s", "i"], schema=FLAT.select(["i"]).schema) as rows:
        assert pa.Table.from_batches(rows.batches, rows.schema).to_pylist() == FLAT.select(["i", "s"]).to_pylist()
    with reading(path, columns=[], schema=FLAT.schema) as rows:
        assert {batch.num_columns for batch in rows.batches} == {0}
    with reading(path, columns=[], schema=FLAT.schema) as rows:
        assert sum(batch.num_rows for batch in rows.batches) == 3


def test_a_stream_under_the_name_of_a_file(tmp_path: Path) -> None:
    assert read(write(tmp_path / "t.arrow", FLAT, "arrows")).to_pylist() == FLAT.to_pylist()


def test_null_and_the_empty_string_of_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('\ufeffa,b\n,1\n"",NA\nNA,\n"two\nlines",3\n')
    schema = pa.schema({"a": pa.string(), "b": pa.int64()})
    got = read(str(path), schema=schema, nulls=["", "NA"])
    assert got.to_pylist() == [
        {"a": None, "b": 1},
        {"a": "", "b": None},
        {"a": None, "b": None},
        {"a": "two\nlines", "b": 3},
    ]
    with pytest.raises(ColmatchError, match=r"t\.csv: line 3, column 'b': invalid value 'NA' for int64"):
        read(str(path), schema=schema)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.parquet", b"PAR1 no", "t.parquet: "),
        ("t.arrow", b"ARROW1 no", "t.arrow: "),
        ("t.arrow", b"", "t.arrow: "),
        ("t.arrows", b"\xff\xff\xff\xffno", "t.arrows: "),
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", b"a,a\n1,2\n", "names 'a' twice"),
        ("t.csv", b"a,b\n1\n", "t.csv: "),
        ("t.csv.gz", b"a,b\n1,2\n", "t.csv.gz: "),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "t.csv.gz: "),
        ("t.jsonl", b"{no", "t.jsonl: "),
        ("t.jsonl", b'{"m": 3}\n', "line 1: column 'm' is a map"),
        ("t.jsonl", b'{"m": {"a": 1}}\n{"m": {"a": "x"}}\n', "line 2: column 'm': Could not convert 'x'"),
        ("t.jsonl", b'{"m": {}}\n[]\n', "t.jsonl: "),
        ("t.jsonl", b'{"m": {"k": "v"}}\n', "t.jsonl: "),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    schema = pa.schema({"a": pa.int64(), "m": MAPS["attrs"].type}) if b"m" in content else None
    with pytest.raises(ColmatchError) as caught:
        read(str(path), schema=schema)
    assert says in str(caught.value)


def test_an_empty_file_of_json_lines_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").touch()
    assert read(str(tmp_path / "t.jsonl"), schema=FLAT.schema).num_rows == 0


@pytest.mark.parametrize(("name", "table"), [("t.csv", NESTED), ("t.jsonl", pa.table({"x": pa.array([[b"a"]])}))])
def test_what_a_format_cannot_carry(tmp_path: Path, name: str, table: pa.Table) -> None:
    with pytest.raises(ColmatchError, match="cannot carry: use .*parquet"):
        write(tmp_path / name, table)
    assert os.listdir(tmp_path) == []


def test_csv_is_not_asked_for_lists(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("tags\nx\n")
    with pytest.raises(ColmatchError, match="'tags' is list<.*CSV cannot carry"):
        read(str(tmp_path / "t.csv"), schema=NESTED.schema)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.arrows", "t.csv", "t.jsonl", "t.jsonl.gz"])
def test_an_output_appears_only_whole(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    class Stop(Exception):
        pass

    with pytest.raises(Stop), writing(str(path), FLAT.schema) as writer:
        writer.write_batch(FLAT.to_batches()[0])
        assert path.read_bytes() == b"old"
        raise Stop
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "t.csv").symlink_to(tmp_path / "folder" / "real.csv")
    write(tmp_path / "t.csv", FLAT)
    assert (tmp_path / "t.csv").is_symlink()
    assert os.listdir(tmp_path / "folder") == ["real.csv"]


def test_parquet_gets_row_groups_of_a_useful_size(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write(tmp_path / "t.parquet", pa.table({"i": range(1000)}))
    with pq.ParquetFile(tmp_path / "t.parquet") as file:
        assert file.metadata.num_row_groups == 1


@pytest.mark.parametrize("format", ["arrows", "csv", "jsonl"])
def test_standard_streams(monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    table = FLAT.drop_columns(["k"])
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    with writing("-", table.schema, format) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.getvalue())))
    assert read("-", format=format, schema=table.schema).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("path", "format", "says"),
    [
        ("t.xlsx", None, "extension '.xlsx' names no format"),
        ("t", None, "names no format"),
        ("-", None, "say which"),
        ("-", "parquet", "cannot go through a standard stream"),
        ("t.csv", "excel", "no format is called 'excel'"),
    ],
)
def test_formats_that_are_none(path: str, format: str | None, says: str) -> None:
    with pytest.raises(ColmatchError, match=says):
        format_of(path, format)


def test_read_table_infers_from_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,expression\n" + "1,a > 1\n" * 300_000 + 'x,"a\n> 1"\n')
    table = read_table(str(path), types={"expression": pa.string()})
    assert table.schema.field("id").type == pa.string()
    assert table["expression"][-1].as_py() == "a\n> 1"
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": 1, "expression": "a"}\n')
    assert read_table(str(path), types={"expression": pa.string()}).to_pylist() == [{"id": 1, "expression": "a"}]


def test_a_schema_as_text() -> None:
    text = (
        "i:int64, f: double, g:float,s:string,d:date32[day],t: timestamp[us, tz=Europe/Paris], u: timestamp[ns], n: decimal128(10, 2),"
        "l:list<string>, m: map<string, list<int64>>, w: struct<x: int8, y: struct<z: bool>>,"
        "k: dictionary<values=string, indices=int32, ordered=0>"
    )
    schema = parse_schema(text)
    assert schema == pa.schema(
        {
            "i": pa.int64(),
            "f": pa.float64(),
            "g": pa.float32(),
            "s": pa.string(),
            "d": pa.date32(),
            "t": pa.timestamp("us", "Europe/Paris"),
            "u": pa.timestamp("ns"),
            "n": pa.decimal128(10, 2),
            "l": pa.list_(pa.string()),
            "m": pa.map_(pa.string(), pa.list_(pa.int64())),
            "w": pa.struct({"x": pa.int8(), "y": pa.struct({"z": pa.bool_()})}),
            "k": pa.dictionary(pa.int32(), pa.string()),
        }
    )
    assert parse_schema("\n".join(f"{field.name}: {field.type}  # {field.name}" for field in schema)) == schema
    assert parse_schema(json.dumps({field.name: str(field.type) for field in schema})) == schema


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no column"),
        ("age", "'age' should be 'name: type'"),
        ("age: int65", "column 'age': no type is called 'int65'"),
        ("age: decimal(x)", "column 'age': no type"),
        ("age: list<int65>", "column 'age': no type"),
        ("age: map<string>", "column 'age': no type"),
        ("age: timestamp[eons]", "column 'age': no type"),
        ('{"age"', "not valid JSON"),
    ],
)
def test_texts_that_are_no_schema(text: str, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        parse_schema(text)


def test_csv_types_do_not_hang_on_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("a,b\n,x\n1,\n2,y\n")
    with reading(str(path)) as rows:
        assert rows.schema == pa.schema([("a", pa.int64()), ("b", pa.string())])
        assert [row for batch in rows.batches for row in batch.to_pylist()] == [
            {"a": None, "b": "x"}, {"a": 1, "b": None}, {"a": 2, "b": "y"}
        ]  # fmt: skip


@pytest.mark.parametrize("format", ["parquet", "arrow", "arrows", "csv", "jsonl"])
def test_damaged_files_are_refused_by_name(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"bad.{format}"
    table = pa.table({"id": [1, 2], "expression": ["a = 1", "s = 'x'"]})
    with writing(str(path), table.schema, format) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    good, rng = path.read_bytes(), Random(1)
    refused = 0
    for _ in range(200):
        data = bytearray(good)
        for _ in range(3):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        for read in (lambda: list(_batches(str(path))), lambda: read_table(str(path))):
            try:
                read()
            except ColmatchError as error:
                refused += 1
                said = str(error)
                assert said.startswith(str(path)), said
    assert refused


def _batches(path: str) -> Iterator[pa.RecordBatch]:
    with reading(path) as rows:
        yield from rows.batches
