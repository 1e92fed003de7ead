"""Forms from the trees of ``ast.py``.

Attributes are resolved, NOT disappears, and a disjunction of conjunctions or a program remains.
Every node is asked in one of the modes of ``modes.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Protocol

from colmatch.errors import SchemaError
from colmatch.events.computed.nodes import arrow_type
from colmatch.expr.assemble import Assembly
from colmatch.expr.ast import (
    CALLS,
    WORDS,
    And,
    AtLeast,
    Constant,
    Expr,
    Not,
    Or,
    Predicate,
    Refusal,
    Subject,
    Truth,
    Verb,
    walk,
)
from colmatch.expr.bind_casts import CastBinder, given_literals
from colmatch.expr.casts import OR_CASTS
from colmatch.expr.computed import ComputedValue
from colmatch.expr.computed_types import Typing
from colmatch.expr.elements import ElementReader, element_modes, is_of_elements, through_list
from colmatch.expr.modes import (
    FALSE,
    NOT_FALSE,
    NOT_TRUE,
    POSITIVE,
    PRESENT,
    TRUE,
    UNKNOWN,
    ask_truth,
    make_absence,
    make_membership,
    modes_with_weight,
    negate_modes,
)
from colmatch.expr.simplify import LISTS, Simplifier, type_computed
from colmatch.expr.special import call_attribute, call_modes
from colmatch.expr.times import LENGTHS
from colmatch.expr.tree import COUNTLESS, All, Formula, Modes, at_least, conjoin, disjoin, fold, size_of
from colmatch.expr.variants import WRITE_VARIANT
from colmatch.given.incoming import is_any_list
from colmatch.given.options import Options
from colmatch.given.schema import (
    BOOL,
    INT,
    UUID,
    Attribute,
    Attributes,
    Column,
    Family,
    Role,
    Schema,
    Shape,
    SolvedValue,
    Type,
    definition_named,
    value_type,
    why_unusable,
    writes_out,
)
from colmatch.kernels.layout import KEY_MAX, KEY_MIN
from colmatch.kinds.settings import Budget
from colmatch.lowering.floors import misfit
from colmatch.lowering.forms import (
    BY_ATTRIBUTE,
    BY_COLUMN,
    PATTERNS,
    Conjunction,
    Form,
    KeyTest,
    Kind,
    Leaf,
    Op,
    Operand,
)

# most repetitions of a predicate in a form, on average: IS UNKNOWN repeats its part, so nesting it
# doubles them
REPEATS = 64
SMALL = 1  # predicates of a definition that is written out wherever it is used

_EMPTY = (KeyTest(Op.EQ, (Operand(Kind.INT, value=0),)),)
_TRUE = (KeyTest(Op.EQ, (Operand(Kind.BOOL, value=True),)),)
_FALSE = (KeyTest(Op.EQ, (Operand(Kind.BOOL, value=False),)),)

_OPS = {
    Verb.EQ: Op.EQ, Verb.NE: Op.EQ, Verb.LT: Op.LT, Verb.LE: Op.LE, Verb.GT: Op.GT, Verb.GE: Op.GE, Verb.SAME: Op.EQ,
    Verb.BETWEEN: Op.BETWEEN, Verb.IN: Op.IN, Verb.LIKE: Op.LIKE, Verb.ILIKE: Op.ILIKE, Verb.RLIKE: Op.RLIKE,
    Verb.STARTSWITH: Op.STARTSWITH, Verb.ENDSWITH: Op.ENDSWITH, Verb.CONTAINS: Op.CONTAINS,
}  # fmt: skip
_EQUALITIES = frozenset({Verb.EQ, Verb.NE, Verb.SAME, Verb.IN})
_KINDS = {
    Kind.INT: "a number", Kind.DECIMAL: "a number", Kind.DOUBLE: "a number", Kind.STRING: "a string", Kind.BOOL: "TRUE or FALSE",
    Kind.DATE: "a date", Kind.TIMESTAMP: "a timestamp", Kind.TIMESTAMP_NTZ: "a timestamp", Kind.BINARY: "a binary literal",
}  # fmt: skip


class NamedConditions(Protocol):
    """The meaning of definitions, by name."""

    def modes(self, name: str) -> Modes:
        """Returns the formulas of a definition, with its literals as values."""

    def value(self, name: str) -> ComputedValue:
        """Returns a definition as a computed value. Raises Refusal: it has no such form."""


@lru_cache(maxsize=64)
def _every(n: int) -> Conjunction:
    """Returns the conjunction of leaves 0 to n - 1, the only one in most forms."""
    return Conjunction(tuple(range(n)))


class Normaliser:
    """A converter of trees to forms, over one schema.

    ``attributes`` collects the attributes that the expressions use. Leaves are made once for each
    predicate object, so that forms share them. Over 100 columns, 100,000 different forms have a few
    thousand leaves between them.

    With ``by_attribute``, positive predicates have the weights that subscriptions give to
    attributes. With ``two_valued``, a predicate on an absent value is False, and no condition is
    ever Unknown.
    """

    def __init__(
        self,
        schema: Schema,
        attributes: Attributes,
        budget: Budget,
        by_attribute: bool,
        two_valued: bool,
        options: Options | None = None,
    ) -> None:
        self.schema = schema
        self.attributes = attributes
        self.budget = budget
        self.by_attribute = by_attribute
        self.two_valued = two_valued
        self._options = options or Options()
        self.typing = Typing(schema, self._options)
        self.simplifier = Simplifier(schema, self.typing, by_attribute)
        self.elements = ElementReader(schema, self._options, two_valued, self._of_elements)
        self.casts = CastBinder(self.typing, self.elements.read)
        self._definitions: NamedConditions | None = None
        self._modes: dict[int, tuple[Predicate, tuple[Formula, ...]]] = {}
        self._defined: dict[str, Modes] = {}
        self._scalars: dict[Subject, tuple[int, Type, str]] = {}  # columns of one value: attribute, type and name

    def use(self, definitions: NamedConditions) -> None:
        """Sets the definitions by name."""
        self._definitions = definitions
        self.typing.value_of_definition = self.elements.value_of_definition = definitions.value

    def form(self, tree: Expr, slots: int) -> Form:
        """Makes the form of a tree.

        Raises Refusal: an attribute is unknown or of the wrong type. The error has the predicate
        that is to blame.
        """
        root = self._find_mode(tree, TRUE)
        if root is True:
            return Form((), (Conjunction(()),), slots)
        if root is False:
            return Form((), (), slots)
        if type(root) is Leaf:
            return Form((root,), (_every(1),), slots)
        if type(root) is All and root.conjunctions == 1:
            leaves = tuple(root.parts)
            return Form(leaves, (_every(len(leaves)),), slots)
        assert isinstance(root, All)
        return Assembly(self.budget).form(root, slots)

    def modes(self, tree: Expr) -> Modes:
        """Returns the formulas for a tree to be true, false, not true, and not false.

        Raises Refusal: as ``form`` does.
        """
        return (
            self._find_mode(tree, TRUE),
            self._find_mode(tree, FALSE),
            self._find_mode(tree, NOT_TRUE),
            self._find_mode(tree, NOT_FALSE),
        )

    def _of_elements(self, schema: Schema) -> tuple[Callable[[Expr, int], Form], Attributes]:
        """Returns the maker of forms of conditions on elements, and their attributes."""
        options = Options(timezone=self._options.timezone, ansi=self._options.ansi, casts=self._options.casts)
        inner = Normaliser(schema, Attributes(), self.budget, False, self.two_valued, options)

        def form_of(tree: Expr, slots: int) -> Form:
            form = inner.form(inner.casts.bind(tree, given_literals), slots)
            parts = inner.typing.session_parts.with_others(inner.elements.session_parts)
            self.typing.session_parts = self.typing.session_parts.with_others(parts)
            return form

        return form_of, inner.attributes

    # Modes

    def _find_mode(self, tree: Expr, mode: int) -> Formula:
        """Returns one mode of the tree, as leaves and groups."""
        done: list[Formula] = []
        stack: list[Any] = [(tree, mode)]
        cache = self._modes
        size, most = 0, COUNTLESS
        while stack:
            node, mode = stack.pop()
            kind = type(node)
            if kind is Predicate:
                entry = cache.get(id(node))
                if entry is None:
                    # hold the node, so that no other object gets its id
                    entry = cache[id(node)] = node, self._with_weight(node)
                done.append(entry[1][mode])
                size += 1
            elif kind is And or kind is Or:
                # AND needs all of its parts in modes TRUE and NOT_FALSE, and one of them in the
                # other two; OR the other way round.
                combine = conjoin if (kind is And) == (mode in POSITIVE) else disjoin
                stack.append((combine, len(node.parts)))
                stack.extend([(part, mode) for part in node.parts])
            elif kind is AtLeast:
                # It is false, or not true, where so many parts are that too few are left.
                least = node.least if mode in POSITIVE else len(node.parts) - node.least + 1
                stack.append((partial(at_least, least=least), len(node.parts)))
                stack.extend([(part, mode) for part in node.parts])
            elif kind is Not:
                stack.append((node.part, mode ^ 1))
            elif kind is Truth:
                if node.value is None and most == COUNTLESS:
                    most = 1000 + REPEATS * sum(type(part) is Predicate for part, _ in walk(tree, COUNTLESS))
                ask_truth(node, mode, stack, self.by_attribute, self.two_valued)
            elif kind is Constant:
                value = False if node.value is None and self.two_valued else node.value
                done.append(UNKNOWN[mode & 3] if value is None else (mode in POSITIVE) == value)
            else:
                parts = done[-mode:]
                del done[-mode:]
                parts.reverse()
                done.append(node(parts))
            if size > most:
                raise Refusal(
                    "IS NULL or IS UNKNOWN of conditions within conditions, too deep: write the condition without them"
                )
        return done[0]

    # Definitions

    def _definition(self, p: Predicate, name: str, definitions: NamedConditions) -> Modes:
        """Returns the modes of a predicate about a definition as a whole."""
        if p.weighs is not None:
            raise Refusal(f"{name!r} is a definition and has no weight: give weights to conditions in it", predicate=p)
        value = p.operands[0].value if p.operands and p.operands[0] is not None else None
        is_test = p.verb is Verb.NULL or (p.verb in (Verb.EQ, Verb.NE) and isinstance(value, bool))
        if p.subject != Subject(p.subject.path) or not (p.verb is Verb.BARE or is_test):
            raise Refusal(f"{name!r} is a definition: write {name}, NOT {name} or {name} IS NULL", predicate=p)
        if name not in self._defined:
            self._defined[name] = self._share(name, definitions)
        modes = self._defined[name]
        if p.verb is Verb.NULL:
            unknown, known = conjoin([modes[NOT_TRUE], modes[NOT_FALSE]]), disjoin([modes[TRUE], modes[FALSE]])
            return unknown, known, known, unknown
        is_negated = p.verb is not Verb.BARE and value is (p.verb is Verb.NE)
        return (modes[FALSE], modes[TRUE], modes[NOT_FALSE], modes[NOT_TRUE]) if is_negated else modes

    def _share(self, name: str, definitions: NamedConditions) -> Modes:
        """Returns the modes of a definition: its own, or those of a value that all uses share."""
        modes = definitions.modes(name)
        true = modes[TRUE]
        is_small = isinstance(true, bool) or size_of(true) <= SMALL
        if is_small or self.by_attribute or self.two_valued or writes_out(self.schema):
            return modes
        # A predicate beside NULL may be in one mode alone
        if not all(isinstance(one, bool) or fold(one, self._is_plain, lambda _, parts: all(parts)) for one in modes):
            return modes
        try:
            value = definitions.value(name)
            if value.function == "column":
                return modes
            return self._predicate(Predicate(Verb.BARE, Subject((), computed=value)))
        except Refusal:  # it has a condition that no value has
            return modes

    def _is_plain(self, leaf: Leaf) -> bool:
        """Returns whether a predicate surely means the same as a part of a value.

        Predicates compare numbers of different types exactly, and values as Spark does.
        """
        type_ = self.attributes[leaf.attr].type
        return all(_is_alike(type_, operand) for test in leaf.tests for operand in test.operands)

    # Predicates

    def _with_weight(self, p: Predicate) -> tuple[Formula, ...]:
        """Returns the modes of a predicate with its weight, and then those without."""
        if self._definitions is not None and (name := definition_named(self.schema, p.subject.path)) is not None:
            modes = self._definition(p, name, self._definitions)
            return modes + modes
        p = self.simplifier.simplify(p)
        parts = through_list(self.schema, p) if len(p.subject.path) != 1 else [p]
        each = list(zip(*map(self._predicate, parts), strict=True))
        modes = each[0][0], each[1][0], each[2][0], each[3][0]
        if len(parts) > 1:
            modes = conjoin(list(each[0])), disjoin(list(each[1])), disjoin(list(each[2])), conjoin(list(each[3]))
        modes = negate_modes(modes, p.negated, self.two_valued)
        if p.weighs is not None:
            return modes_with_weight(modes, p.weighs.slot, range(4), self._any_attribute(parts[0]))
        if self.by_attribute:
            attr = self._any_attribute(parts[0])
            of_column = self.attributes[attr].role is Role.SIZE and not p.subject.size
            negative = p.verb in (Verb.NE, Verb.NULL) or (p.verb is Verb.SAME and p.operands[0] is None) or p.negated
            which = (FALSE, NOT_TRUE) if negative else (TRUE, NOT_FALSE)
            return modes_with_weight(modes, BY_COLUMN if of_column else BY_ATTRIBUTE, which, attr)
        return modes + modes

    def _any_attribute(self, p: Predicate) -> int:
        """Returns an attribute that the predicate is about."""
        if is_of_elements(p):
            return self.attributes.intern(self.elements.read(p)[0])
        if p.verb is Verb.CALL:
            return self.attributes.intern(call_attribute(self.schema, p))
        if p.subject.computed is not None:
            return self._find_computed(p)[0]
        column, key = self._column(p)
        if key is not None:
            assert column.type is not None
            return self.attributes.intern(Attribute(column.path, Role.ENTRY, column.type, key))
        if p.subject.size or column.shape in (Shape.LIST, Shape.MAP, Shape.UNUSABLE):
            return self._attribute(column, Role.SIZE, INT)
        assert column.type is not None
        return self._attribute(column, Role.VALUE, column.type)

    def _find_computed(self, p: Predicate) -> tuple[int, Type, str]:
        """Returns the attribute of a computed value, its type and its name."""
        name, node = type_computed(self.typing, p)
        assert p.subject.computed is not None
        if node.type in LENGTHS and any(p.operands):
            raise Refusal(f"{name} is an interval: compare it with INTERVAL 7 DAYS or the like", predicate=p)
        type = value_type(arrow_type(node.type))
        assert type is not None
        _check_bare(p, type, name)  # ``(i % 3) & 5 = 1`` is read by way of ``i % 3``, which is to leave no attribute
        attribute = Attribute((name,), Role.COMPUTED, type, node.key)
        solved = None if self.simplifier.has_weight(p) or type.textual else self.typing.solved(p.subject.computed)
        if solved is None:
            return self.attributes.intern(attribute), type, name
        path, steps = solved
        column = self.schema.column(path)
        assert column.type is not None
        base = self._attribute(column, Role.VALUE, column.type)
        return self.attributes.intern_solved(SolvedValue(attribute, base, steps)), type, name

    def _predicate(self, p: Predicate) -> Modes:
        if is_of_elements(p):
            attribute, condition = self.elements.read(p)
            self.typing.session_parts = self.typing.session_parts.with_others(self.elements.session_parts)
            return element_modes(self.attributes.intern(attribute), p, condition)
        if p.verb is Verb.CALL:
            return call_modes(self.attributes.intern(call_attribute(self.schema, p)), p)
        if p.subject.computed is not None:
            return self._scalar(p, *self._find_computed(p))
        if p.subject in self._scalars and p.verb not in LISTS:
            return self._scalar(p, *self._scalars[p.subject])
        (column, key), verb = self._column(p), p.verb
        if p.subject.size:
            if column.shape is not Shape.MAP and not is_any_list(column.arrow):
                raise Refusal(f"size needs a list or map column; {column.name!r} is {column.arrow}", predicate=p)
            return self._scalar(p, self._attribute(column, Role.SIZE, INT), INT, f"size({column.name})")
        if column.shape is Shape.LIST:
            return self._list(p, column)
        if column.shape is Shape.UNUSABLE:
            return make_absence(self._attribute(column, Role.SIZE, INT))
        if column.shape is Shape.MAP:
            if key is None:
                if verb is Verb.NULL:
                    return make_absence(self._attribute(column, Role.SIZE, INT))
                example = f"{column.name}['key'], or write size({column.name})"
                raise Refusal(f"column {column.name!r} is a map: name an entry, as in {example}", predicate=p)
            assert column.type is not None
            attribute = Attribute(column.path, Role.ENTRY, column.type, key)
            return self._scalar(p, self.attributes.intern(attribute), column.type, attribute.name)
        if verb in LISTS:
            raise Refusal(
                f"{CALLS[verb]} needs a list column; {column.name!r} is {column.arrow}: compare it with =, or IN",
                predicate=p,
            )
        assert column.type is not None
        attr = self._attribute(column, Role.VALUE, column.type)
        scalar = self._scalars[p.subject] = attr, column.type, column.name
        return self._scalar(p, *scalar)

    def _column(self, p: Predicate) -> tuple[Column, str | int | None]:
        """Returns the column and the map key of the subject.

        As in Spark, ``s['x']`` of a struct is a field and ``m.x`` of a map an entry.
        """
        path, key = p.subject[:2]
        try:
            column = self.schema.column(path)
        except SchemaError as error:
            above = self._find_map(path) if key is None else None
            if above is None:
                raise Refusal(str(error), predicate=p) from None
            column, key = above, path[-1]
        if column.shape is Shape.STRUCT and isinstance(key, str):
            try:
                column, key = self.schema.column((*path, key)), None
            except SchemaError as error:
                raise Refusal(str(error), predicate=p) from None
        name = column.name
        if column.shape is Shape.VARIANT:
            raise Refusal(f"column {name!r} is a variant: {WRITE_VARIANT}", predicate=p)
        if column.shape is Shape.STRUCT:
            field = column.arrow.field(0).name if column.arrow.num_fields else "field"
            raise Refusal(f"column {name!r} is a struct: name a field, as in {name}.{field}", predicate=p)
        asks_list = (p.subject.size or (p.verb is Verb.NULL and key is None)) and is_any_list(column.arrow)
        if column.shape is Shape.UNUSABLE and not asks_list:
            raise Refusal(why_unusable(name, column.arrow), predicate=p)
        if key is not None:
            if p.subject.size:
                raise Refusal(f"size needs a list or map column; {name}[{key!r}] is one value of a column", predicate=p)
            if column.shape is Shape.LIST:
                raise Refusal(f"column {name!r} is a list: [...] takes a place, as in {name}[0]", predicate=p)
            if column.shape is not Shape.MAP:
                raise Refusal(f"column {name!r} is {column.arrow}: [...] needs a map", predicate=p)
            assert column.key is not None
            if (column.key.family is Family.STRING) is not isinstance(key, str):
                key_kind = "a string" if column.key.family is Family.STRING else "a whole number"
                raise Refusal(f"the keys of {name!r} are {column.key}: write {key_kind} in [...]", predicate=p)
            if isinstance(key, int) and not KEY_MIN <= key <= KEY_MAX:
                raise Refusal(
                    f"the keys of {name!r} are {column.key}: none is as large as the number in [...]", predicate=p
                )
        return column, key

    def _find_map(self, path: tuple[str, ...]) -> Column | None:
        """Returns the map with string keys that has ``path`` as an entry, or None."""
        try:
            above = self.schema.column(path[:-1])
        except SchemaError:
            return None
        is_map = above.shape is Shape.MAP and above.key is not None and above.key.family is Family.STRING
        return above if is_map else None

    def _attribute(self, column: Column, role: Role, type: Type) -> int:
        return self.attributes.intern(Attribute(column.path, role, type))

    def _fit(self, p: Predicate, type: Type, name: str) -> None:
        """Refuses literals that can never be compared with the attribute."""
        for operand in p.operands:
            needed = None if operand is None else misfit(type, operand.kind, self._is_cast(p, operand))
            if needed is not None:
                assert operand is not None
                what = name if name.startswith("size(") else f"column {name!r}"
                kind = _KINDS[operand.kind]
                is_value = name.isidentifier() or p.subject.computed is not None
                if type.family is Family.STRING and _KINDS[operand.kind] == "a number" and is_value:
                    needed += f", or CAST({name} AS DOUBLE)"
                if operand.kind is Kind.DATE and type.family is Family.STRING and name.isidentifier():
                    needed += f', or make the column a date, as --schema "{name}: date" does'
                if not self.typing.is_cast and p.verb not in LISTS and _is_castable(type, operand.kind):
                    needed += OR_CASTS
                if type.family is Family.BOOL and kind == "a number" and self.typing.is_ansi:
                    needed += ", since a Boolean meets no number in ANSI mode"
                raise Refusal(
                    f"{what} is {type}, the expression compares it with {kind}: write {needed}", None, p, operand.slot
                )

    def _is_cast(self, p: Predicate, operand: Operand) -> bool:
        """Returns whether a literal may be cast to a Boolean that it is compared with."""
        return operand.kind is Kind.STRING or (p.verb in _EQUALITIES and not self.typing.is_ansi)

    def _scalar(self, p: Predicate, attr: int, type: Type, name: str) -> Modes:
        verb = p.verb
        if verb is Verb.NULL:
            return make_absence(attr)
        if verb is Verb.BARE:
            _check_bare(p, type, name)
            return Leaf(attr, _TRUE), Leaf(attr, _FALSE), Leaf(attr, _TRUE, True), Leaf(attr, _FALSE, True)
        if verb in LISTS:
            raise Refusal(f"{CALLS[verb]} needs a list column; {name!r} is {type}", predicate=p)
        op = _OPS[verb]
        if op in PATTERNS:
            return self._pattern(p, op, attr, type, name)
        self._fit(p, type, name)
        values = tuple([operand for operand in p.operands if operand is not None])
        nulls = len(p.operands) - len(values)
        if verb is Verb.SAME:
            if nulls:
                return make_absence(attr)
            same, other = Leaf(attr, (KeyTest(op, values),)), Leaf(attr, (KeyTest(op, values),), True)
            return same, other, other, same
        if verb is Verb.BETWEEN and nulls:
            low, high = p.operands
            one = KeyTest(Op.GE, (low,)) if low is not None else KeyTest(Op.LE, (high,)) if high is not None else None
            # AND with Unknown is never True; it is False where the other side is.
            return (
                (False, make_membership(attr, one)[FALSE], True, make_membership(attr, one)[NOT_FALSE])
                if one
                else UNKNOWN
            )
        if verb is Verb.IN and nulls:
            membership = make_membership(attr, KeyTest(op, values)) if values else UNKNOWN
            return membership[TRUE], False, membership[NOT_TRUE], True
        if nulls:
            return UNKNOWN
        modes = make_membership(attr, KeyTest(op, values))
        return (modes[1], modes[0], modes[3], modes[2]) if verb is Verb.NE else modes

    def _pattern(self, p: Predicate, op: Op, attr: int, type: Type, name: str) -> Modes:
        word = WORDS.get(p.verb) or CALLS[p.verb]
        if type.family is not Family.STRING:
            instead = "" if self.typing.is_cast else f": write CAST({name} AS STRING){OR_CASTS}"
            raise Refusal(f"{word} needs a string column; {name!r} is {type}{instead}", predicate=p)
        operand = p.operands[0]
        if operand is None:
            return UNKNOWN
        if operand.kind is not Kind.STRING:
            raise Refusal(f"{word} needs a string, not {_KINDS[operand.kind]}", None, p, operand.slot)
        # Later, a pattern is a separate attribute. It is absent where the value is NULL, and also
        # where the value does not match.
        some, none = Leaf(attr, (KeyTest(op, (operand,)),)), Leaf(attr, (KeyTest(op, (operand,)),), True)
        return some, conjoin([Leaf(attr, PRESENT), none]), none, disjoin([Leaf(attr, PRESENT, True), some])

    def _list(self, p: Predicate, column: Column) -> Modes:
        assert column.type is not None
        verb, name = p.verb, column.name
        size = self._attribute(column, Role.SIZE, INT)
        if verb is Verb.CONTAINS:  # in DuckDB, contains() takes lists, too
            verb = Verb.ARRAY_CONTAINS
        if verb is Verb.NULL:
            return make_absence(size)
        if verb not in LISTS:
            example = f"array_contains({name}, ...), arrays_overlap({name}, array(...)) or size({name})"
            raise Refusal(f"column {name!r} is a list: write {example}", predicate=p)
        self._fit(p, column.type, name)
        element = self._attribute(column, Role.ELEMENT, column.type)
        values = tuple([operand for operand in p.operands if operand is not None])
        if verb is Verb.ARRAYS_OVERLAP:
            return self._overlap(column, element, size, values, len(values) < len(p.operands))
        if len(values) < len(p.operands):
            raise Refusal(f"{CALLS[verb]} cannot look for NULL", predicate=p)
        each = [(KeyTest(Op.EQ, (value,)),) for value in values]
        some, none = ([Leaf(element, test, lacks) for test in each] for lacks in (False, True))
        return self._make_list_modes(column, size, conjoin(list(some)), disjoin(list(none)))

    def _make_list_modes(self, column: Column, size: int, some: Formula, none: Formula) -> Modes:
        """Returns the modes of a test of elements: Unknown where it is not true and one is NULL."""
        if not column.arrow.field(0).nullable:
            return some, conjoin([Leaf(size, PRESENT), none]), none, disjoin([some, Leaf(size, PRESENT, True)])
        null = self._attribute(column, Role.HAS_NULL, BOOL)
        false = conjoin([Leaf(size, PRESENT), none, Leaf(null, PRESENT, True)])
        return some, false, none, disjoin([some, Leaf(size, PRESENT, True), Leaf(null, PRESENT)])

    def _overlap(self, column: Column, element: int, size: int, values: tuple[Operand, ...], null: bool) -> Modes:
        if not values and not null:
            return False, Leaf(size, PRESENT), True, Leaf(size, PRESENT, True)
        some: Formula = Leaf(element, (KeyTest(Op.IN, values),)) if values else False
        none: Formula = Leaf(element, (KeyTest(Op.IN, values),), True) if values else True
        if not null:
            return self._make_list_modes(column, size, some, none)
        # With a NULL among the literals, only an empty list surely shares nothing.
        return some, Leaf(size, _EMPTY), none, disjoin([some, Leaf(size, _EMPTY, True)])


_ALIKE = {
    Family.BOOL: (Kind.BOOL,), Family.STRING: (Kind.STRING,), Family.DATE: (Kind.DATE,), Family.INT: (Kind.INT,),
    Family.TIMESTAMP: (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ), Family.FLOAT: (Kind.INT, Kind.DECIMAL, Kind.DOUBLE),
}  # fmt: skip


def _is_alike(type: Type, operand: Operand) -> bool:
    """Returns whether a literal is of the type of a value, or a number beside a double."""
    if operand.kind not in _ALIKE.get(type.family, ()) or (type.family is Family.FLOAT and str(type) != "double"):
        return False
    if type.family is not Family.INT:
        return True
    values = operand.value if operand.many else (operand.value,)
    return all(KEY_MIN <= int(value) <= KEY_MAX for value in values)


def _is_castable(type: Type, kind: Kind) -> bool:
    """Returns whether Spark casts the text when a value of a type meets a literal."""
    if type.family is Family.STRING:
        return type != UUID and kind is not Kind.BINARY
    numbers = Family.INT, Family.UINT64, Family.FLOAT, Family.DECIMAL, Family.WIDE_DECIMAL
    return kind is Kind.STRING and type.family in numbers


def _check_bare(p: Predicate, type: Type, name: str) -> None:
    """Checks that a value which is a condition by itself is true or false.

    Raises Refusal: it is something else.
    """
    if p.verb is Verb.BARE and type.family is not Family.BOOL:
        raise Refusal(
            f"column {name!r} is {type}, not a condition by itself: write {name} = ... or the like", predicate=p
        )
