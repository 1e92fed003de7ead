"""Columns of the events, and the attributes that expressions make of them.

A *column* comes from the caller: ``age: int64``, ``tags: list<string>``, ``attrs: map<string,
int64>``, ``user: struct<age: int64>``. An *attribute* is the subject of a predicate: it has keys,
or no key, in each event. A scalar column or struct field is one attribute. A list column is up to
three (its elements, its size, whether it has a NULL element). A map column is one for each key that
some expression names. A text pattern is a separate attribute, present where the pattern matches.
Only attributes that some expression uses get a dense id, so unused columns cost nothing.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from colmatch.errors import SchemaError, show_value, suggest_names
from colmatch.given.arguments import check_flag
from colmatch.given.declared import schema_of
from colmatch.given.incoming import NESTED_MOST, Columns, is_any_list, refusing
from colmatch.given.variants import is_variant, settle_extensions
from colmatch.kernels import _forks
from colmatch.kernels._forks import cached_property
from colmatch.show.names import Listed

_CASE = b"colmatch.case_sensitive"  # key of an Arrow schema's metadata, so that it is saved with the schema
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # of timestamps and times of day, in a second


class Family(IntEnum):
    """The meaning of a type's values; widths do not matter, since all become int64 keys.

    Numbers are part of the saved form.
    """

    BOOL = 0
    INT = 1
    UINT64 = 2
    FLOAT = 3
    DECIMAL = 4
    STRING = 5
    BINARY = 6
    DATE = 7
    TIMESTAMP = 8
    WIDE_DECIMAL = 9  # of more than 18 digits, too many for 64 bits
    TIME = 10  # of day


@dataclass(frozen=True, slots=True)
class Type:
    """Type of a value: a family and the details that distinguish its members."""

    family: Family
    scale: int = 0  # DECIMAL, WIDE_DECIMAL: digits after the point
    unit: str = ""  # TIMESTAMP, TIME: s, ms, us or ns
    zone: str | None = None  # TIMESTAMP: its zone; None for local time
    name: str = ""  # its name in errors

    def __str__(self) -> str:
        return self.name or self.family.name.lower()

    @property
    def textual(self) -> bool:
        """Returns whether values are read as bytes, with labels among the literals as keys."""
        return self.family in (Family.STRING, Family.BINARY, Family.WIDE_DECIMAL)


class Shape(IntEnum):
    """The structure of a column; expressions cannot use UNUSABLE ones."""

    SCALAR = 0
    LIST = 1
    MAP = 2
    STRUCT = 3
    UNUSABLE = 4
    VARIANT = 5


@dataclass(frozen=True, slots=True)
class Column:
    """A column or struct field.

    ``type`` is the type of a scalar's values, a list's elements or a map's values.
    """

    path: tuple[str, ...]
    shape: Shape
    arrow: pa.DataType
    type: Type | None = None
    key: Type | None = None  # of a map's keys: STRING or INT

    @property
    def name(self) -> str:
        return ".".join(self.path)


class Role(IntEnum):
    """The part of its column that an attribute is. Numbers are part of the saved form."""

    VALUE = 0  # a scalar's value
    ELEMENT = 1  # each element of a list: several entries in one event
    SIZE = 2  # number of elements of a list, or of entries of a map; absent where it is NULL
    HAS_NULL = 3  # key 1 where the list has a NULL element, else absent
    ENTRY = 4  # the value under one key of a map
    CALL = 5  # arguments that make a special function true: derived, see ``events/special/lists.py``
    COMPUTED = 6  # a derived column that is computed of others, see ``events/computed/derived.py``


DERIVED = (Role.CALL, Role.COMPUTED)


@dataclass(frozen=True, slots=True)
class Attribute:
    """The subject of a predicate.

    With ``pattern``, it is the truth of a text pattern over the value: key 1 where it matches, else
    absent. Its ``type`` is still the type of the value.
    """

    path: tuple[str, ...]
    role: Role
    type: Type
    key: str | int | None = None  # ENTRY: the map's key; CALL, COMPUTED: the function and its columns
    pattern: tuple[str, str] | None = None  # (operator, operand): like, ilike, rlike, endswith, contains

    @property
    def multi(self) -> bool:
        """Returns whether an event may have several entries of it."""
        return self.role in (Role.ELEMENT, Role.CALL)

    @property
    def is_free(self) -> bool:
        """Returns whether its id is free for a new attribute."""
        return not self.path

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """The columns, or fields of structs, that it needs; none if its id is free."""
        if self.role in DERIVED:
            return [(name,) if isinstance(name, str) else tuple(name) for name in json.loads(str(self.key))[1]]
        return [self.path] if self.path else []

    @property
    def computed_by(self) -> tuple[str, list[Any]]:
        """Returns the function that computes it and its constants; no name for other attributes."""
        if self.role is not Role.COMPUTED:
            return "", []
        function, _, arguments = json.loads(str(self.key))[2]
        return function, [argument for argument in arguments if not isinstance(argument, list)]

    def freed(self) -> Attribute:
        """Returns the attribute that takes its place when nothing uses it any more.

        ``multi`` stays, since an index may hold it by id.
        """
        return Attribute((), Role.ELEMENT if self.multi else Role.VALUE, BOOL)

    @property
    def name(self) -> str:
        """The attribute as an expression writes it."""
        path = ".".join(self.path)
        if self.role is Role.SIZE:
            path = f"size({path})"
        elif self.role is Role.ENTRY:
            path = f"{path}[{self.key!r}]"
        return path


BOOL = Type(Family.BOOL, name="bool")
UUID = Type(Family.BINARY, name="uuid")
INT = Type(Family.INT, name="int64")


class SolvedValue(NamedTuple):
    """A computed value whose tests are solved for its column (``lowering/solve.py``)."""

    attribute: Attribute  # of the value, which no event is asked for
    column: int  # attribute of the column
    steps: tuple[Any, ...]  # from the column to the value


class Attributes:
    """The attributes of one matcher, by dense id. Some ids may be free, for new attributes.

    A form may also name a value that is solved for its column. Such a value has an id below 0, and
    no index has it.

    The table of ids is made when it is first used. Each version of a matcher in use has an object
    of this class, but only the intake of subscriptions looks up ids.

    Attributes
    ----------
    used : number of ids that are not free
    solved : values with ids below 0, the first with id -1
    are_chosen : whether iteration gives only some of them, for one event
    made : function -> number of ids in use, and what the function made of them (``made_once``)
    """

    are_chosen = False

    def __init__(self, members: list[Attribute] | None = None, used: int | None = None) -> None:
        self.members: list[Attribute] = members or []
        self.solved: list[SolvedValue] = []
        self._solved_ids: dict[Attribute, int] = {}
        self.used = sum(not attribute.is_free for attribute in self.members) if used is None else used
        self._columns: tuple[int, list[str]] = (0, [])
        self.made: dict[Callable[[Attributes], Any], tuple[int, Any]] = {}

    @cached_property
    def multi(self) -> bytearray:
        """Returns whether each may have several entries in an event. A free id keeps its value."""
        return bytearray(attribute.multi for attribute in self.members)

    @cached_property
    def _ids(self) -> dict[Attribute, int]:
        return {attribute: i for i, attribute in enumerate(self.members) if not attribute.is_free}

    @cached_property
    def _free(self) -> tuple[list[int], list[int]]:
        """Ids that are free, by ``multi``, the lowest last."""
        free = [i for i, attribute in enumerate(self.members) if attribute.is_free]
        return [i for i in free[::-1] if not self.multi[i]], [i for i in free[::-1] if self.multi[i]]

    @property
    def columns(self) -> list[str]:
        """The top-level columns that the attributes need, in the order of the attributes."""
        used, columns = self._columns
        if used < self.used:
            columns = list(dict.fromkeys(path[0] for attribute in self for path in attribute.paths))
            self._columns = self.used, columns
        return columns

    def intern(self, attribute: Attribute) -> int:
        """Returns the id of the attribute, a new one if it was unknown."""
        id = self._ids.get(attribute)
        if id is not None:
            return id
        multi, free = self.multi, self._free[attribute.multi]
        if free:
            id = free.pop()
            self.members[id] = attribute
        else:
            id = len(self.members)
            self.members.append(attribute)
            multi.append(attribute.multi)
        self._ids[attribute] = id
        self.used += 1
        return id

    def intern_solved(self, value: SolvedValue) -> int:
        """Returns the id of a solved value, a new one if it was unknown."""
        id = self._solved_ids.get(value.attribute)
        if id is None:
            id = self._solved_ids[value.attribute] = ~len(self.solved)
            self.solved.append(value)
        return id

    def forget_solved(self) -> None:
        """Forgets all solved values, once no form has them."""
        self.solved, self._solved_ids = [], {}

    def with_some_of(self, others: Attributes, size: int, wanted: list[int]) -> Attributes:
        """Returns ``size`` attributes: these, and some of others that have the same ids.

        wanted : ids that are free here, or not there
        """
        members = self.members + [attribute.freed() for attribute in others.members[len(self) : size]]
        for id in wanted:
            members[id] = others[id]
        return Attributes(members, self.used + len(wanted))

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, id: int) -> Attribute:
        return self.members[id] if id >= 0 else self.solved[~id].attribute

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.members)

    def items(self) -> Iterable[tuple[int, Attribute]]:
        """Returns the attributes with their ids, ascending. Some may be free."""
        return enumerate(self.members)

    def only(self, ids: Iterable[int]) -> Attributes:
        """Returns the attributes for a reader that needs these ids alone."""
        return _ChosenAttributes(self, sorted(ids))


class _ChosenAttributes(Attributes):
    """Attributes of which all but a few seem free, made without looking at the others."""

    are_chosen = True

    def __init__(self, others: Attributes, ids: list[int]) -> None:
        super().__init__(others.members, len(ids))
        self._chosen = ids

    def __iter__(self) -> Iterator[Attribute]:
        return (self.members[id] for id in self._chosen)

    def items(self) -> Iterable[tuple[int, Attribute]]:
        return [(id, self.members[id]) for id in self._chosen]


Made = TypeVar("Made")


def made_once(make: Callable[[Attributes], Made]) -> Callable[[Attributes], Made]:
    """Returns a function that makes a thing of a matcher's attributes, once for all that need it.

    Each thread and each ``explain`` reads events.
    """
    making = _forks.lock()

    def find(attributes: Attributes) -> Made:
        made = attributes.made
        entry: tuple[int, Made] | None = made.get(make)
        if entry is None or entry[0] != attributes.used:
            with making:  # threads that start together would otherwise each make it, one after the other
                entry = made.get(make)
                if entry is None or entry[0] != attributes.used:
                    entry = made[make] = attributes.used, make(attributes)
        return entry[1]

    return find


class Schema(Listed):
    """Names and types of the events' columns.

    A schema may have columns of types that no expression can use, such as a list of structs. An
    expression that uses such a column is an error.

    Parameters
    ----------
    columns : one of these:

        - a ``pyarrow.Schema``, or an object that has one: a table, a data frame of pandas, polars
          (lazy too), DuckDB or Spark, or Spark's ``StructType``
        - a text, ``"age bigint, tags array<string>"``
        - a mapping from name to type, or pairs of name and type. A type is one of Arrow, Python
          (``list[str] | None``), NumPy, pandas, Spark or polars. Or it is a name in Arrow, NumPy,
          Spark or DuckDB: ``"int64"``, ``"bigint"``, ``"timestamp[us]"``, ``"decimal(10,2)"``.
          ``timestamp`` is Spark's, an instant in UTC
        - a class with typed fields: a dataclass, a named tuple, a ``TypedDict``, a pydantic model
    case_sensitive : True if expressions must write names as the schema does. By default, an
        expression may write ``AGE`` for ``age``, if no other column has that name
    """

    _definitions: Mapping[str, str] = MappingProxyType({})  # texts of conditions by name, for readers of expressions
    _writes_out: bool = False  # whether expressions have all definitions written out

    def __init__(self, columns: Columns, case_sensitive: bool = False) -> None:
        self.arrow: pa.Schema = columns.arrow if isinstance(columns, Schema) else schema_of(columns)
        with refusing(SchemaError, f"a schema cannot be read from {type(columns).__name__}"):
            names = self.arrow.names
        _check_depth(self.arrow)
        self.arrow = pa.schema([settle_extensions(field) for field in self.arrow], self.arrow.metadata)
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise SchemaError(f"columns named twice in the schema: {', '.join(map(repr, twice)):.500}; rename them")
        if check_flag("case_sensitive={}", case_sensitive):
            self.arrow = self.arrow.with_metadata({**(self.arrow.metadata or {}), _CASE: b"true"})

    @property
    def case_sensitive(self) -> bool:
        """True if expressions must write names as the schema does."""
        return _CASE in (self.arrow.metadata or {})

    def __arrow_c_schema__(self) -> object:
        """Returns the columns for other libraries: ``pyarrow.schema(schema)``."""
        return self.arrow.__arrow_c_schema__()

    def __repr__(self) -> str:
        shown = [f"{field.name}: {'variant' if is_variant(field.type) else field.type}" for field in self.arrow]
        return f"Schema({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return False
        return self.case_sensitive == other.case_sensitive and bool(self.arrow.equals(other.arrow))

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def _folded_definitions(self) -> dict[str, str]:
        return {name.lower(): name for name in self._definitions}

    @cached_property
    def _columns(self) -> dict[tuple[str, ...], Column]:
        columns: dict[tuple[str, ...], Column] = {}

        def visit(path: tuple[str, ...], type: pa.DataType) -> None:
            columns[path] = column = _column(path, type)
            if column.shape is Shape.STRUCT:
                for field in type:
                    visit((*path, field.name), field.type)

        for field in self.arrow:
            visit((field.name,), field.type)
        return columns

    @cached_property
    def _folded(self) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
        folded: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for path in self._columns:
            folded.setdefault(tuple(part.lower() for part in path), []).append(path)
        return folded

    def column(self, path: tuple[str, ...]) -> Column:
        """Returns the column at ``path``, or else the only one that differs from it in case alone.

        Spark finds columns by the same rule. A case-sensitive schema has only the exact name.

        Raises
        ------
        SchemaError : no column has this name (the message names the nearest), or several differ in
            case alone
        """
        column = self._columns.get(path)
        if column is not None:
            return column
        same = [] if self.case_sensitive else self._folded.get(tuple(part.lower() for part in path), [])
        if len(same) == 1:
            return self._columns[same[0]]
        name = ".".join(path)
        if len(name) > 200:
            raise SchemaError(f"unknown attribute {name[:60] + '…'!r} of {len(name):,} characters")
        if same:
            raise SchemaError(
                f"attribute {name!r} could be {' or '.join(repr('.'.join(p)) for p in same)}: write it as in the schema"
            )
        if (name,) in self._columns:
            raise SchemaError(f"unknown attribute {name!r}: the column has a dot in its name, so write `{name}`")
        parts = tuple(name.split("."))
        if len(path) == 1 and parts in self._columns:
            raise SchemaError(
                f"unknown attribute {name!r}: it is a field, so write {'.'.join(f'`{part}`' for part in parts)}"
            )
        for count in range(len(path) - 1, 0, -1):
            within = self._columns.get(path[:count])
            if within is not None and within.shape is Shape.VARIANT:
                raise SchemaError(
                    f"column {within.name!r} is a variant: write {within.name}:{'.'.join(path[count:])}::int or the like"
                )
            if within is not None and "list" in str(within.arrow).partition("<")[0]:
                field = ".".join(path[count:])
                raise SchemaError(
                    f"column {within.name!r} is a list: write exists({within.name}, x -> x.{field} = ...), or "
                    f"{within.name}[0].{field} for the first element"
                )
        names = [*(".".join(p) for p in self._columns), *self._definitions]
        if len(path) > 1 and path[:1] not in self._columns and path[1:] in self._columns:  # behind the name of a table
            raise SchemaError(f"unknown attribute {name!r}: did you mean {'.'.join(path[1:])!r}?")
        raise SchemaError(f"unknown attribute {name!r}: {suggest_names(name, names, 'the schema')}")


def column_paths(schema: Schema) -> Iterable[tuple[str, ...]]:
    """Returns names of columns and of fields in structs, each with the names around it."""
    return schema._columns


def _check_depth(schema: pa.Schema) -> None:
    """Checks that types are not nested too deeply.

    A file has no room for deeper types, and Python's stack none for much deeper ones.
    """
    for field in schema:
        level, depth = [field.type], 0
        while level and depth < NESTED_MOST:
            level, depth = [type.field(i).type for type in level for i in range(type.num_fields)], depth + 1
        if level:
            raise SchemaError(
                f"column {show_value(field.name)} nests deeper than {NESTED_MOST} types: leave it out of the schema"
            )


def value_type(arrow: pa.DataType) -> Type | None:
    """Returns the type of the values of a scalar Arrow type; None if expressions cannot use it."""
    types = pa.types
    name = str(arrow)
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return value_type(arrow.value_type)
    if types.is_boolean(arrow):
        return BOOL
    if types.is_uint64(arrow):
        return Type(Family.UINT64, name=name)
    if types.is_integer(arrow):
        return Type(Family.INT, name=name)
    if types.is_floating(arrow):
        return Type(Family.FLOAT, name=name)
    if types.is_decimal(arrow):
        family = Family.DECIMAL if arrow.precision <= 18 else Family.WIDE_DECIMAL
        return Type(family, scale=arrow.scale, name=name)
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return Type(Family.STRING, name="string")
    if isinstance(arrow, pa.UuidType):
        return UUID
    binary = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    if any(is_binary(arrow) for is_binary in binary):
        return Type(Family.BINARY, name="binary")
    if types.is_date(arrow):
        return Type(Family.DATE, name="date")
    if types.is_timestamp(arrow):
        return Type(Family.TIMESTAMP, unit=arrow.unit, zone=arrow.tz, name=name)
    if types.is_time(arrow):
        return Type(Family.TIME, unit=arrow.unit, name=name)
    return None


def why_unusable(name: str, arrow: pa.DataType) -> str:
    """Explains that expressions cannot use a column of a type, with a remedy, for errors."""
    types = pa.types
    shown = str(arrow)
    if types.is_null(arrow):
        instead = "no value of it says what type it is: declare one in the schema"
    elif types.is_duration(arrow) or types.is_interval(arrow):
        instead = "cast it to a number, such as seconds"
    elif types.is_nested(arrow) and not types.is_union(arrow):
        instead = "give events its fields as separate columns"
    elif isinstance(arrow, pa.OpaqueType):
        shown = f"{arrow.type_name} of {arrow.vendor_name}"
        instead = "cast it to a type of Arrow"
    else:
        instead = "cast it, to a string for example"
    return f"column {name!r} is {shown}, which expressions cannot use: {instead}"


def time_type(unit: str) -> pa.DataType:
    """Returns the type of times of day in a unit, which has one width."""
    return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)


def _column(path: tuple[str, ...], arrow: pa.DataType) -> Column:
    types = pa.types
    if types.is_struct(arrow):
        return Column(path, Shape.VARIANT if is_variant(arrow) else Shape.STRUCT, arrow)
    if is_any_list(arrow):
        element = value_type(arrow.value_type)
        return Column(path, Shape.LIST if element else Shape.UNUSABLE, arrow, element)
    if types.is_map(arrow):
        key, item = value_type(arrow.key_type), value_type(arrow.item_type)
        usable = item is not None and key is not None and key.family in (Family.STRING, Family.INT)
        return Column(path, Shape.MAP if usable else Shape.UNUSABLE, arrow, item, key)
    if types.is_null(arrow):
        return Column(path, Shape.UNUSABLE, arrow)
    scalar = value_type(arrow)
    return Column(path, Shape.SCALAR if scalar else Shape.UNUSABLE, arrow, scalar)


def with_definitions(schema: Schema, definitions: Mapping[str, str], writes_out: bool = False) -> Schema:
    """Returns a schema for expressions that may use definitions.

    writes_out : whether they have definitions written out, even large ones
    """
    other = copy.copy(schema)
    other.__dict__.pop("_folded_definitions", None)
    other._definitions = definitions
    other._writes_out = writes_out
    return other


def definitions_of(schema: Schema) -> Mapping[str, str]:
    """Returns the texts of the definitions that expressions may use, by name."""
    return schema._definitions


def writes_out(schema: Schema) -> bool:
    """Returns whether expressions have all definitions written out."""
    return schema._writes_out


def definition_named(schema: Schema, path: tuple[str, ...]) -> str | None:
    """Returns the name of the definition that an expression calls so; None for another name.

    Case matters as it does for columns.
    """
    if len(path) != 1 or not schema._definitions:
        return None
    if path[0] in schema._definitions:
        return path[0]
    return None if schema.case_sensitive else schema._folded_definitions.get(path[0].lower())
