"""Arrow in: every type in every layout against the naive reading."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from reading import BINARY, FLOAT, STRING, VALUES, arrays, check, entries, few, literals, some_words, texts, value

from colmatch.events.reader import Reader
from colmatch.given.schema import INT, Attribute, Attributes, Family, Role, Type, value_type


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
    check(
        batch.slice(start, data.draw(st.integers(0, size))), [value("y", type), value("x", type)], [words, words[::2]]
    )


@few
@given(st.data())
def test_lists(data: st.DataObject) -> None:
    arrow = data.draw(
        st.sampled_from([pa.int32(), pa.string(), pa.string_view(), pa.float64(), pa.bool_(), pa.binary(3)])
    )
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
            column = maker.from_arrays(
                pa.array(offsets[:-1], size), pa.array(np.diff(offsets), size), elements, mask=mask
            )
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
    known: list[Any] = data.draw(
        st.lists(st.integers(-5, 20) if numbers else st.sampled_from(MAP_KEYS), unique=True, max_size=20)
    )
    arrow = data.draw(st.sampled_from([pa.int64(), pa.string(), pa.float32(), pa.date64()]))
    type = value_type(arrow)
    assert type is not None
    lengths = data.draw(st.lists(st.integers(0, 5), max_size=12))
    total = sum(lengths)
    some_keys = st.integers(-7, 22) if numbers else st.sampled_from([*MAP_KEYS, "z", "colour of the"])
    keys = data.draw(st.lists(some_keys, min_size=total, max_size=total))
    key_type = data.draw(
        st.sampled_from([pa.int8(), pa.int64()] if numbers else [pa.string(), pa.large_string(), pa.string_view()])
    )
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
    """The first entry with a key counts, also when its value is NULL; in another row, the key is
    new.
    """
    column = pa.array(
        [[("a", None), ("a", 1)], [("a", 2), ("a", 3)], None, [("b", 4)]], pa.map_(pa.string(), pa.int64())
    )
    reader = check(pa.record_batch({"m": column}), [Attribute(("m",), Role.ENTRY, INT, k) for k in ("b", "a")])
    assert entries(reader.read(pa.record_batch({"m": column}))) == [[(3, 4)], [(1, 2)]]


def test_thousands_of_map_keys() -> None:
    rng = np.random.default_rng(7)
    keys = [f"attribute-{i}" for i in range(3000)]
    rows = [[(keys[k] if k < 3000 else f"other-{k}", int(k)) for k in rng.integers(0, 4000, 5)] for _ in range(40)]
    batch = pa.record_batch(
        {"m": pa.array(rows, pa.map_(pa.string(), pa.int64())), "n": pa.array(rows, pa.map_(pa.string(), pa.int64()))}
    )
    attributes = [Attribute((rng.choice(["m", "n"]),), Role.ENTRY, INT, k) for k in rng.permutation(keys).tolist()]
    check(batch, attributes)


@few
@given(st.data())
def test_structs(data: st.DataObject) -> None:
    """A struct's NULL hides what its fields hold, at any depth, behind any offset."""
    size = data.draw(st.integers(1, 30))

    def nest(fields: dict[str, pa.Array]) -> pa.Array:
        mask = data.draw(st.none() | st.lists(st.booleans(), min_size=size, max_size=size))
        return pa.StructArray.from_arrays(
            list(fields.values()), list(fields), mask=None if mask is None else pa.array(mask)
        )

    tags = data.draw(
        st.lists(st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3), min_size=size, max_size=size)
    )
    pairs = data.draw(
        st.lists(
            st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.none() | texts), max_size=3),
            min_size=size,
            max_size=size,
        )
    )
    inner = nest({"age": data.draw(arrays(pa.int16(), size)), "tags": pa.array(tags, pa.list_(pa.int64()))})
    outer = nest(
        {
            "in": inner,
            "name": data.draw(arrays(pa.string(), size)),
            "m": pa.array(pairs, pa.map_(pa.string(), pa.string())),
        }
    )
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
    values = [w.decode() + tail for w in words[::7] for tail in ("", "s", "\0")] + [
        "https://example.com/",
        "https://f",
        "",
    ]
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
    check(
        pa.record_batch({"x": pa.array([Decimal("1.5"), None, Decimal("-7.0")], pa.decimal128(9, 1))}),
        [value("x", cents)],
    )
    for unit, per in (("s", 1), ("ms", 10**3), ("us", 10**6)):
        stamps = pa.array([0, None, -1, 1_700_000_000 * per], pa.timestamp(unit, "UTC"))
        reader = Reader(
            Attributes([value("x", Type(Family.TIMESTAMP, unit="us", zone="Europe/Paris"))]), literals([[]])
        )
        factor = 10**6 // per
        assert entries(reader.read(pa.record_batch({"x": stamps}))) == [
            [(0, 0), (2, -factor), (3, 1_700_000_000 * 10**6)]
        ]
    millis = pa.array([-86_400_000, 0, 86_400_000], pa.int64()).view(pa.date64())
    reader = Reader(Attributes([value("x", Type(Family.DATE))]), literals([[]]))
    assert reader.read(pa.record_batch({"x": millis})).key.tolist() == [-1, 0, 1]
