"""Whatever is passed to the public API, only colmatch's own errors come out.

The Arrow data and odd arguments are drawn in ``odd.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from odd import NAMES, SCHEMA, array, lists, odd, table
from sizes import THOROUGH
from test_fuzz import WORDS
from workload import named

import colmatch as cm
from colmatch.given.declared import parse_schema

# eight tests: 32,000 in all
calls = settings(max_examples=4000 if THOROUGH else min(40, settings.default.max_examples))
SEEDS = st.integers(0, 2**63)
ATTRIBUTES = [
    *NAMES,
    "attrs['k']",
    "by_num[3]",
    "by_num['k']",
    "size(tags)",
    "size(a)",
    "nothing",
    " " * 20,
    "a.b.c",
    "attrs['",
    "\\",
    "(",
    "deep.x",
    "lower(s)",
    "a + f",
    "a * s",
    "upper(",
    "hour(ts) % 2",
    "a < f",
]
OPS = [
    "=",
    "<>",
    "<",
    ">=",
    "between",
    "in",
    "not in",
    "like",
    "rlike",
    "startswith",
    "is null",
    "is not null",
    "array_contains",
    "~",
    " " * 20,
    "not",
]


def call(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What the function returns, None where it refuses."""
    try:
        return function(*args, **named)
    except cm.ColmatchError as refused:
        error = refused
    assert 0 < len(str(error)) < 5000, "an error is a sentence"
    return None


def predicate_table(rng: Random) -> Any:
    rows = rng.choice([0, 1, 1, 2, 5])
    one = rng.random() < 0.5
    columns = {
        "id": array(rng, rows, rng.choice([pa.int64(), pa.string()])) if rng.random() < 0.5 else pa.array(range(rows)),
        "attribute": pa.array([rng.choice(ATTRIBUTES) for _ in range(rows)], pa.string()),
        "op": pa.array([rng.choice(OPS) for _ in range(rows)], pa.string()),
        "operands": lists(rng, rows),
    }
    if one and rows:
        columns["attribute"] = pa.array([rng.choice(ATTRIBUTES)] * rows)
    if rng.random() < 0.3:
        columns["conjunction"] = array(rng, rows, rng.choice([pa.int64(), pa.int8(), pa.uint64()]))
    if rng.random() < 0.3:
        columns["weight"] = array(rng, rows, rng.choice([pa.float64(), pa.int64(), pa.float16()]))
    return table(rng, columns)


def tags(rng: Random) -> Any:
    """What may be given as the tags of subscriptions."""
    way = rng.randrange(3)
    if way == 0:
        return odd(rng)
    if way == 1:
        return {rng.choice([1, 2, "1", None, 2**70]): odd(rng) for _ in range(2)}
    rows = rng.choice([0, 1, 2])
    return table(
        rng, {"id": array(rng, rows) if rng.random() < 0.3 else pa.array(range(rows)), "tags": lists(rng, rows)}
    )


def events(rng: Random) -> Any:
    rows = rng.choice([0, 1, 1, 3])
    columns = {field.name: pa.nulls(rows, field.type) for field in SCHEMA if rng.random() < 0.6} or {
        "a": pa.nulls(rows, pa.int64())
    }
    for name in list(columns):
        if rng.random() < 0.3:
            columns[name] = array(rng, rows)
    return table(rng, columns)


def _texts(rng: Random) -> Any:
    if rng.random() < 0.5:
        return rng.choice(
            [
                "a = 1",
                "s LIKE '%x%'",
                "attrs['k'] > 1",
                "size(tags) = 1",
                "s RLIKE 'x+'",
                "day > DATE '2013-01-31'",
                "flag",
            ]
        )
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(8))).replace("\ud800", "")


EXPRESSIONS = {
    1: "a = 1 OR f > 1 OR s LIKE '%x%' OR s RLIKE 'x+y' OR flag", 2: "day > DATE '2013-01-31' AND ts < TIMESTAMP '2013-01-31 00:00:00'",
    3: "attrs['k'] > 1 OR by_num[3] = 'x' OR array_contains(tags, 'x') OR size(tags) = 1",
    4: "user.age = 1 OR dec > 1 OR u64 = 1 OR coded = 'x'",
    5: "bin = X'1F' OR local > TIMESTAMP_NTZ '2013-01-31 00:00:00'",
}  # fmt: skip


SIZES = [
    "subscriptions", "seed", "attributes", "operators", "width", "equality", "event_size", "layout", "value_zipf",
    "planted", "x",
]  # fmt: skip
NOTHING = pa.RecordBatch.from_pylist([{}], SCHEMA)
TAKEN = {
    "match": ("ids", "tags", "ranges", "invalid"), "match_lists": ("ids", "tags", "ranges"), "count": ("ids", "tags", "ranges"),
    "exists": ("ids", "tags", "ranges"), "match_topk": ("ids", "tags", "k", "score"), "reasons": ("ids", "tags", "by"),
    "subset": ("ids", "tags"), "counters": ("ids", "tags", "ranges", "k", "score"),
}  # fmt: skip


@pytest.fixture(scope="module")
def matchers() -> list[cm.Matcher]:
    texts = {str(id): text for id, text in EXPRESSIONS.items()}
    return [cm.Matcher.build(EXPRESSIONS, SCHEMA, index="scan"), cm.Matcher.build(texts, SCHEMA, index="scan")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working folder, where odd names may be saved under."""
    before, folder = Path.cwd(), tmp_path_factory.mktemp("odd")
    os.chdir(folder)
    yield folder
    os.chdir(before)


@calls
@given(SEEDS)
@example(922924549)  # lists of lists of structs, which Arrow's cast to large lists makes malformed
def test_predicate_tables(seed: int) -> None:
    rng = Random(seed)
    made = call(cm.PredicateTable, *[predicate_table(rng) for _ in range(rng.choice([1, 1, 1, 2]))])
    if made is not None:
        call(cm.Matcher.build, made, SCHEMA, index="scan", errors=rng.choice(["raise", "collect"]))


@calls
@given(SEEDS)
def test_tables_of_expressions(seed: int) -> None:
    rng = Random(seed)
    rows = rng.choice([0, 1, 1, 2, 5])
    ids = array(rng, rows, rng.choice([pa.int64(), pa.string()])) if rng.random() < 0.5 else pa.array(range(rows))
    columns = {
        "id": ids,
        "expression": array(rng, rows, pa.string())
        if rng.random() < 0.3
        else pa.array([_texts(rng) for _ in range(rows)]),
    }
    if rng.random() < 0.3:
        columns["tags"] = array(rng, rows) if rng.random() < 0.5 else lists(rng, rows)
    beside = {"tags": tags(rng)} if rng.random() < 0.2 else {}
    errors = rng.choice(["raise", "collect"])
    matcher = call(cm.Matcher.build, table(rng, columns), SCHEMA, index="scan", errors=errors, **beside)
    if matcher is not None:
        assert len(matcher.tags) == len(matcher)
        call(matcher.delete, ids)


@calls
@given(SEEDS)
def test_pairs(seed: int) -> None:
    rng = Random(seed)
    rows = rng.choice([0, 1, 2, 5])
    columns = {
        "event": array(rng, rows, rng.choice([pa.int64(), pa.int8()])) if rng.random() < 0.5 else pa.array(range(rows)),
        "attribute": array(rng, rows, rng.choice([pa.string(), pa.int64()])),
        "value": array(rng, rows),
    }
    pairs = table(rng, columns) if rng.random() < 0.9 else odd(rng)
    named = {name: odd(rng) for name in ("column", "rows") if rng.random() < 0.2}
    made = call(cm.from_pairs, pairs, **named)
    if made is not None and made.num_rows < 1000:
        matcher = cm.Matcher.build({1: "attrs['k'] = 1"}, {"attrs": pa.map_(pa.string(), pa.int64())}, index="scan")
        call(matcher.match, made)


@calls
@given(SEEDS)
def test_events(matchers: list[cm.Matcher], seed: int) -> None:
    rng = Random(seed)
    given = events(rng) if rng.random() < 0.9 else odd(rng)
    given = given.read_all() if isinstance(given, pa.RecordBatchReader) else given
    matcher = rng.choice(matchers)
    name = rng.choice(["match", "match_lists", "count", "match_batches", "counters"])
    found = call(getattr(matcher, name), given)
    if name == "match_batches" and found is not None:
        call(list, found)


@calls
@given(SEEDS)
def test_explanations(matchers: list[cm.Matcher], seed: int) -> None:
    rng = Random(seed)
    matcher = rng.choice(matchers)
    way = rng.randrange(3)
    if way == 0:
        event = {field.name: odd(rng) for field in SCHEMA if rng.random() < 0.2}
    else:
        event = events(rng) if way == 1 else odd(rng)
    id = (
        odd(rng)
        if rng.random() < 0.2
        else rng.choice([1, 2, 3, 4, 5] if matcher is matchers[0] else ["1", "2", "3", "4", "5"])
    )
    found = call(matcher.explain, event, id)
    if found is not None:
        assert str(found)


@calls
@given(SEEDS)
def test_files(matchers: list[cm.Matcher], folder: Path, seed: int) -> None:
    rng = Random(seed)
    good = folder / "good.cm"
    if not good.exists():
        matchers[0].save(good)
    data = bytearray(good.read_bytes()) if rng.random() < 0.5 else bytearray(rng.randbytes(rng.randrange(200)))
    for _ in range(rng.choice([0, 1, 5])):
        if data:
            data[rng.randrange(min(len(data), rng.choice([100, 10**9])))] = rng.randrange(256)
    bad = folder / "bad.cm"
    bad.write_bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.5 else data)
    path = odd(rng) if rng.random() < 0.5 else bad
    try:
        call(cm.Matcher.open, path, **{name: odd(rng) for name in ("mmap", "verify") if rng.random() < 0.1})
        call(matchers[0].save, odd(rng))
    except OSError:  # as ``open`` says that there is no such file, or that its name is too long
        pass


@calls
@given(SEEDS)
def test_arguments(matchers: list[cm.Matcher], seed: int) -> None:
    rng = Random(seed)
    what = rng.randrange(9)
    if what == 8:
        matcher = rng.choice(matchers)
        asked = {
            name: odd(rng) for name in ("ids", "tags", "ranges", "invalid", "by", "k", "score") if rng.random() < 0.3
        }
        ask = rng.choice(["match", "match_lists", "count", "exists", "match_topk", "reasons", "subset", "counters"])
        taken = {name: value for name, value in asked.items() if name in TAKEN[ask]}
        if ask == "match_topk":
            taken.setdefault("k", 1)
        call(getattr(matcher, ask), *([] if ask == "subset" else [NOTHING]), **taken)
        read = rng.choice(
            [cm.rules.from_json_rules, cm.rules.from_jsonlogic, cm.rules.from_growthbook, cm.rules.from_flagd]
        )
        call(read, odd(rng), *([odd(rng)] if rng.random() < 0.3 else []))
    elif what < 3:
        arguments: dict[str, Any] = {"subscriptions": {1: "a = 1"}, "schema": SCHEMA, "index": "scan"}
        for name in rng.sample(
            [
                "subscriptions",
                "schema",
                "index",
                "options",
                "errors",
                "sample",
                "language",
                "missing",
                "constants",
                "tags",
            ],
            rng.choice([1, 1, 2]),
        ):
            arguments[name] = odd(rng)
        call(cm.Matcher.build, **arguments)
    elif what == 3:
        fields = ["batch_rows", "threads", "missing_columns", "order", "max_depth", "timezone"]
        call(cm.Options, **{rng.choice(fields): odd(rng)})
        settings = ["dnf_budget", "cnf_budget", "signatures", "enumerate", "no"]
        call(cm.index, rng.choice([*cm.index_kinds(), "auto", odd(rng)]), **{rng.choice(settings): odd(rng)})
    elif what == 4:
        name = odd(rng)
        name = name if rng.random() < 0.5 and type(name).__hash__ and not isinstance(name, (memoryview, tuple)) else "a"
        columns = odd(rng) if rng.random() < 0.3 else {name: odd(rng)}
        call(cm.Schema, columns)
    elif what == 5:
        matcher = cm.Matcher.build(rng.choice([{1: "a = 1"}, {"x": "a = 1"}, {}]), SCHEMA, index="scan")
        for _ in range(3):
            call(
                getattr(
                    matcher, rng.choice(["insert", "replace", "upsert", "sync", "delete", "expression", "restore"])
                ),
                odd(rng),
            )
        call(matcher.insert, {9: "TRUE"}, errors=odd(rng))
        call(matcher.replace, {8: "TRUE"}, tags=tags(rng))
        call(matcher.count, pa.table({"a": [1]}))
    elif what == 6:
        name = rng.choice(["dense", "opindex", odd(rng)])
        made = call(named, name, **{rng.choice(SIZES): odd(rng)})
        if made is not None:
            call(getattr(made, rng.choice(["texts", "predicates", "events", "pairs"])), odd(rng), odd(rng))
    else:
        text = "".join(
            rng.choice(
                [
                    "a",
                    ":",
                    ",",
                    "<",
                    ">",
                    "(",
                    ")",
                    "[",
                    "list",
                    "map",
                    "int64",
                    "{",
                    "}",
                    '"',
                    " ",
                    "\n",
                    "1",
                    "decimal",
                    "timestamp",
                    "struct",
                    "\ud800",
                ]
            )
            for _ in range(rng.randrange(12))
        )
        call(parse_schema, text)


METHODS = [
    "__eq__",
    "__lt__",
    "eq_null_safe",
    "isin",
    "like",
    "ilike",
    "rlike",
    "startswith",
    "endswith",
    "contains",
    "array_contains",
]
METHODS += ["arrays_overlap", "contains_all", "__getitem__", "__and__", "__or__", "__rand__", "__ror__", "between"]


@calls
@given(SEEDS)
def test_built_expressions(seed: int) -> None:
    rng = Random(seed)
    column = call(
        cm.col,
        *([odd(rng)] if rng.random() < 0.2 else [rng.choice(ATTRIBUTES)]),
        *([odd(rng)] if rng.random() < 0.1 else []),
    )
    if column is None:
        return
    name = rng.choice(METHODS)
    made = call(getattr(column, name), *([odd(rng), odd(rng)] if name == "between" else [odd(rng)]))
    if made is not None and made is not NotImplemented:
        str(made)
        id = odd(rng) if rng.random() < 0.1 else 1
        call(cm.Matcher.build, [(id, made)], SCHEMA, index="scan", errors=rng.choice(["raise", "collect"]))
