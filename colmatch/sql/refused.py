"""Errors for refused texts: their places and their words."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

from colmatch.errors import ExpressionError, show_value
from colmatch.expr.ast import Refusal, Subject
from colmatch.lowering.forms import quote_text
from colmatch.sql.checks import strip_parentheses
from colmatch.sql.computed import function_of, is_computed
from colmatch.sql.instead import SUBQUERY, advise_column, advise_word
from colmatch.sql.literals import ALLOWED, ENDS, NumberedText

_UNKNOWN = re.compile(r"unknown attribute '([^']+)'")
_DATE = [TokenType.NUMBER, TokenType.DASH, TokenType.NUMBER, TokenType.DASH, TokenType.NUMBER]
_CONNECTIVES = (TokenType.AND, TokenType.OR, TokenType.NOT)
LITERALS = (exp.Literal, exp.Boolean, exp.Null)
_REWRITTEN = (TokenType.L_PAREN, TokenType.COMMA)  # they may stand for another sign of the text
_OPERANDS = (TokenType.VAR, TokenType.NUMBER)


def describe_node(node: exp.Expr) -> str:
    node = strip_parentheses(node)
    if isinstance(node, exp.Column):
        return "a column"
    if isinstance(node, LITERALS):
        return "a literal"
    if isinstance(node, (exp.Array, exp.Tuple)):
        return "a list"
    if isinstance(node, exp.Func) and not isinstance(node, (exp.And, exp.Or)):
        return f"{function_of(node) or node.sql_name().lower()}(...)"
    if is_computed(node):
        return "a computed value"
    return "a condition" if isinstance(node, (exp.Predicate, exp.Not, exp.Connector)) else f"{type(node).__name__!r}"


def begin_of(node: exp.Expr, reading: NumberedText) -> int:
    """Returns the offset of the first name or literal in ``node``."""
    stack: list[Any] = [node]
    while stack:
        part = stack.pop()
        if type(part) is exp.Column:
            name = part.args["this"].args["this"]
            if name.isdigit():
                return reading.subject_at[int(name)]
            return next((token.start for token in reading.tokens if token.text == name), 0)
        if type(part) is exp.Literal:
            return reading.literal_at[int(part.args["this"])]
        if isinstance(part, (exp.Expr, list)):
            stack.extend(reversed(part if isinstance(part, list) else list(part.args.values())))
    return reading.tokens[0].start


def syntax_refusal(error: ParseError, reading: NumberedText) -> Refusal:
    """Returns sqlglot's complaint in one line, with the place of the word where it stopped."""
    for before, token in pairwise(reading.tokens):
        if (before.token_type, token.token_type) == (TokenType.EQ, TokenType.LT):
            return Refusal("'=<' is not expected here: write <=", before.start)
        if (before.token_type, token.token_type) == (TokenType.LT, TokenType.LTE) and before.end + 1 == token.start:
            return Refusal(f"'<<=' is not expected here: {advise_word('<<=')}", before.start)
        word = reading.text[token.start : token.end + 1]
        if before.token_type is TokenType.L_PAREN and word.upper() == "SELECT":
            return Refusal(SUBQUERY, token.start)
        if (before.token_type not in ENDS and word.isascii()) or token.token_type in _REWRITTEN:
            continue
        if (instead := advise_word(word)) is not None:  # between two operands
            return Refusal(f"{show_value(word)} is not expected here: {instead}", token.start)
    first = reading.tokens[0]
    if first.token_type in (TokenType.AND, TokenType.OR):
        return Refusal(
            f"something is missing before {show_value(reading.text[first.start : first.end + 1])}", first.start
        )
    if reading.start:
        return Refusal(*reading.start)
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    tokens = reading.tokens
    i = next((i for i, token in enumerate(tokens) if token.line == line and token.col == column), len(tokens) - 1)
    token = tokens[i]
    word = reading.text[token.start : token.end + 1]
    last = i == len(tokens) - 1
    what = str(details.get("description", ""))
    if what.startswith("Expecting"):
        return Refusal(f"a {what[10:]!r} is missing after {show_value(word)}", token.end + 1)
    ended = token.token_type in (TokenType.VAR, TokenType.NUMBER, TokenType.R_PAREN)
    if what.startswith("Required") and token.token_type is TokenType.R_PAREN:
        return Refusal("something is missing before ')'", token.start)
    if what.startswith("Required") or (last and not ended):
        return Refusal(f"something is missing {'after' if last else 'near'} {show_value(word)}", token.start)
    if token.token_type is TokenType.R_PAREN:
        return Refusal("')' is not expected here: no '(' is open", token.start)
    if i and tokens[i - 1].token_type in ENDS and token.token_type in _OPERANDS and word.replace("_", "a").isalnum():
        left = reading.text[tokens[i - 1].start : tokens[i - 1].end + 1]
        return Refusal(
            f"{show_value(word)} follows {show_value(left)}: write AND, OR or an operator between them", token.start
        )
    instead = _without_comma(reading, i) if word == "," else advise_word(word)
    return Refusal(
        f"{show_value(word)} is not expected here{f'; {ALLOWED}' if instead is None else f': {instead}'}", token.start
    )


def _without_comma(reading: NumberedText, i: int) -> str:
    """Returns advice for a number with a comma, which is token i."""
    message = "a comma separates arguments, and members of lists"
    if 0 < i < len(reading.tokens) - 1:
        before, after = (reading.text[token.start : token.end + 1] for token in reading.tokens[i - 1 : i + 2 : 2])
        if before.isdigit() and after.isdigit():
            point = "" if len(after) == 3 else "."
            return f"{message}: write {before}{point}{after} for {before},{after}"
    return f"{message}: write 1000 for 1,000 and 1.5 for 1,5"


def _find_blamed(message: str, columns: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the column that a message names first, or else the first of ``columns``."""
    first: tuple[str, ...] = columns[0] if columns else ()
    named = [path for path in columns if repr(".".join(path)) in message]
    return min(named, key=lambda path: message.index(repr(".".join(path))), default=first)


def _of_column(refusal: Refusal) -> str | None:
    """Returns the error for a word of SQL that was taken for a column, or None."""
    match = _UNKNOWN.match(refusal.message)
    return advise_column(match[1]) if match else None


def _without_quotes(message: str, reading: NumberedText, at: int) -> tuple[str, int]:
    """Returns a message and its place; it may say that a date or a text lacks quotes."""
    tokens = reading.tokens
    i = next((i for i, token in enumerate(tokens) if token.start == at), 0)
    if message.startswith("a comparison takes values of one type") and re.search("date|timestamp", message):
        while i and tokens[i - 1].token_type not in _CONNECTIVES:
            i -= 1
        for j in range(i, len(tokens) - 4):
            if tokens[j].token_type in _CONNECTIVES:
                break
            date = reading.text[tokens[j].start : tokens[j + 4].end + 1]
            if [token.token_type for token in tokens[j : j + 5]] == _DATE and _is_date(date):
                literal = f"TIMESTAMP '{date} 00:00:00'" if "timestamp" in message else f"DATE '{date}'"
                return f"{date} is a subtraction: write {literal}", tokens[j].start
    name = _UNKNOWN.match(message)
    if name is not None and reading.text.startswith(name[1], at) and _is_value(tokens, i):
        message += f"{' If' if message.endswith('?') else '; if'} it is a text, write {quote_text(name[1])}"
    return message, at


def _is_date(text: str) -> bool:
    try:
        return bool(datetime.strptime(text, "%Y-%m-%d"))
    except ValueError:
        return False


def _is_value(tokens: list[Any], i: int) -> bool:
    """Returns whether a column is at a value's place.

    Such places are behind = or <>, or in the list of an IN.
    """
    if i and tokens[i - 1].token_type in (TokenType.EQ, TokenType.NEQ):
        return True
    while i and tokens[i - 1].token_type in (TokenType.COMMA, *_OPERANDS):
        i -= 1
    return i > 1 and (tokens[i - 2].token_type, tokens[i - 1].token_type) == (TokenType.IN, TokenType.L_PAREN)


def make_error(refusal: Refusal, reading: NumberedText | None, text: str | None) -> ExpressionError:
    """Returns the error that the caller sees, with its place where there is a text."""
    at = refusal.at
    if at is None and reading is not None:
        predicate = refusal.predicate
        if 0 <= refusal.slot < len(reading.literal_at):
            at = reading.literal_at[refusal.slot]
        elif predicate is not None:
            computed = predicate.subject.computed
            path = () if computed is None else _find_blamed(refusal.message, list(computed.columns))
            culprit = Subject(path) if path else predicate.subject._replace(size=False)
            places = zip(reading.subject_at, reading.subjects, strict=True)
            at = next((at for at, subject in places if subject == culprit), None)
    message = _of_column(refusal)
    if message is None:
        message = refusal.message
        if reading is not None and at is not None:
            message, at = _without_quotes(message, reading, at)
    message = " ".join(message.splitlines())
    if text is None:
        return ExpressionError(message)
    line, column = NumberedText(text).place(at or 0)
    return ExpressionError(message, line=line, column=column)
