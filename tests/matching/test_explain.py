"""What an explanation says of a predicate: True, False or Unknown, as SQL does."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import oracle
import pytest
from sizes import SMALL, share
from strategies import a_predicate, a_schema, some_rows, terms

import colmatch as cm

pytestmark = pytest.mark.usefixtures("kept_predicates")


def test_a_predicate_and_its_not_have_the_truth_of_sql() -> None:
    """But for ``<=>`` and IS: kept is when a predicate is true, and these are false of NULL."""
    said = set()
    for seed in range(share(60)):
        rng = Random(seed)
        schema = a_schema(rng)
        some = [a_predicate(rng, rng.choice(terms(schema)), nulls=0) for _ in range(10)]
        some = [one for one in some if one[0] != "<=>" and not one[0].startswith("is ")]
        texts = {i: oracle.to_sql(one) for i, one in enumerate([*some, *(("not", one) for one in some)])}
        if not texts:
            continue
        matcher = cm.Matcher.build(texts, schema)
        for row in some_rows(rng, schema, 4, nulls=0.4):
            for i, text in texts.items():
                wanted = oracle.value(some[i % len(some)], row)
                wanted = wanted if i < len(some) or wanted is None else not wanted
                told = matcher.explain(row, i)
                if told.tree.text.endswith("IS NOT NULL") or told.tree.text.startswith("FALSE"):
                    continue  # true of all values, or of none
                assert told.tree.truth is wanted, f"{text}\n{row}\n{told}"
                said.add((wanted, i < len(some)))
    assert len(said) == 6


LEAVES = (
    "s IS NOT NULL", "s LIKE '%a%'", "s NOT LIKE '%a%'", "(s LIKE '%a%') IS NOT TRUE", "lower(s) NOT LIKE '%x%'", "s > 'b'",
    "l IS NOT NULL", "size(l) > 0", "array_contains(l, 'a')", "NOT array_contains(l, 'a')", "m['k'] NOT LIKE '%a%'",
    "array_contains(l, 'a') IS NOT TRUE", "array_contains(l, 'b') IS UNKNOWN", "array_contains(l, 'b') IS NOT UNKNOWN",
    "arrays_overlap(l, array('a', 'c')) IS NOT TRUE", "m IS NOT NULL", "m['k'] IS NOT NULL", "f IS UNKNOWN",
    "m['j'] IS NOT NULL", "(m['k'] LIKE '%a%') IS NOT TRUE",
    "geo_within_radius(x, x, 0, 0, 10)", "(geo_within_radius(x, x, 0, 0, 10)) IS NOT TRUE",
)  # fmt: skip
SCHEMA = "s string, l array<string>, m map<string, string>, f boolean, x double"


def a_rule(rng: Random, depth: int = 2) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(LEAVES)
    parts = [a_rule(rng, depth - 1) for _ in range(rng.choice([2, 2, 3]))]
    around = rng.choice(["({})", "({})", "NOT ({})", "({}) IS TRUE", "({}) IS UNKNOWN"])
    return around.format(rng.choice([" AND ", " AND ", " OR "]).join(parts))


def an_event(rng: Random) -> dict[str, Any]:
    return {
        "s": rng.choice([None, "", "a", "cab", "x"]),
        "l": rng.choice([None, [], ["a"], [None], ["a", None], ["b", None], ["c"]]),
        "m": rng.choice([None, {}, {"k": "a"}, {"k": None}, {"k": "z"}, {"j": "b", "k": "z"}]),
        "f": rng.choice([None, True]),
        "x": rng.choice([None, 0.0, 80.0, math.nan]),
    }


@pytest.mark.parametrize("missing", ["unknown", "false"])
@pytest.mark.parametrize("index", ["auto", cm.index("scan", dnf_budget=1)], ids=["auto", "whole"])
def test_an_explanation_matches_where_the_matcher_does(missing: Any, index: Any) -> None:
    """A condition on NULL beside a NOT is a part of it, or was written by hand."""
    rng = Random(f"{missing} {index}")
    rules = {i: a_rule(rng) for i in range(50 if SMALL else 250)}
    matcher = cm.Matcher.build(rules, SCHEMA, index, missing=missing)
    for _ in range(6 if SMALL else 12):
        event = an_event(rng)
        found = matcher.match_one(event)
        told = [matcher.explain(event, id) for id in rules]
        wrong = [one for one in told if one.matched != (one.id in found)]
        assert not wrong, f"{rules[wrong[0].id]}\n{event}\n{wrong[0]}"
        assert missing == "unknown" or not any("Unknown" in str(one) for one in told)
    assert found


def test_the_not_of_a_list_and_its_guards() -> None:
    rules = {1: "NOT array_contains(l, 'a')", 2: "l IS NOT NULL AND array_contains(l, 'a') IS NOT TRUE"}
    matcher = cm.Matcher.build(rules, SCHEMA)
    event = {"l": ["b", None]}
    assert [str(matcher.explain(event, id)).splitlines()[1:] for id in rules] == [
        ["└─ Unknown NOT array_contains(l, 'a')   [['b', None]]"],
        [
            "└─ True    all of",
            "   ├─ True    l IS NOT NULL   [['b', None]]",
            "   └─ True    (array_contains(l, 'a')) IS NOT TRUE   [['b', None]]",
        ],
    ]
