"""Checks of rules, judged by all events of small columns: no code of colmatch says what is true."""

from __future__ import annotations

import os
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from oracle import Expr, lit

import colmatch as cm

SCHEMA = {"a": "int32", "s": "string", "v": "bool", "f": "double", "tags": pa.list_(pa.string())}
# Each value stands for all that no literal of the rules tells apart from it
COLUMNS: dict[str, list[Any]] = {
    "a": [None, -1, 0, 1, 2, 3, 4],
    "s": [None, "", "a", "a0", "b", "b0", "c", "c0", "d"],
    "v": [None, True, False],
    "f": [None, -0.5, 0.0, 0.5, 1.0, 1.5, float("nan")],
    "tags": [None, *(list(some) for n in range(4) for some in combinations_with_replacement([None, "x", "y", "z"], n))],
}
A, S, V, F, TAGS = (("col", name) for name in COLUMNS)
Truth = NDArray[np.int8]  # 1 true, 0 false, -1 unknown


def atom(rng: Random, lists: bool) -> tuple[str, Expr]:
    """Returns a predicate, and its column."""
    name = rng.choice("aaassv" + ("ttt" if lists else "f"))
    number, text = (lambda: lit(rng.randrange(4))), (lambda: lit(rng.choice("abc")))
    sign = rng.choice(["=", "=", "<>", "<", "<=", ">", ">=", "<=>"])
    if name == "v":
        return "v", rng.choice([V, ("=", V, lit(True)), ("is null", V), ("is not true", V)])
    if name == "f":
        double = lit(rng.choice([0.0, 1.0]), "double")
        return "f", rng.choice([(sign, F, double), ("between", F, lit(0.0, "double"), double), ("is null", F)])
    if name == "t":  # tags
        some = lit(rng.choice("xy"))
        size = (sign, ("size", TAGS), lit(rng.randrange(3)))
        overlap = ("arrays_overlap", TAGS, (lit("x"), lit("y")))
        return "tags", rng.choice([("array_contains", TAGS, some), overlap, size, ("is null", TAGS)])
    of, value = (A, number) if name == "a" else (S, text)
    like = ("like", S, lit(rng.choice("abc") + "%")) if name == "s" else (sign, A, number())
    listed = ("in", of, tuple(value() for _ in range(rng.randrange(1, 4))))
    return name, rng.choice([(sign, of, value()), listed, ("is not null", of), ("between", of, value(), value()), like])


def tree(rng: Random, depth: int, lists: bool) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        _, one = atom(rng, lists)
        return ("not", one) if rng.random() < 0.2 else one
    word = rng.choice(["and", "and", "or"])
    whole = (word, *(tree(rng, depth - 1, lists) for _ in range(rng.randrange(2, 4))))
    return ("not", whole) if rng.random() < 0.1 else whole


def columns_of(e: Expr) -> set[str]:
    """Returns the columns of an expression."""
    if e[0] == "col":
        return {e[1]}
    parts = [part for part in e[1:] if isinstance(part, tuple)]
    return {name for part in parts for name in columns_of(part if isinstance(part[0], str) else ("", *part))}


class Judge:
    """The truth of rules for all events of small columns."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.shape = [len(COLUMNS[name]) for name in names]
        self._known: dict[Expr, Truth] = {}

    def truth(self, e: Expr) -> Truth:
        """Returns the truth for all events: an axis for each column, of size 1 if unused."""
        if e[0] in ("and", "or"):
            parts = [self.truth(part) for part in e[1:]]
            ranks = [np.where(part < 0, 1, 2 * part) for part in parts]  # false, unknown, true
            out = ranks[0]
            for rank in ranks[1:]:
                out = np.minimum(out, rank) if e[0] == "and" else np.maximum(out, rank)
            return np.array([0, -1, 1], np.int8)[out]
        if e[0] == "not":
            part = self.truth(e[1])
            return np.where(part < 0, part, 1 - part).astype(np.int8)
        if e[0] in oracle.IS and e[1][0] != "col":
            part = self.truth(e[1])
            return np.array([oracle.IS[e[0]](None if x < 0 else bool(x)) for x in (0, 1, -1)], np.int8)[part]
        if e not in self._known:
            (name,) = columns_of(e)
            values = [oracle.value(e, {name: value}) for value in COLUMNS[name]]
            shape = [len(values) if other == name else 1 for other in self.names]
            self._known[e] = np.array([-1 if value is None else int(value) for value in values], np.int8).reshape(shape)
        return self._known[e]

    def matches(self, rules: list[Expr]) -> NDArray[np.bool_]:
        """Returns whether each rule is true for each event."""
        return np.stack([np.broadcast_to(self.truth(e) == 1, self.shape).ravel() for e in rules])


def planted(rng: Random, e: Expr, rules: list[Expr]) -> Expr:
    """Returns a rule that has something to do with another."""
    other = rng.choice(rules) if rules else e
    parts = list(other[1:]) if other[0] in ("and", "or") else []
    rng.shuffle(parts)
    return rng.choice(
        [
            (other[0], *parts) if parts else ("not", ("not", other)),  # a duplicate
            ("and", other, e),  # contained
            ("or", other, e),  # it contains
            ("and", other, ("not", other)),
            ("and", (">", A, lit(2)), e, ("<", A, lit(1))),
            ("or", e, ("is not true", e)),
        ]
    )


@cache
def drawn(seed: int, count: int, lists: bool) -> tuple[list[Expr], NDArray[np.bool_], cm.Matcher]:
    rng, rules = Random(seed), list[Expr]()
    while len(rules) < count:
        e = tree(rng, rng.choice([0, 1, 1, 2]), lists)
        rules.append(planted(rng, e, rules) if rng.random() < 0.4 else e)
    judge = Judge(["a", "s", "v", "tags"] if lists else ["a", "s", "v", "f"])
    texts = [(i, oracle.to_sql(e)) for i, e in enumerate(rules)]
    matcher = cm.Matcher.build(texts[: count // 2], SCHEMA)
    matcher.insert(texts[count // 2 : count - 20])
    matcher.insert(texts[count - 20 :])  # the growing segment has codes of its own
    return rules, judge.matches(rules), matcher


def confirm(matcher: cm.Matcher, found: pa.Table) -> dict[int, set[int]]:
    """Returns the subscriptions that match the example of each row."""
    rows = np.flatnonzero(np.asarray(found["example"].is_valid()))
    if not len(rows):
        return {}
    examples = found["example"].take(pa.array(rows)).combine_chunks()
    lists = matcher.match_lists(pa.RecordBatch.from_struct_array(examples)).to_pylist()
    return {row: set(ids) for row, ids in zip(rows.tolist(), lists, strict=True)}


CASES = pytest.mark.parametrize(("lists", "seed"), [(False, 1), (True, 2)])
COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "300"))


def rows_of(found: pa.Table, finding: str, status: str) -> list[dict[str, Any]]:
    return [row for row in found.to_pylist() if (row["finding"], row["status"]) == (finding, status)]


@CASES
def test_never_and_always_are_those_of_all_events(lists: bool, seed: int) -> None:
    rules, matches, matcher = drawn(seed, COUNT, lists)
    found = matcher.check(["never", "always"])
    for finding, truth in {"never": ~matches.any(axis=1), "always": matches.all(axis=1)}.items():
        proven = {row["id"] for row in rows_of(found, finding, "proven")}
        undecided = {row["id"] for row in rows_of(found, finding, "undecided")}
        expected = set(np.flatnonzero(truth).tolist())
        assert proven <= expected and expected - proven <= undecided, finding
        assert all("tags" in columns_of(rules[id]) for id in undecided), finding
        assert len(expected) > COUNT // 100
    # Each subscription that is asked for has an answer, with an event that says so
    asked = matcher.check(["never", "always"], ids=list(range(0, COUNT, 3)))
    lists_of = confirm(matcher, asked)
    for row, one in enumerate(asked.to_pylist()):
        if one["status"] == "disproven":
            assert (one["id"] in lists_of[row]) is (one["finding"] == "never")
    assert len(asked) == 2 * len(range(0, COUNT, 3))


@CASES
def test_duplicates_match_the_same_events(lists: bool, seed: int) -> None:
    rules, matches, matcher = drawn(seed, COUNT, lists)
    rows = matcher.check("duplicate").to_pylist()
    assert all(row["status"] == "proven" and row["other"] < row["id"] for row in rows)
    assert all(np.array_equal(matches[row["id"]], matches[row["other"]]) for row in rows)
    form = {row["id"]: row["other"] for row in rows}
    first: dict[Any, int] = {}  # by an AND or OR, whatever the order of its parts
    for id, e in enumerate(rules):
        if matches[id].any():
            key = (e[0], frozenset(e[1:])) if e[0] in ("and", "or") and len(set(e[1:])) == len(e) - 1 else e
            earlier = first.setdefault(key, id)
            assert form.get(id, id) == form.get(earlier, earlier)
    assert len(rows) > COUNT // 50


@CASES
def test_contained_rules_are_those_of_all_events(lists: bool, seed: int) -> None:
    rules, matches, matcher = drawn(seed, COUNT, lists)
    found = matcher.check(["duplicate", "contained"])
    form = {row["id"]: row["other"] for row in rows_of(found, "duplicate", "proven")}
    exists, always = matches.any(axis=1), matches.all(axis=1)
    both = matches.astype(np.float32) @ matches.T.astype(np.float32)
    inside = (both == matches.sum(axis=1)[:, None]) & exists[:, None] & ~always
    expected = {(i, j) for i, j in np.argwhere(inside).tolist() if form.get(i, i) != form.get(j, j) and not always[i]}
    undecided = {(row["id"], row["other"]) for row in rows_of(found, "contained", "undecided")}
    proven = {(row["id"], row["other"]) for row in rows_of(found, "contained", "proven")}
    assert proven <= expected
    known = {(i, j) for i, j in follow(proven) if form.get(i, i) != form.get(j, j)}
    assert known <= expected
    assert expected - known <= undecided | {(i, j) for i, j in expected if (i, None) in undecided}
    assert all("tags" in columns_of(rules[i]) | columns_of(rules[j if j is not None else i]) for i, j in undecided)
    assert 2 * len(proven) < len(known) > COUNT // 10  # what follows from others has no row
    for row, ids in confirm(matcher, found).items():
        one = found.slice(row, 1).to_pylist()[0]
        assert {one["id"], one["other"]} <= ids
    # Rules that are asked for have all their rows
    asked = list(range(0, COUNT, max(COUNT // 30, 1)))
    rows = rows_of(matcher.check("contained", ids=asked), "contained", "proven")
    assert {(row["id"], row["other"]) for row in rows} >= {(i, j) for i, j in known if i in asked}


def test_rows_that_follow_from_others_are_left_out() -> None:
    """Made events tell few of these rules apart, so their order says little."""
    rules = {i: f"a > {i}" for i in range(300)}
    found = cm.Matcher.build(rules, SCHEMA).check("contained").to_pylist()
    assert [(row["id"], row["other"]) for row in found] == [(i, i - 1) for i in range(1, 300)]
    either = "a > 1 AND (f > 1 OR f <= 1 OR f IS NULL)"
    same = {"p": "a > 1", "q": either, "r": f"{either} AND (v OR NOT v OR v IS NULL)"}  # in a circle
    found = cm.Matcher.build({"wide": "a > 0", **same, "in": "a > 5"}, SCHEMA).check(["duplicate", "contained"])
    pairs = {(row["id"], row["other"]) for row in rows_of(found, "contained", "proven")}
    reach = {(i, j) for i in "pqr" for j in (*"pqr", "wide") if i != j} | {("in", j) for j in (*"pqr", "wide")}
    assert follow(pairs) - {(i, i) for i in "pqr"} == reach and found.num_rows == len(pairs) < len(reach)


def follow(pairs: set[tuple[Any, Any]]) -> set[tuple[Any, Any]]:
    """Returns the pairs, and those that follow from them: two steps lead as one does."""
    steps: dict[Any, set[Any]] = {}
    for id, other in pairs:
        steps.setdefault(id, set()).add(other)
    for id in steps:
        open = list(steps[id])
        while open:
            new = steps.get(open.pop(), set()) - steps[id] - {id}
            steps[id] |= new
            open += new
    return {(id, other) for id, others in steps.items() for other in others}


@CASES
def test_overlaps_are_those_of_all_events(lists: bool, seed: int) -> None:
    rules, matches, matcher = drawn(seed, COUNT, lists)
    for id in range(0, COUNT, max(COUNT // 12, 1)):
        found = matcher.check("overlaps", ids=[id])
        expected = set(np.flatnonzero((matches & matches[id]).any(axis=1)).tolist()) - {id}
        proven = {row["other"] for row in rows_of(found, "overlaps", "proven")}
        undecided = {row["other"] for row in rows_of(found, "overlaps", "undecided")}
        assert proven <= expected and expected - proven <= undecided
        assert all("tags" in columns_of(rules[id]) & columns_of(rules[other]) for other in undecided)
        for row, ids in confirm(matcher, found).items():
            assert {id, found["other"][row].as_py()} <= ids


WIDE = {
    **SCHEMA, "day": "date32[day]", "at": "timestamp[us, UTC]", "n8": "int8", "dec": pa.decimal128(9, 2), "bin": "binary",
    "m": pa.map_(pa.string(), pa.int64()), "u": pa.struct({"age": "int32", "name": "string"}), "must": pa.int64(),
}  # fmt: skip


def verdicts(rules: dict[Any, str], *checks: str, **arguments: Any) -> dict[Any, str]:
    """Returns the status of each rule."""
    fields = [
        pa.field(name, cm.Schema({name: type}).arrow.field(0).type, name != "must") for name, type in WIDE.items()
    ]
    matcher = cm.Matcher.build(rules, pa.schema(fields))
    found = matcher.check(list(checks), ids=list(rules), **arguments)
    lists = confirm(matcher, found)
    for row, one in enumerate(found.to_pylist()):
        if one["status"] == "disproven":
            assert (one["id"] in lists[row]) is (one["finding"] == "never")
    return {row["id"]: row["status"] for row in found.to_pylist()}


def test_values_of_all_types_are_made() -> None:
    rules = {
        "date": "day > DATE '2024-01-31' AND day <> DATE '2024-02-01'",
        "time": "at <= TIMESTAMP '2024-01-31 10:00:00Z'",
        "small": "n8 BETWEEN 3 AND 4 AND n8 <> 3",
        "decimal": "dec = 1.25",
        "binary": "bin = X'00FF'",
        "entry": "m['k'] > 5 AND m['l'] IS NULL AND size(m) = 3",
        "field": "u.age > 5 AND u.name IN ('x', 'y')",
        "pattern": "s LIKE '%b%' AND s LIKE '%c' AND s > 'b'",
        "regex": "s RLIKE '^[ab]+c?$'",
        "lower": "lower(s) = 'abc'",
        "product": "a * n8 > 10",
        "list": "array_contains(tags, 'x') AND size(tags) = 3 AND NOT array_contains(tags, 'y')",
        "nan": "f > 1e300",
    }
    assert verdicts(rules, "never") == dict.fromkeys(rules, "disproven")


def test_patterns_of_computed_texts() -> None:
    rules = {1: "a > 5 AND a < 3", 2: "lower(s) RLIKE 'x'", 3: "upper(s) LIKE '%Q'", 4: "lower(s) ILIKE '%x%' OR a = 1"}
    matcher = cm.Matcher.build(rules, {"a": "int32", "s": "string"})
    found = matcher.check(["never", "always", "contained", "overlaps"], ids=[2, 3, 4])
    for row, ids in confirm(matcher, found).items():
        one = found.slice(row, 1).to_pylist()[0]
        assert (one["id"] in ids) is (one["finding"] != "always")
    assert [row["id"] for row in rows_of(found, "never", "disproven")] == [2, 3, 4]
    assert not rows_of(found, "contained", "proven")


def test_a_long_reason_is_cut() -> None:
    rules = {1: " AND ".join(f"md5(concat(s, '{n}')) = 'x{n}' || lower(s)" for n in range(20))}
    reason = cm.Matcher.build(rules, {"s": "string"}).check("never", ids=[1])["reason"][0].as_py()
    assert reason.startswith("it depends on ") and "..., for which" in reason and len(reason) < 260


BINARIES = [pa.binary(), pa.large_binary(), pa.binary(3), pa.dictionary(pa.int32(), pa.binary()), pa.uuid()]
NESTED = [pa.struct({"x": pa.int64()}), pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())]
OTHERS = [
    pa.decimal128(2, 2),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("s"),
    pa.time32("s"),
    pa.float16(),
    pa.string_view(),
]


@pytest.mark.parametrize("element", [*BINARIES, *NESTED, *OTHERS], ids=str)
def test_sizes_of_lists_of_all_types(element: pa.DataType) -> None:
    for list_type in (pa.list_(element), pa.large_list(pa.field("item", element, False)), pa.list_(element, 2)):
        matcher = cm.Matcher.build({1: "size(l) = 2", 2: "size(l) <> 2"}, pa.schema({"l": list_type}))
        found = matcher.check(["never", "always"], ids=[1]).to_pylist()
        assert [row["status"] for row in found] == ["disproven", "disproven"]
        assert len(found[0]["example"]["l"]) == 2


def test_rules_that_never_match() -> None:
    rules = {
        "bool": "v > TRUE",
        "size": "size(tags) < 0",
        "list": "array_contains(tags, 'x') AND size(tags) = 0",
        "entry": "m['k'] = 1 AND m IS NULL",
        "pattern": "s LIKE '%x%' AND s IS NULL",
        "required": "must IS NULL",
        "texts": "s > 'a' AND s < 'a\\0'",
        "parts": "(a = 1 OR a = 2) AND (a = 3 OR v) AND (a = 4 OR NOT v) AND a < 0",
    }
    assert verdicts(rules, "never") == dict.fromkeys(rules, "proven")
    open = {"wide": "n8 > 200", "computed": "lower(s) = 'ABC'", "place": "s RLIKE 'a^b'"}
    assert verdicts(open, "never") == dict.fromkeys(open, "undecided")


def test_rules_that_always_match() -> None:
    rules = {"must": "must IS NOT NULL", "either": "s LIKE '%x%' OR (s LIKE '%x%') IS NOT TRUE", "true": "TRUE"}
    assert verdicts(rules, "always") == dict.fromkeys(rules, "proven")


def test_values_that_can_fail_prove_nothing() -> None:
    either = "10 / b = 2 OR 10 / b <> 2 OR 10 / b IS NULL"
    tested = "exists(l, x -> 10 / x > 2) OR (exists(l, x -> 10 / x > 2)) IS NOT TRUE"
    rules = {"value": either, "element": tested, "less": "10 / b = 2", "true": "b = 1 OR (b = 1) IS NOT TRUE"}
    schema = {"b": "int32", "l": pa.list_(pa.int64())}
    for ansi in (False, True):
        matcher = cm.Matcher.build(rules, schema, options={"ansi": ansi})
        found = matcher.check(["always", "contained"])
        assert {row["id"] for row in rows_of(found, "always", "proven")} == ({"true"} if ansi else {*rules} - {"less"})
        assert {row["id"] for row in rows_of(found, "always", "undecided")} == ({"value", "element"} if ansi else set())
        assert not rows_of(found, "contained", "proven")  # by rules that always match
        if ansi:
            asked = matcher.check("always", ids=["value", "less"])
            assert [row["status"] for row in asked.to_pylist()] == ["undecided", "disproven"]
            assert confirm(matcher, asked) == {1: {"value", "true", "element"} & confirm(matcher, asked)[1]}
    rules = {"one": "10 / b <> 7 AND a = 1", "other": "10 / b <> 7", "plain": "a = 1"}
    matcher = cm.Matcher.build(rules, {"a": "int32", "b": "int32"}, options={"ansi": True})
    found = matcher.check("contained", ids=["one"])
    for status, other in {"proven": "plain", "undecided": "other"}.items():
        assert [(row["id"], row["other"]) for row in rows_of(found, "contained", status)] == [("one", other)]


def test_a_rule_that_always_matches_beside_one_that_fails() -> None:
    rules = {
        "true": "TRUE",
        **{f"fails {n}": f"a + {2**31 - n} > 5 OR 10 / b = {n} OR 10 / (b - 1) = {n}" for n in range(1, 30)},
    }
    found = cm.Matcher.build(rules, {"a": "int32", "b": "int32"}, options={"ansi": True}).check("always")
    assert [row["id"] for row in rows_of(found, "always", "proven")] == ["true"]


@pytest.mark.parametrize("kind", ["scan", "bitslice", "pbtree"])
def test_programs_and_pages(kind: str, tmp_path: Path) -> None:
    parts = [f"(a = {i} OR s = 'x{i}' OR n8 > {i})" for i in range(9)]
    rules = {"one": " AND ".join(parts), "two": " AND ".join(parts), "less": " AND ".join([*parts, "v"])}
    index = cm.index("pbtree", path=str(tmp_path / "pages")) if kind == "pbtree" else kind
    matcher = cm.Matcher.build(rules, {**SCHEMA, "n8": "int8"}, index=index)
    found = matcher.check().to_pylist()
    assert [(row["id"], row["finding"], row["other"]) for row in found] == [("two", "duplicate", "one")]
    matcher.delete(["one"])
    assert matcher.check().num_rows == 0


def test_what_a_sample_lacks() -> None:
    rules = {
        1: "a = 7 OR a = 1",
        2: "s IN ('x', 'z') AND f > 1",
        3: "f IS NULL",
        4: "array_contains(tags, 'q')",
        5: "s LIKE '%x%' OR f = 1",
        6: "(f > 1 OR v) AND (f < 5 OR v) AND (f <> 3 OR a > 1)",
        7: "a <> 9 AND a BETWEEN 3 AND 5",
    }
    matcher = cm.Matcher.build(rules, SCHEMA)
    sample = pa.table(
        {
            "a": pa.array([1, 2], pa.int32()), "s": ["x", None], "v": [True, None], "f": pa.array([None, None], pa.float64()),
            "tags": pa.array([["p"], None], pa.list_(pa.string())),
        }
    )  # fmt: skip
    rows = matcher.check(["dead column", "odd literal"], sample=sample).to_pylist()
    none = "no event of the sample has this value"
    assert [(row["id"], row["reason"]) for row in rows] == [
        (2, "f is NULL in all 2 events of the sample"),
        (1, f"a = 7: {none}"),
        (2, f"s = 'z': {none}"),
        (4, f"array_contains(tags, 'q'): {none}"),
        (5, f"f = 1: {none}"),
    ]
    assert matcher.check(ids=[1], sample=sample).num_rows == 3  # never and always are answered, too


def test_an_event_of_the_sample_is_an_example() -> None:
    rules = {2: "md5(s) = '9dd4e461268c8034f5c8564e155c67a6'", 3: "a > 5 AND a < 3", 4: "u.n > 1"}
    matcher = cm.Matcher.build(rules, {"s": "string", "a": "int32", "u": pa.struct({"n": "int8"})})
    sample = pa.table({"S": pa.array(["y", "x"]).dictionary_encode(), "A": [1, 2], "u": pa.nulls(2), "other": [1, 2]})
    found = matcher.check("never", ids=[2, 3, 4], sample=sample).to_pylist()
    assert [row["status"] for row in found] == ["disproven", "proven", "disproven"]
    assert found[0]["example"]["s"] == "x" and matcher.match_one(found[0]["example"]) == [2]
    assert matcher.check("never", sample=sample)["id"].to_pylist() == [3]
    with pytest.raises(cm.EventError, match="'u'"):
        matcher.check("never", sample=sample.drop_columns(["u"]))


def test_rules_with_tags() -> None:
    rules = {1: "a > 5 AND a < 3", 2: "a > 7 AND a < 3", 3: "a > 1", 4: "a > 2"}
    matcher = cm.Matcher.build(rules, SCHEMA, tags={1: ["x"], 3: ["x"], 4: ["y"]})
    found = matcher.check(["never", "overlaps"], tags=["x"])
    assert [(row["id"], row["status"], row["other"]) for row in found.to_pylist()] == [
        (1, "proven", None),
        (3, "disproven", None),
        (3, "proven", 4),
    ]
    assert matcher.check("never", ids=[1, 2], tags=["x"])["id"].to_pylist() == [1]
    assert matcher.check("never", ids=matcher.subset([2, 9]))["id"].to_pylist() == [2]
    assert matcher.check("never", tags=["z"]).num_rows == 0


def test_an_empty_sample() -> None:
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA)
    empty = pa.table({"a": pa.array([], pa.int32())})
    for checks in (None, "dead column", ["never", "odd literal"]):
        with pytest.raises(cm.OptionError, match="sample: it has no event"):
            matcher.check(checks, sample=empty)
    assert matcher.check("never", sample=empty).num_rows == 0


def test_arguments_that_cannot_be_used() -> None:
    matcher = cm.Matcher.build({1: "a = 1"}, SCHEMA)
    for arguments, said in [
        ({"checks": "nope"}, "'never', 'always'"),
        ({"checks": "overlaps"}, "give ids or tags, too"),
        ({"checks": ["dead column"]}, "give a sample, too"),
        ({"checks": 5}, "give names of checks"),
    ]:
        with pytest.raises(cm.OptionError, match=said):
            matcher.check(**arguments)
    with pytest.raises(cm.OptionError, match="tags"):
        matcher.check(tags=5)
    with pytest.raises(cm.SubscriptionError, match="there is no subscription 2: nothing was checked"):
        matcher.check(ids=[1, 2])
    assert cm.Matcher.build({}, SCHEMA).check(["never", "always", "duplicate", "contained"]).num_rows == 0
