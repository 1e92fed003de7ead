"""Settings of a session that change what expressions mean."""

from __future__ import annotations

from pyspark.sql import SparkSession

from colmatch.errors import OptionError
from colmatch.matcher import Matcher
from colmatch.session import same_zone


def is_on(spark: SparkSession, setting: str) -> bool:
    """Says whether a setting of a session is true."""
    return (spark.conf.get(setting) or "").strip().lower() == "true"


def zone_of(spark: SparkSession) -> str:
    """Returns the time zone of a session."""
    return spark.conf.get("spark.sql.session.timeZone") or ""


def check_settings(spark: SparkSession, matcher: Matcher) -> None:
    """Checks that expressions mean in a session what they mean in a matcher.

    Raises OptionError: they do not, naming the setting.
    """
    _check_zone(spark, matcher)
    _check_mode(spark, matcher)
    _check_sizes(spark, matcher)


def _check_zone(spark: SparkSession, matcher: Matcher) -> None:
    """Checks that the session has the zone in which literals were read, if any was."""
    read, literal = matcher.options.timezone, matcher.local_literal
    session = zone_of(spark)
    if literal is not None and not same_zone(read, session):
        raise OptionError(
            f"parts of timestamps or timestamp literals, {literal!r} for one, were read in the zone {read!r}, and the zone of this session "
            f"is {session!r}: "
            f"build the matcher with Options(timezone={session!r}), or set spark.sql.session.timeZone to {read!r}, "
            "or give both columns and literals a zone"
        )


def _check_mode(spark: SparkSession, matcher: Matcher) -> None:
    """Checks that the session has the matcher's ANSI mode, if a value depends on it."""
    value, ansi = matcher.moded_value, matcher.options.ansi
    if value is not None and is_on(spark, "spark.sql.ansi.enabled") != ansi:
        raise OptionError(
            f"{value!r}, for one, was built with Options(ansi={ansi}), and this session has "
            f"spark.sql.ansi.enabled={str(not ansi).lower()}, in which an overflow, a division by zero or a value that "
            f"does not fit a cast {'is NULL or wraps' if ansi else 'is an error'}: build the matcher with "
            f"Options(ansi={not ansi}), or set spark.sql.ansi.enabled to {str(ansi).lower()}"
        )


def _check_sizes(spark: SparkSession, matcher: Matcher) -> None:
    """Checks that the session takes the size of NULL for NULL, if any size is asked for."""
    column = matcher.sized_column
    legacy = not is_on(spark, "spark.sql.ansi.enabled") and is_on(spark, "spark.sql.legacy.sizeOfNull")
    if column is not None and legacy:
        raise OptionError(
            f"size({column}) of NULL is NULL, and -1 in this session: set spark.sql.legacy.sizeOfNull to false, or "
            "spark.sql.ansi.enabled to true"
        )
