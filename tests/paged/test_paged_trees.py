"""Trees in a file of pages grow, share pages while they are small, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path
from random import Random

import inside
import pyarrow as pa
import pytest
from contract import NO_JIT, pairs
from sizes import SMALL

import colmatch as cm
from colmatch.kernels.kinds.pbtree.arrays import LIST_ROOM, ROOMS, SHRUNK
from colmatch.paged import file as paged_file
from colmatch.paged import header
from colmatch.paged.check import check

FEW = 1 << 15  # bytes of a small cache: 8 pages
TREES = ("blocks", "inner", "leaf", "list")  # kinds of pages that only trees have


def paged(texts: dict[int, str], names: list[str], path: Path, cache: int = FEW) -> cm.Matcher:
    index = cm.index("pbtree", path=str(path), cache_bytes=cache)
    options = cm.Options(missing_columns="null")
    return cm.Matcher.build(texts, dict.fromkeys(names, "int64"), index=index, options=options)


def by_kind(path: Path) -> dict[str, int]:
    """Checks all pages. Returns how many pages of each kind trees have."""
    pages = check(str(path)).pages
    return {kind: pages.get(kind, 0) for kind in TREES}


def test_keys_nodes_and_pages_go_with_what_is_deleted(tmp_path: Path) -> None:
    """A list node holds 253 keys at most, a leaf 126; none is left a quarter full."""
    path, count, kept = tmp_path / "pages", 2000, 200
    matcher = paged({i: f"a > {i}" for i in range(count)}, ["a"], path)
    full = by_kind(path)
    assert full["leaf"] >= 2 * count // 126 and full["list"] >= 2 * 4 * count // LIST_ROOM and full["inner"] == 2
    gone = [i for i in range(count) if i % (count // kept)]
    matcher.delete(gone)
    left = by_kind(path)
    assert kept > SHRUNK  # so these are trees with pages of their own
    assert left["leaf"] <= 2 * (kept // 31 + 1) and left["list"] <= 2 * (4 * kept // (LIST_ROOM // 4) + 1)
    assert matcher.count(pa.table({"a": [count]})).tolist() == [kept]
    matcher.delete(range(0, count * 3 // 5, count // kept))
    assert by_kind(path) == {"blocks": 1, "inner": 0, "leaf": 0, "list": 0}
    matcher.delete(matcher.ids)
    assert by_kind(path) == dict.fromkeys(TREES, 0)
    assert by_kind(path) == by_kind_of_an_empty_one(tmp_path / "empty")
    assert check(str(path)).pages["free"] > full["leaf"] + full["list"] - 2
    matcher.insert({i: f"a > {i}" for i in range(count)})
    assert (
        "free" not in check(str(path)).pages
    )  # leaves that were filled one by one are half full, so all are used again


@pytest.mark.skipif(NO_JIT, reason="takes too long: a full inner page has 30,000 keys below it")
def test_inner_pages_divide_and_merge(tmp_path: Path) -> None:
    """An inner page leads to 337 leaves of 126 keys. That of the ids is one throughout."""
    path, count, more = tmp_path / "pages", 30_000, 6_000
    matcher = paged({i: f"a = {14 * i}" for i in range(count)}, ["a"], path, 1 << 24)
    assert by_kind(path)["inner"] == 2
    added = {count + i: f"a = {70 * i + 5}" for i in range(more)}
    ids = list(added)
    Random(1).shuffle(ids)
    for begin in range(0, more, 1000):
        matcher.insert({id: added[id] for id in ids[begin : begin + 1000]})
    assert by_kind(path)["inner"] == 4
    events = pa.table({"a": range(0, 14 * count, 7)})
    assert matcher.count(events).tolist() == [1, 0] * count
    assert matcher.count(pa.table({"a": [70 * i + 5 for i in range(more)]})).sum() == more
    kept = list(range(0, count, 4))  # a leaf is merged with its neighbour as soon as it is a quarter full
    matcher.delete([id for id in matcher.ids.to_pylist() if id % 4 or id >= count])
    assert by_kind(path)["inner"] == 2
    assert matcher.count(events).tolist() == [1, *[0] * 7] * len(kept)


def test_a_list_that_went_on_in_the_next_node_is_one_again(tmp_path: Path) -> None:
    path, alive = tmp_path / "pages", set(range(1500))
    matcher = paged({i: "a = 5" if i % 10 else f"a = {i}" for i in alive}, ["a"], path)
    for left in (900, 500, 320, 250):
        gone = sorted(alive, key=lambda i: i * 7919 % 1501)[left:]
        matcher.delete(gone)
        alive -= set(gone)
        check(str(path))
        found = matcher.count(pa.table({"a": [5, 10, 500]})).tolist()
        assert found == [sum(i % 10 > 0 for i in alive), 10 in alive, 500 in alive]
        matcher.insert({10**6: "a = 5"})
        matcher.delete([10**6])
        check(str(path))


def by_kind_of_an_empty_one(path: Path) -> dict[str, int]:
    paged({}, ["a"], path).close()
    return by_kind(path)


def test_a_tree_moves_to_larger_blocks_and_back(tmp_path: Path) -> None:
    """At each number of predicates it has the block, or the pages, that it would be built with."""
    rng, path = Random(1), tmp_path / "pages"
    forms = ["a = {}", "a > {}", "a < {}", "a <> {}"]
    texts = {i: rng.choice(forms).format(rng.randrange(-50, 50)) for i in range(ROOMS[-1] + 40)}
    matcher, there = paged({}, ["a"], path), 0
    events = pa.table({"a": [-51, -3, 0, 1, 20, 51]})
    for size in [*(room + more for room in ROOMS for more in (0, 1)), len(texts)]:
        matcher.insert({i: texts[i] for i in range(there, size)})
        there = size
        kinds = by_kind(path)
        assert (kinds["leaf"] > 0) == (size > ROOMS[-1])
        # the tree of ids has as many entries, so both share pages where these have room for two
        if size <= ROOMS[-1]:
            assert kinds["blocks"] == (1 if size <= ROOMS[-2] else 2)
    for size in [SHRUNK + 1, SHRUNK, *(room * 3 // 4 for room in ROOMS[-2::-1]), 0]:
        matcher.delete(range(size, there))
        there = size
        kinds = by_kind(path)
        assert (kinds["leaf"] > 0) == (size > SHRUNK)
        if size <= SHRUNK:
            assert kinds["blocks"] == (0 if size == 0 else 1 if size <= ROOMS[-2] else 2)
        other = cm.Matcher.build({i: texts[i] for i in range(there)}, {"a": "int64"}, index="scan")
        assert pairs(matcher.match(events)) == pairs(other.match(events))


def test_small_trees_share_pages_whatever_is_deleted(tmp_path: Path) -> None:
    """One page of each size is not full, at most: blocks of others fill it up."""
    rng, path, count = Random(2), tmp_path / "pages", 200 if SMALL else 600
    names = [f"a{i}" for i in range(count)]
    texts = {i: f"{names[i]} > 3 and {names[i]} <> {i}" for i in range(count)}
    matcher = paged(texts, names, path)
    assert by_kind(path)["blocks"] == -(-count // 63) + (1 if count <= ROOMS[-1] else 0)
    order = rng.sample(range(count), count)
    for left in (count // 2, count // 10, 63, 1, 0):
        matcher.delete(order[left:])
        order = order[:left]
        assert by_kind(path)["blocks"] <= -(-left // 63) + 1
        events = pa.Table.from_pylist([dict.fromkeys(names, 9)], pa.schema(dict.fromkeys(names, pa.int64())))
        assert sorted(pairs(matcher.match(events))) == [(0, i) for i in sorted(order) if i != 9]


def test_a_value_of_a_small_tree_is_looked_up_in_one_page(tmp_path: Path) -> None:
    """Three pages of the table, and one for all lists, which is looked at twice."""
    names = [f"a{i}" for i in range(50)]
    forms = ["{1} between 3 and {0}", "{1} = 9", "{1} < 0", "{1} > 70"]
    texts = {4 * i + j: forms[j].format(4 + i, names[i]) for i in range(50) for j in range(4)}
    events = pa.table({name: [20] for name in names})
    for matcher in (
        paged(texts, names, tmp_path / "pages", 1 << 20),
        cm.Matcher.build(texts, dict.fromkeys(names, "int64"), index="pbtree"),
    ):
        told = matcher.counters(events)
        assert told["matches"] == told["predicates"] == 34
        assert told["nodes"] == 50 * 5 + 3  # the tree of what is always verified is empty


def test_pages_of_the_first_predicate_of_a_list(tmp_path: Path) -> None:
    """The leaves of other keys do not change, however many there are; nor when it goes."""
    path, changed = tmp_path / "pages", []
    for count in (500, 1000 if SMALL else 4000):
        matcher = paged({i: f"a = {i}" for i in range(count)}, ["a"], path, 1 << 22)
        for step in (lambda: matcher.insert({10**6: "a > -5"}), lambda: matcher.delete([10**6])):  # noqa: B023
            before = matcher.stats()["cache"]["writes"]
            step()
            changed.append(matcher.stats()["cache"]["writes"] - before)
        check(str(path))
        matcher.close()
    assert changed[:2] == changed[2:] and max(changed) < 12


def test_an_update_that_is_larger_than_a_log_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, count = tmp_path / "pages", 500 if SMALL else 1500
    monkeypatch.setattr(paged_file, "LOG_MOST", 1 << 14)  # four pages
    matcher = paged({1: "a > 3"}, ["a", "b"], path)
    texts = {i: f"a = {i} and b > {i % 100}" for i in range(2, count)}
    matcher.insert(texts)
    assert Path(f"{path}.log").stat().st_size == 0  # all of it is in the file
    inside.page_file(matcher).close()
    again = cm.Matcher.open(path)
    check(str(path))
    assert len(again) == count - 1 and again.count(pa.table({"a": [301], "b": [2]})).tolist() == [2]
    again.delete(range(1, count - 100))
    check(str(path))
    assert again.ids.to_pylist() == [*range(count - 100, count)]


def test_a_file_of_an_older_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pages"
    with monkeypatch.context() as context:
        context.setattr(header, "VERSION", 1)
        paged({1: "a > 3"}, ["a"], path).close()
    for opens in (cm.Matcher.open, lambda path: check(str(path))):
        with pytest.raises(cm.StoreError, match=rf"format 1, .* reads {header.VERSION}: .*build it again"):
            opens(path)
    paged({1: "a > 3"}, ["a"], path).close()  # takes the place of the file
    check(str(path))
