"""The manifest of a folder of shards: which files are shards, and which rows they need.

A folder has the file ``shards.json``, which names the manifest of the present version. A manifest,
and each shard, has its content's hash for a name, so none of them is ever changed. What an older
version names stays until seven more versions have been made; queries that were planned with it go
on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import pyarrow as pa

from colmatch.errors import StoreError
from colmatch.spark.storage import Folder
from colmatch.store.replacing import DAY

_log = logging.getLogger("colmatch")

POINTER = "shards.json"
FORMAT = 1
VERSIONS_KEPT = 8
_OWN = re.compile(r"(shard-\d+|model|router|manifest|new)-[0-9a-f]{32}(\.cm|\.json)?$")  # files of a folder

Sharding = Literal["hash", "pivot"]
Route = tuple[tuple[str, ...], int | str | None]  # a column or field, and a key of a map: what a row must have


@dataclass(frozen=True)
class Shard:
    """Some of the subscriptions, saved as a matcher.

    Attributes
    ----------
    file : its name in the folder
    subscriptions : how many it has
    bytes : of the file
    routes : places among ``Manifest.pivots``: a row that has none of them matches nothing here.
        None where any row may match
    """

    file: str
    subscriptions: int
    bytes: int
    routes: tuple[int, ...] | None


@dataclass(frozen=True)
class Manifest:
    """One version of a folder of shards.

    Attributes
    ----------
    version : 1 for the first build, one more for each build and update since
    by : what says to which shard a subscription belongs
    shards : by number; None for one that has no subscriptions
    ids : type of the ids, ``int64`` or ``string``
    model : file of a matcher without subscriptions, which knows the columns that expressions use
    router : file of a matcher whose subscriptions are the shards, and which says which of them a
        row needs; None where each row needs all
    pivots : what rows have: a column, and a key of a map
    uses : how many predicates of the sample need each
    rows : how many subscriptions of the sample have each of the first pivots, then how many have
        none
    earlier : manifests of older versions whose files are kept, the newest last
    """

    version: int
    by: Sharding
    shards: tuple[Shard | None, ...]
    ids: str
    model: str
    router: str | None
    pivots: tuple[Route, ...] = ()
    uses: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    earlier: tuple[str, ...] = ()
    name: str = field(default="", compare=False)

    @property
    def hash(self) -> str:
        """Its content hash."""
        return hash_in(self.name)

    @property
    def id_type(self) -> pa.DataType:
        """The type of the ids."""
        return pa.int64() if self.ids == "int64" else pa.string()

    @property
    def files(self) -> set[str]:
        """The files that this version needs."""
        found = {self.name, self.model, *(shard.file for shard in self.shards if shard is not None)}
        return found if self.router is None else found | {self.router}

    def text(self) -> bytes:
        """Returns it as it is written down."""
        said = asdict(self)
        del said["name"]
        return json.dumps({"format": FORMAT, **said}, separators=(",", ":")).encode()


def present(folder: Folder) -> Manifest:
    """Returns the manifest of the present version.

    Raises
    ------
    StoreError : the folder has none, or it is damaged, or of another version of colmatch
    """
    if not folder.has(POINTER):
        raise StoreError(
            f"the folder {folder.address} holds no shards: build_shards makes them; a saved matcher is a file"
        )
    try:
        name = str(json.loads(folder.read(POINTER))["manifest"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder.address}/{POINTER} is damaged ({error}): build the shards again") from None
    return named(folder, name)


def named(folder: Folder, name: str) -> Manifest:
    """Returns a manifest by the name of its file.

    Raises StoreError: as ``present``.
    """
    where = f"{folder.address}/{name}"
    try:
        data = folder.read(name)
        said = json.loads(data)
        if f"manifest-{_hash(data)}.json" != name:
            raise ValueError("its content is not what its name says")
        if said.pop("format") == FORMAT:
            return _read(said, name)
        raise StoreError(f"{where} is of another version of colmatch: build the shards again")
    except StoreError:
        raise
    except FileNotFoundError:
        raise StoreError(f"{where} is not there any more: plan the query again") from None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{where} is damaged ({error}): build the shards again") from None


def _read(said: dict[str, Any], name: str) -> Manifest:
    if said["by"] not in get_args(Sharding):
        raise ValueError(f"by={said['by']}")
    shards = tuple(
        None if one is None else Shard(**{**one, "routes": None if one["routes"] is None else tuple(one["routes"])})
        for one in said.pop("shards")
    )
    pivots = tuple((tuple(path), key) for path, key in said.pop("pivots"))
    lists: dict[str, Any] = {key: tuple(said.pop(key)) for key in ("uses", "rows", "earlier")}
    return Manifest(shards=shards, pivots=pivots, **lists, **said, name=name)


def publish(folder: Folder, manifest: Manifest) -> str:
    """Makes a manifest the present one; returns its name."""
    data = manifest.text()
    name = f"manifest-{_hash(data)}.json"
    folder.write(name, data)
    pointer = {"format": FORMAT, "version": manifest.version, "manifest": name}
    folder.write(POINTER, json.dumps(pointer).encode())
    return name


def sweep(folder: Folder, manifest: Manifest, before: Manifest | None) -> None:
    """Removes files that no kept version needs: of a version that is kept no longer, and old ones.

    The latter are of builds and updates that came to nothing. What goes wrong here is logged, since
    the new version is there already.

    before : the version before this one
    """
    try:
        kept = manifest.files.union(*(named(folder, name).files for name in manifest.earlier))
        dropped = set(before.earlier if before else ()) - set(manifest.earlier)
        old = set[str]().union(*(named(folder, name).files for name in dropped))
        for name, age in folder.files().items():
            if _OWN.match(name) and name not in kept and (name in old or age > DAY):
                folder.remove(name)
    except (StoreError, OSError) as error:
        _log.warning("files of %s that no version needs are not removed: %s", folder.address, error)


def hash_in(name: str) -> str:
    """Returns the content hash that the name of a file of a folder ends with."""
    return name.rpartition(".")[0].rpartition("-")[2]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
