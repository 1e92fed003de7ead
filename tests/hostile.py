"""Values that look like an argument and are not.

They are scalars without a dimension, subclasses that lie, objects whose methods raise, and lists
that contain themselves.
"""

from __future__ import annotations

import datetime as dt
import enum
import warnings
from collections import UserDict, deque
from collections.abc import Callable
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

METHODS = (
    "__eq__", "__ne__", "__lt__", "__bool__", "__len__", "__hash__", "__index__", "__int__", "__float__", "__str__", "__repr__",
    "__array__", "__fspath__", "__contains__", "__getitem__", "__format__", "__arrow_c_array__", "__arrow_c_stream__",
    "__arrow_c_schema__", "as_py", "item", "tolist", "isoformat", "lower", "items", "keys", "dtype",
)  # fmt: skip


class OwnError(RuntimeError):
    """An error that a caller's own source raises, which may come through."""


def unitless(kind: Any, value: Any) -> Any:
    """A moment or duration of NumPy without a unit, which NumPy 2.5 warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return kind(value)


def _fails(*args: Any, **named: Any) -> Any:
    raise ValueError("a method of the caller's own failed")


def _fails_itself(*args: Any, **named: Any) -> Any:
    raise OwnError("the caller's own source failed")


class Failing:
    """An object all of whose methods raise."""


for _name in METHODS:
    setattr(Failing, _name, _fails)


class Unequal:
    """An object that compares as arrays do: the result is neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return np.array([True, False])

    __hash__ = object.__hash__


class FailingSource:
    """An iterable that raises an error of its own."""

    __iter__ = _fails_itself


class FailingText(str):
    """A text whose methods raise."""


class FailingNumber(int):
    """A number whose methods raise."""


class FailingFloat(float):
    """A number whose methods raise."""


class FailingBytes(bytes):
    """Bytes whose methods raise."""


for _type in (FailingText, FailingNumber, FailingFloat, FailingBytes):
    for _name in METHODS:
        if hasattr(_type, _name) and _name != "__hash__":
            setattr(_type, _name, _fails)


class Text(str):
    """A text, as any other."""


class Number(int):
    """A number, as any other."""


class Real(float):
    """A number, as any other."""


class Color(enum.Enum):
    RED = 1


class Order(enum.IntEnum):
    ONE = 1


class Mode(enum.StrEnum):
    PAIRS = "pairs"
    X = "x"


class FailingMapping(UserDict):  # type: ignore[type-arg]
    """A mapping that promises a key and does not have it."""

    def __getitem__(self, key: Any) -> Any:
        raise OwnError("the caller's own mapping failed")

    def __iter__(self) -> Any:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


def itself() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def itself_twice() -> list[Any]:
    made: list[Any] = [1]
    made += [made, made]
    return made


def mapping_of_itself() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["a"] = made
    return made


def array_of_itself() -> Any:
    made = np.empty(1, object)
    made[0] = made
    return made


def deep(levels: int = 100_000) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


def one(value: Any) -> Any:
    made = np.empty((), object)
    made[()] = value
    return made


HOSTILE: list[Callable[[], Any]] = [
    # NumPy: without a dimension, of every kind
    lambda: np.array(1),
    lambda: np.array("x"),
    lambda: np.array(1.5),
    lambda: np.array(None),
    lambda: np.array(True),
    lambda: one({"x": 1}),
    lambda: np.array("2013-01-31", "datetime64[D]"),
    lambda: np.timedelta64(1, "s"),
    lambda: np.timedelta64(1, "ns"),
    lambda: unitless(np.timedelta64, 1),
    lambda: unitless(np.timedelta64, "NaT"),
    lambda: unitless(np.datetime64, "NaT"),
    lambda: np.datetime64(1, "ns"),
    lambda: np.datetime64(2**62, "Y"),
    lambda: np.datetime64(1, "as"),
    lambda: np.bool_(True),
    lambda: np.int8(1),
    lambda: np.uint8(1),
    lambda: np.int16(1),
    lambda: np.uint64(2**64 - 1),
    lambda: np.float16(1),
    lambda: np.float64("nan"),
    lambda: np.longdouble(1),
    lambda: np.complex64(1),
    lambda: np.str_("\ud800"),
    lambda: np.bytes_(b"x"),
    lambda: np.void(b"x"),
    lambda: np.zeros((), [("a", "i8")])[()],
    lambda: np.ma.masked,
    lambda: np.ma.array([1, 2], mask=[True, False]),
    lambda: np.ma.array(1),
    lambda: np.array([], object),
    lambda: np.array([None, 1], object),
    lambda: np.array([["x"], ["y"]]),
    lambda: np.array([True]),
    lambda: np.array([b"x"]),
    lambda: np.array(["2013-01-31"], "datetime64[D]"),
    lambda: np.array([1], "m8[s]"),
    lambda: np.array([1.5, float("nan")]),
    lambda: np.zeros(2, [("a", "i8")]),
    lambda: np.arange(3)[::-1],
    lambda: np.array([1, 2], ">i4"),
    lambda: np.recarray(1, [("a", "i8")]),
    lambda: np.dtype("i8"),
    lambda: np.random.default_rng(0),
    # of Python
    lambda: Text("x"),
    lambda: Text("a"),
    lambda: Number(1),
    lambda: Real(1),
    lambda: Color.RED,
    lambda: Order.ONE,
    lambda: Mode.X,
    lambda: Mode.PAIRS,
    lambda: FailingText("x"),
    lambda: FailingText("scan"),
    lambda: FailingText("raise"),
    lambda: FailingNumber(1),
    lambda: FailingFloat(1),
    lambda: FailingBytes(b"x"),
    Failing,
    Unequal,
    FailingSource,
    FailingMapping,
    lambda: Decimal("sNaN"),
    lambda: Decimal("Infinity"),
    lambda: Decimal("1e999999"),
    lambda: 10**5000,
    lambda: -(10**400),
    lambda: 2**63,
    lambda: 2**64,
    lambda: float("inf"),
    lambda: float("-inf"),
    lambda: 1e308,
    lambda: "\udfff",
    lambda: ["\ud800"],
    lambda: {"\ud800": 1},
    lambda: "\0",
    lambda: "no",
    lambda: "true",
    lambda: bytearray(b"x"),
    lambda: memoryview(np.arange(3)),
    itself,
    itself_twice,
    mapping_of_itself,
    array_of_itself,
    deep,
    lambda: [itself()],
    lambda: {"a": itself()},
    lambda: {"a": deep()},
    lambda: (itself(),),
    lambda: {1: itself()},
    lambda: [[1, itself()]],
    lambda: {"event": [0], "attribute": ["x"], "value": [itself()]},
    lambda: {"event": [0], "attribute": ["x"], "value": array_of_itself()},
    lambda: {"event": [0], "attribute": ["x"], "value": [deep()]},
    lambda: [Failing()],
    lambda: {"a": Failing()},
    lambda: {1: Failing()},
    lambda: [(1, Failing())],
    lambda: [(Failing(), "TRUE")],
    lambda: [FailingText("x")],
    lambda: {FailingText("x"): "TRUE"},
    lambda: {1: FailingText("TRUE")},
    lambda: {FailingNumber(1): "TRUE"},
    lambda: [FailingNumber(1)],
    lambda: {"a": FailingText("x")},
    lambda: {"a": (FailingText("x"), "a")},
    lambda: {"x": [FailingText("x")]},
    lambda: {1: [FailingText("x")]},
    lambda: {1: FailingSource()},
    lambda: [Unequal()],
    lambda: {"a": FailingFloat(1)},
    lambda: {"a": np.array(1)},
    lambda: {"a": unitless(np.timedelta64, 1)},
    lambda: {"a": np.array([1])},
    lambda: {1: np.array("TRUE")},
    lambda: [np.array(1)],
    lambda: [unitless(np.timedelta64, 1)],
    lambda: [np.datetime64(1, "s")],
    lambda: {np.timedelta64(1, "s"): "TRUE"},
    lambda: {np.int64(1): "TRUE"},
    lambda: {np.str_("x"): np.str_("TRUE")},
    lambda: [float("nan")],
    lambda: [1.0],
    lambda: [True],
    lambda: {"a": True},
    lambda: {"a": None},
    lambda: {"a": "x"},
    lambda: {"a": ("a", "a", "a")},
    lambda: {"a": ("x", 1)},
    lambda: {"x": {"y": 1}},
    lambda: {1: {"flight_id": 1}},
    lambda: {1: {"flight_id": np.int64(1)}},
    lambda: {1: {"flight_id": Number(1)}},
    lambda: {1: [1]},
    lambda: {1: ["x"]},
    lambda: {"a": 10**400},
    lambda: {"a": Decimal("sNaN")},
    lambda: [10**400],
    lambda: {10**400: "TRUE"},
    lambda: deque([1]),
    lambda: frozenset([1]),
    lambda: {1, 2},
    lambda: UserDict({1: "TRUE"}),
    lambda: {1: "TRUE"}.items(),
    lambda: {1: 2}.keys(),
    lambda: zip([1], ["TRUE"], strict=True),
    lambda: (itself() for _ in range(2)),
    lambda: map(str, [1]),
    lambda: iter("xy"),
    lambda: dt.datetime.min,
    lambda: dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-14))),
    lambda: dt.UTC,
    lambda: PurePosixPath("\ud800"),
    lambda: slice(1),
    lambda: ...,
    lambda: NotImplemented,
    lambda: type("Meta", (type,), {"__instancecheck__": _fails})("Made", (), {}),
    lambda: ValueError("x"),
    lambda: super,
    # of Arrow
    lambda: pa.scalar(True),
    lambda: pa.scalar(1.5),
    lambda: pa.scalar([1]),
    lambda: pa.scalar({"a": 1}),
    lambda: pa.scalar(2**63 - 1, pa.timestamp("s")),
    lambda: pa.scalar(2**31 - 1, pa.date32()),
    lambda: pa.scalar(1, pa.timestamp("us", "Nowhere/City")),
    lambda: pa.scalar(1, pa.duration("ns")),
    lambda: pa.scalar(Decimal("1.5")),
    lambda: pa.scalar(b"x"),
    lambda: pa.scalar("x").cast(pa.large_string()),
    lambda: pa.array([True]),
    lambda: pa.array([1.5]),
    lambda: pa.array([]),
    lambda: pa.array([[1]]),
    lambda: pa.array([["x", None]]),
    lambda: pa.array(["x", "x"]).dictionary_encode(),
    lambda: pa.array([2**64 - 1], pa.uint64()),
    lambda: pa.array([2**63 - 1], pa.timestamp("s")),
    lambda: pa.chunked_array([], pa.int64()),
    lambda: pa.schema([("a", "int64"), ("a", "int64")]),
    lambda: pa.schema([]),
    lambda: pa.list_(pa.int64()),
    lambda: pa.py_buffer(b"x"),
    lambda: pa.table({"id": [1], "tags": [["x"]]}),
    lambda: pa.table({"id": [1], "expression": ["TRUE"], "priority": [2**63 - 1]}),
    lambda: pa.table({"id": ["x"], "expression": [None]}),
]
