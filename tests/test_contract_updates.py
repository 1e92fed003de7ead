"""Updates of every kind: after any of them, all is as if it had been built so."""

from __future__ import annotations

import pickle
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from contract import (
    built,
    every_kind,
    expected_pairs,
    growing_kind,
    own_inserts,
    pairs,
    share_of_cases,
    some_settings,
)
from layouts import plain_table, some_events
from oracle import Expr, Row, matches, to_sql
from sizes import SMALL
from strategies import COLUMNS, a_schema, an_expression, some_rows, terms
from ways_in import condition, predicate_tables, table_rows, to_builder

import colmatch as cm
import colmatch.matching.worker
from colmatch.kinds.registry import KINDS, find
from colmatch.updates import growing, labels, policy


def check(matcher: cm.Matcher, there: dict[int, Expr], rows: list[Row], events: pa.Table) -> None:
    ids = list(there)
    wanted = expected_pairs(list(there.values()), ids, rows)
    found = pairs(matcher.match(events))
    wrong = [
        f"{to_sql(there[id]) if id in there else id}\n    {rows[i]}: {(i, id) in wanted}"
        for i, id in set(found) ^ set(wanted)
    ]
    assert not wrong, "\n".join(wrong[:5])
    assert len(found) == len(wanted) == matcher.counters(events)["matches"]
    assert sorted(matcher.ids.to_pylist()) == sorted(ids) and len(matcher) == len(ids)
    assert matcher.stats()["subscriptions"] == len(ids)


def some_policy(rng: Random) -> Any:
    """Makes merges frequent or seldom, and segments grow or not."""
    most, least = rng.choice([0, 2, 1024]), rng.choice([0, 256])
    return patch.multiple(policy, GROWING_MOST=most, DELETED_LEAST=least, SEGMENTS_MOST=rng.choice([1, 3, 16]))


def a_release(rng: Random, matcher: cm.Matcher, there: dict[int, Expr], leaves: Any, size: int) -> None:
    """Deletes, replaces, upserts and inserts in one step, in ``there`` as well."""
    gone = rng.sample(sorted(there), rng.randint(0, len(there)))
    left, free = sorted(set(there).difference(gone)), sorted(set(range(60)).difference(there).union(gone))
    old = rng.sample(left, rng.randint(0, min(size, len(left))))
    new = rng.sample(free, rng.randint(1, min(size, len(free))))
    other = rng.sample(sorted(set(range(60)).difference(old, new)), rng.randint(0, 3))
    more = {id: an_expression(rng, leaves, rng.choice([0, 1, 2])) for id in (*old, *new, *other)}
    some = {
        way: {id: to_sql(more[id]) for id in ids} for way, ids in (("insert", new), ("replace", old), ("upsert", other))
    }
    if rng.random() < 0.3:
        table = pa.schema({"id": pa.int64(), "expression": pa.string()})
        given: Any = {
            way: pa.Table.from_pylist([{"id": i, "expression": e} for i, e in ids.items()], table)
            for way, ids in some.items()
        }
    else:
        given = {way: ids for way, ids in some.items() if ids or rng.random() < 0.5}
    matcher.update(delete=gone if gone or rng.random() < 0.5 else None, **given)
    for id in gone:
        del there[id]
    there.update(more)


def an_update(rng: Random, seed: int, matcher: cm.Matcher, there: dict[int, Expr], leaves: Any, size: int) -> None:
    """Change the matcher, and ``there`` in the same way."""
    some = rng.randrange(7)
    if some == 6:
        a_release(rng, matcher, there, leaves, size)
        return
    if some == 0 and there:
        gone = rng.sample(sorted(there), rng.randint(1, len(there)))
        matcher.delete(pa.array(gone) if rng.random() < 0.5 else iter(gone))
        for id in gone:
            del there[id]
        return
    ids = rng.sample(range(60), rng.randint(1, size))
    if some < 5:
        ids = [id for id in ids if id not in there]
    depth = rng.choice([0, 1, 2, 3])
    new = {id: an_expression(rng, leaves, depth) for id in ids}
    change = matcher.upsert if some == 5 else matcher.insert
    way = rng.randrange(3)
    if way == 0:
        two_valued = to_builder(("is null", leaves[0][0]), None)
        change([(id, condition(e, two_valued)) for id, e in new.items()])
    elif way == 1 and (as_rows := {id: row for id, e in new.items() if (row := table_rows(e)) is not None}):
        new = {id: new[id] for id in as_rows}
        if tables := predicate_tables(Random(seed), as_rows, pa.int64()):
            change(cm.PredicateTable(*tables))
        else:
            new = {}
    else:
        change({id: to_sql(e) for id, e in new.items()})
    there.update(new)


@share_of_cases(90 if SMALL else 360)
def test_updates_in_any_order(kind: str, seed: int) -> None:
    rng = Random(seed)
    n, changes = rng.randrange(6), rng.randint(1, 8)
    schema = a_schema(rng)
    events, rows = some_events(rng, schema, some_rows(Random(seed), schema, 8))
    events = events.read_all() if isinstance(events, pa.RecordBatchReader) else events
    leaves = terms(schema)
    there = {id: an_expression(rng, leaves, depth=2) for id in range(n)}
    options = cm.Options(missing_columns="null", batch_rows=rng.choice([1, 3, 8192]))
    index = some_settings(rng, kind)
    if kind == "kindex":  # whose raw enumeration refuses what may come
        index = cm.index(kind, dnf_budget=index.dnf_budget)
    matcher = built({id: to_sql(e) for id, e in there.items()}, schema, index, options)
    snapshots = []
    with some_policy(rng):
        for _ in range(changes):
            an_update(rng, seed, matcher, there, leaves, 4)
            check(matcher, there, rows, events)
            some = rng.randrange(9)
            if some == 8:
                snapshots.append((matcher.snapshot(), dict(there)))
            elif some == 7 and snapshots:
                snapshot, then = rng.choice(snapshots)
                an_update(rng, seed + 1, snapshot, then, leaves, 4)
                matcher.restore(snapshot)
                there = dict(then)
                check(matcher, there, rows, events)
            elif some == 6 and snapshots:
                snapshots[0][0].compact()
            elif some == 5:
                matcher.compact()
                check(matcher, there, rows, events)
            elif some == 0:
                matcher = pickle.loads(pickle.dumps(matcher))
            elif some == 1:
                with tempfile.TemporaryDirectory() as folder:
                    matcher.save(Path(folder, "index"))
                    matcher = cm.Matcher.open(Path(folder, "index"), mmap=rng.random() < 0.5)
    for snapshot, then in snapshots:
        check(snapshot, then, rows, events)
    for row in range(min(len(rows), 2)):
        for id, e in there.items():
            assert matcher.explain(rows[row], id).matched == matches(e, rows[row]), to_sql(e)


@share_of_cases(18 if SMALL else 63)
def test_many_updates_of_many(kind: str, seed: int) -> None:
    """All columns, with a sink that is always full."""
    rng = Random(seed)
    schema = pa.schema(rng.sample(list(COLUMNS.items()), rng.choice([4, 12, len(COLUMNS)])))
    leaves = terms(schema)
    rows = some_rows(rng, schema, 20)
    events = plain_table(schema, rows)
    there: dict[int, Expr] = {}
    matcher = cm.Matcher.build({}, schema, index=replace(own_inserts(kind), dnf_budget=rng.choice([1, 3, 64])))
    with (
        patch.multiple(colmatch.matching.worker, FIRST_CAPACITY=1, LARGE_CAPACITY=rng.choice([1, 60, 1 << 25])),
        some_policy(rng),
    ):
        for _ in range(5 if SMALL else 25):
            an_update(rng, seed, matcher, there, leaves, 30)
            check(matcher, there, rows, events)
    fresh = cm.Matcher.build({id: to_sql(e) for id, e in there.items()}, schema, index=kind)
    assert pairs(fresh.match(events)) == pairs(matcher.match(events))


@every_kind
def test_string_ids_come_and_go(kind: str) -> None:
    matcher = cm.Matcher.build({"é": "a > 1", "b": "a > 2"}, {"a": "int64"}, index=kind)
    events = pa.table({"a": [3]})
    for i in range(300):
        matcher.insert({f"id {i} ☃": f"a > {i % 5}"})
        if i % 3:
            matcher.delete([f"id {i} ☃"])
    left = ["é", "b", *(f"id {i} ☃" for i in range(0, 300, 3))]
    assert matcher.ids.to_pylist() == left
    assert sorted(matcher.match_lists(events)[0].as_py()) == sorted(
        ["é", "b", *(x for i, x in zip(range(0, 300, 3), left[2:]) if i % 5 < 3)]
    )
    opened = pickle.loads(pickle.dumps(matcher))
    assert opened.ids.to_pylist() == left
    opened.replace({"b": "a > 9"})
    assert pairs(opened.match(events)) == [pair for pair in pairs(matcher.match(events)) if pair[1] != "b"]
    assert matcher.match(events).schema.types == [pa.int64(), pa.string()]


@every_kind
def test_an_empty_matcher_takes_ids_of_either_type(kind: str) -> None:
    for id, type in ((7, pa.int64()), ("x", pa.string())):
        matcher = cm.Matcher.build({}, {"a": "int64"}, index=kind)
        matcher.insert({id: "a = 1"})
        assert matcher.ids.type == type and matcher.match_lists(pa.table({"a": [1]})).to_pylist() == [[id]]


@every_kind
def test_what_is_refused_changes_nothing(kind: str) -> None:
    matcher = cm.Matcher.build({1: "a > 1", 2: "s = 'x'"}, {"a": "int64", "s": "string"}, index=kind)
    events = pa.table({"a": [5], "s": ["x"]})
    before = pairs(matcher.match(events))
    for change, error, message in [
        (lambda: matcher.insert({3: "a > 2", 1: "a > 3"}), cm.SubscriptionError, "subscription 1 is there already"),
        (lambda: matcher.insert([(3, "a > 2"), (3, "a > 3")]), cm.SubscriptionError, "more than once"),
        (lambda: matcher.insert({"x": "a > 2"}), cm.SubscriptionError, "are int64, those given are string"),
        (lambda: matcher.insert({3: "a > 2", 4: "b > 2"}), cm.ExpressionError, "'b'"),
        (lambda: matcher.insert({3: "a > 2"}, errors="drop"), cm.OptionError, "errors='drop'"),
        (lambda: matcher.upsert({1: "a > 'x'"}), cm.ExpressionError, "a"),
        (
            lambda: matcher.replace({1: "a > 2", 9: "a > 3"}),
            cm.SubscriptionError,
            "no subscription 9: nothing was replaced",
        ),
        (lambda: matcher.delete([1, 9]), cm.SubscriptionError, "no subscription 9"),
        (lambda: matcher.delete(), cm.OptionError, "ids or tags"),
        (lambda: matcher.delete(tags="x"), cm.OptionError, "tags='x'"),
        (lambda: matcher.update(), cm.OptionError, "needs something"),
        (lambda: matcher.update(delete=[1], tags={1: ["x"]}), cm.OptionError, "go with subscriptions"),
        (lambda: matcher.update(delete=[1], replace={1: "a > 2"}), cm.SubscriptionError, "no subscription 1"),
        (lambda: matcher.update(delete=[1], insert={2: "a > 2"}), cm.SubscriptionError, "2 is there already"),
        (lambda: matcher.update(delete=[1], upsert={3: "a > 2", 4: "b > 2"}), cm.ExpressionError, "'b'"),
        (lambda: matcher.update(insert={3: "a > 2"}, upsert={3: "a > 3"}), cm.SubscriptionError, "more than once"),
        (lambda: matcher.update(insert={3: "a > 2"}, upsert={"x": "a > 3"}), cm.SubscriptionError, "are string"),
        (lambda: matcher.restore(None), cm.OptionError, "takes a matcher"),
        (lambda: matcher.delete([1.0]), cm.SubscriptionError, r"no subscription 1\.0"),
        (lambda: matcher.delete([True]), cm.SubscriptionError, "no subscription True"),
        (lambda: matcher.delete("12"), cm.SubscriptionError, "not a list"),
        (lambda: matcher.delete(1), cm.SubscriptionError, "not a list"),
    ]:
        with pytest.raises(error, match=message):
            change()
        assert pairs(matcher.match(events)) == before and matcher.ids.to_pylist() == [1, 2] and matcher.version == 0
    matcher.insert({})
    matcher.delete([])
    matcher.insert({3: "a > 2", 4: "b > 2"}, errors="collect")
    assert [r.id for r in matcher.rejected] == [4] and matcher.ids.to_pylist() == [1, 2, 3]
    matcher.upsert({3: "b > 2", 1: "a > 9"}, errors="collect")
    assert sorted(matcher.match_lists(events)[0].as_py()) == [2, 3]
    with pytest.raises(cm.SubscriptionError, match="no subscription 4"):
        matcher.explain({}, 4)


NO_BOUNDARY = {
    "a IS NOT NULL": [0, 1],
    "b IS NOT NULL": [0, 2],
    "a IS NULL": [2, 3],
    "a IS NOT NULL AND b IS NOT NULL": [0],
    "a IS NULL OR b IS NULL": [1, 2, 3],
    "TRUE": [0, 1, 2, 3],
}  # text -> the rows of the next where it is true
ROWS = [{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": None, "b": None}]


@growing_kind
def test_what_has_no_boundary_comes_and_goes(kind: str, tmp_path: Path) -> None:
    """Segments grow though no attribute has a boundary, are full and saved before a merge."""
    events = pa.Table.from_pylist(ROWS, pa.schema({"a": pa.int64(), "b": pa.string()}))
    for seed in range(4 if SMALL else 30):
        rng, there = Random(seed), dict[int, str]()
        matcher = cm.Matcher.build({}, events.schema, index=own_inserts(kind))
        with patch.multiple(policy, GROWING_MOST=rng.choice([3, 100]), choose_segments=lambda version: None):
            for id in range(10):
                if there and rng.random() < 0.3:
                    gone = rng.choice(sorted(there))
                    matcher.delete([gone])
                    del there[gone]
                else:
                    there[id] = rng.choice(list(NO_BOUNDARY))
                    with patch.object(labels, "join", side_effect=labels.NoRoomError) if id % 3 else nullcontext():
                        matcher.insert({id: there[id]})
                if id % 4 == 0:
                    matcher.save(tmp_path / "it")
                    matcher = cm.Matcher.open(tmp_path / "it")
                wanted = [[id for id, text in there.items() if i in NO_BOUNDARY[text]] for i in range(len(ROWS))]
                assert [sorted(found) for found in matcher.match_lists(events).to_pylist()] == wanted


@every_kind
def test_a_full_segment_is_saved_before_its_merge(kind: str, tmp_path: Path) -> None:
    """Its labels were given anew: it began with the attributes that it uses, and then got all."""
    events = pa.table({f"a{i}": [i % 3] for i in range(6)})
    matcher = cm.Matcher.build({i: f"a{i} = 1" for i in range(6)}, events.schema, index=own_inserts(kind))
    with patch.multiple(policy, GROWING_MOST=3, choose_segments=lambda version: None):
        for id, text in enumerate(["a0 = 0", "a1 < 0", "a1 > 0", "a0 IS NULL", "a2 = 2"], 10):
            with patch.object(labels, "join", side_effect=labels.NoRoomError) if id == 11 else nullcontext():
                matcher.insert({id: text})
        matcher.save(tmp_path / "it")
        opened = cm.Matcher.open(tmp_path / "it")
        assert len(opened.stats()["segments"]) == 3
        opened.insert({15: "a2 > 1"})
        opened.delete([10])
        assert sorted(opened.match_lists(events)[0].as_py()) == [1, 4, 12, 14, 15]


def begun_anew(first: int, last: int) -> int:
    """Returns how often a segment is begun anew that grows one by one: each time it has by half."""
    times = 0
    for size in range(first + 1, last + 1):
        if size > max(growing.FEW_SUBSCRIPTIONS, first + first // 2):
            first, times = size, times + 1
    return times


@growing_kind
@pytest.mark.parametrize("way", ["bisect", "ascend", "descend"])
@pytest.mark.parametrize("type", ["float64", "int64", "string"])
def test_labels_last(kind: str, type: str, way: str) -> None:
    """Labels are seldom spaced anew for boundaries that crowd.

    They halve one interval again and again, or go up or down in it.
    """
    count = 100 if SMALL else 400

    def value(i: int) -> str:
        if type == "string":
            return repr({"bisect": "a" * i + "b", "ascend": f"b{i:06}", "descend": f"b{10**6 - i}"}[way])
        if way == "bisect":
            return repr(1 / 2**i if type == "float64" else 2**60 // 2 ** min(i, 60) + (i if i > 59 else 0))
        step = i if way == "ascend" else 10_000 - i
        return repr(1e9 + step / 8 if type == "float64" else 10**12 + 10**6 * step)

    low, high = (
        ("''", "'zz'") if type == "string" else ("-1e18", "1e18") if type == "float64" else (str(-(10**18)), str(2**60))
    )
    texts = {i: f"x > {value(i)}" if i % 2 else f"x = {value(i)}" for i in range(count)}
    base = {-1: f"x > {low}", -2: f"x < {high}"}
    index = own_inserts(kind)
    matcher = cm.Matcher.build({}, {"x": type}, index=index)
    matcher.insert(base)
    with patch.object(growing, "combine", wraps=growing.combine) as spaced_anew:
        for i in range(count):
            matcher.insert({i: texts[i]})
    assert len(matcher.stats()["segments"]) == 2 and matcher.stats()["segments"][-1]["index"] == kind
    points = [eval(value(i)) for i in range(count)]
    events = pa.table({"x": pa.array([*points, *(p + ("!" if type == "string" else 1) for p in points)], type)})
    assert pairs(matcher.match(events)) == pairs(cm.Matcher.build(base | texts, {"x": type}, index=kind).match(events))
    grown = begun_anew(2, count + 2) if kind in KINDS and find(kind).grows_by_sample(index) else 0
    assert spaced_anew.call_count <= grown + (count // 15 if way == "bisect" and type != "int64" else 1)
    for id in (0, 1, count - 1):
        assert texts[id].split()[1] in str(matcher.explain({"x": points[id]}, id))
