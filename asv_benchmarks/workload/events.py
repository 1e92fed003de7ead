"""Events of a workload: drawn in chunks, then laid out as Arrow.

A chunk depends on the seed and its number only.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import comb, log2
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.ranges import members, ranges_of
from colmatch.errors import OptionError
from workload.draw import I64, ranks, sizes, subsets, weighted_subsets, zipf
from workload.parameters import EVENT_CHUNK, Parameters

EVENTS, SUBSCRIPTIONS, CENTRES = 0, 1, 2  # second word of a seed: what is drawn
KEPT = 4  # workloads of which what all chunks share is kept
_SURE = 72  # bits: events that differ by chance alone, a million of them but for one time in 2**32


class Events(NamedTuple):
    """Events as attribute-value pairs."""

    first: I64  # (events + 1,): the pairs of event e are first[e]:first[e + 1]
    attribute: NDArray[np.int32]  # (pairs,), ascending within an event
    value: I64  # (pairs,)

    def slice(self, start: int, stop: int) -> Events:
        """Events ``start:stop`` of these."""
        low, high = self.first[start], self.first[stop]
        return Events(self.first[start : stop + 1] - low, self.attribute[low:high], self.value[low:high])


@lru_cache(maxsize=KEPT)
def centres(workload: Parameters) -> I64:
    """Returns the middles of the clusters of each attribute: (attributes, clusters)."""
    rng = np.random.default_rng(np.random.SeedSequence((workload.seed, CENTRES)))
    # no cluster is cut off by an end of the domain
    inside = min(workload.cluster_size, (workload.cardinality - 1) // 2)
    return rng.integers(inside, workload.cardinality - inside, (workload.attributes, workload.clusters))


def attributes(rng: np.random.Generator, size: NDArray[np.int32], workload: Parameters) -> NDArray[np.int32]:
    """Draws ``size[i]`` different attributes for each row, ascending."""
    if workload.attribute_zipf == 0:
        return subsets(rng, size, np.full(len(size), workload.attributes, np.int32))
    return weighted_subsets(rng, size, zipf(workload.attributes, workload.attribute_zipf))


def values(rng: np.random.Generator, attribute: NDArray[np.int32], workload: Parameters) -> I64:
    """A value for each attribute: by rank, or about one of its clusters."""
    if not workload.clusters:
        return ranks(rng, len(attribute), workload.cardinality, workload.value_zipf)
    middle = centres(workload)[attribute, ranks(rng, len(attribute), workload.clusters, workload.value_zipf)]
    drawn = middle + rng.integers(-workload.cluster_size, workload.cluster_size + 1, len(attribute))
    return np.asarray(np.clip(drawn, 0, workload.cardinality - 1), np.int64)


def chunks(workload: Parameters, start: int, stop: int) -> Iterator[Events]:
    """Returns the events from number ``start`` up to ``stop``. No two of the whole stream are
    alike.

    Almost all workloads have so many possible events that this comes by itself. Where not, what
    came before must be known, so that the stream is drawn from its beginning.
    """
    sure = _bits(workload) >= _SURE
    seen = np.empty(0, np.uint64)
    for number in range(start // EVENT_CHUNK if sure else 0, -(-stop // EVENT_CHUNK)):
        rng = np.random.default_rng(np.random.SeedSequence((workload.seed, EVENTS, number)))
        if sure:
            chunk = _draw(rng, EVENT_CHUNK, workload)
        else:
            chunk, seen = _draw_unseen(rng, workload, seen)
        base = number * EVENT_CHUNK
        have = len(chunk.first) - 1
        if have < min(stop - base, EVENT_CHUNK):
            raise OptionError(
                f"Workload({workload.name!r}) found only {base + have:,} different events, and {stop:,} are wanted: "
                "give more attributes, a larger event_size or cardinality, or less skew"
            )
        if base + have > start:
            yield chunk.slice(max(start - base, 0), min(stop - base, have))


def _bits(workload: Parameters) -> float:
    """Returns how unlikely it is that two events of least size are alike, as -log2 of the
    probability.
    """
    low = workload.event_size[0]
    if workload.clusters:
        different = workload.clusters if workload.value_zipf == 0 else 1  # clusters may lie upon each other
        value = log2(min(workload.cardinality, max(2 * workload.cluster_size + 1, different)))
    elif workload.value_zipf == 0:
        value = log2(workload.cardinality)
    else:
        value = max(0.0, -log2(float(np.square(zipf(min(workload.cardinality, 2**16), workload.value_zipf)).sum())) - 1)
    sets = log2(comb(workload.attributes, low)) if workload.attribute_zipf == 0 and low <= 1000 else 0.0
    return low * value + sets


def _draw(rng: np.random.Generator, count: int, workload: Parameters) -> Events:
    size = sizes(rng, count, *workload.event_size, None)
    attribute = attributes(rng, size, workload)
    return Events(ranges_of(size), attribute, values(rng, attribute, workload))


def _draw_unseen(
    rng: np.random.Generator, workload: Parameters, seen: NDArray[np.uint64]
) -> tuple[Events, NDArray[np.uint64]]:
    """A chunk of events whose signatures are not among ``seen``, and ``seen`` with theirs.

    It is short when no more were found.
    """
    parts: list[Events] = []
    have = 0
    for _ in range(32):
        drawn = _draw(rng, EVENT_CHUNK, workload)
        signature = _signatures(drawn)
        _, where = np.unique(signature, return_index=True)
        fresh = np.sort(where[~np.isin(signature[where], seen)])[: EVENT_CHUNK - have]
        seen = np.concatenate([seen, signature[fresh]])
        size = np.diff(drawn.first)[fresh]
        pairs = members(drawn.first[fresh], ranges_of(size))
        parts.append(Events(ranges_of(size), drawn.attribute[pairs], drawn.value[pairs]))
        have += len(fresh)
        if have == EVENT_CHUNK:
            break
    return _joined(parts), seen


def _joined(parts: list[Events]) -> Events:
    first = ranges_of(np.concatenate([np.diff(part.first) for part in parts]))
    _, attribute, value = map(np.concatenate, zip(*parts, strict=True))
    return Events(first, attribute, value)


def _signatures(pairs: Events) -> NDArray[np.uint64]:
    """A number for each event; alike events have the same.

    The last steps of splitmix64, summed over the pairs.
    """
    x = pairs.value.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + pairs.attribute.astype(np.uint64) + np.uint64(1)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(x ^ (x >> np.uint64(31)), dtype=np.uint64)])
    return np.asarray(total[pairs.first[1:]] - total[pairs.first[:-1]], np.uint64)


@lru_cache(maxsize=KEPT)
def key_names(workload: Parameters) -> pa.Array:
    return pa.array([f"a{i}" for i in range(workload.attributes)], pa.string())


@lru_cache(maxsize=KEPT)
def written_names(workload: Parameters) -> pa.Array:
    """Attributes as expressions write them: ``a17`` or ``attrs['a17']``."""
    if workload.layout != "map":
        return key_names(workload)
    return pa.array([f"attrs['a{i}']" for i in range(workload.attributes)], pa.string())


@lru_cache(maxsize=KEPT)
def planted_events(workload: Parameters) -> Events:
    """Returns the events that subscriptions are planted around."""
    return _joined(list(chunks(workload, 0, workload.around)))


def schema(workload: Parameters) -> pa.Schema:
    """Returns the columns of the events."""
    if workload.layout == "columns":
        return pa.schema([(f"a{i}", pa.int64()) for i in range(workload.attributes)])
    return pa.schema([("attrs", pa.map_(pa.dictionary(pa.int32(), pa.string()), pa.int64()))])


def table(pairs: Events, workload: Parameters) -> pa.RecordBatch:
    """Events in the layout of the workload."""
    rows = len(pairs.first) - 1
    if workload.layout == "map":
        keys = pa.DictionaryArray.from_arrays(pa.array(pairs.attribute), key_names(workload))
        entries = pa.MapArray.from_arrays(pa.array(pairs.first.astype(np.int32)), keys, pa.array(pairs.value))
        return pa.RecordBatch.from_arrays([entries], schema=schema(workload))
    row = np.repeat(np.arange(rows), np.diff(pairs.first))
    grid = np.zeros((workload.attributes, rows), np.int64)
    absent = np.ones((workload.attributes, rows), bool)
    grid[pairs.attribute, row] = pairs.value
    absent[pairs.attribute, row] = False
    return pa.RecordBatch.from_arrays(
        [pa.array(value, mask=mask) for value, mask in zip(grid, absent, strict=True)], schema=schema(workload)
    )


def long_form(pairs: Events, start: int, workload: Parameters) -> pa.RecordBatch:
    """One row a pair, of events that are numbered from ``start``."""
    event = np.repeat(np.arange(start, start + len(pairs.first) - 1), np.diff(pairs.first))
    attribute = pa.DictionaryArray.from_arrays(pa.array(pairs.attribute), key_names(workload))
    return pa.RecordBatch.from_arrays([pa.array(event), attribute, pa.array(pairs.value)], schema=LONG)


LONG = pa.schema([("event", pa.int64()), ("attribute", pa.dictionary(pa.int32(), pa.string())), ("value", pa.int64())])
