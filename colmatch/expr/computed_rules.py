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
from colmatch.events.computed.derived import constant
from colmatch.events.computed.digits import pieces_of_format
from colmatch.events.computed.failed import Unfit
from colmatch.events.computed.hashes import HASHES
from colmatch.events.computed.maths import weekday
from colmatch.events.computed.nodes import (
    BITS,
    FRACTIONS,
    INSTANTS,
    INTEGERS,
    NUMBERS,
    VARIANT,
    VERSION,
    ValueNode,
    digits,
    is_constant,
    is_decimal,
    is_number,
)
from colmatch.events.computed.regexes import REGEXES
from colmatch.events.computed.texts import TEXTS, TRIED
from colmatch.expr.ast import Refusal
from colmatch.expr.computed import (
    AT_ZONE,
    BETWEEN,
    CASE_OF,
    JSON_FIELD,
    JSON_KEYS,
    JSON_VALUE,
    SECONDS,
    TRIMS,
    ComputedValue,
)
from colmatch.expr.functions import (
    ANY,
    ANY_NUMBER,
    BIGINT,
    BINARY,
    BYTES,
    CONSTANTS,
    FORM,
    INT,
    INTERVAL,
    MOMENT,
    NUMBER,
    NUMERIC,
    ONLY_DATE,
    OPTION,
    STRING,
    TABLE,
    TEST,
    TEXT,
    WHOLE,
    WRITTEN,
    Function,
)
from colmatch.expr.times import negative
from colmatch.text.json_paths import path_of
from colmatch.text.like import LiteralPosition, read_like

_DIGITS_MOST = 15  # most places that round() takes
_FALSE = ComputedValue("literal", ("boolean", "false"))


def simplify_call(name: str, arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Expresses a function and its arguments by fewer functions."""
    if name == CASE_OF and len(arguments) < 3:
        raise Refusal(TABLE["case"].find_fault("CASE", 0))
    if name == CASE_OF or (name == "decode" and len(arguments) > 2):
        value, *others = arguments
        for i in range(0, len(others) - 1, 2):
            others[i] = ComputedValue("=" if name == CASE_OF else "<=>", (value, others[i]))
        return "case", tuple(others)
    if name == JSON_KEYS:
        return json_path(name, arguments[0], arguments[1:])
    if name == "locate":
        part, text, *place = arguments
        if place and not (place[0].function == "literal" and str(place[0].arguments[1]).lstrip("0").isdecimal()):
            raise Refusal("locate takes a literal place from 1 on, as in locate('x', name, 3)")
        if part.function == "literal" and part.arguments[1] == "":  # which is at 1, whatever the place
            place = []
        return "instr", (text, part, *place)
    if name == "date_sub" and arguments[1].function == "literal" and arguments[1].arguments[0] == "int":
        return "date_add", (arguments[0], _whole(-int(arguments[1].arguments[1])))
    if name == "istrue":
        return "coalesce", (*arguments, _FALSE)
    if name == "isfalse":
        return "coalesce", (ComputedValue("not", arguments), _FALSE)
    return name, arguments


def json_path(name: str, value: ComputedValue, steps: tuple[ComputedValue, ...]) -> ComputedValue:
    """Returns the value that steps lead to in a JSON text.

    name : how the last step is written
    """
    if name == JSON_VALUE:
        raise Refusal("-> gives a JSON value, which is not compared: write ->> for its text, as in doc->>'a'")
    if any(step.function != "literal" or step.arguments[0] not in ("string", "int") for step in steps):
        raise Refusal(
            "a path into JSON has literal keys and places, as in doc->'a'->>0, or get_json_object(doc, '$.a[0]')"
        )
    keys = [int(text) if type == "int" else text for type, text in (step.arguments for step in steps)]
    if name == JSON_KEYS and (not keys or any(str(key).isdigit() for key in keys)):
        raise Refusal(f"{JSON_KEYS} takes the names of fields here: write get_json_object(doc, '$.a[0]') for places")
    try:
        path = path_of(keys)
    except ValueError as error:
        raise Refusal(str(error)) from None
    function = JSON_FIELD if name == JSON_FIELD else "get_json_object"  # which may be of a variant
    return ComputedValue(function, (value, ComputedValue("literal", ("string", path))))


def fill(value: Any, arguments: tuple[Any, ...]) -> Any:
    """Makes the value of a function of the table that is written with others.

    Arguments that the call leaves out are left out of it, too.
    """
    if isinstance(value, int):
        return arguments[value]
    if not isinstance(value, tuple):
        return value
    name, *parts = value
    there = [fill(part, arguments) for part in parts if not isinstance(part, int) or part < len(arguments)]
    return ComputedValue(name, tuple(there))


def _whole(number: int) -> ComputedValue:
    return ComputedValue("literal", ("int", str(number)))


class TypeRules:
    """The types of functions, a base class of ``Typing``."""

    _ansi: bool
    _zone: str
    _common: Callable[[str, list[ValueNode]], list[ValueNode]]
    _cast: Callable[[ValueNode, str], ValueNode]
    _cast_numbers: Callable[..., list[ValueNode]]
    _cast_conditions: Callable[[str, list[ValueNode]], list[ValueNode]]
    _cast_argument: Callable[[str, str, ValueNode], ValueNode]
    _cast_days: Callable[[str, ValueNode], ValueNode]
    or_argument: Callable[[str, str, str], str]

    def _logic(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        nodes = self._cast_conditions(name, nodes)
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
        nodes[:1] = self._cast_numbers(nodes[:1])
        type = _number(name, nodes[0])
        if len(nodes) == 2:
            return self._rounded_to(name, *nodes)
        if is_decimal(type):
            precision, scale = digits(type)
            return ValueNode(name, f"decimal({min(precision - scale + 1, 38)},0)", tuple(nodes)) if scale else nodes[0]
        if type in INTEGERS:
            return self._cast(nodes[0], "bigint")
        return ValueNode(name + "_checked" * self._ansi, "bigint", (self._cast(nodes[0], "double"),))

    def _rounded_to(self, name: str, node: ValueNode, count: ValueNode) -> ValueNode:
        """Types ``floor`` and ``ceil`` of decimals to so many digits."""
        places = _constant_of(TABLE[name], NUMBER, count)
        if not is_decimal(node.type) or not isinstance(places, int) or abs(places) > _DIGITS_MOST:
            raise Refusal(f"{name} takes a decimal and up to {_DIGITS_MOST} digits, as in {name}(amount, 2): cast it")
        precision, scale = digits(node.type)
        whole, least = precision - scale + 1, max(min(places, scale), 0)
        whole = max(whole, 1 - places)
        if whole + least > 38:
            raise Refusal(f"{name} needs decimals of more than 38 digits: cast it to fewer")
        return ValueNode(f"{name}_to", f"decimal({whole + least},{least})", (node, places))

    def _round(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        nodes[:1] = self._cast_numbers(nodes[:1])
        type, places = _number(name, nodes[0]), 0
        if len(nodes) == 2:
            count = nodes[1]
            if count.function != "literal" or count.type != "int" or abs(int(count.arguments[0])) > _DIGITS_MOST:
                raise Refusal(f"round takes a literal number of digits up to {_DIGITS_MOST}, as in {TABLE[name].call}")
            places = int(count.arguments[0])
        if places < 0 and type not in FRACTIONS:
            raise Refusal(f"round of {type} to tens or hundreds is not computed: cast it to DOUBLE")
        if type in INTEGERS:
            return nodes[0]
        if is_decimal(type):
            precision, scale = digits(type)
            least = min(places, scale)
            return ValueNode("round", f"decimal({min(precision - scale + 1 + least, 38)},{least})", (nodes[0],))
        return ValueNode("round_double", type, (nodes[0], places))

    def _extreme(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        both = self._common(name, nodes)
        if both[0].type in ("boolean", "binary", VARIANT):
            raise Refusal(f"{name} of {both[0].type} is not computed: write it with AND and OR")
        return ValueNode(name, both[0].type, tuple(both))

    def _bits(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        nodes = self._cast_numbers(nodes, is_whole=True)
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
        """Types a test of a string by a literal string, and some tests by another string."""
        kinds = [TEXT if i and node.function == "literal" else STRING for i, node in enumerate(nodes)]
        nodes = [self._cast_argument(name, kind, node) for kind, node in zip(kinds, nodes, strict=True)]
        if nodes[1].type == "string" and is_constant(nodes[1]):
            text = constant(nodes[1]).as_py()
            nodes = nodes if text is None else [nodes[0], _literal(text)]
        if name in PAIRS and [node.type for node in nodes] == ["string", "string"] and not _is_text(nodes[1]):
            return ValueNode(PAIRS[name], "boolean", tuple(nodes))
        if nodes[0].type != "string" or not _is_text(nodes[1]):
            raise Refusal(f"{name} takes a string and a literal, as in {name}(name, 'x')")
        text = nodes[1].arguments[0]
        if name in ("like", "rlike"):
            _check_pattern(name, text)
        literal = read_like(text).literal if name == "like" else None
        if literal is not None:  # LIKE 'x%' and the like have quicker functions
            text = literal.decode()
            place = read_like(str(nodes[1].arguments[0])).place
            if place is LiteralPosition.WHOLE:
                return ValueNode("equal", "boolean", (nodes[0], _literal(text)))
            name = {LiteralPosition.HEAD: "startswith", LiteralPosition.TAIL: "endswith"}.get(place, "contains")
        return ValueNode(name, "boolean", (nodes[0], text))

    def _days(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types ``date_add``, ``date_sub`` and ``datediff``."""
        nodes = [self._read_text(nodes[0], "date"), *nodes[1:]]
        if nodes[0].type not in INSTANTS:
            raise Refusal(f"{name} takes dates, not {nodes[0].type}, as in {TABLE[name].call}")
        if name == "datediff_dates":
            if any(node.type not in ("date", "void") for node in nodes):
                raise Refusal("datediff with a unit is computed of dates alone: write datediff(later, day) for others")
            name = "datediff"
        first = self._cast(nodes[0], "date")
        if name == "datediff":
            nodes[1] = self._read_text(nodes[1], "date")
        if name == "datediff" and nodes[1].type in INSTANTS:
            return ValueNode(name, "int", (first, self._cast(nodes[1], "date")))
        nodes[1] = self._cast_days(name, nodes[1])
        if name == "datediff" or nodes[1].type not in ("tinyint", "smallint", "int"):
            raise Refusal(f"{name} does not take {nodes[1].type} behind a date: write {TABLE[name].call}")
        days = self._cast(nodes[1], "int")
        return ValueNode("date_add", "date", (first, days if name == "date_add" else negative(days)))

    def _of_table(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types a function of ``functions.py``."""
        function = TABLE[name]
        kinds = function.arguments
        if function.repeats:
            kinds += kinds[-1:] * (len(nodes) - len(kinds))
        if function.ansi and self._ansi:
            raise Refusal(f"{name} is not computed in ANSI mode, where {function.ansi}")
        values, constants = list[Any](), list[Any]()
        for kind, node in zip(kinds, nodes, strict=False):
            (constants if kind in CONSTANTS else values).append(self._take(function, kind, node))
        if name == "next_day" and self._ansi and weekday(constants[0]) is None:
            raise Refusal(f"{show_value(constants[0])} is no day of the week, which is an error in ANSI mode")
        try:
            if name in TEXTS or name in TRIED:
                _try_constants(TRIED.get(name, name), kinds, constants)
            elif name in _OF_COLUMNS and constants:
                _OF_COLUMNS[name](pa.array([""]), *constants)
            elif function.check is not None:
                function.check(*constants)
        except ValueError as error:
            raise Refusal(f"{name} cannot be computed: {error}") from None
        result = values[0].type if function.result == WHOLE else function.result
        zone = (self._zone,) if function.zoned else ()
        return ValueNode(name + "_checked" * (function.fails and self._ansi), result, (*values, *constants, *zone))

    def _nanvl(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        doubles = [node if node.type == "float" else self._argument(TABLE[name], "double", node) for node in nodes]
        first, second = self._common(name, doubles)
        return ValueNode(
            "case", first.type, (ValueNode("isnan", "boolean", (self._cast(first, "double"),)), second, first)
        )

    def _right(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        made = self._of_table(name, nodes)
        text, count = made.arguments
        return made._replace(function="substring", arguments=(text, -count) if count > 0 else (text, 1, 0))

    def _instr(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        made = self._of_table(name, nodes)
        places = made.arguments[2:]
        if not places:
            return made
        if not made.arguments[1]:  # an empty text is at 1, whatever the place
            return made._replace(arguments=made.arguments[:2])
        if not places[0] or min(places[1:], default=1) < 1:
            raise Refusal("instr counts places from 1, or from -1 at the end, and occurrences from 1")
        return made._replace(function="instr_from")

    def _concat_ws(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        is_null = nodes[0].type == "void"
        return ValueNode("null", "string", ()) if is_null else self._of_table(name, nodes)

    def _hex(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        if nodes[0].type in INTEGERS:
            return ValueNode("hex_of", "string", (self._cast(nodes[0], "bigint"),))
        return self._of_table(name, nodes)

    def _log(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        made = self._of_table(name, nodes)
        return made._replace(function="ln") if len(nodes) == 1 else made

    def _bit_get(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        node = self._of_table(name, nodes)
        if not 0 <= node.arguments[1] < BITS[nodes[0].type if nodes[0].type in BITS else "int"]:
            raise Refusal(f"bit_get counts bits from 0: {nodes[0].type} has {BITS[nodes[0].type]}")
        return node

    def _format_number(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        _number(name, nodes[0])
        form = _constant_of(TABLE[name], FORM, nodes[1])
        try:
            TEXTS[name][0](0, form)
        except ValueError as error:
            raise Refusal(f"{name} cannot be computed: {error}") from None
        return ValueNode(name, "string", (nodes[0], form))

    def _format_string(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        format = _constant_of(TABLE[name], TEXT, nodes[0])
        values = list[ValueNode]()
        try:
            pieces = pieces_of_format(str(format), len(nodes) - 1)
        except ValueError as error:
            raise Refusal(f"{name} cannot be computed: {error}") from None
        for piece, node in zip([piece for piece in pieces if piece.letter], nodes[1:], strict=True):
            if node.type not in INTEGERS and not (piece.letter == "s" and node.type in ("string", "boolean")):
                needed = "a whole number" if piece.letter == "d" else "a string, a whole number or a Boolean"
                raise Refusal(f"%{piece.letter} of {name} takes {needed}, not {node.type}")
            values.append(node)
        return ValueNode(name, "string", (*values, format))

    def _of_characters(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types ``ltrim`` and ``rtrim`` of other characters than spaces."""
        if len(nodes) != 2 or nodes[0].type != "string":
            raise Refusal("trim takes a literal and a string, as in trim(LEADING 'x' FROM name)")
        return ValueNode(name, "string", (nodes[0], _constant_of(TABLE["btrim"], TEXT, nodes[1])))

    def _elt(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types a CASE for the texts, which is an error at the end with ANSI."""
        place, *texts = [self._argument(TABLE[name], WRITTEN if i else INT, node) for i, node in enumerate(nodes)]
        if place.function == "literal" and 0 < int(place.arguments[0]) <= len(texts):
            return texts[int(place.arguments[0]) - 1]
        parts = list[ValueNode]()
        for i, text in enumerate(texts, 1):
            parts += [ValueNode("equal", "boolean", (place, ValueNode("literal", "int", (str(i),)))), text]
        return ValueNode(
            "case", "string", (*parts, ValueNode("elt_none" + "_checked" * self._ansi, "string", (place,)))
        )

    def _read_text(self, node: ValueNode, type: str) -> ValueNode:
        """Returns a text as a date or timestamp, as Spark reads it; other values are unchanged."""
        return self._cast(node, type) if node.type == "string" else node

    def _positive(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        nodes = self._cast_numbers(nodes)
        _number(name, nodes[0])
        return nodes[0]

    def _take(self, function: Function, kind: str, node: ValueNode) -> Any:
        """Returns an argument as a node, or the value of a constant."""
        node = self._cast_argument(function.name, kind, node)
        return _constant_of(function, kind, node) if kind in CONSTANTS else self._argument(function, kind, node)

    def _argument(self, function: Function, kind: str, node: ValueNode) -> ValueNode:
        """Returns an argument of the type that a function needs."""
        node = self._cast_argument(function.name, kind, node)
        have = node.type
        fits = have not in (VERSION, VARIANT) if kind == ANY else have.partition("(")[0] in _FITS[kind]
        kind = kind.rstrip("!")
        if fits and (kind in _UNCHANGED or (kind == NUMERIC and is_decimal(have))):
            return node
        if fits and have == "binary":
            return ValueNode("validate_utf8", "string", (node,))
        if have == "void":
            fits, kind = True, _OF_NULL.get(kind, kind)
        if not fits:
            hint = ": cast it" * (kind == STRING) + "; between conditions, write OR for ||" * (
                function.name == "concat"
            )
            needed = _WORDS.get(kind, f"a {kind}")
            raise Refusal(
                f"{function.name} needs {needed}, not {have}{hint}, as in {function.call}{self.or_argument(function.name, kind, have)}"
            )
        if kind in (WHOLE, NUMERIC):
            kind = "double" if have in FRACTIONS else "bigint" if have == "bigint" else "int"
        return self._cast(node, "string" if kind == WRITTEN else kind)


_OF_COLUMNS = {**REGEXES, **HASHES}
_ANY_NUMBER = (*NUMBERS, "decimal")
_FITS = {  # kind of an argument -> types that fit
    **dict.fromkeys((STRING, BYTES), ("string", "binary")), WRITTEN: ("string", *INTEGERS), BINARY: ("binary",),
    "int": ("tinyint", "smallint", "int"), WHOLE: INTEGERS, **dict.fromkeys((BIGINT, "double", NUMERIC), _ANY_NUMBER),
    ANY_NUMBER: ("void", *_ANY_NUMBER), TEST: ("boolean", "void"), VARIANT: (VARIANT,), ONLY_DATE: ("date",),
    **dict.fromkeys(("date", "timestamp"), (*INSTANTS, "string")), MOMENT: ("timestamp", "timestamp_ntz"),
    INTERVAL: ("interval", "interval_days", "months"),
}  # fmt: skip
_UNCHANGED = frozenset({ANY, ANY_NUMBER, BINARY, BYTES, INTERVAL, MOMENT, TEST, VARIANT})  # they need no cast
_OF_NULL = {WHOLE: "int", NUMERIC: "int", BYTES: "string", WRITTEN: "string", MOMENT: "timestamp"}
_WORDS = {
    "int": "an int", WHOLE: "a whole number", "double": "a number", NUMERIC: "a whole number or double", BIGINT: "a number",
    ANY: "a value of a column", INTERVAL: "an interval", BYTES: "a string or binary", MOMENT: "a timestamp",
    WRITTEN: "a string or whole number",
}  # fmt: skip


BYTEWISE = frozenset(
    {"length", "reverse", "substring", "startswith", "endswith", "contains", "lpad", "rpad", "overlay"}
)


def bytewise(name: str, nodes: list[ValueNode], type_call: Callable[[str, list[ValueNode]], ValueNode]) -> ValueNode:
    """Types a function of texts for bytes, each of which becomes a character.

    Raises Refusal: not all of its texts are bytes.
    """
    if any(node.type == "string" for node in nodes):
        raise Refusal(f"{name} takes strings or binaries, not both: write encode(name, 'utf-8')")
    if name in ("lpad", "rpad") and len(nodes) == 2:
        nodes = [*nodes, ValueNode("literal", "binary", ("00",))]
    made = type_call(name, [_characters(node) if node.type == "binary" else node for node in nodes])
    return ValueNode("text_as_octets", "binary", (made,)) if made.type == "string" else made


def _characters(node: ValueNode) -> ValueNode:
    """Returns bytes as a text with a character for each."""
    if is_constant(node):
        octets = constant(node).as_py()
        return ValueNode("null", "string", ()) if octets is None else _literal(octets.decode("latin-1"))
    return ValueNode("octets_as_text", "string", (node,))


def _literal(text: str) -> ValueNode:
    return ValueNode("literal", "string", (text,))


def _try_constants(name: str, kinds: tuple[str, ...], constants: list[Any]) -> None:
    """Raises ValueError: a function of one value cannot use its constants."""
    try:
        TEXTS[name][0](0 if {"int", BIGINT} & set(kinds) else "", *constants)
    except Unfit:
        return


def _constant_of(function: Function, kind: str, node: ValueNode) -> str | int | None:
    """Returns the value of a literal. Raises Refusal: it is none, or of the wrong type."""
    if node.type == "void" and "void" in CONSTANTS[kind]:
        return None
    if node.function not in ("literal", "negate") and node.type in ("string", "binary") and is_constant(node):
        value = constant(node).as_py()
        node = _literal(value.decode(errors="replace") if isinstance(value, bytes) else value or "")
    literal = node.arguments[0] if node.function == "negate" and isinstance(node.arguments[0], ValueNode) else node
    if literal.function != "literal" or literal.type not in CONSTANTS[kind]:
        what = "a literal string" if kind in (TEXT, OPTION) else "a literal whole number"
        raise Refusal(f"{function.name} takes {what} here, as in {function.call}")
    value = literal.arguments[0]
    return value if literal.type == "string" else -int(value) if literal is not node else int(value)


def _number(name: str, node: ValueNode) -> str:
    """Returns the type of a number. Raises Refusal: the value is no number."""
    if not is_number(node.type):
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


# Functions that take two texts of an event, and their names there
PAIRS = {"like": "like_pair", "startswith": "startswith_pair", "endswith": "endswith_pair", "contains": "contains_pair"}
METHODS = {  # of what is no function of the table
    **dict.fromkeys(("and", "or", "not"), "_logic"), "isnull": "_isnull", **dict.fromkeys(("&", "|", "^"), "_bits"),
    **dict.fromkeys(("like", "rlike", "startswith", "endswith", "contains"), "_search"), "datediff_dates": "_days",
    BETWEEN: "_micros_between", SECONDS: "_part", AT_ZONE: "_at_zone", **dict.fromkeys(TRIMS, "_of_characters"),
}  # fmt: skip
