"""Values that come in ascending order make a chain of a BE*-Tree, until it is built at once."""

from __future__ import annotations

import pyarrow as pa

import colmatch as cm

VALUES = 100


def equal_to(values: range) -> cm.PredicateTable:
    rows = {"id": list(values), "attribute": ["x"] * len(values), "op": ["="] * len(values)}
    return cm.PredicateTable(pa.table(rows | {"operands": [[value] for value in values]}))


def visited(matcher: cm.Matcher) -> int:
    return matcher.counters(pa.table({"x": [VALUES - 1]}))["nodes"]


def test_ascending_values_make_a_chain_that_building_at_once_mends() -> None:
    index = cm.index("bestar", capacity=1, construction="dynamic")
    matcher = cm.Matcher.build(equal_to(range(1)), {"x": "int64"}, index=index)
    for value in range(1, VALUES):
        matcher.insert(equal_to(range(value, value + 1)))
    assert visited(matcher) > VALUES
    matcher.compact()  # one by one again
    assert visited(matcher) > VALUES
    at_once = cm.Matcher.build(equal_to(range(VALUES)), {"x": "int64"}, index=cm.index("bestar", capacity=1))
    assert visited(at_once) < 20


def test_halves_of_a_domain_are_no_chain() -> None:
    index = cm.index("betree", capacity=1, construction="dynamic")
    matcher = cm.Matcher.build(equal_to(range(VALUES)), {"x": "int64"}, index=index)
    assert visited(matcher) < 20
