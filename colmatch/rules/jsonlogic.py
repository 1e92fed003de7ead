"""Rules of JSONLogic, converted to conditions of the builder.

The meaning is that of https://jsonlogic.com, JavaScript's: NULL is 0 in an order, and 0, empty
texts and empty lists are false. ``functions.py`` has the operations whose values are all computed
first; here are those that read their parts themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from colmatch.errors import show_value, suggest_names
from colmatch.expr.ast import Constant, Expr
from colmatch.given.arguments import python_value, text, whole_number
from colmatch.given.incoming import is_text
from colmatch.rules.columns import Scope, element_of, every, schema_of, some
from colmatch.rules.convert import ConvertedRules, check_errors, convert_rules
from colmatch.rules.functions import FUNCTIONS, INSTEAD, Function, check_count
from colmatch.rules.javascript import compare, truth
from colmatch.rules.joined import FALSE, TRUE, Condition, all_of, any_of, choose, constant_of, negate
from colmatch.rules.refusal import Steps, Unusable, run
from colmatch.rules.source import Rule, Shape, read_rules
from colmatch.rules.values import (
    ANY,
    ARRAY,
    NOTHING,
    NULL,
    STRING,
    Leaf,
    Literal,
    Value,
    change,
    decide,
    is_null,
    literal,
    of_condition,
    select,
    size_of,
)

_NEEDED = "a list of rules, one rule, or an object from id to rule is needed"
_JOINS = ("and", "or")


def from_jsonlogic(rules: object, schema: object = None, errors: str = "raise") -> ConvertedRules:
    """Reads rules of JSONLogic for ``Matcher.build``.

    A variable is a column, ``{"var": "user.age"}`` a field of a struct, and a rule matches an event
    if its result counts as true in JavaScript: all but null, false, 0, ``""`` and an empty list.

    - a null or absent variable is 0 in ``<``, ``>`` and arithmetic, as in JavaScript, and equal to
      null alone
    - ``==`` converts a text to a number where the types of the schema say so; ``===`` does not

    Some rules differ from json-logic-js, the implementation in JavaScript:

    - an object is true if it has entries, and a struct if it is not NULL
    - null is 0 in ``+`` and ``*``, too, which make NaN of it there
    - integers beyond 2**53 are exact, and texts have the order of their code points

    Beside JSONLogic's operations there are ``??``, ``switch``, ``exists``, ``val``, ``length``,
    ``lower``, ``upper``, ``trim``, ``abs``, ``ceil``, ``floor``, ``starts_with``, ``ends_with``,
    ``sem_ver``, ``datetime``, ``timestamp`` and ``now``, as datalogic-rs and flagd have them.

    Parameters
    ----------
    rules : JSON as text, bytes or an open file, or parsed JSON: a list of rules, one rule, or an
        object from id to rule. A text may also have one rule on each line. An object with one key
        that is an operation is one rule
    schema : the columns of the events, as ``Matcher.build`` takes them. Without it, a column has
        the type of what it is compared with, and is Boolean by itself
    errors : ``"raise"``, or ``"collect"``: leave bad rules out and list them in ``rejected``

    Returns
    -------
    Rules : a dict from id to condition. Ids come from the object, else they are positions from 0

    Raises
    ------
    ExpressionError : some rules cannot be converted, such as those with ``reduce`` and ``map``. The
        message has the fault of each of the first ten, with its path
    SubscriptionError : the input is not JSON, or not rules
    SchemaError : there can be no such schema

    Examples
    --------
    >>> rules = {"deal": {"and": [{"<": [{"var": "price"}, 100]}, {"var": "vip"}]}}
    >>> {id: str(condition) for id, condition in from_jsonlogic(rules).items()}
    {'deal': '(price IS NULL OR price < 100) AND vip'}
    """
    stops = check_errors(errors)
    reader = LogicReader(Scope(schema_of(schema)))
    entries, places, _ = read_rules(rules, Shape(_is_rule, _NEEDED))
    return convert_rules((entries, places), reader.convert, stops)


def _is_rule(given: Mapping[Any, Any]) -> bool:
    if len(given) != 1:
        return not given
    ((name, parts),) = given.items()
    return text(name) in OPERATIONS or not isinstance(parts, (Mapping, bool, str, bytes))


class LogicReader:
    """A converter of operations.

    operations : those that the format has, by name
    """

    def __init__(self, event: Scope, operations: Mapping[str, Operation] | None = None) -> None:
        self.event = event
        self._operations = OPERATIONS if operations is None else operations

    def convert(self, rule: Rule) -> dict[int | str, Expr]:
        if isinstance(rule.given, bool):
            return {rule.id: Constant(rule.given)}
        if not isinstance(rule.given, Mapping) or not rule.given:
            raise Unusable(
                "", f'a rule is an object with an operation, as in {{"<": [...]}}, not {show_value(rule.given)}'
            )
        return {rule.id: run(self.condition(rule.given, "", self.event)).expr}

    def condition(self, rule: Any, place: str, scope: Scope) -> Steps[Condition]:
        """Makes the condition that the value of a rule counts as true."""
        name, parts, inner = self._open(rule, place)
        if name in _JOINS and parts:
            made: list[Condition] = []
            for number, part in enumerate(parts):
                made.append((yield self.condition(part, f"{inner}[{number}]", scope)))
                if constant_of(made[-1]) is (name == "or"):
                    break  # nobody reads the parts behind it
            return (all_of if name == "and" else any_of)(made, place)
        if name in ("!", "!!"):
            check_count(name, parts, 1, 1, inner)
            test = yield self.condition(parts[0], f"{inner}[0]", scope)
            return negate(test) if name == "!" else test
        if name in ("if", "?:"):
            return (yield from self._choose(parts, inner, scope))
        return truth((yield from self.value(rule, place, scope)), place)

    def _choose(self, parts: list[Any], place: str, scope: Scope) -> Steps[Condition]:
        made: list[Condition] = []
        for number, part in enumerate(parts):
            made.append((yield self.condition(part, f"{place}[{number}]", scope)))
        other = made.pop() if len(made) % 2 else FALSE
        for test, then in zip(made[-2::-2], made[::-2], strict=True):
            other = choose(test, then, other, place)
        return other

    def value(self, rule: Any, place: str, scope: Scope) -> Steps[Value]:
        """Makes the value of a rule."""
        if isinstance(rule, (list, tuple)):
            return literal((yield from self.values(rule, place, scope)))
        if not isinstance(rule, Mapping) or not rule:
            return _constant(rule, place)
        name, parts, inner = self._open(rule, place)
        operation = self._operations.get(name)
        if operation is None:
            hint = INSTEAD.get(name) or suggest_names(name[:200], self._operations, "the list of operations")
            raise Unusable(place, f"the operation {show_value(name)} has no equal: {hint}")
        if not isinstance(operation, Function):
            return (yield from operation(self, name, parts, inner, scope))
        check_count(name, parts, operation.least, operation.most, inner)
        values = yield from self.values(parts, inner, scope)
        return operation.make(values, inner)

    def values(self, parts: list[Any] | tuple[Any, ...], place: str, scope: Scope) -> Steps[list[Value]]:
        made: list[Value] = []
        for number, part in enumerate(parts):
            made.append((yield self.value(part, f"{place}[{number}]", scope)))
        return made

    def _open(self, rule: Any, place: str) -> tuple[str, list[Any], str]:
        """Returns the name of an operation, its parts and their path; of a constant no name."""
        if not isinstance(rule, Mapping) or not rule:
            return "", [], place
        if len(rule) > 1:
            raise Unusable(place, f"an operation has one name, not {show_value(list(rule))}")
        ((name, parts),) = rule.items()
        name = python_value(name)
        if not isinstance(name, str):
            raise Unusable(place, f"the name of an operation is a text, not {show_value(name)}")
        return (
            name,
            list(parts) if isinstance(parts, (list, tuple)) else [parts],
            f"{place}.{name[:40]}" if place else name[:40],
        )


Operation = Function | Callable[[LogicReader, str, list[Any], str, Scope], Steps[Value]]


def _constant(value: Any, place: str) -> Value:
    plain = python_value(value)
    if isinstance(plain, Mapping):
        return literal({})
    if isinstance(plain, int) and not isinstance(plain, bool) and whole_number(plain) is None:
        raise Unusable(place, "a number is too large")
    if literal(plain).last.kind == ANY or (isinstance(plain, str) and not is_text(plain)) or plain != plain:
        raise Unusable(
            place, f"a text, a number, true, false, null, a list or an operation is needed, not {show_value(value)}"
        )
    return literal(plain)


# Operations that read their parts themselves
# --------------------------------------------------------------------------


def _not(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    return of_condition((yield from reader.condition({name: parts}, place.removesuffix(name).removesuffix("."), scope)))


def _compare(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    """Compares each value with the next one."""
    check_count(name, parts, 2, None, place)
    sign = name.replace("!=", "==")
    left = yield reader.value(parts[0], f"{place}[0]", scope)
    made: list[Condition] = []
    for number, part in enumerate(parts[1:], 1):
        right = yield reader.value(part, f"{place}[{number}]", scope)
        test = compare(sign, left, right, place)
        made.append(test if sign == name else negate(test))
        if constant_of(made[-1]) is False:
            break  # nobody reads the parts behind it
        left = right
    return of_condition(all_of(made, place))


def _first(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    """Makes the first value that counts as true, or for AND as false; else the last value."""
    check_count(name, parts, 1, None, place)
    wanted = name == "or"
    values = yield from reader.values(parts, place, scope)
    branches = []
    for value in values[:-1]:
        test = truth(value, place)
        branches.append((test if wanted else negate(test), _restrict(value, wanted)))
    return select(branches, values[-1], place)


def _restrict(value: Value, wanted: bool) -> Value:
    """Leaves the constants out that a value cannot be where its truth is known."""
    cases = [(test, leaf) for test, leaf in value.cases if not isinstance(leaf, Literal) or bool(leaf.value) is wanted]
    if isinstance(value.last, Literal) and bool(value.last.value) is not wanted and cases:
        return Value(tuple(cases[:-1]), cases[-1][1])
    return Value(tuple(cases), value.last)


def _if(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    branches: list[tuple[Condition, Value]] = []
    for number in range(0, len(parts) - 1, 2):
        test = yield reader.condition(parts[number], f"{place}[{number}]", scope)
        branches.append((test, (yield reader.value(parts[number + 1], f"{place}[{number + 1}]", scope))))
    last = NOTHING
    if len(parts) % 2:
        last = yield reader.value(parts[-1], f"{place}[{len(parts) - 1}]", scope)
    return select(branches, last, place)


def _switch(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    check_count(name, parts, 2, 3, place)
    of = yield reader.value(parts[0], f"{place}[0]", scope)
    last = NOTHING if len(parts) < 3 else (yield reader.value(parts[2], f"{place}[2]", scope))
    branches: list[tuple[Condition, Value]] = []
    for number, pair in enumerate(parts[1] if isinstance(parts[1], (list, tuple)) else [parts[1]]):
        at = f"{place}[1][{number}]"
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise Unusable(at, f"a value and its result are needed, not {show_value(pair)}")
        case = yield reader.value(pair[0], f"{at}[0]", scope)
        branches.append((compare("===", of, case, at), (yield reader.value(pair[1], f"{at}[1]", scope))))
    return select(branches, last, place)


def _coalesce(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    values = yield from reader.values(parts, place, scope)
    made = NOTHING
    for value in reversed(values):
        made = fill(value, made, place)
    return made


def fill(value: Value, other: Value, place: str) -> Value:
    """Returns a value, or another one where it is null."""
    return change(value, lambda leaf: other if leaf.kind == NULL else Value((), leaf), place)


def _plain(value: Value, place: str, what: str) -> Any:
    """Returns a constant."""
    if not isinstance(value.only, Literal):
        raise Unusable(place, f"{what} is needed, which no event changes")
    return value.only.value


def _path(name: Any, place: str) -> list[str]:
    """Returns the parts of a name with dots, or of a position."""
    if name is None or name == "":
        return []
    if isinstance(name, int) and not isinstance(name, bool):
        return [str(name)]
    if not isinstance(name, str):
        raise Unusable(place, f"the name of a variable is needed, not {show_value(name)}")
    return name.split(".")


def read_variable(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    check_count(name, parts, 0, 2, place)
    values = yield from reader.values(parts, place, scope)
    of = _plain(values[0], place, "the name of a variable") if values else None
    found = scope.find(_path(of, place), place)
    return found if len(values) < 2 else fill(found, values[1], place)


def _val(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    values = yield from reader.values(parts, place, scope)
    names: list[str] = []
    for value in values:
        one = _plain(value, place, "the name of a variable")
        if isinstance(one, list):
            raise Unusable(place, "a variable of an outer scope cannot be had: compare it outside of the list")
        names += [one] if isinstance(one, str) and one else _path(one, place)
    return scope.find(names, place)


def _exists(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    values = yield from reader.values(parts, place, scope)
    names = [str(_plain(value, place, "the name of a variable")) for value in values]
    return of_condition(negate(is_null(scope.find(names, place), place)))


def _names(values: list[Value], place: str) -> list[str]:
    """Returns the names in parts or lists."""
    names: list[str] = []
    for value in values:
        given = _plain(value, place, "a list of names")
        for one in given if isinstance(given, list) else [given]:
            plain = _plain(one, place, "a name") if isinstance(one, Value) else one
            if not isinstance(plain, (str, int)) or isinstance(plain, bool):
                raise Unusable(place, f"names of variables are needed, not {show_value(plain)}")
            names.append(str(plain))
    return names


def _is_missing(name: str, place: str, scope: Scope) -> Condition:
    """Makes the condition that a variable is null or an empty text."""

    def is_empty(leaf: Leaf) -> Condition:
        if leaf.kind == STRING:
            return Condition(leaf.handle == "") if not isinstance(leaf, Literal) else FALSE
        return TRUE if leaf.kind == NULL else FALSE

    return decide(scope.find(_path(name, place), place), is_empty, place)


def _list_if(condition: Condition) -> Value:
    """Makes a list that has elements, which nobody may look at, if a condition is true."""
    return Value(((condition, Literal(ARRAY, None)),), Literal(ARRAY, []))


def _missing(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    names = _names((yield from reader.values(parts, place, scope)), place)
    return _list_if(any_of([_is_missing(one, place, scope) for one in names], place))


def _missing_some(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    check_count(name, parts, 2, 2, place)
    values = yield from reader.values(parts, place, scope)
    least, names = _plain(values[0], place, "a number"), _names(values[1:], place)
    if not isinstance(least, (int, float)) or isinstance(least, bool) or len(names) > 400:
        raise Unusable(place, "a number and at most 400 names are needed")
    there = [negate(_is_missing(one, place, scope)) for one in names]
    enough: dict[int, Condition] = {}  # by how many more are needed
    count = max(0, math.ceil(min(least, len(names) + 1)))  # with more, never are enough there
    enough = dict.fromkeys(range(1, count + 1), FALSE)
    for one in reversed(there):
        enough = {
            needed: choose(one, enough.get(needed - 1, TRUE), enough[needed], place) for needed in range(1, count + 1)
        }
    return _list_if(all_of([negate(enough.get(count, TRUE)), any_of(map(negate, there), place)], place))


def _elements(reader: LogicReader, name: str, parts: list[Any], place: str, scope: Scope) -> Steps[Value]:
    """Makes the condition that all, some or none of the elements of a list pass a rule."""
    check_count(name, parts, 2, 2, place)
    among = yield reader.value(parts[0], f"{place}[0]", scope)
    made: list[Condition] = []
    for _, leaf in [*among.cases, (TRUE, among.last)]:
        made.append((yield from _passes(reader, leaf, parts[1], f"{place}[1]", name)))
    found = made.pop()
    for (test, _), then in zip(reversed(among.cases), reversed(made), strict=True):
        found = choose(test, then, found, place)
    return of_condition(found)


def _passes(reader: LogicReader, leaf: Leaf, rule: Any, place: str, name: str) -> Steps[Condition]:
    if leaf.kind == NULL:
        return TRUE if name == "none" else FALSE
    if leaf.kind not in (ARRAY, ANY):
        raise Unusable(place, f"{name} needs a list, not a {leaf.kind}")
    if isinstance(leaf, Literal):
        members: list[Condition] = []
        for member in _known_members(leaf, place):
            members.append((yield reader.condition(rule, place, Scope(value=member))))
        if name == "all":
            return all_of(members, place) if members else FALSE
        found = any_of(members, place)
        return negate(found) if name == "none" else found
    test: Condition = yield reader.condition(rule, place, element_of(leaf))
    if name == "all":  # of an empty list it is false
        return all_of([Condition(size_of(leaf.handle) > 0), every(leaf, test)], place)
    return negate(some(leaf, test)) if name == "none" else some(leaf, test)


def _known_members(leaf: Literal, place: str) -> list[Value]:
    if leaf.value is None:
        raise Unusable(
            place, 'the result of missing can only be tested for being there, as in {"!": {"missing": [...]}}'
        )
    return list(leaf.value)


OPERATIONS: dict[str, Operation] = {
    **FUNCTIONS, "var": read_variable, "val": _val, "exists": _exists, "missing": _missing, "missing_some": _missing_some,
    **dict.fromkeys(("==", "===", "!=", "!==", "<", "<=", ">", ">="), _compare), **dict.fromkeys(("!", "!!"), _not),
    **dict.fromkeys(("and", "or"), _first), **dict.fromkeys(("if", "?:"), _if),
    "switch": _switch, "??": _coalesce, **dict.fromkeys(("all", "some", "none"), _elements),
}  # fmt: skip
