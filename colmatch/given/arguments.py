"""Checks of arguments from callers; the results are plain Python values.

Each function looks at the type of an argument first. It never uses the argument's truth, length or
equality: arrays have no truth, and objects of a caller's own may raise. Subclasses of Python's
types and scalars of NumPy become values of Python's own types.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np

from colmatch.errors import OptionError, show_value

Choice = TypeVar("Choice", bound=str)  # a Literal
MOST_BITS = 4096  # bits of a whole number; Python makes no text of more than 4,300 digits
_LOCAL = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL)
_PLAIN = (int, str, bool, float, type(None))


def python_value(value: Any) -> Any:
    """Returns a whole number, a Boolean or a text as one of Python's own, and all else unchanged.

    A ``timedelta64``, which NumPy counts among its integers, is no number here.
    """
    if type(value) in _PLAIN or isinstance(value, np.timedelta64):
        return value
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    if isinstance(value, int):
        return int.__int__(value)
    return str.__str__(value) if isinstance(value, str) else value


def whole_number(value: Any) -> int | None:
    """Returns a whole number as Python's own; None for anything else.

    Booleans are no numbers, and neither are integers of more than ``MOST_BITS`` bits.
    """
    plain = python_value(value)
    return plain if type(plain) is int and plain.bit_length() <= MOST_BITS else None


def most_of(share: float, count: int) -> int:
    """Returns how many of some things are within a share, without a rounding error of the share."""
    return int(Decimal(repr(float(share))) * count)


def number(value: Any) -> int | float | None:
    """Returns a whole number or a float as Python's own; None for anything else."""
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, np.floating):
        return float(value)
    return whole_number(value)


def double(value: Any) -> float | None:
    """Returns a number as a float; None for anything else, and for numbers that are too large.

    Decimals and fractions are numbers, too.
    """
    plain = value if isinstance(value, (Decimal, Fraction)) else number(value)
    with suppress(OverflowError, ValueError):  # ValueError: a signalling NaN
        return None if plain is None else float(plain)
    return None


def text(value: Any) -> str | None:
    """Returns a text as Python's own; None for anything else."""
    return str.__str__(value) if isinstance(value, str) else None


def is_listed(value: Any) -> bool:
    """Returns whether a value is a list of something: an iterable that is no text.

    An array needs at least one dimension.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return False
    return not isinstance(value, np.ndarray) or value.ndim > 0


def members(value: Any) -> list[Any] | None:
    """Returns the members of a list of something; None for anything else.

    Exceptions of a caller's own iterator come through.
    """
    return list(value) if is_listed(value) else None


def file_name(value: Any) -> str | None:
    """Returns a path as a text that the system accepts; None for anything else.

    A path may be an address: ``file:/a%20b`` or ``file:///a%20b`` is ``/a b``.
    """
    with suppress(TypeError, ValueError):
        name = str.__str__(os.fsdecode(value))
        local = _LOCAL.fullmatch(name)
        if local:
            name = unquote(local[1], errors="surrogateescape")
        os.fsencode(name)
        return name
    return None


def check_whole(what: str, value: Any, low: int, high: int, most: str = "") -> int:
    """Returns a whole number from ``low`` to ``high``, or raises OptionError.

    what : the argument's name in the error, with braces for its value: ``Options(x={})``
    most : text for ``high`` in the error
    """
    plain = whole_number(value)
    if plain is None or not low <= plain <= high:
        raise OptionError(f"{what.format(show_value(value))}: a whole number from {low} to {most or high} is needed")
    return plain


def check_flag(what: str, value: Any) -> bool:
    """Returns a flag, which must be True or False.

    what : as for ``check_whole``
    """
    flag = python_value(value)
    if type(flag) is not bool:
        raise OptionError(f"{what.format(show_value(value))}: True or False is needed")
    return flag


def check_choice(what: str, value: Any, allowed: Collection[Choice]) -> Choice:
    """Returns a text, which must be one of ``allowed``.

    what : as for ``check_whole``
    """
    choice: Any = text(value)
    if choice is None or choice not in allowed:
        *others, last = map(repr, allowed)
        raise OptionError(f"{what.format(show_value(value))}: {', '.join(others)} or {last} is needed")
    return choice  # type: ignore[no-any-return]
