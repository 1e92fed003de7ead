"""BE-Tree: conjunctions are divided by attribute, then by halves of the attribute's domain.

Source: Sadoghi and Jacobsen's BE-Tree, as "Relevance Matters" (IV, V-B, algorithms 1, 4 and 5) and
the be-tree library describe it. Deviations:

- A domain reaches from the lowest boundary of a predicate to the highest. The middle of its keys is
  moved to the nearest boundary. Halving codes instead, ``halves="codes"``, adapts to the data, as a
  BE-Tree does not.
- Halves do not meet. In the library both own the middle.
- With ``ranking="selectivity"`` a conjunction chooses the attribute with the values that the fewest
  events are expected to meet. A leaf is divided by the attributes of the highest rank, gain less
  loss. The gain counts 1 for each conjunction that chose the attribute, the loss is the share of
  events that still meet it. ``"popularity"`` is the optimistic rank of the BE*-Tree paper: gain
  alone. ``"feedback"`` is its loss, with the events of a window, the sample, which is counted again
  for each new index. A conjunction matches equally often in any place. So the loss only counts
  events that check it without a match.
- Nodes are not taken apart when their rank has fallen ("Relevance Matters", V), not even with
  ``construction="dynamic"``. A rank for each node is a count that every event changes. Matching
  threads would write to memory that all of them read, and no version could be published by one
  assignment. ``Options(observe=)`` keeps a window of events instead. With ``ranking="feedback"``,
  each merge and ``compact()`` place every conjunction again by that window: all nodes at once, not
  only bad ones. Between two merges a tree does not follow its events (``000-observed.csv`` has the
  counters before and after).
- An event goes down only by attributes that it has. The library also goes down where an attribute
  may be absent.
- Conjunctions that no attribute can place are in a separate bucket, and are verified for every
  event. These are negations, and programs that may accept without any one predicate.
- An entry of a leaf has its range of the bucket's attribute. It has bits of the attributes that it
  needs, too (the library's short circuit). So few entries are verified.
- Up to 64 events go down together. With ``evaluation="memo"`` equal predicates are evaluated once
  for all of them (be-tree's memo). ``"bitmap"`` first evaluates all plain predicates on attributes
  that the events have. Both lose here, as few entries are left to verify. With 200,000
  subscriptions of ``dense``, ``pstree-dense`` and ``ads``, memo takes 1.5 to 2.6 times as long as
  ``"lazy"``, bitmap 3.3 to 5.6 times. Programs, events with ranges, ``match_topk``, few events and
  segments that grow are lazy in any case.

CONJUNCTIONS counts the leaf entries checked for each event, CANDIDATES the verified ones,
PREDICATES the predicates tested for this. NODES counts the buckets and parts visited, once for all
events that go down together.

A growing segment begins with values counted by key, since its boundaries come one by one. Until it
is rebuilt, a later attribute is ranked by its domain, as without a sample. The domain is halved,
not its contents. So 1,000 values in ascending order need 14 nodes an event, as in any other order.
"""

from __future__ import annotations

from dataclasses import dataclass

from colmatch.kernels.kinds.trees.arrays import BY_CODES, RIGID
from colmatch.kernels.layout import I64
from colmatch.kinds import trees
from colmatch.kinds.settings import Settings, setting


@dataclass(frozen=True, slots=True, repr=False)
class BETreeSettings(Settings):
    """Settings of a BE-Tree: its construction and evaluation, and the budget."""

    kind = "betree"
    by_predicate = True
    about = "BE-Tree: divided by attribute, then by halves of the attribute's domain"

    capacity: int = setting(160, "conjunctions that a leaf may have before it is divided", range(1, 100_001))
    ranking: str = setting("selectivity", trees.RANKING_MEANING, trees.RANKINGS)
    halves: str = setting("keys", "what is cut in the middle: the keys of a domain, or its codes", ("keys", "codes"))
    construction: str = setting("bulk", "all at once, or one by one", ("bulk", "dynamic"))
    short_circuit: bool = setting(True, "skip what needs an attribute that the event has not", (True, False))
    evaluation: str = setting(
        "lazy",
        "when predicates are evaluated: each time they are met, at the first time, or all beforehand",
        trees.EVALUATIONS,
    )


def _plan(settings: BETreeSettings) -> I64:
    plan = trees.common_plan(settings)
    plan[RIGID] = 1
    plan[BY_CODES] = settings.halves == "codes"
    return plan


KIND = trees.kind(BETreeSettings, _plan)
