"""ANSI mode of Spark sessions, and of matchers with computed values."""

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.given.session import ANSI
from colmatch.spark.frames import match, match_topk

SCHEMA = pa.schema({"i": pa.int32(), "s": pa.string(), "d": pa.float64()})
MODED = ["i + 1 < 0", "CAST(s AS INT) IS NULL", "i / 0 IS NULL"]


@pytest.fixture
def events(spark):
    return spark.sql("SELECT CAST(2147483647 AS INT) AS i, 'abc' AS s, 1.5D AS d")


def built(*texts, **options):
    return cm.Matcher.build(dict(enumerate(texts)), SCHEMA, options=cm.Options(**options))


@pytest.mark.parametrize("text", MODED)
def test_a_matcher_of_the_other_mode_is_refused(spark, conf, events, text, tmp_path):
    """Otherwise, where the session raises an error, such a matcher would find a match."""
    without, ansi = built("d > 1", text), built("d > 1", text, ansi=True)
    path = tmp_path / "rules.cm"
    without.save(path)
    said = r"ansi=False\).*spark.sql.ansi.enabled=true.*build .*Options\(ansi=True\).*enabled to false"
    for of in (without, path):
        for found in (lambda of: match(events, of), lambda of: match_topk(events, of, 2)):
            with pytest.raises(cm.OptionError, match=said):
                found(of)
    with pytest.raises(Exception, match="OVERFLOW|CAST_INVALID|DIVIDE_BY_ZERO"):
        events.where(text).collect()
    with pytest.raises(Exception, match="cannot be computed"):
        match(events, ansi).collect()
    conf("spark.sql.ansi.enabled", "FALSE")
    assert events.where(text).count() == 1
    assert sorted(row.subscription for row in match(events, path).collect()) == [0, 1]
    with pytest.raises(cm.OptionError, match=r"ansi=True\).*enabled=false.*Options\(ansi=False\).*enabled to true"):
        match(events, ansi)
    conf("spark.sql.ansi.enabled", " True ")  # Spark takes it so
    with pytest.raises(cm.OptionError, match=said):
        match(events, without)


@pytest.mark.parametrize("ansi", [False, True])
def test_where_the_mode_does_not_matter(spark, events, ansi):
    """It does not matter either once no subscription uses the value that depends on it."""
    of = built("d > 1", "lower(s) = 'abc'", "d * 2 > i", "i % 2 = 1", ansi=ansi)
    assert of.spark_settings.get(ANSI) is None
    assert sorted(row.subscription for row in match(events, of).collect()) == [0, 1, 3]
    of.insert({9: "i * i < 0"})
    assert of.spark_settings.get(ANSI) == "i * i"
    of.delete([9])
    of.compact()
    assert of.spark_settings.get(ANSI) is None
    match(events, of)


def test_the_mode_of_a_solved_value_stays_when_it_is_deleted() -> None:
    """The index has only the intervals of the column, so nothing else knows of the value."""
    of = built("d > 1", "i + 1 < 0")
    assert of.spark_settings == {ANSI: "1 + i"}
    of.delete([1])
    of.compact()
    assert of.spark_settings == {ANSI: "1 + i"}


def test_a_session_with_other_sizes_of_null_is_refused(spark, conf):
    """Without ANSI mode, Spark says that NULL has -1 elements."""
    events = spark.sql("SELECT CAST(NULL AS array<int>) AS list")
    of = cm.Matcher.build({1: "size(list) < 1", 2: "size(list) IS NULL"}, pa.schema({"list": pa.list_(pa.int32())}))
    assert [row.subscription for row in match(events, of).collect()] == [2]
    conf("spark.sql.ansi.enabled", "false")
    assert events.where("size(list) < 1").count() == 1
    with pytest.raises(cm.OptionError, match=r"size\(list\) of NULL is NULL, and -1 in this session: set .*sizeOfNull"):
        match(events, of)
    conf("spark.sql.legacy.sizeOfNull", "false")
    assert [row.subscription for row in match(events, of).collect()] == [2] and not events.where(
        "size(list) < 1"
    ).count()
