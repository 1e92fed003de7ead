"""Which calls are made so that kernels are compiled, step by step.

A call compiles the kernels that it runs, for the types that it hands to them. So the steps go
wherever Python's code chooses among kernels: few or many subscriptions, one event or a batch, with
weights or without.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch import betree
from colmatch.errors import OptionError
from colmatch.events.long_form import from_pairs
from colmatch.indexing.plan import index, settings_of
from colmatch.indexing.registry import IndexName
from colmatch.indexing.settings import Settings
from colmatch.matcher import Matcher
from colmatch.options import Options
from colmatch.paged.check import check
from colmatch.subscriptions.intake import FEWEST_TEXTS
from colmatch.subscriptions.table import PredicateTable
from colmatch.warming import samples

ONE = {"n0": ("low", "high")}
TWO = ONE | {"n1": ("low", "high")}


class Step(NamedTuple):
    """Some calls.

    Attributes
    ----------
    name : what they are about
    run : makes them, with files in a folder
    """

    name: str
    run: Callable[[Path], None]


def steps(kinds: Sequence[IndexName]) -> list[Step]:
    """Returns the steps for some kinds of index, and for what matchers of any kind may need."""
    first = kinds[0]
    found = [
        Step("types of columns", partial(_types, first)),
        Step("languages", partial(_languages, first)),
        Step("literals", partial(_literals, first)),
        Step("texts", partial(_texts, first)),
    ]
    for kind in kinds:
        for settings in _variants(kind):
            found.append(Step(str(settings), partial(_of_settings, settings)))
        found.append(Step(f"{kind}: weights", partial(_weights, kind)))
        found.append(Step(f"{kind}: updates", partial(_updates, kind)))
        found.append(Step(f"{kind}: files", partial(_files, kind)))
        if _has(kind, "path"):
            found.append(Step(f"{kind}: pages", partial(_pages, kind)))
    return found


def _has(kind: IndexName, setting: str) -> bool:
    return setting in {field.name for field in fields(settings_of(kind))}


def _variants(kind: IndexName) -> Iterator[Settings]:
    """Yields a kind with its defaults, then with each other choice of a setting."""
    yield index(kind)
    for field in fields(settings_of(kind)):
        choices = field.metadata["allowed"]
        for value in choices if type(choices) is tuple and field.name != "fsync" else ():
            if value != field.default:
                yield index(kind, **{field.name: value})


def _asked(matcher: Matcher, events: pa.Table, ids: list[Any]) -> None:
    """Asks whatever can be asked of a matcher."""
    for some in (events, events.slice(1, 1), events.slice(0, 0)):
        matcher.match(some)
        matcher.match_lists(some)
        matcher.count(some)
        matcher.exists(some)
        matcher.hits(some)
    matcher.match(events, ids=ids)
    matcher.count(events, tags=["odd"])
    matcher.match(events.slice(1, 1), ids=ids[:1], tags=["odd"])
    matcher.reasons(events)
    matcher.reasons(events, by="predicate")
    matcher.explain(events.slice(1, 1), matcher.ids[0].as_py())
    matcher.match_one(events.slice(1, 1).to_pylist()[0], unknown="ignore")
    matcher.stats()


def _asked_best(matcher: Matcher, events: pa.Table) -> None:
    for score in ("dot", "sum", "max", "priority"):
        matcher.match_topk(events, 2, score)
        matcher.match_topk(events.slice(1, 1), 1, score)
    matcher.match_topk(events, 2, event_weights={"n0": "weight", "s": 3.0})
    matcher.match_topk(events, 2, event_weights="weights")
    matcher.match_topk(events, 2, ids=[1, 2, 3])


def _asked_ranges(matcher: Matcher, events: pa.Table) -> None:
    for ranges in (ONE, TWO):
        matcher.match(events, ranges)
        matcher.count(events, ranges)
        matcher.exists(events, ranges)
        matcher.match(events.slice(1, 1), ranges)


def _types(kind: IndexName, _: Path) -> None:
    """Columns of all types and forms; patterns, computed values, special functions."""
    events = samples.rich_events()
    texts = dict(enumerate(samples.RICH_TEXTS))
    matcher = Matcher.build(texts, samples.RICH, kind)
    encoded = events
    for name, code in (("s", pa.int32()), ("x", pa.int8())):
        at = events.column_names.index(name)
        encoded = encoded.set_column(at, name, events[name].cast(pa.dictionary(code, events[name].type)))
    at = events.column_names.index("s")
    for some in (
        events,
        encoded,
        pa.concat_tables([events.slice(0, 3), events.slice(3)]),
        events.set_column(at, "s", events["s"].cast(pa.large_string())),
        events.set_column(at, "s", events["s"].cast(pa.string_view())),
    ):
        _asked(matcher, some, [1, 2])
    matcher.match(events, now=1_763_890_000)
    Matcher.build({1: "s ILIKE '%\u00e9%'"}, {"s": "string"}, kind).match(pa.table({"s": ["\u00c9"]}))
    matcher.insert({100: "s LIKE '%new%'", 101: "geo_within_radius(lat, lon, 1.0, 1.0, 5.0)"})
    matcher.match(events)
    Matcher.build(texts, samples.RICH, kind, sample=events).match(events)
    each = Matcher.build({f"id {i}": text for i, text in texts.items()}, samples.RICH, kind)  # ids are strings
    _asked(each, events, ["id 1"])
    each.replace({f"id {i}": f"i8 = {i}" for i in range(30)})
    each.delete(["id 1"])
    each.match(events, ids=["id 2", "no such"])


def _languages(kind: IndexName, _: Path) -> None:
    """be-tree's language, tables of predicates, and events in long form."""
    domains = betree.Domains(
        "age|integer|false|0|150\ncity|string|true\ninterests|string list|true\nnow|integer|true\n"
        "frequency_caps|frequency|true\nsegments_with_timestamp|segments|true"
    )
    texts = {
        1: 'age >= 18 and city in ("NYC", "LA")',
        2: 'not (interests one of ("golf", "cars")) and within_frequency_cap("flight", "shop", 3, 3600)',
        3: "segment_within(12, 60) or age < 10",
    }
    matcher = Matcher.build(texts, domains, kind, language="betree", constants={2: {"flight_id": 7}})
    line = '{"age": 36, "city": "LA", "now": 9000, "frequency_caps": [[["flight", 7, "shop"], 3, 1000000]]}'
    matcher.match(betree.events([line, '{"city": "NYC"}'], domains), invalid="collect")
    columns = {"id": [1, 2], "attribute": ["n0", "n1"], "op": ["<", "between"], "operands": [[5], [3, 9]]}
    more = {"conjunction": pa.array([0, 1], pa.int32()), "weight": [0.5, 2.0], "priority": [1.0, 2.0]}
    names = {"id": [1, 3], "attribute": ["s", "s"], "op": ["in", "like"], "operands": [["a", "b"], ["a%"]]}
    tables = PredicateTable(pa.table(columns | more), pa.table(names))
    _asked(Matcher.build(tables, samples.PLAIN, kind), samples.events(3), [1])
    pairs = from_pairs({"event": [0, 0, 2], "attribute": ["age", "km", "age"], "value": [31, 12, 47]})
    Matcher.build({1: "attrs['age'] > 30 AND attrs['km'] < 20"}, pairs.schema, kind).match(pairs)


def _texts(kind: IndexName, _: Path) -> None:
    """So many texts that kernels read them, a long one among them."""
    texts = {i: f"n0 > {i} AND (n1 IN (1, {i}) OR s = 'it''s {i}')" for i in range(FEWEST_TEXTS)}
    Matcher.build(texts | {-1: " OR ".join(f"n{i % 3} = {i}" for i in range(1000))}, samples.PLAIN, kind)


def _literals(kind: IndexName, _: Path) -> None:
    """Many string literals that come and go, some of which have no room between others."""
    schema, events = {"s": "string"}, pa.table({"s": ["a", "b7", None]})
    matcher = Matcher.build({i: f"s = 'b{i}'" for i in range(20)}, schema, kind)
    matcher.insert({1000 + i: f"s = 'm{i}' OR s > 'n{i}'" for i in range(600)})
    matcher.delete(list(range(1000, 1550)))
    matcher.compact()
    matcher.match(events)
    for i in range(10):  # each just above the first one, until there is no room left
        matcher.insert({5000 + i: f"s = 'aaaaaaaaaaaa' OR s < '{'a' * (i + 1)}b'"})
    matcher.match(events)


def _of_settings(settings: Settings, _: Path) -> None:
    """A kind with some settings: what is expanded and what is kept whole, weights, updates."""
    events = samples.events(70)
    for given in (settings, replace(settings, dnf_budget=1)):
        with suppress(OptionError), Matcher.build(samples.weighted(40), samples.PLAIN, given) as matcher:
            _asked_best(matcher, events)
            _asked(matcher, events, [1, 2])
            _asked_ranges(matcher, events)
            matcher.insert(samples.weighted(1, 100))
            matcher.insert(samples.weighted(20, 200))
            matcher.delete([3, 100, 201])
            _asked(matcher, events, [1, 2, 202])
            _asked_best(matcher, events)
            _asked_ranges(matcher, events)
            matcher.compact()


def _weights(kind: IndexName, _: Path) -> None:
    """Weights without priorities and the reverse, with a sample and without, few and many."""
    events = samples.events(70)
    for weights, priority in ((True, False), (False, True), (False, False)):
        for count in (3, 40):
            given = samples.weighted(count, weights=weights, priority=priority)
            for sample in (None, events):
                with Matcher.build(given, samples.PLAIN, kind, sample=sample) as matcher:
                    matcher.match(events)
                    _asked_best(matcher, events)
                    matcher.insert(samples.weighted(2, 100, weights=weights, priority=priority))
                    _asked_best(matcher, events)


def _updates(kind: IndexName, _: Path) -> None:
    """Updates one by one and many at once, until segments are frozen and merged."""
    events = samples.events(70)
    options = Options(observe=16, order="any")
    with Matcher.build(samples.texts(40), samples.PLAIN, kind, options, sample=events) as matcher:
        for i in range(4):
            matcher.insert(samples.texts(1, 100 + i))
            matcher.match(events)
        matcher.replace(samples.texts(2, 5))
        matcher.insert(samples.texts(500, 1000))
        matcher.insert(samples.texts(40, 2000))
        matcher.insert(samples.texts(600, 3000))
        _asked(matcher, events, [1, 2, 3000])
        matcher.delete(list(range(1000, 1400)))
        matcher.delete([1, 2])
        matcher.match(events)
        matcher.compact()
        matcher.compact(sample=events)
        _asked(matcher, events, [5])


def _files(kind: IndexName, folder: Path) -> None:
    """Saved and opened in all ways, with a journal, and pickled."""
    events, path = samples.events(20), folder / f"{kind}.cm"
    with Matcher.build(samples.weighted(40), samples.PLAIN, kind) as matcher:
        matcher.insert(samples.weighted(3, 100))
        matcher.save(path)
        _asked(pickle.loads(pickle.dumps(matcher)), events, [1])
    every: tuple[dict[str, Any], ...] = {}, {"trusted": True}, {"mmap": False}
    for how in every:
        with Matcher.open(path, **how) as matcher:
            _asked(matcher, events, [1])
            _asked_best(matcher, events)
    for _ in range(2):
        with Matcher.open(path, journal=True) as matcher:
            matcher.replace(samples.weighted(3, 200))
            matcher.match(events)


def _pages(kind: IndexName, folder: Path) -> None:
    """A file of pages: built, changed, checked, and asked whatever it can be asked."""
    events, path = samples.events(70), folder / f"{kind}.pages"
    with Matcher.build(samples.weighted(60), samples.PLAIN, index(kind, path=str(path))) as matcher:
        _asked(matcher, events, [1, 2])
        for count, first in ((1, 100), (40, 200)):
            matcher.insert(samples.weighted(count, first))
            matcher.match(events)
        matcher.delete([1, 2, 201])
        matcher.replace(samples.weighted(3, 5))
        _asked(matcher, events, [5])
        _asked_best(matcher, events)
        _asked_ranges(matcher, events)
        matcher.save(folder / f"{kind}.copy")
    with Matcher.open(path) as matcher:
        matcher.match(events)
    check(str(path))
    named = {f"id {i}": text for i, text in samples.texts(20).items()}
    with Matcher.build(named, samples.PLAIN, index(kind, path=str(folder / f"{kind}.names"))) as matcher:
        matcher.insert({"new": "s = 'a'"})
        matcher.delete(["id 1"])
        _asked(matcher, events, ["id 2"])
