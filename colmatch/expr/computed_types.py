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

from colmatch.errors import EventError, show_value
from colmatch.events.computed.derived import check_constants
from colmatch.events.computed.modes import depends_on_mode
from colmatch.events.computed.nodes import (
    FRACTIONS,
    INSTANTS,
    INTEGERS,
    NOW,
    NUMBERS,
    VARIANT,
    VERSION,
    WHOLE,
    ValueNode,
    arrow_type,
    digits,
    is_decimal,
    is_number,
)
from colmatch.expr.ast import Refusal
from colmatch.expr.casts import OR_CASTS, CastRules
from colmatch.expr.computed import ADDRESS, JSON_FIELD, MAP_PARTS, SECONDS, XOR, ComputedValue
from colmatch.expr.computed_containers import COMPARISONS, ContainerRules, type_of
from colmatch.expr.computed_rules import BYTEWISE, METHODS, TypeRules, bytewise, fill, simplify_call
from colmatch.expr.functions import ANY, ANY_NUMBER, SYNONYMS, TABLE, TIMESTAMP, VALUE, Function
from colmatch.expr.solvable import steps_of
from colmatch.expr.times import LENGTHS, TimeRules, clock_word, read_unit, simplify_time
from colmatch.expr.variants import WRITE_VARIANT, VariantRules, simplify_variant
from colmatch.given.options import Options
from colmatch.given.schema import Column, Schema, Shape, definition_named, value_type
from colmatch.given.session import Session, SessionParts, time_zone
from colmatch.lowering.floors import LiteralErrors, literal_floors
from colmatch.lowering.forms import Kind
from colmatch.lowering.solve import Step
from colmatch.text.addresses import text_of_address

_LONG_DIGITS = 18  # of decimals whose digits are whole numbers of 64 bits
_OF_INTEGER = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_ALIASES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "dec": "decimal",
    "numeric": "decimal", "bool": "boolean", "timestamp_ltz": "timestamp", "text": "string", "varchar": "string",
    "int2": "smallint", "int4": "int", "int8": "bigint", "float4": "float", "float8": "double", "timestamptz": "timestamp",
    "int64": "bigint", "float64": "double",
}  # fmt: skip
_TYPE = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9]*)\s*(?:\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))?\s*", re.ASCII)
_CASTS = {  # type -> types that can be cast to it, besides itself
    "boolean": ("number", "decimal", "string"), "tinyint": ("number", "decimal", "boolean", "string", "timestamp"),
    "float": ("number", "decimal", "boolean", "string", "timestamp"),
    "string": ("integer", "boolean", "date", "timestamp", "timestamp_ntz", "decimal"),
    "date": ("timestamp", "timestamp_ntz", "string"), "timestamp": ("date", "timestamp_ntz", "string", "number"),
    "timestamp_ntz": ("date", "timestamp", "string"), "decimal": ("integer", "decimal", "boolean", "string"),
}  # fmt: skip
_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month", "mm": "month",
    "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
    "millisecond": "millisecond", "microsecond": "microsecond",
}  # fmt: skip
WRITE_VERSION = (
    "a version is compared with another one, as in semver(v) >= semver('1.2.0'), or semver(v) IN (semver('1.2.0'))"
)
_EXTREMES = ("array_max", "array_min")
_COMMUTE = frozenset({"+", "*", "=", "<=>", "&", "|", "^"})


def definition_of(
    schema: Schema, value_of: Callable[[str], ComputedValue] | None, path: tuple[str, ...]
) -> ComputedValue | None:
    """Returns the value of the definition of this name, None for another name.

    Raises Refusal: it cannot be a part of a value.
    """
    name = definition_named(schema, path)
    return None if name is None or value_of is None else value_of(name)


class Typing(TypeRules, ContainerRules, TimeRules, CastRules, VariantRules):
    """The types of computed values over one schema."""

    def __init__(self, schema: Schema, options: Options) -> None:
        self._schema = schema
        self.is_ansi = self._ansi = options.ansi
        self.is_cast, self._is_moded = options.casts == "spark", False
        self._zone = _arrow_zone(options.timezone)
        self._session = Session(options.timezone)
        self.session_parts = SessionParts()
        self._known: dict[ComputedValue, tuple[str, ValueNode]] = {}
        self.value_of_definition: Callable[[str], ComputedValue] | None = None

    def of(self, value: ComputedValue) -> tuple[str, ValueNode]:
        """Returns the name of a value, which is the text of its normal form, and its node.

        Raises Refusal: the value does not fit the schema, or cannot be computed as in Spark.
        """
        result = self._known.get(value)
        if result is None:
            self._is_moded = False
            normal = self.normal(value)
            node = self.node(normal)
            try:
                check_constants(node)
            except EventError as error:
                raise Refusal(f"{normal.sql()} cannot be computed: {error}") from None
            result = self._known[value] = normal.sql(), node
            self.note(normal, node)
        return result

    def note(self, normal: ComputedValue, node: ValueNode) -> None:
        """Notes a value that depends on the time zone of the session, or has casts of its mode."""
        if self._is_moded:
            self.note_casts(normal)
            self._is_moded = False
        if self.session_parts.zone is None and _mentions(node, self._zone):
            self.session_parts = self.session_parts.with_others(SessionParts(zone=normal.sql()))

    def note_casts(self, value: ComputedValue) -> None:
        """Notes a value that gets other casts in the other mode of ANSI."""
        self.session_parts = self.session_parts.with_others(SessionParts(ansi=value.sql()))

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

    def normal(self, value: ComputedValue) -> ComputedValue:
        """Returns the normal form of a value.

        Raises Refusal: it does not fit the schema.
        """
        name, arguments = value = simplify_variant(simplify_time(value))
        if name == "column":
            word = definition_of(self._schema, self.value_of_definition, arguments) or clock_word(
                self._schema, arguments
            )
            return ComputedValue("column", self._path(arguments)) if word is None else self.normal(word)
        if name in ("literal", "interval"):
            return value
        if name in ("timestampadd", "timestampdiff"):
            unit = ComputedValue("literal", ("string", read_unit(name, arguments[0]).upper()))
            return ComputedValue(name, (unit, *map(self.normal, arguments[1:])))
        if name in ("cast", "try_cast"):
            return ComputedValue(name, (self.normal(arguments[0]), _type_of_text(arguments[1])))
        name = SYNONYMS.get(name, name)
        if name in (JSON_FIELD, "get_json_object"):
            self.check_json(arguments)
        if name in (JSON_FIELD, "variant_get"):
            return self._within(name, *arguments)
        if name == "field":  # of an element of a list
            return ComputedValue(name, (self.normal(arguments[0]), *arguments[1:]))
        if name in (*_EXTREMES, "array_position", WHOLE):
            return ComputedValue(name, arguments)
        if name == "array":
            raise Refusal("array(...) is compared with a list, as in tags = array('a', 'b')")
        if name in MAP_PARTS:
            instead = f"exists({name}(m), x -> x = 'a') or array_contains({name}(m), 'a')"
            raise Refusal(f"{name} makes a list: write {instead}")
        if name in ("entry", "element_at", "try_element_at", "get", "map_contains_key", "size"):
            column = arguments[0]
            if column.function == "column":
                column = ComputedValue("column", self._find_column(column.arguments).path)
            return ComputedValue(name, (column, *arguments[1:]))
        if name in COMPARISONS:
            name, arguments = self.compare_whole(value)
        function = TABLE.get(name)
        if function is not None and function.value:
            self._check_arguments(function, arguments)
            return self.normal(fill(function.value, arguments))
        name, arguments = simplify_call(name, self._decoded(arguments) if name == "decode" else arguments)
        if name == "literal":
            return ComputedValue(name, arguments)
        parts = [self.normal(argument) for argument in arguments]
        if name == XOR:
            for part in parts:
                self._check_condition(self.node(part))
            name = "<>"
        if name in (">", ">="):
            name = "<" if name == ">" else "<="
            parts.reverse()
        if name in _COMMUTE and len(parts) == 2:
            parts.sort(key=ComputedValue.sql)
        return ComputedValue(name, tuple(parts))

    def _check_arguments(self, function: Function, arguments: tuple[ComputedValue, ...]) -> None:
        """Raises Refusal: a function that is written with others does not take an argument."""
        for kind, argument in zip(function.arguments, arguments, strict=False):
            node = self.node(self.normal(argument))
            if kind != ANY and not (self.is_cast and kind == ANY_NUMBER and node.type == "string"):
                self._take(function, kind, node)

    def _check_condition(self, node: ValueNode) -> None:
        if node.type not in ("boolean", "void"):
            raise Refusal(f"XOR takes conditions, not {node.type}: compare it with something, or write a ^ b for bits")

    def _path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        column = self._find_column(path)
        if column.shape not in (Shape.SCALAR, Shape.VARIANT):
            raise Refusal(
                f"column {column.name!r} is {column.arrow}, which nothing can be computed of{_suggest_values(column)}"
            )
        return column.path

    # Types

    def node(self, normal: ComputedValue) -> ValueNode:
        """Returns the tree of a value in normal form."""
        name, arguments = normal
        if name in _OF_ARGUMENTS:
            typed: ValueNode = getattr(self, _OF_ARGUMENTS[name])(name, arguments)
            return typed
        nodes = [self.node(argument) for argument in arguments if isinstance(argument, ComputedValue)]
        method: Callable[[str, list[ValueNode]], ValueNode] = getattr(self, _METHODS[name])
        if name in BYTEWISE and any(node.type == "binary" for node in nodes):
            return bytewise(name, nodes, method)
        return method(name, nodes)

    def _constant(self, name: str, arguments: tuple[Any, ...]) -> ValueNode:
        return _CONSTANTS[name]

    def _column(self, name: str, path: tuple[str, ...]) -> ValueNode:
        return ValueNode("column", type_of(self._schema.column(path).arrow, ".".join(path)), path)

    def _written_cast(self, name: str, arguments: tuple[Any, ...]) -> ValueNode:
        node, type = self.node(arguments[0]), arguments[1]
        if node.type == VARIANT:
            return self._cast_variant(node, type, name == "try_cast")
        cast = self._explicit(node, type)
        is_tried = name == "try_cast" and cast.function == "cast"
        return _make_try_cast(cast) if is_tried else cast

    def _literal(self, name: str, arguments: tuple[str, str]) -> ValueNode:
        type, text = arguments
        if type not in INSTANTS:
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
        if (node.type, type) == ("interval_days", "interval"):
            return node._replace(type=type)
        zoned = "timestamp" in (node.type, type)
        return ValueNode("cast", type, (node, "ansi" if self._ansi else "", *([self._zone] if zoned else [])))

    def _explicit(self, node: ValueNode, type: str) -> ValueNode:
        have = node.type
        if have in (type, "void"):
            return self._cast(node, type)
        classes = {
            have.partition("(")[0],
            "integer" if have in INTEGERS else have,
            "number" if have in NUMBERS else have,
        }
        group = type.partition("(")[0]
        group = "tinyint" if group in INTEGERS else "float" if group == "double" else group
        if not classes & set(_CASTS.get(group, ())):
            itself = type == "string" or (is_decimal(type) and have in NUMBERS)
            instead = "compare the value itself" if itself else "cast the column of the events beforehand"
            raise Refusal(f"CAST of {have} to {type} is not computed as Spark does it: {instead}")
        return self._cast(node, type)

    def _common(self, name: str, nodes: list[ValueNode]) -> list[ValueNode]:
        """Casts all arguments to the type that Spark finds for them."""
        nodes = self._cast_chosen(name, nodes)
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
        if one in INSTANTS and other in INSTANTS:
            return max(one, other, key=INSTANTS.index)
        if {one, other} == {"interval", "interval_days"}:
            return "interval"
        if not (is_number(one) and is_number(other)):
            given = {VERSION: WRITE_VERSION, VARIANT: WRITE_VARIANT}
            instead = given.get(one) or given.get(other) or "cast one of them"
            raise Refusal(f"{_describe_mismatch(name)} {one} and {other}: {instead}{self.or_casts(name, one, other)}")
        if is_decimal(one) or is_decimal(other):
            if {one, other} & {*FRACTIONS}:
                return "double"
            (p, s), (q, t) = _digits(one), _digits(other)
            return f"decimal({max(p - s, q - t) + max(s, t)},{max(s, t)})"
        wide = max(one, other, key=NUMBERS.index)
        return "double" if wide == "float" and self._ansi else wide

    def wider(self, one: str, other: str) -> str:
        """Returns the type for values of two types.

        Raises Refusal: there is none.
        """
        return self._wider("IN", one, other)

    # Functions

    def _arithmetic(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        moments = self.sum_of_moments(name, nodes)
        if moments is not None:
            return moments
        nodes = self._cast_numbers(nodes)
        for node in nodes:
            if not is_number(node.type):
                instead = ": write datediff(later, day), in days, or at + INTERVAL 7 DAYS" * (node.type in INSTANTS)
                if node.type == "string" and not self.is_cast:
                    instead = f": cast it, as in CAST(s AS DOUBLE){OR_CASTS}"
                raise Refusal(f"{name!r} needs numbers, not {node.type}{instead}")
        checked = "_checked" if self._ansi else ""
        exact = any(is_decimal(node.type) for node in nodes) and not {n.type for n in nodes} & {*FRACTIONS}
        if exact and name == "%":
            return self._decimal_rest(nodes)
        if exact and name == "/":
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

    def _tried(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types arithmetic that is NULL where it fails.

        In ANSI mode, it takes no texts: Spark would pass over any error in its arguments then.
        """
        nodes = nodes if self._ansi else self._cast_numbers(nodes)
        for node in nodes:
            self._argument(TABLE[name], ANY_NUMBER, node)
        node = self._arithmetic(_TRIED[name], nodes)
        if name == "try_mod" and is_decimal(node.type):
            return node._replace(function="modulo_decimal")
        return node if is_decimal(node.type) else node._replace(function=name)

    def _pmod(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types the rest of a division with the sign of the second number."""
        nodes = self._cast_numbers(nodes)
        for node in nodes:
            self._argument(TABLE[name], ANY_NUMBER, node)
        rest = self._arithmetic("%", nodes)
        narrow = rest.type in ("tinyint", "smallint")  # Spark adds these as ints
        rest_and, other = [self._cast(node, "int") if narrow else node for node in (rest, nodes[1])]
        lifted = self._arithmetic("%", [self._arithmetic("+", [rest_and, other]), other])
        below = self._comparison("<", [rest, ValueNode("literal", "int", ("0",))])
        return self._case("case", [below, self._cast(lifted, rest.type) if narrow else lifted, rest])

    def _unary(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        if nodes[0].type in LENGTHS:
            return ValueNode(name, nodes[0].type, tuple(nodes))
        nodes = self._cast_numbers(nodes)
        if not is_number(nodes[0].type):
            raise Refusal(f"{name} needs a number, not {nodes[0].type}")
        checked = "_checked" if self._ansi and nodes[0].type in INTEGERS else ""
        return ValueNode(name + checked, nodes[0].type, tuple(nodes))

    def _comparison(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        if all(node.type == "void" for node in nodes):
            nodes = [self._cast(node, "boolean") for node in nodes]
        both = tuple(self._common(name, self._cast_compared(name, nodes)))
        if both[0].type == VARIANT:
            raise Refusal(f"variants are not compared as a whole: {WRITE_VARIANT}")
        if name in ("<=", "<>"):  # of a total order
            inner = ValueNode("less", "boolean", both[::-1]) if name == "<=" else ValueNode("equal", "boolean", both)
            return ValueNode("not", "boolean", (inner,))
        return ValueNode({"=": "equal", "<": "less", "<=>": "same"}[name], "boolean", both)

    def _decimal_rest(self, nodes: list[ValueNode]) -> ValueNode:
        """Types the remainder of decimals of up to 18 digits."""
        (p, s), (q, t) = (_literal_digits(node) for node in nodes)
        scale = max(s, t)
        if max(p - s, q - t) + scale > _LONG_DIGITS:
            raise Refusal(f"'%' of decimals of more than {_LONG_DIGITS} digits is not computed: cast one to DOUBLE")
        both = [
            self._cast(node, f"decimal({d - e + scale},{scale})")
            for node, d, e in zip(nodes, (p, q), (s, t), strict=True)
        ]
        return ValueNode(
            "modulo_decimal" + "_checked" * self._ansi, f"decimal({min(p - s, q - t) + scale},{scale})", tuple(both)
        )

    def _in(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types ``s IN (n, 1)``, whose values get one type."""
        value, *members = self._common(name, nodes)
        tests = tuple([ValueNode("equal", "boolean", (value, member)) for member in members])
        return tests[0] if len(tests) == 1 else ValueNode("or", "boolean", tests)

    def _coalesce(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        both = self._common(name, nodes)
        return ValueNode("coalesce", both[0].type, tuple(both))

    def _address(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        return ValueNode("address", "string", tuple(nodes))

    def _part(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        needs_time = name == SECONDS or TABLE[name].arguments == (TIMESTAMP,)
        node = self._read_text(nodes[0], "timestamp" if needs_time else "date")
        if node.type not in INSTANTS or (node.type == "date" and needs_time):
            example = "extract(SECOND FROM at)" if name == SECONDS else TABLE[name].call
            raise Refusal(
                f"{name.split()[0]} needs a {'date or ' * (not needs_time)}timestamp, not {node.type}, as in {example}"
            )
        result = "decimal(8,6)" if name == SECONDS else "int"
        return ValueNode(name, result, (node, *([self._zone] if node.type == "timestamp" else [])))

    def _date_trunc(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        unit, of = nodes[0], self._read_text(nodes[1], "timestamp")
        unit_name = _UNITS.get(str(unit.arguments[0]).lower()) if unit.function == "literal" else None
        if unit_name is None or of.type not in INSTANTS:
            raise Refusal("date_trunc takes a unit and a timestamp, as in date_trunc('month', at)")
        return ValueNode("date_trunc", "timestamp", (self._cast(of, "timestamp"), unit_name, self._zone))

    def _in_network(self, name: str, nodes: list[ValueNode]) -> ValueNode:
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


def _make_try_cast(node: ValueNode) -> ValueNode:
    """Makes a cast NULL where it fails, in either mode."""
    return node._replace(function="try_cast", arguments=(node.arguments[0], "", *node.arguments[2:]))


def _suggest_values(column: Column) -> str:
    """Suggests values to compute with for a column that holds several values."""
    name = column.name
    if column.shape is Shape.LIST:
        return f": name an element, as in {name}[0], or write size({name}) for their number"
    if column.shape is Shape.STRUCT and {"value", "metadata"} <= {field.name for field in column.arrow}:
        return f": if it is a variant, declare it in the schema, as in '{name} variant'"
    if column.shape is Shape.MAP:
        return f": name an entry, as in {name}['key'], or write size({name}) for their number"
    return ""


def _mentions(node: ValueNode, zone: str) -> bool:
    """Returns whether a part of the value is computed by the clocks of a zone."""
    is_zoned = node.function in _ZONED and zone in node.arguments[1:]
    return is_zoned or any(_mentions(part, zone) for part in node.parts)


_ZONED = frozenset(
    {"cast", "try_cast", "cast_variant", "date_trunc", "add_micros", "add_months_time", "months_between", SECONDS}
    | {name for name, function in TABLE.items() if function.rule == "_part"}
    | {name + end for name, function in TABLE.items() if function.zoned for end in ("", "_checked")}
)
_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "%": "modulo"}
_TRIED = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%"}
_CONSTANTS = {"null": ValueNode("null", "void", ()), "current_timestamp": ValueNode(NOW, "timestamp", ())}
_OF_ARGUMENTS = {  # methods for what is no function of values
    **dict.fromkeys(_CONSTANTS, "_constant"), "column": "_column", "literal": "_literal", "interval": "_literal_interval",
    "entry": "_entry", "field": "_field", **dict.fromkeys(("element_at", "try_element_at", "get"), "_element_at"),
    "map_contains_key": "_contains_key", "size": "_size", WHOLE: "_whole", **dict.fromkeys(_EXTREMES, "_extreme_of"),
    "array_position": "_position_of", "cast": "_written_cast", "try_cast": "_written_cast",
}  # fmt: skip
_METHODS = {  # for functions of values
    **dict.fromkeys(("+", "-", "*", "/", "%"), "_arithmetic"), "negate": "_unary", ADDRESS: "_address", JSON_FIELD: "_part_of_variant",
    **dict.fromkeys(("=", "<>", "<", "<=", "<=>"), "_comparison"), "in": "_in", **METHODS,
    **{name: function.rule for name, function in TABLE.items() if function.rule and function.kind == VALUE},
}  # fmt: skip


def _describe_mismatch(name: str) -> str:
    return f"{name if name.isalpha() else 'a comparison'} takes values of one type, not"


def _digits(type: str) -> tuple[int, int]:
    return digits(type) if is_decimal(type) else (_OF_INTEGER[type], 0)


def _literal_digits(node: ValueNode) -> tuple[int, int]:
    """Returns precision and scale of a number.

    A literal whole number has only the digits that are written.
    """
    if node.function == "literal" and node.type in INTEGERS:
        return len(node.arguments[0].lstrip("-")), 0
    return _digits(node.type)


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
    elif match and match[2] is None and (name in NUMBERS or name in INSTANTS or name in ("string", "boolean")):
        return name
    raise Refusal(
        f"CAST knows no type {show_value(text)}: write BIGINT, DOUBLE, DECIMAL(12, 2), STRING, DATE or the like"
    )


def _arrow_zone(name: str) -> str:
    """Returns the name of a time zone in Arrow."""
    offset = time_zone(name).utcoffset(None)
    if offset is None:
        return name
    minutes = int(offset.total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
