"""Rows of predicate tables to leaves and conjunctions.

A large table is lowered in pieces of whole subscriptions. The first access to memory can cost a
process more than the work on it. With a million subscriptions, the peak above the input is 130 MB.
It was 470 MB without pieces, and 600 MB where arrays were also held to the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.ranges import are_new, members, ranges_of
from colmatch.errors import ExpressionError
from colmatch.given.incoming import joined
from colmatch.given.schema import BOOL, Attributes, Schema
from colmatch.kernels.layout import KEY_MIN
from colmatch.lowering.forms import Kind, Op, Operand
from colmatch.lowering.lower import Lowering, Reject
from colmatch.lowering.weights import FURTHER_PART
from colmatch.subscriptions.computed import ComputedNames
from colmatch.subscriptions.operators import OPERATORS, Operator, find_target, operand_kind
from colmatch.subscriptions.table import PredicateTable
from colmatch.subscriptions.weights import fits, no_weight

I64 = NDArray[np.int64]

_OPERANDS = {Op.BETWEEN: (2, 2, "two"), Op.IN: (0, 2**62, "a list of"), Op.PRESENT: (0, 0, "no")}

# predicates lowered at a time: their working memory stays small and in the processor's cache
PIECE = 1 << 17


def add_table(
    table: PredicateTable, schema: Schema, computed: ComputedNames, attributes: Attributes, lowering: Lowering
) -> pa.Array:
    """Passes all predicates to the lowering.

    Returns the ids of the subscriptions, in order of first appearance. Unusable rows are entered in
    ``lowering.rejected``.
    """
    weighted = any("weight" in t.column_names for t in table.tables)
    # Lower a single table without text operands in pieces, if its int64 ids ascend
    first = table.tables[0]
    textual = operand_kind(first["operands"].type.value_type) in (Kind.STRING, Kind.BINARY)
    if len(table.tables) == 1 and first.num_rows and not textual:
        new = _begin(first["id"]) if pa.types.is_int64(first["id"].type) else None
        if new is not None:
            if "priority" in first.column_names:
                _add_priority(table, np.cumsum(new) - 1, lowering)
            return _add_in_pieces(_TypedTable(first, schema, computed, attributes, weighted), new, lowering)
    # Number the subscriptions of all tables
    ids = pa.chunked_array([chunk for each in table.tables for chunk in each["id"].chunks], first["id"].type)
    encoded = joined(ids).dictionary_encode()
    subs = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _add_priority(table, subs, lowering)
    # Add the rows of each table, then all conjunctions
    pairs: list[I64] = []
    first_leaf = -1
    at = 0
    for each in table.tables:
        part = _TypedTable(each, schema, computed, attributes, weighted)
        base, own_pairs = part.add(0, each.num_rows, subs[at : at + each.num_rows], lowering)
        at += each.num_rows
        first_leaf = base if first_leaf < 0 else first_leaf
        pairs.append(own_pairs)
    _add_conjunctions(first_leaf, np.concatenate(pairs), lowering)
    return encoded.dictionary


def _add_priority(table: PredicateTable, subs: I64, lowering: Lowering) -> None:
    """Passes the priorities of subscriptions to the lowering.

    subs : subscription of each row of all tables
    """
    if not any("priority" in each.column_names for each in table.tables):
        return
    parts, at = [], 0
    for each in table.tables:
        if "priority" in each.column_names:
            own = subs[at : at + each.num_rows]
            parts.append((own, each["priority"].to_numpy(), np.arange(each.num_rows)))
        at += each.num_rows
    sub, values, row = (np.concatenate(column) for column in zip(*parts, strict=True))
    lowering.priority = np.zeros(int(subs.max(initial=-1)) + 1)
    lowering.priority[sub[::-1]] = values[::-1]  # the first row's
    for i in np.flatnonzero((values != lowering.priority[sub]) | ~fits(values)).tolist():
        message = no_weight("the priority", values[i])
        if fits(values[i]):
            earlier = lowering.priority[sub[i]]
            message = f"the priority is {values[i]}, in an earlier row {earlier}: one for each id is needed"
        _reject(lowering, int(sub[i]), message, int(row[i]))


def _begin(ids: pa.ChunkedArray) -> NDArray[np.bool_] | None:
    """Returns whether each row begins a subscription; None if its int64 ids do not ascend."""
    new, at, last = np.empty(len(ids), bool), 0, KEY_MIN
    for values in (chunk.to_numpy() for chunk in ids.chunks if len(chunk)):
        if values[0] < last or np.any(values[1:] < values[:-1]):
            return None
        new[at : at + len(values)] = are_new(values)
        new[at] = at == 0 or values[0] != last
        at, last = at + len(values), values[-1]
    return new


def _add_in_pieces(part: _TypedTable, new: NDArray[np.bool_], lowering: Lowering) -> pa.Array:
    """Adds whole subscriptions at a time. The rows of a subscription are neighbours.

    No literal depends on others. Returns the ids of the subscriptions.

    new : whether each row begins a subscription
    """
    ids = np.empty(np.count_nonzero(new), np.int64)
    conjunctions = len(new) if part.numbered else len(ids)
    lowering.reserve(conjunctions, len(new), part.most_intervals + 2 * PIECE, part.weighted)
    start, sub = 0, -1
    while start < len(new):
        stop = min(start + PIECE, len(new))
        if stop < len(new):
            more = int(np.argmax(new[stop:]))
            stop = stop + more if new[stop + more] else len(new)
        begins = new[start:stop]
        which = np.cumsum(begins) + sub
        _add_conjunctions(*part.add(start, stop, which, lowering), lowering)
        lowering.flush()
        ids[sub + 1 : which[-1] + 1] = part.column("id", start, stop).to_numpy()[begins]
        start, sub = stop, int(which[-1])
    return pa.array(ids)


def _add_conjunctions(first_leaf: int, conj: I64, lowering: Lowering) -> None:
    """Adds conjunctions of leaves.

    conj : subscription << 32 | conjunction, of each leaf from ``first_leaf`` on
    """
    leaves = np.arange(first_leaf, first_leaf + len(conj))
    if np.any(conj[1:] < conj[:-1]):
        order = np.argsort(conj, kind="stable")
        conj, leaves = conj[order], leaves[order]
    start = np.flatnonzero(np.concatenate([[True], conj[1:] != conj[:-1]])) if len(conj) else np.empty(0, np.int64)
    lowering.conjunctions(conj[start] >> 32, np.diff(np.append(start, len(conj))), leaves)


class _TypedTable:
    """One table, with the test of each *combo*, a pair of attribute and operator in it."""

    def __init__(
        self, part: pa.Table, schema: Schema, computed: ComputedNames, attributes: Attributes, weighted: bool
    ) -> None:
        self.schema, self.computed, self.attributes = schema, computed, attributes
        self.part = part
        names, ops = (joined(part[name].slice(0, 1)).dictionary.to_pylist() for name in ("attribute", "op"))
        self.kind = operand_kind(part["operands"].type.value_type)
        self.ops = max(len(ops), 1)
        offsets = [chunk.offsets.to_numpy() for chunk in part["operands"].chunks if len(chunk)]
        self.most_intervals = part.num_rows + sum(int(offset[-1] - offset[0]) for offset in offsets)
        self.numbered = "conjunction" in part.column_names
        self.weighted = weighted

        # Resolve the combos in use
        combos = len(names) * len(ops) + 1
        self.attr_of, self.none_of = np.zeros(combos, np.int64), np.zeros(combos, np.uint8)
        self.group_of = np.zeros(combos, np.uint16)
        self.groups: dict[Any, int] = {}
        self.bad: dict[int, str] = {}
        self.extra_attr, self.extra_none = np.full((2, combos), -1, np.int64), np.zeros((2, combos), np.uint8)
        used = np.zeros(combos, bool)
        for start in range(0, part.num_rows, PIECE):
            used[self._combo(start, start + PIECE)] = True
        for c in np.flatnonzero(used).tolist():
            self._resolve(c, names[c // len(ops)], ops[c % len(ops)])

    def column(self, name: str, start: int, stop: int) -> pa.Array:
        """Returns some rows of a column; they are not copied if they are in one chunk."""
        return joined(self.part[name].slice(start, stop - start))

    def _combo(self, start: int, stop: int) -> I64:
        attribute, op = (self.column(name, start, stop).indices.to_numpy() for name in ("attribute", "op"))
        combo: I64 = attribute.astype(np.int64) * self.ops + op.astype(np.int64)
        return combo

    def _resolve(self, c: int, name: str, op: str) -> None:
        operator, attributes = Operator.parse(op), self.attributes
        try:
            if operator is None:
                raise ExpressionError(f"unknown operator {op!r}: use {', '.join(OPERATORS)} or their negations")
            test = find_target(self.schema, self.computed, name, operator, self.kind)
        except ExpressionError as error:
            self.bad[c] = error.message
            self.group_of[c] = self.groups.setdefault(None, len(self.groups))
            return  # the attribute does not matter: conjunctions of rejected subscriptions are dropped unread
        self.attr_of[c], self.none_of[c] = attributes.intern(test.attribute), test.none
        self.group_of[c] = self.groups.setdefault((test.attribute.type, test.op, test.outside), len(self.groups))
        for k, (attribute, none) in enumerate(test.extras):
            self.extra_attr[k, c], self.extra_none[k, c] = attributes.intern(attribute), none

    def add(self, start: int, stop: int, sub: I64, lowering: Lowering) -> tuple[int, I64]:
        """Adds the leaves and tests of some rows.

        Returns the first leaf, and subscription << 32 | conjunction of each leaf.
        """
        # Add the leaves
        rows, combo = stop - start, self._combo(start, stop)
        weight = None
        if self.weighted:
            weight = np.zeros(rows)
            if "weight" in self.part.column_names:
                weight = self.column("weight", start, stop).to_numpy(zero_copy_only=False)
            wrong = ~fits(weight)
            if wrong.any():
                for row in np.flatnonzero(wrong).tolist():
                    _reject(lowering, int(sub[row]), no_weight("the weight", weight[row]), start + row)
                weight = np.where(wrong, 0.0, weight)
        base = lowering.leaves(self.attr_of[combo], self.none_of[combo], sub, weight)
        number = self.column("conjunction", start, stop).to_numpy().astype(np.int64) if self.numbered else 0
        pairs = (sub << 32) | (number + 2**31)
        # Reject rows without a test
        if self.bad:
            where = np.flatnonzero(np.isin(combo, list(self.bad)))
            for row in where.tolist():
                _reject(lowering, int(sub[row]), self.bad[int(combo[row])], start + row)
        # Add the tests by group
        operands = self.column("operands", start, stop)
        offset = operands.offsets.to_numpy()
        size = np.where(operands.is_valid().to_numpy(zero_copy_only=False), np.diff(offset), 0)
        group = self.group_of[combo]
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(len(self.groups) + 1))
        values = operands.values[int(offset[0]) : int(offset[-1])]
        part = _Slice(start, base, offset - offset[0], size, values, sub)
        for key, g in self.groups.items():
            if key is not None:
                _add_group(lowering, key, self.kind, order[bounds[g] : bounds[g + 1]], part)
        # Add the leaves of other conditions
        pieces = [pairs]
        for k in range(len(self.extra_attr)):
            where = np.flatnonzero(self.extra_attr[k][combo] >= 0)
            parts = np.full(len(where), FURTHER_PART) if self.weighted else None
            new = lowering.leaves(self.extra_attr[k][combo[where]], self.extra_none[k][combo[where]], sub[where], parts)
            lowering.groups[BOOL, Op.PRESENT, (), False].add(np.arange(new, new + len(where)), [], ())
            pieces.append(pairs[where])
        return base, np.concatenate(pieces)


class _Slice(NamedTuple):
    """Neighbouring rows of a table."""

    start: int  # number of the first row
    base: int  # leaf of the first row
    offset: I64  # (rows + 1) into ``values``
    size: I64  # (rows) operands
    values: pa.Array
    sub: I64  # (rows)


def _add_group(lowering: Lowering, key: Any, kind: Kind | None, rows: I64, some: _Slice) -> None:
    """Adds the tests of rows that share type, operator and sense."""
    type, op, outside = key
    start, base, offset, size, values, sub = some
    # Reject rows with a wrong number of operands, or with NULL among them
    low, high, words = _OPERANDS.get(op, (1, 1, "one"))
    wrong = (size[rows] < low) | (size[rows] > high)
    for row in rows[wrong].tolist():
        message = f"{op.name.lower()} takes {words} operand{'s' if words != 'one' else ''}, not {size[row]}"
        _reject(lowering, int(sub[row]), message, start + row)
    rows = rows[~wrong]
    if op is Op.PRESENT:
        lowering.groups[type, op, (), outside].add(base + rows, [], ())
        return
    assert kind is not None
    if values.null_count:
        null = ranges_of(values.is_null().to_numpy(zero_copy_only=False))
        wrong = null[offset[rows] + size[rows]] > null[offset[rows]]
        for row in rows[wrong].tolist():
            _reject(lowering, int(sub[row]), "an operand is NULL", start + row)
        rows = rows[~wrong]
    if op is Op.IN:  # one test for each point: the tests of one leaf are united anyway
        places = members(offset[rows], ranges_of(size[rows]))
        lowering.groups[type, Op.EQ, (Operand(kind),), False].add(
            np.repeat(base + rows, size[rows]), [_gather(values, places, kind)], (-1,)
        )
        return
    # Add one test for each row
    count = 2 if op is Op.BETWEEN else 1
    parts = [_gather(values, offset[rows] + i, kind) for i in range(count)]
    lowering.groups[type, op, (Operand(kind),) * count, outside].add(base + rows, parts, (-1,) * count)


def _reject(lowering: Lowering, sub: int, message: str, row: int) -> None:
    """Rejects a subscription, unless it is rejected already."""
    lowering.rejected.setdefault(sub, Reject(f"{message} (row {row} of the predicate table)", -1))


def _gather(values: pa.Array, places: I64, kind: Kind) -> Any:
    """Returns operands as numpy arrays for numbers and Boolean values, else as Arrow arrays."""
    if kind in (Kind.INT, Kind.DOUBLE) and not values.null_count:
        return values.to_numpy()[places]
    taken = values.take(pa.array(places))
    return taken.to_numpy(zero_copy_only=False) if kind in (Kind.INT, Kind.DOUBLE, Kind.BOOL) else taken
