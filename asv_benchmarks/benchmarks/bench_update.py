"""Updates: subscriptions in and out of a matcher, one at a time and in bulk.

Parsing is included, and what matching costs afterwards is measured too.

A million subscriptions only with the environment variable COLMATCH_BENCHMARKS=full.
"""

from __future__ import annotations

import os
from itertools import islice
from time import perf_counter
from typing import Any

import colmatch as cm
from benchmarks import workloads

FULL = os.environ.get("COLMATCH_BENCHMARKS") == "full"
SIZES = (100_000, 1_000_000)
KINDS = (*cm.kinds(), "auto")
ONE_BY_ONE, IN_BULK, ROWS = 2000, 20_000, 64

Taken = dict[tuple[int, str], dict[str, float]]  # size, kind, name of a figure


def figures(n: int, kind: str, one_by_one: int = ONE_BY_ONE, in_bulk: int = IN_BULK) -> dict[str, float]:
    """Microseconds of an update and of matching an event before and after all updates.

    For an update of many subscriptions, the figure is that of each.
    """
    texts = workloads.shaped_texts(n + one_by_one + in_bulk)
    matcher = cm.Matcher.build(texts[:n], workloads.SHOP, index=kind, options=cm.Options(threads=1))
    events = workloads.shop_events(ROWS)
    matcher.insert(texts[:0])
    later = iter(texts[n:])
    for pair in islice(later, 100):  # compiles, and begins the segment that grows
        matcher.insert([pair])
    matcher.delete([texts[0][0]])
    taken = {"match_before": _microseconds(lambda: matcher.count(events), ROWS)}
    single = list(islice(later, one_by_one - 100))
    taken["insert"] = _microseconds(lambda: [matcher.insert([pair]) for pair in single], len(single))
    bulk = list(later)
    taken["insert_in_bulk"] = _microseconds(lambda: matcher.insert(bulk), len(bulk))
    taken["match_after"] = _microseconds(lambda: matcher.count(events), ROWS)
    few = single[: ROWS // 4]
    taken["replace_and_match"] = _microseconds(
        lambda: [(matcher.replace([pair]), matcher.count(events.slice(0, 1))) for pair in few], len(few)
    )
    taken["delete"] = _microseconds(lambda: [matcher.delete([id]) for id, _ in single], len(single))
    taken["delete_in_bulk"] = _microseconds(lambda: matcher.delete([id for id, _ in bulk]), len(bulk))
    taken["merges"] = matcher.stats()["merges"]
    taken["compact"] = _microseconds(matcher.compact, len(matcher))
    matcher.close()
    return taken


def _microseconds(action: Any, parts: int) -> float:
    began = perf_counter()
    action()
    return (perf_counter() - began) / parts * 1e6


class Updates:
    """Microseconds each, by kind of index; ``merges`` are those of segments on the way.

    The last one, of all segments, is in microseconds a subscription.
    """

    params = (SIZES, KINDS)
    param_names = ("subscriptions", "kind")
    timeout = 60

    def setup_cache(self) -> Taken:
        return {(n, kind): figures(n, kind) for n in SIZES if n == SIZES[0] or FULL for kind in KINDS}

    setup_cache.timeout = 3600  # type: ignore[attr-defined]

    def setup(self, taken: Taken, n: int, kind: str) -> None:
        if (n, kind) not in taken:
            raise NotImplementedError("only with COLMATCH_BENCHMARKS=full")

    def track_insert(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["insert"]

    def track_insert_in_bulk(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["insert_in_bulk"]

    def track_delete(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["delete"]

    def track_delete_in_bulk(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["delete_in_bulk"]

    def track_replace_and_match(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["replace_and_match"]

    def track_match_before(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["match_before"]

    def track_match_after(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["match_after"]

    def track_merges(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["merges"]

    def track_compact(self, taken: Taken, n: int, kind: str) -> float:
        return taken[n, kind]["compact"]
