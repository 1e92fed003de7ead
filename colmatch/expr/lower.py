"""Forms and their literals, or columns of predicates -> the arrays that every index kind is built from.

All subscriptions are lowered together, column by column: literals that need the same conversion stand in one *group* (type, operator,
kinds of operands), however many expressions they come from, and are converted in one go.

A *test* gives key intervals, a *leaf* is the union of its tests' intervals, a *predicate* what the leaves of one conjunction say about
one attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from colmatch.expr.forms import PATTERNS, Form, Kind, Op, Operand
from colmatch.expr.patterns import Pattern, successor
from colmatch.keys import EXACT, KEY_MAX, KEY_MIN, Intervals, Keys, LiteralErrors, intervals, literal_keys
from colmatch.kernels import layout, lower
from colmatch.schema import BOOL, Attribute, Attributes, Type

I64 = NDArray[np.int64]


class Reject(NamedTuple):
    """Why a subscription was left out, and which of its literals is to blame (-1: none in particular)."""

    message: str
    slot: int


class Lowered(NamedTuple):
    predicates: layout.Predicates
    codes: layout.Codes
    literals: layout.Literals
    rejected: dict[int, Reject]  # by subscription; those have no conjunctions


@dataclass(slots=True)
class Group:
    """Tests whose operands are converted alike. ``parts[k]`` holds the values of operand k, in pieces: lists or arrays."""

    type: Type
    op: Op
    operands: tuple[Operand, ...]  # kind, many and negative of each; not their values
    outside: bool
    leaf: list[Any] = field(default_factory=list)  # pieces: lists of ints or int64 arrays
    parts: list[list[Any]] = field(default_factory=list)
    origin: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # (first test, slots of the operands) of each piece
    tests: int = 0

    def add(self, leaf: Any, values: Sequence[Any], slots: tuple[int, ...]) -> None:
        """``leaf``: ids, one for each test; ``values``: for each operand as many values (of a ``many`` operand: lists)."""
        if not self.parts:
            self.parts = [[] for _ in self.operands]
        self.origin.append((self.tests, slots))
        for pieces, piece in zip((self.leaf, *self.parts), (leaf, *values), strict=True):
            if pieces and isinstance(piece, (list, range)) and isinstance(pieces[-1], list):
                pieces[-1].extend(piece)
            else:
                pieces.append(list(piece) if isinstance(piece, range) else piece)
        self.tests += len(leaf)

    def leaves(self) -> I64:
        return _concat([np.asarray(piece, np.int64) for piece in self.leaf])

    def slot(self, test: int, operand: int) -> int:
        at = max(i for i, (first, _) in enumerate(self.origin) if first <= test)
        slots = self.origin[at][1]
        return slots[operand] if operand < len(slots) else -1


def _concat(pieces: Sequence[NDArray[Any]], dtype: Any = np.int64) -> NDArray[Any]:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)


def _flat(pieces: list[Any]) -> Any:
    """One list, or one array, of the values of an operand."""
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, np.ndarray) for piece in pieces):
        return np.concatenate(pieces)
    return list(chain.from_iterable(piece.tolist() if isinstance(piece, (np.ndarray, pa.Array)) else piece for piece in pieces))


class Lowering:
    """Collects expressions, then lowers all of them.

    Parameters
    ----------
    attributes : those that the forms name; pattern attributes are added to it
    zone : session time zone, for timestamp literals without one
    """

    def __init__(self, attributes: Attributes, zone: str) -> None:
        self.attributes = attributes
        self.zone = zone
        self.rejected: dict[int, Reject] = {}
        self._groups: dict[Any, Group] = {}
        self._plans: dict[int, tuple[Form, Any]] = {}
        self._leaves = 0
        self._leaf_attr: list[NDArray[Any]] = []
        self._leaf_none: list[NDArray[Any]] = []
        self._leaf_sub: list[NDArray[Any]] = []
        self._leaf_weight: list[NDArray[Any]] = []
        self._owner: list[NDArray[Any]] = []
        self._size: list[NDArray[Any]] = []
        self._leaf: list[NDArray[Any]] = []
        self._programs: list[tuple[int, Form, int]] = []  # (first conjunction, form, instances)
        self._conjunctions = 0

    def group(self, type: Type, op: Op, operands: tuple[Operand, ...], outside: bool) -> Group:
        key = (type, op, tuple((o.kind, o.many, o.negative) for o in operands), outside)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = Group(type, op, operands, outside)
        return found

    def add(self, form: Form, subs: Sequence[int] | I64, literals: Sequence[Sequence[Any]]) -> None:
        """Expressions of one form: subscription ids (dense) and, for each, its literals by slot."""
        attr, none, size, leaf, tests, programs = self._plan(form)
        m, n = len(subs), len(attr)
        base = self._leaves
        sub = np.asarray(subs, np.int64)
        if tests:
            columns = list(zip(*literals, strict=True)) if m > 1 else [(value,) for value in literals[0]]
            for group, j, operands in tests:
                values = [list(columns[o.slot]) if o.slot >= 0 else [o.value] * m for o in operands]
                group.add(range(base + j, base + j + m * n, n), values, tuple(o.slot for o in operands))
        if m == 1:
            self._leaf_attr.append(attr)
            self._leaf_none.append(none)
            self._leaf_sub.append(np.full(n, sub[0]))
            self._owner.append(np.full(len(size), sub[0]))
            self._size.append(size)
            self._leaf.append(leaf + base)
        else:
            self._leaf_attr.append(np.tile(attr, m))
            self._leaf_none.append(np.tile(none, m))
            self._leaf_sub.append(np.repeat(sub, n))
            self._owner.append(np.repeat(sub, len(size)))
            self._size.append(np.tile(size, m))
            self._leaf.append((base + np.arange(m)[:, None] * n + leaf[None, :]).ravel())
        if programs:
            self._programs.append((self._conjunctions, form, m))
        self._conjunctions += m * len(size)
        self._leaves += m * n

    def _plan(self, form: Form) -> Any:
        """A form's parts as arrays, and which group takes which test: made once for each form."""
        known = self._plans.get(id(form))
        if known is not None:
            return known[1]
        attr = np.array([leaf.attr for leaf in form.leaves], np.int64)
        none = np.array([leaf.none for leaf in form.leaves], np.uint8)
        size = np.array([len(c.leaves) for c in form.conjunctions], np.int64)
        leaves = np.array([leaf for c in form.conjunctions for leaf in c.leaves], np.int64)
        tests = [
            (self.group(self.attributes[leaf.attr].type, test.op, test.operands, test.outside), j, test.operands)
            for j, leaf in enumerate(form.leaves)
            for test in leaf.tests
        ]
        plan = attr, none, size, leaves, tests, any(c.jumps for c in form.conjunctions)
        self._plans[id(form)] = form, plan  # the form is held so that its id stays its own
        return plan

    def leaves(self, attr: I64, none: NDArray[np.uint8], sub: I64, weight: NDArray[np.float64] | None) -> int:
        """Leaves without a form: returns the id of the first; the others follow. Their tests go to ``group(...).add``."""
        base = self._leaves
        self._leaf_attr.append(attr)
        self._leaf_none.append(none)
        self._leaf_sub.append(sub)
        if weight is not None:
            self._leaf_weight.append(weight)
        self._leaves += len(attr)
        return base

    def conjunctions(self, owner: I64, size: I64, leaf: I64) -> None:
        """Plain conjunctions without a form: subscription and number of leaves of each, and the ids of these leaves."""
        self._owner.append(owner)
        self._size.append(size)
        self._leaf.append(leaf)
        self._conjunctions += len(owner)

    def finish(self) -> Lowered:
        self._leaf_attr = [_concat(self._leaf_attr)]
        self._leaf_sub = [_concat(self._leaf_sub)]
        leaf, lo, hi = self._intervals()
        n = self._leaves
        first = np.empty(n + 1, np.int64)
        by_lo, by_hi = np.empty_like(lo), np.empty_like(hi)
        lower.group_intervals(leaf, lo, hi, first, by_lo, by_hi)
        run_first, run_lo, run_hi = _runs(first, by_lo, by_hi, np.zeros(n, np.uint8))
        owner, size = _concat(self._owner), _concat(self._size)
        refs = _concat(self._leaf)
        program, jump, tree = self._program_columns()
        order = np.flatnonzero(~np.isin(owner, list(self.rejected))) if self.rejected else np.arange(len(owner))
        if np.any(owner[1:] < owner[:-1]):
            order = order[np.argsort(owner[order], kind="stable")]
        start = _starts(size)
        if len(order) < len(owner) or np.any(order[1:] < order[:-1]):
            refs, start = _take(start, refs, order)
            owner, program = owner[order], program[order]
        if n and program.any():
            columns = [order[program.astype(bool)], jump, tree]
        else:
            columns = None
        return self._pack(owner, start, refs, program, columns, run_first, run_lo, run_hi)

    def _pack(
        self, owner: I64, start: I64, refs: I64, program: NDArray[np.uint8], columns: Any, run_first: I64, run_lo: I64, run_hi: I64
    ) -> Lowered:
        leaf_attr, leaf_none = self._leaf_attr[0], _concat(self._leaf_none, np.uint8)
        weight = _concat(self._leaf_weight) if self._leaf_weight else np.empty(0)
        multi = np.array([a.multi for a in self.attributes], np.uint8)
        count, sizes = len(refs), run_first[refs + 1] - run_first[refs] + 1
        most = int(sizes.sum())
        total = np.concatenate([[0], np.cumsum(sizes)])
        longest = int((total[start[1:]] - total[start[:-1]]).max(initial=0)) + 2
        del sizes, total
        spare = np.empty((2, 3, longest), np.int64)
        keep = np.empty(len(owner), np.uint8)
        out_first, attr = np.empty(len(owner) + 1, np.int64), np.empty(count, np.int64)
        none, out_weight = np.empty(count, np.uint8), np.empty(count if len(weight) else 0)
        run, lo, hi = np.empty(count + 1, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
        n, m = lower.merge_conjunctions(
            start, refs, program, leaf_attr, leaf_none, weight, run_first, run_lo, run_hi, multi, spare[0], spare[1],
            keep, out_first, attr, none, out_weight, run, lo, hi,
        )  # fmt: skip
        attr, none, run, lo, hi = attr[:n], none[:n], run[: n + 1], lo[:m], hi[:m]
        codes = _codes(attr, run, lo, hi, multi)
        pred = np.empty((n, 3), np.uint32)
        many = int((run[1:] - run[:-1])[run[1:] - run[:-1] > 1].sum())
        code_lo, code_hi = np.empty(many, np.uint32), np.empty(many, np.uint32)
        lower.code_predicates(
            out_first, attr, none, out_weight, run, lo, hi, program, multi, codes.first, codes.bound, pred, code_lo, code_hi, np.empty(n)
        )
        repeated = np.empty(len(owner), np.uint8)
        lower.find_repeats(out_first, pred, code_lo, code_hi, owner, program | (1 - keep), 64, repeated)  # a dropped one repeats none
        left = np.flatnonzero(keep & ~repeated.astype(bool))
        if len(left) < len(owner):
            pred, out_first, out_weight = _select(out_first, left, pred, out_weight)
            owner, program = owner[left], program[left]
        jump_first, jump, tree_first, tree = _programs(columns, program)
        predicates = layout.Predicates(
            out_first, pred, code_lo, code_hi, owner.astype(np.uint32), out_weight[:n], jump_first, jump, tree_first, tree
        )
        return Lowered(predicates, codes, self._literals, self.rejected)

    # Intervals of tests

    def _intervals(self) -> tuple[I64, I64, I64]:
        """(leaf, lo, hi) of every interval of every test, unordered."""
        for group in [g for g in self._groups.values() if g.op in PATTERNS]:
            self._resolve_patterns(group)
        textual = [g for g in self._groups.values() if g.type.textual and g.operands and g.op not in PATTERNS]
        labels = self._label(textual)
        found: list[tuple[I64, I64, I64]] = []
        for group in self._groups.values():
            if group.op in PATTERNS or not group.tests:
                continue
            leaves = group.leaves()
            test, lo, hi = self._group_intervals(group, leaves, labels.get(id(group)))
            if group.outside:
                first = np.empty(group.tests + 1, np.int64)
                by_lo, by_hi = np.empty_like(lo), np.empty_like(hi)
                lower.group_intervals(test, lo, hi, first, by_lo, by_hi)
                run_first, lo, hi = _runs(first, by_lo, by_hi, np.ones(group.tests, np.uint8))
                test = np.repeat(np.arange(group.tests), np.diff(run_first))
            found.append((leaves[test], lo, hi))
        if not found:
            none = np.empty(0, np.int64)
            return none, none, none
        leaf, lo, hi = (_concat(column) for column in zip(*found, strict=True))
        return leaf, lo, hi

    def _group_intervals(self, group: Group, leaves: I64, labels: list[I64] | None) -> tuple[I64, I64, I64]:
        """(test, lo, hi) of every interval of a group."""
        each = np.arange(group.tests)
        if group.op is Op.PRESENT:
            return each, np.full(group.tests, KEY_MIN), np.full(group.tests, KEY_MAX)
        tests, keys = [], []
        for k, operand in enumerate(group.operands):
            values = _flat(group.parts[k])
            test = each
            if operand.many:
                test = np.repeat(each, np.fromiter(map(len, values), np.int64, len(values)))
            if labels is not None:
                keys.append((labels[k], np.full(len(labels[k]), EXACT, np.int8)))
            else:
                values = list(chain.from_iterable(values)) if operand.many else values
                keys.append(self._keys(group, k, operand, values, test, leaves))
            tests.append(test)
        if group.op is Op.IN:
            points = [intervals(Op.IN, [pair]) for pair in keys]
            return _concat(tests), _concat([p[0] for p in points]), _concat([p[1] for p in points])
        lo, hi = _prefix_interval(keys) if group.op is Op.PREFIX else intervals(group.op, keys)
        return each, lo, hi

    def _keys(self, group: Group, k: int, operand: Operand, values: Any, test: I64, leaves: I64) -> Keys:
        try:
            return literal_keys(group.type, operand.kind, values, operand.negative, self.zone)
        except LiteralErrors as errors:
            floor, place = np.zeros(len(values), np.int64), np.zeros(len(values), np.int8)
            good = np.ones(len(values), bool)
            for i, reason in errors.reasons.items():
                good[i] = False
                self._reject(leaves[test[i]], reason, group.slot(int(test[i]), k))
            left = [value for value, fine in zip(values, good.tolist(), strict=True) if fine]
            floor[good], place[good] = literal_keys(group.type, operand.kind, left, operand.negative, self.zone)
            return floor, place

    def _reject(self, leaf: int, message: str, slot: int) -> None:
        self.rejected.setdefault(int(self._leaf_sub[0][leaf]), Reject(message, slot))

    # Text

    def _resolve_patterns(self, group: Group) -> None:
        """Give each pattern test to the group that can answer it: equality, prefix interval, presence, or a pattern attribute."""
        leaf_attr = self._leaf_attr[0]
        leaves = group.leaves()
        known: dict[tuple[int, Any], tuple[Any, ...] | str] = {}
        texts = _flat(group.parts[0])
        for i, (leaf, text) in enumerate(zip(leaves.tolist(), texts.to_pylist() if isinstance(texts, pa.Array) else texts, strict=True)):
            attr = int(leaf_attr[leaf])
            found = known.get((attr, text))
            if found is None:
                found = known[attr, text] = self._pattern(attr, group.op, text)
            if isinstance(found, str):
                self._reject(leaf, found, group.slot(i, 0))
                continue
            target, values, new_attr = found
            leaf_attr[leaf] = new_attr
            target.add([leaf], [[value] for value in values], ())

    def _pattern(self, attr: int, op: Op, text: str) -> tuple[Group, tuple[Any, ...], int] | str:
        attribute = self.attributes[attr]
        pattern = Pattern.read(op, text)
        if pattern.error:
            return pattern.error
        literal = Operand(Kind.STRING)
        if pattern.exact is not None:
            return self.group(attribute.type, Op.EQ, (literal,), False), (pattern.exact,), attr
        if pattern.prefix is not None:
            start = pattern.prefix.encode()
            if not start:
                return self.group(attribute.type, Op.PRESENT, (), False), (), attr
            return self.group(attribute.type, Op.PREFIX, (literal, literal), False), (start, successor(start)), attr
        own = Attribute(attribute.path, attribute.role, attribute.type, attribute.key, (pattern.op, pattern.operand))
        return self.group(BOOL, Op.PRESENT, (), False), (), self.attributes.intern(own)

    def _label(self, groups: list[Group]) -> dict[int, list[I64]]:
        """Sort the literals of each attribute, and label those of every operand of every group."""
        attrs: list[I64] = []
        texts: list[pa.Array] = []
        for group in groups:
            leaves = group.leaves()
            for k, operand in enumerate(group.operands):
                values = _flat(group.parts[k])
                attr = self._leaf_attr[0][leaves]
                if operand.many:
                    attr = np.repeat(attr, np.fromiter(map(len, values), np.int64, len(values)))
                    values = list(chain.from_iterable(values))
                attrs.append(attr)
                texts.append(_binary(values))
        count = len(self.attributes)
        if not texts:
            self._literals = layout.Literals(np.zeros(count + 1, np.int64), np.zeros(1, np.int64), np.empty(0, np.uint8))
            return {}
        encoded = pa.chunked_array(texts).combine_chunks().dictionary_encode()
        ascending = pc.array_sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(len(ascending), np.int64)
        rank[ascending] = np.arange(len(ascending))
        pairs = (_concat(attrs) << 32) | rank[encoded.indices.to_numpy()]
        distinct, place = np.unique(pairs, return_inverse=True)
        first = np.searchsorted(distinct >> 32, np.arange(count + 1))
        data = encoded.dictionary.take(pa.array(ascending[distinct & 0xFFFFFFFF])).to_pylist()
        offset = np.zeros(len(data) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, data), np.int64, len(data)), out=offset[1:])
        self._literals = layout.Literals(first.astype(np.int64), offset, np.frombuffer(b"".join(data), np.uint8))
        labels = 2 * (place - first[distinct[place] >> 32]) + 1
        found: dict[int, list[I64]] = {}
        at = 0
        for group in groups:
            for _ in group.operands:
                found.setdefault(id(group), []).append(labels[at : at + len(attrs[0])])
                at += len(attrs.pop(0))
        return found

    # Programs

    def _program_columns(self) -> tuple[NDArray[np.uint8], dict[int, Any], dict[int, Any]]:
        """Which conjunctions are programs, and the jumps and trees of those, by conjunction."""
        program = np.zeros(self._conjunctions, np.uint8)
        jump: dict[int, Any] = {}
        tree: dict[int, Any] = {}
        for first, form, instances in self._programs:
            each = len(form.conjunctions)
            for i, conjunction in enumerate(form.conjunctions):
                if not conjunction.jumps:
                    continue
                jumps, tokens = np.array(conjunction.jumps, np.int32), np.array(conjunction.tree, np.int32)
                for c in range(first + i, first + i + instances * each, each):
                    program[c] = 1
                    jump[c], tree[c] = jumps, tokens
        return program, jump, tree


def _prefix_interval(keys: list[Keys]) -> Intervals:
    """From a prefix's label to just below the label of the first string after all that begin with it."""
    return keys[0][0], keys[1][0] - 1


def _binary(values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values.cast(pa.large_binary())
    return pa.array([v.encode() if isinstance(v, str) else v for v in values], pa.large_binary())


def _runs(first: I64, lo: I64, hi: I64, outside: NDArray[np.uint8]) -> tuple[I64, I64, I64]:
    out_first = np.empty(len(first), np.int64)
    out_lo, out_hi = np.empty(len(lo) + len(outside), np.int64), np.empty(len(lo) + len(outside), np.int64)
    lower.merge_runs(first, lo, hi, outside, out_first, out_lo, out_hi)
    return out_first, out_lo[: out_first[-1]], out_hi[: out_first[-1]]


def _starts(size: I64) -> I64:
    start = np.zeros(len(size) + 1, np.int64)
    np.cumsum(size, out=start[1:])
    return start


def _places(start: I64, order: I64) -> tuple[I64, I64]:
    """Places of the members of the ranges ``order``, one range after the other, and the new starts."""
    size = (start[1:] - start[:-1])[order]
    new = _starts(size)
    return np.repeat(start[:-1][order] - new[:-1], size) + np.arange(new[-1]), new


def _take(start: I64, values: I64, order: I64) -> tuple[I64, I64]:
    places, new = _places(start, order)
    return values[places], new


def _select(start: I64, left: I64, pred: NDArray[np.uint32], weight: NDArray[np.float64]) -> Any:
    places, new = _places(start, left)
    return pred[places], new, weight[places] if len(weight) else weight


def _codes(attr: I64, run: I64, lo: I64, hi: I64, multi: NDArray[np.uint8]) -> layout.Codes:
    first = np.zeros(len(multi) + 1, np.int64)
    lower.gather_boundaries(attr, run, lo, hi, first, np.empty(0, np.int64))
    np.cumsum(first, out=first)
    bound = np.empty(first[-1], np.int64)
    lower.gather_boundaries(attr, run, lo, hi, first[:-1].copy(), bound)
    for a in range(len(multi)):
        bound[first[a] : first[a + 1]].sort()
    distinct = np.empty(len(first), np.int64)
    count = lower.drop_equal(first, bound, distinct)
    return layout.Codes(distinct, bound[:count].copy(), multi)


def _programs(columns: Any, program: NDArray[np.uint8]) -> tuple[I64, NDArray[np.int32], I64, NDArray[np.int32]]:
    """Jumps and trees of the conjunctions that are left, as layout.Predicates has them."""
    none, no_jumps, no_tree = np.empty(0, np.int64), np.empty((0, 2), np.int32), np.empty(0, np.int32)
    if columns is None or not program.any():
        return none, no_jumps, none, no_tree
    which, jump, tree = columns
    jumps, trees = [jump[c] for c in which.tolist()], [tree[c] for c in which.tolist()]
    places = np.flatnonzero(program)
    jump_first, size = np.full(len(program), -1), np.zeros(len(program), np.int64)
    jump_first[places] = _starts(np.array([len(j) for j in jumps]))[:-1]
    size[places] = [len(t) for t in trees]
    return jump_first, np.concatenate(jumps), _starts(size), np.concatenate(trees)
