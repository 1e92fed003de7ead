"""An experiment, and the workloads that experiments draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

from benchmarks.expressions import Made, clauses, prefixes
from workload import Workload, named

from experiments.axes import AXES
from experiments.cores import likely, planted_batch, planted_table
from experiments.facts import Row

ROWS = 256  # events of a point, all in one batch
SCAN = "scan"  # the kind with which others are compared, where it takes part
# Name of a variant -> its kind, and settings that switch something off.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    SCAN: (SCAN, {"tiles": False}),
    "kindex-raw": ("kindex", {"enumerate": "raw"}),
    "opindex-bs": ("opindex", {"signatures": False}),
    "bestar-dynamic": ("bestar", {"construction": "dynamic"}),
}
KINDS = (
    SCAN, "kindex", "propagation", "opindex", "betree", "bestar", "pstbloom", "psthash", "pbtree", "bitslice"
)  # fmt: skip
OPINDEX = (*KINDS[:4], "opindex-bs", *KINDS[4:])  # for experiments of the OpIndex paper
BESTAR = (SCAN, "kindex", "propagation", "opindex", "betree", "bestar", "bestar-dynamic", "bitslice")
TREES = ("betree", "bestar")
NORMAL = (SCAN, "opindex", "betree", "bestar", "pstbloom", "psthash", "bitslice")  # for expressions that are no AND

Draw = Callable[[Row, int], Made]


class Experiment(NamedTuple):
    """One table.

    Attributes
    ----------
    about : the figures of a paper that it runs again, and where it departs from them
    draw : values of the axes that are no settings -> what is measured
    axes : name of a parameter -> its values; all combinations are measured
    kinds : the kinds of index that take part
    settings : settings for all of these kinds that have them
    """

    about: str
    draw: Draw
    axes: dict[str, tuple[Any, ...]]
    kinds: tuple[str, ...] = KINDS
    settings: dict[str, Any] = {}  # noqa: RUF012

    def points(self, subscriptions: int) -> Iterator[tuple[Row, list[Row]]]:
        """Yields values of the workload's parameters, with all settings to measure at each."""
        values = {
            name: [max(1, round(share * subscriptions)) for share in given] if AXES[name].scaled else given
            for name, given in self.axes.items()
        }
        drawn = [name for name in values if AXES[name].fields]
        asked = [name for name in values if not AXES[name].fields]
        settings = [dict(zip(asked, some, strict=True)) for some in product(*(values[name] for name in asked))]
        for some in product(*(values[name] for name in drawn)):
            yield dict(zip(drawn, some, strict=True)), settings


def drawn(name: str, rows: int = ROWS, chance: float = 0.0, **fields: Any) -> Draw:
    """Makes points of a named workload.

    chance : probability of a match that is not planted, where probabilities are asked for
    """

    def draw(values: Row, subscriptions: int) -> Made:
        changed = {"subscriptions": subscriptions} | fields
        for axis, value in values.items():
            change = AXES[axis].fields
            assert change is not None
            changed |= change(value)
        if "per_attribute" in changed:  # subscriptions grow as attributes do
            changed["subscriptions"] = max(
                1, round(changed.pop("per_attribute") * changed["attributes"] * subscriptions)
            )
        if "probability" in changed:
            changed |= likely(changed.pop("probability") - chance, rows)
        return of_workload(named(name, **changed), rows)

    return draw


def of_workload(work: Workload, rows: int) -> Made:
    """Draws a workload, whose events differ even if subscriptions are planted around few."""
    if work.planted and work.around < rows:
        return Made(planted_table(work), work.schema(), planted_batch(work, rows), {})
    return Made(work.predicate_table(), work.schema(), work.events(rows), {})


def of_clauses(form: str) -> Draw:
    def draw(values: Row, subscriptions: int) -> Made:
        return clauses(values.get("subscriptions", subscriptions), values.get("clauses", 5), form, ROWS)

    return draw


def of_prefixes(values: Row, subscriptions: int) -> Made:
    return prefixes(subscriptions, values.get("prefix_share", 1.0), values.get("prefix_length", 3), ROWS)
