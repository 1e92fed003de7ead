r"""Text patterns (LIKE, ILIKE, RLIKE, endswith, contains) over arrays of distinct strings, by
Arrow's compute functions.

A LIKE pattern is taken apart first, since most are a literal with ``%`` before or after it, which
needs no regular expression::

    'Nice'   equal               'Ni%'   starts with
    '%ce'    ends with           '%ic%'  contains
    'N_c%e'  (?s)\AN.c.*e\z
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

Truth = Callable[[pa.Array], pa.Array]  # strings without NULL -> booleans

ANY, ONE = object(), object()
# characters of a regular expression with {n,m}: RE2 writes them out before it finds that they are
# too many
COUNTED_MOST = 1 << 16


def check_pattern(op: str, operand: str) -> str | None:
    """What is wrong with the operand of ``like``, ``ilike``, ``rlike``, ``endswith`` or
    ``contains``; None when nothing is.
    """
    if op == "rlike" and len(operand) > COUNTED_MOST and "{" in operand:
        return f"with {{...}} in it, a pattern has at most {COUNTED_MOST:,} characters, not {len(operand):,}"
    try:
        pattern_truth(op, operand)(pa.array([""], pa.large_string()))
    except (ValueError, pa.ArrowException) as error:
        return str(error)
    return None


def pattern_truth(op: str, operand: str) -> Truth:
    """The function that says which strings match.

    Raises
    ------
    ValueError : the pattern is not one, or there is no such ``op``
    """
    if op == "endswith":
        return lambda values: pc.ends_with(values, pattern=operand)
    if op == "contains":
        return lambda values: pc.match_substring(values, pattern=operand)
    if op == "rlike":
        return lambda values: pc.match_substring_regex(values, pattern=operand)
    if op == "like":
        return _like(operand)
    if op == "ilike":
        truth = _like(pc.utf8_lower(pa.scalar(operand)).as_py())
        return lambda values: truth(pc.utf8_lower(values))
    raise ValueError(f"no pattern operator is called {op!r}")


def _like(pattern: str) -> Truth:
    parts = like_parts(pattern)
    head = bool(parts) and parts[0] is ANY
    tail = len(parts) > 1 and parts[-1] is ANY
    inner = parts[1 if head else 0 : len(parts) - 1 if tail else len(parts)]
    if not inner and head:
        return lambda values: pc.match_substring(values, pattern="")
    if all(isinstance(part, str) for part in inner):
        text = "".join(map(str, inner))
        if head and tail:
            return lambda values: pc.match_substring(values, pattern=text)
        if head:
            return lambda values: pc.ends_with(values, pattern=text)
        if tail:
            return lambda values: pc.starts_with(values, pattern=text)
        return lambda values: pc.equal(values, pa.scalar(text.encode(), pa.large_binary()).cast(values.type))
    # RE2 searches for one match of a short expression faster than it follows a leading or trailing
    # ".*".
    body = "".join(".*" if part is ANY else "." if part is ONE else _quoted(str(part)) for part in inner)
    regex = "(?s)" + ("" if head else r"\A") + body + ("" if tail else r"\z")
    return lambda values: pc.match_substring_regex(values, pattern=regex)


def like_parts(pattern: str) -> list[object]:
    """A LIKE pattern as characters, ANY and ONE; runs of ``%`` as one ANY. Raises ValueError."""
    parts: list[object] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise ValueError(r"the pattern ends with the escape character \: write \\ for the character itself")
            if escaped not in "%_\\":
                raise ValueError(
                    rf"the escape character \ stands before {escaped!r}, not %, _ or \: write \\ for the character itself"
                )
            parts.append(escaped)
        elif character == "%":
            if not parts or parts[-1] is not ANY:
                parts.append(ANY)
        else:
            parts.append(ONE if character == "_" else character)
    return parts


def _quoted(character: str) -> str:
    if character == "\0":
        return r"\x00"
    return "\\" + character if character.isascii() and not character.isalnum() and character != "_" else character
