"""Derived columns of computed values, which are added to a batch before it is read.

All values of a matcher are one plan, and values share equal parts. A result is released once no
later step needs it. Parts of literals alone are computed once for all batches.

``asv_benchmarks/computed.py``: 1,000 values that 100,000 subscriptions use cost 0.7 times as much
as plain calls of pyarrow for each value, since values share parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.errors import EventError
from colmatch.events.changes import can_change
from colmatch.events.computed.casts import cast, try_cast
from colmatch.events.computed.clock import moment_of
from colmatch.events.computed.elements import contains_key, element, entry, extreme, position, size
from colmatch.events.computed.failed import FailedRows, RowsError, array_of, find_failed, set_nulls
from colmatch.events.computed.functions import FUNCTIONS, literal
from colmatch.events.computed.nodes import (
    LEAVES,
    NOW,
    VARIANT,
    WHOLE,
    ValueNode,
    arrow_type,
    columns_of,
    node_of,
    path_of,
    widens,
)
from colmatch.events.computed.rules import RULES, RULES_TYPED
from colmatch.events.computed.variants import pack
from colmatch.events.computed.whole import whole_texts
from colmatch.events.exact import UnfitError, cast_exactly, decode_array
from colmatch.events.paths import column_at
from colmatch.given.incoming import refusing
from colmatch.given.schema import Attribute, Role, value_type


class Step(NamedTuple):
    """A function, and the numbers of the steps that give its arguments."""

    run: Callable[..., Any]
    node: ValueNode
    arguments: tuple[int, ...]
    last: tuple[int, ...]  # arguments that no later step takes
    name: str  # of the first value that has the step as a part


class DerivedColumns:
    """The columns of all computed values in the expressions, which are added to batches.

    Parameters
    ----------
    attributes : those of computed values are computed
    lenient : a missing column is NULL in every row; otherwise it is an error
    parts : further values, with the names for their errors. They never fail

    Attributes
    ----------
    parts : the arrays of ``parts`` for the last batch
    """

    def __init__(
        self, attributes: Iterable[Attribute], lenient: bool, parts: Sequence[tuple[ValueNode, str]] = ()
    ) -> None:
        self._lenient = lenient
        self._columns: list[tuple[int, ValueNode]] = []
        self._literals: dict[int, pa.Scalar] = {}
        self._nodes: dict[ValueNode, int] = {}
        self._names: dict[str, None] = {}  # in order
        self._now: int | None = None  # the step that is the time of the call
        steps: list[Step | None] = []
        results: list[int] = []
        for attribute in attributes:
            if attribute.role is Role.COMPUTED and attribute.path[0] not in self._names:  # patterns have one, too
                self._names[attribute.path[0]] = None
                results.append(self._number(node_of(str(attribute.key)), steps, attribute.path[0]))
        self._results = results
        self._parts = [self._number(node, steps, name) for node, name in parts]
        self._steps = _mark_last(steps, {*results, *self._parts})
        self.parts: list[pa.Array] = []

    def _number(self, node: ValueNode, steps: list[Step | None], name: str) -> int:
        """Returns the number of the step that computes a node, which is added if it is new."""
        number = self._nodes.get(node)
        if number is not None:
            return number
        step: Step | None = None
        if node.function not in LEAVES:
            arguments = tuple([self._number(part, steps, name) for part in node.parts])
            step = Step(_function(node), node, arguments, (), name)
        number = self._nodes[node] = len(steps)
        if step is not None and all(i in self._literals for i in step.arguments):
            self._literals[number] = _call(step.run, [self._literals[i] for i in step.arguments])
            step = None
        steps.append(step)
        if path_of(node):
            self._columns.append((number, node))
        elif node.function == "literal":
            self._literals[number] = _literal(node)
        elif node.function == NOW:
            self._now = number
        return number

    def __bool__(self) -> bool:
        return bool(self._results or self._parts)

    def add_to(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, FailedRows]]:
        """Returns a batch with the columns of the values behind its own, and the failed rows.

        With ANSI, a value may fail in some rows and is NULL there. The second result has these rows
        by the name of the value.

        Raises EventError: a column is missing or of another type, or Arrow refuses a value.
        """
        values: list[Any] = [None] * len(self._steps)
        failed: dict[int, FailedRows] = {}
        for number, node in self._columns:
            try:
                values[number] = _column(batch, node, self._lenient)
            except RowsError as error:
                values[number], failed[number] = error.values, error.failed
        for number, scalar in self._literals.items():
            values[number] = scalar
        rows = batch.num_rows
        if self._now is not None:
            values[self._now] = moment_of(batch)
        self._run(values, failed, rows)
        self.parts = [values[number] for number in self._parts]
        results = [values[number] for number in self._results]
        arrays = [pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value for value in results]
        failures: dict[str, FailedRows] = {}
        if failed:
            for i, (name, number) in enumerate(zip(self._names, self._results, strict=True)):
                if number in failed:
                    failures[name] = failed[number]
                    arrays[i] = set_nulls(arrays[i], failed[number].rows)
        return pa.RecordBatch.from_arrays([*batch.columns, *arrays], [*batch.schema.names, *self._names]), failures

    def _run(self, values: list[Any], failed: dict[int, FailedRows], rows: int) -> None:
        """Runs all steps.

        values : columns and literals by the number of the step; results are added
        failed : failed rows by the number of the step; further failures are added
        """
        for number, step in enumerate(self._steps):
            if step is None:
                continue
            arguments, own = [values[i] for i in step.arguments], None
            try:
                with refusing(EventError, "Arrow refuses it"):
                    values[number] = step.run(*arguments)
            except RowsError as error:
                values[number], own = error.values, error.failed
            except EventError as error:
                raise _locate(step, arguments, rows, error) from error
            if own or failed:
                failure = find_failed(step.node.function, rows, arguments, [failed.get(i) for i in step.arguments], own)
                if failure is not None:
                    failed[number] = failure
            for i in step.last:
                values[i] = None


def check_constants(node: ValueNode) -> bool:
    """Computes the parts of a node with literals alone, and returns whether it has no others.

    Raises EventError: a part cannot be computed.
    """
    if node.function in LEAVES:
        return node.function == "literal"
    checked = [check_constants(part) for part in node.parts]
    if not all(checked):
        return False
    if not (widens(node) and node.parts[0].function == "literal"):  # a frequent cast
        constant(node)
    return True


def constant(node: ValueNode) -> pa.Scalar:
    """Computes a node with literals alone.

    Raises EventError: it cannot be computed.
    """
    if node.function == "literal":
        return _literal(node)
    return _call(_function(node), [constant(part) for part in node.parts])


def _literal(node: ValueNode) -> pa.Scalar:
    with refusing(EventError, f"{node.arguments[0]!r} is no {node.type}"):
        return literal(node.type, node.arguments[0])


def _call(function: Callable[..., Any], values: list[Any]) -> Any:
    with refusing(EventError, "what the expressions compute of literals cannot be computed"):
        return function(*values)


def _function(node: ValueNode) -> Callable[..., Any]:
    """Returns the function of a node. It is computed of arrays, and at most some scalars."""
    function = _array_function(node)

    def run(*values: Any) -> Any:
        if not values or not all(isinstance(value, pa.Scalar) for value in values):
            return function(*values)
        try:
            return function(*map(array_of, values))[0]
        except RowsError as error:
            raise RowsError(error.failed.rows, error.values[0], error.failed.message_of) from None

    return run


def _array_function(node: ValueNode) -> Callable[..., Any]:
    arrow, constants = arrow_type(node.type), node.constants
    if node.function in ("cast", "try_cast"):
        mode, *zone = constants
        if node.function == "try_cast":
            return lambda value: try_cast(value, arrow, *zone)
        return lambda value: cast(value, arrow, mode, *zone)
    function = RULES.get(node.function) or FUNCTIONS[node.function]
    if node.function in RULES_TYPED:
        return lambda *values: function(*values, *constants, arrow)
    if constants:
        return lambda *values: function(*values, *constants)
    return function


def _locate(step: Step, arguments: list[Any], rows: int, error: EventError) -> EventError:
    """Returns the error of a step for the first event whose values it refuses.

    Without such an event, it is the error of all.
    """

    def refused(first: int, end: int) -> EventError | None:
        some = [part if isinstance(part, pa.Scalar) else part.slice(first, end - first) for part in arguments]
        try:
            with refusing(EventError, "Arrow refuses it"):
                step.run(*some)
        except EventError as found:
            return None if isinstance(found, RowsError) else found
        return None

    first, end, wrong = 0, rows, error
    while end - first > 1:
        middle = (first + end) // 2
        found = refused(first, middle)
        first, end = (first, middle) if found else (middle, end)
        found = found or refused(first, end)
        if found is None:  # it refuses these rows together
            return EventError(f"{step.name} cannot be computed: {error}")
        wrong = found
    reason = "a text is not UTF-8" if isinstance(wrong.__cause__, UnicodeDecodeError) else str(wrong)
    names = ["'" + ".".join(path) + "'" for path in columns_of(step.node)]
    column = f"column{'s' * (len(names) > 1)} {' and '.join(names)}" if names else None
    return EventError(f"{step.name} cannot be computed: {reason}", column=column, event=first)


def _mark_last(steps: list[Step | None], kept: set[int]) -> list[Step | None]:
    """Returns the steps, each with the arguments that no later step takes."""
    seen = set(kept)
    backward: list[Step | None] = []
    for step in reversed(steps):
        if step is not None:
            last = tuple(set(step.arguments) - seen)
            seen.update(last)
            step = step._replace(last=last)
        backward.append(step)
    return backward[::-1]


def _column(batch: pa.RecordBatch, node: ValueNode, lenient: bool) -> Any:
    """Returns the values of a leaf in a batch, of the type that expressions compute with.

    A leaf is a column, a field of a struct, or a part of each list or map.

    Raises
    ------
    RowsError : with ANSI, a list is too short
    EventError : the column is missing, or of another type
    """
    path, arrow = path_of(node), arrow_type(node.type)
    column = column_at(batch, path, lenient, "which the expressions compute with")
    if column is None:
        return pa.nulls(batch.num_rows, arrow)
    name = ".".join(path)
    if node.type == VARIANT:
        with refusing(EventError, f"column {name!r} cannot be computed with"):
            return pack(column, name)
    if node.function != "column" and not pa.types.is_null(column.type):
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        with refusing(EventError, f"column {name!r} cannot be computed with"):
            constants = node.arguments[: LEAVES[node.function]]
            if node.function == WHOLE:
                return whole_texts(
                    column, json.loads(constants[0]), name, lambda part, type: _plain(part, name, arrow_type(type))
                )
            try:
                column = _PARTS[node.function](column, name, *constants)
            except RowsError as error:
                values = _plain(error.values, name, arrow)
                raise RowsError(error.failed.rows, values, error.failed.message_of) from None
    return _plain(column, name, arrow)


_PARTS: dict[str, Callable[..., Any]] = {  # of lists and maps, by the function of a leaf
    "element": element, "array_max": partial(extreme, largest=True), "array_min": partial(extreme, largest=False),
    "array_position": lambda lists, name, text, type, fields: position(lists, name, literal(type, text), fields),
    "size": size, "entry": entry, "map_contains_key": contains_key,
}  # fmt: skip


def _plain(column: Any, name: str, arrow: pa.DataType) -> Any:
    """Returns a column without dictionaries and runs, of the type that expressions compute with."""
    if column.type == arrow:
        return column
    with refusing(EventError, f"column {name!r} cannot be computed with"):
        source, column = column.type, decode_array(column)
        have, needed = value_type(column.type), value_type(arrow)
        assert needed is not None
        if not pa.types.is_null(column.type) and (have is None or not can_change(have, needed)):
            raise EventError(f"column {name!r} is {source}, the expressions compute with {needed}: cast it")
        try:
            return cast_exactly(column, arrow)
        except UnfitError as error:
            text = f"{error.value} is {source}, the expressions compute with {needed}, which has no such value: cast it"
            raise EventError(text, column=f"column {name!r}", event=error.index) from None
