"""Names and literals as Spark SQL writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from colmatch.lowering.forms import Kind, Operand, quote_text

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORDS = (
    "ALL AND ANTI ANY ARRAY AS BETWEEN CASE CAST CROSS DATE DISTINCT DIV DOUBLE ELSE END ESCAPE EXCEPT EXISTS FALSE FROM FULL ILIKE IN "
    "INNER INTERSECT INTERVAL IS JOIN LATERAL LEFT LIKE MINUS NATURAL NOT NULL ON OR REGEXP RIGHT RLIKE SELECT SEMI SOME THEN TIMESTAMP "
    "TIMESTAMP_LTZ TIMESTAMP_NTZ TRUE UNION UNKNOWN USING WHEN WHERE WITH"
)
SLOT = re.compile("\0([0-9]+)\0")  # what ``mark_slot`` makes
_KEYWORDS = frozenset(_WORDS.split())


def quote_name(part: str) -> str:
    """Writes a name as Spark SQL reads it, in backquotes where it needs them."""
    if _PLAIN.match(part) and part.upper() not in _KEYWORDS:
        return part
    return "`" + part.replace("`", "``") + "`"


def _literal(kind: Kind, value: Any) -> str:
    if kind is Kind.STRING:
        return quote_text(value)
    if kind is Kind.BOOL:
        return "TRUE" if value else "FALSE"
    if kind is Kind.BINARY:
        return f"X'{value if isinstance(value, str) else bytes(value).hex().upper()}'"
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
        return f"{kind.name} {quote_text(str(value))}"
    if kind is Kind.DECIMAL:
        text = value if isinstance(value, str) else format(Decimal(value), "f")
        return text if "." in text else text + "BD"
    if kind is Kind.DOUBLE:
        text = value if isinstance(value, str) else repr(value)
        if text[-1].isdigit():
            return text + "D"
        return f"CAST('{'NaN' if text == 'nan' else text.replace('inf', 'Infinity')}' AS DOUBLE)"
    return str(value)


def mark_slot(operand: Operand) -> Operand:
    """Returns an operand that is written as its slot, in a way that no literal is."""
    return Operand(Kind.INT, negative=operand.negative, value=f"\0{operand.slot}\0")


def operand_sql(operand: Operand | None) -> str:
    """Writes an operand as Spark SQL, or the number of its slot."""
    if operand is None:
        return "NULL"
    if operand.slot >= 0:
        return f"{'-' if operand.negative else ''}:{operand.slot}"
    if operand.many:
        return ", ".join([_literal(operand.kind, value) for value in operand.value])
    return ("-" if operand.negative else "") + _literal(operand.kind, operand.value)
