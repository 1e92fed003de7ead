"""PB+tree: what document 004 says of it can be seen at its counters."""

from __future__ import annotations

from pathlib import Path
from random import Random

import inside
import numpy as np
import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.kernels.kinds.pbtree.arrays import (
    HEAD,
    ITEMS,
    KIND,
    LEAF,
    LIST,
    SIDS,
    WORDS,
)
from colmatch.kinds import pbtree


def table(ops: list[str], operands: list[list[int]]) -> cm.PredicateTable:
    count = len(ops)
    return cm.PredicateTable(
        pa.table(
            {
                "id": pa.array(range(count)),
                "attribute": pa.array(["a"] * count),
                "op": pa.array(ops),
                "operands": pa.array(operands, pa.list_(pa.int64())),
            }
        )
    )


def visits(ops: list[str], operands: list[list[int]], value: int) -> dict[str, int]:
    matcher = cm.Matcher.build(table(ops, operands), {"a": "int64"}, index="pbtree")
    return matcher.counters(pa.table({"a": [value]}))


def test_a_search_visits_as_many_nodes_as_the_tree_is_deep() -> None:
    """Table 1: O(log n + L), here with L = 1."""
    found = []
    for count in (100, 10_000, 200_000):
        told = visits(["="] * count, [[2 * i] for i in range(count)], 20)
        assert (told["predicates"], told["matches"]) == (1, 1)
        found.append(told["nodes"])
    assert found[0] <= found[1] <= found[2] <= found[0] + 3


@pytest.mark.parametrize("op", [">", "<", "<>", "="])
def test_what_is_read_is_what_holds(op: str) -> None:
    """One walk along each list reads the predicates that are satisfied, and no other."""
    count = 3000
    told = visits([op] * count, [[i % 500] for i in range(count)], 40)
    assert told["predicates"] == told["matches"] == {">": 240, "<": 2754, "<>": 2994, "=": 6}[op]


def test_ranges_are_counted_from_the_nearer_end() -> None:
    """As two predicates in GreaterThan and LessThan, 2,000 of 2,000 would be read, and more."""
    count = 2000
    operands = [[i, i + 3] for i in range(count)]
    for value in (10, count - 10):
        told = visits(["between"] * count, operands, value)
        assert told["matches"] == 4
        assert told["predicates"] < 50


def test_what_was_counted_is_made_ready_again() -> None:
    """Of few slots these alone, of many, or where their places were not kept, all."""
    count = 5000
    texts = {i: f"a = {i} AND b > 0" if i % 2 else f"a = {i} OR c = {i}" for i in range(count)}
    schema = {"a": "int64", "b": "int64", "c": "int64"}
    events = pa.table({"a": [7, 7, 8, 9, 9], "b": [1, -1, 0, 0, 5], "c": [8, 8, 8, 7, 12]})
    wanted = cm.Matcher.build(texts, schema, index="scan").match_lists(events).to_pylist()
    looked_at = []
    for spans in (1024, 1):
        with inside.with_constants(pbtree, "pb", SPANS=spans):
            matcher = cm.Matcher.build(texts, schema, index="pbtree")
            found = matcher.match_lists(events).to_pylist()
            assert list(map(sorted, found)) == list(map(sorted, wanted))
            looked_at.append(matcher.counters(events)["conjunctions"])
    slots = count // 2 * 3
    assert looked_at == [2 * slots + 2 + 2 + 1, 5 * slots]  # what the first event has counted is b > 0


def test_what_was_counted_is_made_ready_again_where_its_page_is_gone(tmp_path: Path) -> None:
    """Each event meets one of two predicates, the next one the other."""
    rng = Random(0)
    texts = {i: f"a = {i} AND b = {i}" for i in range(50)}
    others = "cdefghijklmn"
    for name in others:
        texts |= {len(texts) + i: f"{name} = {i} AND b = {10**6 + i}" for i in range(400)}
    index = cm.index("pbtree", path=tmp_path / "pages", cache_bytes=1 << 15)
    matcher = cm.Matcher.build(texts, dict.fromkeys("ab" + others, "int64"), index=index)
    rows: list[dict[str, int]] = []
    for _ in range(60):
        i = rng.randrange(50)
        rows += [{"a": i} | {name: rng.randrange(400) for name in others}, {"b": i}]
    events = pa.Table.from_pylist(rows, pa.schema(dict.fromkeys("ab" + others, pa.int64())))
    assert matcher.count(events).tolist() == [0] * 120


def test_a_sid_set_goes_on_in_the_next_node() -> None:
    matcher = cm.Matcher.build(table(["="] * 5000, [[7]] * 5000), {"a": "int64"}, index="pbtree")
    assert matcher.count(pa.table({"a": [7, 8]})).tolist() == [5000, 0]
    assert matcher.counters(pa.table({"a": [7]}))["nodes"] >= 5000 * 4 // 4096


def test_pages_of_the_file_are_full_and_sorted(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    cm.Matcher.build(
        table(["="] * 5000, [[i] for i in range(5000)]), {"a": "int64"}, index=cm.index("pbtree", path=str(path))
    )
    pages = np.frombuffer(path.read_bytes(), np.uint32).reshape(-1, WORDS)[2:]
    leaves = pages[pages[:, KIND] == LEAF]
    keys = np.concatenate([leaf[HEAD : HEAD + 2 * leaf[ITEMS]].view(np.int64) for leaf in leaves])
    assert sorted(keys.tolist()) == sorted([*range(5000)] * 2)  # and those of the tree of ids
    nodes = pages[pages[:, KIND] == LIST]
    assert nodes[:, SIDS].sum() == 10_000


def test_a_page_that_is_missing_is_read_once(tmp_path: Path) -> None:
    """Pages read an event with room for all: none again; with room for few, each visited one."""
    path, count = tmp_path / "pages", 20_000
    index = cm.index("pbtree", path=str(path))
    events = pa.table({"a": [count // 2] * 5})
    with cm.Matcher.build(table([">"] * count, [[i] for i in range(count)]), {"a": "int64"}, index=index) as matcher:
        first, again = matcher.counters(events), matcher.counters(events)
        assert first["nodes"] == again["nodes"] > 100
        assert again["pages"] == 0
        assert first["matches"] == 5 * (count // 2)
        hits = matcher.stats()["cache"]["hits"]
        matcher.match(events)
        assert matcher.stats()["cache"]["hits"] - hits >= again["nodes"]
    with cm.Matcher.open(path, cache_bytes=1 << 15) as matcher:
        told = matcher.counters(events)
        assert told["nodes"] == first["nodes"] and told["pages"] > again["nodes"] / 5 * 4
        assert matcher.stats()["cache"]["reads"] >= told["pages"]
