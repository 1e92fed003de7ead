"""The choice of an index kind.

A plan is a value: a kind with its settings, and the reason for it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from typing import NamedTuple

from colmatch.errors import OptionError, show_value
from colmatch.given.arguments import text
from colmatch.kinds.costs import estimates
from colmatch.kinds.registry import KINDS, IndexName, find
from colmatch.kinds.settings import Settings
from colmatch.kinds.statistics import Statistics

log = logging.getLogger("colmatch")


@dataclass(frozen=True, slots=True, repr=False)
class AutoSettings(Settings):
    """Settings of an index before its kind is chosen."""

    kind = "auto"
    about = "the kind with the lowest estimated time an event; it keeps the setting that is given here"


class IndexChoice(NamedTuple):
    settings: Settings
    reason: str


def settings_of(kind: str) -> type[Settings]:
    """Returns the settings of a kind, or of ``"auto"``. Raises OptionError when there is none."""
    return AutoSettings if text(kind) == AutoSettings.kind else find(kind).settings


def index(kind: IndexName, /, **settings: bool | int | str) -> Settings:
    """Makes the settings of an index kind, for ``Matcher.build(index=...)``.

    >>> import colmatch as cm
    >>> cm.index("opindex", signatures=False)
    index('opindex', signatures=False)

    ``colmatch kinds`` lists the settings of each kind. ``"auto"`` takes ``dnf_budget`` only:
    expressions are lowered under it before a kind is chosen, and the chosen kind keeps it.

    Returns
    -------
    Settings : a frozen value, equal to others of the same kind and settings; settings are its
        attributes

    Raises
    ------
    OptionError : the kind or the setting is unknown, or the setting does not allow the value
    """
    of = settings_of(kind)
    names = [field.name for field in fields(of)]
    for name, value in settings.items():
        if name not in names:
            own = f"the settings of {kind!r} are {', '.join(map(repr, names))}"
            others = [kind.name for kind in KINDS.values() if name in {field.name for field in fields(kind.settings)}]
            other = f"; {name!r} is a setting of {' and '.join(map(repr, others))}: name that kind" if others else ""
            raise OptionError(f"index({kind!r}, {name}={show_value(value)}): {own}{other}")
    return of(**settings)  # type: ignore[arg-type]


def read_settings(given: object) -> Settings:
    """Returns settings given by value, or by the name of a kind.

    Raises OptionError for anything else.
    """
    if isinstance(given, Settings) and type(given) is not Settings:
        return given
    return index(given)  # type: ignore[arg-type]


def choose(requested: Settings, statistics: Statistics) -> IndexChoice:
    """Chooses the requested kind, or for ``auto`` the kind with the lowest estimated cost."""
    if not isinstance(requested, AutoSettings):
        plan = IndexChoice(requested, "asked for")
    else:
        costs = estimates(statistics)
        best = min(costs, key=costs.__getitem__)
        others = ", ".join(f"{name} {cost / 1e3:.3g} us" for name, cost in costs.items() if name != best)
        plan = IndexChoice(
            find(best).settings.under(requested.dnf_budget),
            f"lowest estimated time an event, {costs[best] / 1e3:.3g} us" + (f" (others: {others})" if others else ""),
        )
    log.info("index %s: %s", plan.settings, plan.reason)
    return plan
