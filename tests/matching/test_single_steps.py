"""Steps of calls for single events: none is for another rule, or for a column that is absent."""

from __future__ import annotations

import pyarrow as pa
import pytest
from contract import NO_JIT
from inside import attributes, count_calls, count_lines
from sizes import SMALL

import colmatch as cm
from colmatch.events.patterns import patterns_of


@pytest.mark.skipif(NO_JIT, reason="steps of kernels are steps of Python")
def test_no_step_of_python_is_taken_for_a_pattern_that_does_not_match(direct: list[bool]) -> None:
    """A profile counts calls of functions: as many among 2,000 patterns as among 20."""

    def steps(patterns: int) -> int:
        rules = {i: f"s LIKE '%word{i:05}%'" if i % 2 else f"t ILIKE '%word{i:05}'" for i in range(patterns)}
        matcher = cm.Matcher.build(rules, {"s": "string", "t": "string"})
        event = {"s": "a word00001 b", "t": "Word00002"}
        assert matcher.match_one(event) == [1, 2]
        return count_calls(lambda: matcher.match_one(event))

    assert steps(2_000 if not SMALL else 200) == steps(20)
    assert all(direct)


NESTED = "s string, i bigint, l array<string>, m map<string, bigint>, st struct<f: bigint>"
OWN_CONSTANTS = {  # a condition with a constant of its own in each subscription
    "LIKE": "s LIKE '%word{0:05}%'",
    "RLIKE": "s RLIKE 'w.rd{0:05}'",
    "solved": "i + {0} = {1}",
    "element": "array_contains(l, 'v{0}')",
    "map": "m['k{0}'] = {0}",
    "struct": "st.f = {0}",
    "tags": "i = {0}",
}


@pytest.mark.skipif(NO_JIT, reason="steps of kernels are steps of Python")
@pytest.mark.parametrize("form", OWN_CONSTANTS)
def test_no_call_takes_a_step_for_another_rule(form: str) -> None:
    """A profile counts calls of functions: as many among 1,000 rules as among 500."""
    schema = cm.Schema(NESTED)
    event = {"s": "a word00003", "i": 3, "l": ["v3"], "m": {"k3": 3}, "st": {"f": 3}}
    row = pa.RecordBatch.from_pylist([event], schema=schema.arrow)

    def steps(rules: int) -> list[int]:
        tags = {i: [f"tenant {i}"] for i in range(rules)} if form == "tags" else None
        matcher = cm.Matcher.build(
            {i: OWN_CONSTANTS[form].format(i, 2 * i) for i in range(rules)}, schema, options={"threads": 1}, tags=tags
        )
        if form in ("LIKE", "RLIKE"):
            patterns_of(attributes(matcher)).wait()
        calls = (
            lambda: matcher.match_one(event),
            lambda: matcher.match(row),
            lambda: matcher.exists_one(event),
            lambda: matcher.count_one(event),
            lambda: matcher.hits(row),
            lambda: matcher.explain(event, 3),
        )
        assert matcher.match_one(event) == matcher.match(row)["subscription"].to_pylist() == [3]
        assert matcher.explain(event, 3).matched
        return [count_calls(call) for call in calls]

    more, fewer = (300, 200) if SMALL else (1_000, 500)
    assert steps(more) == steps(fewer)


@pytest.mark.skipif(NO_JIT, reason="steps of kernels are steps of Python")
def test_no_step_is_taken_for_a_column_that_an_event_lacks(direct: list[bool]) -> None:
    def steps(columns: int) -> int:
        names = [f"c{i}" for i in range(columns)]
        matcher = cm.Matcher.build({i: f"{name} = {i}" for i, name in enumerate(names)}, dict.fromkeys(names, "int64"))
        event = {"c3": 3, "c7": 7}
        assert matcher.match_one(event) == [3, 7]
        return count_calls(lambda: matcher.match_one(event))

    assert steps(400) == steps(20)
    assert all(direct)


@pytest.mark.skipif(not NO_JIT, reason="compiled kernels take no steps of Python")
def test_no_step_of_a_kernel_is_taken_for_a_pattern_that_does_not_match(direct: list[bool]) -> None:
    """A trace counts lines of kernels: no more among 2,000 attributes than among 40."""

    def steps(patterns: int) -> int:
        rules = {i: f"s LIKE '%word{i:05}%' AND i > {i % 5}" for i in range(patterns)}
        matcher = cm.Matcher.build(rules, {"s": "string", "i": "int64"}, index="bitslice")
        event = {"s": "word00001, word00002", "i": 5}
        assert matcher.match_one(event) == [1, 2]
        return count_lines(lambda: matcher.match_one(event), "kernels")

    assert steps(2_000) <= steps(40)
    assert all(direct)
