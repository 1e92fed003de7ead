"""Functions of texts and regular expressions, which RE2 runs as it does for RLIKE.

RE2 takes time in proportion to the text. Python's expressions may take an exponential time.

Each takes values of Arrow and constants. It raises ValueError for constants that it cannot use,
whatever the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.text.regex_tokens import Sort, UnknownSyntaxError, tokens

_MARK = "\x01"
_NEW = re.compile(r"\\(.)|\$(\d)|([^\\$]+)|(.)", re.DOTALL)


@lru_cache(10_000)
def _named(regex: str) -> tuple[str, int]:
    """Returns an expression with a name for each group, ``g0`` for all of it, and their number.

    Raises ValueError: it is no expression, or one that is not understood.
    """
    try:
        pc.match_substring_regex(pa.array([""]), regex)
        pieces, groups, flags = list[str](), 0, ""
        for i, token in enumerate(tokens(regex)):
            if token.sort is Sort.OPEN and (token.text == "(" or "<" in token.text):
                groups += 1
                pieces.append(f"(?P<g{groups}>")
            elif i == 0 and token.sort is Sort.FLAGS:
                flags = token.text
            else:
                pieces.append(token.text)
    except pa.ArrowException as error:
        raise ValueError(f"{regex!r:.80} is no regular expression: {error}") from None
    except UnknownSyntaxError as error:
        raise ValueError(f"{regex!r:.80} is not taken here: {error}") from None
    return f"{flags}(?P<g0>{''.join(pieces)})", groups


def _group(values: Any, regex: str, group: int, missing: str | None) -> Any:
    named, groups = _named(regex)
    if not 0 <= group <= groups:
        raise ValueError(f"{regex!r:.80} has {groups} groups in parentheses, and {group} is none of them")
    found = pc.extract_regex(values, pattern=named)
    matched = pc.if_else(pc.is_valid(found), pc.struct_field(found, f"g{group}"), pa.scalar(missing, pa.string()))
    return pc.if_else(pc.is_valid(values), matched, pa.scalar(None, pa.string()))


def _extract(values: Any, regex: str, group: int = 1) -> Any:
    """Returns a group of the first match, '' without a match or where the group has none."""
    return _group(values, regex, group, "")


def _substr(values: Any, regex: str) -> Any:
    """Returns the first match, NULL if there is none or it is empty."""
    found = _group(values, regex, 0, None)
    return pc.if_else(pc.equal(found, ""), pa.scalar(None, pa.string()), found)


@lru_cache(10_000)
def _filled(regex: str) -> int:
    """Returns the number of groups of an expression whose matches are never empty.

    Behind a match, Java finds an empty one and RE2 does not.

    Raises ValueError: it is no such expression.
    """
    _, groups = _named(regex)
    if pc.match_substring_regex("", regex).as_py() or any(token.text in ("\\b", "\\B") for token in tokens(regex)):
        raise ValueError(
            f"{regex!r:.80} could match nothing, which is counted in several ways: write + for *, for example"
        )
    return groups


def _count(values: Any, regex: str) -> Any:
    """Counts matches by a mark before each: Arrow's own count takes each place for a beginning."""
    _filled(regex)
    marked = pc.replace_substring_regex(values, pattern=regex, replacement=rf"{_MARK}\0")
    marks, before = pc.count_substring(marked, _MARK), pc.count_substring(values, _MARK)
    return pc.subtract(marks, before).cast(pa.int32())


def _replace(values: Any, regex: str, new: str) -> Any:
    """Replaces all matches. In ``new``, $1 is the first group, and a backslash escapes."""
    groups = _filled(regex)
    parts = []
    for piece in _NEW.finditer(new):
        escaped, group, plain, odd = piece.groups()
        is_longer = group is not None and new[piece.end() : piece.end() + 1].isdigit()
        if odd is not None or (group is not None and (int(group) > groups or (is_longer and groups > 9))):
            raise ValueError(
                f"{piece[0]!r} in {new!r:.80} is no group: a backslash before it makes it a plain character"
            )
        parts.append(rf"\{group}" if group is not None else (escaped or plain).replace("\\", r"\\"))
    return pc.replace_substring_regex(values, pattern=regex, replacement="".join(parts))


def _instr(values: Any, regex: str) -> Any:
    """Returns the place of the first match in the characters of Java, from 1; 0 without one."""
    _named(regex)
    found = pc.extract_regex(values, pattern=f"(?s)^(?P<before>.*?)(?:(?-s){regex})")
    before = pc.struct_field(found, "before").dictionary_encode()
    places = pa.array([len(text.encode("utf-16-le")) // 2 + 1 for text in before.dictionary.to_pylist()], pa.int32())
    place = pc.fill_null(places.take(before.indices), 0)
    return pc.if_else(values.is_valid(), pc.if_else(pc.is_valid(found), place, 0), pa.scalar(None, pa.int32())).cast(
        pa.int32()
    )


REGEXES: dict[str, Callable[..., Any]] = {
    "regexp_extract": _extract,
    "regexp_substr": _substr,
    "regexp_count": _count,
    "regexp_instr": _instr,
    "regexp_replace": _replace,
}
