"""Texts that are read piece by piece say what they say when they are read together."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from clauses import EVENTS, SCHEMA, TAKEN

import colmatch as cm
from colmatch.given.session import ZONE
from colmatch.lowering.lower import Lowering
from colmatch.subscriptions import intake

NUMBERS = [f"a = {i} OR b > {i % 3} AND price < {i}.5" for i in range(-5, 15)] + ["a IN (1, 2)", "a IS NULL", "TRUE"]


@pytest.fixture(params=["numbers", "strings later", "strings first", "all"])
def texts(request: Any) -> list[str]:
    strings = ["name = 'ab'", "name LIKE 'a%'", "name IN ('b', 'Ab') AND a = 5", "name > 'a' OR m['k'] = 3"]
    given = {"numbers": NUMBERS, "strings later": NUMBERS + strings, "strings first": strings + NUMBERS}
    return given.get(request.param, sorted([clause.text for clause in TAKEN], key=lambda text: "name" not in text))


@pytest.mark.parametrize("pieces", [1, 7])
def test_matches_are_the_same(texts: list[str], pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": list(range(len(texts))), "expression": texts})
    want = cm.Matcher.build(dict(enumerate(texts)), SCHEMA, "scan")
    flushed = []
    flush = Lowering.flush
    monkeypatch.setattr(Lowering, "flush", lambda self: flushed.append(1) or flush(self))
    monkeypatch.setattr(intake, "SINGLE_PIECE", pieces)
    monkeypatch.setattr(intake, "PIECE", pieces)
    monkeypatch.setattr(intake, "FORMS_KEPT", 3)
    found = cm.Matcher.build(table, SCHEMA, "scan")
    assert found.match(EVENTS).equals(want.match(EVENTS))
    assert (found.spark_settings.get(ZONE) is None) == (want.spark_settings.get(ZONE) is None)
    assert (len(flushed) > 2) == ("name" not in texts[0])  # strings need to be in one piece


@pytest.mark.parametrize("pieces", [2, 100])
def test_what_is_rejected_for_its_priority(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "SINGLE_PIECE", pieces)
    monkeypatch.setattr(intake, "PIECE", pieces)
    wrong = {1, 8, 9}
    priority = [float("nan") if i in wrong else 1.0 for i in range(12)]
    table = pa.table({"id": range(12), "expression": [f"a = {i}" for i in range(12)], "priority": priority})
    matcher = cm.Matcher.build(table, {"a": "int64"}, "scan", errors="collect")
    found = matcher.match_lists(pa.table({"a": range(12)})).to_pylist()
    assert found == [[] if i in wrong else [i] for i in range(12)]


@pytest.mark.parametrize("order", [1, -1])
def test_weights_of_some_pieces(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "SINGLE_PIECE", 3)
    monkeypatch.setattr(intake, "PIECE", 3)
    a = cm.col("a")
    plain, weighted = {i: (a >= i) & (a < 20) for i in range(7)}, {10 + i: (a >= i).weight(2.0 + i) for i in range(7)}
    pairs = [*plain.items(), *weighted.items()][::order]
    best = cm.Matcher.build(pairs, {"a": "int64"}, "scan").match_topk(pa.table({"a": [3, 30]}), 20, "sum")
    want = {(0, i): 0.0 for i in range(4)} | {(e, 10 + i): 2.0 + i for e in (0, 1) for i in range(4 if e == 0 else 7)}
    assert {(row["event"], row["subscription"]): row["score"] for row in best.to_pylist()} == want


def test_recurring_forms_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "SINGLE_PIECE", 5)
    monkeypatch.setattr(intake, "PIECE", 5)
    monkeypatch.setattr(intake, "FORMS_KEPT", 8)
    made, compiler = [], intake._compiler_of
    monkeypatch.setattr(intake, "_compiler_of", lambda language: made.append(1) or compiler(language))
    cm.Matcher.build({i: f"a {'<>='[i % 3]} {i} OR b = 1" for i in range(100)}, SCHEMA)
    assert len(made) == 1
    cm.Matcher.build({i: " AND ".join(f"a > {i}" for _ in range(i % 12 + 1)) for i in range(100)}, SCHEMA)
    assert len(made) > 3


def test_errors_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "SINGLE_PIECE", 2)
    monkeypatch.setattr(intake, "PIECE", 2)
    table = pa.table(
        {"id": list("abcdefg"), "expression": ["a = 1", "a = 2", "b = 1", "a = 'x'", None, "a = 3", "nope = 1"]}
    )
    with pytest.raises(cm.ExpressionError) as raised:
        cm.Matcher.build(table, SCHEMA)
    assert (raised.value.id, raised.value.line, raised.value.column) == ("d", 1, 5)
    matcher = cm.Matcher.build(table, SCHEMA, errors="collect")
    assert [one.id for one in matcher.rejected] == ["d", "e", "g"] and matcher.ids.to_pylist() == ["a", "b", "c", "f"]
    assert matcher.match_lists(EVENTS).to_pylist()[6] == matcher.match_one({**EVENTS.slice(6, 1).to_pylist()[0]})
