r"""Regular expressions for Hyperscan, translated to find the same as RE2.

Hyperscan works on bytes here, on *plain* strings: ASCII without the vertical tab. On these, the
translated syntax means the same to both:

- ``.``, ``\d``, ``\w``, ``\b``, classes and letters in any case differ in Unicode only. Characters
  beyond ASCII become groups of bytes, which no plain string has.
- ``\s`` differs by the vertical tab.
- ``$`` becomes ``\z``, since Hyperscan's also matches before a newline at the end.
- Greed does not matter, since only the truth of a match counts.

Other syntax becomes something that may match in more strings, and RE2 decides about these. Any
character replaces ``\pL``. Nothing replaces the anchors of ``(?m)``, and anchors that something may
precede or follow, which Hyperscan refuses. Then ``{2,100}`` becomes ``{2,}``, which is smaller.
``(?i)`` in the middle, ``(?-i:...)`` and ``\Q`` are not translated.

Its mode for UTF-8 would do all strings. But in it, 184 of 1,269 public expressions took 67 s to
compile, each alone, and two of them were refused. As bytes, all of them together took 4 s
(Vectorscan in ``hyperscan`` 0.9.1, AMD EPYC, 2026-11-26).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.text.literal_index import TextSlice, only_ascii
from colmatch.text.regex_tokens import FLAGS, RegexToken, Sort, UnknownSyntaxError, tokens

POSITIONS_MOST = 4000  # characters of an expression with {n,m} written out
FEW_TIMES = 4  # most repeats that are written out if a match need not be exact
DEEP = 200  # groups within each other
ANY = r"[\x00-\x7f]"
FOLDED = "\u017f\u212a"  # the long s and the Kelvin sign: ASCII letters in another case
_VERTICAL_TAB = 0x0B
_ESCAPED = re.compile(r"\\(x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_IN_CLASS = frozenset("dDwWsStnrf")


@dataclass
class _Sequence:
    """The state of the branch that is read, and of the group around it."""

    may_begin: bool  # nothing can precede the group
    folded: bool
    at_begin: bool = True  # nothing of this branch can precede the next token
    at_end: bool = False  # nothing may follow, after an end
    other_at_end: bool = False  # the same in another branch
    anchored: bool = False
    positions: int = 0
    last: int = 0  # positions of the last atom
    repeatable: bool = False  # whether the last atom may be repeated


def plain(texts: TextSlice) -> NDArray[np.bool_]:
    """Returns (n): whether Hyperscan may read each string."""
    return only_ascii(texts, but=_VERTICAL_TAB)


def is_plain(string: bytes) -> bool:
    """Returns whether Hyperscan may read a string, as ``plain`` does."""
    return string.isascii() and _VERTICAL_TAB not in string


class HyperscanPattern(NamedTuple):
    """An expression for Hyperscan."""

    expression: bytes
    exact: bool  # else it also matches where the original does not


def for_hyperscan(regex: str, characters: bool) -> HyperscanPattern | None:
    """Translates an expression that RE2 has found to be sound; None if it cannot be translated.

    characters : strings are UTF-8, else bytes

    Examples
    --------
    >>> for_hyperscan("(?i)^x[a-z]{1,3}?,.$", True)
    Translated(expression=b'(?i)^x[a-z]{1,3}\\\\x2c.\\\\z', exact=True)
    >>> for_hyperscan("(a|^b)$c", True)
    Translated(expression=b'(?:a|^b)c', exact=False)
    """
    if not (characters or regex.isascii()) or "\0" in regex:
        return None
    flags = FLAGS.match(regex)
    for exact in (True, False):
        try:
            reader = _Translation(flags[1] if flags else "", exact)
            for token in tokens(regex[flags.end() :] if flags else regex):
                reader.take(token)
            return HyperscanPattern("".join(reader.parts).encode("ascii"), exact)
        except UnknownSyntaxError:
            pass
    return None


class _Translation:
    def __init__(self, flags: str, exact: bool) -> None:
        self.exact = exact
        self.by_line = "m" in flags
        if self.by_line:
            self._doubt()
        kept = _filter_flags(flags.replace("m", ""))
        self.parts = [f"(?{kept})"] if kept else []
        self.groups = [_Sequence(True, "i" in flags)]

    def _doubt(self) -> None:
        if self.exact:
            raise UnknownSyntaxError

    def take(self, token: RegexToken) -> None:
        now = self.groups[-1]
        if token.sort is Sort.OPEN:
            self._open(token.value)
        elif token.sort is Sort.CLOSE:
            self._close()
        elif token.sort is Sort.OR:
            now.other_at_end |= now.at_end
            now.at_begin, now.at_end, now.repeatable = True, False, False
            self.parts.append("|")
        elif token.sort is Sort.REPEAT:
            self._repeat(token)
        elif token.sort is Sort.ASSERTION:
            self._assertion(token.text)
        elif token.sort is Sort.FLAGS:
            raise UnknownSyntaxError
        else:
            text = (_character if token.sort is Sort.CHARACTER else _class)(token, now.folded)
            if text is None:
                self._doubt()
            self._atom(text or ANY, 1)

    def _open(self, flags: str) -> None:
        now = self.groups[-1]
        if now.at_end or len(self.groups) > DEEP:
            raise UnknownSyntaxError
        self.parts.append(f"(?{_filter_flags(flags)}:")
        self.groups.append(_Sequence(now.may_begin and now.at_begin, now.folded or "i" in flags))

    def _close(self) -> None:
        inner = self.groups.pop()
        if not self.groups:
            raise UnknownSyntaxError
        self._atom(")", inner.positions)
        now = self.groups[-1]
        now.repeatable = not inner.anchored
        now.anchored |= inner.anchored
        now.at_end = inner.at_end or inner.other_at_end

    def _atom(self, text: str, positions: int) -> None:
        now = self.groups[-1]
        if now.at_end:
            raise UnknownSyntaxError
        self.parts.append(text)
        now.at_begin, now.repeatable, now.last = False, True, positions
        self._add(positions)

    def _add(self, positions: int) -> None:
        now = self.groups[-1]
        now.positions += positions
        if now.positions > POSITIONS_MOST:
            raise UnknownSyntaxError

    def _repeat(self, token: RegexToken) -> None:
        now = self.groups[-1]
        times = max(token.least, token.most or 1)  # as far as they are written out
        if not now.repeatable or token.most == 0:
            raise UnknownSyntaxError
        self._add(now.last * (times - 1))
        now.repeatable = False
        if not self.exact and times > FEW_TIMES:
            self.parts.append(f"{{{min(token.least, FEW_TIMES)},}}")
            return
        self.parts.append(token.text[:-1] if len(token.text) > 1 and token.text.endswith("?") else token.text)

    def _assertion(self, text: str) -> None:
        now = self.groups[-1]
        now.repeatable = False
        if text in ("^", r"\A"):
            if self.by_line or now.at_end or not (now.may_begin and now.at_begin):
                self._doubt()
                return
            now.anchored = True
        elif text in ("$", r"\z"):
            if not self.exact:
                return
            now.anchored = now.at_end = True
            text = r"\z"
        elif now.at_end:
            raise UnknownSyntaxError
        else:
            now.at_begin = False
        self.parts.append(text)


def _filter_flags(flags: str) -> str:
    """Returns the flags without ``U``, which only changes the order of attempts."""
    if "m" in flags or "-" in flags:
        raise UnknownSyntaxError
    return "".join(flag for flag in "is" if flag in flags)


def _character(token: RegexToken, folded: bool) -> str | None:
    character = token.value
    if character == "\v" or (folded and character in FOLDED):
        return None
    if character.isascii():
        return character if character.isalnum() or character == " " else f"\\x{ord(character):02x}"
    return f"(?:{_bytes(character)})"


def _class(token: RegexToken, folded: bool) -> str | None:
    text = token.text
    if text == ".":
        return text
    if text[0] == "\\":
        return _escape(text) if text[1] in "dDwWsSx" else None
    if folded and not text.isascii():  # a range may have the long s in it
        return None
    escapes = [_escape(match[0]) for match in _ESCAPED.finditer(text)]
    if None in escapes:
        return None
    replacements = iter(escapes)
    text = _ESCAPED.sub(lambda _: next(replacements) or "", text)
    return "".join(part if part.isascii() else _bytes(part) for part in text)


def _escape(text: str) -> str | None:
    if text[1] != "x":
        return None if text[1].isalnum() and text[1] not in _IN_CLASS else text
    code = int(text[2:].strip("{}"), 16)
    return f"\\x{code:02x}" if 0 < code < 0x80 and code != _VERTICAL_TAB else None


def _bytes(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
