"""Columns of variants, the type of Spark for values of any shape, and of JSON in texts.

A variant is a struct of two binaries, ``value`` and ``metadata``, as the specification of Parquet
has it. A mark says that a struct is one: Spark's metadata of the field ``metadata``, or the
canonical extension type of Arrow. All become Spark's mark in a schema. Parquet marks texts as JSON,
which Arrow reads as an extension type: these become texts.
"""

from __future__ import annotations

import pyarrow as pa

_MARK = {b"variant": b"true"}
_EXTENSIONS = (b"arrow.parquet.variant", b"parquet.variant")  # the second before it was canonical
_NAME = b"ARROW:extension:name"  # in the metadata of a field whose extension type is unknown to pyarrow
VARIANT_TYPE = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata=_MARK)])


def is_variant(type: pa.DataType) -> bool:
    """Returns whether a type is that of variants, as ``settle_extensions`` leaves it."""
    if not pa.types.is_struct(type):
        return False
    at = type.get_field_index("metadata")
    return at >= 0 and (type.field(at).metadata or {}).get(b"variant") == b"true"


def settle_extensions(field: pa.Field) -> pa.Field:
    """Returns a field where each variant has the one type for them, and JSON that of texts.

    It does so in structs, too, but not in lists and maps.
    """
    type = field.type
    name = (field.metadata or {}).get(_NAME, b"")
    if isinstance(type, pa.BaseExtensionType):
        name = type.extension_name.encode()
    if name in _EXTENSIONS or is_variant(type):
        return pa.field(field.name, VARIANT_TYPE, field.nullable)
    if isinstance(type, pa.JsonType):
        return field.with_type(type.storage_type)
    if not pa.types.is_struct(type):
        return field
    parts = list(type)
    settled = list(map(settle_extensions, parts))
    same = all(one is other for one, other in zip(parts, settled, strict=True))
    return field if same else field.with_type(pa.struct(settled))
