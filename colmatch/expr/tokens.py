"""A text -> the tokens of its Boolean skeleton, its subjects and its literals.

sqlglot's Spark tokenizer cuts the text. Here names become numbered *subjects* (``user.age``, ``attrs['k']``), literals with their sign,
type word and suffix become numbered *slots*, and whatever is outside the language is refused where it stands. What is left for sqlglot's
parser are operators, parentheses and a few functions::

    user.age >= -5 AND day IN (DATE '2013-01-31')    ->    0 >= 0 AND 1 IN (1)

So the parser can nest only through NOT and parentheses, which are counted here, before it runs: its compiled form overflows the C
stack rather than raise. Measured: 400 levels need 1 MB of it; threads have 8 MB on Linux, 16 MB on macOS.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Any

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from colmatch.expr.ast import Refusal, Subject
from colmatch.expr.forms import Kind
from colmatch.expr.split import unescape

T = TokenType

ALLOWED = (
    "allowed are = <> < <= > >= <=> BETWEEN, IN, IS NULL, IS TRUE, IS DISTINCT FROM, LIKE, ILIKE, RLIKE, startswith, endswith, contains, "
    "array_contains, arrays_overlap, contains_all, size, AND, OR, NOT"
)
FUNCTIONS = frozenset(
    [
        "startswith",
        "endswith",
        "contains",
        "array_contains",
        "arrays_overlap",
        "array",
        "contains_all",
        "size",
        "cardinality",
        "rlike",
        "regexp_like",
        "regexp",
    ]
)

# What a token is to the reader.
NAME, NUMBER, STRING, OTHER, JOIN, NOT, OPEN, CLOSE, SIGN, WORD = range(10)
_ROLES: dict[TokenType, int] = {
    T.VAR: NAME, T.IDENTIFIER: NAME, T.NUMBER: NUMBER, T.STRING: STRING, T.RAW_STRING: STRING, T.HEX_STRING: STRING,
    T.EQ: OTHER, T.NEQ: OTHER, T.LT: OTHER, T.LTE: OTHER, T.GT: OTHER, T.GTE: OTHER, T.NULLSAFE_EQ: OTHER,
    T.BETWEEN: OTHER, T.IN: OTHER, T.IS: OTHER, T.LIKE: OTHER, T.ILIKE: OTHER, T.TRUE: OTHER, T.FALSE: OTHER, T.NULL: OTHER,
    T.AND: JOIN, T.OR: JOIN, T.COMMA: JOIN, T.NOT: NOT, T.L_PAREN: OPEN, T.R_PAREN: CLOSE, T.DASH: SIGN, T.PLUS: SIGN,
    T.RLIKE: WORD, T.DISTINCT: WORD, T.FROM: WORD, T.UNKNOWN: WORD, T.ANY: WORD, T.ALL: WORD, T.SOME: WORD,
}  # fmt: skip
_ENDS = frozenset({T.VAR, T.NUMBER, T.R_PAREN, T.TRUE, T.FALSE, T.NULL})  # after these, a minus subtracts
_GOES_ON = frozenset({T.DOT, T.L_PAREN, T.L_BRACKET, T.STRING})  # after a name
_SUFFIXES = {
    T.BIGINT: (Kind.INT, 2**63), T.INT: (Kind.INT, 2**31), T.SMALLINT: (Kind.INT, 2**15), T.TINYINT: (Kind.INT, 2**7),
    T.DOUBLE: (Kind.DOUBLE, 0), T.FLOAT: (Kind.DOUBLE, 0), T.DECIMAL: (Kind.DECIMAL, 0),
}  # fmt: skip
_TYPED = {
    "DATE": Kind.DATE, "TIMESTAMP": Kind.TIMESTAMP, "TIMESTAMP_LTZ": Kind.TIMESTAMP, "TIMESTAMP_NTZ": Kind.TIMESTAMP_NTZ,
    "DOUBLE": Kind.DOUBLE,
}  # fmt: skip
_STARTS = {
    "SELECT": "subqueries are not supported", "WITH": "subqueries are not supported", "EXISTS": "subqueries are not supported",
    "CASE": "CASE is not supported: write it with AND, OR and NOT", "INTERVAL": "intervals are not supported: write the date itself",
}  # fmt: skip
_LITERAL_ROLES = (NUMBER, STRING)
_DEEPER = (OPEN, NOT)
_NUMBERS = [str(i) for i in range(1024)]
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")  # the tokenizer takes 1e for one, too
_DOUBLES = re.compile(r"\s*[+-]?(?:nan|inf|infinity|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)d?\s*", re.IGNORECASE | re.ASCII)


@dataclass(slots=True)
class Reading:
    """A text whose literals are numbered by slot and whose columns are numbered by subject. ``at`` are offsets into the text."""

    text: str
    tokens: list[Token] = field(default_factory=list)
    joined: bool = False  # there is an AND or OR outside all parentheses
    literals: list[Any] = field(default_factory=list)  # by slot: text, bytes (BINARY), or a list of texts
    operands: list[tuple[Kind, bool, bool]] = field(default_factory=list)  # by slot: kind, many, negative
    literal_at: list[int] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    subject_at: list[int] = field(default_factory=list)
    start: tuple[str, int] | None = None  # a word that begins something that is not supported, if the parser finds fault
    depth: int = 0

    def place(self, at: int) -> tuple[int, int]:
        """Line and column, from 1."""
        before = self.text[:at]
        return before.count("\n") + 1, at - before.rfind("\n")


def read(text: str, max_depth: int) -> Reading:
    """
    Raises
    ------
    Refusal : the text is not in the language, as far as its tokens tell
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refusal("the text has half a surrogate pair, which is no character", error.start) from None
    try:
        tokens = SPARK.tokenize(text)
    except TokenError:
        at, what = _unclosed(text)
        raise Refusal(what, at) from None
    if not tokens:
        raise Refusal("the expression is empty: write a condition, or TRUE", 0)
    return _Reader(text, tokens, max_depth).run()


SPARK = Spark()
_CLOSED = re.compile(r"""[^'"`/-]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|/(?!\*)|-""", re.DOTALL)


def _unclosed(text: str) -> tuple[int, str]:
    at = 0
    while found := _CLOSED.match(text, at):
        at = found.end()
    what = {"'": "a string", '"': "a string", "`": "a name", "/": "a comment"}.get(text[at : at + 1])
    if what:
        return at, f"{what} is not closed"
    odd = re.search(r"\b[xX]'[^']*'", text)
    return (odd.start(), f"{odd[0]:.40} is not hexadecimal") if odd else (0, "the text cannot be cut into words")


class _Reader:
    def __init__(self, text: str, tokens: list[Token], max_depth: int) -> None:
        self.text = text
        self.raw = tokens
        self.end = len(tokens)
        self.max_depth = max_depth
        self.reading = Reading(text)

    def run(self) -> Reading:
        reading, raw, end = self.reading, self.raw, self.end
        out, subjects = reading.tokens, reading.subjects
        add = out.append
        role_of = _ROLES.get
        outer: list[int] = []  # nesting around each open parenthesis
        depth = 0  # nesting here: parentheses, and the NOTs before this operand
        base = 0
        between = False  # the next AND belongs to BETWEEN
        i = 0
        while i < end:
            token = raw[i]
            type = token.token_type
            role = role_of(type, -1)
            if role == OTHER:
                add(token)
                i += 1
                if type is T.BETWEEN and not outer:
                    between = True
            elif role == NAME:
                j = i + 1
                if j < end and raw[j].token_type in _GOES_ON:
                    i = self._name(i)
                else:  # as there, for nearly all names
                    text = token.text
                    if text.upper() in _STARTS and reading.start is None and type is T.VAR:
                        reading.start = (_STARTS[text.upper()], token.start)
                    n = len(subjects)
                    subjects.append(Subject((text,)))
                    reading.subject_at.append(token.start)
                    token.token_type = T.VAR
                    token.text = _NUMBERS[n] if n < 1024 else str(n)
                    add(token)
                    i = j
            elif role == JOIN:
                if type is T.COMMA:
                    if not (out and out[-1].token_type in _ENDS):
                        raise Refusal("something is missing before ','", token.start)
                elif not outer:
                    if between and type is T.AND:
                        between = False
                    else:
                        reading.joined = True
                depth = base
                add(token)
                i += 1
            elif role in _LITERAL_ROLES:
                i = self._literal(i, i, False)
            elif role in _DEEPER:
                if role == OPEN or not (out and out[-1].token_type in _ENDS):
                    depth += 1
                    if depth > reading.depth:
                        if depth > self.max_depth:
                            raise Refusal(
                                f"the expression nests deeper than {self.max_depth} levels: flatten it, or raise Options(max_depth=...)",
                                token.start,
                            )
                        reading.depth = depth
                add(token)
                i += 1
                if role == OPEN:
                    outer.append(base)
                    base = depth
                    if len(out) > 1 and out[-2].token_type in (T.IN, T.ARRAY):
                        i = self._list(i)
            elif role == CLOSE:
                if out and out[-1].token_type is T.COMMA:
                    raise Refusal("something is missing before ')'", token.start)
                if outer:
                    depth = base = outer.pop()
                add(token)
                i += 1
            elif role == SIGN:
                i = self._signed(i)
            else:
                i = self._word(i, role)
        return reading

    # Names

    def _named(self, i: int) -> bool:
        """Whether token i can be part of a name: any word can, after a dot."""
        if i >= self.end:
            return False
        token = self.raw[i]
        return token.token_type is T.IDENTIFIER or (token.token_type in (T.VAR, T.NUMBER)) or token.text[:1].isidentifier()

    def _name(self, i: int) -> int:
        """A subject, or a function's name."""
        raw, end, reading = self.raw, self.end, self.reading
        token = raw[i]
        j = i + 1
        kind = raw[j].token_type if j < end else None
        if kind is T.L_PAREN:
            return self._function(i)
        path = [token.text]
        while kind is T.DOT:
            if not self._named(j + 1):
                raise Refusal("a name is needed after the dot", raw[j].start)
            path.append(raw[j + 1].text)
            j += 2
            kind = raw[j].token_type if j < end else None
        if len(path) > 64:
            raise Refusal(f"a name of {len(path)} parts is too long", token.start)
        if kind is T.L_PAREN:
            raise Refusal(f"function {'.'.join(path)!r} is not supported; {ALLOWED}", token.start)
        key: str | int | None = None
        if kind is T.L_BRACKET:
            key, j = self._key(j)
            after = raw[j] if j < end else None
            if after is not None and after.token_type in (T.L_BRACKET, T.DOT):
                raise Refusal("an entry of a map has no parts: only one [...] can follow a name", after.start)
        elif kind is T.STRING:
            typed = _TYPED.get(token.text.upper())
            if typed is not None and typed is not Kind.DOUBLE and len(path) == 1:
                return self._literal(j, i, False, typed)
        if token.token_type is not T.IDENTIFIER and token.text.upper() in _STARTS and reading.start is None:
            reading.start = (_STARTS[token.text.upper()], token.start)
        n = len(reading.subjects)
        reading.subjects.append(Subject(tuple(path), key))
        reading.subject_at.append(token.start)
        token.token_type = T.VAR
        token.text = _NUMBERS[n] if n < 1024 else str(n)
        reading.tokens.append(token)
        return j

    def _key(self, i: int) -> tuple[str | int, int]:
        """The literal in ``[...]`` that starts at token i, and the token after it."""
        raw, j, sign = self.raw, i + 1, 1
        if j < self.end and raw[j].token_type is T.DASH:
            j, sign = j + 1, -1
        key: str | int | None = None
        if j < self.end:
            token = raw[j]
            if token.token_type is T.NUMBER and token.text.isdigit() and token.text.isascii() and len(token.text) < 20:
                key, j = sign * int(token.text), j + 1
            elif token.token_type in (T.STRING, T.RAW_STRING) and sign == 1:
                key, j = self._string(j)
        if key is None or j >= self.end or raw[j].token_type is not T.R_BRACKET:
            raise Refusal("a literal key is needed in [...], a string or a whole number, as in attrs['colour']", raw[i].start)
        return key, j + 1

    def _function(self, i: int) -> int:
        raw, token = self.raw, self.raw[i]
        name = token.text.lower()
        plain = token.token_type is not T.IDENTIFIER
        if plain and name == "cast":
            return self._cast(i)
        kind = _TYPED.get(name.upper()) if plain else None
        if kind is not None and i + 2 < self.end and raw[i + 2].token_type is T.STRING:
            _, j = self._string(i + 2)
            if j < self.end and raw[j].token_type is T.R_PAREN:
                self._literal(i + 2, i, False, kind)
                return j + 1
        if plain and name.upper() in _STARTS:
            raise Refusal(f"{_STARTS[name.upper()]}; {ALLOWED}", token.start)
        if not plain or name not in FUNCTIONS:
            raise Refusal(f"function {token.text!r} is not supported; {ALLOWED}", token.start)
        token.token_type = T.ARRAY if name == "array" else T.VAR
        token.text = (
            "array"
            if token.token_type is T.ARRAY
            else "regexp_like"
            if name in ("rlike", "regexp")
            else "size"
            if name == "cardinality"
            else name
        )
        self.reading.tokens.append(token)
        return i + 1

    def _cast(self, i: int) -> int:
        """CAST(literal AS type), where the type says no more than the kind of literal."""
        raw = self.raw
        j = i + 2
        negative = False
        if j < self.end and raw[j].token_type is T.DASH:
            j, negative = j + 1, True
        value = j
        if j < self.end and raw[j].token_type is T.STRING and not negative:
            _, j = self._string(j)
        elif j < self.end and raw[j].token_type is T.NUMBER:
            j += 1
        if j > value and [t.text.upper() for t in raw[j : j + 3 : 2]] == ["AS", ")"]:
            kind = _TYPED.get(raw[j + 1].text.upper())
            if kind is Kind.DOUBLE or (kind is not None and raw[value].token_type is T.STRING):
                self._literal(value, i, negative, kind)
                return j + 3
        raise Refusal(
            "CAST is supported only of a literal to DOUBLE, DATE or TIMESTAMP, as in CAST('NaN' AS DOUBLE)",
            raw[i].start,
        )

    # Literals

    def _string(self, i: int) -> tuple[str, int]:
        """The string at token i with those that follow it (Spark joins them; a quote written twice is one), and the token after."""
        raw, token = self.raw, self.raw[i]
        j = i + 1
        if token.token_type is T.RAW_STRING:
            return token.text, j
        parts: list[str] = []
        first = token.start
        try:
            while j < self.end and raw[j].token_type is T.STRING:
                if raw[j].start > raw[j - 1].end + 1 or self.text[raw[j].start] != self.text[raw[j - 1].start]:
                    parts.append(unescape(self.text[first : raw[j - 1].end + 1]))
                    first = raw[j].start
                j += 1
            parts.append(unescape(self.text[first : raw[j - 1].end + 1]))
        except ValueError as error:
            raise Refusal(str(error), token.start) from None
        return "".join(parts), j

    def _slot(self, token: Token, value: Any, at: int, kind: Kind, many: bool = False, negative: bool = False) -> None:
        reading = self.reading
        n = len(reading.literals)
        reading.literals.append(value)
        reading.operands.append((kind, many, negative))
        reading.literal_at.append(at)
        token.token_type = T.NUMBER
        token.text = _NUMBERS[n] if n < 1024 else str(n)
        reading.tokens.append(token)

    def _literal(self, i: int, first: int, negative: bool, typed: Kind | None = None) -> int:
        """The literal at token i, with the sign or type word that stands at token ``first``."""
        token = self.raw[i]
        if token.token_type is T.NUMBER:
            return self._number(i, negative, token.text, token.start, typed)
        at = token.start
        if token.token_type is T.HEX_STRING:
            digits = token.text
            if self.text[at] not in "xX" or typed:
                raise Refusal("a binary literal is written X'1F'", at)
            try:
                binary = bytes.fromhex("0" * (len(digits) % 2) + digits)
            except ValueError:
                raise Refusal(f"X'{digits}' is not hexadecimal", at) from None
            self._slot(token, binary, at, Kind.BINARY)
            return i + 1
        value, j = self._string(i)
        if typed is Kind.DOUBLE:
            if not _DOUBLES.fullmatch(value):
                raise Refusal(f"{value!r:.60} is not a number", at)
            value = value.strip().rstrip("dD")
        elif j + 1 < self.end and self.raw[j].text.upper() == "ESCAPE" and self.raw[j + 1].token_type is T.STRING:
            escape, after = self._string(j + 1)
            value = _with_backslash(value, escape, at, self.raw[j + 1].start)
            j = after
        self._slot(token, value, at, Kind.STRING if typed is None else typed, negative=negative)
        return j

    def _number(self, i: int, negative: bool, text: str, at: int, typed: Kind | None = None) -> int:
        token = self.raw[i]
        if not _NUMBER.fullmatch(text):
            raise Refusal(f"{text!r:.40} is not a number", at)
        kind = Kind.INT if text.isdigit() else Kind.DOUBLE if "e" in text or "E" in text else Kind.DECIMAL
        i += 1
        if i < self.end and self.raw[i].token_type is T.DCOLON and self.raw[i].start == token.start:
            suffix = self.raw[i + 1].token_type
            found = _SUFFIXES.get(suffix)
            if found is None or (found[0] is Kind.INT and kind is not Kind.INT):
                raise Refusal(f"{self.text[at : token.end + 1]!r} is not a number", at)
            kind, limit = found
            if limit and (len(text) > 20 or int(text) > limit - (not negative)):
                raise Refusal(f"{self.text[at : token.end + 1]} is too large for its suffix", at)
            if suffix is T.FLOAT:
                try:
                    text = repr(struct.unpack("f", struct.pack("f", float(text)))[0])
                except OverflowError:
                    raise Refusal(f"{self.text[at : token.end + 1]} is too large for its suffix", at) from None
            i += 2
        kind = typed or kind
        if kind is Kind.DOUBLE:
            if float(text) in (float("inf"), float("-inf")):
                raise Refusal(f"{text:.40} is too large for a double: write CAST('Infinity' AS DOUBLE)", at)
        elif len(text) > 39 or sum(map(str.isdigit, text)) > 38:
            raise Refusal("a number has at most 38 digits", at)
        self._slot(token, text, at, kind, negative=negative)
        return i

    def _signed(self, i: int) -> int:
        """A sign and what follows: a number."""
        raw, first, negative = self.raw, i, False
        if not (self.reading.tokens and self.reading.tokens[-1].token_type in _ENDS):
            while i < self.end and raw[i].token_type in (T.DASH, T.PLUS):
                negative ^= raw[i].token_type is T.DASH
                i += 1
            if i < self.end and raw[i].token_type is T.NUMBER:
                return self._literal(i, first, negative)
            if i < self.end and raw[i].token_type is T.DOT:
                return self._point(i, negative)
        raise Refusal(f"arithmetic is not supported: compare a column with a literal; {ALLOWED}", raw[first].start)

    def _point(self, i: int, negative: bool = False) -> int:
        """``.5``, which the tokenizer cuts after the point."""
        raw = self.raw
        number = i + 1 < self.end and raw[i + 1].token_type is T.NUMBER and raw[i + 1].start == raw[i].start + 1
        if number and not (self.reading.tokens and self.reading.tokens[-1].token_type in _ENDS):
            return self._number(i + 1, negative, "." + raw[i + 1].text, raw[i].start)
        raise Refusal("a dot is not expected here", raw[i].start)

    def _list(self, i: int) -> int:
        """Behind ``IN (`` and ``array(``: a list of literals of one class is one slot. Returns the token to go on from."""
        raw, out = self.raw, self.reading.tokens
        values: list[str] = []
        kinds: set[Kind] = set()
        j = i
        while j < self.end:
            token = raw[j]
            if token.token_type is T.STRING:
                value, j = self._string(j)
                kinds.add(Kind.STRING)
            else:
                sign = token.token_type is T.DASH
                if sign:
                    j += 1
                if j >= self.end or raw[j].token_type is not T.NUMBER or len(raw[j].text) > 38 or not _NUMBER.fullmatch(raw[j].text):
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
                self._slot(raw[i], values, out[-1].start, kinds.pop(), many=True)
                return j
            if raw[j].token_type is not T.COMMA:
                return i
            j += 1
        return i

    # Words and the rest

    def _word(self, i: int, role: int) -> int:
        """Keywords where the grammar has them, and names everywhere else."""
        raw, out = self.raw, self.reading.tokens
        token = raw[i]
        kind = token.token_type
        before = out[-1].token_type if out else None
        if role == WORD:
            inside = {
                T.RLIKE: before in _ENDS or before is T.NOT,
                T.DISTINCT: before is T.IS or (before is T.NOT and len(out) > 1 and out[-2].token_type is T.IS),
                T.FROM: before is T.DISTINCT,
                T.UNKNOWN: before is T.IS or (before is T.NOT and len(out) > 1 and out[-2].token_type is T.IS),
            }.get(kind, before is T.LIKE or before is T.ILIKE)
            if inside and not (kind is T.RLIKE and before is T.NOT and not (len(out) > 1 and out[-2].token_type in _ENDS)):
                if kind is T.UNKNOWN:
                    token.token_type = T.NULL
                out.append(token)
                return i + 1
        if kind is T.DOT:
            return self._point(i)
        if self._named(i):
            return self._name(i)
        shown = self.text[token.start : token.end + 1]
        if kind is T.SEMICOLON:
            raise Refusal("one expression is needed, not several statements: take the ';' out", token.start)
        if kind in (T.STAR, T.SLASH, T.MOD, T.DPIPE, T.PIPE, T.AMP, T.CARET, T.TILDE, T.DAMP):
            raise Refusal(f"operator {shown!r} is not supported: compare a column with a literal; {ALLOWED}", token.start)
        raise Refusal(f"{shown!r:.40} is not expected here; {ALLOWED}", token.start)


def _with_backslash(pattern: str, escape: str, at: int, escape_at: int) -> str:
    """A LIKE pattern with another escape character, written with the usual one."""
    if len(escape) != 1:
        raise Refusal("ESCAPE needs one character", escape_at)
    if escape == "\\":
        return pattern
    pieces: list[str] = []
    i = 0
    while i < len(pattern):
        char = pattern[i]
        if char == escape:
            i += 1
            char = pattern[i : i + 1]
            if char not in ("%", "_", escape):
                raise Refusal(f"in this LIKE pattern, {escape!r} stands before '%', '_' or itself", at)
            pieces.append("\\" + char if char in "%_\\" else char)
        else:
            pieces.append("\\\\" if char == "\\" else char)
        i += 1
    return "".join(pieces)
