"""Settings of a session that change the meaning of expressions."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from colmatch.errors import OptionError
from colmatch.given.declared import arrow_type_of
from colmatch.given.options import DoubleQuotes
from colmatch.given.session import ANSI, LEGACY_SIZES, ZONE, same_zone
from colmatch.matcher import Matcher

QUOTED_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"
_READ_OTHERWISE = {
    "spark.sql.parser.escapedStringLiterals": r"a backslash stands for itself, as in '\d'",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "two quotes in a text are none, as in 'it''s'",
}


def is_on(spark: SparkSession, setting: str) -> bool:
    """Returns whether a setting of a session is true."""
    return (spark.conf.get(setting) or "").strip().lower() == "true"


def _is_turned_on(spark: SparkSession, setting: str) -> bool:
    """Returns whether a setting that is off by default is true; some versions of Spark lack it."""
    return (spark.conf.get(setting, "false") or "").strip().lower() == "true"


def double_quotes_of(spark: SparkSession) -> DoubleQuotes:
    """Returns the meaning of double quotes in a session."""
    return "names" if is_on(spark, ANSI) and _is_turned_on(spark, QUOTED_NAMES) else "texts"


def zone_of(spark: SparkSession) -> str:
    return spark.conf.get(ZONE) or ""


def arrow_schema(schema: StructType, zone: str) -> pa.Schema:
    """Returns the Arrow schema of data from and to Spark.

    zone : time zone of timestamps with a zone
    """
    return pa.schema(list(arrow_type_of(schema, zone)))


class SessionSettings(NamedTuple):
    """The settings of a session that matter to expressions. They can be sent to workers."""

    zone: str
    ansi: bool
    legacy_sizes: bool  # the size of NULL is -1
    double_quotes: DoubleQuotes = "texts"
    read_otherwise: str = ""  # a true setting that changes the reading of texts in quotes

    @staticmethod
    def of(spark: SparkSession) -> SessionSettings:
        ansi = is_on(spark, ANSI)
        legacy_sizes = not ansi and is_on(spark, LEGACY_SIZES)
        otherwise = next((setting for setting in _READ_OTHERWISE if _is_turned_on(spark, setting)), "")
        return SessionSettings(zone_of(spark), ansi, legacy_sizes, double_quotes_of(spark), otherwise)


def check_settings(session: SessionSettings, matcher: Matcher) -> None:
    """Checks that expressions mean the same in a session and in a matcher.

    Raises OptionError: they do not; the message names the setting.
    """
    _check_zone(session, matcher)
    _check_mode(session, matcher)
    _check_sizes(session, matcher)
    _check_quotes(session, matcher)


def _check_zone(session: SessionSettings, matcher: Matcher) -> None:
    """Checks that the session has the zone of the matcher, if a literal was read in that zone."""
    read, literal = matcher.options.timezone, matcher.spark_settings.get(ZONE)
    if literal is not None and not same_zone(read, session.zone):
        raise OptionError(
            f"parts of timestamps or timestamp literals, {literal!r} for one, were read in the zone {read!r}, and the zone of this session "
            f"is {session.zone!r}: "
            f"build the matcher with Options(timezone={session.zone!r}), or set spark.sql.session.timeZone to {read!r}, "
            "or give both columns and literals a zone"
        )


def _check_mode(session: SessionSettings, matcher: Matcher) -> None:
    """Checks that the session has the matcher's ANSI mode, if a value depends on it."""
    value, ansi = matcher.spark_settings.get(ANSI), matcher.options.ansi
    if value is not None and session.ansi != ansi:
        raise OptionError(
            f"{value!r}, for one, was built with Options(ansi={ansi}), and this session has "
            f"spark.sql.ansi.enabled={str(not ansi).lower()}, in which an overflow, a division by zero or a value that "
            f"does not fit a cast {'is NULL or wraps' if ansi else 'is an error'}: build the matcher with "
            f"Options(ansi={not ansi}), or set spark.sql.ansi.enabled to {str(ansi).lower()}"
        )


def _check_quotes(session: SessionSettings, matcher: Matcher) -> None:
    """Checks that the session reads quotes as the matcher does; only the matcher may read names."""
    if matcher.language != "sql":
        return
    if session.read_otherwise:
        meaning = _READ_OTHERWISE[session.read_otherwise]
        raise OptionError(f"{session.read_otherwise} is true, with which {meaning}: set it to false")
    if session.double_quotes == "names" and matcher.options.double_quotes == "texts":
        raise OptionError(
            f"double quotes stand around names in this session ({QUOTED_NAMES} is true), and around texts in the matcher: "
            'build it with Options(double_quotes="names"), or set that to false'
        )


def _check_sizes(session: SessionSettings, matcher: Matcher) -> None:
    """Checks that the size of NULL is NULL in the session, if an expression uses a size."""
    column = matcher.spark_settings.get(LEGACY_SIZES)
    if column is not None and session.legacy_sizes:
        raise OptionError(
            f"size({column}) of NULL is NULL, and -1 in this session: set spark.sql.legacy.sizeOfNull to false, or "
            "spark.sql.ansi.enabled to true"
        )
