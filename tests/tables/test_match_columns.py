"""A matcher as a function of a struct column, without an engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind
from cut_off import cut_off
from engines import COLUMNS, EVENTS, RULES, SCHEMA, best_of, matcher_of

import colmatch as cm
from colmatch.tables.columns import function_name, match_column


def made(matcher: cm.Matcher, mode: Any = "lists", **said: Any) -> Any:
    return match_column(matcher, mode, hint="struct(...)", **said)


STRUCTS = EVENTS.to_struct_array()


@every_kind
def test_it_gives_what_the_matcher_gives(kind: str) -> None:
    for ids in ("string", "number"):
        matcher = matcher_of(ids, index=kind)
        for structs in (STRUCTS, STRUCTS.combine_chunks(), STRUCTS.slice(0, 0)):
            events = EVENTS.slice(0, len(structs))
            column = made(matcher)
            assert column(structs).to_pylist() == matcher.match_lists(events).to_pylist()
            assert column.array(structs).type == column.type
            assert made(matcher, "count")(structs).to_pylist() == matcher.count(events).tolist()
            assert made(matcher, "exists")(structs).to_pylist() == matcher.exists(events).tolist()
            best = made(matcher, "topk", k=2)
            assert best(structs).to_pylist() == best_of(matcher, events, 2)
            assert best.array(structs).type == best.type


def test_a_struct_that_is_null_is_an_event_of_nulls() -> None:
    matcher = matcher_of("string")
    for structs in (pa.array([None, None], pa.struct(list(SCHEMA))), pa.nulls(2, pa.struct(list(SCHEMA)))):
        assert made(matcher)(structs).to_pylist() == [["null"], ["null"]]


def test_slices_begin_where_they_begin() -> None:
    matcher = matcher_of("number")
    whole = STRUCTS.combine_chunks()
    for mode, more in (("lists", {}), ("count", {}), ("topk", {"k": 1})):
        column = made(matcher, mode, **more)
        assert column(whole.slice(2, 2)).to_pylist() == column(whole).to_pylist()[2:4]


def test_among_some_and_ranges() -> None:
    matcher = matcher_of("string")
    assert made(matcher, tags=["mine"])(STRUCTS).to_pylist() == matcher.match_lists(EVENTS, tags=["mine"]).to_pylist()
    some = made(matcher, "count", ids=["beach", "nobody"])
    assert some(STRUCTS).to_pylist() == matcher.count(EVENTS, ids=["beach"]).tolist()
    ranges = {"price": ("low", "high")}
    bounds = {"low": "double", "high": "double", "price": "double"}
    wide = cm.Matcher.build({1: "price < 100", 2: "price > 1000"}, bounds)
    hotels = pa.table({"low": [80.0, 200.0], "high": [140.0, 300.0]})
    column = made(wide, ranges=ranges)
    assert column(hotels.to_struct_array()).to_pylist() == [[1], []]
    assert column.events_of(hotels.schema) == ["low", "high"]
    best = made(wide, "topk", k=1, ranges=ranges)(hotels.to_struct_array())
    assert best.to_pylist() == [[{"subscription": 1, "score": 0.0}], []]


def test_updates_are_seen_by_the_next_batch() -> None:
    matcher = matcher_of("string")
    column, mine = made(matcher), made(matcher, tags=["mine"])
    before = column(STRUCTS).to_pylist()
    matcher.insert({"dear": "price > 900"}, tags={"dear": ["mine"]})
    assert column(STRUCTS).to_pylist() == [*before[:-1], [*before[-1], "dear"]]
    assert mine(STRUCTS).to_pylist()[-1] == ["dear"]
    matcher.delete([*RULES, "dear"])
    assert column(STRUCTS).to_pylist() == [[]] * len(EVENTS)
    assert made(matcher, "topk", k=3)(STRUCTS).to_pylist() == [[]] * len(EVENTS)


def test_an_empty_matcher_that_gets_ids_of_another_type() -> None:
    matcher = cm.Matcher.build({}, SCHEMA)
    column = made(matcher)
    assert column.type == pa.list_(pa.int64())
    matcher.insert({"cheap": RULES["cheap"]})
    assert column(STRUCTS.slice(1, 1)).type == column.type
    with pytest.raises(cm.OptionError, match="the matcher was empty when this function was made"):
        column(STRUCTS)
    assert made(matcher)(STRUCTS).to_pylist() == matcher.match_lists(EVENTS).to_pylist()


def test_columns_are_those_that_expressions_use() -> None:
    matcher = matcher_of("string")
    assert sorted(made(matcher).events_of(SCHEMA)) == sorted(COLUMNS)
    none = cm.Matcher.build({1: "TRUE"}, SCHEMA)
    assert made(none).events_of(SCHEMA) == ["price"]
    weighed = made(matcher, "topk", k=1, event_weights="weights")
    with pytest.raises(cm.EventError, match="'weights'"):
        weighed.events_of(SCHEMA)


def test_errors_say_what_is_wrong() -> None:
    matcher = matcher_of("string")
    misspelt = EVENTS.rename_columns(["prize", *SCHEMA.names[1:]])
    with pytest.raises(cm.EventError, match="no column 'price', which the expressions use: did you mean 'prize'"):
        made(matcher)(misspelt.to_struct_array())
    with pytest.raises(cm.EventError, match="no column 'price', which the expressions use: did you mean 'prize'"):
        made(matcher).events_of(misspelt.schema)
    with pytest.raises(cm.EventError, match=r"a column is int64, a struct .* is needed: struct\(\.\.\.\)"):
        made(matcher)(pa.array([1]))
    with pytest.raises(cm.EventError, match="a column is list, a struct"):
        made(matcher)([{}])
    with pytest.raises(cm.EventError, match="no valid Arrow data"):
        made(matcher)(cut_off("user", pa.array([1.0, 2.0]), 1).column(0))
    whole = cm.Matcher.build({1: "n = 1"}, {"n": "int64"})
    column = made(whole)
    with pytest.raises(cm.EventError, match=r"^column 'n': 1.5 is double, .* \(row 1 of a batch of 2\)$"):
        column(pa.table({"n": [1.0, 1.5]}).to_struct_array())


@pytest.mark.parametrize(
    ("mode", "said", "why"),
    [
        ("pairs", {}, "mode='pairs'"),
        ("topk", {}, 'mode="topk" with k'),
        ("lists", {"k": 3}, 'mode="topk" with k'),
        ("count", {"score": "sum"}, "score='sum'"),
        ("lists", {"event_weights": "weights"}, "event_weights='weights'"),
        ("topk", {"k": 0}, "k=0"),
        ("topk", {"k": 1, "score": "most"}, "score='most'"),
        ("lists", {"ranges": {"prize": ("a", "b")}}, "prize"),
        ("lists", {"tags": "mine"}, "tags"),
        ("lists", {"now": "noon"}, "now="),
    ],
    ids=[
        "mode",
        "no k",
        "k for lists",
        "score of counts",
        "weights of lists",
        "k of 0",
        "score",
        "ranges",
        "tags",
        "now",
    ],
)
def test_arguments_are_checked_at_once(mode: str, said: dict[str, Any], why: str) -> None:
    with pytest.raises(cm.OptionError, match=why):
        made(matcher_of("string"), mode, **said)


def test_a_matcher_is_needed() -> None:
    with pytest.raises(cm.OptionError, match="matcher='alerts.cm': a Matcher is needed"):
        match_column("alerts.cm", hint="")  # type: ignore[arg-type]


def test_names_of_functions() -> None:
    assert function_name("Alerts", ["abs"]) == "alerts"
    assert function_name("ÄRGER") == "Ärger"  # engines fold letters of ASCII alone
    for name, why in (("a b", "the name of a function"), ("", "the name"), (3, "the name"), ("ABS", "already")):
        with pytest.raises(cm.OptionError, match=why):
            function_name(name, ["abs"])
