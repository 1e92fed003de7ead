"""Values in variants: ``variant_get(v, '$.a.b', 'int')``, ``v:a.b::int``, ``is_variant_null(v)``.

All ways to name a value in a variant become a path and a cast, so they share an attribute.
"""

from __future__ import annotations

from collections.abc import Callable

from colmatch.events.computed.nodes import INSTANTS, NUMBERS, VARIANT, ValueNode
from colmatch.expr.ast import Refusal
from colmatch.expr.computed import JSON_FIELD, ComputedValue
from colmatch.expr.functions import TABLE
from colmatch.text.json_paths import variant_steps

WRITE_VARIANT = "name a value and its type, as in v:a.b::int, or variant_get(v, '$.a.b', 'int')"
_GETS = {"variant_get": "cast", "try_variant_get": "try_cast"}
_CASTS = ("string", "boolean", *NUMBERS, *INSTANTS)
_ZONED = ("string", *INSTANTS)


def simplify_variant(value: ComputedValue) -> ComputedValue:
    """Writes ``variant_get`` as a path and a cast; other values stay as they are."""
    name, arguments = value
    if name not in _GETS:
        return value
    literals = [
        part.arguments[1] for part in arguments[1:] if part.function == "literal" and part.arguments[0] == "string"
    ]
    if len(literals) < len(arguments) - 1:
        raise Refusal(f"{name} takes a literal path and a literal type, as in {TABLE[name].call}")
    within = ComputedValue("variant_get", arguments[:2])
    is_whole = len(arguments) < 3 or literals[1].strip().lower() == VARIANT
    return within if is_whole else ComputedValue(_GETS[name], (within, literals[1]))


class VariantRules:
    """The types of values in variants, a base class of ``Typing``."""

    _zone: str
    node: Callable[[ComputedValue], ValueNode]
    normal: Callable[[ComputedValue], ComputedValue]

    def _within(self, name: str, value: ComputedValue, path: ComputedValue) -> ComputedValue:
        """Returns the normal form of a path into a variant, or with a colon into a JSON text."""
        of = self.normal(value)
        type = self.node(of).type
        if type not in (VARIANT, "void") and name != JSON_FIELD:
            raise Refusal(f"{name} needs a variant, not {type}: write parse_json(payload) for a JSON text")
        return ComputedValue(JSON_FIELD if type == VARIANT else "get_json_object", (of, path))

    def _part_of_variant(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        of, path = nodes[0], nodes[1].arguments[0]
        try:
            steps = variant_steps(path)
        except ValueError as error:
            raise Refusal(str(error)) from None
        return ValueNode("variant_at", VARIANT, (of, path)) if steps else of

    def _cast_variant(self, node: ValueNode, type: str, is_tried: bool) -> ValueNode:
        if type not in _CASTS and not type.startswith("decimal"):
            raise Refusal(f"a variant is not cast to {type}: cast it to STRING, BIGINT, DOUBLE, DATE or the like")
        return ValueNode(
            "cast_variant", type, (node, "try" if is_tried else "", self._zone if type in _ZONED else "UTC")
        )
