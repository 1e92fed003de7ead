"""The special functions of expressions: what they read, and their arguments as bytes.

``segment_within(seen, now, 12, 3600)`` asks whether a row of the events is in segment 12. Over the
same columns many lists of arguments are asked, so the function *of these columns* is an attribute
(role CALL), and a list of arguments is one of its literals. A literal has a fixed form, so that
100,000 of them are decoded at once. The empty literal stands for "something that it reads is not
known".
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

CIRCLE, WITHIN, BEFORE, CAP = "geo_within_radius", "segment_within", "segment_before", "within_frequency_cap"
FORMS = {
    CIRCLE: "<ddd",
    WITHIN: "<qq",
    BEFORE: "<qq",
    CAP: "<qqq",
}  # numbers; then a cap's type, a zero, its name space
ARGUMENTS = {CIRCLE: 3, WITHIN: 2, BEFORE: 2, CAP: 5}
CLOCKED = (WITHIN, BEFORE, CAP)  # whose second column is the clock
UNKNOWN = b""  # the literal of rows in which something that the function reads is not known
PLACE = "…"  # in an attribute's name, where arguments stand


class Call(NamedTuple):
    """A special function and the columns that it reads, each the names that lead to it."""

    function: str
    columns: tuple[tuple[str, ...], ...]

    @property
    def key(self) -> str:
        """Returns what an attribute has for its key."""
        return json.dumps(self)

    @property
    def clock(self) -> str | None:
        """The column that says what time it is, None where the function needs none."""
        return self.columns[1][0] if self.function in CLOCKED else None

    @staticmethod
    def of(key: str) -> Call:
        """Returns the call whose key it is."""
        function, columns = json.loads(key)
        return Call(function, tuple(map(tuple, columns)))


def pack(function: str, arguments: tuple[Any, ...]) -> bytes:
    """Arguments as a literal.

    Of a cap, arguments are type, id, name space, value and seconds, as SQL has them.

    Raises
    ------
    ValueError : a string has a zero character
    struct.error, OverflowError : a number does not fit
    """
    if function != CAP:
        return struct.pack(FORMS[function], *arguments)
    type, id, space, value, seconds = arguments
    if "\0" in type + space:
        raise ValueError
    return struct.pack(FORMS[CAP], id, value, seconds) + f"{type}\0{space}".encode()


def unpacked(function: str, data: bytes) -> tuple[Any, ...]:
    """Returns the arguments that were packed."""
    form = FORMS[function]
    numbers = struct.unpack_from(form, data)
    if function != CAP:
        return numbers
    type, space = data[struct.calcsize(form) :].decode().split("\0")
    return type, numbers[0], space, *numbers[1:]
