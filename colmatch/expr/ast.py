"""The tree of an expression, before its columns are looked up.

The text parser and the builder make the same tree, so that ``parse(str(expression)) ==
expression``. A tree has AND, OR, NOT and IS TRUE over *predicates*. A predicate is a verb with its
subject and its operands::

    age BETWEEN 22 AND 36 AND NOT vip

    And((Predicate(Verb.BETWEEN, Subject(("age",)),
                   (Operand(INT, value=22), Operand(INT, value=36))),
         Not(Predicate(Verb.BARE, Subject(("vip",)), ()))))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple, NoReturn

from colmatch.errors import ExpressionError, show_value
from colmatch.expr.computed import ARITHMETIC, ComputedValue, write_negation
from colmatch.expr.spelling import operand_sql, quote_name
from colmatch.given.arguments import double, whole_number
from colmatch.lowering.forms import Kind, Operand, arguments_text, quote_text
from colmatch.lowering.weights import WEIGHT_MOST
from colmatch.show.names import Listed

NAN = float("nan")  # the only NaN in trees, so that equal trees compare as equal


class Refusal(Exception):
    """The refusal of an expression, with its reason and its place.

    The place is an offset into the text, or the predicate and slot that are to blame.
    """

    def __init__(self, message: str, at: int | None = None, predicate: Predicate | None = None, slot: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.predicate = predicate
        self.slot = slot


class Subject(NamedTuple):
    """The subject of a predicate.

    It is a column or struct field, an entry of a map, or a computed value. With ``size``, it is the
    number of elements. A computed value has no path.
    """

    path: tuple[str, ...]
    key: str | int | None = None
    size: bool = False
    computed: ComputedValue | None = None


class Verb(IntEnum):
    """The verb of a predicate, which relates its subject to its operands."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    SAME = 6  # <=>
    BETWEEN = 7
    IN = 8
    NULL = 9  # IS NULL
    BARE = 10  # a Boolean column by itself
    LIKE = 11
    ILIKE = 12
    RLIKE = 13
    STARTSWITH = 14
    ENDSWITH = 15
    CONTAINS = 16
    ARRAY_CONTAINS = 17
    ARRAYS_OVERLAP = 18
    CONTAINS_ALL = 19
    CALL = 20  # a special function: its subject has the columns, its operand the arguments. Without one, of elements


SIGNS = {Verb.EQ: "=", Verb.NE: "<>", Verb.LT: "<", Verb.LE: "<=", Verb.GT: ">", Verb.GE: ">=", Verb.SAME: "<=>"}
WORDS = {Verb.LIKE: "LIKE", Verb.ILIKE: "ILIKE", Verb.RLIKE: "RLIKE"}
AT_LEAST = "at_least"
CALLS = {
    Verb.STARTSWITH: "startswith",
    Verb.ENDSWITH: "endswith",
    Verb.CONTAINS: "contains",
    Verb.ARRAY_CONTAINS: "array_contains",
    Verb.ARRAYS_OVERLAP: "arrays_overlap",
    Verb.CONTAINS_ALL: "contains_all",
}


class Expr(Listed):
    """A condition. ``&``, ``|`` and ``~`` combine conditions. It prints as Spark SQL."""

    __slots__ = ()
    _inner = frozenset(("node", "negated", "operands", "part", "parts", "subject", "verb", "weighs"))

    def node(self) -> Expr:
        """Returns the tree itself (a column handle is a condition that has yet to become one)."""
        return self

    def __and__(self, other: Expr | bool) -> Expr:
        return conjoin(And, [self.node(), _condition(other)])

    def __rand__(self, other: bool) -> Expr:
        return conjoin(And, [_condition(other), self.node()])

    def __or__(self, other: Expr | bool) -> Expr:
        return conjoin(Or, [self.node(), _condition(other)])

    def __ror__(self, other: bool) -> Expr:
        return conjoin(Or, [_condition(other), self.node()])

    def __invert__(self) -> Expr:
        return Not(self.node())

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            "a condition is neither true nor false before it meets an event: write & | ~ instead of and, or, not, "
            "and between(...) instead of a < x < b"
        )

    def is_true(self) -> Expr:
        """Makes a condition that is true where this one is, else false."""
        return truth(self.node(), True)

    def is_false(self) -> Expr:
        """Makes a condition that is true where this one is false, else false."""
        return truth(self.node(), False)

    def is_unknown(self) -> Expr:
        """Makes a condition that is true where this one is neither true nor false, else false."""
        return truth(self.node(), None)

    def weight(self, weight: float) -> Expr:
        """Returns a single predicate with a weight, which it adds to the score where it is true.

        The predicate keeps the weight when it is negated. The language has no words for weights:
        ``str()`` leaves them out.

        Raises
        ------
        ExpressionError : this is an AND or OR, or a constant within NOT or IS TRUE: only predicates
            have weights. Or the weight is no number from -1e100 to 1e100
        """
        return _add_weight(self.node(), _weight(weight))

    def __str__(self) -> str:
        return to_sql(self.node())

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, repr=False)
class And(Expr):
    parts: tuple[Expr, ...]  # two or more, none of them And


@dataclass(frozen=True, slots=True, repr=False)
class Or(Expr):
    parts: tuple[Expr, ...]  # two or more, none of them Or


@dataclass(frozen=True, slots=True, repr=False)
class AtLeast(Expr):
    """The condition that at least so many parts are true. A part counts as often as it occurs.

    NULL may count or not: the condition is Unknown if that decides.
    """

    least: int  # from 1 to the number of parts
    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Not(Expr):
    part: Expr


@dataclass(frozen=True, slots=True, repr=False)
class Truth(Expr):
    """The condition ``(part) IS TRUE``, ``IS FALSE``, or with None ``IS UNKNOWN``.

    It is never Unknown itself.
    """

    part: Expr
    value: bool | None


@dataclass(frozen=True, slots=True, repr=False)
class Constant(Expr):
    value: bool | None


@dataclass(frozen=True, slots=True, repr=False)
class Predicate(Expr):
    verb: Verb
    subject: Subject
    operands: tuple[Operand | None, ...] = ()  # None is NULL
    weighs: Operand | None = None  # its weight, if it has one
    negated: bool = False  # NOT is a part of it, as in NOT IN: it is never true of an absent value


def _condition(value: Expr | bool) -> Expr:
    if isinstance(value, Expr):
        return value.node()
    if isinstance(value, bool):
        return Constant(value)
    raise ExpressionError(
        f"a condition is combined with another condition, not with {type(value).__name__}: put parentheses around comparisons, as in "
        "(col('a') > 1) & (col('b') > 2)"
    )


def _weight(value: Any) -> Operand:
    weight = double(value)
    if weight is None or not abs(weight) <= WEIGHT_MOST:
        raise ExpressionError(f"a weight is {show_value(value)}: a number from -1e100 to 1e100 is needed")
    return Operand(Kind.DOUBLE, value=weight)


def _add_weight(node: Expr, weight: Operand) -> Expr:
    around: list[Expr] = []
    while isinstance(node, (Not, Truth)):
        around.append(node)
        node = node.part
    if isinstance(node, (And, Or, AtLeast)):
        word = "at_least" if isinstance(node, AtLeast) else "an AND" if isinstance(node, And) else "an OR"
        raise ExpressionError(f"{word} has no weight: give one to each of its predicates")
    if isinstance(node, Predicate):
        node = replace(node, weighs=weight)
    elif around:
        raise ExpressionError("TRUE, FALSE and NULL have no weight: give one to a predicate")
    for outer in reversed(around):
        node = replace(outer, part=node)  # type: ignore[type-var]
    return node


def conjoin(kind: type[And] | type[Or], parts: list[Expr]) -> Expr:
    """Joins ``parts`` by AND or OR, and flattens them."""
    flat: list[Expr] = []
    for part in parts:
        if type(part) is kind:
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def make_at_least(least: object, conditions: Sequence[Expr | bool]) -> Expr:
    """Makes the condition that at least so many conditions are true.

    Raises ExpressionError: that is always or never the case, or something is no condition.
    """
    number = whole_number(least)
    fault = find_least_fault(number, len(conditions))
    if number is None or fault:
        raise ExpressionError(fault)
    return AtLeast(number, tuple(map(_condition, conditions)))


def find_least_fault(least: int | None, count: int) -> str:
    """Returns the error of at_least(least, ...) with so many conditions; empty where it has none.

    least : None for something that is no whole number
    """
    example = "as in at_least(2, a > 1, b > 1, c > 1)"
    if least is None:
        return f"at_least begins with a whole number, {example}"
    if not count:
        return f"at_least needs conditions behind the number, {example}"
    if 1 <= least <= count:
        return ""
    truth = "always" if least < 1 else "never"
    return f"at_least({least}, ...) of {count} is {truth} true: write a number from 1 to {count}, {example}"


def truth(part: Expr, value: bool | None) -> Expr:
    """Makes ``part IS value``; for a bare column, IS UNKNOWN becomes IS NULL."""
    if value is None and type(part) is Predicate and part.verb is Verb.BARE:
        return Predicate(Verb.NULL, part.subject)
    return Truth(part, value)


# Trees
# --------------------------------------------------------------------------


def walk(expr: Expr, max_depth: int) -> Iterator[tuple[Expr, int]]:
    """Yields every node in reading order with the number of its children, parents first.

    There is no recursion, since a builder can nest without bound.

    Raises
    ------
    Refusal : the tree nests deeper than ``max_depth``
    """
    stack = [(expr, 0)]
    while stack:
        node, depth = stack.pop()
        if depth > max_depth:
            raise Refusal(
                f"the expression nests deeper than {max_depth} levels: flatten it, or raise Options(max_depth=...)"
            )
        kind = type(node)
        if kind is And or kind is Or or kind is AtLeast:
            yield node, len(node.parts)  # type: ignore[attr-defined]
            stack.extend([(part, depth + 1) for part in reversed(node.parts)])  # type: ignore[attr-defined]
        elif kind is Not or kind is Truth:
            yield node, 1
            stack.append((node.part, depth + 1))  # type: ignore[attr-defined]
        else:
            yield node, 0


def rebuild(expr: Expr, change: Callable[[Predicate], Expr]) -> Expr:
    """Copies the tree; each predicate, in reading order, becomes ``change(predicate)``."""
    done: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        if isinstance(node, (And, Or, AtLeast)):
            if not ready:
                stack.append((node, True))
                stack.extend([(part, False) for part in reversed(node.parts)])
                continue
            count = len(node.parts)
            parts = tuple(done[-count:])
            del done[-count:]
            done.append(AtLeast(node.least, parts) if isinstance(node, AtLeast) else type(node)(parts))
        elif isinstance(node, (Not, Truth)):
            if not ready:
                stack.append((node, True))
                stack.append((node.part, False))
                continue
            part = done.pop()
            done.append(Not(part) if isinstance(node, Not) else Truth(part, node.value))
        elif isinstance(node, Predicate):
            done.append(change(node))
        else:
            done.append(node)
    return done[0]


# Spark SQL
# --------------------------------------------------------------------------


def subject_sql(subject: Subject) -> str:
    """Writes a subject as Spark SQL."""
    if subject.computed is not None:
        return subject.computed.sql(subject.computed.function not in ARITHMETIC)
    name = ".".join(map(quote_name, subject.path))
    if subject.key is not None:
        name += f"[{quote_text(subject.key) if isinstance(subject.key, str) else subject.key}]"
    return f"size({name})" if subject.size else name


def _predicate(predicate: Predicate) -> str:
    verb, name = predicate.verb, subject_sql(predicate.subject)
    if verb is Verb.CALL and not predicate.operands:
        return name
    if verb is Verb.CALL and predicate.operands[0] is not None and predicate.subject.computed is not None:
        return f"{name[:-1]}, {arguments_text(predicate.subject.computed.function, predicate.operands[0].value)})"
    if predicate.negated and predicate.subject.computed is not None and verb is Verb.BARE:
        return write_negation(predicate.subject.computed)
    if predicate.negated:
        plain = _predicate(replace(predicate, negated=False))
        return f"NOT {plain}" if verb in CALLS else f"{name} NOT{plain.removeprefix(name)}"
    operands = [operand_sql(operand) for operand in predicate.operands]
    if verb in SIGNS:
        return f"{name} {SIGNS[verb]} {operands[0]}"
    if verb in WORDS:
        return f"{name} {WORDS[verb]} {operands[0]}"
    if verb is Verb.BETWEEN:
        return f"{name} BETWEEN {operands[0]} AND {operands[1]}"
    if verb is Verb.IN:
        return f"{name} IN ({', '.join(operands)})"
    if verb is Verb.NULL:
        return f"{name} IS NULL"
    if verb is Verb.BARE:
        return name
    if verb is Verb.ARRAYS_OVERLAP:
        return f"arrays_overlap({name}, array({', '.join(operands)}))"
    return f"{CALLS[verb]}({', '.join([name, *operands])})"


def to_sql(expr: Expr) -> str:
    """Writes Spark SQL that parses back to an equal tree."""
    words: list[str] = []
    stack: list[Expr | str] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            words.append(node)
        elif isinstance(node, (And, Or)):
            inner: list[Expr | str] = []
            for part in node.parts:
                inner.append(" AND " if isinstance(node, And) else " OR ")
                inner.extend(["(", part, ")"] if isinstance(part, (And, Or)) else [part])
            stack.extend(reversed(inner[1:]))
        elif isinstance(node, AtLeast):
            stack.append(")")
            for part in reversed(node.parts):
                stack.extend([part, ", "])
            stack.append(f"at_least({node.least}")
        elif isinstance(node, Not) and isinstance(node.part, Predicate) and node.part.verb is Verb.NULL:
            words.append(f"{subject_sql(node.part.subject)} IS NOT NULL")
        elif isinstance(node, Not):
            stack.extend([")", node.part, "NOT ("])
        elif isinstance(node, Truth):
            stack.extend([f") IS {'UNKNOWN' if node.value is None else str(node.value).upper()}", node.part, "("])
        elif isinstance(node, Constant):
            words.append("NULL" if node.value is None else str(node.value).upper())
        elif isinstance(node, Predicate):
            words.append(_predicate(node))
        else:
            stack.append(node.node())
    return "".join(words)
