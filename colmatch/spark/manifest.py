"""The manifest of a folder of shards: the files of one version.

The file ``shards.json`` of a folder names the manifest of the present version. The names of
manifests and shards contain the hash of their content, so these files never change. The files of a
version stay until eight more versions have been made, so queries planned with it can go on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from colmatch.errors import StoreError
from colmatch.spark.storage import Folder
from colmatch.store.replacing import DAY

_log = logging.getLogger("colmatch")

POINTER = "shards.json"
FORMAT = 2
VERSIONS_KEPT = 8
_OWN = re.compile(r"(shard-\d+|model|manifest|new)-[0-9a-f]{32}(\.cm|\.json)?$")  # names of files


@dataclass(frozen=True)
class Shard:
    """Some of the subscriptions, saved as a matcher.

    Attributes
    ----------
    file : name of the file in the folder
    subscriptions : number of subscriptions
    bytes : size of the file
    """

    file: str
    subscriptions: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """One version of a folder of shards.

    Attributes
    ----------
    version : 1 for the first build, one more for each build and update since
    shards : the shards by number; None for a shard without subscriptions
    ids : type of the ids, ``int64`` or ``string``
    model : file of a matcher without subscriptions, which knows the columns that expressions use
    earlier : manifests of the older versions that are kept, the newest last
    """

    version: int
    shards: tuple[Shard | None, ...]
    ids: str
    model: str
    earlier: tuple[str, ...] = ()
    name: str = field(default="", compare=False)

    @property
    def hash(self) -> str:
        return hash_in(self.name)

    @property
    def id_type(self) -> pa.DataType:
        return pa.int64() if self.ids == "int64" else pa.string()

    @property
    def files(self) -> set[str]:
        """The files that this version needs."""
        return {self.name, self.model, *(shard.file for shard in self.shards if shard is not None)}

    def text(self) -> bytes:
        """Returns the content of the manifest's file."""
        fields = asdict(self)
        del fields["name"]
        return json.dumps({"format": FORMAT, **fields}, separators=(",", ":")).encode()


def read_present(folder: Folder) -> Manifest:
    """Returns the manifest of the present version.

    Raises
    ------
    StoreError : the folder has no manifest, or it is damaged or of another version of colmatch
    """
    if not folder.has(POINTER):
        raise StoreError(
            f"the folder {folder.address} holds no shards: build_shards makes them; a saved matcher is a file"
        )
    try:
        name = str(json.loads(folder.read(POINTER))["manifest"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder.address}/{POINTER} is damaged ({error}): build the shards again") from None
    return read_manifest(folder, name)


def read_manifest(folder: Folder, name: str) -> Manifest:
    """Reads a manifest by the name of its file.

    Raises StoreError: the file is gone, damaged or of another version of colmatch.
    """
    where = f"{folder.address}/{name}"
    try:
        data = folder.read(name)
        fields = json.loads(data)
        if f"manifest-{_hash(data)}.json" != name:
            raise ValueError("its content is not what its name says")
        if fields.pop("format") == FORMAT:
            return _read(fields, name)
        raise StoreError(f"{where} is of another version of colmatch: build the shards again")
    except StoreError:
        raise
    except FileNotFoundError:
        raise StoreError(f"{where} is not there any more: plan the query again") from None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{where} is damaged ({error}): build the shards again") from None


def _read(said: dict[str, Any], name: str) -> Manifest:
    shards = tuple(None if one is None else Shard(**one) for one in said.pop("shards"))
    return Manifest(shards=shards, earlier=tuple(said.pop("earlier")), **said, name=name)


def publish(folder: Folder, manifest: Manifest) -> str:
    """Publishes a manifest as the present version; returns the name of its file."""
    data = manifest.text()
    name = f"manifest-{_hash(data)}.json"
    folder.write(name, data)
    pointer = {"format": FORMAT, "version": manifest.version, "manifest": name}
    folder.write(POINTER, json.dumps(pointer).encode())
    return name


def sweep(folder: Folder, manifest: Manifest, before: Manifest | None) -> None:
    """Removes files that no kept version needs.

    These are files of a version that is no longer kept, and files older than a day, which failed
    builds and updates left. Errors are logged, since the new version exists already.

    before : the previous version
    """
    try:
        kept = manifest.files.union(*(read_manifest(folder, name).files for name in manifest.earlier))
        dropped = set(before.earlier if before else ()) - set(manifest.earlier)
        old = set[str]().union(*(read_manifest(folder, name).files for name in dropped))
        for name, age in folder.files().items():
            if _OWN.match(name) and name not in kept and (name in old or age > DAY):
                folder.remove(name)
    except (StoreError, OSError) as error:
        _log.warning("files of %s that no version needs are not removed: %s", folder.address, error)


def hash_in(name: str) -> str:
    """Returns the content hash at the end of a file's name."""
    return name.rpartition(".")[0].rpartition("-")[2]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
