"""Fields that are not nullable: an event that lacks one matches nothing, in every way to ask."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind, pairs

import colmatch as cm
import colmatch.matching.worker

SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False),
        pa.field("b", pa.string()),
        pa.field("unused", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    ]
)
SUBS = {1: "a > 0", 2: "b IS NULL OR a IS NULL", 3: "b = 'x'", 4: "TRUE"}
EVENTS = pa.table(
    {
        "a": [1, None, 2, None, 3, -1],
        "b": ["x", None, None, "x", "x", "y"],
        "unused": pa.array(["u", "u", "u", None, None, "u"]).dictionary_encode(),
    }
)
FOUND = [[1, 3, 4], [], [1, 2, 4], [], [], [4]]
LACKS = [(1, "a"), (3, "a"), (3, "unused"), (4, "unused")]


@every_kind
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_what_lacks_something_matches_nothing(kind: str, rows: int) -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA, kind, cm.Options(batch_rows=rows, threads=2))
    assert matcher.columns == ["a", "b", "unused"]
    expected = [(event, id) for event, ids in enumerate(FOUND) for id in ids]
    assert pairs(matcher.match(EVENTS)) == expected
    assert [sorted(ids) for ids in matcher.match_lists(EVENTS).to_pylist()] == FOUND
    assert matcher.count(EVENTS).tolist() == list(map(len, FOUND))
    found, lacks = matcher.match(EVENTS, invalid="collect")
    assert pairs(found) == expected
    assert [(row["event"], row["column"]) for row in lacks.to_pylist()] == LACKS
    assert set(lacks["reason"].to_pylist()) == {"it is missing, and must be defined"}


def test_each_is_told_once_however_many_pieces_there_are() -> None:
    matcher = cm.Matcher.build(dict.fromkeys(range(7), "TRUE"), SCHEMA, "scan")
    with patch.multiple(colmatch.matching.worker, FIRST_CAPACITY=1, LARGE_CAPACITY=8):
        found, lacks = matcher.match(EVENTS, invalid="collect")
    assert found.num_rows == 21
    assert [(row["event"], row["column"]) for row in lacks.to_pylist()] == LACKS


def test_the_best_and_the_priority() -> None:
    wishes = pa.table({"id": list(SUBS), "expression": list(SUBS.values()), "priority": [4.0, 3.0, 2.0, 1.0]})
    matcher = cm.Matcher.build(wishes, SCHEMA, options=cm.Options(batch_rows=4))
    best = matcher.match_topk(EVENTS, 2, "priority").to_pylist()
    assert [(row["event"], row["subscription"]) for row in best] == [(0, 1), (0, 3), (2, 1), (2, 2), (5, 4)]


def test_string_ids_and_a_saved_matcher(tmp_path: Path) -> None:
    matcher = cm.Matcher.build({str(id): text for id, text in SUBS.items()}, SCHEMA)
    matcher.save(tmp_path / "m.cm")
    for again in (cm.Matcher.open(tmp_path / "m.cm"), pickle.loads(pickle.dumps(matcher))):
        assert [sorted(map(int, ids)) for ids in again.match_lists(EVENTS).to_pylist()] == FOUND


def test_raise() -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA, options=cm.Options(batch_rows=2))
    with pytest.raises(cm.EventError, match="column 'a', event 3: it is missing, and must be defined"):
        matcher.match(pa.concat_tables([EVENTS.slice(2, 1)] * 3 + [EVENTS.slice(1)]), invalid="raise")
    good = EVENTS.filter(pa.array(np.array([bool(ids) for ids in FOUND])))
    assert matcher.match(good, invalid="raise").num_rows == 7
    found, lacks = matcher.match(good, invalid="collect")
    assert (found.num_rows, lacks.num_rows) == (7, 0)


def test_a_column_that_is_not_there() -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA)
    with pytest.raises(cm.EventError, match="the events have no column 'unused', which must be defined in each event"):
        matcher.match(EVENTS.drop_columns(["unused"]))
    lenient = cm.Matcher.build(SUBS, SCHEMA, options=cm.Options(missing_columns="null"))
    assert not lenient.match(EVENTS.drop_columns(["unused"])).num_rows
    upper = EVENTS.rename_columns(["A", "b", "Unused"])
    assert [sorted(ids) for ids in matcher.match_lists(upper).to_pylist()] == FOUND


def test_of_a_range_one_end_is_enough() -> None:
    matcher = cm.Matcher.build({1: "a > 0", 4: "TRUE"}, SCHEMA)
    events = pa.table(
        {"low": [1, None, None], "high": pa.array([None, -1, None], pa.int64()), "unused": ["u", "u", "u"]}
    )
    assert [sorted(ids) for ids in matcher.match_lists(events, ranges={"a": ("low", "high")}).to_pylist()] == [
        [1, 4],
        [4],
        [],
    ]


def test_encoded_columns() -> None:
    """What is missing may be an index, a value of the dictionary, or a run."""
    matcher = cm.Matcher.build({1: "TRUE"}, pa.schema([pa.field("s", pa.string(), nullable=False)]))
    words = pa.array(["x", None])
    for column in (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), words),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 4], pa.int32()), pa.array(["x", None, "x"])),
        pa.array(["x", None, None, "x"], pa.string_view()),
    ):
        assert matcher.count(pa.table({"s": column})).tolist() == [1, 0, 0, 1]
        assert matcher.count(pa.table({"s": column}).slice(1)).tolist() == [0, 0, 1]
    assert matcher.count(pa.table({"s": pa.nulls(2)})).tolist() == [0, 0]


def test_ends_of_ranges_within_structs() -> None:
    matcher = cm.Matcher.build({4: "TRUE", 5: "a > 1"}, SCHEMA)
    events = pa.table(
        {"span": [{"low": 1, "high": 2}, {"low": None, "high": None}, None], "unused": ["u"] * 3, "plain": [1, 2, 3]}
    )
    ranges = {"a": ("span.low", "span.high")}
    assert [sorted(ids) for ids in matcher.match_lists(events, ranges=ranges).to_pylist()] == [[4, 5], [], []]
    with pytest.raises(cm.EventError, match="column .plain. is int64, no struct"):
        matcher.match(events, ranges={"a": ("plain.low", "plain.high")})


def test_explain_says_what_is_missing() -> None:
    matcher = cm.Matcher.build(SUBS, SCHEMA)
    told = matcher.explain({"a": None, "b": "x", "unused": "u"}, 3)
    assert not told.matched and told.lacking == ("a",)
    assert str(told).splitlines()[:2] == [
        "subscription 3: does not match",
        "   the event lacks 'a', which must be defined, so that the event matches nothing",
    ]


@pytest.mark.parametrize("wrong", ["", "error", None, 1, ["skip"]])
def test_other_words_are_refused(wrong: Any) -> None:
    with pytest.raises(cm.OptionError, match="'skip', 'raise' or 'collect' is needed"):
        cm.Matcher.build(SUBS, SCHEMA).match(EVENTS, invalid=wrong)
