"""Lists and signs of other dialects, rewritten for the language before tokens are read."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

T = TokenType

# A text without these has nothing to rewrite here
LISTS = (
    "array[", "array [", "([", " [", ",[", "=[", "unnest", "@>", "<@", "^@", "&&", "y(array(", "y (array(", "l(array(", "l (array(",
)  # fmt: skip
_BEFORE = frozenset(
    {T.L_PAREN, T.COMMA, T.EQ, T.NEQ, T.LT, T.GT, T.IN, T.AND, T.OR, T.NOT, T.PARAMETER, T.DAMP, T.WHEN, T.THEN, T.ELSE}
)  # of a list
_VALUES = frozenset({T.STRING, T.RAW_STRING, T.NUMBER, T.DASH, T.R_BRACKET})  # the first of a list, or its end
_QUANTIFIERS = frozenset({T.ANY, T.ALL, T.SOME})
_SIGNS = {
    (T.PARAMETER, T.GT): (T.AT_GT, "@>"), (T.LT, T.PARAMETER): (T.LT_AT, "<@"), (T.CARET, T.PARAMETER): (T.CARET_AT, "^@"),
}  # fmt: skip
_HIDDEN, _PAREN, _BRACKET, _LIST = range(4)  # ends: of nothing, of what is written so, and of a list
OVERLAPS = T.ADJACENT  # the token for && between lists; sqlglot's dialect of Spark has none


def copy_token(token: Token, kind: TokenType, text: str) -> Token:
    """Makes another token at the place of one."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


def rewrite_lists(tokens: list[Token]) -> list[Token]:
    """Returns tokens of the language for lists and signs of other dialects.

    - ``ARRAY[1, 2]`` and ``[1, 2]`` become ``array(1, 2)``
    - ``a IN UNNEST([1, 2])`` and ``a IN [1, 2]`` become ``a IN (1, 2)``
    - ``a IN UNNEST(tags)`` becomes ``a IN tags``
    - ``a LIKE ANY (ARRAY['x'])`` becomes ``a LIKE ANY ('x')``
    - ``@ >`` becomes one token, and so do ``<@``, ``^@``, and ``&&`` before or behind a list
    """
    return _Lists(tokens).run()


class _Lists:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._out: list[Token] = []
        self._ends: list[int] = []  # of each open parenthesis or bracket
        self._was_list = False  # a list has just ended

    def run(self) -> list[Token]:
        tokens, i = self._tokens, 0
        while i < len(tokens):
            i = self._step(i)
        return self._out

    def _step(self, i: int) -> int:
        """Writes token i. Returns the token to continue from."""
        tokens, out, token = self._tokens, self._out, self._tokens[i]
        kind, before = token.token_type, self._out[-1].token_type if self._out else None
        was_list, self._was_list = self._was_list, False
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        if kind in (T.R_PAREN, T.R_BRACKET) and self._ends:
            return self._close(i)
        length = self._list_begin(i)
        if length:
            self._open(token, before is not T.IN)
            return i + length
        if before is T.IN and kind is T.UNNEST and after is not None and after.token_type is T.L_PAREN:
            return self._unnest(i + 1)
        if kind in _QUANTIFIERS and before in (T.LIKE, T.ILIKE) and after is not None and after.token_type is T.L_PAREN:
            out.append(token)
            return self._unnest(i + 1) if self._list_begin(i + 2) else i + 1
        if kind in (T.L_PAREN, T.L_BRACKET):
            self._ends.append(_PAREN if kind is T.L_PAREN else _BRACKET)
        if after is not None and token.end + 1 == after.start:
            joined = _SIGNS.get((kind, after.token_type))
            if joined is not None:
                out.append(copy_token(token, *joined))
                return i + 2
        if kind is T.DAMP and (was_list or self._list_begin(i + 1)):
            token = copy_token(token, OVERLAPS, "&&")
        out.append(token)
        return i + 1

    def _list_begin(self, i: int) -> int:
        """Returns how many tokens from i begin a list, with its bracket; 0 if none does."""
        tokens = self._tokens
        if i + 1 >= len(tokens) or (i and tokens[i - 1].token_type is T.DOT):
            return 0
        kind, after = tokens[i].token_type, tokens[i + 1].token_type
        if kind is not T.IDENTIFIER and tokens[i].text.upper() == "ARRAY":
            return 2 if after in (T.L_BRACKET, T.L_PAREN) else 0
        is_begin = i == 0 or tokens[i - 1].token_type in _BEFORE
        return int(kind is T.L_BRACKET and is_begin and after in _VALUES)

    def _open(self, token: Token, is_array: bool) -> None:
        """Writes the beginning of a list, as an array or as what follows IN."""
        if is_array:
            self._out.append(copy_token(token, T.ARRAY, "array"))
        self._out.append(copy_token(token, T.L_PAREN, "("))
        self._ends.append(_LIST)

    def _unnest(self, i: int) -> int:
        """Writes what is in the parenthesis at token i without it, or a list as ``(...)``."""
        self._ends.append(_HIDDEN)
        length = self._list_begin(i + 1)
        if length:
            self._open(self._tokens[i + 1], False)
        return i + 1 + length

    def _close(self, i: int) -> int:
        """Writes the end of a parenthesis or bracket. Returns the token to continue from."""
        tokens, token, end = self._tokens, self._tokens[i], self._ends.pop()
        i += 1
        if end == _HIDDEN:
            return i
        self._was_list = end == _LIST
        self._out.append(copy_token(token, T.R_PAREN, ")") if self._was_list else token)
        if self._was_list and i + 1 < len(tokens) and tokens[i].token_type is T.DCOLON:  # a cast, as in ::int[]
            i += 2
            while i < len(tokens) and tokens[i].token_type in (T.L_BRACKET, T.R_BRACKET):
                i += 1
        return i
