"""Computed values from sqlglot's nodes: arithmetic, functions and comparisons of columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from sqlglot import exp

from colmatch.expr.ast import AT_LEAST, Refusal
from colmatch.expr.computed import (
    CAST,
    CHOICES,
    DEEPEST,
    JSON_FIELD,
    JSON_SIGNS,
    JSON_VALUE,
    PREFIX,
    XOR,
    ComputedValue,
    literal_of,
    number,
)
from colmatch.expr.computed_rules import json_path
from colmatch.expr.functions import SYNONYMS
from colmatch.expr.times import simplify_time
from colmatch.lowering.forms import Kind
from colmatch.sql.checks import check_pattern, strip_parentheses
from colmatch.sql.elements import function_of as is_of_elements
from colmatch.sql.elsewhere import express
from colmatch.sql.literals import NumberedText
from colmatch.sql.nots import RANGES, count_nots
from colmatch.sql.quotes import NO_COLUMN

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.IntDiv: "div", exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "concat",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.JSONBContainsAllTopKeys: XOR,  # of the token that ``xor.py`` writes
}  # fmt: skip
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift)
_PATTERNS: dict[type[exp.Expr], str] = {
    exp.Like: "like", exp.RegexpLike: "rlike",
    exp.StartsWith: "startswith", exp.EndsWith: "endswith", exp.Contains: "contains",
}  # fmt: skip
_SUFFIX = re.compile(r"[-+\s]*[0-9.]+(?:[eE][+-]?[0-9]+)?([A-Za-z]*)")


def is_computed(node: exp.Expr) -> bool:
    """Returns whether a node is a computed value, and no condition."""
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        return operator not in _COMPARISONS
    if type(node) is exp.Anonymous and str(node.args["this"]).startswith(PREFIX):
        return not is_coalesced(node)
    return type(node) in (exp.Neg, exp.BitwiseNot, *_SHIFTS)


def is_value(node: exp.Expr) -> bool:
    """Returns whether a node is a column or a computed value."""
    return type(node) is exp.Column or is_computed(node)


def is_coalesced(node: exp.Expr) -> bool:
    """Returns whether a node chooses between conditions, as in ``coalesce(a > 3, false)``."""
    stack = [node]
    while stack:
        node = strip_parentheses(stack.pop())
        if is_condition(node):
            return True
        if choice_of(node):
            stack.extend(_results(node))
    return False


def is_condition(node: exp.Expr) -> bool:
    """Returns whether a node is a condition by its operator."""
    if isinstance(node, (exp.Predicate, exp.Not, exp.Connector)) or type(node) in _PATTERNS:
        return True
    return bool(is_of_elements(node)) or function_of(node) == AT_LEAST


def function_of(node: exp.Expr) -> str:
    """Returns the name of a function as the text has it; empty for other nodes."""
    return str(node.args["this"]).removeprefix(PREFIX) if type(node) is exp.Anonymous else ""


def choice_of(node: exp.Expr) -> str:
    """Returns the name of a function that chooses one of its arguments; empty for other nodes."""
    name = function_of(node)
    name = SYNONYMS.get(name, name)
    return name if name in CHOICES else ""


def _results(node: exp.Expr) -> list[exp.Expr]:
    """Returns the arguments that a function chooses from."""
    parts = node.args["expressions"]
    if choice_of(node) == "coalesce":
        return list(parts)
    return [*parts[1::2], *(parts[-1:] if len(parts) % 2 else [])]


def rewrite_choice(node: exp.Expr, at: int) -> exp.Expr:
    """Expresses ``coalesce``, ``if`` or ``CASE`` of conditions by AND, OR, NOT and IS."""
    name, parts = choice_of(node), node.args["expressions"]
    if not parts or (name == "if" and len(parts) not in (2, 3)) or (name == "case" and len(parts) < 2):
        raise Refusal(f"{name} has too few or too many arguments here", at)
    if name == "coalesce":
        return _rewrite_coalesce(parts)
    condition: exp.Expr = parts[-1] if len(parts) % 2 else exp.Null()
    for i in range(len(parts) - len(parts) % 2 - 2, -1, -2):
        true = exp.Is(this=parts[i], expression=exp.Boolean(this=True))
        condition = exp.Or(
            this=exp.And(this=true, expression=parts[i + 1]),
            expression=exp.And(this=exp.Not(this=true), expression=condition),
        )
    return condition


def _rewrite_coalesce(parts: list[exp.Expr]) -> exp.Expr:
    condition: exp.Expr = parts[-1]
    for part in reversed(parts[:-1]):
        true = exp.Is(this=part, expression=exp.Boolean(this=True))
        if type(condition) is exp.Boolean:
            false = exp.Not(this=exp.Is(this=part, expression=exp.Boolean(this=False)))
            condition = false if condition.args["this"] else true
            continue
        unknown = exp.Is(this=part, expression=exp.Null())
        condition = exp.Or(this=true, expression=exp.And(this=unknown, expression=condition))
    return condition


WRITTEN = 1000  # parts of a value that a text may repeat as often as it likes
MOST_REPEATED = 20_000  # parts of a larger value, all of its repetitions together


class ComputedReader:
    """A reader of the computed values of one text.

    begin : returns the offset of a node's text
    two_valued : conditions on an absent value are False; otherwise they are Unknown
    is_doubled : each NOT before its operand occurs twice (``nots.py``)
    casts : the values of an IN get one type, as in Spark
    """

    def __init__(
        self,
        reading: NumberedText,
        begin: Callable[[exp.Expr], int],
        two_valued: bool,
        is_doubled: bool,
        casts: bool,
    ) -> None:
        self._reading = reading
        self._casts = casts
        self._begin = begin
        self._two_valued = two_valued
        self._is_doubled = is_doubled
        self._has_column = False
        self._quoted: int | None = None  # offset of a text in double quotes

    def read(self, node: exp.Expr, depth: int = 0) -> ComputedValue:
        """Returns the computed value of a node.

        Raises Refusal: the node is not a value, or nests too deep.
        """
        node = strip_parentheses(node)
        if depth > DEEPEST:
            raise self._too_deep(node)
        kind, args = type(node), node.args
        if kind is exp.Literal:
            return self._literal(int(args["this"]))
        if kind is exp.Boolean:
            return ComputedValue("literal", ("boolean", str(bool(args["this"])).lower()))
        if kind is exp.Null:
            return ComputedValue("null", ())
        if kind is exp.Column and args["this"].args["this"].isdigit():
            return self._column(int(args["this"].args["this"]))
        self._check_bits(node)
        other = express(node, self._begin)
        if other is not None:
            return self.read(other, depth)
        operator = _OPERATORS.get(kind)
        if operator is not None:
            value = ComputedValue(
                operator, tuple([self.read(args[side], depth + 1) for side in ("this", "expression")])
            )
            return self._drop_unknown(value) if operator in _COMPARISONS or operator is XOR else value
        if kind is exp.ArraySize and args.get("expression") is None:
            return ComputedValue("size", (self.read(args["this"], depth + 1),))
        if kind is exp.Array:
            return ComputedValue("array", tuple(self._members(args.get("expressions") or [], depth + 1)))
        if kind is exp.Neg:
            return ComputedValue("negate", (self.read(args["this"], depth + 1),))
        if kind is exp.Anonymous and str(args["this"]).startswith(CAST):
            return self._cast(node, depth)
        name = function_of(node)
        if name in JSON_SIGNS:
            return self._json(node, depth)
        if name == "interval" or (kind is exp.Anonymous and name != args["this"]):
            value = ComputedValue(name, tuple([self.read(argument, depth + 1) for argument in args["expressions"]]))
            return simplify_time(value) if name == "interval" or name.endswith("_trunc") else value
        return self._condition(node, depth)

    def _json(self, node: exp.Expr, depth: int) -> ComputedValue:
        """Reads a path into a JSON text, whose steps are calls within each other."""
        chain = [node]
        while True:
            inner = strip_parentheses(chain[-1].args["expressions"][0])
            if function_of(inner) not in (JSON_VALUE, JSON_FIELD):
                break
            chain.append(inner)
        steps = [_key(self.read(part, depth + 1)) for call in reversed(chain) for part in call.args["expressions"][1:]]
        value = self.read(inner, depth + 1)
        try:
            return json_path(function_of(node), value, tuple(steps))
        except Refusal as refusal:
            raise Refusal(str(refusal), self._begin(node)) from None

    def _check_bits(self, node: exp.Expr) -> None:
        """Raises Refusal where signs of bits bind differently in other dialects."""
        kind = type(node)
        group = _SHIFTS if kind in _SHIFTS else (kind,)
        if kind not in (*_BITS, *_SHIFTS):
            return
        if any(type(part) in (*_BITS, *_SHIFTS) and type(part) not in group for part in node.args.values()):
            message = (
                "<< and >> and & and | and ^ bind differently in other dialects: put parentheses around one of them"
            )
            raise Refusal(message, self._begin(node))
        for token, after in pairwise(self._reading.tokens):
            is_shift = kind in _SHIFTS and token.text == after.text and token.text in "<>"
            if is_shift and after.start > token.end + 1:
                raise Refusal(f"something is missing after {token.text!r}", token.start)

    def check_columns(self) -> None:
        """Raises Refusal where a text in double quotes was read, and no column."""
        if self._quoted is not None and not self._has_column:
            raise Refusal(NO_COLUMN, self._quoted)

    def _drop_unknown(self, condition: ComputedValue) -> ComputedValue:
        """Makes a condition that is never Unknown where the language has no Unknown."""
        if not self._two_valued:
            return condition
        return ComputedValue("coalesce", (condition, ComputedValue("literal", ("boolean", "false"))))

    def _condition(self, node: exp.Expr, depth: int) -> ComputedValue:
        """Reads a condition within a value, as in ``if(a > 5 OR b IS NULL, 1, 2)``."""
        kind, args = type(node), node.args
        deeper = depth + 1
        if kind is exp.And or kind is exp.Or:
            parts = []
            while type(node) is kind:  # a chain leans to the left
                parts.append(node.args["expression"])
                node = node.args["this"]
            conditions = [self.read(part, deeper) for part in (node, *reversed(parts))]
            return ComputedValue("and" if kind is exp.And else "or", tuple(conditions))
        if kind is exp.Not:
            before, behind, part = count_nots(node, self._is_doubled)
            deeper += before + behind
            if deeper > DEEPEST:
                raise self._too_deep(node)
            if behind and type(part) in RANGES:
                value = self._drop_unknown(ComputedValue("not", (self._range(part, deeper),)))
            else:
                value = self.read(part, deeper)
                before += behind
            for _ in range(before):
                value = ComputedValue("not", (value,))
            return value
        if kind is exp.NullSafeNEQ:
            return ComputedValue(
                "not",
                (ComputedValue("<=>", tuple([self.read(args[side], deeper) for side in ("this", "expression")])),),
            )
        if kind is exp.Is and type(args["expression"]) in (exp.Null, exp.Boolean):
            what, inner = args["expression"], self.read(args["this"], deeper)
            if type(what) is exp.Null:
                return ComputedValue("isnull", (inner,))
            return ComputedValue("istrue" if what.args["this"] else "isfalse", (inner,))
        if kind in RANGES or kind in _PATTERNS:
            return self._drop_unknown(self._range(node, deeper))
        if is_condition(node) or kind in (exp.ArrayContains, exp.ArrayOverlaps, exp.Anonymous):
            raise self._no_part(node)
        raise Refusal("a column, a literal or a function of them is needed here", self._begin(node))

    def read_in(self, node: exp.Expr) -> ComputedValue:
        """Reads an IN whose values get one type; it is Unknown where a value is absent."""
        return self._range(node, 0)

    def _range(self, node: exp.Expr, depth: int) -> ComputedValue:
        """Reads BETWEEN, IN or a pattern; the result is Unknown where a value is absent."""
        kind, args = type(node), node.args
        if kind is exp.Between:
            value, low, high = [self._read_repeated(args[part], depth) for part in ("this", "low", "high")]
            ends = [(low, high), (high, low)] if args.get("symmetric") else [(low, high)]
            within = [
                ComputedValue("and", (ComputedValue(">=", (value, a)), ComputedValue("<=", (value, b))))
                for a, b in ends
            ]
            return within[0] if len(within) == 1 else ComputedValue("or", tuple(within))
        if kind is exp.In and args.get("expressions"):
            members = self._members(args["expressions"], depth)
            value = self._read_repeated(args["this"], depth, len(members))
            if self._casts:
                return ComputedValue("in", (value, *members))
            same = [ComputedValue("=", (value, member)) for member in members]
            return same[0] if len(same) == 1 else ComputedValue("or", tuple(same))
        if kind not in _PATTERNS:
            raise self._no_part(node)
        if kind is exp.RegexpLike:
            check_pattern(args["expression"], self._reading)
        test = ComputedValue(_PATTERNS[kind], tuple([self.read(args[side], depth) for side in ("this", "expression")]))
        return ComputedValue("not", (test,)) if args.get("negate") else test

    def _too_deep(self, node: exp.Expr) -> Refusal:
        message = f"a computed value nests deeper than {DEEPEST} levels: split a long sum by parentheses"
        return Refusal(message, self._begin(node))

    def _no_part(self, node: exp.Expr) -> Refusal:
        if is_of_elements(node) == "filter":
            return Refusal("filter makes a list: write exists(...), or size(filter(...)) >= 2", self._begin(node))
        message = "this condition cannot be a part of a value: write the whole as a condition, with AND, OR and NOT"
        return Refusal(message, self._begin(node))

    def _read_repeated(self, node: exp.Expr, depth: int, times: int = 2) -> ComputedValue:
        """Reads a value that is repeated ``times`` times.

        Raises Refusal: its repetitions are too large.
        """
        value = self.read(node, depth)
        parts = _parts(value)
        if parts > WRITTEN and parts * times > MOST_REPEATED:
            message = "BETWEEN and IN within each other repeat this value too often: split the condition"
            raise Refusal(message, self._begin(node))
        return value

    def _members(self, nodes: list[exp.Expr], depth: int) -> list[ComputedValue]:
        """Reads the members of a list; its literals may be in one slot."""
        values = []
        for node in map(strip_parentheses, nodes):
            slot = int(node.args["this"]) if type(node) is exp.Literal else -1
            values += [self.read(node, depth)] if slot < 0 else self.literals(slot)
        return values

    def literals(self, slot: int) -> list[ComputedValue]:
        """Returns the literals of a slot, which distinguish forms from now on."""
        kind, many, _ = self._reading.operands[slot]
        if not many:
            return [self._literal(slot)]
        self._reading.baked[slot] = None
        return [literal_of(kind, text) for text in self._reading.literals[slot]]

    def _cast(self, node: exp.Expr, depth: int) -> ComputedValue:
        arguments = node.args["expressions"]
        if len(arguments) != 1:
            raise Refusal("CAST takes one value, as in CAST(age AS BIGINT)", self._begin(node))
        name, type = self._reading.casts[int(node.args["this"].removeprefix(CAST))]
        return ComputedValue(name, (self.read(arguments[0], depth + 1), type))

    def _column(self, number: int) -> ComputedValue:
        self._has_column = True
        subject = self._reading.subjects[number]
        if subject.computed is not None:
            return subject.computed
        column = ComputedValue("column", subject.path)
        return column if subject.key is None else ComputedValue("entry", (column, subject.key))

    def _literal(self, slot: int) -> ComputedValue:
        reading = self._reading
        kind, many, negative = reading.operands[slot]
        text, at = reading.literals[slot], reading.literal_at[slot]
        if many:
            raise Refusal("a list cannot be computed with", at)
        reading.baked[slot] = None
        if kind is Kind.BINARY:
            return ComputedValue("literal", ("binary", text.hex().upper()))
        if reading.text[at] == '"':
            self._quoted = at
        if kind in (Kind.INT, Kind.DECIMAL, Kind.DOUBLE):
            match = _SUFFIX.match(reading.text, at)
            suffix = match[1].upper() if match else ""
            return number(kind, "-" + text if negative else text, suffix)
        return ComputedValue("literal", (_TYPES[kind], text))


def _key(step: ComputedValue) -> ComputedValue:
    """Returns a step of a path into JSON, where a name stands for its text."""
    return ComputedValue("literal", ("string", step.arguments[0])) if step.function == "column" else step


def _parts(value: ComputedValue) -> int:
    """Returns the number of parts of a value, ``MOST_REPEATED`` if there are more."""
    count, stack = 0, [value]
    while stack and count < MOST_REPEATED:
        count += 1
        stack.extend([part for part in stack.pop().arguments if isinstance(part, ComputedValue)])
    return count


_TYPES = {
    Kind.STRING: "string", Kind.BOOL: "boolean", Kind.DATE: "date", Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMP_NTZ: "timestamp_ntz",
}  # fmt: skip
