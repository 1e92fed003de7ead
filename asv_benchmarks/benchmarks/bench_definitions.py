"""The cost of a definition that all rules use, beside a Boolean column and beside writing it out.

    python -m benchmarks.bench_definitions 100000

Nine of ten rules are ``definition AND x = ... AND y < ...``, and each tenth has NOT before the
definition. The column has the truth of the definition, so all three find the same matches. Their
batches alternate, on one thread, and each figure is a median in microseconds an event.
"""

from __future__ import annotations

import sys
from itertools import product
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

import colmatch as cm

REPEAT = 9
SIZE = 100_000
EVENTS = 16_384
PLANS, COUNTRIES = ("free", "pro", "team"), ("FR", "DE", "US", "NL", "ES")
COLUMNS = {"email": "string", "plan": "string", "country": "string", "price": "double", "x": "int64", "y": "int64"}
TEN = [f"(plan = '{p}' AND country = '{c}' AND y > {i})" for i, (p, c) in enumerate(product(PLANS, COUNTRIES))][:10]
DEFINITIONS = {
    "one pattern": "email LIKE '%@x.com'",
    "an AND of two": "plan = 'pro' AND country = 'FR'",
    "an AND of six": "plan = 'pro' AND country = 'FR' AND price > 10 AND price < 90 AND y > 5 AND email LIKE '%@x.com'",
    "an OR of three": "plan = 'pro' AND country IN ('FR', 'DE') OR price > 90 OR email LIKE '%@x.com' AND plan = 'team'",
    "an OR of ten ANDs": " OR ".join(TEN),
}


def _events() -> pa.Table:
    rng = np.random.default_rng(3)
    emails = [f"u{i}@{domain}" for i in range(500) for domain in ("x.com", "y.org", "z.net")]
    texts = {"email": rng.choice(emails, EVENTS), "plan": rng.choice(PLANS, EVENTS)}
    return pa.table(
        texts
        | {"country": rng.choice(COUNTRIES, EVENTS), "price": rng.random(EVENTS) * 100}
        | {"x": rng.integers(0, 5000, EVENTS), "y": rng.integers(0, 100, EVENTS)}
    )


def _rules(n: int, condition: str) -> pa.Table:
    texts = [f"{'' if i % 10 else 'NOT '}{condition} AND x = {i % 5000} AND y < {i % 100}" for i in range(n)]
    return pa.table({"id": np.arange(n), "expression": texts})


def figures(n: int = SIZE, repeat: int = REPEAT) -> dict[str, dict[str, float]]:
    """Microseconds an event for each definition: of a column, the definition, and written out."""
    return {name: _compare(n, text, repeat) for name, text in DEFINITIONS.items()}


def _compare(n: int, definition: str, repeat: int) -> dict[str, float]:
    events, options = _events(), cm.Options(threads=1)
    truth = np.zeros(EVENTS, bool)
    truth[cm.Matcher.build({0: definition}, COLUMNS).match(events)["event"].to_numpy()] = True
    events = events.append_column("flag", pa.array(truth))
    schema = COLUMNS | {"flag": "bool"}
    matchers = {
        "column": cm.Matcher.build(_rules(n, "flag"), schema, options=options),
        "definition": cm.Matcher.build(_rules(n, "d"), schema, options=options, define={"d": definition}),
        "written out": cm.Matcher.build(_rules(n, f"({definition})"), schema, options=options),
    }
    seconds: dict[str, list[float]] = {name: [] for name in matchers}
    for i in range(repeat + 1):
        matches = set()
        for name, matcher in matchers.items():
            began = perf_counter()
            matches.add(matcher.match(events).num_rows)
            seconds[name] += [perf_counter() - began] if i else []
        assert len(matches) == 1, matches
    return {name: 1e6 * median(times) / EVENTS for name, times in seconds.items()}


class Definitions:
    """Ratios to a Boolean column, for asv."""

    timeout = 900
    params = (tuple(DEFINITIONS), ("definition", "written out"))
    param_names = ("condition", "way")

    def setup_cache(self) -> dict[str, dict[str, float]]:
        return figures()

    def track_ratio(self, cache: dict[str, dict[str, float]], condition: str, way: str) -> float:
        return cache[condition][way] / cache[condition]["column"]


if __name__ == "__main__":
    for name, of in figures(*map(int, sys.argv[1:])).items():
        print(f"{name:20}" + "".join(f"{way} {us:7.3f} ({us / of['column']:.2f})  " for way, us in of.items()))
