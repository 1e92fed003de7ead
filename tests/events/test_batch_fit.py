"""What a batch need not have, what it must not have, and who owns what was read."""

from __future__ import annotations

import gc
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import config
from reading import FLOAT, STRING, check, entries, literals, value

from colmatch.errors import EventError
from colmatch.events.reader import Reader
from colmatch.given.schema import INT, Attribute, Attributes, Family, Role, Type
from colmatch.kernels._jit import kernel as compiled
from colmatch.kernels.arrow import maps, select, values
from colmatch.kernels.arrow import read as kernel
from colmatch.kernels.arrow import words as text
from colmatch.kernels.arrow.memory import load_f32, load_i8, load_i16, load_i64, load_prefix, load_u8, load_u32
from colmatch.kernels.arrow.words import compare_tails
from colmatch.kernels.text.rows import expand


def test_values_that_do_not_fit() -> None:
    micros = value("when", Type(Family.TIMESTAMP, unit="us", name="timestamp[us]"))
    batch = pa.record_batch({"when": pa.array([0, None, 2**62], pa.timestamp("s"))})
    with pytest.raises(EventError, match=r"column 'when', event 2: .* too large"):
        Reader(Attributes([micros]), literals([[]])).read(batch)
    hidden = pa.Array.from_buffers(
        pa.timestamp("s"), 2, [pa.py_buffer(b"\1"), pa.py_buffer(struct.pack("<qq", 5, 2**62))]
    )
    reader = Reader(Attributes([micros]), literals([[]]))
    assert entries(reader.read(pa.record_batch({"when": hidden}))) == [[(0, 5_000_000)]]


def test_dictionary_index_out_of_range() -> None:
    indexes = pa.array([0, 7], pa.int8())
    column = pa.DictionaryArray.from_arrays(indexes, pa.array(["a"]), safe=False)
    with pytest.raises(EventError, match="column 'x', event 1: .* dictionary"):
        Reader(Attributes([value("x", STRING)]), literals([[]])).read(pa.record_batch({"x": column}))


def test_garbage_under_nulls_is_not_read() -> None:
    views = pa.Array.from_buffers(
        pa.string_view(), 2, [pa.py_buffer(b"\2"), pa.py_buffer(b"\x7f" * 16 + struct.pack("<i12s", 2, b"ok"))]
    )
    indexes = pa.Array.from_buffers(pa.int32(), 2, [pa.py_buffer(b"\2"), pa.py_buffer(struct.pack("<ii", 10**9, 0))])
    coded = pa.DictionaryArray.from_arrays(indexes, pa.array(["ok"]), safe=False)
    reader = Reader(Attributes([value("v", STRING), value("d", STRING)]), literals([[b"ok"], [b"ok"]]))
    assert entries(reader.read(pa.record_batch({"v": views, "d": coded}))) == [[(1, 1)], [(1, 1)]]


def test_missing_null_and_empty() -> None:
    attributes = [
        value("gone"),
        value("none"),
        Attribute(("gone",), Role.SIZE, INT),
        Attribute(("m",), Role.ENTRY, INT, "a"),
        Attribute(("none",), Role.ENTRY, INT, "a"),
        value("none", INT, "x"),
        Attribute(("l",), Role.ELEMENT, INT),
        Attribute(("l",), Role.HAS_NULL, INT),
        value("x"),
    ]
    batch = pa.record_batch(
        {"none": pa.nulls(3), "x": [1, 2, None], "l": pa.array([[None], [], None], pa.list_(pa.null()))}
    )
    reader = check(batch, attributes)
    assert entries(reader.read(batch.slice(0, 0))) == [[]] * 9
    assert entries(reader.read(batch.select([]))) == [[]] * 9
    assert reader.read(batch.select([])).rows.tolist() == [3]
    assert reader.columns == ["gone", "none", "m", "l", "x"]
    assert entries(Reader(Attributes([]), literals([])).read(batch)) == []


def test_names() -> None:
    reader = Reader(Attributes([value("Age"), value("u", INT, "X")]), literals([[], []]))
    user = pa.array([{"x": 5}])
    assert entries(reader.read(pa.record_batch({"AGE": [1], "U": user}))) == [[(0, 1)], [(0, 5)]]
    assert entries(reader.read(pa.record_batch({"AGE": [1], "Age": [2], "other": [3]}))) == [[(0, 2)], []]
    with pytest.raises(EventError, match="'Age' could be 'AGE' or 'age'"):
        reader.read(pa.record_batch({"AGE": [1], "age": [2]}))
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["Age", "Age"])
    with pytest.raises(EventError, match="'Age' is 2 times in the batch"):
        reader.read(twice)
    assert entries(reader.read(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["y", "y"]))) == [
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("attribute", "column", "message"),
    [
        (value("age"), pa.array(["x"]), r"column 'age' is string, the schema says int64: cast it"),
        (value("age", STRING), pa.array([1]), r"column 'age' is int64, the schema says string: cast it"),
        (value("age", STRING), pa.array([b"1"]), r"'age' is binary, the schema says string"),
        (value("age"), pa.array([1.5]), r"'age', event 0: 1.5 is double, the schema says int64"),
        (value("age"), pa.array([1, 2**63], pa.uint64()), r"'age', event 1: 9223372036854775808 is uint64"),
        (value("age", FLOAT), pa.array([2**53 + 1]), r"9007199254740993 is int64, the schema says double"),
        (value("age"), pa.array([[1]]), r"'age' is list<.*>, the schema says int64"),
        (value("age"), pa.array([{"a": 1}]), r"'age' is struct<a: int64>"),
        (value("age", INT, "x"), pa.array([1]), r"'age' is int64, the schema says a struct"),
        (Attribute(("age",), Role.SIZE, INT), pa.array([1]), r"'age' is int64, the schema says a list"),
        (Attribute(("age",), Role.ELEMENT, INT), pa.array([["a"]]), r"'age\[\]' is string, the schema says int64"),
        (
            Attribute(("age",), Role.ENTRY, INT, "k"),
            pa.array([1]),
            r"'age' is int64, the schema says a map from string to int64",
        ),
        (
            Attribute(("age",), Role.ENTRY, INT, 1),
            pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            r"\(its keys\)' is string",
        ),
        (
            value("age", Type(Family.DECIMAL, scale=1, name="decimal128(9, 1)")),
            pa.array([Decimal("1.25")]),
            r"1.25 is decimal128\(3, 2\), the schema says decimal128\(9, 1\)",
        ),
        (
            value("age", Type(Family.DECIMAL, scale=1, name="d")),
            pa.array([Decimal("123456789012345678.9")], pa.decimal128(19, 1)),
            r"123456789012345678.9 is decimal128\(19, 1\)",
        ),
        (
            value("age", Type(Family.TIMESTAMP, unit="ms")),
            pa.array([1], pa.timestamp("us")),
            r"1970-01-01 00:00:00.000001 is timestamp\[us\], the schema says timestamp",
        ),
        (
            value("age", Type(Family.TIMESTAMP, unit="us")),
            pa.array([1], pa.timestamp("us", "UTC")),
            r"give both a time zone or none",
        ),
        (value("age"), pa.array([1], pa.duration("s")), r"'age' is duration\[s\]"),
    ],
)
def test_types_that_do_not_fit(attribute: Attribute, column: pa.Array, message: str) -> None:
    with pytest.raises(EventError, match=message):
        Reader(Attributes([attribute]), literals([[]])).read(pa.record_batch({"age": column}))


def test_run_ends_are_decoded() -> None:
    column = pa.RunEndEncodedArray.from_arrays([2, 5, 6], pa.array(["a", None, "b"]))
    reader = Reader(Attributes([value("x", STRING), value("x", STRING, *())]), literals([[b"b"], []]))
    assert entries(reader.read(pa.record_batch({"x": column}).slice(1)))[0] == [(0, 0), (4, 1)]


def test_results_own_their_memory() -> None:
    reader = Reader(Attributes([value("x"), value("s", STRING)]), literals([[], [b"b"]]))
    batch = pa.record_batch({"x": pa.array(range(1000)), "s": ["b"] * 1000})
    result = reader.read(batch)
    before = pa.total_allocated_bytes()
    del batch
    gc.collect()
    assert pa.total_allocated_bytes() < before
    assert entries(result)[0] == [(i, i) for i in range(1000)]
    for array in result:
        assert not array.flags.writeable and array.flags.c_contiguous
    assert [array.dtype for array in result] == [np.int64, np.int64, np.int32, np.int64]


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_one_signature_each() -> None:
    batch = pa.record_batch(
        {"x": ["a"], "n": pa.array([1], pa.int8()), "m": pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64()))}
    )
    pattern = Attribute(("x",), Role.VALUE, STRING, None, ("like", "a%"))
    attributes = [value("n"), value("x", STRING), pattern, Attribute(("m",), Role.ENTRY, FLOAT, "k")]
    assert len(entries(Reader(Attributes(attributes), literals([[], [b"a"], [], []])).read(batch))) == 4
    for one in (kernel.read_maps, kernel.read, kernel.read_texts, expand):
        assert len(one.signatures) == 1, one
    # Each constant that a device function is called with is a type, for which it is compiled again.
    devices = (
        select.select_rows,
        select.select_elements,
        select.decode,
        values.number_keys,
        values.text_keys,
        maps.copy_entries,
        text.label,
    )
    assert {device.py_func.__name__: len(device.signatures) for device in devices if len(device.signatures) > 1} == {}


@pytest.mark.parametrize(
    "column", [pa.array([7]), pa.array(["7"]), pa.array([[("7", 7)]], pa.map_(pa.string(), pa.int64()))]
)
def test_kernels_that_are_not_needed_are_not_run(column: pa.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or everybody would wait for them to be compiled."""
    ran = []

    def watch(name: str) -> None:
        function = getattr(kernel, name)
        monkeypatch.setattr(kernel, name, lambda *given: (ran.append(name), function(*given)))

    for name in ("read_maps", "read", "read_texts"):
        watch(name)
    role, type = (
        (Role.ENTRY, INT)
        if pa.types.is_map(column.type)
        else (Role.VALUE, STRING if pa.types.is_string(column.type) else INT)
    )
    attributes = [Attribute(("x",), role, type, "7" if role is Role.ENTRY else None), value("n"), value("s", STRING)]
    reader = Reader(Attributes(attributes), literals([[b"7"] if type is STRING else [], [], []]))
    for _ in range(2):
        ran.clear()
        reader.read(pa.record_batch({"x": column, "unread": ["a"]}))
    assert ran == (
        ["read_maps", "read"] if role is Role.ENTRY else ["read", "read_texts"] if type is STRING else ["read"]
    )


@pytest.mark.parametrize("fits", [True, False])
def test_exports_are_released(fits: bool) -> None:
    reader = Reader(Attributes([value("x")]), literals([[]]))
    good = pa.record_batch({"x": pa.array([0, 1], pa.int64())})
    reader.read(good)
    gc.collect()
    before = pa.total_allocated_bytes()
    for _ in range(3):
        indexes = pa.array(np.zeros(1000, np.int32)) if fits else pa.array(np.full(1000, 7, np.int32))
        dictionary = pa.array(list(range(5)))
        batch = pa.record_batch({"x": pa.DictionaryArray.from_arrays(indexes, dictionary, safe=False)})
        if fits:
            reader.read(batch)
        else:
            with pytest.raises(EventError, match="dictionary has no such value"):
                reader.read(batch)
        del batch, indexes, dictionary
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_plans_are_kept_by_schema() -> None:
    reader = Reader(Attributes([value("x")]), literals([[]]))
    for i in range(3):
        for name in "xyz":
            batch = pa.record_batch({name: [i], "x2": [1]})
            assert entries(reader.read(batch)) == [[(0, i)] if name == "x" else []]
    assert len(reader._bindings) == 3


def test_loads() -> None:
    @compiled
    def loads(address: int, out: Any) -> None:
        out[0] = load_i8(address, 1)
        out[1] = load_u8(address, 1)
        out[2] = load_i16(address + 1, 0)
        out[3] = load_u32(address + 1, 0)
        out[4] = load_i64(address, 0)
        out[5] = load_f32(address + 8, 0)

    @compiled
    def heads(address: int, out: Any) -> None:
        for n in range(len(out)):
            out[n] = load_prefix(address, n)

    @compiled
    def order(a: int, m: int, b: int, n: int, out: Any) -> None:
        out[0] = compare_tails(a, m, b, n)

    data = np.frombuffer(bytes([1, 0xFF, 2, 0x80, 0x90, 6, 7, 0x88]) + struct.pack("<f", -1.5), np.uint8)
    raw = data.tobytes()
    out = np.zeros(6, np.int64)
    loads(data.ctypes.data, out)
    small, long = struct.unpack_from("<h", raw, 1)[0], struct.unpack_from("<I", raw, 1)[0]
    assert out.tolist() == [
        -1,
        255,
        small,
        long,
        struct.unpack_from("<q", raw)[0],
        struct.unpack("<q", struct.pack("<d", -1.5))[0],
    ]
    prefix = np.zeros(12, np.int64)
    heads(data.ctypes.data, prefix)
    assert prefix.tolist() == [int.from_bytes(raw[: min(n, 8)].ljust(8, b"\0"), "big") - 2**63 for n in range(12)]
    strings = [
        b"12345678",
        b"12345678\0",
        b"12345678\0\0",
        b"12345678a",
        b"12345678abcdefgh",
        b"12345678abcdefghi",
        b"12345678abcdefgi",
    ]
    for x in strings:
        for y in strings:
            a, b = np.frombuffer(x, np.uint8), np.frombuffer(y, np.uint8)
            order(a.ctypes.data, len(x), b.ctypes.data, len(y), out)
            assert np.sign(out[0]) == (x > y) - (x < y)
