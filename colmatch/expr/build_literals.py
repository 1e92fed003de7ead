"""Python values as the operands of conditions."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from colmatch.errors import ExpressionError, shown
from colmatch.expr.ast import NAN, Expr
from colmatch.lowering.forms import Kind, Operand


def literal(value: Any) -> Operand | None:
    """A Python value, numpy scalar or Arrow scalar as an operand; None for None.

    Raises
    ------
    ExpressionError : no column can be compared with it
    """
    kind = type(value)
    if kind is str:
        return Operand(Kind.STRING, value=_clean(value))
    if kind is int:
        return Operand(Kind.INT, value=value)
    if value is None:
        return None
    if isinstance(value, Expr):
        raise ExpressionError("a value is needed here, not a column or a condition")
    if hasattr(value, "as_py"):
        return literal(value.as_py())
    if kind.__module__ == "numpy" and hasattr(value, "dtype") and value.ndim == 0:
        return _numpy(value)
    if isinstance(value, bool):
        return Operand(Kind.BOOL, value=value)
    if isinstance(value, int):
        return Operand(Kind.INT, value=int(value))
    if isinstance(value, float):
        return Operand(Kind.DOUBLE, value=NAN if math.isnan(value) else float(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ExpressionError(f"Decimal({value}) is not a number: use float('{value}')")
        return Operand(Kind.DECIMAL, value=value)
    if isinstance(value, str):
        return Operand(Kind.STRING, value=_clean(str(value)))
    if isinstance(value, datetime) and value == value:  # pandas' NaT is a datetime, and differs from itself
        if getattr(value, "nanosecond", 0):
            return Operand(Kind.TIMESTAMP, value=value.isoformat(sep=" "))
        zone = value.tzinfo
        return Operand(Kind.TIMESTAMP, value=datetime(*value.timetuple()[:6], value.microsecond, zone, fold=value.fold))
    if isinstance(value, date) and not isinstance(value, datetime):
        return Operand(Kind.DATE, value=value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Operand(Kind.BINARY, value=bytes(value))
    raise ExpressionError(
        f"no column can be compared with {shown(value)} ({kind.__name__}): "
        "use int, float, Decimal, str, bool, None, date, datetime or bytes"
    )


def _clean(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ExpressionError(f"{shown(text)} has half a surrogate pair, which is no character") from None
    return text


def _numpy(value: Any) -> Operand | None:
    if value.dtype.kind != "M":
        return literal(value.item())
    text = str(value)
    if text == "NaT":
        raise ExpressionError("no column can be compared with NaT: use is_null()")
    unit = str(value.dtype)
    if unit in ("datetime64[D]", "datetime64[M]", "datetime64[Y]", "datetime64[W]"):
        return literal(value.astype("datetime64[D]").item())
    found = value.astype("datetime64[us]")
    if found == value:
        return literal(found.item())
    return Operand(Kind.TIMESTAMP, value=text.replace("T", " "))
