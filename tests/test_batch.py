"""Arrow in: every type in every layout against a naive reading of ``to_pylist``."""

from __future__ import annotations

import bisect
import datetime as dt
import gc
import itertools
import math
import re
import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import config

from colmatch.batch import Reader, batches, check_pattern
from colmatch.errors import EventError
from colmatch.kernels import read as kernel
from colmatch.kernels._jit import kernel as compiled
from colmatch.kernels.layout import Batch, Literals
from colmatch.kernels.memory import load_f32, load_i8, load_i16, load_i64, load_prefix, load_u8, load_u32
from colmatch.kernels.text import compare_tails
from colmatch.schema import INT, Attribute, Attributes, Family, Role, Type, value_type

STRING = Type(Family.STRING, name="string")
BINARY = Type(Family.BINARY, name="binary")
FLOAT = Type(Family.FLOAT, name="double")

few = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# ---- the naive reading


def literals(sets: Sequence[Sequence[bytes]]) -> Literals:
    flat = [word for words in sets for word in words]
    assert all(list(words) == sorted(set(words)) for words in sets)
    first = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    offset = np.cumsum([0, *map(len, flat)], dtype=np.int64)
    arrays = (first, offset, np.frombuffer(b"".join(flat), np.uint8))
    for array in arrays:
        array.setflags(write=False)
    return Literals(*arrays)


def float_key(value: float) -> int:
    if math.isnan(value):
        return 0x7FF8000000000000
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def label(value: bytes, words: Sequence[bytes]) -> int:
    r = bisect.bisect_left(words, value)
    return 2 * r + (r < len(words) and words[r] == value)


def key(value: Any, wanted: Type, words: Sequence[bytes]) -> int:
    """Key of one Python value; timestamps are integers of the wanted unit already."""
    match wanted.family:
        case Family.BOOL | Family.INT | Family.TIMESTAMP:
            return int(value)
        case Family.UINT64:
            return int(value) - 2**63
        case Family.FLOAT:
            return float_key(float(value))
        case Family.DECIMAL:
            return int(value.scaleb(wanted.scale))
        case Family.DATE:
            return (value - dt.date(1970, 1, 1)).days
        case _:
            return label(value.encode() if isinstance(value, str) else value, words)


def naive(batch: pa.RecordBatch, attributes: Sequence[Attribute], words: Sequence[Sequence[bytes]]) -> list[list[tuple[int, int]]]:
    rows = batch.to_pylist()
    found = []
    for attribute, known in zip(attributes, words):
        entries: list[tuple[int, int]] = []
        for row, event in enumerate(rows):
            value: Any = event
            for part in attribute.path:
                value = None if value is None else value.get(part)
            if value is None:
                continue
            match attribute.role:
                case Role.VALUE:
                    entries.append((row, key(value, attribute.type, known)))
                case Role.ELEMENT:
                    entries += [(row, key(v, attribute.type, known)) for v in value if v is not None]
                case Role.SIZE:
                    entries.append((row, len(value)))
                case Role.HAS_NULL:
                    entries += [(row, 1)] if any(v is None for v in value) else []
                case Role.ENTRY:
                    first = next((v for k, v in value if k == attribute.key), None)
                    entries += [] if first is None else [(row, key(first, attribute.type, known))]
        found.append(entries)
    return found


def entries(batch: Batch) -> list[list[tuple[int, int]]]:
    col = batch.col.tolist()
    pairs = list(zip(batch.row.tolist(), batch.key.tolist()))
    return [pairs[start:stop] for start, stop in itertools.pairwise(col)]


def check(batch: pa.RecordBatch, attributes: Sequence[Attribute], words: Sequence[Sequence[bytes]] | None = None) -> Reader:
    words = [()] * len(attributes) if words is None else words
    reader = Reader(Attributes(list(attributes)), literals(words))
    for _ in range(2):  # the second time with what the first has left in the scratch
        result = reader.read(batch)
        assert result.rows.tolist() == [batch.num_rows]
        assert entries(result) == naive(batch, attributes, words)
    return reader


def value(name: str, type: Type = INT, *path: str) -> Attribute:
    return Attribute((name, *path), Role.VALUE, type)


# ---- arrays

INTEGERS = {
    **{t: (-(2 ** (t.bit_width - 1)), 2 ** (t.bit_width - 1) - 1) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{t: (0, 2**t.bit_width - 1) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
}
texts = st.text("abé\0😀", max_size=14) | st.sampled_from(["", "common-prefix-1", "common-prefix-2", "common-prefix", "\0", "\0\0", "é"])
days = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Any]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda n: Decimal(n).scaleb(-scale))


VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    **{t: st.integers(low, high) for t, (low, high) in INTEGERS.items()},
    pa.float16(): st.floats(width=16).map(np.float16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal32(9, 2): decimals(9, 2),
    pa.decimal64(18, 4): decimals(18, 4),
    pa.decimal128(18, 0): decimals(18, 0),
    pa.decimal128(5, 3): decimals(5, 3),
    pa.decimal256(18, 6): decimals(18, 6),
    pa.date32(): days,
    pa.date64(): days,
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), texts),
    **{t: texts.map(str.encode) for t in (pa.binary(), pa.large_binary(), pa.binary_view())},
    pa.binary(3): st.binary(min_size=3, max_size=3),
}


@st.composite
def arrays(draw: st.DrawFn, arrow: pa.DataType, size: int, nullable: bool = True) -> pa.Array:
    """An array of ``size`` in any layout: offsets, bitmaps, dictionaries."""
    values = st.none() | VALUES[arrow] if nullable else VALUES[arrow]
    before, after = draw(st.integers(0, 9)), draw(st.integers(0, 2))
    n = before + size + after
    layout = draw(st.sampled_from(["plain", "plain", "dictionary"]))
    if layout == "plain":
        return pa.array(draw(st.lists(values, min_size=n, max_size=n)), arrow).slice(before, size)
    members = draw(st.lists(values, min_size=1, max_size=6))
    cut = draw(st.integers(0, len(members) - 1))
    index = draw(st.sampled_from(sorted(INTEGERS, key=str)))
    numbers = st.integers(0, len(members) - cut - 1)
    indexes = draw(st.lists(st.none() | numbers if nullable else numbers, min_size=n, max_size=n))
    return pa.DictionaryArray.from_arrays(pa.array(indexes, index), pa.array(members, arrow).slice(cut)).slice(before, size)


some_words = st.lists(texts.map(str.encode), max_size=30, unique=True).map(sorted)


@few
@given(st.data())
def test_scalars(data: st.DataObject) -> None:
    arrow = data.draw(st.sampled_from(sorted(VALUES, key=str)))
    size = data.draw(st.integers(0, 80))
    type = value_type(arrow)
    assert type is not None
    words = data.draw(some_words) if type.textual else []
    batch = pa.record_batch({"x": data.draw(arrays(arrow, size)), "y": data.draw(arrays(arrow, size))})
    start = data.draw(st.integers(0, size))
    check(batch.slice(start, data.draw(st.integers(0, size))), [value("y", type), value("x", type)], [words, words[::2]])


@few
@given(st.data())
def test_lists(data: st.DataObject) -> None:
    arrow = data.draw(st.sampled_from([pa.int32(), pa.string(), pa.string_view(), pa.float64(), pa.bool_(), pa.binary(3)]))
    type = value_type(arrow)
    assert type is not None
    lengths = data.draw(st.lists(st.none() | st.integers(0, 4), max_size=20))
    kind = data.draw(st.sampled_from(["list", "large", "view", "large view", "fixed"]))
    if kind == "fixed":
        width = data.draw(st.integers(0, 3))
        elements = data.draw(arrays(arrow, width * len(lengths)))
        mask = pa.array([n is None for n in lengths], pa.bool_())
        empty = pa.array([None if n is None else [] for n in lengths], pa.list_(arrow, 0))
        column = pa.FixedSizeListArray.from_arrays(elements, width, mask=mask) if width else empty
    else:
        total = sum(n or 0 for n in lengths)
        elements = data.draw(arrays(arrow, total))
        offsets = np.cumsum([0, *(n or 0 for n in lengths)])
        size = pa.int64() if kind.startswith("large") else pa.int32()
        mask = pa.array([n is None for n in lengths], pa.bool_())
        if "view" in kind:
            maker = pa.LargeListViewArray if kind.startswith("large") else pa.ListViewArray
            column = maker.from_arrays(pa.array(offsets[:-1], size), pa.array(np.diff(offsets), size), elements, mask=mask)
        else:
            maker = pa.LargeListArray if kind.startswith("large") else pa.ListArray
            column = maker.from_arrays(pa.array(offsets, size), elements, mask=mask)
    words = data.draw(some_words) if type.textual else []
    start = data.draw(st.integers(0, len(lengths)))
    attributes = [Attribute(("t",), role, type) for role in (Role.SIZE, Role.ELEMENT, Role.HAS_NULL)]
    check(pa.record_batch({"t": column}).slice(start), attributes, [[], words, []])


def test_list_views_in_any_order() -> None:
    column = pa.ListViewArray.from_arrays([3, 0, 1], [2, 0, 3], pa.array([1, 2, None, 4, 5]))
    check(pa.record_batch({"t": column}), [Attribute(("t",), Role.ELEMENT, INT), Attribute(("t",), Role.SIZE, INT)])


MAP_KEYS = ["", "a", "b", "colour", "colour of the door", "é"]


@few
@given(st.data())
def test_maps(data: st.DataObject) -> None:
    numbers = data.draw(st.booleans())
    known: list[Any] = data.draw(st.lists(st.integers(-5, 20) if numbers else st.sampled_from(MAP_KEYS), unique=True, max_size=20))
    arrow = data.draw(st.sampled_from([pa.int64(), pa.string(), pa.float32(), pa.date64()]))
    type = value_type(arrow)
    assert type is not None
    lengths = data.draw(st.lists(st.integers(0, 5), max_size=12))
    total = sum(lengths)
    some_keys = st.integers(-7, 22) if numbers else st.sampled_from([*MAP_KEYS, "z", "colour of the"])
    keys = data.draw(st.lists(some_keys, min_size=total, max_size=total))
    key_type = data.draw(st.sampled_from([pa.int8(), pa.int64()] if numbers else [pa.string(), pa.large_string(), pa.string_view()]))
    key_array = pa.array(keys, key_type)
    if data.draw(st.booleans()) and key_type != pa.string_view():
        key_array = key_array.dictionary_encode()
    offsets: list[int | None] = np.cumsum([0, *lengths]).tolist()
    for i, length in enumerate(lengths):
        if not length and data.draw(st.booleans()):
            offsets[i] = None
    column = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), key_array, data.draw(arrays(arrow, total)))
    attributes = [Attribute(("m",), Role.ENTRY, type, k) for k in known]
    attributes.insert(len(known) // 2, Attribute(("m",), Role.SIZE, INT))
    words = [data.draw(some_words) if type.textual and a.role is Role.ENTRY else [] for a in attributes]
    check(pa.record_batch({"m": column}).slice(data.draw(st.integers(0, len(lengths)))), attributes, words)


def test_equal_keys_of_a_map() -> None:
    """The first entry with a key counts, also when its value is NULL; in another row, the key is new."""
    column = pa.array([[("a", None), ("a", 1)], [("a", 2), ("a", 3)], None, [("b", 4)]], pa.map_(pa.string(), pa.int64()))
    reader = check(pa.record_batch({"m": column}), [Attribute(("m",), Role.ENTRY, INT, k) for k in ("b", "a")])
    assert entries(reader.read(pa.record_batch({"m": column}))) == [[(3, 4)], [(1, 2)]]


def test_thousands_of_map_keys() -> None:
    rng = np.random.default_rng(7)
    keys = [f"attribute-{i}" for i in range(3000)]
    rows = [[(keys[k] if k < 3000 else f"other-{k}", int(k)) for k in rng.integers(0, 4000, 5)] for _ in range(40)]
    batch = pa.record_batch({"m": pa.array(rows, pa.map_(pa.string(), pa.int64())), "n": pa.array(rows, pa.map_(pa.string(), pa.int64()))})
    attributes = [Attribute((rng.choice(["m", "n"]),), Role.ENTRY, INT, k) for k in rng.permutation(keys).tolist()]
    check(batch, attributes)


@few
@given(st.data())
def test_structs(data: st.DataObject) -> None:
    """A struct's NULL hides what its fields hold, at any depth, behind any offset."""
    size = data.draw(st.integers(1, 30))

    def nest(fields: dict[str, pa.Array]) -> pa.Array:
        mask = data.draw(st.none() | st.lists(st.booleans(), min_size=size, max_size=size))
        return pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=None if mask is None else pa.array(mask))

    tags = data.draw(st.lists(st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3), min_size=size, max_size=size))
    pairs = data.draw(
        st.lists(st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.none() | texts), max_size=3), min_size=size, max_size=size)
    )
    inner = nest({"age": data.draw(arrays(pa.int16(), size)), "tags": pa.array(tags, pa.list_(pa.int64()))})
    outer = nest({"in": inner, "name": data.draw(arrays(pa.string(), size)), "m": pa.array(pairs, pa.map_(pa.string(), pa.string()))})
    words = data.draw(some_words)
    attributes = {
        value("u", INT, "in", "age"): [],
        Attribute(("u", "in", "tags"), Role.ELEMENT, INT): [],
        value("u", STRING, "name"): words,
        Attribute(("u", "in", "tags"), Role.SIZE, INT): [],
        Attribute(("u", "in", "tags"), Role.HAS_NULL, Type(Family.BOOL)): [],
        Attribute(("u", "m"), Role.ENTRY, STRING, "b"): words,
        Attribute(("u", "m"), Role.SIZE, INT): [],
        value("u", INT, "in", "missing"): [],
    }
    batch = pa.record_batch({"u": outer}).slice(data.draw(st.integers(0, size)))
    check(batch, list(attributes), list(attributes.values()))


@few
@given(st.lists(texts.map(str.encode) | st.binary(max_size=20), unique=True, max_size=40).map(sorted), st.data())
def test_labels(words: list[bytes], data: st.DataObject) -> None:
    near = [*words, *(w + b"\0" for w in words), *(w[:-1] for w in words), b"", b"\xff" * 9]
    values = data.draw(st.lists(st.sampled_from(near) | st.binary(max_size=20), max_size=60))
    for arrow in (pa.binary(), pa.binary_view()):
        check(pa.record_batch({"x": pa.array(values, arrow)}), [value("x", BINARY)], [words])


def test_labels_with_long_common_prefixes() -> None:
    words = sorted(f"https://example.com/shop/{i}/item".encode() for i in range(300))
    values = [w.decode() + tail for w in words[::7] for tail in ("", "s", "\0")] + ["https://example.com/", "https://f", ""]
    check(pa.record_batch({"x": values * 2}), [value("x", STRING)], [words])


def test_dictionary_larger_than_the_batch() -> None:
    column = pa.array([f"v{i}" for i in range(500)]).dictionary_encode().slice(490, 5)
    check(pa.record_batch({"x": column}), [value("x", STRING)], [[b"v491", b"v493"]])


def test_floats() -> None:
    other_nan = np.array([0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    values = np.array([*other_nan, np.nan, -0.0, 0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.5, -1.5])
    reader = check(pa.record_batch({"x": values}), [value("x", FLOAT)])
    keys = reader.read(pa.record_batch({"x": values})).key
    assert len(set(keys[:3].tolist())) == 1 and keys[0] == max(keys)
    assert keys[3] == keys[4] == 0
    assert np.array_equal(np.argsort(keys[3:], kind="stable"), np.argsort(values[3:], kind="stable"))
    every_half = np.arange(2**16, dtype=np.uint16).view(np.float16)
    check(pa.record_batch({"x": every_half}), [value("x", FLOAT)])
    check(pa.record_batch({"x": pa.array([1, None, -7], pa.int32())}), [value("x", FLOAT)])


def test_scales_and_units() -> None:
    cents = Type(Family.DECIMAL, scale=2, name="decimal128(12, 2)")
    check(pa.record_batch({"x": pa.array([Decimal("1.5"), None, Decimal("-7.0")], pa.decimal128(9, 1))}), [value("x", cents)])
    for unit, per in (("s", 1), ("ms", 10**3), ("us", 10**6)):
        stamps = pa.array([0, None, -1, 1_700_000_000 * per], pa.timestamp(unit, "UTC"))
        reader = Reader(Attributes([value("x", Type(Family.TIMESTAMP, unit="us", zone="Europe/Paris"))]), literals([[]]))
        factor = 10**6 // per
        assert entries(reader.read(pa.record_batch({"x": stamps}))) == [[(0, 0), (2, -factor), (3, 1_700_000_000 * 10**6)]]
    millis = pa.array([-1, 0, 86_399_999, 86_400_000], pa.int64()).view(pa.date64())
    reader = Reader(Attributes([value("x", Type(Family.DATE))]), literals([[]]))
    assert reader.read(pa.record_batch({"x": millis})).key.tolist() == [-1, 0, 0, 1]


def test_values_that_do_not_fit() -> None:
    micros = value("when", Type(Family.TIMESTAMP, unit="us", name="timestamp[us]"))
    batch = pa.record_batch({"when": pa.array([0, None, 2**62], pa.timestamp("s"))})
    with pytest.raises(EventError, match=r"column 'when', row 2 of the batch: .* too large"):
        Reader(Attributes([micros]), literals([[]])).read(batch)
    hidden = pa.Array.from_buffers(pa.timestamp("s"), 2, [pa.py_buffer(b"\1"), pa.py_buffer(struct.pack("<qq", 5, 2**62))])
    reader = Reader(Attributes([micros]), literals([[]]))
    assert entries(reader.read(pa.record_batch({"when": hidden}))) == [[(0, 5_000_000)]]


def test_dictionary_index_out_of_range() -> None:
    indexes = pa.array([0, 7], pa.int8())
    column = pa.DictionaryArray.from_arrays(indexes, pa.array(["a"]), safe=False)
    with pytest.raises(EventError, match="column 'x', row 1 .* dictionary"):
        Reader(Attributes([value("x", STRING)]), literals([[]])).read(pa.record_batch({"x": column}))


def test_garbage_under_nulls_is_not_read() -> None:
    views = pa.Array.from_buffers(pa.string_view(), 2, [pa.py_buffer(b"\2"), pa.py_buffer(b"\x7f" * 16 + struct.pack("<i12s", 2, b"ok"))])
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
    batch = pa.record_batch({"none": pa.nulls(3), "x": [1, 2, None], "l": pa.array([[None], [], None], pa.list_(pa.null()))})
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
    assert entries(reader.read(pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["y", "y"]))) == [[], []]


@pytest.mark.parametrize(
    ("attribute", "column", "message"),
    [
        (value("age"), pa.array(["x"]), r"column 'age' is string, the schema says int64: cast it"),
        (value("age", STRING), pa.array([1]), r"column 'age' is int64, the schema says string: cast it"),
        (value("age", STRING), pa.array([b"1"]), r"'age' is binary, the schema says string"),
        (value("age"), pa.array([1.5]), r"'age' is double, the schema says int64"),
        (value("age"), pa.array([1], pa.uint64()), r"'age' is uint64"),
        (value("age", FLOAT), pa.array([1]), r"'age' is int64, the schema says double"),
        (value("age"), pa.array([[1]]), r"'age' is list<.*>, the schema says int64"),
        (value("age"), pa.array([{"a": 1}]), r"'age' is struct<a: int64>"),
        (value("age", INT, "x"), pa.array([1]), r"'age' is int64, the schema says a struct"),
        (Attribute(("age",), Role.SIZE, INT), pa.array([1]), r"'age' is int64, the schema says a list"),
        (Attribute(("age",), Role.ELEMENT, INT), pa.array([["a"]]), r"'age\[\]' is string, the schema says int64"),
        (Attribute(("age",), Role.ENTRY, INT, "k"), pa.array([1]), r"'age' is int64, the schema says a map from string to int64"),
        (Attribute(("age",), Role.ENTRY, INT, 1), pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), r"\(its keys\)' is string"),
        (value("age", Type(Family.DECIMAL, scale=1, name="decimal128(9, 1)")), pa.array([Decimal("1.25")]), r"2 digits after the point"),
        (value("age", Type(Family.DECIMAL, scale=1, name="d")), pa.array([Decimal("1.2")], pa.decimal128(19, 1)), r"decimal128\(19, 1\)"),
        (value("age", Type(Family.TIMESTAMP, unit="ms")), pa.array([1], pa.timestamp("us")), r"cast it, or build with unit 'us'"),
        (value("age", Type(Family.TIMESTAMP, unit="us")), pa.array([1], pa.timestamp("us", "UTC")), r"give both a time zone or none"),
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


# ---- patterns


def like(value: str, pattern: str) -> bool:
    regex = re.sub(r"\\\\(.)|(%)|(_)", lambda m: m[1] if m[1] else ".*" if m[2] else ".", re.escape(pattern))
    return re.fullmatch(regex, value, re.S) is not None


NAIVE = {
    "like": like,
    "ilike": lambda v, p: like(v.lower(), p.lower()),
    "rlike": lambda v, p: re.search(p, v) is not None,
    "endswith": str.endswith,
    "contains": lambda v, p: p in v,
}
pattern_values = st.lists(st.none() | st.text("aAb%_.\n\\é", max_size=6), max_size=30)


def legal(pattern: str) -> bool:
    return re.fullmatch(r"([^\\]|\\[%_\\])*", pattern) is not None


@few
@given(
    pattern_values,
    st.lists(st.tuples(st.sampled_from(["like", "ilike", "endswith", "contains"]), st.text("aAb%_.\n\\é", max_size=5)), max_size=6),
)
def test_patterns(values: list[str | None], patterns: list[tuple[str, str]]) -> None:
    chosen = sorted({(op, p) for op, p in patterns if op not in ("like", "ilike") or legal(p)} | {("rlike", "^a|bb"), ("rlike", "é.")})
    attributes = [value("x", STRING), *(Attribute(("x",), Role.VALUE, STRING, None, pattern) for pattern in chosen)]
    reader = Reader(Attributes(attributes), literals([[b"a"], *([[]] * len(chosen))]))
    for column in (pa.array(values, pa.string()), pa.array(values, pa.string()).dictionary_encode(), pa.array(values, pa.large_string())):
        found = entries(reader.read(pa.record_batch({"x": column})))
        for (op, operand), rows in zip(chosen, found[1:]):
            assert rows == [(i, 1) for i, v in enumerate(values) if v is not None and NAIVE[op](v, operand)], (op, operand)
        assert found[0] == [(i, label(v.encode(), [b"a"])) for i, v in enumerate(values) if v is not None]


def test_patterns_in_nested_columns() -> None:
    under = ("like", "%b%")
    attributes = [
        Attribute(("m",), Role.ENTRY, STRING, "k", under),
        Attribute(("m",), Role.ENTRY, STRING, "j"),
        Attribute(("u", "n"), Role.VALUE, STRING, None, under),
        Attribute(("t",), Role.ELEMENT, STRING, None, ("endswith", "b")),
        Attribute(("gone",), Role.VALUE, STRING, None, under),
        Attribute(("y",), Role.VALUE, BINARY, None, ("contains", "b")),
    ]
    batch = pa.record_batch(
        {
            "m": pa.array([[("k", "abc"), ("j", "b")], [("k", "x")], None, [("j", "b"), ("k", "b")]], pa.map_(pa.string(), pa.string())),
            "u": pa.StructArray.from_arrays([pa.array(["b", "b", "c", "b"])], ["n"], mask=pa.array([True, False, False, False])),
            "t": [["b", "cb"], [], None, ["bc", "b"]],
            "y": [b"b", None, b"\xffb", b"c"],
        }
    )
    reader = Reader(Attributes(attributes), literals([[], [b"b"], [], [], [], []]))
    for _ in range(2):
        found = entries(reader.read(batch))
        assert found == [[(0, 1), (3, 1)], [(0, 1), (3, 1)], [(1, 1), (3, 1)], [(0, 1), (0, 1), (3, 1)], [], [(0, 1), (2, 1)]]


def test_many_distinct_strings() -> None:
    """More than the scratch begins with; strings that differ in the middle only."""
    values = [f"start-of-it {i % 997:05d} end-of-it" for i in range(3000)]
    attributes = [Attribute(("x",), Role.VALUE, STRING, None, ("like", f"% __{i:03d} %")) for i in range(20)]
    reader = Reader(Attributes(attributes), literals([[]] * 20))
    found = entries(reader.read(pa.record_batch({"x": values})))
    assert found == [[(i, 1) for i, v in enumerate(values) if f" 00{n:03d} " in v] for n in range(20)]


def test_check_pattern() -> None:
    assert check_pattern("rlike", "a(b|c)") is None
    assert "missing )" in (check_pattern("rlike", "a(") or "")
    assert check_pattern("like", r"50\% \_ \\ %") is None
    assert "escape" in (check_pattern("like", r"a\b") or "")
    assert "escape" in (check_pattern("ilike", "a\\") or "")
    assert check_pattern("contains", "(") is None
    assert check_pattern("rlike", "(?s)é{2}") is None
    assert "similar" in (check_pattern("similar", "x") or "")


# ---- memory


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
    test_patterns_in_nested_columns()
    test_thousands_of_map_keys()
    assert len(kernel.read.signatures) == 1
    assert len(kernel.expand.signatures) == 1


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
    assert out.tolist() == [-1, 255, small, long, struct.unpack_from("<q", raw)[0], struct.unpack("<q", struct.pack("<d", -1.5))[0]]
    prefix = np.zeros(12, np.int64)
    heads(data.ctypes.data, prefix)
    assert prefix.tolist() == [int.from_bytes(raw[: min(n, 8)].ljust(8, b"\0"), "big") - 2**63 for n in range(12)]
    strings = [b"12345678", b"12345678\0", b"12345678\0\0", b"12345678a", b"12345678abcdefgh", b"12345678abcdefghi", b"12345678abcdefgi"]
    for x in strings:
        for y in strings:
            a, b = np.frombuffer(x, np.uint8), np.frombuffer(y, np.uint8)
            order(a.ctypes.data, len(x), b.ctypes.data, len(y), out)
            assert np.sign(out[0]) == (x > y) - (x < y)


# ---- sources


def sizes(events: object, rows: int, columns: list[str] | None = None) -> list[int]:
    return [batch.num_rows for batch in batches(events, rows, columns)]


def test_cutting_and_gathering() -> None:
    table = pa.table({"x": pa.chunked_array([[1, 2], [], [3], [4, 5, 6, 7, 8, 9, 10]])})
    assert sizes(table, 4) == [4, 4, 2]
    assert sizes(table, 100) == [10]
    assert sizes(table, 1) == [1] * 10
    assert [v for batch in batches(table, 3) for v in batch["x"].to_pylist()] == list(range(1, 11))
    assert sizes(table.slice(0, 0), 4) == []
    assert sizes(table.select([]), 4) == [4, 4, 2]
    batch = pa.record_batch({"x": list(range(10))})
    cut = list(batches(batch, 4))
    assert [b["x"].buffers()[1].address for b in cut] == [batch["x"].buffers()[1].address] * 3


def test_dictionaries_are_gathered() -> None:
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    pieces = list(batches(pa.table({"x": pa.chunked_array(chunks)}), 10))
    assert [v for piece in pieces for v in piece["x"].to_pylist()] == ["a", "b", "c", "a"]


def test_columns_of_a_source() -> None:
    table = pa.table({"x": [1], "y": [2], "Z": [3]})
    assert [b.schema.names for b in batches(table, 5, ["z", "x", "missing"])] == [["x", "Z"]]
    assert [b.num_rows for b in batches(table, 5, [])] == [1]


def test_sources_are_lazy_and_their_errors_come_through() -> None:
    taken = []
    schema = pa.schema({"x": pa.int64()})

    def source() -> Iterator[pa.RecordBatch]:
        for i in range(5):
            taken.append(i)
            if i == 3:
                raise KeyError("the source's own")
            yield pa.record_batch({"x": [i, i]}, schema=schema)

    events = batches(pa.RecordBatchReader.from_batches(schema, source()), 2)
    assert taken == []
    assert next(events).to_pydict() == {"x": [0, 0]}
    assert len(taken) <= 2
    with pytest.raises(KeyError, match="the source's own"):
        list(events)


class Offers:
    """Offers one of the two protocols and nothing else."""

    def __init__(self, kind: str, data: Any) -> None:
        setattr(self, f"__arrow_c_{kind}__", getattr(data, f"__arrow_c_{kind}__"))


def test_protocols() -> None:
    table = pa.table({"x": [1, 2], "y": ["a", "b"]})
    rows = table.to_struct_array()
    nulls = pa.array([{"x": 1}, None, {"x": 3}])
    for events in (table, table.to_batches()[0], Offers("stream", table), Offers("array", table.to_batches()[0]), table.to_reader()):
        assert pa.Table.from_batches(batches(events, 10)).equals(table)
    for events in (rows, rows.chunk(0), Offers("stream", rows), Offers("array", rows.chunk(0))):
        assert pa.Table.from_batches(batches(events, 10)).to_pylist() == table.to_pylist()
    for events in (nulls, pa.chunked_array([nulls]), Offers("array", nulls)):
        assert [b.to_pydict() for b in batches(events, 10)] == [{"x": [1, None, 3]}]


@pytest.mark.parametrize("events", [{"x": [1]}, [1, 2], "events.parquet", None, 7])
def test_what_is_not_events(events: object) -> None:
    with pytest.raises(EventError, match="__arrow_c_stream__"):
        batches(events, 10)


@pytest.mark.parametrize("events", [pa.array([1, 2]), pa.chunked_array([[1]])])
def test_columns_without_names_are_not_events(events: object) -> None:
    with pytest.raises(EventError, match="put it into a table"):
        batches(events, 10)


def test_other_libraries() -> None:
    duckdb = pytest.importorskip("duckdb")
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    columns = {"n": [1, None, 3], "s": ["a", "b", None], "c": ["x", "y", "x"]}
    frame = pl.DataFrame(columns).with_columns(pl.col("c").cast(pl.Categorical), t=pl.Series([[1, 2], None, []]))
    attributes = [value("n"), value("s", STRING), value("c", STRING), Attribute(("t",), Role.ELEMENT, INT)]
    known = [[], [b"b"], [b"x"], []]
    expected = [[(0, 1), (2, 3)], [(0, 0), (1, 1)], [(0, 1), (1, 2), (2, 1)], [(0, 1), (0, 2)]]
    reader = Reader(Attributes(attributes), literals(known))
    (batch,) = batches(frame, 10)
    assert entries(reader.read(batch)) == expected
    (batch,) = batches(frame.to_struct("rows"), 10)
    assert entries(reader.read(batch)) == expected
    relation = duckdb.sql("SELECT * FROM (VALUES (1, 'a', 'x', [1, 2]), (NULL, 'b', 'y', NULL), (3, NULL, 'x', [])) AS v(n, s, c, t)")
    (batch,) = batches(relation, 10)
    assert entries(reader.read(batch)) == expected
    pandas = pd.DataFrame({"n": pd.array([1, None, 3], "Int64"), "s": columns["s"], "c": pd.Categorical(columns["c"])})
    (batch,) = batches(pandas, 10)
    assert entries(reader.read(batch))[:3] == expected[:3]


def test_batches_feed_the_reader() -> None:
    table = pa.table({"x": pa.chunked_array([range(i, i + 7) for i in range(0, 70, 7)]), "s": pa.array([str(i) for i in range(70)])})
    reader = Reader(Attributes([value("x"), value("s", STRING)]), literals([[], [b"5"]]))
    seen = [k for batch in batches(table, 16, reader.columns) for _, k in entries(reader.read(batch))[0]]
    assert seen == list(range(70))
    assert pc.sum(table["x"]).as_py() == sum(seen)
