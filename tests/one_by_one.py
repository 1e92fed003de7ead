r"""Text patterns (LIKE, ILIKE, RLIKE, endswith, contains) one by one, by Arrow's compute functions.

A naive twin of ``colmatch.text``. It takes a LIKE pattern apart character by character, since most
are a literal with ``%`` before or after it, which needs no regular expression::

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


def pattern_truth(op: str, operand: str) -> Truth:
    """The function that says which strings match; the pattern is known to be sound."""
    if op == "endswith":
        return lambda values: pc.ends_with(values, pattern=operand)
    if op == "contains":
        return lambda values: pc.match_substring(values, pattern=operand)
    if op == "rlike":
        return lambda values: pc.match_substring_regex(values, pattern=operand)
    if op == "like":
        return _like(operand)
    assert op == "ilike", op
    truth = _like(pc.utf8_lower(pa.scalar(operand)).as_py())
    return lambda values: truth(pc.utf8_lower(values))


def _like(pattern: str) -> Truth:
    parts = _parts(pattern)
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


def _parts(pattern: str) -> list[object]:
    """A LIKE pattern as characters, ANY and ONE; runs of ``%`` as one ANY."""
    parts: list[object] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append(next(characters))
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
