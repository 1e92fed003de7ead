"""The registry of index kinds: the only place that lists them."""

from __future__ import annotations

from typing import Literal

from colmatch.arguments import text
from colmatch.errors import OptionError, shown
from colmatch.indexing import bestar, betree, bitslice, kindex, opindex, pbtree, propagation, pstbloom, psthash, scan
from colmatch.indexing.base import IndexKind
from colmatch.indexing.settings import Settings

_ALL = (
    scan.KIND,
    kindex.KIND,
    propagation.KIND,
    opindex.KIND,
    betree.KIND,
    bestar.KIND,
    pstbloom.KIND,
    psthash.KIND,
    pbtree.KIND,
    bitslice.KIND,
)
# Their names for type checkers, which read no registry; a test compares them.
IndexName = Literal[
    "auto", "scan", "kindex", "propagation", "opindex", "betree", "bestar", "pstbloom", "psthash", "pbtree", "bitslice"
]
KINDS: dict[str, IndexKind] = {kind.name: kind for kind in _ALL}
FEWEST = scan.KIND  # for few subscriptions whose own kind takes no inserts: no other has so little to keep


def find(name: str) -> IndexKind:
    """Returns the kind of that name. Raises OptionError when there is none."""
    kind = KINDS.get(text(name) or "")
    if kind is None:
        raise OptionError(f"index={shown(name)}: the kinds are {', '.join(map(repr, KINDS))} and 'auto'")
    return kind


def is_in_pages(settings: Settings) -> bool:
    """Says whether a matcher with these settings lives in a file of pages."""
    return settings.kind in KINDS and KINDS[settings.kind].in_pages(settings)
