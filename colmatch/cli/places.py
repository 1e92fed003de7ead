"""Files that arguments name: by path, pattern, folder or URL, on any file system.

``files.py`` reads them. pyarrow has the file systems, and unpacks compressed files.

=======  =======================  ==========================================================
format   extensions               notes
=======  =======================  ==========================================================
parquet  .parquet .pq             only the needed columns are read
arrow    .arrow .feather .ipc     the file form; a stream under these names is recognised
arrows   .arrows                  the stream form
csv      .csv                     a header line; an empty field is NULL and ``""`` the empty
                                  string
tsv      .tsv                     as csv with tabs between the fields, and no quotes: read only
jsonl    .jsonl .ndjson .json     one object a line, or one array of objects
=======  =======================  ==========================================================

The last three may be compressed: .gz, and for reading also .bz2, .zst and .lz4. ``-`` is standard
input or output, for the last four.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pa_fs

from colmatch.errors import ColmatchError
from colmatch.events.places import is_url, place_of
from colmatch.given.incoming import sentence

FORMATS = ("parquet", "arrow", "arrows", "csv", "jsonl")
TEXTS = ("csv", "tsv", "jsonl")  # formats that do not carry types
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
_PACKED = re.compile(r"\.(gz|bz2|zst|lz4)$")
_KEY = re.compile(r"([^/=]+)=([^/]*)(?=/)")  # a folder that names a column and its value
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_NULL = "__HIVE_DEFAULT_PARTITION__"


class File(NamedTuple):
    """A file of rows.

    Attributes
    ----------
    path : path within the file system, ``-`` for standard input
    shown : name of the file in errors
    keys : columns that its folders name, ``day=2024-01-01``, as scalars
    """

    path: str
    shown: str
    kind: str
    system: pa_fs.FileSystem
    keys: Mapping[str, pa.Scalar] = {}

    @property
    def is_stream(self) -> bool:
        """Returns whether the file can be read only once: standard input, or a pipe."""
        if self.path == "-":
            return True
        return isinstance(self.system, pa_fs.LocalFileSystem) and not os.path.isfile(self.path)


def format_of(path: str, format: str | None = None) -> str:
    """Returns the name of a format: ``format`` if given, else the format of the extension.

    Raises ColmatchError: the format is unknown, or cannot go through a standard stream.
    """
    if format is not None and format not in (*FORMATS, "tsv"):
        raise ColmatchError(f"no format is called {format!r}; there are {', '.join(FORMATS)} and, to be read, tsv")
    if path == "-":
        if format is None:
            raise ColmatchError(
                "a standard stream has no extension: say which of arrows, csv and jsonl it carries, as with --format csv"
            )
        if format in ("parquet", "arrow"):
            raise ColmatchError(f"{format} cannot go through a standard stream: use arrows, csv or jsonl")
        return format
    extension = os.path.splitext(_PACKED.sub("", path.lower()))[1]
    name = format or _EXTENSIONS.get(extension)
    if name is None:
        extensions = " ".join(_EXTENSIONS)
        raise ColmatchError(
            f"{path}: the extension {extension!r} names no format; use one of {extensions}, or say the format, as with --format csv"
        )
    return name


def remedy(message: str) -> str:
    """Returns the advice that an error of pyarrow about a value lacks."""
    is_local = "expected a zone offset" in message
    return "; the column has a time zone: write one behind the time, as in 2026-11-23T10:00:00Z" if is_local else ""


def find_files(paths: str | Sequence[str], format: str | None = None, types: pa.Schema | None = None) -> list[File]:
    """Finds files; the files of a folder or pattern are in the order of their names.

    Names that begin with a dot or an underscore are left out, and empty text files in folders.

    paths : files, folders, patterns, URLs with a file system of pyarrow, or ``-``
    types : types of columns that folders may name. Other columns are int64 if all values are whole
        numbers, else string

    Raises
    ------
    OSError : there is no such file
    ColmatchError : a folder or pattern has no file, or the format of a file is unknown
    """
    files: list[File] = []
    for path in [paths] if isinstance(paths, str) else paths:
        with name_file_in_errors(name_path(path)):
            if path == "-":
                files.append(File(path, name_path(path), format_of(path, format), None))
                continue
            place = place_of(path, lambda name: format_of(name, format) in TEXTS)
            for name in place.files:
                shown = path if is_url(path) and name == place.base else name
                files.append(File(name, shown, format_of(name, format), place.system))
    for file in files:
        if file.is_stream and (len(files) > 1 or file.kind in ("parquet", "arrow")):
            reason = (
                "a pipe cannot be read beside other files" if len(files) > 1 else f"{file.kind} cannot come by a pipe"
            )
            raise ColmatchError(f"{file.shown}: {reason}: write it to a file first")
    return _add_keys(files, types)


def _add_keys(files: list[File], types: pa.Schema | None) -> list[File]:
    """Returns files with the columns that their folders name."""
    values_by_name: dict[str, set[str]] = {}
    for file in files:
        for name, value in _KEY.findall(file.path):
            values_by_name.setdefault(unquote(name), set()).add(value)
    if not values_by_name:
        return files
    import pyarrow.dataset as pa_dataset

    given_types = {field.name: field.type for field in types or []}
    fields = [
        (name, given_types.get(name) or (pa.int64() if all(map(_WHOLE.fullmatch, values - {_NULL})) else pa.string()))
        for name, values in values_by_name.items()
    ]
    hive, key_types = pa_dataset.HivePartitioning(pa.schema(fields)), dict(fields)
    results = []
    for file in files:
        with name_file_in_errors(file.shown):
            keys = pa_dataset.get_partition_keys(hive.parse(file.path))
            results.append(
                file._replace(keys={name: pa.scalar(value, key_types[name]) for name, value in keys.items()})
            )
    return results


@contextmanager
def open_file(file: File) -> Iterator[BinaryIO]:
    """Opens a file, or standard input, for its unpacked bytes."""
    if file.path != "-" and file.is_stream:
        with open(file.path, "rb") as pipe:
            yield pipe
        return
    if file.path != "-":
        with file.system.open_input_stream(file.path) as stream:
            yield io.BufferedReader(stream, 1 << 16)
        return
    # not ``sys.stdin.buffer``: a thread of Arrow may wait in it, and Python cannot end while the
    # buffer's lock is held
    try:
        number = sys.stdin.fileno()
    except OSError:  # another object replaces standard input
        buffered: Any = io.BufferedReader(cast(Any, sys.stdin.buffer))
        yield buffered
        buffered.detach()
        return
    yield io.BufferedReader(io.FileIO(number, closefd=False), 1 << 16)


def name_path(path: str) -> str:
    """Returns the name of a path in errors."""
    return "standard input" if path == "-" else path


@contextmanager
def name_file_in_errors(shown: str) -> Iterator[None]:
    """Puts the file's name before the errors about its content."""
    try:
        yield
    except ColmatchError as error:
        if str(error).startswith(shown):
            raise
        raise ColmatchError(f"{shown}: {error}") from error
    except OSError as error:
        if error.filename is not None:
            raise
        # Arrow's errors have no number
        message = os.strerror(error.errno) if error.errno is not None else sentence(error)
        raise ColmatchError(f"{shown}: {message}") from error
    except MemoryError as error:
        raise ColmatchError(f"{shown}: it asks for more memory than there is") from error
    except (pa.ArrowException, UnicodeDecodeError, EOFError) as error:
        raise ColmatchError(f"{shown}: {sentence(error)}") from error
