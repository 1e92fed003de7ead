"""The registry of index kinds: the only place that lists them.

A kind is imported when it is asked for, since a process seldom uses more than two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Literal, get_args

from colmatch.errors import OptionError, shown
from colmatch.given.arguments import text
from colmatch.kinds.base import IndexKind
from colmatch.kinds.settings import Settings

# Checkers of types read no registry, so the names stand here.
IndexName = Literal[
    "auto", "scan", "kindex", "propagation", "opindex", "betree", "bestar", "pstbloom", "psthash", "pbtree", "bitslice"
]
_NAMES: tuple[str, ...] = get_args(IndexName)[1:]


class _Kinds(Mapping[str, IndexKind]):
    """The kinds by name; the file of a kind has its name."""

    def __getitem__(self, name: str) -> IndexKind:
        if name not in _NAMES:
            raise KeyError(name)
        kind: IndexKind = import_module(f"colmatch.kinds.{name}").KIND
        return kind

    def __contains__(self, name: object) -> bool:
        return name in _NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


KINDS: Mapping[str, IndexKind] = _Kinds()
FEWEST = KINDS["scan"]  # for few subscriptions whose own kind takes no inserts: no other has so little to keep


def find(name: str) -> IndexKind:
    """Returns the kind of that name. Raises OptionError when there is none."""
    known = text(name) or ""
    if known not in KINDS:
        raise OptionError(f"index={shown(name)}: the kinds are {', '.join(map(repr, KINDS))} and 'auto'")
    return KINDS[known]


def is_in_pages(settings: Settings) -> bool:
    """Says whether a matcher with these settings lives in a file of pages."""
    return settings.kind in KINDS and KINDS[settings.kind].in_pages(settings)
