"""The shape and the literals of a text, without understanding it: the key of the form cache.

One regular expression finds text that is surely a literal. The *shape* is the text with marks for
these literals, by their class::

    age BETWEEN 22 AND 36 AND city IN ('Nice', 'Lyon')      ["22", "36", ["Nice", "Lyon"]]
    age BETWEEN <int> AND <int> AND city IN <strings>

The expression only passes over some prefixes and map keys, and knows nothing of comments. This is
sound because ``tokens.py`` reads the first text of each shape properly. If it finds other literals,
or finds them elsewhere, no form is kept for the shape. All texts of the shape are then read
properly. Texts of one shape differ only inside the literals of this pattern, so they agree or
disagree together.

A list of literals is one mark, so ``IN`` lists of every length share a shape.
"""

from __future__ import annotations

import re
from typing import Any

MARK = "\x01"  # a text that has it is not split

_INSIDE = r"[^'\\]*(?:(?:\\.|'')[^'\\]*)*"
_STRING = rf"'{_INSIDE}'(?!')"
_INT = r"[0-9]{1,38}"
_DECIMAL = r"[0-9]{1,19}\.[0-9]{0,19}"


def _list(item: str) -> str:
    return rf"\s*{item}(?:\s*,\s*{item})*\s*\)"


# The pattern begins with a set of characters, so the engine tries the alternatives only there. A
# string that is not closed reaches to the end of the text. Otherwise the search for its end would
# begin again at each of the quotes behind it.
_LITERAL = re.compile(
    rf"""(['"0-9(`\[](?:
        (?<=(?<!\w)'){_INSIDE}(?:'(?!')|\\?\Z)
      | (?<=[0-9])(?<![\w.].)(?:[0-9]{{0,37}}|[0-9]{{0,18}}\.[0-9]{{0,19}}|[0-9]{{0,18}}(?:\.[0-9]{{0,19}})?[eE][+-]?[0-9]{{1,2}})(?![\w.])
      | (?<=\()(?:{_list(_STRING)}|{_list("-?" + _INT)}|{_list("-?" + _DECIMAL)})
      | (?<=(?<!\w)")[^"\\]*"(?!")
      | (?<=`)[^`]*`
      | (?<=\[)(?:\s*-?[0-9]+|\s*'[^'\\]*'|\s*"[^"\\]*")\s*\]
    ))""",
    re.VERBOSE | re.DOTALL,
)
_split = _LITERAL.split
_STRINGS = re.compile(_STRING, re.DOTALL)
_closed = _STRINGS.fullmatch
_NOT_CLOSED = "a string is not closed"

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_CONTROL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def _character(escape: re.Match[str]) -> str:
    """Returns the character for an escape. Raises ValueError: there is no such character."""
    point, wide, octal, char = escape.groups()
    if char:
        return _CONTROL.get(char, char)
    if octal:
        return chr(int(octal, 8))
    code = int(point or wide, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"{escape[0]} is not a character")
    return chr(code)


def unescape(raw: str) -> str:
    """Returns the string for a literal with its quotes, as Spark 4 reads it.

    Spark knows backslash escapes, and the quote written twice.

    Raises ValueError: an escape names no character.
    """
    quote = raw[0]
    text = raw[1:-1]
    if "\\" not in text:
        return text.replace(quote + quote, quote)
    if quote + quote not in text:
        return _ESCAPE.sub(_character, text)
    # Escapes come first: in '\'''' the first quote is escaped, the next two are one.
    pieces: list[str] = []
    end = 0
    for escape in _ESCAPE.finditer(text):
        pieces.append(text[end : escape.start()].replace(quote + quote, quote))
        pieces.append(_character(escape))
        end = escape.end()
    pieces.append(text[end:].replace(quote + quote, quote))
    return "".join(pieces)


# A backslash that may be dropped: it gives no meaning to the character behind it. Python and RE2
# both use this pattern.
ODD_ESCAPE = r"""(?:^|[^\\])(?:\\\\)*\\[^\\'"nrt%_]"""
REGEX_WORDS = "(?i)rlike|regexp|~"
_has_odd_escape = re.compile(ODD_ESCAPE, re.DOTALL).search
_has_regex = re.compile(REGEX_WORDS).search
_KEPT = frozenset("\\'\"nrt%_0")
_LITERALS = re.compile(r"""\s*('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")""", re.DOTALL)


def has_odd_escape(text: str) -> bool:
    """Returns whether a text may have a regular expression with a backslash that Spark drops."""
    return "\\" in text and _has_odd_escape(text) is not None and _has_regex(text) is not None


def find_dropped_escape(text: str, at: int) -> tuple[str, str] | None:
    r"""Returns the first escape of a string that a pattern would read otherwise, and a correction.

    Such escapes are ``\d``, which becomes ``d``, and ``\b``, which becomes a backspace. The
    correction is the string with another backslash before each of them. The result is None where
    there is no such escape, or the string is a raw one.

    at : begin of the string
    """
    dropped: list[str] = []

    def doubled(escape: re.Match[str]) -> str:
        if escape[4] is None or escape[4] in _KEPT:
            return escape[0]
        dropped.append(escape[0])
        return "\\" + escape[0]

    end = at
    while literal := _LITERALS.match(text, end):
        correction = _ESCAPE.sub(doubled, literal[1])
        if dropped:
            return dropped[0], correction
        end = literal.end()
    return None


def members(raw: str) -> tuple[str, list[str]]:
    """Returns the mark and the members of a list, given with its parentheses."""
    if "'" in raw:
        if "\\" in raw or "''" in raw:
            return "\x01S", [unescape(item) for item in _STRINGS.findall(raw)]
        return "\x01S", raw.split("'")[1::2]
    return "\x01D" if "." in raw else "\x01I", [item.strip() for item in raw[1:-1].split(",")]


def split(text: str) -> tuple[str, list[Any]]:
    """Splits a text into its shape and its literals (of a list: a list of str).

    The result is only a guess until the first text of the shape has been read.

    Raises ValueError: an escape names no character, or a string seems not to be closed.
    """
    pieces = _split(text)
    literals: list[Any] = []
    marks: list[str] = []
    for raw in pieces[1::2]:
        first = raw[0]
        if first == "'":
            value: Any = raw[1:-1]
            if "\\" in value or "'" in value:
                if raw is pieces[-2] and not _closed(raw):
                    raise ValueError(_NOT_CLOSED)
                value = unescape(raw)
            elif raw[-1] != "'" or len(raw) == 1:
                raise ValueError(_NOT_CLOSED)
            marks.append("\x01s")
        elif first == "(":
            mark, value = members(raw)
            marks.append(mark)
        elif first == "`" or first == "[":
            marks.append(raw)
            continue
        elif first == '"':
            value = raw[1:-1]
            marks.append("\x01q")
        else:
            value = raw
            marks.append("\x01i" if raw.isdigit() else "\x01e" if "e" in raw or "E" in raw else "\x01d")
        literals.append(value)
    pieces[1::2] = marks
    return "".join(pieces), literals


def literal_places(text: str) -> list[int]:
    """Returns the places of the literals that ``split`` finds."""
    return [match.start() for match in _LITERAL.finditer(text) if match[0][0] not in "`["]
