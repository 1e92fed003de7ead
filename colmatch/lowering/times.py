"""Dates, timestamps and time zones: literals as days and nanoseconds since 1970."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from colmatch.errors import show_value
from colmatch.given.schema import Type
from colmatch.given.session import Session, time_zone
from colmatch.text.moments import offset_of, read_date, read_moment

_DAY = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}(?:[ T]\d{1,2}:\d{1,2}.*)?\s*", re.ASCII)
_CLOCK = re.compile(r"\s*(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*", re.ASCII)
EPOCH = dt.date(1970, 1, 1).toordinal()
SECOND, DAY = 10**9, 86_400 * 10**9  # nanoseconds


_UNITS = {"DAYS": DAY // 1000, "HOURS": 3600 * 10**6, "MINUTES": 60 * 10**6, "SECONDS": 10**6, "MILLISECONDS": 1000}


def interval_text(micros: int, units: Sequence[str] = tuple(_UNITS)) -> str:
    """Writes microseconds as an interval of the first unit that has no fraction."""
    unit = next((unit for unit in units if micros % _UNITS[unit] == 0), None)
    return f"INTERVAL {micros} MICROSECONDS" if unit is None else f"INTERVAL {micros // _UNITS[unit]} {unit}"


def days(value: Any) -> int:
    """Returns the days since 1970 of a date: its text or a ``datetime.date``.

    Raises ValueError if the value is no date.
    """
    if isinstance(value, str):
        day = read_date(value)
        if day is None:
            raise _no_moment(value, "a date", "'2013-01-31'")
        return day
    if isinstance(value, dt.datetime) or not isinstance(value, dt.date):
        raise ValueError(f"{show_value(value)} is not a date")
    return int(value.toordinal()) - EPOCH


def _no_moment(text: Any, what: str, example: str) -> ValueError:
    """Returns the error for a text that is no date or timestamp."""
    if isinstance(text, str) and _DAY.match(text):
        return ValueError(f"{show_value(text)} is not a day of the calendar, or no such time")
    return ValueError(f"{show_value(text)} is not {what}: write it as {example}")


def time_of_day(value: Any) -> int:
    """Returns the nanoseconds since midnight of a time of day, which is a text.

    Raises ValueError if the value is no time of day.
    """
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError(f"{show_value(value)} is not a time of day: write it as '10:30:00'")
    return _since_midnight(value, match.groups())


def _since_midnight(text: str, parts: Sequence[str | None]) -> int:
    """Returns the nanoseconds of hour, minute, second and fraction; missing parts are 0."""
    hour, minute, second = (int(part or 0) for part in parts[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{show_value(text)} is not a time of day")
    return (hour * 3600 + minute * 60 + second) * SECOND + int((parts[3] or "").ljust(9, "0"))


def instant(value: Any, type: Type, session: Session) -> int:
    """Returns the nanoseconds since 1970 of a timestamp or date, as a column of ``type`` counts
    them.

    Raises ValueError if the value is no timestamp, or lies outside the years with known time zones.
    """
    try:
        nanos, zone = _local(value)
        if type.unit != "ns":
            nanos -= nanos % 1000  # Spark's timestamps have microseconds: further digits of a literal are cut off
        if type.zone is not None:
            nanos -= _offset(nanos, zone or session.zone_for(value))  # local time to UTC
        elif zone is not None:  # an instant for a column without zone: as on the session's clocks
            nanos -= _offset(nanos, zone)
            utc = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=nanos // SECOND)
            shown = utc.astimezone(session.zone_for(value)).utcoffset()
            assert shown is not None
            nanos += _nanos(shown)
    except OverflowError:
        raise ValueError("a timestamp outside the years 1 to 9999, of which no time zone is known") from None
    return nanos


def _nanos(delta: dt.timedelta) -> int:
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds * 1000


def _offset(nanos: int, zone: dt.tzinfo) -> int:
    """Returns the nanoseconds that local clocks of ``zone`` are ahead of UTC at a local time."""
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=nanos // SECOND)
    ahead = moment.replace(tzinfo=zone).utcoffset()
    assert ahead is not None
    return _nanos(ahead)


def _zone(name: str) -> dt.tzinfo:
    offset = offset_of(name)
    return time_zone(name) if offset is None else dt.timezone(dt.timedelta(seconds=offset))


def _local(value: Any) -> tuple[int, dt.tzinfo | None]:
    """Returns nanoseconds since 1970 on the clock of the literal's own zone, and that zone."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, dt.datetime):
        bare = value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)
        return _nanos(bare), value.tzinfo
    if isinstance(value, dt.date):
        return (value.toordinal() - EPOCH) * DAY, None
    moment = read_moment(value) if isinstance(value, str) else None
    if moment is None or moment.day is None:
        raise _no_moment(value, "a timestamp", "'2013-01-31 10:00:00'")
    return moment.day * DAY + moment.nanos, None if moment.zone is None else _zone(moment.zone)
