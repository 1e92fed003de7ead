"""Conditions on elements of lists: ``exists(items, x -> x.price > 10 AND x.sku = 'a')``.

``forall`` is the NOT of ``exists`` of the NOT. ``size(filter(...))`` is compared by counting: at
least so many elements make a condition true, or fewer do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.errors import SchemaError
from colmatch.expr.ast import (
    CALLS,
    And,
    Constant,
    Expr,
    Not,
    Or,
    Predicate,
    Refusal,
    Subject,
    Verb,
    conjoin,
    rebuild,
    to_sql,
    walk,
)
from colmatch.expr.computed import AT_LEAST, FEWER_THAN, FORALL, MAP_PARTS, ComputedValue
from colmatch.expr.computed_types import definition_of
from colmatch.expr.simplify import LISTS
from colmatch.expr.spelling import SLOT, mark_slot, quote_name
from colmatch.expr.times import UNITED, clock_word, is_unit, mentions_clock
from colmatch.expr.tree import COUNTLESS, Modes
from colmatch.given.elements import EXISTS, ElementCall, ElementTest, element_type, nest
from colmatch.given.incoming import is_any_list
from colmatch.given.options import Options
from colmatch.given.schema import UUID, Attribute, Attributes, Family, Role, Schema, Shape, Type
from colmatch.given.session import Session, SessionParts
from colmatch.given.special import PLACE, UNKNOWN
from colmatch.lowering.floors import LiteralErrors, literal_floors
from colmatch.lowering.forms import PATTERNS, ElementPacking, Form, KeyTest, Kind, Leaf, Op, Operand
from colmatch.lowering.wide import encoder
from colmatch.text.reduce import reduce_pattern

Path = tuple[str, ...]
COUNT_MOST = 10**9  # elements
_CONDITIONS = Type(Family.BINARY, name="conditions")
_TEXTS = (Family.STRING, Family.BINARY)
_NUMBERS = (Kind.INT, Kind.DECIMAL, Kind.DOUBLE)
_MOST = {"max_depth": 400, "max_text_bytes": 1 << 30}  # for conditions, which were checked with their expression


class Lambda(NamedTuple):
    """A condition on an element, and the name that it has there."""

    parameter: str
    condition: Expr

    def sql(self, within: bool = False) -> str:
        """Writes it as Spark SQL."""
        return f"{quote_name(self.parameter)} -> {to_sql(self.condition)}"


def elements_predicate(function: str, list_of: ComputedValue, test: Lambda, count: int = 0) -> Predicate:
    """Makes a condition on elements.

    function : of ``exists``, ``forall``, ``at_least`` and ``fewer_than``, which need a count
    list_of : the list: a column, or a part of a map
    """
    number = (ComputedValue("literal", ("int", str(count))),) if count else ()
    return Predicate(Verb.CALL, Subject((), computed=ComputedValue(function, (list_of, test, *number))), ())


def compare_count(verb: Verb, number: int, make: Callable[[str, int], Expr]) -> Expr:
    """Makes the comparison of the number of elements that pass a test with a whole number.

    make : makes the condition that at least or fewer than so many elements pass, 1 or more

    Raises Refusal: the verb is no comparison.
    """

    def at_least(count: int) -> Expr:
        if count > 0:
            return make(AT_LEAST, min(count, COUNT_MOST))
        return Or((make(AT_LEAST, 1), make(FEWER_THAN, 1)))  # true wherever there is a list

    def fewer_than(count: int) -> Expr:
        if count > 0:
            return make(FEWER_THAN, min(count, COUNT_MOST))
        return And((make(AT_LEAST, 1), make(FEWER_THAN, 1)))  # false wherever there is a list

    if verb is Verb.GE or verb is Verb.GT:
        return at_least(number + (verb is Verb.GT))
    if verb is Verb.LT or verb is Verb.LE:
        return fewer_than(number + (verb is Verb.LE))
    if verb is Verb.EQ:
        return conjoin(And, [at_least(number), fewer_than(number + 1)])
    if verb is Verb.NE:
        return conjoin(Or, [fewer_than(number), at_least(number + 1)])
    raise Refusal("size(filter(...)) is compared by =, <> or an inequality")


def is_of_elements(p: Predicate) -> bool:
    """Returns whether a predicate is a condition on elements."""
    return p.verb is Verb.CALL and not p.operands


def through_list(schema: Schema, p: Predicate) -> list[Predicate]:
    """Expresses a test of a field of a list's elements, as in ``array_contains(items.sku, 'a')``.

    Tests of the keys or values of a map are expressed in the same way. Returns predicates that all
    must be true, and the predicate itself if it is another one.
    """
    path, value = p.subject.path, p.subject.computed
    if value is not None and value.function in MAP_PARTS and p.verb in LISTS:
        list_of, field = value, Subject((MAP_PARTS[value.function],))
    else:
        column = next((path[:n] for n in range(1, len(path)) if _is_list(schema, path[:n])), None)
        if column is None or p.subject.key is not None:
            return [p]
        if p.verb is Verb.NULL or p.subject.size:
            _check_field(schema, column, path, p)
            return [replace(p, subject=Subject(column, size=p.subject.size))]
        list_of, field = ComputedValue("column", column), Subject(path[len(column) - 1 :])  # called as their list
    if p.verb not in LISTS:
        return [p]
    if None in p.operands and p.verb is not Verb.ARRAYS_OVERLAP:
        raise Refusal(f"{CALLS[p.verb]} cannot look for NULL", predicate=p)
    tests: list[Expr] = [Predicate(Verb.EQ, field, (operand,)) for operand in p.operands]
    if p.verb is Verb.ARRAYS_OVERLAP:
        tests = [Predicate(Verb.IN, field, p.operands) if p.operands else Constant(False)]
    return [elements_predicate(EXISTS, list_of, Lambda(field.path[0], test)) for test in tests]


def _check_field(schema: Schema, column: Path, path: Path, p: Predicate) -> None:
    """Raises Refusal: the elements of a list have no such field."""
    element = schema.column(column).arrow.value_type
    try:
        Schema(pa.schema([(column[-1], element)]), schema.case_sensitive).column(path[len(column) - 1 :])
    except SchemaError as error:
        raise Refusal(str(error), predicate=p) from None


def _is_list(schema: Schema, path: Path) -> bool:
    try:
        return is_any_list(schema.column(path).arrow)
    except SchemaError:
        return False


class ElementReader:
    """A reader of conditions on elements, over one schema.

    normaliser_of : makes a normaliser for the columns that conditions name, and its attributes
    """

    def __init__(
        self,
        schema: Schema,
        options: Options,
        two_valued: bool,
        normaliser_of: Callable[[Schema], tuple[Callable[[Expr, int], Form], Attributes]],
    ) -> None:
        self._schema = schema
        self._two_valued = two_valued
        self._options: dict[str, str | bool | int] = {
            "timezone": options.timezone,
            "ansi": options.ansi,
            "casts": options.casts,
            **_MOST,
        }
        self._normaliser_of = normaliser_of
        self.session = Session(options.timezone)  # for literals of conditions
        self.value_of_definition: Callable[[str], ComputedValue] | None = None
        self._known: dict[Any, tuple[Attribute, Callable[[Expr, int], Form], Attributes]] = {}

    @property
    def session_parts(self) -> SessionParts:
        """Returns literals of conditions that depend on the session."""
        return SessionParts(zone=self.session.literal)

    def read(self, p: Predicate) -> tuple[Attribute, Condition]:
        """Returns the attribute of a condition on elements, and the condition.

        Raises Refusal: the condition does not fit the elements.
        """
        assert p.subject.computed is not None
        function, (list_of, test, *counted) = p.subject.computed
        if function == FORALL:
            test = test._replace(condition=Not(test.condition))
        column, part = self._list(list_of)
        # Find the columns of the event that the condition reads
        resolver = _Resolver(self._schema, self.value_of_definition)
        tree = resolver.tree(test.condition, (test.parameter,))
        paths = tuple(sorted(resolver.outer))
        key = column, part, test.parameter, paths, bool(counted), _reads_clock(tree)
        if key not in self._known:
            self._known[key] = self._prepare(*key[:3], {path: resolver.outer[path] for path in paths}, *key[4:])
        attribute, form_of, attributes = self._known[key]
        # Check the condition as one on a column
        try:
            checks = _find_checks(form_of(tree, 0), attributes)
            for type, op, operand in checks:
                fault = find_fault(type, op, operand, self.session) if operand.slot < 0 else None
                if fault is not None:
                    raise Refusal(f"{fault}, in a condition on elements of {'.'.join(column)!r}")
        except Refusal as refusal:
            refusal.predicate = resolver.written.get(id(refusal.predicate), refusal.predicate)
            names = re.compile(rf"column ('{re.escape(test.parameter)}(?:\.[^']*)?')")
            refusal.message = names.sub(rf"element \1 of {'.'.join(column)}", refusal.message)
            raise
        marked = _Resolver(self._schema, self.value_of_definition, marks=True).tree(test.condition, (test.parameter,))
        return attribute, _split(marked, resolver.operands, tuple(checks))

    def _list(self, list_of: ComputedValue) -> tuple[Path, str]:
        """Returns the path of a list, or of a map and its part."""
        part = list_of.function if list_of.function in MAP_PARTS else ""
        path: Path = list_of.arguments[0].arguments if part else list_of.arguments
        at = Predicate(Verb.BARE, Subject(path))  # for the place of an error
        try:
            column = self._schema.column(path)
        except SchemaError as error:
            raise Refusal(str(error), predicate=at) from None
        if not (pa.types.is_map(column.arrow) if part else is_any_list(column.arrow)):
            needed = "a map" if part else "a list"
            raise Refusal(f"column {column.name!r} is {column.arrow!s:.200}, {needed} is needed here", predicate=at)
        return column.path, part

    def _prepare(
        self, column: Path, part: str, parameter: str, outer: dict[Path, pa.DataType], counts: bool, reads_clock: bool
    ) -> tuple[Attribute, Callable[[Expr, int], Form], Attributes]:
        """Makes the attribute of a list, and the maker of forms that checks its conditions."""
        fields = [pa.field(parameter, element_type(self._schema.column(column).arrow, part)), *nest(outer)]
        inner = Schema(pa.schema(fields), self._schema.case_sensitive)
        call = ElementCall(
            column, tuple(outer), inner.arrow, self._options, self._two_valued, counts, reads_clock, part
        )
        others = f" with {', '.join('.'.join(map(quote_name, path)) for path in outer)}" if outer else ""
        name = ".".join(map(quote_name, column))
        call_of = "size(filter({}))" if counts else "exists({})"
        name = call_of.format(f"{f'{part}({name})' if part else name}, {quote_name(parameter)} -> {PLACE}") + others
        return Attribute((name,), Role.CALL, _CONDITIONS, call.to_call().key), *self._normaliser_of(inner)


class _Resolver:
    """Finds the columns of conditions: names of the schema become exact, and are noted.

    value_of_definition : returns a definition as a value
    marks : whether operands with slots are written as ``mark_slot`` makes them

    Attributes
    ----------
    outer : the columns, with their types
    operands : operands that have slots
    written : each predicate as it was written, by the id of the changed one
    """

    def __init__(
        self, schema: Schema, value_of_definition: Callable[[str], ComputedValue] | None, marks: bool = False
    ) -> None:
        self._schema = schema
        self._value_of_definition = value_of_definition
        self._marks = marks
        self.outer: dict[Path, pa.DataType] = {}
        self.operands: dict[int, Operand] = {}  # by slot
        self.written: dict[int, Predicate] = {}
        self._kept: list[Predicate] = []  # so that no other object gets an id

    def tree(self, tree: Expr, bound: tuple[str, ...]) -> Expr:
        """Returns a condition with exact names.

        bound : names of elements, which are no columns

        Raises Refusal: a name is none of the schema, or a part cannot be within a condition.
        """

        def change(p: Predicate) -> Predicate:
            if p.weighs is not None:
                raise Refusal("a condition on elements has no weight: give one to the whole", predicate=p)
            if p.verb is Verb.CALL and p.operands and p.subject.computed is not None:
                raise Refusal(f"{p.subject.computed.function} is not taken within a condition on elements", predicate=p)
            value = p.subject.computed or self._definition(p.subject.path, bound)
            if value is not None:
                subject = Subject((), computed=self._value(value, bound, p))
            else:
                subject = p.subject._replace(path=self._path(p.subject.path, bound, p))
            operands = p.operands
            if self._marks:
                operands = tuple([o if o is None or o.slot < 0 else mark_slot(o) for o in operands])
            changed = Predicate(p.verb, subject, operands, None, p.negated)
            self._kept.append(changed)
            self.operands |= {o.slot: o for o in p.operands if o is not None and o.slot >= 0}
            self.written[id(changed)] = p
            return changed

        return rebuild(tree, change)

    def _value(self, value: ComputedValue, bound: tuple[str, ...], p: Predicate) -> ComputedValue:
        if value.function == "column":
            defined = self._definition(value.arguments, bound)
            if defined is not None:
                return self._value(defined, bound, p)
            word = None if self._is_bound(value.arguments, bound) else clock_word(self._schema, value.arguments)
            return ComputedValue("column", self._path(value.arguments, bound, p)) if word is None else word
        parts = value.arguments
        unit = (
            next((i for i in (0, 2) if len(parts) == 3 and is_unit(parts[i])), -1) if value.function in UNITED else -1
        )
        return ComputedValue(
            value.function,
            tuple([part if i == unit else self._argument(part, bound, p) for i, part in enumerate(parts)]),
        )

    def _definition(self, path: Path, bound: tuple[str, ...]) -> ComputedValue | None:
        """Returns the definition of this name as a value; None for other names."""
        return None if self._is_bound(path, bound) else definition_of(self._schema, self._value_of_definition, path)

    def _is_bound(self, path: Path, bound: tuple[str, ...]) -> bool:
        """Returns whether a name begins with that of an element."""
        return self._fold(path[0]) in map(self._fold, bound)

    def _fold(self, name: str) -> str:
        """Returns a name as it is compared with others."""
        return name if self._schema.case_sensitive else name.lower()

    def _argument(self, part: Any, bound: tuple[str, ...], p: Predicate) -> Any:
        if isinstance(part, Lambda):
            return Lambda(part.parameter, self.tree(part.condition, (*bound, part.parameter)))
        return self._value(part, bound, p) if isinstance(part, ComputedValue) else part

    def _path(self, path: Path, bound: tuple[str, ...], p: Predicate) -> Path:
        same = next((name for name in reversed(bound) if self._fold(name) == self._fold(path[0])), None)
        if same is not None:
            return (same, *path[1:])
        try:
            column = self._schema.column(path)
        except SchemaError as error:
            try:  # an entry of a map, as in attrs.colour
                column = self._schema.column(path[:-1])
            except SchemaError:
                raise Refusal(str(error), predicate=p) from None
            if column.shape is not Shape.MAP:
                raise Refusal(str(error), predicate=p) from None
            self.outer[column.path] = column.arrow
            return (*column.path, path[-1])
        self.outer[column.path] = column.arrow
        return column.path


def _reads_clock(tree: Expr) -> bool:
    """Returns whether a condition, or one within it, reads the time of the call."""
    values = [node.subject.computed for node, _ in walk(tree, COUNTLESS) if isinstance(node, Predicate)]
    within = [part.condition for value in values if value for part in value.arguments if isinstance(part, Lambda)]
    return any(value is not None and mentions_clock(value) for value in values) or any(map(_reads_clock, within))


def _find_checks(form: Form, attributes: Attributes) -> list[tuple[Type, Op, Operand]]:
    """Returns the literals of a form that may be no values of their attribute's type."""
    return [
        (type, test.op, operand)
        for leaf in form.leaves
        for type in (attributes[leaf.attr].type,)
        for test in leaf.tests
        for operand in test.operands
        if test.op in PATTERNS or not _is_always_read(type, operand.kind)
    ]


def _is_always_read(type: Type, kind: Kind) -> bool:
    """Returns whether each literal of a kind that fits a type can be read as a value of it."""
    return kind is Kind.BOOL or (type != UUID and (type.family in _TEXTS or kind in _NUMBERS))


def find_fault(type: Type, op: Op, operand: Operand, session: Session) -> str | None:
    """Returns why a literal cannot be read, or None.

    operand : has the literal as its value
    """
    if op in PATTERNS:
        return reduce_pattern(op.name.lower(), str(operand.value)).error or None
    values = list(operand.value) if operand.many else [operand.value]
    try:
        if type.textual:
            list(map(encoder(type, operand.kind, operand.negative), values))
        else:
            literal_floors(type, operand.kind, values, operand.negative, session)
    except LiteralErrors as errors:
        return next(iter(errors.reasons.values()))
    except ValueError as error:
        return str(error)
    return None


class Condition(NamedTuple):
    """A condition as a text, cut where its literals are."""

    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    checks: tuple[tuple[Type, Op, Operand], ...]

    def operand(self, least: int = 0, maybe: bool = False) -> Operand:
        """Returns the operand for the test that the condition holds for so many elements.

        least : number of elements; 0 for one, as exists has it
        maybe : whether elements count where the condition is Unknown
        """
        if self.operands:
            return Operand(Kind.BINARY, self.operands[0].slot, value=ElementPacking(*self, least, maybe))
        return _literal(ElementTest(self.parts[0], least, maybe).to_bytes())


def _split(tree: Expr, operands: dict[int, Operand], checks: tuple[tuple[Type, Op, Operand], ...]) -> Condition:
    """Writes a condition, cut where its literals are.

    Raises Refusal: a text within it looks like the place of a literal.
    """
    parts = SLOT.split(to_sql(tree))
    slots = list(map(int, parts[1::2]))
    if set(slots) != operands.keys():
        raise Refusal("a text with the character of code 0 is not taken in a condition on elements")
    return Condition(tuple(parts[::2]), tuple([operands[slot]._replace(negative=False) for slot in slots]), checks)


def element_modes(attr: int, p: Predicate, condition: Condition) -> Modes:
    """Returns the modes of a condition on elements.

    It is Unknown without a list. Where it is not true, it is also Unknown if the condition is
    Unknown for some element, unless elements are counted.
    """
    assert p.subject.computed is not None
    function, (_, _, *count) = p.subject.computed
    true = condition.operand(int(count[0].arguments[1]) if count else 0)
    maybe = true if count else condition.operand(maybe=True)
    some, either = (KeyTest(Op.EQ, (true,)),), (KeyTest(Op.IN, (maybe, _literal(UNKNOWN))),)
    modes = Leaf(attr, some), Leaf(attr, either, True), Leaf(attr, some, True), Leaf(attr, either)
    return (modes[1], modes[0], modes[3], modes[2]) if function in (FORALL, FEWER_THAN) else modes


def _literal(value: bytes) -> Operand:
    return Operand(Kind.BINARY, value=value)
