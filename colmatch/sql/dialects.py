"""Words of other dialects, rewritten for the language before tokens are read."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from colmatch.expr.ast import Refusal
from colmatch.expr.computed import PARTS, SYNONYMS

T = TokenType

# A text without these has nothing to rewrite. A regular expression took ten times as long.
_REWRITTEN = (
    "isnull", "notnull", "extract", "element_at", "date_part", "datepart", "substr", "trim", "case", "::", "~",
)  # fmt: skip
_UNITS = {
    "dow": "dow", "doy": "dayofyear", "weeks": "week", "years": "year", "months": "month", "days": "day",
    "hours": "hour", "minutes": "minute", "seconds": "second",
}  # fmt: skip  # of EXTRACT, beside the names of functions
_QUOTED = (T.IDENTIFIER, T.STRING, T.RAW_STRING)
_TEXTS = (T.STRING, T.RAW_STRING)
_NULLS = {"isnull": (T.IS, T.NULL), "isnotnull": (T.IS, T.NOT, T.NULL)}
_BEHIND = {"isnull": (T.IS, T.NULL), "notnull": (T.IS, T.NOT, T.NULL)}  # PostgreSQL's: a ISNULL
_OPERATORS = frozenset(
    {T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE, T.NULLSAFE_EQ, T.IS, T.IN, T.BETWEEN, T.LIKE, T.ILIKE, T.RLIKE, T.AND, T.OR}
    | {T.COMMA, T.R_PAREN, T.DOT, T.PLUS, T.STAR, T.SLASH, T.MOD, T.DPIPE, T.DIV, T.DCOLON}
)
_ENDS = frozenset({T.VAR, T.IDENTIFIER, T.R_PAREN, T.R_BRACKET, T.NUMBER, T.STRING, T.RAW_STRING, T.NULL})
_FROM = "substring from"  # an open substring after its FROM
_CASE, _OF = "case", "case_of"  # an open CASE without a value and with one


def rewrite(text: str, tokens: list[Token]) -> list[Token]:
    """Returns tokens of the language for tokens of other dialects.

    - ``isnull(x)`` becomes ``((x) IS NULL)``
    - ``extract(year FROM day)`` becomes ``year(day)``
    - ``element_at(attrs, 'k')`` becomes ``attrs['k']``
    - ``CASE WHEN a THEN b END`` becomes ``case(a, b)``
    - ``x ~ 'a'`` becomes ``x RLIKE 'a'``, and ``x::int`` becomes ``CAST(x AS int)``
    """
    lower = text.lower()
    if not any(word in lower for word in _REWRITTEN):
        return tokens
    return _cast(_Rewriter(tokens).run())


class _Rewriter:
    """A rewriter of words of other dialects, in one pass over the tokens of a text."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._out: list[Token] = []
        # for each open parenthesis and CASE, the word that is rewritten, and its token
        self._open: list[tuple[str, Token]] = []

    def run(self) -> list[Token]:
        tokens, out, i = self._tokens, self._out, 0
        while i < len(tokens):
            token = tokens[i]
            kind, after = token.token_type, tokens[i + 1].token_type if i + 1 < len(tokens) else None
            if kind in _QUOTED or (i and tokens[i - 1].token_type is T.DOT):
                out.append(token)
                i += 1
            elif after is T.L_PAREN and kind is not T.CASE:
                i = self._write_call(i)
            else:
                i = self._word(i, after)
        if self._open and self._open[-1][0] in (_CASE, _OF):
            raise Refusal("CASE is not closed: END is missing", self._open[-1][1].start)
        return out

    def _write_call(self, i: int) -> int:
        """Writes the word before a parenthesis. Returns the token to continue from."""
        tokens, out, token = self._tokens, self._out, self._tokens[i]
        name = token.text.lower()
        if name in _NULLS and token.token_type is not T.IDENTIFIER:
            out += [_copy_token(token, T.L_PAREN, "("), tokens[i + 1]]
        elif name == "extract":
            unit = tokens[i + 2].text.lower() if i + 3 < len(tokens) and tokens[i + 3].token_type is T.FROM else ""
            out += [_copy_token(token, T.VAR, _part(unit, token)), tokens[i + 1]]
            i += 2
        elif name in ("date_part", "datepart"):
            fits = i + 3 < len(tokens) and tokens[i + 2].token_type in _TEXTS and tokens[i + 3].token_type is T.COMMA
            out += [_copy_token(token, T.VAR, _part(tokens[i + 2].text.lower() if fits else "", token)), tokens[i + 1]]
            i += 2
        elif name == "trim" and i + 2 < len(tokens) and tokens[i + 2].text.upper() in ("BOTH", "LEADING", "TRAILING"):
            raise Refusal("write trim(name), ltrim(name) or rtrim(name), which take spaces away", tokens[i + 2].start)
        elif name == "element_at" and not self._is_numbered(i + 2):
            pass
        elif SYNONYMS.get(name, name) == "substring":
            out += [token, tokens[i + 1]]
            name = "substring"
        else:
            return self._word(i, T.L_PAREN)
        self._open.append((name if name not in ("extract", "date_part", "datepart") else "", token))
        return i + 2

    def _is_numbered(self, i: int) -> bool:
        """Returns whether the arguments that begin with token i are a name and a number."""
        tokens = self._tokens
        while i < len(tokens) and tokens[i].token_type not in (T.COMMA, T.L_PAREN, T.R_PAREN):
            i += 1
        return i + 1 < len(tokens) and tokens[i + 1].token_type in (T.NUMBER, T.DASH)

    def _word(self, i: int, after: TokenType | None) -> int:
        """Writes a word or sign. Returns the token to continue from."""
        out, token = self._out, self._tokens[i]
        kind, open = token.token_type, self._open
        within = open[-1][0] if open else ""
        if kind is T.L_PAREN:
            open.append(("", token))
        elif kind is T.R_PAREN and open:
            self._close(token)
            return i + 1
        elif kind is T.COMMA and within == "element_at":
            open[-1] = "key", open[-1][1]
            token = _copy_token(token, T.L_BRACKET, "[")
        elif within == "substring" and kind is T.FOR:  # from the beginning
            out += [_copy_token(token, T.COMMA, ","), _copy_token(token, T.NUMBER, "1")]
            open[-1] = "", open[-1][1]
            token = _copy_token(token, T.COMMA, ",")
        elif within == "substring" and kind is T.FROM:
            open[-1] = _FROM, open[-1][1]
            token = _copy_token(token, T.COMMA, ",")
        elif within == _FROM and kind is T.FOR:
            token = _copy_token(token, T.COMMA, ",")
        elif kind is T.CASE and after is not None and (after not in _OPERATORS):
            form = _CASE if after is T.WHEN else _OF
            open.append((form, token))
            out += [_copy_token(token, T.VAR, form), _copy_token(token, T.L_PAREN, "(")]
            return i + (2 if form is _CASE else 1)
        elif within in (_CASE, _OF) and kind in (T.WHEN, T.THEN, T.ELSE):
            token = _copy_token(token, T.COMMA, ",")
        elif within in (_CASE, _OF) and kind is T.END:
            open.pop()
            token = _copy_token(token, T.R_PAREN, ")")
        elif kind is T.TILDE and self._is_ended():
            token = _copy_token(token, T.RLIKE, "RLIKE")
        elif kind in (T.ISNULL, T.NOTNULL) and self._is_ended():
            out += [_copy_token(token, word, word.name) for word in _BEHIND[token.text.lower()]]
            return i + 1
        out.append(token)
        return i + 1

    def _is_ended(self) -> bool:
        """Returns whether an operand has just ended, or a NOT behind one."""
        words = [token.token_type for token in self._out[-2:]]
        if not words or words[-1] in _ENDS:
            return bool(words)
        return (words[-1] is T.NOT and words[0] in _ENDS) or words[0] is T.DCOLON  # a type behind ::

    def _close(self, token: Token) -> None:
        """Writes a closing parenthesis."""
        function, at = self._open.pop()
        if function in (_CASE, _OF):
            raise Refusal("CASE is not closed: END is missing", at.start)
        if function == "element_at":
            raise Refusal("element_at takes a map and a literal key, as in element_at(attrs, 'colour')", at.start)
        self._out.append(_copy_token(token, T.R_BRACKET, "]") if function == "key" else token)
        if function in _NULLS:
            self._out += [_copy_token(token, word, word.name) for word in _NULLS[function]]
            self._out.append(_copy_token(token, T.R_PAREN, ")"))


def _part(unit: str, token: Token) -> str:
    """Returns the function for a part of a date."""
    part = _UNITS.get(unit, unit)
    if SYNONYMS.get(part, part) not in PARTS:
        name = token.text.lower()
        example = "extract(year FROM day)" if name == "extract" else f"{name}('year', day)"
        raise Refusal(f"{name} takes a part of a date, as in {example}: {', '.join(PARTS)}", token.start)
    return part


def _cast(tokens: list[Token]) -> list[Token]:
    """Writes ``x::int`` as ``CAST(x AS int)``."""
    before: dict[int, list[Token]] = {}  # tokens to put before a token
    begin: list[int] = []  # begin of the operand that ends with each token
    open: list[int] = []
    out: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        kind = token.token_type
        if kind is T.DCOLON and i and tokens[i - 1].start != token.start:  # else it is the suffix of a number
            # Put CAST( before the operand, and the type with a parenthesis behind it
            first = begin[-1]
            end = _type_end(tokens, i)
            before.setdefault(first, [])[:0] = [_copy_token(token, T.VAR, "CAST"), _copy_token(token, T.L_PAREN, "(")]
            last = tokens[end - 1]
            close = Token(T.R_PAREN, ")", last.line, last.col, last.end + 1, last.end + 1)
            out += [_copy_token(token, T.ALIAS, "AS"), *tokens[i + 1 : end], close]
            begin += [first] * (end - i + 1)
            i = end
            continue
        # Note where the operand with this token begins
        place = len(out)
        if kind in (T.L_PAREN, T.L_BRACKET):
            called = kind is T.L_BRACKET or (place > 0 and _is_name(out[-1]))
            open.append(begin[-1] if called and begin else place)
            begin.append(open[-1])
        elif kind in (T.R_PAREN, T.R_BRACKET) and open:
            begin.append(open.pop())
        else:
            begin.append(begin[-1] if place and _goes_on(tokens[i - 1].token_type, kind) else place)
        out.append(token)
        i += 1
    if not before:
        return tokens
    return [one for place, token in enumerate(out) for one in (*before.get(place, ()), token)]


def _goes_on(before: TokenType, kind: TokenType) -> bool:
    """Returns whether a token belongs to the same operand as the token before it."""
    if before in (T.DOT, T.DCOLON) or kind in (T.DOT, T.DCOLON):  # a name, or the suffix of a number
        return True
    return kind is T.STRING and before in (T.DATE, T.TIMESTAMP, T.TIMESTAMPLTZ, T.STRING)


def _is_name(token: Token) -> bool:
    """Returns whether a parenthesis behind the token calls a function."""
    words = (T.AND, T.OR, T.NOT, T.IN, T.WHEN, T.THEN, T.ELSE, T.BETWEEN, T.LIKE, T.ILIKE, T.RLIKE, T.ANY, T.ALL, T.IS)
    return token.token_type not in (*words, *_TEXTS) and token.text[:1].isidentifier()


def _type_end(tokens: list[Token], i: int) -> int:
    """Returns the token behind the type that follows the ``::`` at token i."""
    end = i + 2
    if end > len(tokens):
        raise Refusal("a type is missing behind '::', as in age::bigint", tokens[i].start)
    if end < len(tokens) and tokens[end].token_type is T.L_PAREN:
        while end < len(tokens) and tokens[end].token_type is not T.R_PAREN:
            end += 1
        end += 1
    return min(end, len(tokens))


def _copy_token(token: Token, kind: TokenType, text: str) -> Token:
    """Makes another token at the place of one."""
    return Token(kind, text, token.line, token.col, token.start, token.end)
