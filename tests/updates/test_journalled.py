"""Updates that are done again from a journal: all is as if the matcher had never been closed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest
from contract import built, every_kind, pairs, share_of_cases, some_settings
from layouts import plain_table, some_events
from oracle import Expr, to_sql
from sizes import SMALL
from strategies import COLUMNS, a_schema, an_expression, some_rows, terms
from test_contract_updates import an_update, check, some_policy

import colmatch as cm
from colmatch.given.schema import Attributes
from colmatch.given.session import ZONE
from colmatch.updates import memory_set, policy, records

EVENTS = pa.table({"a": [1, 5, 9, 30, None], "s": ["x", "yy", None, "zz", "x1"]})
SCHEMA = {"a": "int64", "s": "string"}


def journalled(path: Path, subscriptions: Any, schema: Any = SCHEMA, **options: Any) -> cm.Matcher:
    cm.Matcher.build(subscriptions, schema, **options).save(path)
    return cm.Matcher.open(path, journal=True)


def again(matcher: cm.Matcher, path: Path, **options: Any) -> cm.Matcher:
    """Closes the matcher, and opens what it leaves."""
    matcher.close()
    return cm.Matcher.open(path, journal=True, **options)


def state(matcher: cm.Matcher) -> Any:
    found = [] if pa.types.is_null(matcher.ids.type) else pairs(matcher.match(EVENTS))
    return found, sorted(matcher.ids.to_pylist()), matcher.rejected, matcher.version


@share_of_cases(18 if SMALL else 63)
def test_updates_in_any_order(kind: str, seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    schema = a_schema(rng) if rng.random() < 0.5 else pa.schema(rng.sample(list(COLUMNS.items()), 8))
    if rng.random() < 0.5:
        events, rows = some_events(rng, schema, some_rows(Random(seed), schema, 8))
        events = events.read_all() if isinstance(events, pa.RecordBatchReader) else events
    else:
        rows = some_rows(rng, schema, 8)
        events = plain_table(schema, rows)
    leaves = terms(schema)
    there: dict[int, Expr] = {id: an_expression(rng, leaves, depth=2) for id in range(rng.randrange(6))}
    index = cm.index(kind, dnf_budget=rng.choice([1, 2, 64])) if kind == "kindex" else some_settings(rng, kind)
    options = cm.Options(missing_columns="null")
    path = tmp_path / "index"
    built({id: to_sql(e) for id, e in there.items()}, schema, index, options).save(path)
    matcher = cm.Matcher.open(path, journal=True)
    with some_policy(rng), patch.object(memory_set, "REPLAYED_MOST", rng.choice([0, 500, 2**22])):
        for _ in range(rng.randint(1, 20)):
            an_update(rng, seed, matcher, there, leaves, 4)
            some = rng.randrange(8)
            if some == 0:
                matcher.save(path)
            elif some == 1:
                matcher.compact()
            elif some == 2:
                version, rejected = matcher.version, matcher.rejected
                matcher = again(matcher, path, mmap=rng.random() < 0.5)
                check(matcher, there, rows, events)
                assert (matcher.version, matcher.rejected) == (version, rejected)
        matcher = again(matcher, path)
        check(matcher, there, rows, events)
        matcher.compact()
        check(matcher, there, rows, events)
        for id, e in there.items():
            assert matcher.explain(rows[0], id).matched == ((0, id) in pairs(matcher.match(events))), to_sql(e)


@every_kind
def test_single_updates_are_taken_together(kind: str, tmp_path: Path) -> None:
    """Many records become one segment, or go to the growing one where they are few."""
    count = 100 if SMALL else 1500
    path = tmp_path / "index"
    matcher = journalled(path, {-1: "a > 3", -2: "s LIKE '%x'"}, index=kind)
    texts = {i: f"a > {i % 40} AND (s <> 'x{i % 3}' OR a IN ({i}, 5)) OR s LIKE '{i}%z'" for i in range(count)}
    for i in range(count):
        matcher.insert({i: texts[i]})
        if i % 3 == 2:
            matcher.delete([i - 1])
        if i % 7 == 6:
            matcher.upsert({i: "a = 1", i - 2: "a < 6"})
    before = state(matcher)
    matcher.close()
    with patch.object(cm.Matcher, "insert"):  # nothing is parsed
        opened = cm.Matcher.open(path, journal=True)
    assert state(opened) == before
    assert len(inside.version(opened).segments) <= 3
    opened.insert({count: "a = 5 AND s = 'yy'"})
    opened.delete([0, -2])
    after = state(opened)
    assert after != before and state(again(opened, path)) == after


def test_what_was_rejected_is_an_update(tmp_path: Path) -> None:
    path = tmp_path / "index"
    matcher = journalled(path, {1: "a = 1"})
    matcher.insert({2: "b = 1"}, errors="collect")
    assert matcher.version == 1 and [r.id for r in matcher.rejected] == [2]
    matcher.insert({3: "a = 1", 4: "a ="}, errors="collect")
    matcher.insert({})
    assert matcher.version == 2
    before = state(matcher)
    matcher = again(matcher, path)
    assert state(matcher) == before
    matcher.save(path)
    assert state(again(matcher, path)) == before


def test_a_time_zone_that_an_update_depends_on_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "index"
    matcher = journalled(path, {1: "a = 1"}, {"a": "int64", "t": pa.timestamp("us", "UTC")})
    assert matcher.spark_settings.get(ZONE) is None
    matcher.insert({2: "t > TIMESTAMP '2024-01-01 00:00:00'"})
    literal = matcher.spark_settings.get(ZONE)
    assert literal is not None and again(matcher, path).spark_settings.get(ZONE) == literal


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("most", [0, 2**22])
def test_ids_of_another_type_when_none_is_left(
    compact: bool, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a merge came by or not."""
    monkeypatch.setattr(memory_set, "REPLAYED_MOST", most)
    path = tmp_path / "index"
    matcher = journalled(path, {})
    wanted: Any
    for wanted in ("é", 7, "", -(2**63), "x" * 1000):
        matcher.insert(
            {wanted: "a = 1", wanted * 2 if wanted else "z": "a = 5"} if isinstance(wanted, str) else {wanted: "a = 1"}
        )
        matcher = again(matcher, path)
        assert wanted in matcher.ids.to_pylist()
        gone = matcher.ids
        matcher.insert(dict.fromkeys(["more"] if isinstance(wanted, str) else [9], "a = 2"))
        matcher.delete([*gone.to_pylist(), "more" if isinstance(wanted, str) else 9])
        matcher.compact() if compact else None
    assert len(again(matcher, path)) == 0


def test_a_kind_that_refuses_what_came_one_by_one(tmp_path: Path) -> None:
    """What was taken before is taken again, if need be by another kind."""
    path = tmp_path / "index"
    index = cm.index("kindex", enumerate="raw")
    with patch.object(policy, "GROWING_MOST", 2):
        matcher = journalled(path, {1: "a = 1"}, index=index)
        for i in range(6):
            matcher.insert({10 + i: f"a > {i} AND a < 30000000000000 AND s = 'zz'"})
        before = state(matcher)
        assert state(again(matcher, path)) == before


@pytest.mark.parametrize("texts", [{1: "a = 5 AND s = 'x'"}, {"id 1": "a BETWEEN 5 AND 9 AND s IN ('x', 'y')"}])
def test_records_are_small(texts: Any) -> None:
    matcher = cm.Matcher.build({}, SCHEMA)
    with patch.object(records, "of_update", wraps=records.of_update) as made:
        inside.live(matcher).journal = recorder = Recorder()
        matcher.insert(texts)
    assert made.call_count == 1 and len(recorder.records[0]) < 300
    matcher.delete(texts)
    assert len(recorder.records[1]) < 30


class Recorder:
    """Keeps records instead of writing them."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def append(self, before: int, record: bytes) -> None:
        self.records.append(record)

    def close(self) -> None:
        self.records = []


def test_a_record_of_another_format_is_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "index"
    for odd in (b"", b"\1\0\0\0", b"\1\0\0\0\x09\0\0\0123456789", b"\0\0\0\xff", b"\0\0\1\0\2\0\0\0[]"):
        matcher = journalled(path, {1: "a = 1"})
        matcher.insert({2: "a = 2"})
        with patch.object(records, "of_update", return_value=odd):
            matcher.delete([2])
        matcher.close()
        with pytest.raises(
            cm.StoreError, match=r"cannot read .*index\.journal .*: open the file with the colmatch that"
        ):
            cm.Matcher.open(path, journal=True)
        Path(f"{path}.journal").unlink()


def test_records_do_not_depend_on_numbers_of_attributes() -> None:
    """Those that others have used before, or that only a refused expression names."""
    schema = {f"c{i}": "string" for i in range(30)}
    wide = cm.Matcher.build({i: f"c{i} = 'x{i}'" for i in range(20)}, schema)
    inside.live(wide).journal = recorder = Recorder()
    wide.insert({50: "c29 = 'x' AND c3 > 'b' OR c25 LIKE '%z'", 51: "c27 > 'x' AND c28 ="}, errors="collect")
    attributes = Attributes()
    change = records.read(recorder.records, attributes)
    assert [a.path for a in attributes] == [("c3",), ("c29",), ("c25",)]
    assert change.touched.array.to_pylist() == [50]


@every_kind
def test_a_bulk_of_many(kind: str, tmp_path: Path) -> None:
    count = 600
    path = tmp_path / "index"
    with tempfile.TemporaryDirectory():
        matcher = journalled(path, {0: "a = 1"}, index=kind)
        matcher.insert({i: f"a > {i} OR s = 'x{i}'" for i in range(1, count)})
        matcher.delete(range(0, count, 2))
        matcher.insert({i: f"a < {i}" for i in range(0, count, 4)})
        before = state(matcher)
        assert state(again(matcher, path)) == before
