"""Equality of whole lists and structs, and texts as decimals."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import colmatch as cm

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NAN = float("nan")
STRUCT = pa.struct({"n": pa.int64(), "t": pa.string()})
# Types of elements, with elements that are easily taken for each other
ELEMENTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "texts": (pa.string(), ["a", "a', 'b", "a\\", "\\'", "NULL", "", ", ", "ä", None]),
    "wholes": (pa.int64(), [1, -1, 0, 2**63 - 1, None]),
    "doubles": (pa.float64(), [0.0, -0.0, NAN, 0.1, 1e300, float("inf"), None]),
    "floats": (pa.float32(), [0.5, 0.0, -0.0, NAN, None]),
    "decimals": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.01"), None]),
    "truths": (pa.bool_(), [True, False, None]),
    "days": (pa.date32(), [dt.date(2024, 2, 29), dt.date(1, 1, 1), None]),
    "moments": (pa.timestamp("us", "UTC"), [dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.UTC), None]),
    "lists": (pa.list_(pa.string()), [["a"], ["a", None], [], [", "], None]),
    "structs": (STRUCT, [{"n": 1, "t": "x"}, {"n": None, "t": "1"}, {"n": 1, "t": None}, None]),
}
LITERALS = [
    "texts = array('a')", "texts = array(r\"a', 'b\")", "texts <> array('a', 'a')", "texts = array('ä', '')", "texts = array('a', 'b')",
    "texts IN (array(NULL), array(''), array())",
    "texts <=> array('NULL')",
    "texts = array(r'a\\', r\"\\'\")", "wholes = array(1, NULL)", "wholes NOT IN (array(1L), array(0, 1))",
    "doubles = array(0.0D)", "doubles = array(CAST('NaN' AS DOUBLE))", "doubles <> array(0.1D)", "floats = array(CAST(0.5 AS FLOAT))",
    "decimals = array(CAST(1.5 AS DECIMAL(10, 2)))", "truths = array(true, false)", "days = array(DATE '2024-02-29')",
    "moments = array(TIMESTAMP '2024-02-29 01:02:03.000004')", "lists = array(array('a'), array())", "lists <> array(array(NULL))",
]  # fmt: skip


def _rows() -> pa.Table:
    """Returns lists of one and two elements, none, and NULL, beside others."""
    columns: dict[str, pa.Array] = {}
    for name, (type, elements) in ELEMENTS.items():
        lists = [None, [], *([one] for one in elements), *map(list, itertools.product(elements, repeat=2))][:40]
        lists += [None] * (40 - len(lists))
        columns[name] = pa.array(lists, pa.list_(type))
        columns[f"{name}_2"] = pa.array(lists[::-1], pa.list_(type))
        columns[f"{name}_3"] = pa.array([lists[i // 2] for i in range(40)], pa.list_(type))
    structs = [None, *ELEMENTS["structs"][1]] * 8
    columns |= {"one": pa.array(structs, STRUCT), "other": pa.array(structs[3:] + structs[:3], STRUCT)}
    return pa.table(columns)


def _truths(clauses: list[str], rows: pa.Table, ansi: bool = False) -> list[list[bool | None]]:
    """Returns what colmatch says of each clause in each row."""
    rules = {2 * i: text for i, text in enumerate(clauses)}
    rules |= {2 * i + 1: f"({text}) IS UNKNOWN" for i, text in enumerate(clauses)}
    found = cm.Matcher.build(rules, rows.schema, options=cm.Options(ansi=ansi)).match_lists(rows).to_pylist()
    return [[None if 2 * i + 1 in one else 2 * i in one for one in found] for i in range(len(clauses))]


def _of_spark(spark: SparkSession, clauses: list[str], rows: pa.Table, folder: Path) -> list[list[bool | None]]:
    parquet.write_table(rows.append_column("nr", pa.array(range(rows.num_rows))), folder / "rows.parquet")
    frame = spark.read.parquet(str(folder / "rows.parquet"))
    answer = frame.selectExpr("nr", *[f"({text}) AS c{i}" for i, text in enumerate(clauses)]).toArrow().sort_by("nr")
    return [answer[f"c{i}"].to_pylist() for i in range(len(clauses))]


def _clauses() -> list[str]:
    pairs = [(name, f"{name}_{i}") for name in ELEMENTS for i in (2, 3)] + [("one", "other")]
    same = [f"{one} {sign} {other}" for one, other in pairs for sign in ("=", "<>", "<=>")]
    return [*same, *LITERALS, "one IS NULL", "NOT one IS NULL", "if(texts = texts_3, 1, 2) = 1"]


@pytest.mark.parametrize("ansi", [False, True])
def test_whole_values_are_equal_as_in_spark(spark: SparkSession, tmp_path: Path, ansi: bool) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(ansi))
    rows, clauses = _rows(), _clauses()
    try:
        expected = _of_spark(spark, clauses, rows, tmp_path)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    found = _truths(clauses, rows, ansi)
    assert [text for text, one, other in zip(clauses, found, expected, strict=True) if one != other] == []
    assert {truth for one in found for truth in one} == {True, False, None}


TEXTS = [
    "1", "1.5", " 1.25 ", "+2.", ".5", "-.5", "1.255", "-1.245", "1.245", "1e2", "1E-3", "1e", ".", "", " ", "1 2", "99.994", "99.995",
    "100", "-99.995", "0.004999", "1d", "0x1", "NaN", "1_0", "1e10", "1e-999", "1e99999999999", "0" * 50 + "7",
    "12345678901234567890.123", "\u0663", None,
]  # fmt: skip


def test_texts_are_decimals_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    rows = pa.table({"s": pa.array(TEXTS)})
    types = ["DECIMAL(4, 2)", "DECIMAL(38, 10)", "DECIMAL(5, 5)", "DECIMAL(20, 0)", "DECIMAL(2, 0)"]
    numbers = ["0", "1.25", "1.26", "-1.25", "2", "99.99", "0.5", "100", "0.001", "3", "7", "12345678901234567890"]
    clauses = [
        f"CAST(s AS {type}) {test}" for type in types for test in ("IS NULL", *[f"= {number}" for number in numbers])
    ]
    try:
        expected = _of_spark(spark, clauses, rows, tmp_path)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    found = _truths(clauses, rows)
    assert [text for text, one, other in zip(clauses, found, expected, strict=True) if one != other] == []


def test_one_event_is_as_a_row_of_many() -> None:
    rows = _rows()
    clauses = _clauses()
    matcher = cm.Matcher.build(dict(enumerate(clauses)), rows.schema)
    found = matcher.match_lists(rows).to_pylist()
    assert [matcher.match_one(row) for row in rows.slice(0, 12).to_pylist()] == found[:12]


def test_texts_of_a_row_without_unknown() -> None:
    """NOT LIKE is false where a text is absent, as with a literal, and NOT (...) is true."""
    rules = {
        "not": "a NOT LIKE concat('%', b)",
        "within": "NOT a LIKE concat('%', b)",
        "is": "a LIKE '%' || b",
        "in": "NOT contains(a, b)",
    }
    matcher = cm.Matcher.build(rules, {"a": "string", "b": "string"}, missing="false")
    assert matcher.match_one({"a": "cmd.exe", "b": "exe"}) == ["is"]
    assert matcher.match_one({"a": "cmd.exe", "b": "cmd"}) == ["not", "within"]
    assert matcher.match_one({"a": "cmd.exe", "b": None}) == ["within", "in"]
    assert matcher.match_one({"a": None, "b": "x"}) == ["within", "in"]


def test_a_pattern_that_is_none_names_itself() -> None:
    matcher = cm.Matcher.build({1: "a LIKE b"}, {"a": "string", "b": "string"})
    rows = pa.table({"a": ["x", "%", "a", None], "b": ["_", r"\%", "a%", "x"]})
    assert matcher.exists(rows).tolist() == [True, True, True, False]
    with pytest.raises(cm.EventError, match=r"is no pattern of LIKE"):
        matcher.match_one({"a": "x", "b": "x\\"})


@pytest.mark.usefixtures("kept_predicates")
def test_literals_are_one_index() -> None:
    """Lists of literals are values of one attribute, as texts are."""
    rules = {i: f"tags = array('a', '{i}')" for i in range(500)}
    matcher = cm.Matcher.build(rules, {"tags": "array<string>"})
    assert matcher.stats()["attributes"] == 1
    assert matcher.match_one({"tags": ["a", "77"]}) == [77]
    assert str(matcher.explain({"tags": ["a", "77"]}, 77)).endswith(
        "(tags) = array('a', '77')   [\"array('a', '77')\"]"
    )


def test_conditions_in_python() -> None:
    tags, nums = cm.col("tags"), cm.col("nums")
    rules = {
        "a": tags == ["a", None],
        "b": tags != ["a"],
        "c": ~(nums == [1, 2]),
        "d": nums == [],
        "e": tags == cm.col("tags"),
    }
    matcher = cm.Matcher.build(rules, {"tags": "array<string>", "nums": "array<int>"})
    assert str(rules["a"]) == "(tags = array('a', NULL))"
    assert matcher.match_one({"tags": ["a", None], "nums": []}) == ["a", "b", "c", "d", "e"]
    assert matcher.match_one({"tags": ["a"], "nums": None}) == ["e"]


def test_events_of_other_layouts() -> None:
    """Lists of other widths and encodings have the texts of the schema's type."""
    rules = {"f": "f = array(0.5D)", "t": "t = array('x')", "s": "s = r"}
    struct = pa.struct({"a": pa.int64(), "b": pa.float64()})
    schema = {"f": pa.list_(pa.float64()), "t": pa.list_(pa.string()), "s": struct, "r": struct}
    turned = pa.struct({"b": pa.float32(), "a": pa.int8()})
    columns = {
        "f": pa.array([[0.5], [0.25]], pa.list_(pa.float32(), 1)),
        "t": pa.array([["x"], None], pa.large_list(pa.dictionary(pa.int8(), pa.large_string()))),
        "s": pa.array([{"a": 1, "b": 0.5}, {"a": 1, "b": None}], turned),
        "r": pa.array([{"a": 1, "b": 0.5}, {"a": 2, "b": None}], struct),
    }
    matcher = cm.Matcher.build(rules, schema)
    assert matcher.match_lists(pa.table(columns).slice(0)).to_pylist() == [["f", "t", "s"], []]
    assert matcher.match_lists(pa.table(columns).slice(1)).to_pylist() == [[]]
    columns["r"] = pa.array([{"a": 1}, None])
    with pytest.raises(cm.EventError, match="^column 'r' has struct<a: int64> in it, without one field 'b'$"):
        matcher.match(pa.table(columns))


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("tags < array('x')", "column 'tags' is a list, which is not compared by its order: write =, <> or IN"),
        (
            "tags = name",
            "column 'tags' is a list, which is compared with one of its type, as in tags = array('a', 'b')",
        ),
        ("tags = array(name)", "the elements of array(...) are literals of the list's type"),
        ("tags = array(1)", "takes values of one type, not int and string"),
        ("tags = nums", "is compared with one of its type"),
        ("nums = array(1.5D)", "array(...) has a double beside elements of bigint: write a whole number or a decimal"),
        ("array('x') = array('x')", "array(...) is compared with a list, as in tags = array('a', 'b')"),
        ("length(array('x')) = 1", "array(...) is compared with a list"),
        ("blobs = blobs", "'blobs' has parts of binary, which are not compared"),
        ("st = array('x')", "array(...) is compared with a list"),
        ("name LIKE concat(name, r'\\')", "no pattern of LIKE"),
        (
            "array_position(nums, 1.5) = 1",
            "the elements of 'nums' are bigint, and the literal is decimal(2,1): cast it",
        ),
        ("array_position(nums, 'x') = 1", "the elements of 'nums' are bigint, and the literal is string: cast it"),
    ],
)
def test_what_is_refused(clause: str, said: str) -> None:
    schema = {
        "tags": "array<string>", "nums": "array<bigint>", "name": "string", "blobs": "array<binary>", "st": "struct<a: string>",
    }  # fmt: skip
    with pytest.raises((cm.ExpressionError, cm.EventError)) as refused:
        cm.Matcher.build({1: clause}, schema).match(pa.table({"name": ["x"]}))
    assert said in str(refused.value)
