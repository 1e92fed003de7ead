"""Computed values: their normal form, and their types by Spark's rules.

The nodes are explicit where Arrow differs from Spark: they have all casts, and state whether an
overflow is an error.

The normal form writes ``b > a`` as ``a < b`` and sorts the operands of commutative functions. Spark
orders all values, NaN among them. So ``a >= b`` is the negation of ``a < b``, and both share an
attribute. A comparison of two columns is a Boolean value, and a predicate compares it with TRUE.
This is right for all types. The SQL text of the normal form is the name of the attribute, and the
typed tree is its key.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from colmatch.errors import EventError, SchemaError, show_value
from colmatch.events.computed.derived import check_constants
from colmatch.events.computed.modes import depends_on_mode
from colmatch.events.computed.nodes import INTEGERS, LEAVES, ValueNode, arrow_type, digits, is_decimal
from colmatch.expr.ast import Refusal
from colmatch.expr.computed import ADDRESS, MOST_PARTS, PARTS, SYNONYMS, ComputedValue
from colmatch.expr.computed_rules import METHODS, TypeRules, simplify_call
from colmatch.expr.functions import TABLE
from colmatch.expr.solvable import steps_of
from colmatch.given.options import Options
from colmatch.given.schema import Column, Family, Schema, Shape, Type, value_type
from colmatch.given.session import Session, SessionParts, time_zone
from colmatch.lowering.floors import LiteralErrors, literal_floors
from colmatch.lowering.forms import Kind
from colmatch.lowering.solve import Step
from colmatch.text.addresses import text_of_address

_NUMBERS = (*INTEGERS, "float", "double")
_OF_INTEGER = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_INSTANTS = ("date", "timestamp_ntz", "timestamp")  # each is widened to a later one for a comparison
_ALIASES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "dec": "decimal",
    "numeric": "decimal", "bool": "boolean", "timestamp_ltz": "timestamp", "text": "string", "varchar": "string",
    "int2": "smallint", "int4": "int", "int8": "bigint", "float4": "float", "float8": "double", "timestamptz": "timestamp",
}  # fmt: skip
_TYPE = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*)\s*(?:\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))?\s*", re.ASCII)
_CASTS = {  # type -> types that can be cast to it, besides itself
    "boolean": ("number", "decimal", "string"), "tinyint": ("number", "decimal", "boolean", "string"),
    "float": ("number", "decimal", "boolean", "string"), "string": ("integer", "boolean"),
    "date": ("timestamp", "timestamp_ntz"), "timestamp": ("date", "timestamp_ntz"),
    "timestamp_ntz": ("date", "timestamp"), "decimal": ("integer", "decimal", "boolean"),
}  # fmt: skip
_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month", "mm": "month",
    "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
    "millisecond": "millisecond", "microsecond": "microsecond",
}  # fmt: skip
_NO_COLUMN = ComputedValue("null", ())
_COMMUTE = frozenset({"+", "*", "=", "<=>", "&", "|", "^"})


class Typing(TypeRules):
    """The types of computed values over one schema."""

    def __init__(self, schema: Schema, options: Options) -> None:
        self._schema = schema
        self._ansi = options.ansi
        self._zone = _arrow_zone(options.timezone)
        self._session = Session(options.timezone)
        self.session_parts = SessionParts()
        self._known: dict[ComputedValue, tuple[str, ValueNode]] = {}

    def of(self, value: ComputedValue) -> tuple[str, ValueNode]:
        """Returns the name of a value, which is the text of its normal form, and its node.

        Raises Refusal: the value does not fit the schema, or cannot be computed as in Spark.
        """
        result = self._known.get(value)
        if result is None:
            normal = self._normalise(value)
            node = self._node(normal)
            try:
                check_constants(node)
            except EventError as error:
                raise Refusal(f"{normal.sql()} cannot be computed: {error}") from None
            result = self._known[value] = normal.sql(), node
            if _mentions(node, self._zone):
                self.session_parts = self.session_parts.with_others(SessionParts(zone=result[0]))
        return result

    def solved(self, value: ComputedValue) -> tuple[tuple[str, ...], tuple[Step, ...]] | None:
        """Returns the path of a value's column and the steps to the value; None if it is not
        solved.

        A value that fails in some rows in ANSI mode is not solved there.
        """
        name, node = self.of(value)
        found = None if node.function == "column" else steps_of(node)
        if found is None or not depends_on_mode(node):
            return found
        if self._ansi:
            return None
        self.session_parts = self.session_parts.with_others(SessionParts(ansi=name))
        return found

    # The normal form

    def _normalise(self, value: ComputedValue) -> ComputedValue:
        name, arguments = value
        if name == "column":
            return ComputedValue("column", self._path(arguments))
        if name == "literal":
            return value
        if name in ("cast", "try_cast"):
            return ComputedValue(name, (self._normalise(arguments[0]), _type_of_text(arguments[1])))
        name = SYNONYMS.get(name, name)
        if name in ("entry", "element_at", "map_contains_key", "size"):
            column = arguments[0]
            is_column = column.function == "column"
            return (
                ComputedValue(name, (ComputedValue("column", self._find_column(column.arguments).path), *arguments[1:]))
                if is_column
                else value
            )
        name, arguments = simplify_call(name, arguments)
        parts = [self._normalise(argument) for argument in arguments]
        if name in (">", ">="):
            name = "<" if name == ">" else "<="
            parts.reverse()
        if name in _COMMUTE and len(parts) == 2:
            parts.sort(key=ComputedValue.sql)
        return ComputedValue(name, tuple(parts))

    def _path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        column = self._find_column(path)
        if column.shape is not Shape.SCALAR:
            raise Refusal(
                f"column {column.name!r} is {column.arrow}, which nothing can be computed of{_suggest_values(column)}"
            )
        return column.path

    def _entry(self, column: ComputedValue, key: str | int) -> ValueNode:
        """Types an element of a list by its place, an entry of a map, or a field of a struct."""
        path = column.arguments
        container = self._find_column(path)
        if container.shape is Shape.STRUCT and isinstance(key, str):
            return self._node(ComputedValue("column", self._path((*path, key))))
        if container.shape is Shape.LIST and isinstance(key, int):
            if key < 0:
                raise Refusal(
                    f"places in [...] begin with 0: write element_at({container.name}, {key}) for one from the end"
                )
            return self._element(container, key)
        if container.shape is not Shape.MAP or container.key is None or container.type is None:
            need = "a whole number" if container.shape is Shape.LIST else "a map or list before it"
            raise Refusal(f"column {container.name!r} is {container.arrow}: [...] needs {need}")
        _check_key(container, container.key, key, "in [...]")
        return ValueNode("entry", _type_of(container.arrow.item_type, container.name), (key, *container.path))

    def _element(self, column: Column, place: int) -> ValueNode:
        type = _type_of(column.arrow.value_type, column.name)
        return ValueNode("element", type, (place, "ansi" if self._ansi else "", *column.path))

    def _element_at(self, arguments: tuple[ComputedValue, ...]) -> ValueNode:
        column, key = arguments if len(arguments) == 2 else (_NO_COLUMN, _NO_COLUMN)
        if column.function != "column" or key.function != "literal" or key.arguments[0] not in ("int", "bigint"):
            raise Refusal("element_at takes a list or map and a literal, as in element_at(tags, 1)")
        container, place = self._find_column(column.arguments), int(key.arguments[1])
        if container.shape is not Shape.LIST:
            return self._entry(column, place)
        if not place:
            raise Refusal(f"element_at counts from 1: the first element of {container.name!r} has the place 1")
        return self._element(container, place - (place > 0))

    def _contains_key(self, arguments: tuple[ComputedValue, ...]) -> ValueNode:
        column, key = arguments if len(arguments) == 2 else (_NO_COLUMN, _NO_COLUMN)
        types = ("string", "int", "bigint")
        if column.function != "column" or key.function != "literal" or key.arguments[0] not in types:
            raise Refusal("map_contains_key takes a map and a literal, as in map_contains_key(attrs, 'colour')")
        container = self._find_column(column.arguments)
        if container.shape is not Shape.MAP or container.key is None:
            raise Refusal(f"map_contains_key needs a map column; {container.name!r} is {container.arrow}")
        value = key.arguments[1] if key.arguments[0] == "string" else int(key.arguments[1])
        _check_key(container, container.key, value, "for the key")
        return ValueNode("map_contains_key", "boolean", (value, *container.path))

    def _size(self, column: ComputedValue) -> ValueNode:
        if column.function != "column":
            raise Refusal("size(...) takes the name of one list or map column")
        container = self._find_column(column.arguments)
        if container.shape not in (Shape.LIST, Shape.MAP):
            raise Refusal(f"size needs a list or map column; {container.name!r} is {container.arrow}")
        return ValueNode("size", "int", container.path)

    def _find_column(self, path: tuple[str, ...]) -> Column:
        try:
            return self._schema.column(path)
        except SchemaError as error:
            raise Refusal(str(error)) from None

    # Types

    def _node(self, value: ComputedValue) -> ValueNode:
        name, arguments = value
        if name == "column":
            return ValueNode("column", _type_of(self._schema.column(arguments).arrow, ".".join(arguments)), arguments)
        if name == "literal":
            return self._literal(*arguments)
        if name == "entry":
            return self._entry(*arguments)
        if name == "element_at":
            return self._element_at(arguments)
        if name == "map_contains_key":
            return self._contains_key(arguments)
        if name == "size":
            return self._size(arguments[0])
        if name == "null":
            return ValueNode("null", "void", ())
        nodes = [self._node(argument) for argument in arguments if isinstance(argument, ComputedValue)]
        if name in ("cast", "try_cast"):
            cast = self._explicit(nodes[0], arguments[1])
            is_tried = name == "try_cast" and cast.function == "cast"
            return _make_try_cast(cast) if is_tried else cast
        if name == "cidr_contains":
            return _in_network(nodes)
        method: Callable[[str, list[ValueNode]], ValueNode] = getattr(self, _METHODS.get(name, "_part"))
        return method(name, nodes)

    def _literal(self, type: str, text: str) -> ValueNode:
        if type not in _INSTANTS:
            return ValueNode("literal", type, (text,))
        target = value_type(arrow_type(type))
        assert target is not None
        kind = {"date": Kind.DATE, "timestamp": Kind.TIMESTAMP}.get(type, Kind.TIMESTAMP_NTZ)
        try:
            floor, place = literal_floors(target, kind, [text], False, self._session)
        except LiteralErrors as errors:
            raise Refusal(errors.reasons[0]) from None
        self.session_parts = self.session_parts.with_others(SessionParts(zone=self._session.literal))
        if place[0]:
            raise Refusal(f"{show_value(text)} has nanoseconds, which Spark has not")
        return ValueNode("literal", type, (str(floor[0]),))

    def _cast(self, node: ValueNode, type: str) -> ValueNode:
        if node.type == type:
            return node
        if node.type == "void":
            return ValueNode("null", type, ())
        zoned = "timestamp" in (node.type, type)
        return ValueNode("cast", type, (node, "ansi" if self._ansi else "", *([self._zone] if zoned else [])))

    def _explicit(self, node: ValueNode, type: str) -> ValueNode:
        have = node.type
        if have == type:
            return node
        classes = {
            have.partition("(")[0],
            "integer" if have in INTEGERS else have,
            "number" if have in _NUMBERS else have,
        }
        group = type.partition("(")[0]
        group = "tinyint" if group in INTEGERS else "float" if group == "double" else group
        if not classes & set(_CASTS.get(group, ())):
            instead = "compare the value itself" if type == "string" else "cast the column of the events beforehand"
            raise Refusal(f"CAST of {have} to {type} is not computed as Spark does it: {instead}")
        return self._cast(node, type)

    def _common(self, name: str, nodes: list[ValueNode]) -> list[ValueNode]:
        """Casts all arguments to the type that Spark finds for them."""
        type = nodes[0].type if nodes else "void"
        for node in nodes[1:]:
            type = self._wider(name, type, node.type)
        if type == "void":
            raise Refusal(f"{name} of NULL alone is NULL: write NULL, or a column")
        if any(is_decimal(node.type) for node in nodes) and is_decimal(type) and digits(type)[0] > 38:
            raise Refusal(f"{name} needs decimals of more than 38 digits: cast its parts to fewer")
        return [self._cast(node, type) for node in nodes]

    def _wider(self, name: str, one: str, other: str) -> str:
        if one == other or other == "void":
            return one
        if one == "void":
            return other
        if one in _INSTANTS and other in _INSTANTS:
            return max(one, other, key=_INSTANTS.index)
        if not (_numeric(one) and _numeric(other)):
            raise Refusal(f"{_describe_mismatch(name)} {one} and {other}: cast one of them")
        if is_decimal(one) or is_decimal(other):
            if {one, other} & {"float", "double"}:
                return "double"
            (p, s), (q, t) = _digits(one), _digits(other)
            return f"decimal({max(p - s, q - t) + max(s, t)},{max(s, t)})"
        wide = max(one, other, key=_NUMBERS.index)
        return "double" if wide == "float" and self._ansi else wide

    # Functions

    def _arithmetic(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _count(name, nodes, 2)
        for node in nodes:
            if not _numeric(node.type):
                days = ": write datediff(later, day), in days, or date_add(day, 3)" if node.type in _INSTANTS else ""
                raise Refusal(f"{name!r} needs numbers, not {node.type}{days}")
        checked = "_checked" if self._ansi else ""
        exact = any(is_decimal(node.type) for node in nodes) and not {n.type for n in nodes} & {"float", "double"}
        if exact and name in "/%":
            raise Refusal(f"{name!r} of decimals is not computed as Spark rounds it: cast one of them to DOUBLE")
        if name == "/":
            return ValueNode("divide" + checked, "double", tuple([self._cast(node, "double") for node in nodes]))
        if exact:
            (p, s), (q, t) = (_literal_digits(node) for node in nodes)
            if name == "*":
                type = p + q + 1, s + t
            else:
                type = max(p - s, q - t) + max(s, t) + 1, max(s, t)
            if type[0] > 38:
                raise Refusal(f"{name!r} makes decimals of {type[0]} digits, at most 38 can be computed: cast to fewer")
            both = [self._cast(node, f"decimal({d},{e})") for node, d, e in zip(nodes, (p, q), (s, t), strict=True)]
            return ValueNode(_ARITHMETIC[name], f"decimal({type[0]},{type[1]})", tuple(both))
        both = self._common(name, nodes)
        return ValueNode(_ARITHMETIC[name] + checked, both[0].type, tuple(both))

    def _unary(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _count(name, nodes, 1)
        if not _numeric(nodes[0].type):
            raise Refusal(f"{name} needs a number, not {nodes[0].type}")
        checked = "_checked" if self._ansi and nodes[0].type in INTEGERS else ""
        return ValueNode(name + checked, nodes[0].type, tuple(nodes))

    def _comparison(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        both = tuple(self._common(name, nodes))
        if name in ("<=", "<>"):  # of a total order
            inner = ValueNode("less", "boolean", both[::-1]) if name == "<=" else ValueNode("equal", "boolean", both)
            return ValueNode("not", "boolean", (inner,))
        return ValueNode({"=": "equal", "<": "less", "<=>": "same"}[name], "boolean", both)

    def _coalesce(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _count(name, nodes, 1, MOST_PARTS)
        both = self._common(name, nodes)
        return ValueNode("coalesce", both[0].type, tuple(both))

    def _text(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _count(name, nodes, *((1, MOST_PARTS) if name == "concat" else (1,)))
        for node in nodes:
            if node.type != "string":
                either = "; between conditions, write OR for ||" if name == "concat" else ""
                raise Refusal(f"{name} needs strings, not {node.type}: cast it{either}")
        return ValueNode(name, "int" if name == "length" else "string", tuple(nodes))

    def _concat_ws(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _count(name, nodes, 2, MOST_PARTS)
        separator, *parts = [self._cast(node, "string") if node.type == "void" else node for node in nodes]
        if separator.function != "literal" or any(node.type != "string" for node in (separator, *parts)):
            raise Refusal("concat_ws takes a literal and strings, as in concat_ws('-', country, city)")
        return ValueNode(name, "string", (*parts, separator.arguments[0]))

    def _substring(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _count(name, nodes, 2, 3)
        place = [node.arguments[0] for node in nodes[1:] if node.function == "literal" and node.type == "int"]
        if nodes[0].type != "string" or len(place) != len(nodes) - 1:
            raise Refusal("substring takes a string and whole numbers, as in substring(name, 1, 3)")
        return ValueNode("substring", "string", (nodes[0], *map(int, place)))

    def _address(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        return ValueNode("address", "string", tuple(nodes))

    def _part(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _count(name, nodes, 1)
        type = nodes[0].type
        if type not in _INSTANTS or (type == "date" and PARTS[name] == "time"):
            raise Refusal(f"{name} needs a {'date or ' * (PARTS[name] == 'date')}timestamp, not {type}")
        return ValueNode(name, "int", (nodes[0], *([self._zone] if type == "timestamp" else [])))

    def _date_trunc(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _count(name, nodes, 2)
        unit, of = nodes
        unit_name = _UNITS.get(str(unit.arguments[0]).lower()) if unit.function == "literal" else None
        if unit_name is None or of.type not in _INSTANTS:
            raise Refusal("date_trunc takes a unit and a timestamp, as in date_trunc('month', at)")
        return ValueNode("date_trunc", "timestamp", (self._cast(of, "timestamp"), unit_name, self._zone))


def _make_try_cast(node: ValueNode) -> ValueNode:
    """Makes a cast NULL where it fails, in either mode."""
    return node._replace(function="try_cast", arguments=(node.arguments[0], "", *node.arguments[2:]))


def _check_key(column: Column, key: Type, value: str | int, where: str) -> None:
    """Raises Refusal: a key has another type than the keys of its map."""
    if (key.family is Family.STRING) is not isinstance(value, str):
        key_kind = "a string" if key.family is Family.STRING else "a whole number"
        raise Refusal(f"the keys of {column.name!r} are {key}: write {key_kind} {where}")


def _suggest_values(column: Column) -> str:
    """Suggests values to compute with for a column that holds several values."""
    name = column.name
    if column.shape is Shape.LIST:
        return f": name an element, as in {name}[0], or write size({name}) for their number"
    if column.shape is Shape.MAP:
        return f": name an entry, as in {name}['key'], or write size({name}) for their number"
    return ""


def _mentions(node: ValueNode, zone: str) -> bool:
    """Returns whether a part of the value is computed by the clocks of a zone."""
    if node.function in LEAVES:
        return False
    if node.function in _ZONED and zone in node.arguments[1:]:
        return True
    return any(_mentions(part, zone) for part in node.arguments if isinstance(part, ValueNode))


_ZONED = ("cast", "try_cast", "date_trunc", *PARTS)
_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "%": "modulo"}
_METHODS = {
    **dict.fromkeys(("+", "-", "*", "/", "%"), "_arithmetic"), **dict.fromkeys(("negate", "abs"), "_unary"),
    **dict.fromkeys(("=", "<>", "<", "<=", "<=>"), "_comparison"), "coalesce": "_coalesce",
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim", "length", "concat", "reverse"), "_text"),
    "substring": "_substring", "date_trunc": "_date_trunc", ADDRESS: "_address", "concat_ws": "_concat_ws", **METHODS,
    **dict.fromkeys(TABLE, "_of_table"),
}  # fmt: skip


def _describe_mismatch(name: str) -> str:
    return f"{name if name.isalpha() else 'a comparison'} takes values of one type, not"


def _count(name: str, nodes: list[ValueNode], least: int, most: int = 0) -> None:
    if not least <= len(nodes) <= (most or least):
        raise Refusal(f"{name} has too few or too many arguments here")


def _numeric(type: str) -> bool:
    return type in _NUMBERS or is_decimal(type)


def _digits(type: str) -> tuple[int, int]:
    return digits(type) if is_decimal(type) else (_OF_INTEGER[type], 0)


def _literal_digits(node: ValueNode) -> tuple[int, int]:
    """Returns precision and scale of a number.

    A literal whole number has only the digits that are written.
    """
    if node.function == "literal" and node.type in INTEGERS:
        return len(node.arguments[0].lstrip("-")), 0
    return _digits(node.type)


def _in_network(nodes: list[ValueNode]) -> ValueNode:
    """Types ``cidr_contains('10.0.0.0/8', ip)``."""
    example = "cidr_contains takes a network and a column of strings, as in cidr_contains('10.0.0.0/8', ip)"
    if len(nodes) != 2 or nodes[0].function != "literal" or any(node.type != "string" for node in nodes):
        raise Refusal(example)
    text: Any = nodes[0].arguments[0]
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise Refusal(f"{show_value(text)} is not a network, as '10.0.0.0/8' is") from None
    ends = map(text_of_address, (network.network_address, network.broadcast_address))
    return ValueNode("within", "boolean", (ValueNode("address", "string", (nodes[1],)), *ends))


def _type_of_text(text: str) -> str:
    """Returns the name of the type in a CAST.

    Raises Refusal: there is no such type.
    """
    match = _TYPE.fullmatch(text)
    name = match[1].lower() if match else ""
    name = _ALIASES.get(name, name)
    if match and name == "decimal":
        precision, scale = int(match[2] or 10), int(match[3] or 0)
        if 1 <= precision <= 38 and scale <= precision:
            return f"decimal({precision},{scale})"
    elif match and match[2] is None and (name in _NUMBERS or name in _INSTANTS or name in ("string", "boolean")):
        return name
    raise Refusal(
        f"CAST knows no type {show_value(text)}: write BIGINT, DOUBLE, DECIMAL(12, 2), STRING, DATE or the like"
    )


def _type_of(arrow: pa.DataType, name: str) -> str:
    """Returns Spark's type for values of a column.

    Raises Refusal: Spark cannot compute with them.
    """
    types = pa.types
    while types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        arrow = arrow.value_type
    kind = value_type(arrow)
    assert kind is not None
    if types.is_integer(arrow) and not types.is_uint64(arrow):
        width = arrow.bit_width * (2 if types.is_unsigned_integer(arrow) else 1)
        return {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[width]
    if types.is_floating(arrow):
        return "double" if arrow.bit_width == 64 else "float"
    if types.is_decimal(arrow) and 0 <= arrow.scale <= min(arrow.precision, 38):
        return f"decimal({min(arrow.precision, 38)},{arrow.scale})"
    if types.is_timestamp(arrow) and arrow.unit != "ns":
        return "timestamp_ntz" if arrow.tz is None else "timestamp"
    plain = {"bool": "boolean", "string": "string", "binary": "binary", "date": "date"}.get(kind.family.name.lower())
    if plain is None:
        raise Refusal(f"column {name!r} is {arrow}, and Spark has no such type to compute with: cast the column")
    return plain


def _arrow_zone(name: str) -> str:
    """Returns the name of a time zone in Arrow."""
    offset = time_zone(name).utcoffset(None)
    if offset is None:
        return name
    minutes = int(offset.total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
