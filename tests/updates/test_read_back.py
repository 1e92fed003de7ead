"""A matcher gives its subscriptions back as they were written, and follows a table of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import jobs
import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind, own_inserts, pairs
from layouts import plain_table
from oracle import to_sql
from sizes import SMALL
from strategies import a_schema, an_expression, some_rows, terms
from ways_in import condition

import colmatch as cm
from colmatch.subscriptions import texts_kept
from colmatch.subscriptions.texts_kept import KeptTexts
from colmatch.updates import policy

SCHEMA = {"a": "int64", "s": "string", "tags": "list<string>", "m": "map<string, double>"}
WEIGHTS = pa.map_(pa.string(), pa.float64())


def in_pages(subscriptions: Any, schema: Any, path: Path, **given: Any) -> cm.Matcher:
    return cm.Matcher.build(subscriptions, schema, index=cm.index("pbtree", path=str(path / "pages")), **given)


def a_table(rng: Random, ids: list[int]) -> pa.Table:
    """Subscriptions with odd texts, and some with weights, a priority or tags."""
    texts = [
        rng.choice(
            [f"a > {i}", f"  s = 'é{i}☃\n' -- said", f"s = 'x\0{{\"priority\":{i}}}'", f"tags IS NULL OR m['k'] < {i}"]
        )
        for i in ids
    ]
    numbers = [0.1, -2.5, 1e-300, 7.0, 1e100]
    names = ["a", "tags", "m['k']", "size(tags)", "s"]
    return pa.table({
        "id": pa.array(ids, pa.int64()), "expression": texts,
        "weights": pa.array([rng.choice([None, [], [(n, rng.choice(numbers)) for n in rng.sample(names, 2)]]) for _ in ids], WEIGHTS),
        "priority": pa.array([rng.choice([None, 0.0, 2.5, -1e-9]) for _ in ids], pa.float64()),
        "tags": pa.array([rng.choice([None, [], ["x"], ["x", "ü y"]]) for _ in ids], pa.list_(pa.string())),
    })  # fmt: skip


def rows_of(table: pa.Table) -> dict[int, Any]:
    return {
        row["id"]: (
            row["expression"],
            dict(row.get("weights") or ()),
            row.get("priority") or 0.0,
            sorted(row.get("tags") or ()),
        )
        for row in table.to_pylist()
    }


def told(matcher: cm.Matcher) -> dict[int, Any]:
    """What the matcher says of each subscription, one by one."""
    each = {id: matcher[id] for id in matcher}
    return {id: (one.expression, one.weights, one.priority, sorted(one.tags)) for id, one in each.items()}


@every_kind
def test_what_was_given_comes_back(kind: str, tmp_path: Path) -> None:
    """After inserts, replacements, deletes, merges, from files, pickles, journals and snapshots."""
    rng = Random(kind)
    with patch.multiple(policy, GROWING_MOST=20, DELETED_LEAST=8), patch.multiple(texts_kept, BLOCK=16, FEW=3):
        first = a_table(rng, list(range(50)))
        wanted = rows_of(first)
        matcher = cm.Matcher.build(first, SCHEMA, index=own_inserts(kind))
        for step in range(12):
            ids = rng.sample(range(120), rng.choice([1, 3, 30]))
            more = a_table(rng, ids)
            gone = rng.sample(sorted(set(wanted).difference(ids)), min(9, len(set(wanted).difference(ids))))
            matcher.update(upsert=more, delete=gone)
            wanted = {id: row for id, row in wanted.items() if id not in gone} | rows_of(more)
            if step == 3:
                matcher.compact()
            elif step == 5:
                matcher = pickle.loads(pickle.dumps(matcher))
            elif step == 7:
                matcher.save(tmp_path / "index")
                matcher = cm.Matcher.open(tmp_path / "index", journal=True)
            elif step == 9:
                matcher.close()
                matcher = cm.Matcher.open(tmp_path / "index", journal=True)
            elif step == 10:
                matcher = matcher.snapshot()
            assert rows_of(matcher.to_table()) == wanted
        assert told(matcher) == wanted and list(matcher) == matcher.ids.to_pylist()
        assert all(id in matcher for id in wanted) and not any(id in matcher for id in (777, "x", 1.5, None, True))
        again = cm.Matcher.build(matcher.to_table(), SCHEMA, index=kind)
        assert again.to_table().equals(matcher.to_table())
        events = pa.Table.from_pylist(
            [{"a": 30, "s": "é3☃\n", "tags": None, "m": [("k", 20.0)]}], cm.Schema(SCHEMA).arrow
        )
        assert again.match_topk(events, 200).equals(matcher.match_topk(events, 200))


def test_pages_give_back_what_was_given(tmp_path: Path) -> None:
    rng = Random(4)
    first = a_table(rng, list(range(70)))
    wanted = rows_of(first)
    matcher = in_pages(first, SCHEMA, tmp_path)
    for _ in range(5):
        ids = rng.sample(range(120), 12)
        more = a_table(rng, ids)
        gone = rng.sample(sorted(set(wanted).difference(ids)), 4)
        matcher.update(upsert=more, delete=gone)
        wanted = {id: row for id, row in wanted.items() if id not in gone} | rows_of(more)
        assert rows_of(matcher.to_table()) == wanted
    matcher.compact()
    matcher.close()
    matcher = cm.Matcher.open(tmp_path / "pages")
    assert told(matcher) == wanted == rows_of(matcher.to_table())
    assert 3 not in matcher or 3 in wanted
    with pytest.raises(cm.OptionError, match=r"snapshot\(\): a file of pages has one state alone"):
        matcher.snapshot()
    with pytest.raises(cm.OptionError, match=r"restore\(\): a file of pages"):
        matcher.restore(matcher)


@pytest.mark.parametrize("seed", range(4 if SMALL else 40))
def test_random_rules_come_back(seed: int) -> None:
    """Texts byte for byte, and conditions of the builder as texts of the same meaning."""
    rng = Random(seed)
    schema = a_schema(rng)
    leaves, rows = terms(schema), some_rows(rng, schema, 20)
    expressions = [an_expression(rng, leaves, rng.choice([0, 1, 2, 3])) for _ in range(100 if SMALL else 500)]
    texts = {i: to_sql(e) for i, e in enumerate(expressions)}
    options = cm.Options(missing_columns="null")
    matcher = cm.Matcher.build(texts, schema, options=options)
    assert matcher.to_table().to_pydict() == {"id": list(texts), "expression": list(texts.values())}
    two_valued = cm.col(schema.names[0]).is_null()
    conditions = [(i, condition(e, two_valued)) for i, e in enumerate(expressions)]
    of_builder = cm.Matcher.build(conditions, schema, options=options)
    assert of_builder.to_table()["expression"].to_pylist() == [
        one if isinstance(one, str) else str(one) for _, one in conditions
    ]
    events = plain_table(schema, rows)
    again = cm.Matcher.build(of_builder.to_table(), schema, options=options)
    assert pairs(again.match(events)) == pairs(matcher.match(events)) == pairs(of_builder.match(events))


def test_clauses_of_jobs_come_back() -> None:
    texts = {i: row.clause for i, row in enumerate(jobs.TAKEN)}
    matcher = cm.Matcher.build(texts, jobs.SCHEMA, errors="collect")
    assert matcher.to_table()["expression"].to_pylist() == [texts[id] for id in matcher] and len(matcher) > 300


def test_constants_of_be_tree_come_back() -> None:
    domains = cm.betree.Domains({"a": "integer|false"})
    matcher = cm.Matcher.build(
        {1: "a > 0", 2: "a = 1"}, domains, language="betree", constants={1: {"flight_id": 7, "campaign_id": -1}}
    )
    assert matcher[1].constants == {"flight_id": 7, "campaign_id": -1} and matcher[2].constants == {}
    assert matcher[1].expression == "a > 0"
    again = cm.Matcher.build(matcher.to_table(), domains, language="betree")
    assert again.to_table().equals(matcher.to_table()) and again[1] == matcher[1]


def test_what_has_no_text_says_so() -> None:
    rows = pa.table({"id": [1], "attribute": ["a"], "op": ["="], "operands": [[1]]})
    matcher = cm.Matcher.build(cm.PredicateTable(rows), {"a": "int64"})
    without = cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, options={"keep_texts": False})
    assert without.stats()["arrays"]["texts"] < 5_000
    for one in (matcher, without):
        for call in (lambda m: m.expression(1), lambda m: m[1], lambda m: m.to_table()):
            with pytest.raises(cm.SubscriptionError, match="subscription 1 has no text"):
                call(one)
        with pytest.raises(cm.OptionError, match="some subscriptions have none"):
            one.sync({1: "a = 2"})
        one.delete([1])
        assert one.to_table().num_rows == 0
    for id in (9, "x", None, 1.0):
        with pytest.raises(cm.SubscriptionError, match="there is no subscription"):
            cm.Matcher.build({1: "a = 1"}, {"a": "int64"})[id]  # type: ignore[index]


def test_rejected_subscriptions_have_no_texts() -> None:
    texts = {i: f"a > {i}" if i % 3 else "a >" for i in range(300)}
    for given in (texts, pa.table({"id": list(texts), "expression": list(texts.values())})):
        matcher = cm.Matcher.build(given, {"a": "int64"}, errors="collect")
        assert dict(zip(*matcher.to_table().to_pydict().values())) == {i: t for i, t in texts.items() if i % 3}


def arrays(texts: KeptTexts) -> dict[str, Any]:
    return {name.removeprefix("texts."): array for name, array in texts.to_arrays().items()}


DAMAGE: list[tuple[str, Any]] = [
    ("count", lambda a: a + 1), ("count", lambda a: -a), ("raw", lambda a: a + 4), ("raw", lambda a: a * 2**40),
    ("first", lambda a: a[::-1].copy()), ("first", lambda a: a + 1), ("first", lambda a: a[1:]),
    ("slot", lambda a: a + 1), ("slot", lambda a: a - 1), ("data", lambda a: a[:-1]), ("data", lambda a: a * 0),
    ("data", lambda a: np.roll(a, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(DAMAGE)))
def test_damaged_texts_are_refused(case: int) -> None:
    name, change = DAMAGE[case]
    good = arrays(KeptTexts().extended(pa.array(["a = 1", "b = 2", "c"], pa.large_string()), 3))
    whole = KeptTexts.of_arrays(False, **good)
    assert whole.take(np.arange(3)).to_pylist() == ["a = 1", "b = 2", "c"]
    with pytest.raises((ValueError, cm.StoreError)):
        KeptTexts.of_arrays(False, **good | {name: change(good[name])}).take(np.arange(3))


def test_texts_of_other_bytes_are_refused() -> None:
    """A block that says it is one of texts, but is not."""
    sizes = np.array([2, -1], np.int32).tobytes()
    for raw, count in ((sizes + b"a", 2), (sizes, 3), (np.array([1], np.int32).tobytes() + b"\xff", 1)):
        block = texts_kept._codec().compress(raw)
        data = np.frombuffer(block, np.uint8)
        made = KeptTexts.of_arrays(
            False, np.array([count]), np.array([len(raw)]), np.array([0, len(data)]), data, np.zeros(1, np.int32)
        )
        with pytest.raises(cm.StoreError, match="texts of subscriptions are damaged"):
            made.take(np.zeros(1, np.int64))


@pytest.mark.parametrize("paged", [False, True])
def test_a_matcher_follows_a_table(paged: bool, tmp_path: Path) -> None:
    rng = Random(8)
    table = a_table(rng, list(range(40)))
    matcher = in_pages(table, SCHEMA, tmp_path) if paged else cm.Matcher.build(table, SCHEMA)
    for _ in range(6):
        before, version = rows_of(matcher.to_table()), matcher.version
        same = matcher.sync(matcher.to_table())
        assert matcher.version == version and not any(map(len, same))
        kept = rng.sample(sorted(before), len(before) // 2)
        left = pa.array([id in kept and id < 40 for id in before])
        old = matcher.to_table().filter(left).select(table.column_names).cast(table.schema)
        table = pa.concat_tables([a_table(rng, rng.sample(range(40, 90), 12)), old])
        wanted = rows_of(table)
        changes = matcher.sync(table)
        assert rows_of(matcher.to_table()) == wanted and matcher.version == version + 1
        assert set(changes.added.to_pylist()) == set(wanted).difference(before)
        assert set(changes.removed.to_pylist()) == set(before).difference(wanted)
        assert set(changes.changed.to_pylist()) == {id for id in wanted if id in before and wanted[id] != before[id]}


def test_a_sync_is_whole_or_not() -> None:
    matcher = cm.Matcher.build({1: "a = 1", 2: "a = 2"}, {"a": "int64"}, tags={1: ["x"]})
    with pytest.raises(cm.ExpressionError, match="'b'"):
        matcher.sync({2: "a = 3", 3: "b = 1"})
    with pytest.raises(cm.SubscriptionError, match="are int64, those given are string"):
        matcher.sync({"x": "a = 3"})
    with pytest.raises(cm.SubscriptionError, match="a PredicateTable has none"):
        matcher.sync(cm.PredicateTable(pa.table({"id": [1], "attribute": ["a"], "op": ["="], "operands": [[1]]})))
    assert matcher.version == 0 and list(matcher) == [1, 2]
    changes = matcher.sync({1: "a = 1", 2: "b = 3", 3: "b = 1", 4: "a = 4"}, errors="collect", tags={1: ["x"]})
    assert (changes.added.to_pylist(), changes.changed.to_pylist(), changes.removed.to_pylist()) == ([4], [], [])
    assert matcher.expression(2) == "a = 2" and [entry.id for entry in matcher.rejected] == [2, 3]
    assert matcher.sync({1: "a = 1", 2: "a = 2", 4: "a = 4"}).changed.to_pylist() == [1]  # its tag is gone
    assert [len(ids) for ids in matcher.sync({})] == [0, 0, 3] and len(matcher) == 0
    assert matcher.sync({"x": "a = 1"}).added.to_pylist() == ["x"]


def test_texts_take_few_bytes() -> None:
    texts = {i: f"a BETWEEN {i} AND {i + 9} AND s IN ('city {i % 900}', 'city {i % 70}')" for i in range(20_000)}
    matcher = cm.Matcher.build(texts, SCHEMA)
    size = matcher.stats()["arrays"]["texts"]
    assert size < sum(map(len, texts.values())) / 4
    matcher.delete([i for i in texts if i % 10])
    matcher.compact()
    assert matcher.stats()["arrays"]["texts"] < size / 4
    assert matcher.to_table()["expression"].to_pylist() == [text for i, text in texts.items() if i % 10 == 0]
