"""Rules of the npm package json-rules-engine, converted to conditions of the builder.

The meaning follows the package's sources, version 7.3:

- ``rule.js``: an empty ``any`` is true
- ``engine-default-operators.js``: ``===``, and the facts that an operator can be true for
- ``almanac.js``: facts as values, paths
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from colmatch.errors import show_value, suggest_names
from colmatch.expr.ast import Constant, Expr, Subject
from colmatch.expr.build import ColumnHandle
from colmatch.given.arguments import python_value
from colmatch.given.incoming import is_text
from colmatch.rules.convert import ConvertedRules, check_errors, convert_rules, readings_of
from colmatch.rules.joined import TRUE, Condition, all_of, any_of, negate
from colmatch.rules.refusal import Named, Steps, Unusable, run
from colmatch.rules.source import Rule, Shape, read_named, read_rules

ROOT = "conditions"  # the path to the conditions of a rule
WORDS = ("all", "any", "not", "condition", "fact")  # the kinds of conditions, each by its key
_SHAPE = Shape(
    lambda given: "conditions" in given, "a list of rules, one rule, or an object from id to rule is needed", "name"
)
_PATH = re.compile(r"""(\$|[\w-]+)(\.[\w-]+|\[(['"])[\w .-]+\3\])*""")
_STEP = re.compile(r"""\.?([\w-]+)|\[(['"])([\w .-]+)\2\]""")


def from_json_rules(rules: object, conditions: object = None, errors: str = "raise") -> ConvertedRules:
    """Reads rules of the npm package json-rules-engine (7.3) for ``Matcher.build``.

    Facts are columns, and a ``path`` such as ``$.address.city`` is a struct field. A rule matches
    an event if the engine would fire it with ``allowUndefinedFacts``:

    - an absent or null fact is neither less nor greater than any value, and contains nothing. It is
      ``notEqual`` to everything but null, and ``notIn`` every list without null
    - ``doesNotContain`` is true for lists alone
    - ``not`` is plain negation, so ``missing=`` of ``Matcher.build`` makes no difference
    - an empty ``all`` is true, and so is an empty ``any``

    Some rules differ from the engine:

    - an absent fact is a null fact, and both are ``equal`` to null
    - an order with a null fact as its ``value`` is false; JavaScript takes null for 0
    - integers beyond 2**53 are exact
    - NaN, which JSON does not have, is above all numbers
    - columns have types, so comparing a number with a text is an error of ``Matcher.build``; the
      engine would never fire such a rule
    - numbers with a fraction need float64 columns, like JavaScript's numbers
    - two facts that are text columns have the order of text

    Events and priorities of rules are ignored: all rules are matched, in no order.

    Parameters
    ----------
    rules : JSON as text, bytes or an open file, or parsed JSON: a list of rules, one rule, or an
        object from id to rule. A text may also have one rule on each line, and a rule of parsed
        JSON may still be a text
    conditions : the named conditions that rules refer to, an object from name to conditions
    errors : ``"raise"``, or ``"collect"``: leave bad rules out and list them in ``rejected``

    Returns
    -------
    Rules : a dict from id to condition. Ids come from the object, else they are the names of the
        rules if all have one, else their positions from 0

    Raises
    ------
    ExpressionError : some rules cannot be converted: custom or decorated operators, ``params``,
        paths other than names, and everything that the engine refuses. The message has the fault of
        each of the first ten, with its path
    SubscriptionError : the input is not JSON, or not rules; or two rules have the same name

    Examples
    --------
    >>> rule = '{"conditions": {"not": {"fact": "age", "operator": "lessThan", "value": 18}}}'
    >>> {id: str(condition) for id, condition in from_json_rules(rule).items()}
    {0: 'NOT ((age < 18) IS TRUE)'}
    """
    stops = check_errors(errors)
    entries, places, _ = read_rules(rules, _SHAPE)
    reader = _Reader(read_named(conditions, "named conditions"))
    return convert_rules((entries, places), reader.convert, stops, reader.named_conditions())


class _Reader:
    """A converter of rules. It converts each named condition once."""

    def __init__(self, named: Mapping[Any, Any]) -> None:
        self._named = Named[Condition](named, "condition", "conditions=")

    def named_conditions(self) -> Iterable[tuple[str, Steps[Condition]]]:
        return readings_of(self._named, "condition", self._read_named)

    def convert(self, rule: Rule) -> dict[int | str, Expr]:
        if not isinstance(rule.given, Mapping):
            raise Unusable("", f"an object with conditions is needed, not {show_value(rule.given)}")
        if "conditions" not in rule.given:
            raise Unusable("", "it has no conditions")
        return {rule.id: run(self._read(rule.given["conditions"], ROOT)).expr}

    def _read_named(self, given: Any) -> Steps[Condition]:
        return self._read(given, "")

    def _read(self, given: Any, place: str) -> Steps[Condition]:
        word = _word(given, place, is_root=place in ("", ROOT))
        if word == "fact":
            return Condition(_comparison(given, place))
        parts, inner = given[word], f"{place}.{word}" if place else word
        if word == "condition":
            return (yield from self._named.find(parts, inner, self._read_named))
        if word == "not":
            if isinstance(parts, (list, tuple)):
                raise Unusable(inner, "an object is needed, not a list")
            return negate((yield self._read(parts, inner)))
        if not isinstance(parts, (list, tuple)):
            raise Unusable(inner, f"a list is needed, not {show_value(parts)}")
        made: list[Condition] = []
        for number, part in enumerate(parts):
            made.append((yield self._read(part, f"{inner}[{number}]")))
        join = all_of if word == "all" else any_of
        return join(made or [TRUE], place)  # an empty any is true as well


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
    return lambda column, value, place: negate(Condition(make(column, value, place))).expr


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
    "doesNotContain": lambda column, value, at: (
        column.is_not_null() & negate(Condition(_contains(column, value, at))).expr
    ),
}
