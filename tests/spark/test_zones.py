"""Spark: time zones of sessions, instants and literals."""

import pyarrow as pa
import pytest

from colmatch.errors import OptionError
from colmatch.given.options import Options
from colmatch.given.session import ZONE
from colmatch.matcher import Matcher
from colmatch.spark.frames import match

SCHEMA = pa.schema({"seen": pa.timestamp("us", tz="UTC"), "local": pa.timestamp("us")})
ZONED = "seen >= TIMESTAMP '2024-01-01 00:00:00 UTC'"
LOCAL = ["seen >= TIMESTAMP '2024-01-01 00:00:00'", "seen >= DATE '2024-01-01'", "seen >= '2024-01-01'"]
NTZ = "local >= TIMESTAMP '2024-01-01 00:00:00 UTC'"


def found(result):
    return sorted((row.id, row.subscription) for row in result.collect())


def hours(spark):
    """The hours around new year, as instants and as what clocks of the session's zone show."""
    start = "timestamp_seconds(unix_seconds(TIMESTAMP '2023-12-31 21:00:00Z') + 3600 * id)"
    return spark.sql(f"SELECT id, {start} AS seen, to_timestamp_ntz({start}) AS local FROM range(0, 6)")


def test_session_zone_does_not_move_instants(spark, conf):
    matcher = Matcher.build({1: ZONED, 2: "local >= TIMESTAMP_NTZ '2024-01-01 00:00:00'"}, SCHEMA)
    assert matcher.spark_settings.get(ZONE) is None
    conf("spark.sql.session.timeZone", "America/New_York")
    events = hours(spark)
    assert found(match(events.select("id", "seen", "local"), matcher, keep="id")) == [(3, 1), (4, 1), (5, 1)]


@pytest.mark.parametrize("text", [*LOCAL, NTZ])
def test_literals_of_another_session_zone_are_refused(spark, conf, text):
    matcher = Matcher.build({1: ZONED, 2: text}, SCHEMA)
    assert matcher.spark_settings.get(ZONE) is not None
    conf("spark.sql.session.timeZone", "Europe/Berlin")
    with pytest.raises(
        OptionError,
        match="literals, '2024-01-01.*' for one, .* 'UTC', .* 'Europe/Berlin': build .*timezone='Europe/Berlin'",
    ):
        match(hours(spark), matcher)
    conf("spark.sql.session.timeZone", "Etc/UTC")
    match(hours(spark), matcher)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+01:00"])
@pytest.mark.parametrize("text", [*LOCAL, NTZ])
def test_literals_of_this_session_zone_are_those_of_spark(spark, conf, text, zone):
    conf("spark.sql.session.timeZone", zone)
    events = hours(spark)
    wanted = sorted((row.id, 1) for row in events.where(text).collect())
    assert 0 < len(wanted) < 6
    assert found(match(events, Matcher.build({1: text}, SCHEMA, options=Options(timezone=zone)), keep="id")) == wanted
