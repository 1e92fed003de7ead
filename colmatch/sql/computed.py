"""sqlglot's nodes -> computed values: arithmetic, functions and comparisons of columns."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from colmatch.expr.ast import Refusal
from colmatch.expr.computed import CAST, DEEPEST, FUNCTIONS, PREFIX, Computed, number
from colmatch.lowering.forms import Kind
from colmatch.sql.literals import Reading

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "concat",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
_SUFFIX = re.compile(r"[-+\s]*[0-9.]+(?:[eE][+-]?[0-9]+)?([A-Za-z]*)")


def bare(node: Any) -> Any:
    """Returns the node within all parentheses around it."""
    while type(node) is exp.Paren:
        node = node.args["this"]
    return node


def is_computed(node: exp.Expr) -> bool:
    """Returns whether a node is a value that is computed, and no condition."""
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        return operator not in _COMPARISONS
    if type(node) is exp.Anonymous and str(node.args["this"]).startswith(PREFIX):
        return not is_coalesced(node)
    return type(node) is exp.Neg


def is_coalesced(node: exp.Expr) -> bool:
    """Returns whether a node is ``coalesce`` of a condition, as in ``coalesce(a > 3, false)``."""
    stack = [node]
    while stack:
        node = bare(stack.pop())
        if isinstance(node, (exp.Predicate, exp.Not, exp.Connector)):
            return True
        if function_of(node) == "coalesce":
            stack.extend(node.args["expressions"])
    return False


def function_of(node: exp.Expr) -> str:
    """Returns the name of a function as the text has it; empty if it is none."""
    return str(node.args["this"]).removeprefix(PREFIX) if type(node) is exp.Anonymous else ""


def coalesced(node: exp.Expr, at: int) -> exp.Expr:
    """``coalesce`` of conditions, as a condition without it."""
    parts = node.args["expressions"]
    if not parts:
        raise Refusal("coalesce has too few or too many arguments here", at)
    found: exp.Expr = parts[-1]
    for part in reversed(parts[:-1]):
        true = exp.Is(this=part, expression=exp.Boolean(this=True))
        if type(found) is exp.Boolean:
            false = exp.Not(this=exp.Is(this=part, expression=exp.Boolean(this=False)))
            found = false if found.args["this"] else true
            continue
        unknown = exp.Is(this=part, expression=exp.Null())
        found = exp.Or(this=true, expression=exp.And(this=unknown, expression=found))
    return found


class ComputedReader:
    """Reads the computed values of one text."""

    def __init__(self, reading: Reading, begin: Any) -> None:
        self._reading = reading
        self._begin = begin  # where the text of a node begins

    def read(self, node: exp.Expr, depth: int = 0) -> Computed:
        """Returns what a node computes.

        Raises Refusal: it is not a value, or nests too deep.
        """
        node = bare(node)
        if depth > DEEPEST:
            said = f"a computed value nests deeper than {DEEPEST} levels: split a long sum by parentheses"
            raise Refusal(said, self._begin(node))
        kind, args = type(node), node.args
        if kind is exp.Literal:
            return self._literal(int(args["this"]))
        if kind is exp.Boolean:
            return Computed("literal", ("boolean", str(bool(args["this"])).lower()))
        if kind is exp.Column and args["this"].args["this"].isdigit():
            return self._column(int(args["this"].args["this"]))
        operator = _OPERATORS.get(kind)
        if operator is not None:
            return Computed(operator, tuple([self.read(args[side], depth + 1) for side in ("this", "expression")]))
        if kind is exp.Neg:
            return Computed("negate", (self.read(args["this"], depth + 1),))
        if kind is exp.Anonymous and str(args["this"]).startswith(CAST):
            return self._cast(node, depth)
        name = function_of(node)
        if name in FUNCTIONS:
            return Computed(name, tuple([self.read(argument, depth + 1) for argument in args["expressions"]]))
        raise Refusal("a column, a literal or a function of them is needed here", self._begin(node))

    def _cast(self, node: exp.Expr, depth: int) -> Computed:
        arguments = node.args["expressions"]
        if len(arguments) != 1:
            raise Refusal("CAST takes one value, as in CAST(age AS BIGINT)", self._begin(node))
        type = self._reading.casts[int(node.args["this"].removeprefix(CAST))]
        return Computed("cast", (self.read(arguments[0], depth + 1), type))

    def _column(self, number: int) -> Computed:
        subject = self._reading.subjects[number]
        if subject.key is not None:
            raise Refusal(
                "entries of maps cannot be computed with: compare them with literals", self._reading.subject_at[number]
            )
        return Computed("column", subject.path)

    def _literal(self, slot: int) -> Computed:
        reading = self._reading
        kind, many, negative = reading.operands[slot]
        text, at = reading.literals[slot], reading.literal_at[slot]
        if many or kind is Kind.BINARY:
            raise Refusal(f"a {'list' if many else 'binary literal'} cannot be computed with", at)
        reading.baked[slot] = None
        if kind in (Kind.INT, Kind.DECIMAL, Kind.DOUBLE):
            found = _SUFFIX.match(reading.text, at)
            suffix = found[1].upper() if found else ""
            return number(kind, "-" + text if negative else text, suffix)
        return Computed("literal", (_TYPES[kind], text))


_TYPES = {
    Kind.STRING: "string", Kind.BOOL: "boolean", Kind.DATE: "date", Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMP_NTZ: "timestamp_ntz",
}  # fmt: skip
