"""The checks that an experiment varies what its columns say; each raises ``NotVariedError``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from experiments.axes import AXES
from experiments.facts import Row

DISTINCT = 0.99  # share of a batch's events that must differ, at least
SURE = 4  # standard deviations by which a share may be off by chance where subscriptions are few


class NotVariedError(Exception):
    """A measured column contradicts what the table says."""


def distinct(row: Row) -> None:
    """Refuses a batch that repeats events, since kinds could do their work once for several."""
    if row["distinct_events"] < DISTINCT * row["events"]:
        raise NotVariedError(
            f"a batch of {row['events']:,} events has only {row['distinct_events']:,} that differ:"
            f" at least {DISTINCT:.0%} must"
        )


def agreeing(pairs: dict[str, int]) -> None:
    """Refuses kinds that find different numbers of pairs in the same events."""
    if len(set(pairs.values())) > 1:
        raise NotVariedError(f"kinds find different numbers of pairs, {pairs}")


def varied(rows: Iterable[Row], names: Iterable[str]) -> None:
    """Refuses a table in which a parameter has not had its effect."""
    rows = [row for row in rows if not row.get("refused")]
    names = list(names)
    for name in names:
        lines: dict[tuple[object, ...], list[Row]] = {}
        for row in rows:
            lines.setdefault(tuple(row[other] for other in (*names, "kind") if other != name), []).append(row)
        for line, of in lines.items():
            _shown(name, line, of)


def _shown(name: str, line: tuple[object, ...], rows: list[Row]) -> None:
    axis = AXES[name]
    told = {row[name]: row[axis.proof] for row in rows}
    found = list(told.values())
    sign = {"rise": 1, "fall": -1}.get(axis.shows, 0)
    if axis.shows == "near":
        good = all(abs(row[axis.proof] - row[name]) <= _slack(name, row) for row in rows)
    elif axis.shows == "differ each":
        good = len(set(found)) == len(found)
    else:  # where there are few subscriptions, neighbours may be alike
        ordered = not sign or all(sign * (b - a) >= 0 for a, b in pairwise(found))
        good = len(found) < 2 or (len(set(found)) > 1 and ordered)
    if not good:
        what = "be near it" if axis.shows == "near" else axis.shows
        raise NotVariedError(f"{name} is said to vary, but {axis.proof}, which must {what}, is {told} for {line}")


def _slack(name: str, row: Row) -> float:
    """Returns how far a measured value may be from its parameter; more where few were drawn."""
    within, value = AXES[name].within, row[name]
    if name == "probability":
        planted = row["subscriptions_made"] * min(1.0, value * row["events"])
        within = max(within, SURE / planted**0.5)
    elif isinstance(value, float):  # a share of predicates
        within = max(within * value, SURE * (value * (1 - value) / row["subscriptions_made"]) ** 0.5)
        return float(within)
    return float(within * value)
