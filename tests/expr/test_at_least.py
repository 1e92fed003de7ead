"""``at_least``: so many of several conditions, counted and not multiplied out."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind
from sizes import SMALL

import colmatch as cm

NAMES = "abcdefghijklmnopqrst"
SCHEMA = dict.fromkeys(NAMES, "int")
SIGNS = {"<": lambda x, y: x < y, ">": lambda x, y: x > y, "=": lambda x, y: x == y}
Count = tuple[int, list[tuple[str, str, int]], bool]  # how many, of which tests, and whether within NOT


def a_count(rng: Random) -> Count:
    tests = [(rng.choice(NAMES), rng.choice("<>="), rng.randint(0, 3)) for _ in range(rng.randint(1, 20))]
    return rng.randint(1, len(tests)), tests, rng.random() < 0.3


def written(count: Count) -> str:
    least, tests, negated = count
    return f"{'NOT ' * negated}At_Least({least}, {', '.join(f'{a} {sign} {x}' for a, sign, x in tests)})"


def is_true(count: Count, row: dict[str, int | None]) -> bool:
    least, tests, negated = count
    truths = [None if row[a] is None else SIGNS[sign](row[a], x) for a, sign, x in tests]
    return truths.count(False) > len(tests) - least if negated else truths.count(True) >= least


@every_kind
def test_counts_are_true_where_so_many_conditions_are(kind: str, tmp_path: Path) -> None:
    rng = Random(kind)
    counts = {i: a_count(rng) for i in range(30 if SMALL else 120)}
    rows: list[Any] = [{name: rng.choice([None, 0, 1, 2, 3]) for name in NAMES} for _ in range(70)]
    expected = [[i for i, count in counts.items() if is_true(count, row)] for row in rows]
    later = [i for i in counts if i % 5 == 0]
    matcher = cm.Matcher.build({i: written(counts[i]) for i in counts if i not in later}, SCHEMA, index=kind)
    matcher.insert({i: written(counts[i]) for i in later})
    events = pa.Table.from_pylist(rows, cm.Schema(SCHEMA).arrow)
    assert [sorted(ids) for ids in matcher.match_lists(events).to_pylist()] == expected
    assert [sorted(matcher.match_one(row)) for row in rows[:9]] == expected[:9]
    matcher.save(tmp_path / "counts.cm")
    assert cm.Matcher.open(tmp_path / "counts.cm").count(events).tolist() == [len(ids) for ids in expected]


@pytest.mark.parametrize(("kind", "most"), [("scan", 110), ("bitslice", 110), ("betree", 605)])
def test_ten_of_twenty_are_counted(kind: Any, most: int) -> None:
    """184,756 conjunctions otherwise."""
    rule = f"at_least(10, {', '.join(f'{name} > 1' for name in NAMES)})"
    matcher = cm.Matcher.build({1: rule}, SCHEMA, index=kind)
    assert matcher.stats()["predicates"] <= most
    assert matcher.match_one(dict.fromkeys(NAMES[:10], 2)) == [1]
    assert matcher.match_one(dict.fromkeys(NAMES[:9], 2)) == []


@pytest.mark.parametrize(
    "rule",
    [
        "at_least(2, a = 1, at_least(1, b = 1, c = 1) AND NOT b = c, NOT at_least(2, a = 1, b = 1, c = 1))",
        "(at_least(2, a = 1, b = 1, c = 1)) IS NOT TRUE",
        "at_least(2, a = 1, b = 1, c = 1) IS UNKNOWN OR at_least(3, a = 1, b = 1, c = 1)",
        "at_least(2, a = 1, a = 1, b = 1)",
        "at_least(2, TRUE, NULL, c = 1)",
        "coalesce(at_least(2, a = 1, b = 1, c = 1), FALSE)",
        "if(at_least(2, a = 1, b = 1, c = 1), a = 1, b = 0)",
    ],
)
def test_counts_are_parts_of_conditions(rule: str) -> None:
    """An AND of three is a count of three, and an OR one of one; two of three is an OR of ANDs."""
    plain = rule.replace(
        "at_least(2, a = 1, b = 1, c = 1)", "((a = 1 AND b = 1) OR (a = 1 AND c = 1) OR (b = 1 AND c = 1))"
    )
    for old, new in [
        ("at_least(3, a = 1, b = 1, c = 1)", "(a = 1 AND b = 1 AND c = 1)"),
        ("at_least(1, b = 1, c = 1)", "(b = 1 OR c = 1)"),
        ("at_least(2, a = 1, a = 1, b = 1)", "a = 1"),
        ("at_least(2, TRUE, NULL, c = 1)", "(TRUE AND (NULL OR c = 1) OR NULL AND c = 1)"),
    ]:
        plain = plain.replace(old, new)
    if plain.startswith("at_least(2, a = 1, ("):
        one, two, three = "a = 1", "((b = 1 OR c = 1) AND NOT b = c)", plain.partition(", NOT ")[2][:-1]
        plain = f"({one} AND {two}) OR ({one} AND NOT {three}) OR ({two} AND NOT {three})"
    assert "at_least" not in plain
    matcher = cm.Matcher.build({"count": rule, "plain": plain}, {"a": "int", "b": "int", "c": "int"})
    found = set()
    for values in product([None, 0, 1], repeat=3):
        ids = matcher.match_one(dict(zip("abc", values, strict=True)))
        assert len(ids) in (0, 2), (values, ids)
        found.add(len(ids))
    assert len(found) == 2


def test_counts_within_elements_and_with_parameters() -> None:
    rule = "exists(items, x -> at_least(:n, x.price > 10, x.sku = :sku, x.price < 1))"
    schema = {"items": "array<struct<sku string, price double>>"}
    matcher = cm.Matcher.build({1: rule}, schema, parameters={"n": 2, "sku": "a"})
    assert matcher.expression(1) == "exists(items, x -> at_least( 2, x.price > 10, x.sku =  'a', x.price < 1))"
    assert matcher.match_one({"items": [{"sku": "b", "price": 20}, {"sku": "a", "price": 12}]}) == [1]
    assert matcher.match_one({"items": [{"sku": "b", "price": 20}, {"sku": "a", "price": 2}]}) == []


def test_the_builder_prints_what_the_parser_reads() -> None:
    built = cm.at_least(2, cm.col("a") > 1, (cm.col("b") == 2) | ~cm.col("f"), cm.col("f"), False)
    assert str(built) == "at_least(2, a > 1, b = 2 OR NOT (f), f, FALSE)"
    assert str(~built & (cm.col("a") < 9)) == f"NOT ({built}) AND a < 9"
    matcher = cm.Matcher.build({1: built, 2: str(built)}, {"a": "int", "b": "int", "f": "boolean"})
    assert matcher.to_table()["expression"].to_pylist() == [str(built)] * 2
    assert matcher.match_one({"a": 2, "b": None, "f": True}) == matcher.match_one({"a": 0, "b": 2, "f": True}) == [1, 2]
    assert matcher.match_one({"a": 2, "b": None, "f": None}) == []
    assert (
        str(cm.function("at_least", 1, cm.col("f"))) == str(cm.functions.at_least(1, cm.col("f"))) == "at_least(1, f)"
    )


NEEDS = "at_least begins with a whole number, as in at_least"
WRONG = {
    "at_least(a, b = 1)": NEEDS, "at_least(1.5, b = 1)": NEEDS, "at_least('1', b = 1)": NEEDS, "at_least(b = 1, a = 1)": NEEDS,
    "at_least(0, b = 1)": "at_least(0, ...) of 1 is always true: write a number from 1 to 1",
    "a = 1 OR at_least(-1, b = 1, a = 2)": "at_least(-1, ...) of 2 is always true: write a number from 1 to 2",
    "at_least(3, b = 1, a = 2)": "at_least(3, ...) of 2 is never true: write a number from 1 to 2",
    "at_least(1)": "it is written at_least(literal int, condition, ...), as in at_least(2, ",
    "at_least(1, a)": "column 'a' is int32, not a condition by itself",
    "at_least(1, 5)": "a literal is not a condition by itself",
    "at_least(1, b = 1) > 2": "",
    f"at_least(50, {', '.join(['a = 1'] * 100)})": "ask for fewer of them, for nearly all of them, or split the expression",
    f"at_least(4, {', '.join(['at_least(50, ' + ', '.join(['a = 1'] * 90) + ')'] * 9)})": "split the expression",
}  # fmt: skip


@pytest.mark.parametrize(("rule", "said"), WRONG.items())
def test_errors(rule: str, said: str) -> None:
    with pytest.raises(cm.ExpressionError) as error:
        cm.Matcher.build({1: rule}, {"a": "int", "b": "int"})
    assert said in str(error.value)


@pytest.mark.parametrize("least", [0, -1, 3, 1.5, "1", None, True])
def test_errors_of_the_builder(least: Any) -> None:
    with pytest.raises(cm.ExpressionError, match="at_least"):
        cm.at_least(least, cm.col("a") > 1, cm.col("b") > 1)
    with pytest.raises(cm.ExpressionError, match="behind the number"):
        cm.at_least(1)
    with pytest.raises(cm.ExpressionError, match="not with str"):
        cm.at_least(1, "a > 1")  # type: ignore[arg-type]
    with pytest.raises(cm.ExpressionError, match="at_least has no weight"):
        cm.at_least(1, cm.col("a") > 1).weight(2)


def test_a_count_scores_its_best_conditions() -> None:
    parts = [(cm.col(name) > 1).weight(weight) for name, weight in zip(NAMES, [5, -1, 3, 2, 4, 1, 7, 0], strict=False)]
    for index in ("scan", "bestar", "kindex", "auto"):
        matcher = cm.Matcher.build({1: cm.at_least(4, *parts)}, SCHEMA, index=index)  # type: ignore[arg-type]
        (one,) = matcher.match_topk(pa.table({name: [2 if name in "abcef" else 0] for name in NAMES}), 1).to_pylist()
        assert one["score"] == 5 + 3 + 4 + 1
