"""Functions of other dialects, written as the language has them, before tokens are read."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token, TokenType

from colmatch.expr.ast import Refusal
from colmatch.expr.computed import PARTS

T = TokenType

_REWRITTEN = re.compile(r"\b(?:isnull|isnotnull|extract|element_at)\s*\(", re.IGNORECASE)
_UNITS = {"dow": "dayofweek", "doy": "dayofyear"}  # of EXTRACT, beside the names of functions
_QUOTED = (T.IDENTIFIER, T.STRING, T.RAW_STRING)
_NULLS = {"isnull": (T.IS, T.NULL, T.R_PAREN), "isnotnull": (T.IS, T.NOT, T.NULL, T.R_PAREN)}


def rewritten(text: str, tokens: list[Token]) -> list[Token]:
    """Returns tokens in which ``isnull(x)`` is ``((x) IS NULL)``, ``extract(year FROM day)`` is
    ``year(day)``, and ``element_at(attrs, 'k')`` is ``attrs['k']``.
    """
    if not _REWRITTEN.search(text):
        return tokens
    out: list[Token] = []
    called: list[tuple[str, Token]] = []  # for each open parenthesis, the function that is to be written otherwise
    i, end = 0, len(tokens)
    while i < end:
        token = tokens[i]
        kind, i = token.token_type, i + 1
        calls = kind not in _QUOTED and i < end and tokens[i].token_type is T.L_PAREN
        name = token.text.lower() if calls else ""
        if name in _NULLS:
            out += [_copied(token, T.L_PAREN, "("), tokens[i]]
        elif name == "extract":
            unit = tokens[i + 1].text.lower() if i + 2 < end and tokens[i + 2].token_type is T.FROM else ""
            part = _UNITS.get(unit, unit)
            if part not in PARTS:
                raise Refusal(
                    f"extract takes a part of a date, as in extract(year FROM day): {', '.join(PARTS)}", token.start
                )
            out += [_copied(token, T.VAR, part), tokens[i]]
            i += 2
        elif name != "element_at":
            if kind is T.L_PAREN:
                called.append(("", token))
            elif kind is T.COMMA and called and called[-1][0] == "element_at":
                called[-1] = "key", called[-1][1]
                token = _copied(token, T.L_BRACKET, "[")
            elif kind is T.R_PAREN and called:
                function, at = called.pop()
                if function == "element_at":
                    raise Refusal(
                        "element_at takes a map and a literal key, as in element_at(attrs, 'colour')", at.start
                    )
                if function == "key":
                    token = _copied(token, T.R_BRACKET, "]")
                elif function:
                    out.append(token)
                    out += [_copied(token, word, ")" if word is T.R_PAREN else word.name) for word in _NULLS[function]]
                    continue
            out.append(token)
            continue
        called.append((name if name != "extract" else "", token))
        i += 1
    return out


def _copied(token: Token, kind: TokenType, text: str) -> Token:
    """Returns another token at the place of one."""
    return Token(kind, text, token.line, token.col, token.start, token.end)
