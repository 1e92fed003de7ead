"""Tests of some computed values as tests of columns, or of values that others share.

``instr(s, 'x') > 0`` is a text pattern, ``cidr_contains`` a range of addresses, and
``ts > now() - INTERVAL 7 DAYS`` a range of a difference (``differences.py``).
"""

from __future__ import annotations

from dataclasses import replace

from colmatch.errors import SchemaError
from colmatch.events.computed.derived import constant
from colmatch.events.computed.nodes import VARIANT, VERSION, WHOLE, ValueNode, is_constant
from colmatch.expr.ast import Predicate, Refusal, Subject, Verb
from colmatch.expr.computed import ADDRESS, JSON_FIELD, MAP_PARTS, PATTERN_FUNCTIONS, ComputedValue
from colmatch.expr.computed_types import WRITE_VERSION, Typing
from colmatch.expr.differences import simplify_comparison
from colmatch.expr.functions import STRING, SYNONYMS
from colmatch.expr.times import clock_word
from colmatch.expr.variants import WRITE_VARIANT
from colmatch.given.schema import Schema, Shape
from colmatch.lowering.forms import Kind, Operand

_UNCOMPARED = {VERSION: WRITE_VERSION, VARIANT: WRITE_VARIANT}  # types without literals
LISTS = frozenset({Verb.ARRAY_CONTAINS, Verb.ARRAYS_OVERLAP, Verb.CONTAINS_ALL})
_COMPARISONS = frozenset({Verb.EQ, Verb.NE, Verb.LT, Verb.LE, Verb.GT, Verb.GE})
# comparisons of the place of a part in a text that mean that the part is there, or is not
_FOUND = frozenset({(0, Verb.GT), (0, Verb.NE), (1, Verb.GE)})
_NOT_FOUND = frozenset({(0, Verb.EQ), (0, Verb.LE), (1, Verb.LT)})
_FOLDED = frozenset({"=", "<", "<=>"})


class Simplifier:
    """A simplifier of predicates, over one schema.

    by_attribute : whether subscriptions give weights to attributes, which then stay as they are
    """

    def __init__(self, schema: Schema, typing: Typing, by_attribute: bool) -> None:
        self._schema = schema
        self._typing = typing
        self._by_attribute = by_attribute

    def _compute_element(self, p: Predicate) -> Predicate:
        """Turns a predicate on an element of a list, or the time, into one on a computed value."""
        path, key = p.subject[:2]
        if p.subject.computed is None and key is None and not p.subject.size and p.verb is not Verb.CALL:
            word = clock_word(self._schema, path)
            if word is None and p.verb is Verb.NULL:
                word = self._whole(path)
            return p if word is None else replace(p, subject=Subject((), computed=word))
        if not isinstance(key, int) or p.subject.size:
            return p
        try:
            is_list = self._schema.column(path).shape is Shape.LIST
        except SchemaError:
            return p
        value = ComputedValue("entry", (ComputedValue("column", path), key))
        return replace(p, subject=Subject((), computed=value)) if is_list else p

    def _whole(self, path: tuple[str, ...]) -> ComputedValue | None:
        """Returns a value that is NULL where a struct or variant is, None for other columns."""
        try:
            shape = self._schema.column(path).shape
        except SchemaError:
            return None
        column = ComputedValue("column", path)
        if shape is Shape.VARIANT:
            return ComputedValue(JSON_FIELD, (column, ComputedValue("literal", ("string", "$"))))
        return ComputedValue(WHOLE, (column,)) if shape is Shape.STRUCT else None

    def simplify(self, p: Predicate) -> Predicate:
        """Turns a test of some computed values into one of a column, or of a value that others
        share.
        """
        p = self._compute_element(p)
        value = p.subject.computed
        if value is None or (value.function in MAP_PARTS and p.verb in LISTS):
            return p
        if value.function == "len" and len(value.arguments) == 1 and value.arguments[0].function == "column":
            p = self._measure(p, value.arguments[0].arguments)
            if p.subject.computed is None:
                return p
        if (p.operands and p.verb is not Verb.CALL) or p.verb is Verb.BARE:
            name, node = type_computed(self._typing, p)
            if node.type in _UNCOMPARED:
                raise Refusal(f"{name} is a {node.type}: {_UNCOMPARED[node.type]}", predicate=p)
        if p.verb is Verb.BARE and value.function in _FOLDED and (folded := self._fold_text(p, value)) is not p:
            return folded
        is_pattern = SYNONYMS.get(value.function, value.function) in PATTERN_FUNCTIONS and p.verb in _COMPARISONS
        if is_pattern and not self.has_weight(p):
            return self._make_pattern(p)
        if value.function == "cidr_contains" and p.verb in (Verb.BARE, Verb.NULL):
            return self._make_range(p, value)
        if self.has_weight(p):
            return p
        try:
            return simplify_comparison(p, self._typing)
        except Refusal as refusal:
            refusal.predicate = p
            raise

    def _measure(self, p: Predicate, path: tuple[str, ...]) -> Predicate:
        """Turns ``len(tags)`` into ``size(tags)`` if tags is a list or map, as in DuckDB."""
        try:
            is_list = self._schema.column(path).shape in (Shape.LIST, Shape.MAP)
        except SchemaError:
            return p
        return replace(p, subject=Subject(path, size=True)) if is_list else p

    def has_weight(self, p: Predicate) -> bool:
        """Returns whether a predicate may have a weight, which is not that of its column."""
        return self._by_attribute or p.weighs is not None

    def _make_pattern(self, p: Predicate) -> Predicate:
        """Turns ``instr(s, 'x') > 0`` and ``left(s, 1) = 'x'`` into text patterns."""
        operand, (function, _, arguments) = p.operands[0], type_computed(self._typing, p)[1]
        if operand is None or operand.value is None or arguments[0].function != "column":
            return p
        subject, literal = Subject(arguments[0].arguments), str(operand.value)
        if function == "instr" and operand.kind is Kind.INT and arguments[1]:
            test = int(literal), p.verb
            if test in _FOUND or test in _NOT_FOUND:
                part = Operand(Kind.STRING, value=arguments[1])
                return Predicate(Verb.CONTAINS, subject, (part,), p.weighs, p.negated is not (test in _NOT_FOUND))
        if (
            function == "substring"
            and operand.kind is Kind.STRING
            and len(arguments) == 3
            and p.verb in (Verb.EQ, Verb.NE)
        ):
            begin, count = arguments[1:]
            if begin == 1 and count == len(literal):
                return Predicate(Verb.STARTSWITH, subject, p.operands, p.weighs, p.negated is not (p.verb is Verb.NE))
            if begin == 1 and count > len(literal):
                return replace(p, subject=subject)
        return p

    def _fold_text(self, p: Predicate, value: ComputedValue) -> Predicate:
        """Turns a comparison with a text that is computed of literals into one with a literal."""
        node = type_computed(self._typing, p)[1]
        left, right = self._typing.compare_whole(value).arguments
        is_first = next(left.columns, None) is None
        part = left if is_first else right
        if next(part.columns, None) is not None or node.arguments[0].type not in (STRING, VERSION, WHOLE):
            return p
        text = self._typing.of(part)[1]
        if not is_constant(text):  # it has the time of the call
            return p
        literal, of = constant(text).as_py(), right if is_first else left
        verb = {"=": Verb.EQ, "<=>": Verb.SAME, "<": Verb.GT if is_first else Verb.LT}[value.function]
        subject = Subject(of.arguments) if of.function == "column" else Subject((), computed=of)
        operand = None if literal is None else Operand(Kind.STRING, value=literal)
        return replace(p, verb=verb, subject=subject, operands=(operand,))

    def _make_range(self, p: Predicate, value: ComputedValue) -> Predicate:
        """Turns ``cidr_contains`` into a range of addresses, which all networks have in common."""
        low, high = type_computed(self._typing, p)[1].arguments[1:]
        of = Subject((), computed=ComputedValue(ADDRESS, value.arguments[1:]))
        if p.verb is Verb.NULL:
            return replace(p, subject=of)
        ends = Operand(Kind.STRING, value=low), Operand(Kind.STRING, value=high)
        return replace(p, verb=Verb.BETWEEN, subject=of, operands=ends)


def type_computed(typing: Typing, p: Predicate) -> tuple[str, ValueNode]:
    """Returns the name and the tree of a computed value."""
    assert p.subject.computed is not None
    try:
        return typing.of(p.subject.computed)
    except Refusal as refusal:
        refusal.predicate = p
        raise
