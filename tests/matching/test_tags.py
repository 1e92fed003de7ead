"""Subscriptions with tags: given beside them, kept by whatever becomes of them, matched among."""

from __future__ import annotations

import pickle
import re
import weakref
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind, lists, pairs

import colmatch as cm
from colmatch.arrays.growing import Growing
from colmatch.matching.worker import Worker
from colmatch.subscriptions import tags as module
from colmatch.updates import policy

SCHEMA = {"a": pa.int64()}
EVENTS = pa.table({"a": [0, 3, 6, None]})
NAMES = ["red", "green", "blue", "ünï", ""]
Held = dict[Any, tuple[str, list[str]]]


def drawn(rng: Random, ids: Any) -> Held:
    """Subscriptions with up to three tags."""
    return {id: (f"a >= {rng.randrange(8)}", sorted(rng.sample(NAMES, rng.choice([0, 0, 1, 2, 3])))) for id in ids}


def texts(held: Held) -> dict[Any, str]:
    return {id: text for id, (text, _) in held.items()}


def tags(held: Held) -> dict[Any, list[str]]:
    return {id: some for id, (_, some) in held.items() if some}


def table(held: Held) -> pa.Table:
    columns = {"id": list(held), "expression": [text for text, _ in held.values()]}
    return pa.table(columns | {"tags": pa.array([some for _, some in held.values()], pa.list_(pa.string()))})


def check(matcher: cm.Matcher, held: Held) -> None:
    """Compares what a matcher finds by tags with what there is."""
    assert dict(zip(matcher.ids.to_pylist(), map(sorted, matcher.tags.to_pylist()), strict=True)) == {
        id: some for id, (_, some) in held.items()
    }
    values = EVENTS["a"].to_pylist()
    for asked in (["red"], ["blue", "green"], ["nobody's"], ["ünï", "nobody's", ""], []):
        wanted = sorted(
            (event, id)
            for id, (text, some) in held.items()
            for event, value in enumerate(values)
            if value is not None and value >= int(text[5:]) and set(asked) & set(some)
        )
        assert pairs(matcher.match(EVENTS, tags=asked)) == wanted


@every_kind
def test_each_way_to_ask(kind: str) -> None:
    held = drawn(Random(1), range(30))
    of = cm.Matcher.build(table(held), SCHEMA, index=kind)
    check(of, held)
    asked = ["red", "blue"]
    wanted = pairs(of.match(EVENTS, tags=asked))
    assert wanted and len(wanted) < of.match(EVENTS).num_rows
    counts = [sum(event == i for event, _ in wanted) for i in range(4)]
    assert of.count(EVENTS, tags=asked).tolist() == counts
    assert of.exists(EVENTS, tags=asked).tolist() == [n > 0 for n in counts]
    assert lists(of.match_lists(EVENTS, tags=asked)) == [[id for i, id in wanted if i == n] for n in range(4)]
    batches = of.match_batches(EVENTS, tags=asked)
    assert pairs(pa.Table.from_batches(batches, of.match(EVENTS).schema)) == wanted
    assert pairs(of.match_topk(EVENTS, 99, tags=asked).drop_columns("score")) == wanted
    assert of.counters(EVENTS, tags=asked)["matches"] == len(wanted)
    assert pairs(of.match(EVENTS, {"a": ("a", "a")}, tags=asked)) == wanted
    assert pairs(of.match(EVENTS, ids=of.subset(tags=asked))) == wanted


def test_tags_with_ids() -> None:
    held = drawn(Random(2), range(40))
    of = cm.Matcher.build(table(held), SCHEMA)
    few = list(range(0, 40, 3))
    wanted = [(event, id) for event, id in pairs(of.match(EVENTS, ids=few)) if "red" in held[id][1]]
    assert wanted
    for some in (few, of.subset(few), np.array(few), [*few, 77]):
        assert pairs(of.match(EVENTS, ids=some, tags=["red"])) == wanted
    assert pairs(of.match(EVENTS, ids=of.subset(few, tags=["red"]))) == wanted
    both = [(event, id) for event, id in pairs(of.match(EVENTS)) if {"red", "blue"} <= set(held[id][1])]
    assert both and pairs(of.match(EVENTS, ids=of.subset(tags=["red"]), tags=["blue"])) == both
    assert repr(of.subset([1, 2], tags=["b", "a"])) == "Subset(2 ids, tags=['a', 'b'])"


@pytest.mark.parametrize("ids", [range(12), [f"n{i}" for i in range(12)]])
def test_each_way_in(ids: Any) -> None:
    held = drawn(Random(3), ids)
    predicates = pa.table(
        {
            "id": list(held),
            "attribute": ["a"] * 12,
            "op": [">="] * 12,
            "operands": [[int(text[5:])] for text, _ in held.values()],
        }
    )
    beside = pa.table({"id": list(tags(held)), "tags": pa.array(list(tags(held).values()), pa.list_(pa.string()))})
    for given, some in (
        (table(held), None),
        (texts(held), tags(held)),
        (list(texts(held).items()), beside),
        (cm.PredicateTable(predicates), tags(held)),
        (cm.PredicateTable(predicates), beside.slice(0).to_batches()[0]),
    ):
        check(cm.Matcher.build(given, SCHEMA, tags=some), held)
        of = cm.Matcher.build({}, SCHEMA)
        of.insert(given, tags=some)
        check(of, held)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["x", "x"], None, [], ["y", "x"]], pa.large_list(pa.large_string())),
        pa.array([["x"], None, None, ["y", "x"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.array([["q"], ["x"], None, [], ["y", "x"], ["r"]]).slice(1, 4),
        pa.array([["x"], None, [], ["y", "x"]], pa.list_view(pa.string())),
    ],
)
def test_columns_of_lists(column: pa.Array) -> None:
    given = pa.table({"id": [1, 2, 3, 4], "expression": ["a > 0"] * 4, "tags": column})
    assert [sorted(some) for some in cm.Matcher.build(given, SCHEMA).tags.to_pylist()] == [["x"], [], [], ["x", "y"]]


def test_columns_of_single_tags() -> None:
    for type in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        given = pa.table({"id": [1, 2], "expression": ["a > 0"] * 2, "tags": pa.array([None, "x"], type)})
        assert cm.Matcher.build(given, SCHEMA).tags.to_pylist() == [[], ["x"]]
    given = given.set_column(2, "tags", pa.nulls(2, pa.float64()))
    assert cm.Matcher.build(given, SCHEMA).tags.to_pylist() == [[], []]
    assert cm.Matcher.build({1: "a > 0"}, SCHEMA, tags={1: "one"}).tags.to_pylist() == [["one"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({5: ["x"]}, "tags are given for 5, which is none of the subscriptions"),
        ({"1": ["x"]}, "tags are given for '1', which is none of the subscriptions"),
        ({1: [2]}, "tags=: those of 1 are "),
        ({1: ["x", None]}, "tags=: those of 1 are "),
        ({1: 5}, "tags=: those of 1 are "),
        ({1: ["\ud800"]}, "tags=: those of 1 are "),
        (["x"], "tags=['x']: a mapping {id: ['tag']} or a table (id, tags) is needed"),
        (pa.table({"id": [1, 1], "tags": [["x"], ["y"]]}), "id 1 is given more than once"),
        (pa.table({"id": [None, 1], "tags": [["x"], ["y"]]}), "tags=: column 'id' is NULL in row 0"),
        (pa.table({"id": [1]}), "there is no column 'tags'"),
        (pa.table({"id": [1], "tags": [[1]]}), "lists of strings are needed, or a string for a single one"),
        (pa.table({"id": [1], "tags": [5]}), "lists of strings are needed, or a string for a single one"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    of = cm.Matcher.build({1: "a > 0"}, SCHEMA, tags={1: ["kept"]})
    with pytest.raises(cm.SubscriptionError, match=re.escape(message)):
        cm.Matcher.build({1: "a > 1", 2: "a > 1"}, SCHEMA, tags=given)
    with pytest.raises(cm.SubscriptionError, match=re.escape(message)):
        of.upsert({1: "a > 1", 2: "a > 1"}, tags=given)
    assert of.tags.to_pylist() == [["kept"]] and of.version == 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("red", "tags='red': a list of strings is needed, put a single one into a list"),
        (5, "tags=5: a list of strings is needed"),
        ([5], "tags= has 5, which is no tag"),
        ([None], "tags= has None, which is no tag"),
        (["\ud800"], "which is no tag"),
        (pa.array(["x", None]), "tags= has None"),
        ({"red": 1}, "a list of strings is needed"),
    ],
)
def test_what_cannot_be_asked(asked: Any, message: str) -> None:
    of = cm.Matcher.build({1: "a > 0"}, SCHEMA)
    for ask in (of.match, of.exists, of.count):
        with pytest.raises(cm.OptionError, match=re.escape(message)):
            ask(EVENTS, tags=asked)
    with pytest.raises(cm.OptionError, match="a subset is of some ids, or of some tags"):
        of.subset()


def test_both_ways_at_once() -> None:
    with pytest.raises(cm.SubscriptionError, match="the subscriptions have tags of their own"):
        cm.Matcher.build(table(drawn(Random(4), range(9))), SCHEMA, tags={1: ["x"]})


def test_tags_of_what_is_rejected() -> None:
    held = drawn(Random(5), range(9))
    wrong = dict(texts(held))
    wrong[4] = "a >"
    of = cm.Matcher.build(wrong, SCHEMA, errors="collect", max_rejected=1.0, tags=tags(held))
    del held[4]
    check(of, held)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["auto", "bestar"])
def test_tags_stay_with_their_subscriptions(seed: int, kind: str, tmp_path: Path) -> None:
    """Random updates, merges, saves, journals and pickles, and what there should be."""
    rng, path = Random(seed), tmp_path / "index"
    named = str if seed % 2 else int
    held = drawn(rng, [named(id) for id in range(rng.choice([0, 20]))])
    of = cm.Matcher.build(texts(held), SCHEMA, index=kind, tags=tags(held))
    of.save(path)
    of = cm.Matcher.open(path, journal=True)
    with patch.object(policy, "GROWING_MOST", 6), patch.object(module, "RECENT_LEAST", 3):
        for _ in range(40):
            do = rng.choice(["insert", "insert", "replace", "delete", "merge", "save", "open", "pickle"])
            new = [named(id) for id in rng.sample(range(200), rng.choice([1, 1, 4, 9]))]
            if do == "insert" and (more := drawn(rng, [id for id in new if id not in held])):
                of.insert(texts(more), tags=tags(more)) if rng.random() < 0.5 else of.insert(table(more))
                held |= more
            elif do == "replace" and (more := drawn(rng, [*new, *rng.sample(sorted(held), min(3, len(held)))])):
                of.upsert(texts(more), tags=tags(more))
                held |= more
            elif do == "delete":
                gone = rng.sample(sorted(held), min(len(held), rng.choice([1, 5, 20])))
                of.delete(gone)
                held = {id: one for id, one in held.items() if id not in gone}
            elif do == "merge":
                of.compact()
            elif do == "save":
                of.save(path)
            elif do == "open":
                of.close()
                of = cm.Matcher.open(path, journal=True)
            elif do == "pickle":
                check(pickle.loads(pickle.dumps(of)), held)
            check(of, held)
        of.close()


def test_names_that_nobody_has_are_forgotten() -> None:
    of = cm.Matcher.build(dict.fromkeys(range(10), "a > 0"), SCHEMA, tags={i: [f"t{i}"] for i in range(10)})
    assert of.stats()["tags"] == 10
    of.delete(range(7))
    of.compact()
    assert of.stats()["tags"] == 3 and of.tags.to_pylist() == [["t7"], ["t8"], ["t9"]]


def test_an_update_that_fails_leaves_no_tag() -> None:
    """What was put behind the tags that there are is written over by the next update."""
    of = cm.Matcher.build({1: "a > 0"}, SCHEMA, tags={1: ["one"]})
    of.insert({2: "a > 0"}, tags={2: ["two"]})
    live = inside.live(of)
    with patch.object(live, "_publish", side_effect=MemoryError), pytest.raises(MemoryError):
        of.insert({3: "a > 0"}, tags={3: ["three", "one"]})
    assert of.tags.to_pylist() == [["one"], ["two"]]
    of.insert({4: "a > 0"}, tags={4: ["four"]})
    assert of.tags.to_pylist() == [["one"], ["two"], ["four"]]
    assert pairs(of.match(EVENTS.slice(1, 1), tags=["one", "three"])) == [(0, 1)]


def test_single_inserts_copy_little() -> None:
    of = cm.Matcher.build({-1: "a > 0"}, SCHEMA, tags={-1: ["x"]})
    copied = 0
    append = Growing.append

    def counted(self: Growing, more: Any) -> None:
        nonlocal copied
        before = self._memory
        append(self, more)
        copied += len(before) if self._memory is not before and before.dtype == np.int32 else 0

    with patch.object(Growing, "append", counted):
        for i in range(500):
            of.insert({i: "a > 0"}, tags={i: ["x", f"t{i % 7}"]})
    assert copied < 4000
    assert len(of.match(EVENTS.slice(1, 1), tags=["t3"])) == 71


def test_small_batches_of_a_reader_are_matched_together() -> None:
    of = cm.Matcher.build(dict.fromkeys(range(10), "a > 0"), SCHEMA, tags={3: ["x"]}, options=cm.Options(threads=1))
    small = pa.RecordBatchReader.from_batches(EVENTS.schema, EVENTS.to_batches() * 50)
    with patch.object(Worker, "run", autospec=True, side_effect=Worker.run) as matched:
        assert of.count(small, tags=["x"]).sum() == 100
    assert matched.call_count == 1


def test_subsets_of_tags_are_kept_and_hold_no_version() -> None:
    of = cm.Matcher.build(dict.fromkeys(range(10), "a > 0"), SCHEMA, tags={i: ["x"] for i in range(5)})
    with patch.object(module.Tags, "numbers", autospec=True, side_effect=module.Tags.numbers) as looked_up:
        for _ in range(3):
            assert of.count(EVENTS, tags=["x"]).sum() == 10
        assert looked_up.call_count == 1
    before = weakref.ref(inside.version(of))
    of.compact()
    of.insert({99: "a > 0"})
    of.compact()
    assert of.count(EVENTS, tags=["y"]).sum() == 0
    assert before() is None


@pytest.mark.parametrize("wrong", [[1], ["\ud800"], {"a": 1}, b"x", 3, [None], ["a", None]])
def test_tags_of_a_mapping_that_are_none_are_said_with_their_id(wrong: Any) -> None:
    with pytest.raises(cm.SubscriptionError, match="tags=: those of 'x2' are .*: a list of strings is needed"):
        cm.Matcher.build({"x1": "a > 1", "x2": "a > 2"}, {"a": "int64"}, tags={"x1": ["t"], "x2": wrong})


def test_no_tags_may_be_none() -> None:
    matcher = cm.Matcher.build({1: "a > 1", 2: "a > 2"}, {"a": "int64"}, tags={1: None, 2: ("t", "u")})
    assert matcher.match_lists(pa.table({"a": [5]}), tags=["t"]).to_pylist() == [[2]]
    assert matcher.match_lists(pa.table({"a": [5]})).to_pylist() == [[1, 2]]
