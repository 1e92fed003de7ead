"""Types of functions that choose, round, search texts or count days.

``simplify_call`` expresses some functions by others. ``Typing`` of ``computed_types.py`` has the
rules of arithmetic and of common types, which ``TypeRules`` uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from colmatch.errors import show_value
from colmatch.events.computed.maths import weekday
from colmatch.events.computed.nodes import INTEGERS, ValueNode, digits, is_decimal
from colmatch.events.computed.regexes import REGEXES
from colmatch.events.computed.texts import TEXTS
from colmatch.expr.ast import Refusal
from colmatch.expr.computed import MOST_PARTS, ComputedValue
from colmatch.expr.functions import CONSTANTS, ONLY_DATE, ONLY_TIMESTAMP, TABLE, TEXT, WHOLE, Function
from colmatch.text.like import read_like

_DIGITS_MOST = 15  # most places that round() takes
_FALSE = ComputedValue("literal", ("boolean", "false"))
_NULL = ComputedValue("null", ())
_EXAMPLES = {
    "if": "if(a > 5, 'x', 'y')", "nvl2": "nvl2(a, 1, 2)", "nullif": "nullif(a, 0)", "case_of": "CASE a WHEN 1 THEN 2 END",
    "decode": "decode(a, 1, 'x', 'y')", "left": "left(name, 2)", "right": "right(name, 2)", "locate": "locate('x', name)",
    "date_sub": "date_sub(day, 3)", "date_add": "date_add(day, 3)", "nanvl": "nanvl(price, 0)", "case": "CASE WHEN a > 5 THEN 1 END",
    "round": "round(price, 2)", "replace": "replace(name, 'a', 'b')", "instr": "instr(name, 'x')",
    "datediff": "datediff(later, day), in days", "reverse": "reverse(name)", "floor": "floor(price)", "ceil": "ceil(price)",
    "sign": "sign(price)", "sqrt": "sqrt(price)", "isnan": "isnan(price)", "greatest": "greatest(a, b)", "least": "least(a, b)",
    "pmod": "pmod(a, 7)",
}  # fmt: skip
_ARGUMENTS = {  # least and most
    "if": (2, 3), "nvl2": (3, 3), "nullif": (2, 2), "case_of": (3, MOST_PARTS), "decode": (3, MOST_PARTS), "left": (2, 2),
    "right": (2, 2), "locate": (2, 2), "date_sub": (2, 2), "date_add": (2, 2), "nanvl": (2, 2), "case": (2, MOST_PARTS),
    "round": (1, 2), "replace": (2, 3), "instr": (2, 2), "datediff": (2, 2), "greatest": (2, MOST_PARTS),
    "least": (2, MOST_PARTS), "pmod": (2, 2),
}  # fmt: skip


def check_count(name: str, arguments: Any) -> None:
    """Checks the number of arguments of a function of this module.

    Raises Refusal: there are too few, or too many.
    """
    least, most = _ARGUMENTS.get(name, (1, 1))
    if name in _EXAMPLES and not least <= len(arguments) <= most:
        raise Refusal(f"{name} has too few or too many arguments here: it is written {_EXAMPLES[name]}")


def simplify_call(name: str, arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Expresses a function and its arguments by fewer functions."""
    check_count(name, arguments)
    if name == "if":
        return "case", arguments
    if name == "nvl2":
        return "case", (ComputedValue("isnull", arguments[:1]), *arguments[:0:-1])
    if name == "nullif":
        return "case", (ComputedValue("=", arguments), _NULL, arguments[0])
    if name == "pmod":
        rest = ComputedValue("%", arguments)
        lifted = ComputedValue("%", (ComputedValue("+", (rest, arguments[1])), arguments[1]))
        return "case", (ComputedValue("<", (rest, _whole(0))), lifted, rest)
    if name == "nanvl":
        return "case", (ComputedValue("isnan", arguments[:1]), arguments[1], arguments[0])
    if name in ("case_of", "decode"):
        value, *others = arguments
        for i in range(0, len(others) - 1, 2):
            others[i] = ComputedValue("=" if name == "case_of" else "<=>", (value, others[i]))
        return "case", tuple(others)
    if name in ("left", "right"):
        return "substring", (arguments[0], *_ends(name, arguments[1]))
    if name == "locate":
        return "instr", arguments[::-1]
    if name == "date_sub":
        return "date_add", (arguments[0], _minus(arguments[1]))
    if name == "istrue":
        return "coalesce", (*arguments, _FALSE)
    if name == "isfalse":
        return "coalesce", (ComputedValue("not", arguments), _FALSE)
    return name, arguments


def _ends(name: str, count: ComputedValue) -> tuple[ComputedValue, ...]:
    """Returns the arguments of ``substring`` for a text's beginning or end."""
    if count.function != "literal" or count.arguments[0] != "int":
        raise Refusal(f"{name} takes a string and a whole number, as in {_EXAMPLES[name]}")
    number = max(int(count.arguments[1]), 0)
    if name == "left" or not number:
        return _whole(1), _whole(number)
    return (_whole(-number),)


def _whole(number: int) -> ComputedValue:
    return ComputedValue("literal", ("int", str(number)))


def _minus(value: ComputedValue) -> ComputedValue:
    if value.function == "literal" and value.arguments[0] == "int":
        return _whole(-int(value.arguments[1]))
    return ComputedValue("negate", (value,))


class TypeRules:
    """The types of functions, a base class of ``Typing``."""

    _ansi: bool
    _common: Callable[[str, list[ValueNode]], list[ValueNode]]
    _cast: Callable[[ValueNode, str], ValueNode]

    def _logic(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        both = tuple([self._cast(node, "boolean") if node.type == "void" else node for node in nodes])
        for node in both:
            if node.type != "boolean":
                raise Refusal(f"{name.upper()} takes conditions, not {node.type}: compare it with something")
        return ValueNode(name, "boolean", both)

    def _isnull(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        return ValueNode(name, "boolean", tuple(nodes))

    def _case(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        pairs, other = divmod(len(nodes), 2)
        results = [*nodes[1::2], *(nodes[-1:] if other else [ValueNode("null", "void", ())])]
        branches = self._common("CASE", results)
        conditions = self._logic("when", nodes[: 2 * pairs : 2]).arguments
        parts = [part for pair in zip(conditions, branches[:pairs], strict=True) for part in pair]
        return ValueNode("case", branches[0].type, (*parts, branches[-1]))

    def _rounded(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types ``floor`` and ``ceil``."""
        type = _number(name, nodes[0])
        if is_decimal(type):
            precision, scale = digits(type)
            return ValueNode(name, f"decimal({min(precision - scale + 1, 38)},0)", tuple(nodes)) if scale else nodes[0]
        if type in INTEGERS:
            return self._cast(nodes[0], "bigint")
        return ValueNode(name, "bigint", (self._cast(nodes[0], "double"),))

    def _round(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        type, places = _number(name, nodes[0]), 0
        if len(nodes) == 2:
            count = nodes[1]
            if count.function != "literal" or count.type != "int" or abs(int(count.arguments[0])) > _DIGITS_MOST:
                raise Refusal(f"round takes a literal number of digits up to {_DIGITS_MOST}, as in {_EXAMPLES[name]}")
            places = int(count.arguments[0])
        if places < 0 and type not in ("float", "double"):
            raise Refusal(f"round of {type} to tens or hundreds is not computed: cast it to DOUBLE")
        if type in INTEGERS:
            return nodes[0]
        if is_decimal(type):
            precision, scale = digits(type)
            least = min(places, scale)
            return ValueNode("round", f"decimal({min(precision - scale + 1 + least, 38)},{least})", (nodes[0],))
        return ValueNode("round_double", type, (nodes[0], places))

    def _double(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _number(name, nodes[0])
        return ValueNode(name, "boolean" if name == "isnan" else "double", (self._cast(nodes[0], "double"),))

    def _extreme(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        both = self._common(name, nodes)
        if both[0].type in ("boolean", "binary"):
            raise Refusal(f"{name} of {both[0].type} is not computed: write it with AND and OR")
        return ValueNode(name, both[0].type, tuple(both))

    def _bits(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        for node in nodes:
            if node.type not in INTEGERS:
                raise Refusal(f"{name!r} needs whole numbers, not {node.type}: cast it to BIGINT")
        both = self._common(name, nodes)
        if name != "div":
            return ValueNode(name, both[0].type, tuple(both))
        return ValueNode(
            "div" + "_checked" * self._ansi, "bigint", tuple([self._cast(node, "bigint") for node in both])
        )

    def _search(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types functions of a string and literal strings."""
        if len(nodes) < 2 or nodes[0].type != "string" or any(not _is_text(node) for node in nodes[1:]):
            raise Refusal(f"{name} takes a string and a literal, as in {_EXAMPLES.get(name, f'{name}(name, text)')}")
        texts = [node.arguments[0] for node in nodes[1:]]
        if name in ("like", "rlike"):
            _check_pattern(name, texts[0])
        if name == "replace":
            return ValueNode(name, "string", (nodes[0], *texts, *([""] if len(texts) == 1 else [])))
        return ValueNode(name, "int" if name == "instr" else "boolean", (nodes[0], *texts))

    def _days(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types ``date_add`` and ``datediff``."""
        if nodes[0].type not in ("date", "timestamp", "timestamp_ntz"):
            raise Refusal(f"{name} takes dates, not {nodes[0].type}, as in {_EXAMPLES[name]}")
        first = self._cast(nodes[0], "date")
        if name == "datediff" and nodes[1].type in ("date", "timestamp", "timestamp_ntz"):
            return ValueNode(name, "int", (first, self._cast(nodes[1], "date")))
        if name == "datediff" or nodes[1].type not in ("tinyint", "smallint", "int"):
            raise Refusal(f"{name} does not take {nodes[1].type} behind a date: write {_EXAMPLES[name]}")
        return ValueNode(name, "date", (first, self._cast(nodes[1], "int")))

    def _of_table(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types a function of ``functions.py``."""
        function = TABLE[name]
        least = len(function.arguments) - function.optional
        if not least <= len(nodes) <= len(function.arguments):
            raise Refusal(f"{name} has too few or too many arguments here: it is written {function.call}")
        if name == "make_date" and self._ansi:
            raise Refusal("make_date is not computed in ANSI mode, where an invalid date is an error")
        values, constants = list[ValueNode](), list[Any]()
        for kind, node in zip(function.arguments, nodes, strict=False):
            if kind in CONSTANTS:
                constants.append(_constant_of(function, kind, node))
            else:
                values.append(self._argument(function, kind, node))
        if name == "next_day" and self._ansi and weekday(constants[0]) is None:
            raise Refusal(f"{show_value(constants[0])} is no day of the week, which is an error in ANSI mode")
        try:
            if name in TEXTS:
                TEXTS[name][0]("", *constants)
            elif name in REGEXES:
                REGEXES[name](pa.array([""]), *constants)
        except ValueError as error:
            raise Refusal(f"{name} cannot be computed: {error}") from None
        result = values[0].type if function.result == WHOLE else function.result
        return ValueNode(name, result, (*values, *constants))

    def _argument(self, function: Function, kind: str, node: ValueNode) -> ValueNode:
        """Returns an argument of the type that a function needs."""
        have = node.type
        fits = {
            "string": have == "string",
            "double": have in (*INTEGERS, "float", "double") or is_decimal(have),
            "int": have in ("tinyint", "smallint", "int"),
            WHOLE: have in INTEGERS,
            "date": have in _INSTANTS,
            "timestamp": have in _INSTANTS,
            ONLY_DATE: have == "date",
            ONLY_TIMESTAMP: have == "timestamp",
        }[kind]
        kind = kind.rstrip("!")
        if have == "void":
            fits, kind = True, "int" if kind == WHOLE else kind
        if not fits:
            needed = {"int": "an int", WHOLE: "a whole number", "double": "a number"}.get(kind, f"a {kind}")
            raise Refusal(f"{function.name} needs {needed}, not {have}, as in {function.call}")
        if kind == WHOLE:
            kind = "bigint" if have == "bigint" else "int"
        return self._cast(node, kind)


_INSTANTS = ("date", "timestamp", "timestamp_ntz")


def _constant_of(function: Function, kind: str, node: ValueNode) -> str | int:
    """Returns the value of a literal. Raises Refusal: it is none, or of the wrong type."""
    literal = node.arguments[0] if node.function == "negate" and isinstance(node.arguments[0], ValueNode) else node
    type = "string" if kind == TEXT else "int"
    if literal.function != "literal" or literal.type != type:
        what = "a literal string" if kind == TEXT else "a literal whole number"
        raise Refusal(f"{function.name} takes {what} here, as in {function.call}")
    value = literal.arguments[0]
    return value if type == "string" else -int(value) if literal is not node else int(value)


def _number(name: str, node: ValueNode) -> str:
    """Returns the type of a number. Raises Refusal: the value is no number."""
    if node.type not in (*INTEGERS, "float", "double") and not is_decimal(node.type):
        raise Refusal(f"{name} needs a number, not {node.type}")
    return node.type


def _is_text(node: ValueNode) -> bool:
    return node.function == "literal" and node.type == "string"


def _check_pattern(name: str, pattern: str) -> None:
    """Raises Refusal: the text is no pattern."""
    try:
        if name == "like":
            read_like(pattern)
        else:
            pc.match_substring_regex(pa.array([""]), pattern)
    except (ValueError, pa.ArrowException) as error:
        raise Refusal(f"{pattern!r:.80} is not a pattern of {name.upper()}: {error}") from None


METHODS = {
    **dict.fromkeys(("and", "or", "not"), "_logic"), "isnull": "_isnull", "case": "_case", "round": "_round",
    **dict.fromkeys(("floor", "ceil"), "_rounded"), **dict.fromkeys(("sign", "sqrt", "isnan"), "_double"),
    **dict.fromkeys(("greatest", "least"), "_extreme"), **dict.fromkeys(("&", "|", "^", "div"), "_bits"),
    **dict.fromkeys(("like", "rlike", "startswith", "endswith", "contains", "instr", "replace"), "_search"),
    **dict.fromkeys(("date_add", "datediff"), "_days"),
}  # fmt: skip
