"""Schemas as users have them: of Arrow, data frames and SQL, by names and by types."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import namedtuple
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from time import sleep
from typing import Annotated, Any, ClassVar, NamedTuple, Optional, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from installed import needs

import colmatch as cm

EXPECTED = pa.schema({"age": pa.int64(), "city": pa.string(), "tags": pa.list_(pa.string())})
RULES = {1: "age >= 18 AND city = 'Nice' AND array_contains(tags, 'a')"}


def agrees(declared: Any, string: pa.DataType | None = None, inner: pa.DataType | None = None) -> None:
    """What is declared is the expected schema, and rules can be built and matched with it."""
    string = string or pa.string()
    schema = cm.Schema(declared).arrow
    names, types = ["age", "city", "tags"], [pa.int64(), string]
    assert schema.names == names and schema.types[:2] == types
    element = schema.types[2].value_type
    assert element == (inner or string), schema
    assert cm.Matcher.build(RULES, declared).schema == cm.Schema(schema)


TABLE = pa.table({"age": [36], "city": ["Nice"], "tags": [["a"]]}, schema=EXPECTED)


DECLARED: list[Any] = [
    EXPECTED,
    cm.Schema(EXPECTED),
    TABLE,
    TABLE.to_batches()[0],
    TABLE.to_reader(),
    ds.dataset(TABLE),
    {"age": "int64", "city": "string", "tags": "list<string>"},
    {"age": "bigint", "city": "varchar(20)", "tags": "varchar[]"},
    {"age": "LONG", "city": "text", "tags": "array<string>"},
    {"age": int, "city": str, "tags": "list<item: string>"},
    {"age": np.int64, "city": np.dtype("U5"), "tags": pa.list_(pa.string())},
    {"age": np.dtype("int64"), "city": np.str_, "tags": "string[]"},
    "age bigint, city string, tags array<string>",
    "age: int64, city: string, tags: list<string>",
    "age BIGINT COMMENT 'in years, or so',\n`city` VARCHAR(20),\n\"tags\" VARCHAR[]  # of the shop",
    '{"age": "bigint", "city": "text", "tags": "list<string>"}',
    list(EXPECTED),
    [("age", "bigint"), ("city", str), pa.field("tags", pa.list_(pa.string()))],
    {"age": int | None, "city": Optional[str], "tags": list[str]},  # noqa: UP045
    "CREATE OR REPLACE TABLE shop.people (age bigint, city string, tags array<string>);",
    "create table if not exists `people` (age bigint, city string, tags array<string>)",
    pa.array([{"age": 36, "city": "Nice", "tags": ["a"]}]),
]


@pytest.mark.parametrize("number", range(len(DECLARED)))
def test_declared_by_arrow_names_and_texts(number: int) -> None:
    agrees(DECLARED[number])


def test_a_reader_is_still_there() -> None:
    reader = TABLE.to_reader()
    cm.Schema(reader)
    assert reader.read_all() == TABLE


@needs("polars")
def test_polars() -> None:
    import polars as pl

    frame = pl.DataFrame({"age": [36], "city": ["Nice"], "tags": [["a"]]})
    for declared in (frame, frame.lazy(), frame.schema, frame.lazy().filter(pl.col("age") > 3)):
        schema = cm.Schema(declared).arrow
        assert schema.names == ["age", "city", "tags"] and schema.types[0] == pa.int64()
        matcher = cm.Matcher.build(RULES, declared)
        assert matcher.match_lists(frame).to_pylist() == [[1]]
    by_name = cm.Schema(
        {"age": pl.Int64, "city": pl.String(), "tags": pl.List(pl.String), "at": pl.Datetime("ms", "UTC")}
    )
    assert by_name.arrow.field("at").type == pa.timestamp("ms", "UTC")
    assert cm.Matcher.build(RULES, by_name).match_lists(frame.with_columns(at=None)).to_pylist() == [[1]]


@needs("pandas")
def test_pandas() -> None:
    import pandas as pd

    frame = pd.DataFrame({"age": [36], "city": ["Nice"], "tags": [["a"]]}, index=["row"])
    own = pa.Schema.from_pandas(frame).field("city").type  # of pandas 3 a large string
    agrees(frame, own, pa.string())
    assert cm.Schema(frame.set_index("age")).arrow.names == ["city", "tags"]


@needs("duckdb")
def test_duckdb() -> None:
    import duckdb

    con = duckdb.connect()
    con.execute("CREATE TABLE events (age BIGINT, city VARCHAR, tags VARCHAR[])")
    for declared in (con.table("events"), con.sql("SELECT * FROM events WHERE age > 3")):
        agrees(declared)
    read: list[int] = []
    con.create_function("seen", lambda i: read.append(i) or i, [duckdb.type("BIGINT")], duckdb.type("BIGINT"))
    cm.Schema(con.sql("SELECT seen(range) AS n FROM range(1000)"))
    if int(duckdb.__version__.partition(".")[0]) >= 2:  # older ones compute a part of it to tell their columns
        assert not read  # nothing of the query was computed


@needs("pyspark")
def test_spark() -> None:
    from pyspark.sql import types

    declared = types.StructType(
        [
            types.StructField("age", types.LongType()),
            types.StructField("city", types.StringType(), nullable=False),
            types.StructField("tags", types.ArrayType(types.StringType())),
            types.StructField("at", types.TimestampType()),
        ]
    )
    schema = cm.Schema(declared).arrow
    assert schema.field("at").type == pa.timestamp("us", "UTC") and not schema.field("city").nullable
    cm.Matcher.build(RULES, declared)

    class Frame:
        """As a DataFrame of Spark, classic or Connect, shows its schema."""

        schema = declared

    Frame.__module__ = "pyspark.sql.connect.dataframe"
    assert cm.Schema(Frame()).arrow == schema
    named = cm.Schema({"age": types.LongType, "price": types.DecimalType(10, 2)}).arrow
    assert named.types == [pa.int64(), pa.decimal128(10, 2)]


def test_a_data_frame_of_spark(spark: Any) -> None:
    frame = spark.sql("SELECT 36L AS age, 'Nice' AS city, array('a') AS tags")
    agrees(frame)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("int", pa.int32()),
        ("integer", pa.int32()),
        ("short", pa.int16()),
        ("byte", pa.int8()),
        ("uinteger", pa.uint32()),
        ("UBIGINT", pa.uint64()),
        ("real", pa.float32()),
        ("float8", pa.float64()),
        ("date", pa.date32()),
        ("decimal", pa.decimal128(10, 0)),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("NUMERIC(5, 1)", pa.decimal128(5, 1)),
        ("hugeint", pa.decimal128(38, 0)),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("timestamptz", pa.timestamp("us", "UTC")),
        ("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")),
        ("timestamp without time zone", pa.timestamp("us")),
        ("timestamp_s", pa.timestamp("s")),
        ("timestamp[ns]", pa.timestamp("ns")),
        ("timestamp[us, tz=America/New_York]", pa.timestamp("us", "America/New_York")),
        ("blob", pa.binary()),
        ("int[]", pa.list_(pa.int32())),
        ("map<string, bigint>", pa.map_(pa.string(), pa.int64())),
        ("MAP(VARCHAR, INTEGER)", pa.map_(pa.string(), pa.int32())),
        (
            "struct<age: int, home: struct<city: string>>",
            pa.struct({"age": "int32", "home": pa.struct({"city": "string"})}),
        ),
        ("STRUCT(a INTEGER, b VARCHAR(3))", pa.struct({"a": pa.int32(), "b": pa.string()})),
        ("array<struct<a: decimal(4,1)>>", pa.list_(pa.struct({"a": pa.decimal128(4, 1)}))),
        ("dictionary<values=string, indices=int32, ordered=0>", pa.dictionary(pa.int32(), pa.string())),
        ("datetime64[ns]", pa.timestamp("ns")),
        ("datetime64[us, Europe/Paris]", pa.timestamp("us", "Europe/Paris")),
        ("timedelta64[ms]", pa.duration("ms")),
        ("bytes", pa.binary()),
    ],
)
def test_names_of_types(name: str, expected: pa.DataType) -> None:
    assert cm.Schema({"x": name}).arrow.field("x").type == expected
    assert cm.Schema(f"x {name}, y: {name}, `z` {name}").arrow.types == [expected] * 3


PRINTED = [
    pa.list_(pa.int64(), 2), pa.large_list(pa.int8()), pa.list_view(pa.int8()), pa.large_list_view(pa.string()), pa.decimal32(5, 2),
    pa.decimal64(15, 2), pa.decimal128(10, -2), pa.decimal256(40, 2), pa.binary(2), pa.string_view(), pa.binary_view(), pa.large_string(),
    pa.null(), pa.duration("us"), pa.time32("s"), pa.time64("ns"), pa.date64(), pa.float16(), pa.month_day_nano_interval(), pa.uuid(),
    pa.list_(pa.json_()), pa.bool8(), pa.run_end_encoded(pa.int32(), pa.list_(pa.string())),
    pa.map_(pa.string(), pa.int64(), keys_sorted=True),
    pa.dictionary(pa.int8(), pa.decimal128(5, 2), ordered=True), pa.map_(pa.string(), pa.list_(pa.decimal128(38, 2))),
    pa.struct([("a", pa.list_(pa.int64(), 2)), ("b", pa.list_(pa.struct([pa.field("c", pa.int8(), nullable=False)])))]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_types_as_arrow_prints_them(number: int) -> None:
    type = PRINTED[number]
    assert cm.Schema({"x": str(type)}).arrow.field("x").type == type
    assert cm.Schema(f"x: {type}, y {type}\nz: {type}").arrow.types == [type] * 3


def test_texts_over_several_lines() -> None:
    body = """(
      id BIGINT
         NOT NULL,        -- the number, of the "order
      price DECIMAL(20,
                    4) COMMENT 'in EUR # and -- more',
      tags ARRAY<
        STRING
      >,
      home STRUCT<
        x INT,            # comment, with (
        y: STRING
      >
      note string,
      comment string
    )"""
    home = pa.struct({"x": pa.int32(), "y": pa.string()})
    types = [pa.int64(), pa.decimal128(20, 4), pa.list_(pa.string()), home, pa.string(), pa.string()]
    schema = cm.Schema(body).arrow
    assert schema.types == types and schema.names == ["id", "price", "tags", "home", "note", "comment"]
    assert [field.nullable for field in schema] == [False, True, True, True, True, True]
    assert cm.Schema(body.strip()[1:-1].replace("\n", "\r\n")).arrow == schema


@needs("pyspark")
def test_types_that_spark_has_for_schemas_alone() -> None:
    from pyspark.sql import types

    declared = {"a": types.VarcharType(5), "b": types.CharType(5), "c": types.ArrayType(types.VarcharType(3))}
    assert cm.Schema(declared).arrow.types == [pa.string(), pa.string(), pa.list_(pa.string())]
    struct = types.StructType([types.StructField("a", types.VarcharType(5), nullable=False)])
    field = cm.Schema(struct).arrow.field("a")
    assert field.type == pa.string() and not field.nullable


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (np.datetime64, pa.timestamp("us")),
        (np.dtype("M8"), pa.timestamp("us")),
        (np.dtype("M8[ns]"), pa.timestamp("ns")),
        (np.timedelta64, pa.duration("us")),
        (dt.time, pa.time64("us")),
        (dt.timedelta, pa.duration("us")),
        (bytes, pa.binary()),
        (bool, pa.bool_()),
        (float, pa.float64()),
        (dt.date, pa.date32()),
        (dt.datetime, pa.timestamp("us")),
        (list[str], pa.list_(pa.string())),
        (tuple[int, ...], pa.list_(pa.int64())),
        (set[dt.date], pa.list_(pa.date32())),
        (Sequence[float | None], pa.list_(pa.float64())),
        (dict[str, int], pa.map_(pa.string(), pa.int64())),
        (Mapping[str, list[int]], pa.map_(pa.string(), pa.list_(pa.int64()))),
        (int | None, pa.int64()),
        (Annotated[str, "a city"], pa.string()),
        ("<U5", pa.string()),
        (">i8", pa.int64()),
        ("<M8[s]", pa.timestamp("s")),
        ("int[][]", pa.list_(pa.list_(pa.int32()))),
        ("decimal(10, 2)[3]", pa.list_(pa.decimal128(10, 2))),
    ],
    ids=str,
)
def test_types_of_python(declared: Any, expected: pa.DataType) -> None:
    assert cm.Schema({"x": declared}).arrow.field("x").type == expected


class Home(NamedTuple):
    city: str
    floor: int | None


class Shop(TypedDict):
    city: str


class Model:
    """What a class of pydantic offers."""

    @dataclasses.dataclass
    class Field:
        annotation: Any

    model_fields: ClassVar = {"city": Field(str), "nights": Field(list[int])}


@dataclasses.dataclass
class Person:
    age: int
    home: Home
    tags: list[str] | None = None


def test_classes_of_events() -> None:
    home = pa.struct({"city": pa.string(), "floor": pa.int64()})
    assert cm.Schema(Person).arrow == pa.schema({"age": pa.int64(), "home": home, "tags": pa.list_(pa.string())})
    assert cm.Schema(Person(36, Home("Nice", 2))) == cm.Schema(Person)
    assert cm.Schema(Home).arrow == pa.schema(list(home))
    assert cm.Schema(Shop).arrow == pa.schema({"city": pa.string()})
    assert cm.Schema(Model).arrow == pa.schema({"city": pa.string(), "nights": pa.list_(pa.int64())})
    matcher = cm.Matcher.build({1: "age > 30 AND home.floor = 2 AND array_contains(tags, 'a')"}, Person)
    assert matcher.match_one(Person(36, Home("Nice", 2), ["a"])) == [1]


@needs("pandas")
def test_types_of_columns_of_pandas() -> None:
    import pandas as pd

    columns = {
        "a": pd.Series([1, None], dtype="Int64"),
        "b": pd.Series(["x"], dtype="string"),
        "c": pd.to_datetime(["2020-01-01"]).tz_localize("Europe/Paris").to_series(index=[0]),
        "d": pd.Series([1.5]),
        "e": pd.Series(["x"], dtype="category"),
        "f": pd.Series([object()]),
    }
    frame = pd.DataFrame(columns)
    assert cm.Schema(frame.dtypes).arrow.types[:4] == cm.Schema(frame).arrow.types[:4]
    assert cm.Matcher.build({1: "a = 1 AND e = 'x'"}, frame.dtypes).count(frame[["a", "e"]]).tolist() == [1, 0]


@pytest.mark.parametrize(
    "text",
    [
        "a int), b string",
        "a int COMMENT 'it's', b int",
        "a int garbage",
        "a int NOT NULL DEFAULT 5",
        "a int64 b",
        "a map<string,int>>, b int",
        "a string > , b int",
        "a int; b string",
        "a list<int",
        "a 'int'",
    ],
)
def test_nothing_of_a_text_is_left_out(text: str) -> None:
    with pytest.raises(cm.SchemaError):
        cm.Schema(text)


def test_texts_with_signs_in_quotes() -> None:
    text = "a int COMMENT 'unit: EUR, say', `b: c, d` int COMMENT 'x\\'y', e double null, `f``g` bigint COMMENT 'it''s' not null"
    schema = cm.Schema(text).arrow
    assert schema.names == ["a", "b: c, d", "e", "f`g"] and schema.types == [
        pa.int32(),
        pa.int32(),
        pa.float64(),
        pa.int64(),
    ]
    assert [field.nullable for field in schema] == [True, True, True, False]


def test_not_null_in_mappings_and_json() -> None:
    for declared in (
        {"a": "int not null", "b": "string"},
        '{"a": "int NOT NULL", "b": "string"}',
        "a int primary key, b string",
    ):
        assert [field.nullable for field in cm.Schema(declared).arrow] == [False, True]


def test_columns_that_must_be_there() -> None:
    schema = cm.Schema("age bigint not null, city string NOT NULL COMMENT 'where', x: int64").arrow
    assert [field.nullable for field in schema] == [False, False, True]
    matcher = cm.Matcher.build({1: "x IS NULL"}, schema)
    assert matcher.match_one({"age": 3}) == [] and matcher.match_one({"age": 3, "city": ""}) == [1]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"x": "frobnicate"}, "column 'x': no type is called 'frobnicate'; examples"),
        ({"x": "struct<>"}, "should be 'name: type'"),
        ({"x": "array"}, "no type is called 'array': write array<string> or the like"),
        ("x decimal(39, 2)", r"no type is called 'decimal\(39, 2\)': write decimal\(10, 2\), of 38 digits at most"),
        ("x decimal(99999999999999999999, 2)", "column 'x': no type is called"),
        ("x fixed_size_list<int>[99999999999]", "column 'x': no type is called"),
        ("x varchar(-1)", r"no type is called 'varchar\(-1\)': write varchar without brackets"),
        ("x array<>", "column 'x': no type is called ''; examples"),
        ("x int default 3", "behind 'int' more is not read, and a comma separates columns"),
        ("x varchar(9) not null default 'a', y int", r"behind 'varchar\(9\)' more is not read"),
        ("x int, primary key (x)", r"'primary key \(x\)' is no column: leave it out"),
        (
            "create table t (x int) using parquet",
            "'using parquet' follows the columns of the table: leave it out",
        ),
        ("create table t (x int) partitioned by (y);", r"'partitioned by \(y\)' follows the columns"),
        ('{"x": "int", "x": "string"}', "named twice"),
        (namedtuple("Untyped", "x y"), "field 'x' of Untyped has no type: typing.NamedTuple gives types"),
        ({"x": "timestamp[eons]"}, "column 'x': no type is called"),
        ({"x": "decimal(99, 2)"}, "column 'x'"),
        ({"x": Decimal}, r"column 'x': a Decimal does not say how many digits it has: write 'decimal\(10, 2\)'"),
        ({"x": "integr"}, "column 'x': no type is called 'integr': did you mean 'integer'"),
        ("x strng", "column 'x': no type is called 'strng': did you mean 'string'"),
        ({"x": list}, "column 'x': list does not say what is in it: write list\\[str\\] or the like"),
        ({"x": int | str}, "column 'x': a pyarrow.DataType, the name of a type"),
        ("events.parquet", r"of files, pyarrow.dataset.dataset\('events.parquet'\) has the schema"),
        (Path("events.csv"), r"of files, pyarrow.dataset.dataset\('events.csv'\) has the schema"),
        ({"x": 5}, "column 'x': a pyarrow.DataType, the name of a type"),
        ({"x": None}, "column 'x': a pyarrow.DataType, the name of a type"),
        ({"x": np.dtype("complex128")}, "column 'x': .* is no type that Arrow has"),
        ({"x": np.object_}, "column 'x': .* is no type that Arrow has"),
        ("", "names no column"),
        ("age", "'age' should be 'name: type' or 'name type'"),
        ("age bigint, age string", "named twice"),
        (5, "a schema is a pyarrow.Schema, a mapping .*, not int"),
        (["age"], "a schema is .*, not list"),
        (int, "a schema is .*, not type"),
    ],
)
def test_what_is_no_schema(declared: Any, said: str) -> None:
    with pytest.raises(cm.SchemaError, match=said):
        cm.Matcher.build({1: "x = 1"}, declared)


def test_types_that_are_nowhere() -> None:
    @dataclasses.dataclass
    class Parcel:
        weight: Nowhere  # noqa: F821

    with pytest.raises(cm.SchemaError, match="a type in Parcel cannot be found: name 'Nowhere' is not defined"):
        cm.Schema(Parcel)


@needs("pandas")
def test_values_are_no_types() -> None:
    import pandas as pd

    with pytest.raises(cm.SchemaError, match="column '0': a pyarrow.DataType, .* is needed, not 7"):
        cm.Schema(pd.Series([7]))
    assert cm.Schema(pd.Series({"x": "bigint"})).arrow == pa.schema({"x": pa.int64()})


@needs("polars")
def test_types_that_polars_has_not() -> None:
    import polars as pl

    with pytest.raises(cm.SchemaError, match=r"column 'x': Decimal\(precision=40, scale=2\) is no type that Arrow has"):
        cm.Schema({"x": pl.Decimal(40, 2)})


@needs("pyspark")
def test_types_of_spark_are_no_schemas() -> None:
    from pyspark.sql import types

    for declared in (types.LongType(), types.StructField("x", types.LongType()), types.Row(x=1)):
        with pytest.raises(cm.SchemaError, match="a schema is a pyarrow.Schema, .* not (LongType|StructField|Row)"):
            cm.Schema(declared)


def test_a_printed_schema_is_a_schema() -> None:
    tags = pa.list_(pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())}))
    schema = pa.schema([pa.field("age", pa.int64(), False), ("tags", tags), ("city", pa.string())], {"pandas": "{}"})
    assert cm.Schema(str(schema)).arrow == schema


def test_spaces_take_no_time() -> None:
    """A search at each space would take minutes here."""
    text = f"int{' ' * 40_000}comment 'of people'{' ' * 40_000}not null"
    (field,) = cm.Schema({"x": text}).arrow
    assert field.type == pa.int32() and not field.nullable


@needs("datafusion")
def test_datafusion() -> None:
    import datafusion

    ctx = datafusion.SessionContext()
    ctx.register_record_batches("t", [pa.table({"a": [1] * 100}).to_batches(10)] * 4)
    batches: list[int] = []
    seen = datafusion.udf(lambda a: batches.append(len(a)) or a, [pa.int64()], pa.int64(), "volatile", "seen")
    ctx.register_udf(seen)
    # It runs before a first row of it is read.
    query = ctx.sql("SELECT seen(a) AS a, 'x' AS b FROM t GROUP BY 1 ORDER BY 1")
    assert cm.Schema(query).arrow.types[0] == pa.int64()
    sleep(0.2)
    assert not batches


@needs("ibis")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of ibis itself
def test_ibis() -> None:
    import ibis

    nowhere = ibis.table({"a": "int64", "b": "string"}, name="nowhere")
    wanted = pa.schema({"a": pa.int64(), "b": pa.string()})
    assert cm.Schema(nowhere).arrow == cm.Schema(nowhere.schema()).arrow == wanted


def test_other_libraries_read_a_schema() -> None:
    arrow = pa.schema({"a": pa.int64(), "b": pa.list_(pa.string())})
    assert pa.schema(cm.Schema(arrow)) == arrow
