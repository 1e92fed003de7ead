"""``Options(casts="spark")``: how it is given and kept, and what errors say without it.

``test_differential_casts.py`` compares its casts with those of Spark.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch import col

SPARK: dict[str, Any] = {"casts": "spark"}
SCHEMA = cm.Schema(
    {
        "s": "string", "t": "string", "n": "int", "f": "double", "d": "decimal(8, 2)", "b": "boolean", "day": "date",
        "tags": "array<string>", "nums": "array<int>", "items": "array<struct<sku: string, qty: int>>",
        "user": "struct<tier: string, age: int>",
    }
)  # fmt: skip
EVENTS = pa.table({"s": ["5", "05", "x", "7", "5000000000", None], "n": pa.array([5, 6, 7, None, 0, 5], pa.int32())})


def found(rules: dict[Any, Any], **options: Any) -> list[list[Any]]:
    matcher = cm.Matcher.build(rules, EVENTS.schema, options={**SPARK, **options})
    return [sorted(ids) for ids in matcher.match_lists(EVENTS).to_pylist()]


def refusal(text: Any, options: Any = None) -> str:
    with pytest.raises(cm.ExpressionError) as error:
        cm.Matcher.build({1: text}, SCHEMA, options=options)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "cast"),
    [
        ("s = 5", "CAST(s AS DOUBLE)"), ("n = '5'", "a number"), ("s IN (1, 2)", "CAST(s AS DOUBLE)"),
        ("s BETWEEN 1 AND 5", "CAST(s AS DOUBLE)"),
        ("s <> n", "cast one of them"), ("s + 1 > 5", "CAST(s AS DOUBLE)"), ("upper(n) = '5'", "cast it"), ("sqrt(s) > 2", "a number"),
        ("mod(s, 2) = 1", "a number"), ("pmod(s, 2) = 1", "a number"), ("n LIKE '5%'", "CAST(n AS STRING)"),
        ("coalesce(s, n) = '5'", "cast one of them"), ("user.tier = 1", "a string"),
    ],
)  # fmt: skip
def test_an_error_names_the_cast_and_the_option(text: str, cast: str) -> None:
    said = refusal(text)
    assert cast in said and 'Options(casts="spark")' in said
    cm.Matcher.build({1: text}, SCHEMA, options=SPARK)


@pytest.mark.parametrize(
    "text",
    [
        "array_contains(tags, 5)",
        "greatest(s, 1) = 1",
        "day = 5",
        "s = X'05'",
        "array_contains(s, 5)",
        "soundex(n) = 'A'",
        "tags = array(1)",
    ],
)
def test_what_spark_refuses_is_an_error(text: str) -> None:
    for options in (None, SPARK):
        assert "casts=" not in refusal(text, options)


def test_casts_that_cannot_be_computed_are_errors() -> None:
    assert "write 5.0D" in refusal("exists(tags, x -> x = 5F)", SPARK)
    assert "CAST of double to string" in refusal("f IN ('5')", SPARK)
    assert "'x' does not fit int64" in refusal("n = 'x'", {**SPARK, "ansi": True})


def test_the_option_is_checked_and_kept() -> None:
    with pytest.raises(cm.OptionError, match="casts"):
        cm.Options(casts="all")  # type: ignore[arg-type]
    matcher = cm.Matcher.build({1: "s = 5"}, SCHEMA, options=SPARK)
    assert "casts='spark'" in repr(matcher.options)
    with pytest.raises(cm.OptionError, match="was built with casts='spark'"):
        matcher.options.with_settings(cm.Options())


def test_the_type_of_a_literal_decides() -> None:
    """A text beyond 32 bits is unknown beside an INT, and not beside a BIGINT."""
    rules = {f"{n}": f"NOT (s = {n})" for n in ("5", "6", "6L", "5000000000", "06", "-6")}
    large = found(rules)[4]
    assert large == ["6L"]
    assert found({"null": "n = 'x' IS NULL", "in": "n IN ('x')", "other": "n NOT IN ('x')"})[0] == ["null", "other"]


def test_many_texts_mean_the_same_as_one() -> None:
    """Kernels read many texts, and the literals of one shape distinguish their phrases."""
    texts = [f"{'NOT ' * (i % 2)}(s = {i % 11} AND n < '{i % 9}') OR s IN ({i % 7}, {5 * i})" for i in range(400)]
    texts += [f"s = {4_999_999_990 + i}" for i in range(20)]
    many = found(dict(enumerate(texts)))
    for i in range(0, len(texts), 13):
        assert [[i] if i in ids else [] for ids in many] == [[i] * len(ids) for ids in found({0: texts[i]})], texts[i]


def test_the_builder_means_what_texts_mean() -> None:
    pairs: list[tuple[Any, str]] = [
        (col("s") == 5, "s = 5"), (col("s").isin([5, 7]), "s IN (5, 7)"), (col("n").between("1", 5.5), "n BETWEEN '1' AND 5.5"),
        (col("s") + 1 > 5, "s + 1 > 5"), (col("s") == 5_000_000_000, "s = 5000000000"), (col("s") == col("n"), "s = n"),
        (~(col("s") == 6), "NOT (s = 6)"), (col("n").like("5%"), "n LIKE '5%'"), (col("n").isin(["5", None]), "n IN ('5', NULL)"),
    ]  # fmt: skip
    assert found({i: built for i, (built, _) in enumerate(pairs)}) == found(
        {i: text for i, (_, text) in enumerate(pairs)}
    )


def test_conditions_on_elements() -> None:
    rules = {
        "less": "exists(items, x -> x.sku < 5)",
        "in": "exists(items, x -> x.sku IN (5, 6))",
        "wide": "exists(items, x -> NOT (x.sku = 6L))",
        "text": "exists(items, x -> x.qty = '2' AND x.sku = 5)",
        "all": "forall(tags, x -> x = 1)",
        "count": "size(filter(tags, x -> x = 1)) >= 2",
        "inner": "exists(items, x -> exists(tags, y -> y = 1 AND x.qty = '2'))",
    }
    event = {"items": [{"sku": "05", "qty": 2}, {"sku": "5000000000", "qty": 3}], "tags": ["1", "01"]}
    for some in (rules, {id: rules[id] for id in ("wide", "text")}):
        matcher = cm.Matcher.build(some, SCHEMA, options=SPARK)
        assert matcher.match_one(event) == [id for id in some if id not in ("less", "in")]
    assert refusal("exists(items, x -> x.sku = 5)").count("sku")


@pytest.mark.usefixtures("kept_predicates")
def test_a_list_with_columns_where_nothing_is_unknown() -> None:
    """IN and NOT IN are both false of an absent value."""
    rules = {
        "in": "s IN (n, 'x')",
        "not": "s NOT IN (n, 'x')",
        "neither": "NOT (s IN (n, 'x'))",
        "between": "s NOT BETWEEN 1 AND 5.5",
    }
    matcher = cm.Matcher.build(rules, EVENTS.schema, missing="false", options=SPARK)
    events = [{"s": "5", "n": 5}, {"s": "05", "n": 5}, {"n": 5}, {"s": "x"}, {"s": "7"}]
    found = [matcher.match_one(event) for event in events]
    assert found == [["in"], ["not", "neither"], ["neither"], ["in"], ["neither", "between"]]
    assert "NOT (s IN (n, 'x'))" in str(matcher.explain(events[1], "not"))


def test_texts_as_numbers_of_functions() -> None:
    """Spark reads a literal text where a function takes a literal number, and days of dates."""
    rules = {
        "repeat": "repeat(s, '2') = '77'", "substring": "substring(concat(s, 'xy'), '-2', ' 1 ') = 'x'", "mod": "mod(s, 4) = 3",
        "days": "date_add(day, '-1') = DATE '2024-01-30'", "before": "date_sub(day, '1') = DATE '2024-01-30'",
        "none": "decode(n, 1, 10, 7, 9) < decode(n, 1, 9, 7, 10)", "typed": "decode(n, 1, 10, 9) < 10",
    }  # fmt: skip
    event = {"s": "7", "n": 7, "day": dt.date(2024, 1, 31)}
    for ansi in (False, True):  # without ANSI, a decode without a last value is a text, and '9' > '10'
        matcher = cm.Matcher.build(rules, SCHEMA, options={**SPARK, "ansi": ansi})
        assert matcher.match_one(event) == [id for id in rules if id != "none" or ansi]
    of_column = {1: "date_add(day, s) = DATE '2024-02-07'"}
    assert cm.Matcher.build(of_column, SCHEMA, options={**SPARK, "ansi": True}).match_one(event) == [1]
    assert "does not take string behind a date" in refusal(of_column[1], SPARK)
    for text in ("repeat(s, '2.5') = '7'", "repeat(s, 'x') = '7'", "repeat(s, t) = '7'"):
        assert "takes a literal whole number here" in refusal(text, SPARK)
    assert "'x' does not fit int32" in refusal("date_add(day, 'x') = day", SPARK)


def test_null_is_cast_to_any_type() -> None:
    rules = {
        1: "coalesce(n, CAST(NULL AS INT)) = 7", 2: "if(n = 7, CAST(NULL AS STRING), s) IS NULL", 3: "n IN (CAST(NULL AS BIGINT), 7)",
        4: "CAST(NULL AS DATE) = day", 5: "TRY_CAST(NULL AS DECIMAL(4, 1)) < n",
    }  # fmt: skip
    for options in ({}, SPARK, {"ansi": True}):
        matcher = cm.Matcher.build(rules, SCHEMA, options=options)
        assert matcher.match_one({"n": 7, "s": "x", "day": dt.date(2024, 1, 31)}) == [1, 2, 3]


def test_a_weight_stays() -> None:
    rules = {1: (col("s") == 5).weight(2.0), 2: (col("n") == "5").weight(3.0)}
    matcher = cm.Matcher.build(rules, SCHEMA, options=SPARK)
    assert matcher.match_topk(pa.table({"s": ["5"], "n": pa.array([5], pa.int32())}), 2)["score"].to_pylist() == [
        3.0,
        2.0,
    ]


def test_the_mode_of_a_session_matters() -> None:
    """What is cast once, when a matcher is built, is a part of the mode that it was built for."""
    for text in ("n = '5'", "n IN ('05')", "s = 5", "coalesce(n, s) = '5'", "exists(nums, x -> x = '5')"):
        settings = cm.Matcher.build({1: text}, SCHEMA, options=SPARK).spark_settings
        assert "spark.sql.ansi.enabled" in settings, text
    assert (
        "spark.sql.ansi.enabled"
        not in cm.Matcher.build({1: "n = 5", 2: "n LIKE '5'"}, SCHEMA, options=SPARK).spark_settings
    )


def test_conditions_that_are_texts() -> None:
    """ANSI mode takes a text as a condition beside another one, and IS takes it in both modes."""
    event = {"s": "yes", "b": True}
    ansi = cm.Matcher.build({1: "b AND s", 2: "NOT s", 3: "s IS TRUE"}, SCHEMA, options={**SPARK, "ansi": True})
    assert ansi.match_one(event) == [1, 3]
    assert cm.Matcher.build({3: "s IS TRUE"}, SCHEMA, options=SPARK).match_one(event) == [3]
    assert "not a condition by itself" in refusal("b AND s", SPARK)
    assert "not a condition by itself" in refusal("s", {**SPARK, "ansi": True})


def test_a_path_into_a_struct_names_the_field() -> None:
    assert "write user.tier" in refusal("user:tier::string = 'gold'")
    assert "name a field, as in user.tier" in refusal("user:rank = 'gold'")
    assert cm.Matcher.build({1: "user.tier::string = 'gold'"}, SCHEMA).match_one({"user": {"tier": "gold"}}) == [1]
