"""All experiments, each with the figures of a paper that it runs again.

Numbers stand for papers: 000 for BE*-Tree, 002 for OpIndex, 003 for PS-Tree. Building time and
memory are columns of every table, so their figures need no experiments of their own.
"""

from __future__ import annotations

from typing import Any

from experiments.entry import BESTAR, NORMAL, OPINDEX, TREES, Draw, Experiment, drawn, of_clauses, of_prefixes

MANY = (0.1, 0.3, 1, 3, 10)  # shares of the number of subscriptions on the command line
CHANCE = 0.00038  # probability of a match of `pstree-dense` that is not planted
SPARSE = 30_000  # attributes


def halves(figure: int, other: str, axis: str, values: tuple[Any, ...], **fields: Any) -> dict[str, Experiment]:
    """Makes the dense and the sparse half of a figure of the PS-Tree paper."""
    dense: Draw = drawn("pstree-dense", event_size=(30, 30), chance=CHANCE, **fields)
    sparse: Draw = drawn("pstree-sparse", event_size=(30, 30), **fields)
    return {
        f"003-figure-{figure}a": Experiment(f"document 003, figure {figure}a{other}", dense, {axis: values}),
        f"003-figure-{figure}b": Experiment(f"document 003, figure {figure}b", sparse, {axis: values}),
    }


def bestar(about: str, axes: dict[str, tuple[Any, ...]], **given: Any) -> Experiment:
    """Makes an experiment of the BE*-Tree paper, with batches of 1,024 events."""
    return Experiment(f"document 000, {about}", drawn("bestar", rows=1024), axes, **{"kinds": TREES, **given})


def law(about: str, axis: str, values: tuple[Any, ...]) -> Experiment:
    """Makes a macro experiment: uniform and by Zipf's law, with the capacity of table II."""
    axes = {"attribute_zipf": (0.0, 1.0), axis: values}
    return bestar(f"VII.C: {about}", axes, kinds=BESTAR, settings={"capacity": 5})


EXPERIMENTS: dict[str, Experiment] = {
    # BE*-Tree paper
    "000-table-2a": bestar(
        "table IIa: leaf capacity by the probability of a match; 0.3 for its 10 % and more",
        {"probability": (0.0001, 0.001, 0.01, 0.09, 0.3), "capacity": (5, 20, 160)},
    ),
    "000-table-2b": bestar(
        "table IIb: construction, uniform and by Zipf's law",
        {"attribute_zipf": (0.0, 1.0), "construction": ("bulk", "dynamic")},
        settings={"capacity": 5},
    ),
    "000-beta": bestar(
        "VII.B: beta; one by one, since a tree that is built at once never uses it",
        {"attribute_zipf": (0.0, 1.0), "beta": (1, 2, 4, 16)},
        kinds=("bestar",),
        settings={"capacity": 5, "construction": "dynamic"},
    ),
    "000-subscriptions": law("workload size", "subscriptions", (1, 3, 10)),
    "000-attributes": law("number of dimensions", "attributes", (50, 400, 1400)),
    "000-cardinality": law("cardinality, figures 6a and 6b", "domain", (2_500, 250_000, 250_000_000)),
    "000-clusters": law("number of clusters, figure 7; 0 for none", "clusters", (2, 4, 10, 26, 0)),
    "000-cluster-size": law("size of clusters, figure 7", "cluster_size", (25, 100, 400, 800)),
    "000-size": law("predicates of a subscription, with pairs of an event", "size_with_pairs", (5, 16, 66)),
    # OpIndex paper: 20,000 attributes, `= <= >=`, 1 to 4 predicates, 20 pairs
    "002-figure-7": Experiment(
        "document 002, figure 7: capacity of BE-Tree",
        drawn("opindex"),
        {"capacity": (5, 50, 100, 150, 250)},
        ("betree", "bestar"),
    ),
    "002-figure-10a": Experiment(
        "document 002, figures 8a, 9a and 10a", drawn("opindex"), {"subscriptions": MANY}, OPINDEX
    ),
    "002-figure-10b": Experiment(
        "document 002, figures 9b and 10b", drawn("opindex"), {"most_predicates": (4, 8, 12, 16, 20)}, OPINDEX
    ),
    "002-figure-10c": Experiment(
        "document 002, figure 10c", drawn("opindex"), {"pairs": (20, 40, 60, 80, 100, 120)}, OPINDEX
    ),
    "002-figure-10d": Experiment(
        "document 002, figure 10d", drawn("opindex"), {"equality": (0.2, 0.4, 0.6, 0.8, 1.0)}, OPINDEX
    ),
    "002-figure-10e": Experiment(
        "document 002, figures 8b and 10e",
        drawn("opindex"),
        {"cardinality": (50, 200, 800, 3200, 12_800)},
        (*OPINDEX, "kindex-raw"),
    ),
    "002-figure-10f": Experiment(
        "document 002, figure 10f", drawn("opindex"), {"zipf": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)}, OPINDEX
    ),
    **{
        f"002-figure-13{letter}-{form}": Experiment(
            f"document 002, figure 13{letter}: {form.upper()}, of 100 attributes", of_clauses(form), axes, NORMAL
        )
        for form in ("cnf", "dnf")
        for letter, axes in (("a", {"subscriptions": MANY[:4]}), ("b", {"clauses": (1, 3, 5, 10)}))
    },
    "002-figure-14a": Experiment(
        "document 002, figure 14a: prefixes of 3 letters, 100 attributes, all strings",
        of_prefixes,
        {"prefix_share": (0.0, 0.25, 0.5, 0.75, 1.0)},
    ),
    "002-figure-14b": Experiment(
        "document 002, figure 14b: prefixes alone, 100 attributes, all strings",
        of_prefixes,
        {"prefix_length": (2, 3, 4, 6)},
    ),
    # PS-Tree paper: 100 attributes and 30,000
    **halves(6, ", 5a and 14a", "subscriptions", MANY),
    **halves(7, "", "attribute_zipf", (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)),
    "003-figure-8a": Experiment(
        "document 003, figures 5b and 8a",
        drawn("pstree-sparse"),
        {"attributes": (100, 300, 1000, 3000, 10_000, SPARSE)},
    ),
    "003-figure-8b": Experiment(
        "document 003, figure 8b: as many subscriptions an attribute",
        drawn("pstree-sparse", per_attribute=1 / SPARSE),
        {"attributes": (100, 300, 1000, 3000, 10_000, SPARSE)},
    ),
    **halves(9, "", "cardinality", (3, 10, 30, 100, 300, 1000)),
    **halves(10, ", 5c and 14b", "size", (5, 10, 15, 20, 25, 30)),
    **halves(11, "", "pairs", (30, 42, 54, 66, 78, 90)),
    **halves(12, "", "probability", (0.001, 0.005, 0.01, 0.05, 0.1, 0.5)),
    **halves(13, " and 5d", "equality", (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
    "003-figure-15": Experiment(
        "document 003, figures 15a and 15b: drawn like its query log", drawn("querylog"), {"subscriptions": MANY}
    ),
    "003-table-2": Experiment(
        "document 003, table 2: drawn like its advertisements", drawn("ads"), {"subscriptions": (1,)}
    ),
}
