"""``colmatch bench``, and the rivals that the benchmarks hold colmatch against: all find what it
finds.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from installed import needs
from shell import EVENTS, SUBS, fails, run, subscriptions, write
from workload import NAMES, Workload, named

import colmatch as cm
from colmatch.bench.figures import Line, default_sizes, duration, prefix, table
from colmatch.errors import ColmatchError

BENCHMARKS = Path(__file__).parents[2] / "asv_benchmarks"
needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason='matplotlib is not installed: pip install "colmatch[plot]"'
)


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The rivals, imported as asv imports them."""
    if not BENCHMARKS.is_dir():
        pytest.skip("asv_benchmarks/ is not beside the tests")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    from benchmarks import rivals

    return rivals


# Rivals


WANTED = {"duckdb-access": "duckdb", "duckdb-counting": "duckdb", "duckdb-queries": "duckdb", "polars-access": "polars"}
COLUMNS = ["dense", "dense-planted", "dense-equal", "pstree-dense"]
TABLES = ["prototype", "numpy", "pyarrow", "duckdb-access", "duckdb-counting", "polars-access"]
TEXTS = ["pyarrow", "duckdb-queries", "roofline"]
ABLE = [
    *((rival, name) for name in COLUMNS for rival in ("prototype", "numpy", "pyarrow")),
    *(
        (rival, name)
        for name in NAMES
        if name != "ads"
        for rival in ("duckdb-access", "duckdb-counting", "polars-access")
    ),
    *((rival, name) for name in ("uniform", "operators") for rival in TABLES),
    *((rival, "bestar") for rival in ("numpy", "pyarrow")),
    *(("roofline", name) for name in NAMES),
    *((rival, "texts") for rival in TEXTS),
]


def a_workload(name: str) -> Any:
    from benchmarks import workloads

    if name == "uniform":
        return workloads.uniform(500, 130)
    if name == "operators":
        shares = {"between": 1, "<=": 1, ">=": 1, "<": 1, ">": 1}
        made = Workload("operators", 300, 8, 6, (1, 3), None, (4, 4), 0.2, shares)
        return workloads.Workload("operators", made.predicates(), made.schema(), made.events(130))
    if name == "texts":
        events = pa.table({"origin": ["JFK", "LGA", None], "distance": [900.0, 20.0, 5.0]})
        texts = [(7, "origin = 'JFK'"), (8, "distance < 10"), (9, "origin IN ('JFK', 'LGA') AND distance > 30")]
        return workloads.Workload("texts", texts, events.schema, events)
    return workloads.shape(name, 400, 130)


@pytest.mark.parametrize(
    ("rival", "name"),
    [pytest.param(*pair, marks=needs(WANTED[pair[0]]).marks if pair[0] in WANTED else ()) for pair in ABLE],
)
def test_a_rival_finds_what_colmatch_finds(benchmarks: Any, rival: str, name: str) -> None:
    workload = a_workload(name)
    try:
        prepared = benchmarks.RIVALS[rival](workload)
    except cm.errors.DependencyError as error:
        pytest.skip(str(error))
    matcher = benchmarks.matcher(workload)
    whole = workload.events
    for events in (whole, whole.slice(1, 70), whole.slice(2, 1)):
        found = prepared(benchmarks.Events(events))()
        expected = matcher.match(events)
        truth = benchmarks.Pairs(expected["event"].to_numpy(), expected["subscription"].to_numpy())
        assert benchmarks.ordered(found).tolist() == benchmarks.ordered(truth).tolist()
    assert len(matcher.match(whole)) > 0


def test_every_rival_is_tested_on_something(benchmarks: Any) -> None:
    assert {rival for rival, _ in ABLE} == set(benchmarks.RIVALS)


@pytest.mark.parametrize(
    ("rival", "name"),
    [("prototype", "querylog"), ("prototype", "bestar"), ("numpy", "ads"), ("duckdb-access", "texts")],
)
def test_what_a_rival_cannot_do_it_says(benchmarks: Any, rival: str, name: str) -> None:
    with pytest.raises((NotImplementedError, ImportError)):
        benchmarks.RIVALS[rival](a_workload(name))


def test_the_prototype_grows_its_results_and_spans_blocks(benchmarks: Any) -> None:
    from benchmarks import prototype

    few = np.random.default_rng(5).integers(-1, 4, (600, 3))
    # 0: a1 from 1 to 2; 1: a0 = 3 and a2 = 0; 2: a2, whatever it is
    first, attr, lo, hi = (np.array(column) for column in ([0, 1, 3, 4], [1, 0, 2, 2], [1, 3, 0, 0], [2, 3, 0, 3]))
    find = prototype.matcher(prototype.build(first, attr, lo, hi, 3, 4), 3, 4)
    for events in (few, np.tile(few, (90, 1)), few, few[:65], few[:0]):  # nothing of the last run is left
        row, sub = find(events)
        truth = np.stack(
            [np.isin(events[:, 1], (1, 2)), (events[:, 0] == 3) & (events[:, 2] == 0), events[:, 2] >= 0], axis=1
        )
        assert sorted(zip(row.tolist(), sub.tolist())) == list(zip(*(part.tolist() for part in truth.nonzero())))


def test_contest_finds_a_rival_that_errs(benchmarks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = a_workload("dense")
    names = [*cm.index_kinds(), "prototype"]
    assert list(benchmarks.contest(workload, names)) == names
    honest = benchmarks.RIVALS["prototype"]
    wrong = lambda workload: lambda events: lambda: benchmarks.Pairs(*(part[1:] for part in honest(workload)(events)()))  # noqa: E731
    monkeypatch.setitem(benchmarks.RIVALS, "prototype", wrong)
    with pytest.raises(AssertionError, match="prototype finds"):
        benchmarks.contest(workload, names)


def test_figures_of_every_system(benchmarks: Any) -> None:
    from benchmarks.figures import figures, one_event, systems

    workload = a_workload("dense")
    names = [*cm.index_kinds(), "prototype", "roofline"]
    found = figures(workload, 400, names, (1, 100))
    assert list(found) == names
    for name, line in found.items():
        assert line[1] > 0 and line[100] > 0 and line["build"] > 0
        assert (name in cm.index_kinds()) == ("bytes" in line) == ("matches" in line)
    made = systems(workload, ["auto", "prototype", "pyarrow"], 50_000)
    assert [system.matcher is None for system in made] == [False, True]  # 50,000 are too many for the loop of filters
    assert len(one_event(made, workload.events.slice(0, 5))) == 1  # a rival has no single events


# The command


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    workload = named("dense", subscriptions=120)
    return write(tmp_path / "s.parquet", workload.predicates()), write(tmp_path / "e.parquet", workload.events(100))


def cells(output: str) -> list[list[str]]:
    return [re.split(r"  +", line.strip()) for line in output.splitlines()]


def test_bench_prints_a_line_for_each_kind_size_and_batch(files: tuple[str, str]) -> None:
    result = run("bench", *files, "--batch", "1,50,100", "--sizes", "40,120", "--repeat", 2)
    head, *lines = cells(result.stdout)
    assert head[:3] == ["index", "subscriptions", "batch"]
    assert [line[:3] for line in lines] == [
        [kind, n, b] for n in ("40", "120") for b in ("1", "50", "100") for kind in cm.index_kinds()
    ]
    workload = named("dense", subscriptions=120)
    hits = cm.Matcher.build(workload.predicate_table(), workload.schema()).count(workload.events(100))
    for line in lines[-3 * len(cm.index_kinds()) :]:
        of = hits[: max(int(line[2]), 64)]  # a batch of less says too little: some are measured
        assert float(line[7]) == pytest.approx(of.mean(), rel=1e-3)
    for line in lines:
        assert len(line) == 9 and all(re.fullmatch(r"[0-9.e+]+ (s|ms|us|ns)", line[i]) for i in (3, 5, 8))
        assert float(line[4].replace(",", "")) > 10


def test_bench_reads_texts_and_csv(tmp_path: Path) -> None:
    subs = subscriptions(tmp_path / "s.csv", SUBS)
    events = write(tmp_path / "e.csv", EVENTS.drop_columns(["tags"]))
    result = run(
        "bench", subs, events, "--index", "auto", "--schema", "age:int64, city:string", "--option", "batch_rows=16"
    )
    assert [line[0] for line in cells(result.stdout)[1:]] == [
        f"auto ({cm.Matcher.build(SUBS, {'age': 'int64', 'city': 'string'}).kind})"
    ] * 2
    assert "gives 4 events, which is the largest batch" in result.stderr
    assert [line[7] for line in cells(result.stdout)[1:]] == ["1.25", "1.25"]


def test_bench_gives_settings_to_the_kinds_that_have_them(files: tuple[str, str]) -> None:
    built: list[str] = []
    real = cm.Matcher.build

    def build(*args: Any, **given: Any) -> cm.Matcher:
        built.append(repr(given["index"]))
        return real(*args, **given)

    with patch.object(cm.Matcher, "build", build):
        command = ["bench", *files, "--index", "scan,opindex", "--batch", "10", "--repeat", "1"]
        run(*command, "--set", "signatures=false", "--set", "dnf_budget=2")
        wanted = {"index('scan', dnf_budget=2)", "index('opindex', dnf_budget=2, signatures=False)"}
        assert set(built) == wanted
        said = " ".join(fails(*command, "--set", "enumerate=raw", code=2).split())
    assert "'enumerate' is a setting of 'kindex': name that kind" in said


def test_bench_infers_types_from_more_than_a_row(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("a,b\n,x\n7,\n8,y\n")
    (tmp_path / "e.jsonl").write_text('{"b": "x"}\n{"a": 7}\n{"a": 8, "b": "y"}\n')
    subs = subscriptions(tmp_path / "s.csv", {1: "a > 6 AND b IS NULL", 2: "b = 'x'"})
    for events in ("e.csv", "e.jsonl"):
        lines = cells(run("bench", subs, tmp_path / events, "--index", "auto", "--batch", 3, "--repeat", 1).stdout)
        assert lines[1][7] == "0.6667"


@needs_matplotlib
@pytest.mark.parametrize(("extension", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_bench_draws(files: tuple[str, str], tmp_path: Path, extension: str, start: bytes) -> None:
    picture = tmp_path / f"p.{extension}"
    result = run("bench", *files, "--batch", "10,100", "--repeat", 1, "--plot", picture)
    assert [line[1] for line in cells(result.stdout)[1 :: 2 * len(cm.index_kinds())]] == ["30", "60", "120"]
    assert picture.read_bytes().startswith(start)
    if extension == "svg":
        drawn = picture.read_text()
        assert all(f"<!-- {kind}, {batch} at a time -->" in drawn for kind in cm.index_kinds() for batch in (10, 100))


def test_bench_without_matplotlib(files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert 'pip install "colmatch[plot]"' in fails("bench", *files, "--plot", tmp_path / "p.png")
    run("bench", *files, "--repeat", 1, "--batch", 10)


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["--index", "auto,nothing"], "nothing", 1),
        (["--batch", "1,x"], "whole numbers from 1 are needed", 2),
        (["--sizes", "0"], "whole numbers from 1 are needed", 2),
        (["--sizes", "10,121"], "121 subscriptions are asked for, and there are 120", 1),
        (["--plot", "p.gif"], "a plot is a .png or .svg file", 1),
        (["--plot", "nowhere/p.svg"], "there is no folder nowhere", 1),
        (["--option", "speed=1"], "NAME=VALUE", 2),
        (["--schema", "a0:int65"], "int65", 1),
    ],
)
def test_bench_says_what_is_wrong(files: tuple[str, str], arguments: list[str], said: str, code: int) -> None:
    assert said in fails("bench", *files, *arguments, "--repeat", 1, code=code)


def test_bench_needs_events_subscriptions_and_files(files: tuple[str, str], tmp_path: Path) -> None:
    subs, events = files
    workload = named("dense", subscriptions=5)
    assert "there are no events" in fails(
        "bench", subs, write(tmp_path / "none.parquet", workload.schema().empty_table())
    )
    assert "there are no subscriptions" in fails(
        "bench", write(tmp_path / "no.parquet", workload.predicates(0, 0)), events
    )
    assert "nothing.parquet" in fails("bench", tmp_path / "nothing.parquet", events)
    assert "no column 'id'" in fails("bench", events, events)


def test_a_prefix_of_a_predicate_table_has_whole_subscriptions() -> None:
    rows = pa.table(
        {"id": [5, 5, 3, 4], "attribute": ["a", "b", "a", "a"], "op": ["="] * 4, "operands": [[1], [2], [3], [4]]}
    )
    more = pa.table({"id": [3, 5], "attribute": ["s", "s"], "op": ["="] * 2, "operands": [["x"], ["y"]]})
    first = prefix(cm.PredicateTable(rows, more), 2)
    assert [part["id"].to_pylist() for part in first.tables] == [[5, 5, 3], [3, 5]]
    assert [part["id"].to_pylist() for part in prefix(cm.PredicateTable(rows, more.slice(0, 1)), 1).tables] == [[5, 5]]


def test_sizes_and_durations() -> None:
    assert default_sizes(150_000) == [1000, 10_000, 100_000, 150_000]
    assert default_sizes(1000) == [250, 500, 1000] and default_sizes(1) == [1]
    assert [duration(t) for t in (61.0, 0.9999, 0.0123456, 9.9e-7, 13.62e-6, 1e-10)] == [
        "61 s",
        "1 s",
        "12.3 ms",
        "990 ns",
        "13.6 us",
        "0.1 ns",
    ]
    line = Line("k", 10, 1, 0.1, 92.04, 1e-5, 12345.6, 0.2)
    assert cells("\n".join(table([line])))[1] == [
        "k",
        "10",
        "1",
        "100 ms",
        "92.0",
        "10 us",
        "100,000",
        "12,346",
        "200 ms",
    ]


def test_kinds_that_disagree_are_found(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from colmatch.bench import figures as bench
    from colmatch.cli.files import read_table

    subs, events = read_table(files[0]), read_table(files[1])
    made = bench._build

    def build(subscriptions: Any, schema: Any, index: Any, *rest: Any) -> Any:
        matcher, line = made(prefix(subscriptions, 50) if index.kind == "auto" else subscriptions, schema, index, *rest)
        return matcher, line

    monkeypatch.setattr(bench, "_build", build)
    names = ["auto", cm.index_kinds()[0]]
    with pytest.raises(ColmatchError, match="do not agree"):
        list(
            bench.measure(
                cm.PredicateTable(subs),
                events.schema,
                events,
                indexes=[cm.index(name) for name in names],
                batches=[100],
                sizes=[120],
                repeat=1,
                options=cm.Options(),
            )
        )
