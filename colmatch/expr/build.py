"""Conditions written in Python.

``(col("age") > 30) & ~col("vip")`` makes the same tree as ``"age > 30 AND NOT (vip)"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from colmatch.errors import ExpressionError, show_value, suggest_names
from colmatch.expr import build_special
from colmatch.expr.ast import SIGNS, Constant, Expr, Not, Predicate, Subject, Verb, subject_sql
from colmatch.expr.build_computed import Computing, make_comparison, make_computed
from colmatch.expr.build_literals import literal
from colmatch.expr.build_texts import TextNames
from colmatch.expr.computed import AT_LEAST, FORALL, ComputedValue
from colmatch.expr.elements import COUNT_MOST, Lambda, elements_predicate
from colmatch.expr.functions import NAMES, SPECIAL, VALUE, Function
from colmatch.given.arguments import members, text, whole_number
from colmatch.given.elements import EXISTS
from colmatch.lowering.forms import Kind, Operand


def col(*path: str) -> ColumnHandle:
    """Makes a handle of a column, struct field or map, to be compared with values.

    Parameters
    ----------
    path : one name, with dots that lead into structs (``col("user.age")``); or several names, each
        taken literally (``col("user", "age")``)

    Examples
    --------
    >>> str(col("age").between(22, 36) & col("city").isin(["NYC"]) & ~col("vip"))
    "age BETWEEN 22 AND 36 AND city IN ('NYC') AND NOT (vip)"
    """
    names = [name for name in map(text, path) if name is not None]
    if not names or len(names) < len(path):
        raise ExpressionError("col needs the name of a column, or the names that lead to a struct's field")
    return ColumnHandle(Subject(tuple(names[0].split(".") if len(names) == 1 else names)))


_WHOLE = Subject(())[1:]  # of a column itself: no key, no size, nothing computed


class ColumnHandle(Computing, Expr):
    """A column of the events, made by ``col``. Its comparisons are conditions.

    A Boolean column is a condition by itself.
    """

    __slots__ = ("_subject",)

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def node(self) -> Expr:
        if self._subject.size:
            raise ExpressionError("a size is not a condition by itself: compare it with a number")
        return Predicate(Verb.BARE, self._subject)

    def __str__(self) -> str:
        return subject_sql(self._subject)

    def __repr__(self) -> str:
        return f"<column {self}>"

    def __getitem__(self, key: str | int) -> ColumnHandle:
        plain = whole_number(key) if text(key) is None else text(key)
        if plain is None or self._subject[1:] != _WHOLE:
            raise ExpressionError(
                "[...] takes the key of a map's entry, a string or a whole number, once and of a whole column"
            )
        return ColumnHandle(self._subject._replace(key=plain))

    __iter__ = None  # else ``x in col("a")`` would read col("a")[0], col("a")[1] … for ever
    __contains__ = None
    __hash__ = None  # type: ignore[assignment]

    def size(self) -> ColumnHandle:
        """Returns the number of elements of a list, or of entries of a map."""
        if self._subject[1:] != _WHOLE:
            raise ExpressionError(f"size() needs a whole list or map column, and {self} is none")
        return ColumnHandle(self._subject._replace(size=True))

    def exists(self, condition: Callable[[ColumnHandle], Expr | bool]) -> Expr:
        """Makes a condition: some element of the list makes ``condition`` true.

        condition : makes a condition of an element, which is a handle as ``col`` makes it

        Examples
        --------
        >>> str(col("items").exists(lambda x: (x["price"] > 10) & (x["sku"] == "a")))
        "exists(items, x -> x['price'] > 10 AND x['sku'] = 'a')"
        """
        return self._of_elements(EXISTS, _element_test(condition))

    def forall(self, condition: Callable[[ColumnHandle], Expr | bool]) -> Expr:
        """Makes a condition: all elements of the list make ``condition`` true.

        It is true of an empty list.
        """
        return self._of_elements(FORALL, _element_test(condition))

    def at_least(self, count: int, condition: Callable[[ColumnHandle], Expr | bool]) -> Expr:
        """Makes a condition: at least ``count`` elements of the list make ``condition`` true.

        count : 1 or more
        """
        number = whole_number(count)
        if number is None or not 1 <= number <= COUNT_MOST:
            raise ExpressionError(f"at_least takes a number of elements from 1 on, not {show_value(count)}")
        return self._of_elements(AT_LEAST, _element_test(condition), number)

    def _of_elements(self, function: str, test: Lambda, count: int = 0) -> Expr:
        subject = self._subject
        if subject.computed is not None or subject.size or isinstance(subject.key, int):
            raise ExpressionError(f"conditions on elements need a whole list column, and {self} is none")
        path = subject.path if subject.key is None else (*subject.path, subject.key)
        return elements_predicate(function, ComputedValue("column", path), test, count)

    def _test(self, verb: Verb, *values: Any) -> Expr:
        if verb in SIGNS and isinstance(values[0], (ColumnHandle, timedelta, list)):
            return make_comparison(SIGNS[verb], self, values[0])
        return Predicate(verb, self._subject, tuple([literal(value) for value in values]))

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self._test(Verb.EQ, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return self._test(Verb.NE, other)

    def __lt__(self, other: Any) -> Expr:
        return self._test(Verb.LT, other)

    def __le__(self, other: Any) -> Expr:
        return self._test(Verb.LE, other)

    def __gt__(self, other: Any) -> Expr:
        return self._test(Verb.GT, other)

    def __ge__(self, other: Any) -> Expr:
        return self._test(Verb.GE, other)

    def eq_null_safe(self, value: Any) -> Expr:
        """Makes a condition: the value equals ``value``, or both are NULL. It is never Unknown."""
        return self._test(Verb.SAME, value)

    def between(self, low: Any, high: Any) -> Expr:
        """Makes a condition: the value lies between ``low`` and ``high``, both included."""
        return self._test(Verb.BETWEEN, low, high)

    def isin(self, values: Iterable[Any]) -> Expr:
        """Makes a condition: the value is one of ``values``.

        With None among ``values``, a value that is not found gives Unknown, as in SQL. Without
        ``values``, the condition is FALSE, which has no weight, negated or not.
        """
        operands = _members(values)
        return Predicate(Verb.IN, self._subject, operands) if operands else Constant(False)

    def is_between(self, lower_bound: Any, upper_bound: Any) -> Expr:
        """Makes the condition of ``between``, under its name in polars."""
        return self.between(lower_bound, upper_bound)

    def is_in(self, other: Iterable[Any]) -> Expr:
        """Makes the condition of ``isin``, under its name in polars."""
        return self.isin(other)

    def is_null(self) -> Expr:
        """Makes a condition: the value is NULL."""
        return Predicate(Verb.NULL, self._subject)

    def is_not_null(self) -> Expr:
        """Makes a condition: the value is not NULL."""
        return Not(self.is_null())

    def like(self, pattern: str) -> Expr:
        """Makes a condition: the text matches a pattern.

        In the pattern, ``%`` is any text, and ``_`` one character. A backslash makes the next
        character literal.
        """
        return self._test(Verb.LIKE, _text(pattern))

    def ilike(self, pattern: str) -> Expr:
        """Makes a condition: the text matches a LIKE pattern, regardless of case."""
        return self._test(Verb.ILIKE, _text(pattern))

    def rlike(self, pattern: str) -> Expr:
        """Makes a condition: some part of the value matches a regular expression."""
        return self._test(Verb.RLIKE, _text(pattern))

    def startswith(self, prefix: str) -> Expr:
        """Makes a condition: the text begins with ``prefix``."""
        return self._test(Verb.STARTSWITH, _text(prefix))

    def endswith(self, suffix: str) -> Expr:
        """Makes a condition: the text ends with ``suffix``."""
        return self._test(Verb.ENDSWITH, _text(suffix))

    def contains(self, part: str) -> Expr:
        """Makes a condition: the text has ``part`` somewhere."""
        return self._test(Verb.CONTAINS, _text(part))

    def array_contains(self, value: Any) -> Expr:
        """Makes a condition: the list has this element."""
        return self._test(Verb.ARRAY_CONTAINS, value)

    def arrays_overlap(self, values: Iterable[Any]) -> Expr:
        """Makes a condition: the list has one of these elements."""
        return Predicate(Verb.ARRAYS_OVERLAP, self._subject, _members(values))

    def contains_all(self, *values: Any) -> Expr:
        """Makes a condition: the list has all of these elements."""
        if not values:
            raise ExpressionError("contains_all needs one value or more")
        return self._test(Verb.CONTAINS_ALL, *values)

    @property
    def str(self) -> TextNames[ColumnHandle]:
        """Methods of texts under their names in polars."""
        return TextNames(self)


def _element_test(condition: Callable[[ColumnHandle], Expr | bool]) -> Lambda:
    """Calls a function with an element. Its condition calls the element as the function does."""
    code = getattr(condition, "__code__", None)
    name = code.co_varnames[0] if code is not None and code.co_argcount else "x"
    test = condition(ColumnHandle(Subject((name,)))) if callable(condition) else None
    if not isinstance(test, (Expr, bool)):
        raise ExpressionError("a function that makes a condition of an element is needed, as in lambda x: x > 5")
    return Lambda(name, test.node() if isinstance(test, Expr) else Constant(test))


def _text(value: Any) -> str:
    plain = text(value)
    if plain is not None:
        return plain
    raise ExpressionError(f"a text is needed, not {type(value).__name__}")


def _members(values: Iterable[Any]) -> tuple[Operand | None, ...]:
    """Returns the operands of a list.

    Integers, decimals or strings alone become a single operand, as in a parsed ``(1, 2, 3)``.
    """
    listed = members(values)
    if listed is None:
        raise ExpressionError(f"a list of values is needed, not {type(values).__name__}")
    operands = tuple([literal(value) for value in listed])
    kinds = {None if operand is None else operand.kind for operand in operands}
    if kinds in ({Kind.INT}, {Kind.DECIMAL}, {Kind.STRING}):
        return (Operand(next(iter(kinds)), many=True, value=tuple([o.value for o in operands if o is not None])),)  # type: ignore[arg-type]
    return operands


def function(name: str, *arguments: Any) -> Any:
    """Makes a computed value or a condition: a SQL function of columns and values, by name.

    Examples
    --------
    >>> str(function("lower", col("s")) == "x")
    "lower(s) = 'x'"
    """
    plain = (text(name) or "").lower()
    row = NAMES.get(plain)
    if row is None or (make := maker_of(row)) is None:
        names = [other for other, row in NAMES.items() if maker_of(row) is not None]
        raise ExpressionError(f"there is no function {show_value(name)}: {suggest_names(plain, names, 'the table')}")
    if row.kind != SPECIAL and any(
        isinstance(argument, Expr) and not isinstance(argument, Computing) for argument in arguments
    ):
        raise ExpressionError(
            f"a condition cannot be an argument of function({plain!r}): "
            "write the expression as a text, as in \"if(a > 1, 'x', 'y') = 'x'\""
        )
    if fault := row.find_fault(plain, len(arguments)):
        raise ExpressionError(fault)
    if row.kind == VALUE:
        return make(plain, *arguments)
    if row.kind != SPECIAL and not isinstance(arguments[0], ColumnHandle):
        raise ExpressionError(f"{plain} takes a column first, as in {row.call}: col({show_value(arguments[0])}) is one")
    return make(*arguments)


def maker_of(row: Function) -> Callable[..., Any] | None:
    """Returns the maker of calls of a function; None if the builder cannot call it."""
    if row.kind == VALUE:
        return _make_value
    makers = build_special if row.kind == SPECIAL else ColumnHandle
    made: Callable[..., Any] | None = getattr(makers, _METHODS.get(row.name, row.name), None)
    return made


def _make_value(name: str, *arguments: Any) -> ColumnHandle:
    return ColumnHandle(Subject((), computed=ComputedValue(name, tuple(map(make_computed, arguments)))))


_METHODS = {
    "regexp_like": "rlike",
    "isnull": "is_null",
    "isnotnull": "is_not_null",
}  # of columns, beside those of the same name
