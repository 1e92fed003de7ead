"""Sources of events: cut, gathered, lazy; from every library that offers the Arrow protocols."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from cut_off import cut_off
from installed import needs
from reading import STRING, entries, literals, value

import colmatch as cm
from colmatch.errors import EventError
from colmatch.events.gather import batches
from colmatch.events.reader import Reader
from colmatch.given.schema import INT, Attribute, Attributes, Role


def sizes(events: object, rows: int, columns: list[str] | None = None) -> list[int]:
    return [batch.num_rows for batch in batches(events, rows, columns)]


def test_cutting_and_gathering() -> None:
    table = pa.table({"x": pa.chunked_array([[1, 2], [], [3], [4, 5, 6, 7, 8, 9, 10]])})
    assert sizes(table, 4) == [4, 4, 2]
    assert sizes(table, 100) == [10]
    assert sizes(table, 1) == [1] * 10
    assert [v for batch in batches(table, 3) for v in batch["x"].to_pylist()] == list(range(1, 11))
    assert sizes(table.slice(0, 0), 4) == []
    assert sizes(table.select([]), 4) == [4, 4, 2]
    batch = pa.record_batch({"x": list(range(10))})
    cut = list(batches(batch, 4))
    assert [b["x"].buffers()[1].address for b in cut] == [batch["x"].buffers()[1].address] * 3


def test_dictionaries_are_gathered() -> None:
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    pieces = list(batches(pa.table({"x": pa.chunked_array(chunks)}), 10))
    assert [v for piece in pieces for v in piece["x"].to_pylist()] == ["a", "b", "c", "a"]


def test_columns_of_a_source() -> None:
    table = pa.table({"x": [1], "y": [2], "Z": [3], **{f"other{i}": [i] for i in range(4)}})
    wanted = ["z", "x"]
    assert [b.schema.names for b in batches(table, 5, wanted)] == [["x", "Z"]]
    # leaving out one is no gain
    assert [b.schema.names for b in batches(table.select([0, 1, 2]), 5, wanted)] == [["x", "y", "Z"]]
    # copied ones
    assert [b.schema.names for b in batches(pa.concat_tables([table, table]).select([0, 1, 2]), 5, wanted)] == [
        ["x", "Z"]
    ]
    assert [b.schema.names for b in batches(table, 5, ["y", "x"])] == [["x", "y"]]
    # an error can then say what was meant
    assert [b.num_columns for b in batches(table, 5, ["y", "x", "missing"])] == [7]
    assert [b.num_rows for b in batches(table, 5, [])] == [1]


def test_what_fits_is_handed_on_as_it_is() -> None:
    batch = pa.record_batch({"x": [1, 2, 3], "y": [1, 2, 3]})
    for rows in (3, 4):
        assert next(batches(batch, rows, ["y", "x"])) is batch


def test_sources_of_one_schema_after_another() -> None:
    """What was found out about a schema is not taken for true of a like one."""
    other = {f"other{i}": pa.array([0]) for i in range(9)}
    reader = Reader(Attributes([value("x"), value("y")]), literals([[], []]))
    for _ in range(2):
        for names, expected in (
            (["x", "y"], [[(0, 5)], [(0, 6)]]),
            (["y", "x"], [[(0, 6)], [(0, 5)]]),
            (["x", "z"], [[(0, 5)], []]),
        ):
            for before, after in (({}, {}), ({}, other), (other, {})):
                table = pa.table({**before, **dict(zip(names, [[5], [6]], strict=True)), **after})
                for events in (table, table.to_batches()[0]):
                    (batch,) = batches(events, 9, reader.columns)
                    assert not set(batch.schema.names) & set(other) or "z" in names
                    assert entries(reader.read(batch)) == expected
        for more in ({}, other):
            (batch,) = batches(pa.table({"x": ["5"], "y": [6], **more}), 9, reader.columns)
            with pytest.raises(EventError, match="column 'x' is string, the schema says"):
                reader.read(batch)


def test_sources_are_lazy_and_their_errors_come_through() -> None:
    taken = []
    schema = pa.schema({"x": pa.int64()})

    def source() -> Iterator[pa.RecordBatch]:
        for i in range(5):
            taken.append(i)
            if i == 3:
                raise KeyError("the source's own")
            yield pa.record_batch({"x": [i, i]}, schema=schema)

    events = batches(pa.RecordBatchReader.from_batches(schema, source()), 2)
    assert taken == []
    assert next(events).to_pydict() == {"x": [0, 0]}
    assert len(taken) <= 2
    with pytest.raises(KeyError, match="the source's own"):
        list(events)


class Offers:
    """Offers one of the two protocols and nothing else."""

    def __init__(self, kind: str, data: Any) -> None:
        setattr(self, f"__arrow_c_{kind}__", getattr(data, f"__arrow_c_{kind}__"))


def test_protocols() -> None:
    table = pa.table({"x": [1, 2], "y": ["a", "b"]})
    rows = table.to_struct_array()
    nulls = pa.array([{"x": 1}, None, {"x": 3}])
    for events in (
        table,
        table.to_batches()[0],
        Offers("stream", table),
        Offers("array", table.to_batches()[0]),
        table.to_reader(),
    ):
        assert pa.Table.from_batches(batches(events, 10)).equals(table)
    for events in (rows, rows.chunk(0), Offers("stream", rows), Offers("array", rows.chunk(0))):
        assert pa.Table.from_batches(batches(events, 10)).to_pylist() == table.to_pylist()
    for events in (nulls, pa.chunked_array([nulls]), Offers("array", nulls)):
        assert [b.to_pydict() for b in batches(events, 10)] == [{"x": [1, None, 3]}]


@pytest.mark.parametrize("events", [{"x": [1]}, [1, 2], "events.parquet", None, 7])
def test_what_is_not_events(events: object) -> None:
    with pytest.raises(EventError, match=f"events cannot be read from {type(events).__name__}: "):
        batches(events, 10)


@pytest.mark.parametrize("events", [pa.array([1, 2]), pa.chunked_array([[1]])])
def test_columns_without_names_are_not_events(events: object) -> None:
    with pytest.raises(EventError, match="put it into a table"):
        batches(events, 10)


@needs("duckdb", "pandas", "polars")
def test_other_libraries() -> None:
    import duckdb
    import pandas as pd
    import polars as pl

    columns = {"n": [1, None, 3], "s": ["a", "b", None], "c": ["x", "y", "x"]}
    frame = pl.DataFrame(columns).with_columns(pl.col("c").cast(pl.Categorical), t=pl.Series([[1, 2], None, []]))
    attributes = [value("n"), value("s", STRING), value("c", STRING), Attribute(("t",), Role.ELEMENT, INT)]
    known = [[], [b"b"], [b"x"], []]
    expected = [[(0, 1), (2, 3)], [(0, 0), (1, 1)], [(0, 1), (1, 2), (2, 1)], [(0, 1), (0, 2)]]
    reader = Reader(Attributes(attributes), literals(known))
    (batch,) = batches(frame, 10)
    assert entries(reader.read(batch)) == expected
    (batch,) = batches(frame.to_struct("rows"), 10)
    assert entries(reader.read(batch)) == expected
    relation = duckdb.sql(
        "SELECT * FROM (VALUES (1, 'a', 'x', [1, 2]), (NULL, 'b', 'y', NULL), (3, NULL, 'x', [])) AS v(n, s, c, t)"
    )
    (batch,) = batches(relation, 10)
    assert entries(reader.read(batch)) == expected
    pandas = pd.DataFrame({"n": pd.array([1, None, 3], "Int64"), "s": columns["s"], "c": pd.Categorical(columns["c"])})
    (batch,) = batches(pandas, 10)
    assert entries(reader.read(batch))[:3] == expected[:3]


def test_batches_feed_the_reader() -> None:
    table = pa.table(
        {"x": pa.chunked_array([range(i, i + 7) for i in range(0, 70, 7)]), "s": pa.array([str(i) for i in range(70)])}
    )
    reader = Reader(Attributes([value("x"), value("s", STRING)]), literals([[], [b"5"]]))
    seen = [k for batch in batches(table, 16, reader.columns) for _, k in entries(reader.read(batch))[0]]
    assert seen == list(range(70))
    assert pc.sum(table["x"]).as_py() == sum(seen)


def test_datasets_and_scanners(tmp_path: Path) -> None:
    """Only the needed columns of files are read, and partitions of folders are columns."""
    table = pa.table({"a": [1, 2, 3, 4], "b": ["x", "y", "x", "y"], "unused": [0.5] * 4, "day": [1, 1, 2, 2]})
    ds.write_dataset(table, tmp_path, format="parquet", partitioning=["day"], partitioning_flavor="hive")
    files = ds.dataset(tmp_path, partitioning="hive")
    matcher = cm.Matcher.build({1: "a > 1 AND B = 'x'", 2: "day = 2"}, files)
    found = sorted(map(tuple, matcher.match_lists(files).to_pylist()))
    assert found == [(), (), (1, 2), (2,)]
    assert sorted(map(tuple, matcher.match_lists(files.scanner(columns=["a", "b", "day"])).to_pylist())) == found
    read: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "colmatch.events.gather._gather",
            lambda source, *_: read.extend(batch.schema.names for batch in source) or iter(()),
        )
        matcher.count(files)
    assert sorted(read[0]) == ["a", "b", "day"]
    with pytest.raises(cm.EventError, match="no column 'day'.*the batch has 'a', 'b', 'unused'"):
        matcher.match(ds.dataset(table.drop_columns("day")))
    assert matcher.count(ds.dataset(table.slice(0, 0))).tolist() == []
    assert cm.Matcher.build({}, files).count(files).tolist() == [0] * 4


def test_results_are_read_in_batches() -> None:
    matcher = cm.Matcher.build({1: "a > 1", 2: "a > 2"}, {"a": "int64"})
    events = pa.table({"a": [1, 2, 3]})
    reader = matcher.match_batches(events)
    assert isinstance(reader, pa.RecordBatchReader) and reader.read_all() == matcher.match(events)
    best = matcher.match_topk_batches(events, 1)
    assert best.schema == matcher.match_topk(events, 1).schema and len(best.read_all()) == 2

    def broken() -> Any:
        yield events.to_batches()[0]
        raise OSError("the disk is gone")

    failing = matcher.match_batches(pa.RecordBatchReader.from_batches(events.schema, broken()))
    with pytest.raises(OSError, match="the disk is gone"):
        failing.read_all()


@needs("duckdb")
def test_results_are_read_by_others() -> None:
    import duckdb

    matcher = cm.Matcher.build({1: "a > 1", 2: "a > 2"}, {"a": "int64"})
    fired = matcher.match_batches(pa.table({"a": [1, 2, 3]}))
    counted = duckdb.connect().execute("SELECT subscription, count(*) FROM fired GROUP BY 1 ORDER BY 1").fetchall()
    assert fired is not None and counted == [(1, 2), (2, 1)]


def test_structs_that_are_cut_off_are_an_error() -> None:
    """Up to 1.42, polars exports slices of structs with NULLs so."""
    made = {"columns": property(lambda _: ["user"]), "__len__": lambda _: 5, "__getitem__": lambda self, _: self}
    batch = cut_off("user", pa.array(range(10)), 5)
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    made["__arrow_c_stream__"] = lambda _, schema=None: reader.__arrow_c_stream__()
    frame = type("DataFrame", (), made | {"__module__": "polars.dataframe"})()
    matcher = cm.Matcher.build({1: "user.x >= 0"}, {"user": "struct<x: int64>"})
    with pytest.raises(EventError, match="no valid Arrow data, ask for a later version of the library"):
        matcher.match(frame)
