"""The skeleton of a text: its AND, OR, NOT, IS and counts, with the conditions between them.

Conditions keep the words of the text. Each is a condition by itself, so that it can be read alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from colmatch.expr.ast import AT_LEAST
from colmatch.given.schema import Schema, definition_named, definitions_of
from colmatch.sql.tokens import SPARK

T = TokenType

MOST_OPENED = 200  # definitions that are opened in one text, each use for itself
_DEEPEST = 100  # parentheses within each other; what is deeper is one condition
AND, OR, NOT, COUNT, CONDITION, DEFINED = "AND", "OR", "NOT", "at_least", "", "defined as"
_NEGATED = re.compile(r"(?:NOT\b|!)\s*(?P<part>.+)", re.IGNORECASE | re.DOTALL)
_TESTED = re.compile(
    r"(?P<part>.+?)\s+(?P<word>IS\s+(?:NOT\s+)?(?:TRUE|FALSE|NULL|UNKNOWN))", re.IGNORECASE | re.DOTALL
)
_OPENS = {T.L_PAREN: T.R_PAREN, T.L_BRACKET: T.R_BRACKET, T.CASE: T.END}
_VALUES = {"TRUE": True, "FALSE": False, "NULL": None, "UNKNOWN": None}


class Piece(NamedTuple):
    """A part of a text: a condition, or a word with its parts.

    ``word`` is AND, OR, NOT, ``IS TRUE`` or another IS, ``at_least``, or empty for a condition. A
    definition is ``defined as`` its only part.
    """

    word: str
    text: str = ""  # of a condition or definition
    parts: tuple[Piece, ...] = ()
    least: int = 0  # of a count


def cut_text(text: str) -> Piece | None:
    """Returns the skeleton of a text; None if its parentheses do not match.

    A text that is none of the language has some skeleton.
    """
    try:
        tokens = SPARK.tokenize(text)
    except (TokenError, TypeError, ValueError, AttributeError, LookupError, AssertionError):
        return None
    while tokens and tokens[-1].token_type is T.SEMICOLON:
        tokens.pop()
    closings = _find_closings(tokens)
    begin = int(bool(tokens) and tokens[0].token_type is T.WHERE and len(tokens) > 1)
    return None if closings is None or begin == len(tokens) else _Cutter(text, tokens, closings).cut(begin, len(tokens))


def _find_closings(tokens: list[Token]) -> dict[int, int] | None:
    """Maps the place of each parenthesis, bracket and CASE to its end; None if one has none."""
    closings: dict[int, int] = {}
    open: list[int] = []
    for i, token in enumerate(tokens):
        if token.token_type in _OPENS:
            open.append(i)
        elif token.token_type in (T.R_PAREN, T.R_BRACKET) or (
            token.token_type is T.END and open and tokens[open[-1]].token_type is T.CASE
        ):
            if not open or _OPENS[tokens[open[-1]].token_type] is not token.token_type:
                return None
            closings[open.pop()] = i
    return None if open else closings


def open_definitions(piece: Piece, schema: Schema) -> Piece:
    """Returns a skeleton with the skeletons of the definitions that it names."""
    return _Opener(schema).open(piece)


class _Opener:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._left = MOST_OPENED

    def open(self, piece: Piece) -> Piece:
        if piece.word != CONDITION:
            return piece._replace(parts=tuple(map(self.open, piece.parts)))
        # Look for a name in parentheses, behind NOT, or before IS
        text = piece.text
        while text[:1] == "(" and text[-1:] == ")":
            text = text[1:-1].strip()
        match = _NEGATED.fullmatch(text) or _TESTED.fullmatch(text)
        if match is not None:
            inner = self.open(Piece(CONDITION, match["part"]))
            word = NOT if match.re is _NEGATED else " ".join(match["word"].upper().split())
            return piece if inner.word == CONDITION else Piece(word, parts=(inner,))
        name = definition_named(self._schema, (text.strip('`"'),))
        meant = None if name is None or not self._left else cut_text(definitions_of(self._schema)[name])
        if meant is None:
            return piece
        self._left -= 1
        return Piece(DEFINED, text, (self.open(meant),))


class _Cutter:
    def __init__(self, text: str, tokens: list[Token], closings: dict[int, int]) -> None:
        self._text = text
        self._kinds = [token.token_type for token in tokens]
        self._tokens = tokens
        self._closings = closings

    def cut(self, begin: int, end: int, depth: int = 0) -> Piece:
        """Returns the skeleton of the tokens ``begin:end``."""
        if depth > _DEEPEST:
            return self._condition(begin, end)
        for kind, word in ((T.OR, OR), (T.AND, AND)):
            places = self._split(begin, end, kind)
            if len(places) > 1:
                return Piece(word, parts=tuple([self.cut(*place, depth) for place in places]))
        if self._kinds[begin] is T.NOT:
            part = self.cut(begin + 1, end, depth + 1)
            return self._condition(begin, end) if part.word == CONDITION else Piece(NOT, parts=(part,))
        return self._cut_group(begin, end, depth) or self._condition(begin, end)

    def _split(self, begin: int, end: int, kind: TokenType) -> list[tuple[int, int]]:
        """Returns the places between tokens of a kind, outside all parentheses."""
        places: list[tuple[int, int]] = []
        i, start, between = begin, begin, False
        while i < end:
            is_name = i > begin and self._kinds[i - 1] is T.DOT
            if self._kinds[i] is T.BETWEEN:
                between = True
            elif self._kinds[i] is T.AND and between:
                between = False
            elif self._kinds[i] is kind and not is_name and start < i < end - 1:
                places.append((start, i))
                start = i + 1
            i = self._closings.get(i, i) + 1
        return [*places, (start, end)]

    def _cut_group(self, begin: int, end: int, depth: int) -> Piece | None:
        """Returns the skeleton of parentheses or of a count; None for anything else."""
        close = self._closings.get(begin, -1)
        if close > begin + 1 and self._kinds[begin] is T.L_PAREN:
            inner = self.cut(begin + 1, close, depth + 1)
            words = [token.text.upper() for token in self._tokens[close + 1 : end]]
            if inner.word == CONDITION or not words:
                return inner if inner.word != CONDITION else None
            is_test = words[0] == "IS" and words[-1] in _VALUES and (len(words) == 2 or words[1:-1] == ["NOT"])
            return Piece(" ".join(words), parts=(inner,)) if is_test else None
        name = self._tokens[begin].text.lower()
        if name == AT_LEAST and self._closings.get(begin + 1, -1) == end - 1:
            number, *places = self._split(begin + 2, end - 1, T.COMMA)
            least = self._text_of(*number)
            if places and least.isdigit():
                parts = tuple([self.cut(*place, depth + 1) for place in places])
                return Piece(COUNT, parts=parts, least=int(least))
        return None

    def _condition(self, begin: int, end: int) -> Piece:
        return Piece(CONDITION, self._text_of(begin, end))

    def _text_of(self, begin: int, end: int) -> str:
        return self._text[self._tokens[begin].start : self._tokens[end - 1].end + 1]


def truth_of(piece: Piece, truths: list[bool | None]) -> bool | None:
    """Returns the truth of a word with parts of these truths."""
    if piece.word in (AND, OR):
        decides = piece.word == OR
        return decides if decides in truths else None if None in truths else not decides
    if piece.word == DEFINED:
        return truths[0]
    if piece.word == NOT:
        return None if truths[0] is None else not truths[0]
    if piece.word == COUNT:
        true = truths.count(True)
        return True if true >= piece.least else None if true + truths.count(None) >= piece.least else False
    *others, value = piece.word.split()
    return (truths[0] is _VALUES[value]) is not ("NOT" in others)
