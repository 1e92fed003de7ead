"""Reads files of rows, by extension: parquet, Arrow, CSV and JSON lines, batch by batch.

``writing.py`` writes them.

=======  =======================  ==========================================================
format   extensions               notes
=======  =======================  ==========================================================
parquet  .parquet .pq             not through standard streams, which cannot seek
arrow    .arrow .feather .ipc     the file form, memory-mapped; a stream under these names
                                  is recognised
arrows   .arrows                  the stream form
csv      .csv .csv.gz             a header line; an empty field is NULL and ``""`` the empty
                                  string
tsv      .tsv .tsv.gz             as csv with tabs between the fields, and no quotes: read only
jsonl    .jsonl .ndjson .json     one object a line; also with .gz
=======  =======================  ==========================================================

``-`` is standard input or output, for the last three. An output file appears only when it is whole.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa

from colmatch.errors import ColmatchError, near
from colmatch.events.gather import meant
from colmatch.incoming import sentence

FORMATS = ("parquet", "arrow", "arrows", "csv", "jsonl")
_EXTENSIONS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrows",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
ROWS = 8192  # rows of a batch, where the reader can be told


class Input(NamedTuple):
    """An open input: valid until its ``with`` block ends, and read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    total: int | None  # rows in all, where that is known beforehand
    names: Sequence[str]  # all columns of the file, as far as they are known
    unseen: Set[tuple[str, ...]] = frozenset()  # of ``required``, what no line of jsonl that was read so far has


def format_of(path: str, format: str | None = None) -> str:
    """Returns the name of a format: ``format`` when given, else what the extension says.

    Raises ColmatchError: neither says it, or the format cannot go through a standard stream.
    """
    if format is not None and format not in (*FORMATS, "tsv"):
        raise ColmatchError(f"no format is called {format!r}; there are {', '.join(FORMATS)} and, to be read, tsv")
    if path == "-":
        if format is None:
            raise ColmatchError("a standard stream has no extension: say which of arrows, csv and jsonl it carries")
        if format in ("parquet", "arrow"):
            raise ColmatchError(f"{format} cannot go through a standard stream: use arrows, csv or jsonl")
        return format
    extension = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    found = format or _EXTENSIONS.get(extension)
    if found is None:
        known = " ".join(_EXTENSIONS)
        raise ColmatchError(
            f"{path}: the extension {extension!r} names no format; use one of {known}, or say the format"
        )
    return found


@contextmanager
def reading(
    path: str,
    format: str | None = None,
    *,
    schema: pa.Schema | None = None,
    columns: Sequence[str] | None = None,
    required: Mapping[tuple[str, ...], str] | None = None,
    strict: bool = True,
    nulls: Sequence[str] = ("",),
) -> Iterator[Input]:
    """Opens a file of rows.

    Parameters
    ----------
    path : a file, or ``-`` for standard input
    format : one of ``FORMATS``; None to go by the extension
    schema : types for formats that do not carry them (csv, jsonl); columns it does not name are
        inferred from the first block
    columns : the columns wanted, in any order; those that the file has not are left out. None for
        all. A name also stands for the only one that differs in case alone, but in jsonl
    required : columns, and in jsonl fields of structs, without which the file cannot be used, and
        what to say of each that is not there. Of jsonl it is only known behind the last line that
        no line has one
    strict : raise when something that is required is not there; else only ``Input.unseen`` tells
    nulls : csv only, the texts that mean NULL where not quoted

    Raises
    ------
    OSError : the file cannot be opened
    ColmatchError : what is in it cannot be read; the message begins with the path
    """
    kind, shown = format_of(path, format), called(path)
    with ExitStack() as stack:
        with naming(shown):
            required = required or {}
            rows = _open(path, kind, stack, schema, columns, required, strict, nulls)
            names = rows.schema.names
            folded = {name.lower() for name in names}
            for (name, *_), advice in required.items() if strict else ():
                if name.lower() not in folded:
                    some = near(name, rows.names, "the file")
                    raise ColmatchError(f"there is no column {name!r}, which is needed: {some} ({advice})")
        if columns is not None:
            present = meant(names, columns)
            if present != names:
                narrowed = pa.schema([rows.schema.field(name) for name in present])
                rows = rows._replace(schema=narrowed, batches=(batch.select(present) for batch in rows.batches))
        yield rows._replace(batches=guarded(rows.batches, shown))


def called(path: str) -> str:
    """Returns a path as errors call it."""
    return "standard input" if path == "-" else path


@contextmanager
def naming(shown: str) -> Iterator[None]:
    """Puts the file's name before what Arrow has to say about its content."""
    try:
        yield
    except ColmatchError as error:
        if str(error).startswith(shown):
            raise
        raise ColmatchError(f"{shown}: {error}") from error
    except OSError as error:
        if error.errno is not None:  # the system's: there is no such file, say; Arrow's own have no number
            raise
        raise ColmatchError(f"{shown}: {sentence(error)}") from error
    except MemoryError as error:
        raise ColmatchError(f"{shown}: it asks for more memory than there is") from error
    except (pa.ArrowException, UnicodeDecodeError, EOFError, zlib.error, csv.Error) as error:
        raise ColmatchError(f"{shown}: {sentence(error)}") from error


def guarded(batches: Iterable[pa.RecordBatch], shown: str) -> Iterator[pa.RecordBatch]:
    """Yields batches of a file; errors name it."""
    with naming(shown):
        yield from batches


def _open(
    path: str, kind: str, stack: ExitStack, schema: pa.Schema | None, columns: Sequence[str] | None,
    required: Mapping[tuple[str, ...], str], strict: bool, nulls: Sequence[str],
) -> Input:  # fmt: skip
    source = stack.enter_context(opened(path))
    if kind == "parquet":
        import pyarrow.parquet as pq

        file = stack.enter_context(pq.ParquetFile(source))
        names = file.schema_arrow.names if columns is None else meant(file.schema_arrow.names, columns)
        narrowed = pa.schema([file.schema_arrow.field(name) for name in names])
        batches = file.iter_batches(batch_size=ROWS, columns=names)
        return Input(narrowed, batches, file.metadata.num_rows, file.schema_arrow.names)
    if kind == "arrow":
        start = source.read(6)
        source.seek(0)
        if start == b"ARROW1":
            mapped = stack.enter_context(pa.memory_map(path))
            file = pa.ipc.open_file(mapped)
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
            return Input(file.schema, batches, None, file.schema.names)
        kind = "arrows"
    if kind == "arrows":
        stream = stack.enter_context(pa.ipc.open_stream(source))
        return Input(stream.schema, iter(stream), None, stream.schema.names)
    if kind == "jsonl":
        from colmatch.cli.json_lines import PathWatch, read_batches

        only = schema is not None and columns is not None and all(name in schema.names for name in columns)
        if schema is not None and columns is not None:
            schema = pa.schema([field for field in schema if field.name in columns])
        first = source.readline()
        if not first:  # pyarrow refuses a file without any line
            return Input(schema or pa.schema([]), iter(()), None, [])
        keys = PathWatch(cast(BinaryIO, _Prefixed(first, source)), required)
        full, read = read_batches(cast(BinaryIO, keys), schema, only)
        return Input(full, keys.check(read, required) if strict else read, None, full.names, keys.unseen)
    return _open_csv(source, schema, columns, nulls, kind == "tsv")


def _csv_options(
    tabs: bool, types: dict[str, pa.DataType] | None, nulls: Sequence[str], columns: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns how lines and fields are read: an expression may be over several lines, in quotes."""
    import pyarrow.csv as pa_csv

    lines = {"delimiter": "\t", "quote_char": False} if tabs else {"newlines_in_values": True}
    convert = pa_csv.ConvertOptions(
        column_types=types, include_columns=columns, null_values=list(nulls), strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )  # fmt: skip
    return {"parse_options": pa_csv.ParseOptions(**lines), "convert_options": convert}


def _open_csv(
    source: BinaryIO, schema: pa.Schema | None, columns: Sequence[str] | None, nulls: Sequence[str], tabs: bool
) -> Input:
    import pyarrow.csv as pa_csv

    line = source.readline().decode("utf-8-sig")
    header = line.rstrip("\r\n").split("\t") if tabs else next(csv.reader([line]), [])
    header = [] if header == [""] else header
    if not header:
        raise ColmatchError("the file is empty, but a line with the names of the columns is needed")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise ColmatchError(f"the header names {twice[0]!r} twice")
    wanted = header if columns is None else meant(header, columns)
    types = {name: field.type for field in schema or [] for name in meant(wanted, [field.name])}
    for name, type in types.items():
        if pa.types.is_nested(type):
            raise ColmatchError(f"column {name!r} is {type}, which CSV cannot carry: use jsonl, parquet or arrow")
    first = source.readline()
    if not first:  # pyarrow refuses a header without rows
        return Input(pa.schema([(name, types.get(name, pa.null())) for name in wanted]), iter(()), None, header)
    reader = pa_csv.open_csv(
        cast(BinaryIO, _Prefixed(first, source)),
        read_options=pa_csv.ReadOptions(column_names=header),
        **_csv_options(tabs, types, nulls, wanted),
    )
    if not wanted:  # to pyarrow, no column means all of them
        return Input(pa.schema([]), (batch.select([]) for batch in reader), None, header)
    return Input(reader.schema, iter(reader), None, header)


class _Prefixed:
    """A file whose first line was read before, and is given again."""

    closed = False

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self.first = first
        self.rest = rest

    def read(self, size: int = -1) -> bytes:
        if not self.first:
            return self.rest.read(size)
        if size < 0:
            taken, self.first = self.first, b""
            return taken + self.rest.read()
        taken, self.first = self.first[:size], self.first[size:]
        return taken + self.rest.read(size - len(taken))  # a whole block: types are inferred from the first

    def __iter__(self) -> Iterator[bytes]:
        return chain([self.first], self.rest)


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """Opens a file for its bytes, unpacked, or standard input."""
    if path == "-":
        # not ``sys.stdin.buffer``: a thread of Arrow's may wait in it, and Python cannot end while
        # its lock is held
        try:
            file = sys.stdin.fileno()
        except OSError:  # something else stands for it
            yield sys.stdin.buffer
            return
        yield io.BufferedReader(io.FileIO(file, closefd=False), 1 << 16)
        return
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a folder, where a file is needed", path)
    with gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb") as file:
        yield file


def read_table(path: str, format: str | None = None, *, types: dict[str, pa.DataType] | None = None) -> pa.Table:
    """Reads a whole file of rows.

    Types that neither it nor ``types`` gives are inferred from all rows; ``reading`` infers from
    the first.
    """
    kind, shown = format_of(path, format), called(path)
    if kind not in ("csv", "tsv", "jsonl"):
        with reading(path, format) as rows, naming(shown):
            return pa.Table.from_batches(rows.batches, rows.schema)
    with naming(shown), opened(path) as source:
        if kind == "jsonl":
            import pyarrow.json as pa_json

            fields = pa.schema(list((types or {}).items()))
            table = pa_json.read_json(source, parse_options=pa_json.ParseOptions(explicit_schema=fields))
            _ = table.column_names  # raises where they are not UTF-8, which pyarrow does not look at
            return table
        import pyarrow.csv as pa_csv

        table = pa_csv.read_csv(source, **_csv_options(kind == "tsv", types, [""]))
        _ = table.column_names  # as above
        return table


def rebatch(batches: Iterable[pa.RecordBatch], rows: int = ROWS) -> Iterator[pa.RecordBatch]:
    """Cuts and gathers batches, to batches of ``rows`` rows; the last one may be smaller."""
    held: list[pa.RecordBatch] = []
    n = 0
    for batch in batches:
        while n + batch.num_rows >= rows:
            held.append(batch.slice(0, rows - n))
            batch = batch.slice(rows - n)
            yield held[0] if len(held) == 1 else pa.concat_batches(held)
            held, n = [], 0
        if batch.num_rows:
            held.append(batch)
            n += batch.num_rows
    if held:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)
