"""BE-Tree: conjunctions are divided by attribute, then by halves of the attribute's domain.

Source: Sadoghi and Jacobsen's BE-Tree, as "Relevance Matters" (IV, V-B, algorithms 1, 4 and 5) and
the be-tree library describe it. Deviations:

- A domain reaches from the lowest boundary of a predicate to the highest, and the middle of its
  keys is moved to the nearest boundary. Halving codes instead, ``halves="codes"``, adapts to the
  data, as a BE-Tree does not.
- Halves do not meet. In the library both own the middle.
- By ``ranking="selectivity"`` a conjunction goes by the attribute whose values fewest events are
  expected to meet, and a leaf is divided by the attributes of the highest rank: each conjunction
  that chose one counts 1, its gain, less the share of events that meet it still, its loss.
  ``"popularity"`` is the optimistic rank of the BE*-Tree paper: gain alone. ``"feedback"`` is its
  loss: events are those of a window, the sample, which is counted again with each index that is
  built. A conjunction matches as often wherever it stands. So the loss says only how many events
  look at it without a match.
- Nodes are not taken apart when their rank has fallen ("Relevance Matters", V), not even with
  ``construction="dynamic"``. A rank for each node is a count that every event changes, so threads
  that match would write to what all of them read, and no version could be published by one
  assignment. ``Options(observe=)`` keeps a window of events instead. Each merge and ``compact()``
  place every conjunction anew by that window, with ``ranking="feedback"``: all nodes at once, and
  not those alone that have become bad. Between two merges a tree does not follow its events
  (``000-observed.csv`` has the counters before and after).
- An event goes down where it has the attribute. The library also goes down where it may be absent.
- What no attribute can place (negations, programs that may accept without any one predicate) stands
  in a bucket of its own and is verified for every event.
- An entry of a leaf has its range of the bucket's attribute, and bits of the attributes that it
  needs (the library's short circuit), so few entries are verified.
- Up to 64 events go down together. By ``evaluation="memo"`` the truth of predicates that are the
  same is found once for all of them (be-tree's memo), by ``"bitmap"`` first of all, for all plain
  predicates on attributes that the events have. Both lose here, as few entries are left to verify:
  with 200,000 subscriptions of ``dense``, ``pstree-dense`` and ``ads`` memo takes 1.5 to 2.6 times
  as long as ``"lazy"``, bitmap 3.3 to 5.6 times. Programs, events with ranges, ``match_topk``,
  few events and segments that grow are lazy in any case.

CONJUNCTIONS counts the entries of leaves that are looked at, for each event; CANDIDATES those that
are verified, PREDICATES what that takes, NODES buckets and parts visited, once for all events that
go down together.

A growing segment has values counted by key when it is begun, since boundaries come one by one.
Until it is begun anew, an attribute that comes later goes by its domain, as without a sample. A
domain is halved, not what is in it, so 1,000 values in ascending order need 14 nodes an event, as
in any other order.
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
        "lazy", "predicates: as they are come to, each distinct one once, or all of these first", trees.EVALUATIONS
    )


def _plan(settings: BETreeSettings) -> I64:
    plan = trees.common_plan(settings)
    plan[RIGID] = 1
    plan[BY_CODES] = settings.halves == "codes"
    return plan


KIND = trees.kind(BETreeSettings, _plan)
