"""Events in long form become a map column, without copies, and what cannot is refused with its
place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from installed import needs
from reading import STRING, check, entries, few, literals

from colmatch.errors import EventError
from colmatch.events import long_form as module
from colmatch.events.long_form import from_pairs
from colmatch.events.reader import Reader
from colmatch.given.schema import INT, Attribute, Attributes, Role


def table(event: Any, attribute: Any, value: Any) -> pa.Table:
    return pa.table({"event": event, "attribute": attribute, "value": value})


KEYS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.uint8(), pa.large_string()),
]


def names_of(attribute: list[Any], type: pa.DataType) -> pa.Array:
    """Returns an array of attributes; older ones of Arrow make no dictionary of large strings."""
    if not pa.types.is_dictionary(type):
        return pa.array(attribute, type)
    encoded = pa.array(attribute, type.value_type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(type.index_type), encoded.dictionary)


@few
@given(st.data())
def test_from_pairs(data: st.DataObject) -> None:
    """Any types, chunks and slices against rows put together one by one; and the reader takes
    what comes out.
    """
    event = sorted(data.draw(st.lists(st.integers(0, 12), max_size=40)))
    numbers = data.draw(st.booleans())
    some = st.integers(-3, 90) if numbers else st.sampled_from(["", "a", "a longer name", "a longer game", "é"])
    attribute = data.draw(st.lists(some, min_size=len(event), max_size=len(event)))
    value = data.draw(st.lists(st.none() | st.integers(-9, 9), min_size=len(event), max_size=len(event)))
    rows = data.draw(st.none() | st.integers(event[-1] + 1 if event else 0, 20))
    type = data.draw(st.sampled_from([pa.int8(), pa.int64()] if numbers else KEYS))
    events = data.draw(st.sampled_from([pa.int64(), pa.uint64(), pa.int8()]))
    cut = data.draw(st.integers(0, len(event)))
    columns = [pa.array(event, events), names_of(attribute, type), pa.array(value, pa.int64())]
    pieces = [
        pa.RecordBatch.from_arrays(columns, names=["event", "attribute", "value"]).slice(*where)
        for where in ((0, cut), (cut,))
    ]
    batch = from_pairs(pa.Table.from_batches(pieces), "m", rows)
    expected: list[dict[str, Any]] = [
        {"m": []} for _ in range(rows if rows is not None else event[-1] + 1 if event else 0)
    ]
    for e, a, v in zip(event, attribute, value):
        expected[e]["m"].append((a, v))
    assert batch.to_pylist() == expected
    assert batch.schema.names == ["m"] and batch.schema.types == [pa.map_(type, pa.int64())]
    batch.validate(full=True)
    known = data.draw(st.lists(some, unique=True, max_size=4))
    check(batch, [Attribute(("m",), Role.ENTRY, INT, k) for k in known])


def test_nothing_is_copied() -> None:
    names = pa.DictionaryArray.from_arrays(pa.array(np.arange(1000) % 7, pa.int32()), pa.array(list("abcdefg")))
    pairs = table(np.arange(1000) // 3, names, np.arange(1000))
    batch = from_pairs(pairs.slice(1))
    entries = batch["attrs"]
    assert entries.items.buffers()[1].address == pairs["value"].chunk(0).buffers()[1].address
    assert entries.keys.indices.buffers()[1].address == names.indices.buffers()[1].address
    assert entries.keys.dictionary.buffers()[2].address == names.dictionary.buffers()[2].address
    assert batch.slice(0, 2).to_pylist() == [{"attrs": [("b", 1), ("c", 2)]}, {"attrs": [("d", 3), ("e", 4), ("f", 5)]}]


SOURCE = {"event": [1], "attribute": ["a"], "value": ["x"], "more": [0]}


def test_sources() -> None:
    columns, expected = SOURCE, [{"attrs": []}, {"attrs": [("a", "x")]}]
    for pairs in (columns, pa.table(columns), pa.record_batch(columns), pa.table(columns).to_reader()):
        assert from_pairs(pairs).to_pylist() == expected


@needs("pandas", "polars")
def test_data_frames() -> None:
    import pandas as pd
    import polars as pl

    columns, expected = SOURCE, [{"attrs": []}, {"attrs": [("a", "x")]}]
    assert from_pairs(pd.DataFrame(columns)).to_pylist() == expected
    frame = pl.DataFrame(columns).with_columns(pl.col("attribute").cast(pl.Categorical))
    batch = from_pairs(frame)
    assert batch.to_pylist() == expected
    reader = Reader(Attributes([Attribute(("attrs",), Role.ENTRY, STRING, "a")]), literals([[b"x"]]))
    assert entries(reader.read(batch)) == [[(1, 1)]]


def test_no_pairs() -> None:
    nothing: dict[str, list[Any]] = {"event": [], "attribute": [], "value": []}
    assert from_pairs(nothing).num_rows == 0
    assert from_pairs(nothing, rows=2).to_pylist() == [{"attrs": []}] * 2
    no_chunks = (pa.chunked_array([], type) for type in (pa.int64(), pa.string(), pa.int8()))
    assert from_pairs(table(*no_chunks), rows=1).num_rows == 1


@pytest.mark.parametrize(
    ("pairs", "rows", "message"),
    [
        (table([0, 2, 1], ["a"] * 3, [1] * 3), None, r"pairs, row 2: event 1 comes after event 2: sort"),
        (table(pa.array([0, 2, 1], pa.uint8()), ["a"] * 3, [1] * 3), None, r"row 2: event 1 comes after event 2"),
        (table([-1, 0], ["a"] * 2, [1] * 2), None, r"pairs, row 0: event -1 is negative"),
        (table([0, 5, 6], ["a"] * 3, [1] * 3), 5, r"pairs, row 1: event 5 is not below rows=5"),
        (table([0, None], ["a"] * 2, [1] * 2), None, r"pairs, row 1: event is NULL"),
        (table([0.0], ["a"], [1]), None, r"column 'event' of the pairs is double"),
        (table([2**40], ["a"], [1]), None, r"1,099,511,627,777 events are too many"),
        (
            table(pa.array([0, 2**63], pa.uint64()), ["a"] * 2, [1] * 2),
            None,
            r"pairs, row 1: event 9223372036854775808 is too large",
        ),
        (table([0, 0], ["a", None], [1] * 2), None, r"pairs, row 1: attribute is NULL"),
        (table([0, 0], pa.array(["a", None]).dictionary_encode(), [1] * 2), None, r"pairs, row 1: attribute is NULL"),
        (
            table([0] * 3, pa.DictionaryArray.from_arrays([1, 1, 0], [None, "a"]), [1] * 3),
            None,
            r"pairs, row 2: attribute is NULL",
        ),
        (table([0], [1.5], [1]), None, r"column 'attribute' of the pairs is double"),
        (table([0], pa.array([1], pa.uint64()), [1]), None, r"column 'attribute' of the pairs is uint64"),
        (table([0], pa.array([1]).dictionary_encode(), [1]), None, r"column 'attribute' of the pairs is dictionary"),
        (pa.table({"event": [0], "value": [1]}), None, r"no column 'attribute'; its columns are 'event', 'value'"),
        (pa.table([[0], [0]], names=["event", "event"]), None, r"there are 2 columns 'event'"),
        (7, None, r"pairs cannot be read from int: pass a table"),
        (table([0], ["a"], [1]), -1, r"rows is -1"),
    ],
)
def test_what_is_refused(pairs: Any, rows: int | None, message: str) -> None:
    with pytest.raises(EventError, match=message):
        from_pairs(pairs, rows=rows)


def test_a_null_that_no_pair_has_is_no_matter() -> None:
    attribute = pa.DictionaryArray.from_arrays([1, 1], [None, "a"])
    assert from_pairs(table([0, 1], attribute, [1, 2])).to_pylist() == [{"attrs": [("a", 1)]}, {"attrs": [("a", 2)]}]


def test_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAIRS_MOST", 2)
    with pytest.raises(EventError, match=r"3 pairs are too many for one batch \(2\)"):
        from_pairs(table([0, 0, 0], ["a"] * 3, [1] * 3))
