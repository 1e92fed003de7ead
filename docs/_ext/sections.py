"""Sections of our docstrings, reshaped as numpydoc takes them.

A docstring of ours has a parameter and the beginning of its text in one line, ``name : text``, and
the rest below it. numpydoc would take such a line for a type, so the text moves below the name. The
types stand in the signature.
"""

import re

SECTION = re.compile(r"^(Parameters|Attributes|Returns|Yields|Raises|Warns)$")
ENTRY = re.compile(r"^([*\w][\w.*, ]*?) : (.+)$")


def reshape(lines: list[str]) -> list[str]:
    """Returns the lines of a docstring with the text of each entry below its name."""
    shaped: list[str] = []
    inside = entry = False
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1]):
            inside, entry = bool(SECTION.match(line)), False
        found = ENTRY.match(line) if inside else None
        if found:
            shaped += [found[1], f"    {found[2]}"]
        else:  # a text of several lines under Returns need not be indented
            shaped.append(f"    {line}" if entry and line and not line.startswith(" ") else line)
        entry = bool(line) and (entry or bool(found))
    return shaped
