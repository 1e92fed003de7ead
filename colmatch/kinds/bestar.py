"""BE*-Tree: buckets are as narrow as their contents, and are split in three.

Source: Sadoghi and Jacobsen, "Relevance Matters: Capitalizing on Less Top-k Matching in
Publish/Subscribe" (IV, V, algorithms 1 to 5). Widths, overlap and coverage are measured in keys.
Deviations:

- The exhaustive split tries only the cuts after each upper end. A cut before a lower end has the
  left bucket of one of these, and no smaller overlap (``kernels/kinds/trees/buckets.py``).
- A build at once (BE*-B) divides a root that has everything in it.
- Single inserts depend on their order, as in the paper. Each split puts the upper part of a bucket
  on the right. So ascending values become a chain. Take 1,000 values with 100 conjunctions each: an
  event with the middle value visits 505 nodes, with the highest 1,003. After a build at once, or
  with unordered values, it visits 13 and 14. ``Matcher.compact()`` and merges rebuild by
  ``construction``: ``"bulk"``, the default, removes the chain, ``"dynamic"`` makes it again.
- Ranking, nodes with a fallen rank, conjunctions without a place, entries and 64 events together
  are as in ``colmatch/kinds/betree.py``.

The counters count as in BE-Tree.

A delete narrows bounds on the upward path only, from the ranges directly below each bucket. For
this, a bucket also has the ranges of the attributes above it, the paper's inactive dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

from colmatch.kernels.kinds.trees.arrays import ALPHA, BETA, EXHAUSTIVE
from colmatch.kernels.layout import I64
from colmatch.kinds import trees
from colmatch.kinds.settings import Settings, setting


@dataclass(frozen=True, slots=True, repr=False)
class BEStarSettings(Settings):
    """Settings of a BE*-Tree: its construction and evaluation, and the budget."""

    kind = "bestar"
    by_predicate = True
    about = "BE*-Tree: divided by attribute, then into buckets as narrow as what is in them"

    capacity: int = setting(160, "conjunctions that a leaf may have before it is divided", range(1, 100_001))
    ranking: str = setting("selectivity", trees.RANKING_MEANING, trees.RANKINGS)
    split: str = setting("exhaustive", "try every cut of a bucket, or go from both ends", ("exhaustive", "approximate"))
    alpha: int = setting(10, "percent of a bucket that must be on either side of a cut", range(1, 51))
    beta: int = setting(4, "times as wide as it was a bucket may become before another is put above it", range(1, 1001))
    construction: str = setting("bulk", "all at once, or one by one", ("bulk", "dynamic"))
    short_circuit: bool = setting(True, "skip what needs an attribute that the event has not", (True, False))
    evaluation: str = setting(
        "lazy",
        "when predicates are evaluated: each time they are met, at the first time, or all beforehand",
        trees.EVALUATIONS,
    )


def _plan(settings: BEStarSettings) -> I64:
    plan = trees.common_plan(settings)
    plan[EXHAUSTIVE] = settings.split == "exhaustive"
    plan[ALPHA], plan[BETA] = settings.alpha, settings.beta
    return plan


KIND = trees.kind(BEStarSettings, _plan)
