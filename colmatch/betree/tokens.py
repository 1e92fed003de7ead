"""A tokenizer: a text of the be-tree library's language -> names, numbers, strings and signs."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from colmatch.errors import show_value
from colmatch.expr.ast import Refusal
from colmatch.given.incoming import is_text
from colmatch.kernels.layout import KEY_MAX, KEY_MIN

NAME, INTEGER, FLOAT, STRING, SIGN, END = range(6)

_WORD = re.compile(
    r"""[ \t\r\n\f\v]*(?:
        (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
      | (?P<number>-?[0-9]+(?P<point>\.[0-9]*)?)
      | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')
      | (?P<sign><>|<=|>=|&&|\|\||[<>=(),])
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_BLANKS = re.compile(r"[ \t\r\n\f\v]*")
_ESCAPE = re.compile(r"\\([\"'\\])")
_EXPONENT = re.compile(r"[eE][+-]?[0-9]")
_INSTEAD = {
    "!": "write <> or not",
    "&": "write and, or &&",
    "|": "write or, or ||",
    "+": "numbers have no plus before them",
    ".": "names have no dots, and numbers begin with a digit",
    "-": "a minus directly precedes a number",
}


class Word(NamedTuple):
    """A word of the text: ``value`` is the name, the number, the string's content or the sign."""

    kind: int
    value: Any
    at: int


def words_of(text: str) -> list[Word]:
    """Returns the words of a text; the last word is its end.

    Raises Refusal: a place in the text begins no word. The refusal has the place.
    """
    if not is_text(text):
        raise Refusal("the text has half a surrogate pair in it, which is no character", 0)
    words: list[Word] = []
    place, match = 0, _WORD.match
    while True:
        token = match(text, place)
        if token is None:
            raise _no_word(text, place)
        kind, place = token.lastgroup, token.end()
        if kind == "name":
            words.append(Word(NAME, token["name"], token.start("name")))
        elif kind == "sign":
            words.append(Word(SIGN, token["sign"], token.start("sign")))
        elif kind == "string":
            inner = token["string"][1:-1]
            words.append(Word(STRING, _ESCAPE.sub(r"\1", inner) if "\\" in inner else inner, token.start("string")))
        elif kind == "end":
            words.append(Word(END, "", place))
            return words
        else:  # a number, maybe with a point
            words.append(_number(token["number"], token["point"], token.start("number"), text, place))


def _number(digits: str, point: str | None, at: int, text: str, end: int) -> Word:
    if _EXPONENT.match(text, end):
        raise Refusal(f"{text[at : end + 2]!r} is no number here: write it without an exponent", at)
    if point is not None:
        number = float(digits)
        if number in (float("inf"), float("-inf")):
            raise Refusal("the number is too large", at)
        return Word(FLOAT, number, at)
    if len(digits) > 4000 or not KEY_MIN <= int(digits) <= KEY_MAX:
        raise Refusal("the number is larger than 64 bits can hold", at)
    return Word(INTEGER, int(digits), at)


def _no_word(text: str, place: int) -> Refusal:
    blanks = _BLANKS.match(text, place)
    at = place if blanks is None else blanks.end()
    sign = text[at]
    if sign in "\"'":
        return Refusal("the string that begins here has no end", at)
    advice = _INSTEAD.get(sign)
    return Refusal(f"{show_value(sign)} means nothing here{': ' + advice if advice else ''}", at)
