"""Why subscriptions match nothing, compared with what can be seen in explanations."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind
from sizes import SMALL

import colmatch as cm
import colmatch.explain
from colmatch.explain import ExplainedNode

SCHEMA = pa.schema({"a": pa.int64(), "b": pa.int64(), "s": pa.string(), "t": pa.list_(pa.int64())})


def a_predicate(rng: Random) -> str:
    return rng.choice(
        [
            f"{rng.choice('ab')} {rng.choice(['=', '<', '>', '<>', '>='])} {rng.randrange(7)}",
            f"{rng.choice('ab')} {rng.choice(['', 'NOT '])}IN ({rng.randrange(3)}, {rng.randrange(4, 7)})",
            f"{rng.choice('abs')} IS {rng.choice(['', 'NOT '])}NULL",
            f"s LIKE '{rng.choice(['x%', '%y', '%z%'])}'",
            f"s = '{rng.choice('xyz')}'",
            f"{rng.choice(['', 'NOT '])}array_contains(t, {rng.randrange(4)})",
            "a < b",
        ]
    )


def an_expression(rng: Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return a_predicate(rng)
    word = rng.choice([" AND ", " AND ", " OR "])
    text = word.join(an_expression(rng, depth - 1) for _ in range(rng.randrange(2, 4)))
    return f"{rng.choice(['', '', '', 'NOT '])}({text})"


def some_events(rng: Random, rows: int) -> pa.Table:
    columns = {
        "a": [rng.choice([None, *range(7)]) for _ in range(rows)],
        "b": [rng.choice([None, *range(7)]) for _ in range(rows)],
        "s": [rng.choice([None, "x", "xy", "yz", "z"]) for _ in range(rows)],
        "t": [rng.choice([None, [], [1], [2, 3], [0, None]]) for _ in range(rows)],
    }
    return pa.table(columns, SCHEMA)


def would_be(node: ExplainedNode, names: set[str], by: str) -> bool:
    """Whether a tree would be true, were all leaves of some names true."""
    if not node.children:
        return node.truth is True or name_of(node, by) in names
    return (any if node.text == "any of" else all)(would_be(child, names, by) for child in node.children)


def name_of(leaf: ExplainedNode, by: str) -> str:
    if by == "predicate" or leaf.text in ("TRUE", "FALSE"):
        return leaf.text
    if "a < b" in leaf.text:
        return "a < b"
    return next(word for word in re.findall(r"[a-z]+", re.sub(r"'[^']*'", "", leaf.text)) if word in "abst")


def leaves(node: ExplainedNode) -> list[ExplainedNode]:
    return [leaf for child in node.children for leaf in leaves(child)] or ([] if node.children else [node])


def apart(some: list[Any]) -> ExplainedNode:
    """An AND of predicates as they are kept: NOT of a list is several, each a reason by itself."""
    nodes = [leaf.node for leaf in some]
    return nodes[0] if len(nodes) == 1 else colmatch.explain._group(nodes, False)


def wanted(matcher: cm.Matcher, events: pa.Table, by: str, ids: Any) -> dict[Any, Counter[str | None]]:
    found: dict[Any, Counter[str | None]] = {}
    rows = [events.slice(i, 1) for i in range(len(events))]
    for id in ids:
        with patch.object(colmatch.explain, "_all_of", apart):
            trees = [matcher.explain(row, id) for row in rows]
        if any(tree.matched for tree in trees):
            continue
        counts: Counter[str | None] = Counter()
        for told in trees:
            names = {name_of(leaf, by) for leaf in leaves(told.tree) if not leaf.text.startswith("FALSE:")}
            alone = [name for name in names if would_be(told.tree, {name}, by)]
            counts.update(alone or [None])
        found[id] = counts
    return found


def told(table: pa.Table, by: str) -> dict[Any, Counter[str | None]]:
    """Returns what a table of reasons says, and checks its order."""
    found: dict[Any, Counter[str | None]] = {}
    last: dict[Any, int] = {}
    for row in table.to_pylist():
        counts, name = found.setdefault(row["subscription"], Counter()), row[by]
        assert None not in counts and name not in counts
        assert name is None or row["events"] <= last.get(row["subscription"], row["events"])
        assert (row["attribute"] is None) == (name is None)
        counts[name] = last[row["subscription"]] = row["events"]
    return found


@every_kind
@pytest.mark.parametrize("by", ["attribute", "predicate"])
@pytest.mark.usefixtures("kept_predicates")
def test_what_explanations_say(kind: str, by: str) -> None:
    rng = Random(f"{kind} {by}")
    count = 40 if SMALL else 60
    texts = {i: an_expression(rng, 2) for i in range(count)}
    of = cm.Matcher.build(texts, SCHEMA, index=kind, options=cm.Options(batch_rows=7))
    events = some_events(rng, 9)
    of.delete(range(0, count, 7))
    of.insert({count + i: an_expression(rng, 2) for i in range(5)})
    everything = told(of.reasons(events, by), by)
    assert len(everything) > (3 if SMALL else 10) and list(everything) == [
        id for id in of.ids.to_pylist() if id in everything
    ]
    assert everything == wanted(of, events, by, of.ids.to_pylist())
    assert SMALL or any(None in counts for counts in everything.values())
    few = [1, 2, 3, 4, 5, 8, 9, 12, 15, count, 999]
    assert told(of.reasons(events, by, ids=few), by) == {id: everything[id] for id in few if id in everything}


@pytest.mark.parametrize("by", ["attribute", "predicate"])
@pytest.mark.usefixtures("kept_predicates")
def test_programs(by: str) -> None:
    """Expressions that stay whole, in more than one tile of rows."""
    rng = Random(by)
    texts = {
        i: " AND ".join(f"({' OR '.join(a_predicate(rng) for _ in range(3))})" for _ in range(5)) for i in range(30)
    }
    of = cm.Matcher.build(texts, SCHEMA, index=cm.index("scan", dnf_budget=1))
    assert len(inside.version(of).segments[0].predicates.jump_first)
    events = some_events(rng, 2)
    many = pa.concat_tables([events] * 50)
    found = told(of.reasons(many, by), by)
    assert found and found == {
        id: Counter({name: 50 * events for name, events in counts.items()})
        for id, counts in wanted(of, events, by, of.ids.to_pylist()).items()
    }


def test_many_rows_of_which_few_have_anything() -> None:
    """What a row of one tile has is forgotten in the next."""
    of = cm.Matcher.build({1: "a = 1 AND b = 1", 2: "a IS NULL AND b IS NOT NULL AND s IS NOT NULL"}, SCHEMA)
    rows = [{"a": 1, "b": 2, "s": "x", "t": None}] * 64 + [{"a": None, "b": None, "s": "x", "t": None}] * 66
    events = pa.Table.from_pylist(rows, SCHEMA)
    assert told(of.reasons(events), "attribute") == {1: {"b": 64, None: 66}, 2: {"a": 64, "b": 66}}


@pytest.mark.parametrize("kind", ["scan", "bestar"])
def test_lists_that_begin_alike_are_two_predicates(kind: str) -> None:
    parts = [
        "(a IN (1, 3) AND b = 1)",
        "(a IN (1, 3, 5) AND b = 2)",
        "(a IN (1, 4) AND b = 3)",
        "(a IN (1, 3) AND b = 4)",
    ]
    texts = {1: " OR ".join(parts), 2: " OR ".join(parts[::-1]), 3: " OR ".join(parts[1:] + parts[:1])}
    of = cm.Matcher.build(texts, SCHEMA, index=kind)
    rows = [{"a": 9, "b": b, "s": None, "t": None} for b in (1, 2, 3, 4)]
    found = told(of.reasons(pa.Table.from_pylist(rows, SCHEMA), "predicate"), "predicate")
    wanted = {"a IN (1, 3)": 2, "a IN (1, 3, 5)": 1, "a IN (1, 4)": 1}
    assert found == {1: wanted, 2: wanted, 3: wanted}


def test_a_campaign_that_gets_nothing() -> None:
    of = cm.Matcher.build(
        {"ski": "a >= 5 AND b = 1 AND s = 'x'", "sea": "a > 0", "off": "a = 1 AND a = 2"}, SCHEMA, tags={"ski": ["t7"]}
    )
    rows = {"a": [5, 6, 7, 1, 1], "b": [2, 2, 1, 1, 2], "s": ["x", "x", "y", "x", "x"]}
    events = pa.table(rows | {"t": pa.nulls(5, pa.list_(pa.int64()))})
    names = ("subscription", "attribute", "events")
    by_attribute = [
        dict(zip(names, row, strict=True))
        for row in [("ski", "b", 2), ("ski", "a", 1), ("ski", "s", 1), ("ski", None, 1), ("off", None, 5)]
    ]
    assert sorted(map(repr, of.reasons(events).to_pylist())) == sorted(map(repr, by_attribute))
    assert of.reasons(events, "predicate", tags=["t7"])["predicate"].to_pylist()[::3] == ["b = 1", None]
    schema = of.reasons(events.slice(0, 0)).schema
    strings = pa.dictionary(pa.int32(), pa.string())
    assert schema == pa.schema({"subscription": pa.string(), "attribute": strings, "events": pa.int64()})
    nothing = [tuple(row.values()) for row in of.reasons(events.slice(0, 0)).to_pylist()]
    assert nothing == [("ski", None, 0), ("sea", None, 0), ("off", None, 0)]
    assert of.reasons(events, ids=[]).num_rows == 0
    assert cm.Matcher.build({}, SCHEMA).reasons(events, "predicate").num_rows == 0


def test_events_that_lack_what_must_be_defined() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    of = cm.Matcher.build({1: "b > 5", 2: "b > 9", 3: "a > 9"}, schema)
    events = pa.table({"a": [1, None, 1], "b": [1, 9, 2]})
    assert [tuple(row.values()) for row in of.reasons(events).to_pylist()] == [(1, "b", 2), (2, "b", 2), (3, "a", 2)]


@every_kind
def test_behind_a_segment_without_subscriptions(kind: str) -> None:
    """An empty segment begins with the same number as the next one."""
    of = cm.Matcher.build({}, {"a": "int64"}, index=kind)
    of.insert({1: "a = 0", 2: "a = 1"})
    found = of.reasons(pa.table({"a": [0, 0]}))
    assert [tuple(row.values()) for row in found.to_pylist()] == [(2, "a", 2)]


def test_updates_between_batches_are_not_seen() -> None:
    """Also where what would be read after an update are other columns, of many."""
    of = cm.Matcher.build({1: "a > 5"}, {"a": "int64", "other": "int64"}, options=cm.Options(batch_rows=2))
    names = ["a", "other", *map(str, range(5))]

    def batch(a: int) -> pa.RecordBatch:
        return pa.record_batch({name: [a, a] for name in names})

    def batches() -> Any:
        yield batch(1)
        of.upsert({1: "other > 100"})
        of.compact()
        yield batch(2)
        yield batch(9)
        yield batch(3)

    assert of.reasons(pa.RecordBatchReader.from_batches(batch(1).schema, batches())).num_rows == 0
    assert of.reasons(pa.Table.from_batches([batch(1)]))["attribute"].to_pylist() == ["other"]


def test_what_is_refused() -> None:
    of = cm.Matcher.build({1: "a > 5"}, {"a": "int64"})
    events = pa.table({"a": [1]})
    for by in ("predicates", None, 5, np.array(["attribute", "x"])):
        with pytest.raises(cm.OptionError, match="'attribute' or 'predicate' is needed"):
            of.reasons(events, by)  # type: ignore[arg-type]
    with pytest.raises(cm.EventError, match="no column 'a'"):
        of.reasons(pa.table({"b": [1]}))
    with pytest.raises(cm.EventError, match="event 3"):
        old = cm.Matcher.build({1: "at > TIMESTAMP '2024-01-01'"}, {"at": pa.timestamp("ns")})
        at = pa.array([0, 0, 0, 2**60], pa.timestamp("s"))
        old.options = cm.Options(batch_rows=2)
        old.reasons(pa.table({"at": at}))
