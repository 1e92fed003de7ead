"""JSON lines: read block by block by pyarrow, with errors that name the line; and written.

An array of JSON is read as well: whole, with its elements as lines.

The output has one event a line, ``{"event": 17, "subscription": 4}``. Arrow's string functions make
the text, a column at a time. A Python loop runs only over values that need escapes, and over lines
with columns of maps. pyarrow does not read maps.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from colmatch.cli.places import remedy
from colmatch.errors import ColmatchError
from colmatch.events.computed.variant_bytes import variant_of
from colmatch.events.json_rows import check_lines
from colmatch.given.incoming import is_any_list, sentence
from colmatch.given.variants import is_variant

ROWS = 8192  # lines that are written at a time
BLOCK = 1 << 23  # bytes that are read at a time: pyarrow shares them among threads
_OPENS = re.compile(r"[ \t\n\r]*\[[ \t\n\r]*(?:(\])[ \t\n\r]*)?")  # an array, which may have no elements
_GOES_ON = re.compile(r"[ \t\n\r]*([],])[ \t\n\r]*")  # after an element
_UNREADABLE = (pa.ArrowException, ColmatchError, ValueError, RecursionError)

_UTC = ("UTC", "Etc/UTC", "Z", "+00:00")  # zones that are written as Z

# Characters that JSON text must escape inside quotes, besides invalid UTF-8.
_ESCAPED = r'["\\\x00-\x1f]'


def carrier(type: pa.DataType) -> pa.DataType | None:
    """Returns the type that pyarrow's JSON reader makes of a value before it becomes ``type``.

    The result is None for a map or a variant, which the reader cannot read.
    """
    types = pa.types
    if is_variant(type):
        return None
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return carrier(type.value_type)
    if types.is_date(type) or types.is_timestamp(type):  # as text, since the reader is lax about zones
        return pa.string()
    if types.is_map(type):
        return None
    if is_any_list(type):
        element = carrier(type.value_type)
        return None if element is None else pa.list_(element)
    if types.is_struct(type):
        fields = [(field.name, carrier(field.type)) for field in type]
        return None if any(inner is None for _, inner in fields) else pa.struct(fields)
    return type


class PathWatch:
    """A record of the columns and fields that no line of JSON has had yet.

    pyarrow does not report a column that no line has: it is NULL, like a column that some lines
    lack. A line is parsed only while a path is unseen, and only if the line has the path's name.

    Attributes
    ----------
    unseen : paths that no line has had so far; a NULL on the way counts as having them
    """

    def __init__(self, paths: Iterable[tuple[str, ...]]) -> None:
        self.unseen = set(paths)

    def look(self, block: bytes) -> None:
        """Removes the paths that whole lines have from ``unseen``."""
        if not any(name in block for name in self._names()):
            return
        for line in block.split(b"\n"):
            if any(name in line for name in self._names()):
                with suppress(ValueError):  # pyarrow reports the fault
                    value = json.loads(line)
                    self.unseen -= {path for path in self.unseen if _has(value, path)}

    def _names(self) -> list[bytes]:
        """Returns texts; a line with an unseen path has at least one of them.

        A text is the first name of a path, or an escape, which may hide a name.
        """
        names = {json.dumps(path[0], ensure_ascii=False).encode() for path in self.unseen}
        return [b"\\", *names] if names else []

    def check(self, advice: Mapping[tuple[str, ...], str]) -> None:
        """Checks that all paths were seen, after the last line.

        advice : path -> advice for the error

        Raises ColmatchError: a path is unseen.
        """
        if self.unseen:
            path = min(self.unseen)
            raise ColmatchError(
                f"no line has {'.'.join(path)!r}, which is needed: check how it is written ({advice[path]})"
            )


def _has(value: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(value, dict):
            return True  # NULL, or a value that is no struct, which pyarrow reports
        if part not in value:
            return False
        value = value[part]
    return True


class Block(NamedTuple):
    """Whole lines of a file.

    Attributes
    ----------
    before : number of lines before them
    noun : noun for a line in errors
    """

    before: int
    lines: bytes
    noun: str = "line"


def blocks(source: BinaryIO, size: int = BLOCK) -> Iterator[Block]:
    """Yields whole lines, or the elements of an array as lines, without blank blocks.

    Raises ColmatchError: pyarrow must not read some line.
    """
    before, tail, data = 0, b"", source.read(size)
    if data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        yield from _elements((data + source.read()).decode("utf-8-sig"))
        return
    while True:
        head, newline, rest = (tail + data).rpartition(b"\n")
        block, tail = (head + newline, rest) if data else (rest and head + newline + rest + b"\n", b"")
        if not before:
            block = block.removeprefix(b"\xef\xbb\xbf")
        if block and not block.isspace():
            check_lines(block, before)
            yield Block(before, block)
        if not data:
            return
        before += block.count(b"\n")
        data = source.read(size)


def _elements(text: str) -> Iterator[Block]:
    """Yields the elements of a JSON array as lines, one element a line."""
    decoder, lines = json.JSONDecoder(), []
    try:
        before = _OPENS.match(text)
        while before is not None and before[1] != "]":
            end = decoder.raw_decode(text, before.end())[1]
            lines.append(text[before.end() : end].replace("\n", " ").replace("\r", " "))  # only space between values
            before = _GOES_ON.match(text, end)
        if before is None or before.end() < len(text):
            json.loads(text)  # raises an error with the fault
    except (ValueError, RecursionError) as error:
        place = f"line {error.lineno}, column {error.colno}: " if isinstance(error, json.JSONDecodeError) else ""
        fault = error.msg if isinstance(error, json.JSONDecodeError) else "it nests too deep"
        raise ColmatchError(f"{place}{fault}; a file that begins with [ is one JSON array of objects") from error
    if lines:
        block = "\n".join([*lines, ""]).encode()
        check_lines(block, noun="element")
        yield Block(0, block, "element")


def read(
    source: BinaryIO, schema: pa.Schema | None, columns: Sequence[str] | None, watch: PathWatch
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Returns the columns and the rows of JSON lines. Errors name the line.

    schema : types of some columns. Others are inferred from the first block, but times among them
        stay text. None to infer all types, also of times
    columns : wanted columns; None for all
    """
    types = schema or pa.schema([])
    if columns is not None:
        types = pa.schema([field for field in types if field.name in columns])
    for field in types:
        if carrier(field.type) is None and not pa.types.is_map(field.type) and not is_variant(field.type):
            reason = "has maps or variants inside another type, which JSON lines cannot carry: use parquet or arrow"
            raise ColmatchError(f"column {field.name!r} {reason}")
    more = columns is None or any(name not in types.names for name in columns)
    pieces = blocks(source)
    first = next(pieces, None)
    if first is not None and more:
        inferred = _table(first, types, "infer").schema
        new_fields = [field for field in inferred if field.name not in types.names]
        types = pa.schema([*types, *(field for field in new_fields if columns is None or field.name in columns)])
        if schema is not None:
            types = pa.schema([f if f.name in schema.names else pa.field(f.name, _asjson_text(f.type)) for f in types])

    def batches() -> Iterator[pa.RecordBatch]:
        for block in chain([first], pieces) if first is not None else ():
            watch.look(block.lines)
            yield from _table(block, types, "error" if columns is None else "ignore").to_batches()

    return types, batches()


def _asjson_text(type: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_timestamp(type) else type


def read_all(source: BinaryIO, types: pa.Schema) -> pa.Table:
    """Returns all lines. Types of columns that ``types`` lacks are inferred from all lines."""
    tables = [_table(block, types, "infer") for block in blocks(source)]
    return pa.concat_tables(tables, promote_options="permissive") if tables else types.empty_table()


def _table(block: Block, schema: pa.Schema, others: str) -> pa.Table:
    """Reads whole lines.

    others : pyarrow's treatment of columns that ``schema`` lacks

    Raises ColmatchError: a line cannot be read. The message names the line.
    """
    try:
        return _parse_block(block.lines, schema, others)
    except _UNREADABLE:
        lines = [line + b"\n" for line in block.lines.split(b"\n")]

    def refused(count: int) -> Exception | None:
        try:
            _parse_block(b"".join(lines[:count]), schema, others)
        except _UNREADABLE as error:
            return error
        return None

    wrong = bisect_left(range(len(lines)), True, 1, key=lambda count: refused(count) is not None)
    place, line = f"{block.noun} {block.before + wrong}", lines[wrong - 1]
    try:
        value = json.loads(line)
    except ValueError as error:
        message = error.msg if isinstance(error, json.JSONDecodeError) else sentence(error)
        column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise ColmatchError(f"{place}{column}: {message}; each line is one JSON object") from error
    if not isinstance(value, dict):
        raise ColmatchError(f"{place}: a JSON object is needed, not {type(value).__name__}")
    last = refused(wrong)
    message = re.sub(r"^JSON parse error: | in row \d+$", "", sentence(last)) if last else "it cannot be read"
    raise ColmatchError(f"{place}: {message}{remedy(message)}") from last


def _parse_block(block: bytes, schema: pa.Schema, others: str) -> pa.Table:
    if not schema and others == "ignore":
        return _rows_alone(sum(1 for line in block.split(b"\n") if line.strip()))
    if block.isspace():
        return schema.empty_table()
    slow = [field for field in schema if carrier(field.type) is None]
    plain = pa.schema([(field.name, carrier(field.type)) for field in schema if field not in slow])
    if slow and not plain and others == "ignore":
        table = pa.schema([]).empty_table()
    else:
        others = "ignore" if slow else others  # a map may have too many keys for the fields of a struct
        options = pa_json.ParseOptions(explicit_schema=plain, unexpected_field_behavior=others)
        try:
            table = pa_json.read_json(pa.BufferReader(block), parse_options=options)
        except pa.ArrowException:  # a line may be longer than the parts that threads read
            parts = pa_json.ReadOptions(block_size=len(block))
            table = pa_json.read_json(pa.BufferReader(block), parse_options=options, read_options=parts)
    arrays = dict(zip(table.column_names, table.columns, strict=True))
    if slow:
        objects = [_object(line) for line in block.split(b"\n") if line.strip()]
        arrays |= {
            field.name: _variants(objects, field) if is_variant(field.type) else _maps(objects, field) for field in slow
        }
    more = [field for field in table.schema if field.name not in schema.names]
    columns = []
    for field in [*schema, *more]:
        try:
            columns.append(arrays[field.name].cast(field.type))
        except pa.ArrowException as error:
            raise ColmatchError(f"column {field.name!r}: {sentence(error)}") from error
    return pa.table(columns, schema=pa.schema([*schema, *more]))


def _rows_alone(rows: int) -> pa.Table:
    return pa.table({"none": pa.nulls(rows)}).select([])


def _object(line: bytes) -> dict[str, Any]:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ColmatchError(f"a JSON object is needed, not {type(value).__name__}")
    return value


def _maps(objects: list[dict[str, Any]], field: pa.Field) -> pa.Array:
    """Returns a column of maps, which pyarrow cannot read, from the objects of all lines."""
    values = [value.get(field.name) for value in objects]
    for value in values:
        if value is not None and not isinstance(value, dict):
            name = type(value).__name__
            raise ColmatchError(f"column {field.name!r} is a map, so a JSON object is needed, not {name}")
    try:
        return pa.array([None if value is None else list(value.items()) for value in values], field.type)
    except pa.ArrowException as error:
        raise ColmatchError(f"column {field.name!r}: {error}") from error


def _variants(objects: list[dict[str, Any]], field: pa.Field) -> pa.Array:
    """Returns a column of variants from the objects of all lines."""
    values = [value.get(field.name) for value in objects]
    return pa.array([None if value is None else variant_of(value, field.name) for value in values], field.type)


class LineWriter:
    """A writer of record batches as JSON lines, to an open file of bytes.

    It writes numbers, Booleans, strings, dates, times, lists, structs and maps. NaN and the
    infinities become null. Binary columns are refused, since JSON has no bytes.
    """

    def __init__(self, sink: BinaryIO, schema: pa.Schema) -> None:
        for field in schema:
            if _has_binary(field.type):
                raise ColmatchError(
                    f"column {field.name!r} is {field.type}, which JSON lines cannot carry: use parquet or arrow"
                )
        self.sink = sink
        self.names = [json.dumps(name, ensure_ascii=False) for name in schema.names]

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)
            lines = _objects(self.names, part.columns, part.num_rows)
            self.sink.write(pc.binary_join(_one_list(lines), _large("\n"))[0].as_buffer())
            self.sink.write(b"\n")

    def close(self) -> None:
        """Does nothing, since no line is held back."""


def _has_binary(type: pa.DataType) -> bool:
    types = pa.types
    if (
        types.is_binary(type)
        or types.is_large_binary(type)
        or types.is_binary_view(type)
        or types.is_fixed_size_binary(type)
    ):
        return True
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return _has_binary(type.value_type)
    return any(_has_binary(type.field(i).type) for i in range(type.num_fields))


def _one_list(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _objects(names: list[str], columns: list[pa.Array], rows: int) -> pa.Array:
    """Returns one JSON object a row, as large_string."""
    if not columns:
        return pa.repeat(pa.scalar("{}", pa.large_string()), rows)
    parts: list[Any] = []
    for name, column in zip(names, columns, strict=True):
        parts += [("{" if not parts else ", ") + name + ": ", json_text(column)]
    return pc.binary_join_element_wise(*(_large(part) for part in [*parts, "}"]), pa.scalar("", pa.large_string()))


def _large(part: Any) -> Any:
    return pa.scalar(part, pa.large_string()) if isinstance(part, str) else part


def json_text(values: pa.Array) -> pa.Array:
    """Returns the JSON text of each value, as large_string without NULLs."""
    types, kind = pa.types, values.type
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return json_text(values.cast(kind.value_type))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        text = values.cast(pa.large_string())
    elif types.is_floating(kind):
        text = pc.if_else(
            pc.is_finite(values), values.cast(pa.float64()).cast(pa.large_string()), pa.scalar(None, pa.large_string())
        )
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        text = _quote_texts(values.cast(pa.large_string()))
    elif types.is_struct(kind):
        names = [json.dumps(field.name, ensure_ascii=False) for field in kind]
        objects = _objects(names, values.flatten(), len(values))
        text = pc.if_else(values.is_valid(), objects, pa.scalar(None, pa.large_string()))
    elif types.is_map(kind):
        entries = values.cast(pa.large_list(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        keys, items = pc.list_flatten(entries).flatten()
        pairs = pc.binary_join_element_wise(json_text(keys.cast(pa.string())), json_text(items), _large(": "))
        text = _lists(entries, pairs, "{", "}")
    elif types.is_nested(kind):
        lists = values.cast(pa.large_list(kind.value_type))
        text = _lists(lists, json_text(pc.list_flatten(lists)), "[", "]")
    elif types.is_null(kind):
        text = pa.nulls(len(values), pa.large_string())
    else:  # dates and times
        text = _quote_texts(iso(values).cast(pa.large_string()))
    return pc.fill_null(text, "null")


def iso(values: pa.Array) -> pa.Array:
    """Returns times in ISO 8601, with the zone and the digits of their type."""
    kind = values.type
    if not pa.types.is_timestamp(kind):
        return values.cast(pa.string())
    zone = "" if kind.tz is None else "Z" if kind.tz in _UTC else "%Ez"
    return pc.strftime(values, f"%Y-%m-%dT%H:%M:%S{zone}")


def _quote_texts(text: pa.Array) -> pa.Array:
    escaped = pc.match_substring_regex(text, _ESCAPED)
    if pc.any(escaped).as_py():
        replacements = [json.dumps(value, ensure_ascii=False)[1:-1] for value in text.filter(escaped).to_pylist()]
        text = pc.replace_with_mask(text, pc.fill_null(escaped, False), pa.array(replacements, pa.large_string()))
    quote = pa.scalar('"', pa.large_string())
    return pc.binary_join_element_wise(quote, text, quote, pa.scalar("", pa.large_string()))


def _lists(values: pa.LargeListArray, texts: pa.Array, begin: str, end: str) -> pa.Array:
    """Returns the text of each list; ``texts`` has the texts of all elements."""
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
    inner = pc.binary_join(pa.LargeListArray.from_arrays(offsets, texts), _large(", "))
    text = pc.binary_join_element_wise(_large(begin), inner, _large(end), _large(""))
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.large_string()))
