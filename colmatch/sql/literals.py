"""The literals of a text become numbered slots.

Literals are numbers with sign and suffix, strings, binary literals and lists.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from colmatch.errors import line_and_column, show_value
from colmatch.expr.ast import Refusal, Subject
from colmatch.expr.functions import MOST_PARTS
from colmatch.lowering.forms import Kind
from colmatch.sql.quotes import NO_NAME, Quotes
from colmatch.sql.split import unescape
from colmatch.text.like import with_backslash

T = TokenType

ALLOWED = (
    "allowed are = <> < <= > >= <=> BETWEEN, IN, IS NULL, IS TRUE, IS DISTINCT FROM, LIKE, ILIKE, RLIKE, startswith, endswith, contains, "
    "array_contains, arrays_overlap, contains_all, size, AND, OR, NOT, and + - * / % || and functions such as abs, lower, coalesce, year, "
    "CAST of columns and literals"
)
ENDS = frozenset({T.VAR, T.NUMBER, T.R_PAREN, T.TRUE, T.FALSE, T.NULL})  # after these, a minus subtracts
_SUFFIXES = {
    T.BIGINT: (Kind.INT, 2**63), T.INT: (Kind.INT, 2**31), T.SMALLINT: (Kind.INT, 2**15), T.TINYINT: (Kind.INT, 2**7),
    T.DOUBLE: (Kind.DOUBLE, 0), T.FLOAT: (Kind.DOUBLE, 0), T.DECIMAL: (Kind.DECIMAL, 0),
}  # fmt: skip
FLOAT_EXACT = 1 << 24  # below it, each whole number is a different FLOAT
DOW = "dow"  # the function for extract(dow FROM day)
NUMBERS = [str(i) for i in range(1024)]
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")  # the tokenizer takes 1e, too
_DOUBLES = re.compile(
    r"\s*[+-]?(?:nan|inf|infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)d?\s*", re.IGNORECASE | re.ASCII
)


@dataclass(slots=True)
class NumberedText:
    """A text with its literals numbered by slot and its columns numbered by subject.

    ``at`` are offsets into the text.
    """

    text: str
    tokens: list[Token] = field(default_factory=list)
    joined: bool = False  # there is an AND or OR outside all parentheses
    literals: list[Any] = field(default_factory=list)  # by slot: text, bytes (BINARY), or a list of texts
    operands: list[tuple[Kind, bool, bool]] = field(default_factory=list)  # by slot: kind, many, negative
    literal_at: list[int] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    subject_at: list[int] = field(default_factory=list)
    # a word that begins something unsupported, if the parser finds fault
    start: tuple[str, int] | None = None
    depth: int = 0
    negated: bool = False  # a NOT follows a subject, as in a NOT IN (1)
    whole: bool = False  # a part of the text, cut at an AND or OR, may mean something else
    alone: bool = False  # texts of its shape are read one by one, since one may be an error
    computed: bool = False  # it may have computed values with literals in them
    checked: bool = False  # a literal was checked, or changed: texts that differ in it are read one by one
    baked: dict[int, None] = field(default_factory=dict)  # slots of literals in computed values, once it is parsed
    casts: list[tuple[str, str]] = field(default_factory=list)  # cast or try_cast, and the type

    def place(self, at: int) -> tuple[int, int]:
        """Returns line and column, from 1."""
        return line_and_column(self.text, at)


class LiteralReader:
    """A reader of the literal at a token. Methods return the token to continue from."""

    def __init__(self, text: str, tokens: list[Token], max_depth: int, quotes: Quotes) -> None:
        self.text = text
        self.raw = tokens
        self.end = len(tokens)
        self.max_depth = max_depth
        self.quotes = quotes
        self.reading = NumberedText(text)
        self.operators = 0  # so far in the current computed value

    def string(self, i: int) -> tuple[str, int]:
        """Returns the string at token i, with all strings that follow it, and the token after.

        Spark joins them. A quote written twice is one.
        """
        raw, token = self.raw, self.raw[i]
        j = i + 1
        if token.token_type is T.RAW_STRING:
            return token.text, j
        parts: list[str] = []
        first = token.start
        # the tokenizer takes all that follows a command for a string
        if self.text[first : first + 1] not in ("'", '"'):
            before = raw[max(i - 1, 0)]
            word = self.text[before.start : before.end + 1]
            raise Refusal(
                f"{show_value(word)} is not expected here; for a column of that name, write `{word:.40}`", before.start
            )
        try:
            if j >= self.end or raw[j].token_type is not T.STRING:  # a shortcut for nearly all strings
                return unescape(self.text[first : token.end + 1]), j
            while j < self.end and raw[j].token_type is T.STRING:
                if raw[j].start > raw[j - 1].end + 1 or self.text[raw[j].start] != self.text[raw[j - 1].start]:
                    parts.append(unescape(self.text[first : raw[j - 1].end + 1]))
                    first = raw[j].start
                j += 1
            parts.append(unescape(self.text[first : raw[j - 1].end + 1]))
        except ValueError as error:
            raise Refusal(str(error), token.start) from None
        return "".join(parts), j

    def _check_quotes(self, i: int, after: int, value: str) -> None:
        """Checks the text at token i, if it is in double quotes.

        after : the token behind it
        """
        token = self.raw[i]
        if self.text[token.start] != '"':
            return
        if self.quotes.names:
            raise Refusal(NO_NAME, token.start)
        if self.quotes.is_column(value) or (after < self.end and self.raw[after].token_type is T.DOT):
            raise self.quotes.refusal(value, token.start)

    def slot(self, token: Token, value: Any, at: int, kind: Kind, many: bool = False, negative: bool = False) -> None:
        """Gives a literal the next slot. The slot's number becomes the text of the token."""
        reading = self.reading
        n = len(reading.literals)
        reading.literals.append(value)
        reading.operands.append((kind, many, negative))
        reading.literal_at.append(at)
        token.token_type = T.NUMBER
        token.text = NUMBERS[n] if n < 1024 else str(n)
        reading.tokens.append(token)

    def literal(self, i: int, negative: bool, typed: Kind | None = None) -> int:
        """Reads the literal at token i, behind its sign or type word, if any."""
        token = self.raw[i]
        if token.token_type is T.NUMBER:
            return self.number(i, negative, token.text, token.start, typed)
        at = token.start
        if token.token_type is T.HEX_STRING:
            digits = token.text
            if self.text[at] not in "xX" or typed:
                number = (
                    f"; for the number, write {int(digits, 16)}" if self.text[at] == "0" and len(digits) <= 32 else ""
                )
                raise Refusal(f"a binary literal is written X'1F'{number}", at)
            try:
                binary = bytes.fromhex("0" * (len(digits) % 2) + digits)
            except ValueError:
                raise Refusal(f"X'{digits:.40}' is not hexadecimal", at) from None
            self.slot(token, binary, at, Kind.BINARY)
            return i + 1
        value, j = self.string(i)
        self._check_quotes(i, j, value)
        if typed is Kind.DOUBLE:
            if not _DOUBLES.fullmatch(value):
                raise Refusal(f"{show_value(value)} is not a number", at)
            value = value.strip().rstrip("dD")
            self.reading.checked = True
        elif j + 1 < self.end and self.raw[j].text.upper() == "ESCAPE" and self.raw[j + 1].token_type is T.STRING:
            escape, after = self.string(j + 1)
            if len(escape) != 1:
                raise Refusal("ESCAPE needs one character", self.raw[j + 1].start)
            try:
                value, j = with_backslash(value, escape), after
            except ValueError as error:
                raise Refusal(str(error), at) from None
        self.slot(token, value, at, Kind.STRING if typed is None else typed, negative=negative)
        return j

    def number(self, i: int, negative: bool, text: str, at: int, typed: Kind | None = None) -> int:
        """Reads the number ``text`` at token i with its suffix; ``text`` includes the point."""
        token = self.raw[i]
        if not _NUMBER.fullmatch(text):
            raise Refusal(f"{show_value(text)} is not a number", at)
        kind = Kind.INT if text.isdigit() else Kind.DOUBLE if "e" in text or "E" in text else Kind.DECIMAL
        i += 1
        if i < self.end and self.raw[i].token_type is T.DCOLON and self.raw[i].start == token.start:
            suffix = self.raw[i + 1].token_type
            entry = _SUFFIXES.get(suffix)
            if entry is None or (entry[0] is Kind.INT and kind is not Kind.INT):
                raise Refusal(f"{self.text[at : token.end + 1]!r} is not a number", at)
            kind, limit = entry
            if limit and (len(text) > 20 or int(text) > limit - (not negative)):
                raise Refusal(f"{self.text[at : token.end + 1]} is too large for its suffix", at)
            if suffix is T.FLOAT:
                try:
                    text = repr(struct.unpack("f", struct.pack("f", float(text)))[0])
                except OverflowError:
                    raise Refusal(f"{self.text[at : token.end + 1]} is too large for its suffix", at) from None
                if float(text) >= FLOAT_EXACT:
                    raise Refusal(
                        f"{self.text[at : token.end + 1]} is a FLOAT beyond {FLOAT_EXACT - 1}, where several whole numbers "
                        f"become the same FLOAT: write {text}D, or CAST({text} AS FLOAT)",
                        at,
                    )
            i += 2
        kind = typed or kind
        if kind is Kind.DOUBLE:
            if float(text) in (float("inf"), float("-inf")):
                raise Refusal(f"{text:.40} is too large for a double: write CAST('Infinity' AS DOUBLE)", at)
        elif len(text) > 39 or sum(map(str.isdigit, text)) > 38:
            raise Refusal("a number has at most 38 digits", at)
        self.slot(token, text, at, kind, negative=negative)
        return i

    def read_signed(self, i: int) -> int:
        """Reads a sign and the number or computed value behind it."""
        raw, first, minuses = self.raw, i, list[int]()
        if self.reading.tokens and self.reading.tokens[-1].token_type in ENDS:
            return self.operator(i)
        while i < self.end and raw[i].token_type in (T.DASH, T.PLUS):
            if raw[i].token_type is T.DASH:
                minuses.append(i)
            i += 1
        negative = len(minuses) % 2 == 1
        if i < self.end and raw[i].token_type is T.NUMBER:
            return self.literal(i, negative)
        if i < self.end and raw[i].token_type is T.DOT:
            return self.point(i, negative)
        if i >= self.end:
            raise Refusal("something is missing after the sign", raw[first].start)
        # sqlglot drops a plus, which needs a number. It is a tilde in the tree (``elsewhere.py``).
        # Of several minuses, one or two mean the same, and fail for the same numbers.
        for sign in minuses[: 2 - negative] or [first]:
            raw[sign].token_type = T.DASH if minuses else T.TILDE
            self.operator(sign)
        return i

    def operator(self, i: int) -> int:
        """Reads an arithmetic operator."""
        self.operators += 1
        if self.operators > MOST_PARTS:
            raise Refusal(
                f"a computed value has more than {MOST_PARTS:,} operators: compute it beforehand, as a column",
                self.raw[i].start,
            )
        self.reading.computed = True
        self.reading.tokens.append(self.raw[i])
        return i + 1

    def point(self, i: int, negative: bool = False) -> int:
        """Reads ``.5``, which the tokenizer cuts after the point."""
        raw = self.raw
        number = i + 1 < self.end and raw[i + 1].token_type is T.NUMBER and raw[i + 1].start == raw[i].start + 1
        if number and not (self.reading.tokens and self.reading.tokens[-1].token_type in ENDS):
            return self.number(i + 1, negative, "." + raw[i + 1].text, raw[i].start)
        raise Refusal("a dot is not expected here", raw[i].start)

    def list(self, i: int) -> int:
        """Reads the list behind ``IN (`` or ``array(``: literals of one class become one slot.

        Returns the token to continue from, which is ``i`` for any other list.
        """
        raw, out = self.raw, self.reading.tokens
        values: list[str] = []
        kinds: set[Kind] = set()
        j = i
        while j < self.end:
            token = raw[j]
            if token.token_type is T.STRING:
                value, after = self.string(j)
                self._check_quotes(j, after, value)
                j = after
                kinds.add(Kind.STRING)
            else:
                sign = token.token_type is T.DASH
                if sign:
                    j += 1
                if (
                    j >= self.end
                    or raw[j].token_type is not T.NUMBER
                    or len(raw[j].text) > 38
                    or not _NUMBER.fullmatch(raw[j].text)
                ):
                    return i
                value = "-" + raw[j].text if sign else raw[j].text
                kinds.add(Kind.INT if raw[j].text.isdigit() else Kind.DECIMAL)
                if "e" in value or "E" in value:
                    return i
                j += 1
            values.append(value)
            if j >= self.end or len(kinds) > 1:
                return i
            if raw[j].token_type is T.R_PAREN:
                self.slot(raw[i], values, out[-1].start, kinds.pop(), many=True)
                return j
            if raw[j].token_type is not T.COMMA:
                return i
            j += 1
        return i
