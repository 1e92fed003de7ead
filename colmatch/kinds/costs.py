"""Estimates of the nanoseconds that an event takes with each kind, which ``auto`` compares.

The estimates are here and not with the kinds, so that a process imports only the kind that it uses.
Together, the kernels of all kinds take a tenth of a second.

``share`` is the part of all attributes that an event with 30 values has.
"""

from __future__ import annotations

from colmatch.kinds.statistics import Statistics

VALUES = 30  # of a typical event
PROGRAM = 200.0  # evaluating a program of ten predicates, unless a kernel has a better way


def estimates(statistics: Statistics) -> dict[str, float]:
    """Returns the estimated nanoseconds an event of each kind, by the kind's name."""
    conjunctions, predicates = statistics.conjunctions, statistics.predicates
    attributes = max(statistics.attributes, 1)
    share = min(VALUES / attributes, 1.0)
    programs = PROGRAM * statistics.programs
    # 0.50 to 0.57 ms at a million ``dense``, with 28,000 to 30,000 checked; 0.11 at 200,000.
    tree = 10_000.0 + 0.45 * conjunctions + programs
    # Each value that an event has costs something, if there are postings for it: the more likely,
    # the more predicates an attribute has.
    dense = min(1.0, predicates / (12.0 * attributes))
    return {
        "scan": 0.6 * conjunctions + 0.22 * statistics.intervals + programs,
        # An event meets 40 % of the predicates on its attributes, and each takes 30 ns.
        "kindex": 5e3 + 0.05 * conjunctions + (0.07 + 12.0 * share) * predicates,
        # Phase 1 takes time for distinct predicates, hardly more than half a million of them; phase
        # 2 for candidates. ``dense`` took 0.15 ms at 100,000 subscriptions, 0.6 to 0.8 at a million
        # (``asv_benchmarks/compare.py``).
        "propagation": 1000.0 + 0.2 * min(predicates, 500_000) + 0.5 * conjunctions + programs,
        # Every value is looked up in every list of every pivot, and ``share`` of the partitions
        # are counted in.
        "opindex": 20_000.0 + max(2.7 * share, 0.01) * conjunctions,
        "betree": tree,
        "bestar": tree,
        # Both are fitted to ``dense`` with 10,000 to a million subscriptions, and to 30,000 over
        # 1,000 attributes or more (``asv_benchmarks/documents.py 003-figure-6a 003-figure-8a``).
        "pstbloom": 13_000.0 + 0.88 * share * conjunctions + programs,
        "psthash": 30_000.0 + 0.85 * share * conjunctions + programs,
        # About a quarter of the predicates are met; each is a random access.
        "pbtree": 2_000 + 0.05 * conjunctions + 0.5 * statistics.intervals + 2 * programs,
        "bitslice": 90.0 + min(810.0 * dense, 0.15 * conjunctions) + 0.009 * conjunctions,
    }
