"""A matcher that lives in a file of pages does what any other does, with a cache of 8 pages too."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import expected_pairs, pairs
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from layouts import plain_table, some_events
from oracle import Expr, matches, to_sql
from sizes import SMALL
from strategies import COLUMNS, a_schema, an_expression, some_rows, terms
from test_contract import check as check_ways
from ways_in import predicate_tables, table_rows
from workload import named

import colmatch as cm
from colmatch.paged import build
from colmatch.paged.check import check

SEEDS = st.integers(0, 2**32)
FEW = 1 << 15  # bytes: 8 pages
LENIENT = cm.Options(missing_columns="null")


def paged(subscriptions: Any, schema: Any, path: Path, cache: int = FEW, **given: Any) -> cm.Matcher:
    return cm.Matcher.build(subscriptions, schema, index=cm.index("pbtree", path=str(path), cache_bytes=cache), **given)


@pytest.mark.parametrize("seed", range(4 if SMALL else 14))
def test_every_way_in_and_out(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    schema = pa.schema(rng.sample(list(COLUMNS.items()), rng.choice([3, 10, len(COLUMNS)])))
    leaves = terms(schema)
    expressions = [an_expression(rng, leaves, depth=rng.choice([0, 1, 2, 3])) for _ in range(20 if SMALL else 80)]
    events, rows = some_events(rng, schema, some_rows(rng, schema, rng.choice([1, 20])))
    events = events.read_all() if isinstance(events, pa.RecordBatchReader) else events
    ids: Any = [f"id {i}" for i in range(len(expressions))] if seed % 2 else list(range(len(expressions)))
    options = cm.Options(missing_columns="null", batch_rows=rng.choice([1, 7, 8192]))
    matcher = paged([(id, to_sql(e)) for id, e in zip(ids, expressions)], schema, tmp_path / "a", options=options)
    wanted = expected_pairs(expressions, ids, rows)
    check_ways(matcher, expressions, ids, rows, events, wanted)
    matcher.save(tmp_path / "b")
    matcher.close()
    for again in (
        cm.Matcher.open(tmp_path / "a"),
        cm.Matcher.open(tmp_path / "b"),
        pickle.loads(pickle.dumps(matcher)),
    ):
        check_ways(again, expressions, ids, rows, events, wanted)
    check(str(tmp_path / "b"))
    for e, id in list(zip(expressions, ids))[:10]:
        assert matcher.explain(rows[0], id).matched == matches(e, rows[0])


def test_predicate_tables_and_weights(tmp_path: Path) -> None:
    rng = Random(5)
    schema = a_schema(rng)
    leaves = terms(schema)
    expressions = [e for e in (an_expression(rng, leaves, 0, nulls=0) for _ in range(30)) if table_rows(e) is not None]
    as_rows = {id: table_rows(e) or [] for id, e in enumerate(expressions)}
    table = cm.PredicateTable(*predicate_tables(rng, as_rows, pa.int64(), {id: 0.5 * id for id in as_rows}))
    matcher = paged(table, schema, tmp_path / "a")
    events = plain_table(schema, some_rows(rng, schema, 9))
    other = cm.Matcher.build(table, schema, index="scan")
    assert pairs(matcher.match(events)) == pairs(other.match(events))
    for score in ("dot", "priority"):
        assert matcher.match_topk(events, 3, score).equals(other.match_topk(events, 3, score))


def test_tags_reasons_ranges_and_betree(tmp_path: Path) -> None:
    texts = {1: "a > 3", 2: "a > 5 and b = 'x'", 3: "a < 2"}
    made = [
        paged(texts, {"a": "int64", "b": "string"}, tmp_path / "a", tags={1: ["é"], 3: ["é", "u"]}),
        cm.Matcher.build(texts, {"a": "int64", "b": "string"}, tags={1: ["é"], 3: ["é", "u"]}),
    ]
    events = pa.table({"a": [1, 4, 9], "b": ["x", "y", "x"], "low": [0, 4, 6], "high": [3, 6, 9]})
    for matcher in made:
        matcher.insert({4: "b <> 'z'"}, tags={4: ["u"]})
        matcher.upsert({1: "a > 2"}, tags={1: ["v"]})
        assert pairs(matcher.match(events, tags=["u"])) == [(0, 3), (0, 4), (1, 4), (2, 4)]
        assert pairs(matcher.match(events, ids=[1, 4, 77], tags=["v"])) == [(1, 1), (2, 1)]
        assert dict(zip(matcher.ids.to_pylist(), matcher.tags.to_pylist())) == {
            1: ["v"],
            2: [],
            3: ["é", "u"],
            4: ["u"],
        }
    one, two = made
    for ask in (
        lambda matcher: pairs(matcher.match(events, ranges={"a": ("low", "high")})),
        lambda matcher: sorted(map(str, matcher.reasons(events).to_pylist())),
        lambda matcher: matcher.exists(events).tolist(),
    ):
        assert ask(one) == ask(two)
    domains = {"n": {"type": "i", "min": 0, "max": 9}}
    with pytest.raises(cm.ColmatchError):
        paged({1: "n >"}, domains, tmp_path / "c", language="betree")
    assert not (tmp_path / "c").exists()


def test_special_functions_and_the_time(tmp_path: Path) -> None:
    schema = pa.schema({
        "lat": pa.float64(), "lon": pa.float64(), "now": pa.int64(),
        "seen": pa.list_(pa.struct({"id": pa.int64(), "timestamp": pa.int64()})),
    })  # fmt: skip
    texts = {
        1: "geo_within_radius(lat, lon, 48.0, 11.0, 20)", 2: "segment_within(seen, now, 12, 3600)",
        3: "segment_before(seen, now, 12, 3600) OR now > 5000", 4: "NOT geo_within_radius(lat, lon, 0.0, 0.0, 5)",
    }  # fmt: skip
    events = pa.table({
        "lat": [48.01, 0.0, None], "lon": [11.01, 0.0, 1.0], "now": [100, 4000, 9000],
        "seen": [[{"id": 12, "timestamp": 0}], None, [{"id": 12, "timestamp": 8_000_000_000}]],
    }, schema)  # fmt: skip
    first = {1: texts[1], 2: texts[2]}
    matcher, other = paged(first, schema, tmp_path / "a"), cm.Matcher.build(texts, schema, index="scan")
    matcher.insert({3: texts[3], 4: texts[4]})
    for now in (None, 0, 3000, 5001, 9_000_000):
        assert pairs(matcher.match(events, now=now)) == pairs(other.match(events, now=now))
    assert matcher.explain(events.slice(0, 1), 2, now=1).matched
    without = events.drop_columns(["now"])
    assert pairs(matcher.match(without, now=3000)) == pairs(other.match(without, now=3000))
    with pytest.raises(cm.EventError, match="now"):
        matcher.match(without)


def test_a_tag_whose_key_another_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = build.hashes_of

    def few(texts: Any) -> Any:
        keys = real(texts)
        return np.array([7 if text in ("a", "b", "c") else key for text, key in zip(texts.to_pylist(), keys)], np.int64)

    monkeypatch.setattr(build, "hashes_of", few)
    with pytest.raises(cm.SubscriptionError, match="tag 'b' has the same key"):
        paged({1: "x > 0", 2: "x > 1"}, {"x": "int64"}, tmp_path / "a", tags={1: ["a"], 2: ["b"]})
    matcher = paged({1: "x > 0"}, {"x": "int64"}, tmp_path / "a", tags={1: ["a"]})
    with pytest.raises(cm.SubscriptionError, match="tag 'c' has the same key"):
        matcher.insert({2: "x > 1"}, tags={2: ["c", "d"]})
    matcher.insert({2: "x > 1"}, tags={2: ["a", "d"]})
    found = [matcher.count(pa.table({"x": [5]}), tags=[tag]).tolist() for tag in "abcd"]
    assert found == [[2], [0], [0], [1]]


def test_ids_whose_keys_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "hashes_of", lambda texts: np.zeros(len(texts), np.int64))
    matcher = paged({"a": "x > 0", "b": "x > 1"}, {"x": "int64"}, tmp_path / "a")
    matcher.insert({"c": "x > 2"})
    with pytest.raises(cm.SubscriptionError, match="'b' is there already"):
        matcher.insert({"d": "x > 0", "b": "x > 9"})
    matcher.delete(["b"])
    matcher.upsert({"a": "x > 3"})
    with pytest.raises(cm.SubscriptionError, match="no subscription 'b'"):
        matcher.delete(["b"])
    found = matcher.match_lists(pa.table({"x": [5, 3]})).to_pylist()
    assert [sorted(row) for row in found] == [["a", "c"], ["c"]]


def test_settings_and_errors(tmp_path: Path) -> None:
    matcher = paged({1: "a > 3"}, {"a": "int64"}, tmp_path / "a", cache=1 << 20)
    with pytest.raises(cm.SubscriptionError, match="is there already"):
        matcher.insert({2: "a > 1", 1: "a > 2"})
    with pytest.raises(cm.SubscriptionError, match="no subscription 7"):
        matcher.delete([1, 7])
    with pytest.raises(cm.ExpressionError):
        matcher.insert({3: "a > "})
    matcher.insert({4: "a >", 5: "a < 9"}, errors="collect")
    assert [one.id for one in matcher.rejected] == [4]
    assert matcher.ids.to_pylist() == [1, 5] and matcher.version == 1
    matcher.close()
    with pytest.raises(cm.OptionError, match="closed"):
        matcher.insert({9: "a > 1"})
    opened = cm.Matcher.open(tmp_path / "a")
    assert opened.index == cm.index("pbtree", path=str(tmp_path / "a"), cache_bytes=1 << 20)
    assert (opened.kind, opened.version, len(opened)) == ("pbtree", 1, 2)
    assert [one.id for one in opened.rejected] == [4]
    stats = opened.stats()
    assert stats["cache"]["pages"] == 256 and stats["pages"] > 8
    opened.compact()
    assert opened.match(pa.table({"a": [4]})).num_rows == 2


def test_events_are_not_observed_for_a_file_of_pages(tmp_path: Path) -> None:
    """Nothing is built by what they have; to keep them without a word would promise that."""
    observe = cm.Options(observe=64)
    for subscriptions in ({1: "a > 3"}, [(1, "no SQL at all")]):
        with pytest.raises(cm.OptionError, match=r"Options\(observe=64\): no events .*: leave observe=0, or choose"):
            paged(subscriptions, {"a": "int64"}, tmp_path / "a", options=observe)
    assert not (tmp_path / "a").exists()
    with paged({1: "a > 3"}, {"a": "int64"}, tmp_path / "a") as matcher:
        with pytest.raises(cm.OptionError, match=r"Options\(observe=64\)"):
            matcher.options = observe
        assert matcher.options.observe == matcher.stats()["observed"] == 0
        matcher.options = cm.Options(batch_rows=9)
        copied = pickle.loads(pickle.dumps(matcher))
    copied.options = observe
    assert copied.options == observe


def test_how_a_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    paged({1: "a > 3"}, {"a": "int64"}, path).close()
    with cm.Matcher.open(path, cache_bytes=1 << 20, fsync=True) as matcher:
        assert matcher.stats()["cache"]["pages"] == 256
        assert matcher.index == cm.index("pbtree", path=str(path), cache_bytes=1 << 20, fsync=True)
    assert cm.Matcher.open(path).index == cm.index("pbtree", path=str(path), cache_bytes=FEW)
    monkeypatch.chdir(tmp_path)
    with cm.Matcher.open("a") as matcher:
        monkeypatch.chdir("/")
        matcher.insert({2: "a > 4"})
        assert matcher.count(pa.table({"a": [5]})).tolist() == [2]
        matcher.delete([2])
    with cm.Matcher.open(path, cache_bytes=(1 << 40) - 1) as matcher:  # more than any machine has
        matcher.insert({i: f"a = {i}" for i in range(2, 6000)})
        assert matcher.match_lists(pa.table({"a": [77]})).to_pylist() in ([[1, 77]], [[77, 1]])
        assert len(inside.page_file(matcher).cache.page) < 1 << 16
    with pytest.raises(cm.OptionError, match="journal=True: .* is a file of pages"):
        cm.Matcher.open(path, journal=True)
    for odd in (1, 1 << 41, True, "64 MB", 0.5):
        with pytest.raises(cm.OptionError, match="cache_bytes"):
            cm.Matcher.open(path, cache_bytes=odd)  # type: ignore[arg-type]
    cm.Matcher.build({1: "a > 3"}, {"a": "int64"}).save(tmp_path / "b")
    with pytest.raises(cm.OptionError, match="cache_bytes=1048576: .* is no file of pages"):
        cm.Matcher.open(tmp_path / "b", cache_bytes=1 << 20)


class Pages(RuleBasedStateMachine):
    """Updates in any order, with a cache of 8 pages."""

    @initialize(seed=SEEDS, count=st.integers(0, 12), text=st.booleans())
    def build(self, seed: int, count: int, text: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "pages")
        rng = Random(seed)
        self.text = text
        self.schema = schema = a_schema(rng)
        self.leaves, self.rows = terms(schema), some_rows(rng, schema, 5)
        self.events = plain_table(schema, self.rows)
        self.there: dict[Any, Expr] = {}
        self.matcher = paged(self.more(rng, range(count)), schema, self.path, options=LENIENT)

    def teardown(self) -> None:
        self.matcher.close()
        self.folder.cleanup()

    def more(self, rng: Random, ids: Any) -> dict[Any, str]:
        new = {f"i{id}" if self.text else id: an_expression(rng, self.leaves, rng.choice([0, 1, 2])) for id in ids}
        self.there |= new
        return {id: to_sql(e) for id, e in new.items()}

    @rule(seed=SEEDS, count=st.integers(1, 30))
    def insert(self, seed: int, count: int) -> None:
        free = [id for id in range(200) if (f"i{id}" if self.text else id) not in self.there]
        self.matcher.insert(self.more(Random(seed), Random(seed).sample(free, min(count, len(free)))))

    @rule(seed=SEEDS, count=st.integers(1, 9))
    def replace(self, seed: int, count: int) -> None:
        self.matcher.upsert(self.more(Random(seed), Random(seed).sample(range(200), count)))

    @rule(seed=SEEDS, count=st.integers(1, 40))
    def delete(self, seed: int, count: int) -> None:
        gone = Random(seed).sample(sorted(self.there), min(count, len(self.there)))
        self.matcher.delete(gone)
        for id in gone:
            del self.there[id]

    @rule(seed=SEEDS, count=st.integers(1, 9))
    def release(self, seed: int, count: int) -> None:
        rng = Random(seed)
        gone = rng.sample(sorted(self.there), min(count, len(self.there)))
        for id in gone:
            del self.there[id]
        self.matcher.update(delete=gone, upsert=self.more(rng, rng.sample(range(200), count)))

    @rule(close=st.booleans())
    def open_again(self, close: bool) -> None:
        version = self.matcher.version
        if close:
            self.matcher.close()
        else:  # as if the process had ended
            inside.page_file(self.matcher).close()
        self.matcher = cm.Matcher.open(self.path)
        assert self.matcher.version == version

    @rule()
    def compact(self) -> None:
        self.matcher.compact()

    @invariant()
    def finds_what_the_oracle_says(self) -> None:
        wanted = expected_pairs(list(self.there.values()), list(self.there), self.rows)
        assert pairs(self.matcher.match(self.events)) == wanted
        assert len(self.matcher) == len(self.there)
        check(str(self.path))


def test_updates_in_any_order() -> None:
    case = Pages.TestCase
    phases = [phase for phase in Phase if phase is not Phase.shrink]
    case.settings = settings(
        case.settings,
        max_examples=2 if SMALL else 8,
        stateful_step_count=8 if SMALL else 20,
        deadline=None,
        phases=phases,
    )
    case("runTest").debug()


@pytest.mark.parametrize("seed", range(2 if SMALL else 6))
def test_trees_that_grow_and_shrink(seed: int, tmp_path: Path) -> None:
    """Deep enough that leaves and nodes of lists split and merge, with SidSets of several nodes."""
    rng = Random(seed)
    spread = rng.choice([3, 300, 10**6])

    def text() -> str:
        a, b = sorted(rng.choices(range(-spread, spread), k=2))
        return rng.choice([
            f"a between {a} and {b}", f"a > {a} and c <> {b}", f"a = {a}", f"b <= {b} and a in ({a}, {b + 1})", f"b = {a}",
            f"c not in ({a}, {b + 2})", f"a = {a} or b > {b}",
        ])  # fmt: skip

    there = {i: text() for i in range(300)}
    schema = dict.fromkeys("abc", "int64")
    matcher, deep = paged(there, schema, tmp_path / "a"), 0
    events = pa.table({name: rng.choices(range(-spread, spread), k=12) for name in "abc"})
    count = 400 if SMALL else 1500
    for step, size in enumerate([count, -count // 2, count, -2 * count, 50]):
        if size > 0:
            new = {1000 * (step + 1) + i: text() for i in range(size)}
            matcher.insert(new)
            there |= new
        else:
            gone = rng.sample(sorted(there), min(-size, len(there)))
            matcher.delete(gone)
            for id in gone:
                del there[id]
        other = cm.Matcher.build(there, schema, index="scan")
        assert pairs(matcher.match(events)) == pairs(other.match(events))
        figures = check(str(tmp_path / "a"))
        deep = max(deep, figures.depth)
    assert deep > 1


def test_an_error_of_a_value_belongs_to_the_subscriptions_that_depend_on_it(tmp_path: Path) -> None:
    schema = pa.schema({"i": pa.int32(), "j": pa.int32()})
    index = cm.index("pbtree", path=str(tmp_path / "a"))
    texts = {1: "j <> 0 AND i / j > 1", 2: "i / j > 1 AND i < 3", 3: "i > 3"}
    matcher = cm.Matcher.build(texts, schema, index=index, options=cm.Options(ansi=True, batch_rows=2))
    events = pa.table({"i": [4, 8, 5, 1], "j": [0, 1, 0, 0]}, schema)
    assert matcher.match_lists(events.slice(0, 3)).to_pylist() == [[3], [1, 3], [3]]
    for find in (matcher.match, matcher.count, matcher.hits, lambda some: matcher.match_topk(some, 1)):
        with pytest.raises(
            cm.EventError, match=r"^event 3: i / j cannot be computed: division by zero \(subscription 2\)"
        ):
            find(events)
    assert matcher.match_lists(events, ids=[1, 3]).to_pylist() == [[3], [1, 3], [3], []]
    matcher.delete([2])
    assert matcher.match_lists(events).to_pylist() == [[3], [1, 3], [3], []]


@pytest.mark.parametrize("cache", [1 << 20, 1 << 16])
def test_pages_that_are_freed_within_an_update_are_used_again_in_it(cache: int, tmp_path: Path) -> None:
    """Growing trees leave small pages behind. With a small cache, operations are begun anew."""
    work = named("dense", subscriptions=600 if SMALL else 3000, attributes=200 if SMALL else 1000)
    table, sizes, found = work.predicate_table(), {}, []
    for name, first in (("built", table), ("inserted", {})):
        index = cm.index("pbtree", path=str(tmp_path / name), cache_bytes=cache)
        with cm.Matcher.build(first, work.schema(), index=index) as matcher:
            if name == "inserted":
                matcher.insert(table)
            sizes[name] = matcher.stats()["pages"]
            found.append(matcher.match(work.events(50)))
            figures = check(str(tmp_path / name))
            assert figures.pages.get("free", 0) < sizes[name] // 8
    assert found[0].equals(found[1])
    assert sizes["inserted"] < 1.25 * sizes["built"]


def test_an_insert_takes_the_place_of_an_attribute_that_nothing_uses(tmp_path: Path) -> None:
    """The build leaves a free id for the column of a rule that can never be true."""
    rules, schema = {"a": "x > 1", "never": "y > 1 AND y < 0"}, {"x": "int64", "y": "int64", "z": "int64"}
    path = str(tmp_path / "pages")
    matcher = cm.Matcher.build(rules, schema, index=cm.index("pbtree", path=path))
    matcher.insert({"c": "z = 1"})
    for one in (matcher, cm.Matcher.open(path)):
        assert one.match_one({"x": 0, "y": 0, "z": 1}) == ["c"]
