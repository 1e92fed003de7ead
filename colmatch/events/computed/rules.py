"""Functions on Arrow arrays that choose, round, search texts or count days.

Their types are in ``expr/computed_rules.py``. Each takes arrays or scalars, then its constants.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import EventError, show_value
from colmatch.events.computed.casts import cast, with_another_digit
from colmatch.events.computed.failed import array_of, refuse, set_nulls, true_rows
from colmatch.events.computed.functions import Value, make_division, map_distinct
from colmatch.events.computed.hashes import HASHES
from colmatch.events.computed.variant_casts import cast_variants
from colmatch.text.like import read_like

_EXACT = 2.0**50  # below it, the distance of a double to the next half is known well enough


def _fold(function: Callable[[Value, Value], Value]) -> Callable[..., Value]:
    return lambda *values: reduce(function, values)


def _case(*values: Value) -> Value:
    """Returns the value behind the first condition that is true, else the last value."""
    value = values[-1]
    for i in range(len(values) - 3, -1, -2):
        value = pc.if_else(pc.fill_null(values[i], False), values[i + 1], value)
    return value


def _extreme(function: Callable[..., Value], largest: bool) -> Callable[..., Value]:
    """Returns a function for the greatest or least value without NULLs; NaN is the largest."""

    def run(*values: Value) -> Value:
        type = values[0].type
        if pa.types.is_timestamp(type) and type.tz is not None:  # which Arrow does not compare here
            numbers = [value.cast(type).cast(pa.int64()) for value in values]
            return function(*numbers, skip_nulls=True).cast(type)
        extreme = function(*values, skip_nulls=True)
        if largest and pa.types.is_floating(extreme.type):
            nan = reduce(pc.or_, [pc.fill_null(pc.is_nan(value), False) for value in values])
            extreme = pc.if_else(nan, pa.scalar(np.nan, extreme.type), extreme)
        return extreme

    return run


def _whole(function: Callable[[Value], Value]) -> Callable[[Value, pa.DataType], Value]:
    """Returns a function that rounds down or up to a whole number."""
    return lambda values, type: cast(function(with_another_digit(values)), type, "")


def _whole_checked(function: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Returns a function that rounds doubles, and refuses what does not fit BIGINT; NaN is 0."""

    def run(values: Value) -> Value:
        rounded = function(values)
        least, end = pa.scalar(-(2.0**63), pa.float64()), pa.scalar(2.0**63, pa.float64())
        beyond = true_rows(pc.or_(pc.less(rounded, least), pc.greater_equal(rounded, end)))
        return refuse(beyond, set_nulls(cast(rounded, pa.int64(), ""), beyond), "the result is too large")

    return run


def _whole_to(mode: str) -> Callable[[Value, int, pa.DataType], Value]:
    """Returns a function that rounds decimals down or up to so many digits."""

    def run(values: Value, places: int, type: pa.DataType) -> Value:
        wide = values.cast(pa.decimal256(76, values.type.scale))
        return pc.round(wide, min(places, values.type.scale), mode).cast(type)

    return run


def _round(values: Value, type: pa.DataType) -> Value:
    """Rounds decimals half up."""
    return cast(values, type, "")


def _round_double(values: Value, places: int) -> Value:
    """Rounds floats half up, by their shortest decimal texts.

    The nearest whole number decides, except for floats near a half and very large ones.
    """
    texts = values.cast(pa.string()) if pa.types.is_float32(values.type) else None
    plain = pc.fill_null(texts.cast(pa.float64()) if texts is not None else values, 0.0)
    numbers = plain.to_numpy(zero_copy_only=False)
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    # Round all by the nearest whole number
    power = 10.0 ** abs(places)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.abs(finite) * power if places >= 0 else np.abs(finite) / power
        nearest = np.floor(scaled + 0.5)
        rounded = np.copysign(nearest / power if places >= 0 else nearest * power, finite)
        close = ~(scaled < _EXACT) | (np.abs(scaled - np.floor(scaled) - 0.5) <= 1e-9 * (scaled + 1))
    # Round the doubtful ones by their texts
    unit = Decimal(1).scaleb(-places)
    for i in np.flatnonzero(close).tolist():
        exact = Decimal(repr(float(finite[i])))
        # ``quantize`` may have too few digits for large numbers
        rounded[i] = float(exact.quantize(unit, ROUND_HALF_UP)) if abs(exact) < 10**10 else float(_large(exact, places))
    rounded = np.where(np.isfinite(numbers), rounded, numbers)
    null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    return pa.array(rounded, mask=null).cast(values.type, safe=False)


def _large(value: Decimal, places: int) -> Decimal:
    unit = Decimal(1).scaleb(-places)
    if value.as_tuple().exponent >= -places:  # type: ignore[operator]
        return value
    sign = -1 if value < 0 else 1
    return sign * int((abs(value) / unit).to_integral_value(ROUND_HALF_UP)) * unit


def _div(one: Value, other: Value) -> Value:
    """Divides whole numbers, and cuts the fraction off."""
    minus = pc.equal(other, pa.scalar(-1, other.type))
    plain = pc.divide(one, pc.if_else(minus, pa.scalar(1, other.type), other))
    return pc.if_else(minus, pc.negate(one), plain)


def _is_quotient_too_large(one: Value, other: Value) -> Value:
    return pc.and_(pc.equal(one, pa.scalar(-(2**63), one.type)), pc.equal(other, pa.scalar(-1, other.type)))


def _instr(values: Value, part: str) -> Value:
    return map_distinct(values, lambda text: text.find(part) + 1, pa.int32())


def _replace(values: Value, old: str, new: str = "") -> Value:
    return pc.replace_substring(values, old, new) if old else values


def _date_add(days: Value, count: Value) -> Value:
    return pc.add(days.cast(pa.int32()), count).cast(pa.date32())


def _datediff(later: Value, sooner: Value) -> Value:
    return pc.subtract(later.cast(pa.int32()), sooner.cast(pa.int32()))


def _of_pairs(test: Callable[[str, str], bool]) -> Callable[..., Value]:
    """Returns a function of two texts of each row, which is called once for each distinct pair."""

    def run(texts: Value, parts: Value) -> Value:
        sides = [array_of(side).dictionary_encode() for side in (texts, parts)]
        words = [[*side.dictionary.to_pylist(), ""] for side in sides]
        one, other = (pc.fill_null(side.indices, 0).to_numpy().astype(np.int64) for side in sides)
        count = len(words[1])
        pairs, place = np.unique(one * count + other, return_inverse=True)
        found = np.array([test(words[0][pair // count], words[1][pair % count]) for pair in pairs.tolist()], np.bool_)
        return pc.if_else(pc.and_(pc.is_valid(texts), pc.is_valid(parts)), pa.array(found[place]), None)

    return run


def _like_pair(texts: Value, patterns: Value) -> Value:
    """Tests texts by patterns of their rows: the rows of each distinct pattern together."""
    if not isinstance(patterns, pa.Array):
        patterns = pa.repeat(patterns, len(texts))
    found = np.zeros(len(patterns), np.bool_)
    codes = patterns.dictionary_encode()
    row_of = pc.fill_null(codes.indices, -1).to_numpy()
    order = np.argsort(row_of, kind="stable")
    ends = np.searchsorted(row_of[order], np.arange(len(codes.dictionary) + 1))
    for pattern, start, end in zip(codes.dictionary.to_pylist(), ends, ends[1:], strict=False):
        try:
            read_like(pattern)
        except ValueError as error:
            raise EventError(f"{show_value(pattern)} is no pattern of LIKE: {error}") from None
        rows = pa.array(order[start:end])
        some = texts.take(rows) if isinstance(texts, pa.Array) else pa.repeat(texts, len(rows))
        found[order[start:end]] = pc.fill_null(pc.match_like(some, pattern), False).to_numpy(zero_copy_only=False)
    return pc.if_else(pc.and_(pc.is_valid(texts), pc.is_valid(patterns)), pa.array(found), None)


RULES: dict[str, Callable[..., Value]] = {
    **HASHES,
    "null": lambda type: pa.scalar(None, type),
    "and": _fold(pc.and_kleene),
    "or": _fold(pc.or_kleene),
    "isnull": pc.is_null,
    "case": _case,
    "floor": _whole(pc.floor),
    "ceil": _whole(pc.ceil),
    "floor_checked": _whole_checked(pc.floor),
    "ceil_checked": _whole_checked(pc.ceil),
    "floor_to": _whole_to("down"),
    "ceil_to": _whole_to("up"),
    "round": _round,
    "round_double": _round_double,
    "sign": pc.sign,
    "sqrt": pc.sqrt,
    "isnan": lambda values: pc.fill_null(pc.is_nan(values), False),
    "greatest": _extreme(pc.max_element_wise, True),
    "least": _extreme(pc.min_element_wise, False),
    "&": pc.bit_wise_and,
    "|": pc.bit_wise_or,
    "^": pc.bit_wise_xor,
    "div": make_division(_div),
    "div_checked": make_division(_div, True, _is_quotient_too_large),
    "like": pc.match_like,
    "rlike": pc.match_substring_regex,
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
    "like_pair": _like_pair,
    "startswith_pair": _of_pairs(str.startswith),
    "endswith_pair": _of_pairs(str.endswith),
    "contains_pair": _of_pairs(operator.contains),
    "instr": _instr,
    "replace": _replace,
    "reverse": pc.utf8_reverse,
    "date_add": _date_add,
    "datediff": _datediff,
    "cast_variant": cast_variants,
}
RULES_TYPED = frozenset(
    {"null", "floor", "ceil", "round", "floor_to", "ceil_to", "cast_variant"}
)  # take the type of their result
