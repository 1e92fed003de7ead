"""The papers' experiments vary what their columns say, and refuse to write a table if not."""

from __future__ import annotations

import importlib
import os
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

BENCHMARKS = Path(__file__).parents[2] / "asv_benchmarks"
# Subscriptions of experiments for which 200 are too few. Over 400 attributes, these make a root and
# its leaves only, which no setting changes, and have hardly any values in common.
MORE = {"000-beta": 4000, "000-table-2b": 4000, "000-clusters": 2000, "000-cluster-size": 2000}
CHEAP = ("scan", "bestar", "pstbloom")  # one of each family; all kinds are compiled by other tests
DRAWN = {"distinct_events", "pairs_each", "subscriptions_made", "matches", "probability_found"}
MEASURED = {
    "kind", "us", "us_alone", "ratio", "ratio_to", "build_s", "bytes", "nodes", "nodes_alone", "conjunctions", "conjunctions_alone",
    "candidates", "predicates",
}  # fmt: skip

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1",
    reason="all experiments are too many for kernels that are not compiled",
)
if not BENCHMARKS.is_dir():
    pytest.skip("asv_benchmarks/ is not beside the tests", allow_module_level=True)


class Modules:
    """The modules of ``experiments``, and the programs, imported as the programs import them."""

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(name if name in ("documents", "relevance") else f"experiments.{name}")


@pytest.fixture
def of(monkeypatch: pytest.MonkeyPatch) -> Modules:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr("gc.collect", lambda: 0)  # collecting garbage helps measurements only
    return Modules()


def names() -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return list(Modules().catalogue.EXPERIMENTS)


def run(of: Modules, experiment: Any, subscriptions: int = 200, kinds: tuple[str, ...] = CHEAP) -> list[dict[str, Any]]:
    how = of.measuring.How(subscriptions, 1, time.process_time, kinds)
    rows: list[dict[str, Any]] = of.measuring.measured(experiment, how)
    return rows


@pytest.mark.parametrize("name", names())
def test_each_experiment_proves_what_it_varies(of: Modules, name: str) -> None:
    experiment = of.catalogue.EXPERIMENTS[name]
    rows = run(of, experiment, MORE.get(name, 200))
    proofs = {of.axes.AXES[axis].proof for axis in experiment.axes}
    for row in rows:
        assert row.keys() >= MEASURED | DRAWN | experiment.axes.keys() | proofs
        assert row["distinct_events"] >= 0.99 * row["events"]
    points = {tuple(row[axis] for axis in experiment.axes) for row in rows}
    wanted = 1
    for values in experiment.axes.values():
        wanted *= len(values)
    assert len(points) == wanted
    assert len(rows) == wanted * len(set(CHEAP) & set(experiment.kinds))


def test_alike_events_share_the_way_through_a_tree_and_alone_each_goes_its_own(of: Modules) -> None:
    experiment = of.entry.Experiment("", of.entry.drawn("bestar"), {"probability": (0.3,)}, ("bestar", "scan"))
    found = {row["kind"]: row for row in run(of, experiment, 5000, ("bestar", "scan"))}
    assert found["bestar"]["nodes_alone"] > 2 * found["bestar"]["nodes"]
    assert found["scan"]["conjunctions_alone"] == found["scan"]["conjunctions"]


def test_no_parameter_is_called_as_a_column_that_is_measured(of: Modules) -> None:
    assert not of.axes.AXES.keys() & (MEASURED | DRAWN | {axis.proof for axis in of.axes.AXES.values()})


def test_all_kinds_take_part_somewhere(of: Modules) -> None:
    import colmatch as cm

    taking = {kind for one in of.catalogue.EXPERIMENTS.values() for kind in one.kinds}
    assert taking >= set(cm.index_kinds()) | set(of.entry.VARIANTS)


# Checks fire


def test_a_setting_that_construction_never_uses_is_refused(of: Modules) -> None:
    """BE*-Tree uses beta only where a bucket is enlarged, so only if it is built one by one."""
    beta = of.catalogue.EXPERIMENTS["000-beta"]
    at_once = beta._replace(settings={**beta.settings, "construction": "bulk"})
    with pytest.raises(of.checks.NotVariedError, match="beta is said to vary, but nodes, which must differ, is"):
        run(of, at_once, 4000)


def test_a_batch_that_repeats_events_is_refused(of: Modules) -> None:
    """At a probability of 0.09 subscriptions are planted around 11 events."""

    def repeating(values: dict[str, Any], subscriptions: int) -> Any:
        work = of.entry.named("bestar", subscriptions=subscriptions, **of.cores.likely(0.09, 1024))
        events = pa.concat_tables([work.events(work.around)] * 94).slice(0, 1024).combine_chunks()
        return of.entry.Made(work.predicate_table(), work.schema(), events, {})

    experiment = of.entry.Experiment("", repeating, {}, ("bestar",))
    with pytest.raises(of.checks.NotVariedError, match=r"a batch of 1,024 events has only 11 that differ"):
        run(of, experiment)


def test_a_probability_that_is_not_met_is_refused(of: Modules) -> None:
    def unlikely(values: dict[str, Any], subscriptions: int) -> Any:
        return of.entry.drawn("bestar")({"probability": 0.01}, subscriptions)

    experiment = of.entry.Experiment("", unlikely, {"probability": (0.3,)}, ("bestar",))
    with pytest.raises(of.checks.NotVariedError, match="probability is said to vary, but probability_found"):
        run(of, experiment)


@pytest.mark.parametrize("axis", ["attributes", "size", "pairs", "equality", "cardinality", "attribute_zipf"])
def test_a_workload_that_does_not_change_is_refused(of: Modules, axis: str) -> None:
    values = {"attributes": (50, 100), "equality": (0.2, 0.9), "attribute_zipf": (0.0, 2.0)}.get(axis, (5, 50))
    still = of.entry.drawn("pstree-dense")({}, 200)
    experiment = of.entry.Experiment("", lambda values, subscriptions: still, {axis: values}, ("bestar",))
    with pytest.raises(of.checks.NotVariedError, match=f"{axis} is said to vary, but"):
        run(of, experiment)


def test_kinds_that_disagree_are_refused(of: Modules) -> None:
    with pytest.raises(of.checks.NotVariedError, match="kinds find different numbers of pairs"):
        of.checks.agreeing({"scan": 3, "bestar": 4})


# The best matches, and settings


def given(tmp_path: Path, subscriptions: int) -> Namespace:
    return Namespace(subscriptions=subscriptions, repeat=1, kinds=None, results=tmp_path)


def test_the_best_matches_are_found_among_events_that_differ(of: Modules, tmp_path: Path) -> None:
    rows = list(of.relevance.sweep(of.relevance.SWEEPS["top-probability"], 0.0, given(tmp_path, 1000)))
    of.checks.varied(rows, ["probability"])
    assert {row["kind"] for row in rows} == set(of.relevance.TOP)
    assert {row["distinct_events"] for row in rows} == {of.relevance.ROWS}


def test_each_setting_changes_a_counter(of: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(of.relevance.micro(0.0, given(tmp_path, 4000)))
    assert len(rows) == len(of.relevance.SETTINGS)
    at_once = (("bestar", {}), *(("bestar", {"beta": n}) for n in (1, 2, 16)))
    monkeypatch.setattr(of.relevance, "SETTINGS", at_once)
    with pytest.raises(of.checks.NotVariedError, match="beta changes no counter"):
        list(of.relevance.micro(0.0, given(tmp_path, 4000)))


def test_the_best_matches_go_by_what_events_give(of: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = of.relevance.event_weights(given(tmp_path, 1000))
    points = [(work, law, kind) for work in ("bestar", "dense") for law in of.giving.LAWS for kind in of.relevance.BEST]
    assert [(row["workload"], row["events_give"], row["kind"]) for row in rows] == points
    for row in rows:  # all attributes of an event have a weight, or none has
        assert row["weights_each"] == (0 if row["events_give"] == "nothing" else row["pairs_each"])
    looked = {row["conjunctions"] for row in rows if (row["workload"], row["kind"]) == ("bestar", "bestar-top5")}
    assert len(looked) > 1
    weights = of.giving.weights
    monkeypatch.setattr(of.giving, "weights", lambda law, events: weights("uniform", events))
    with pytest.raises(of.checks.NotVariedError, match="events_give is said to vary, but heaviest"):
        of.relevance.event_weights(given(tmp_path, 200))


def test_an_index_that_observes_follows_events(of: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of.relevance, "SEEN", 1024)
    rows = of.relevance.observed(given(tmp_path, 4000))
    assert len(rows) == len(of.relevance.RANKED) * len(of.relevance.STAGES) * 2
    assert {row["observed"] > 0 for row in rows if row["observe"]} == {True}
    monkeypatch.setattr(of.relevance, "RANKED", ("betree-feedback",))
    with monkeypatch.context() as patch:
        patch.setattr("colmatch.Matcher.compact", lambda matcher: None)
        with pytest.raises(of.checks.NotVariedError, match=r"observe=1024: compact\(\) must change counters"):
            of.relevance.observed(given(tmp_path, 4000))
    monkeypatch.setattr(of.giving, "mirrored", lambda events, cardinality: events)
    with pytest.raises(of.checks.NotVariedError, match="stage is said to vary, but frequent_values"):
        of.relevance.observed(given(tmp_path, 4000))


# Events about cores


@pytest.mark.parametrize("zipf", [0.0, 1.0])
@pytest.mark.parametrize("probability", [0.001, 0.09, 0.5])
def test_events_differ_and_match_as_many_as_asked(of: Modules, probability: float, zipf: float) -> None:
    work = of.entry.named("bestar", subscriptions=20_000, attribute_zipf=zipf, **of.cores.likely(probability, 512))
    made = of.entry.of_workload(work, 512)
    told = of.facts.of_events(made.events)
    assert told["distinct_events"] == 512
    low, high = work.event_size
    each = [sum(value is not None for value in event.values()) for event in made.events.to_pylist()]
    assert min(each) >= low and max(each) <= high
    matcher = of.measuring.build(made, "bestar", {})
    share = matcher.count(made.events).sum() / 512 / 20_000
    assert share == pytest.approx(probability, rel=0.1)


# Inserts, deletes, tables


def test_inserts_and_deletes_leave_what_was_there(of: Modules, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of.turns, "COMING", 20)
    monkeypatch.setattr(of.turns, "SIZES", (1, 10))
    how = of.measuring.How(200, 1, time.process_time, CHEAP)
    rows = of.turns.measured(of.turns.TURNS, how)
    assert [(row["turn"], row["kind"]) for row in rows] == [(n, kind) for n in (1, 10) for kind in CHEAP]
    for row in rows:
        assert row["inserted"] == row["deleted"] == 20
        assert row["subscriptions_before"] == row["subscriptions_after"] == 200
        assert row["distinct_events"] == 20


def test_own_deletes_are_of_the_trees_and_of_ps_trees(of: Modules) -> None:
    how = of.measuring.How(200, 1, time.process_time, ("scan", "opindex", "betree", "bestar", "pstbloom", "psthash"))
    rows = of.turns.measured(of.turns.OWN, how)
    assert [row["kind"] for row in rows] == ["betree", "bestar", "pstbloom", "psthash"]
    assert all(row["deleted"] == 40 and row["entries_before"] - row["entries_after"] >= 40 for row in rows)


def test_a_table_is_written_with_what_made_it(
    of: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["documents.py", "000-beta", "--subscriptions", "4000", "--repeat", "1", "--results", str(tmp_path)]
    monkeypatch.setattr("sys.argv", command)
    of.documents.main()
    table, runs = of.tables.read(tmp_path / "000-beta.csv"), of.tables.read(tmp_path / "runs.csv")
    assert [row["beta"] for row in table] == ["1", "2", "4", "16"] * 2
    assert [run["table"] for run in runs] == ["000-beta"]
    assert runs[0]["command"] == " ".join(["python", "asv_benchmarks/documents.py", *command[1:]])
    assert runs[0]["date"] and "cores" in runs[0]["machine"] and "numba" in runs[0]["versions"]
    assert "000-beta.csv" in capsys.readouterr().out
