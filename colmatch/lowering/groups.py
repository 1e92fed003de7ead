"""Tests of expressions -> key intervals, for all literals of one conversion at once.

Tests that need the same conversion (type, operator, kinds of operands) are in one *group*, from any
number of expressions. Their literals are converted in one go. Text patterns are handed on to the
group that can answer them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from colmatch.arrays.pieces import Pieces, concat, join_pieces
from colmatch.given.schema import UUID, Attribute, Attributes, Family, Type
from colmatch.given.session import Session
from colmatch.kernels import layout
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.kernels.lowering.runs import group_intervals, merge_runs
from colmatch.lowering.arrow_literals import arrow_floors
from colmatch.lowering.floors import ROUNDED, Floors, LiteralErrors, Side, exact, intervals, literal_floors
from colmatch.lowering.forms import PATTERNS, KeyTest, Kind, Op, Operand
from colmatch.lowering.labels import string_labels
from colmatch.lowering.versions import ORDERS, look_for_versions
from colmatch.lowering.wide import encoder
from colmatch.text.reduce import reduce_pattern, successor

I64 = NDArray[np.int64]
Refuse = Callable[[int, str, int], None]  # leaf, message, slot of the literal
PatternTest = tuple[Op, tuple[str | bytes, ...], int]  # operator, its operands, attribute


def group_key(type: Type, op: Op, operands: tuple[Operand, ...], outside: bool) -> tuple[Any, ...]:
    """Returns the common part of the tests of one group: of operands the kinds, not the values."""
    return type, op, tuple([(o.kind, o.many, o.negative) for o in operands]), outside


@dataclass(slots=True)
class Group:
    """Tests with operands that are converted alike. ``parts[k]`` holds the values of operand k."""

    type: Type
    op: Op
    operands: tuple[Operand, ...]  # kind, many and negative of each; not their values
    outside: bool
    parts: tuple[Pieces, ...]
    leaf: Pieces = field(default_factory=Pieces)
    # (first test, slots of the operands: those of all tests, or a row for each) of each addition
    origin: list[tuple[int, tuple[int, ...] | NDArray[np.int64]]] = field(default_factory=list)
    tests: int = 0

    def add(self, leaf: Any, values: Sequence[Any], slots: tuple[int, ...] | NDArray[np.int64]) -> None:
        """Adds tests.

        leaf : ids, one for each test
        values : for each operand, a value for each test; for a ``many`` operand, lists
        slots : of the operands, for errors; a row for each test, or one for all
        """
        self.origin.append((self.tests, slots))
        self._extend(leaf, values)

    def add_each(self, leaf: list[int], values: Sequence[Any], slots: Sequence[tuple[int, ...]]) -> None:
        """Adds tests as ``add`` does, but each with separate slots."""
        self.origin.extend(zip(range(self.tests, self.tests + len(leaf)), slots, strict=True))
        self._extend(leaf, values)

    def _extend(self, leaf: Any, values: Sequence[Any]) -> None:
        self.tests += len(leaf)
        for column, piece in zip((self.leaf, *self.parts), (leaf, *values), strict=True):
            if isinstance(piece, (list, range, tuple)):
                column.extend(piece)
            else:
                column.append(piece)

    def values(self, k: int) -> tuple[I64, Any]:
        """Returns the test of each value of operand ``k``, and the values, with lists flattened."""
        test, values = np.arange(self.tests), self.parts[k].values()
        if isinstance(values, pa.LargeListArray):
            return np.repeat(test, values.value_lengths().to_numpy()), values.flatten()
        if self.operands[k].many:
            test = np.repeat(test, np.fromiter(map(len, values), np.int64, len(values)))
            values = list(chain.from_iterable(values))
        return test, values

    def columns(self) -> list[OperandColumn]:
        """Returns all values, by operands.

        An IN list has an operand for each literal, but few kinds of literals. So the values of its
        operands are in one column for each kind. If numbers meet doubles, equality and IN have two
        columns instead, one for each side.
        """
        alike: dict[Any, list[int]] = {}
        for k, operand in enumerate(self.operands):
            alike.setdefault(operand[:1] + operand[2:4] if self.op is Op.IN else k, []).append(k)
        columns: list[OperandColumn] = []
        for numbers in alike.values():
            pieces = [self.values(k) for k in numbers]
            test = concat([test for test, _ in pieces])
            values = join_pieces([values for _, values in pieces])
            ends = list(accumulate(len(test) for test, _ in pieces))
            operand = self.operands[numbers[0]]
            for side in sides(self.type, self.op, self.operands, numbers[0]):
                columns.append(OperandColumn(operand, test, values, numbers, ends, side))
        return columns

    @property
    def is_rounded(self) -> bool:
        """Returns whether numbers are compared as doubles, since a literal is one."""
        return meets_double(self.type, self.operands)

    def slot(self, test: int, operand: int) -> int:
        """Returns the slot of an operand of a test, -1 without one."""
        first, slots = self.origin[bisect_right(self.origin, test, key=lambda piece: piece[0]) - 1]
        if isinstance(slots, np.ndarray):
            slots = slots[test - first].tolist()
        return slots[operand] if operand < len(slots) else -1


class OperandColumn(NamedTuple):
    """The values of operands of one kind, and the test of each value."""

    operand: Operand
    test: I64
    values: Any
    which: list[int]  # numbers of the operands, in the order of their values
    ends: list[int]  # end of the values of each of them
    side: Side | None = None  # of the numbers that meet the values as doubles

    def operand_of(self, i: int) -> int:
        """Returns the number of the operand with value ``i``."""
        return self.which[bisect_right(self.ends, i)]


class Groups:
    """All tests of all subscriptions.

    Parameters
    ----------
    attributes : pattern attributes are added to it
    session : for timestamp literals without a zone
    """

    def __init__(self, attributes: Attributes, session: Session) -> None:
        self.attributes = attributes
        self.session = session
        self._groups: dict[Any, Group] = {}

    def __getitem__(self, key: tuple[Type, Op, tuple[Operand, ...], bool]) -> Group:
        """Returns the group of a type, operator, operands and sense (inside or outside).

        Only the kinds of the operands count, not their values.
        """
        return self._group(*key, None)

    def of_columns(self, type: Type, test: KeyTest, constant: tuple[bool, ...]) -> Group:
        """Returns the group of tests like this one, with literals in Arrow arrays.

        constant : for each operand, whether it comes as a list of values instead
        """
        return self._group(type, test.op, test.operands, test.outside, constant)

    def _group(
        self, type: Type, op: Op, operands: tuple[Operand, ...], outside: bool, constant: tuple[bool, ...] | None
    ) -> Group:
        key = (*group_key(type, op, operands, outside), constant)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(type, op, operands, outside, tuple(Pieces() for _ in operands))
        return group

    @property
    def are_numbers(self) -> bool:
        """Returns whether no literal is a string or pattern; their keys depend on all others."""
        return not any(group.type.textual or group.op in PATTERNS for group in self._groups.values())

    def intervals(self, leaf_attr: I64, refuse: Refuse) -> tuple[I64, I64, I64, layout.Literals]:
        """Makes intervals of all tests.

        Returns
        -------
        leaf, lo, hi : of every interval, unordered
        literals : the literals behind the labels

        ``leaf_attr`` (leaves) is changed where a pattern becomes a separate attribute. ``refuse``
        is called for literals that cannot be read.
        """
        # Resolve the patterns, then label the strings.
        for group in [g for g in self._groups.values() if g.op in PATTERNS]:
            self._resolve_patterns(group, leaf_attr, refuse)
        textual = [g for g in self._groups.values() if g.type.textual and g.operands and g.op not in PATTERNS]
        labels, literals = self._label(textual, leaf_attr, refuse)
        # Make the intervals of each group, and invert them for tests of the outside.
        pieces: list[tuple[I64, I64, I64]] = []
        for group in self._groups.values():
            if group.op in PATTERNS or not group.tests:
                continue
            leaves = group.leaf.array()
            test, lo, hi = self._group_intervals(group, leaves, labels.get(id(group)), refuse)
            if group.outside:
                first = np.empty(group.tests + 1, np.int64)
                by_lo, by_hi = np.empty_like(lo), np.empty_like(hi)
                group_intervals(test, lo, hi, first, by_lo, by_hi)
                run_first, lo, hi = runs(first, by_lo, by_hi, np.ones(group.tests, np.uint8))
                test = np.repeat(np.arange(group.tests), np.diff(run_first))
            pieces.append((leaves[test], lo, hi))
        # Join them.
        if not pieces:
            none = np.empty(0, np.int64)
            return none, none, none, literals
        leaf, lo, hi = (concat(column) for column in zip(*pieces, strict=True))
        return leaf, lo, hi, literals

    def _group_intervals(
        self, group: Group, leaves: I64, labels: list[tuple[I64, I64]] | None, refuse: Refuse
    ) -> tuple[I64, I64, I64]:
        """Returns (test, lo, hi) of every interval of a group."""
        each = np.arange(group.tests)
        if group.op is Op.PRESENT:
            return each, np.full(group.tests, KEY_MIN), np.full(group.tests, KEY_MAX)
        tests, floors = [], []
        if labels is not None:
            tests, floors = [test for test, _ in labels], [exact(label) for _, label in labels]
        else:
            for column in group.columns():
                tests.append(column.test)
                floors.append(self._floors(group, column, leaves, refuse))
        if group.op in (Op.IN, Op.EQ) and group.is_rounded:
            tests, pairs = tests[::2], zip(floors[::2], floors[1::2], strict=True)
            points = [intervals(Op.BETWEEN, pair) for pair in pairs]
            return concat(tests), concat([p[0] for p in points]), concat([p[1] for p in points])
        if group.op is Op.IN:
            points = [intervals(Op.IN, [pair]) for pair in floors]
            return concat(tests), concat([p[0] for p in points]), concat([p[1] for p in points])
        return each, *intervals(group.op, floors)

    def _floors(self, group: Group, column: OperandColumn, leaves: I64, refuse: Refuse) -> Floors:
        operand, test, values = column[:3]

        def found(some: Any) -> Floors:
            if isinstance(some, pa.Array):
                return arrow_floors(group.type, operand.kind, some, operand.negative, self.session, column.side)
            return literal_floors(group.type, operand.kind, some, operand.negative, self.session, column.side)

        try:
            return found(values)
        except LiteralErrors as errors:
            floor, place = np.zeros(len(values), np.int64), np.zeros(len(values), np.int8)
            good = np.ones(len(values), bool)
            for i, reason in errors.reasons.items():
                good[i] = False
                refuse(int(leaves[test[i]]), reason, group.slot(int(test[i]), column.operand_of(i)))
            if isinstance(values, pa.Array):
                left: Any = values.filter(pa.array(good))
            else:
                left = [value for value, fine in zip(values, good.tolist(), strict=True) if fine]
            floor[good], place[good] = found(left)
            return floor, place

    # Text

    def _resolve_patterns(self, group: Group, leaf_attr: I64, refuse: Refuse) -> None:
        """Gives each pattern test to the group that can answer it.

        This is the group of an equality, a prefix interval, presence, or a pattern attribute.
        """
        leaves = group.leaf.array()
        tests: dict[tuple[int, Any], PatternTest | str] = {}
        moved: dict[tuple[Op, int], tuple[list[int], list[tuple[str | bytes, ...]]]] = {}  # leaves and operands
        texts = group.parts[0].values()
        for i, (leaf, text) in enumerate(
            zip(leaves.tolist(), texts.to_pylist() if isinstance(texts, pa.Array) else texts, strict=True)
        ):
            attr = int(leaf_attr[leaf])
            test = tests.get((attr, text))
            if test is None:
                test = tests[attr, text] = pattern_test(self.attributes, attr, group.op, text)
            if isinstance(test, str):
                refuse(leaf, test, group.slot(i, 0))
                continue
            op, values, new_attr = test
            leaf_attr[leaf] = new_attr
            entries = moved.get((op, new_attr))
            if entries is None:
                entries = moved[op, new_attr] = [], []
            entries[0].append(leaf)
            entries[1].append(values)
        for (op, attr), (to, each) in moved.items():
            columns = list(map(list, zip(*each, strict=True)))
            operands = (Operand(Kind.STRING),) * len(columns)
            self[self.attributes[attr].type, op, operands, False].add(to, columns, ())

    def _label(
        self, groups: list[Group], leaf_attr: I64, refuse: Refuse
    ) -> tuple[dict[int, list[tuple[I64, I64]]], layout.Literals]:
        """Labels all literals: tests and labels of each operand, by ``id()`` of the group."""
        tests: list[I64] = []
        attrs: list[I64] = []
        texts: list[pa.Array] = []
        counts: list[int] = []
        for group in groups:
            group_attr = leaf_attr[group.leaf.array()]
            columns = group.columns()
            counts.append(len(columns))
            for column in columns:
                tests.append(column.test)
                attrs.append(group_attr[column.test])
                texts.append(_binary(group, column, refuse))
                if group.op in ORDERS and group.type.family is Family.STRING:
                    look_for_versions(texts[-1], attrs[-1], self.attributes)
        labels, literals = string_labels(attrs, texts, len(self.attributes))
        by_group: dict[int, list[tuple[I64, I64]]] = {}
        each = zip(tests, labels, strict=True)
        for group, count in zip(groups, counts, strict=True):
            by_group[id(group)] = list(islice(each, count))
        return by_group, literals


def _binary(group: Group, column: OperandColumn, refuse: Refuse) -> pa.Array:
    """Returns the bytes for comparing textual literals; none of a refused literal."""
    operand, test, values = column[:3]
    if group.type.family is not Family.WIDE_DECIMAL and group.type != UUID:
        if isinstance(values, pa.Array):
            return values.cast(pa.large_binary())
        return pa.array([v.encode() if isinstance(v, str) else v for v in values], pa.large_binary())
    encode = encoder(group.type, operand.kind, operand.negative, column.side)
    encoded: dict[Any, bytes] = {}
    rows: list[bytes] = []
    for i, value in enumerate(values.to_pylist() if isinstance(values, pa.Array) else values):
        data = encoded.get(value)  # never of NaN, which equals nothing
        if data is None:
            try:
                data = encode(value)
            except ValueError as error:
                data = b""
                leaf = int(group.leaf.array()[test[i]])
                refuse(leaf, str(error), group.slot(int(test[i]), column.operand_of(i)))
            encoded[value] = data
        rows.append(data)
    return pa.array(rows, pa.large_binary())


def meets_double(type: Type, operands: Sequence[Operand]) -> bool:
    """Returns whether numbers of a type are compared as doubles, since a literal is one."""
    return type.family in ROUNDED and any(operand.kind is Kind.DOUBLE for operand in operands)


def sides(type: Type, op: Op, operands: Sequence[Operand], k: int) -> tuple[Side | None, ...]:
    """Returns the sides of an operand that a test compares, among the numbers that meet doubles.

    None is for an operand that no number meets as a double.
    """
    if not meets_double(type, operands):
        return (None,)
    if op in (Op.EQ, Op.IN):
        return Side.LEAST, Side.MOST
    if operands[k].kind is not Kind.DOUBLE:
        return (None,)
    return (Side.LEAST if op in (Op.LT, Op.GE) or (op is Op.BETWEEN and k == 0) else Side.MOST,)


def pattern_test(attributes: Attributes, attr: int, op: Op, text: str) -> PatternTest | str:
    """Finds a test that is equivalent to a pattern, and adds an attribute if necessary.

    Returns an operator, its operands and an attribute; or a message if the pattern is wrong.
    """
    pattern = reduce_pattern(op.name.lower(), text)
    if pattern.error:
        return pattern.error
    if pattern.exact is not None:
        return Op.EQ, (pattern.exact,), attr
    if pattern.prefix is not None:
        start = pattern.prefix.encode()
        return (Op.PREFIX, (start, successor(start)), attr) if start else (Op.PRESENT, (), attr)
    attribute = attributes[attr]
    own = Attribute(attribute.path, attribute.role, attribute.type, attribute.key, (pattern.op, pattern.operand))
    return Op.PRESENT, (), attributes.intern(own)


def runs(first: I64, lo: I64, hi: I64, outside: NDArray[np.uint8]) -> tuple[I64, I64, I64]:
    """Merges the intervals of each test, and inverts those of the outside: first, lo, hi."""
    out_first = np.empty(len(first), np.int64)
    out_lo, out_hi = np.empty(len(lo) + len(outside), np.int64), np.empty(len(lo) + len(outside), np.int64)
    merge_runs(first, lo, hi, outside, out_first, out_lo, out_hi)
    return out_first, out_lo[: out_first[-1]], out_hi[: out_first[-1]]
