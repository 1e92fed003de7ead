"""Dates and times in the texts of JSON, as ISO 8601 writes them."""

from __future__ import annotations

import re
from datetime import date, datetime

from colmatch.errors import EventError, show_value

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?P<time>[T ]\d\d:\d\d(?::\d\d(?:\.(?P<fraction>\d+))?)? ?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
EXAMPLE = "2024-01-31T12:30:00Z"


def read_iso(text: str, message: str) -> date | datetime:
    """Reads ``2024-01-31`` or ``2024-01-31T12:30:00.5+01:00``.

    message : begin of the error

    Raises EventError: it is none, or has nanoseconds, which Python's datetime has not.
    """
    found = _ISO.fullmatch(text)
    if found is None:
        raise EventError(f"{message}: a text of ISO 8601 is needed, as {EXAMPLE}")
    fraction = found["fraction"] or ""
    if fraction[6:].strip("0"):
        raise EventError(f"{message}: a text has microseconds at most; give nanoseconds as numpy.datetime64")
    plain = text.replace(f".{fraction}", f".{fraction[:6].ljust(6, '0')}") if fraction else text
    try:
        if found["time"] is None:
            return date.fromisoformat(plain)
        return datetime.fromisoformat(plain.replace(" Z", "Z").replace(" +", "+").replace(" -", "-"))
    except ValueError as error:
        raise EventError(f"{message}: {show_value(text)} is no such date ({error})") from None
