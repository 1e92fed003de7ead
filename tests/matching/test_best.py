"""``match_topk``: what can be asked, what is said where it cannot be, and where kinds prune."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind

import colmatch as cm
from colmatch.kernels import scores, topk
from colmatch.kinds.scan import KIND
from colmatch.matching.topk import rank as ranking

WEIGHTS = pa.map_(pa.string(), pa.float64())
SCHEMA = pa.schema(
    {"a": pa.int64(), "b": pa.int64(), "tags": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.int64())}
)
SUBSCRIPTIONS = pa.table(
    {
        "id": ["x", "y", "é"],
        "expression": ["a > 1", "b > 1 AND a > 0", "m['k'] = 1 AND size(tags) = 1"],
        "weights": pa.array([[("a", 2.0)], [("a", 1.0), ("b", 1.0)], [("m", 1.0), ("size(tags)", 0.5)]], WEIGHTS),
    }
)
EVENTS = pa.table(
    {
        "a": [5, 5, None],
        "b": [5, None, None],
        "tags": pa.array([["q"], None, ["q"]], pa.list_(pa.string())),
        "m": pa.array([[("k", 1)], None, [("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "w": pa.array([1.0, None, 0.25]),
    }
)


def matcher() -> cm.Matcher:
    return cm.Matcher.build(SUBSCRIPTIONS, SCHEMA)


def best(k: int = 9, score: str = "dot", weights: Any = None, events: Any = EVENTS) -> list[tuple[Any, ...]]:
    return list(zip(*matcher().match_topk(events, k, score, weights).to_pydict().values(), strict=True))


def test_ties_by_id_and_batches() -> None:
    assert best() == [(0, "x", 2.0), (0, "y", 2.0), (0, "é", 1.5), (1, "x", 2.0), (2, "é", 1.5)]
    assert best(1) == [(0, "x", 2.0), (1, "x", 2.0), (2, "é", 1.5)]
    batches = list(matcher().match_topk_batches(EVENTS.to_reader(max_chunksize=1), 1))
    assert pa.Table.from_batches(batches).to_pydict() == matcher().match_topk(EVENTS, 1).to_pydict()
    none = matcher().match_topk(EVENTS.slice(0, 0), 3)
    assert none.num_rows == 0 and none.schema.types == [pa.int64(), pa.string(), pa.float64()]


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        ({"a": "w"}, [2.0, 2.0, 1.5, 2.0, 1.5]),
        ({"A": 0.5}, [1.5, 1.5, 1.0, 1.0, 1.5]),
        ({"m": 2, "tags": np.int64(3)}, [3.5, 2.0, 2.0, 2.0, 3.5]),
        ({"m": 2, "m['k']": "w", "tags": 0.0}, [2.0, 2.0, 1.0, 2.0, 0.25]),
        ({"m['other']": 7}, [2.0, 2.0, 1.5, 2.0, 1.5]),
    ],
)
def test_more_specific_names_count_before_columns(weights: Any, wanted: list[float]) -> None:
    assert [score for _, _, score in best(weights=weights)] == wanted


@pytest.mark.parametrize(
    "type",
    [
        pa.map_(pa.string(), pa.float32()),
        pa.map_(pa.large_string(), pa.int8()),
        pa.map_(pa.dictionary(pa.int8(), pa.string()), pa.decimal128(5, 1)),
        pa.map_(pa.string_view(), pa.uint64()),
    ],
)
def test_maps_of_weights(type: pa.DataType) -> None:
    number = Decimal if pa.types.is_decimal(type.item_type) else int
    maps = [
        [("m", number(5)), ("m['k']", number(2)), ("?", number(0)), ("zz", None), ("A", number(3)), ("a", number(4))],
        None,
        [("m['k']", None), ("m", number(5))],
    ]
    whole = pa.array([[("a", number(9))], *maps], pa.map_(pa.string(), type.item_type))
    keys = whole.keys.dictionary_encode() if pa.types.is_dictionary(type.key_type) else whole.keys
    column = pa.MapArray.from_arrays(whole.offsets, keys.cast(type.key_type), whole.items)
    found = best(weights="g", events=EVENTS.append_column("g", column.slice(1)))
    assert found == [(0, "x", 8.0), (0, "y", 5.0), (0, "é", 2.5), (1, "x", 2.0), (2, "é", 1.5)]


def test_weights_of_any_number() -> None:
    for number in (2, 2.0, Decimal("2.0"), np.float32(2), np.int8(2)):
        assert best(weights={"a": number}) == best(weights={"a": 2.0})


def test_columns_of_nothing() -> None:
    for weights in ("n", {"a": "n"}):
        assert best(weights=weights, events=EVENTS.append_column("n", pa.nulls(3))) == best()


@pytest.mark.parametrize("k", [0, -1, True, 1.0, 2**70, "1", None])
def test_odd_numbers(k: Any) -> None:
    with pytest.raises(cm.OptionError, match=r"a whole number from 1 to"):
        matcher().match_topk_batches(EVENTS, k)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"score": "cosine"}, cm.OptionError, "score='cosine': 'dot', 'sum', 'max' or 'priority' is needed"),
        ({"score": ["dot"]}, cm.OptionError, "'dot', 'sum'"),
        ({"event_weights": 3}, cm.OptionError, "event_weights=3: the name of a column"),
        ({"event_weights": {"c": "w"}}, cm.OptionError, "unknown attribute 'c'"),
        ({"event_weights": {3: "w"}}, cm.OptionError, "3 is no name"),
        ({"event_weights": {"a": "w", "A": "w"}}, cm.OptionError, "'A' is named before"),
        ({"event_weights": {"a": float("nan")}}, cm.OptionError, "'a' has nan"),
        ({"event_weights": {"a": -1}}, cm.OptionError, "'a' has -1"),
        ({"event_weights": {"a": True}}, cm.OptionError, "'a' has True"),
        ({"event_weights": {"size(tags)": 1}}, cm.OptionError, "that of a column counts for its size"),
        ({"event_weights": {"a": Decimal("sNaN")}}, cm.OptionError, "'a' has Decimal"),
        ({"event_weights": {"a": 1e101}}, cm.OptionError, "a number from 0 to 1e100"),
        ({"event_weights": {"a": 10**400}}, cm.OptionError, "a number from 0 to 1e100"),
        ({"event_weights": {"a": "v"}}, cm.EventError, "no column 'v'"),
        ({"event_weights": "v"}, cm.EventError, "no column 'v'"),
        ({"event_weights": "w"}, cm.EventError, "column 'w' is double: a map"),
        ({"event_weights": {"a": "tags"}}, cm.EventError, "numbers are needed"),
    ],
)
def test_what_cannot_be_asked(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        matcher().match_topk(EVENTS, 1, **arguments)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -0.5])
def test_odd_weights_of_events(wrong: float) -> None:
    events = pa.concat_tables([EVENTS] * 3)
    weights = [1.0] * 7 + [wrong, 1.0]
    maps = pa.array([[("zz", w), ("a", 1.0)] for w in weights], WEIGHTS)
    events = events.append_column("v", pa.array(weights)).append_column("g", maps)
    one = matcher()
    one.options = cm.Options(batch_rows=4)
    for given, column in (({"a": "v"}, "v"), ("g", "g")):
        with pytest.raises(cm.EventError, match=f"column '{column}', event 7: the weight is"):
            one.match_topk(events, 1, event_weights=given)


def test_scores_that_nobody_has_are_0_whatever_was_there_before() -> None:
    """What is asked is not an error today and none tomorrow, as subscriptions come and go."""
    scores = ("dot", "sum", "max", "priority")
    empty = cm.Matcher.build({}, SCHEMA)
    for score in scores:
        assert len(empty.match_topk(EVENTS, 1, score)) == 0
    plain = cm.Matcher.build({"z": "a > 1", "b": "a > 1"}, SCHEMA)
    weighed = matcher()
    weighed.insert({"z": "a > 1", "b": "a > 1"})
    weighed.delete(["x", "y", "é"])
    for _ in range(2):
        for score in scores:
            found = weighed.match_topk(EVENTS, 1, score)
            assert found == plain.match_topk(EVENTS, 1, score)
            assert found["score"].to_pylist() == [0.0, 0.0] and found["subscription"].to_pylist() == ["b", "b"]
            assert weighed.counters(EVENTS, k=1, score=score)["matches"] == 4
        weighed.compact()


def test_no_priority_is_0() -> None:
    rules = {"id": [1, 2, 3], "expression": ["a > 1"] * 3}
    given = pa.table({**rules, "priority": pa.array([None, 0.5, -0.5])})
    found = cm.Matcher.build(given, SCHEMA).match_topk(EVENTS.slice(0, 1), 3, "priority").to_pydict()
    assert found["subscription"] == [2, 1, 3] and found["score"] == [0.5, 0.0, -0.5]


def test_what_is_no_part_of_a_score_is_refused() -> None:
    for arguments in ({"score": "dot"}, {"event_weights": {"a": 2.0}}):
        with pytest.raises(cm.OptionError, match=f"{next(iter(arguments))}= is for the best matches: give k, too"):
            matcher().counters(EVENTS, **arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bogus"):
        matcher().counters(EVENTS, k=1, bogus=2)  # type: ignore[call-arg]


def test_a_kind_may_find_them_itself() -> None:
    """Its kernel gets what it needs; here it is SCAN's match and the plain way to score."""
    one, calls = cm.Matcher.build(SUBSCRIPTIONS, SCHEMA, index="scan"), []
    one.insert({"young": (cm.col("a") == 5).weight(4.0)})
    one.delete(["x"])

    def match_topk(index, preds, rows, start, stop, scratch, weights, given, best, counters):  # type: ignore[no-untyped-def]
        calls.append((start, stop, scratch, best.state.tolist(), len(best.deleted_bits)))
        best.number[: stop - start, 0] = best.state[topk.BASE]
        best.score[: stop - start, 0], best.fill[: stop - start] = 0.5, 1

    changes = {"match_topk": match_topk, "scratch": lambda index, codes, rows, entries: "own"}
    kind = KIND.__class__(**{name: getattr(KIND, name) for name in KIND.__slots__} | changes)
    for segment in inside.version(one).segments:
        segment.index = segment.index._replace(kind=kind)
    assert one.match_topk(EVENTS, 1, "max")["score"].to_pylist() == [0.5] * 3
    assert [(start, stop, scratch) for start, stop, scratch, _, _ in calls] == [(0, 3, "own")] * 2
    assert [state[:2] for *_, state, _ in calls] == [[0, scores.MAX], [3, scores.MAX]]
    assert [deleted_bits for *_, deleted_bits in calls] == [1, 0]


def test_counters_of_the_best() -> None:
    assert matcher().counters(EVENTS, 1) == matcher().counters(EVENTS)
    with pytest.raises(cm.OptionError, match="k=0"):
        matcher().counters(EVENTS, 0)


@every_kind
def test_many_best_of_what_is_found_twice(kind: str) -> None:
    """From ``AGAIN_MOST`` on, a subscription is found once before it is offered."""
    texts = {i: f"(a > {i % 3} AND b < 9) OR (a < {5 + i % 4} AND b > {i % 2})" for i in range(40)}
    weights = pa.array([[("a", float(i % 7))] for i in texts], WEIGHTS)
    table = pa.table({"id": list(texts), "expression": list(texts.values()), "weights": weights})
    matcher = cm.Matcher.build(table, {"a": "int64", "b": "int64"}, index=kind)
    events = pa.table({"a": [2, 4, 6], "b": [1, 0, 12]})
    for k in (5, 300):
        wanted = matcher.match_topk(events, k).to_pydict()
        with patch.object(ranking, "AGAIN_MOST", 4 if k < 300 else 1000):
            assert matcher.match_topk(events, k).to_pydict() == wanted
    assert len(wanted["event"]) == matcher.match(events).num_rows


def test_counters_take_a_score_with_k_alone() -> None:
    with pytest.raises(cm.OptionError, match="score= is for the best matches: give k, too"):
        matcher().counters(EVENTS, score="sum")
