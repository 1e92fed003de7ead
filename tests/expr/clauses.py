"""Clauses as the manuals of Spark SQL, DuckDB and PostgreSQL have them, and a table for them.

``TAKEN`` are clauses that colmatch takes, each with what it is in DuckDB and in Spark. An empty text
is the clause itself, and None says that the engine has another meaning for it. ``REFUSED`` are
clauses that colmatch refuses, each with words of its error.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa

NAN, INF = float("nan"), float("inf")
UTC = dt.UTC
SCHEMA = pa.schema(
    {
        "a": pa.int64(),
        "b": pa.int32(),
        "big": pa.int64(),
        "price": pa.float64(),
        "cost": pa.float64(),
        "name": pa.string(),
        "txt": pa.string(),
        "day": pa.date32(),
        "loc": pa.timestamp("us"),
        "ts": pa.timestamp("us", "UTC"),
        "tags": pa.list_(pa.string()),
        "nums": pa.list_(pa.int64()),
        "m": pa.map_(pa.string(), pa.int64()),
        "st": pa.struct({"x": pa.int64(), "y": pa.string()}),
        "flag": pa.bool_(),
        "d": pa.decimal128(10, 2),
        "items": pa.list_(pa.struct({"sku": pa.string()})),
    }
)
_COLUMNS = {
    "a": [5, 6, None, 0, -3, 7, 1, 2, 10, -10],
    "b": [5, None, 3, 1, -3, 2, 4, 7, None, 0],
    "big": [2**63 - 1, -(2**63), None, 0, 2**53 + 1, -1, 1, 2**31, 2**31 - 1, 5],
    "price": [2.5, None, 0.5, -1.5, NAN, INF, -INF, -0.0, 1e300, 100.0],
    "cost": [2.5, 3.5, None, -2.5, 0.0, 7.25, 0.4, 1.15, -0.6, 99.99],
    "name": ["ab", None, "b", "", "Ab", "a%b", "äö", "x_y", " pad ", "abc"],
    "txt": ["5", "x", None, "", "1", "7", "0", "12", "3", "-10"],
    "day": [
        dt.date(2020, 5, 3), dt.date(2021, 1, 1), None, dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2020, 5, 4),
        dt.date(2019, 12, 30), dt.date(2020, 12, 31), None, dt.date(2000, 1, 1),
    ],
    "loc": [
        dt.datetime(2020, 5, 3, 7, 30), dt.datetime(2021, 1, 1), None, dt.datetime(1969, 12, 31, 23, 59, 59),
        dt.datetime(2024, 2, 29, 12), dt.datetime(2020, 5, 4), None, dt.datetime(2020, 12, 31, 23), dt.datetime(2000, 1, 1),
        dt.datetime(2020, 5, 3, 7, 30, 1),
    ],
    "ts": [
        dt.datetime(2020, 5, 3, 7, 30, tzinfo=UTC), dt.datetime(2021, 1, 1, tzinfo=UTC), None,
        dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), dt.datetime(2024, 2, 29, 12, tzinfo=UTC), None,
        dt.datetime(2020, 12, 31, 23, tzinfo=UTC), dt.datetime(2000, 1, 1, tzinfo=UTC), None,
        dt.datetime(2020, 5, 3, 8, tzinfo=UTC),
    ],
    "tags": [["x", None], [], ["y"], None, ["x", "y", "z"], [None], ["xx"], ["z", "x"], ["y", "y"], [""]],
    "nums": [[1, 2], [], None, [5], [0, -1], [None, 3], [7, 8, 9], [3], [2], [10]],
    "m": [[("k", 5)], [("k", None)], [], None, [("j", 1), ("k", 6)], [("k", 0)], [("j", 5)], [], [("k", -1)], [("x", 1)]],
    "st": [
        {"x": 1, "y": "a"}, {"x": None, "y": "b"}, None, {"x": 5, "y": None}, {"x": -1, "y": ""}, {"x": 0, "y": "a"},
        {"x": 2, "y": "c"}, None, {"x": 9, "y": "ab"}, {"x": 3, "y": "b"},
    ],
    "flag": [True, False, None, True, False, None, True, True, False, None],
    "d": [Decimal(text) if text else None for text in "2.50 3.49 0.00 -1.25  99.99 -0.50 7.00 12.35 0.05".split(" ")],
    "items": [None] * 10,
}  # fmt: skip
EVENTS = pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in _COLUMNS.items()}, schema=SCHEMA)


class Clause(NamedTuple):
    """A clause that colmatch takes, and what it is in the other engines."""

    text: str
    duckdb: str | None = ""  # empty: as the text
    spark: str | None = ""
    ansi: bool = True  # it is no error in Spark's ANSI mode


C = Clause
TAKEN = [
    # operators
    C("a = 5"), C("a == 5"), C("a != 5"), C("a <> 5"), C("5 < a"), C("a >= -3 AND a <= 6"), C("NOT a > 5"),
    C("! (a > 5)", "NOT (a > 5)"), C("a < b"), C("a = b OR flag"), C("flag"), C("NOT flag"), C("flag = TRUE"), C("flag = false"),
    C("flag <> TRUE"), C("big = 9223372036854775807"), C("big > 2147483647"), C("big <= -9223372036854775808", None),
    C("big >= 9007199254740993"), C("price > 2"), C("price >= 1e2"), C("price < .5"), C("d = 2.5"), C("d > -1.25"), C("d < 3.495"),
    C("a BETWEEN 1 AND 6"), C("a NOT BETWEEN 1 AND 6"), C("a BETWEEN SYMMETRIC 6 AND 1", "a BETWEEN 1 AND 6", "a BETWEEN 1 AND 6"),
    C("a NOT BETWEEN SYMMETRIC 6 AND 1", "a NOT BETWEEN 1 AND 6", "a NOT BETWEEN 1 AND 6"),
    C("a BETWEEN ASYMMETRIC 1 AND 6", "a BETWEEN 1 AND 6", "a BETWEEN 1 AND 6"), C("a BETWEEN b AND 6"), C("a NOT BETWEEN 0 AND b"),
    C("5 BETWEEN a AND b"), C("a IN (5, 6, 7)"), C("a NOT IN (5, 6)"), C("a IN (5, NULL)"), C("a NOT IN (5, NULL)"), C("a IN (b, 6)"),
    C("a NOT IN (b, 6)"), C("name IN ('ab', '')"), C("5 IN (a, b)"), C("NOT a IN (1, 2)"), C("TRUE"), C("1 = 1"), C("1 = 0 OR a = 5"),
    C("NULL"), C("a = NULL"), C("NULL AND flag"), C("NULL OR flag"), C("(a > 5) = (b > 2)"), C("(a > 5) <> flag"),
    C("(a = 5) = TRUE"), C("(a > 1 AND b > 1) IS NULL"), C("(price > 2) IN (TRUE)", "(price > 2) IN (TRUE)"),
    C("a > 1 AND b > 1 OR flag"), C("NOT (a > 1 AND (b > 1 OR flag))"), C("-a > 3"), C("+5 = a", "5 = a"), C("`a` = 5", '"a" = 5'),
    # NULL
    C("a IS NULL"), C("a IS NOT NULL"), C("a ISNULL", "", "a IS NULL"), C("a NOTNULL", "", "a IS NOT NULL"),
    C("isnull(a)", "a IS NULL"), C("isnotnull(name)", "name IS NOT NULL"), C("a IS DISTINCT FROM 5"), C("a IS NOT DISTINCT FROM 5"),
    C("a IS NOT DISTINCT FROM NULL"), C("a IS DISTINCT FROM b"), C("a <=> 5", "a IS NOT DISTINCT FROM 5"),
    C("a <=> b", "a IS NOT DISTINCT FROM b"), C("NOT a <=> NULL", "a IS NOT NULL"), C("flag IS TRUE"), C("flag IS NOT TRUE"),
    C("flag IS FALSE"), C("(a > 5) IS NOT FALSE"), C("flag IS UNKNOWN", "flag IS NULL"), C("coalesce(a, b, 0) = 3"),
    C("coalesce(flag, FALSE)"), C("coalesce(a > 5, b > 2)"), C("ifnull(a, -1) < 0"), C("nvl(name, 'none') = 'none'", "ifnull(name, 'none') = 'none'"),
    C("nvl2(a, b, 1) = 1", "CASE WHEN a IS NOT NULL THEN b ELSE 1 END = 1"), C("nullif(a, 0) = 5"), C("nullif(a, b) IS NULL"),
    C("a / nullif(b, 0) > 1"), C("coalesce(NULL, a) = 5"), C("coalesce(nullif(name, ''), 'empty') = 'empty'"),
    # conditionals
    C("if(a > 5, b = 1, flag)", "CASE WHEN a > 5 THEN b = 1 ELSE flag END"), C("if(a > 5, 1, 2) = 1", "CASE WHEN a > 5 THEN 1 ELSE 2 END = 1"),
    C("NOT if(flag, a = 5, b = 3)", "NOT CASE WHEN flag THEN a = 5 ELSE b = 3 END"),
    C("iff(flag, name, 'x') = 'x'", "CASE WHEN flag THEN name ELSE 'x' END = 'x'", "if(flag, name, 'x') = 'x'"),
    C("CASE WHEN a > 5 THEN TRUE ELSE FALSE END"), C("CASE WHEN a > 5 THEN b > 1 END"), C("CASE WHEN a > 5 THEN b WHEN a < 0 THEN 3 END = 3"),
    C("CASE a WHEN 5 THEN 'five' WHEN 6 THEN 'six' ELSE 'other' END <> 'other'"), C("CASE name WHEN 'ab' THEN flag ELSE a > 1 END"),
    C("CASE WHEN name LIKE 'a%' THEN 1 WHEN name IS NULL THEN 2 ELSE 3 END IN (1, 2)"),
    C("case when a in (5, 6) then 'lo' when a between 7 and 9 then 'mid' else 'hi' end = 'hi'"),
    C("CASE WHEN flag THEN CASE WHEN a > 1 THEN 1 ELSE 2 END ELSE 3 END = 2"), C("(CASE WHEN a = 5 THEN NULL ELSE a END) IS NULL"),
    C("CASE WHEN b <> 0 THEN a / b > 1 ELSE FALSE END", ansi=False), C("b <> 0 AND a / b > 1", ansi=False), C("greatest(a, b) = 7"), C("least(a, b, 3) = 1"), C("greatest(a, 3) > 5"),
    C("greatest(price, 2.0) = 2.5", None), C("least(name, 'b') = 'ab'"), C("greatest(day, DATE '2021-01-01') = DATE '2021-01-01'"),
    C("decode(a, 5, 'x', 6, 'y', 'z') = 'y'", "CASE WHEN a = 5 THEN 'x' WHEN a = 6 THEN 'y' ELSE 'z' END = 'y'"),
    # math
    C("a + b > 7"), C("a - b = 0"), C("a * 2 = 10"), C("a * (b + 1) > 10"), C("a / 2 = 2.5"), C("a % 2 = 1"), C("a % 2 = -1"), C("mod(a, 3) = 2"),
    C("a DIV 2 = 3", "a // 2 = 3"), C("a DIV 3 = -1", "a // 3 = -1"), C("abs(a) = 3"), C("abs(cost) < 1"), C("sign(a) = -1"), C("sqrt(abs(a)) > 2"),
    C("floor(cost) = 2"), C("floor(cost) = -1"), C("ceil(cost) = 1"), C("ceiling(cost) = -2"), C("ceil(d) = 3"), C("floor(d) = -2"), C("round(cost) = 3"),
    C("round(cost) = -3"), C("round(cost, 1) = 1.2", "round(cost::decimal(9,2), 1) = 1.2"), C("round(d, 1) = 12.4"), C("round(d) = 3"), C("round(a) = 5"), C("round(cost, 0) > 3"),
    C("isnan(price)", "coalesce(isnan(price), FALSE)"), C("NOT isnan(price)", "NOT coalesce(isnan(price), FALSE)"),
    C("price = double('NaN')", "price = 'NaN'::DOUBLE"), C("price = CAST('NaN' AS DOUBLE)"), C("price > 1e308"), C("nanvl(price, 0) = 0", "CASE WHEN isnan(price) THEN 0 ELSE price END = 0"),
    C("price = 0"), C("cost * 2 > 5 AND cost < 10"), C("d * 2 = 5"), C("d + 1 > 8"), C("1 < 2 AND a > 2 + 3"), C("a + 1 IN (6, 7)"), C("price <> price"),
    # bits
    C("a & 1 = 1"), C("(a & 4) <> 0"), C("a | 1 = 7"), C("(b & 3) = 3", "(b & 3) = 3"), C("a ^ 1 = 4", "xor(a, 1) = 4"), C("(a & 6) | 1 = 5", "((a & 6) | 1) = 5"),
    # strings
    C("name LIKE 'a%'"), C("name NOT LIKE 'a%'"), C("name LIKE '_b'"), C("name LIKE '%b%'"), C("name LIKE 'a!%b' ESCAPE '!'"), C("name ILIKE 'A%'"), C("name NOT ILIKE 'ab'"),
    C("name LIKE ''"), C("name LIKE '%'"), C("name LIKE ANY ('a%', 'x%')", "name LIKE 'a%' OR name LIKE 'x%'"), C("name LIKE ALL ('a%', '%b')", "name LIKE 'a%' AND name LIKE '%b'"),
    C("startswith(name, 'a')", "starts_with(name, 'a')"), C("starts_with(name, '')", "", "startswith(name, '')"), C("endswith(name, 'b')", "ends_with(name, 'b')"), C("ends_with(name, 'b')", "", "endswith(name, 'b')"),
    C("contains(name, 'b')"), C("contains(name, '')"), C("length(name) = 2"), C("char_length(name) > 2", "length(name) > 2"), C("len(name) = 0", "", "length(name) = 0"), C("lower(name) = 'ab'"), C("upper(name) = 'ÄÖ'"),
    C("lcase(name) LIKE 'a%'"), C("ucase(name) = 'B'"), C("trim(name) = 'pad'"), C("ltrim(name) = 'pad '"), C("rtrim(name) = ' pad'"), C("name || 'x' = 'abx'"), C("name || name = 'bb'"),
    C("concat(name, '-', txt) = 'ab-5'", "name || '-' || txt = 'ab-5'"), C("substring(name, 1, 1) = 'a'"), C("substr(name, 2) = 'b'"), C("substring(name FROM 1 FOR 2) = 'ab'"), C("substring(name, -1) = 'b'"),
    C("substring(name FROM 2) = 'b'", "substring(name, 2) = 'b'"), C("left(name, 1) = 'a'"), C("right(name, 1) = 'b'"), C("right(name, 2) = 'ab'"), C("left(name, 0) = ''"), C("replace(name, 'a', 'x') = 'xb'"), C("reverse(name) = 'ba'"),
    C("instr(name, 'b') = 2"), C("strpos(name, 'b') > 0", "", "instr(name, 'b') > 0"), C("locate('b', name) = 0", "instr(name, 'b') = 0"), C("name > 'ab'"), C("name BETWEEN 'a' AND 'b'"), C("name < 'b' AND name <> ''"), C("name = txt"),
    C("name = 'it''s' OR name = 'b'", "", "name = 'it\\'s' OR name = 'b'"), C("length(trim(name)) < length(name)"), C("lower(name) IN ('ab', 'äö')"), C("coalesce(name, '') = ''"), C("upper(left(name, 1)) = 'A'"),
    # regular expressions
    C("name RLIKE '^a'", "regexp_matches(name, '^a')"), C("name NOT RLIKE 'b'", "NOT regexp_matches(name, 'b')"), C("name REGEXP 'b$'", "regexp_matches(name, 'b$')"), C("regexp_like(name, '^[a-b]+$')", "regexp_matches(name, '^[a-b]+$')"),
    C("regexp_matches(name, 'b')", "", "regexp_like(name, 'b')"), C("name ~ '^a'", "regexp_matches(name, '^a')", "name RLIKE '^a'"), C("name !~ '^a'", "NOT regexp_matches(name, '^a')", "NOT name RLIKE '^a'"),
    C("regexp(name, '(?i)AB')", "regexp_matches(name, '(?i)AB')"), C("rlike(name, 'x|y')", "regexp_matches(name, 'x|y')"),
    # dates
    C("day = DATE '2020-05-03'"), C("day >= '2020-05-03'"), C("day > date '2020-01-01' AND day < date '2021-01-01'"), C("day = date('2020-05-03')", "day = DATE '2020-05-03'"), C("day BETWEEN '2020-01-01' AND '2020-12-31'"),
    C("day IN (DATE '2020-05-03', DATE '2024-02-29')"), C("loc > TIMESTAMP_NTZ '2020-05-03 07:30:00'", "loc > TIMESTAMP '2020-05-03 07:30:00'"), C("ts >= TIMESTAMP '2020-05-03 07:30:00Z'", "ts >= TIMESTAMPTZ '2020-05-03 07:30:00Z'"),
    C("year(day) = 2020"), C("month(day) = 12"), C("day(day) = 1"), C("quarter(day) = 2"), C("dayofyear(day) = 366"), C("dayofweek(day) = 1", "dayofweek(day) = 0"), C("weekday(day) = 6", "isodow(day) = 7"), C("weekofyear(day) = 1"), C("dayofmonth(day) = 29"),
    C("extract(year FROM day) = 2020"), C("EXTRACT(HOUR FROM loc) = 7"), C("extract(week FROM day) = 53"), C("extract(doy FROM day) = 60"), C("date_part('month', day) = 5"), C("hour(loc) >= 12"), C("minute(loc) = 30"), C("second(loc) = 1"),
    C("date_trunc('month', loc) = TIMESTAMP_NTZ '2020-05-01 00:00:00'", "date_trunc('month', loc) = TIMESTAMP '2020-05-01'", "date_trunc('month', loc) = TIMESTAMP '2020-05-01 00:00:00'"), C("date_add(day, 1) = DATE '2020-05-04'", "day + 1 = DATE '2020-05-04'"), C("date_sub(day, 3) < DATE '2020-05-01'", "day - 3 < DATE '2020-05-01'"),
    C("datediff(day, DATE '2020-05-01') = 2", "day - DATE '2020-05-01' = 2"), C("CAST(loc AS DATE) = DATE '2020-05-03'"), C("loc::date = day"), C("day < loc"), C("day = to_date('2020-05-03')", "day = DATE '2020-05-03'"), C("'2020-05-03'::date = day"),
    # lists
    C("array_contains(tags, 'x')", None), C("list_contains(tags, 'y')", None, "array_contains(tags, 'y')"), C("arrays_overlap(tags, array('x', 'y'))", None), C("size(tags) = 0", "len(tags) = 0"), C("cardinality(tags) > 1", "len(tags) > 1"), C("array_size(tags) = 1", "len(tags) = 1"),
    C("tags[0] = 'x'", "tags[1] = 'x'", ansi=False), C("tags[1] IS NULL", "tags[2] IS NULL", ansi=False), C("nums[0] > 2", "nums[1] > 2", ansi=False), C("element_at(tags, 1) = 'x'", "tags[1] = 'x'", ansi=False), C("element_at(tags, -1) = 'y'", "tags[-1] = 'y'", ansi=False), C("element_at(nums, 2) = 2", "nums[2] = 2", ansi=False),
    C("nums[0] + nums[1] = 3", "nums[1] + nums[2] = 3", ansi=False), C("upper(tags[0]) = 'X'", "upper(tags[1]) = 'X'", ansi=False), C("tags[0] LIKE 'x%'", "tags[1] LIKE 'x%'", ansi=False), C("tags[0] = tags[1]", "tags[1] = tags[2]", ansi=False), C("tags IS NULL"), C("NOT array_contains(nums, 5)", None),
    # maps and structs
    C("m['k'] = 5"), C("m['k'] IS NULL"), C("m['k'] BETWEEN 0 AND 5"), C("element_at(m, 'k') > 0", "m['k'] > 0"), C("m['k'] + 1 = 6"), C("m['k'] > a"), C("coalesce(m['k'], 0) = 0"), C("size(m) = 1", "cardinality(m) = 1"), C("st.x = 1"), C("st.y = 'a' AND st.x < 1"), C("st.x + 1 > 3"), C("st['y'] = 'b'"), C("st.x IS NULL"),
    # casts
    C("CAST(a AS STRING) = '5'", "CAST(a AS VARCHAR) = '5'"), C("a::string = '5'", "a::varchar = '5'"), C("a::double / 2 = 2.5"), C("cost::int = 2", "trunc(cost)::int = 2"), C("CAST(d AS INT) = -1", "trunc(d)::int = -1"), C("cast(txt as int) = 5", "try_cast(txt as int) = 5", ansi=False), C("txt::bigint > 6", "try_cast(txt as bigint) > 6", ansi=False), C("txt::int::string = '7'", "try_cast(txt as int)::varchar = '7'", ansi=False),
    C("(a + 1)::string LIKE '6%'", "(a + 1)::varchar LIKE '6%'"), C("lower(name)::string = 'ab'", "lower(name)::varchar = 'ab'"), C("-a::int = 3"), C("flag::int = 1"), C("a::boolean"), C("CAST(a AS DECIMAL(10, 2)) = 5.00"), C("day::timestamp_ntz = loc", "day::timestamp = loc", "CAST(day AS TIMESTAMP_NTZ) = loc"), C("d::float8 > 2.4", "", "d::double > 2.4"), C("'5'::int = a"), C("m['k']::string = '5'", "m['k']::varchar = '5'"),
    C("a::int4 = b", "", "a::int = b"),
]  # fmt: skip
