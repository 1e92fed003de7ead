"""Arguments that no caller should pass, and Arrow data as odd as it comes, drawn from a seed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import colmatch as cm

NAMES = [
    "a",
    "s",
    "f",
    "flag",
    "day",
    "ts",
    "local",
    "tags",
    "attrs",
    "by_num",
    "user.age",
    "user",
    "dec",
    "bin",
    "u64",
    "deep",
    "coded",
    "wide",
    "clock",
]
SCHEMA = pa.schema(
    [
        ("a", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("flag", pa.bool_()), ("day", pa.date32()), ("u64", pa.uint64()),
        ("ts", pa.timestamp("us", "UTC")), ("local", pa.timestamp("ns")), ("tags", pa.list_(pa.string())), ("dec", pa.decimal128(9, 2)),
        ("attrs", pa.map_(pa.string(), pa.int64())), ("by_num", pa.map_(pa.int32(), pa.string())), ("bin", pa.binary()),
        ("user", pa.struct([("age", pa.int64())])), ("deep", pa.struct([("x", pa.list_(pa.struct([("y", pa.int8())])))])),
        ("coded", pa.dictionary(pa.int32(), pa.string())), ("wide", pa.decimal128(38, 4)), ("clock", pa.time64("us")),
    ]
)  # fmt: skip

ODD: list[Callable[[], Any]] = [
    lambda: None, lambda: True, lambda: 3, lambda: -1, lambda: 0, lambda: 2**70, lambda: 1.5, lambda: float("nan"), lambda: "", lambda: "x",
    lambda: "\ud800", lambda: "a\0b", lambda: b"x", lambda: b"\xff", list, dict, tuple, set, object, lambda: int, lambda: len,
    lambda: range(3),
    lambda: iter([]), lambda: [1], lambda: ["x"], lambda: [None], lambda: {"x": 1}, lambda: {1: 2}, lambda: {None: None}, lambda: [(1, 2)],
    lambda: [(1, "TRUE")], lambda: {1: "TRUE"}, lambda: {"x": "TRUE"}, lambda: {"\ud800": "TRUE"}, lambda: {1: "\ud800 = 1"},
    lambda: {2**70: "TRUE"}, lambda: {True: "TRUE"}, lambda: np.array([1]), lambda: np.array([[1]]), lambda: np.array(["x"]),
    lambda: np.int64(1), lambda: np.float32(1), lambda: np.str_("x"), lambda: np.datetime64("2013-01-31"), lambda: Decimal("1.5"),
    lambda: Decimal("NaN"), lambda: Fraction(1, 3), lambda: 1j, lambda: dt.date(2013, 1, 31), lambda: dt.datetime(1, 1, 1),
    lambda: dt.datetime(9999, 12, 31, tzinfo=dt.timezone(dt.timedelta(hours=-12))), lambda: dt.timedelta(1), lambda: dt.time(1),
    lambda: pa.array([1]), lambda: pa.array([None]), lambda: pa.array(["x"]), lambda: pa.array([{"a": 1}]),
    lambda: pa.chunked_array([[1], [2]]),
    lambda: pa.scalar(1), lambda: pa.scalar(None), lambda: pa.scalar("x"), lambda: SCHEMA, lambda: pa.int64(), lambda: pa.table({}),
    lambda: pa.table({"id": [1], "expression": ["TRUE"]}), lambda: pa.table([[1], [2]], names=["a", "a"]),
    lambda: pa.record_batch({"a": [1]}),
    lambda: cm.col("a"), lambda: cm.col("a") == 1, lambda: cm.Schema(SCHEMA), cm.Options, lambda: Path("nowhere"), lambda: Half(),
    lambda: Odd("__arrow_c_stream__"), lambda: Odd("__arrow_c_array__"), lambda: Odd("__arrow_c_schema__"), lambda: Odd("__index__"),
    lambda: memoryview(b"x"), lambda: (i for i in [(1, "TRUE")]), lambda: "scan", lambda: "raise", lambda: "collect", lambda: "UTC",
    lambda: pa.RecordBatchReader.from_batches(SCHEMA, []), lambda: pa.field("a", pa.int64()), lambda: "a" * 100_000, lambda: [[]],
]  # fmt: skip


class Odd:
    """Has an attribute that promises something, and keeps no promise."""

    def __init__(self, name: str) -> None:
        setattr(self, name, lambda *args, **kwargs: 5)


class Half(dict):  # type: ignore[type-arg]
    """A mapping whose keys are not those of its values."""

    def __iter__(self) -> Any:
        return iter(["a"])

    def __len__(self) -> int:
        return 3


def odd(rng: Random) -> Any:
    return rng.choice(ODD)()


VALUES: dict[Any, list[Any]] = {
    pa.int64(): [0, 1, -1, 2**62, -(2**63), 2**63 - 1],
    pa.int8(): [0, 1, -1],
    pa.uint64(): [0, 1, 2**64 - 1],
    pa.float64(): [0.0, -0.0, 1.5, float("nan"), float("inf"), 1e300],
    pa.float16(): [np.float16(1.5)],
    pa.bool_(): [True, False],
    pa.string(): [
        "",
        "a",
        "x",
        "it's",
        "\0",
        "é",
        "%",
        "(",
        "[a-",
        "\\",
        "attrs['k']",
        "TRUE",
        "a = 1",
        "between",
        "=",
    ],
    pa.large_string(): ["a", "="],
    pa.string_view(): ["a", "=", "a string that is longer than twelve"],
    pa.binary(): [b"", b"a", b"\xff"],
    pa.binary(2): [b"ab"],
    pa.binary_view(): [b"a"],
    pa.decimal128(9, 2): [Decimal("1.50")],
    pa.decimal128(38, 4): [Decimal("1.50"), Decimal(10) ** 30, Decimal("-0.0001")],
    pa.decimal256(60, 2): [Decimal("1.50"), Decimal(10) ** 50],
    pa.null(): [None],
    pa.duration("us"): [dt.timedelta(1)],
    pa.time32("s"): [dt.time(1)],
    pa.time64("ns"): [dt.time(1), dt.time(23, 59, 59, 999_999)],
    pa.month_day_nano_interval(): [pa.MonthDayNano([1, 2, 3])],
}
INTEGERS: dict[Any, list[int]] = {  # types whose values may be beyond Python's
    pa.date32(): [0, 15_000, -(2**31), 2**31 - 1],
    pa.date64(): [0, 86_400_000, 1, -1, 2**63 - 1, -(2**63), 86_400_000 * 10**7],
    pa.timestamp("s"): [0, 2**63 - 1, -(2**63), 10**12],
    pa.timestamp("us", "UTC"): [0, 2**63 - 1, -(2**63)],
    pa.timestamp("us", "Nowhere/City"): [0, 1],
    pa.timestamp("ns", "Europe/Berlin"): [0, 1, 2**63 - 1],
    pa.timestamp("ms"): [0, 2**63 - 1],
}


def array(rng: Random, rows: int, type: pa.DataType | None = None, depth: int = 2) -> Any:
    """An array of ``rows`` values, of any type where none is given, in one of Arrow's many
    layouts.
    """
    if rng.random() < 0.03:
        rows = rng.choice([0, rows + 1])
    nested = type is None and depth and rng.random() < 0.25
    if nested:
        return _nested(rng, rows, depth)
    if type is None:
        type = rng.choice([*VALUES, *INTEGERS])
    null = rng.choice([0, 0, 0.3])
    mask = [rng.random() < null for _ in range(rows)]
    if type in INTEGERS:
        numbers = [None if none else rng.choice(INTEGERS[type]) for none in mask]
        made = pa.array(numbers, pa.int32() if type == pa.date32() else pa.int64()).view(type)
    else:
        made = pa.array([None if none else rng.choice(VALUES[type]) for none in mask], type)
    if type in (pa.string(), pa.large_string()) and rng.random() < 0.1:
        made = _invalid(made)
    return _layout(rng, made)


def _invalid(made: pa.Array) -> pa.Array:
    """Bytes that are no UTF-8, declared to be."""
    size = pa.int32() if made.type == pa.string() else pa.int64()
    offsets = pa.array(range(0, 2 * len(made) + 1, 2), size).buffers()[1]
    return pa.Array.from_buffers(made.type, len(made), [None, offsets, pa.py_buffer(b"\xff\xc0" * len(made))])


def _layout(rng: Random, made: pa.Array) -> Any:
    way = rng.randrange(12)
    rows = len(made)
    try:
        if way == 0:
            return made.dictionary_encode()
        if way == 1:  # NULL in the dictionary
            indices = pa.array([rng.randrange(rows + 1) for _ in range(rows)], pa.int32())
            return pa.DictionaryArray.from_arrays(indices, pa.concat_arrays([made, pa.nulls(1, made.type)]))
        if way == 2:
            return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, rows + 1), pa.int32()), made)
        if way == 3:
            coded = pa.RunEndEncodedArray.from_arrays(
                pa.array(range(1, rows + 1), pa.int32()), made.dictionary_encode()
            )
            return coded
        if way == 4:
            return pa.chunked_array([made.slice(0, rows // 2), made.slice(rows // 2)], made.type)
        if way == 5:
            return pa.concat_arrays([made, made]).slice(rows // 2, rows)
        if way == 6:
            return pa.chunked_array([], made.type) if not rows else pa.chunked_array([made])
    except (pa.ArrowException, ValueError):
        pass
    return made


def _nested(rng: Random, rows: int, depth: int) -> Any:
    inner = array(rng, 2 * rows, depth=depth - 1)
    while isinstance(inner, pa.ChunkedArray) or len(inner) != 2 * rows:
        inner = array(rng, 2 * rows, depth=depth - 1)
    offsets = pa.array(range(0, 2 * rows + 1, 2), pa.int32())
    kind = rng.randrange(5)
    if kind == 0:
        return pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), inner)
    if kind == 1:
        return pa.FixedSizeListArray.from_arrays(inner, 2)
    if kind == 2:
        return pa.StructArray.from_arrays(
            [inner.slice(0, rows), inner.slice(rows)], ["age", rng.choice(["x", "age", ""])]
        )
    if kind == 3:
        keys = pa.array([rng.choice(["k", "l"]) for _ in range(2 * rows)])
        return pa.MapArray.from_arrays(offsets, keys, inner)
    return pa.ListArray.from_arrays(offsets, inner)


def lists(rng: Random, rows: int) -> Any:
    """Lists of operands, most of them well-formed."""
    size = rng.choice([0, 1, 1, 1, 2])
    inner = array(rng, rows * size, depth=0)
    while isinstance(inner, pa.ChunkedArray) or len(inner) != rows * size:
        inner = array(rng, rows * size, depth=0)
    offsets = pa.array([i * size for i in range(rows + 1)], pa.int32())
    return pa.ListArray.from_arrays(offsets, inner)


def table(rng: Random, columns: dict[str, Any]) -> Any:
    """A table of these columns, some of them odd, missing, twice or of another length."""
    names, arrays = list(columns), list(columns.values())
    rows = len(arrays[0])
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        i = rng.randrange(len(names)) if names else 0
        what = rng.randrange(6)
        if what < 3 and names:
            arrays[i] = array(rng, rows)
        elif what == 3 and names:
            del names[i], arrays[i]
        elif what == 4 and names:
            names.append(names[i])
            arrays.append(array(rng, rows))
        else:
            names.append(rng.choice(["x", "", "weight", "conjunction", "priority", "event"]))
            arrays.append(array(rng, rows))
    try:
        made = pa.table(arrays, names=names)
    except (pa.ArrowException, ValueError):  # columns of unequal lengths
        return dict(zip(names, arrays, strict=True))
    way = rng.randrange(8)
    if way == 0 and made.num_rows and not any(column.num_chunks != 1 for column in made.columns):
        return made.to_batches()[0]
    if way == 1:
        return made.to_reader()
    return made
