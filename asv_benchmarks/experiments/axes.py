"""The parameters that experiments vary, each with a measured column that proves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

# Pairs of an event, by predicates of a subscription (BE*-Tree paper, table III).
PAIRS = {5: 13, 16: 26, 66: 81}


class Axis(NamedTuple):
    """A parameter of a workload, or of an index where ``fields`` is None.

    Attributes
    ----------
    proof : a column of the table, measured in the workload or the index
    shows : how this column must follow the values of the parameter: ``near`` them, ``rise``,
        ``fall``, ``differ`` between two of them, or ``differ each`` from all others
    fields : value -> fields of the workload that it changes
    scaled : values are shares of the number of subscriptions on the command line
    within : how far from the value, relatively, ``near`` may be
    """

    proof: str
    shows: Literal["near", "rise", "fall", "differ", "differ each"]
    fields: Callable[[Any], dict[str, Any]] | None = None
    scaled: bool = False
    within: float = 0.05


def of(name: str) -> Callable[[Any], dict[str, Any]]:
    """Returns a function from a value to the one field that it changes."""
    return lambda value: {name: value}


def same(*names: str) -> Callable[[Any], dict[str, Any]]:
    """Returns a function from a value to sizes that all have it, at least and at most."""
    return lambda size: dict.fromkeys(names, (size, size))


AXES: dict[str, Axis] = {
    "subscriptions": Axis("subscriptions_made", "near", of("subscriptions"), scaled=True, within=0.0),
    "attributes": Axis("attributes_made", "near", of("attributes")),
    "size": Axis("predicates_each", "near", same("subscription_size")),
    "most_predicates": Axis("most_predicates_each", "near", lambda most: {"subscription_size": (1, most)}, within=0.0),
    "size_with_pairs": Axis(
        "predicates_each", "near", lambda n: {"subscription_size": (n, n), "event_size": (PAIRS[n],) * 2}
    ),
    "pairs": Axis("pairs_each", "near", same("event_size")),
    "equality": Axis("equalities", "near", of("equality"), within=0.1),
    "cardinality": Axis("cardinality_made", "near", of("cardinality")),
    "domain": Axis("cardinality_made", "near", lambda n: {"cardinality": n, "width": (0.0, 10 / n)}),
    "clusters": Axis("values_each", "rise", of("clusters")),
    "cluster_size": Axis("values_each", "rise", of("cluster_size")),
    "attribute_zipf": Axis("attribute_log_rank", "fall", of("attribute_zipf")),
    "value_zipf": Axis("values_each", "fall", of("value_zipf")),
    "zipf": Axis("attribute_log_rank", "fall", lambda z: {"attribute_zipf": z, "value_zipf": z}),
    "probability": Axis("probability_found", "near", of("probability"), within=0.1),
    "clauses": Axis("clauses_each", "rise", of("clauses")),
    "prefix_share": Axis("prefixes", "near", of("prefix_share"), within=0.1),
    "prefix_length": Axis("prefix_letters", "near", of("prefix_length"), within=0.0),
    # Settings of an index
    "capacity": Axis("nodes", "fall"),
    "beta": Axis("nodes", "differ"),
    "construction": Axis("nodes", "differ"),
    # Of ``relevance.py``
    "workload": Axis("attributes_made", "differ each"),
    "events_give": Axis("heaviest", "differ each"),
    "observe": Axis("observed", "rise"),
    "stage": Axis("frequent_values", "differ"),
}
