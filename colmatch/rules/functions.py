"""The operations of JSONLogic whose values are all computed first."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa

from colmatch.expr.build import ColumnHandle
from colmatch.expr.build_computed import make_comparison
from colmatch.given.arguments import whole_number
from colmatch.rules.columns import element_of, kind_of_type, some
from colmatch.rules.javascript import is_among, number, text
from colmatch.rules.joined import FALSE, Condition, constant
from colmatch.rules.refusal import Unusable
from colmatch.rules.values import (
    ANY,
    ARRAY,
    DURATION,
    MOMENT,
    NOTHING,
    NULL,
    NUMBER,
    STRING,
    Leaf,
    Literal,
    Value,
    Variable,
    change,
    computed,
    computed_test,
    decide,
    is_null,
    literal,
    of_condition,
    pair_leaves,
    size_of,
    variable_of,
)
from colmatch.rules.versions import compare_versions_of_rule as _versions

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
WITH_SCHEMA = "its type is not known: hand over schema=, or --schema on the command line"
INSTEAD = {
    "map": 'write the condition on elements, as in {"some": [list, condition]}',
    "filter": "write the condition with some, all or none",
    "reduce": "write some, all or none, or compute the value before",
    "method": "there are no methods: compute the value before",
    "throw": "a rule cannot be an error: leave it out",
    "try": "a rule cannot be an error: leave it out",
    "type": "columns have one type: leave the test out",
}


class Function(NamedTuple):
    """An operation: what makes its value of values, and how many it takes."""

    make: Callable[[list[Value], str], Value]
    least: int = 1
    most: int | None = None


def check_count(name: str, parts: list[Any], least: int, most: int | None, place: str) -> None:
    if len(parts) < least or (most is not None and len(parts) > most):
        needed = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
        raise Unusable(place, f"{name!r} takes {needed} values, not {len(parts)}")


# Searches
# --------------------------------------------------------------------------


def _in(values: list[Value], place: str) -> Value:
    what, where = values
    return of_condition(decide(where, lambda leaf: _is_in(what, leaf, place), place))


def _is_in(what: Value, where: Leaf, place: str) -> Condition:
    if where.kind == NULL:
        return FALSE
    if where.kind == ARRAY and isinstance(where, Literal):
        if where.value is None:
            raise Unusable(place, "the names that are missing cannot be searched")
        return is_among(what, where.value, place)
    if where.kind == ARRAY:
        return decide(what, lambda leaf: _is_element(leaf, where, place), place)
    if where.kind == STRING:
        return decide(what, lambda leaf: _is_part(leaf, where, place), place)
    if where.kind == ANY:
        raise Unusable(place, f"in looks for a part of a text, or for an element of a list: {WITH_SCHEMA}")
    raise Unusable(place, f"in searches texts and lists, not a {where.kind}")


def _is_element(leaf: Leaf, where: Leaf, place: str) -> Condition:
    assert isinstance(where, Variable)
    of = ANY if where.type is None else kind_of_type(where.type.value_type)
    if leaf.kind == NULL:
        return some(where, is_null(element_of(where).find([], place), place))
    if leaf.kind != of and ANY not in (leaf.kind, of):
        return FALSE
    if isinstance(leaf, Literal):
        return Condition(where.handle.array_contains(leaf.value))
    return Condition(where.handle.exists(lambda element: make_comparison("=", element, leaf.handle)))


def _is_part(leaf: Leaf, where: Leaf, place: str) -> Condition:
    if leaf.kind == NULL:
        return FALSE
    part = text(Value((), leaf), place).last
    if isinstance(where, Literal):
        if isinstance(part, Literal):
            return constant(part.value in where.value)
        return Condition(computed_test("contains", where.value, part.handle))
    if isinstance(part, Literal):
        return Condition(where.handle.contains(part.value))
    return Condition(computed_test("contains", where.handle, part.handle))


# Numbers
# --------------------------------------------------------------------------


def _numbers(values: list[Value], place: str) -> list[Value]:
    """Returns values as numbers. Of several columns, coalesce makes 0 of NULL, instead of cases."""
    made = [number(value, place) for value in values]
    if sum(bool(value.cases) for value in made) < 2:
        return made
    return [_filled(value, new, 0) for value, new in zip(values, made, strict=True)]


def _filled(value: Value, made: Value, empty: int | str) -> Value:
    """Returns a column with a constant in the place of NULL."""
    column = variable_of(value)
    if column is None or len(made.cases) > 1 or not isinstance(made.last, Variable):
        return made
    return Value((), made.last._replace(handle=computed("coalesce", made.last.handle, empty)))


def _arithmetic(sign: str, values: list[Value], place: str) -> Value:
    if len(values) == 1:
        values = [literal(0), *values] if sign == "-" else [*values, literal(0 if sign == "+" else 1)]
    return reduce(partial(pair_leaves, partial(_calculate, sign), place), _numbers(values, place))


def _calculate(sign: str, left: Leaf, right: Leaf) -> Value:
    if isinstance(left, Literal) and isinstance(right, Literal):
        return literal(_result(sign, left.value, right.value))
    for side in (left, right):
        if isinstance(side, Literal) and not math.isfinite(side.value):
            return literal(math.nan)
    return Value((), Variable(NUMBER, computed(sign, _operand(left), _operand(right))))


def _operand(leaf: Leaf) -> Any:
    return leaf.value if isinstance(leaf, Literal) else leaf.handle


def _result(sign: str, left: float, right: float) -> float:
    make: dict[str, Callable[[], float]] = {
        "+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right, "/": lambda: left / right,
        "%": lambda: math.fmod(left, right),
    }  # fmt: skip
    try:
        made = make[sign]()
    except (ZeroDivisionError, OverflowError, ValueError):
        return math.nan  # of a quotient by 0, too, which is NULL for columns
    return int(made) if sign == "%" and isinstance(left, int) and isinstance(right, int) else made


def _extreme(function: str, values: list[Value], place: str) -> Value:
    best = max if function == "greatest" else min

    def pair(left: Leaf, right: Leaf) -> Value:
        if isinstance(left, Literal) and isinstance(right, Literal):
            return literal(best(left.value, right.value))
        return Value((), Variable(NUMBER, computed(function, _operand(left), _operand(right))))

    return reduce(partial(pair_leaves, pair, place), _numbers(values, place))


def _rounded(function: str, values: list[Value], place: str) -> Value:
    exact: dict[str, Callable[[Any], Any]] = {"abs": abs, "ceil": math.ceil, "floor": math.floor}

    def make(leaf: Leaf) -> Value:
        if isinstance(leaf, Literal):
            return literal(exact[function](leaf.value) if math.isfinite(leaf.value) else leaf.value)
        return Value((), Variable(NUMBER, computed(function, leaf.handle)))

    return change(number(values[0], place), make, place)


# Texts
# --------------------------------------------------------------------------


def _concatenate(values: list[Value], place: str) -> Value:
    made = [text(value, place) for value in values]
    if sum(bool(value.cases) for value in made) > 1:
        made = [_filled(value, new, "") for value, new in zip(values, made, strict=True)]
    return reduce(partial(pair_leaves, _join, place), made)


def _join(left: Leaf, right: Leaf) -> Value:
    if isinstance(left, Literal) and isinstance(right, Literal):
        return literal(left.value + right.value)
    parts: list[Any] = []
    for side in (left, right):
        if isinstance(side, Literal):
            parts += [side.value] if side.value else []
            continue
        value = side.handle._subject.computed
        parts += value.arguments if value is not None and value.function == "concat" else [side.handle]
    return Value((), Variable(STRING, computed("concat", *parts), pa.string()))


def _changed(function: str, change_text: Callable[[str], str], values: list[Value], place: str) -> Value:
    def make(leaf: Leaf) -> Value:
        if isinstance(leaf, Literal):
            return literal(change_text(leaf.value))
        return Value((), Variable(STRING, computed(function, leaf.handle), pa.string()))

    return change(text(values[0], place), make, place)


def _substring(values: list[Value], place: str) -> Value:
    numbers: list[int] = []
    for value in values[1:]:
        plain = whole_number(value.only.value) if isinstance(value.only, Literal) else None
        if plain is None or abs(plain) >= 1 << 31:
            raise Unusable(place, "substr takes whole numbers that no event changes for its places")
        numbers.append(plain)
    start, length = numbers[0], numbers[1] if len(numbers) > 1 else None

    def make(leaf: Leaf) -> Value:
        if isinstance(leaf, Literal):
            rest = leaf.value[start:] if start >= 0 or -start <= len(leaf.value) else leaf.value
            return literal(rest[:length] if length is not None else rest)
        made = computed("substring", leaf.handle, start + 1 if start >= 0 else start) if start else leaf.handle
        if length is not None and length >= 0:
            made = computed("substring", made, 1, length)
        elif length is not None:
            made = computed("reverse", computed("substring", computed("reverse", made), 1 - length))
        return Value((), Variable(STRING, made, pa.string()))

    return change(text(values[0], place), make, place)


def _length(values: list[Value], place: str) -> Value:
    def make(leaf: Leaf) -> Value:
        if (
            isinstance(leaf, Literal)
            and leaf.kind in (STRING, ARRAY, NULL)
            and (leaf.value is not None or leaf.kind == NULL)
        ):
            return literal(len(leaf.value or ""))
        if isinstance(leaf, Variable) and leaf.kind in (STRING, ARRAY):
            handle = computed("length", leaf.handle) if leaf.kind == STRING else size_of(leaf.handle)
            return Value((), Variable(NUMBER, handle, pa.int32()))
        raise Unusable(place, WITH_SCHEMA if leaf.kind == ANY else f"length needs a text or a list, not a {leaf.kind}")

    return change(values[0], make, place)


def _affix(function: str, values: list[Value], place: str) -> Value:
    """Makes starts_with or ends_with, which are null without two texts."""

    def pair(left: Leaf, right: Leaf) -> Value:
        if not {left.kind, right.kind} <= {STRING, ANY}:
            return NOTHING
        if isinstance(left, Literal) and isinstance(right, Literal):
            return literal(
                left.value.startswith(right.value) if function == "startswith" else left.value.endswith(right.value)
            )
        if isinstance(left, Variable) and isinstance(right, Literal):
            made = (
                left.handle.startswith(right.value) if function == "startswith" else left.handle.endswith(right.value)
            )
        else:
            made = computed_test(function, _operand(left), _operand(right))
        return of_condition(Condition(made))

    return pair_leaves(pair, place, *values)


# Times and lists
# --------------------------------------------------------------------------


def _moment(values: list[Value], place: str) -> Value:
    def make(leaf: Leaf) -> Value:
        if leaf.kind in (MOMENT, NULL):
            return Value((), leaf)
        if isinstance(leaf, Literal) and leaf.kind == STRING:
            try:
                moment = dt.datetime.fromisoformat(leaf.value)
            except ValueError:
                raise Unusable(place, f"{leaf.value[:80]!r} is no moment as in 2024-01-31T12:30:00Z") from None
            return literal(moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC))
        if isinstance(leaf, Variable) and leaf.kind in (STRING, ANY):
            return Value((), Variable(MOMENT, computed("to_timestamp", leaf.handle)))
        raise Unusable(place, f"a text or a moment is needed, not a {leaf.kind}")

    return change(values[0], make, place)


def _duration(values: list[Value], place: str) -> Value:
    given = values[0].only.value if isinstance(values[0].only, Literal) else None
    if isinstance(given, dt.timedelta):
        return values[0]
    written = given.replace(":", "") if isinstance(given, str) else ""
    parts = re.findall(r"(\d{1,9})([dhms])", written)
    if not parts or "".join(map("".join, parts)) != written:
        raise Unusable(place, f"a duration is written as in 1d:2h:30m, not {given!r:.80}")
    return Value(
        (),
        Literal(DURATION, sum((dt.timedelta(**{_UNITS[unit]: int(count)}) for count, unit in parts), dt.timedelta())),
    )


def _now(values: list[Value], place: str) -> Value:
    return Value((), Variable(MOMENT, ColumnHandle(computed("now")._subject)))


def _merge(values: list[Value], place: str) -> Value:
    def pair(left: Leaf, right: Leaf) -> Value:
        both: list[Any] = []
        for leaf in (left, right):
            if isinstance(leaf, Variable):
                raise Unusable(
                    place, "merge joins lists of the rule, not columns: search each with in, and join these with or"
                )
            if leaf.kind == ARRAY and leaf.value is None:
                return Value((), Literal(ARRAY, None))
            both += leaf.value if leaf.kind == ARRAY else [Value((), leaf)]
        return literal(both)

    return reduce(partial(pair_leaves, pair, place), values, literal([]))


def _first(values: list[Value], place: str) -> Value:
    return values[0]


FUNCTIONS: dict[str, Function] = {
    "in": Function(_in, 2, 2),
    "+": Function(partial(_arithmetic, "+")), "-": Function(partial(_arithmetic, "-")),
    "*": Function(partial(_arithmetic, "*")), "/": Function(partial(_arithmetic, "/"), 2),
    "%": Function(partial(_arithmetic, "%"), 2),
    "min": Function(partial(_extreme, "least")), "max": Function(partial(_extreme, "greatest")),
    **{name: Function(partial(_rounded, name), 1, 1) for name in ("abs", "ceil", "floor")},
    "cat": Function(_concatenate), "substr": Function(_substring, 2, 3), "length": Function(_length, 1, 1),
    "lower": Function(partial(_changed, "lower", str.lower), 1, 1),
    "upper": Function(partial(_changed, "upper", str.upper), 1, 1),
    "trim": Function(partial(_changed, "trim", lambda one: one.strip(" ")), 1, 1),
    "starts_with": Function(partial(_affix, "startswith"), 2, 2), "ends_with": Function(partial(_affix, "endswith"), 2, 2),
    "sem_ver": Function(_versions, 3, 3), "datetime": Function(_moment, 1, 1), "timestamp": Function(_duration, 1, 1),
    "now": Function(_now, 0), "merge": Function(_merge, 0), "log": Function(_first, 1, 1),
}  # fmt: skip
