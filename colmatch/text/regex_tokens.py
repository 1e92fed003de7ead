r"""The tokens of a regular expression in RE2's syntax (RE2's documentation, "Syntax").

One reader of tokens finds the literals that a string needs (``regex_literals.py``). The other
translates them for Hyperscan (``hyperscan_syntax.py``). Anything uncertain is an error.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

FLAGS = re.compile(r"\(\?([imsU]+)\)")
_INNER_FLAGS = re.compile(r"\(\?([imsU]*(?:-[imsU]+)?)\)")
_GROUP = re.compile(r"\((?:\?(?:P?<[^>]*>|([imsU]*(?:-[imsU]+)?):))?")
_REPEAT = re.compile(r"(?:\{(\d+)(,?)(\d*)\}|([*+?]))\??")
_HEX = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_UNICODE = re.compile(r"[pP](?:\{[^}]*\}|[A-Za-z])")
_NAMED = re.compile(r"\[:\^?[a-z]+:\]")
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Sort(Enum):
    """The kind of a token."""

    CHARACTER = "c"  # ``value`` is the character
    CLASS = "["  # also . and \d, \w, \pL, \x41: some one character
    ASSERTION = "^"  # also $, \b, \B, \A and \z
    OPEN = "("  # ``value`` has its flags
    CLOSE = ")"
    OR = "|"
    FLAGS = "f"  # ``value``; up to the end of the group
    REPEAT = "*"


class RegexToken(NamedTuple):
    """A piece of an expression, with its relevant parts."""

    sort: Sort
    text: str
    value: str = ""
    least: int = 1
    most: int | None = 1  # None: any number of times


class UnknownSyntaxError(Exception):
    """Something that the reader is not sure of."""


def tokens(regex: str) -> list[RegexToken]:
    """Cuts an expression that RE2 has found to be sound into tokens.

    Raises
    ------
    UnknownSyntaxError

    Examples
    --------
    >>> [token.text for token in tokens(r"(?i)a+(?:[b-d]|\\.){2,}$")]
    ['(?i)', 'a', '+', '(?:', '[b-d]', '|', '\\\\.', ')', '{2,}', '$']
    """
    pieces: list[RegexToken] = []
    at = 0
    while at < len(regex):
        repeat = _REPEAT.match(regex, at)
        if repeat:
            if not pieces or pieces[-1].sort in (Sort.OPEN, Sort.OR, Sort.FLAGS, Sort.REPEAT):
                raise UnknownSyntaxError
            pieces.append(_repeat(repeat))
        else:
            pieces.append(_token(regex, at))
        at += len(pieces[-1].text)
    return pieces


def _repeat(found: re.Match[str]) -> RegexToken:
    least, comma, most, sign = found.groups()
    if sign:
        return RegexToken(Sort.REPEAT, found[0], "", int(sign == "+"), 1 if sign == "?" else None)
    return RegexToken(Sort.REPEAT, found[0], "", int(least), None if comma and not most else int(most or least))


def _token(regex: str, at: int) -> RegexToken:
    character = regex[at]
    if character == "[":
        return _class(regex, at)
    if character == "\\":
        return _escape(regex, at)
    if character == "(":
        flags = _INNER_FLAGS.match(regex, at)
        if flags:
            return RegexToken(Sort.FLAGS, flags[0], flags[1])
        group = _GROUP.match(regex, at)
        if group is None or (group[0] == "(" and regex.startswith("(?", at)):
            raise UnknownSyntaxError
        return RegexToken(Sort.OPEN, group[0], group[1] or "")
    if character == ".":
        return RegexToken(Sort.CLASS, ".")
    for sort in (Sort.CLOSE, Sort.OR):
        if character == sort.value:
            return RegexToken(sort, character)
    return RegexToken(Sort.ASSERTION if character in "^$" else Sort.CHARACTER, character, character)


def _class(regex: str, start: int) -> RegexToken:
    try:
        at = start + 1 + (regex[start + 1] == "^")
        if regex[at] == "]":
            at += 1
        while regex[at] != "]":
            named = _NAMED.match(regex, at)
            if named:
                at = named.end()
            elif regex[at] == "[" and regex[at + 1] in ":.=":
                raise UnknownSyntaxError
            else:
                at += 2 if regex[at] == "\\" else 1
    except IndexError:
        raise UnknownSyntaxError from None
    text = regex[start : at + 1]
    if len(text) == 3 and text[1] not in "^\\[]":
        return RegexToken(Sort.CHARACTER, text, text[1])
    return RegexToken(Sort.CLASS, text)


def _escape(regex: str, start: int) -> RegexToken:
    character = regex[start + 1 : start + 2]
    match = _HEX.match(regex, start + 1) or _UNICODE.match(regex, start + 1)
    text = regex[start : match.end() if match else start + 2]
    if match or (character and character in "dDsSwWC"):
        return RegexToken(Sort.CLASS, text)
    if character and character in "bBAz":
        return RegexToken(Sort.ASSERTION, text)
    if character in _CONTROL:
        return RegexToken(Sort.CHARACTER, text, _CONTROL[character])
    if character.isascii() and character and not character.isalnum():
        return RegexToken(Sort.CHARACTER, text, character)
    raise UnknownSyntaxError
