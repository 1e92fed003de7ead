"""How the parts of a matcher are written down; the container itself is in ``file.py``."""

from __future__ import annotations

import base64
import os
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.errors import ColmatchError, StoreError, shown
from colmatch.indexing.base import Built
from colmatch.indexing.plan import index
from colmatch.indexing.registry import find
from colmatch.indexing.settings import Settings
from colmatch.kernels import layout
from colmatch.options import Options
from colmatch.parts import Parts
from colmatch.schema import Attribute, Attributes, Family, Role, Schema, Type
from colmatch.store.file import pack, read_arrays, unpack, write_arrays
from colmatch.subscriptions.ids import ids_of_arrays, ids_to_arrays
from colmatch.subscriptions.rejected import Rejected
from colmatch.version import __version__

_SHARED: dict[str, type] = {"predicates": layout.Predicates, "codes": layout.Codes, "literals": layout.Literals}


def _encode(parts: Parts) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    arrays = {
        f"{group}.{name}": array
        for group, named in parts.arrays.items()
        for name, array in zip(named._fields, named, strict=True)
    }
    arrays |= ids_to_arrays(parts.ids)
    arrays |= {"dead": parts.dead, "sample": parts.sample}
    header = {
        "version": __version__,
        "stock": parts.stock,
        "kind": parts.index.kind.name,
        "settings": parts.index.settings.to_dict(),
        "reason": parts.reason,
        "options": parts.options.to_dict(),
        "schema": base64.b64encode(parts.schema.arrow.serialize().to_pybytes()).decode(),
        "attributes": [_attribute(attribute) for attribute in parts.attributes],
        "rejected": [list(entry) for entry in parts.rejected],
        "local_literal": parts.local_literal,
    }
    return header, arrays


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
        kind = find(header["kind"])
        options, settings = _options_and_settings(header)
        groups = {
            group: named(*(arrays[f"{group}.{name}"] for name in named._fields))  # type: ignore[attr-defined]
            for group, named in {**_SHARED, "index": kind.arrays}.items()
        }
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
        schema = Schema(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(header["schema"]))))
        return Parts(
            schema=schema,
            options=options,
            ids=ids_of_arrays(arrays),
            rejected=[
                Rejected(id, tuple(position) if position else None, message)
                for id, position, message in header["rejected"]
            ],
            attributes=Attributes(attributes),
            predicates=groups["predicates"],
            codes=groups["codes"],
            literals=groups["literals"],
            index=Built(kind, settings, groups["index"]),
            reason=header["reason"],
            dead=arrays["dead"],
            local_literal=header["local_literal"],
            stock=header["stock"],
            sample=arrays["sample"],
        )
    except (KeyError, ValueError, TypeError, AttributeError, ColmatchError, pa.ArrowInvalid) as error:
        wrote = header.get("version", "before 0.2")
        raise StoreError(
            f"colmatch {__version__} cannot read {where}, which colmatch {wrote} wrote ({error}): build it again"
        ) from error


def _options_and_settings(header: dict[str, Any]) -> tuple[Options, Settings]:
    """What a matcher was built with; all of it is among the options where there are no settings."""
    options = header["options"]
    if "settings" in header:
        return Options(**options), index(header["kind"], **header["settings"])
    known = {field.name for field in fields(Options)}
    named = {field.name for field in fields(find(header["kind"]).settings)}
    settings = {name: options[name] for name in named & options.keys()}
    return Options(**{name: options[name] for name in known & options.keys()}), find(header["kind"]).settings.under(
        **settings
    )


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
