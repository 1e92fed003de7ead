"""Rules of JSONLogic: what they match, against a plain interpreter, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import logic
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import colmatch as cm

SCHEMA = pa.schema(
    {
        "n": pa.float64(),
        "i": pa.int64(),
        "s": pa.string(),
        "t": pa.string(),
        "b": pa.bool_(),
        "ls": pa.list_(pa.string()),
        "items": pa.list_(pa.struct({"q": pa.int64(), "t": pa.string()})),
        "u": pa.struct({"n": pa.int64(), "s": pa.string()}),
    }
)


def matched(conditions: Any, events: list[dict[str, Any]], missing: str = "unknown") -> list[list[Any]]:
    matcher = cm.Matcher.build(conditions, SCHEMA, missing=missing)
    return [sorted(ids) for ids in matcher.match_lists(pa.Table.from_pylist(events, SCHEMA)).to_pylist()]


# Random rules
# --------------------------------------------------------------------------


def operation(names: Any, *parts: Any) -> Any:
    return st.builds(lambda name, *some: {name: list(some)}, st.sampled_from(names), *parts)


def variables(*names: str) -> Any:
    return st.sampled_from(names).map(lambda name: {"var": name})


NUMBERS = st.sampled_from([-1, 0, 1, 2, 5, 2.5]) | variables("n", "i", "u.n", "items.0.q")
TEXTS = st.sampled_from(["", "a", "5", "ab", " 2 "]) | variables("s", "t", "u.s", "ls.1")
NUMERIC = st.recursive(
    NUMBERS,
    lambda inner: (
        operation(["+", "-", "*", "/", "max", "min"], inner, inner)
        | operation(["%"], inner, st.sampled_from([2, 3]))
        | operation(["if"], st.deferred(lambda: LEAVES), inner, inner)
    ),
    max_leaves=3,
)
TEXTUAL = st.recursive(
    TEXTS,
    lambda inner: (
        operation(["cat"], inner, inner | variables("i"))
        | operation(["substr"], inner, st.sampled_from([0, 1, -1, -2]))
        | operation(["substr"], inner, st.sampled_from([0, 1]), st.sampled_from([0, 1, 2, -1]))
        | st.builds(
            lambda name, default: {"var": [name, default]}, st.sampled_from(["s", "t"]), st.sampled_from(["a", ""])
        )
    ),
    max_leaves=3,
)
PLAIN = NUMERIC | TEXTUAL | st.none() | st.booleans() | variables("b")
SIGNS = ["==", "!=", "===", "!==", "<", "<=", ">", ">="]
NAMES = st.lists(st.sampled_from(["n", "s", "u.s", "b"]), min_size=1, max_size=3)
LEAVES = st.one_of(
    operation(SIGNS, PLAIN, PLAIN),
    operation(SIGNS, NUMERIC, NUMERIC),
    operation(SIGNS, TEXTUAL, TEXTUAL),
    operation(["<", "<="], NUMERIC, NUMERIC, NUMERIC),
    operation(["in"], PLAIN, st.lists(st.sampled_from(["a", "5", 5, 1, None, True]), max_size=3)),
    operation(["in"], TEXTUAL, TEXTUAL),
    operation(["in"], TEXTUAL, variables("ls")),
    operation(["starts_with", "ends_with"], TEXTUAL, TEXTUAL),
    variables("b", "n", "s", "ls", "i"),
    NAMES.map(lambda names: {"missing": names}),
    st.builds(lambda least, names: {"missing_some": [least, names]}, st.integers(0, 3), NAMES),
    operation(["all", "some", "none"], variables("ls"), operation(SIGNS, variables(""), TEXTS)),
    operation(
        ["all", "some", "none"],
        variables("items"),
        operation(SIGNS, variables("q"), st.sampled_from([0, 1, "1", None])),
    ),
    operation(
        ["all", "some", "none"],
        st.just([1, 2, "a"]),
        operation(["==", "<"], variables(""), st.sampled_from([0, 2, 3])),
    ),
)
RULES = st.recursive(
    LEAVES,
    lambda inner: (
        operation(["and", "or"], inner, inner)
        | operation(["and", "or"], inner, inner, inner)
        | operation(["!", "!!"], inner)
        | operation(["if", "?:"], inner, inner, inner)
        | operation(["if"], inner, inner)
        | operation(["==", "!==", "<"], inner, inner | st.booleans() | st.sampled_from([0, 1]))
    ),
    max_leaves=4,
)
MAYBE_NUMBER = st.sampled_from([None, -1, 0, 1, 2, 5])
MAYBE_TEXT = st.sampled_from([None, "", "a", "5", "ab", "ba", " 2 "])
EVENTS = st.fixed_dictionaries(
    {
        "n": MAYBE_NUMBER | st.just(2.5),
        "i": MAYBE_NUMBER,
        "s": MAYBE_TEXT,
        "t": MAYBE_TEXT,
        "b": st.sampled_from([None, True, False]),
        "ls": st.none() | st.lists(MAYBE_TEXT, max_size=2),
        "items": st.none() | st.lists(st.fixed_dictionaries({"q": MAYBE_NUMBER, "t": MAYBE_TEXT}), max_size=2),
        "u": st.none() | st.fixed_dictionaries({"n": MAYBE_NUMBER, "s": MAYBE_TEXT}),
    }
)


@given(st.lists(RULES, min_size=1, max_size=12), st.lists(EVENTS, min_size=1, max_size=12))
def test_random_rules(rules: list[Any], events: list[dict[str, Any]]) -> None:
    conditions = cm.rules.from_jsonlogic(json.dumps(rules), SCHEMA, errors="collect")
    refused = {one.id for one in conditions.rejected}
    expected = [
        [
            number
            for number, rule in enumerate(rules)
            if number not in refused and logic.truthy(logic.apply(rule, event))
        ]
        for event in events
    ]
    assert matched(conditions, events) == expected
    assert matched(conditions, events, missing="false") == expected
    assert matched({id: str(condition) for id, condition in conditions.items()}, events) == expected
