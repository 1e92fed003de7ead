"""Weights that events give to their attributes, and events with values that were rare."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.facts import Row

NOTHING = "nothing"
LAWS = (NOTHING, "uniform", "one at 10", "zipf")
HEAVY = 10.0  # weight of one attribute where the others have 1


def weights(law: str, events: pa.Table) -> pa.Array:
    """Returns a map for each event, from the names of its own attributes to weights.

    uniform : weights are drawn from 0 to 1
    one at 10 : ``HEAVY`` for one attribute, 1 for the others
    zipf : 1 / rank, in an order of the event's own
    nothing : empty maps
    """
    rng, names = np.random.default_rng(1), np.array(events.schema.names)
    there = np.array([column.is_valid().to_numpy() for column in events.columns]).T
    maps = []
    for row in there:
        own = names[row & (law != NOTHING)]
        if law == "uniform":
            given = rng.random(len(own))
        elif law == "zipf":
            given = 1 / (1 + rng.permutation(len(own)))
        else:
            given = np.where(np.arange(len(own)) == rng.integers(max(len(own), 1)), HEAVY, 1.0)
        maps.append(list(zip(own.tolist(), given.tolist(), strict=True)))
    return pa.array(maps, pa.map_(pa.string(), pa.float64()))


def of_weights(maps: pa.Array) -> Row:
    """Measures weights: pairs of an event, and the share of the heaviest in the event's sum."""
    each = [[weight for _, weight in one] for one in maps.to_pylist()]
    shares = [max(one) / sum(one) for one in each if one]
    return {"weights_each": sum(map(len, each)) / len(each), "heaviest": float(np.mean(shares)) if shares else 0.0}


def mirrored(events: pa.Table, cardinality: int) -> pa.Table:
    """Returns events whose frequent values are those that were rare."""
    columns = [pc.subtract(cardinality - 1, column) for column in events.columns]
    return pa.table(columns, names=events.schema.names)


def of_values(events: pa.Table, cardinality: int) -> Row:
    """Measures in which half of the domain most values lie, over all attributes."""
    values = np.concatenate([column.drop_null().to_numpy() for column in events.columns])
    return {"frequent_values": "low" if np.median(values) < cardinality / 2 else "high"}
