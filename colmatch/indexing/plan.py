"""Which index kind to build. A plan is a value: a kind and the reason for it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from colmatch.indexing import KINDS, IndexKind, find
from colmatch.indexing.statistics import Statistics

log = logging.getLogger("colmatch")


class Plan(NamedTuple):
    kind: str
    reason: str


def _costs(kinds: Iterable[IndexKind], statistics: Statistics) -> dict[str, float]:
    """Estimated nanoseconds an event, by name of the kind."""
    return {kind.name: kind.cost(statistics) for kind in kinds}


def by_speed(kinds: Iterable[IndexKind], statistics: Statistics) -> list[str]:
    """The names of some kinds, that with the lowest estimated cost first."""
    costs = _costs(kinds, statistics)
    return sorted(costs, key=costs.__getitem__)


def choose(index: str, statistics: Statistics) -> Plan:
    """The kind that was asked for, or for ``auto`` the one with the lowest estimated cost.

    Raises OptionError for an unknown name.
    """
    if index != "auto":
        plan = Plan(find(index).name, "asked for")
    else:
        costs = _costs(KINDS.values(), statistics)
        best = min(costs, key=costs.__getitem__)
        others = ", ".join(f"{name} {cost / 1e3:.3g} us" for name, cost in costs.items() if name != best)
        plan = Plan(
            best,
            f"lowest estimated time an event, {costs[best] / 1e3:.3g} us" + (f" (others: {others})" if others else ""),
        )
    log.info("index %s: %s", plan.kind, plan.reason)
    return plan
