"""Schemas and types as users declare them -> schemas and types of Arrow.

A text has columns separated by commas or ends of lines: ``age: int64, city: string``. It may be the
body of SQL's CREATE TABLE, too: ``age bigint, city varchar(20), tags array<string>``. Brackets may
go over several lines, and ``#`` and ``--`` begin comments. Or the text is a JSON object from name
to type. A type is the ``str()`` of a pyarrow type, a short name of pyarrow, or a name of Spark or
DuckDB, which sqlglot reads.

Other libraries' schemas are recognised by their module and attributes, so no library is imported
that the caller does not use.
"""

from __future__ import annotations

import collections.abc
import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from inspect import signature
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import pyarrow as pa

from colmatch.errors import SchemaError, show_value
from colmatch.given.incoming import NESTED_MOST, is_text, refusing
from colmatch.given.scans import scan_of
from colmatch.given.variants import VARIANT_TYPE

_BRACKETS = re.compile(r"[<>()\[\]{}]")
# A column: its name, and its type behind a colon outside of brackets, or behind a space.
_COLON = re.compile(r"""\s*([^:<(\['"`]*[^:<(\['"`\s])\s*:\s*(\S.*)""", re.DOTALL)
_QUOTED = re.compile(r"""\s*(`(?:[^`]|``)+`|"(?:[^"]|"")+")\s*:?\s*(\S.*)""", re.DOTALL)
_PLAIN = re.compile(r"\s*(\w+)\s+(\S.*)", re.DOTALL)
_NOT_NULL = re.compile(r"(?<!\s)\s+not\s+null\s*$", re.IGNORECASE)
# allowed behind a type
_CONSTRAINT = re.compile(
    r"(?<!\s)\s+(?:not\s+null|null|primary\s+key|(?P<comment>comment)\s+'(?:[^'\\]|''|\\.)*')\s*$",
    re.IGNORECASE | re.DOTALL,
)
_CREATE = re.compile(
    r"create\s+(?:or\s+replace\s+)?(?:\w+\s+)?table\s+(?:if\s+not\s+exists\s+)?[\w.`\"]+\s*(?=\()", re.IGNORECASE
)
_OF_TABLE = re.compile(r"(?:primary|foreign)\s+key\b|constraint\s|(?:unique|check)\s*\(", re.IGNORECASE)
# Printed by pyarrow behind the columns of a schema: columns within lists and structs, and metadata.
_CHILDREN = re.compile(r"\n +child \d+, [^\n]*|\n-- schema metadata --.*", re.DOTALL)
_FILE = re.compile(r"\S+\.(?:parquet|pq|arrow|feather|ipc|csv|tsv|jsonl|ndjson|orc)", re.IGNORECASE)
# A quoted text or name, or a comment; and the start of a line that belongs to the line before.
_QUOTES = re.compile(r"""'(?:[^'\\]|''|\\.)*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|(?:\#|--)[^\n]*""", re.DOTALL)
_BRACKET = re.compile(_QUOTES.pattern + r"|[()]", re.DOTALL)
_GOES_ON = re.compile(r"\s*(?:not\s+null\b|primary\s+key\b|comment\s+')", re.IGNORECASE)
_LISTS = {
    "list": pa.list_, "array": pa.list_, "large_list": pa.large_list, "list_view": pa.list_view,
    "large_list_view": pa.large_list_view,
}  # fmt: skip
_DECIMALS = {
    "decimal": pa.decimal128, "decimal128": pa.decimal128, "decimal32": pa.decimal32, "decimal64": pa.decimal64,
    "decimal256": pa.decimal256,
}  # fmt: skip
_EXTENSIONS = {"arrow.uuid": pa.uuid, "arrow.json": pa.json_, "arrow.bool8": pa.bool8}
# pyarrow prints these names but knows only others as aliases.
_PRINTED = {
    "double": "float64",
    "float": "float32",
    "halffloat": "float16",
    "boolean": "bool",
    "int": "int32",
    "bigint": "int64",
    "date": "date32",
    "bytes": "binary",
}
_PYTHON: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us"),
    time: pa.time64("us"),
    timedelta: pa.duration("us"),
    np.datetime64: pa.timestamp("us"),  # NumPy has no unit here, and other units are taken where they fit
    np.timedelta64: pa.duration("us"),
}
_MANY = (list, set, frozenset, collections.abc.Sequence, collections.abc.Set, collections.abc.Iterable)
_ENTRIES = (dict, collections.abc.Mapping)
_NAMES = (  # for misspelt names
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "tinyint", "smallint", "int", "integer", "bigint",
    "long", "float", "double", "real", "decimal", "numeric", "bool", "boolean", "string", "text", "varchar", "binary", "date",
    "date32", "time", "timestamp", "timestamp_ntz", "timestamptz", "list", "array", "map", "struct", "dictionary", "duration", "variant",
)  # fmt: skip
_WRITTEN = {  # names that are incomplete alone
    "list": "list<string> or the like", "array": "array<string> or the like", "map": "map<string, int64> or the like",
    "struct": "struct<x: int64> or the like", "dictionary": "dictionary<values=string, indices=int32>",
    "duration": "duration[us]", **dict.fromkeys(("decimal", "numeric"), "decimal(10, 2), of 38 digits at most"),
}  # fmt: skip
_SQL = {  # by the names of sqlglot's types
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINT": pa.uint32(), "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "TEXT": pa.string(), "VARCHAR": pa.string(), "CHAR": pa.string(),
    "NCHAR": pa.string(), "NVARCHAR": pa.string(), "BPCHAR": pa.string(), "ENUM": pa.string(), "BINARY": pa.binary(),
    "VARBINARY": pa.binary(), "UUID": pa.uuid(), "DATE": pa.date32(), "DATETIME": pa.timestamp("us"), "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPNTZ": pa.timestamp("us"), "TIMESTAMPTZ": pa.timestamp("us", "UTC"), "TIMESTAMPLTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_S": pa.timestamp("s"), "TIMESTAMP_MS": pa.timestamp("ms"), "TIMESTAMP_NS": pa.timestamp("ns"),
    "INT128": pa.decimal128(38, 0), "TIME": pa.time64("us"), "NULL": pa.null(), "VARIANT": VARIANT_TYPE,
}  # fmt: skip


def schema_of(declared: object) -> pa.Schema:
    """Reads a schema: Arrow's, a text, a mapping from name to type, or an object that has a schema.

    Raises SchemaError if there is none, or if a type in it is unknown.
    """
    with refusing(SchemaError, f"a schema cannot be read from {type(declared).__name__}"):
        schema = _schema_of(declared)
    if schema is None:
        if isinstance(declared, os.PathLike):
            raise SchemaError(f"a path is no schema: {_of_files(os.fspath(declared))}")
        raise SchemaError(
            f"a schema is a pyarrow.Schema, a mapping from name to type, a text like 'age bigint, city string', a schema of "
            f"Spark or polars, or a data frame, not {type(declared).__name__}"
        )
    return schema


def _schema_of(declared: Any) -> pa.Schema | None:
    if isinstance(declared, str):
        return parse_schema(declared)
    if (scan := scan_of(declared)) is not None:
        return _schema_of(scan.schema)
    if hasattr(type(declared), "as_arrow"):  # a schema of Iceberg
        return _schema_of(declared.as_arrow())
    package = type(declared).__module__.partition(".")[0]
    if package == "ibis":
        return pa.schema(declared.schema() if hasattr(declared, "schema") else declared)
    if isinstance(declared, Mapping):
        if package == "polars":
            return pa.schema([_make_typed_field(name, kind, package) for name, kind in declared.items()])
        return pa.schema([_make_field(str(name), kind) for name, kind in declared.items()])
    if isinstance(declared, (list, tuple)) and declared and all(map(_is_column, declared)):
        return pa.schema([one if isinstance(one, pa.Field) else _make_field(str(one[0]), one[1]) for one in declared])
    if (columns := _read_annotations(declared if isinstance(declared, type) else type(declared))) is not None:
        return _schema_of(columns)
    if hasattr(declared, "__arrow_c_schema__"):
        return pa.schema(declared)
    if package == "pandas" and hasattr(declared, "columns"):
        return pa.schema([_pandas_field(declared.iloc[:, [i]]) for i in range(declared.shape[1])])
    if package == "pandas" and hasattr(declared, "items"):  # the types of a data frame
        return pa.schema([_of_series(str(name), type) for name, type in declared.items()])
    if package == "duckdb" and hasattr(declared, "limit"):
        return pa.RecordBatchReader.from_stream(declared.limit(0)).schema
    if package == "pyspark":
        columns = getattr(getattr(declared, "schema", declared), "fields", None)
        return None if columns is None else pa.schema([_spark_field(field) for field in columns])
    if package == "datafusion" and hasattr(declared, "schema"):
        return declared.schema()  # a stream would run the query
    if hasattr(declared, "collect_schema"):  # of polars
        return _schema_of(declared.collect_schema())
    own = getattr(declared, "schema", None)
    if isinstance(own, pa.Schema):
        return own
    if hasattr(declared, "__arrow_c_array__") and pa.types.is_struct(arrow := pa.array(declared).type):
        return pa.schema(list(arrow))
    return pa.RecordBatchReader.from_stream(declared).schema if hasattr(declared, "__arrow_c_stream__") else None


def _is_column(given: object) -> bool:
    return isinstance(given, pa.Field) or (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str))


def _read_annotations(kind: type) -> dict[str, Any] | None:
    """Returns the types of the fields of a dataclass, a named tuple, a TypedDict or a pydantic
    model.

    None for any other class.
    """
    if is_dataclass(kind):
        hints = _hints(kind)
        return {field.name: hints[field.name] for field in fields(kind)}
    if is_typeddict(kind):
        return _hints(kind)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = _hints(kind)
        for name in kind._fields:
            if name not in hints:
                raise SchemaError(f"field {name!r} of {kind.__name__} has no type: typing.NamedTuple gives types")
        return hints
    model = getattr(kind, "model_fields", None)
    return {name: field.annotation for name, field in model.items()} if isinstance(model, Mapping) else None


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError as error:
        raise SchemaError(f"a type in {kind.__name__} cannot be found: {error}") from error


def _of_files(path: object) -> str:
    return f"of files, pyarrow.dataset.dataset({show_value(path)}) has the schema"


def _make_known_field(name: str, library: str, type: object, make: Callable[[], pa.Field]) -> pa.Field:
    """Returns a column of another library's schema.

    If Arrow has no such type, its type is Arrow's for unknown ones. Then no expression can use it,
    and the other columns stay usable.
    """
    try:
        with refusing(SchemaError, "Arrow has no such type"):
            return make()
    except SchemaError:
        return pa.field(name, pa.opaque(pa.null(), f"{type!s:.200}", library))


def _pandas_field(column: Any) -> pa.Field:
    """Returns the only column of a data frame."""

    def make() -> pa.Field:
        return pa.Schema.from_pandas(column, preserve_index=False).field(0)

    return _make_known_field(str(column.columns[0]), "pandas", column.dtypes.iloc[0], make)


def _make_typed_field(name: str, type: Any, library: str) -> pa.Field:
    return _make_known_field(name, library, type, lambda: _make_field(name, type))


def _of_series(name: str, type: Any) -> pa.Field:
    is_dtype = hasattr(type, "kind")  # others are names of types, or no types
    return _make_typed_field(name, type, "pandas") if is_dtype else _make_field(name, type)


def _spark_field(field: Any) -> pa.Field:
    def make() -> pa.Field:
        return pa.field(field.name, type_of(field.dataType, field.name), nullable=field.nullable)

    return _make_known_field(field.name, "Spark", field.dataType.simpleString(), make)


def _make_field(name: str, declared: Any) -> pa.Field:
    """Returns a column. If its type is written with NOT NULL, each event must define it."""
    nullable = True
    if isinstance(declared, str):
        declared = declared.strip()
        while constraint := _CONSTRAINT.search(declared):
            nullable = nullable and (constraint["comment"] is not None or constraint[0].strip().lower() == "null")
            declared = declared[: constraint.start()]
    return pa.field(name, type_of(declared, name), nullable=nullable)


def type_of(declared: Any, column: str) -> pa.DataType:
    """Returns the Arrow type for a type of some library, or for a name.

    Libraries are Arrow, NumPy, Spark, polars, pandas and Python itself; errors name ``column``.
    """
    if isinstance(declared, pa.DataType):
        return declared
    if isinstance(declared, str):
        return parse_type(declared, column)
    with refusing(SchemaError, f"column {show_value(column)}: {show_value(declared)} is no type that Arrow has"):
        if (annotated := _python_type(declared, column)) is not None:
            return annotated
        if isinstance(declared, np.dtype) or (isinstance(declared, type) and issubclass(declared, np.generic)):
            dtype = np.dtype(declared)
            if dtype.kind in "mM" and np.datetime_data(dtype)[0] == "generic":
                return _PYTHON[dtype.type]
            return pa.string() if dtype.kind in "UT" else pa.from_numpy_dtype(dtype)
        package = (declared if isinstance(declared, type) else type(declared)).__module__.partition(".")[0]
        if package == "pyspark":
            return _spark_type(declared() if isinstance(declared, type) else declared, column)
        if package == "pandas":
            import pandas

            return pa.Array.from_pandas(pandas.Series([], dtype=declared)).type
        if package == "polars":
            import polars
            from polars.exceptions import PolarsError

            try:
                return pa.table(polars.DataFrame(schema={"": declared})).schema.field(0).type
            except PolarsError as error:
                raise ValueError(error) from error
    raise SchemaError(
        f"column {show_value(column)}: a pyarrow.DataType, the name of a type, or a type of Python, NumPy, Spark or polars is "
        f"needed, not {show_value(declared)}"
    )


def _python_type(declared: Any, column: str) -> pa.DataType | None:
    """Returns the Arrow type for a type of Python, also for one such as ``list[str] | None``.

    None if it is unknown.
    """
    origin, inside = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return type_of(inside[0], column)
    if origin in (Union, UnionType):
        values = [part for part in inside if part is not NoneType]
        return type_of(values[0], column) if len(values) == 1 else None
    if (origin in _MANY and len(inside) == 1) or (origin is tuple and inside[1:] == (...,)):
        return pa.list_(type_of(inside[0], column))
    if origin in _ENTRIES and len(inside) == 2:
        return pa.map_(type_of(inside[0], column), type_of(inside[1], column))
    if not isinstance(declared, type):
        return None
    if declared is Decimal:
        message = "a Decimal does not say how many digits it has: write 'decimal(10, 2)' or the like"
        raise SchemaError(f"column {show_value(column)}: {message}")
    if declared in (*_MANY, *_ENTRIES, tuple):
        name = declared.__name__
        example = f"{name}[str, int]" if declared in _ENTRIES else f"{name}[str]"
        raise SchemaError(
            f"column {show_value(column)}: {name} does not say what is in it: write {example} or the like"
        )
    columns = _read_annotations(declared)
    return _PYTHON.get(declared) if columns is None else pa.struct(list(_schema_of(columns) or ()))


def arrow_type_of(type: Any, zone: str) -> pa.DataType:
    """Returns the Arrow type for Spark's ``DataType``.

    zone : of timestamps with one. Spark 4.0 has all of them in UTC
    """
    from pyspark.sql.pandas.types import to_arrow_type

    more: dict[str, Any] = {"timezone": zone} if "timezone" in signature(to_arrow_type).parameters else {}
    return to_arrow_type(type, **more)


def _spark_type(type: Any, column: str) -> pa.DataType:
    from pyspark.errors import PySparkException

    try:
        return arrow_type_of(type, "UTC")
    except PySparkException:  # CHAR and VARCHAR: Spark has them for schemas alone
        return parse_type(type.simpleString(), column)


def parse_schema(text: str) -> pa.Schema:
    """Reads the schema that ``text`` describes.

    Raises SchemaError if the text cannot be read; it names the column and the fault.
    """
    text = text.lstrip("\ufeff")
    deep = 0
    for bracket in _BRACKETS.findall(text):
        deep += 1 if bracket in "<([{" else -1
        if deep > 2 * NESTED_MOST:
            raise SchemaError(
                f"the schema has brackets within each other deeper than {2 * NESTED_MOST}: leave such columns out"
            )
    if not is_text(text):
        raise SchemaError("the schema has half a surrogate pair in it, which is no character")
    if text.lstrip().startswith("{"):
        return _from_json(text)
    text = _CHILDREN.sub("", "\n".join(text.splitlines()))
    text = _QUOTES.sub(lambda found: found[0] if found[0][0] in "'\"`" else " ", text).strip()
    if created := _CREATE.match(text):
        text = _in_brackets(text[created.end() :])
    if text.startswith("(") and text.endswith(")"):  # as in CREATE TABLE
        text = text[1:-1]
    fields = [_field(part) for part in _split(text, lines=True) if part.strip()]
    if not fields:
        raise SchemaError("the schema names no column: write it as 'age: int64, city: string'")
    return pa.schema(fields)


def _in_brackets(text: str) -> str:
    """Returns the brackets that a text begins with.

    Raises SchemaError if anything but a semicolon follows them.
    """
    deep = 0
    for bracket in _BRACKET.finditer(text):
        deep += {"(": 1, ")": -1}.get(bracket[0], 0)
        if not deep:
            if behind := text[bracket.end() :].rstrip("; \n").strip():
                raise SchemaError(f"in the schema, {show_value(behind)} follows the columns of the table: leave it out")
            return text[: bracket.end()]
    return text


def _from_json(text: str) -> pa.Schema:
    try:
        columns = json.loads(text, object_pairs_hook=list)  # a name may be there twice
    except ValueError as error:
        raise SchemaError(f"the schema is not valid JSON: {error}") from error
    return pa.schema([_make_field(name, str(declared)) for name, declared in columns])


def _field(part: str) -> pa.Field:
    if _OF_TABLE.match(part.strip()):
        raise SchemaError(f"in the schema, {show_value(part.strip())} is no column: leave it out")
    column = _QUOTED.fullmatch(part) or _COLON.fullmatch(part) or _PLAIN.fullmatch(part)
    if column is None:
        files = f"; {_of_files(part.strip())}" if _FILE.fullmatch(part.strip()) else ""
        raise SchemaError(
            f"in the schema, {show_value(part.strip())} should be 'name: type' or 'name type', as in 'age: int64'{files}"
        )
    name = column[1].strip()
    if len(name) > 1 and name[0] == name[-1] and name[0] in '`"':
        name = name[1:-1].replace(2 * name[0], name[0])
    return _make_field(name, column[2])


def _split(text: str, lines: bool = False) -> list[str]:
    """Returns the parts between the commas outside of brackets and quotes.

    lines : parts end with their line, too, unless the next line goes on with NOT NULL or the like

    Raises SchemaError if a bracket or a quote has no other end.
    """
    parts, depth, start, quote, escaped = [], 0, 0, "", False
    for i, character in enumerate(text):
        if quote:
            closes = character == quote and not escaped
            escaped = character == "\\" and not escaped
            quote = "" if closes else quote
        elif character in "'\"`":
            quote = character
        elif character in "<([":
            depth += 1
        elif character in ">)]":
            depth -= 1
        elif depth == 0 and (character == "," or (lines and character == "\n" and not _GOES_ON.match(text, i))):
            parts.append(text[start:i])
            start = i + 1
        if depth < 0:
            break
    if depth or quote:
        raise SchemaError(f"in the schema, a bracket or a quote has no other end: {show_value(text.strip())}")
    return [*parts, text[start:]]


def parse_type(text: str, column: str) -> pa.DataType:
    """Returns the type called ``text``; errors name ``column``."""
    text = _NOT_NULL.sub("", text.strip())
    sized = re.fullmatch(r"fixed_size_list\s*<(.*)>\s*\[(\d{1,9})\]", text, re.DOTALL)
    if sized:
        return pa.list_(parse_type(f"list<{sized[1]}>", column).value_type, int(sized[2]))
    match = re.fullmatch(r"(\w+)\s*(?:<(.*)>|\((.*)\)|\[([^\[\]]*)\])", text, re.DOTALL)
    name, inside = (
        (match[1].lower(), next(group for group in match.groups()[1:] if group is not None))
        if match
        else (text.lower(), "")
    )
    try:
        arrow = _parse_nested(name, _split(inside), column) if match else pa.type_for_alias(_PRINTED.get(name, name))
    except (ValueError, LookupError, TypeError, ArithmeticError, StopIteration) as error:
        if isinstance(error, SchemaError):
            raise
        arrow = None
    if arrow is None:
        arrow = _of_sql(text)
    if arrow is None and text.startswith(("<", ">", "=", "|")):  # of NumPy, with its order of bytes
        with refusing(SchemaError, f"column {show_value(column)}: no type is called {show_value(text)}"):
            arrow = type_of(np.dtype(text).newbyteorder("="), column)
    if arrow is None:
        raise SchemaError(
            f"column {show_value(column)}: no type is called {show_value(text)}{_suggest_type(name, text, column)}"
        )
    return arrow


def _suggest_type(name: str, text: str, column: str) -> str:
    """Returns a hint how to write an unknown type, for an error.

    name : its first word
    """
    if name in _WRITTEN:
        return f": write {_WRITTEN[name]}"
    if name in _NAMES:
        return f": write {name} without brackets"
    if longer := re.fullmatch(r"(\w+(?:\s*\([^()]*\))?)\s+(\S.*)", text, re.DOTALL):
        with suppress(SchemaError):
            parse_type(longer[1], column)
            return f": behind {show_value(longer[1])} more is not read, and a comma separates columns"
    if like := difflib.get_close_matches(name, _NAMES, n=2):
        return f": did you mean {' or '.join(map(repr, like))}?"
    examples = (
        "int64, double, string, bool, date32, timestamp[us, tz=UTC], decimal(10, 2), list<string>, map<string, int64>"
    )
    return f"; examples of types are {examples}"


def _parse_nested(name: str, inside: list[str], column: str) -> pa.DataType | None:
    def inner(part: str) -> pa.DataType:
        # pyarrow prints the element of a list as ``item: string``.
        return parse_type(re.sub(r"^\s*\w+\s*:", "", part), column)

    if name == "struct":
        return pa.struct([_field(part) for part in inside])
    if name in _LISTS:
        return _LISTS[name](inner(",".join(inside)))
    if name == "map":
        is_sorted = inside[-1].strip() == "keys_sorted"
        return pa.map_(inner(inside[0]), inner(",".join(inside[1 : len(inside) - is_sorted])), is_sorted)
    if name in _DECIMALS:
        return _DECIMALS[name](int(inside[0]), int(inside[1]) if len(inside) > 1 else 0)
    if name == "dictionary":
        ways = [re.fullmatch(r"\s*(indices|ordered)\s*=\s*(\w+)\s*", part) for part in inside]
        options = {way[1]: way[2] for way in ways if way}
        values = next(part for part, way in zip(inside, ways, strict=True) if not way)
        value = parse_type(re.sub(r"^\s*values\s*=", "", values), column)
        return pa.dictionary(pa.type_for_alias(options.get("indices", "int32")), value, options.get("ordered") == "1")
    if name == "run_end_encoded":
        return pa.run_end_encoded(inner(inside[0]), inner(",".join(inside[1:])))
    if name == "extension":
        return _EXTENSIONS[inside[0].strip()]()
    if name in ("timestamp", "datetime64"):
        zone = inside[1].strip().removeprefix("tz=").strip() if len(inside) > 1 else None
        return pa.timestamp(inside[0].strip(), zone)
    plain: dict[str, Callable[[str], pa.DataType]] = {
        "date32": lambda unit: pa.date32(),
        "date64": lambda unit: pa.date64(),
        "time32": pa.time32,
        "time64": pa.time64,
        "duration": pa.duration,
        "timedelta64": pa.duration,
        "fixed_size_binary": lambda width: pa.binary(int(width)),
    }
    return plain[name](inside[0].strip()) if name in plain else None


def _of_sql(text: str) -> pa.DataType | None:
    """Returns the type with this name in Spark, or else in DuckDB; None if neither has it."""
    if re.search(r"\[[^\]]*[^\]\d]", text):  # no size of an array
        return None
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    # Spark has other names for times with and without a zone
    dialects = ("duckdb",) if re.search(r"time\s+zone", text, re.IGNORECASE) else ("spark", "duckdb")
    for dialect in dialects:
        try:
            arrow = _arrow_type(parse_one(text, read=dialect, into=exp.DataType))
        except (SqlglotError, ValueError, ArithmeticError, RecursionError):
            continue
        if arrow is not None:
            return arrow
    return None


def _arrow_type(type: Any) -> pa.DataType | None:
    """Returns the Arrow type for a type of sqlglot; None if there is none."""
    name, inside = type.this.name, type.expressions
    if name in _SQL:
        return _SQL[name]
    if name in ("DECIMAL", "DECIMAL128"):
        digits = [int(part.name) for part in inside] or [10, 0]
        return pa.decimal128(digits[0], digits[1] if len(digits) > 1 else 0)
    if name == "STRUCT":
        types = [_arrow_type(part.args["kind"]) if part.args.get("kind") else None for part in inside]
        if None in types or not types:
            return None
        return pa.struct([pa.field(part.name, kind) for part, kind in zip(inside, types, strict=True)])
    parts = [_arrow_type(part) for part in inside]
    if None in parts:
        return None
    if name in ("ARRAY", "LIST") and len(parts) == 1:
        return pa.list_(parts[0])
    return pa.map_(*parts) if name == "MAP" and len(parts) == 2 else None
