"""How the parts of a matcher are written down. The container itself is in ``file.py``."""

from __future__ import annotations

import base64
import os
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.errors import ColmatchError, StoreError
from colmatch.index import Built, find
from colmatch.index.plan import Plan
from colmatch.kernels import layout
from colmatch.options import Options
from colmatch.parts import Parts
from colmatch.schema import Attribute, Attributes, Family, Role, Schema, Type
from colmatch.store import file as store
from colmatch.subscriptions.intake import Rejected
from colmatch.version import __version__

_SHARED: dict[str, type] = {"predicates": layout.Predicates, "codes": layout.Codes, "literals": layout.Literals}


def _encode(parts: Parts) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    groups = {
        "predicates": parts.predicates,
        "codes": parts.codes,
        "literals": parts.literals,
        "index": parts.index.arrays,
    }
    arrays = {
        f"{group}.{name}": array
        for group, named in groups.items()
        for name, array in zip(named._fields, named, strict=True)
    }
    if pa.types.is_int64(parts.ids.type):
        arrays["ids"] = parts.ids.to_numpy()
    else:
        texts = [text.encode() for text in parts.ids.to_pylist()]
        offset = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
        arrays["ids.offset"] = offset.astype(np.int32 if offset[-1] < 2**31 else np.int64)
        arrays["ids"] = np.frombuffer(b"".join(texts), np.uint8)
    arrays |= {"dead": parts.dead, "sample": parts.sample}
    header = {
        "version": __version__,
        "stock": parts.stock,
        "kind": parts.index.kind.name,
        "reason": parts.plan.reason,
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


def _decode(header: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Parts:
    try:
        kind = find(header["kind"])
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
            schema,
            Options(**header["options"]),
            _ids(arrays),
            [
                Rejected(id, tuple(position) if position else None, message)
                for id, position, message in header["rejected"]
            ],
            Plan(kind.name, header["reason"]),
            Attributes(attributes),
            groups["predicates"],
            groups["codes"],
            groups["literals"],
            Built(kind, groups["index"]),
            arrays["dead"],
            header["local_literal"],
            header["stock"],
            arrays["sample"],
        )
    except (KeyError, ValueError, TypeError, ColmatchError, pa.ArrowInvalid) as error:
        wrote = header.get("version", "before 0.2")
        raise StoreError(
            f"colmatch {__version__} cannot read this matcher, which colmatch {wrote} wrote ({error}): build it again"
        ) from error


def _ids(arrays: dict[str, np.ndarray[Any, Any]]) -> pa.Array:
    if "ids.offset" not in arrays:
        return pa.array(arrays["ids"], pa.int64())
    offset, data = arrays["ids.offset"], pa.py_buffer(arrays["ids"])
    if offset.dtype == np.int32:  # mapped, like all else
        return pa.StringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), data)
    return pa.LargeStringArray.from_buffers(len(offset) - 1, pa.py_buffer(offset), data).cast(pa.string())


def write(path: str | os.PathLike[str], parts: Parts) -> None:
    store.write(file_name(path), *_encode(parts))


def read(path: str | os.PathLike[str], mmap: bool, verify: bool) -> Parts:
    return _decode(*store.read(file_name(path), mmap, verify))


def file_name(path: Any) -> str:
    """The path as a string that the system can be asked for.

    Raises
    ------
    StoreError : it is not a path, or has a character that no path has
    """
    try:
        name = os.fsdecode(path)
        os.fsencode(name)
    except (TypeError, ValueError):
        raise StoreError(f"{path!r:.80} is not the name of a file") from None
    if name.endswith(os.sep):
        raise StoreError(f"{name!r:.80} is the name of a folder, a file is needed")
    if "\0" in name:
        raise StoreError(f"{name!r:.80} is not the name of a file: it has a NUL character in it")
    return name


def dumps(parts: Parts) -> bytes:
    return store.dumps(*_encode(parts))


def loads(data: bytes) -> Parts:
    return _decode(*store.loads(data))
