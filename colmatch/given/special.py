"""The special functions of expressions: their columns, and their arguments as bytes.

``segment_within(seen, now, 12, 3600)`` tests whether a row of the events is in segment 12. Many
lists of arguments occur over the same columns. So the function *of these columns* is an attribute
(role CALL), and a list of arguments is one of its literals. A literal has a fixed form, so that
100,000 of them are decoded at once. The empty literal means that something the function reads is
unknown.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

import pyarrow as pa

CIRCLE, WITHIN, BEFORE, CAP = "geo_within_radius", "segment_within", "segment_before", "within_frequency_cap"
# Types of arguments, in the words of an error.
NUMBER, WHOLE, UINT32, TEXT = "a number", "a whole number of 64 bits", "a whole number below 2^32", "a string"
DEGREES, CLOCK = "a number of degrees", "a number of seconds, or a timestamp"
SEGMENT_FIELDS = {"id": pa.int64(), "timestamp": pa.int64()}
CAP_FIELDS = {"type": pa.string(), "id": pa.int64(), "ns": pa.string(), "value": pa.int64(), "timestamp": pa.int64()}


class Function(NamedTuple):
    """A special function: the columns that it reads, and the arguments behind them."""

    reads: tuple[str | dict[str, pa.DataType], str]  # DEGREES, CLOCK, or the fields of structs in lists
    takes: tuple[str, ...]
    named: tuple[str, str]  # the columns that it reads in be-tree's language
    betree: str  # an example in that language
    marks_false: bool = False  # rows have entries for arguments that make it false, and none without structs

    @property
    def numbers(self) -> list[int]:
        """The places of the arguments that are numbers."""
        return [i for i, kind in enumerate(self.takes) if kind != TEXT]

    @property
    def texts(self) -> list[int]:
        """The places of the arguments that are strings."""
        return [i for i, kind in enumerate(self.takes) if kind == TEXT]


_IN_BETREE = "(12, 3600), or with an attribute before the id"
_SEGMENT = (SEGMENT_FIELDS, CLOCK), (WHOLE, WHOLE)
_NAMED = ("segments_with_timestamp", "now")
SPECIAL = {
    CIRCLE: Function(
        reads=(DEGREES, DEGREES),
        takes=(NUMBER, NUMBER, NUMBER),
        named=("latitude", "longitude"),
        betree="geo_within_radius(48.2, 16.4, 10.0)",
    ),
    WITHIN: Function(*_SEGMENT, _NAMED, WITHIN + _IN_BETREE),
    BEFORE: Function(*_SEGMENT, _NAMED, BEFORE + _IN_BETREE),
    CAP: Function(
        reads=(CAP_FIELDS, CLOCK),
        takes=(TEXT, UINT32, TEXT, UINT32, WHOLE),
        named=("frequency_caps", "now"),
        betree='within_frequency_cap("flight", "namespace", 5, 3600)',
        marks_false=True,
    ),
}
# The numbers of a literal, as ``struct`` has them; strings follow, separated by zeros.
FORMS = {
    name: struct.Struct("<" + "".join(["d" if each.takes[i] == NUMBER else "q" for i in each.numbers]))
    for name, each in SPECIAL.items()
}
UNKNOWN = b""  # literal of rows with something unknown that the function reads
PLACE = "…"  # in an attribute's name, in place of the arguments


class Call(NamedTuple):
    """A function and the columns that it reads, each a path of names.

    The function is a special one, or tests elements of lists (``elements.py``). These have details.
    """

    function: str
    columns: tuple[tuple[str, ...], ...]
    details: dict[str, Any] | None = None

    @property
    def key(self) -> str:
        """Returns the key of the attribute."""
        return json.dumps(self)

    @property
    def clock(self) -> str | None:
        """The column with the current time, None if the function needs none."""
        special = SPECIAL.get(self.function)
        return self.columns[1][0] if special is not None and special.reads[1] == CLOCK else None

    @property
    def marks_false(self) -> bool:
        """Returns whether rows have entries for arguments that make the function false."""
        return self.function in SPECIAL and SPECIAL[self.function].marks_false

    @staticmethod
    def of(key: str) -> Call:
        """Returns the call with this key."""
        function, columns, details = json.loads(key)
        return Call(function, tuple(map(tuple, columns)), details)


def pack(function: str, arguments: tuple[Any, ...]) -> bytes:
    """Packs arguments into a literal: numbers, and strings behind them.

    Raises
    ------
    ValueError : a string has a zero character
    struct.error, OverflowError : a number does not fit
    """
    special = SPECIAL[function]
    texts = [arguments[i] for i in special.texts]
    if any("\0" in text for text in texts):
        raise ValueError
    return FORMS[function].pack(*[arguments[i] for i in special.numbers]) + "\0".join(texts).encode()


def unpack(function: str, data: bytes) -> tuple[Any, ...]:
    """Unpacks the arguments of a literal."""
    special, form = SPECIAL[function], FORMS[function]
    arguments = dict(zip(special.numbers, form.unpack_from(data), strict=True))
    if special.texts:
        arguments |= zip(special.texts, data[form.size :].decode().split("\0"), strict=True)
    return tuple([arguments[i] for i in range(len(special.takes))])
