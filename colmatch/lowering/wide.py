"""Decimals of more than 18 digits as bytes, in the order of the numbers.

Such a number may be beyond 64 bits, so its value cannot be its key. It is treated like a string:
its key is its place among the literals that expressions compare the column with. So every value and
every literal is exact, also after later updates, and kernels know nothing of decimals.

A value has 17 bytes, which ``events/exact.py`` makes: its sign and size, then its unscaled number.
A literal has the bytes of the value below it, then as text the digits that no value has. 1.005 is
between 1.00 and 1.01 of a column with two digits after the point. A literal beyond all values has
17 bytes that no value has, then its number.

Another way was to have keys of 64 bits that stop at the ends, and to refuse literals there. Then a
decimal(38, 18), Spark's own for large numbers, could not be compared with 10.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from math import isfinite
from typing import Any
from uuid import UUID as Uuid

from colmatch.errors import show_value
from colmatch.given.schema import UUID, Family, Type
from colmatch.lowering.floors import Side, number_of, numbers_of_double
from colmatch.lowering.forms import Kind
from colmatch.lowering.keys import NEVER_ROUNDS

Encode = Callable[[Any], bytes]  # one literal -> its bytes for comparisons

SIZE = 17  # bytes of a value
_BELOW, _ABOVE = b"\x00" * SIZE, b"\xff" * SIZE  # no value has these
_FLIPPED = bytes(range(255, -1, -1))
_TINY_ABOVE, _TINY_BELOW = b"!", b"~"  # for digits too far behind the point, around all other digits
_FAR = 1000  # most digits behind the point that count


def encoder(type: Type, kind: Kind, negative: bool, side: Side | None = None) -> Encode:
    """Returns a function that makes the bytes of a literal of a textual type.

    side : of the numbers that meet the literal as doubles

    The function raises ValueError for a literal that is not a value of ``kind``.
    """
    if type.family is Family.WIDE_DECIMAL and side is not None:
        return lambda value: _side_bytes(float(number_of(value, negative)), type.scale, side)
    if type.family is Family.WIDE_DECIMAL:
        return lambda value: wide_bytes(number_of(value, negative), type.scale)
    if type == UUID and kind is Kind.STRING:
        return _uuid_bytes
    return lambda value: value.encode() if isinstance(value, str) else value


def _uuid_bytes(value: str | bytes) -> bytes:
    """Returns the bytes of a UUID's text."""
    text = value if isinstance(value, str) else value.decode()
    try:
        return Uuid(text).bytes
    except ValueError:
        raise ValueError(f"{show_value(text)} is no UUID, as '550e8400-e29b-41d4-a716-446655440000' is") from None


def wide_bytes(number: Decimal, scale: int) -> bytes:
    """Returns the bytes of a literal for columns with so many digits after the point."""
    if not number.is_finite() or (number and number.adjusted() + scale > 37):
        below = not number.is_nan() and number < 0
        return (_BELOW if below else _ABOVE) + str(number).encode()
    if number and number.adjusted() + scale < -_FAR:
        return _floor_bytes(0 if number > 0 else -1) + (_TINY_ABOVE if number > 0 else _TINY_BELOW)
    scaled = NEVER_ROUNDS.scaleb(number, scale)
    floor = int(scaled.to_integral_value(ROUND_FLOOR, NEVER_ROUNDS))
    rest = NEVER_ROUNDS.subtract(scaled, Decimal(floor))
    digits = "" if not rest else f"{rest:f}".partition(".")[2].rstrip("0")
    return _floor_bytes(floor) + digits.encode()


def _side_bytes(double: float, scale: int, side: Side) -> bytes:
    number = Decimal(numbers_of_double(double, scale)[side.value]) if isfinite(double) else Decimal(double)
    return wide_bytes(number.scaleb(-scale, NEVER_ROUNDS), scale)


def _floor_bytes(floor: int) -> bytes:
    """Returns the bytes of a value, see ``events.exact.ordered_bytes``."""
    size = (floor.bit_length() + 7) // 8
    body = abs(floor).to_bytes(size, "big").ljust(SIZE - 1, b"\x00")
    return bytes([128 + size]) + body if floor >= 0 else bytes([128 - size]) + body.translate(_FLIPPED)


def _floor_of(value: bytes) -> int:
    """Returns the unscaled number of a value."""
    size, body = value[0] - 128, value[1:]
    if size < 0:
        return -int.from_bytes(body.translate(_FLIPPED)[:-size], "big")
    return int.from_bytes(body[:size], "big")


def wide_text(data: bytes, scale: int) -> str:
    """Writes the literal with these bytes, as an expression has it."""
    head, rest = data[:SIZE], data[SIZE:].decode()
    if head in (_BELOW, _ABOVE):
        return rest if Decimal(rest).is_finite() else f"CAST('{rest}' AS DOUBLE)"
    number = Decimal(_floor_of(head))
    if rest.isdigit():
        number = NEVER_ROUNDS.add(number, Decimal(f"0.{rest}"))
    return f"{number.scaleb(-scale, NEVER_ROUNDS):f}"
