"""Reports about rules, compared with counts of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm

SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "s": pa.string(),
        "x": pa.float64(),
        "m": pa.map_(pa.string(), pa.int64()),
        "never": pa.int64(),
        "free": pa.bool_(),
    }
)
Event = dict[str, Any]
TESTS: dict[str, dict[str, Callable[[Event], bool]]] = {  # conditions on each column
    "i": {
        "i < 5": lambda e: e["i"] is not None and e["i"] < 5,
        "i BETWEEN 2 AND 4": lambda e: e["i"] is not None and 2 <= e["i"] <= 4,
        "i IN (1, 3, 7)": lambda e: e["i"] in (1, 3, 7),
        "i NOT IN (1, 3)": lambda e: e["i"] not in (1, 3, None),
        "i IS NULL": lambda e: e["i"] is None,
    },
    "s": {
        "s = 'a'": lambda e: e["s"] == "a",
        "s IN ('a', 'c')": lambda e: e["s"] in ("a", "c"),
        "s LIKE '%b%'": lambda e: e["s"] is not None and "b" in e["s"],
        "s IS NOT NULL": lambda e: e["s"] is not None,
    },
    "x": {"x > 0.5": lambda e: e["x"] is not None and e["x"] > 0.5, "x * x < 0.01": lambda e: e["x"] is not None and e["x"] ** 2 < 0.01},
    "m": {"m['k'] >= 2": lambda e: e["m"].get("k", 0) >= 2, "m['l'] = 1": lambda e: e["m"].get("l") == 1},
    "never": {"never = 1": lambda e: False, "never IS NULL": lambda e: True},
}  # fmt: skip


def some_events(rng: Random, count: int) -> list[Event]:
    return [
        {
            "i": rng.choice([None, *range(9)]), "s": rng.choice([None, "a", "b", "abc", "c"]), "x": rng.choice([None, 0.05, 0.7, 3.0]),
            "m": rng.choice([{}, {"k": 1}, {"k": 2}, {"k": 5}]),
        }
        for _ in range(count)
    ]  # fmt: skip


def some_rules(rng: Random, count: int) -> list[list[list[str]]]:
    """Rules, each an OR of ANDs of conditions on different columns."""
    made = []
    for _ in range(count):
        ands = [
            [rng.choice(list(TESTS[column])) for column in sorted(rng.sample(sorted(TESTS), rng.randint(2, 3)))]
            for _ in range(rng.choice([1, 1, 2]))
        ]
        made.append([list(one) for one in dict.fromkeys(map(tuple, ands))])
    return made


def counted(rule: list[list[str]], events: list[Event]) -> dict[str, float]:
    """Returns the figures of one rule, counted event by event."""
    test = {text: run for some in TESTS.values() for text, run in some.items()}
    checked = [min(sum(test[text](event) for event in events) for text in texts) for texts in rule]
    matches = sum(any(all(test[text](event) for text in texts) for texts in rule) for event in events)
    return {
        "matches": matches,
        "share": matches / len(events),
        "conjunctions": len(rule),
        "predicates": sum(map(len, rule)),
        "checked": sum(checked),
        "tests": sum(count * len(texts) for count, texts in zip(checked, rule, strict=True)),
    }


def written(rule: list[list[str]]) -> str:
    return " OR ".join(f"({' AND '.join(texts)})" for texts in rule)


@pytest.mark.parametrize("kind", ["scan", "bitslice", "betree", "pbtree", "pages"])
def test_each_rule_is_counted_as_python_counts_it(kind: str, tmp_path: Path) -> None:
    rng = Random(kind)
    events, rules = some_events(rng, 150), some_rules(rng, 120)
    texts = {id: written(rule) for id, rule in enumerate(rules)}
    index = cm.index("pbtree", path=str(tmp_path / "p")) if kind == "pages" else kind
    matcher = cm.Matcher.build({id: texts[id] for id in range(80)}, SCHEMA, index)  # type: ignore[arg-type]
    for first in (80, 100):
        matcher.insert({id: texts[id] for id in range(first, first + 20)})
    matcher.delete(range(0, 120, 7))
    left = [id for id in range(120) if id % 7]
    table = pa.Table.from_pylist(events, SCHEMA.remove(4).remove(4))
    parts = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=37))
    found = matcher.report(parts)
    wanted = [{"subscription": id, **counted(rules[id], events)} for id in left]
    assert sorted(found.rules.to_pylist(), key=lambda row: row["subscription"]) == wanted
    assert (found.events, found.unused, found.absent) == (150, ["free"], ["never"])
    silent = [row["subscription"] for row in wanted if not row["matches"]]
    assert sorted(found.silent["subscription"].to_pylist()) == silent and silent
    noisy = matcher.report(table, noisy=0.2, ids=left[::2]).noisy
    mine = sorted([row for row in wanted[::2] if row["matches"] > 30], key=lambda row: -row["matches"])
    assert noisy["matches"].to_pylist() == [row["matches"] for row in mine] and mine
    assert found.dear["tests"].to_pylist() == sorted((row["tests"] for row in wanted), reverse=True)
    about = {(row["attribute"], row["kind"]): row for row in found.attributes.to_pylist()}
    assert about[("i", "column")]["events"] == sum(event["i"] is not None for event in events)
    assert about[("m['k']", "entry")]["events"] == sum("k" in event["m"] for event in events)
    assert about[("m['l']", "entry")]["events"] == about[("never", "column")]["events"] == 0
    assert about[("s", "text pattern")]["events"] is None
    assert about[("i", "column")]["predicates"] == sum(
        text in TESTS["i"] for id in left for texts in rules[id] for text in texts
    )


def test_programs_lists_and_rules_without_a_condition() -> None:
    """An AND of ORs is tested for every event. An element counts as often as a list has it."""
    ors = [f"(i = {n} OR x > {n})" for n in range(8)]
    rules = {
        "program": " AND ".join(ors),
        "list": "array_contains(tags, 'a')",
        "all": "TRUE",
        "none": "i < 2 AND i > 5",
    }
    schema = {"i": "bigint", "x": "double", "tags": "array<string>"}
    events = pa.table({"x": [9.0, 0.5, None], "tags": [["a", "a", "b"], [], None]})
    found = cm.Matcher.build(rules, schema).report(events, noisy=0)
    assert found.rules["matches"].to_pylist() == [1, 1, 3, 0]
    assert found.rules["checked"].to_pylist() == [3, 1, 3, 0]
    assert found.rules["tests"].to_pylist() == [48, 1, 3, 0]
    assert found.absent == ["i"] and found.unused == []
    assert str(found) == (
        "events: 3, rules: 4\nrules that match no event: 1: 'none'\n"
        "rules that match more than 0%: 3: 'all' 100%, 'program' 33%, 'list' 33%\n"
        "rules with the most work: 'program' 92%, 'all' 6%, 'list' 2%\ncolumns that rules use and no event has: i"
    )


def test_attributes_of_later_rules() -> None:
    """Later rules ask what earlier segments know nothing of. A column of NULLs is absent."""
    matcher = cm.Matcher.build({1: "i < 5"}, SCHEMA, "scan")
    matcher.insert({2: "x > 0 AND never = 1 AND s = 'a'", 3: "m['k'] = 1 AND x > 2"})
    events = pa.table(
        {"i": [1, 9], "x": [3.0, 1.0], "s": ["a", "b"], "m": pa.array([[("k", 1)], []], SCHEMA.field("m").type)}
    )
    events = events.append_column("never", pa.nulls(2, pa.int64()))
    found = matcher.report(events)
    assert found.rules.select(["matches", "checked", "tests"]).to_pydict() == {
        "matches": [1, 0, 1], "checked": [1, 0, 1], "tests": [1, 0, 2],
    }  # fmt: skip
    assert found.absent == ["never"] and found.unused == ["free"]
    matcher.delete([2])
    matcher.delete([1])
    assert matcher.report(events).unused == ["i", "s", "never", "free"]


def test_a_required_column_and_no_events() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    matcher = cm.Matcher.build({1: "b > 1", 2: "b < 9"}, schema)
    events = pa.table({"a": [1, None, 3], "b": [5, 6, None]})
    assert matcher.report(events).rules["matches"].to_pylist() == matcher.hits(events)["events"].to_pylist() == [1, 1]
    assert (matcher.report(events).unused, matcher.report(events).absent) == ([], [])
    assert matcher.report(events.select(["b"])).absent == ["a"]
    nothing = matcher.report(events.slice(0, 0))
    assert (nothing.events, nothing.noisy.num_rows, nothing.silent.num_rows, nothing.absent) == (0, 0, 2, ["b", "a"])
    assert nothing.rules["share"].to_pylist() == [None, None]
    assert str(nothing) == "events: 0, rules: 2\nrules that match no event: 2: 1, 2\n" + (
        "columns that rules use and no event has: b, a"
    )


@pytest.mark.parametrize("kind", ["scan", "pbtree"])
def test_columns_of_other_rules_are_used(kind: str) -> None:
    matcher = cm.Matcher.build({1: "i = 1", 2: "s = 'a'"}, SCHEMA, kind)  # type: ignore[arg-type]
    matcher.insert({3: "x > 1", 4: "never > 5 AND never < 3"})
    events = pa.table({"i": [1], "s": ["a"]})
    assert matcher.report(events).unused == ["m", "never", "free"]
    some = matcher.report(events, ids=[2])
    assert (some.unused, some.absent) == (["m", "never", "free"], [])
    matcher.delete([3])
    assert matcher.report(events, ids=[2]).unused == ["x", "m", "never", "free"]


@pytest.mark.parametrize(("share", "count"), [(0.29, 29), (0.57, 57), (0.3, 30), (1.0, 100), (0.0, 0)])
def test_a_rule_with_the_share_is_not_noisy(share: float, count: int) -> None:
    matcher = cm.Matcher.build({1: f"i < {count}", 2: f"i <= {count}"}, SCHEMA)
    found = matcher.report(pa.table({"i": range(100)}), noisy=share)
    assert found.noisy["subscription"].to_pylist() == ([2] if count < 100 else [])


@pytest.mark.parametrize(("share", "is_bad"), [*product([-0.1, 1.1, "x", None], [True]), (1, False), (0, False)])
def test_the_share_is_checked(share: Any, is_bad: bool) -> None:
    matcher = cm.Matcher.build({1: "i = 1"}, SCHEMA)
    if not is_bad:
        assert matcher.report(pa.table({"i": [1]}), noisy=share).share == share
        return
    with pytest.raises(cm.OptionError, match="a share of the events is needed, from 0 to 1"):
        matcher.report(pa.table({"i": [1]}), noisy=share)
