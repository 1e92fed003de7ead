"""The registry of index kinds: the only place that lists them.

A kind is imported when it is first used, since a process seldom uses more than two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Literal, get_args

from colmatch.errors import OptionError, show_value
from colmatch.given.arguments import text
from colmatch.kinds.base import IndexKind
from colmatch.kinds.settings import Settings

# Type checkers cannot read a registry, so the names are written out.
IndexName = Literal[
    "auto", "scan", "kindex", "propagation", "opindex", "betree", "bestar", "pstbloom", "psthash", "pbtree", "bitslice"
]
_NAMES: tuple[str, ...] = get_args(IndexName)[1:]


class _Kinds(Mapping[str, IndexKind]):
    """The kinds by name; the file of a kind has the same name."""

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
FEWEST = KINDS["scan"]  # for few subscriptions of a kind without inserts: no other has so little to keep


def find(name: str) -> IndexKind:
    """Returns the kind of this name. Raises OptionError when there is none."""
    key = text(name) or ""
    if key not in KINDS:
        raise OptionError(f"index={show_value(name)}: the kinds are {', '.join(map(repr, KINDS))} and 'auto'")
    return KINDS[key]


def is_in_pages(settings: Settings) -> bool:
    """Returns whether a matcher with these settings lives in a file of pages."""
    return settings.kind in KINDS and KINDS[settings.kind].in_pages(settings)
