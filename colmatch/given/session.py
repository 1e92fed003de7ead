"""Time zones by name, and the zone of a session.

Timestamp literals without a zone are read in the session's zone.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from colmatch.errors import show_value
from colmatch.kernels._forks import cached_property

# Settings of Spark that change the meaning of some expressions.
ZONE, ANSI, LEGACY_SIZES = "spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.legacy.sizeOfNull"

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)


class SessionParts(NamedTuple):
    """Parts of the expressions that mean something else in another session; None without one."""

    zone: str | None = None  # a literal that was read in the zone of the options, or a value computed in it
    ansi: str | None = None  # a value that was solved for its column as it is without ANSI mode

    def with_others(self, others: SessionParts) -> SessionParts:
        """Returns these parts, with other ones where there is none."""
        return SessionParts(self.zone or others.zone, self.ansi or others.ansi)


def read_session_parts(given: Any) -> SessionParts:
    """Reads parts that were written as a list.

    Raises ValueError: it is no list of texts and None.
    """
    if not isinstance(given, list) or not all(isinstance(part, str | None) for part in given):
        raise ValueError(f"{show_value(given)} has parts of expressions that are no texts")
    if len(given) != len(SessionParts._fields):
        raise ValueError(f"{len(given)} parts of expressions are not {len(SessionParts._fields)}")
    return SessionParts(*given)


class Session:
    """The time zone of a session.

    Attributes
    ----------
    literal : a literal that was read in the zone; None as long as nothing depends on the zone
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.literal: str | None = None

    @cached_property
    def zone(self) -> dt.tzinfo:
        return time_zone(self.name)

    def zone_for(self, literal: Any) -> dt.tzinfo:
        """Returns the zone, to read a literal in it."""
        if self.literal is None:
            self.literal = str(literal) if not isinstance(literal, tuple) else "one of a predicate table"
        return self.zone


def time_zone(name: str) -> dt.tzinfo:
    """Returns the zone of this name: a region (``Europe/Berlin``) or an offset from UTC
    (``+02:00``, ``UTC+2``, ``Z``).

    Raises ValueError if there is none.
    """
    if name in ("Z", "UTC", "GMT"):
        return dt.UTC
    offset = _OFFSET.fullmatch(name)
    if offset:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        if hours * 60 + minutes > 18 * 60 or minutes > 59:
            raise ValueError(f"{show_value(name)} is not an offset from UTC")
        delta = dt.timedelta(hours=hours, minutes=minutes)
        return dt.timezone(-delta if offset[1] == "-" else delta)
    try:
        if name in ("localtime", "posixrules", "Factory"):  # each machine has its own
            raise KeyError(name)
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"{show_value(name)} is not a known time zone") from None


def same_zone(one: str, other: str) -> bool:
    """Returns whether clocks show the same in two zones.

    They do if the zones have one name, or the same offset from UTC all the time.
    """
    if one == other:
        return True
    try:
        offsets = _offsets(time_zone(one)) | _offsets(time_zone(other))
    except ValueError:
        return False
    return len(offsets) == 1


def _offsets(zone: dt.tzinfo) -> set[dt.timedelta | None]:
    """Returns the offsets of a zone in the summers and winters of two centuries."""
    return {zone.utcoffset(dt.datetime(year, month, 1)) for year in range(1850, 2051) for month in (1, 7)}
