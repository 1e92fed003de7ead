"""JSON lines where pyarrow has no answer: writing them, and reading columns of maps.

One event a line, ``{"event": 17, "subscription": 4}``. Text is made by Arrow's string functions, a
column at a time; a Python loop runs only over the values that need escapes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from colmatch.errors import ColmatchError

ROWS = 8192  # lines of a block

# What JSON text cannot hold as it is inside quotes, besides what is not UTF-8.
_ESCAPED = r'["\\\x00-\x1f]'


def carrier(type: pa.DataType) -> pa.DataType | None:
    """Returns the type that pyarrow's JSON reader can make of a value that becomes ``type``.

    It is None for a map, which that reader cannot read.
    """
    types = pa.types
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return carrier(type.value_type)
    if types.is_date(type):
        return pa.string()
    if types.is_map(type):
        return None
    lists = (types.is_list, types.is_large_list, types.is_list_view, types.is_large_list_view, types.is_fixed_size_list)
    if any(is_list(type) for is_list in lists):
        element = carrier(type.value_type)
        return None if element is None else pa.list_(element)
    if types.is_struct(type):
        fields = [(field.name, carrier(field.type)) for field in type]
        return None if any(inner is None for _, inner in fields) else pa.struct(fields)
    return type


class PathWatch:
    """A source of JSON lines that notes which columns and fields no line has had yet.

    pyarrow says nothing of a column that no line has: it is NULL, like one that some lines have
    not. A line is taken apart only as long as something is unseen and the line has the name of it.

    Attributes
    ----------
    unseen : paths that no line has had so far; a NULL on the way counts as having them
    """

    closed = False

    def __init__(self, source: BinaryIO, paths: Iterable[tuple[str, ...]]) -> None:
        self.unseen = set(paths)
        self._source = source
        self._tail = b""
        self._names = _names(self.unseen)

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        if self.unseen:
            *lines, self._tail = (self._tail + data).split(b"\n")
            self._look(lines if data else [self._tail])
        return data

    def __iter__(self) -> Iterator[bytes]:
        for line in self._source:
            self._look([line])
            yield line

    def check(
        self, batches: Iterable[pa.RecordBatch], advice: Mapping[tuple[str, ...], str]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the batches that are made of the source.

        advice : what to say of each path, if it is unseen

        Raises ColmatchError: behind the last batch, if something is unseen.
        """
        yield from batches
        self._look([self._tail])
        if self.unseen:
            path = min(self.unseen)
            raise ColmatchError(
                f"no line has {'.'.join(path)!r}, which is needed: check how it is written ({advice[path]})"
            )

    def _look(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            if not self.unseen:
                return
            if not any(name in line for name in self._names):
                continue
            try:
                value = json.loads(line)
            except ValueError:  # pyarrow says what is wrong with it
                continue
            seen = {path for path in self.unseen if _has(value, path)}
            if seen:
                self.unseen -= seen
                self._names = _names(self.unseen)


def _names(paths: Iterable[tuple[str, ...]]) -> list[bytes]:
    """Returns texts, one of which a line must have to have one of the paths.

    It is the first name of the path, or an escape that may hide that.
    """
    return [b"\\", *{json.dumps(path[0], ensure_ascii=False).encode() for path in paths}]


def _has(value: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(value, dict):
            return True  # NULL, or something that is no struct, of which pyarrow says so
        if part not in value:
            return False
        value = value[part]
    return True


def read_batches(source: BinaryIO, schema: pa.Schema | None, only: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Reads JSON lines: their schema and their batches.

    source : open file of bytes
    schema : types of the columns that it names; None when all are to be inferred
    only : whether to leave out the columns that ``schema`` does not name
    """
    if schema is None:
        reader = pa_json.open_json(source)
        return reader.schema, iter(reader)
    if only and not schema:
        return schema, (_rows_alone(len(lines)) for lines in _blocks(source))
    plain = pa.schema([(field.name, carrier(field.type)) for field in schema if carrier(field.type) is not None])
    options = pa_json.ParseOptions(explicit_schema=plain, unexpected_field_behavior="ignore" if only else "infer")
    if len(plain) < len(schema):
        return _with_maps(source, schema, options)
    reader = pa_json.open_json(source, parse_options=options)
    full = pa.schema([schema.field(field.name) if field.name in schema.names else field for field in reader.schema])
    return full, (_cast(batch, full) for batch in reader)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _with_maps(
    source: BinaryIO, schema: pa.Schema, options: pa_json.ParseOptions
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Reads columns that pyarrow cannot read through Python's json, line by line.

    The others come as always, block by block.
    """
    slow = [field for field in schema if carrier(field.type) is None]
    nested = [field.name for field in slow if not pa.types.is_map(field.type)]
    if nested:
        raise ColmatchError(
            f"column {nested[0]!r} has maps inside another type, which JSON lines cannot carry: use parquet or arrow"
        )
    options.unexpected_field_behavior = "ignore"

    def batches() -> Iterator[pa.RecordBatch]:
        number = 0
        for lines in _blocks(source):
            arrays: dict[str, pa.Array] = {}
            if options.explicit_schema:
                table = pa_json.read_json(io.BytesIO(b"".join(lines)), parse_options=options).combine_chunks()
                arrays = {name: table[name].combine_chunks() for name in table.column_names}
            objects = [_object(line, number + i) for i, line in enumerate(lines, 1)]
            for field in slow:
                entries = [
                    _entries(value.get(field.name), field.name, number + i) for i, value in enumerate(objects, 1)
                ]
                arrays[field.name] = _maps(entries, field, number)
            number += len(lines)
            columns = [arrays[field.name].cast(field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return schema, batches()


def _maps(entries: list[Any], field: pa.Field, before: int) -> pa.Array:
    """Makes a column of maps; ``before`` lines came before them."""
    try:
        return pa.array(entries, field.type)
    except pa.ArrowException:
        for i, entry in enumerate(entries, 1):
            try:
                pa.array([entry], field.type)
            except pa.ArrowException as error:
                raise ColmatchError(f"line {before + i}: column {field.name!r}: {error}") from error
        raise


def _rows_alone(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"none": pa.nulls(rows)}).select([])


def _blocks(source: Iterable[bytes]) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    for line in source:
        if line.strip():
            block.append(line if line.endswith(b"\n") else line + b"\n")
        if len(block) == ROWS:
            yield block
            block = []
    if block:
        yield block


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ColmatchError(f"line {number}: {error}") from error
    if not isinstance(value, dict):
        raise ColmatchError(f"line {number}: a JSON object is needed, not {type(value).__name__}")
    return value


def _entries(value: Any, name: str, number: int) -> list[tuple[str, Any]] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ColmatchError(
            f"line {number}: column {name!r} is a map, so a JSON object is needed, not {type(value).__name__}"
        )
    return list(value.items())


class LineWriter:
    """Writes record batches as JSON lines to an open file of bytes.

    Numbers, Booleans, strings, dates, times, lists, structs and maps; NaN and the infinities become
    null. Binary columns are refused, since JSON has no bytes.
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
        """Nothing is held back."""


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
        parts += [("{" if not parts else ", ") + name + ": ", _text(column)]
    return pc.binary_join_element_wise(*(_large(part) for part in [*parts, "}"]), pa.scalar("", pa.large_string()))


def _large(part: Any) -> Any:
    return pa.scalar(part, pa.large_string()) if isinstance(part, str) else part


def _text(values: pa.Array) -> pa.Array:
    """Returns the JSON text of each value, as large_string without NULLs."""
    types, kind = pa.types, values.type
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _text(values.cast(kind.value_type))
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        text = values.cast(pa.large_string())
    elif types.is_floating(kind):
        text = pc.if_else(
            pc.is_finite(values), values.cast(pa.float64()).cast(pa.large_string()), pa.scalar(None, pa.large_string())
        )
    elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        text = _quoted(values.cast(pa.large_string()))
    elif types.is_list(kind) or types.is_large_list(kind):
        text = _lists(values)
    elif types.is_struct(kind):
        names = [json.dumps(field.name, ensure_ascii=False) for field in kind]
        objects = _objects(names, values.flatten(), len(values))
        text = pc.if_else(values.is_valid(), objects, pa.scalar(None, pa.large_string()))
    elif types.is_null(kind):
        text = pa.nulls(len(values), pa.large_string())
    elif types.is_map(kind) or types.is_nested(kind):
        plain = [dict(value) if types.is_map(kind) and value is not None else value for value in values.to_pylist()]
        text = pa.array([json.dumps(value, ensure_ascii=False, default=str) for value in plain], pa.large_string())
    else:  # dates and times
        text = _quoted(values.cast(pa.string()).cast(pa.large_string()))
    return pc.fill_null(text, "null")


def _quoted(text: pa.Array) -> pa.Array:
    escaped = pc.match_substring_regex(text, _ESCAPED)
    if pc.any(escaped).as_py():
        made = [json.dumps(value, ensure_ascii=False)[1:-1] for value in text.filter(escaped).to_pylist()]
        text = pc.replace_with_mask(text, pc.fill_null(escaped, False), pa.array(made, pa.large_string()))
    quote = pa.scalar('"', pa.large_string())
    return pc.binary_join_element_wise(quote, text, quote, pa.scalar("", pa.large_string()))


def _lists(values: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    first = pa.array([0], pa.int64())
    offsets = pa.concat_arrays([first, pc.cumulative_sum(lengths.cast(pa.int64()))])
    inner = pc.binary_join(pa.LargeListArray.from_arrays(offsets, _text(values.flatten())), _large(", "))
    text = pc.binary_join_element_wise(_large("["), inner, _large("]"), _large(""))
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.large_string()))
