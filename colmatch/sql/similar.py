"""Regular expressions for the patterns of SIMILAR TO."""

from __future__ import annotations

from colmatch.lowering.forms import quote_text

_WILD = {"%": ".*", "_": "."}
_PLAIN = ".^$"  # these have a meaning in regular expressions alone
DISAGREE = "its pattern has another meaning in PostgreSQL, and is a regular expression in DuckDB"


def advise_similar(pattern: str) -> str:
    """Returns an RLIKE for a pattern of SIMILAR TO, as PostgreSQL and the standard read it."""
    regex, in_class = "", False
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            regex += "\\" + next(characters, "\\")
        elif in_class:
            in_class = character != "]"
            regex += character
        else:
            in_class = character == "["
            regex += _WILD.get(character, "\\" * (character in _PLAIN) + character)
    return f"{DISAGREE}: write RLIKE {quote_text(f'^(?s:{regex})$')}"
