"""Expressions that need a value beyond the bounds of a domain are refused, with their place."""

from __future__ import annotations

from typing import Any

import pytest

import colmatch as cm

DOMAINS = [
    "age|integer|false|0|150",
    "old|integer|true|0|150",
    "rate|float|false|-1.5|2.5",
    "any|integer|false",
    "e|integer enum|false|1|3",
    "ids|integer list|false|0|9",
    "b|boolean|true",
]
REFUSED = {  # text -> column of the literal
    "age > 200": 7,
    "200 < age": 1,
    "age >= 151": 8,
    "age < 0": 7,
    "age <= -1": 8,
    "age = 151": 7,
    "b and (b or age = -1)": 19,
    "age in (151, 200)": 8,
    "not (age <= 150)": 13,
    "not (b or age >= 0)": 18,
    "not not age > 150": 15,
    "not (age <> 151)": 13,
    "not age not in (200)": 16,
    "rate > 2.5": 8,
    "rate = 3": 8,
    "e = 4": 5,
    "10 in ids": 1,
    "ids one of (10, 11)": 12,
    "ids all of (1, 10)": 12,
    "not ids none of (10)": 17,
}
TAKEN = [
    "age > 149", "age >= 150", "age < 1", "age <= 0", "age <> 200", "age not in (200)", "age in (1, 200)", "not (age > 200)",
    "not (age in (200))", "not (age <= 149)", "not (old <= 150)", "any > 200", "rate >= 2.5", "rate < 2.6", "e <> 4", "10 not in ids",
    "ids none of (10)", "ids one of (1, 10)", "not (ids one of (10))", "not (ids all of (1, 10))", "old is null or b",
]  # fmt: skip


def built(text: str, **more: Any) -> cm.Matcher:
    return cm.Matcher.build({1: text}, cm.betree.Domains(DOMAINS), "scan", language="betree", **more)


@pytest.mark.parametrize("text", REFUSED)
def test_an_expression_that_needs_a_value_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(cm.ExpressionError, match="goes from .* to .*, and no such value is") as raised:
        built(text)
    assert (raised.value.line, raised.value.column) == (1, REFUSED[text])


@pytest.mark.parametrize("text", TAKEN)
def test_other_expressions_are_taken(text: str) -> None:
    assert len(built(text)) == 1


def test_events_may_have_values_out_of_bounds() -> None:
    events = cm.betree.events(['{"age": 200, "rate": 0, "any": 1, "e": 1, "ids": []}'], DOMAINS)
    assert built("age > 100").count(events).tolist() == [1]


@pytest.mark.parametrize(("low", "high"), [(2, 4), (3, 3)])
def test_a_refused_leaf_is_true_of_no_value_and_a_taken_one_of_some(low: int, high: int) -> None:
    """By trying all values of a small domain, each with no, one and two NOTs before it."""
    domains = cm.betree.Domains(f"n|integer|false|{low}|{high}")
    values = range(low, high + 1)
    for sign in ("=", "<>", "<", "<=", ">", ">="):
        for literal in range(7):
            leaf = f"n {sign} {literal}"
            truth = [eval(f"{n} {'==' if sign == '=' else '!=' if sign == '<>' else sign} {literal}") for n in values]
            for nots in range(3):
                matcher = cm.Matcher.build(
                    {1: "not " * nots + leaf}, domains, "scan", errors="collect", max_rejected=1.0, language="betree"
                )
                assert len(matcher) == any(one ^ (nots % 2 == 1) for one in truth), (nots, leaf)


def test_bounds_are_read_of_any_schema_and_outlive_a_save(tmp_path: Any) -> None:
    matcher = built("age > 100")
    matcher.save(tmp_path / "m.cm")
    opened = cm.Matcher.open(tmp_path / "m.cm")
    with pytest.raises(cm.ExpressionError, match="'age' goes from 0 to 150"):
        opened.insert({2: "age > 200"})


def test_a_list_of_the_whole_domain() -> None:
    domains = cm.betree.Domains("few|integer|false|1|3")
    for text in ("few not in (1, 2, 3)", "not few in (3, 2, 1)"):
        with pytest.raises(cm.ExpressionError, match="no such value is"):
            cm.Matcher.build({1: text}, domains, "scan", language="betree")
    for text in ("few not in (1, 2)", "few not in (1, 1, 2)", "not few in (1, 3)"):
        assert len(cm.Matcher.build({1: text}, domains, "scan", language="betree")) == 1
