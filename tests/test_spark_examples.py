"""The examples of Spark's documentation, which colmatch answers as Spark does or names as missing.

Of Spark's functions, 591 in Spark 4.3, those count that are computed from one row and always have
the same result. They have an example that Spark answers as documented, by a value of a simple type.
These are ``COUNTED``. A function is answered if colmatch takes all of these examples, and each
condition on one holds where Spark says so: for the literals of the example, and for NULLs instead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
import spark_examples

import colmatch as cm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION = "4.3"  # of Spark, whose functions are counted here
COUNTED = 308
LEAST = 236  # functions that are answered
PAGE = Path(__file__).parents[1] / "docs" / "spark-functions.md"


@pytest.fixture(scope="module")
def examples(spark: SparkSession) -> dict[str, list[spark_examples.Example]]:
    spark.conf.set("spark.sql.session.timeZone", spark_examples.ZONE)
    found = spark_examples.answered(spark, spark_examples.documented(spark))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return found


@pytest.mark.parametrize("ansi", [True, False])
def test_examples_are_answered_as_spark_does(
    spark: SparkSession, conf: Any, examples: dict[str, list[spark_examples.Example]], ansi: bool
) -> None:
    conf("spark.sql.session.timeZone", spark_examples.ZONE)
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    conf("spark.sql.legacy.sizeOfNull", "false")
    options = cm.Options(ansi=ansi, timezone=spark_examples.ZONE)
    literals = spark_examples.literals(spark, examples)
    types = {text: value.type for text, value in literals.items()}
    asked = {
        example.text: spark_examples.question(example, types, options) for some in examples.values() for example in some
    }
    events = events_of(asked, literals)
    conditions = list(dict.fromkeys(text for question in asked.values() for text in question.texts))
    matcher = cm.Matcher.build(dict(enumerate(conditions)), events.schema, options=options)
    ours = matcher.match_lists(events).to_pylist()
    theirs = spark_examples.truths(spark, events, conditions)
    wrong = [
        f"{text}: {events.slice(row, 1).select(columns_in(text)).to_pylist()}, Spark {theirs[text][row]}"
        for i, text in enumerate(conditions)
        for row in range(events.num_rows)
        if (i in ours[row]) is not theirs[text][row]
    ]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:30])
    missing = [name for name, some in examples.items() if any(not asked[example.text].texts for example in some)]
    named = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    listed = set(re.findall(r"`([^` ]+)`", "".join(named)))
    assert set(missing) <= listed
    if spark.version.startswith(VERSION):
        assert listed <= set(missing)
        assert len(examples) == COUNTED
        assert len(examples) - len(missing) >= LEAST


def columns_in(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\bc\d+\b", text)))


def events_of(asked: dict[str, spark_examples.Question], literals: dict[str, Any]) -> pa.Table:
    """Two events: one with the literals of all examples, and one with NULLs."""
    columns = {name: literals[text] for question in asked.values() for name, text in question.columns.items()}
    some = pa.table(columns)
    nulls = pa.table([pa.nulls(1, field.type) for field in some.schema], schema=some.schema)
    return pa.concat_tables([some, nulls]).combine_chunks()
