"""How the parts of a matcher are written down; the container itself is in ``file.py``."""

from __future__ import annotations

import base64
import os
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.errors import ColmatchError, StoreError, shown
from colmatch.events.vocabulary import Vocabulary
from colmatch.indexing.base import Built
from colmatch.indexing.plan import index
from colmatch.indexing.registry import find
from colmatch.indexing.settings import Settings
from colmatch.kernels import layout
from colmatch.options import Options
from colmatch.schema import Attribute, Attributes, Family, Role, Schema, Type
from colmatch.store.file import pack, read_arrays, unpack, write_arrays
from colmatch.subscriptions.ids import Ids, ids_of_arrays, ids_to_arrays
from colmatch.subscriptions.rejected import Rejected
from colmatch.updates.growing import GrowingSegment
from colmatch.updates.literals import whole
from colmatch.updates.segments import Segment
from colmatch.updates.versions import Parts, Version, named_arrays
from colmatch.version import __version__


def _encode(parts: Parts) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    version = parts.version
    arrays = {
        f"segments.{i}.{group}.{name}": array
        for i, segment in enumerate(version.segments)
        for group, named in named_arrays(segment).items()
        for name, array in zip(named._fields, named, strict=True)
    }
    arrays |= {f"literals.{name}": array for name, array in whole(version.literals)._asdict().items()}
    arrays |= ids_to_arrays(version.ids.array)
    arrays |= {"dead": version.dead, "sample": parts.sample}
    header = {
        "version": __version__,
        "asked": _settings(parts.asked),
        "segments": [{"size": segment.size, **_settings(segment.index.settings)} for segment in version.segments],
        "bases": version.bases,
        "growing": version.growing,
        "living": version.living,
        "found_dead": version.found_dead,
        "gone": version.gone,
        "reason": version.reason,
        "updates": version.updates,
        "options": parts.options.to_dict(),
        "schema": base64.b64encode(parts.schema.arrow.serialize().to_pybytes()).decode(),
        "attributes": [_attribute(attribute) for attribute in version.attributes],
        "rejected": [list(entry) for entry in version.rejected],
        "local_literal": version.local_literal,
    }
    return header, arrays


def _settings(settings: Settings) -> dict[str, Any]:
    return {"kind": settings.kind, "settings": settings.to_dict()}


def _attribute(a: Attribute) -> list[Any]:
    t = a.type
    return [
        list(a.path),
        int(a.role),
        [int(t.family), t.scale, t.unit, t.zone, t.name],
        a.key,
        list(a.pattern) if a.pattern else None,
    ]


def _decode(where: str, header: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Parts:
    try:
        attributes = [
            Attribute(
                tuple(path),
                Role(role),
                Type(Family(family), scale, unit, zone, name),
                key,
                tuple(pattern) if pattern else None,
            )
            for path, role, (family, scale, unit, zone, name), key, pattern in header["attributes"]
        ]
        segments = [_segment(i, entry, arrays) for i, entry in enumerate(header["segments"])]
        if header["growing"]:
            segments[-1] = GrowingSegment.opened(segments[-1])
        version = Version(
            attributes=Attributes(attributes),
            literals=Vocabulary.among(
                layout.Literals(*(arrays[f"literals.{name}"] for name in layout.Literals._fields))
            ),
            segments=tuple(segments),
            bases=tuple(header["bases"]),
            growing=header["growing"],
            dead=arrays["dead"],
            living=tuple(header["living"]),
            found_dead=tuple(header["found_dead"]),
            gone=header["gone"],
            ids=Ids(ids_of_arrays(arrays)),
            reason=header["reason"],
            local_literal=header["local_literal"],
            rejected=tuple(
                Rejected(id, tuple(position) if position else None, message)
                for id, position, message in header["rejected"]
            ),
            updates=header["updates"],
        )
        return Parts(
            schema=Schema(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(header["schema"])))),
            options=Options(**header["options"]),
            asked=index(header["asked"]["kind"], **header["asked"]["settings"]),
            sample=arrays["sample"],
            version=version,
        )
    except (KeyError, ValueError, TypeError, AttributeError, ColmatchError, pa.ArrowInvalid) as error:
        wrote = header.get("version", "before 0.2")
        raise StoreError(
            f"colmatch {__version__} cannot read {where}, which colmatch {wrote} wrote ({error}): build it again"
        ) from error


def _segment(i: int, entry: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Segment:
    kind = find(entry["kind"])

    def named(group: str, of: Any) -> Any:
        return of(*(arrays[f"segments.{i}.{group}.{name}"] for name in of._fields))

    settings = index(entry["kind"], **entry["settings"])
    built = Built(kind, settings, named("index", kind.arrays))
    return Segment(named("codes", layout.Codes), named("predicates", layout.Predicates), built, entry["size"])


def save(path: str | os.PathLike[str], parts: Parts) -> None:
    """Writes the parts of a matcher to a file, as ``Matcher.save`` does."""
    write_arrays(file_name(path), *_encode(parts))


def load(path: str | os.PathLike[str], mmap: bool, verify: bool) -> Parts:
    """Reads the parts of a matcher from a file, as ``Matcher.open`` does."""
    name = file_name(path)
    return _decode(name, *read_arrays(name, mmap, verify))


def file_name(path: Any) -> str:
    """Returns the path as a string that the system can be asked for.

    Raises
    ------
    StoreError : it is not a path, or has a character that no path has
    """
    try:
        name = os.fsdecode(path)
        os.fsencode(name)
    except (TypeError, ValueError):
        raise StoreError(f"{shown(path)} is not the name of a file") from None
    if name.endswith(os.sep):
        raise StoreError(f"{shown(name)} is the name of a folder, a file is needed")
    if "\0" in name:
        raise StoreError(f"{shown(name)} is not the name of a file: it has a NUL character in it")
    return name


def to_bytes(parts: Parts) -> bytes:
    """Returns what ``save`` writes."""
    return pack(*_encode(parts))


def from_bytes(data: bytes) -> Parts:
    """Returns the parts that ``to_bytes`` was given.

    Raises
    ------
    StoreError : the bytes are damaged, or of another version
    """
    return _decode("the pickled matcher", *unpack(data))
