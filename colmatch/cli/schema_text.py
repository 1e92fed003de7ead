"""A schema written as text: ``age: int64, city: string, tags: list<string>``.

One line, columns separated by commas; or a file with one ``name: type`` a line (``#`` begins a
comment), or a JSON object from name to type. Types are what ``str()`` of a pyarrow type prints, and
pyarrow's short names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pyarrow as pa

from colmatch.errors import SchemaError
from colmatch.incoming import NESTED_MOST, is_text

# pyarrow prints these names but knows only others as aliases.
_BRACKETS = re.compile(r"[<>()\[\]{}]")
_PRINTED = {
    "double": "float64",
    "float": "float32",
    "halffloat": "float16",
    "boolean": "bool",
    "int": "int32",
    "bigint": "int64",
    "date": "date32",
}


def parse_schema(text: str) -> pa.Schema:
    """Reads the schema that ``text`` describes.

    Raises SchemaError: the text cannot be read, naming the column and what is wrong.
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
    lines = [line.partition("#")[0] for line in text.splitlines()]
    fields = [_field(part) for line in lines for part in _split(line) if part.strip()]
    if not fields:
        raise SchemaError("the schema names no column: write it as 'age: int64, city: string'")
    return pa.schema(fields)


def _from_json(text: str) -> pa.Schema:
    try:
        columns = json.loads(text)
    except ValueError as error:
        raise SchemaError(f"the schema is not valid JSON: {error}") from error
    return pa.schema([pa.field(name, parse_type(str(declared), name)) for name, declared in columns.items()])


def _field(part: str) -> pa.Field:
    name, colon, declared = part.partition(":")
    if not colon or not name.strip() or not declared.strip():
        raise SchemaError(f"in the schema, {part.strip()!r} should be 'name: type', as in 'age: int64'")
    return pa.field(name.strip(), parse_type(declared, name.strip()))


def _split(text: str) -> list[str]:
    """Returns the parts between the commas that are inside no brackets."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        if character in "<([":
            depth += 1
        elif character in ">)]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def parse_type(text: str, column: str) -> pa.DataType:
    """Returns the type called ``text``; errors name ``column``."""
    text = text.strip().removesuffix("not null").strip()
    found = re.fullmatch(r"(\w+)\s*(?:<(.*)>|\((.*)\)|\[(.*)\])", text, re.DOTALL)
    name, inside = (
        (found[1].lower(), next(group for group in found.groups()[1:] if group is not None))
        if found
        else (text.lower(), "")
    )
    try:
        made = _nested(name, _split(inside), column) if found else pa.type_for_alias(_PRINTED.get(name, name))
    except (ValueError, IndexError, TypeError) as error:
        if isinstance(error, SchemaError):
            raise
        made = None
    if made is None:
        some = "int64, double, string, bool, date32, timestamp[us, tz=UTC], decimal(10, 2), list<string>, map<string, int64>"
        raise SchemaError(f"column {column!r}: no type is called {text!r}; examples of types are {some}")
    return made


def _nested(name: str, inside: list[str], column: str) -> pa.DataType | None:
    def inner(part: str) -> pa.DataType:
        # pyarrow prints the element of a list as ``item: string``.
        return parse_type(re.sub(r"^\s*\w+\s*:", "", part), column)

    if name == "struct":
        return pa.struct([_field(part) for part in inside])
    if name in ("list", "array", "large_list"):
        return (pa.large_list if name == "large_list" else pa.list_)(inner(",".join(inside)))
    if name == "map":
        return pa.map_(inner(inside[0]), inner(",".join(inside[1:])))
    if name in ("decimal", "decimal128"):
        return pa.decimal128(int(inside[0]), int(inside[1]) if len(inside) > 1 else 0)
    if name == "dictionary":
        values = next(part for part in inside if not re.match(r"\s*(indices|ordered)\s*=", part))
        return pa.dictionary(pa.int32(), parse_type(re.sub(r"^\s*values\s*=", "", values), column))
    if name == "timestamp":
        zone = inside[1].strip().removeprefix("tz=").strip() if len(inside) > 1 else None
        return pa.timestamp(inside[0].strip(), zone)
    plain: dict[str, Callable[[str], pa.DataType]] = {
        "date32": lambda unit: pa.date32(),
        "date64": lambda unit: pa.date64(),
        "time32": pa.time32,
        "time64": pa.time64,
        "duration": pa.duration,
        "fixed_size_binary": lambda width: pa.binary(int(width)),
    }
    return plain[name](inside[0].strip()) if name in plain else None
