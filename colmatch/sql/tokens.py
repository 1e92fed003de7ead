"""The tokens of a text: its Boolean skeleton, its subjects and its literals.

sqlglot's Spark tokenizer cuts the text. Here names become numbered *subjects* (``user.age``,
``attrs['k']``). Literals with their sign, type word and suffix become numbered *slots*. Anything
outside the language is refused at its place. Operators, parentheses and a few functions are left
for sqlglot's parser::

    user.age >= -5 AND day IN (DATE '2013-01-31')    ->    0 >= 0 AND 1 IN (1)

So the parser can nest only through NOT and parentheses. These are counted here, before it runs: its
compiled form overflows the C stack rather than raise. Measured: 400 levels need 1 MB of stack, and
threads have 8 MB on Linux, 16 MB on macOS.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from colmatch.errors import show_value
from colmatch.expr.ast import Refusal, Subject
from colmatch.expr.computed import AT_ZONE, CASE_OF, CAST, JSON_SIGNS, PREFIX, SECONDS, TRIMS, ComputedValue
from colmatch.expr.functions import ELEMENTS, MOST_PARTS, NAMES, SYNTAX, TABLE, VALUE, Function
from colmatch.lowering.forms import Kind
from colmatch.sql.dialects import ANY_CASE, rewrite
from colmatch.sql.elements import PREFIX as OF_ELEMENTS
from colmatch.sql.instead import SUBQUERY, advise_function, advise_word
from colmatch.sql.lists import OVERLAPS
from colmatch.sql.literals import ALLOWED, DOW, ENDS, NUMBERS, LiteralReader, NumberedText
from colmatch.sql.quotes import Quotes
from colmatch.sql.similar import advise_similar
from colmatch.sql.xor import XOR

T = TokenType

# The role of a token for the reader.
NAME, NUMBER, STRING, OTHER, JOIN, NOT, OPEN, CLOSE, SIGN, WORD = range(10)
_ROLES: dict[TokenType, int] = {
    T.VAR: NAME, T.IDENTIFIER: NAME, T.NUMBER: NUMBER, T.STRING: STRING, T.RAW_STRING: STRING, T.HEX_STRING: STRING,
    T.EQ: OTHER, T.NEQ: OTHER, T.LT: OTHER, T.LTE: OTHER, T.GT: OTHER, T.GTE: OTHER, T.NULLSAFE_EQ: OTHER,
    T.BETWEEN: OTHER, T.IN: OTHER, T.IS: OTHER, T.LIKE: OTHER, T.ILIKE: OTHER, T.TRUE: OTHER, T.FALSE: OTHER, T.NULL: OTHER,
    T.AND: JOIN, T.OR: JOIN, T.COMMA: JOIN, T.NOT: NOT, T.L_PAREN: OPEN, T.R_PAREN: CLOSE, T.DASH: SIGN, T.PLUS: SIGN,
    T.AT_GT: OTHER, T.LT_AT: OTHER, T.CARET_AT: OTHER, OVERLAPS: OTHER, XOR: OTHER,
    T.RLIKE: WORD, T.DISTINCT: WORD, T.FROM: WORD, T.UNKNOWN: WORD, T.ANY: WORD, T.ALL: WORD, T.SOME: WORD,
}  # fmt: skip
_GOES_ON = frozenset({T.DOT, T.L_PAREN, T.L_BRACKET, T.STRING})  # after a name
_TYPED = {
    "DATE": Kind.DATE, "TIMESTAMP": Kind.TIMESTAMP, "TIMESTAMP_LTZ": Kind.TIMESTAMP, "TIMESTAMP_NTZ": Kind.TIMESTAMP_NTZ,
    "DOUBLE": Kind.DOUBLE,
}  # fmt: skip
_CASTS = {"cast": "cast", "try_cast": "try_cast", "safe_cast": "try_cast"}
_PLACES = ("OFFSET", "SAFE_OFFSET")  # of BigQuery, in [...]
_TUPLES = ("row", "struct")  # before a parenthesis
_READ = {"to_date": "DATE", "to_timestamp": "TIMESTAMP"}  # functions that read a literal
_STARTS = {
    **dict.fromkeys(("SELECT", "WITH", "EXISTS"), SUBQUERY), "WHERE": "'WHERE' is not expected here: write the condition alone",
    "INTERVAL": "an interval is written INTERVAL 7 DAYS, or INTERVAL '1:30' HOUR TO MINUTE",
}  # fmt: skip
_FLAT = "give events its contents as a separate column"
_OPERATORS = frozenset({T.STAR, T.SLASH, T.MOD, T.DPIPE, T.DIV, T.AMP, T.PIPE, T.CARET})
_BEHIND_NAMES = frozenset(  # a word before these is a column
    {
        *_OPERATORS,
        T.DOT,
        T.L_BRACKET,
        *(kind for kind, role in _ROLES.items() if role == OTHER),
        T.AND,
        T.OR,
        T.R_PAREN,
        T.COMMA,
    }
    - {T.TRUE, T.FALSE, T.NULL}
)
_SYMMETRIES = ("SYMMETRIC", "ASYMMETRIC")
_COMPARED = frozenset({T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE})  # ANY and ALL may follow these
_ORDERS = _COMPARED - {T.EQ, T.NEQ}
_WRITTEN = frozenset({AT_ZONE, CASE_OF, SECONDS, *TRIMS, *JSON_SIGNS})  # calls that stand for signs and words
_LITERAL_ROLES = (NUMBER, STRING)
_DEEPER = (OPEN, NOT)


def read_text(text: str, max_depth: int, quotes: Quotes) -> NumberedText:
    """Cuts a text into tokens, without parsing it.

    Raises Refusal: the tokens show that the text is not in the language.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Refusal("the text has half a surrogate pair, which is no character", error.start) from None
    try:
        tokens = SPARK.tokenize(text)
    except (TokenError, TypeError, ValueError, AttributeError, LookupError, AssertionError):
        at, what = _find_unclosed(text)
        raise Refusal(what, at) from None
    if not tokens:
        raise Refusal("the expression is empty: write a condition, or TRUE", 0)
    tokens, is_whole = rewrite(text, tokens)
    reading = _TokenReader(text, tokens, max_depth, quotes).run()
    reading.whole |= is_whole
    return reading


SPARK = Spark()
_OPERAND_ENDS = frozenset({*ENDS, T.IDENTIFIER, T.R_BRACKET, T.STRING, T.RAW_STRING})


def find_parameters(text: str) -> list[tuple[int, int, str, bool]]:
    """Returns begin and end of each ``:name`` where a value is needed, its name, and a Boolean.

    The Boolean is True among the members of a list, as in ``a IN (:x, 5)``. A colon behind a value
    begins a path into JSON. A text that cannot be cut has no parameters.
    """
    try:
        tokens = SPARK.tokenize(text)
    except (TokenError, TypeError, ValueError, AttributeError, LookupError, AssertionError):
        return []
    found = []
    lists: list[bool] = []  # whether each open parenthesis is around the members of a list
    for i, token in enumerate(tokens[:-1]):
        name = tokens[i + 1]
        if token.token_type in (T.L_PAREN, T.L_BRACKET):
            before = tokens[i - 1].text.lower() if i else ""
            lists.append(token.token_type is T.L_BRACKET or before == "in" or NAMES.get(before) is TABLE["array"])
        elif token.token_type in (T.R_PAREN, T.R_BRACKET) and lists:
            lists.pop()
        is_operand = not i or tokens[i - 1].token_type not in _OPERAND_ENDS
        if token.token_type is T.COLON and is_operand and name.start == token.end + 1 and name.text.isidentifier():
            found.append((token.start, name.end + 1, name.text, bool(lists) and lists[-1]))
    return found


_CLOSED = re.compile(
    r"""[^'"`/-]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|/(?!\*)|-""", re.DOTALL
)


def _find_unclosed(text: str) -> tuple[int, str]:
    at = 0
    while piece := _CLOSED.match(text, at):
        at = piece.end()
    what = {"'": "a string", '"': "a string", "`": "a name", "/": "a comment"}.get(text[at : at + 1])
    if what:
        return at, f"{what} is not closed"
    odd = re.search(r"\b[xX]'[^']*'", text)
    return (odd.start(), f"{odd[0]:.40} is not hexadecimal") if odd else (0, "the text cannot be cut into words")


class _Call(NamedTuple):
    """A function before a parenthesis."""

    row: Function | None
    name: str
    at: int
    is_value: bool


_NO_CALL = _Call(None, "", 0, False)


class _TokenReader(LiteralReader):
    def __init__(self, text: str, tokens: list[Token], max_depth: int, quotes: Quotes) -> None:
        super().__init__(text, tokens, max_depth, quotes)
        self._skipped: dict[int, int] = {}  # the AS of a cast -> the parenthesis behind its type
        self._apart: set[int] = set()  # arrays with a slot for each literal
        # the result of ``_find_closings``, from the first cast on
        self._closed: dict[int, tuple[int, int]] | None = None
        self._commas: list[int] = []  # in each open parenthesis
        self._calls = [_NO_CALL]  # of each open parenthesis, and of the next one

    def run(self) -> NumberedText:
        reading, raw, end = self.reading, self.raw, self.end
        out, subjects = reading.tokens, reading.subjects
        add = out.append
        role_of = _ROLES.get
        outer: list[int] = []  # nesting around each open parenthesis
        depth = 0  # nesting here: parentheses, and the NOTs before this operand
        base = 0
        between = False  # the next AND belongs to BETWEEN
        i = self._begin()
        while i < end:
            token = raw[i]
            type = token.token_type
            role = role_of(type, -1)
            if role == OTHER:
                add(token)
                i += 1
                self.operators = 0
                if type is T.BETWEEN:
                    between, i = between or not outer, self._symmetry(i)
            elif role == NAME:
                j = i + 1
                if j < end and raw[j].token_type in _GOES_ON:
                    i = self._name(i)
                else:  # a shortcut for nearly all names
                    text = token.text
                    if text.upper() in _STARTS and reading.start is None and type is T.VAR:
                        reading.start = (_STARTS[text.upper()], token.start)
                    n = len(subjects)
                    subjects.append(Subject((text,)))
                    reading.subject_at.append(token.start)
                    token.token_type = T.VAR
                    token.text = NUMBERS[n] if n < 1024 else str(n)
                    add(token)
                    i = j
            elif role == JOIN:
                if type is T.COMMA:
                    self._comma(token)
                elif not outer:
                    if between and type is T.AND:
                        between = False
                    else:
                        reading.joined = True
                depth = base
                self.operators = 0
                add(token)
                i += 1
            elif role in _LITERAL_ROLES:
                i = self.literal(i, False)
            elif role in _DEEPER:
                if role == OPEN or not (out and out[-1].token_type in ENDS):
                    depth += 1
                    if depth > reading.depth:
                        reading.depth = self._check_depth(depth, token)
                else:
                    reading.negated = True
                add(token)
                i += 1
                if role == OPEN:
                    outer.append(base)
                    self._commas.append(0)
                    self._calls.append(_NO_CALL)
                    base = depth
                    if len(out) > 1 and out[-2].token_type in (T.IN, T.ARRAY) and i - 2 not in self._apart:
                        i = self.list(i)
            elif role == CLOSE:
                self._close(token)
                if outer:
                    depth = base = outer.pop()
                add(token)
                i += 1
            elif role == SIGN:
                i = self.read_signed(i)
            else:
                i = self._word(i, role)
        return reading

    def _begin(self) -> int:
        """Returns the token to begin with, which is behind a leading WHERE."""
        raw = self.raw
        if raw[0].token_type is not T.WHERE or self.end == 1 or raw[1].token_type in _BEHIND_NAMES:
            return 0
        self.reading.whole = True
        return 1

    def _symmetry(self, i: int) -> int:
        """Reads SYMMETRIC or ASYMMETRIC behind BETWEEN, if there. Returns the token to continue
        from.
        """
        raw = self.raw
        if i + 1 < self.end and raw[i].text.upper() in _SYMMETRIES and raw[i + 1].token_type is not T.AND:
            self.reading.tokens.append(raw[i])
            return i + 1
        return i

    def _comma(self, token: Token) -> None:
        """Checks a comma, and counts it among those of its parenthesis."""
        out = self.reading.tokens
        if not (out and out[-1].token_type in ENDS):
            raise Refusal("something is missing before ','", token.start)
        if self._commas:
            self._commas[-1] += 1
            call = self._calls[-2]
            if call.is_value and self._commas[-1] == MOST_PARTS:
                message = f"{call.name} has more than {MOST_PARTS:,} arguments: compute it beforehand, as a column"
                raise Refusal(message, token.start)

    def _close(self, token: Token) -> None:
        """Checks the end of a parenthesis, and the number of arguments in it."""
        last = self.reading.tokens[-1].token_type if self.reading.tokens else None
        if last is T.COMMA:
            raise Refusal("something is missing before ')'", token.start)
        if self._commas:
            count = self._commas.pop() + (last is not T.L_PAREN)
            self._calls.pop()
            call, self._calls[-1] = self._calls[-1], _NO_CALL
            if call.row is not None and (fault := call.row.find_fault(call.name, count)):
                raise Refusal(fault, call.at)
            if call.name == SECONDS and count != 1:
                raise Refusal("extract takes one timestamp, as in extract(SECOND FROM at)", call.at)
            if call.name in _TUPLES and count < 2:
                raise Refusal(
                    f"{call.name} of fewer than two values equals no value: write a = 1 for a = {call.name}(1)", call.at
                )

    def _check_depth(self, depth: int, token: Token) -> int:
        if depth > self.max_depth:
            message = f"nests deeper than {self.max_depth} levels: flatten it, or raise Options(max_depth=...)"
            raise Refusal(f"the expression {message}", token.start)
        return depth

    # Names

    def _is_name(self, i: int) -> bool:
        """Returns whether token i can be part of a name. After a dot, any word can."""
        if i >= self.end:
            return False
        token = self.raw[i]
        return token.token_type in (T.IDENTIFIER, T.VAR, T.NUMBER) or token.text[:1].isidentifier()

    def _name(self, i: int) -> int:
        """Reads a subject, or a function's name."""
        raw, end, reading = self.raw, self.end, self.reading
        token = raw[i]
        j = i + 1
        kind = raw[j].token_type if j < end else None
        if kind is T.L_PAREN:
            return self._function(i)
        path = [token.text]
        while kind is T.DOT:
            if not self._is_name(j + 1):
                raise Refusal("a name is needed after the dot", raw[j].start)
            path.append(raw[j + 1].text)
            j += 2
            kind = raw[j].token_type if j < end else None
        if len(path) > 64:
            raise Refusal(f"a name of {len(path)} parts is too long", token.start)
        if kind is T.L_PAREN:
            raise Refusal(advise_function(".".join(path)), token.start)
        key: str | int | None = None
        if kind is T.L_BRACKET:
            if token.token_type is not T.IDENTIFIER and token.text.upper() == "ARRAY":
                advice = "write array('a', 'b'); x = ANY(ARRAY['a', 'b']) is written x IN ('a', 'b')"
                raise Refusal(f"'ARRAY[' is not expected here: {advice}", token.start)
            key, j = self._key(j)
            fields: list[str] = []
            while type(key) is int and j < end and raw[j].token_type is T.DOT and self._is_name(j + 1):
                fields.append(raw[j + 1].text)
                j += 2
            after = raw[j] if j < end else None
            if after is not None and after.token_type in (T.L_BRACKET, T.DOT):
                what = "an element of a list" if type(key) is int else "an entry of a map"
                raise Refusal(f"{what} has no parts here: {_FLAT}", after.start)
        elif kind is T.STRING:
            typed = _TYPED.get(token.text.upper())
            if typed is not None and typed is not Kind.DOUBLE and len(path) == 1:
                return self.literal(j, False, typed)
        if token.token_type is not T.IDENTIFIER and token.text.upper() in _STARTS and reading.start is None:
            reading.start = (_STARTS[token.text.upper()], token.start)
        subject = Subject(tuple(path), key)
        if key is not None and fields:
            reading.computed = True
            entry = ComputedValue("entry", (ComputedValue("column", subject.path), key))
            subject = Subject((), computed=ComputedValue("field", (entry, *fields)))
        n = len(reading.subjects)
        reading.subjects.append(subject)
        reading.subject_at.append(token.start)
        token.token_type = T.VAR
        token.text = NUMBERS[n] if n < 1024 else str(n)
        reading.tokens.append(token)
        return j

    def _key(self, i: int) -> tuple[str | int, int]:
        """Returns the literal in ``[...]`` that starts at token i, and the token after it."""
        raw, j, sign = self.raw, i + 1, 1
        if j < self.end and raw[j].token_type is T.DASH:
            j, sign = j + 1, -1
        key: str | int | None = None
        around = j + 3 < self.end and raw[j].text.upper() in _PLACES and raw[j + 3].token_type is T.R_PAREN
        if around and raw[j + 1].token_type is T.L_PAREN:  # as in tags[OFFSET(0)]
            j += 2
        if j < self.end:
            token = raw[j]
            if token.token_type is T.NUMBER and token.text.isdigit() and token.text.isascii() and len(token.text) < 20:
                key, j = sign * int(token.text), j + 1
            elif token.token_type in (T.STRING, T.RAW_STRING) and sign == 1:
                key, j = self.string(j)
        j += around
        if key is None or j >= self.end or raw[j].token_type is not T.R_BRACKET:
            raise Refusal(
                "a literal key is needed in [...], a string or a whole number, as in attrs['colour']", raw[i].start
            )
        return key, j + 1

    def _function(self, i: int) -> int:
        raw, token = self.raw, self.raw[i]
        name = token.text.lower()
        plain = token.token_type is not T.IDENTIFIER
        if plain and name in _CASTS:
            return self._cast(i, _CASTS[name])
        if plain and name in _TUPLES:
            self._calls[-1] = _Call(None, name, token.start, False)
            return i + 1
        kind = _TYPED.get(_READ.get(name, name.upper())) if plain else None
        if kind is not None and i + 2 < self.end and raw[i + 2].token_type is T.STRING:
            _, j = self.string(i + 2)
            if j < self.end and raw[j].token_type is T.R_PAREN:
                self.literal(i + 2, False, kind)
                return j + 1
        if plain and name.upper() in _STARTS and name != "interval" and (name != "exists" or self._begins_query(i + 2)):
            raise Refusal(_STARTS[name.upper()], token.start)
        row = NAMES.get(name) if plain else None
        kind_of = row.kind if row is not None else VALUE if plain and name in _WRITTEN else SYNTAX
        if kind_of == SYNTAX:
            raise Refusal(advise_function(token.text), token.start)
        self._calls[-1] = _Call(row, name, token.start, kind_of == VALUE)
        self.reading.computed |= kind_of in (VALUE, ELEMENTS)
        self.reading.alone |= name == DOW
        own = name if row is None else row.name
        token.text = PREFIX + name if kind_of == VALUE else OF_ELEMENTS * (kind_of == ELEMENTS) + own
        token.token_type = T.ARRAY if token.text == "array" else T.VAR
        if token.token_type is T.ARRAY and self._is_apart(i):
            self._apart.add(i)
        self.reading.tokens.append(token)
        return i + 1

    def _is_apart(self, i: int) -> bool:
        """Returns whether the literals of the array at token i have a slot each."""
        out, raw = self.reading.tokens, self.raw
        if out and out[-1].token_type is T.AT_GT:
            return True
        if len(out) > 2 and out[-1].token_type is T.L_PAREN:  # behind ANY or ALL
            return out[-3].token_type in _ORDERS
        if len(out) > 3 and out[-1].token_type is T.COMMA:
            return "contains_all" in [token.text for token in out[-4:-2]]
        return (
            "<@" in self.text
            and self._end_of(i + 1) + 1 < self.end
            and raw[self._end_of(i + 1) + 1].token_type is T.LT_AT
        )

    def _end_of(self, i: int) -> int:
        """Returns the end of the parenthesis at token i, 0 if it is not closed."""
        if self._closed is None:
            self._closed = _find_closings(self.raw)
        return self._closed.get(i, (0, 0))[0]

    def _is_doubled(self, i: int) -> bool:
        """Returns whether a sign is written twice, as in ``a // b``."""
        raw = self.raw
        return i + 1 < self.end and raw[i].token_type is raw[i + 1].token_type and raw[i].end + 1 == raw[i + 1].start

    def _begins_query(self, i: int) -> bool:
        """Returns whether a query begins with token i."""
        return i < self.end and self.raw[i].text.upper() in ("SELECT", "WITH", "FROM", "(")

    def _cast(self, i: int, name: str) -> int:
        """Reads CAST(literal AS type) as a literal, where the type only names the literal's kind.

        Any other cast is a function of its value, with the number of the type in its name.
        """
        raw = self.raw
        j = i + 2
        negative = False
        if j < self.end and raw[j].token_type is T.DASH:
            j, negative = j + 1, True
        value = j
        if j < self.end and raw[j].token_type is T.STRING and not negative:
            _, j = self.string(j)
        elif j < self.end and raw[j].token_type is T.NUMBER:
            j += 1
        if j > value and [t.text.upper() for t in raw[j : j + 3 : 2]] == ["AS", ")"]:
            kind = _TYPED.get(raw[j + 1].text.upper())
            if kind is Kind.DOUBLE or (kind is not None and raw[value].token_type is T.STRING):
                self.literal(value, negative, kind)
                return j + 3
        if self._closed is None:
            self._closed = _find_closings(raw)
        j, word = self._closed.get(i + 1, (0, 0))
        if not i + 2 < word < j - 1:
            message = f"{name.upper()} takes a value and a type, as in {name.upper()}(age AS BIGINT)"
            raise Refusal(message, raw[i].start)
        self._skipped[word] = j
        self.reading.computed = True
        raw[i].token_type, raw[i].text = T.VAR, f"{CAST}{len(self.reading.casts)}"
        self.reading.casts.append((name, self.text[raw[word].end + 1 : raw[j].start].strip().lower()))
        self.reading.tokens.append(raw[i])
        return i + 1

    # Words and the rest

    def _any_case(self, i: int) -> int:
        """Reads the pattern behind ``~*``. Returns the token to continue from."""
        if i >= self.end or self.raw[i].token_type not in (T.STRING, T.RAW_STRING):
            return i
        i = self.literal(i, False)
        literals = self.reading.literals
        literals[-1] = f"(?i){literals[-1]}"
        self.reading.checked = True
        return i

    def _word(self, i: int, role: int) -> int:
        """Reads keywords where the grammar has them, and names everywhere else."""
        if i in self._skipped:
            return self._skipped[i]
        raw, out = self.raw, self.reading.tokens
        token = raw[i]
        kind = token.token_type
        before = out[-1].token_type if out else None
        if role == WORD:
            inside = {
                T.RLIKE: before in ENDS or before is T.NOT,
                T.DISTINCT: before is T.IS or (before is T.NOT and len(out) > 1 and out[-2].token_type is T.IS),
                T.FROM: before is T.DISTINCT,
                T.UNKNOWN: before is T.IS or (before is T.NOT and len(out) > 1 and out[-2].token_type is T.IS),
            }.get(kind, before is T.LIKE or before is T.ILIKE or before in _COMPARED)
            if inside and not (
                kind is T.RLIKE and before is T.NOT and not (len(out) > 1 and out[-2].token_type in ENDS)
            ):
                if kind is T.UNKNOWN:
                    token.token_type = T.NULL
                out.append(token)
                return self._any_case(i + 1) if token.text == ANY_CASE else i + 1
        if kind is T.DOT:
            return self.point(i)
        if kind in _OPERATORS and before in ENDS and not self._is_doubled(i):
            return self.operator(i)
        if kind is T.SIMILAR_TO and i + 1 < self.end and raw[i + 1].token_type is T.STRING:
            raise Refusal(f"'SIMILAR TO' is not expected here: {advise_similar(self.string(i + 1)[0])}", token.start)
        if self._is_name(i):
            return self._name(i)
        text = self.text[token.start : token.end + 1] * (2 if self._is_doubled(i) else 1)
        if kind is T.ARROW and before in ENDS:
            self.operators = 0
            out.append(token)  # the parser says whether a condition on elements may be here
            return i + 1
        if kind is T.SEMICOLON:
            if out and all(token.token_type is T.SEMICOLON for token in raw[i:]):
                self.reading.whole = True
                return self.end
            raise Refusal("one expression is needed, not several statements: take the ';' out", token.start)
        if kind is T.PLACEHOLDER and before in ENDS:
            raise Refusal("'?' is not expected here: write map_contains_key(attrs, 'os')", token.start)
        if kind is T.COLON and before not in ENDS and i + 1 < self.end:
            what = raw[i + 1].text
            advice = f"give :{what:.40} a value, as in Matcher.build(..., parameters={{'{what:.40}': 5}})"
            raise Refusal(f"':' is not expected here: {advice}", token.start)
        instead = advise_word("->>" if kind is T.COLON and before in ENDS else text)  # a path into JSON, or a parameter
        if kind in (T.PIPE, T.AMP, T.CARET, T.TILDE, T.DAMP):
            raise Refusal(f"operator {text!r} is not supported: {instead}", token.start)
        raise Refusal(
            f"{show_value(text)} is not expected here{f'; {ALLOWED}' if instead is None else f': {instead}'}",
            token.start,
        )


def _find_closings(raw: list[Token]) -> dict[int, tuple[int, int]]:
    """Maps the place of each parenthesis to its end and the last AS directly within it."""
    closings: dict[int, tuple[int, int]] = {}
    open: list[int] = []
    last: list[int] = []
    for j, token in enumerate(raw):
        type = token.token_type
        if type is T.L_PAREN:
            open.append(j)
            last.append(0)
        elif type is T.R_PAREN and open:
            closings[open.pop()] = j, last.pop()
        elif type is T.ALIAS and open:
            last[-1] = j
    return closings
