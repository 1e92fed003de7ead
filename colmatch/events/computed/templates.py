"""Computed values that differ in their constants alone, computed together.

5,000 subscriptions ``i % c = k``, each with its own ``c``, have 5,000 computed values. Arrow would
take 5,000 calls for them, with a column each. Here they are one template with 5,000 members, and
one call of a kernel (``kernels/templates.py``).

The members must not fail. So with ANSI, sums that may overflow are computed by Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from colmatch.arrays.frozen import contiguous, freeze_view
from colmatch.events.computed.derived import constant
from colmatch.events.computed.nodes import BITS, INTEGERS, LEAVES, ValueNode, is_constant, node_of, widens
from colmatch.given.schema import Attribute, Attributes, Role, made_once
from colmatch.kernels import templates as kernels
from colmatch.kernels._jit import entry
from colmatch.kernels.layout import I32, I64, KEY_MAX, KEY_MIN, U8
from colmatch.kernels.templates import Template, TemplateWork, compute_members, order_members

Reach: TypeAlias = tuple[I64, I64]  # (A) lowest and highest key that predicates on an attribute can reach

LEAST = 16  # members of a template; fewer are computed one by one
FIRST_ROOM = 1 << 10  # results
_WHOLE = {
    "add": kernels.ADD, "subtract": kernels.SUBTRACT, "multiply": kernels.MULTIPLY, "modulo": kernels.MODULO, "div": kernels.DIVIDE,
    "&": kernels.AND, "|": kernels.OR, "^": kernels.XOR, "negate": kernels.NEGATE, "abs": kernels.ABS, "cast": kernels.NARROW,
}  # fmt: skip
_REAL = {
    "add": kernels.ADD_REAL, "subtract": kernels.SUBTRACT_REAL, "multiply": kernels.MULTIPLY_REAL, "divide": kernels.DIVIDE_REAL,
    "modulo": kernels.MODULO_REAL, "negate": kernels.NEGATE_REAL, "abs": kernels.ABS_REAL, "cast": kernels.TO_DOUBLE,
}  # fmt: skip
_COMMUTATIVE = (
    kernels.ADD, kernels.MULTIPLY, kernels.AND, kernels.OR, kernels.XOR, kernels.ADD_REAL, kernels.MULTIPLY_REAL,
)  # fmt: skip


class _Outline(NamedTuple):
    """A computed value without its constants: equal for all members of a template."""

    parts: tuple[ValueNode, ...]
    steps: tuple[tuple[int, int, int, int], ...]  # as ``kernels.Template.step``
    constants: int
    is_real: bool


class _Unfit(Exception):
    """A value is not for a template."""


class TemplateGroup(NamedTuple):
    """A template, and what its members need.

    attributes : (K) uint32, of the members
    name : of the first member, for errors
    """

    parts: tuple[ValueNode, ...]
    template: Template
    attributes: Any
    name: str


class Templates:
    """The templates of a matcher's attributes. Read-only.

    Attributes
    ----------
    groups : the templates
    attributes : (T) ids of all members, ascending; their place is their number
    """

    def __init__(self, attributes: Attributes) -> None:
        found: dict[_Outline, list[tuple[int, Attribute, list[int | float]]]] = {}
        for id, attribute in attributes.items():
            if attribute.role is Role.COMPUTED and attribute.pattern is None:
                read = _read(node_of(str(attribute.key)))
                if read is not None:
                    found.setdefault(read[0], []).append((id, attribute, read[1]))
        chosen = {outline: members for outline, members in found.items() if len(members) >= LEAST}
        self.attributes = sorted(id for members in chosen.values() for id, *_ in members)
        number = {id: i for i, id in enumerate(self.attributes)}
        self.groups = [_group(outline, members, number) for outline, members in chosen.items()]

    @property
    def parts(self) -> list[tuple[ValueNode, str]]:
        """Returns the parts of all templates in order, with names for errors."""
        return [(part, group.name) for group in self.groups for part in group.parts]

    def others(self, attributes: Attributes) -> Iterator[Attribute]:
        """Returns the attributes that are no members."""
        members = set(self.attributes)
        return (attribute for id, attribute in attributes.items() if id not in members)


templates_of = made_once(Templates)


def _group(
    outline: _Outline, members: Sequence[tuple[int, Attribute, list[int | float]]], number: dict[int, int]
) -> TemplateGroup:
    template = Template(
        freeze_view(np.array(outline.steps, np.int64)),
        contiguous(np.stack([_bits_of(values) for values in zip(*[member[2] for member in members], strict=True)])),
        freeze_view(np.array([number[id] for id, *_ in members], np.int32)),
        int(outline.is_real),
    )
    attributes = np.array([id for id, *_ in members], np.uint32)
    return TemplateGroup(outline.parts, template, attributes, members[0][1].path[0])


def _bits_of(values: Sequence[int | float]) -> I64:
    """Returns whole numbers, or the bits of doubles."""
    return np.array(values, np.float64).view(np.int64) if isinstance(values[0], float) else np.array(values, np.int64)


def _read(node: ValueNode) -> tuple[_Outline, list[int | float]] | None:
    """Returns a value as a template and constants; None if it is not for a template."""
    parts: list[ValueNode] = []
    constants: list[int | float] = []
    steps: list[tuple[int, tuple[tuple[str, int], ...], int]] = []

    def visit(node: ValueNode) -> tuple[str, int]:
        value = _constant(node)
        if value is not None:
            constants.append(value)
            return "constant", len(constants) - 1
        operation = _operation(node)
        if operation is None:
            is_number = node.type in INTEGERS or node.type == "double"
            if not is_number or _may_fail(node) or is_constant(node):  # such a constant is NULL
                raise _Unfit
            if node not in parts:
                parts.append(node)
            return "part", parts.index(node)
        arguments = node.parts
        if operation in _COMMUTATIVE:  # the order of the expression's text may depend on constants
            arguments.sort(key=is_constant)
        operands = tuple([visit(part) for part in arguments])
        steps.append((operation, operands, BITS.get(node.type, 64)))
        return "step", len(steps) - 1

    try:
        visit(node)
    except _Unfit:
        return None
    if not steps or not constants or not parts:
        return None
    begin = {"part": 0, "constant": len(parts), "step": len(parts) + len(constants)}
    table = []
    for operation, operands, bits in steps:
        registers = [begin[kind] + number for kind, number in operands]
        table.append((operation, registers[0], registers[-1], bits))
    return _Outline(tuple(parts), tuple(table), len(constants), node.type == "double"), constants


def _operation(node: ValueNode) -> int | None:
    """Returns the operation that computes a node of its arguments.

    The result is None if no kernel does, or if it may fail.
    """
    name, arguments = node.function, node.arguments
    if node.type not in INTEGERS and node.type != "double":
        return None
    if name == "cast":
        if arguments[0].type not in INTEGERS or (arguments[1] == "ansi" and not widens(node)):
            return None
    elif name.endswith("_checked"):
        name = name.removesuffix("_checked")
        if name in ("modulo", "div", "divide"):
            divisor = _constant(arguments[1])
            if not divisor or (name == "div" and divisor == -1):
                return None
        elif node.type != "double":
            return None
    return (_WHOLE if node.type in INTEGERS else _REAL).get(name)


def _may_fail(node: ValueNode) -> bool:
    """Returns whether computing a node may be an error with ANSI."""
    name, arguments = node.function, node.arguments
    if name in LEAVES:
        return name == "element" and arguments[1] == "ansi"
    if name.endswith("_checked") or (name == "cast" and arguments[1] == "ansi" and not widens(node)):
        return True
    return any(map(_may_fail, node.parts))


def _constant(node: ValueNode) -> int | float | None:
    """Returns the value of a node of literals alone; None if it is none, or no such number."""
    if (node.type not in INTEGERS and node.type != "double") or not is_constant(node):
        return None
    if node.type in INTEGERS:  # most are written, or cast to more bits
        literal = node.arguments[0] if widens(node) else node
        if literal.function == "literal":
            return int(literal.arguments[0])
    value: int | float | None = constant(node).as_py()
    return value


class MemberRows:
    """A finder of the rows of a batch where members have a value that predicates can reach.

    One thread at a time.

    Parameters
    ----------
    templates : at least one
    """

    def __init__(self, templates: Templates) -> None:
        self.groups = templates.groups
        self._members = len(templates.attributes)
        registers = max(
            len(group.parts) + len(group.template.constant) + len(group.template.step) for group in self.groups
        )
        whole = np.empty((registers, kernels.BLOCK), np.int64)
        self._work = TemplateWork(
            whole, whole.view(np.float64), np.empty(kernels.BLOCK, np.uint8), *_room(FIRST_ROOM), np.zeros(2, np.int64)
        )
        self._first = np.empty(self._members + 1, np.int64)
        self._reach: tuple[Reach | None, list[Reach]] | None = None

    def find(self, parts: Sequence[tuple[I64, U8]], reach: Reach | None) -> tuple[I32, I32, I64]:
        """Returns member, row and key of each result, in the order of templates and rows.

        The next call overwrites them.

        parts : for each template, its parts (P, rows) and whether none is NULL (rows)
        reach : as of ``Version.reach``; None if predicates can reach all keys
        """
        self._work.state[kernels.FILL] = 0
        for group, part, (lowest, highest) in zip(self.groups, parts, self._reach_of(reach), strict=True):
            self._work.state[kernels.ROW] = 0
            compute = entry(compute_members)
            # Where the kernel is interpreted, NumPy would warn of whole numbers that wrap
            with np.errstate(all="ignore") if compute is compute_members else nullcontext():
                while not compute(group.template, *part, lowest, highest, self._work):
                    self._grow(len(group.attributes))
        fill = self._work.state[kernels.FILL]
        return self._work.number[:fill], self._work.row[:fill], self._work.key[:fill]

    def read(self, arrays: Sequence[pa.Array], rows: int, reach: Reach | None) -> tuple[I64, I32, I64]:
        """Returns the results by member: its range, then rows and keys of all.

        arrays : the parts of all templates, one after the other
        """
        parts, done = [], 0
        for group in self.groups:
            parts.append(_part_values(arrays[done : done + len(group.parts)], rows))
            done += len(group.parts)
        number, row, key = self.find(parts, reach)
        into = np.empty(len(row), np.int32), np.empty(len(row), np.int64)
        entry(order_members)(number, row, key, self._first, *into)
        return self._first, *into

    def _reach_of(self, reach: Reach | None) -> list[Reach]:
        known = self._reach
        if known is None or known[0] is not reach:
            each = []
            for group in self.groups:
                count = len(group.attributes)
                if reach is None:
                    lowest, highest = np.full(count, KEY_MIN, np.int64), np.full(count, KEY_MAX, np.int64)
                else:
                    lowest, highest = reach[0][group.attributes], reach[1][group.attributes]
                each.append((freeze_view(lowest), freeze_view(highest)))
            known = self._reach = reach, each
        return known[1]

    def _grow(self, members: int) -> None:
        fill, work = int(self._work.state[kernels.FILL]), self._work
        number, row, key = _room(max(2 * len(work.row), fill + members))
        number[:fill], row[:fill], key[:fill] = work.number[:fill], work.row[:fill], work.key[:fill]
        self._work = work._replace(number=number, row=row, key=key)


def _room(size: int) -> tuple[I32, I32, I64]:
    return np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int64)


def _part_values(arrays: Sequence[pa.Array], rows: int) -> tuple[I64, U8]:
    """Returns parts (P, rows), as numbers or bits of doubles, and whether none is NULL (rows)."""
    values, valid = np.empty((len(arrays), rows), np.int64), np.ones(rows, np.uint8)
    for i, array in enumerate(arrays):
        assert len(array) == rows
        if array.null_count:
            valid &= array.is_valid().to_numpy(zero_copy_only=False)
            array = pc.fill_null(array, 0)
        numbers = array.to_numpy(zero_copy_only=False)
        values[i] = numbers.view(np.int64) if numbers.dtype == np.float64 else numbers
    return freeze_view(values), freeze_view(valid)
