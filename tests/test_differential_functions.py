"""Values of the functions of ``expr/functions.py``, checked against Spark SQL.

COLMATCH_DIFFERENTIAL=5000 asks for that many expressions.
"""

from __future__ import annotations

import math
import os
import re
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from inside import attributes
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from test_differential_computed import numbered, some_events

import colmatch as cm
from colmatch.events.computed.derived import DerivedColumns
from colmatch.expr.functions import CONSTANTS as LITERALS
from colmatch.expr.functions import NUMBER, SPARK, TABLE, TEXT, VALUE, VARIANT, Function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT = int(os.environ.get("COLMATCH_DIFFERENTIAL", "300"))
FAILING = 12  # expressions that fail in some rows, each of which is asked twice
OTHERS = [  # forms that are not written as a call, functions of bytes, texts as dates
    *(f"{name}({kind})" for name in ("year", "dayofyear", "weekday", "hour", "second") for kind in ("moment", "s")),
    "datediff(moment, day)", "date_add(moment, 3)", "months_between(moment, at)", "date_trunc('month', moment)", "trunc(moment, 'MM')",
    "length(bytes)", "reverse(bytes)", "substring(bytes, -3, 2)", "left(bytes, 3)", "lpad(bytes, 9)", "rpad(bytes, 3, X'0102')",
    "overlay(bytes PLACING X'FF' FROM 2)", "startswith(bytes, X'00')", "contains(bytes, X'7F')", "overlay(s PLACING 'x' FROM -2 FOR 1)",
    "trim(BOTH 'ab' FROM s)", "trim(LEADING 'a' FROM t)", "trim(TRAILING 'c' FROM s)", "trim(FROM s)", "instr(s, 'a', 2)",
    "instr(s, 'b', -1, 1)", "instr(s, '', 11, 10)",
    "instr(long, 'a', 1, 2)", "locate('b', s, 2)", "extract(SECOND FROM at)", "date_part('seconds', loc)",
    "hex(i8)", "hex(i64)", "hex(bytes)", "bin(d)", "floor(d, 1)", "ceil(e, -2)", "ceil(wide, 3)", "floor(e, 4)", "d % e", "e % 7",
    "i64 % d",
    "try_mod(d, e)", "pmod(d, 0.7)", "log(f64)", "log(i8, f64)", "to_timestamp_ntz(moment, 'yyyy-MM-dd')", "timestamp_seconds(e)",
    "monthname(at)",
    "dayname(loc)", "monthname(moment)", "format_string('%05d|%-4s|%s%%', i32, t, b)", "format_string('%s', s)", "negative(i8)",
]  # fmt: skip
ZONES = ("Europe/Berlin", "UTC", "Asia/Kathmandu")
VALUES = {
    "number": ["i8", "i16", "i32", "i64", "f64", "f32", "f64 / 7", "0", "NULL"],
    "any type": ["i32", "NULL", "i32 + 1", "0"],
    "string": ["s", "t", "lower(s)", "concat(s, t)", "NULL", "CAST(i32 AS STRING)"],
    "text or whole number": ["s", "long", "i8", "i64"],
    "double": ["f64", "f32", "i32", "i64", "d", "f64 / 7", "i8"],
    "int": ["i8", "i16", "length(s)", "day(day)", "month(day)", "year(day)", "3", "-1", "0"],
    "whole": ["i8", "i16", "i32", "i64"],
    "date": ["day", "at", "loc", "DATE '2024-01-31'", "moment"],
    "timestamp": ["day", "at", "loc", "moment"],
    "numeric": ["i8", "i16", "i32", "f64", "f32", "i64 / 7", "d"],
    "text or bytes": ["s", "t", "bytes", "long", "encode(s, 'utf-8')"],
    "bigint": ["i8", "i16", "i32", "i64", "i64 * 3"],
    "date!": ["day", "DATE '2024-01-31'", "last_day(at)"],
    "moment": ["at", "loc", "CAST(loc AS TIMESTAMP)"],
    "binary": ["bytes", "encode(s, 'utf-8')", "unhex(hex(i64))"],
    "any": [
        "i8",
        "i16",
        "i32",
        "i64",
        "f32",
        "f64",
        "d",
        "e",
        "s",
        "t",
        "b",
        "day",
        "at",
        "loc",
        "long",
        "bytes",
        "wide",
        "NULL",
        "-f64",
        "concat(s, long)",
        "i64 * 2",
        "1.5",
        "0.0D",
        "'é'",
        "CAST(d AS DECIMAL(20,2))",
        "DATE '2024-01-31'",
    ],
}
OF = {
    "decode": ["bytes", "encode(s, 'utf-16')", "long", "encode(long, 'utf-32')"],
    "unhex": ["hex(s)", "hex(i64)", "long", "t", "bin(i32)"],
    "unbase64": ["base64(bytes)", "long", "s", "concat(base64(bytes), t)"],
    "from_base32": [
        "to_base32(bytes)",
        "long",
        "s",
        "concat(to_base32(bytes), t)",
        "left(to_base32(bytes), length(s))",
    ],
    "to_binary": ["hex(bytes)", "base64(bytes)", "long", "base64(s)"],
    "try_to_binary": ["hex(bytes)", "base64(bytes)", "long", "t", "concat(base64(bytes), ' ')"],
    "url_decode": ["url_encode(s)", "url_encode(long)", "s", "replace(hex(long), 'E', '%')"],
    "try_url_decode": ["url_encode(s)", "replace(hex(long), 'E', '%')", "concat('%', long)"],
    "parse_url": ["url", "url", "lower(url)", "long"],
    "try_parse_url": ["url", "url", "lower(url)", "long"],
    "luhn_check": ["CAST(i64 AS STRING)", "CAST(abs(i32) AS STRING)", "t", "bin(i32)"],
    "json_array_length": ["doc", "doc", "long"],
    "factorial": ["i8", "day(day)", "length(s)", "month(day)"],
    "space": ["length(s)", "day(day)", "i8", "-1"],
    "elt": ["i8", "length(t)", "day(day)"],
    "format_number": ["i8", "i32", "i64", "f64", "f32", "d", "wide", "f64 / 7", "f32 / 3"],
    "conv": ["t", "hex(s)", "CAST(i64 AS STRING)", "CAST(i32 AS STRING)", "md5(s)", "long"],
}  # values of some functions
PATHS = [
    "$",
    "$.a",
    "$.b",
    "$.a.b",
    "$.a.a",
    "$[0]",
    "$[1].a",
    "$.a[0]",
    "$.a[1].b",
    "$[\\'a b\\']",
    "$.a b",
    "$.é",
    "$.a[2][0]",
    "$.b[0]",
]
OF["upper"] = ["s", "t", "concat(s, t)", "long"]  # Spark takes upper(lower(s)) for upper(s), which differs for 'İ'
OF["get_json_object"] = ["doc", "doc", "doc", "long", "s", "lower(doc)", "concat(doc, t)"]
BASES = ["2", "10", "16", "36", "-10", "-16", "7", "37", "1", "0"]
TEXTS = ["a", "b", "", " ", "abc", "x", "ÄÖ", "1", "-", "e", "ss", "a,abc,x"]
REGEXES = [
    "a",
    "[a-c]+",
    "(.)(.)",
    "^a",
    "b$",
    "x|A",
    "(a)?b",
    "\\\\\\\\d+",
    "s{2}",
    "(z)|(a)",
    "a*",
    "^",
    "x?",
    "(?i)A",
]
CHARSETS = ["utf-8", "UTF-8", "us-ascii", "iso-8859-1", "utf-16", "utf-16be", "UTF-16LE", "utf-32"]
PARTS_OF_URL = ["HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO"]
NEW = {
    "regexp_replace": ["", "-", "$0", "[$0]"],
    "next_day": ["Mon", "TU", "sunday", "fri"],
    "translate": ["", "xy", "123"],
    "get_json_object": PATHS,
    "encode": CHARSETS,
    "decode": CHARSETS,
    "to_binary": ["hex", "utf-8", "base64"],
    "try_to_binary": ["hex", "utf-8", "base64", "x"],
    "parse_url": PARTS_OF_URL,
    "try_parse_url": PARTS_OF_URL,
    "hmac": ["SHA-1", "sha-256", "SHA-512"],
    "jaro_winkler_similarity": ["a", "abc", "", "Abc", "ÄÖ straße", "cba", "straÄÖ"],
    "date_format": ["yyyy-MM-dd", "EEE d MMM", "HH:mm:ss.SSS", "D Q"],
    "to_timestamp": ["yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss"],
    "from_utc_timestamp": ["Asia/Seoul", "Europe/Paris"],
    "to_utc_timestamp": ["America/New_York", "Asia/Kathmandu"],
}
CONSTANTS = {
    "a text or NULL": ["'Q'", "NULL", "'é'", "'0'"],
    "a text or number": [
        "0",
        "1",
        "2",
        "3",
        "10",
        "-1",
        "'#,##0.00'",
        "'0.0'",
        "'#.##'",
        "'#'",
        "'000.###'",
        "'####.#'",
    ],
}


KEYS = ['"a"', '"a"', '"b"', '"a b"', '"é"', "'a'", '"\\u0061"', '"c"']
ODD = [
    '""', '"x"', "'y'", "true", "false", "null", '"é€"', '"😀"', '"\\ud83d\\ude00"', '"\\ud800"', '"a\\n\\"/\\/"', "'it\\'s'",
    '"\t"', "'\"'", '"it\'s"', '"\u2028\x7f"',
]  # fmt: skip
WRONG = ["NaN", "tru", "01", "1.", "+1", '"\\x"', '"\\u12"', "-", "truex"]


def document(rng: Random) -> str:
    """A JSON text, or what is nearly one."""

    def value(depth: int) -> str:
        kind = rng.random()
        if depth and kind < 0.4:
            pairs = [f"{rng.choice(KEYS)}{rng.choice(['', ' '])}:{value(depth - 1)}" for _ in range(rng.randint(0, 4))]
            return "{" + ",".join(pairs) + "}"
        if depth and kind < 0.65:
            return "[" + rng.choice([",", " ,\n"]).join([value(depth - 1) for _ in range(rng.randint(0, 3))]) + "]"
        if kind < 0.8:
            some = [1.5, 1e7, 1e-3, 123456789.125, 5e-324, 1e23, 2.0**70, rng.random() * 10.0 ** rng.randint(-320, 308)]
            number = rng.choice(some)
            whole = str(rng.randint(-(10**20), 10**20))
            return rng.choice([repr(number), f"-{number:e}", f"{number:.3g}", whole, "0", "-0", "1.10", "2E400", "0.0"])
        return rng.choice(ODD if rng.random() < 0.97 else WRONG)

    text = rng.choice(["", "", " "]) + value(3) + rng.choice(["", "", "", " ", "x", "}", ","])
    if rng.random() < 0.1:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(["", "}", '"', "\\", ",", "'", " "]) + text[at + 1 :]
    return text


PIECES = [
    "http", "ftp", "mailto", "a1+x", ":", "://", "/", "//", "user", "@", "host", "shop.de", "10.0.0.1", "1.2.3.400", "[::1]", ".",
    ":80", ":x", "/a/b", "?", "q=1", "&", "q=a%20b", "#", "frag", "%", "%41", " ", "é", "_", "-", "|", "^", "a-b.c", "~", "!", "'",
]  # fmt: skip


def url(rng: Random) -> str:
    """A URL, or what is nearly one."""
    if rng.random() < 0.5:
        return "".join(rng.choices(PIECES, k=rng.randint(0, 7)))
    parts = [
        rng.choice(["http://", "https://", "x:"]),
        rng.choice(["", "", "u@", "u:p@"]),
        rng.choice(["shop.de", "a-b.c", "10.0.0.1"]),
    ]
    parts += [
        rng.choice(["", ":80"]),
        rng.choice(["", "/", "/a/b", "/a b", "/é"]),
        rng.choice(["", "?q=1", "?q=a%20&r=", "?"]),
    ]
    return "".join([*parts, rng.choice(["", "#x", "#"])])


def more_events(rows: int) -> pa.Table:
    """Events with further types, and texts of all lengths up to a hundred bytes."""
    rng = Random(7)
    letters = "abcxyz0123456789-.é€😀\0\r\n"
    long = [
        "".join(rng.choices(letters, k=rng.choice([0, 1, 3, 4, 5, 8, 15, 31, 32, 33, 40, 64, 100])))
        for _ in range(rows)
    ]
    wide = [
        Decimal(f"{n}E-6")
        for n in (0, 1, -1, 127, 128, -128, -129, 255, 256, 2**63, -(2**63), 2**120, 10**38 - 1, 1 - 10**38)
    ]
    columns = {
        "doc": pa.array([None if rng.random() < 0.1 else document(rng) for _ in range(rows)]),
        "url": pa.array([None if rng.random() < 0.05 else url(rng) for _ in range(rows)]),
        "moment": pa.array(
            [rng.choice([None, "2024-02-29", "2023-3-1 12:30:45.5", "x", "1969-12-31T23:59:59Z"]) for _ in range(rows)]
        ),
        "long": pa.array([None if rng.random() < 0.1 else text for text in long]),
        "bytes": pa.array(
            [None if rng.random() < 0.1 else rng.randbytes(rng.randint(0, 70)) for _ in range(rows)], pa.binary()
        ),
        "wide": pa.array([rng.choice([None, *wide]) for _ in range(rows)], pa.decimal128(38, 6)),
    }
    events = some_events(rows)
    for name, values in columns.items():
        events = events.append_column(name, values)
    return events


def expression(rng: Random, function: Function) -> str:
    def argument(place: int, kind: str) -> str:
        if kind in CONSTANTS:
            return rng.choice(CONSTANTS[kind])
        if function.name == "hmac":
            return ["'key'", rng.choice(VALUES["text or bytes"]), f"'{rng.choice(NEW['hmac'])}'"][place]
        if function.name == "format_string":
            return "'%5s|%s|'" if place == 0 else rng.choice(["s", "i32", "b", "NULL", "i64"])
        if function.name.endswith("parse_url") and place == 2:
            return "'q'"
        if kind == NUMBER:
            if function.name == "sha2":
                return rng.choice(["0", "224", "256", "384", "512", "7"])
            if function.name == "conv":
                return rng.choice(BASES)
            if function.name == "bit_get":
                return str(rng.randint(0, 7))
            least = -3 if function.name not in ("regexp_extract",) else 0
            return str(
                rng.choice([n for n in range(least, 3 if least == 0 else 12) if n or function.name != "split_part"])
            )
        if kind == TEXT:
            if "regexp" in function.name and place == 1:
                return f"'{rng.choice(REGEXES)}'"
            return f"'{rng.choice(NEW.get(function.name, TEXTS) if place else TEXTS)}'"
        return rng.choice(OF.get(function.name, VALUES[kind]))

    kinds = function.arguments[: len(function.arguments) - rng.randint(0, function.optional)]
    kinds += kinds[-1:] * (rng.randint(0, 4) if function.repeats else 0)
    return f"{function.name}({', '.join(argument(i, kind) for i, kind in enumerate(kinds))})"


class Ours(NamedTuple):
    """What colmatch computes: values, and the rows where it fails."""

    values: list[Any]
    failed: list[bool]


def computed(text: str, events: pa.Table, zone: str, ansi: bool = False) -> Ours | None:
    """What colmatch computes; None where it refuses the expression."""
    try:
        options = cm.Options(timezone=zone, ansi=ansi)
        matcher = cm.Matcher.build({0: f"{text} IS NULL"}, events.schema, options=options)
    except cm.ExpressionError:
        return None
    (batch,) = events.combine_chunks().to_batches()
    members = attributes(matcher)
    if not len(members):  # it is constant
        return None
    with_values, failed = DerivedColumns(members, True).add_to(batch)
    if with_values.num_columns == len(events.schema):  # it is a column itself
        return None
    rows = next(iter(failed.values())).rows if failed else False
    return Ours(plain(with_values.column(len(events.schema))), np.broadcast_to(rows, len(events)).tolist())


def plain(values: Any) -> list[Any]:
    """Values of Python, with days and microseconds as numbers: some are beyond the year 9999."""
    number = {"date": pa.int32(), "time": pa.int64()}.get(str(values.type)[:4])
    found: list[Any] = (values if number is None else values.cast(number)).to_pylist()
    return found


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other) or math.isclose(one, other, rel_tol=1e-14)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize("ansi", [False, True])
@pytest.mark.parametrize("zone", ZONES)
def test_spark_computes_the_same(spark: SparkSession, conf: Any, zone: str, ansi: bool) -> None:
    conf("spark.sql.session.timeZone", zone)
    conf("spark.sql.ansi.enabled", str(ansi).lower())
    rng, events = Random(f"{zone}{ansi}"), more_events(60)
    functions = [
        function
        for function in TABLE.values()
        if function.source == SPARK
        and function.kind == VALUE
        and set(function.arguments) <= {*VALUES, *LITERALS}
        and function.result != VARIANT  # whose values are compared in test_differential_variants.py
        and not re.match("make_.*interval", function.name)  # in test_differential_times.py
        and not re.search("timestamp|unixtime|^date$|^decode$", function.name)  # compared elsewhere
    ]
    texts = [expression(rng, functions[i % len(functions)]) for i in range(COUNT)]
    texts += [
        "concat_ws('-', s, t)",
        "concat_ws('', s, lower(t), NULL)",
        "length(concat_ws('é!', t, s, t))",
        "concat_ws('-', s)",
        *OTHERS,
    ]
    ours = {text: found for text in dict.fromkeys(texts) if (found := computed(text, events, zone, ansi)) is not None}
    assert len(ours) > 0.6 * len(dict.fromkeys(texts))
    frame = numbered(spark, events)
    whole = [text for text, found in ours.items() if not any(found.failed)]
    theirs = dict[str, list[Any]]()
    for at in range(0, len(whole), 60):
        theirs |= asked(frame, whole[at : at + 60])
    wrong = [f"{text}: Spark fails" for text in whole if text not in theirs]
    rows_of = {
        text: [row for row, is_failed in enumerate(found.failed) if not is_failed] for text, found in ours.items()
    }
    for text in [text for text in ours if text not in whole][:FAILING]:
        found = ours[text]
        # where an argument is NULL, another may fail in Spark
        good = rows_of[text] = [row for row in rows_of[text] if found.values[row] is not None]
        theirs |= asked(frame.where(F.col("nr").isin(good)), [text]) if good else {}
        wrong += [f"{text}: Spark fails elsewhere"] if good and text not in theirs else []
        if asked(frame.where(F.col("nr") == found.failed.index(True)), [text]):
            wrong.append(f"{text}: {events.slice(found.failed.index(True), 1).to_pylist()} fails here alone")
    for text, values in theirs.items():
        places = rows_of[text]
        mine = [ours[text].values[row] for row in places]
        for row, one, other in [found for found in zip(places, mine, values, strict=True) if not is_same(*found[1:])][
            :1
        ]:
            wrong.append(f"{text}: {events.slice(row, 1).to_pylist()} {one!r}, Spark {other!r}")
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:30])


def asked(frame: DataFrame, texts: list[str]) -> dict[str, list[Any]]:
    """What Spark computes, without the expressions that fail."""
    try:
        answer = frame.selectExpr("nr", *(f"{text} AS c{i}" for i, text in enumerate(texts))).toArrow().sort_by("nr")
    except (PySparkException, Py4JError):  # a function of Java may raise its own
        half = len(texts) // 2
        return asked(frame, texts[:half]) | asked(frame, texts[half:]) if half else {}
    return {text: plain(answer[f"c{i}"]) for i, text in enumerate(texts)}


def test_spark_reads_json_the_same(spark: SparkSession) -> None:
    rng = Random(9)
    documents = pa.table({"doc": [document(rng) for _ in range(20 * COUNT)]})
    ours = {path: computed(f"get_json_object(doc, '{path}')", documents, "UTC") for path in PATHS}
    frame = numbered(spark, documents)
    answer = (
        frame.selectExpr("nr", *(f"get_json_object(doc, '{path}') AS c{i}" for i, path in enumerate(PATHS)))
        .toArrow()
        .sort_by("nr")
    )
    wrong = []
    for i, path in enumerate(PATHS):
        one = ours[path]
        assert one is not None
        found = one.values
        assert sum(one is not None for one in found) > 10, path
        pairs = zip(documents["doc"].to_pylist(), found, answer[f"c{i}"].to_pylist(), strict=True)
        wrong += [f"{path} of {doc!r}: {one!r}, Spark {other!r}" for doc, one, other in pairs if one != other]
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:30])
