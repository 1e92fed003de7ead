"""The kinds of locators there are: their only list."""

from __future__ import annotations

from colmatch.errors import OptionError, show_value, suggest_names
from locators import binary, eytzinger, hinted, interval_tree, ps_tree, scan, segment_tree
from locators.base import LocatorKind

_ALL = (scan.KIND, interval_tree.KIND, segment_tree.KIND, ps_tree.KIND, binary.KIND, hinted.KIND, eytzinger.KIND)
LOCATORS: dict[str, LocatorKind] = {kind.name: kind for kind in _ALL}


def find(name: str) -> LocatorKind:
    """The kind of that name. Raises OptionError when there is none."""
    kind = LOCATORS.get(name)
    if kind is None:
        raise OptionError(f"locator {show_value(name)}: {suggest_names(str(name), LOCATORS, 'colmatch')}")
    return kind
