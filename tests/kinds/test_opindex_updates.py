"""Inserts and deletes on OpIndex's own arrays."""

from __future__ import annotations

from random import Random
from typing import Any

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from layouts import plain_table
from numpy.typing import NDArray
from sizes import SMALL
from strategies import a_schema, an_expression, some_rows, terms
from test_opindex import ROWS, SIZE, built, with_arrays
from ways_in import condition, to_builder
from workload import named

import colmatch as cm
import colmatch.kinds.opindex
from colmatch.arrays.frozen import freeze
from colmatch.kernels._jit import kernels
from colmatch.kernels.kinds.opindex.arrays import BUILT, OpIndex

MODULE = colmatch.kinds.opindex


def start_with(matcher: cm.Matcher, start: int, **settings: Any) -> OpIndex:
    """An index of the conjunctions below ``start``, whose predicates are in front of those of
    all others.
    """
    preds = inside.predicates(matcher)
    few = preds._replace(
        first=preds.first[: start + 1], pred=preds.pred[: preds.first[start]], owner=preds.owner[:start]
    )
    if len(preds.jump_first):
        few = few._replace(jump_first=preds.jump_first[:start], tree_first=preds.tree_first[: start + 1])
    return freeze(MODULE.build(freeze(few), inside.codes(matcher), None, cm.index("opindex", **settings))[0])


def conjunctions_of(matcher: cm.Matcher, subscriptions: list[int]) -> NDArray[np.int64]:
    return np.flatnonzero(np.isin(inside.predicates(matcher).owner, subscriptions))


@pytest.mark.parametrize("seed", range(3 if SMALL else 12))
def test_inserts_and_deletes_in_random_order(seed: int) -> None:
    rng = Random(seed)
    schema = a_schema(rng)
    leaves = terms(schema)
    two_valued = to_builder(("is null", leaves[0][0]), None)
    count = 12 if SMALL else 60
    expressions = [an_expression(rng, leaves, depth=rng.choice([0, 1, 2])) for _ in range(count)]
    some = [(i, condition(e, two_valued)) for i, e in enumerate(expressions)]
    scan = cm.Matcher.build(some, schema, index=cm.index("scan", dnf_budget=rng.choice([1, 3, 64])))
    events = plain_table(schema, some_rows(rng, schema, 20))
    wanted = pairs(scan.match(events))
    preds, codes = inside.predicates(scan), inside.codes(scan)
    total = len(preds.owner)
    arrays = start_with(scan, rng.choice([0, total // 2, total]), signatures=seed % 3 > 0)
    there = set(range(int(arrays.state[BUILT])))
    for step in range(count):
        i = rng.randrange(count)
        conjunctions = conjunctions_of(scan, [i])
        entered = [c for c in conjunctions.tolist() if c in there]
        if entered:
            arrays = MODULE.delete(arrays, preds, codes, np.array(entered))
            there -= set(entered)
        else:
            for c in conjunctions.tolist():
                arrays = MODULE.insert(arrays, preds, codes, c, c + 1)
            there |= set(conjunctions.tolist())
        if step % 10 == 9:
            whole = {j for j in range(count) if there >= set(conjunctions_of(scan, [j]).tolist())}
            none = {j for j in range(count) if not there & set(conjunctions_of(scan, [j]).tolist())}
            found = pairs(with_arrays(scan, arrays).match(events))
            assert [pair for pair in found if pair[1] in whole] == [pair for pair in wanted if pair[1] in whole]
            assert not [pair for pair in found if pair[1] in none]


@pytest.mark.parametrize("name", ["opindex", "dense", "querylog"])
def test_what_is_inserted_is_found_and_what_is_deleted_is_not(name: str) -> None:
    """From nothing at all: lists, segments, runs and entries are all made by inserts."""
    workload = named(name, subscriptions=SIZE // 4)
    scan, events = built(workload, "scan"), workload.events(ROWS // 2)
    wanted = pairs(scan.match(events))
    preds, codes = inside.predicates(scan), inside.codes(scan)
    count = len(preds.owner)
    arrays = start_with(scan, 0)
    arrays = MODULE.insert(arrays, preds, codes, 0, count // 2)
    half = MODULE.insert(arrays, preds, codes, count // 2, count // 2)
    assert all(one is other for one, other in zip(arrays, half))  # nothing is copied without need
    assert pairs(with_arrays(scan, arrays).match(events)) == [pair for pair in wanted if pair[1] < count // 2]
    for c in range(count // 2, count):
        arrays = MODULE.insert(arrays, preds, codes, c, c + 1)
    inserted = with_arrays(scan, arrays)
    assert pairs(inserted.match(events)) == wanted
    signed, plain = inserted.counters(events)["nodes"], with_arrays(scan, unsigned(arrays)).counters(events)["nodes"]
    assert signed < 0.8 * plain
    gone = np.arange(0, count, 3)
    arrays = MODULE.delete(arrays, preds, codes, gone)
    left = [pair for pair in wanted if pair[1] % 3]
    assert pairs(with_arrays(scan, arrays).match(events)) == left
    arrays = MODULE.delete(arrays, preds, codes, gone)  # they are not there
    for c in gone.tolist():
        arrays = MODULE.insert(arrays, preds, codes, c, c + 1)
    assert pairs(with_arrays(scan, arrays).match(events)) == wanted


def unsigned(arrays: OpIndex) -> OpIndex:
    segment = arrays.segment.copy()
    segment[:, 0] = 2**64 - 1
    return freeze(arrays._replace(segment=segment))


def test_an_insert_does_not_copy_the_index() -> None:
    """What moves for one insert after the other: each array is made anew a few times only."""
    workload = named("dense", subscriptions=SIZE // 2)
    scan = built(workload, "scan")
    preds, codes = inside.predicates(scan), inside.codes(scan)
    count = len(preds.owner)
    arrays = start_with(scan, count // 2)
    copies, before = 0, arrays
    for c in range(count // 2, count):
        arrays = MODULE.insert(arrays, preds, codes, c, c + 1)
        copies += arrays.word is not before.word
        before = arrays
    assert 1 <= copies <= (40 if SMALL else 12)
    assert sum(array.nbytes for array in arrays) < 3 * sum(
        array.nbytes for array in MODULE.build(preds, inside.codes(scan), None, cm.index("opindex"))[0]
    )


def test_attributes_that_come_later() -> None:
    texts = {1: "b = 1", 2: "a = 1 AND d >= 2", 3: "c < 5 AND a = 2"}
    scan = cm.Matcher.build(texts, dict.fromkeys("abcd", "int64"), index="scan")
    preds, codes = inside.predicates(scan), inside.codes(scan)
    attribute = int(preds.pred[0, 0])
    codes = inside.codes(scan)._replace(
        first=inside.codes(scan).first[: attribute + 2], multi=inside.codes(scan).multi[: attribute + 1]
    )
    few = preds._replace(first=preds.first[:2], pred=preds.pred[:1], owner=preds.owner[:1])
    arrays, _ = MODULE.build(freeze(few), freeze(codes), None, cm.index("opindex"))
    assert len(arrays.lists) == 1
    matcher = with_arrays(scan, MODULE.insert(arrays, preds, codes, 1, 3))
    events = pa.table({"a": [1, 2, 1], "b": [1, 0, 1], "c": [4, 4, 4], "d": [3, 3, 1]})
    assert pairs(matcher.match(events)) == pairs(scan.match(events)) == [(0, 1), (0, 2), (1, 3), (2, 1)]


def test_one_signature_each() -> None:
    """Whatever the tests of OpIndex have handed to the kernels."""
    several = {
        k.py_func.__name__: k.signatures
        for k in kernels()
        if "opindex" in k.py_func.__module__ and len(k.signatures) > 1
    }
    assert not several


def test_attributes_that_come_later_count_as_the_rarest() -> None:
    index = cm.index("opindex", construction="dynamic")
    options = cm.Options(missing_columns="null")
    matcher = cm.Matcher.build({}, {"a": "int64", "b": "int64"}, index=index, options=options)
    matcher.insert({i: f"a = {i}" for i in range(10)})
    matcher.insert({10 + i: f"a = 1 AND b = {i}" for i in range(5)})
    assert matcher.counters(pa.table({"a": [1]}))["conjunctions"] == 10


def test_lists_are_cut_into_segments_with_signatures() -> None:
    """Those that grew one by one turn away nearly as many as those that were built at once."""
    schema = {f"a{i}": "int64" for i in range(300)} | {"p": "int64"}
    texts = {i: f"p = 1 AND a{i} = {i % 7}" for i in range(300)}
    sample = pa.table({f"a{i}": [99] * 64 for i in range(300)})
    shares = []
    for construction in ("bulk", "dynamic"):
        index = cm.index("opindex", construction=construction)
        options = cm.Options(missing_columns="null")
        arrays = inside.arrays(cm.Matcher.build(texts, schema, index=index, sample=sample, options=options))
        first, log, _ = max(arrays.list[: int(arrays.state[0])].tolist(), key=lambda one: one[1])
        assert log > 2
        signatures = arrays.segment[first : first + (1 << log), 0].copy()
        shares.append(float(np.unpackbits(signatures.view(np.uint8)).mean()))
    assert 0 < shares[1] < 2 * shares[0]
