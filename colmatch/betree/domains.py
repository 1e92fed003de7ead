"""Attributes as the be-tree library declares them, and their Arrow columns.

A domain is a field of an Arrow schema. The field has the type and whether the attribute may be
undefined; its metadata has everything else. So a saved matcher has its domains. Expressions of this
language can be matched with events of any Arrow schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.errors import SchemaError, show_value, suggest_names
from colmatch.given.arguments import double, members, number, python_value, text
from colmatch.given.incoming import is_text
from colmatch.given.schema import Family, value_type
from colmatch.given.special import CAP_FIELDS, SEGMENT_FIELDS

BOOLEAN, INTEGER, FLOAT, STRING, ENUM = "boolean", "integer", "float", "string", "integer enum"
INTEGERS, STRINGS, SEGMENTS, FREQUENCY = "integer list", "string list", "segments", "frequency"


def _list(type: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("item", type, nullable=False))


ARROW: dict[str, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    INTEGER: pa.int64(),
    FLOAT: pa.float64(),
    STRING: pa.string(),
    ENUM: pa.int64(),
    INTEGERS: _list(pa.int64()),
    STRINGS: _list(pa.string()),
    SEGMENTS: _list(pa.struct(SEGMENT_FIELDS)),
    FREQUENCY: _list(pa.struct(CAP_FIELDS)),
}
_TYPE, _BOUNDS = b"betree.type", (b"betree.min", b"betree.max")
_NAME = re.compile("[a-zA-Z_][a-zA-Z0-9_-]*")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_TRUTHS = {"true": True, "false": False}
_FAMILIES = {Family.BOOL: BOOLEAN, Family.INT: INTEGER, Family.FLOAT: FLOAT, Family.STRING: STRING}
_LINE = "name|type|allow_undefined, or name|type|allow_undefined|min|max"


class Domain(NamedTuple):
    """One attribute: its column, its type, whether events may lack it, and its bounds.

    A bound is None if none was declared.
    """

    name: str
    type: str
    allow_undefined: bool
    low: int | float | None = None
    high: int | float | None = None


class Domains:
    """The attributes that expressions may name, in the declarations of the be-tree library.

    Parameters
    ----------
    domains : lines ``name|type|allow_undefined|min|max``, as one text or many. Or a mapping from
        name to ``"type|allow_undefined|min|max"``, to a tuple of these or to a mapping. Or mappings
        that include the name. ``min`` and ``max`` are optional. Events may have values beyond them,
        but an expression that needs such a value is an error. ``max_values`` of a mapping is
        accepted and has no effect. Names are read in lower case. Empty lines and text after a
        ``#`` are ignored

    Attributes
    ----------
    arrow : the columns of the events. ``Matcher.build`` takes it as a schema, and this object, too

    Raises
    ------
    SchemaError : a domain is invalid. The message has its line and the remedy

    Examples
    --------
    >>> Domains("age|integer|false|0|150\\ncity|string|true").arrow.names
    ['age', 'city']
    """

    def __init__(self, domains: object) -> None:
        fields: dict[str, pa.Field] = {}
        for where, parts in _read_declarations(domains):
            field = _field(where, parts)
            if field.name in fields:
                raise SchemaError(f"{where}: {field.name!r} is declared twice; names are read in lower case")
            fields[field.name] = field
        self.arrow = pa.schema(list(fields.values()))

    def __arrow_c_schema__(self) -> object:
        return self.arrow.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"Domains({', '.join(f'{name}: {domain.type}' for name, domain in domains_of(self.arrow).items())})"


def domains_of(schema: pa.Schema) -> dict[str, Domain]:
    """Returns the domains of a schema's columns, by name in lower case.

    A column with a type of no domain is left out.

    Raises
    ------
    SchemaError : names differ in case alone
    """
    domains: dict[str, Domain] = {}
    for field in schema:
        name = field.name.lower()
        metadata = field.metadata or {}
        type = metadata.get(_TYPE, b"").decode() or _type_of(field.type)
        if name in domains:
            raise SchemaError(f"columns {domains[name].name!r} and {field.name!r} differ in case alone: rename one")
        if type is not None:
            written = (metadata.get(key, b"").decode(errors="replace") for key in _BOUNDS)
            low, high = (_read_bound(f"column {field.name!r}", bound, type) for bound in written)
            domains[name] = Domain(field.name, type, field.nullable, low, high)
    return domains


def _type_of(arrow: pa.DataType) -> str | None:
    """Returns the domain type of a column without a declaration, or None if there is none."""
    for name, candidate in ARROW.items():
        if candidate.equals(arrow):
            return name
    own = value_type(arrow)
    if own is not None:
        return _FAMILIES.get(own.family)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        element = value_type(arrow.value_type)
        return {Family.INT: INTEGERS, Family.STRING: STRINGS}.get(element.family) if element is not None else None
    return None


# Declarations
# --------------------------------------------------------------------------


def _read_declarations(domains: object) -> Iterable[tuple[str, list[Any]]]:
    """Yields the place of each domain for errors, and the parts of the domain."""
    if isinstance(domains, str):
        domains = str.__str__(domains).removeprefix("\ufeff").splitlines()
    if isinstance(domains, Mapping):
        for name, rest in domains.items():
            yield f"domain {show_value(name)}", [name, *_parts(rest, f"domain {show_value(name)}")]
        return
    listed = None if isinstance(domains, Domains) else members(domains)
    if listed is None:
        raise SchemaError(f"domains are lines {_LINE}, or a mapping, not {type(domains).__name__}")
    for n, one in enumerate(listed, 1):
        if isinstance(one, str):
            line = str.__str__(one).partition("#")[0].strip()
            if line:
                yield f"line {n} of the domains", [part.strip() for part in line.split("|")]
        elif isinstance(one, Mapping) and "name" in one:
            where = f"domain {show_value(one['name'])}"
            yield where, [one["name"], *_parts({key: one[key] for key in one if key != "name"}, where)]
        else:
            raise SchemaError(f"domain number {n} is {show_value(one)}: a line {_LINE} is needed, or a mapping")


def _parts(given: object, where: str) -> list[Any]:
    line = text(given)
    if line is not None:
        return [part.strip() for part in line.split("|")]
    if isinstance(given, (tuple, list)):
        return list(given)
    if not isinstance(given, Mapping):
        raise SchemaError(f"{where} is {show_value(given)}: 'type|allow_undefined', a tuple or a mapping is needed")
    keys = ("type", "allow_undefined", "min", "max", "max_values")
    unknown = [key for key in given if text(key) not in keys]
    if unknown:
        raise SchemaError(f"{where}: {show_value(unknown[0])} is unknown; there are {', '.join(keys)}")
    if "type" not in given or "allow_undefined" not in given:
        raise SchemaError(f"{where}: both type and allow_undefined are needed")
    bounds = [given.get("min"), given.get("max")]
    return [given["type"], given["allow_undefined"], *([] if all(bound is None for bound in bounds) else bounds)]


def _field(where: str, parts: list[Any]) -> pa.Field:
    if len(parts) not in (3, 5):
        raise SchemaError(f"{where} has {len(parts)} parts: {_LINE} is needed")
    called, type, undefined = map(python_value, parts[:3])
    name = text(called)
    if name is None or not _NAME.fullmatch(name):
        raise SchemaError(f"{where}: {show_value(called)} is no name: letters, digits, _ and - are, and no digit first")
    words = " ".join(type.lower().split()) if isinstance(type, str) and is_text(type) else None
    if words not in ARROW:
        advice = suggest_names(words, ARROW, "the language") if words is not None else f"there are {', '.join(ARROW)}"
        raise SchemaError(f"{where}: no type is called {show_value(type)}: {advice}")
    if isinstance(undefined, str):
        undefined = _TRUTHS.get(undefined.lower(), undefined)
    if not isinstance(undefined, bool):
        raise SchemaError(f"{where}: allow_undefined is {show_value(undefined)}: true or false is needed")
    metadata = {_TYPE: words.encode()}
    bounds = [_read_bound(where, bound, words) for bound in parts[3:]]
    if len(bounds) == 2 and None not in bounds and bounds[0] > bounds[1]:
        raise SchemaError(f"{where}: min is {bounds[0]} and max {bounds[1]}: exchange them")
    metadata |= {key: repr(value).encode() for key, value in zip(_BOUNDS, bounds, strict=False) if value is not None}
    return pa.field(name.lower(), ARROW[words], undefined, metadata)


def _read_bound(where: str, given: Any, type: str) -> Any:
    """Returns a bound as a number, or None if there is none."""
    given = python_value(given)
    if given is None or (isinstance(given, str) and not given):
        return None
    if isinstance(given, str):
        if not _NUMBER.fullmatch(given) or len(given) > 400:
            raise SchemaError(f"{where}: {show_value(given)} is no number")
        given = float(given) if set(given) & set(".eE") else int(given)
    bound, plain = number(given), double(given)  # no float can be as large as some ints
    if bound is None or plain is None or not math.isfinite(plain):
        raise SchemaError(f"{where}: {show_value(given)} is no number")
    if type not in (INTEGER, FLOAT, ENUM, INTEGERS):
        raise SchemaError(f"{where}: a domain of type {type} has neither min nor max")
    return bound
