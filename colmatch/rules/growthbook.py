"""Targeting conditions of GrowthBook, in the words of MongoDB, converted to the builder.

The meaning is that of GrowthBook's SDKs (``mongrule.ts``): NULL is 0 beside a number, a text beside
a number is one, and values of two types are not equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from colmatch.errors import show_value, suggest_names
from colmatch.expr.ast import Expr
from colmatch.expr.build_computed import make_comparison
from colmatch.given.arguments import python_value, text, whole_number
from colmatch.given.incoming import is_text
from colmatch.rules.columns import Scope, element_of, schema_of, some
from colmatch.rules.convert import ConvertedRules, check_errors, convert_rules
from colmatch.rules.functions import WITH_SCHEMA
from colmatch.rules.javascript import compare, is_among
from colmatch.rules.joined import FALSE, TRUE, Condition, all_of, any_of, constant, negate
from colmatch.rules.refusal import Steps, Unusable, run
from colmatch.rules.source import Rule, Shape, read_named, read_rules
from colmatch.rules.values import (
    ANY,
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Leaf,
    Literal,
    Value,
    Variable,
    computed,
    decide,
    is_null,
    kind_of,
    literal,
    size_of,
)
from colmatch.rules.versions import compare_versions
from colmatch.text.reduce import reduce_pattern

_JOINS = ("$and", "$or", "$nor", "$not")
_SHAPE = Shape(
    lambda given: any(text(name) in _JOINS for name in given),
    "a list of conditions, or an object from id to condition is needed",
)
_SIGNS = {"$lt": "<", "$lte": "<=", "$gt": ">", "$gte": ">="}
_VERSIONS = {"$veq": "=", "$vne": "!=", "$vlt": "<", "$vlte": "<=", "$vgt": ">", "$vgte": ">="}
_REGEXES = ("$regex", "$regexi", "$notRegex", "$notRegexi")
_MEMBERS = ("$in", "$nin", "$ini", "$nini", "$inGroup", "$notInGroup")
_OPERATORS = (
    "$eq", "$ne", *_SIGNS, *_VERSIONS, *_REGEXES, *_MEMBERS, "$exists", "$type", "$elemMatch", "$size", "$all", "$alli",
)  # fmt: skip
_TYPES = (STRING, NUMBER, BOOLEAN, ARRAY, OBJECT, NULL)


def from_growthbook(
    rules: object, groups: object = None, schema: object = None, errors: str = "raise"
) -> ConvertedRules:
    """Reads targeting conditions of GrowthBook for ``Matcher.build``.

    An attribute is a column, ``user.age`` a field of a struct, and a condition matches an event
    if GrowthBook's SDKs find it true of such attributes. An absent attribute is null.

    Some conditions differ from the SDKs:

    - ``$veq`` and its kin compare versions in the order of Semantic Versioning, and are false for
      other texts, which the SDKs compare part by part
    - regular expressions are those of RE2
    - an operator that the SDKs do not know is refused; they report it and are false
    - texts have the order of their code points

    Parameters
    ----------
    rules : JSON as text, bytes or an open file, or parsed JSON: a list of conditions, or an object
        from id to condition. A text may also have one condition on each line. An object with
        ``$and``, ``$or``, ``$nor`` or ``$not`` is one condition
    groups : the saved groups that ``$inGroup`` refers to, an object from id to list of values
    schema : the columns of the events, as ``Matcher.build`` takes them. Without it, a column has
        the type of what it is compared with, and ``$in`` is no test of a list
    errors : ``"raise"``, or ``"collect"``: leave bad conditions out and list them in ``rejected``

    Returns
    -------
    Rules : a dict from id to condition. Ids come from the object, else they are positions from 0

    Raises
    ------
    ExpressionError : some conditions cannot be converted. The message has the fault of each of the
        first ten, with its path
    SubscriptionError : the input is not JSON, or not conditions
    SchemaError : there can be no such schema

    Examples
    --------
    >>> rules = {"beta": {"country": {"$in": ["FR", "IT"]}, "age": {"$gte": 18}}}
    >>> {id: str(condition) for id, condition in from_growthbook(rules).items()}
    {'beta': "country IN ('FR', 'IT') AND age >= 18"}
    """
    stops = check_errors(errors)
    reader = _Reader(Scope(schema_of(schema)), read_named(groups, "saved groups"))
    entries, places, _ = read_rules(rules, _SHAPE)
    return convert_rules((entries, places), reader.convert, stops)


class _Reader:
    """A converter of conditions."""

    def __init__(self, event: Scope, groups: Mapping[Any, Any]) -> None:
        self._event = event
        self._groups = groups
        self._operators: dict[str, Callable[[Value, Any, str], Steps[Condition]]] = {
            "$not": self._not, "$elemMatch": self._element_match, "$size": self._size, "$all": self._all,
        }  # fmt: skip

    def convert(self, rule: Rule) -> dict[int | str, Expr]:
        return {rule.id: run(self._condition(rule.given, "", self._event)).expr}

    def _condition(self, rule: Any, place: str, scope: Scope) -> Steps[Condition]:
        if not isinstance(rule, Mapping):
            raise Unusable(place, f"a condition is an object, not {show_value(rule)}; a single one goes into a list")
        parts: list[Condition] = []
        for key, value in rule.items():
            name, at = text(key), _below(place, key)
            if name in _JOINS:
                parts.append((yield from self._join(name, value, at, scope)))
            elif name is None or name in _OPERATORS:
                raise Unusable(at, f"an attribute is needed here, or one of {', '.join(_JOINS)}")
            else:
                parts.append((yield self._field(scope.find(name.split("."), at), value, at)))
        return all_of(parts, place)

    def _join(self, name: str, rules: Any, place: str, scope: Scope) -> Steps[Condition]:
        if name == "$not":
            return negate((yield self._condition(rules, place, scope)))
        if not isinstance(rules, (list, tuple)):
            raise Unusable(place, f"a list of conditions is needed, not {show_value(rules)}")
        made: list[Condition] = []
        for number, rule in enumerate(rules):
            made.append((yield self._condition(rule, f"{place}[{number}]", scope)))
        if name == "$and":
            return all_of(made, place)
        found = any_of(made, place) if made else TRUE  # an empty $or is true
        return negate(found) if name == "$nor" else found

    def _field(self, value: Value, rule: Any, place: str) -> Steps[Condition]:
        """Makes a condition on a value: operators, or what it is equal to."""
        if not _is_operators(rule):
            return _equal(value, rule, place)
        parts: list[Condition] = []
        for key, given in rule.items():
            name, at = text(key) or "", _below(place, key)
            of_parts = self._operators.get(name)
            parts.append(
                (yield from of_parts(value, given, at)) if of_parts else self._operator(name, value, given, at)
            )
        return all_of(parts, place)

    def _operator(self, name: str, value: Value, given: Any, place: str) -> Condition:
        if name in ("$eq", "$ne"):
            return _equal(value, given, place) if name == "$eq" else negate(_equal(value, given, place))
        if name in _SIGNS:
            return compare(_SIGNS[name], value, Value((), _scalar(given, place)), place)
        if name in _VERSIONS:
            return _compare_versions(_VERSIONS[name], value, given, place)
        if name == "$exists":
            there = negate(is_null(value, place))
            given = python_value(given)
            if not isinstance(given, (bool, int)):
                raise Unusable(place, f"true or false is needed, not {show_value(given)}")
            return there if given else negate(there)
        if name == "$type":
            return _is_type(value, given, place)
        if name in _REGEXES:
            found = _matches(value, given, name[-1] == "i", place)
            return negate(found) if name.startswith("$not") else found
        if name in _MEMBERS:
            listed = self._group(given, place) if name.endswith("Group") else given
            found = _is_within(value, listed, name.endswith("i"), place)
            return negate(found) if name.startswith("$n") else found
        if name == "$alli":
            return all_of([_is_within(value, [one], True, place, ARRAY) for one in _listed(given, place)], place)
        raise Unusable(
            place, f"there is no operator {show_value(name)}: {suggest_names(name[:200], _OPERATORS, 'the list')}"
        )

    def _group(self, name: Any, place: str) -> Any:
        if isinstance(name, str) and name in self._groups:
            return self._groups[name]
        more = (
            suggest_names(show_value(name), map(show_value, self._groups), "groups=")
            if self._groups
            else "groups= takes them"
        )
        raise Unusable(place, f"there is no group {show_value(name)}: {more}")

    def _not(self, value: Value, given: Any, place: str) -> Steps[Condition]:
        return negate((yield self._field(value, given, place)))

    def _size(self, value: Value, given: Any, place: str) -> Steps[Condition]:
        made: list[Condition] = []
        for leaf in _lists(value, place):
            made.append((yield self._field(Value((), Variable(NUMBER, size_of(leaf.handle))), given, place)))
        return any_of(made, place)

    def _element_match(self, value: Value, given: Any, place: str) -> Steps[Condition]:
        made: list[Condition] = []
        for leaf in _lists(value, place):
            made.append((yield from self._exists(leaf, given, place)))
        return any_of(made, place)

    def _all(self, value: Value, given: Any, place: str) -> Steps[Condition]:
        found: list[Condition] = []
        for leaf in _lists(value, place):
            made: list[Condition] = []
            for number, one in enumerate(_listed(given, place)):
                made.append(
                    (
                        yield from self._exists(
                            leaf, {"$eq": one} if not _is_operators(one) else one, f"{place}[{number}]"
                        )
                    )
                )
            found.append(all_of(made, place))
        return any_of(found, place)

    def _exists(self, leaf: Variable, rule: Any, place: str) -> Steps[Condition]:
        """Makes the condition that a rule is true of an element of a list."""
        scope = element_of(leaf)
        if _is_operators(rule):
            test = yield self._field(scope.find([], place), rule, place)
        else:
            test = yield self._condition(rule, place, scope)
        return some(leaf, test)


def _below(place: str, name: Any) -> str:
    name = text(name) or show_value(name)
    return f"{place}.{name[:80]}" if place else name[:80]


def _is_operators(rule: Any) -> bool:
    return isinstance(rule, Mapping) and bool(rule) and all((text(name) or "").startswith("$") for name in rule)


def _scalar(given: Any, place: str) -> Literal:
    plain = python_value(given)
    if isinstance(plain, int) and not isinstance(plain, bool) and whole_number(plain) is None:
        raise Unusable(place, "a number is too large")
    if (
        kind_of(plain) not in (STRING, NUMBER, BOOLEAN, NULL)
        or plain != plain
        or (isinstance(plain, str) and not is_text(plain))
    ):
        raise Unusable(place, f"a text, a number, true, false or null is needed, not {show_value(given)}")
    return Literal(kind_of(plain), plain)


def _listed(given: Any, place: str) -> list[Any]:
    if not isinstance(given, (list, tuple)):
        raise Unusable(place, f"a list is needed, not {show_value(given)}")
    return list(given)


def _lists(value: Value, place: str) -> list[Variable]:
    """Returns the column of a value if it is a list, or may be one."""
    leaf = value.last
    return [leaf] if isinstance(leaf, Variable) and leaf.kind in (ARRAY, ANY) else []


def _equal(value: Value, given: Any, place: str) -> Condition:
    if isinstance(given, Mapping):
        return decide(value, lambda leaf: _equal_object(leaf, given, place), place)
    if isinstance(given, (list, tuple)):
        return decide(value, lambda leaf: _equal_list(leaf, list(given), place), place)
    of = Value((), _scalar(given, place))
    return decide(
        value, lambda leaf: FALSE if leaf.kind in (ARRAY, OBJECT) else compare("===", Value((), leaf), of, place), place
    )


def _equal_list(leaf: Leaf, given: list[Any], place: str) -> Condition:
    if not isinstance(leaf, Variable) or leaf.kind not in (ARRAY, ANY):
        return FALSE
    if not given:
        return Condition(size_of(leaf.handle) == 0)
    members = [_scalar(one, f"{place}[{number}]").value for number, one in enumerate(given)]
    return Condition(make_comparison("=", leaf.handle, members))


def _equal_object(leaf: Leaf, given: Mapping[Any, Any], place: str) -> Condition:
    """Makes the condition that an object has these fields and no others."""
    if not isinstance(leaf, Variable) or leaf.kind not in (OBJECT, ANY):
        return FALSE
    if leaf.type is None:
        raise Unusable(place, f"an object is compared: {WITH_SCHEMA}; or name its fields, as in user.age")
    scope = Scope(handle=leaf.handle, type=leaf.type)
    named = {text(name) or show_value(name): value for name, value in given.items()}
    names = dict.fromkeys(named)
    parts = []
    if pa.types.is_map(leaf.type):
        parts.append(Condition(size_of(leaf.handle) == len(names)))
    else:
        own = [field.name for field in leaf.type]
        if not set(names) <= set(own):
            return FALSE
        names = dict.fromkeys(own)
    for name in names:
        parts.append(_equal(scope.find([name], place), named.get(name), f"{place}.{name}"))
    return all_of(parts, place)


def _is_type(value: Value, given: Any, place: str) -> Condition:
    given = text(given)
    if given not in _TYPES:
        raise Unusable(place, f"a type is one of {', '.join(_TYPES)}, not {show_value(given)}")

    def has_type(leaf: Leaf) -> Condition:
        if leaf.kind == ANY and given != NULL:
            raise Unusable(place, WITH_SCHEMA)
        return constant(leaf.kind == given)

    return decide(value, has_type, place)


def _matches(value: Value, pattern: Any, fold: bool, place: str) -> Condition:
    plain = text(pattern)
    if plain is None or not is_text(plain):
        raise Unusable(place, f"a regular expression is needed, not {show_value(pattern)}")
    pattern = f"(?i){plain}" if fold else plain
    if error := reduce_pattern("rlike", pattern).error:
        raise Unusable(place, error)

    def matches(leaf: Leaf) -> Condition:
        return (
            Condition(leaf.handle.rlike(pattern))
            if isinstance(leaf, Variable) and leaf.kind in (STRING, ANY)
            else FALSE
        )

    return decide(value, matches, place)


def _is_within(value: Value, given: Any, fold: bool, place: str, only: str | None = None) -> Condition:
    """Makes the condition that a value, or an element of a list, is one of some values."""
    plain = [_scalar(one, f"{place}[{number}]").value for number, one in enumerate(_listed(given, place))]
    members = [literal(one.lower() if fold and isinstance(one, str) else one) for one in plain]

    def within(leaf: Leaf) -> Condition:
        if isinstance(leaf, Variable) and (leaf.kind == ARRAY or only == ARRAY):
            return some(leaf, _is_within(element_of(leaf).find([], place), given, fold, place))
        if only == ARRAY:
            return FALSE
        if isinstance(leaf, Variable) and leaf.kind in (STRING, ANY) and fold:
            leaf = Variable(STRING, computed("lower", leaf.handle))
        return is_among(Value((), leaf), members, place)

    return decide(value, within, place)


def _compare_versions(sign: str, value: Value, given: Any, place: str) -> Condition:
    of = _scalar(given, place)

    def compares(leaf: Leaf) -> Condition:
        left = Literal(STRING, "0") if leaf.kind == NULL else leaf
        return compare_versions(sign, left, of, place)

    return decide(value, compares, place)
