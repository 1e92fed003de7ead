"""Casts that Spark inserts where a text meets a value of another type (``Options.casts``).

The rules are those of Spark 4.3. Comparisons have other rules than choices among values, as in
``coalesce``, and both differ with ANSI. ``CastRules`` applies them within computed values,
``CastBinder`` of ``bind_casts.py`` to comparisons with literals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from colmatch.errors import EventError
from colmatch.events.computed.derived import constant
from colmatch.events.computed.nodes import (
    FRACTIONS,
    INSTANTS,
    INTEGERS,
    ValueNode,
    digits,
    is_constant,
    is_decimal,
    is_number,
)
from colmatch.expr.computed import ComputedValue
from colmatch.expr.functions import ANY_NUMBER, BIGINT, DOUBLE, INT, NUMBER, STRING, TEXT, WRITTEN

OR_CASTS = ', or build with Options(casts="spark")'  # the end of errors about a text and another type
_CHOSEN = frozenset({"coalesce", "CASE", "in"})  # functions whose values get one type, a text among them
# functions that take texts alone, in Spark, too
_STRICT = frozenset(
    {"get_json_object", "json_array_length", "parse_url", "try_parse_url", "soundex", "mask", "to_timestamp"}
)
_NUMBERS = {DOUBLE: "double", BIGINT: "bigint", INT: "int"}  # arguments that texts are read for


def is_shown(type: str) -> bool:
    """Returns whether Spark makes a text of a value where it meets texts."""
    return is_number(type) or type in INSTANTS


def _read_type(other: str) -> str | None:
    """Returns the type that ANSI mode gives to a text and what it meets, None if there is none."""
    if other in INTEGERS:
        return "bigint"
    if other in FRACTIONS or is_decimal(other):
        return "double"
    return other if other in INSTANTS or other in ("boolean", "binary") else None


def compared_type(one: str, other: str, ansi: bool, is_equality: bool) -> str | None:
    """Returns the type that both sides of a comparison get if one is a text, else None.

    Without ANSI, a Boolean that equals a number becomes a number, too.
    """
    types = {one, other}
    if len(types) == 1 or "void" in types:
        return None
    if "string" not in types:
        number = other if one == "boolean" else one
        return number if "boolean" in types and is_number(number) and is_equality and not ansi else None
    value = other if one == "string" else one
    if ansi:
        return _read_type(value)
    if is_decimal(value):
        return "double" if digits(value)[1] else value
    return value if is_shown(value) or value in ("boolean", "binary") else None


def common_type(types: Sequence[str], ansi: bool, wider: Callable[[str, str], str]) -> str | None:
    """Returns the type of values of which one is chosen if some are texts, else None.

    wider : returns the type of two values without texts
    """
    if "string" not in types or set(types) <= {"string", "void"}:
        return None
    if not ansi:
        return "string" if all(is_shown(type) for type in types if type not in ("string", "void")) else None
    found = "void"
    for type in types:
        if "string" in (found, type) and found != type and "void" not in (found, type):
            read = _read_type(type if found == "string" else found)
            if read is None:
                return None
            found = read
        else:
            found = wider(found, type)
    return found


class CastRules:
    """The casts of texts within computed values, a base class of ``Typing``."""

    is_cast: bool  # whether texts are cast
    _is_moded: bool  # whether a value has casts that differ with ANSI
    _ansi: bool
    _cast: Callable[[ValueNode, str], ValueNode]
    _explicit: Callable[[ValueNode, str], ValueNode]
    _wider: Callable[[str, str, str], str]
    node: Callable[[ComputedValue], ValueNode]
    normal: Callable[[ComputedValue], ComputedValue]

    def or_casts(self, name: str, one: str, other: str) -> str:
        """Returns the end of an error about two types; empty if the option would not help."""
        is_taken = (
            (name in _CHOSEN or not name.isalpha())
            and "string" in (one, other)
            and compared_type(one, other, self._ansi, True) is not None
        )
        return OR_CASTS if is_taken and not self.is_cast else ""

    def _cast_all(self, nodes: Sequence[ValueNode], type: str | None) -> list[ValueNode]:
        """Casts values as a CAST does; without a type, they stay as they are."""
        if type is None:
            return list(nodes)
        self._is_moded = True
        return [self._cast(node, type) if node.type == "void" else self._explicit(node, type) for node in nodes]

    def _cast_chosen(self, name: str, nodes: list[ValueNode]) -> list[ValueNode]:
        """Casts values of which a function chooses one."""
        if not self.is_cast or name not in _CHOSEN:
            return nodes
        types = [node.type for node in nodes]
        return self._cast_all(nodes, common_type(types, self._ansi, lambda one, other: self._wider(name, one, other)))

    def _cast_compared(self, name: str, nodes: list[ValueNode]) -> list[ValueNode]:
        """Casts both sides of a comparison."""
        if not self.is_cast:
            return nodes
        return self._cast_all(
            nodes, compared_type(nodes[0].type, nodes[1].type, self._ansi, name in ("=", "<>", "<=>"))
        )

    def _cast_numbers(self, nodes: list[ValueNode], is_whole: bool = False) -> list[ValueNode]:
        """Casts texts that arithmetic is done with.

        is_whole : the function takes whole numbers, and no texts without ANSI
        """
        others = [node.type for node in nodes if node.type != "string"]
        if (
            not self.is_cast
            or len(others) == len(nodes)
            or not all(is_number(type) or type == "void" for type in others)
        ):
            return nodes
        if len(nodes) > 1 and self._ansi:
            return self._cast_all(nodes, _read_type(others[0])) if others and others[0] != "void" else nodes
        if is_whole:
            return nodes
        return [self._explicit(node, "double") if node.type == "string" else node for node in nodes]

    def _cast_conditions(self, name: str, nodes: list[ValueNode]) -> list[ValueNode]:
        """Casts texts that stand as conditions within AND, OR and NOT, as ANSI mode takes them."""
        if not self.is_cast or not self._ansi or name == "when":
            return nodes
        return [self._explicit(node, "boolean") if node.type == "string" else node for node in nodes]

    def _cast_argument(self, name: str, kind: str, node: ValueNode) -> ValueNode:
        """Casts an argument of a function that takes texts, or numbers."""
        if not self.is_cast or name in _STRICT:
            return node
        if kind == TEXT and node.function == "literal" and (is_number(node.type) or node.type == "boolean"):
            return self._write_literal(node)
        if kind in (STRING, WRITTEN) and (is_shown(node.type) or node.type == "boolean"):
            return self._explicit(node, "string")
        if kind == NUMBER and node.type == "string" and is_constant(node):
            return self._read_literal(node)
        return self._explicit(node, _NUMBERS[kind]) if kind in _NUMBERS and node.type == "string" else node

    def or_argument(self, name: str, kind: str, have: str) -> str:
        """Returns the end of an error about an argument; empty if the option would not help."""
        is_text = kind in (STRING, WRITTEN) and (have in INTEGERS or have in INSTANTS or is_decimal(have))
        is_read = kind in _NUMBERS or (kind == ANY_NUMBER and not (name.startswith("try_") and self._ansi))
        is_taken = name not in _STRICT and (is_text or (is_read and have == "string"))
        return OR_CASTS if is_taken and not self.is_cast else ""

    def _cast_days(self, name: str, node: ValueNode) -> ValueNode:
        """Casts a text that is added to a date: any text with ANSI, else a literal whole number."""
        if not self.is_cast or name == "datediff" or node.type != "string" or not (self._ansi or is_constant(node)):
            return node
        return _strict_int(node)

    def _decoded(self, arguments: tuple[ComputedValue, ...]) -> tuple[ComputedValue, ...]:
        """Returns the arguments of ``decode`` with the last value that Spark adds, a NULL text.

        Floats and doubles do not become texts, and keep their type.
        """
        if not self.is_cast or len(arguments) < 3 or len(arguments) % 2 == 0:
            return arguments
        if any(self.node(self.normal(one)).type in FRACTIONS for one in arguments[2::2]):
            return arguments
        return (*arguments, ComputedValue("cast", (ComputedValue("null", ()), "string")))

    @staticmethod
    def _read_literal(node: ValueNode) -> ValueNode:
        """Returns the whole number of a literal text, as a literal; other texts are unchanged."""
        try:
            number = constant(_strict_int(node)).as_py()
        except EventError:
            number = None
        return node if number is None else ValueNode("literal", "int", (str(number),))

    def _write_literal(self, node: ValueNode) -> ValueNode:
        """Returns the text of a literal, as a literal."""
        return ValueNode("literal", "string", (constant(self._explicit(node, "string")).as_py(),))


def _strict_int(node: ValueNode) -> ValueNode:
    """Returns a text as an int, which is an error in both modes of ANSI if it is none."""
    return ValueNode("cast", "int", (node, "ansi"))
