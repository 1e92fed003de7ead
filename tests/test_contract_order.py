"""Every kind gives the subscriptions of an event in the order of ``Matcher.ids``."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest
from contract import every_kind
from sizes import SMALL

import colmatch as cm
import colmatch.matching.worker
from colmatch.kernels.sink import PAIRS

SCHEMA = {"a": "int64", "b": "int64", "s": "string"}
COUNT = 40 if SMALL else 120
EVENTS = pa.table(
    {
        "a": [1, 2, None, 9, 5, 3, 7] * 20,
        "b": [2, 1, 2, None, 2, 3, 3] * 20,
        "s": ["x", "y", None, "x", "xy", "y", "z"] * 20,
    }
)


def a_text(rng: Random) -> str:
    return rng.choice(
        [
            f"a >= {rng.randrange(10)}",
            f"a <= {rng.randrange(10)} OR a IS NULL OR b = 2",  # several conjunctions, found more than once
            f"a IN ({rng.randrange(10)}, 5, 6) OR b = 2",
            f"(a > {rng.randrange(5)} OR b < 3) AND (b = 2 OR s >= 'x')",
            "s LIKE 'x%'",
            f"b <> {rng.randrange(4)}",
        ]
    )


def drawn(rng: Random, type: Any, low: int, count: int) -> dict[Any, str]:
    """Draws subscriptions, with ids in no order."""
    ids = list(range(low, low + count))
    rng.shuffle(ids)
    return {type(id): a_text(rng) for id in ids}


def checked(matcher: cm.Matcher, found: list[list[Any]]) -> list[list[Any]]:
    """Checks the order of the ids of each event; returns them."""
    place = {id: i for i, id in enumerate(matcher.ids.to_pylist())}
    for ids in found:
        places = [place[id] for id in ids]
        assert places == sorted(set(places))
    return found


def of_pairs(table: pa.Table, rows: int = EVENTS.num_rows) -> list[list[Any]]:
    found: list[list[Any]] = [[] for _ in range(rows)]
    for event, id in zip(*table.to_pydict().values(), strict=True):
        found[event].append(id)
    return found


@every_kind
@pytest.mark.parametrize("type", [int, str])
@pytest.mark.parametrize("batch_rows", [8192, 5])
def test_ids_of_an_event_are_in_the_order_of_all_ids(kind: str, type: Any, batch_rows: int) -> None:
    rng = Random(f"{kind} {type} {batch_rows}")
    given = drawn(rng, type, 0, COUNT)
    options = cm.Options(batch_rows=batch_rows, threads=2)
    of = cm.Matcher.build(given, SCHEMA, index=kind, options=options, tags={id: ["t"] for id in list(given)[::3]})
    assert of.ids.to_pylist() == list(given)
    checked(of, of.match_lists(EVENTS).to_pylist())
    of.insert(drawn(rng, type, COUNT, 9))  # a growing segment
    of.delete(list(given)[::5])
    of.upsert(drawn(rng, type, 3, 5))  # new numbers for these
    several = checked(of, of.match_lists(EVENTS).to_pylist())
    assert any(len(ids) > 9 for ids in several)
    assert several == of_pairs(of.match(EVENTS)) == of_pairs(pa.Table.from_batches(list(of.match_batches(EVENTS))))
    assert several == of_pairs(of.match(EVENTS, invalid="collect")[0])
    some = set(list(given)[1::2])
    assert of_pairs(of.match(EVENTS, ids=list(some))) == [[id for id in ids if id in some] for ids in several]
    tagged = [id for id, tags in zip(of.ids.to_pylist(), of.tags.to_pylist(), strict=True) if tags]
    assert of_pairs(of.match(EVENTS, tags=["t"])) == [[id for id in ids if id in tagged] for ids in several]
    assert of.count(EVENTS).tolist() == [len(ids) for ids in several]
    of.compact()
    assert checked(of, of.match_lists(EVENTS).to_pylist()) == several


@every_kind
def test_order_of_what_is_found_once(kind: str) -> None:
    """Each expression is one conjunction; they stand in several segments."""
    rng = Random(kind)
    texts = {id: f"{rng.choice('ab')} >= {rng.randrange(4)}" for id in drawn(rng, int, 0, COUNT)}
    of = cm.Matcher.build(texts, SCHEMA, index=kind)
    of.insert({COUNT + id: f"a < {id}" for id in range(9)})
    assert max(map(len, checked(of, of.match_lists(EVENTS).to_pylist()))) > 20


@every_kind
def test_order_of_events_that_are_ranges(kind: str) -> None:
    rng = Random(kind)
    ends = pa.table({"low": [1, 3, None, 5], "high": [4, 3, 2, None]})
    texts = {id: f"a {rng.choice(['>=', '<=', '=', '<>'])} {rng.randrange(7)}" for id in drawn(rng, int, 0, COUNT)}
    of = cm.Matcher.build(texts, SCHEMA, index=kind)
    of.insert({COUNT + id: "a > 2 OR a < 4" for id in range(5)})
    found = checked(of, of.match_lists(ends, {"a": ("low", "high")}).to_pylist())
    assert min(map(len, found)) > 5


@every_kind
def test_order_in_a_sink_that_is_too_small(kind: str) -> None:
    given = drawn(Random(kind), int, 0, COUNT)
    wanted = cm.Matcher.build(given, SCHEMA, index=kind).match_lists(EVENTS).to_pylist()
    with patch.multiple(colmatch.matching.worker, FIRST_CAPACITY=1, LARGE_CAPACITY=99, GROUP_PAIRS=8, DIGIT_MOST=5):
        of = cm.Matcher.build(given, SCHEMA, index=kind)
        assert checked(of, of.match_lists(EVENTS).to_pylist()) == wanted


def test_order_after_a_merge() -> None:
    rng = Random(1)
    of = cm.Matcher.build(drawn(rng, int, 0, 40), SCHEMA, index="bitslice")
    of.insert(drawn(rng, int, 40, 600))
    of.insert(drawn(rng, int, 640, 9))
    before = checked(of, of.match_lists(EVENTS).to_pylist())
    inside.settled(of)
    assert checked(of, of.match_lists(EVENTS).to_pylist()) == before


@every_kind
def test_any_order_has_the_same_subscriptions(kind: str) -> None:
    of = cm.Matcher.build(drawn(Random(kind), int, 0, COUNT), SCHEMA, index=kind)
    wanted = of.match_lists(EVENTS).to_pylist()
    of.options = cm.Options(order="any")
    found = of.match_lists(EVENTS).to_pylist()
    assert [sorted(ids) for ids in found] == [sorted(ids) for ids in wanted]
    of.options = cm.Options()
    assert of.match_lists(EVENTS).to_pylist() == wanted


def test_any_order_is_that_in_which_a_kind_finds_them() -> None:
    """Nothing is put in order then. This kind finds equalities before ranges."""
    of = cm.Matcher.build({1: "a BETWEEN 0 AND 5", 2: "a = 3"}, SCHEMA, index="propagation")
    event, found = pa.table({"a": [3]}), []
    for order in ("subscription", "any", "subscription"):
        of.options = cm.Options(order=order)
        found.append(of.match_lists(event).to_pylist()[0])
    assert found == [[1, 2], [2, 1], [1, 2]]


def test_what_is_ranked_is_not_put_in_order_before() -> None:
    of = cm.Matcher.build(drawn(Random(1), int, 0, COUNT), SCHEMA, index="scan")
    worker, (batch,) = colmatch.matching.worker.Worker(), EVENTS.to_batches()
    bits = [worker.read(inside.version(of), False, batch, PAIRS, 0, best=best).bits for best in (False, True)]
    assert bits == [(COUNT - 1).bit_length(), 0]


@pytest.mark.parametrize("order", ["ids", None, 5, True])
def test_orders_that_there_are_not(order: Any) -> None:
    with pytest.raises(cm.OptionError, match="order=.*'subscription' or 'any' is needed"):
        cm.Options(order=order)
