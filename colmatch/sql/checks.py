"""Checks for literals with another meaning than their writer expects."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from colmatch.expr.ast import Refusal
from colmatch.expr.computed import PREFIX
from colmatch.sql.literals import DOW, NumberedText
from colmatch.sql.quotes import NO_COLUMN
from colmatch.sql.split import find_dropped_escape, unescape


def strip_parentheses(node: Any) -> Any:
    """Returns the node within all parentheses around it."""
    while type(node) is exp.Paren:
        node = node.args["this"]
    return node


def check_no_column(node: exp.Expr, reading: NumberedText) -> None:
    """Raises Refusal where a literal in double quotes takes the place of a column."""
    if type(node) is exp.Literal:
        at = reading.literal_at[int(node.args["this"])]
        if reading.text[at] == '"':
            raise Refusal(NO_COLUMN, at)


def check_pattern(node: exp.Expr, reading: NumberedText) -> None:
    """Raises Refusal where Spark drops a backslash of a regular expression."""
    node = strip_parentheses(node)
    if type(node) is not exp.Literal:
        return
    at = reading.literal_at[int(node.args["this"])]
    fault = find_dropped_escape(reading.text, at)
    if fault is not None:
        escape, written = fault
        means = {"\\b": "a backspace", "\\Z": "a control character"}.get(escape, repr(escape[1:]))
        meant, quote = unescape(written), written[0]
        raw = f"r{quote}{meant}{quote} or " if meant.isprintable() and quote not in meant else ""
        message = f"{escape} is {means} in a text, as in Spark: write {raw:.80}{written:.80} for the regular expression"
        raise Refusal(message, at)


def check_weekday(subject: exp.Expr, operands: list[exp.Expr], reading: NumberedText) -> None:
    """Raises Refusal where ``extract(dow FROM day)`` is compared with 0, PostgreSQL's Sunday.

    subject, operands : casts around them make no difference
    """
    subject = _uncast(subject)
    if type(subject) is not exp.Anonymous or subject.args["this"] != PREFIX + DOW:
        return
    for operand in map(_uncast, operands):
        slot = int(operand.args["this"]) if type(operand) is exp.Literal else -1
        values = reading.literals[slot] if slot >= 0 else []
        if any(map(_is_zero, values if isinstance(values, list) else [values])):
            message = "extract(dow ...) is 1 for Sunday to 7 for Saturday, as in Spark, and never 0: write 1 for Sunday"
            raise Refusal(message, reading.literal_at[slot])


def _uncast(node: Any) -> Any:
    """Returns the node within all parentheses and casts around it."""
    node = strip_parentheses(node)
    while isinstance(node, exp.Cast):
        node = strip_parentheses(node.args["this"])
    return node


def _is_zero(literal: object) -> bool:
    return isinstance(literal, str) and literal.strip("0.") == "" and literal.strip(".") != ""
