"""Folders that the driver and all workers see: on this machine, mounted, or addresses of elsewhere.

An address, such as ``s3://bucket/alerts``, is what ``pyarrow.fs`` takes. Matchers are mapped into
memory, so a worker copies those of an address to its own disk first, once for each content.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs

from colmatch.arguments import file_name
from colmatch.errors import StoreError, shown
from colmatch.incoming import refusing
from colmatch.matcher import Matcher
from colmatch.store.file import content_hash
from colmatch.store.replacing import replacing


class Folder:
    """A folder whose files appear whole or not at all.

    Parameters
    ----------
    given : a path, or an address with ``://``

    Attributes
    ----------
    address : which another process opens the same folder by
    is_local : whether it is a path of this machine

    Raises
    ------
    StoreError : it is neither
    """

    def __init__(self, given: str | os.PathLike[str]) -> None:
        name = file_name(given)
        if not name or "\0" in name:
            raise StoreError(f"{shown(given)} is not the path or address of a folder")
        self.is_local = "://" not in name
        if self.is_local:
            self.address = os.path.abspath(name)
            self._files, self._root = fs.LocalFileSystem(), self.address
        else:
            self.address = name
            with refusing(StoreError, f"{name} cannot be opened"):
                self._files, self._root = fs.FileSystem.from_uri(name)

    def make(self) -> None:
        """Makes the folder, if it is not there."""
        self._files.create_dir(self._root, recursive=True)

    def has(self, name: str) -> bool:
        """Says whether there is a file of that name."""
        return bool(self._files.get_file_info(self._path(name)).type == fs.FileType.File)

    def read(self, name: str) -> bytes:
        """Returns what a small file holds."""
        with self._files.open_input_stream(self._path(name)) as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Writes a small file, in place of one of that name."""
        if self.is_local:
            with replacing(self._path(name)) as file:
                file.write(data)
        else:  # stores of objects show one when all of it is there
            with self._files.open_output_stream(self._path(name)) as stream:
                stream.write(data)

    def put(self, prefix: str, matcher: Matcher) -> tuple[str, str, int]:
        """Saves a matcher; returns the name of its file, its content hash, and its bytes."""
        place = self.address if self.is_local else tempfile.mkdtemp(prefix="colmatch-")
        new = os.path.join(place, f"new-{uuid.uuid4().hex}")
        try:
            matcher.save(new)
            hash, size = content_hash(Path(new)), os.path.getsize(new)
            name = f"{prefix}-{hash}.cm"
            if self.is_local:
                os.replace(new, self._path(name))
            else:
                fs.copy_files(new, self._path(name), fs.LocalFileSystem(), self._files)
        finally:
            Path(new).unlink(missing_ok=True)
            if not self.is_local:
                shutil.rmtree(place, ignore_errors=True)
        return name, hash, size

    def local(self, name: str) -> str:
        """Returns a path of this machine at which a file can be mapped into memory."""
        if self.is_local:
            return self._path(name)
        copy = os.path.join(_copies(), name)
        if not os.path.exists(copy):
            with replacing(copy) as file, self._files.open_input_stream(self._path(name)) as stream:
                shutil.copyfileobj(stream, file, 1 << 22)
        return copy

    def names(self) -> list[str]:
        """Returns the names of all files."""
        found = self._files.get_file_info(fs.FileSelector(self._root))
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def remove(self, name: str) -> None:
        """Removes a file, if it is there."""
        try:
            self._files.delete_file(self._path(name))
        except (FileNotFoundError, pa.ArrowException):
            if self.has(name):
                raise

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


@cache
def _copies() -> str:
    """Returns a folder for copies: of an executor, for all its workers, or of this process."""
    from pyspark import TaskContext
    from pyspark.core.files import SparkFiles

    if TaskContext.get() is not None:
        return SparkFiles.getRootDirectory()
    return tempfile.mkdtemp(prefix="colmatch-")
