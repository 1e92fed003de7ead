"""Single events: mappings from name to value, read without Arrow if the result is the same.

Values of Python's own types go to the kernel directly, in columns, structs, lists and maps.
Everything else, such as a decimal or a NumPy scalar, becomes a record batch of one row, read like
any other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from typing import Any

import numpy as np

from colmatch.arrays.frozen import freeze_view
from colmatch.errors import EventError, show_value, suggest_names
from colmatch.events.computed.nodes import node_of
from colmatch.events.computed.templates import Reach, templates_of
from colmatch.events.needs import words
from colmatch.events.patterns import Patterns, patterns_of
from colmatch.events.single.computed import Evaluate, Event, NeedsBatch, evaluator
from colmatch.events.single.members import EventMembers, order_values
from colmatch.events.single.nested import (
    EXACT,
    ScalarType,
    computed_type,
    find_field,
    is_unique,
    nested_columns,
    scalar_type,
)
from colmatch.events.single.texts import BYTES_MOST, EventPatterns, lower_text
from colmatch.events.single.whole import ColumnValue, whole_events
from colmatch.events.vocabulary import Vocabulary
from colmatch.given.incoming import is_table
from colmatch.given.scans import is_scannable
from colmatch.given.schema import Attribute, Attributes, Family, Role, Schema
from colmatch.kernels.arrow.words import Words
from colmatch.kernels.event import DOUBLE, KEY, TEXT, EventValues

FIRST_BYTES = 1 << 10  # of the texts of an event
NESTED_MOST = 256  # entries of lists and maps in an event; one with more becomes a batch
EPOCH = date(1970, 1, 1).toordinal()


class EventReader:
    """A reader of events for the attributes of one version, in one thread.

    Attributes
    ----------
    is_direct : whether each attribute needs no Arrow: a scalar column or field, a part of a list or
        map of scalars, or a text pattern or computed value over scalars
    entries_most : largest number of values of one event
    """

    def __init__(
        self, schema: Schema, attributes: Attributes, literals: Vocabulary, reach: Callable[[], Reach]
    ) -> None:
        flat: list[tuple[int, Attribute]] = []
        nested: list[tuple[int, Attribute]] = []
        templates = templates_of(attributes)
        members = set(templates.attributes)
        for i, attribute in attributes.items():
            if not attribute.is_free and attribute.pattern is None and i not in members:
                (nested if attribute.role in _NESTED else flat).append((i, attribute))
        columns = [_value(schema, i, attribute) for i, attribute in flat]
        others = len(columns) + len(nested) + len(members)
        patterns = patterns_of(attributes) if others < attributes.used else None
        if patterns is not None:
            columns = _with_patterns(columns, [attribute for _, attribute in flat], schema, patterns)
        lists_and_maps = nested_columns(schema, nested)
        self.is_direct = None not in columns and lists_and_maps is not None
        self._nested = lists_and_maps or []
        self._members = (
            EventMembers(templates, reach(), lambda path: _column_reader(schema, path)) if templates.groups else None
        )
        room = (NESTED_MOST if nested else 0) + len(members)
        self._columns = [value for value in columns if value is not None]
        self._place = {value.name: i for i, value in enumerate(self._columns) if value.compute is None}
        self._computed = [i for i, value in enumerate(self._columns) if value.compute is not None]
        self.words: Words
        self.words, self._held = words(literals.of(len(attributes)))
        form = np.full(len(attributes), KEY, np.uint8)
        attrs = [value.attr for value in self._columns if value.attr >= 0]
        for value in self._columns:
            if value.attr >= 0:
                form[value.attr] = _FORMS.get(value.type, KEY)
        for i, attribute in nested:
            if attribute.role in (Role.ELEMENT, Role.ENTRY):
                form[i] = {Family.FLOAT: DOUBLE, Family.STRING: TEXT}.get(attribute.type.family, KEY)
        self._ends: Any
        self._end = self._ends = np.zeros(2 * len(self._columns) + room + 1, np.int64)
        self.entries_most = len(attributes) + room  # members count twice
        self._values = self.values = EventValues(
            freeze_view(form),
            np.array([*attrs, *[0] * room], np.uint32),
            np.empty(len(attrs) + room, np.int64),
            freeze_view(self._end),
            np.empty(1, np.int64),
        )
        self._patterns = None
        if patterns is not None and self.is_direct:
            self._patterns = EventPatterns(patterns, self._values, len(attributes), self.entries_most)
            self.values = self._patterns.merged
        is_plain = patterns is None and not room and self.is_direct
        self._whole = whole_events(self._columns) if is_plain else None
        self._buffer: Any = self._values.value
        self._all = self._values.attr.tobytes()
        self._is_varied = room > 0  # whether events of as many values may have other attributes
        self._is_whole = True  # whether ``values.attr`` has all attributes
        self._make_room(FIRST_BYTES)

    def _make_room(self, size: int) -> None:
        self._data = bytearray(size)
        self._view = freeze_view(np.frombuffer(self._data, np.uint8))
        self._values.place[0] = self._view.ctypes.data

    def read(self, event: Event) -> int | None:
        """Writes the values of an event to ``self.values``, and returns their number.

        The result is None if a value needs Arrow.
        """
        try:
            if self._whole is not None and type(event) is dict:  # others may make up values
                texts = self._whole.read(event, self._buffer, self._ends)
                if texts is not None:
                    self._take_all()
                    self._take_texts(texts)
                    return len(self._columns)
            return self._read(event)
        except (NeedsBatch, UnicodeEncodeError):
            return None

    def _columns_in(self, event: Event) -> Sequence[ColumnValue]:
        """Returns the columns that an event may have a value for, in the order of all columns."""
        if len(event) > len(self._place) // 2:
            return self._columns
        place = self._place
        return [self._columns[i] for i in sorted([place[name] for name in event if name in place] + self._computed)]

    def _read(self, event: Event) -> int | None:
        get = event.get
        attrs: list[int] = []
        values: list[int | float] = []
        value: Any
        forms, texts = "", b""
        ends = [0]
        bases: list[int] = []
        matching: list[int] = []  # regular expressions
        for name, attr, type_, low, high, compute, base, has_lower, regexes in self._columns_in(event):
            value = get(name) if compute is None else compute(event)
            if value is None:
                continue
            if type(value) is not type_:
                if type_ is not float or type(value) is not int or not -EXACT <= value <= EXACT:
                    return None
                value = float(value)
            if type_ is float:
                forms += "d"
            elif type_ is str:
                text = value.encode()
                if base >= 0 and len(text) > BYTES_MOST:
                    return None
                texts += text
                number = len(ends) - 1
                ends.append(len(texts))
                bases.append(base)
                if has_lower:
                    texts += lower_text(value, text)
                    ends.append(len(texts))
                    bases.append(base + 1)
                if regexes is not None:
                    matching += regexes.find_in_one(text)
                if attr < 0:
                    continue
                value = number
                forms += "q"
            else:
                if type_ is date:
                    value = value.toordinal() - EPOCH
                elif not low <= value <= high:
                    return None
                forms += "q"
            attrs.append(attr)
            values.append(value)
        if self._nested:
            texts, forms = self._read_nested(event, attrs, values, forms, texts, ends)
        if self._members is not None:
            forms = self._members.add(event, attrs, values, forms)
        count = self._write(attrs, values, forms, texts, ends)
        return count if self._patterns is None else self._patterns.find(count, self._view, bases, matching)

    def _read_nested(
        self, event: Event, attrs: list[int], values: list[int | float], forms: str, texts: bytes, ends: list[int]
    ) -> tuple[bytes, str]:
        """Adds the entries of lists and maps. All values then have the order of their attributes.

        Returns texts and forms. Raises NeedsBatch: there are too many entries, or one needs Arrow.
        """
        pieces, size, kinds = [texts], len(texts), [*forms]

        def add(attr: int, kind: type, value: Any) -> None:
            nonlocal size
            piece = value.encode() if kind is str else b""  # an error where the text is none
            if attr < 0:
                return
            if len(attrs) == most:
                raise NeedsBatch
            if kind is str:
                pieces.append(piece)
                size += len(piece)
                value = len(ends) - 1
                ends.append(size)
            elif kind is date:
                value = value.toordinal() - EPOCH
            attrs.append(attr)
            values.append(value)
            kinds.append("d" if kind is float else "q")

        most = len(attrs) + NESTED_MOST
        for column in self._nested:
            value = event.get(column.name) if column.find is None else column.find(event)
            if value is not None:
                column.read(value, add)
        return b"".join(pieces), order_values(attrs, values, kinds)

    def _take_all(self) -> None:
        """Notes that the event has a value for each attribute."""
        if not self._is_whole:
            self._values.attr[:] = np.frombuffer(self._all, np.uint32)
            self._is_whole = True

    def _take_texts(self, texts: bytes) -> None:
        if len(texts) > len(self._data):
            self._make_room(2 * len(texts))
        self._data[: len(texts)] = texts

    def _write(self, attrs: list[int], values: list[int | float], forms: str, texts: bytes, ends: list[int]) -> int:
        count, into = len(attrs), self._values
        struct.pack_into(forms, self._buffer, 0, *values)
        if count < len(into.attr) or self._is_varied:
            into.attr[:count] = attrs
            self._is_whole = False
        else:
            self._take_all()
        if texts or len(ends) > 1:
            self._take_texts(texts)
            self._end[: len(ends)] = ends
        return count


_FORMS = {float: DOUBLE, str: TEXT}
_NESTED = (Role.ELEMENT, Role.SIZE, Role.HAS_NULL, Role.ENTRY)


def _value(schema: Schema, attr: int, attribute: Attribute) -> ColumnValue | None:
    """Returns a column or computed value that is read without Arrow, None if it needs Arrow."""
    if attribute.role is Role.COMPUTED:
        compute = evaluator(node_of(str(attribute.key)), lambda path: _column_reader(schema, path))
        of = computed_type(attribute.type)
        return None if of is None else ColumnValue(attribute.path[0], attr, *of, compute)
    if attribute.role is not Role.VALUE or not is_unique(schema, attribute.path):
        return None
    of = scalar_type(schema.column(attribute.path).arrow, attribute.type)
    return None if of is None else ColumnValue(".".join(attribute.path), attr, *of, find_field(schema, attribute.path))


def _column_reader(schema: Schema, path: tuple[str, ...]) -> Evaluate | None:
    """Returns the function that reads a column to compute with; None if it needs Arrow."""
    value_type = schema.column(path).type
    column = None if value_type is None else _value(schema, -1, Attribute(path, Role.VALUE, value_type))
    if column is None:
        return None
    name, find, check = column.name, column.compute, ScalarType(column.type, column.low, column.high).check

    def read(event: Event) -> Any:
        value: Any = event.get(name) if find is None else find(event)
        if value is None:
            return None
        value = check(value)
        if type(value) is str and not value.isascii():
            value.encode()
        return value

    return read


def _with_patterns(
    columns: list[ColumnValue | None], attributes: Sequence[Attribute], schema: Schema, patterns: Patterns
) -> list[ColumnValue | None]:
    """Returns the columns, with those of the patterns and the places of their patterns.

    attributes : of the columns
    """
    places = {(of.path, of.role, of.key): i for i, of in enumerate(attributes)}
    columns = list(columns)
    for b, base in enumerate(patterns.bases):
        column = _value(schema, -1, base)
        if column is None or column.type is not str:
            return [None]
        index = patterns.index
        regexes = index.regexes[b] if index.regexes[b] else None
        place = places.get((base.path, base.role, base.key))
        if place is None:
            place = len(columns)
            columns.append(column)
        known = columns[place]
        assert known is not None
        columns[place] = known._replace(base=2 * b, has_lower=index.has_lower(b), regexes=regexes)
    return columns


# Events as callers give them


_WAYS = ("asDict", "_asdict", "model_dump")  # of Rows of Spark, named tuples and pydantic models


def is_object(event: object) -> bool:
    """Returns whether an event is an object with fields for columns."""
    if isinstance(event, type):
        return False
    return _is_dataclass(event) or _is_series(event) or any(callable(getattr(event, way, None)) for way in _WAYS)


def _is_dataclass(event: Any) -> bool:
    """Returns whether an event is a dataclass; a table of Delta is one, too, but no event."""
    return is_dataclass(event) and not isinstance(event, type) and not is_scannable(event)


def _is_of_pandas(event: object) -> bool:
    return type(event).__module__.partition(".")[0] == "pandas"


def _is_series(event: object) -> bool:
    return _is_of_pandas(event) and callable(getattr(event, "to_dict", None)) and getattr(event, "ndim", 0) == 1


def as_mapping(event: object) -> Event:
    """Returns an event as a mapping from name to value.

    It is the event itself, or the fields of a dataclass, named tuple, Row of Spark or pydantic
    model. NaN in a row of a pandas frame becomes None, since it is NULL in a batch.

    Raises EventError: the event is something else, or a pandas row has two values of one name.
    """
    if isinstance(event, Mapping):
        return event
    if _is_of_pandas(event) and not isinstance(event, type):
        row: Any = event
        if _is_series(event) and not row.index.is_unique:
            raise EventError("the row has two values of one name")
        if _is_series(event) or hasattr(event, "_asdict"):
            values = row.to_dict() if _is_series(event) else row._asdict()
            return {name: None if _is_nan(value) else value for name, value in values.items()}
    if _is_dataclass(event):
        given: Any = event
        return {field.name: getattr(given, field.name) for field in fields(given)}
    for method in _WAYS:
        convert = None if isinstance(event, type) else getattr(event, method, None)
        if callable(convert) and isinstance(mapping := convert(), Mapping):
            return mapping
    raise EventError(
        f"an event is a mapping from name to value, a dataclass, a Row, a named tuple, a row of pandas or a pydantic model, "
        f"not {type(event).__name__}{_instead(event)}"
    )


def _is_nan(value: object) -> bool:
    return isinstance(value, (float, np.floating)) and bool(value != value)


def _instead(event: object) -> str:
    """Returns the advice of an error about an object that is no event."""
    if isinstance(event, (str, bytes)):
        return ": read JSON with json.loads(event)"
    if isinstance(event, (list, tuple)):
        return ": give one event at a time, or several to match(events)"
    if is_table(event):
        return ": match(events) takes tables and their like"
    return ": vars(event) is a mapping of its attributes" if hasattr(event, "__dict__") else ""


def rename_fields(event: Event, names: Sequence[str], where: str, ignored: bool | None) -> Event:
    """Returns an event, or a struct in it, with the names of the schema.

    Case counts only if names differ in nothing else, as in batches.

    names : of the columns or fields
    where : their owner, for errors
    ignored : whether other names are left out or errors; None for errors that do not offer the
        choice

    Raises EventError: a name is unknown, or there twice.
    """
    values: dict[str, Any] = {}
    for key, value in event.items():
        name = key
        if not isinstance(name, str):
            raise EventError(f"the event has a key {show_value(name)}: keys are names of columns")
        if name not in names:
            same = [other for other in names if other.lower() == name.lower()]
            if len(same) != 1:
                if ignored:
                    continue
                message = f"the event has a key {show_value(name)}, which {where} has not: {suggest_names(name[:200], names, where)}"
                raise EventError(message if ignored is None else f"{message} (unknown='ignore' leaves it out)")
            (name,) = same
        if name in values:
            raise EventError(f"the event has {name!r} twice, in different cases")
        values[name] = value
    return values
