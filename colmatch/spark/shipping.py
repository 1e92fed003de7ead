"""Shipping of an index to Spark's workers, as a file.

- A classic session with a local master reads the file in place. If the file system allows, the file
  is first linked (not copied) into a folder of this process. So a query keeps its version when the
  index is replaced, until eight newer versions have been opened.
- Any other session sends the file to its workers once, as an artifact. The content hash is part of
  its name, since Spark refuses a name twice.
- With ``shared=True`` the workers open the path from the caller. It suits an index on a file system
  that all workers mount.
- A stream of a Connect session has the index within its tasks. Spark 4.3 runs such a stream without
  the artifacts of its session, so these reach no worker. Each task of each micro-batch carries the
  index, and a worker unpacks it once. So there is a limit of size.

A matcher in a file of pages is copied into an ordinary file, in its state at the time of the call.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import weakref
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from colmatch.errors import OptionError, StoreError
from colmatch.given import arguments
from colmatch.kinds.registry import is_in_pages
from colmatch.matcher import Matcher
from colmatch.paged.header import is_pages
from colmatch.spark.manifest import Manifest, read_present
from colmatch.spark.storage import Folder, folder_of_process, is_address
from colmatch.spark.worker import IndexFile, pack_matcher
from colmatch.store.file import content_hash
from colmatch.store.saved import file_name

PACKED_MOST = 32 << 20  # bytes of an index, compressed, that go with each task; a Connect server takes 128 MiB at once
SENT_MOST = 8  # versions in a session before a warning: Spark removes none of them while the session lasts
VERSIONS_KEPT = 8  # of one index, in this process: a link holds the disk space of its file

_log = logging.getLogger("colmatch")

# names of the artifacts that a session has
_sent: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()
# version of the matcher, file, its hash
_saves: weakref.WeakKeyDictionary[Matcher, tuple[int, Path, str]] = weakref.WeakKeyDictionary()
_paged: dict[Path, Matcher] = {}  # path of a file of pages -> its matcher, which follows the file
_links: dict[Path, list[Path]] = {}  # path from the caller -> links to its versions, the newest last


class PinnedIndex(NamedTuple):
    """A version of an index, in a file that does not change.

    For a folder of shards, the fields are the folder, its model and the hash of its manifest.
    """

    given: Path | Folder  # the caller's name for the index
    file: Path
    hash: str
    opened: Matcher


def pin_index(matcher: Matcher | PinnedIndex | str | os.PathLike[str]) -> PinnedIndex:
    """Opens the present version of an index."""
    if isinstance(matcher, PinnedIndex):
        return matcher
    if isinstance(matcher, Matcher):
        file, hash = _save_version(matcher)
        return PinnedIndex(file, file, hash, matcher)
    name = arguments.file_name(matcher) or ""
    if is_address(name) or os.path.isdir(name):
        folder = Folder(name)
        return pin_shards(folder, read_present(folder))
    path = Path(os.path.abspath(file_name(matcher)))
    if is_pages(str(path)):
        if path not in _paged:
            _paged[path] = Matcher.open(path)
        return pin_index(_paged[path])
    file, hash = _link_version(path)
    opened = Matcher.open(file, mmap=True)
    if content_hash(file) != hash:
        raise StoreError(f"{path} was replaced while it was read: call match again")
    return PinnedIndex(path, file, hash, opened)


def pin_shards(folder: Folder, manifest: Manifest) -> PinnedIndex:
    file = Path(folder.local(manifest.model))
    return PinnedIndex(folder, file, manifest.hash, Matcher.open(file, mmap=True))


def ship_index(
    df: DataFrame, given: Path | Folder, file: Path, hash: str, shared: bool | None, opened: Matcher
) -> IndexFile:
    """Makes ``file`` readable for workers; ``given`` is the caller's name for the index.

    Raises OptionError: the index is too large for a stream of a Connect session. Or ``shared`` is
    False for shards, or the server takes no files.
    """
    if isinstance(given, Folder):
        if shared is False:
            raise OptionError("shared=False: shards are not sent to workers, which open the folder: leave shared out")
        return IndexFile(hash, given.address, f"manifest-{hash}.json", artifact=False, folder=given.address)
    if shared:  # other machines cannot see the folder of this process
        return IndexFile(hash, str(given), str(given if file.parent == folder_of_process() else file), artifact=False)
    spark = df.sparkSession
    if (
        shared is None
        and isinstance(df, ClassicDataFrame)
        and (spark.conf.get("spark.master") or "").startswith("local")
    ):
        return IndexFile(hash, str(given), str(file), artifact=False)
    if not isinstance(df, ClassicDataFrame) and df.isStreaming:
        return IndexFile(hash, str(given), "", artifact=False, packed=_pack_index(opened))
    name = f"colmatch-{hash}"
    names = _sent.setdefault(spark, set())
    if name not in names:
        if file.name != name:
            file = Path(shutil.copyfile(file, folder_of_process() / name))
        try:
            spark.addArtifact(str(file), file=True)
        except UnsupportedOperationException as error:
            raise OptionError(
                "the server of this session takes no files: save the matcher where its workers see it, and pass the path "
                f"with shared=True ({error})"
            ) from None
        names.add(name)
        if len(names) == SENT_MOST:
            _log.warning(
                "%d versions of indexes were sent to the workers of this session, which keep all of them until it ends: save an "
                "index that changes often where all workers see it, and pass its path with shared=True, or build shards",
                SENT_MOST,
            )
    return IndexFile(hash, str(given), name, artifact=True)


def _pack_index(matcher: Matcher) -> tuple[int, bytes]:
    size, data = pack_matcher(matcher)
    if len(data) > PACKED_MOST:
        raise OptionError(
            f"this stream of a Connect session needs the index within its tasks, and it has {len(data):,} bytes, more than "
            f"{PACKED_MOST:,}: save it where all workers see it and pass its path with shared=True, or call match on "
            "each batch, in foreachBatch"
        )
    return size, data


def _save_version(matcher: Matcher) -> tuple[Path, str]:
    """Saves a matcher, once for each of its versions; returns the file and its content hash."""
    saved = _saves.get(matcher)
    version = matcher.version  # read before saving: an update in between makes this save look old, not new
    if saved is None or saved[0] != version:
        new = folder_of_process() / f"new-{os.urandom(8).hex()}"
        # Workers map files into memory, so they cannot use a file of pages.
        mapped = pickle.loads(pickle.dumps(matcher)) if is_in_pages(matcher.index) else matcher
        mapped.save(new)
        hash = content_hash(new)
        saved = _saves[matcher] = version, new.replace(folder_of_process() / f"colmatch-{hash}"), hash
    return saved[1:]


def _link_version(path: Path) -> tuple[Path, str]:
    """Links an index under its content hash; returns the link and that hash.

    The link keeps this version when the index is replaced. The function returns the path itself if
    the temporary folder is on another file system, or if links are not allowed.
    """
    try:
        link, hash = link_index(path, folder_of_process())
    except OSError:
        return path, content_hash(path)
    links = _links[path] = [*(old for old in _links.get(path, []) if old != link), link]
    for old in links[:-VERSIONS_KEPT]:
        links.remove(old)
        if not any(old in others for others in [*_links.values(), [file for _, file, _ in _saves.values()]]):
            old.unlink(missing_ok=True)
    return link, hash


def link_index(path: Path, folder: Path) -> tuple[Path, str]:
    """Links an index into a folder under its content hash; returns the link and that hash.

    Raises OSError: the folder is on another file system, or links are not allowed.
    """
    new = folder / f"link-{os.urandom(8).hex()}"
    os.link(os.path.realpath(path), new)
    try:
        hash = content_hash(new)
        return new.replace(folder / f"colmatch-{hash}"), hash
    finally:
        new.unlink(missing_ok=True)  # ``replace`` leaves it if both are links to the same file
