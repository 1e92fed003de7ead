"""Events that all differ although many subscriptions match each of them.

Subscriptions that are planted around a few events match only these, so a batch would have to repeat
them: 11 events for a probability of 0.09. Here they are planted around *cores*. A core has seven
eighths of the pairs that the smallest event has. An event is one of the cores with pairs of its own
besides. So events of one core are alike, and kinds that look at a tile of events share work among
them: the columns ``alone`` are of events that are matched one by one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from workload import Workload
from workload.events import Events, table

import colmatch as cm
from colmatch.arrays.ranges import ranges_of

AWAY = 1 << 16  # number of the event from which on own pairs are drawn, far behind those of the cores


def likely(probability: float, rows: int) -> dict[str, float | int]:
    """Returns fields with which each of so many events matches this share of subscriptions."""
    around = max(1, min(rows, int(1 / probability)))
    return {"planted": min(1.0, probability * around), "around": around}


def core(workload: Workload) -> Workload:
    """Returns the workload whose events are the cores."""
    kept = workload.event_size[0] * 7 // 8
    return replace(workload, event_size=(kept, kept))


def planted_table(workload: Workload) -> cm.PredicateTable:
    """Draws the subscriptions, planted around cores."""
    return core(workload).predicate_table()


def planted_batch(workload: Workload, rows: int) -> pa.Table:
    """Draws events: the cores in turn, each with pairs of its own besides."""
    low, high = workload.event_size
    kept = core(workload).event_size[0]
    cores = min(workload.around, rows)
    _, attribute, value = _pairs(core(workload), cores, 0)
    of = np.arange(rows) % cores
    places = (of[:, None] * kept + np.arange(kept)).ravel()
    event = np.repeat(np.arange(rows), kept)
    attribute, value = attribute[places], value[places]

    own_event, own_attribute, own_value = _pairs(replace(workload, event_size=(high, high)), rows, AWAY)
    known = event * workload.attributes + attribute
    fresh = np.flatnonzero(~np.isin(own_event * workload.attributes + own_attribute, known))
    rng = np.random.default_rng((workload.seed, rows))
    fresh = fresh[np.lexsort((rng.random(len(fresh)), own_event[fresh]))]
    count = np.bincount(own_event[fresh], minlength=rows)
    rank = np.arange(len(fresh)) - np.repeat(ranges_of(count)[:-1], count)
    fresh = fresh[rank < (rng.integers(low, high + 1, rows) - kept)[own_event[fresh]]]

    event = np.append(event, own_event[fresh])
    attribute, value = np.append(attribute, own_attribute[fresh]), np.append(value, own_value[fresh])
    order = np.lexsort((attribute, event))
    first = ranges_of(np.bincount(event, minlength=rows))
    pairs = Events(first, attribute[order].astype(np.int32), value[order])
    return pa.Table.from_batches([table(pairs, workload)])


def _pairs(workload: Workload, rows: int, start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws pairs of some events of the stream: event (counted from 0), attribute, value."""
    pairs = workload.pairs(rows, start).combine_chunks()
    attribute = pairs["attribute"].combine_chunks().indices.to_numpy().astype(np.int64)
    return pairs["event"].to_numpy() - start, attribute, pairs["value"].to_numpy()
