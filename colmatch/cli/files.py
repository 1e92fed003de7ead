"""Files of rows in every format that ``places.py`` lists, read batch by batch.

Several files are read one after the other, as one. The result has the columns of all files, with
NULL for a column that a file lacks. ``writing.py`` writes files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.cli import json_lines
from colmatch.cli.csv_rows import rows_of
from colmatch.cli.json_lines import PathWatch
from colmatch.cli.places import TEXTS, File, find_files, name_file_in_errors, open_file
from colmatch.errors import ColmatchError, suggest_names
from colmatch.events.gather import match_names
from colmatch.given.incoming import sentence

ROWS = 8192  # rows of a batch, if the reader has an option for it


class Input(NamedTuple):
    """An open input: valid until its ``with`` block ends, and read once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    total: int | None  # rows in all, if known beforehand
    names: Sequence[str]  # all columns of the file, as far as they are known
    unseen: Set[tuple[str, ...]] = frozenset()  # ``required`` paths that no line of jsonl has had so far


class _ReadRequest(NamedTuple):
    """The parts to read of each file; see ``reading``."""

    schema: pa.Schema | None
    columns: Sequence[str] | None
    nulls: Sequence[str]
    watch: PathWatch


@contextmanager
def reading(
    paths: str | Sequence[str],
    format: str | None = None,
    *,
    schema: pa.Schema | None = None,
    columns: Sequence[str] | None = None,
    required: Mapping[tuple[str, ...], str] | None = None,
    strict: bool = True,
    nulls: Sequence[str] = ("",),
) -> Iterator[Input]:
    """Opens files of rows.

    Parameters
    ----------
    paths : names of files, as for ``places.find_files``
    format : one of ``places.FORMATS``; None to take it from the extension
    schema : types for formats that do not carry them (csv, jsonl). Other columns are inferred from
        the first block, but times among them stay text. None to infer all types, also of times
    columns : wanted columns, in any order; columns that the file lacks are left out. None for all.
        Except in jsonl, a name may differ from its column in case alone, if there is only one
    required : columns, and in jsonl fields of structs, that every file needs -> advice for the
        error if one is absent. In jsonl, this is known only after the last line of all files
    strict : raise an error if a required path is absent; else only ``Input.unseen`` has it
    nulls : csv only, the texts that mean NULL if not quoted

    Raises
    ------
    OSError : a file cannot be opened
    ColmatchError : the content cannot be read; the message begins with the path
    """
    required = required or {}
    files = find_files(paths, format, schema)
    by_lines = [file for file in files if file.kind == "jsonl"]
    selection = _ReadRequest(schema, columns, nulls, PathWatch(required if by_lines else ()))
    with ExitStack() as stack:
        if len(files) == 1:
            rows = _open_with_keys(files[0], stack, selection)
            heads = [rows]
        else:
            heads = [_head(file, selection) for file in files]
            rows = _join_files(files, heads, selection)
        selection.watch.unseen -= {path for path in required for file in files if path[0] in file.keys}
        if strict:
            for file, head in zip(files, heads, strict=True):
                _check(file, head, required)
        batches = rows.batches
        if strict and by_lines:
            batches = _check_unseen(batches, by_lines[-1], selection.watch, required)
        yield rows._replace(batches=batches, unseen=selection.watch.unseen)


def _check(file: File, head: Input, required: Mapping[tuple[str, ...], str]) -> None:
    folded = {name.lower() for name in head.names}
    for (name, *_), advice in required.items() if file.kind != "jsonl" else ():
        if name.lower() not in folded:
            hint = suggest_names(name, head.names, "the file")
            raise ColmatchError(f"{file.shown}: there is no column {name!r}, which is needed: {hint} ({advice})")


def _check_unseen(
    batches: Iterator[pa.RecordBatch], last: File, watch: PathWatch, advice: Mapping[tuple[str, ...], str]
) -> Iterator[pa.RecordBatch]:
    yield from batches
    with name_file_in_errors(last.shown):
        watch.check(advice)


def _head(file: File, wanted: _ReadRequest) -> Input:
    """Returns the input of a file without its rows."""
    with ExitStack() as stack:
        return _open_with_keys(file, stack, wanted)._replace(batches=iter(()))


def _join_files(files: Sequence[File], heads: Sequence[Input], wanted: _ReadRequest) -> Input:
    """Joins files to one input. Each file is opened when its turn comes."""
    names_by_lower = {name.lower(): name for name in wanted.schema.names} if wanted.schema is not None else {}
    schema = _unify_case(heads[0].schema, names_by_lower)
    for file, head in zip(files[1:], heads[1:], strict=True):
        try:
            schema = pa.unify_schemas([schema, _unify_case(head.schema, names_by_lower)], promote_options="permissive")
        except pa.ArrowException as error:
            raise ColmatchError(
                f"{file.shown}: its columns do not go with {files[0].shown}: {sentence(error)}"
            ) from error
    totals = [head.total for head in heads]
    names = list(dict.fromkeys(name for head in heads for name in head.names))
    again = wanted._replace(schema=schema, columns=schema.names)

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            with ExitStack() as stack:
                rows = _open_with_keys(file, stack, again)
                with name_file_in_errors(file.shown):
                    yield from (_fit_batch(batch, schema, {}) for batch in rows.batches)

    return Input(schema, batches(), None if None in totals else sum(totals), names)  # type: ignore[arg-type]


def _unify_case(schema: pa.Schema, known: dict[str, str]) -> pa.Schema:
    """Returns columns under the names that earlier files have for them, which may differ in case.

    known : lower case -> name; new names are added
    """
    others = [known.setdefault(name.lower(), name) for name in schema.names]
    pairs = zip(schema, others, strict=True)
    return pa.schema([field if other in schema.names else field.with_name(other) for field, other in pairs])


def _open_with_keys(file: File, stack: ExitStack, wanted: _ReadRequest) -> Input:
    """Opens a file, and adds the columns of its folders to the rows."""
    with name_file_in_errors(file.shown):
        rows = _open(file, stack, wanted)
    names = [*dict.fromkeys([*rows.names, *file.keys])]
    schema, keys = rows.schema, file.keys
    if wanted.columns is not None:
        keys = {name: keys[name] for name in match_names([*keys], wanted.columns)}
        schema = pa.schema([schema.field(name) for name in match_names(schema.names, wanted.columns)])
    schema = pa.schema([*(f for f in schema if f.name not in keys), *((name, key.type) for name, key in keys.items())])

    def batches() -> Iterator[pa.RecordBatch]:
        with name_file_in_errors(file.shown):
            for batch in rows.batches:
                yield _fit_batch(batch, schema, keys)

    return rows._replace(schema=schema, batches=batches(), names=names)


def _fit_batch(batch: pa.RecordBatch, schema: pa.Schema, keys: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    """Returns rows with the columns of a schema: own columns, keys, and NULL for others."""
    if not keys and batch.schema.equals(schema):
        return batch
    if not schema:
        return batch.select([])
    columns, own = [], {name.lower(): name for name in batch.schema.names}
    own |= {name: name for name in batch.schema.names}
    for field in schema:
        name = own.get(field.name, own.get(field.name.lower()))
        if field.name in keys:
            columns.append(pa.repeat(keys[field.name], batch.num_rows))
        elif name is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            try:
                columns.append(batch.column(name).cast(field.type))
            except pa.ArrowException as error:
                raise ColmatchError(f"column {field.name!r}: {sentence(error)}") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _open(file: File, stack: ExitStack, wanted: _ReadRequest) -> Input:
    """Opens a file for the wanted columns, and maybe others."""
    kind, columns = file.kind, wanted.columns
    if kind == "arrow":
        with file.system.open_input_file(file.path) as start:
            kind = "arrow" if start.read(6) == b"ARROW1" else "arrows"
    if kind in ("parquet", "arrow"):
        import pyarrow.dataset as pa_dataset

        format = pa_dataset.ParquetFileFormat() if kind == "parquet" else pa_dataset.IpcFileFormat()
        fragment = format.make_fragment(file.path, filesystem=file.system)
        full = fragment.physical_schema
        names = full.names if columns is None else match_names(full.names, columns)
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ColmatchError(f"there are {len(twice)} columns {twice[0]!r}, and one is needed")
        total = fragment.metadata.num_rows if kind == "parquet" else None
        batches = _scan_fragment(fragment, names)
        batches = _check_buffers(batches) if kind == "arrow" else batches
        return Input(pa.schema([full.field(name) for name in names]), batches, total, full.names)
    source = stack.enter_context(open_file(file))
    if kind == "arrows":
        stream = stack.enter_context(pa.ipc.open_stream(source))
        return Input(stream.schema, _check_buffers(stream), None, stream.schema.names)
    if kind == "jsonl":
        schema, batches = json_lines.read(source, wanted.schema, columns, wanted.watch)
        return Input(schema, batches, None, schema.names)
    rows = rows_of(file, source, wanted.schema, columns, wanted.nulls)
    schema, batches = rows.stream(keep_texts=wanted.schema is not None)
    return Input(schema, batches, None, rows.header)


def _check_buffers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Checks and yields batches of Arrow's formats, which pass buffers from the file unchanged.

    Raises ArrowInvalid: the buffers are no valid arrays.
    """
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _scan_fragment(fragment: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    yield from fragment.scanner(columns=names, batch_size=ROWS).to_reader()


def read_table(
    paths: str | Sequence[str],
    format: str | None = None,
    *,
    types: Mapping[str, pa.DataType] | None = None,
    texts: Sequence[str] = (),
) -> pa.Table:
    """Reads whole files of rows.

    Types that neither the files nor ``types`` have are inferred from all rows; ``reading`` infers
    from the first block.

    texts : columns that are texts in CSV, even if they look otherwise
    """
    schema = pa.schema(list((types or {}).items()))
    files = find_files(paths, format, schema)
    tables = [_table(file, schema, texts) for file in files]
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise ColmatchError(f"{files[0].shown} and others have columns of several types: {sentence(error)}") from error


def _table(file: File, types: pa.Schema, texts: Sequence[str]) -> pa.Table:
    with name_file_in_errors(file.shown), ExitStack() as stack:
        if file.kind == "jsonl":
            table = json_lines.read_all(stack.enter_context(open_file(file)), types)
        elif file.kind in TEXTS:
            schema = pa.schema([*types, *((name, pa.string()) for name in texts)])
            table = rows_of(file, stack.enter_context(open_file(file)), schema, None, [""]).table()
        else:
            rows = _open(file, stack, _ReadRequest(None, None, (), PathWatch(())))
            table = pa.Table.from_batches(rows.batches, rows.schema)
        for name, key in file.keys.items():
            if name in table.column_names:
                table = table.drop_columns([name])
            table = table.append_column(name, pa.repeat(key, table.num_rows))
        return table
