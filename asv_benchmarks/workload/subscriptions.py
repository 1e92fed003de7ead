"""Subscriptions of a workload: drawn in chunks, then made predicates or texts.

A chunk depends on the seed and its number only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.arrays.ranges import members, ranges_of
from workload.draw import F64, I64, sizes, subsets, zipf
from workload.events import SUBSCRIPTIONS, attributes, planted_events, values, written_names
from workload.parameters import OPERATORS, Parameters

CHUNK = 16384  # subscriptions drawn at a time
_EQ, _BETWEEN, _LE, _GE, _LT, _GT, _NE, _IN, _NOT_IN = range(len(OPERATORS))
_LEFT = (" = ", " BETWEEN ", " <= ", " >= ", " < ", " > ", " <> ", " IN (", " NOT IN (")
_BETWEEN_THEM = ("", " AND ", "", "", "", "", "", ", ", ", ")
_RIGHT = ("", "", "", "", "", "", "", ")", ")")


class Subscriptions(NamedTuple):
    """Subscriptions ``number``, ``number + 1`` …, each a conjunction.

    The predicates of one are on different attributes.
    """

    number: int
    first: I64  # (subscriptions + 1,): the predicates of the i-th are first[i]:first[i + 1]
    attribute: NDArray[np.int32]  # (predicates,), ascending within a subscription
    op: NDArray[np.int8]  # (predicates,)
    weight: F64 | None  # (predicates,)
    operand: I64  # (predicates + 1,): the operands of predicate p are operands[operand[p]:operand[p + 1]]
    operands: I64

    def slice(self, start: int, stop: int) -> Subscriptions:
        """Subscriptions ``start:stop`` of these."""
        low, high = int(self.first[start]), int(self.first[stop])
        a, b = self.operand[low], self.operand[high]
        return Subscriptions(
            self.number + start,
            self.first[start : stop + 1] - low,
            self.attribute[low:high],
            self.op[low:high],
            None if self.weight is None else self.weight[low:high],
            self.operand[low : high + 1] - a,
            self.operands[a:b],
        )


def chunks(workload: Parameters, start: int, stop: int) -> Iterator[Subscriptions]:
    """Draws subscriptions ``start`` to ``stop``, piece by piece."""
    for number in range(start // CHUNK, -(-stop // CHUNK)):
        base = number * CHUNK
        yield _draw(workload, number).slice(max(start - base, 0), min(stop - base, CHUNK))


def _draw(workload: Parameters, number: int) -> Subscriptions:
    rng = np.random.default_rng(np.random.SeedSequence((workload.seed, SUBSCRIPTIONS, number)))
    planted = rng.random(CHUNK) < workload.planted
    size = sizes(rng, CHUNK, *workload.subscription_size, workload.subscription_mean)
    around = rng.integers(0, workload.around, np.count_nonzero(planted))
    if len(around):
        events = planted_events(workload)
        pairs = np.diff(events.first)[around].astype(np.int32)
        size[planted] = np.minimum(size[planted], pairs)
    first = ranges_of(size)
    free = ~np.repeat(planted, size)  # of each predicate
    attribute = np.empty(len(free), np.int32)
    attribute[free] = attributes(rng, size[~planted], workload)
    value = values(rng, attribute[free], workload)
    drawn = np.empty(len(free), np.int64)
    drawn[free] = value
    near = drawn.copy()  # what a predicate must be true for: the event's value, or where there is none the drawn one
    if len(around):
        pair = subsets(rng, size[planted], pairs) + np.repeat(events.first[around], size[planted])
        attribute[~free] = events.attribute[pair]
        near[~free] = events.value[pair]
        drawn[~free] = values(rng, attribute[~free], workload)
    op = _operators(rng, len(free), workload)
    operand, operands = _operands(rng, op, attribute, drawn, near, ~free, workload)
    weight = _weights(rng, attribute, workload) if workload.weights else None
    return Subscriptions(number * CHUNK, first, attribute, op, weight, operand, operands)


def _operators(rng: np.random.Generator, count: int, workload: Parameters) -> NDArray[np.int8]:
    share = np.zeros(len(OPERATORS))
    for name, part in workload.operators:
        share[OPERATORS.index(name)] = part
    share *= (1 - workload.equality) / share.sum()
    share[_EQ] = workload.equality
    last = np.flatnonzero(share)[-1]  # the shares may add up to a little less than one
    drawn = np.searchsorted(np.cumsum(share), rng.random(count), side="right")
    return np.asarray(np.minimum(drawn, last), np.int8)


def _operands(
    rng: np.random.Generator,
    op: NDArray[np.int8],
    attribute: NDArray[np.int32],
    drawn: I64,
    near: I64,
    planted: NDArray[np.bool_],
    workload: Parameters,
) -> tuple[I64, I64]:
    """Operands about ``drawn``, such that a ``planted`` predicate is true for ``near``."""
    count = np.ones(len(op), np.int64)
    count[op == _BETWEEN] = 2
    lists = np.flatnonzero(op >= _IN)
    count[lists] = rng.integers(workload.list_size[0], workload.list_size[1] + 1, len(lists))
    operand = ranges_of(count)
    operands = np.empty(operand[-1], np.int64)

    one = np.where(op == _EQ, near, drawn)
    for code, bound in ((_LE, near), (_LT, near + 1)):
        one = np.where(planted & (op == code), np.maximum(drawn, bound), one)
    for code, bound in ((_GE, near), (_GT, near - 1)):
        one = np.where(planted & (op == code), np.minimum(drawn, bound), one)
    one = np.where(planted & (op == _NE), _other(drawn, near), one)
    operands[operand[:-1]] = one

    rows = np.flatnonzero(op == _BETWEEN)
    share, place = rng.random(len(rows)), rng.random(len(rows))
    whole, value = workload.cardinality, near[rows]
    low, high = workload.width
    width = np.minimum(1 + ((low + (high - low) * share) * whole).astype(np.int64), whole)
    lowest, highest = np.maximum(value - width + 1, 0), np.minimum(value, whole - width)
    begin = np.minimum(lowest + (place * (highest - lowest + 1)).astype(np.int64), highest)
    operands[operand[rows]] = begin
    operands[operand[rows] + 1] = begin + width - 1

    entries = members(operand[lists], ranges_of(count[lists]))
    of = np.repeat(lists, count[lists])
    listed = values(rng, attribute[of], workload)
    operands[entries] = np.where(planted[of] & (op[of] == _NOT_IN), _other(listed, near[of]), listed)
    inside = lists[op[lists] == _IN]
    operands[operand[inside]] = near[inside]
    return operand, operands


def _other(value: I64, near: I64) -> I64:
    """``value``, but its neighbour where it is ``near``."""
    return np.where(value == near, np.where(near > 0, near - 1, near + 1), value)


def _weights(rng: np.random.Generator, attribute: NDArray[np.int32], workload: Parameters) -> F64:
    probability = zipf(workload.attributes, workload.attribute_zipf)
    rarity = (probability.min() / probability)[attribute]
    return np.asarray(np.clip(rng.normal(0.8 * rarity, 0.05 * rarity), 0, rarity), np.float64)


def schema(workload: Parameters) -> pa.Schema:
    """Returns the columns of ``rows``."""
    text = pa.dictionary(pa.int32(), pa.string())
    fields = [("id", pa.int64()), ("attribute", text), ("op", pa.dictionary(pa.int8(), pa.string()))]
    fields += [("operands", pa.large_list(pa.int64()))]
    return pa.schema([*fields, ("weight", pa.float64())] if workload.weights else fields)


TEXTS = pa.schema([("id", pa.int64()), ("expression", pa.string())])


def rows(part: Subscriptions, workload: Parameters) -> pa.RecordBatch:
    """A row a predicate, as ``PredicateTable`` takes it."""
    id = np.repeat(np.arange(part.number, part.number + len(part.first) - 1), np.diff(part.first))
    columns = [
        pa.array(id),
        pa.DictionaryArray.from_arrays(pa.array(part.attribute), written_names(workload)),
        pa.DictionaryArray.from_arrays(pa.array(part.op), pa.array(OPERATORS)),
        pa.LargeListArray.from_arrays(pa.array(part.operand), pa.array(part.operands)),
    ]
    if part.weight is not None:
        columns.append(pa.array(part.weight))
    return pa.RecordBatch.from_arrays(columns, schema=schema(workload))


def texts(part: Subscriptions, workload: Parameters) -> pa.RecordBatch:
    """A row a subscription, as SQL text."""
    numbers = pa.array(part.operands).cast(pa.string())
    op = pa.array(part.op)
    joined = pc.binary_join(
        pa.ListArray.from_arrays(pa.array(part.operand.astype(np.int32)), numbers), pa.array(_BETWEEN_THEM).take(op)
    )
    name = written_names(workload).take(pa.array(part.attribute))
    predicates = pc.binary_join_element_wise(name, pa.array(_LEFT).take(op), joined, pa.array(_RIGHT).take(op), "")
    expression = pc.binary_join(pa.ListArray.from_arrays(pa.array(part.first.astype(np.int32)), predicates), " AND ")
    id = pa.array(np.arange(part.number, part.number + len(part.first) - 1))
    return pa.RecordBatch.from_arrays([id, expression], schema=TEXTS)
