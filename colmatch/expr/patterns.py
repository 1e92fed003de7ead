"""Text patterns, reduced to what needs least work: an equality, a prefix, a suffix, a substring, or a real pattern."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.expr.forms import Op


@dataclass(frozen=True, slots=True)
class Pattern:
    """Exactly one of ``exact``, ``prefix``, ``op`` and ``error`` is set.

    ``op`` and ``operand`` are those of a pattern attribute: like, ilike, rlike, endswith, contains.
    """

    exact: str | None = None
    prefix: str | None = None
    op: str = ""
    operand: str = ""
    error: str = ""

    @staticmethod
    def read(op: Op, text: str) -> Pattern:
        """
        Examples
        --------
        >>> Pattern.read(Op.LIKE, "N%").prefix
        'N'
        >>> Pattern.read(Op.LIKE, r"100\\%").exact
        '100%'
        """
        try:
            text.encode()
        except UnicodeEncodeError:
            return Pattern(error="the pattern is not valid Unicode")
        if op is Op.STARTSWITH:
            return Pattern(prefix=text)
        if op in (Op.ENDSWITH, Op.CONTAINS):
            return Pattern(op=op.name.lower(), operand=text) if text else Pattern(prefix="")
        if op is Op.RLIKE:
            try:
                pc.match_substring_regex(pa.array([""]), pattern=text)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                return Pattern(error=f"not a regular expression that can run in linear time (RE2): {str(error).splitlines()[0]}")
            return Pattern(op="rlike", operand=text)
        return _like(op, text)


def _like(op: Op, text: str) -> Pattern:
    """LIKE with the escape character backslash; '%' is any text, '_' one character."""
    parts: list[str | None] = [""]  # None stands for '%'
    plain = True
    i = 0
    while i < len(text):
        char = text[i]
        if char == "\\":
            i += 1
            if i == len(text) or text[i] not in "\\%_":
                return Pattern(error="in a LIKE pattern, a backslash stands before '%', '_' or another backslash")
            char = text[i]
        elif char == "%":
            if parts[-1] is not None:
                parts.append(None)
            i += 1
            continue
        elif char == "_":
            plain = False
        if parts[-1] is None:
            parts.append("")
        last = parts[-1]
        assert last is not None
        parts[-1] = last + char
        i += 1
    if parts[0] == "" and len(parts) > 1:
        del parts[0]
    if parts == [None]:
        return Pattern(prefix="")
    if op is Op.LIKE and plain:
        match parts:
            case [str(exact)]:
                return Pattern(exact=exact)
            case [str(prefix), None]:
                return Pattern(prefix=prefix)
            case [None, str(suffix)]:
                return Pattern(op="endswith", operand=suffix)
            case [None, str(middle), None]:
                return Pattern(op="contains", operand=middle)
    return Pattern(op=op.name.lower(), operand=text)


def successor(prefix: bytes) -> bytes:
    """The first string, in the order of bytes, after all that begin with ``prefix``: UTF-8 never has only 0xFF bytes."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
