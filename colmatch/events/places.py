"""Files of rows by path, pattern, folder or URL, in the file systems of pyarrow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from glob import glob
from typing import NamedTuple

import pyarrow.fs as pa_fs

from colmatch.errors import EventError

_WILD = re.compile(r"[*?[]")
# Folders of logs that say which files of a table have its rows.
_LOGS = {
    "_delta_log": "a table of Delta Lake", ".hoodie": "a table of Hudi", "_spark_metadata": "what a stream of Spark wrote",
}  # fmt: skip
_ICEBERG = "a table of Iceberg"


class FileSet(NamedTuple):
    """The files of a path, a pattern, a folder or a URL.

    Attributes
    ----------
    base : the searched folder; names of folders below it may have values of columns
    files : in the order of their names
    """

    system: pa_fs.FileSystem
    base: str
    files: list[str]


def is_url(path: str) -> bool:
    """Returns whether a path is an address of a file system."""
    return "://" in path or path.startswith("file:")


def _list_files(system: pa_fs.FileSystem, folder: str) -> list[pa_fs.FileInfo]:
    """Returns the content of a folder, and of all folders in it.

    Raises EventError: Arrow cannot read a name.
    """
    try:
        infos: list[pa_fs.FileInfo] = system.get_file_info(
            pa_fs.FileSelector(folder, allow_not_found=True, recursive=True)
        )
        _ = [one.path for one in infos]  # names are decoded only now
    except UnicodeDecodeError as error:
        raise EventError(f"the folder has a name that is not UTF-8, {error.object!r}: rename it") from None
    return infos


def _check_name(path: str) -> None:
    """Raises EventError if Arrow cannot open a file of that name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise EventError("its name is not UTF-8: rename the file, or give it as standard input") from None


def place_of(path: str, is_text: Callable[[str], bool]) -> FileSet:
    """Returns the file of a path, or the files of a folder, pattern or URL.

    Names that begin with a dot or an underscore are left out, and in folders empty texts.

    is_text : returns whether a file is a text, which has no rows if it is empty

    Raises
    ------
    OSError : there is no such file
    EventError : A folder or pattern has no file. Or a log says which of its files have rows, as in
        a table of Delta Lake, Iceberg or Hudi
    """
    _check_name(path)
    system, place = pa_fs.FileSystem.from_uri(path) if is_url(path) else (pa_fs.LocalFileSystem(), path)
    info = system.get_file_info(place)
    infos, base = [info], place
    if info.type == pa_fs.FileType.NotFound:
        wild = _WILD.search(place)
        if not wild:
            raise FileNotFoundError(2, os.strerror(2), path)
        base = place[: wild.start()].rpartition("/")[0]
        if isinstance(system, pa_fs.LocalFileSystem):
            names_found = sorted(path for path in glob(place, recursive=True) if _counts(path, base))
            for name in names_found:
                _check_name(name)
            infos = system.get_file_info(names_found)
        else:
            inside = _list_files(system, base)
            parts = place.split("/")
            matches = (one for one in inside if _counts(one.path, base) and _fits(one.path.split("/"), parts))
            infos = sorted(matches, key=lambda one: one.path)
    if info.type != pa_fs.FileType.File:
        _check_above(system, base)
    names = []
    for one in infos:
        if one.type != pa_fs.FileType.Directory:
            names.append(one.path)
            continue
        inside = _list_files(system, one.path)
        _check_below(one.path, inside)
        files = sorted((file.path, file.size) for file in inside if file.is_file and _counts(file.path, one.path))
        names += [name for name, size in files if size or not is_text(name)]
    if not names:
        kind = "folder" if info.type == pa_fs.FileType.Directory else "pattern"
        raise EventError(f"no file of rows is in this {kind}")
    return FileSet(system, base, list(dict.fromkeys(names)))  # ``**`` matches folders and their content


def _check_below(folder: str, files: list[pa_fs.FileInfo]) -> None:
    """Raises EventError if a log is among the files of a folder."""
    for one in files:
        parts = one.path[len(folder) :].split("/")
        for part in parts:
            if part in _LOGS:
                raise _make_log_error(_LOGS[part], one.path.rpartition(part)[0])
        if parts[-1].endswith(".metadata.json") and parts[-2:-1] == ["metadata"]:
            raise _make_log_error(_ICEBERG, one.path.rpartition("metadata/")[0])


def _check_above(system: pa_fs.FileSystem, base: str) -> None:
    """Raises EventError if a log is in a folder, or in a folder around it."""
    parts = base.rstrip("/").split("/")
    if any(part in _LOGS for part in parts):  # the log itself is read
        return
    above = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
    logs = [f"{folder}/{log}" for folder in above if folder for log in _LOGS]
    for log in system.get_file_info(logs):
        if log.type == pa_fs.FileType.Directory:
            raise _make_log_error(_LOGS[log.base_name], log.path.rpartition("/")[0])
    if "data" in parts:
        table = "/".join(parts[: len(parts) - parts[::-1].index("data") - 1])
        metadata = pa_fs.FileSelector(f"{table}/metadata", allow_not_found=True)
        if any(one.path.endswith(".metadata.json") for one in system.get_file_info(metadata)):
            raise _make_log_error(_ICEBERG, table)


def _make_log_error(what: str, folder: str) -> EventError:
    return EventError(
        f"{folder.rstrip('/')} is {what}: a log says which of its files have rows, so read it with what knows the log, "
        "such as Spark, and match the DataFrame"
    )


def _fits(path: list[str], pattern: list[str]) -> bool:
    """Returns whether a path matches a pattern; ``**`` matches any number of folders."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_fits(path[i:], pattern[1:]) for i in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _fits(path[1:], pattern[1:])


def _counts(path: str, folder: str) -> bool:
    """Returns whether a file in a folder has rows: Spark and others mark the rest."""
    parts = path[len(folder) :].split("/")
    return not any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)
