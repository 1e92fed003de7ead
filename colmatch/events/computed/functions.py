"""Functions of computed values on Arrow arrays, with the results of Spark.

Each takes arrays or scalars of exactly the types in ``expr/computed_types.py``, then its constants.
Arrow differs from Spark in divisions by zero, casts that do not fit, NaN in comparisons, and
letters that are not ASCII. These results are corrected here.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.events.computed.addresses import address_texts
from colmatch.events.computed.dates import PARTS, date_trunc, part_of, seconds_of
from colmatch.events.computed.digits import pieces_of_format
from colmatch.events.computed.failed import Unfit, array_of, forgive, refuse, set_nulls, true_rows
from colmatch.events.computed.intervals import INTERVALS
from colmatch.events.computed.maths import MATHS, vectorised
from colmatch.events.computed.moments import MOMENTS
from colmatch.events.computed.nodes import arrow_type
from colmatch.events.computed.regexes import REGEXES
from colmatch.events.computed.texts import ONLY_ANSI, TEXTS, TRIED
from colmatch.events.computed.variants import is_variant_null

Value = Any  # a pyarrow.Array, or a pyarrow.Scalar where it is the same in all rows


def map_distinct(values: Value, change: Callable[[Any], Any], type: pa.DataType) -> Value:
    """Applies a function to strings or numbers, calling it once for each distinct one."""
    encoded = values.dictionary_encode()
    changed = pa.array([change(text) for text in encoded.dictionary.to_pylist()], type)
    return changed.take(encoded.indices)


def _equal(one: Value, other: Value) -> Value:
    equal = pc.equal(one, other)
    if pa.types.is_floating(one.type):  # to Spark, NaN is one value, the largest
        equal = pc.or_(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)))
    return equal


def _less(one: Value, other: Value) -> Value:
    if pa.types.is_boolean(one.type):
        return pc.and_(pc.invert(one), other)
    less = pc.less(one, other)
    if pa.types.is_floating(one.type):
        less = pc.or_(less, pc.and_(pc.invert(pc.is_nan(one)), pc.is_nan(other)))
    return less


def _same(one: Value, other: Value) -> Value:
    same = pc.fill_null(_equal(one, other), False)
    return pc.or_(same, pc.and_(pc.is_null(one), pc.is_null(other)))


def make_division(
    function: Callable[[Value, Value], Value],
    checked: bool = False,
    overflows: Callable[[Value, Value], Value] | None = None,
) -> Callable[[Value, Value], Value]:
    """Returns a function that divides, with NULL for a division by zero.

    checked : makes this an error, unless the dividend is NULL
    overflows : returns whether a result is too large, which is an error, too
    """

    def run(one: Value, other: Value) -> Value:
        zero = pc.equal(other, pa.scalar(0, other.type))
        is_free = not true_rows(zero).any()
        if is_free and overflows is None:
            return function(one, other)
        quotient = function(one, other if is_free else pc.if_else(zero, pa.scalar(None, other.type), other))
        if not checked:
            return quotient
        by_zero = true_rows(pc.and_(zero, pc.is_valid(one)))
        large = by_zero & False if overflows is None else true_rows(overflows(one, other))
        message_of = lambda row: "division by zero" if by_zero[row] else "the result is too large"  # noqa: E731
        return refuse(by_zero | large, set_nulls(quotient, large), message_of)

    return run


def _concat_ws(*values: Any) -> Value:
    """Joins texts with a separator, the last argument, and leaves NULLs out."""
    *texts, separator = values
    if not texts:
        return pa.scalar("")
    pieces = [pc.coalesce(pc.binary_join_element_wise(separator, text, ""), "") for text in texts]
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*pieces, ""), len(separator))


def _of_texts(function: Callable[..., Any], type: pa.DataType) -> Callable[..., Value]:
    """Returns a function of values and constants, which is refused where a value is unfit."""

    def run(values: Value, *constants: Any) -> Value:
        unfit: dict[Any, str] = {}

        def change(value: Any) -> Any:
            try:
                return function(value, *constants)
            except Unfit as error:
                unfit[value] = str(error)
                return None

        found = map_distinct(values, change, type)
        if not unfit:
            return found
        rows = pc.is_in(values, value_set=pa.array(list(unfit), values.type))
        return refuse(rows, found, lambda row: unfit[values[row].as_py()])

    return run


def _format_string(*values: Any) -> Value:
    """Writes values in a format, the last argument. A NULL is the text null."""
    *arguments, format = values
    rest, parts = iter(arguments), list[Any]()
    for piece in pieces_of_format(format, len(arguments)):
        if not piece.letter:
            parts.append(piece.text)
            continue
        text = next(rest).cast(pa.string())
        if piece.fill == "0":  # behind the sign
            sign = pc.if_else(pc.starts_with(text, "-"), "-", "")
            digits = pc.utf8_ltrim(text, "-")
            short = pc.binary_join_element_wise(sign, pc.utf8_lpad(digits, piece.width - 1, "0"), "")
            text = pc.if_else(pc.equal(sign, "-"), short, pc.utf8_lpad(digits, piece.width, "0"))
        text = pc.coalesce(text, "null")
        pad = pc.utf8_rpad if piece.is_left else pc.utf8_lpad
        parts.append(pad(text, piece.width) if piece.width else text)
    return pc.binary_join_element_wise(*parts, "") if parts else pa.scalar("")


def _modulo(one: Value, other: Value) -> Value:
    """Returns the remainder with the sign of the dividend."""
    type = one.type
    if pa.types.is_floating(type):
        return _fmod(one, other)
    # the least number divided by -1 is too large; its remainder is 0, as for 1
    other = pc.if_else(pc.equal(other, pa.scalar(-1, type)), pa.scalar(1, type), other)
    return pc.subtract(one, pc.multiply(pc.divide(one, other), other))


def _fmod(one: Value, other: Value) -> Value:
    with np.errstate(invalid="ignore"):
        remainder = np.fmod(_doubles(one), _doubles(other))
    null = pc.or_(pc.is_null(one), pc.is_null(other))
    return pc.if_else(null, pa.scalar(None, one.type), pa.array(np.broadcast_to(remainder, len(null))))


def _decimal_rest(one: Value, other: Value) -> Value:
    """Returns the remainder of decimals of one scale and at most 18 digits."""
    precision, scale = min(one.type.precision, other.type.precision), one.type.scale
    whole = [value.cast(pa.decimal128(38, 0), safe=False) if not scale else _unscaled(value) for value in (one, other)]
    rest = _modulo(*[value.cast(pa.int64()) for value in whole])
    return pc.multiply(
        rest.cast(pa.decimal128(19, 0)), pa.scalar(Decimal(1).scaleb(-scale), pa.decimal128(18, scale))
    ).cast(pa.decimal128(precision, scale))


def _unscaled(value: Value) -> Value:
    """Returns the digits of decimals as whole numbers."""
    power = pa.scalar(Decimal(10) ** value.type.scale, pa.decimal128(19, 0))
    return pc.multiply(value.cast(pa.decimal128(18, value.type.scale)), power).cast(pa.decimal128(37, 0))


def _make_date_checked(*parts: Value) -> Value:
    """Returns dates of years, months and days, which is an error where there is none."""
    found = vectorised(*MATHS["make_date"])(*parts)
    defined = reduce(pc.and_, [pc.is_valid(part) for part in parts])
    return refuse(pc.and_(defined, pc.is_null(found)), found, "there is no such date")


def _doubles(value: Value) -> Any:
    return pc.fill_null(array_of(value), pa.scalar(1, value.type)).to_numpy(zero_copy_only=False)


def _case(simple: str, change: Callable[[str], str]) -> Callable[[Value], Value]:
    ascii_only = getattr(pc, simple)

    def changed(values: Value) -> Value:
        if pc.all(pc.string_is_ascii(values)).as_py() is False:
            return map_distinct(values, change, pa.string())
        # pyarrow 26 writes wrong bytes for an array of offset 0 if its texts begin later in their
        # buffer, as in arrays of arrow-rs. The texts of a copy begin at byte 0.
        return ascii_only(pa.concat_arrays([values, values.slice(0, 0)]))

    return changed


def slice_of(place: int, count: int | None = None) -> tuple[int, int | None]:
    """Returns where a substring begins and ends.

    place : counted from 1, or from the end if negative
    """
    if count is not None and count <= 0:
        return 0, 0
    start = place - 1 if place > 0 else place
    if count is None or start < 0 <= start + count:
        return start, None
    return start, start + count


def _make_checked(name: str) -> Callable[..., Value]:
    """Returns arithmetic that makes an overflow an error."""
    checked, plain, overflows = getattr(pc, f"{name}_checked"), getattr(pc, name), _OVERFLOWS[name]

    def run(*values: Value) -> Value:
        try:
            return checked(*values)
        except pa.ArrowInvalid:
            wrapped = plain(*values)
            defined = pc.is_valid(wrapped).to_numpy(zero_copy_only=False)
            numbers = [pc.fill_null(array_of(value), 0).to_numpy(zero_copy_only=False) for value in (*values, wrapped)]
            with np.errstate(over="ignore", divide="ignore"):
                rows = overflows(*numbers) & defined
            return refuse(rows, set_nulls(wrapped, rows), "the result is too large")

    return run


def _is_product_too_large(one: Any, other: Any, found: Any) -> Any:
    """Returns whether a product has wrapped: otherwise it can be divided again.

    The least number divided by -1 wraps itself.
    """
    least = np.iinfo(found.dtype).min
    wrapped = ((one == -1) & (other == least)) | ((other == -1) & (one == least))
    return wrapped | ((one != 0) & (found // np.where(one == 0, 1, one) != other))


# Arguments and wrapped results -> whether the results are wrong.
_OVERFLOWS: dict[str, Callable[..., Any]] = {
    "add": lambda one, other, found: ((one ^ found) & (other ^ found)) < 0,
    "subtract": lambda one, other, found: ((one ^ other) & (one ^ found)) < 0,
    "multiply": _is_product_too_large,
    "negate": lambda one, found: (one == found) & (one != 0),
    "abs": lambda one, found: found < 0,
}
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "add": pc.add,
    "subtract": pc.subtract,
    "multiply": pc.multiply,
    "divide": make_division(pc.divide),
    "divide_checked": make_division(pc.divide, True),
    "modulo": make_division(_modulo),
    "modulo_checked": make_division(_modulo, True),
    "negate": pc.negate,
    "abs": pc.abs,
    "equal": _equal,
    "less": _less,
    "same": _same,
    "not": pc.invert,
    "coalesce": pc.coalesce,
    "lower": _case("ascii_lower", str.lower),
    "upper": _case("ascii_upper", str.upper),
    "trim": lambda values: pc.utf8_trim(values, characters=" "),
    "ltrim": lambda values: pc.utf8_ltrim(values, characters=" "),
    "rtrim": lambda values: pc.utf8_rtrim(values, characters=" "),
    "length": pc.utf8_length,
    "octets_as_text": lambda values: map_distinct(values, lambda octets: octets.decode("latin-1"), pa.string()),
    "text_as_octets": lambda values: map_distinct(values, lambda text: text.encode("latin-1"), pa.binary()),
    "concat": lambda *values: pc.binary_join_element_wise(*values, ""),
    "substring": lambda values, *where: pc.utf8_slice_codeunits(values, *slice_of(*where)),
    "address": address_texts,
    "within": lambda values, low, high: pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high)),
    "date_trunc": date_trunc,
    **{f"{name}_checked": _make_checked(name) for name in _OVERFLOWS},
    **{f"try_{name}": partial(forgive, _make_checked(name)) for name in ("add", "subtract", "multiply")},
    "try_divide": make_division(pc.divide),
    "try_mod": make_division(_modulo),
    **{name: part_of(name) for name in PARTS},
    "seconds from": seconds_of,
    **{name: _of_texts(*made) for name, made in TEXTS.items()},
    **{f"{name}_checked": _of_texts(*TEXTS[name]) for name in ONLY_ANSI},
    **{to: partial(forgive, _of_texts(*TEXTS[name])) for to, name in TRIED.items()},
    **REGEXES,
    **{name: vectorised(*made) for name, made in MATHS.items()},
    **MOMENTS,
    **INTERVALS,
    "concat_ws": _concat_ws,
    "is_variant_null": lambda values: pc.fill_null(_of_texts(is_variant_null, pa.bool_())(values), False),
    "format_string": _format_string,
    "modulo_decimal": make_division(_decimal_rest),
    "modulo_decimal_checked": make_division(_decimal_rest, True),
    "make_date_checked": _make_date_checked,
}


def literal(type: str, text: str) -> pa.Scalar:
    """Returns the value of a literal; the text of a date or timestamp is its number."""
    arrow = arrow_type(type)
    if pa.types.is_boolean(arrow):
        return pa.scalar(text == "true", arrow)
    if pa.types.is_integer(arrow):
        return pa.scalar(int(text), arrow)
    if pa.types.is_floating(arrow):
        return pa.scalar(float(text), arrow)
    if pa.types.is_decimal(arrow):
        return pa.scalar(Decimal(text), arrow)
    if pa.types.is_string(arrow):
        return pa.scalar(text, arrow)
    if pa.types.is_binary(arrow):
        return pa.scalar(bytes.fromhex(text), arrow)
    return pa.scalar(int(text), pa.int32() if pa.types.is_date(arrow) else pa.int64()).cast(arrow)
