"""``a XOR b`` between conditions, whose operands get parentheses."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

from colmatch.expr.ast import Refusal
from colmatch.sql.lists import copy_token

T = TokenType

XOR = T.QMARK_AMP  # the token between two conditions; sqlglot's dialect of Spark has none
_NO_OPERAND = frozenset({T.AND, T.OR, T.NOT, T.XOR, T.L_PAREN, T.COMMA})
_STEPS = frozenset({T.WHEN, T.THEN, T.ELSE})  # within CASE


@dataclass(slots=True)
class _Part:
    """A part with its own XORs: a text, or a part between parentheses, commas or words of CASE."""

    begin: int
    is_case: bool = False
    between: bool = False  # the next AND belongs to BETWEEN
    xors: list[int] = field(default_factory=list)
    words: int = 0  # ANDs and ORs


def separate(tokens: list[Token]) -> list[Token]:
    """Returns tokens with parentheses around both operands of each XOR, whose type is then ``XOR``.

    Dialects differ in the order of XOR, AND and OR, so parentheses must separate them.

    Raises Refusal: an XOR and another word are in one pair of parentheses.
    """
    before: dict[int, list[Token]] = {}  # what to write before each token
    last = len(tokens) - (tokens[-1].token_type is T.SEMICOLON)
    parts = [_Part(int(tokens[0].token_type is T.WHERE))]
    for i, token in enumerate(tokens):
        kind, part = token.token_type, parts[-1]
        if kind is T.L_PAREN or kind is T.CASE:
            parts.append(_Part(i + 1, kind is T.CASE))
        elif len(parts) > 1 and (kind is T.END if part.is_case else kind is T.R_PAREN):
            _separate(tokens, before, parts.pop(), i)
        elif kind is T.COMMA or (part.is_case and kind in _STEPS) or (kind is T.ARROW and _is_lambda(tokens, i, part)):
            _separate(tokens, before, part, i)
            parts[-1] = _Part(i + 1, part.is_case)
        elif kind is T.XOR and i and i + 1 < last and tokens[i - 1].token_type not in _NO_OPERAND:
            part.xors.append(i)
        elif kind is T.AND and part.between:
            part.between = False
        elif kind is T.AND or kind is T.OR:
            part.words += 1
        elif kind is T.BETWEEN:
            part.between = True
    if len(parts) == 1:
        _separate(tokens, before, parts[0], last)
    out: list[Token] = []
    for i, token in enumerate(tokens):
        out += before.get(i, [])
        out.append(copy_token(token, XOR, "XOR") if i in before and token.token_type is T.XOR else token)
        out += before.get(~i, [])
    return out


def _is_lambda(tokens: list[Token], i: int, part: _Part) -> bool:
    """Returns whether the arrow at token i is behind the name of an element, and before no key."""
    return part.begin == i - 1 and tokens[i + 1].token_type not in (T.STRING, T.NUMBER)


def _separate(tokens: list[Token], before: dict[int, list[Token]], part: _Part, end: int) -> None:
    """Notes the parentheses around the two operands of an XOR, up to token ``end``.

    ``before[i]`` is written before token i, and ``before[~i]`` behind it.
    """
    if not part.xors:
        return
    if part.words or len(part.xors) > 1:
        raise Refusal(
            "XOR has no fixed order among AND, OR and XOR: put parentheses around each, as in (a XOR b) AND c",
            tokens[part.xors[0]].start,
        )
    (at,) = part.xors
    open, close = copy_token(tokens[at], T.L_PAREN, "("), copy_token(tokens[at], T.R_PAREN, ")")
    before.setdefault(part.begin, []).append(open)
    before.setdefault(at, []).append(close)
    before.setdefault(~at, []).append(open)
    before.setdefault(~(end - 1), []).append(close)
