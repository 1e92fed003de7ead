"""The schema that the tests of texts write theirs against, and a compiler for it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from colmatch.given.options import Options
from colmatch.given.schema import Attributes, Schema
from colmatch.kinds.settings import Budget
from colmatch.sql.compile import FormCompiler

SCHEMA = Schema(
    {
        **{f"a{i}": "int64" for i in range(20)},
        "s": "string",
        "v": "bool",
        "f": "float64",
        "n": pa.decimal128(10, 2),
        "x": "binary",
        "d": "date32",
        "ts": "timestamp[us]",
        "t": pa.list_(pa.string()),
        "m": pa.map_(pa.string(), pa.int64()),
        "odd name": "int64",
        "date": "date32",
        "u": pa.struct({"x": pa.int64()}),
    }
)


def compiler(**options: Any) -> FormCompiler:
    return FormCompiler(SCHEMA, Attributes(), Options(**options), Budget(64, 64))
