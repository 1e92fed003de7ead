"""What means something else in another mode of Spark: computed values, told by their trees.

Such a value has a part that can overflow, be divided by zero or not fit a cast: an error in that
mode, and wrapped or NULL without. Or a whole number meets a FLOAT in it: as DOUBLE in that mode.
"""

from __future__ import annotations

from collections.abc import Iterable

from colmatch.errors import EventError
from colmatch.events.derived import constant
from colmatch.events.nodes import INTEGERS, Node, digits, is_decimal, node_of
from colmatch.schema import Attribute, Role

_CHECKED = "_checked"
_DIVISIONS = ("divide", "modulo")
_ARITHMETIC = ("add", "subtract", "multiply", "negate", "abs")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # of the largest number; one less always fit


def moded_value(attributes: Iterable[Attribute]) -> str | None:
    """Returns the name of a computed value whose meaning depends on the mode, None without any."""
    for attribute in attributes:
        if attribute.role is Role.COMPUTED and depends_on_mode(node_of(str(attribute.key))):
            return attribute.path[0]
    return None


def sized_column(attributes: Iterable[Attribute]) -> str | None:
    """Returns a list or map that ``size`` is asked of, None without any."""
    return next((".".join(attribute.path) for attribute in attributes if attribute.role is Role.SIZE), None)


def depends_on_mode(node: Node) -> bool:
    """Says whether a value means something else in the other mode."""
    if node.function in ("column", "literal"):
        return False
    parts = _parts(node)
    if any(map(depends_on_mode, parts)) or _meets_float(node, parts):
        return True
    if _is_constant(node):  # all parts are the same in both modes
        return not _can_be_computed(_in_ansi_mode(node, parts))
    name = node.function.removesuffix(_CHECKED)
    if name == "cast":
        return _may_not_fit(parts[0].type, node.type)
    if name in _DIVISIONS:
        return not _is_divisor(parts[1])
    return name in _ARITHMETIC and node.type in INTEGERS


def _parts(node: Node) -> list[Node]:
    return [] if node.function in ("column", "literal") else [a for a in node.arguments if isinstance(a, Node)]


def _meets_float(node: Node, parts: list[Node]) -> bool:
    """Says whether whole numbers and FLOATs get one type: FLOAT, or with ANSI mode DOUBLE."""
    if node.function in ("cast", "divide", "divide" + _CHECKED):
        return False
    casts = [(part.type, _parts(part)[0].type) for part in parts if part.function == "cast"]
    if any(to == "float" and have in INTEGERS for to, have in casts):
        return True
    have = {have for to, have in casts if to == "double"}
    return len(casts) == len(parts) and "float" in have and not have.isdisjoint(INTEGERS)


def _may_not_fit(have: str, to: str) -> bool:
    """Says whether a cast may fail."""
    if have == "string":
        return True
    if to in INTEGERS:
        if have in INTEGERS:
            return INTEGERS.index(have) > INTEGERS.index(to)
        return have != "boolean" and not (is_decimal(have) and _whole(have) < _DIGITS[to])
    if not is_decimal(to) or not is_decimal(have):
        return is_decimal(to) and (1 if have == "boolean" else _DIGITS[have]) > _whole(to)
    rounded = digits(have)[1] > digits(to)[1]  # 9.9 to 10
    return _whole(have) + rounded > _whole(to)


def _whole(type: str) -> int:
    """Returns the digits of a decimal type before the point."""
    precision, scale = digits(type)
    return precision - scale


def _is_constant(node: Node) -> bool:
    return node.function == "literal" or (node.function != "column" and all(map(_is_constant, _parts(node))))


def _is_divisor(node: Node) -> bool:
    """Says whether what something is divided by is known, and is not zero."""
    return _is_constant(node) and constant(node).as_py() != 0


def _in_ansi_mode(node: Node, parts: list[Node]) -> Node:
    if node.function == "cast":
        return node._replace(arguments=(parts[0], "ansi", *node.arguments[2:]))
    checked = node.function in (*_DIVISIONS, *_ARITHMETIC) and not is_decimal(node.type)
    return node._replace(function=node.function + _CHECKED) if checked else node


def _can_be_computed(node: Node) -> bool:
    try:
        constant(node)
    except EventError:
        return False
    return True
