"""Conditions on elements of lists, from sqlglot's nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from colmatch.expr.ast import And, Constant, Expr, Or, Predicate, Refusal, Subject, Verb, conjoin
from colmatch.expr.computed import MAP_PARTS, ComputedValue, comparison
from colmatch.expr.computed import PREFIX as VALUE
from colmatch.expr.elements import Lambda, compare_count, elements_predicate
from colmatch.expr.functions import TABLE
from colmatch.expr.shared import SharedNodes
from colmatch.lowering.forms import Kind
from colmatch.sql.checks import strip_parentheses
from colmatch.sql.literals import NumberedText

# Functions of a list and a condition. sqlglot keeps their names with this prefix.
PREFIX = "elements_"
_LENGTHS = (f"{VALUE}len", f"{VALUE}length")  # DuckDB counts elements by len
_FILTER = f"{TABLE['filter'].call} >= 2"


def function_of(node: exp.Expr) -> str:
    """Returns the name of a function of elements; empty for other nodes."""
    name = str(node.args["this"]) if type(node) is exp.Anonymous else ""
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""


def filter_of(node: exp.Expr) -> exp.Expr | None:
    """Returns the ``filter(...)`` that a node counts the elements of, None for other nodes."""
    inner: Any = None
    if type(node) is exp.ArraySize:
        inner = strip_parentheses(node.args["this"])
    elif type(node) is exp.Anonymous and node.args["this"] in _LENGTHS and len(node.args["expressions"]) == 1:
        inner = strip_parentheses(node.args["expressions"][0])
    return inner if inner is not None and function_of(inner) == "filter" else None


class ElementParser:
    """A parser of conditions on elements.

    convert : makes the tree of a condition
    begin : returns the offset of a node's text
    """

    def __init__(
        self,
        reading: NumberedText,
        nodes: SharedNodes,
        convert: Callable[[exp.Expr, NumberedText], Expr],
        begin: Callable[[exp.Expr], int],
    ) -> None:
        self._reading = reading
        self._nodes = nodes
        self._convert = convert
        self._begin = begin

    def condition(self, node: exp.Expr) -> Expr:
        """Makes the tree of ``exists`` or ``forall``.

        Raises Refusal: the arguments are not a list and a condition.
        """
        name = function_of(node)
        if name == "filter":
            raise Refusal(f"filter is no condition: count elements, as in {_FILTER}", self._begin(node))
        return self._predicate(name, *self._arguments(node))

    def comparison(self, verb: Verb, filtered: exp.Expr, other: exp.Expr) -> Expr:
        """Makes the comparison of ``size(filter(...))`` with a literal, which may be a list for IN.

        filtered : the node of ``filter(...)``

        Raises Refusal: it is compared with something else.
        """
        other = strip_parentheses(other)
        if type(other) is exp.Null:
            return Constant(None)
        slot = int(other.args["this"]) if type(other) is exp.Literal else -1
        kind, many, negative = self._reading.operands[slot] if slot >= 0 else (Kind.BINARY, False, False)
        if kind is not Kind.INT or (many and verb is not Verb.EQ):
            raise Refusal(f"a whole number is needed here, as in {_FILTER}", self._begin(other))
        self._reading.baked[slot] = None
        literal = self._reading.literals[slot]
        numbers = map(int, literal) if many else [-int(literal) if negative else int(literal)]
        list_of, test = self._arguments(filtered)

        def make(function: str, count: int) -> Expr:
            return self._predicate(function, list_of, test, count)

        return conjoin(Or, [compare_count(verb, number, make) for number in numbers])

    def contains(self, list_of: exp.Expr, value: ComputedValue) -> Expr:
        """Makes the condition that an element equals a value; it is Unknown if that is NULL."""
        subject = Subject(value.arguments) if value.function == "column" else Subject((), computed=value)
        name, taken = "x", {path[0].lower() for path in value.columns}
        while name in taken:
            name += "x"
        same = comparison("=", ComputedValue("column", (name,)), value)[0]
        test = Lambda(name, self._nodes.predicate(Verb.BARE, Subject((), computed=same), ()))
        found = self._predicate("exists", self._list(strip_parentheses(list_of), "array_contains(tags, name)"), test)
        absent = conjoin(And, [self._nodes.predicate(Verb.NULL, subject, ()), Constant(None)])
        return conjoin(Or, [found, absent])

    def _predicate(self, function: str, list_of: ComputedValue, test: Lambda, count: int = 0) -> Predicate:
        return self._nodes.predicate(Verb.CALL, elements_predicate(function, list_of, test, count).subject, ())

    def _arguments(self, node: exp.Expr) -> tuple[ComputedValue, Lambda]:
        """Returns the list and the condition."""
        reading, parts = self._reading, [strip_parentheses(part) for part in node.args["expressions"]]
        example = f"as in {TABLE[function_of(node)].call}"
        if len(parts) != 2 or type(parts[1]) is not exp.Lambda:
            raise Refusal(f"a list and a condition on its elements are needed, {example}", self._begin(node))
        list_of = self._list(parts[0], TABLE[function_of(node)].call)
        names = [reading.subjects[int(name.name)] for name in parts[1].expressions if name.name.isdigit()]
        if len(names) != 1 or len(names[0].path) != 1 or names[0].key is not None:
            raise Refusal(f"one name for an element is needed before '->', {example}", self._begin(node))
        return list_of, Lambda(names[0].path[0], self._convert(parts[1].args["this"], reading))

    def _list(self, node: exp.Expr, example: str) -> ComputedValue:
        """Returns the list that a node names.

        Raises Refusal: it names none.
        """
        part = str(node.args["this"]).removeprefix(VALUE) if type(node) is exp.Anonymous else ""
        if part in MAP_PARTS and len(node.args["expressions"]) == 1:
            node = strip_parentheses(node.args["expressions"][0])
        column = node.args["this"].args["this"] if type(node) is exp.Column else ""
        subject = self._reading.subjects[int(column)] if column.isdigit() else None
        if subject is None or isinstance(subject.key, int):
            raise Refusal(f"the name of a list is needed here, as in {example}", self._begin(node))
        list_of = ComputedValue("column", subject.path if subject.key is None else (*subject.path, subject.key))
        return ComputedValue(part, (list_of,)) if part in MAP_PARTS else list_of
