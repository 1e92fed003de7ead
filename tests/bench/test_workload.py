"""Generated workloads: the same bytes from the same seed, however they are cut; what was asked
for; texts and predicates alike.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from workload import NAMES, Workload, named
from workload.draw import ranks, subsets, weighted_subsets, zipf
from workload.events import centres
from workload.parameters import EVENT_CHUNK as EVENTS_CHUNK
from workload.parameters import OPERATORS
from workload.subscriptions import CHUNK

import colmatch as cm

MIXED = Workload(
    "mixed",
    subscriptions=500,
    attributes=12,
    cardinality=9,
    subscription_size=(1, 5),
    event_size=(6, 12),
    operators=tuple((op, 1.0) for op in OPERATORS[1:]),
    attribute_zipf=0.5,
    value_zipf=0.5,
    weights=True,
)
SMALL = {name: named(name, subscriptions=300, around=20) for name in NAMES}


def dump(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def parts(workload: Workload) -> list[pa.Table]:
    return [workload.predicates(), workload.texts(), workload.events(50), workload.pairs(50)]


def matches(workload: Workload, subscriptions: Any, rows: int) -> set[tuple[int, int]]:
    found = cm.Matcher.build(subscriptions, workload.schema()).match(workload.events(rows))
    return set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


# The same again


@pytest.mark.parametrize("workload", [MIXED, SMALL["bestar"], SMALL["querylog"]], ids=lambda w: w.name)
def test_same_seed_same_bytes(workload: Workload) -> None:
    again, other = replace(workload), replace(workload, seed=1)
    for a, b, c in zip(parts(workload), parts(again), parts(other), strict=True):
        assert dump(a) == dump(b)
        assert dump(a) != dump(c)


@pytest.mark.parametrize("layout", ["columns", "map"])
# the second has few events, which are told apart by looking back
@pytest.mark.parametrize("event_size", [(6, 12), (2, 3)])
def test_events_do_not_depend_on_how_they_are_cut(layout: str, event_size: tuple[int, int]) -> None:
    workload = replace(MIXED, layout=layout, event_size=event_size)
    whole = workload.events(EVENTS_CHUNK + 100)
    assert whole.num_rows == EVENTS_CHUNK + 100
    for start, rows in [(0, 15), (5, 10), (EVENTS_CHUNK - 7, 20), (EVENTS_CHUNK, 3), (EVENTS_CHUNK + 50, 50), (9, 0)]:
        cut = workload.events(rows, start)
        assert cut.equals(whole.slice(start, rows)), (start, rows)
        assert dump(cut) == dump(workload.events(rows, start))
    assert pa.concat_tables([workload.pairs(3), workload.pairs(9, 3)]).equals(workload.pairs(12))


@pytest.mark.parametrize("form", ["predicates", "texts"])
def test_subscriptions_do_not_depend_on_how_they_are_cut(form: str) -> None:
    workload = replace(MIXED, subscriptions=CHUNK + 40, planted=0.3, around=10)
    whole = getattr(workload, form)()
    assert pc.unique(whole["id"]).to_pylist() == list(range(CHUNK + 40))
    for start, count in [(0, 3), (2, 5), (CHUNK - 4, 9), (CHUNK, 1), (CHUNK + 30, None), (7, 0)]:
        stop = CHUNK + 40 if count is None else start + count
        want = whole.filter((pc.field("id") >= start) & (pc.field("id") < stop))
        assert getattr(workload, form)(start, count).equals(want), (start, count)
    assert workload.texts(0, 40)["expression"] != workload.texts(CHUNK, 40)["expression"]  # chunks differ
    fewer = replace(workload, subscriptions=70)
    assert getattr(fewer, form)().equals(whole.filter(pc.field("id") < 70))


@pytest.mark.parametrize("workload", [MIXED, replace(MIXED, layout="map")], ids=["columns", "map"])
def test_pairs_are_the_events(workload: Workload) -> None:
    by_pair = {(row["event"], row["attribute"]): row["value"] for row in workload.pairs(40, 10).to_pylist()}
    assert len(by_pair) == workload.pairs(40, 10).num_rows
    rows = workload.events(40, 10).to_pylist()
    if workload.layout == "map":
        rows = [dict(row["attrs"]) for row in rows]
    assert by_pair == {
        (10 + i, name): value for i, row in enumerate(rows) for name, value in row.items() if value is not None
    }


@pytest.mark.parametrize("event_size", [(6, 12), (4, 4), (1, 4)])
def test_all_events_differ(event_size: tuple[int, int]) -> None:
    events = replace(MIXED, event_size=event_size).events(2 * EVENTS_CHUNK)
    assert len({tuple(row.items()) for row in events.to_pylist()}) == 2 * EVENTS_CHUNK


def test_too_few_different_events() -> None:
    workload = Workload(attributes=2, cardinality=3, subscription_size=(1, 2), event_size=(1, 2))
    assert len({tuple(row.items()) for row in workload.events(15).to_pylist()}) == 15  # 3 + 3 + 3 * 3
    assert workload.events(5, 10).equals(workload.events(15).slice(10))
    for rows in (16, EVENTS_CHUNK + 1):
        with pytest.raises(
            cm.OptionError, match=f"found only 15 different events, and {rows:,} are wanted: give more attributes"
        ):
            workload.events(rows)


# Two forms, one meaning


@pytest.mark.parametrize(
    "workload", [MIXED, replace(MIXED, layout="map", planted=0.5, around=30)], ids=["columns", "map"]
)
def test_texts_and_predicates_mean_the_same(workload: Workload) -> None:
    by_text, by_predicate = matches(workload, workload.texts(), 60), matches(workload, workload.predicate_table(), 60)
    assert by_text == by_predicate
    assert len(by_text) > 100
    op = set(workload.predicates()["op"].to_pylist())
    assert op == set(OPERATORS)


@pytest.mark.parametrize("name", NAMES)
def test_named_workloads_build_and_match(name: str) -> None:
    workload = SMALL[name]
    assert workload.name == name
    found = matches(workload, workload.predicate_table(), 30)
    assert found == matches(workload, workload.texts(), 30)
    assert workload.planted == 0 or len({event for event, _ in found if event < 20}) > 5
    assert workload.events(5).schema.equals(workload.schema())


# What was asked for


def test_sizes_and_shares() -> None:
    workload = replace(MIXED, subscriptions=20_000, equality=0.3, operators=(("between", 3), ("not in", 1)))
    table = workload.predicates()
    size = Counter(Counter(table["id"].to_pylist()).values())
    assert sorted(size) == [1, 2, 3, 4, 5]
    assert all(abs(count / 20_000 - 0.2) < 0.01 for count in size.values())
    pairs = zip(table["id"].to_pylist(), table["attribute"].to_pylist(), strict=True)
    assert len(set(pairs)) == table.num_rows  # no attribute twice
    share = {op: n / table.num_rows for op, n in Counter(table["op"].to_pylist()).items()}
    assert share == pytest.approx({"=": 0.3, "between": 0.525, "not in": 0.175}, abs=0.01)
    lists = table.filter(pc.equal(table["op"].cast(pa.string()), "not in"))["operands"]
    assert set(pc.list_value_length(lists).to_pylist()) == set(range(2, 9))
    values = pc.list_flatten(table["operands"]).to_numpy()
    assert (values.min(), values.max()) == (0, 8)
    events = Counter(workload.pairs(4000)["event"].to_pylist())
    assert sorted(set(events.values())) == list(range(6, 13))


@pytest.mark.parametrize(("name", "mean", "most"), [("ads", 8, 56), ("querylog", 2.78, 10)])
def test_a_mean_size_between_two_ends(name: str, mean: float, most: int) -> None:
    size = list(Counter(named(name, subscriptions=20_000, planted=0.0).predicates()["id"].to_pylist()).values())
    assert min(size) == 1 and most - 4 <= max(size) <= most
    assert np.mean(size) == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize(("width", "mean"), [((0.0, 1.0), 505), ((0.1, 0.2), 150), ((0.0, 0.0), 1), ((1.0, 1.0), 1000)])
def test_widths(width: tuple[float, float], mean: float) -> None:
    workload = Workload(subscriptions=4000, cardinality=1000, equality=0.0, width=width, subscription_size=(1, 1))
    ends = np.array(workload.predicates()["operands"].to_pylist())
    assert (ends[:, 0] >= 0).all() and (ends[:, 1] < 1000).all()
    assert np.mean(ends[:, 1] - ends[:, 0] + 1) == pytest.approx(mean, rel=0.03)


def test_a_handful_of_values_of_250_millions() -> None:
    workload = SMALL["bestar"]
    table = workload.predicates()
    width = [row[1] - row[0] + 1 for row in table["operands"].to_pylist() if len(row) == 2]
    assert set(width) == set(range(1, 11))
    near = centres(workload)
    assert near.shape == (400, 4)
    for row in workload.pairs(100).to_pylist():
        assert np.abs(near[int(row["attribute"][1:])] - row["value"]).min() <= 100


def test_sets_are_equally_likely() -> None:
    n = 30_000
    drawn = subsets(np.random.default_rng(1), np.full(n, 3, np.int32), np.full(n, 5, np.int32)).reshape(n, 3)
    counts = Counter(map(tuple, drawn.tolist()))
    assert sorted(counts) == list(itertools.combinations(range(5), 3))
    assert all(abs(count / n - 0.1) < 0.01 for count in counts.values())


def test_popular_attributes_are_drawn_as_one_after_the_other() -> None:
    n, p = 40_000, zipf(4, 1.0)
    drawn = weighted_subsets(np.random.default_rng(1), np.full(n, 2, np.int32), p).reshape(n, 2)
    counts = Counter(map(tuple, drawn.tolist()))
    for a, b in itertools.combinations(range(4), 2):
        assert counts[a, b] / n == pytest.approx(p[a] * p[b] / (1 - p[a]) + p[b] * p[a] / (1 - p[b]), abs=0.01)


def test_extreme_skew_still_gives_different_attributes() -> None:
    size = np.array([90, 1, 50] * 20, np.int32)
    drawn = weighted_subsets(np.random.default_rng(1), size, zipf(90, 5.0))
    for row in np.split(drawn, np.cumsum(size)[:-1]):
        assert (np.diff(row) > 0).all()
        assert row.min() >= 0 and row.max() < 90
    # too small for a float's sum
    lost = weighted_subsets(np.random.default_rng(1), np.full(5, 3, np.int32), np.array([1.0, 1e-20, 1e-20]))
    assert lost.tolist() == [0, 1, 2] * 5


@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2])
def test_ranks(exponent: float) -> None:
    drawn = ranks(np.random.default_rng(1), 100_000, 10, exponent)
    share = np.bincount(drawn, minlength=10) / 100_000
    assert len(share) == 10
    assert (np.diff(share) < 0.005).all()
    edges = np.arange(1, 12, dtype=float)
    mass = np.log(edges) if exponent == 1 else edges ** (1 - exponent) / (1 - exponent)
    assert share == pytest.approx(np.diff(mass) / (mass[-1] - mass[0]), abs=0.01)


def test_zipf_makes_the_first_ones_popular() -> None:
    workload = replace(MIXED, subscriptions=5000, attribute_zipf=1.0, value_zipf=1.0, event_size=(6, 6))
    for attributes in (workload.predicates()["attribute"], workload.pairs(2000)["attribute"]):
        count = Counter(attributes.to_pylist())
        assert count["a0"] > count["a1"] > count["a3"] > count["a11"] > 0
    value = Counter(workload.pairs(2000)["value"].to_pylist())
    assert value[0] > value[1] > value[3] > value[8] > 0


def test_weights_fall_with_popularity() -> None:
    workload = replace(MIXED, subscriptions=5000, attribute_zipf=1.0)
    table = workload.predicates()
    rarity = np.array([(int(name[1:]) + 1) / 12 for name in table["attribute"].to_pylist()])  # rarest: 1
    ratio = table["weight"].to_numpy() / rarity
    assert ratio.max() <= 1
    assert (ratio.mean(), ratio.std()) == pytest.approx((0.8, 0.05), rel=0.02)
    assert "weight" not in SMALL["dense"].predicates().column_names


# Planted


@pytest.mark.parametrize("op", OPERATORS)
def test_planted_subscriptions_match_their_event(op: str) -> None:
    changed: dict[str, Any] = {"equality": 1.0} if op == "=" else {"equality": 0.0, "operators": ((op, 1.0),)}
    workload = replace(MIXED, subscription_size=(1, 12), planted=1.0, around=1, **changed)
    assert matches(workload, workload.predicate_table(), 1) == {(0, i) for i in range(500)}
    assert matches(workload, workload.texts(), 1) == {(0, i) for i in range(500)}
    most = max(Counter(workload.predicates()["id"].to_pylist()).values())
    assert most == workload.pairs(1).num_rows  # no more predicates than the event has pairs
    if op in ("=", "between", "<>", "in", "not in"):
        values = pc.list_flatten(workload.predicates()["operands"]).to_numpy()
        assert values.min() >= 0 and values.max() < 9


def test_planting_reaches_a_matching_probability() -> None:
    for name in ("pstree-dense", "pstree-sparse", "bestar"):
        workload = named(name, subscriptions=20_000)
        found = cm.Matcher.build(workload.predicate_table(), workload.schema()).count(workload.events(500))
        assert np.mean(found) / 20_000 == pytest.approx(0.001, rel=0.1), name
    workload = replace(workload, planted=0.0)
    found = cm.Matcher.build(workload.predicate_table(), workload.schema()).count(workload.events(500))
    assert np.mean(found) / 20_000 < 1e-5


def test_a_domain_of_one_value() -> None:
    workload = replace(MIXED, cardinality=1, planted=1.0, around=3, event_size=(1, 12))
    assert {id for _, id in matches(workload, workload.predicate_table(), 3)} == set(range(500))


# Errors


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"attributes": 0}, r"Workload\(attributes=0\): a whole number from 1 to"),
        ({"cardinality": 2.5}, r"Workload\(cardinality=2.5\): a whole number"),
        ({"cardinality": 2**53 + 1}, "from 1 to 9007199254740992 is needed"),
        ({"subscriptions": -1}, "subscriptions=-1"),
        ({"subscriptions": True}, "subscriptions=True"),
        (
            {"subscription_size": (3, 101)},
            r"subscription_size=\(3, 101\).*from 1 to 100.*no more than there are attributes",
        ),
        ({"event_size": (5, 4)}, "event_size.*the smaller one first"),
        ({"event_size": 5}, "event_size=5.*two whole numbers"),
        ({"list_size": (0, 4)}, "list_size.*from 1"),
        ({"subscription_mean": 3}, "subscription_mean=3.*between 3 and 7"),
        ({"equality": 1.5}, r"Workload\(equality=1.5\): a number from 0 to 1"),
        ({"equality": float("nan")}, "equality=nan"),
        ({"planted": "half"}, "planted='half'"),
        ({"attribute_zipf": 6}, "attribute_zipf=6.*from 0 to 5"),
        ({"width": (0.5, 2)}, "width=.*from 0 to 1"),
        ({"operators": {"like": 1}}, "operators=.*no 'like' among between, <=.*equality"),
        ({"operators": {"=": 1}}, "field of its own, equality"),
        ({"operators": {"<=": -1}}, "share of '<='"),
        ({"operators": {"<=": 0}}, "share above 0, or else equality must be 1"),
        ({"operators": (("<", 1), ("<", 2))}, "twice"),
        ({"operators": "<"}, "pairs of an operator and its share"),
        ({"layout": "rows"}, "layout='rows'.*'columns' or 'map'"),
        ({"attributes": 20_000}, "attributes=20000.*use layout='map'"),
        ({"seed": -1}, "seed=-1"),
        ({"colour": 1}, "no field 'colour'"),
    ],
)
def test_impossible_fields(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.OptionError, match=said):
        named("dense", **changed)


def test_impossible_calls() -> None:
    workload = SMALL["dense"]
    with pytest.raises(cm.OptionError, match="no workload is called 'dance'; there are dense, "):
        named("dance")
    with pytest.raises(cm.OptionError, match="subscriptions 290 to 310 were asked for, but there are 300"):
        workload.texts(290, 20)
    with pytest.raises(cm.OptionError, match="start=-1"):
        workload.predicates(-1)
    with pytest.raises(cm.OptionError, match=r"rows=1\.5"):
        workload.events(1.5)  # type: ignore[arg-type]
    assert replace(workload, operators={"<": 1}).operators == (("<", 1),)
