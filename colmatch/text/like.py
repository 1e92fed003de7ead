r"""LIKE patterns, which are read and written only here.

A backslash escapes ``%``, ``_`` and itself; before anything else it is an error::

    'Nice'       WHOLE, Nice          'Ni%'   HEAD, Ni
    '%ce'        TAIL, ce             '%ic%'  INSIDE, ic
    'N_ce%air%'  the pieces N_ce, air
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from colmatch.kernels.text.verify import ONE

ANY_CHARACTER = bytes([ONE])  # for ``_`` in a piece: a byte that UTF-8 never has

_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
# Bytes that UTF-8 never has replace the escaped characters while a text is cut at its ``%``.
_STAND_INS = ((rb"\\", b"\xfc"), (rb"\%", b"\xfd"), (rb"\_", b"\xfe"))
_MEANT = bytes.maketrans(b"\xfc\xfd\xfe_", rb"\%_" + ANY_CHARACTER)


class LiteralPosition(IntEnum):
    """The place of a literal in the string."""

    WHOLE = 0
    HEAD = 1
    TAIL = 2
    INSIDE = 3


class Like(NamedTuple):
    """A LIKE pattern, taken apart at its ``%``."""

    pieces: tuple[bytes, ...]  # UTF-8 between the %, none empty, with ANY_CHARACTER for _
    open_start: bool  # a % before the first piece
    open_end: bool  # a % behind the last piece

    @property
    def place(self) -> LiteralPosition:
        """Returns the place of the literal that the pattern is, if it has one piece or none."""
        if not self.pieces:
            return LiteralPosition.HEAD if self.open_start else LiteralPosition.WHOLE
        if self.open_start:
            return LiteralPosition.INSIDE if self.open_end else LiteralPosition.TAIL
        return LiteralPosition.HEAD if self.open_end else LiteralPosition.WHOLE

    @property
    def literal(self) -> bytes | None:
        """The literal that decides the pattern by its place; None if the pattern has more
        conditions.
        """
        if len(self.pieces) > 1:
            return None
        literal = b"".join(self.pieces)
        return None if ANY_CHARACTER in literal else literal


def read_like(pattern: str) -> Like:
    r"""Takes a LIKE pattern apart.

    Raises ValueError: a backslash is at the end, or precedes another character than % _ and \.

    Examples
    --------
    >>> read_like(r"%50\% of_").pieces
    (b'50% of\xff',)
    """
    text = pattern.encode()
    if "\\" in pattern:
        for escaped in _ESCAPE.findall(pattern):
            if not escaped:
                raise ValueError(r"the pattern ends with the escape character \: write \\ for the character itself")
            if escaped not in "%_\\":
                raise ValueError(
                    rf"the escape character \ precedes {escaped!r}, not %, _ or \: write \\ for the character itself"
                )
        for written, stand_in in _STAND_INS:
            text = text.replace(written, stand_in)
    pieces = tuple([piece.translate(_MEANT) for piece in text.split(b"%") if piece])
    return Like(pieces, text.startswith(b"%"), text.endswith(b"%"))


def write_like(literal: str) -> str:
    r"""Writes the LIKE pattern that only ``literal`` itself matches.

    Examples
    --------
    >>> print(write_like("50%"))
    50\%
    """
    return literal.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def with_backslash(pattern: str, escape: str) -> str:
    """Writes a LIKE pattern that has another escape character with the backslash instead.

    escape : one character

    Raises ValueError: ``escape`` precedes another character than % _ and itself.
    """
    if escape == "\\":
        return pattern
    pieces: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                raise ValueError(f"in this LIKE pattern, {escape!r} may only precede '%', '_' and itself")
            pieces.append(write_like(escaped))
        else:
            pieces.append("\\\\" if character == "\\" else character)
    return "".join(pieces)
