"""Intervals: ``INTERVAL 7 DAYS``, ``INTERVAL '1:30' HOUR TO MINUTE`` and the like.

As in Spark, an interval has months, or days and times, but not both.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from colmatch.errors import show_value
from colmatch.lowering.times import interval_text

SECOND, DAY = 10**6, 86_400 * 10**6  # microseconds
MONTHS, DAYS, TIMES = "months", "days", "times"  # what an interval has; days alone may be added to a date
_UNITS = {
    "year": (MONTHS, 12), "month": (MONTHS, 1), "week": (DAYS, 7 * DAY), "day": (DAYS, DAY), "hour": (TIMES, 3600 * SECOND),
    "minute": (TIMES, 60 * SECOND), "second": (TIMES, SECOND), "millisecond": (TIMES, 1000), "microsecond": (TIMES, 1),
}  # fmt: skip
UNITS = frozenset({*_UNITS, *(f"{unit}s" for unit in _UNITS)})
_PART = re.compile(r"\s*([+-]?)\s*(\d+)(?:\.(\d{0,9}))?\s*([a-z]+)", re.ASCII | re.IGNORECASE)
_RANGE = re.compile(r"(?s)(.*) ([a-z]+) to ([a-z]+)", re.ASCII | re.IGNORECASE)
_CLOCKS = {
    ("day", "hour"): r"(\d+) (\d+)", ("day", "minute"): r"(\d+) (\d+):(\d+)", ("day", "second"): r"(\d+) (\d+):(\d+):(\d+)(?:\.(\d{1,9}))?",
    ("hour", "minute"): r"(\d+):(\d+)", ("hour", "second"): r"(\d+):(\d+):(\d+)(?:\.(\d{1,9}))?",
    ("minute", "second"): r"(\d+):(\d+)(?:\.(\d{1,9}))?", ("year", "month"): r"(\d+)-(\d+)",
}  # fmt: skip
_ORDER = ("day", "hour", "minute", "second")
_LIMITS = {"hour": 23, "minute": 59, "second": 59, "month": 11}
_EXAMPLE = "as in INTERVAL 7 DAYS or INTERVAL '1:30' HOUR TO MINUTE"
MOST = (1 << 63) - 1


class Interval(NamedTuple):
    """A length of time.

    kind : MONTHS, DAYS or TIMES
    amount : months, or else microseconds
    """

    kind: str
    amount: int


def read_interval(text: str) -> Interval:
    """Reads the text behind INTERVAL, without quotes. Raises ValueError: it is no interval."""
    text = text.strip().removeprefix("interval ")
    found = _RANGE.fullmatch(text)
    interval = _read_parts(text) if found is None else _read_range(found[1].strip(), found[2].lower(), found[3].lower())
    if interval is None or abs(interval.amount) > MOST or (interval.kind == MONTHS and abs(interval.amount) >= 1 << 31):
        raise ValueError(f"{show_value(text)} is no interval: it has numbers and units, {_EXAMPLE}")
    return interval


def _read_parts(text: str) -> Interval | None:
    """Reads ``1 day 2 hours``."""
    kinds: dict[str, None] = {}
    amount, at = 0, 0
    while at < len(text.rstrip()):
        part = _PART.match(text, at)
        unit = part[4].lower() if part else ""
        known = _UNITS.get(unit.removesuffix("s"))
        if part is None or known is None or (part[3] is not None and known != _UNITS["second"]):
            return None
        kind, factor = known
        kinds[kind] = None
        value = int(part[2]) * factor + int((part[3] or "").ljust(9, "0")) // 1000
        amount += -value if part[1] == "-" else value
        at = part.end()
    if MONTHS in kinds and len(kinds) > 1:
        raise ValueError("an interval has years and months, or else days and times: add two intervals")
    return Interval(next(reversed(kinds)) if len(kinds) == 1 else TIMES, amount) if kinds else None


def _read_range(value: str, first: str, last: str) -> Interval | None:
    """Reads ``1:30`` with the units of its ends."""
    pattern = _CLOCKS.get((first, last))
    sign = value[:1] if value[:1] in ("+", "-") else ""
    found = re.fullmatch(pattern, value[len(sign) :]) if pattern else None
    if found is None:
        return None
    units = ("year", "month") if first == "year" else _ORDER[_ORDER.index(first) : _ORDER.index(last) + 1]
    amount = 0
    for unit, number in zip(units, found.groups(), strict=False):
        if unit != first and int(number) > _LIMITS[unit]:
            return None
        amount += int(number) * _UNITS[unit][1]
    if last == "second":
        amount += int((found[len(units) + 1] or "").ljust(9, "0")) // 1000
    return Interval(MONTHS if first == "year" else TIMES, -amount if sign == "-" else amount)


def show_interval(interval: Interval) -> str:
    """Returns an interval as SQL."""
    kind, amount = interval
    if kind == MONTHS:
        return f"INTERVAL '{amount}' MONTH"
    if kind == DAYS:
        return f"INTERVAL '{amount // DAY}' DAY"
    return interval_text(amount, ("HOURS", "MINUTES", "SECONDS", "MILLISECONDS"))
