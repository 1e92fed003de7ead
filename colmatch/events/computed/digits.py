"""Numbers as texts, with the results of Spark. Batches call them once a distinct number."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

from colmatch.events.computed.failed import Unfit
from colmatch.events.computed.words import REPEATED_MOST

_MASK = (1 << 64) - 1
_PATTERN = re.compile(r"[#,]*([#,0]*)(?:\.(0*)(#*))?")
_CONTEXT = Context(prec=800)


def bin_of(number: int) -> str:
    return f"{number & _MASK:b}"


def hex_of(number: int) -> str:
    return f"{number & _MASK:X}"


def char_of(number: int) -> str:
    return "" if number < 0 else chr(number & 0xFF)


def spaces(count: int) -> str:
    if count > REPEATED_MOST:
        raise Unfit(f"a text has {REPEATED_MOST:,} spaces at most")
    return " " * count


def _digits_of(number: float) -> Decimal:
    """Returns a number with the digits that Java finds; of large whole ones not the fewest."""
    if isinstance(number, int) or not 2.0**53 <= abs(number) < 2.0**63:
        return Decimal(repr(number))
    spare = math.frexp(number)[1] - 55  # bits without a meaning
    unit = 10 ** (len(str(1 << spare)) - 1) if spare > 1 else 1
    whole = (abs(int(number)) + unit // 2) // unit * unit
    return Decimal(whole if number > 0 else -whole)


def format_number(number: float | Decimal, form: int | str) -> str | None:
    """Returns a number with commas, and so many digits behind the point; or in a format of Java."""
    least, fewest, most, grouped = 1, form, form, True
    if isinstance(form, str):
        match = _PATTERN.fullmatch(form) if form else _PATTERN.fullmatch("#,###,###,###,###,###,##0")
        if match is None:
            raise ValueError(f"{form!r:.40} is no format such as '#,##0.00'")
        whole = form.partition(".")[0] if form else "#,##0"
        if "," in whole and len(whole.rpartition(",")[2]) != 3:
            raise ValueError(f"{form!r:.40} does not group digits by three")
        least, grouped = whole.count("0") or int("." in form and "0" not in form), "," in whole
        fewest, most = len(match[2] or ""), len(match[2] or "") + len(match[3] or "")
    elif form < 0:
        return None
    if not isinstance(number, Decimal) and number in (float("inf"), float("-inf")):
        return "∞" if number > 0 else "-∞"
    if number != number:
        return "NaN"
    assert isinstance(most, int) and isinstance(fewest, int)
    shown = number if isinstance(number, Decimal) else _digits_of(number)
    unit = Decimal(1).scaleb(-most)
    if (
        not isinstance(number, Decimal) and abs(_CONTEXT.remainder(shown, unit)) * 2 == unit
    ):  # the digits are halfway, and the double may not be
        shown = Decimal(number)
    rounded = shown.quantize(unit, ROUND_HALF_EVEN, _CONTEXT)
    sign, digits, _ = rounded.as_tuple()
    text = "".join(map(str, digits)).rjust(most + 1, "0")
    whole, fraction = (text[:-most], text[-most:]) if most else (text, "")
    whole = whole.lstrip("0").rjust(least, "0")
    while len(fraction) > fewest and fraction.endswith("0"):
        fraction = fraction[:-1]
    if grouped and whole:
        whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", whole)
    if not whole and not fraction:
        whole = "0"
    return ("-" if sign else "") + whole + ("." + fraction if fraction else "")


class FormatPiece(NamedTuple):
    """A plain text, or the letter of a value with its least width; fill is a space or a zero."""

    text: str
    letter: str = ""
    width: int = 0
    fill: str = " "
    is_left: bool = False


_FORMAT = re.compile(r"%(%|n|(-?)(0?)(\d{0,3})([sd]))|([^%]+)|(%)", re.DOTALL)


def pieces_of_format(format: str, count: int) -> list[FormatPiece]:
    """Returns the pieces of a format of Java for so many values.

    Raises ValueError: it has others than %s and %d, or not as many.
    """
    pieces = list[FormatPiece]()
    for match in _FORMAT.finditer(format):
        sign, left, zero, width, letter, plain, odd = match.groups()
        wrong = odd or (zero and (left or letter == "s" or not width)) or (left and not width)
        if wrong:
            raise ValueError(f"{format!r:.80} has more than %s and %d, with a width such as %5d, %-5s or %05d")
        is_plain = plain is not None or letter is None
        text = plain or ("%" if sign == "%" else "\n")
        pieces.append(
            FormatPiece(text) if is_plain else FormatPiece("", letter, int(width or 0), zero or " ", bool(left))
        )
    if sum(bool(piece.letter) for piece in pieces) != count:
        raise ValueError(f"{format!r:.80} does not name {count} values")
    return pieces
