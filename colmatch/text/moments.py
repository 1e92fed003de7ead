"""Dates and timestamps in texts, in the forms that Spark reads.

A date is ``2024``, ``2024-3`` or ``2024-3-1``, with anything behind a space or ``T``. A timestamp
may go on with hours, minutes, seconds and a fraction, and a time zone behind the seconds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from colmatch.given.session import time_zone

_SPACES = "".join(map(chr, [*range(33), 127]))  # Spark strips these from both ends
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_MOMENT = re.compile(
    r"(?:([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](?P<time>.*))?)?)?|(?P<alone>T.*|\d{1,2}:.*))",
    re.ASCII | re.DOTALL,
)
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?([^\d].*)?)?)?", re.ASCII | re.DOTALL)
_OFFSET = re.compile(r"([+-])(\d\d?)(?:(?::(\d\d)(?::(\d\d))?)|(\d\d)(\d\d)?)?", re.ASCII)
_LEAST_DAY, _MOST_DAY = -(1 << 31), (1 << 31) - 1
DAY = 86_400 * 10**9  # nanoseconds
_SHORT = {  # Java's own names
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
    "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


class Moment(NamedTuple):
    """A timestamp as a text has it.

    day : since 1970; None for a time of day alone
    nanos : since midnight, on the clocks of the zone
    zone : name of a region or ``+HH:MM:SS``; None if the text has none
    """

    day: int | None
    nanos: int
    zone: str | None


def read_date(text: str) -> int | None:
    """Returns the days since 1970 of a text; None if it is no date."""
    found = _DATE.fullmatch(text.strip(_SPACES))
    return None if found is None else _day(*found.groups())


def read_moment(text: str) -> Moment | None:
    """Returns the timestamp of a text; None if it is none."""
    found = _MOMENT.fullmatch(text.strip(_SPACES))
    if found is None:
        return None
    alone, time = found["alone"], found["time"]
    if alone and alone[0] == "T" and text[0] != "T":  # Spark strips no spaces before this T
        return None
    day = None if alone else _day(*found.groups()[:4])
    if day is None and not alone:
        return None
    if time is None and not alone:
        return Moment(day, 0, None)
    parts = _TIME.fullmatch(time if alone is None else alone.removeprefix("T"))
    if parts is None:
        return None
    hour, minute, second = (int(part or 0) for part in parts.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        return None
    zone = None
    if parts[5] is not None:
        zone = read_zone(parts[5].strip(_SPACES))
        if zone is None:
            return None
    fraction = int((parts[4] or "")[:9].ljust(9, "0"))
    return Moment(day, (hour * 3600 + minute * 60 + second) * 10**9 + fraction, zone)


def _day(sign: str, year: str, month: str | None, day: str | None) -> int | None:
    return day_of(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1))


def day_of(year: int, month: int, day: int) -> int | None:
    """Returns the days since 1970 of a date of any year; None if the calendar has no such day."""
    if not 1 <= month <= 12 or not 1 <= day <= _days_in(year, month):
        return None
    # The year begins in March, so that a leap day is its last one
    year -= month < 3
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    number = year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468
    return number if _LEAST_DAY <= number <= _MOST_DAY else None


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@lru_cache(1024)
def read_zone(text: str) -> str | None:
    """Returns the name of a region, or the offset as ``+HH:MM:SS``; None if it is no zone."""
    name = re.sub(r"([+-])(\d):", r"\g<1>0\2:", text, count=1, flags=re.ASCII)
    name = re.sub(r"([+-]\d\d):(\d)$", r"\1:0\2", name, count=1, flags=re.ASCII)
    name = _SHORT.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return "+00:00:00"
    prefix = next((word for word in ("UTC", "GMT", "UT", "") if name.startswith(word)), "")
    offset = name[len(prefix) :]
    if offset[:1] in ("+", "-"):
        found = _OFFSET.fullmatch(offset)
        if found is None:
            return None
        hours, minutes, seconds = int(found[2]), int(found[3] or found[5] or 0), int(found[4] or found[6] or 0)
        if len(found[2]) == 1 and len(offset) > 2:
            return None
        fits = minutes < 60 and seconds < 60 and hours * 3600 + minutes * 60 + seconds <= 18 * 3600
        return f"{found[1]}{hours:02}:{minutes:02}:{seconds:02}" if fits else None
    try:
        time_zone(name)
    except ValueError:
        return None
    return None if name[:1].islower() else name


def offset_of(zone: str) -> int | None:
    """Returns the seconds that an offset of ``read_zone`` is ahead of UTC; None for a region."""
    if zone[0] not in "+-":
        return None
    seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60 + int(zone[7:9])
    return -seconds if zone[0] == "-" else seconds
