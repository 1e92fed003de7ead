"""Conditions on elements of lists: every kind finds what plain Python computes."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind
from element_rules import ELEMENT, SCHEMA, Drawer, drawn_events

import colmatch as cm


def expected(rules: dict[int, tuple[str, Any]], events: list[dict[str, Any]]) -> list[list[int]]:
    return [[id for id, (_, test) in rules.items() if test(event) is True] for event in events]


def found(matcher: cm.Matcher, events: list[dict[str, Any]]) -> list[list[int]]:
    return [sorted(ids) for ids in matcher.match_lists(pa.Table.from_pylist(events, SCHEMA)).to_pylist()]


def drawn(seed: object, rules: int, events: int) -> tuple[dict[int, tuple[str, Any]], list[dict[str, Any]]]:
    drawer = Drawer(Random(str(seed)))
    return {i: drawer.rule() for i in range(rules)}, drawn_events(drawer.rng, events)


@every_kind
def test_kinds_find_what_python_computes(kind: str, tmp_path: Path) -> None:
    rules, events = drawn(kind, 60, 30)
    first = {id: text for id, (text, _) in rules.items() if id < 40}
    matcher = cm.Matcher.build(first, SCHEMA, index=kind)
    assert found(matcher, events) == expected({id: rules[id] for id in first}, events)
    matcher.insert({id: text for id, (text, _) in rules.items() if id >= 40})
    assert found(matcher, events) == expected(rules, events)
    matcher.delete(list(range(0, 60, 3)))
    left = {id: rule for id, rule in rules.items() if id % 3}
    assert found(matcher, events) == expected(left, events)
    matcher.save(tmp_path / "index.cm")
    reopened = cm.Matcher.open(tmp_path / "index.cm")
    assert found(reopened, events) == expected(left, events)
    assert [sorted(reopened.match_one(event)) for event in events] == expected(left, events)


def test_a_file_of_pages(tmp_path: Path) -> None:
    rules, events = drawn("pages", 60, 30)
    path = tmp_path / "some.pages"
    texts = {id: text for id, (text, _) in rules.items()}
    matcher = cm.Matcher.build({id: texts[id] for id in range(40)}, SCHEMA, index=cm.index("pbtree", path=str(path)))
    matcher.insert({id: texts[id] for id in range(40, 60)})
    matcher.delete([0, 59])
    left = {id: rules[id] for id in range(1, 59)}
    assert found(matcher, events) == expected(left, events)
    assert found(cm.Matcher.open(path), events) == expected(left, events)


@pytest.mark.parametrize("seed", range(4))
def test_random_rules(seed: int) -> None:
    rules, events = drawn(seed, 200, 60)
    matcher = cm.Matcher.build({id: text for id, (text, _) in rules.items()}, SCHEMA)
    assert found(matcher, events) == expected(rules, events)
    assert matcher.count(pa.Table.from_pylist(events, SCHEMA)).tolist() == [len(ids) for ids in expected(rules, events)]
    assert found(pickle.loads(pickle.dumps(matcher)), events) == expected(rules, events)


def test_explanations_have_the_truth_of_each_part() -> None:
    rules, events = drawn("explained", 60, 12)
    matcher = cm.Matcher.build({id: text for id, (text, _) in rules.items()}, SCHEMA)
    for id, (_, test) in rules.items():
        for event in events:
            explained = matcher.explain(event, id)
            assert explained.matched == (test(event) is True) == (explained.tree.truth is True), (rules[id][0], event)


@pytest.mark.parametrize(
    ("text", "truth", "value"),
    [
        ("exists(l, x -> x.a > 1)", True, {"l[1]": {"a": 2}}),
        ("NOT exists(l, x -> x.a > 1)", False, {"l[1]": {"a": 2}}),
        ("exists(l, x -> x.a > 5)", None, None),
        ("exists(l, x -> o < x.a)", None, None),
        ("size(filter(l, x -> x.a > 5)) >= 1", False, None),
        ("size(filter(l, x -> x.a > 0)) >= 2", True, {"l[0]": {"a": 1}, "l[1]": {"a": 2}}),
        ("size(filter(l, x -> x.a > 0)) >= 3", False, {"l[0]": {"a": 1}, "l[1]": {"a": 2}}),
    ],
)
def test_an_explanation_names_the_elements(text: str, truth: bool | None, value: Any) -> None:
    event = {"l": [{"a": 1}, {"a": 2}, {"a": None}], "o": 5}
    tree = cm.Matcher.build({0: text}, SCHEMA).explain(event, 0).tree
    assert (tree.text.replace("(o < x.a)", "o < x.a"), tree.truth) == (text, truth)
    if value is not None:
        assert {name: {"a": element["a"]} for name, element in tree.value.items()} == value


LAYOUTS = {
    "large": pa.large_list(ELEMENT),
    "fixed": pa.list_(ELEMENT, 2),
    "view": pa.list_view(ELEMENT),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lists_of_all_layouts(layout: str) -> None:
    elements = [[{"a": 1, "s": "x"}, {"a": 5, "s": "y"}], None, [{"a": 9, "s": None}, None]]
    events = pa.table({"l": pa.array(elements, LAYOUTS[layout])})
    rules = {
        0: "exists(l, x -> x.a > 4)",
        1: "forall(l, x -> x.s = 'y')",
        2: "NOT exists(l, x -> x.a > 6)",
        3: "l IS NULL",
    }
    matcher = cm.Matcher.build(rules, events.schema)
    assert matcher.match_lists(events).to_pylist() == [[0, 2], [3], [0]]
    assert matcher.match_lists(events.slice(1)).to_pylist() == [[3], [0]]
    assert matcher.match_lists(events.slice(2, 0)).to_pylist() == []


def test_columns_of_the_event_within_a_condition() -> None:
    schema = pa.schema(
        {"l": pa.list_(pa.struct({"k": pa.string(), "v": pa.int64()})), "u": pa.struct({"k": pa.string(), "z": pa.int64()}),
         "m": pa.map_(pa.string(), pa.int64()), "x": pa.int64(), "tags": pa.list_(pa.string())}
    )  # fmt: skip
    event = {
        "l": [{"k": "a", "v": 3}, {"k": "b", "v": 8}],
        "u": {"k": "b", "z": 7},
        "m": {"q": 8},
        "x": 100,
        "tags": ["t"],
    }
    rules = {
        "struct": "exists(l, e -> e.k = u.k AND e.v > U.Z)",
        "map": "exists(l, e -> e.v = m['q'])",
        "entry": "exists(l, e -> e.v = 8 AND m.q = 8)",
        "hidden": "exists(l, x -> x.v < 10)",  # x is the element, and not the column
        "list": "exists(l, e -> array_contains(tags, 't') AND e.k = 'a')",
        "no": "exists(l, e -> e.k = u.k AND e.v < u.z)",
    }
    matcher = cm.Matcher.build(rules, schema)
    assert sorted(matcher.match_one(event)) == ["entry", "hidden", "list", "map", "struct"]
    assert set(matcher.columns) == {"l", "u", "m", "tags"}
    with pytest.raises(cm.EventError, match="have no column 'u.k'"):
        matcher.match(pa.Table.from_pylist([event], schema).drop_columns("u"))


def test_conditions_read_the_time_of_the_call() -> None:
    inner = pa.struct({"t": pa.timestamp("us", "UTC")})
    element = pa.struct({"sku": pa.string(), "at": pa.timestamp("us", "UTC"), "parts": pa.list_(inner)})
    rules = {
        "day": "exists(items, x -> x.at > now() - INTERVAL 1 DAY)",
        "word": "exists(items, x -> x.at > current_timestamp - INTERVAL 2 HOURS AND x.sku = 'a')",
        "deep": "exists(items, x -> exists(x.parts, p -> p.t > now()))",
        "past": "size(filter(items, x -> x.at <= now())) >= 1",
    }
    matcher = cm.Matcher.build(rules, pa.schema({"items": pa.list_(element)}))
    noon = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
    event = {"items": [{"sku": "a", "at": noon - dt.timedelta(hours=3), "parts": [{"t": noon}]}]}
    at = {0: ["day", "past"], -2: ["day", "deep", "past", "word"], 72: ["past"], -5: ["day", "deep", "word"]}
    alone = {id: cm.Matcher.build({id: rule}, matcher.schema) for id, rule in rules.items()}
    for hours, expected_ids in at.items():
        now = noon + dt.timedelta(hours=hours)
        assert sorted(matcher.match_one(event, now=now)) == expected_ids
        assert [id for id in sorted(rules) if alone[id].match_one(event, now=now)] == expected_ids
        assert [id for id in sorted(rules) if matcher.explain(event, id, now=now).matched] == expected_ids
    assert matcher.columns == ["items"]
    assert matcher.match_one(event) == ["past"]


def test_a_condition_that_fails_names_the_event() -> None:
    schema = pa.schema({"l": pa.list_(pa.struct({"a": pa.int64(), "b": pa.int64()}))})
    events = pa.Table.from_pylist([{"l": []}, {"l": [{"a": 1, "b": 1}, {"a": 1, "b": 0}]}], schema)
    matcher = cm.Matcher.build({0: "exists(l, x -> x.a / x.b > 5)"}, schema, options=cm.Options(ansi=True))
    with pytest.raises(cm.EventError, match=r"^event 1: x\.a / x\.b cannot be .*, for an element of 'l'"):
        matcher.match(events)
    wrong = pa.table({"l": pa.array([[{"a": "x"}]])})
    with pytest.raises(cm.EventError, match="cast it"):
        cm.Matcher.build({0: "exists(l, x -> x.a > 5)"}, schema).match(wrong)


def test_threads_share_the_conditions() -> None:
    rules, events = drawn("threads", 100, 50)
    matcher = cm.Matcher.build({id: text for id, (text, _) in rules.items()}, SCHEMA)
    wrong: list[int] = []

    def run() -> None:
        wrong.extend(i for i in range(5) if found(matcher, events) != expected(rules, events))

    threads = [Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_absent_is_false() -> None:
    rules = {"some": "exists(l, x -> x.a > 1)", "none": "NOT exists(l, x -> x.a > 1)", "all": "forall(l, x -> x.a > 1)"}
    matcher = cm.Matcher.build(rules, SCHEMA, missing="false")
    lists: list[Any] = [None, [], [{"a": None}], [{"a": 2}, {"a": None}], [{"a": 2}]]
    assert [sorted(matcher.match_one({"l": value})) for value in lists] == [
        ["none"], ["all", "none"], ["none"], ["some"], ["all", "some"],
    ]  # fmt: skip
    counted = {
        0: "size(filter(l, x -> x.a > 1)) < 1",
        1: "size(filter(l, x -> x.a > 1)) >= 0",
        2: "size(filter(l, x -> x.a > 1)) = 0",
    }
    matcher = cm.Matcher.build(counted, SCHEMA, missing="false")
    assert [sorted(matcher.match_one({"l": value})) for value in lists] == [[], [0, 1, 2], [0, 1, 2], [1], [1]]


def test_texts_that_differ_in_literals_share_a_form() -> None:
    many = {i: f"exists(l, x -> x.a = {i} AND x.s IN ('a', 'b{i}') AND x.p > -{i}.5) AND o = {i}" for i in range(300)}
    matcher = cm.Matcher.build(many, SCHEMA)
    event = {"l": [{"a": 7, "s": "b7", "p": 0.0}, {"a": 8, "s": "a", "p": -8.5}, {"a": 9, "s": "c", "p": 0.0}]}
    assert [matcher.match_one(event | {"o": o}) for o in (7, 8, 9)] == [[7], [], []]


def test_a_freed_attribute_leaves_no_conditions() -> None:
    schema = pa.schema({"l": pa.list_(pa.struct({"a": pa.int64()})), "m": pa.list_(pa.struct({"b": pa.int64()}))})
    matcher = cm.Matcher.build({0: "exists(l, x -> x.a > 1)", 1: "exists(l, x -> x.a > 2)"}, schema)
    event = {"l": [{"a": 5}], "m": [{"b": 5}]}
    assert sorted(matcher.match_one(event)) == [0, 1]
    matcher.delete([0, 1])
    matcher.compact()
    matcher.insert({2: "exists(m, x -> x.b > 1)"})
    assert matcher.match_one(event) == [2]


def test_top_k_and_reasons_and_hits() -> None:
    rules = {0: "exists(l, x -> x.a > 1)", 1: "exists(l, x -> x.a > 100)"}
    matcher = cm.Matcher.build(rules, SCHEMA)
    events = pa.Table.from_pylist([{"l": [{"a": 2}, {"a": 3}]}, {"l": None}], SCHEMA)
    assert matcher.hits(events).to_pylist() == [{"subscription": 0, "events": 1}]
    assert "exists(l, x" in str(matcher.reasons(events).to_pylist())
    assert matcher.match_topk(events, 1).num_rows == 1


def test_literals_of_conditions_are_checked_in_each_text() -> None:
    element = pa.struct({"d": pa.date32(), "s": pa.string(), "ok": pa.bool_(), "u": pa.uuid()})
    schema = pa.schema({"l": pa.list_(element)})
    texts = {1: "exists(l, x -> x.d > '2024-01-31')", 2: "exists(l, x -> x.d > '2024-02-31')"}
    texts |= {5: "exists(l, x -> x.ok = 'yes')", 6: "exists(l, x -> x.ok = 'maybe')"}
    texts |= {
        7: "exists(l, x -> x.u IN ('550e8400-e29b-41d4-a716-446655440000'))",
        8: "exists(l, x -> x.u IN ('nope'))",
    }
    texts |= {3: "exists(l, x -> x.s RLIKE 'a+')", 4: "exists(l, x -> x.s RLIKE '(a+')"}
    matcher = cm.Matcher.build(texts, schema, errors="collect")
    assert {one.id: one.position for one in matcher.rejected} == {2: (1, 22), 4: (1, 26), 6: (1, 23), 8: (1, 23)}
    assert sorted(matcher.ids.to_pylist()) == [1, 3, 5, 7]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("size(l.nope) > 1", "unknown attribute 'l.nope'"),
        ("l.nope IS NOT NULL", "unknown attribute 'l.nope'"),
        ("exists(l, x -> X.a = 1)", "unknown attribute 'X.a'"),
        ("exists(l, x -> x.A = 1)", "unknown attribute 'x.A'"),
    ],
)
def test_names_that_nothing_has(text: str, said: str) -> None:
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, cm.Schema(SCHEMA, case_sensitive=True))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exists(l, x -> x.a > 'b')", "element 'x.a' of l is int"),
        ("size(filter(names, n -> n > 5)) > 1", "element 'n' of names is string"),
        ("exists(names, n -> n)", "element 'n' of names is string"),
        ("forall(names, n -> n IN (5, 6))", "element 'n' of names is string"),
        ("exists(names, n -> id > 'b')", "column 'id' is int"),
        ("exists(deep, d -> exists(d.names, n -> n > 5))", "element 'n' of d.names is string"),
        ("exists(deep, d -> d.names > 5)", "element 'd.names' of deep is a list"),
    ],
)
def test_an_error_names_the_element(text: str, said: str) -> None:
    names = pa.list_(pa.string())
    schema = {
        "l": pa.list_(pa.struct({"a": pa.int64()})),
        "names": names,
        "id": pa.int64(),
        "deep": pa.list_(pa.struct({"names": names})),
    }
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, pa.schema(schema))


def test_units_of_time_are_no_columns() -> None:
    schema = pa.schema({"l": pa.list_(pa.struct({"at": pa.timestamp("us", "UTC")})), "ts": pa.timestamp("us", "UTC")})
    rules = {
        1: "exists(l, x -> timestampdiff(MINUTE, x.at, ts) < 10)",
        2: "exists(l, x -> timestampadd(HOUR, 2, x.at) < ts)",
        3: "exists(l, x -> date_diff(ts, x.at, DAY) = 0)",
    }
    ts = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
    event = {"ts": ts, "l": [{"at": ts - dt.timedelta(minutes=5)}]}
    assert cm.Matcher.build(rules, schema).match_one(event) == [1, 3]


@every_kind
def test_elements_that_are_structs_are_asked_for_null(kind: str) -> None:
    schema = cm.Schema({"items": "array<struct<sku: string, price: double>>"})
    one, empty = {"sku": "a", "price": 1.0}, {"sku": None, "price": None}
    rows = [[one], [None], [empty], [], None, [one, None]]
    rules = {
        1: "exists(items, x -> x IS NULL)",
        2: "forall(items, x -> x IS NOT NULL)",
        3: "size(filter(items, x -> x IS NULL)) = 1",
        4: "NOT exists(items, x -> x IS NULL)",
        5: "exists(items, x -> x IS NULL OR x.price > 0.5)",
    }
    matcher = cm.Matcher.build(rules, schema, index=kind)
    wanted = [[2, 4, 5], [1, 3, 5], [2, 4], [2, 4], [], [1, 3, 5]]
    events = pa.table({"items": pa.array(rows, schema.arrow.field(0).type)})
    assert [sorted(ids) for ids in matcher.match_lists(events).to_pylist()] == wanted
    assert [sorted(matcher.match_one({"items": row})) for row in rows] == wanted
