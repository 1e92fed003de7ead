"""Computed values of single events, of Python's values, for functions that need no Arrow.

A value is compiled to one function of the event. Functions that are missing here, and rows where a
value fails in ANSI mode, become a batch. So the two ways are compared with each other in
tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from colmatch.events.computed.derived import constant
from colmatch.events.computed.failed import Unfit
from colmatch.events.computed.functions import slice_of
from colmatch.events.computed.hashes import HASHES
from colmatch.events.computed.nodes import BITS, INTEGERS, ValueNode, path_of
from colmatch.events.computed.regexes import REGEXES
from colmatch.events.computed.rules import RULES
from colmatch.events.computed.texts import ONLY_ANSI, TEXTS
from colmatch.text.addresses import address_text

Event = Mapping[str, Any]
Evaluate = Callable[[Event], Any]


class NeedsBatch(Exception):
    """The event must be read as a batch."""


def evaluator(node: ValueNode, column: Callable[[tuple[str, ...]], Evaluate | None]) -> Evaluate:
    """Returns the function that computes a value of an event.

    It raises NeedsBatch where Arrow must do it. NULL is None.

    column : returns the function that reads a column's value, None for a column that needs Arrow
    """
    made = _make(node, column)
    if made is not None:
        return made
    names = list(dict.fromkeys(path[0] for path in _needed(node)))

    def only_nulls(event: Event) -> Any:
        if any(event.get(name) is None for name in names):
            return None
        raise NeedsBatch

    return only_nulls


def _make(node: ValueNode, column: Callable[[tuple[str, ...]], Evaluate | None]) -> Evaluate | None:
    name = node.function
    if name == "column":
        return column(node.arguments)
    if name == "literal":
        value = constant(node).as_py()
        return (lambda event: value) if isinstance(value, (bool, int, float, str, date)) else None
    if name == "null":
        return lambda event: None
    function = _function(node)
    if function is None:
        return None
    parts = [_make(part, column) for part in node.parts]
    made = [part for part in parts if part is not None]
    if len(made) < len(parts):
        return None
    if name in _LAZY:
        computed: Evaluate = function(made)
        return computed
    return _of_one(function, made[0]) if len(made) == 1 else _of_many(function, made)


def _of_one(function: Callable[[Any], Any], part: Evaluate) -> Evaluate:
    def compute(event: Event) -> Any:
        value = part(event)
        return None if value is None else function(value)

    return compute


def _of_many(function: Callable[..., Any], parts: Sequence[Evaluate]) -> Evaluate:
    def compute(event: Event) -> Any:
        values = [part(event) for part in parts]
        return None if None in values else function(*values)

    return compute


def _needed(node: ValueNode) -> list[tuple[str, ...]]:
    """Returns the paths of columns without which a value is NULL."""
    path = path_of(node)
    if path:
        return [path]
    if node.function in _NOT_STRICT or node.function == "literal":
        return []
    return [path for part in node.parts for path in _needed(part)]


_NOT_STRICT = frozenset({
    "and", "or", "isnull", "isnan", "same", "case", "coalesce", "greatest", "least", "concat_ws", "hash", "xxhash64",
    "is_variant_null",
})  # fmt: skip


def _function(node: ValueNode) -> Callable[..., Any] | None:
    """Returns the function of a node's values, or for lazy ones of the parts' functions."""
    name, is_checked = node.function.removesuffix("_checked"), node.function.endswith("_checked")
    first = next(iter(node.parts), None)
    if name in _LAZY:
        return _LAZY[name]
    if first is None:
        return None
    constants = node.constants
    if name == "cast":
        return _cast(first.type, node.type, constants[0] == "ansi")
    if name in _WHOLE and node.type in INTEGERS:
        return _wrapped(_WHOLE[name], BITS[node.type], is_checked)
    if name in _DIVIDED and (node.type in INTEGERS or node.type == "double"):
        return _divided(_DIVIDED[name] if node.type in INTEGERS else _DOUBLES[name], node.type, is_checked)
    if node.type == "double" and name in _DOUBLES:
        return _DOUBLES[name]
    if name in _ORDERED:
        return None if first.type == "float" or first.type not in _COMPARED else _ORDERED[name][first.type == "double"]
    if name == "substring":
        where = slice(*slice_of(*constants))
        return lambda text: text[where]
    if name in _SIMPLE:
        function = _SIMPLE[name]
        return (lambda value: function(value, *constants)) if constants else function
    if name in TEXTS:
        return _of_text(TEXTS.get(node.function, TEXTS[name])[0], constants, name in ONLY_ANSI and not is_checked)
    if name in REGEXES or name in ("like", "rlike"):
        of_texts = REGEXES.get(name, RULES.get(name))
        assert of_texts is not None
        return lambda text: of_texts(pa.array([text]), *constants)[0].as_py()
    if name in HASHES and name not in _NOT_STRICT:
        of_column = HASHES[name]
        return lambda text: of_column(pa.array([text]), *constants)[0].as_py()
    if name in _DATES and first.type == "date":
        return _DATES[name]
    return None


_COMPARED = frozenset({*BITS, "boolean", "double", "string", "date"})


def _of_text(function: Callable[..., Any], constants: list[Any], is_forgiven: bool) -> Callable[[Any], Any]:
    """Returns a function of a text, which needs a batch for its error."""

    def compute(text: Any) -> Any:
        try:
            return function(text, *constants)
        except Unfit:
            if is_forgiven:
                return None
            raise NeedsBatch from None

    return compute


def _wrapped(function: Callable[..., int], bits: int, is_checked: bool) -> Callable[..., int]:
    """Returns a function of whole numbers that wraps, or needs a batch for its error."""
    half = 1 << (bits - 1)

    def compute(*values: int) -> int:
        result = function(*values)
        if -half <= result < half:
            return result
        if is_checked:
            raise NeedsBatch
        return (result + half) % (2 * half) - half

    return compute


def _divided(function: Callable[[Any, Any], Any], type: str, is_checked: bool) -> Callable[[Any, Any], Any]:
    """Returns a division, with NULL for a division by zero."""
    bits = BITS.get(type)
    plain = function if bits is None else _wrapped(function, bits, is_checked)

    def compute(one: Any, other: Any) -> Any:
        if other == 0:
            if is_checked:
                raise NeedsBatch
            return None
        return plain(one, other)

    return compute


def _cut(one: int, other: int) -> int:
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _rest(one: int, other: int) -> int:
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _rest_of_doubles(one: float, other: float) -> float:
    if math.isinf(one) or math.isnan(one) or math.isnan(other):
        return math.nan
    return math.fmod(one, other)


def _cast(have: str, to: str, is_ansi: bool) -> Callable[[Any], Any] | None:
    if have == to:
        return lambda value: value
    if to == "double" and (have in INTEGERS or have == "boolean"):
        return float
    if to in INTEGERS and have == "boolean":
        return int
    return _wrapped(lambda value: value, BITS[to], is_ansi) if to in INTEGERS and have in INTEGERS else None


def _and(parts: Sequence[Evaluate]) -> Evaluate:
    def compute(event: Event) -> bool | None:
        values = [part(event) for part in parts]
        return False if False in values else None if None in values else True

    return compute


def _or(parts: Sequence[Evaluate]) -> Evaluate:
    def compute(event: Event) -> bool | None:
        values = [part(event) for part in parts]
        return True if True in values else None if None in values else False

    return compute


def _isnull(parts: Sequence[Evaluate]) -> Evaluate:
    (part,) = parts
    return lambda event: part(event) is None


def _isnan(parts: Sequence[Evaluate]) -> Evaluate:
    (part,) = parts

    def compute(event: Event) -> bool:
        value = part(event)
        return bool(value != value)  # NULL is none

    return compute


def _coalesce(parts: Sequence[Evaluate]) -> Evaluate:
    def compute(event: Event) -> Any:
        values = [part(event) for part in parts]
        return next((value for value in values if value is not None), None)

    return compute


def _same(parts: Sequence[Evaluate]) -> Evaluate:
    def compute(event: Event) -> bool:
        one, other = (part(event) for part in parts)
        return bool(one == other or (one != one and other != other))

    return compute


def _case(parts: Sequence[Evaluate]) -> Evaluate:
    def compute(event: Event) -> Any:
        values = [part(event) for part in parts]
        for i in range(0, len(values) - 1, 2):
            if values[i] is True:
                return values[i + 1]
        return values[-1]

    return compute


def _less_of_doubles(one: float, other: float) -> bool:
    return one < other or (one == one and other != other)  # NaN is the largest


def _equal_doubles(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)


# Functions of the parts' functions, since they are not NULL where a part is.
_LAZY: dict[str, Callable[[Sequence[Evaluate]], Evaluate]] = {
    "and": _and, "or": _or, "isnull": _isnull, "isnan": _isnan, "coalesce": _coalesce, "case": _case, "same": _same,
}  # fmt: skip
_WHOLE: dict[str, Callable[..., int]] = {
    "add": lambda one, other: one + other, "subtract": lambda one, other: one - other, "multiply": lambda one, other: one * other,
    "negate": lambda one: -one, "abs": abs, "&": lambda one, other: one & other, "|": lambda one, other: one | other,
    "^": lambda one, other: one ^ other,
}  # fmt: skip
_DIVIDED = {"modulo": _rest, "div": _cut, "divide": _cut}
_DOUBLES: dict[str, Callable[..., float]] = {
    "add": lambda one, other: one + other, "subtract": lambda one, other: one - other, "multiply": lambda one, other: one * other,
    "divide": lambda one, other: one / other, "modulo": _rest_of_doubles, "negate": lambda one: -one, "abs": abs,
}  # fmt: skip
_ORDERED: dict[str, tuple[Callable[[Any, Any], bool], Callable[[Any, Any], bool]]] = {
    "equal": (lambda one, other: one == other, _equal_doubles), "less": (lambda one, other: one < other, _less_of_doubles),
}  # fmt: skip
_SIMPLE: dict[str, Callable[..., Any]] = {
    "not": lambda value: not value, "lower": str.lower, "upper": str.upper, "trim": lambda text: text.strip(" "),
    "ltrim": lambda text: text.lstrip(" "), "rtrim": lambda text: text.rstrip(" "), "length": len,
    "concat": lambda *texts: "".join(texts), "reverse": lambda text: text[::-1], "instr": lambda text, part: text.find(part) + 1,
    "replace": lambda text, old, new="": text.replace(old, new) if old else text, "startswith": str.startswith,
    "endswith": str.endswith, "contains": lambda text, part: part in text, "address": address_text,
    "within": lambda text, low, high: low <= text <= high,
}  # fmt: skip


def _moved(day: date, days: int) -> date:
    try:
        return day + timedelta(days)
    except OverflowError:
        raise NeedsBatch from None


_DATES: dict[str, Callable[..., Any]] = {
    "date_add": _moved, "datediff": lambda later, sooner: later.toordinal() - sooner.toordinal(), "year": lambda day: day.year,
    "month": lambda day: day.month, "day": lambda day: day.day, "quarter": lambda day: (day.month + 2) // 3,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1, "weekday": date.weekday, "week": lambda day: day.isocalendar()[1],
    "dayofyear": lambda day: day.timetuple().tm_yday,
}  # fmt: skip
