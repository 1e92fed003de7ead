"""Times of day as attributes: DuckDB says what is right."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from installed import needs
from shell import run

import colmatch as cm

TYPES = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
TIMES = [dt.time(0), dt.time(9, 59, 59), dt.time(10, 30), dt.time(10, 30, 1), dt.time(23, 59, 59)]
LITERALS = ["00:00:00", "10:30:00", "10:30:00.5", "10:29:59.999999", "10:30", "23:59:59", "23:59:59.000001"]


@needs("duckdb")
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_duckdb_agrees(unit: str) -> None:
    import duckdb

    rng = Random(unit)
    rules = [f"t {op} '{text}'" for op in ("=", "<>", "<", "<=", ">", ">=") for text in LITERALS]
    for _ in range(20):
        low, high = sorted(rng.sample(LITERALS, 2))
        rules += [f"t BETWEEN '{low}' AND '{high}'", f"t NOT IN ('{low}', '{high}')"]
    type = next(type for type in TYPES if type.unit == unit)
    events = pa.table({"t": pa.array([*TIMES, None], type)})
    told = duckdb.sql(f"SELECT {', '.join(f'({rule})' for rule in rules)} FROM events").fetchall()
    matcher = cm.Matcher.build(list(enumerate(rules)), events.schema)
    expected = [[i for i, truth in enumerate(row) if truth] for row in told]
    assert matcher.match_lists(events).to_pylist() == expected
    assert [matcher.match_one({"t": time}) for time in (*TIMES, None)] == expected
    for other in TYPES:
        assert matcher.match_lists(events.cast(pa.schema({"t": other}))).to_pylist() == expected


def found(rule: str, type: Any, *times: Any) -> list[int]:
    column = pa.array(times, type)
    counts: list[int] = cm.Matcher.build({1: rule}, {"t": type}).count(pa.table({"t": column})).tolist()
    return counts


def test_what_is_no_time_of_day_is_refused() -> None:
    for text, said in (
        ("'25:00:00'", "is not a time of day"),
        ("'noon'", "write it as '10:30:00'"),
        ("5", "write a time of day"),
    ):
        with pytest.raises(cm.ExpressionError, match=said):
            cm.Matcher.build({1: f"t = {text}"}, {"t": "time64[us]"})
    with pytest.raises(cm.ExpressionError, match="Spark has no such type to compute with"):
        cm.Matcher.build({1: "t < u"}, {"t": "time64[us]", "u": "time64[us]"})
    with pytest.raises(cm.EventError, match="column 't', event 1: .* is time64"):
        times = pa.array([dt.time(1), dt.time(1, 2, 3, 4)], pa.time64("us"))
        cm.Matcher.build({1: "t IS NULL"}, {"t": "time32[s]"}).count(pa.table({"t": times}))


def test_csv_has_times(tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text("id,expression\n1,t < '10:30:00'\n")
    (tmp_path / "events.csv").write_text("t\n09:00:00\n11:00:00.5\n")
    run("build", tmp_path / "rules.csv", "--schema", "t time", "-o", tmp_path / "index")
    found = run("match", tmp_path / "index", tmp_path / "events.csv", "--count").stdout
    assert [int(line.split(",")[-1]) for line in found.split()[1:]] == [1, 0]


@pytest.mark.usefixtures("kept_predicates")
def test_lists_explanations_and_ranges() -> None:
    assert found("array_contains(t, '10:30:00')", pa.list_(pa.time32("s")), [dt.time(10, 30)], [], None) == [1, 0, 0]
    matcher = cm.Matcher.build({1: "t > '10:30:00'"}, {"t": "time64[us]"})
    assert "t >= '10:30:00.000001'   [10:31:00]" in str(matcher.explain({"t": dt.time(10, 31)}, 1))
    ends = {"low": [dt.time(10), None], "high": [dt.time(11), dt.time(10)]}
    ranges = pa.table(ends, schema=pa.schema({"low": pa.time64("us"), "high": pa.time64("us")}))
    assert matcher.match_lists(ranges, ranges={"t": ("low", "high")}).to_pylist() == [[1], []]
    assert cm.Matcher.build({1: "t < '10:30'"}, "t TIME").match_one({"t": dt.time(9)}) == [1]
