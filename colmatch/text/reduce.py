"""Text patterns, reduced to what needs least work: an equality, a prefix, a suffix, a substring,
or a real pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

from colmatch.text.like import ANY, ONE, check_pattern, like_parts


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
    def read(op: str, text: str) -> Pattern:
        """
        Examples
        --------
        >>> Pattern.read("like", "N%").prefix
        'N'
        >>> Pattern.read("like", r"100\\%").exact
        '100%'
        """
        try:
            text.encode()
        except UnicodeEncodeError:
            return Pattern(error="the pattern is not valid Unicode")
        if op == "startswith":
            return Pattern(prefix=text)
        if op in ("endswith", "contains"):
            return Pattern(op=op, operand=text) if text else Pattern(prefix="")
        wrong = check_pattern(op, text)
        if wrong:
            kind = "a regular expression that RE2 can run in linear time" if op == "rlike" else "a LIKE pattern"
            return Pattern(error=f"not {kind}: {wrong.splitlines()[0]}")
        return _like(text) if op == "like" else Pattern(op=op, operand=text)


def _like(text: str) -> Pattern:
    parts = like_parts(text)
    if ONE in parts or parts.count(ANY) > 2 or ANY in parts[1:-1]:
        return Pattern(op="like", operand=text)
    literal = "".join(str(part) for part in parts if part is not ANY)
    head, tail = parts[:1] == [ANY], parts[-1:] == [ANY]
    if not literal and head:
        return Pattern(prefix="")
    if head and tail:
        return Pattern(op="contains", operand=literal)
    if head:
        return Pattern(op="endswith", operand=literal)
    return Pattern(prefix=literal) if tail else Pattern(exact=literal)


def successor(prefix: bytes) -> bytes:
    """The first string, in the order of bytes, after all that begin with ``prefix``: UTF-8 never
    has only 0xFF bytes.
    """
    return prefix[:-1] + bytes([prefix[-1] + 1])
