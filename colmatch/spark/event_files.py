"""Files of events as a dataset of pyarrow, with the columns and types that Spark would give them.

The dataset has the columns of all files, and a column for each name of folders such as ``day=7``.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from glob import escape
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds

from colmatch.errors import EventError, OptionError, show_value
from colmatch.events.json_rows import check_lines
from colmatch.events.places import FileSet, is_url, place_of
from colmatch.given.arguments import check_choice, file_name
from colmatch.given.incoming import refusing
from colmatch.given.session import time_zone

FORMATS = {
    "parquet": "ParquetFileFormat", "orc": "OrcFileFormat", "csv": "CsvFileFormat", "json": "JsonFileFormat", "arrow": "IpcFileFormat",
}  # fmt: skip
_JSON_BLOCK = 1 << 23  # bytes
_INSTANT = pa.timestamp("us", "UTC")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

_FOLDER = re.compile("([^/=]+)=([^/]*)/")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Infinity", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d)?", re.ASCII)


def read_dataset(options: Mapping[str, str], folder: str, zone: str) -> ds.Dataset:
    """Returns the events that ``path`` or ``paths`` name, in files of ``format``.

    folder : folder that relative paths begin at
    zone : zone of the session, in which times in names of folders are read

    Raises
    ------
    OptionError : no path is given, or the format is unknown
    EventError : the files cannot be read, or their columns have types that do not fit together
    """
    paths = json.loads(options["paths"]) if "paths" in options else [options["path"]] if "path" in options else []
    if not paths:
        raise OptionError('the events are missing: .load("events/")')
    format = check_choice("format={}", options.get("format", "parquet"), tuple(FORMATS))
    datasets, seen = [], set[str]()
    for path in paths:
        what = f"events cannot be read from {show_value(path)}"
        with refusing(EventError, what):
            try:
                place = place_of(_local(path, folder), lambda _: format in ("csv", "json"))
                new = [file for file in place.files if file not in seen]  # paths may overlap
                seen.update(new)
                if new:
                    datasets.append(_read_files(place._replace(files=new), format, zone))
            except EventError as error:
                raise EventError(f"{what}: {error}") from None
    return datasets[0] if len(datasets) == 1 else ds.dataset(datasets)


def _local(path: str, folder: str) -> str:
    """Returns a path of this machine below ``folder``, or an address unchanged."""
    name = file_name(path) or path
    if is_url(name):
        return name
    place = os.path.join(folder, name)
    return place if os.path.exists(place) else os.path.join(escape(folder), name)


def _read_files(place: FileSet, format: str, zone: str) -> ds.Dataset:
    """Returns files as a dataset, with columns for names of folders such as ``day=2026-01-31``."""
    reader = getattr(ds, FORMATS[format])()
    if format == "parquet":
        reader = _parquet("us")
    folders = [_values_of(file, place) for file in place.files]
    columns = {}
    for name in dict.fromkeys(name for values in folders for name in values):
        columns[name] = _Column(name, [values.get(name) for values in folders], zone)
    fragments, schema = [], pa.schema([])
    for file, values in zip(place.files, folders, strict=True):
        fields = [columns[name].is_value(value) for name, value in values.items()]
        fragment = reader.make_fragment(file, place.system, *([_all_of(fields)] if fields else []))
        with refusing(EventError, f"file {file!r}"):
            here = pa.schema([field.with_nullable(True) for field in _schema_of(fragment)])
            schema = pa.unify_schemas([schema, here], promote_options="permissive")
        fragments.append(fragment)
    for name, column in columns.items():
        at = schema.get_field_index(name)
        field = pa.field(name, column.type)
        schema = schema.append(field) if at < 0 else schema.set(at, field)  # a folder's value counts, as in Spark
    return ds.FileSystemDataset(fragments, schema, reader, place.system)


def _values_of(file: str, place: FileSet) -> dict[str, str | None]:
    """Returns the values of columns in the folders of a file, below the folder that is searched."""
    inside = file if place.files == [place.base] else file[len(place.base) :]
    pairs = ((unquote(name), unquote(value)) for name, value in _FOLDER.findall(inside))
    return {name: None if value == _NO_VALUE else value for name, value in pairs}


def _all_of(fields: list[ds.Expression]) -> ds.Expression:
    result = fields[0]
    for field in fields[1:]:
        result = result & field
    return result


class _Column:
    """A column of folders: its values have the type that Spark finds for them.

    Raises EventError: Spark reads the values as decimals.
    """

    def __init__(self, name: str, values: list[str | None], zone: str) -> None:
        self.name = name
        kinds = {_kind_of(value) for value in values if value is not None}
        if "decimal" in kinds and kinds <= {"int", "long", "decimal"}:
            odd = next(value for value in values if value is not None and _kind_of(value) == "decimal")
            raise EventError(
                f"the folder {name}={odd} has a value that Spark reads as a decimal, and colmatch does not: "
                "read the files with Spark, and match the DataFrame"
            )
        kind = kinds.pop() if len(kinds) == 1 else _WIDER.get(frozenset(kinds), "string")
        self.type, self._convert = _KINDS[kind]
        self._zone = time_zone(zone) if kind == "timestamp" else None

    def is_value(self, text: str | None) -> ds.Expression:
        """Returns the condition that the column has a value."""
        if text is None:
            return ds.field(self.name).is_null()
        value = self._convert(text)
        if self._zone is not None:
            value = value.replace(tzinfo=self._zone)
        return ds.field(self.name) == pa.scalar(value, self.type)


_KINDS: dict[str, tuple[pa.DataType, Callable[[str], Any]]] = {
    "int": (pa.int32(), int),
    "long": (pa.int64(), int),
    "double": (pa.float64(), float),
    "date": (pa.date32(), dt.date.fromisoformat),
    "timestamp": (_INSTANT, lambda text: dt.datetime.strptime(_with_fraction(text), "%Y-%m-%d %H:%M:%S.%f")),
    "string": (pa.string(), str),
}
# Kinds of values that are one column in Spark. All other mixtures are texts.
_WIDER = {
    frozenset({"int", "long"}): "long", frozenset({"int", "double"}): "double", frozenset({"date", "timestamp"}): "timestamp",
}  # fmt: skip


def _with_fraction(text: str) -> str:
    text = text if " " in text else f"{text} 00:00:00"
    return text if "." in text else f"{text}.0"


def _kind_of(text: str) -> str:
    """Returns the kind of value that Spark sees in a text."""
    if _NUMBER.fullmatch(text):
        number = Decimal(text)
        if not number.is_finite() or int(number.as_tuple().exponent) < 0:
            return "double"
        if not text.lstrip("+-").isdigit():
            return "decimal"
        return next(
            (kind for kind, bits in (("int", 31), ("long", 63)) if -(1 << bits) <= number < 1 << bits), "decimal"
        )
    for kind, form in (("date", _DATE), ("timestamp", _TIME)):
        if form.fullmatch(text):
            try:
                _KINDS[kind][1](text)
                return kind
            except ValueError:  # such as the month 13
                return "string"
    return "string"


def _parquet(unit: str) -> ds.ParquetFileFormat:
    return ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit=unit))


def _schema_of(fragment: ds.Fragment) -> pa.Schema:
    """Returns the columns of a file, with INT96 of Parquet as instants.

    In a text, pyarrow infers the columns from its beginning.
    """
    if isinstance(fragment.format, ds.JsonFileFormat):
        with fragment.open() as file:
            check_lines(file.read(_JSON_BLOCK))
    schema = fragment.physical_schema
    if not isinstance(fragment.format, ds.ParquetFileFormat) or "timestamp[us]" not in str(schema.remove_metadata()):
        return schema
    others = _parquet("ms").make_fragment(fragment.path, fragment.filesystem).physical_schema
    return pa.schema([one.with_type(_zone_int96(one.type, other.type)) for one, other in zip(schema, others)])


def _zone_int96(type: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Replaces Parquet's INT96 in a type by an instant, as Spark writes and reads it.

    other : the type if INT96 is read in another unit; the difference shows the places of INT96
    """
    if type == other:
        return type
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", "UTC")
    parts = [
        type.field(i).with_type(_zone_int96(type.field(i).type, other.field(i).type)) for i in range(type.num_fields)
    ]
    if pa.types.is_map(type):
        return pa.map_(type.key_field.with_type(parts[0].type.field(0).type), parts[0].type.field(1))
    return pa.struct(parts) if pa.types.is_struct(type) else pa.list_(parts[0])


def check_json(fragment: ds.Fragment) -> None:
    """Checks the lines of a file of JSON, before pyarrow reads them.

    Raises EventError: pyarrow would crash, or read NULL. In 26.0 it does for a file of one line
    without a line break.
    """
    before, rest = 0, b""
    with refusing(EventError, f"events cannot be read from {fragment.path!r}"), fragment.open() as file:
        while data := file.read(_JSON_BLOCK):
            lines, newline, rest = (rest + data).rpartition(b"\n")
            check_lines(lines, before)
            before += lines.count(b"\n") + len(newline)
        check_lines(rest, before)
        if rest.strip() and not before:
            raise EventError(
                f"{fragment.path!r} is one line without a line break, of which pyarrow reads NULL: end it with one"
            )
