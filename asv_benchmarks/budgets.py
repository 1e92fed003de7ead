"""What it costs each kind of index to multiply an expression out, and to keep it whole.

    python asv_benchmarks/budgets.py cnf-5x2 flights --kinds kindex opindex --budgets 1 64 --cpu

For each workload a table: a row a kind, a column a budget of conjunctions for an expression; bytes
a subscription and microseconds an event. Matching is measured on one thread, all kinds and budgets
in turns, medians.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable

from benchmarks.expressions import Made, clauses, products
from benchmarks.measure import machine, medians, one_thread, versions
from benchmarks.workloads import SHOP, shaped_texts, shop_events

import colmatch as cm
from colmatch.kinds.plan import settings_of
from colmatch.kinds.settings import Settings

ROWS = 1024  # events, all in one batch
SLOW = 120.0  # seconds that measuring one workload may take before no new round begins


def flights(count: int) -> Made:
    from colmatch.bench.flights import alerts
    from colmatch.bench.flights import flights as flown

    table = flown()
    return Made(alerts(count, table=table), table.schema, table.slice(0, ROWS), {})


def nested(count: int) -> Made:
    """Expressions that are no CNF, of 4 conjunctions: each clause has a conjunction in it."""
    made = products(count, 3, 2, ROWS)
    texts = [
        (i, f"({a} OR {b} AND {c}) AND ({d} OR {e} AND {f})")
        for i, text in made.subscriptions
        for a, b, c, d, e, f in [text.replace("(", "").replace(")", "").replace(" AND ", " OR ").split(" OR ")]
    ]
    return made._replace(subscriptions=texts)


WORKLOADS: dict[str, Callable[[int], Made]] = {
    **{f"cnf-{size}x2": lambda count, size=size: products(count, size, 2, ROWS) for size in (1, 2, 3, 4, 5)},
    "cnf": lambda count: clauses(count, 5, "cnf", ROWS),
    "dnf": lambda count: clauses(count, 5, "dnf", ROWS),
    "nested": nested,
    "shop": lambda count: Made(shaped_texts(count), SHOP, shop_events(ROWS), {}),
    "flights": flights,
}


def index(kind: str, budget: int) -> Settings:
    """A kind that multiplies no expression out into more conjunctions."""
    names = [field.name for field in dataclasses.fields(settings_of(kind)) if field.name.endswith("_budget")]
    return cm.index(kind, **dict.fromkeys(names, budget))


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"all, or of {', '.join(WORKLOADS)}")
    parser.add_argument("--kinds", nargs="+", default=cm.index_kinds(), choices=cm.index_kinds(), metavar="KIND")
    parser.add_argument("--budgets", nargs="+", type=int, default=[1, 4, 16, 64], metavar="N")
    parser.add_argument("--subscriptions", type=int, default=3000, metavar="N")
    parser.add_argument("--repeat", type=int, default=7, metavar="R", help="rounds")
    parser.add_argument("--cpu", action="store_true", help="processor time, for a machine that is busy")
    given = parser.parse_args()
    print(machine())
    print(versions("colmatch", "numba", "numpy", "pyarrow"))
    for name in given.workloads or WORKLOADS:
        table(name, given)


def table(name: str, given: argparse.Namespace) -> None:
    made = WORKLOADS[name](given.subscriptions)
    matchers = {
        (kind, budget): cm.Matcher.build(
            made.subscriptions,
            made.schema,
            index=index(kind, budget),
            options=cm.Options(threads=1, batch_rows=ROWS),
        )
        for kind in given.kinds
        for budget in given.budgets
    }
    found = {place: int(matcher.count(made.events).sum()) for place, matcher in matchers.items()}
    if len(set(found.values())) > 1:
        raise SystemExit(f"{name}: kinds and budgets find different numbers of pairs, {found}")
    actions = {place: lambda matcher=matcher: matcher.match(made.events) for place, matcher in matchers.items()}
    clock = time.process_time if given.cpu else time.perf_counter
    taken = medians(actions, given.repeat, SLOW, clock)
    print(f"\n| {name}, {next(iter(found.values())) / ROWS:,.1f} matches an event | ", end="")
    print(f"{' | '.join(map(str, given.budgets))} |\n|{'---|' * (1 + len(given.budgets))}")
    for kind in given.kinds:
        cells = [
            f"{matchers[kind, budget].stats()['bytes_per_subscription']:,.0f} B, {taken[kind, budget] / ROWS * 1e6:.3g} us"
            for budget in given.budgets
        ]
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
