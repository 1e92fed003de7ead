"""The matcher's face: arguments it refuses, threads, streams, explanations."""

from __future__ import annotations

import threading
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest
from sizes import SMALL

import colmatch as cm
from colmatch.events import work
from colmatch.matching import worker

SCHEMA = {"age": "int64", "city": "string"}
EVENTS = pa.table({"age": [36, 7, None], "city": ["Nice", None, "Nancy"]})


@pytest.mark.parametrize(
    ("subscriptions", "said"),
    [
        ([(1, "age = 1"), (1, "age = 2")], "id 1 is given more than once"),
        ([(1, "age = 1"), ("x", "age = 2")], "one type"),
        ([(None, "age = 1")], "subscription number 0"),
        ([(1.5, "age = 1")], "ids are int64 or strings"),
        ([(2**63, "age = 1")], "int64"),
        (["age = 1"], "a pair"),
        ("age = 1", "PredicateTable is needed"),
        (pa.table({"id": [1]}), "no column 'expression'"),
        (pa.table({"id": [1], "expression": [None]}), "a string is needed"),
        (
            pa.table({"id": [1], "expression": ["age = 1"], "weights": [1]}),
            "'weights' is int64, a map from names of attrib",
        ),
        (
            pa.table({"id": [1], "expression": ["age = 1"], "priority": ["x"]}),
            "'priority' is string: numbers are needed",
        ),
    ],
)
def test_subscriptions_that_cannot_be_read(subscriptions: Any, said: str) -> None:
    with pytest.raises(cm.SubscriptionError, match=said):
        cm.Matcher.build(subscriptions, SCHEMA)


def test_options_and_kinds_are_checked() -> None:
    with pytest.raises(cm.OptionError, match="the kinds are"):
        cm.Matcher.build({}, SCHEMA, index="btree")
    with pytest.raises(cm.OptionError, match="batch_rows=0"):
        cm.Options(batch_rows=0)
    with pytest.raises(cm.OptionError, match="time zone"):
        cm.Options(timezone="Mars/Olympus")
    with pytest.raises(cm.OptionError, match="'raise' or 'collect'"):
        cm.Matcher.build({}, SCHEMA, errors="ignore")


def test_errors_say_which_subscription_where_and_what() -> None:
    with pytest.raises(cm.ExpressionError) as caught:
        cm.Matcher.build({17: "age > 3 AND\n  cty = 'x'"}, SCHEMA)
    assert (caught.value.id, caught.value.line, caught.value.column) == (17, 2, 3)
    assert "did you mean 'city'?" in str(caught.value)


def test_bad_literal_values_are_placed_too() -> None:
    texts = {1: "d > '2013-01-01'", 2: "d > '2013-02-30'", 3: "d > '2014-01-01'"}
    matcher = cm.Matcher.build(texts, {"d": "date32[day]"}, errors="collect")
    assert [(r.id, r.position) for r in matcher.rejected] == [(2, (1, 5))]
    assert matcher.ids.to_pylist() == [1, 3]
    days = pa.table({"d": pa.array(["2013-06-01", "2015-01-01"]).cast(pa.date32())})
    assert matcher.match_lists(days).to_pylist() == [[1], [1, 3]]


@pytest.mark.parametrize("events", [{"age": [1]}, [1], "events.parquet", None])
def test_events_must_be_arrow(events: Any) -> None:
    with pytest.raises(cm.EventError):
        cm.Matcher.build({1: "age = 1"}, SCHEMA).match(events)


def test_results_are_typed_even_when_empty() -> None:
    for ids, type in (([1], pa.int64()), (["a"], pa.string())):
        matcher = cm.Matcher.build([(id, "age = 99") for id in ids], SCHEMA)
        assert matcher.match(EVENTS).schema == pa.schema([("event", pa.int64()), ("subscription", type)])
        assert matcher.match(EVENTS.slice(0, 0)).num_rows == 0
        assert matcher.match_lists(EVENTS.slice(0, 0)).type == pa.list_(type)
        assert matcher.count(EVENTS.slice(0, 0)).dtype == np.int64


def test_event_numbers_run_on_over_batches_and_drains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_CAPACITY", 1)
    events = pa.table({"age": range(1000)})
    matcher = cm.Matcher.build({i: f"age >= {i * 10}" for i in range(100)}, SCHEMA, options=cm.Options(batch_rows=7))
    found = matcher.match(events)
    expected = [(event, i) for event in range(1000) for i in range(100) if event >= 10 * i]
    assert list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == expected


@pytest.mark.parametrize("large", [1, 64, 1000])
def test_a_sink_grows_no_further_than_a_row_needs(monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    monkeypatch.setattr(worker, "FIRST_CAPACITY", 1)
    monkeypatch.setattr(worker, "LARGE_CAPACITY", large)
    matcher = cm.Matcher.build(dict.fromkeys(range(50), "age >= 0"), SCHEMA)
    assert matcher.match(pa.table({"age": range(300)})).num_rows == 15_000
    (idle,) = inside.idle(matcher)
    assert len(idle._sink.sub) <= max(64, 2 * large)


def test_a_batch_of_too_many_matches_is_cut_into_parts_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows left over would cost almost as much as many."""
    matcher = cm.Matcher.build(dict.fromkeys(range(50), "age >= 0"), SCHEMA)
    events = pa.table({"age": range(300)})
    matcher.match(events)
    monkeypatch.setattr(worker, "LARGE_CAPACITY", 4096)
    assert [batch.num_rows for batch in matcher.match_batches(events)] == [3000] * 5


def test_a_generator_left_early_does_not_disturb_the_next() -> None:
    matcher = cm.Matcher.build({i: f"age >= {i}" for i in range(50)}, SCHEMA, options=cm.Options(batch_rows=1))
    results = matcher.match_batches(EVENTS)
    next(results)
    inner = matcher.match(EVENTS)
    results.close()
    assert matcher.match(EVENTS).equals(inner)


def test_threads_share_a_matcher() -> None:
    matcher = cm.Matcher.build({i: f"age >= {i} AND age < {i + 3}" for i in range(200)}, SCHEMA)
    events = pa.table({"age": [i % 210 for i in range(500 if SMALL else 5000)]})
    expected = matcher.match(events)
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.append(matcher.match(events).equals(expected))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_a_worker_is_not_reused_after_an_error() -> None:
    matcher = cm.Matcher.build({1: "age = 36"}, SCHEMA)
    for _ in range(3):
        with pytest.raises(cm.EventError, match="age"):
            matcher.match(pa.table({"age": ["x"]}))
        assert matcher.match(EVENTS).num_rows == 1


@pytest.mark.usefixtures("kept_predicates")
def test_explain_prints_a_tree() -> None:
    matcher = cm.Matcher.build({"r": "age >= 18 AND (city = 'Nice' OR city IS NULL)"}, SCHEMA)
    explanation = matcher.explain({"age": 36, "city": "Nancy"}, "r")
    assert not explanation.matched
    assert str(explanation).splitlines() == [
        "subscription 'r': does not match",
        "└─ False   any of",
        "   ├─ False   all of",
        "   │  ├─ False   city = 'Nice'   ['Nancy']",
        "   │  └─ True    age >= 18   [36]",
        "   └─ False   all of",
        "      ├─ True    age >= 18   [36]",
        "      └─ False   city IS NULL   ['Nancy']",
    ]
    assert matcher.explain(EVENTS.slice(1, 1), "r").tree.truth is False
    assert matcher.explain({"age": None, "city": None}, "r").tree.truth is None


def test_explain_of_a_program_keeps_its_shape() -> None:
    text = "age > 1 AND (city = 'a' OR (age < 9 AND city <> 'b')) AND (age = 3 OR city = 'c')"
    matcher = cm.Matcher.build({1: text}, SCHEMA, index=cm.index("auto", dnf_budget=1))
    assert matcher.stats()["programs"] == 1
    explanation = matcher.explain({"age": 3, "city": "x"}, 1)
    assert explanation.matched
    assert [child.text for child in explanation.tree.children].count("any of") == 2


def test_explain_refuses_what_is_not_there() -> None:
    matcher = cm.Matcher.build({1: "age = 1"}, SCHEMA)
    with pytest.raises(cm.SubscriptionError, match="no subscription 2"):
        matcher.explain({"age": 1}, 2)
    with pytest.raises(cm.SubscriptionError, match="no subscription 'x'"):
        matcher.explain({"age": 1}, "x")
    with pytest.raises(cm.EventError, match="not 3"):
        matcher.explain(EVENTS, 1)
    with pytest.raises(cm.EventError, match="key 'agee', which the schema has not: did you mean 'age'\\?$"):
        matcher.explain({"agee": 1}, 1)
    with pytest.raises(cm.EventError, match="'x' is not: a whole number is needed"):
        matcher.explain({"age": "x"}, 1)


def test_stats_count_every_byte_once() -> None:
    stats = cm.Matcher.build({i: f"age = {i}" for i in range(100)}, SCHEMA).stats()
    assert stats["bytes"] == sum(stats["arrays"].values())
    assert stats["index"] == "scan"
    assert "lowest estimated" in stats["reason"]
    assert stats["predicates"] == 100


def test_counters_show_early_exit() -> None:
    matcher = cm.Matcher.build({i: f"age = {i} AND city <> 'x'" for i in range(1000)}, SCHEMA, index="scan")
    counters = matcher.counters(EVENTS)
    assert counters["conjunctions"] == 3000
    assert counters["candidates"] == 1  # two predicates are tested first, the equality before the other
    assert counters["matches"] == 1


def test_a_batch_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places of entries are int32, and two thousand million entries take too long for a test."""
    monkeypatch.setattr(work, "ENTRIES_MOST", 20)
    matcher = cm.Matcher.build({1: "array_contains(tags, 3)"}, {"tags": pa.list_(pa.int64())})
    events = pa.table({"tags": [[1, 2, 3]] * 10})
    with pytest.raises(cm.EventError, match=r"10 rows of events have 30 values, of which 20 .*Options\(batch_rows"):
        matcher.count(events)
    matcher.options = cm.Options(batch_rows=5)
    assert matcher.count(events).tolist() == [1] * 10


def test_columns_that_a_call_needs() -> None:
    matcher = cm.Matcher.build({1: "a = 1 AND b < 2"}, {"a": "int64", "b": "int64", "c": "int64"})
    assert matcher.columns_with() == matcher.columns_with(k=3) == matcher.columns
    for arguments, columns in (
        ({}, "a b"),
        ({"ranges": {"b": ("low", "high")}}, "a high low"),
        ({"event_weights": {"a": 0.5}, "k": 3}, "a b"),
        ({"event_weights": "weights", "k": 3}, "a b weights"),
        ({"event_weights": {"a": "urgency", "b": "a"}, "k": 3}, "a b urgency"),
        ({"event_weights": "weights", "k": 3, "score": "sum"}, "a b"),
    ):
        assert sorted(matcher.columns_with(**arguments)) == columns.split()
    with pytest.raises(cm.OptionError, match="event_weights= is for the best matches: give k, too"):
        matcher.columns_with(event_weights="weights")
    with pytest.raises(cm.OptionError, match="score= is for the best matches: give k, too"):
        matcher.columns_with(score="sum")
    with pytest.raises(cm.OptionError, match="k=0"):
        matcher.columns_with(k=0)
