"""Conditions on elements that cannot be computed in ANSI mode, beside plain Python."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind

import colmatch as cm

SCHEMA = pa.schema({"l": pa.list_(pa.struct({"a": pa.int64(), "b": pa.int64()})), "k": pa.string()})
ANSI = cm.Options(ansi=True)
Known = dict[int, float]  # place of an element -> its quotient, where it fails
Bounds = tuple[bool, bool]  # whether something may hold, and whether it must


def drawn_condition(rng: Random, depth: int = 2) -> Any:
    kind = rng.choice(["divided", "divided", "and", "or", "not"] if depth else ["divided", "divided", "a", "b"])
    if kind in ("and", "or"):
        return kind, drawn_condition(rng, depth - 1), drawn_condition(rng, depth - 1)
    if kind == "not":
        return kind, drawn_condition(rng, depth - 1)
    return kind, rng.choice([0, 1, 3])


def drawn_rule(rng: Random, depth: int = 2) -> Any:
    kind = rng.choice(["list", "list", "and", "or", "not"] if depth else ["list", "list", "list", "k"])
    if kind in ("and", "or"):
        return kind, drawn_rule(rng, depth - 1), drawn_rule(rng, depth - 1)
    if kind == "not":
        return kind, drawn_rule(rng, depth - 1)
    return (kind, rng.choice([0, 0, 1, 2, 3]), drawn_condition(rng)) if kind == "list" else (kind,)


def text_of(node: Any) -> str:
    kind, *parts = node
    if kind in ("and", "or"):
        return f"({text_of(parts[0])} {kind.upper()} {text_of(parts[1])})"
    if kind == "not":
        return f"NOT ({text_of(parts[0])})"
    if kind == "list":
        least, condition = parts[0], text_of(parts[1])
        return f"size(filter(l, x -> {condition})) >= {least}" if least else f"exists(l, x -> {condition})"
    return {"divided": "x.a / x.b > {}", "a": "x.a > {}", "b": "x.b <> {}", "k": "k = 'y'"}[kind].format(*parts)


def bounds(node: Any, row: dict[str, Any], wanted: bool, known: Known, place: Any = None) -> Bounds:
    """Says whether a condition may have the wanted truth, and whether it must.

    Each part that fails has a truth of its own, unless its quotient is ``known``.
    """
    kind, *parts = node
    if kind == "not":
        return bounds(parts[0], row, not wanted, known, place)
    if kind in ("and", "or"):
        both, of = [bounds(part, row, wanted, known, place) for part in parts], any if (kind == "or") is wanted else all
        return of(may for may, _ in both), of(must for _, must in both)
    if kind == "list":
        least, condition = parts
        if row["l"] is None:
            return False, False
        each = [bounds(condition, element, True, known, i) for i, element in enumerate(row["l"])]
        counts = [sum(found[i] for found in each) for i in (0, 1)]
        held = [count >= max(least, 1) for count in counts]
        return (held[0], held[1]) if wanted else (not held[1], not held[0])
    if kind == "divided" and not row["b"]:
        if place not in known:
            return True, False
        row = {"a": known[place], "b": 1}
    truth = {
        "divided": lambda: row["a"] / row["b"] > parts[0],
        "a": lambda: row["a"] > parts[0],
        "b": lambda: row["b"] != parts[0],
        "k": lambda: row["k"] == "y",
    }[kind]()
    return truth is wanted, truth is wanted


def is_decided(rule: Any, row: dict[str, Any]) -> bool:
    """Says whether the match is the same whatever the quotients are that fail."""
    places = [i for i, element in enumerate(row["l"] or []) if not element["b"]]
    each = product((-1.0, 0.5, 2.0, 4.0), repeat=len(places))
    return len({bounds(rule, row, True, dict(zip(places, values, strict=True))) for values in each}) == 1


def drawn_events(rng: Random, count: int) -> list[dict[str, Any]]:
    lists = [
        [{"a": rng.randint(0, 4), "b": rng.choice([0, 1, 2])} for _ in range(rng.randint(0, 3))] for _ in range(count)
    ]
    return [{"l": rng.choice([elements] * 9 + [None]), "k": rng.choice("xy")} for elements in lists]


def test_a_match_fails_where_it_depends_on_a_condition_that_fails() -> None:
    rng, raised, decided = Random(1), 0, 0
    events = drawn_events(rng, 60)
    table = pa.Table.from_pylist(events, SCHEMA)
    for _ in range(60):
        rule = drawn_rule(rng)
        matcher = cm.Matcher.build({7: text_of(rule)}, SCHEMA, options=ANSI)
        each = [bounds(rule, event, True, {}) for event in events]
        fine = [i for i, (may, must) in enumerate(each) if may == must]
        assert matcher.exists(table.take(fine)).tolist() == [each[i][0] for i in fine], text_of(rule)
        for i in rng.sample(sorted({*range(len(events))} - {*fine}), min(4, len(events) - len(fine))):
            said = None
            try:
                matcher.exists(table.slice(i, 1))
            except cm.EventError as error:
                said = str(error)
            if said is None:
                assert is_decided(rule, events[i]), (text_of(rule), events[i])
                decided += 1
            else:
                assert said.startswith("event 0: x.a / x.b cannot be computed: division by zero, for an element of 'l'")
                assert said.endswith("(subscription 7)")
                assert matcher.explain(events[i], 7).matched is False
                raised += 1
    assert raised > 90 and raised > 5 * decided


@every_kind()
def test_subscriptions_of_every_kind_are_in_doubt_by_themselves(kind: Any) -> None:
    """Those over one list are literals of one attribute."""
    rng = Random(2)
    events, rules = drawn_events(rng, 40), {i: drawn_rule(rng) for i in range(60)}
    table = pa.Table.from_pylist(events, SCHEMA)
    matcher = cm.Matcher.build({i: text_of(rules[i]) for i in range(50)}, SCHEMA, options=ANSI, index=kind)
    matcher.insert({i: text_of(rules[i]) for i in range(50, 60)})
    for row, event in enumerate(events):
        each = {i: bounds(rule, event, True, {}) for i, rule in rules.items()}
        fine = [i for i, (may, must) in each.items() if may == must]
        assert sorted(matcher.match_lists(table.slice(row, 1), ids=fine)[0].as_py()) == [i for i in fine if each[i][0]]
    with pytest.raises(cm.EventError, match=r"division by zero, for an element of 'l' \(subscription"):
        matcher.match(table)


def test_what_is_deleted_is_in_no_doubt() -> None:
    rules = {"bad": "exists(l, x -> x.a / x.b > 5)", "good": "exists(l, x -> x.a > 1)"}
    events = pa.Table.from_pylist([{"l": [{"a": 3, "b": 0}]}], SCHEMA)
    matcher = cm.Matcher.build(rules, SCHEMA, options=ANSI)
    with pytest.raises(cm.EventError, match="'bad'"):
        matcher.match(events)
    matcher.delete(["bad"])
    assert matcher.match_lists(events).to_pylist() == [["good"]]


def test_more_elements_than_a_batch_has_rows() -> None:
    fine, wrong = [{"a": 1, "b": 2}], [{"a": 1, "b": 0}]
    events = pa.Table.from_pylist([{"l": fine * 70_000}, {"l": wrong, "k": "x"}, {"l": fine * 70_000 + wrong}], SCHEMA)
    matcher = cm.Matcher.build({7: "k = 'y' OR exists(l, x -> x.a / x.b > 0.6)"}, SCHEMA, options=ANSI)
    for first, rows in ((0, 3), (2, 1)):
        with pytest.raises(cm.EventError, match=rf"^event {1 if rows > 1 else 0}: "):
            matcher.match(events.slice(first, rows))
    assert matcher.exists(events.slice(0, 1)).tolist() == [False]


def test_there_is_room_for_so_many_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond, they are an error; those of all parts of a batch are counted."""
    rules = {i: f"k = 'q' AND exists(l, x -> x.a / x.b > {i})" for i in range(20)}
    matcher = cm.Matcher.build(rules, SCHEMA, options=ANSI)
    events = pa.Table.from_pylist(
        [{"l": [{"a": 1, "b": 1}]}, *[{"l": [{"a": 1, "b": 0}] * 5, "k": "x"}] * 2_000], SCHEMA
    )
    monkeypatch.setattr("colmatch.matching.worker.DOUBTS_MOST", 20 * 5 * 2_000)
    assert matcher.count(events).sum() == 0
    monkeypatch.setattr("colmatch.matching.worker.DOUBTS_MOST", 20 * 5 * 2_000 - 1)
    with pytest.raises(cm.EventError, match=r"event \d+: x.a / x.b cannot be computed: .*; more than 199,999 .*guard"):
        matcher.count(events)


def test_lists_within_lists() -> None:
    inner = pa.list_(pa.struct({"b": pa.int64()}))
    schema = pa.schema({"l": pa.list_(pa.struct({"a": pa.int64(), "n": inner})), "k": pa.string()})
    rules = {
        "deep": "exists(l, x -> x.a > 2 AND exists(x.n, y -> 1 / y.b > 0.4))",
        "plain": "exists(l, x -> x.a > 2 AND exists(x.n, y -> y.b > 1))",
    }
    matcher = cm.Matcher.build(rules, schema, options=ANSI)
    event: dict[str, Any] = {"l": [{"a": 1, "n": [{"b": 0}]}, {"a": 3, "n": [{"b": 2}]}]}
    assert matcher.match_one(event) == ["deep", "plain"]
    event["l"][0]["a"] = 3
    assert matcher.match_one(event) == ["deep", "plain"]
    event["l"][1]["n"] = [{"b": 5}, {"b": 0}]
    said = r"^event 0: 1 / y\.b cannot be computed: .*, for an element of 'x\.n', for an element of 'l' \(subscription 'deep'\)"
    with pytest.raises(cm.EventError, match=said):
        matcher.match_one(event)
    assert matcher.match_lists(pa.Table.from_pylist([event], schema), ids=["plain"]).to_pylist() == [["plain"]]
