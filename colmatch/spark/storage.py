"""Folders that the driver and all workers see: on this machine, mounted, or at a remote address.

``pyarrow.fs`` opens an address, such as ``s3://bucket/alerts``. Matchers are mapped into memory. So
the first worker of a machine copies the matchers of an address to its disk, once for each content.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs

from colmatch.errors import StoreError, show_value
from colmatch.given.arguments import file_name
from colmatch.given.incoming import refusing
from colmatch.kernels import _folders
from colmatch.matcher import Matcher
from colmatch.store import locks
from colmatch.store.file import content_hash
from colmatch.store.replacing import replacing

COPIES_KEPT = 2  # of the versions of a shard
_log = logging.getLogger("colmatch")

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # longer than the letter of a drive


class Folder:
    """A folder with files that appear whole or not at all.

    Parameters
    ----------
    given : a path, or an address with ``://``

    Attributes
    ----------
    address : path or address that opens the same folder in another process
    is_local : True for a path of this machine

    Raises
    ------
    StoreError : ``given`` is neither, cannot be opened, or is an address of HDFS
    """

    def __init__(self, given: str | os.PathLike[str]) -> None:
        name = file_name(given)
        if not name or "\0" in name:
            raise StoreError(f"{show_value(given)} is not the path or address of a folder")
        self.is_local = not is_address(name)
        if self.is_local:
            self.address = os.path.abspath(name)
            self._files, self._root = fs.LocalFileSystem(), self.address
        else:
            self.address = name = re.sub("^s3[an]://", "s3://", name)  # Spark uses s3a and s3n
            with refusing(StoreError, f"{name} cannot be opened"):
                self._files, self._root = fs.FileSystem.from_uri(name)
            if self._files.type_name == "hdfs":
                raise StoreError(f"{name}: HDFS cannot replace a file in one step; mount it, or use a store of objects")

    def make(self) -> None:
        """Makes the folder, if it does not exist.

        Raises StoreError: the address is a file.
        """
        if self.has(""):
            raise StoreError(f"{self.address} is a file, and a folder is needed")
        self._files.create_dir(self._root, recursive=True)

    def has(self, name: str) -> bool:
        return bool(self._files.get_file_info(self._path(name)).type == fs.FileType.File)

    def read(self, name: str) -> bytes:
        """Returns the content of a small file."""
        with self._files.open_input_stream(self._path(name)) as file:
            return bytes(file.read())

    def write(self, name: str, data: bytes) -> None:
        """Writes or replaces a small file."""
        if self.is_local:
            with replacing(self._path(name)) as file:
                file.write(data)
        else:  # stores of objects show a file when it is complete
            with self._files.open_output_stream(self._path(name)) as stream:
                stream.write(data)

    def put(self, prefix: str, matcher: Matcher) -> tuple[str, int]:
        """Saves a matcher in a file named by its content hash; returns the name and the bytes."""
        place = self.address if self.is_local else tempfile.mkdtemp(prefix="colmatch-")
        new = os.path.join(place, f"new-{uuid.uuid4().hex}")
        try:
            matcher.save(new)
            name, size = f"{prefix}-{content_hash(Path(new))}.cm", os.path.getsize(new)
            if self.is_local:
                os.replace(new, self._path(name))
            elif not self.has(name):  # a file of that name has the same content
                fs.copy_files(new, self._path(name), fs.LocalFileSystem(), self._files)
        finally:
            Path(new).unlink(missing_ok=True)
            if not self.is_local:
                shutil.rmtree(place, ignore_errors=True)
        return name, size

    def local(self, name: str) -> str:
        """Returns a path of this machine from which a file can be mapped into memory.

        Raises FileNotFoundError: there is no such file.
        """
        if self.is_local:
            path = self._path(name)
            os.stat(path)
            return path
        folder = _copies() / hashlib.sha256(self.address.encode()).hexdigest()[:32]
        folder.mkdir(mode=0o700, exist_ok=True)
        copy, kind = folder / name, name.rpartition("-")[0]
        with locked(str(folder / f".{kind}.lock")):  # one worker copies, and the others wait for it
            if not copy.exists():
                with self._files.open_input_stream(self._path(name)) as stream, replacing(copy) as file:
                    shutil.copyfileobj(stream, file, 1 << 22)
            os.utime(copy)
            # A process that maps a dropped file keeps it, and the system removes it afterwards.
            _folders.drop_old(folder.glob(f"{kind}-*"), COPIES_KEPT)
        return str(copy)

    def files(self) -> dict[str, float]:
        """Returns the names of all files, and their ages in seconds; 0 if unknown."""
        entries, now = self._files.get_file_info(fs.FileSelector(self._root)), time.time()
        there = {one.base_name: one.mtime_ns for one in entries if one.type == fs.FileType.File}
        return {name: 0.0 if at is None else now - at / 1e9 for name, at in sorted(there.items())}

    def remove(self, name: str) -> None:
        """Removes a file, if it exists."""
        try:
            self._files.delete_file(self._path(name))
        except (FileNotFoundError, pa.ArrowException):
            if self.has(name):
                raise

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


def is_address(name: str) -> bool:
    """Returns whether a name is a remote address, such as ``s3://bucket/alerts``."""
    return bool(_ADDRESS.match(name))


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Holds the lock of a file, which other processes of this machine wait for."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        while locks.lock(handle) is False:
            time.sleep(0.05)
        yield
    finally:
        locks.close(handle)


@cache
def _copies() -> Path:
    """Returns a folder for copies: one for all of this user's processes on this machine.

    If other users could change its content, the folder is one for this process.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()).absolute() / f"colmatch-shards-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    why = _folders.distrust(folder)
    if why is None:
        return folder
    _log.warning("copies of shards are made for each process, since %s", why)
    return folder_of_process()


@cache
def folder_of_process() -> Path:
    """Makes a folder for files that live as long as this process, since jobs read them."""
    folder = Path(tempfile.mkdtemp(prefix="colmatch-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not a forked child
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
