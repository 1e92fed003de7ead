r"""Literals that a string must have for a regular expression to match anywhere in it.

They are read from the expression's text. For example ``err(or)?: [0-9]+ (disk|memory) full`` needs
``: ``, one of ``disk`` and ``memory``, and `` full``, which filters best. The reader knows RE2's
syntax (RE2's documentation, "Syntax") as far as it must to be sure, and gives up on what it does
not know. What it says is necessary, never sufficient. After a leading ``(?i)`` it says so in ASCII
lower case, without K and S: to RE2, the Kelvin sign is a K as well, and the long s an S.
"""

from __future__ import annotations

import re
from typing import NamedTuple

FEW_LITERALS = 16  # literals any one of which may be there: with more, a filter has little left to say
DEEP = 50  # groups within each other; Python's stack is the limit
LONG = 4  # bytes after which a longer literal is no better

_FLAGS = re.compile(r"\(\?([imsU]+)\)")
_GROUP = re.compile(r"\(\?(?:P?<[^>]*>|[msU]*(?:-[msU]+)?:)")
_INNER_FLAGS = re.compile(r"\(\?[msU]*(?:-[msU]+)?\)")
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_HEX = re.compile(r"x(?:\{[0-9A-Fa-f]+\}|[0-9A-Fa-f]{2})")
_UNICODE = re.compile(r"[pP](?:\{[^}]*\}|[A-Za-z])")
_NAMED = re.compile(r"\[:\^?[a-z]+:\]")
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

Needed = tuple[bytes, ...]  # one of these


class Requirement(NamedTuple):
    """One of ``literals`` is in every string that matches; none when nothing is known.

    ``folded``: it is in the string after A to Z have been made a to z.
    """

    literals: Needed
    folded: bool


class _UnknownError(Exception):
    """What the reader is not sure of."""


def requirement(regex: str) -> Requirement:
    """Reads which literals a regular expression needs.

    Examples
    --------
    >>> requirement("a[0-9]+bcd|xyz+")
    Requirement(literals=(b'bcd', b'xyz'), folded=False)
    >>> requirement("[ab]+")
    Requirement(literals=(), folded=False)
    """
    flags = _FLAGS.match(regex)
    folded = flags is not None and "i" in flags[1]
    reader = _RegexReader(regex, flags.end() if flags else 0, folded)
    try:
        found = reader.alternatives(0)
    except (_UnknownError, IndexError):  # IndexError: the text ends where something must follow
        return Requirement((), False)
    if reader.at < len(regex):
        return Requirement((), False)
    return Requirement(found or (), folded and bool(found))


def _rank(needed: Needed) -> tuple[int, int, int]:
    shortest = min(map(len, needed))
    return min(shortest, LONG), -len(needed), shortest


class _RegexReader:
    def __init__(self, text: str, at: int, folded: bool) -> None:
        self.text = text
        self.at = at
        self.folded = folded

    def alternatives(self, depth: int) -> Needed | None:
        if depth > DEEP:
            raise _UnknownError
        found = [self._sequence(depth)]
        while self.text.startswith("|", self.at):
            self.at += 1
            found.append(self._sequence(depth))
        if None in found:
            return None
        union = tuple(sorted({literal for needed in found if needed for literal in needed}))
        return union if len(union) <= FEW_LITERALS else None

    def _sequence(self, depth: int) -> Needed | None:
        best: Needed | None = None
        run = ""
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            atom = self._atom(depth)
            least, once = self._repeat()
            if isinstance(atom, str) and once:
                run += atom
                continue
            if isinstance(atom, str) and least:
                run += atom
                best = _better(best, (run.encode(),))
                run = atom  # the last of them stands before what follows
                continue
            best = _better(best, (run.encode(),))
            run = ""
            if atom and least and not isinstance(atom, str):
                best = _better(best, atom)
        return _better(best, (run.encode(),))

    def _atom(self, depth: int) -> str | Needed | None:
        """One character as a string, what a group needs, or None for all else."""
        text, at = self.text, self.at
        character = text[at]
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        if character in "*+?" or _REPEAT.match(text, at):
            raise _UnknownError
        self.at += 1
        return None if character in ".^$" else self._literal(character)

    def _group(self, depth: int) -> Needed | None:
        inner = _INNER_FLAGS.match(self.text, self.at)
        if inner:
            self.at = inner.end()
            return None
        head = _GROUP.match(self.text, self.at)
        if head is None and self.text.startswith("(?", self.at):
            raise _UnknownError
        self.at = head.end() if head else self.at + 1
        found = self.alternatives(depth + 1)
        if not self.text.startswith(")", self.at):
            raise _UnknownError
        self.at += 1
        return found

    def _class(self) -> str | None:
        text, first = self.text, self.at + 1
        if text[first] not in "^\\[]" and text[first + 1] == "]":
            self.at = first + 2
            return self._literal(text[first])
        at = first + (text[first] == "^")
        if text[at] == "]":
            at += 1
        while text[at] != "]":
            named = _NAMED.match(text, at)
            if named:
                at = named.end()
            elif text[at] == "[" and text[at + 1] == ":":
                raise _UnknownError
            else:
                at += 2 if text[at] == "\\" else 1
        self.at = at + 1
        return None

    def _escape(self) -> str | None:
        text, at = self.text, self.at + 1
        character = text[at]
        known = _HEX.match(text, at) or _UNICODE.match(text, at)
        self.at = known.end() if known else at + 1
        if known or character in "dDsSwWbBAzC":
            return None
        if character in _CONTROL:
            return _CONTROL[character]
        if character.isascii() and not character.isalnum():
            return character
        raise _UnknownError

    def _literal(self, character: str) -> str | None:
        if not self.folded:
            return character
        return character.lower() if character.isascii() and character not in "kKsS" else None

    def _repeat(self) -> tuple[int, bool]:
        """Least number of times, and whether it is once exactly."""
        text, at = self.text, self.at
        least, once = 1, True
        repeat = _REPEAT.match(text, at)
        if repeat:
            least, once, at = int(repeat[1]), False, repeat.end()
        elif at < len(text) and text[at] in "*+?":
            least, once, at = int(text[at] == "+"), False, at + 1
        if not once and text.startswith("?", at):
            at += 1  # as few as possible
        if not once and at < len(text) and (text[at] in "*+?" or _REPEAT.match(text, at)):
            raise _UnknownError
        self.at = at
        return least, once


def _better(a: Needed | None, b: Needed) -> Needed | None:
    if not all(b):
        return a
    return b if a is None or _rank(b) > _rank(a) else a
