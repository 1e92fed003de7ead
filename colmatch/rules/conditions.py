"""Conditions of json-rules-engine, JSON objects, converted to conditions of the builder.

The meaning follows the package's sources, version 7.3:

- ``rule.js``: an empty ``any`` is true
- ``engine-default-operators.js``: ``===``, and the facts that an operator can be true for
- ``almanac.js``: facts as values, paths

Every NOT is around ``IS TRUE``, so the result means the same with two values and with three. This
costs nothing: normalisation then asks "is it not true" (``expr/modes.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from colmatch.errors import show_value, suggest_names
from colmatch.expr.ast import And, Constant, Expr, Not, Or, Subject, conjoin, truth
from colmatch.expr.build import ColumnHandle
from colmatch.given.arguments import python_value
from colmatch.given.incoming import is_text

ROOT = "conditions"  # the path to the conditions of a rule
WORDS = ("all", "any", "not", "condition", "fact")  # the kinds of conditions, each by its key
DEEPEST = 400  # levels of conditions, which is the most that Options(max_depth=...) allows
MOST_CONDITIONS = 1_000_000  # conditions of a rule, with its named conditions
_PATH = re.compile(r"""(\$|[\w-]+)(\.[\w-]+|\[(['"])[\w .-]+\3\])*""")
_STEP = re.compile(r"""\.?([\w-]+)|\[(['"])([\w .-]+)\2\]""")


class Unusable(Exception):
    """The error for a condition that cannot be converted.

    Attributes
    ----------
    place : the path to it, within its rule or named condition
    owner : the named condition around it, else None
    """

    def __init__(self, place: str, message: str, owner: str | None = None) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.owner = owner


class ConditionReader:
    """A converter of conditions. It converts each named condition once."""

    def __init__(self, named: Mapping[Any, Any]) -> None:
        self._named = named
        self._known: dict[str, tuple[Expr, int]] = {}  # by name: the condition, and the number of facts in it

    @property
    def names(self) -> list[Any]:
        """Returns the names of the named conditions."""
        return list(self._named)

    def convert(self, conditions: Any) -> Expr:
        """Converts the conditions of a rule.

        Raises Unusable: they cannot be converted, or the engine would refuse them.
        """
        return _ConditionStack(self._named, self._known).convert(conditions, ROOT)

    def check_named(self, name: Any) -> None:
        """Converts a named condition, unless it was converted for another that refers to it."""
        if name not in self._known:
            _ConditionStack(self._named, self._known).convert({"condition": name}, "")


class _ConditionStack:
    """A stack instead of recursion, since conditions may nest as deep as they like.

    Each entry is a condition to convert, or a word with a number or a name. The number is how many
    of the last results are to be combined. The name belongs to the last result. Place and level
    follow.
    """

    def __init__(self, named: Mapping[Any, Any], known: dict[str, tuple[Expr, int]]) -> None:
        self._named = named
        self._known = known
        self._stack: list[tuple[str, Any, str, int]] = []
        self._done: list[tuple[Expr, int]] = []
        self._inside: list[str] = []  # names of the named conditions that are being converted

    def convert(self, conditions: Any, place: str) -> Expr:
        """Converts conditions at the path ``place``."""
        self._stack.append(("", conditions, place, 0))
        try:
            while self._stack:
                word, item, place, level = self._stack.pop()
                if word == "condition":
                    self._known[self._inside.pop()] = self._done[-1]
                elif word:
                    self._combine(word, item, place)
                else:
                    self._begin(item, place, level)
        except Unusable as error:
            error.owner = f"condition {show_value(self._inside[-1])}" if self._inside else None
            raise
        ((condition, _),) = self._done
        return condition

    def _begin(self, given: Any, place: str, level: int) -> None:
        """Converts a condition without parts, or puts its parts on the stack."""
        if level > DEEPEST:
            raise Unusable("", f"conditions nest deeper than {DEEPEST} levels")
        word = _word(given, place, is_root=place in ("", ROOT))
        if word == "fact":
            self._done.append((_comparison(given, place), 1))
            return
        parts, inner = given[word], f"{place}.{word}" if place else word
        if word == "condition":
            self._refer(parts, inner, level)
        elif word == "not":
            if isinstance(parts, (list, tuple)):
                raise Unusable(inner, "an object is needed, not a list")
            self._stack += [(word, 1, place, level), ("", parts, inner, level + 1)]
        elif isinstance(parts, (list, tuple)):
            self._stack.append((word, len(parts), place, level))
            self._stack += [("", parts[n], f"{inner}[{n}]", level + 1) for n in reversed(range(len(parts)))]
        else:
            raise Unusable(inner, f"a list is needed, not {show_value(parts)}")

    def _refer(self, name: Any, place: str, level: int) -> None:
        """Takes the result of a named condition, or puts the condition on the stack."""
        if not isinstance(name, str):
            raise Unusable(place, f"the name of a condition is needed, not {show_value(name)}")
        if name in self._inside:
            circle = " -> ".join(map(show_value, [*self._inside[self._inside.index(name) :], name]))
            raise Unusable(place, f"conditions refer to one another in a circle: {circle}")
        conversion = self._known.get(name)
        if conversion is not None:
            self._done.append(conversion)
        elif name in self._named:
            self._inside.append(name)
            self._stack += [("condition", name, place, level), ("", self._named[name], "", level + 1)]
        else:
            more = (
                suggest_names(name[:200], map(str, self._named), "conditions=")
                if self._named
                else "conditions= takes them"
            )
            raise Unusable(place, f"there is no named condition {show_value(name)}: {more}")

    def _combine(self, word: str, count: int, place: str) -> None:
        parts = self._done[len(self._done) - count :]
        del self._done[len(self._done) - count :]
        number = sum(size for _, size in parts) or 1
        if number > MOST_CONDITIONS:
            raise Unusable(place, f"with the named conditions there are more than {MOST_CONDITIONS:,} conditions")
        if word == "not":
            condition = _negation(parts[0][0])
        elif parts:
            condition = conjoin(And if word == "all" else Or, [part for part, _ in parts])
        else:
            condition = Constant(True)  # an empty any is true as well
        self._done.append((condition, number))


def _word(given: Any, place: str, is_root: bool) -> str:
    """Returns the kind of a condition, by its key."""
    if not isinstance(given, Mapping):
        raise Unusable(place, f"a condition is an object, not {show_value(given)}")
    words = [word for word in WORDS if word in given]
    if not words:
        raise Unusable(place, f"a condition has one of {', '.join(WORDS)}, not {show_value(list(given))}")
    if len(words) > 1:
        raise Unusable(place, f"a condition has {' and '.join(words)}: one of them is needed")
    if is_root and words == ["fact"]:
        raise Unusable(place, "all, any, not or condition is needed around the facts of a rule")
    return words[0]


def _negation(part: Expr) -> Expr:
    """Returns "it is not true", which is never unknown."""
    return Constant(not part.value) if isinstance(part, Constant) else Not(truth(part, True))


# Comparisons
# --------------------------------------------------------------------------


def _comparison(given: Mapping[Any, Any], place: str) -> Expr:
    for key in ("operator", "value"):
        if key not in given:
            raise Unusable(place, f"a condition with a fact needs {key!r}, too")
    operator = python_value(given["operator"])
    make = _OPERATORS.get(operator) if isinstance(operator, str) else None
    if make is None:
        at = f"{place}.operator"
        if isinstance(operator, str) and ":" in operator:
            raise Unusable(at, f"the decorators of operators cannot be had ({show_value(operator)})")
        hint = (
            suggest_names(operator[:200], _OPERATORS, "the list of operators")
            if isinstance(operator, str)
            else "a text"
        )
        raise Unusable(at, f"there is no operator {show_value(operator)}, custom ones cannot be had: {hint}")
    column = _column(given, place)
    value = python_value(given["value"])
    at = f"{place}.value"
    if isinstance(value, Mapping):
        if "fact" not in value:
            raise Unusable(at, f"an object is equal to nothing, but {{'fact': ...}} is a fact; not {show_value(value)}")
        value = _column(value, at)
    return make(column, value, at)


def _column(given: Mapping[Any, Any], place: str) -> ColumnHandle:
    """Returns the column for a fact and its path."""
    name, path = python_value(given["fact"]), python_value(given.get("path"))
    if not isinstance(name, str) or not name or not is_text(name):
        raise Unusable(f"{place}.fact", f"the name of a fact is needed, not {show_value(name)}")
    if not _is_empty(given.get("params")):
        raise Unusable(f"{place}.params", "params go to functions, and facts are columns of the events here")
    if _is_empty(path):
        return ColumnHandle(Subject((name,)))
    if not isinstance(path, str) or not is_text(path) or not _PATH.fullmatch(path):
        raise Unusable(f"{place}.path", f"{show_value(path)}: only names can be had, as in $.address.city or $['a b']")
    steps = [step[1] or step[3] for step in _STEP.finditer(path.removeprefix("$"))]
    return ColumnHandle(Subject((name, *steps)))


def _is_empty(value: Any) -> bool:
    """Returns whether json-rules-engine takes a JSON value for none."""
    plain = python_value(value)
    return plain is None or (isinstance(plain, (str, int, float, list, dict)) and not plain)


def _scalar(value: Any, place: str) -> Any:
    """Checks that a JSON value is neither a list nor an object."""
    is_number = isinstance(value, (int, float)) and not (isinstance(value, float) and math.isnan(value))
    if value is None or is_number or (isinstance(value, str) and is_text(value)):
        return value
    raise Unusable(place, f"a text, a number, true, false or null is needed, not {show_value(value)}")


def _equal(column: ColumnHandle, value: Any, place: str) -> Expr:
    if isinstance(value, ColumnHandle):
        return column.eq_null_safe(value)
    return column.is_null() if _scalar(value, place) is None else column == value


def _in(column: ColumnHandle, value: Any, place: str) -> Expr:
    if isinstance(value, ColumnHandle):
        raise Unusable(place, "a list is needed: facts that are lists cannot be searched in")
    if not isinstance(value, (list, tuple)):
        raise Unusable(place, f"a list is needed, not {show_value(value)}")
    values = [_scalar(one, f"{place}[{number}]") for number, one in enumerate(value)]
    condition = column.isin([one for one in values if one is not None])
    if None not in values:
        return condition
    return column.is_null() if isinstance(condition, Constant) else condition | column.is_null()


def _contains(column: ColumnHandle, value: Any, place: str) -> Expr:
    if isinstance(value, ColumnHandle):
        raise Unusable(place, "a value is needed: facts cannot be searched for in lists")
    if _scalar(value, place) is None:
        raise Unusable(place, "lists cannot be searched for null")
    return column.array_contains(value)


def _make_order(sign: Callable[[ColumnHandle, Any], Expr]) -> Callable[[ColumnHandle, Any, str], Expr]:
    def compare(column: ColumnHandle, value: Any, place: str) -> Expr:
        if isinstance(value, (bool, str)) or value is None:
            raise Unusable(place, f"a number is needed, or a fact, not {show_value(value)}")
        return sign(column, value if isinstance(value, ColumnHandle) else _scalar(value, place))

    return compare


def _not(make: Callable[[ColumnHandle, Any, str], Expr]) -> Callable[[ColumnHandle, Any, str], Expr]:
    return lambda column, value, place: _negation(make(column, value, place))


_OPERATORS: dict[str, Callable[[ColumnHandle, Any, str], Expr]] = {
    "equal": _equal,
    "notEqual": _not(_equal),
    "lessThan": _make_order(lambda column, value: column < value),
    "lessThanInclusive": _make_order(lambda column, value: column <= value),
    "greaterThan": _make_order(lambda column, value: column > value),
    "greaterThanInclusive": _make_order(lambda column, value: column >= value),
    "in": _in,
    "notIn": _not(_in),
    "contains": _contains,
    "doesNotContain": lambda column, value, at: column.is_not_null() & _negation(_contains(column, value, at)),
}
