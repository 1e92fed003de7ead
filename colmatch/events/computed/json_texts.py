"""JSON texts, read and written as Spark does it.

Python's decoder reads the first value of a text, with Spark's limits and its single quotes. The
rest is not read. A list or object is written again: numbers with a point as Java writes a double,
others digit by digit.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

_DEEPEST, _LONGEST = 1000, 1000  # levels of lists and objects, and digits of numbers
NOTHING = object()  # what is not there
_SPACES = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r"""("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'""", re.DOTALL)
_QUOTE = re.compile(r"""\\(.)|(")""", re.DOTALL)
_ESCAPED = re.compile(r'[\x00-\x1f"\\\ud800-\udfff\U00010000-\U0010ffff]')
ONLY_SIGNS = re.compile(r'[\x00-\x1f"\\]')  # characters that JSON has to escape
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class Written(str):
    """A text that is written as it is: a number, or a sign between values."""

    __slots__ = ()


class Fields(list[tuple[str, Any]]):
    """The fields of an object."""

    __slots__ = ()


# Reading


def read_json(text: str) -> Any:
    """Returns the value of a text, ``NOTHING`` if the text is no JSON."""
    value = read_with(_DECODER, text)
    if value is NOTHING and "'" in text:
        return read_with(_DECODER, _STRING.sub(_with_double_quotes, text))
    return value


def read_with(decoder: json.JSONDecoder, text: str) -> Any:
    """Returns the first value of a text, ``NOTHING`` if it has none.

    decoder : makes a ``Fields`` of each object
    """
    value, rest = _decode(decoder, text)
    if type(value) in _ENDED or not rest or rest in " \t\n\r":
        return value
    is_word = value is None or isinstance(value, bool)
    return value if is_word and not _goes_on(rest) else NOTHING


def _decode(decoder: json.JSONDecoder, text: str) -> tuple[Any, str]:
    """Returns the first value of a text, ``NOTHING`` without one, and the character behind it."""
    start = _SPACES.match(text)
    try:
        value, end = decoder.raw_decode(text, start.end() if start else 0)
    except (ValueError, RecursionError):
        return NOTHING, ""
    is_wrong = isinstance(value, list) and _is_too_deep(text, value)
    return NOTHING if is_wrong else value, text[end : end + 1]


def _goes_on(character: str) -> bool:
    """Returns whether a character behind a word such as true belongs to it."""
    return character.isalnum() or character in "_$"


def _with_double_quotes(string: re.Match[str]) -> str:
    inner = string[1][1:-1] if string[1] is not None else string[2]
    return f'"{_QUOTE.sub(_quote, inner)}"'


def _quote(found: re.Match[str]) -> str:
    """Returns a quote or an escape as it is written in double quotes."""
    return "'" if found[1] == "'" else '\\"' if found[2] else found[0]


def _is_too_deep(text: str, value: Any) -> bool:
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    level, depth = [value], 0
    while level:
        depth += 1
        parts = [field[1] if type(one) is Fields else field for one in level for field in one]
        level = [part for part in parts if isinstance(part, list)]
    return depth > _DEEPEST


def check_digits(text: str) -> None:
    """Raises ValueError: a number has more digits than Spark reads."""
    if len(text) > _LONGEST:
        raise ValueError("the number is too long")


def _whole(text: str) -> Written:
    check_digits(text)
    return Written("0" if text == "-0" else text)


def _double(text: str) -> Written:
    """Returns a number with a point or an exponent as Java writes the nearest double."""
    check_digits(text)
    written = write_double(float(text))
    return Written(written if written[-1].isdigit() else f'"{written}"')


def write_double(value: float) -> str:
    """Returns a double as Java writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    return _with_exponent(value, *_shortest(abs(value)))


def write_float(value: float) -> str:
    """Returns a float of 32 bits as Java writes it."""
    if not math.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e7:
        return write_double(float(str(np.float32(value))))
    digits, _, exponent = np.format_float_scientific(np.float32(abs(value))).partition("e")
    return _with_exponent(value, digits.replace(".", ""), int(exponent))


def _with_exponent(value: float, digits: str, exponent: int) -> str:
    return f"{'-' * (value < 0)}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float) -> tuple[str, int]:
    """Returns the fewest digits that mean a double, two or more, and the exponent of the first.

    Digits that lie halfway between two doubles are not taken.
    """
    halves = [
        (Fraction(value) + Fraction(math.nextafter(value, end))) / 2 for end in (0.0, math.inf) if value < 1.7e308
    ]
    for count in range(1, 17):
        written = f"{value:.{count}e}"
        if float(written) == value and Fraction(Decimal(written)) not in halves:
            break
    digits, _, exponent = written.partition("e")
    return digits.replace(".", "").rstrip("0"), int(exponent)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_ENDED = (str, list, Fields)  # types of values that end by themselves
_DECODER = json.JSONDecoder(
    object_pairs_hook=Fields, parse_float=_double, parse_int=_whole, parse_constant=_refuse, strict=False
)


# Writing


def write_json(value: Any, escaped: re.Pattern[str] = _ESCAPED) -> str:
    """Returns a value as JSON without spaces.

    escaped : finds the characters that are written as escapes
    """
    out: list[str] = []
    stack = [value]
    while stack:
        part = stack.pop()
        if type(part) is Written:
            out.append(part)
        elif type(part) is str:
            out.append(f'"{escaped.sub(_escape, part)}"')
        elif not isinstance(part, list):
            out.append("null" if part is None else "true" if part else "false")
        else:
            is_object = type(part) is Fields
            out.append("{" if is_object else "[")
            stack.append(Written("}" if is_object else "]"))
            for i in range(len(part) - 1, -1, -1):
                stack += [part[i][1], Written(":"), part[i][0]] if is_object else [part[i]]
                if i:
                    stack.append(Written(","))
    return "".join(out)


def _escape(character: re.Match[str]) -> str:
    code = ord(character[0])
    if character[0] in _SHORT:
        return _SHORT[character[0]]
    if code < 0x10000:
        return f"\\u{code:04X}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"
