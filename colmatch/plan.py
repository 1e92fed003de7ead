"""Which index kind to build. A plan is a value: a kind and the reason for it."""

from __future__ import annotations

import logging
from typing import NamedTuple

from colmatch.index import KINDS, find
from colmatch.stats import Statistics

log = logging.getLogger("colmatch")


class Plan(NamedTuple):
    kind: str
    reason: str


def choose(index: str, statistics: Statistics) -> Plan:
    """The kind that was asked for, or for ``auto`` the one with the lowest estimated cost. Raises OptionError for an unknown name."""
    if index != "auto":
        plan = Plan(find(index).name, "asked for")
    else:
        costs = {name: kind.cost(statistics) for name, kind in KINDS.items()}
        best = min(costs, key=costs.__getitem__)
        others = ", ".join(f"{name} {cost / 1e3:.3g} us" for name, cost in costs.items() if name != best)
        plan = Plan(best, f"lowest estimated time an event, {costs[best] / 1e3:.3g} us" + (f" (others: {others})" if others else ""))
    log.info("index %s: %s", plan.kind, plan.reason)
    return plan
