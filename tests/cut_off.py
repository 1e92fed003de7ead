"""Arrow data that is not as long as it says, which other libraries have exported."""

from __future__ import annotations

import ctypes
from typing import Any

import pyarrow as pa


class _ArrowArray(ctypes.Structure):
    """The begin of a struct of Arrow's C interface."""


_ArrowArray._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.c_void_p),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
    *((name, ctypes.c_void_p) for name in ("dictionary", "release", "private")),
]


def cut_off(name: str, field: pa.Array, rows: int) -> Any:
    """A batch with a column ``name`` of structs, which are the last ``rows`` of more.

    Of their one field ``x`` only these rows are there, and yet the offset of the structs counts for
    it, too: it would be read beyond its end.
    """
    structs = pa.StructArray.from_arrays([field], ["x"]).slice(len(field) - rows)
    batch = pa.RecordBatch.from_arrays([structs], [name])
    exported = _ArrowArray()
    batch._export_to_c(ctypes.addressof(exported))
    exported.children[0].contents.children[0].contents.length = rows
    return pa.RecordBatch._import_from_c(ctypes.addressof(exported), batch.schema)
