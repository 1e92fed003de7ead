"""Arrow in, sparse: thousands of keys of maps in hash tables and blocks, bitmaps read by words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import FLOAT, STRING, check, entries, few, literals, naive, value

from colmatch.errors import EventError
from colmatch.events.reader import Reader
from colmatch.given.schema import INT, Attribute, Attributes, Family, Role, Type


@few
@given(st.data())
def test_bitmaps_by_words(data: st.DataObject) -> None:
    """Whole words of NULLs and of values among others, from any bit on."""
    runs = data.draw(
        st.lists(st.tuples(st.integers(1, 200), st.sampled_from([0.0, 0.02, 0.5, 0.98, 1.0])), min_size=1, max_size=4)
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    there = np.concatenate([rng.random(n) < share for n, share in runs])
    numbers = rng.integers(-9, 9, len(there))
    columns = {"n": pa.array(numbers, mask=~there), "f": pa.array(numbers.astype(float), mask=~there)}
    batch = pa.record_batch(columns).slice(data.draw(st.integers(0, min(80, len(there)))))
    check(batch, [value("f", FLOAT), value("n")])


def test_bitmaps_end_where_the_rows_do() -> None:
    """Behind the last row stands anything."""
    for rows in (1, 7, 8, 63, 64, 65, 128, 135):
        there = np.append(np.arange(rows) % 3 == 0, np.ones(64, bool))
        bits = np.packbits(there, bitorder="little").tobytes()
        column = pa.Array.from_buffers(pa.int64(), rows, [pa.py_buffer(bits), pa.py_buffer(np.arange(rows))])
        check(pa.record_batch({"n": column}), [value("n")])


KEYS = {
    "short": lambda i: f"k{i}",
    "of eight bytes": lambda i: f"k{i:07}",
    "long": lambda i: f"a common prefix {i}",
    "number": lambda i: 65536 * i,
}


@pytest.mark.parametrize("count", [1, 63, 64, 65, 400])
@pytest.mark.parametrize("kind", KEYS)
def test_keys_by_hash(kind: str, count: int) -> None:
    """Two maps whose entries end at, before and after a block; batches that touch all blocks,
    one, and others again.
    """
    rng = np.random.default_rng(count)
    keys = [KEYS[kind](i) for i in range(2 * count)]
    attributes = [Attribute((rng.choice(["m", "n"]),), Role.ENTRY, INT, keys[i]) for i in rng.permutation(count)]
    attributes.insert(count // 2, value("x"))
    reader = Reader(Attributes(attributes), literals([()] * len(attributes)))
    type = pa.map_(pa.int64() if kind == "number" else pa.string(), pa.int64())
    for rows, most in ((50, 2 * count), (1, 2 * count), (0, 1), (3, count), (50, 2 * count), (4, 1)):
        columns = {}
        for name in "mn":
            numbers = [
                [(keys[k], None if k % 5 == 1 else int(k)) for k in rng.integers(0, most, 4)] for _ in range(rows)
            ]
            columns[name] = pa.array(numbers, type)
        for dictionary in (False, True):
            if dictionary:
                m = columns["m"]
                columns["m"] = pa.MapArray.from_arrays(m.offsets, m.keys.dictionary_encode(), m.items)
            batch = pa.record_batch({**columns, "x": pa.array(range(rows), pa.int64())})
            assert entries(reader.read(batch)) == naive(batch, attributes, [()] * len(attributes))


def test_strings_of_many_keys() -> None:
    """Each known key has its own set of literals; blocks that a batch does not touch are passed
    over.
    """
    keys = [f"k{i}" for i in range(300)]
    words = [[f"v{i % 7}".encode(), b"w"] if i % 3 else [] for i in range(300)]
    attributes = [Attribute(("m",), Role.ENTRY, STRING, key) for key in keys]
    rows = [
        [("k299", "v5"), ("k7", "v0"), ("k7", "w")],
        [("k130", "w"), ("k299", None)],
        [("k299", "v6"), ("k301", "v6")],
    ]
    check(pa.record_batch({"m": pa.array(rows, pa.map_(pa.string(), pa.string()))}), attributes, words)


def test_a_large_dictionary_of_keys_for_few_entries() -> None:
    """Is not looked up as a whole; its values that no entry has may be NULL."""
    words = pa.array([None, *(f"k{i}" for i in range(500))])
    keys = pa.DictionaryArray.from_arrays(pa.array([3, 500, 3], pa.int16()), words)
    column = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), keys, pa.array([1, 2, 3]))
    check(pa.record_batch({"m": column}), [Attribute(("m",), Role.ENTRY, INT, k) for k in ("k499", "k2", "k3")])
    for length in (2, 3):  # the same with a dictionary that is
        keys = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), words.slice(1, length))
        column = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), keys, pa.array([1, 2, 3]))
        check(pa.record_batch({"m": column}), [Attribute(("m",), Role.ENTRY, INT, k) for k in ("k0", "k1")])


def test_keys_of_equal_hash() -> None:
    """A hash decides nothing: the last bytes of this key were chosen to give that of a known
    one.
    """
    every = 2**64 - 1

    def mix(a: int, b: int) -> int:
        word = (a ^ b) * 0x9E3779B97F4A7C15 & every
        return word ^ word >> 32

    def words(text: bytes) -> list[int]:
        return [
            int.from_bytes(text[:8], "big") ^ 2**63,
            *(int.from_bytes(text[i : i + 8], "little") for i in range(8, len(text), 8)),
        ]

    known, other = words(b"a key of 24 bytes, known"), words(b"a key of another 24 byte")
    start = mix(known[0], 24)
    assert known[0] == other[0]
    last = known[2] ^ mix(known[1], start) ^ mix(other[1], start)
    assert mix(known[2], mix(known[1], start)) == mix(last, mix(other[1], start))
    data = b"a key of another" + last.to_bytes(8, "little") + b"a key of 24 bytes, known"
    keys = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 24, 48], np.int32)), pa.py_buffer(data)]
    )
    column = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), keys, pa.array([1, 2]))
    reader = Reader(Attributes([Attribute(("m",), Role.ENTRY, INT, "a key of 24 bytes, known")]), literals([[]]))
    assert entries(reader.read(pa.record_batch({"m": column}))) == [[(1, 2)]]


@pytest.mark.parametrize("many", [False, True])
def test_keys_that_are_null(many: bool) -> None:
    reader = Reader(Attributes([Attribute(("m",), Role.ENTRY, INT, "a")]), literals([[]]))
    keys = pa.DictionaryArray.from_arrays(
        pa.array([0, 0, 1], pa.int8()), pa.array(["a", None] + ["b"] * (20 if many else 0))
    )
    column = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), keys, pa.array([1, 2, 3]))
    with pytest.raises(EventError, match=r"column 'm', event 1: a key of the map is NULL"):
        reader.read(pa.record_batch({"m": column}))
    good = pa.record_batch({"m": pa.array([[("a", 5)]], pa.map_(pa.string(), pa.int64()))})
    assert entries(reader.read(good)) == [[(0, 5)]]


def test_values_of_unknown_keys_need_not_fit() -> None:
    micros = Attribute(("m",), Role.ENTRY, Type(Family.TIMESTAMP, unit="us", name="timestamp[us]"), "a")
    reader = Reader(Attributes([micros]), literals([[]]))
    type = pa.map_(pa.string(), pa.timestamp("s"))
    assert entries(reader.read(pa.record_batch({"m": pa.array([[("b", 2**62), ("a", 1)]], type)}))) == [[(0, 10**6)]]
    with pytest.raises(EventError, match=r"column 'm', event 1: .* too large"):
        reader.read(pa.record_batch({"m": pa.array([[("a", 1)], [("b", 1), ("a", 2**62)]], type)}))
