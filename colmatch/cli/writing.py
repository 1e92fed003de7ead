"""Writers of files, in the formats of ``places.py``. A file appears only when it is whole."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

import click
import pyarrow as pa

from colmatch.cli.json_lines import LineWriter, iso
from colmatch.cli.places import format_of
from colmatch.cli.table_text import TableText
from colmatch.errors import ColmatchError
from colmatch.store.replacing import replacing

_GROUP = 2**20  # rows of a parquet row group
_GROUP_BYTES = 2**27


class BatchWriter(Protocol):
    """A writer that takes record batches until it is closed."""

    def write_batch(self, batch: pa.RecordBatch) -> object: ...
    def close(self) -> object: ...


def out_format(path: str, format: str | None, piped: str = "csv") -> str:
    """Returns the format of an output.

    The default for standard output is a table on a terminal, else ``piped``.

    Raises
    ------
    ColmatchError : the format of a file is unknown
    UsageError : the format is not for a terminal, or not for a file
    """
    if path != "-":
        if format == "table":
            raise click.UsageError(
                "a table is for people, and shows few rows: write csv, jsonl, parquet or arrow to a file"
            )
        return format_of(path, format)
    on_terminal = sys.stdout.isatty()
    if format == "arrows" and on_terminal:
        raise click.UsageError("Arrow is not for a terminal: pipe it, or write it to a file with -o")
    name = format or ("table" if on_terminal else piped)
    return name if name == "table" else format_of(path, name)


@contextmanager
def writing(path: str, schema: pa.Schema, format: str | None = None) -> Iterator[BatchWriter]:
    """Opens a file for record batches of ``schema``.

    The file takes its place only if the block ends without an error. Nothing is written before the
    first batch, or before the end of a block without batches.

    Raises
    ------
    OSError : the file cannot be written
    ColmatchError : the format cannot carry a column
    """
    if format == "table":
        table = TableText(schema)
        yield table
        table.show()
        return
    kind = format_of(path, format)
    if kind == "tsv":
        raise ColmatchError(f"{path}: tsv is only read, since its fields have no quotes: write csv")
    if kind == "csv":
        for field in schema:
            if pa.types.is_nested(field.type):
                raise ColmatchError(
                    f"column {field.name!r} is {field.type}, which CSV cannot carry: use jsonl, parquet or arrow"
                )
    with _whole(path) as sink:
        writer = _LateWriter(lambda: _writer(sink, schema, kind))
        try:
            yield writer
            writer.open()
        finally:
            writer.close()
        sink.flush()


def write_all(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, format: str | None) -> None:
    """Writes a file of record batches, with ``writing``."""
    with writing(path, schema, format) as writer:
        for batch in batches:
            writer.write_batch(batch)


class _LateWriter:
    """A writer that is made when there is something to write: some formats begin with a header."""

    def __init__(self, make: Callable[[], BatchWriter]) -> None:
        self._make = make
        self._made: BatchWriter | None = None

    def open(self) -> BatchWriter:
        """Returns the writer, and makes it at the first call."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def write_batch(self, batch: pa.RecordBatch) -> object:
        return self.open().write_batch(batch)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()


def _writer(sink: BinaryIO, schema: pa.Schema, kind: str) -> BatchWriter:
    writer: BatchWriter
    if kind == "parquet":
        writer = _ParquetWriter(sink, schema)
    elif kind == "csv":
        writer = _CsvWriter(sink, schema)
    elif kind == "jsonl":
        writer = LineWriter(sink, schema)
    else:
        writer = pa.ipc.new_file(sink, schema) if kind == "arrow" else pa.ipc.new_stream(sink, schema)
    return writer


class _CsvWriter:
    """A writer of CSV: times are in ISO 8601, and pyarrow writes all other values."""

    def __init__(self, sink: BinaryIO, schema: pa.Schema) -> None:
        import pyarrow.csv as pa_csv

        self.times = [place for place, field in enumerate(schema) if pa.types.is_timestamp(field.type)]
        for place in self.times:
            schema = schema.set(place, pa.field(schema.field(place).name, pa.string()))
        self.writer = pa_csv.CSVWriter(sink, schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for place in self.times:
            batch = batch.set_column(place, batch.schema.names[place], iso(batch.column(place)))
        self.writer.write_batch(batch)

    def close(self) -> None:
        self.writer.close()


class _ParquetWriter:
    """A writer of parquet that gathers batches: pyarrow would make a row group of each batch."""

    def __init__(self, sink: BinaryIO, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self.file = pq.ParquetWriter(sink, schema)
        self.schema = schema
        self.held: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self.held.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        if self.rows >= _GROUP or self.bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self.rows:
            self.file.write_table(pa.Table.from_batches(self.held, self.schema))
        self.held, self.rows, self.bytes = [], 0, 0

    def close(self) -> None:
        self._flush()
        self.file.close()


@contextmanager
def _whole(path: str) -> Iterator[Any]:
    """Opens a file for bytes. The file gets its name only if the block ends without an error."""
    if path == "-":
        yield sys.stdout.buffer
        return
    if os.path.exists(path) and not os.path.isfile(path):
        if os.path.isdir(path):
            raise IsADirectoryError(21, "is a folder, where a file is needed", path)
        with open(path, "wb") as file:  # a pipe or a device: there is nothing to replace
            yield file
        return
    with replacing(path) as file:
        if path.endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="") as packed:
                yield packed
        else:
            yield file
