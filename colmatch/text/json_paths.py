"""Paths into JSON texts, as ``get_json_object`` of Spark takes them, and into variants.

``$.a['b c'][0]`` has three steps. A step is the name of a field, or the place of an element,
counted from 0. A path into a text may have wildcards, and a path into a variant more names.
"""

from __future__ import annotations

import re
from functools import lru_cache

STEPS_MOST = 64
ALL = -1  # the step of [*], which leads to all elements
NOTHING_AT = -2  # the step of .* and ['*'], which to Spark leads nowhere
_STEP = re.compile(r"\.(?!\*)\s*([^.\[]+)|\['\s*(?!\*'\])([^'?]+)'\]|\[([0-9]{1,18}|\*)\]|(\.\*|\['\*'\])", re.ASCII)
_OF_VARIANT = re.compile(r"""\.([^.\[]+)|\['([^']*)'\]|\["([^"]*)"\]|\[([0-9]{1,10})\]""", re.ASCII)
_PLAIN = re.compile(r"[^.\[*][^.\[]*")
_PLACES = 1 << 31  # places in a variant are less


@lru_cache(4096)
def steps_of(path: str, has_wildcards: bool = False) -> tuple[str | int, ...]:
    """Returns the steps of a path into a text.

    Raises ValueError: the text is no path, or has a wildcard without ``has_wildcards``.
    """
    steps = list[str | int]()
    for match in _matches(_STEP, path):
        field, quoted, place, nothing = match.groups()
        if not has_wildcards and (place == "*" or nothing):
            raise ValueError(f"wildcards of {path!r:.80} are not computed: name the place, as in '$.a[0]'")
        steps.append(ALL if place == "*" else int(place) if place else NOTHING_AT if nothing else field or quoted)
    return tuple(steps)


@lru_cache(4096)
def variant_steps(path: str) -> tuple[str | int, ...]:
    """Returns the steps of a path into a variant.

    Raises ValueError: the text is no path.
    """
    steps = list[str | int]()
    for match in _matches(_OF_VARIANT, path):
        place = match[4]
        if place and int(place) >= _PLACES:
            raise ValueError(f"{path!r:.80} has a place beyond {_PLACES - 1}")
        steps.append(int(place) if place else next((name for name in match.groups()[:3] if name is not None), ""))
    return tuple(steps)


def _matches(step: re.Pattern[str], path: str) -> list[re.Match[str]]:
    """Returns the matches of all steps. Raises ValueError: something else is between them."""
    if path[:1] != "$":
        raise ValueError(f"{path!r:.80} is no path into JSON: a path begins with $, as in '$.a.b[0]'")
    found, at = list[re.Match[str]](), 1
    while at < len(path):
        match = step.match(path, at)
        if match is None:
            raise ValueError(
                f"{path!r:.80} is no path into JSON at {path[at:]!r:.40}: write '$.a.b[0]' or \"$['a b']\""
            )
        found.append(match)
        at = match.end()
    if len(found) > STEPS_MOST:
        raise ValueError(f"a path into JSON has {STEPS_MOST} steps at most")
    return found


def path_of(steps: list[str | int]) -> str:
    """Returns the path of some steps. Raises ValueError: no path has such a step."""
    return "$" + "".join(map(_step_text, steps))


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        if step < 0:
            raise ValueError(f"places in JSON count from 0 at the beginning, and {step} is none of them")
        return f"[{step}]"
    if step[:1] == "$":
        steps_of(step)
        return step[1:]
    if step[:1] == "/":
        raise ValueError(
            f"{step!r:.80} is a pointer in some dialects and a key in others: write ->> '$.a.b', or ->> 'a'"
        )
    if _PLAIN.fullmatch(step):
        return f".{step}"
    if not step or step == "*" or "'" in step or "?" in step:
        raise ValueError(f"{step!r:.80} cannot be a key in a path into JSON")
    return f"['{step}']"
