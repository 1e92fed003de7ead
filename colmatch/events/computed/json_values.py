"""Values in JSON texts at the end of paths, with the results of Spark.

Of fields with one name, the first that leads to a value is taken. Wildcards are those of Hive:
where ``[*]`` finds one element, its value stands without brackets, unless another wildcard, or a
place before it, made a list. ``[*][*]`` makes one flat list. Texts within a list have quotes.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from colmatch.events.computed.json_texts import NOTHING, ONLY_SIGNS, Fields, read_json, write_json
from colmatch.text.json_paths import ALL, NOTHING_AT, steps_of

_SURROGATE = re.compile("[\ud800-\udfff]")
_WILDCARDS = frozenset({ALL, NOTHING_AT})


def get_json_object(text: str, path: str) -> str | None:
    """Returns what a path leads to: a string without quotes, and all else as JSON.

    None for what is not there, and for a text that is no JSON.

    Raises ValueError: the path is none.
    """
    steps = steps_of(path, True)
    if not _WILDCARDS.isdisjoint(steps):
        value = read_json(text)
        out = _Output()
        is_found = value is not NOTHING and _find_all(value, steps, _Style.RAW, out)
        return None if not is_found or _SURROGATE.search(out.text) else out.text
    value = _find_in(text, steps)
    if value is NOTHING:
        return None
    if type(value) is str:
        return None if _SURROGATE.search(value) else value
    return write_json(value)


def json_value(text: str, path: str) -> str | None:
    """Returns what a path leads to if it is a string, number or Boolean.

    Raises ValueError: the path is none.
    """
    value = _find_in(text, steps_of(path))
    if value is NOTHING or value is None or isinstance(value, list):
        return None
    return write_json(value) if isinstance(value, bool) else None if _SURROGATE.search(value) else str(value)


def json_array_length(text: str) -> int | None:
    """Returns the number of elements of a list; None for what is no list."""
    value = read_json(text)
    return len(value) if type(value) is list else None


def _find_in(text: str, steps: tuple[str | int, ...]) -> Any:
    """Returns the value at the end of a path, ``NOTHING`` if there is none."""
    if "\\" not in text and any(type(step) is str and step not in text for step in steps):
        return NOTHING
    value = read_json(text)
    return value if value is NOTHING else _find(value, steps)


def _find(value: Any, steps: tuple[str | int, ...]) -> Any:
    if not steps:
        return value
    step, others = steps[0], steps[1:]
    if isinstance(step, int):
        return _find(value[step], others) if type(value) is list and step < len(value) else NOTHING
    for name, field in value if type(value) is Fields else ():
        if name == step and field is not None:
            found = _find(field, others)
            if found is not NOTHING:
                return found
    return NOTHING


# Wildcards


class _Style(Enum):
    RAW = 0  # a text has no quotes
    QUOTED = 1
    FLAT = 2  # lists within the list are dissolved


class _Output:
    """The text of a result. Values of a list have commas between them, and others spaces.

    is_part : it is a part of another text; Spark escapes fewer characters there
    """

    def __init__(self, is_part: bool = False) -> None:
        self._is_part = is_part
        self.parts: list[str] = []
        self._written = [0]  # values so far, of the whole and of each open list

    def _begin_value(self) -> None:
        if self._written[-1]:
            self.parts.append("," if len(self._written) > 1 else " ")
        self._written[-1] += 1

    def add(self, text: str) -> None:
        self._begin_value()
        self.parts.append(text)

    def add_value(self, value: Any) -> None:
        self.add(write_json(value, ONLY_SIGNS) if self._is_part else write_json(value))

    def open_list(self) -> None:
        self.add("[")
        self._written.append(0)

    def close_list(self) -> None:
        self._written.pop()
        self.parts.append("]")

    @property
    def text(self) -> str:
        return "".join(self.parts)


def _find_all(value: Any, steps: tuple[str | int, ...], style: _Style, out: _Output) -> bool:
    """Writes what a path leads to, and returns whether it is anything."""
    if not steps:
        if type(value) is list and style is _Style.FLAT:
            return _write_flat(value, out)
        if type(value) is str and style is _Style.RAW:
            out.parts.append(value)
        else:
            out.add_value(value)
        return True
    step, others = steps[0], steps[1:]
    if type(value) is Fields:
        fields = [field for name, field in value if name == step and field is not None]
        return any(_find_all(field, others, style, out) for field in fields)
    if type(value) is not list or isinstance(step, str) or step == NOTHING_AT:
        return False
    if step == ALL:
        return _find_elements(value, others, style, out)
    if step >= len(value):
        return False
    return _find_all(value[step], others, _Style.QUOTED if others[:1] == (ALL,) else style, out)


def _find_elements(value: list[Any], steps: tuple[str | int, ...], style: _Style, out: _Output) -> bool:
    if steps[:1] == (ALL,):
        steps, style, is_list = steps[1:], _Style.FLAT, True
    else:
        is_list = style is _Style.QUOTED
    inner = out if is_list else _Output(is_part=True)
    inner.open_list()
    within = _Style.QUOTED if style is _Style.RAW else style
    found = sum([_find_all(element, steps, within, inner) for element in value])
    inner.close_list()
    if not is_list and found:
        out.add(inner.text if found > 1 else inner.text[1:-1])
    return found > 0


def _write_flat(value: list[Any], out: _Output) -> bool:
    stack, found = value[::-1], False
    while stack:
        part = stack.pop()
        if type(part) is list:
            stack += part[::-1]
        else:
            out.add_value(part)
            found = True
    return found
