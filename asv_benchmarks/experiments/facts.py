"""Columns measured in the subscriptions and events that were drawn.

None is taken from the parameters.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.expressions import Made

import colmatch as cm

Row = dict[str, Any]  # a row of a table, by column


def facts(made: Made) -> Row:
    """Measures the subscriptions and events that were drawn."""
    some = of_predicates(made.subscriptions) if isinstance(made.subscriptions, cm.PredicateTable) else of_texts(made)
    return some | of_events(made.events)


def of_events(events: pa.Table) -> Row:
    """Counts events, those that differ, and the pairs of an event on average."""
    rows = events.num_rows
    pairs = sum(_pairs(column) for column in events.columns)
    return {"events": rows, "distinct_events": len(set(map(str, events.to_pylist()))), "pairs_each": pairs / rows}


def _pairs(column: pa.ChunkedArray) -> int:
    if pa.types.is_map(column.type):
        return sum(len(chunk.keys) for chunk in column.chunks)
    return len(column) - column.null_count


def of_texts(made: Made) -> Row:
    """Counts clauses, each of which has brackets around it."""
    clauses = sum(text.count("(") for _, text in made.subscriptions)
    return {"subscriptions_made": len(made.subscriptions), "clauses_each": clauses / len(made.subscriptions)}


def of_predicates(given: cm.PredicateTable) -> Row:
    """Measures predicates; where texts are compared, prefixes instead of values."""
    table = pa.concat_tables(given.tables).combine_chunks()
    each = pc.value_counts(table["id"]).field("counts").to_numpy()
    op = table["op"].cast(pa.string())
    attribute = _numbers(table["attribute"])
    found = {
        "subscriptions_made": len(each),
        "predicates_each": len(table) / len(each),
        "most_predicates_each": int(each.max()),
        "attributes_made": int(attribute.max()) + 1,
        "attribute_log_rank": float(np.log(attribute + 1).mean()),
        "equalities": pc.mean(pc.equal(op, "=")).as_py(),
    }
    operand = pc.list_flatten(table["operands"])
    if not pa.types.is_string(operand.type):
        value = table["operands"].combine_chunks()
        lowest = operand.to_numpy()[value.offsets.to_numpy()[:-1]]
        different = len(np.unique(lowest * (int(attribute.max()) + 1) + attribute))
        return found | {"cardinality_made": pc.max(operand).as_py() + 1, "values_each": different / len(table)}
    prefix = pc.equal(op, "startswith")
    letters = pc.max(pc.utf8_length(operand.filter(prefix))).as_py()
    return found | {"prefixes": pc.mean(prefix).as_py(), "prefix_letters": letters or 0}


def _numbers(names: pa.ChunkedArray) -> np.ndarray:
    """Returns the numbers of attributes that are called ``a17`` or ``attrs['a17']``."""
    coded = names.combine_chunks() if names.num_chunks != 1 else names.chunk(0)
    number = np.array([int(re.findall(r"\d+", name)[-1]) for name in coded.dictionary.to_pylist()], np.int64)
    return number[coded.indices.to_numpy()]
