"""Comparisons of moments with constants in them, as ranges of a difference that they share.

``ts > now() - INTERVAL 7 DAYS`` says that the microseconds from ``now()`` to ``ts`` are more than
minus seven days. So 10,000 rules with an interval each are ranges of one computed value. Without
``now()``, as in ``ts > TIMESTAMP '2024-01-31 00:00:00' + INTERVAL 1 DAY``, it is a range of ``ts``.

This is exact for hours and less, and for days where all days are as long: of dates, of timestamps
without a zone, and in zones without summer time.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from colmatch.events.computed.derived import constant
from colmatch.events.computed.nodes import INSTANTS, is_constant
from colmatch.expr.ast import Predicate, Subject, Verb
from colmatch.expr.computed import BETWEEN, ComputedValue
from colmatch.expr.computed_types import Typing
from colmatch.expr.intervals import DAY, DAYS, MONTHS
from colmatch.expr.times import LENGTHS, WHOLE_UNITS
from colmatch.lowering.forms import Kind, Operand
from colmatch.lowering.times import EPOCH

_VERBS = {"=": Verb.EQ, "<": Verb.GT}
_TURNED = {Verb.EQ: Verb.EQ, Verb.GT: Verb.LT}
_FIRST, _LAST = dt.date.min.toordinal() - EPOCH, dt.date.max.toordinal() - EPOCH


class _Sum(NamedTuple):
    """A sum of moments and a constant, in days for dates and else in microseconds.

    type : of the whole
    is_moved : whether it has a constant, or the time of the call
    """

    type: str
    plus: tuple[ComputedValue, ...]
    minus: tuple[ComputedValue, ...]
    constant: int
    is_moved: bool


def simplify_comparison(p: Predicate, typing: Typing) -> Predicate:
    """Turns a comparison of moments into a range of a difference, if that is exact.

    Raises Refusal: the comparison has no types.
    """
    value = p.subject.computed
    if p.verb is not Verb.BARE or value is None or value.function not in _VERBS:
        return p
    normal = typing.normal(value)
    if not _may_move(normal):
        return p
    typing.note(normal, typing.node(normal))
    sides = [_sum(side, typing) for side in normal.arguments]
    if sides[0].type != sides[1].type:
        sides = _alike(sides)
    left, right = sides
    if left.type != right.type or not (left.is_moved or right.is_moved):
        return p
    plus, minus = list(right.plus + left.minus), list(right.minus + left.plus)
    for part in right.plus + left.minus:
        if part in minus:
            plus.remove(part)
            minus.remove(part)
    verb, least = _VERBS[normal.function], left.constant - right.constant
    if not plus or (minus and _goes_last(plus[0], minus[0])):
        plus, minus, verb, least = minus, plus, _TURNED[verb], -least
    if len(plus) != 1 or len(minus) > 1:
        return p
    if minus:
        function = "datediff" if left.type == "date" else BETWEEN
        found, operand = ComputedValue(function, (plus[0], minus[0])), Operand(Kind.INT, value=least)
    else:
        moment = _literal(left.type, least)
        if moment is None:
            return p
        found, operand = plus[0], moment
    subject = Subject(found.arguments) if found.function == "column" else Subject((), computed=found)
    return replace(p, verb=verb, subject=subject, operands=(operand,))


def _may_move(value: ComputedValue) -> bool:
    """Returns whether a value has an interval, a number of days, or the time of the call."""
    if value.function in ("interval", "current_timestamp", "date_add", "timestampadd"):
        return True
    return any(_may_move(part) for part in value.arguments if isinstance(part, ComputedValue))


def _has_now(value: ComputedValue) -> bool:
    if value.function == "current_timestamp":
        return True
    return any(_has_now(part) for part in value.arguments if isinstance(part, ComputedValue))


def _goes_last(one: ComputedValue, other: ComputedValue) -> bool:
    """Returns whether the first of two moments is to be subtracted from the other."""
    has_now = _has_now(one)
    return has_now if has_now != _has_now(other) else one.sql() > other.sql()


def _alike(sides: list[_Sum]) -> list[_Sum]:
    """Casts a date to the type of the other side, if it is one value."""
    types = {side.type for side in sides}
    to = next((type for type in ("timestamp", "timestamp_ntz") if type in types), "")
    if types != {"date", to}:
        return sides
    return [
        side
        if side.type == to or len(side.plus) != 1 or side.minus or side.constant
        else side._replace(type=to, plus=(ComputedValue("cast", (side.plus[0], to)),))
        for side in sides
    ]


def _sum(value: ComputedValue, typing: Typing) -> _Sum:
    """Returns a value as a sum: of itself alone where nothing else is exact."""
    name, arguments = value
    node = typing.node(value)
    type = "interval" if node.type == "interval_days" else node.type
    alone = _Sum(type, (value,), (), 0, name == "current_timestamp" or _is_today(value))
    if is_constant(node) and type in (*INSTANTS, "interval"):
        number = constant(node).cast(pa.int32() if type == "date" else pa.int64()).as_py()
        return alone if number is None else _Sum(type, (), (), number, node.function != "literal" or type == "interval")
    if name == "timestampadd":
        return _added(value, type, typing) or alone
    if name not in ("+", "-", "date_add") or type not in (*INSTANTS, "interval"):
        return alone
    one, other = arguments
    types = [typing.node(part).type for part in arguments]
    if name == "+" and types[0] in LENGTHS and types[1] in INSTANTS:
        (one, other), types = (other, one), types[::-1]
    if types[0] in INSTANTS and types[1] in INSTANTS:
        return _difference(one, other, types, typing) or alone
    amount = _amount(other, types, typing)
    if amount is None or types[0] != type:
        return alone
    base = _sum(one, typing)
    return base._replace(constant=base.constant + (-amount if name == "-" else amount), is_moved=True)


def _added(value: ComputedValue, type: str, typing: Typing) -> _Sum | None:
    """Returns the sum of ``timestampadd(unit, n, at)``; None if it is not exact."""
    (_, (_, word)), number, at = value.arguments
    unit = WHOLE_UNITS.get(word.lower())
    if unit is None or number.function != "literal" or typing.node(at).type != type:
        return None
    if unit >= DAY and type == "timestamp" and not typing.has_fixed_zone:
        return None
    base = _sum(at, typing)
    return base._replace(constant=base.constant + int(number.arguments[1]) * unit, is_moved=True)


def _is_today(value: ComputedValue) -> bool:
    is_cast = value.function == "cast" and value.arguments[0].function == "current_timestamp"
    return is_cast and value.arguments[1] == "date"


def _difference(one: ComputedValue, other: ComputedValue, types: list[str], typing: Typing) -> _Sum | None:
    """Returns the difference of two moments, an interval. Of timestamps it is that of clocks."""
    if types[0] != types[1] or (types[0] == "timestamp" and not typing.has_fixed_zone) or types[0] == "date":
        return None
    first, second = _sum(one, typing), _sum(other, typing)
    constant, is_moved = first.constant - second.constant, first.is_moved or second.is_moved
    return _Sum("interval", first.plus + second.minus, first.minus + second.plus, constant, is_moved)


def _amount(value: ComputedValue, types: list[str], typing: Typing) -> int | None:
    """Returns the amount added to a moment of ``types[0]``; None if it is not exact or constant."""
    if types[0] == "date":
        if value.function == "literal" and value.arguments[0] in ("tinyint", "smallint", "int"):
            return int(value.arguments[1])
        is_days = value.function == "interval" and value.arguments[0] == DAYS
        return int(value.arguments[1]) // DAY if is_days else None
    if value.function != "interval" or value.arguments[0] == MONTHS:
        return None
    amount = int(value.arguments[1])
    exact = abs(amount) < DAY or types[0] != "timestamp" or typing.has_fixed_zone
    return amount if exact else None


def _literal(type: str, number: int) -> Operand | None:
    """Returns a moment as a literal; None for an interval, and outside the years 1 to 9999."""
    if not _FIRST < (number if type == "date" else number // DAY) < _LAST or type == "interval":
        return None
    if type == "date":
        return Operand(Kind.DATE, value=dt.date.fromordinal(number + EPOCH))
    zone = dt.UTC if type == "timestamp" else None
    return Operand(Kind.TIMESTAMP if type == "timestamp" else Kind.TIMESTAMP_NTZ, value=(number * 1000, zone))
