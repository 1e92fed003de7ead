"""The PS-Tree document's comparison of structures that say which intervals contain a point.

    python asv_benchmarks/compare_locators.py
    python asv_benchmarks/compare_locators.py sizes --boundaries 1000 --locators hinted
    python asv_benchmarks/compare_locators.py coding

Source: Ji and Jacobsen, "PS-Tree-Based Efficient Boolean Expression Matching" (7.5, table 3).
``document`` has its 100,000 intervals and as many points; ``sizes`` the same for other numbers of
boundaries (two for each interval), keys, and orders of points; ``coding`` what it takes to code
keys of events with hints and with other locators, and ``match`` what that is in all. Some five
intervals contain each point.

To *locate* is to say which space a point is in, to *count* how many intervals contain it, to *stab*
which. Nodes and cache lines that ``count`` reads (``locate``, of those with spaces) are the same on
every machine. All times are the processor's, on one thread, locators in turns, medians. What a scan
takes is reckoned from fewer points.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.measure import machine, one_thread, versions
from locators.coding import SMALL, WAYS, coded, matched
from locators.figures import DRAWS, figures
from locators.registry import LOCATORS
from workload import named

PARTS = ("document", "sizes", "coding", "match")
POINTS = 1_000_000
EVENTS = 8192
DOCUMENT = 100_000  # intervals, and points
ORDERS = ("random", "sorted")
VALUES: tuple[dict[str, Any], ...] = (  # of ``dense``
    {"cardinality": 100},
    {"cardinality": 10**6},
    {"cardinality": 10**6, "value_zipf": 1.0},
    {"cardinality": 10**6, "clusters": 10},
    {"cardinality": 10**9, "value_zipf": 1.0},
)
ATTRIBUTES = ((1, 1000), (100, 1000), (1, 100_000), (10, 100_000), (1, 1_000_000))  # and boundaries of each


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all, or of {', '.join(PARTS)}")
    parser.add_argument("--boundaries", nargs="+", type=int, default=[1000, 100_000, 1_000_000], metavar="N")
    parser.add_argument("--keys", nargs="+", choices=DRAWS, default=list(DRAWS), metavar="DRAW")
    parser.add_argument("--locators", nargs="+", choices=LOCATORS, default=list(LOCATORS), metavar="NAME")
    parser.add_argument("--subscriptions", type=int, default=200_000, metavar="N", help="of match")
    parser.add_argument("--repeat", type=int, default=5, metavar="R", help="rounds")
    given = parser.parse_args()
    for part in given.parts:
        if part not in PARTS:
            parser.error(f"{part!r} is none of {', '.join(PARTS)}")
    print(machine())
    print(versions("colmatch", "numba", "numpy"))
    figures(100, "uniform", "random", 100, repeat=1)  # kernels are loaded before anything is measured
    for part in given.parts or PARTS:
        {"document": document, "sizes": sizes, "coding": coding, "match": match}[part](given)


def document(given: argparse.Namespace) -> None:
    print(f"\n| {DOCUMENT:,} intervals, as many points | count, ms | stab, ms | build, ms | MB |\n|{'---|' * 5}")
    for name, of in figures(2 * DOCUMENT, "uniform", "random", DOCUMENT, given.locators, given.repeat).items():
        times = " | ".join(f"{of[what] * DOCUMENT / 1e6:,.3g}" for what in ("count", "stab"))
        print(f"| `{name}` | {times} | {of['build'] * 1e3:.3g} | {of['bytes'] * DOCUMENT / 1e6:.3g} |", flush=True)


def sizes(given: argparse.Namespace) -> None:
    for draw in given.keys:
        for boundaries in given.boundaries:
            print(f"\n| {boundaries:,} boundaries, {draw} | nodes, lines | locate, ns: random, sorted |", end="")
            print(f" count | stab | build, ms | insert, delete, us | bytes |\n|{'---|' * 8}")
            made = [figures(boundaries, draw, order, POINTS, given.locators, given.repeat) for order in ORDERS]
            for name in given.locators:
                print(line(name, *(of[name] for of in made)), flush=True)


def line(name: str, of: dict[str, float], ordered: dict[str, float]) -> str:
    cells = [f"{of['nodes']:.3g}, {of['lines']:.3g}"]
    cells += [f"{of[what]:,.3g}, {ordered[what]:,.3g}" if what in of else "" for what in ("locate", "count", "stab")]
    cells.append(f"{of['build'] * 1e3:.3g}")
    cells.append(f"{of['insert'] * 1e6:.3g}, {of['delete'] * 1e6:.3g}" if "insert" in of else "")
    return f"| `{name}` | {' | '.join(cells)} | {of['bytes']:.0f} |"


def coding(given: argparse.Namespace) -> None:
    print("\n| ns an entry | keys | single | ahead | tiles | hints |\n|---|---|---|---|---|---|")
    for attributes, boundaries in ATTRIBUTES:
        for draw in (SMALL, *given.keys):
            taken = coded(attributes, boundaries, draw, given.repeat)
            cells = " | ".join(f"{taken[way]:.3g}" for way in ("single", "ahead", "tiles", "hints"))
            print(f"| {attributes} x {boundaries:,} | {draw} | {cells} |", flush=True)


def match(given: argparse.Namespace) -> None:
    ways = " | ".join(f"{way}: match | coding" for way in WAYS)
    print(f"\n| us an event, {given.subscriptions:,} `dense` | {ways} |\n|{'---|' * (1 + 2 * len(WAYS))}")
    for change in VALUES:
        taken = matched(named("dense", subscriptions=given.subscriptions, **change), EVENTS, given.repeat)
        cells = " | ".join(f"{us:.3g}" for way in WAYS for us in taken[way])
        print(f"| {', '.join(f'{name} {value:,}' for name, value in change.items())} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
