"""Signs of other dialects for values in JSON texts: ``doc:a.b[0]``, ``doc->'a'->>'b'``.

``dialects.py`` writes each step as a call of a function with the name of the sign.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlglot.tokenizer_core import Token, TokenType

from colmatch.expr.ast import Refusal
from colmatch.expr.computed import JSON_FIELD, JSON_TEXT, JSON_VALUE

T = TokenType
_SIGNS = {T.ARROW: JSON_VALUE, T.DARROW: JSON_TEXT, T.COLON: JSON_FIELD}
_BEFORE = (T.NUMBER, T.VAR, T.IDENTIFIER, T.R_PAREN, T.R_BRACKET, T.STRING)  # ends of a text; a place for arrows only
_TEXTS = (T.STRING, T.RAW_STRING)


class JsonStep(NamedTuple):
    """A step of a path.

    function : the sign that it is written with
    sign : its first token
    key : its literal or name
    end : the token behind it
    """

    function: str
    sign: Token
    key: list[Token]
    end: int


def has_steps(text: str, tokens: list[Token]) -> bool:
    """Returns whether a text may have steps behind a colon."""
    return ":" in text and T.COLON in [token.token_type for token in tokens]


def json_steps(tokens: list[Token], i: int) -> list[JsonStep]:
    """Returns the steps of a path that begins with token i; none if no path begins there.

    Raises Refusal: a step is not finished.
    """
    sign = tokens[i].token_type
    if sign not in _SIGNS or not i or tokens[i - 1].token_type not in _BEFORE[sign is T.COLON :]:
        return []
    if sign is not T.COLON:
        key = _literal(tokens, i + 1)
        return [JsonStep(_SIGNS[sign], tokens[i], key, i + 1 + len(key))] if key else []
    steps: list[JsonStep] = []
    while i < len(tokens) and tokens[i].token_type in (T.COLON, T.DOT, T.L_BRACKET):
        first = tokens[i]
        i += first.token_type is T.COLON and _kind(tokens, i + 1) is T.L_BRACKET
        if tokens[i].token_type is T.L_BRACKET:
            key = _literal(tokens, i + 1)
            end = i + 2 + len(key)
            if not key or _kind(tokens, end - 1) is not T.R_BRACKET:
                raise Refusal("a literal key or place is needed in [...], as in doc:a['k'][0]", tokens[i].start)
        else:
            key, end = _name(tokens, i + 1), i + 2
            if not key and steps:
                raise Refusal(f"a name is needed behind {first.text!r}, as in doc:a.b", first.start)
            if not key:
                return []
        steps.append(JsonStep(JSON_FIELD, first, key, end))
        i = end
    return steps


def _kind(tokens: list[Token], i: int) -> TokenType | None:
    return tokens[i].token_type if i < len(tokens) else None


def _literal(tokens: list[Token], i: int) -> list[Token]:
    """Returns the tokens of the literal that begins with token i."""
    if _kind(tokens, i) is T.DASH and _kind(tokens, i + 1) is T.NUMBER:
        return tokens[i : i + 2]
    return tokens[i : i + 1] if _kind(tokens, i) in (*_TEXTS, T.NUMBER) else []


def _name(tokens: list[Token], i: int) -> list[Token]:
    """Returns the name at token i, which may be a keyword elsewhere."""
    if i >= len(tokens):
        return []
    token = tokens[i]
    if token.token_type in _TEXTS or not (token.token_type is T.IDENTIFIER or token.text[:1].isidentifier()):
        return []
    return [Token(T.IDENTIFIER, token.text, token.line, token.col, token.start, token.end)]
