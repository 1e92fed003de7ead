"""A text -> its shape and its literals, without understanding it: the key of the form cache.

One regular expression finds what is surely a literal; the text with the literals replaced by marks
of their class is the *shape*::

    age BETWEEN 22 AND 36 AND city IN ('Nice', 'Lyon')      ["22", "36", ["Nice", "Lyon"]]
    age BETWEEN <int> AND <int> AND city IN <strings>

It knows nothing of comments, prefixes and map keys beyond what the pattern passes over. That is
sound because the first text of each shape is read properly (``tokens.py``): where that finds other
literals, or finds them elsewhere, no form is kept for the shape, and its texts are always read
properly. Texts of one shape differ only inside what this pattern took for literals, so they agree
or disagree together.

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


# Begins with a set of characters, which the engine looks for without trying the alternatives at
# every place. A string that is not closed reaches to the end of the text, or the search for its end
# would begin again at each of the quotes behind it.
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
    """Returns what an escape stands for. Raises ValueError where that is no character."""
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
    """Returns the string that a literal with its quotes stands for in Spark 4.

    That is with backslash escapes, and the quote written twice.

    Raises ValueError: an escape names no character.
    """
    quote = raw[0]
    text = raw[1:-1]
    if "\\" not in text:
        return text.replace(quote + quote, quote)
    if quote + quote not in text:
        return _ESCAPE.sub(_character, text)
    # Not before the backslashes are: in '\'''' the first quote is escaped, the next two are one.
    pieces: list[str] = []
    end = 0
    for found in _ESCAPE.finditer(text):
        pieces.append(text[end : found.start()].replace(quote + quote, quote))
        pieces.append(_character(found))
        end = found.end()
    pieces.append(text[end:].replace(quote + quote, quote))
    return "".join(pieces)


# A backslash that may be dropped: it is before none of the characters that it gives a meaning to.
# Python and RE2 read this.
ODD_ESCAPE = r"""(?:^|[^\\])(?:\\\\)*\\[^\\'"nrt%_]"""
REGEX_WORDS = "(?i)rlike|regexp|~"
_has_odd_escape = re.compile(ODD_ESCAPE, re.DOTALL).search
_has_regex = re.compile(REGEX_WORDS).search
_KEPT = frozenset("\\'\"nrt%_0")
_LITERALS = re.compile(r"""\s*('(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")""", re.DOTALL)


def has_odd_escape(text: str) -> bool:
    """Says whether a text may have a regular expression with a backslash that Spark drops."""
    return "\\" in text and _has_odd_escape(text) is not None and _has_regex(text) is not None


def dropped_escape(text: str, at: int) -> tuple[str, str] | None:
    r"""Returns the first escape of a string that is not what a pattern would mean by it.

    Such are ``\d``, of which ``d`` is left, and ``\b``, which is a backspace. With it comes the
    string with another backslash before each of them. None where there is no such escape, or the
    string is a raw one.

    at : where the string begins
    """
    dropped: list[str] = []

    def doubled(escape: re.Match[str]) -> str:
        if escape[4] is None or escape[4] in _KEPT:
            return escape[0]
        dropped.append(escape[0])
        return "\\" + escape[0]

    end = at
    while literal := _LITERALS.match(text, end):
        found = _ESCAPE.sub(doubled, literal[1])
        if dropped:
            return dropped[0], found
        end = literal.end()
    return None


def members(raw: str) -> tuple[str, list[str]]:
    """Marks and members of a list, given with its parentheses."""
    if "'" in raw:
        if "\\" in raw or "''" in raw:
            return "\x01S", [unescape(item) for item in _STRINGS.findall(raw)]
        return "\x01S", raw.split("'")[1::2]
    return "\x01D" if "." in raw else "\x01I", [item.strip() for item in raw[1:-1].split(",")]


def split(text: str) -> tuple[str, list[Any]]:
    """Shape and literals (a list's: a list of str).

    Only as good as a guess until the shape's first text has been read.

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
    """Returns where the literals are that ``split`` finds."""
    return [found.start() for found in _LITERAL.finditer(text) if found[0][0] not in "`["]
