"""A binding says how to read the attributes of a matcher from batches of one schema.

It finds their columns, checks the types, and writes the tables that the kernels of
``kernels/arrow/read.py`` walk.

Each schema is bound once, so binding may look at every attribute. ``Needs`` has all that does not
depend on the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from colmatch.arrays.frozen import freeze_view
from colmatch.errors import EventError, suggest_names
from colmatch.events.changes import ENTRY_KEYS, ENTRY_VALUES, Changes, can_change, is_read_as_is
from colmatch.events.needs import MapKeys, Needs, Path
from colmatch.given.schema import UNITS, Attribute, Family, Role, Type, value_type
from colmatch.kernels._forks import cached_property
from colmatch.kernels.arrow import read, select
from colmatch.kernels.arrow import structs as physical
from colmatch.kernels.layout import I64

DAY = 86_400_000  # milliseconds


@dataclass(frozen=True)
class Binding:
    """The plan of the kernels for batches of one schema, and the kernels that have to run."""

    columns: read.Columns
    items: tuple[str, ...]  # name of each item's column in errors

    @cached_property
    def maps(self) -> bool:
        """Returns whether some item reads a map."""
        return bool((self.columns.item[:, select.KIND] == select.MAP).any())

    @cached_property
    def texts(self) -> bool:
        """Returns whether some item reads strings."""
        item = self.columns.item
        valued = np.isin(item[:, select.KIND], (select.VALUE, select.ELEMENT, select.MAP))
        return bool((self.columns.leaf[item[valued, select.LEAF], physical.FORM] >= physical.TEXTS).any())


class _NameLevel:
    """The columns of a schema, or the fields of a struct, by name."""

    def __init__(self, names: list[str], struct: int, path: Path) -> None:
        self.names = names
        self.struct = struct
        self.path = path
        self._exact: dict[str, list[int]] = {}
        self._folded: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            self._exact.setdefault(name, []).append(i)
            self._folded.setdefault(name.lower(), []).append(i)

    def find(self, name: str) -> int | None:
        """Returns the number of the column of this name, or of the only one equal but for case."""
        numbers = self._exact.get(name) or self._folded.get(name.lower(), [])
        if len(numbers) <= 1:
            return numbers[0] if numbers else None
        shown = ".".join((*self.path, name))
        names = {self.names[i] for i in numbers}
        if len(names) == 1:
            raise EventError(f"column {shown!r} is {len(numbers)} times in the batch: rename or drop all but one")
        raise EventError(
            f"column {shown!r} could be {' or '.join(map(repr, sorted(names)))}: rename or drop all but one"
        )

    def missing(self, name: str) -> EventError:
        shown, owner = ".".join((*self.path, name)), f"column {'.'.join(self.path)!r}" if self.path else "the batch"
        kind, hint = "field" if self.path else "column", suggest_names(name, self.names, owner)
        hint += "" if hint.endswith("?") else ";"
        return EventError(
            f"the events have no {kind} {shown!r}, which the expressions use: {hint} "
            "Options(missing_columns='null') would take it to be NULL in every row"
        )


class _SchemaColumns:
    """The columns of one schema, by path.

    Parameters
    ----------
    lenient : a missing column is NULL in every row; otherwise it is an error
    changes : notes the columns and fields with runs, which must be decoded
    """

    def __init__(self, schema: pa.Schema, lenient: bool, changes: Changes) -> None:
        self.lenient = lenient
        self.changes = changes
        self.levels: dict[Path, tuple[_NameLevel, pa.Schema | pa.DataType] | None] = {
            (): (_NameLevel(schema.names, 0, ()), schema)
        }
        self.structs: list[tuple[int, int]] = [(-1, -1)]

    def find(self, path: Path) -> tuple[tuple[int, int], pa.DataType] | None:
        """Returns struct and number of the child at ``path``, and its type.

        The result is None if the child is NULL in every row.
        """
        above = self._level(path[:-1])
        if above is None:
            return None
        level, parent = above
        child = level.find(path[-1])
        if child is None:
            if self.lenient:
                return None
            raise level.missing(path[-1])
        arrow = _storage(parent.field(child).type)
        if pa.types.is_run_end_encoded(arrow):
            self.changes.note(self.steps((level.struct, child)), ".".join(path), None)
            arrow = _storage(arrow.value_type)
        return None if pa.types.is_null(arrow) else ((level.struct, child), arrow)

    def steps(self, place: tuple[int, int]) -> list[int]:
        """Returns the number of a place's column, then the numbers of the fields below it."""
        steps, (struct, child) = [], place
        while child >= 0:
            steps.append(child)
            struct, child = self.structs[struct]
        return steps[::-1]

    def _level(self, path: Path) -> tuple[_NameLevel, pa.Schema | pa.DataType] | None:
        """Returns the struct at ``path``; None if it is NULL in every row."""
        if path in self.levels:
            return self.levels[path]
        level = None
        child = self.find(path)
        if child is not None:
            place, arrow = child
            if not pa.types.is_struct(arrow):
                raise EventError(f"column {'.'.join(path)!r} is {arrow}, the schema says a struct: cast it")
            self.structs.append(place)
            level = (_NameLevel([f.name for f in arrow], len(self.structs) - 1, path), arrow)
        self.levels[path] = level
        return level


def require(schema: pa.Schema, paths: Iterable[Path]) -> None:
    """Checks that a schema has a column at each of ``paths``.

    Raises EventError: a column is missing.
    """
    columns = _SchemaColumns(schema, lenient=False, changes=Changes())
    for path in paths:
        columns.find(path)


def bind(needs: Sequence[Needs], schema: pa.Schema, lenient: bool) -> tuple[list[Binding], Changes]:
    """Returns the plans for batches of one schema, and the changes that the batches need first.

    A column of type ``null`` is NULL in every row.

    lenient : a missing column is NULL in every row; otherwise it is an error

    Raises EventError: a column is missing, its name is ambiguous, or its type does not fit the
    schema of the expressions.
    """
    changes = Changes()
    bindings = [_Binder(need, schema, lenient, changes, False).bind() for need in needs]
    if changes:
        schema = changes.schema_of(schema)
        bindings = [_Binder(need, schema, lenient, Changes(), True).bind() for need in needs]
    return bindings, changes


class _Binder:
    """A builder of the plan for one schema.

    changes : notes the changes that batches need; the plan is of no use then
    changed : whether batches have these changes
    """

    def __init__(self, needs: Needs, schema: pa.Schema, lenient: bool, changes: Changes, changed: bool) -> None:
        self.needs = needs
        self.changes = changes
        self.changed = changed
        self.columns = _SchemaColumns(schema, lenient, changes)
        # the first leaf is for items that read no values
        self.leaves: dict[tuple[int, ...], int] = {(-1, physical.I8, 0, physical.NOTHING, 1): 0}
        self.items: list[tuple[tuple[int, ...], str]] = []

    def bind(self) -> Binding:
        needs = self.needs
        for id, attribute in needs.plain:
            self._plain(id, attribute)
        for m, (path, map_keys) in enumerate(needs.maps.items()):
            self._map(m, path, map_keys)
        for kind, runs in ((select.PATTERNS, needs.pattern_runs), (select.MEMBERS, needs.member_runs)):
            for attr, end, first in runs:
                self._item("", kind, attr, end, first=first)
        self.items.sort(key=lambda item: item[0][select.ATTR])
        columns = read.Columns(
            struct=_table(self.columns.structs, 2),
            leaf=_table(list(self.leaves), 5),
            item=_table([item for item, _ in self.items], 12),
        )
        return Binding(columns, tuple(name for _, name in self.items))

    def _item(
        self, name: str, kind: int, attr: int, end: int, place: tuple[int, int] = (0, 0), layout: tuple[int, int] = (0, 0), leaf: int = 0,
        set: int = 0, first: int = 0, last: int = 0, keys: int = 0,
    ) -> None:  # fmt: skip
        self.items.append(((kind, attr, end, *place, *layout, leaf, set, first, last, keys), name))

    def _plain(self, id: int, attribute: Attribute) -> None:
        child = self.columns.find(attribute.path)
        if child is None:
            return
        place, arrow = child
        name = ".".join(attribute.path)
        if attribute.role in (Role.VALUE, Role.COMPUTED):
            leaf = self._leaf(name, arrow, attribute.type, place)
            if leaf is not None:
                self._item(name, select.VALUE, id, id + 1, place, leaf=leaf, set=self.needs.literal_set(id))
            return
        layout = _layout(arrow)
        if layout is None or (attribute.role is not Role.SIZE and pa.types.is_map(arrow)):
            says = f"a list of {attribute.type}" if attribute.role is Role.ELEMENT else "a list"
            raise EventError(f"column {name!r} is {arrow}, the schema says {says}: cast it")
        if attribute.role is Role.SIZE:
            self._item(name, select.SIZES, id, id + 1, place, layout)
        elif attribute.role is Role.HAS_NULL:
            self._item(name, select.HAS_NULL, id, id + 1, place, layout, self._nulls(name, arrow.value_type, place))
        else:
            leaf = self._leaf(f"{name}[]", arrow.value_type, attribute.type, place, 0)
            if leaf is not None:
                self._item(name, select.ELEMENT, id, id + 1, place, layout, leaf, self.needs.literal_set(id))

    def _map(self, m: int, path: Path, known: MapKeys) -> None:
        child = self.columns.find(path)
        if child is None:
            return
        place, arrow = child
        name = ".".join(path)
        if not pa.types.is_map(arrow):
            raise EventError(
                f"column {name!r} is {arrow}, the schema says a map from {known.key} to {known.type}: cast it"
            )
        key = self._leaf(f"{name} (its keys)", arrow.key_type, known.key, place, ENTRY_KEYS)
        value = self._leaf(f"{name} (its values)", arrow.item_type, known.type, place, ENTRY_VALUES)
        if key is None or value is None:
            return
        last = known.first + len(known.ids)
        self._item(name, select.MAP, -1, -1, place, leaf=value, set=m, first=known.first, last=last, keys=key)
        for attr, end, first in known.runs():
            self._item(name, select.ENTRIES, attr, end, first=first)

    def _leaf(self, name: str, arrow: pa.DataType, wanted: Type, place: tuple[int, int], *part: int) -> int | None:
        """Returns the number of the leaf that reads a type as ``wanted``; None if all is NULL.

        place, part : location of the values, if they must be changed first
        """
        arrow = _storage(arrow)
        index, value = -1, arrow
        if pa.types.is_dictionary(arrow):
            index, value = _INTEGERS[arrow.index_type], _storage(arrow.value_type)
        if pa.types.is_null(value):
            return None
        if self.changed and wanted.family is Family.WIDE_DECIMAL:
            return self._keep_leaf((index, *_form(value), physical.NOTHING, 1))
        have = value_type(value)
        nested = pa.types.is_run_end_encoded(value) or pa.types.is_dictionary(value)
        if have is None or not can_change(have, wanted):
            message = f"column {name!r} is {arrow}, the schema says {wanted}"
            if have is not None and have.family is wanted.family is Family.TIMESTAMP:
                raise EventError(f"{message}: give both a time zone or none")
            raise EventError(f"{message}: cast it")
        if nested or not is_read_as_is(have, wanted, value):
            self.changes.note([*self.columns.steps(place), *part], name, wanted)
            return 0
        after, factor = physical.NOTHING, 1
        if have.family is not wanted.family:
            after = physical.FLOATED
        elif have.family is Family.UINT64:
            after = physical.FLIPPED
        elif have.family is Family.DECIMAL:
            factor = 10 ** (wanted.scale - have.scale)
        elif have.family in (Family.TIMESTAMP, Family.TIME):
            factor = UNITS[wanted.unit] // UNITS[have.unit]
        elif pa.types.is_date64(value):
            after, factor = physical.DIVIDED, DAY
        if after == physical.NOTHING and factor > 1:
            after = physical.SCALED
        return self._keep_leaf((index, *_form(value), after, factor))

    def _keep_leaf(self, leaf: tuple[int, ...]) -> int:
        """Returns the number of a leaf, which is added if it is new."""
        return self.leaves.setdefault(leaf, len(self.leaves))

    def _nulls(self, name: str, arrow: pa.DataType, place: tuple[int, int]) -> int:
        """Returns the number of a leaf that is read only for its NULLs."""
        arrow = _storage(arrow)
        index, value = -1, arrow
        if pa.types.is_dictionary(arrow):
            index, value = _INTEGERS[arrow.index_type], arrow.value_type
        if pa.types.is_run_end_encoded(arrow):
            self.changes.note([*self.columns.steps(place), 0], name, None)
            return 0
        if pa.types.is_run_end_encoded(value) or pa.types.is_union(value):
            raise EventError(f"column {name!r} is a list of {arrow}, which has no NULLs of its own: cast it")
        form = physical.NULLS if pa.types.is_null(value) else physical.I8
        return self._keep_leaf((index, form, 0, physical.NOTHING, 1))


def _table(rows: list[tuple[int, ...]] | list[tuple[int, int]], width: int) -> I64:
    return freeze_view(np.array(rows, np.int64).reshape(-1, width))


def _storage(arrow: pa.DataType) -> pa.DataType:
    return _storage(arrow.storage_type) if isinstance(arrow, pa.BaseExtensionType) else arrow


def _layout(arrow: pa.DataType) -> tuple[int, int] | None:
    """Returns the layout and fixed size of a list or map, None for other types."""
    types = pa.types
    if types.is_list(arrow) or types.is_map(arrow):
        return physical.LIST32, 0
    if types.is_large_list(arrow):
        return physical.LIST64, 0
    if types.is_fixed_size_list(arrow):
        return physical.LIST_FIXED, arrow.list_size
    if types.is_list_view(arrow):
        return physical.VIEW32, 0
    if types.is_large_list_view(arrow):
        return physical.VIEW64, 0
    return None


_INTEGERS = {
    pa.int8(): physical.I8, pa.int16(): physical.I16, pa.int32(): physical.I32, pa.int64(): physical.I64,
    pa.uint8(): physical.U8, pa.uint16(): physical.U16, pa.uint32(): physical.U32, pa.uint64(): physical.U64,
}  # fmt: skip
_FORMS = {
    **_INTEGERS,
    pa.bool_(): physical.BITS, pa.float16(): physical.F16, pa.float32(): physical.F32, pa.float64(): physical.F64,
    pa.date32(): physical.I32, pa.date64(): physical.I64,
    pa.string(): physical.UTF32, pa.binary(): physical.UTF32, pa.large_string(): physical.UTF64, pa.large_binary(): physical.UTF64,
    pa.string_view(): physical.VIEW, pa.binary_view(): physical.VIEW,
}  # fmt: skip


def _form(arrow: pa.DataType) -> tuple[int, int]:
    """Returns the physical form of a scalar type, and its width.

    The width counts the bytes of a fixed-size string or the 64-bit words of a wide decimal, else it
    is 0.
    """
    form = _FORMS.get(arrow)
    if form is not None:
        return form, 0
    if pa.types.is_timestamp(arrow) or pa.types.is_time64(arrow):
        return physical.I64, 0
    if pa.types.is_time32(arrow):
        return physical.I32, 0
    if pa.types.is_fixed_size_binary(arrow):
        return physical.FIXED, arrow.byte_width
    assert pa.types.is_decimal(arrow)
    return {32: (physical.I32, 0), 64: (physical.I64, 0)}.get(arrow.bit_width, (physical.WIDE, arrow.bit_width // 64))
