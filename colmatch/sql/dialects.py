"""Words of other dialects, rewritten for the language before tokens are read."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from colmatch.expr.ast import Refusal
from colmatch.expr.computed import AT_ZONE, CASE_OF, SECONDS, TRIMS
from colmatch.expr.functions import ELEMENTS, NAMES, SYNONYMS, TABLE
from colmatch.expr.intervals import UNITS
from colmatch.sql.json_steps import has_steps, json_steps
from colmatch.sql.lists import LISTS, copy_token, rewrite_lists
from colmatch.sql.xor import separate

T = TokenType

# A text without these has nothing to rewrite. A regular expression took ten times as long.
_REWRITTEN = (
    "isnull", "notnull", "extract", "element_at", "date_part", "datepart", "substr", "trim", "case", "::", "~", "lambda", "->",
    "interval", "position", "zone", "overlay",
)  # fmt: skip
_UNITS = {
    "dow": "dow", "doy": "dayofyear", "weeks": "week", "years": "year", "months": "month", "days": "day",
    "hours": "hour", "minutes": "minute", "epoch": "epoch",
    **dict.fromkeys(("second", "seconds", "sec", "secs"), SECONDS),
}  # fmt: skip  # of EXTRACT, beside the names of functions
_PARTS = [name for name, function in TABLE.items() if function.rule == "_part" or name in ("epoch", "dayofweek_iso")]
_QUOTED = (T.IDENTIFIER, T.STRING, T.RAW_STRING)
_TEXTS = (T.STRING, T.RAW_STRING)
_NULLS = {"isnull": (T.IS, T.NULL), "isnotnull": (T.IS, T.NOT, T.NULL)}
_BEHIND = {"isnull": (T.IS, T.NULL), "notnull": (T.IS, T.NOT, T.NULL)}  # PostgreSQL's: a ISNULL
_OPERATORS = frozenset(
    {T.EQ, T.NEQ, T.LT, T.LTE, T.GT, T.GTE, T.NULLSAFE_EQ, T.IS, T.IN, T.BETWEEN, T.LIKE, T.ILIKE, T.RLIKE, T.AND, T.OR}
    | {T.COMMA, T.R_PAREN, T.DOT, T.PLUS, T.STAR, T.SLASH, T.MOD, T.DPIPE, T.DIV, T.DCOLON}
)
_ENDS = frozenset({T.VAR, T.IDENTIFIER, T.R_PAREN, T.R_BRACKET, T.NUMBER, T.STRING, T.RAW_STRING, T.NULL})
ANY_CASE = "~*"  # the text of an RLIKE without regard to case
_FROM = "substring from"  # an open substring after its FROM
_CASE, _OF = "case", CASE_OF  # an open CASE without a value and with one
_TRIM = "trim from"  # an open trim, with its characters for the token
_SIDES = {"BOTH": "btrim", **{side: name for name, side in TRIMS.items()}}


def rewrite(text: str, tokens: list[Token]) -> tuple[list[Token], bool]:
    """Returns tokens of the language for tokens of other dialects.

    The Boolean is True if the text has a meaning only as a whole: a part of it, cut at an AND or
    OR, may mean something else.

    - ``isnull(x)`` becomes ``((x) IS NULL)``
    - ``extract(year FROM day)`` becomes ``year(day)``
    - ``element_at(attrs, 'k')`` becomes ``attrs['k']``
    - ``CASE WHEN a THEN b END`` becomes ``case(a, b)``
    - ``lambda x: x > 5`` becomes ``x -> x > 5``
    - ``INTERVAL 7 DAYS`` becomes ``interval('7 DAYS')``
    - ``position('x' IN s)`` becomes ``position('x', s)``, and so does ``overlay(s PLACING ...)``
    - ``trim(BOTH 'x' FROM s)`` becomes ``btrim(s, 'x')``
    - ``at AT TIME ZONE 'UTC'`` becomes a call of a function with the name of the words
    - ``x ~ 'a'`` becomes ``x RLIKE 'a'``, and ``x::int`` becomes ``CAST(x AS int)``
    - ``doc:a.b`` and ``doc->'a'->>'b'`` become calls of functions with the names of the signs
    """
    lower = text.lower()
    if any(word in lower for word in LISTS):
        tokens = rewrite_lists(tokens)
    is_whole = "xor" in lower
    if is_whole:
        tokens = separate(tokens)
    if any(word in lower for word in _REWRITTEN) or has_steps(text, tokens):
        tokens = _write_behind(_Rewriter(tokens).run())
    return tokens, is_whole


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
            elif token.text.lower() == "interval" and (end := self._interval(i)):
                i = end
            elif after is T.L_PAREN and kind is not T.CASE:
                i = self._write_call(i)
            else:
                i = self._word(i, after)
        if self._open and self._open[-1][0] in (_CASE, _OF):
            raise Refusal("CASE is not closed: END is missing", self._open[-1][1].start)
        return out

    def _interval(self, i: int) -> int:
        """Writes the interval behind a word as a call. Returns the token behind it, 0 for none."""
        tokens, parts, j = self._tokens, list[str](), i + 1
        first: Token | None = None  # number or text
        while j < len(tokens):
            signs = 0
            while j + signs < len(tokens) and tokens[j + signs].token_type in (T.DASH, T.PLUS):
                signs += 1
            at = j + signs
            if at >= len(tokens) or tokens[at].token_type not in (T.NUMBER, *_TEXTS):
                break
            unit = tokens[at + 1].text.lower() if at + 1 < len(tokens) else ""
            is_text, has_unit = tokens[at].token_type in _TEXTS, unit in UNITS
            if not is_text and not has_unit:
                break
            negative = sum(token.token_type is T.DASH for token in tokens[j:at]) % 2
            value = tokens[at].text
            if negative and is_text and not value.strip().isdigit():
                raise Refusal("write the sign of an interval within its quotes", tokens[j].start)
            first = first or tokens[at]
            parts.append(f"{'-' * negative}{value} {unit * has_unit}".rstrip())
            j = at + 1 + has_unit
            if (
                has_unit
                and j + 1 < len(tokens)
                and tokens[j].text.lower() == "to"
                and tokens[j + 1].text.lower() in UNITS
            ):
                parts[-1] += f" to {tokens[j + 1].text.lower()}"
                j += 2
                break
            if is_text and not has_unit:
                break
        if first is None:
            return 0
        self._out += [copy_token(self._tokens[i], T.VAR, "interval"), copy_token(first, T.L_PAREN, "(")]
        self._out += [copy_token(first, T.RAW_STRING, " ".join(parts)), copy_token(tokens[j - 1], T.R_PAREN, ")")]
        return j

    def _write_call(self, i: int) -> int:
        """Writes the word before a parenthesis. Returns the token to continue from."""
        tokens, out, token = self._tokens, self._out, self._tokens[i]
        name = token.text.lower()
        if name in _NULLS and token.token_type is not T.IDENTIFIER:
            out += [copy_token(token, T.L_PAREN, "("), tokens[i + 1]]
        elif name == "extract":
            unit = tokens[i + 2].text.lower() if i + 3 < len(tokens) and tokens[i + 3].token_type is T.FROM else ""
            out += [copy_token(token, T.VAR, _part(unit, token)), tokens[i + 1]]
            i += 2
        elif name in ("date_part", "datepart"):
            fits = i + 3 < len(tokens) and tokens[i + 2].token_type in _TEXTS and tokens[i + 3].token_type is T.COMMA
            out += [copy_token(token, T.VAR, _part(tokens[i + 2].text.lower() if fits else "", token)), tokens[i + 1]]
            i += 2
        elif name == "trim" and (end := self._trim(i)):
            return end
        elif name in ("position", "overlay"):
            out += [token, tokens[i + 1]]
        elif name == "element_at" and not self._is_numbered(i + 2):
            pass
        elif SYNONYMS.get(name, name) == "substring":
            out += [token, tokens[i + 1]]
            name = "substring"
        else:
            return self._word(i, T.L_PAREN)
        self._open.append((name if name not in ("extract", "date_part", "datepart") else "", token))
        return i + 2

    def _trim(self, i: int) -> int:
        """Writes ``trim(BOTH 'x' FROM name)`` as a call.

        Returns the token behind FROM, 0 without it.
        """
        tokens, j = self._tokens, i + 2
        side = tokens[j].text.upper() if j < len(tokens) else ""
        j += side in _SIDES
        is_text = j < len(tokens) and tokens[j].token_type in _TEXTS
        if j + is_text >= len(tokens) or tokens[j + is_text].token_type is not T.FROM:
            if side in _SIDES:
                raise Refusal(
                    "write trim(BOTH 'x' FROM name), or trim(name), which takes spaces away", tokens[i + 2].start
                )
            return 0
        from_ = tokens[j + is_text]
        characters = tokens[j] if is_text else copy_token(from_, T.RAW_STRING, " ")
        self._out += [copy_token(tokens[i], T.VAR, _SIDES.get(side, "btrim")), tokens[i + 1]]
        self._open.append((_TRIM, characters))
        return j + is_text + 1

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
        elif kind is T.COMMA and within in _NULLS:
            raise Refusal(NAMES[within].find_fault(within, 2), open[-1][1].start)
        elif kind is T.COMMA and within == "element_at":
            open[-1] = "key", open[-1][1]
            token = copy_token(token, T.L_BRACKET, "[")
        elif within == "position" and kind is T.IN:
            token = copy_token(token, T.COMMA, ",")
            open[-1] = "", open[-1][1]
        elif within == "overlay" and (kind in (T.FROM, T.FOR) or token.text.upper() == "PLACING"):
            token = copy_token(token, T.COMMA, ",")
        elif within == "substring" and kind is T.FOR:  # from the beginning
            out += [copy_token(token, T.COMMA, ","), copy_token(token, T.NUMBER, "1")]
            open[-1] = "", open[-1][1]
            token = copy_token(token, T.COMMA, ",")
        elif within == "substring" and kind is T.FROM:
            open[-1] = _FROM, open[-1][1]
            token = copy_token(token, T.COMMA, ",")
        elif within == _FROM and kind is T.FOR:
            token = copy_token(token, T.COMMA, ",")
        elif kind is T.CASE and after is not None and (after not in _OPERATORS):
            form = _CASE if after is T.WHEN else _OF
            open.append((form, token))
            out += [copy_token(token, T.VAR, form), copy_token(token, T.L_PAREN, "(")]
            return i + (2 if form is _CASE else 1)
        elif within in (_CASE, _OF) and kind in (T.WHEN, T.THEN, T.ELSE):
            token = copy_token(token, T.COMMA, ",")
        elif within in (_CASE, _OF) and kind is T.END:
            open.pop()
            token = copy_token(token, T.R_PAREN, ")")
        elif kind is T.TILDE and self._is_ended():
            token = copy_token(token, T.RLIKE, "RLIKE")
        elif token.text.lower() == "lambda" and i + 2 < len(self._tokens) and self._tokens[i + 2].token_type is T.COLON:
            out += [self._tokens[i + 1], copy_token(self._tokens[i + 2], T.ARROW, "->")]
            return i + 3
        elif kind is T.IRLIKE and self._is_ended():
            token = copy_token(token, T.RLIKE, ANY_CASE)
        elif kind in (T.ISNULL, T.NOTNULL) and self._is_ended():
            out += [copy_token(token, word, word.name) for word in _BEHIND[token.text.lower()]]
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
            raise Refusal(TABLE[function].find_fault(function, 1), at.start)
        if function == _TRIM:
            self._out += [copy_token(token, T.COMMA, ","), at]
        self._out.append(copy_token(token, T.R_BRACKET, "]") if function == "key" else token)
        if function in _NULLS:
            self._out += [copy_token(token, word, word.name) for word in _NULLS[function]]
            self._out.append(copy_token(token, T.R_PAREN, ")"))


def _part(unit: str, token: Token) -> str:
    """Returns the function for a part of a date."""
    part = _UNITS.get(unit, unit)
    if SYNONYMS.get(part, part) not in _PARTS and part != SECONDS:
        name = token.text.lower()
        example = "extract(year FROM day)" if name == "extract" else f"{name}('year', day)"
        raise Refusal(f"{name} takes a part of a date, as in {example}: {', '.join(_PARTS)}", token.start)
    return part


def _write_behind(tokens: list[Token]) -> list[Token]:
    """Writes what stands behind an operand before it: ``x::int`` as ``CAST(x AS int)``."""
    before: dict[int, list[Token]] = {}  # tokens to put before a token
    begin: list[int] = []  # begin of the operand that ends with each token
    open: list[int] = []
    out: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        kind = token.token_type
        if kind is T.DCOLON and i and tokens[i - 1].start != token.start:  # else it is the suffix of a number
            if i + 1 < len(tokens) and tokens[i + 1].text.upper() == "VARIANT" and tokens[i - 1].token_type in _TEXTS:
                i += 2
                continue
            # Put CAST( before the operand, and the type with a parenthesis behind it
            first = begin[-1]
            end = _type_end(tokens, i)
            before.setdefault(first, [])[:0] = [copy_token(token, T.VAR, "CAST"), copy_token(token, T.L_PAREN, "(")]
            last = tokens[end - 1]
            close = Token(T.R_PAREN, ")", last.line, last.col, last.end + 1, last.end + 1)
            out += [copy_token(token, T.ALIAS, "AS"), *tokens[i + 1 : end], close]
            begin += [first] * (end - i + 1)
            i = end
            continue
        if i and [one.text.upper() for one in tokens[i : i + 3]] == ["AT", "TIME", "ZONE"]:
            before.setdefault(begin[-1], [])[:0] = [
                copy_token(token, T.VAR, AT_ZONE),
                copy_token(token, T.L_PAREN, "("),
            ]
            zone = tokens[i + 3 : i + 4]
            if not zone or zone[0].token_type not in _TEXTS:
                raise Refusal(
                    "AT TIME ZONE takes the name of a zone, as in at AT TIME ZONE 'Europe/Berlin'", token.start
                )
            out += [copy_token(token, T.COMMA, ","), *zone, copy_token(zone[0], T.R_PAREN, ")")]
            begin += [begin[-1]] * 3
            i += 4
            continue
        steps = [] if kind is T.ARROW and open and _is_lambda(out, open[-1]) else json_steps(tokens, i)
        for step in steps:
            first = begin[-1]
            before.setdefault(first, [])[:0] = [
                copy_token(token, T.VAR, step.function),
                copy_token(token, T.L_PAREN, "("),
            ]
            last = tokens[step.end - 1]
            out += [copy_token(step.sign, T.COMMA, ","), *step.key, copy_token(last, T.R_PAREN, ")")]
            begin += [first] * (len(step.key) + 2)
            i = step.end
        if steps:
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
    return [one for place, token in enumerate(out) for one in (*before.get(place, ()), token)]


def _is_lambda(out: list[Token], begin: int) -> bool:
    """Returns whether the last token is the name that a condition on elements begins with.

    begin : place of the function that has the condition
    """
    function = NAMES.get(out[begin].text.lower())
    return function is not None and function.kind is ELEMENTS and out[-2].token_type is T.COMMA


def _goes_on(before: TokenType, kind: TokenType) -> bool:
    """Returns whether a token belongs to the same operand as the token before it."""
    if before in (T.DOT, T.DCOLON) or kind in (T.DOT, T.DCOLON):  # a name, or the suffix of a number
        return True
    return kind is T.STRING and before in (T.DATE, T.TIMESTAMP, T.TIMESTAMPTZ, T.TIMESTAMPLTZ, T.STRING)


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
