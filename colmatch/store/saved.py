"""The written form of a matcher's parts. The container itself is in ``file.py``."""

from __future__ import annotations

import base64
import logging
import os
import re
import struct
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from colmatch.errors import ColmatchError, StoreError, parse_rejected, show_value
from colmatch.events.sample import check_sample
from colmatch.events.vocabulary import Vocabulary
from colmatch.given import arguments
from colmatch.given.language import Language
from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema
from colmatch.given.session import read_session_parts
from colmatch.kernels import layout
from colmatch.kinds.base import Built
from colmatch.kinds.plan import index
from colmatch.kinds.registry import find, is_in_pages
from colmatch.kinds.settings import Settings
from colmatch.store import sound
from colmatch.store.file import content_hash, pack, read_arrays, unpack, write_arrays
from colmatch.store.journal import Journal, lock_journal
from colmatch.subscriptions.ids import ids_of_arrays, ids_to_arrays
from colmatch.subscriptions.rejected import by_id
from colmatch.subscriptions.tags import NO_TAGS, Tags, tags_of_arrays, tags_to_arrays
from colmatch.subscriptions.texts_kept import KeptTexts
from colmatch.text import hyperscan_sets
from colmatch.updates.deleted import DeletedNumbers
from colmatch.updates.growing import GrowingSegment
from colmatch.updates.literals import whole
from colmatch.updates.memory_set import MemorySet
from colmatch.updates.records import attribute_entry, attribute_of, check_definitions
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Parts, Version, named_arrays
from colmatch.version import __version__

_log = logging.getLogger("colmatch")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # longer than a drive letter
_UNREADABLE = (KeyError, ValueError, TypeError, IndexError, struct.error)  # errors from reading another format


def _encode(parts: Parts) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    version = parts.version
    arrays = {
        f"segments.{i}.{group}.{name}": array
        for i, segment in enumerate(version.segments)
        for group, named in named_arrays(segment).items()
        for name, array in zip(named._fields, named, strict=True)
    }
    arrays |= {f"literals.{name}": array for name, array in whole(version.literals)._asdict().items()}
    arrays |= ids_to_arrays(version.ids) | tags_to_arrays(version.tags) | version.texts.to_arrays()
    arrays |= {"deleted": version.deleted.bits, "sample": version.sample}
    header = {
        "version": __version__,
        "requested": _settings(parts.requested),
        "segments": [{"size": segment.size, **_settings(segment.index.settings)} for segment in version.segments],
        "bases": version.bases,
        "growing": version.growing,
        "alive": version.alive,
        "stale": version.stale,
        "gone": version.gone,
        "reason": version.reason,
        "updates": version.updates,
        "merges": version.merges,
        "options": parts.options.to_dict(),
        "language": parts.language.to_dict(),
        "schema": base64.b64encode(parts.schema.arrow.serialize().to_pybytes()).decode(),
        "attributes": [attribute_entry(attribute) for attribute in version.attributes],
        "rejected": [list(entry) for entry in version.rejected.values()],
        "session_parts": list(version.session_parts),
        "definitions": dict(version.definitions),
    }
    return header, arrays


def _settings(settings: Settings) -> dict[str, Any]:
    return {"kind": settings.kind, "settings": settings.to_dict()}


def _decode(
    where: str, header: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]], trusted: bool, pages: bool = False
) -> Parts:
    """Returns the parts of a matcher.

    pages : whether the parts describe a file of pages
    """
    hyperscan_sets.is_available()  # raises if the environment is wrong, which is no fault of the file
    try:
        return _decode_parts(header, arrays, trusted, pages)
    except Exception as error:
        error_types = (*_UNREADABLE, AttributeError, ColmatchError, pa.ArrowException)
        if trusted and not isinstance(error, error_types):
            raise
        wrote = show_value(header.get("version", "before 0.2")).strip("'")
        raise StoreError(
            f"colmatch {__version__} cannot read {where}, which colmatch {wrote} wrote ({_reason(error)}): build it "
            "again"
        ) from error


def _decode_parts(header: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]], trusted: bool, pages: bool) -> Parts:
    """Returns the parts of a matcher, checked before their first use unless ``trusted``."""
    attributes = Attributes(list(map(attribute_of, header["attributes"])))
    segments = [_segment(i, entry, arrays) for i, entry in enumerate(header["segments"])]
    if header["growing"]:
        segments[-1] = GrowingSegment.from_saved(segments[-1])
    literals = _read_named("literals", layout.Literals, arrays)
    if not trusted:
        sound.check_literals(literals, len(attributes))
    version = Version(
        attributes=attributes,
        literals=Vocabulary.among(literals),
        segments=tuple(segments),
        bases=tuple(header["bases"]),
        growing=header["growing"],
        deleted=DeletedNumbers(_check_array("deleted", layout.U64, arrays)),
        alive=tuple(header["alive"]),
        stale=tuple(header["stale"]),
        gone=header["gone"],
        ids=ids_of_arrays(_ids(arrays, trusted)),
        reason=header["reason"],
        session_parts=read_session_parts(header["session_parts"]),
        rejected=by_id(map(parse_rejected, header["rejected"])),
        definitions=check_definitions(header.get("definitions", {})),
        sample=_check_array("sample", layout.U8, arrays),
        tags=_tags(arrays, trusted),
        texts=_texts(arrays, trusted),
        updates=header["updates"],
        merges=header["merges"],
    )
    schema = Schema(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(header["schema"]))))
    requested = index(header["requested"]["kind"], **header["requested"]["settings"])
    if not trusted:
        if is_in_pages(requested) != pages or (pages and len(version)):
            raise ValueError("it asks for a file of pages" if not pages else "it has subscriptions, or is not of pages")
        if len(version.texts) != len(version.ids):
            raise ValueError("there are not as many texts as ids")
        version = _check_version(version, schema)
    return Parts(
        schema=schema,
        options=Options(**header["options"]),
        requested=requested,
        version=version,
        language=Language(**header.get("language", {})),  # files of 0.2 and older have none
    )


def _check_version(version: Version, schema: Schema) -> Version:
    """Returns a version with sound segments, after checking or rebuilding their indexes."""
    for segment in version.segments:
        sound.check_segment(segment, version.attributes)
    sound.check_version(version, schema)
    check_sample(version.sample)
    segments, stale = [], list(version.stale)
    for i, segment in enumerate(version.segments):
        kind, arrays = segment.index.kind, segment.index.arrays
        if kind.sound is None or isinstance(segment, GrowingSegment):
            segments.append(sound.rebuild_index(segment, version))
            stale[i] = segment.size - version.alive[i]
            continue
        arrays = kind.sound(arrays, segment.predicates, segment.codes, segment.size)
        segments.append(
            type(segment)(segment.codes, segment.predicates, segment.index._replace(arrays=arrays), segment.size)
        )
    return version.with_changes(segments=tuple(segments), stale=tuple(stale))


def _segment(i: int, entry: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Segment:
    kind = find(entry["kind"])

    def named(group: str, of: Any) -> Any:
        return _read_named(f"segments.{i}.{group}", of, arrays)

    settings = index(entry["kind"], **entry["settings"])
    built = Built(kind, settings, named("index", kind.arrays))
    return Segment(named("codes", layout.Codes), named("predicates", layout.Predicates), built, entry["size"])


def _ids(arrays: dict[str, np.ndarray[Any, Any]], trusted: bool) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the arrays of ids: numbers, or strings if there are offsets."""
    if "ids.offset" not in arrays:
        return {"ids": _check_array("ids", layout.I64, arrays)}
    offset, data = _check_array("ids.offset", layout.I32, arrays), _check_array("ids", layout.U8, arrays)
    if not trusted:
        sound.check_texts(offset, data)
    return {"ids.offset": offset, "ids": data}


def _tags(arrays: dict[str, np.ndarray[Any, Any]], trusted: bool) -> Tags:
    """Returns the tags. A file from before tags has none."""
    if "tags.number" not in arrays:
        return NO_TAGS
    number, tag = _check_array("tags.number", layout.I64, arrays), _check_array("tags.tag", layout.I32, arrays)
    offset, names = _check_array("tags.offset", layout.I32, arrays), _check_array("tags.names", layout.U8, arrays)
    if not trusted:
        sound.check_texts(offset, names)
    return tags_of_arrays(number, tag, offset, names)


def _texts(arrays: dict[str, np.ndarray[Any, Any]], trusted: bool) -> KeptTexts:
    """Returns the texts of the subscriptions."""
    types = {"count": layout.I64, "raw": layout.I64, "first": layout.I64, "data": layout.U8, "slot": layout.I32}
    columns = [_check_array(f"texts.{name}", type, arrays) for name, type in types.items()]
    return KeptTexts.of_arrays(trusted, *columns)


def _read_named(prefix: str, of: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Returns a NamedTuple of the arrays saved under a prefix.

    Raises KeyError, ValueError: an array is missing, or has another type or shape than the
    NamedTuple declares.
    """
    types = get_type_hints(of, include_extras=True)
    return of(*(_check_array(f"{prefix}.{name}", types[name], arrays) for name in of._fields))


def _check_array(name: str, type: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Returns an array after checking its type, such as ``layout.I64``, on which kernels rely.

    Lengths in a file that is not trusted are checked elsewhere (``sound.py``).
    """
    plain, *marks = get_args(type) if get_origin(type) is Annotated else (type,)
    columns = [mark for mark in marks if isinstance(mark, int)]
    array, needed = arrays[name], layout.DTYPES[plain]
    if array.dtype != needed or not array.ndim or array.shape[1:] != tuple(columns):
        type_text = f"{needed} in {columns[0] if columns else 'no'} columns"
        raise ValueError(f"{name} is {array.dtype} of the shape {array.shape}, not {type_text}")
    return array


def _reason(error: Exception) -> str:
    """Returns the reason for a failed read. The message of a KeyError is only the key."""
    return f"{error} is not there" if isinstance(error, KeyError) else str(error)


def save(path: str | os.PathLike[str], live: MemorySet) -> None:
    """Writes a matcher to a file, as ``Matcher.save`` does."""
    name = file_name(path)
    journal = live.journal
    if isinstance(journal, Journal) and journal.is_open and journal.target == os.path.realpath(name):
        return _fold(live, journal)
    with lock_journal(name):
        write_arrays(name, *_encode(live.parts()))


def _fold(live: MemorySet, journal: Journal) -> None:
    """Writes a matcher to its own file, and makes the journal follow the new save."""
    with journal.saving.take():
        with live.turn.take():
            parts = live.parts()
            updates = parts.version.updates
            folded, end = journal.mark(updates)
        header, arrays = _encode(parts)
        hash = write_arrays(journal.target, header | {"folded": folded}, arrays)
        with live.turn.take():
            try:
                journal.follow_next(hash, updates, end, live.now.updates)
            except OSError as error:  # harmless, since the file names the save that the journal follows
                _log.warning("%s keeps updates that are saved: %s", journal.path, error)


def load(
    path: str | os.PathLike[str],
    mmap: bool = True,
    verify: bool = True,
    journalled: bool = False,
    fsync: bool = False,
    trusted: bool = False,
) -> MemorySet:
    """Opens a matcher and the journal of its file, as ``Matcher.open`` does."""
    name = file_name(path)
    if not journalled:
        return MemorySet(_decode(name, *read_arrays(name, mmap, verify), trusted))
    content_hash(name)  # only a saved matcher gets a journal
    journal = Journal(name, fsync)
    try:
        hash = content_hash(name)
        header, arrays = read_arrays(name, mmap, verify)
        if content_hash(name) != hash:
            raise StoreError(f"{name} was replaced while it was opened: open it again")
        parts = _decode(name, header, arrays, trusted)
        journal.follow(hash, header.get("folded"), parts.version.updates)
    except BaseException:
        journal.close()
        raise
    live = MemorySet(parts)
    try:
        replay(live, journal.records(), journal.path)
        live.journal = journal
    except BaseException:
        live.close()
        journal.close()
        raise
    return live


def replay(live: MemorySet, records: Iterator[tuple[int, bytes]], path: str) -> None:
    """Replays the updates of the journal at ``path``.

    Raises StoreError: an update cannot be read.
    """
    try:
        live.replay(records, lambda data: _decode(path, *unpack(data, path), False))
    except _UNREADABLE as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(
            f"colmatch {__version__} cannot read {path} ({_reason(error)}): open the file with the colmatch that wrote "
            "it, and save it there"
        ) from error


def file_name(path: Any) -> str:
    """Returns a path as a string that is fit for the system.

    Raises StoreError: it is not a path, or has a character that no path has. Or it is the name of
    a folder, or an address of another machine.
    """
    name = arguments.file_name(path)
    if name is None:
        raise StoreError(f"{show_value(path)} is not the name of a file")
    if _ADDRESS.match(name):
        raise StoreError(
            f"{show_value(name)} is an address, and a matcher is a file of this machine: copy it here, or mount what it is on"
        )
    if name.endswith(os.sep):
        raise StoreError(f"{show_value(name)} is the name of a folder, a file is needed")
    if "\0" in name:
        raise StoreError(f"{show_value(name)} is not the name of a file: it has a NUL character in it")
    return name


def to_bytes(parts: Parts) -> bytes:
    """Returns a matcher as bytes, without any journal."""
    return pack(*_encode(parts))


def from_bytes(data: bytes) -> Parts:
    """Returns the parts of a matcher from the bytes of ``to_bytes``.

    Raises StoreError: the bytes are damaged, or of another version.
    """
    return _decode("the pickled matcher", *unpack(data), True)  # a pickle can run anything, so no check would help


def read_description(data: bytes) -> Parts:
    """Returns the parts that describe a file of pages, checked, as it may be from elsewhere.

    Raises StoreError: as for ``from_bytes``, or the parts are not those of a file of pages.
    """
    where = "what describes the pages"
    return _decode(where, *unpack(data, where), False, True)


def literals_of(data: bytes) -> layout.Literals:
    """Returns literals from bytes with nothing else, after checking them.

    Raises StoreError: the bytes are damaged, or are no literals.
    """
    _, arrays = unpack(data, "the string literals of the pages")
    try:
        literals = _read_named(
            "literals", layout.Literals, {f"literals.{name}": array for name, array in arrays.items()}
        )
        return sound.check_literals(literals, len(literals.first) - 1)
    except _UNREADABLE as error:
        raise StoreError(f"the string literals of the pages cannot be read ({_reason(error)})") from error
