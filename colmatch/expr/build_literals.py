"""Python values as the operands of conditions."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from colmatch.errors import ExpressionError, show_value
from colmatch.expr.ast import NAN, Expr
from colmatch.given.arguments import python_value, whole_number
from colmatch.given.incoming import is_text, refusing
from colmatch.lowering.forms import Kind, Operand

_KINDS = "biufSUOM"  # kinds of NumPy's scalars that are literals: all but complex numbers, durations and records


def literal(value: Any) -> Operand | None:
    """Converts a Python value, numpy scalar or Arrow scalar to an operand; None stays None.

    Raises
    ------
    ExpressionError : no column can be compared with the value
    """
    value = python_value(value)
    kind = type(value)
    if kind is str:
        return Operand(Kind.STRING, value=_clean(value))
    if kind is int and whole_number(value) is not None:
        return Operand(Kind.INT, value=value)
    if value is None:
        return None
    if isinstance(value, Expr):
        raise ExpressionError("a value is needed here, not a column or a condition")
    if isinstance(value, pa.Scalar):
        with refusing(ExpressionError, f"a value of {value.type!s:.200} cannot be read"):
            return literal(value.as_py())
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0 and value.dtype.kind in _KINDS:
        return _numpy(value)
    if kind is bool:
        return Operand(Kind.BOOL, value=value)
    if isinstance(value, float):
        plain = float.__float__(value)
        return Operand(Kind.DOUBLE, value=NAN if math.isnan(plain) else plain)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ExpressionError(f"Decimal({value}) is not a number: use float('{value}')")
        return Operand(Kind.DECIMAL, value=value)
    if isinstance(value, datetime) and value == value:  # pandas' NaT is a datetime, and differs from itself
        if getattr(value, "nanosecond", 0):
            return Operand(Kind.TIMESTAMP, value=value.isoformat(sep=" "))
        zone = value.tzinfo
        return Operand(Kind.TIMESTAMP, value=datetime(*value.timetuple()[:6], value.microsecond, zone, fold=value.fold))
    if isinstance(value, date) and not isinstance(value, datetime):
        return Operand(Kind.DATE, value=value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Operand(Kind.BINARY, value=bytes(memoryview(value)))
    raise ExpressionError(
        f"no column can be compared with {show_value(value)} ({kind.__name__}): "
        "use int, float, Decimal, str, bool, None, date, datetime or bytes"
    )


def _clean(text: str) -> str:
    if not is_text(text):
        raise ExpressionError(f"{show_value(text)} has half a surrogate pair, which is no character")
    return text


def _numpy(value: Any) -> Operand | None:
    if value.dtype.kind == "f":
        return literal(float(value))
    if value.dtype.kind != "M":
        return literal(value.item())
    text = str(value)
    if text == "NaT":
        raise ExpressionError("no column can be compared with NaT: use is_null()")
    unit = str(value.dtype)
    if unit in ("datetime64[D]", "datetime64[M]", "datetime64[Y]", "datetime64[W]"):
        day = value.astype("datetime64[D]").item()
        if not isinstance(day, date):
            raise ExpressionError(f"no column can be compared with {show_value(value)}: dates end with the year 9999")
        return literal(day)
    instant = value.astype("datetime64[us]")
    if instant == value and isinstance(instant.item(), datetime):
        return literal(instant.item())
    return Operand(Kind.TIMESTAMP, value=text.replace("T", " "))
