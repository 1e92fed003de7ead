"""The folder with a stream's records: the version of the index that matched each batch.

::

    batches/<number>.json    a line of JSON: the version, and figures of the batch
    versions/colmatch-<hash> the index files that matched the last batches

Spark repeats a batch if it was killed before the commit. The repeated batch must use the version of
the first time, even if the pointer names another version by now. So a version is linked into the
folder before it is recorded, and recorded before it is used. A version is removed when no batch
that can be repeated needs it; Spark repeats only the last batch. A kill between two steps does no
harm. Only one driver at a time writes in the folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from colmatch.errors import StoreError, show_value
from colmatch.matcher import Matcher
from colmatch.paged.header import is_pages
from colmatch.spark.manifest import POINTER, read_manifest
from colmatch.spark.shipping import PinnedIndex, link_index, pin_index, pin_shards
from colmatch.spark.storage import Folder
from colmatch.store import locks
from colmatch.store.file import content_hash, is_saved
from colmatch.store.replacing import replacing, sync_folder
from colmatch.store.saved import file_name

RECORDS_KEPT = 100  # batches, as many as Spark keeps in a checkpoint by default
_AGAIN = 2  # last batches that keep their versions: one may be repeated
_OWN = re.compile(r"colmatch-[0-9a-f]{32}|(link|copy)-[0-9a-z-]+")  # files of index versions
_POINTER_MOST = 4096  # bytes of a text file that names an index


class StreamRecords:
    """The folder of records of one stream.

    Attributes
    ----------
    folder : path of the folder
    checkpoint : checkpoint of the stream; None if it is not a folder of this machine
    """

    def __init__(self, folder: Path, checkpoint: Path | None) -> None:
        self.folder = folder
        self.checkpoint = checkpoint
        self.held: PinnedIndex | None = None  # the version that was used last

    def prepare(self) -> None:
        """Makes the folders.

        Raises StoreError: they cannot be written to.
        """
        try:
            for name in ("batches", "versions"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
                sync_folder(str(self.folder / name))
                if not os.access(self.folder / name, os.W_OK | os.X_OK):
                    raise PermissionError(13, "may not be written to", str(self.folder / name))
        except OSError as error:
            raise StoreError(
                f"the records of a stream cannot be written ({error}): pass another folder, match_stream(records=…)"
            ) from error

    def current(self, pointer: Path) -> PinnedIndex:
        """Returns the version that a pointer names now, and keeps it in this folder.

        Raises StoreError, OSError: the pointer names no index.
        """
        index = current_file(pointer)
        if index.is_dir():  # a folder of shards, which keeps old versions itself
            return pin_index(index)
        source, hash = pin_index(index)[1:3] if is_pages(str(index)) else (index, content_hash(index))
        held = self.held
        if held is not None and hash == held.hash and held.file.exists():
            return held
        try:
            file, hash = link_index(source, self.folder / "versions")
        except OSError:
            file, hash = self._copy_index(source)
        sync_folder(str(self.folder / "versions"))  # before a record names it
        return self._open_version(pointer, file, hash)

    def read_version(self, number: int, pointer: Path) -> PinnedIndex | None:
        """Returns the version in the record of a batch; None if the batch has no record.

        Raises StoreError: the records belong to another stream, or the version is gone.
        """
        there = self._numbers()
        if there and there[-1] > number:
            raise StoreError(
                f"{self.folder} has records of batches up to {there[-1]}, and batch {number} begins: the folder is that of "
                "another stream, or the checkpoint was put back. Pass another folder, match_stream(records=…), or "
                "remove this one, and the present version is used"
            )
        if there and (owner := self.read(there[-1])["query"]) and (query := self.query()) and owner != query:
            raise StoreError(
                f"{self.folder} has the records of another stream (query {owner}, and this is {query}): pass another "
                "folder, match_stream(records=…), or remove this one"
            )
        if number not in there:
            return None
        record = self.read(number)
        hash = record["index"]
        if record.get("shards"):
            folder = Folder(record["shards"])
            try:
                return pin_shards(folder, read_manifest(folder, f"manifest-{hash}.json"))
            except StoreError as error:
                raise StoreError(
                    f"batch {number} was begun with version {hash} of the shards, and {error}: remove "
                    f"{self.path(number)}, and the present version is used"
                ) from error
        file = self.folder / "versions" / f"colmatch-{hash}"
        try:
            return self._open_version(pointer, file, hash)
        except FileNotFoundError as error:
            raise StoreError(
                f"batch {number} was begun with version {hash} of the index, and {file} is gone: put it back, or remove "
                f"{self.path(number)}, and the present version is used"
            ) from error

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Locks out other drivers of the same stream during a batch.

        Raises StoreError: another driver has locked it.
        """
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if locks.lock(handle) is False:
                raise StoreError(f"another driver runs this stream now: it has locked {self.folder / 'lock'}")
            yield
        finally:
            locks.close(handle)

    def ids(self) -> str | None:
        """Returns the type of the ids in the record of the last batch; None if there is none."""
        there = self._numbers()
        return self.read(there[-1]).get("ids") if there else None

    def write(self, number: int, record: dict[str, Any]) -> None:
        """Writes the record of a batch, whole or not at all."""
        with replacing(self.path(number)) as file:
            file.write(json.dumps(record | {"query": self.query()}).encode() + b"\n")

    def read(self, number: int) -> dict[str, Any]:
        """Returns the record of a batch.

        Raises StoreError: it is damaged.
        """
        path = self.path(number)
        try:
            record: dict[str, Any] = json.loads(path.read_bytes())
            if record["batch"] == number and isinstance(record["index"], str) and isinstance(record["query"], str):
                return record
        except (ValueError, KeyError, TypeError):
            pass
        raise StoreError(f"{path} is damaged: remove it, and the present version of the index is used")

    def clear(self) -> None:
        """Removes versions that no batch needs, remains of killed drivers, and old records."""
        there = self._numbers()
        needed = {f"colmatch-{self.read(number)['index']}" for number in there[-_AGAIN:]}
        for file in (self.folder / "versions").iterdir():
            if file.name not in needed and _OWN.fullmatch(file.name):
                file.unlink(missing_ok=True)
        for number in there[:-RECORDS_KEPT]:
            self.path(number).unlink(missing_ok=True)

    def query(self) -> str:
        """Returns the id of the stream from its checkpoint; "" if the checkpoint cannot be read."""
        try:
            query = json.loads((self.checkpoint / "metadata").read_bytes())["id"] if self.checkpoint else ""
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        return str(query)

    def _open_version(self, pointer: Path, file: Path, hash: str) -> PinnedIndex:
        held = self.held
        if held is None or held.hash != hash or not file.exists():
            if content_hash(file) != hash:
                raise StoreError(
                    f"{file} was changed after it was linked: replace an index by Matcher.save, or rename it"
                )
            held = self.held = PinnedIndex(pointer, file, hash, Matcher.open(file, mmap=True))
        return held

    def _copy_index(self, source: Path) -> tuple[Path, str]:
        """Copies an index from another file system; returns the copy and its content hash."""
        new = self.folder / "versions" / f"copy-{os.urandom(8).hex()}"
        with open(source, "rb") as old, replacing(new) as file:
            shutil.copyfileobj(old, file, 1 << 20)
        hash = content_hash(new)
        return new.replace(new.with_name(f"colmatch-{hash}")), hash

    def path(self, number: int) -> Path:
        return self.folder / "batches" / f"{number}.json"

    def _numbers(self) -> list[int]:
        """Returns the numbers of recorded batches, ascending."""
        names = [path.stem for path in (self.folder / "batches").glob("*.json")]
        return sorted(int(name) for name in names if name.isdecimal())


def current_file(pointer: Path) -> Path:
    """Returns the index that a pointer names now.

    A pointer is a saved matcher, a folder of saved matchers, or a folder of shards. Or a text file
    with the path of one of them, relative to the file's folder. In a folder of saved matchers, the
    last by name counts.

    Raises
    ------
    StoreError : the pointer names no index
    OSError : as from ``open``
    """
    if pointer.is_dir():
        return pointer if (pointer / POINTER).is_file() else _last(pointer)
    if is_index(pointer):
        return pointer
    named = _read_path(pointer)
    index = pointer.parent / file_name(named)
    if index.is_dir():
        return index if (index / POINTER).is_file() else _last(index)
    if not is_index(index):
        raise StoreError(
            f"{pointer} names {show_value(named)}, which is no saved matcher: write the path of one into it"
        )
    return index


def is_index(path: Path) -> bool:
    """Returns whether a file has an index in it, judging by its first bytes."""
    return is_saved(path) or is_pages(str(path))


def _last(folder: Path) -> Path:
    """Returns the last index of a folder; digits in names are compared as numbers."""
    names = [entry.name for entry in os.scandir(folder) if not entry.name.startswith((".", "_"))]
    indexes = [name for name in names if is_index(folder / name)]
    if not indexes:
        raise StoreError(f"the folder {folder} has no saved matcher: save one into it, matcher.save('{folder}/1.cm')")
    return folder / max(indexes, key=lambda name: (_in_turn(name), name))


def _in_turn(name: str) -> list[int | str]:
    """Returns the sort key of a name: texts and numbers alternate."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", name))]


def _read_path(pointer: Path) -> str:
    """Reads the path in a text file."""
    if not pointer.is_file():
        raise StoreError(f"there is no saved matcher {pointer}: call matcher.save('{pointer}') before")
    with open(pointer, "rb") as file:
        data = file.read(_POINTER_MOST + 1)
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        text = ""
    if not text or len(data) > _POINTER_MOST or "\n" in text or not text.isprintable():
        raise StoreError(
            f"{pointer} is neither a saved matcher, nor a folder of them, nor a text file with the path of one: call "
            "matcher.save there"
        )
    return text
