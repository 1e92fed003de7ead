"""The reduction of a text pattern to the form that needs the least work.

This is an equality, a prefix, a suffix, a substring, or a real pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.text.like import LiteralPosition, read_like

# most characters of a regular expression with {n,m}: RE2 writes repeats out before it finds them
# too many
COUNTED_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduced pattern: exactly one of ``exact``, ``prefix``, ``op`` and ``error`` is set.

    ``op`` and ``operand`` belong to a pattern attribute: like, ilike, rlike, endswith, contains.
    """

    exact: str | None = None
    prefix: str | None = None
    op: str = ""
    operand: str = ""
    error: str = ""


def reduce_pattern(op: str, text: str) -> Reduction:
    """Reduces a pattern; ``error`` is set if it is wrong.

    op : startswith, endswith, contains, like, ilike or rlike

    Examples
    --------
    >>> reduce_pattern("like", "N%").prefix
    'N'
    >>> reduce_pattern("like", r"100\\%").exact
    '100%'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return Reduction(error="the pattern is not valid Unicode")
    if op == "startswith":
        return Reduction(prefix=text)
    if op in ("endswith", "contains"):
        return Reduction(op=op, operand=text) if text else Reduction(prefix="")
    if op == "rlike":
        wrong = _fault(text)
        if wrong is not None:
            return Reduction(error=f"not a regular expression that RE2 can run in linear time: {wrong}")
        return Reduction(op=op, operand=text)
    try:
        like = read_like(text)
    except ValueError as error:
        return Reduction(error=f"not a LIKE pattern: {error}")
    if op == "ilike" or like.literal is None:
        return Reduction(op=op, operand=text)
    literal = like.literal.decode()
    if like.place is LiteralPosition.WHOLE:
        return Reduction(exact=literal)
    if like.place is LiteralPosition.HEAD:
        return Reduction(prefix=literal)
    return Reduction(op="endswith" if like.place is LiteralPosition.TAIL else "contains", operand=literal)


def _fault(regex: str) -> str | None:
    """Returns the fault of a regular expression, in one line; None if there is none."""
    if len(regex) > COUNTED_MOST and "{" in regex:
        return f"with {{...}} in it, a pattern has at most {COUNTED_MOST:,} characters, not {len(regex):,}"
    try:
        pc.match_substring_regex(pa.array([""], pa.large_string()), pattern=regex)
    except (ValueError, pa.ArrowException) as error:
        return str(error).splitlines()[0]
    return None


def successor(prefix: bytes) -> bytes:
    """Returns the first string behind all that begin with ``prefix``, in the order of bytes.

    UTF-8 never has the byte 0xFF, so the last byte can always be one more.
    """
    return prefix[:-1] + bytes([prefix[-1] + 1])
