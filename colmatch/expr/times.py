"""Functions of dates and times that are written by casts and fewer functions.

``simplify_time`` needs no types. ``TimeRules`` has the functions that mean something else for each
type.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from colmatch.errors import SchemaError
from colmatch.events.computed.intervals import check_zone
from colmatch.events.computed.nodes import INSTANTS, INTEGERS, ValueNode
from colmatch.expr.ast import Refusal
from colmatch.expr.computed import AT_ZONE, ComputedValue
from colmatch.expr.functions import MAYBE_UNIT, NAMES, SYNONYMS, TABLE, UNIT, VALUE
from colmatch.expr.intervals import DAY, DAYS, MONTHS, SECOND, TIMES, read_interval
from colmatch.given.schema import Schema

_CASTS = {
    "date": "date", "to_date": "date", "timestamp": "timestamp", "to_timestamp": "timestamp", "to_timestamp_ltz": "timestamp",
    "to_timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
_CLOCK = ((TIMES, 3600 * SECOND), (TIMES, 60 * SECOND), (TIMES, SECOND))
_MADE = {  # of functions that make an interval: kind and factor of each argument
    "make_interval": ((MONTHS, 12), (MONTHS, 1), (DAYS, 7 * DAY), (DAYS, DAY), *_CLOCK),
    "make_dt_interval": ((TIMES, DAY), *_CLOCK), "make_ym_interval": ((MONTHS, 12), (MONTHS, 1)),
}  # fmt: skip
_NOW = ComputedValue("current_timestamp", ())
UNITED = frozenset(
    name
    for name, function in NAMES.items()
    if {UNIT, MAYBE_UNIT} & set(function.arguments[:1]) and function.kind == VALUE
)  # they may begin with a unit
WORDS = ("current_timestamp", "current_date", "localtimestamp")  # functions that may lack parentheses
DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"


def simplify_time(value: ComputedValue) -> ComputedValue:
    """Writes a function of a date or time by casts and other functions; others are unchanged."""
    name, arguments = value
    plain = name.removeprefix("try_")
    if name == "unix_timestamp" and not arguments:
        return ComputedValue("unix_seconds", (_NOW,))
    if name == "date" and len(arguments) == 3:
        return ComputedValue("make_date", arguments)
    if plain in _CASTS:
        return _as_cast(name, plain, arguments)
    if name == "interval" and len(arguments) == 1:
        return _interval(arguments[0])
    name = SYNONYMS.get(name, name)
    if name in ("date_add", "date_sub") and len(arguments) == 2 and arguments[1].function == "interval":
        return ComputedValue("-" if name == "date_sub" else "+", arguments)
    if name in ("date_trunc", "timestamp_trunc"):
        return _trunc_call(arguments)
    if name in _MADE:
        return _made_interval(name, arguments)
    if name in ("timezone", "convert_timezone"):
        return _zoned(name, arguments)
    if name in ("date_add", "datediff", "timestamp_diff") and len(arguments) == 3:
        if "diff" in name and not is_unit(arguments[0]) and is_unit(arguments[2]):  # as in BigQuery
            arguments = arguments[2], arguments[1], arguments[0]
        if arguments[0] == ComputedValue("literal", ("string", "day")) and "diff" in name:
            return ComputedValue("datediff", arguments[:0:-1])
        return ComputedValue("timestampadd" if "add" in name else "timestampdiff", arguments)
    if name == "from_unixtime":
        seconds = _cast(_cast(arguments[0], "bigint"), "timestamp")
        return ComputedValue("date_format", (seconds, *(arguments[1:] or (_text(DEFAULT_FORMAT),))))
    return value


def _trunc_call(arguments: tuple[Any, ...]) -> ComputedValue:
    """Writes ``date_trunc(day, MONTH)`` and its like, as in BigQuery, with the unit first."""
    value, unit = arguments
    word = _word(unit) if unit.function == "column" and value.function != "literal" else ""
    if word == "isoweek" or (word != "week" and word and is_unit(unit)):
        return ComputedValue("date_trunc", (_text(word.removeprefix("iso")), value))
    if word == "week":
        raise Refusal("WEEK begins with Sunday there: write date_trunc('week', day) for weeks that begin with Monday")
    return ComputedValue("date_trunc", arguments)


def _made_interval(name: str, arguments: tuple[Any, ...]) -> ComputedValue:
    """Writes ``make_interval(0, 0, 0, 7)`` and its like as the interval."""
    amounts = dict.fromkeys((MONTHS, DAYS, TIMES), 0)
    for (kind, factor), value in zip(_MADE[name], arguments, strict=False):
        type = str(value.arguments[0]) if value.function == "literal" else ""
        if type != "int" and not (factor == SECOND and type.startswith("decimal")):
            raise Refusal(f"{name} takes literal numbers here: write timestampadd(DAY, n, at) for a number of an event")
        amounts[kind] += int((Decimal(value.arguments[1]) * factor).to_integral_value(ROUND_HALF_UP))
    months, days, times = amounts.values()
    if (months and (days or times)) or (name == "make_interval" and abs(times) >= DAY):
        raise Refusal(
            f"{name} has months and days, or a day of hours, here: add two intervals, as in at + INTERVAL 1 MONTH + INTERVAL 2 DAYS"
        )
    if max(abs(months) >> 31, abs(days + times) >> 63):
        raise Refusal(f"{name} is too long for an interval")
    return ComputedValue("interval", (MONTHS, months) if months else (TIMES if times else DAYS, days + times))


def _zoned(name: str, arguments: tuple[Any, ...]) -> ComputedValue:
    """Writes ``timezone(zone, at)`` and ``convert_timezone(from, to, at)`` by AT TIME ZONE."""
    *zones, value = arguments
    if name == "convert_timezone":
        value = _cast(value, "timestamp_ntz")
        value = _cast(value, "timestamp") if len(zones) == 1 else ComputedValue(AT_ZONE, (value, zones[0]))
    return ComputedValue(AT_ZONE, (value, zones[-1]))


def _interval(value: ComputedValue) -> ComputedValue:
    if value.function != "literal" or value.arguments[0] != "string":
        raise Refusal("an interval is written INTERVAL 7 DAYS, or INTERVAL '1:30' HOUR TO MINUTE")
    try:
        return ComputedValue("interval", tuple(read_interval(value.arguments[1])))
    except ValueError as error:
        raise Refusal(str(error)) from None


def clock_word(schema: Schema, path: tuple[str, ...]) -> ComputedValue | None:
    """Returns ``current_date`` and the like, which need no parentheses; None for a column."""
    word = path[0].lower()
    if len(path) > 1 or word not in WORDS:
        return None
    try:
        schema.column(path)
    except SchemaError:
        return ComputedValue(word, ())
    return None


def mentions_clock(value: ComputedValue) -> bool:
    """Returns whether a value, as it is written, has the time of the call in it."""
    if SYNONYMS.get(value.function, value.function) in WORDS or (
        value.function == "unix_timestamp" and not value.arguments
    ):
        return True
    return any(mentions_clock(part) for part in value.arguments if isinstance(part, ComputedValue))


def _as_cast(name: str, plain: str, arguments: tuple[Any, ...]) -> ComputedValue:
    """Writes ``to_date`` and its like as a cast, of ``to_timestamp`` if there is a format."""
    type, is_tried = _CASTS[plain], name != plain
    if len(arguments) == 1:
        return ComputedValue("try_cast" if is_tried else "cast", (arguments[0], type))
    if name == "date":
        raise Refusal(TABLE[name].find_fault(name, 0))
    if type == "timestamp_ntz":
        return ComputedValue(name, arguments)
    read = ComputedValue("try_to_timestamp" if is_tried else "to_timestamp", arguments)
    return _cast(read, "date") if type == "date" else read


def _cast(value: ComputedValue, type: str) -> ComputedValue:
    return ComputedValue("cast", (value, type))


def _text(text: str) -> ComputedValue:
    return ComputedValue("literal", ("string", text))


LENGTHS = ("interval", "interval_days", "months")  # types of intervals
_TYPES = {MONTHS: "months", DAYS: "interval_days"}
WHOLE_UNITS = {
    "microsecond": 1, "millisecond": 1000, "second": SECOND, "minute": 60 * SECOND, "hour": 3600 * SECOND, "day": DAY, "week": 7 * DAY,
}  # fmt: skip
_IN_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_BY_DATE = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month", "mm": "month", "week": "week",
}  # fmt: skip


def read_unit(name: str, value: ComputedValue) -> str:
    """Returns the unit of time that a value names, which is a word or a text.

    name : the function that takes it

    Raises Refusal: it is no unit.
    """
    if not is_unit(value):
        raise Refusal(f"{name} begins with a unit, as in {name}(HOUR, ...): {', '.join([*WHOLE_UNITS, *_IN_MONTHS])}")
    return _word(value)


def is_unit(value: ComputedValue) -> bool:
    """Returns whether a value is the word for a unit of time."""
    return _word(value) in WHOLE_UNITS or _word(value) in _IN_MONTHS


def _word(value: ComputedValue) -> str:
    kind, arguments = value
    word = str(arguments[0] if kind == "column" and len(arguments) == 1 else arguments[-1] if kind == "literal" else "")
    return {"d": "day", "dd": "day"}.get(word.lower(), word.lower().removesuffix("s"))


class TimeRules:
    """The types of functions of dates and times, a base class of ``Typing``."""

    _zone: str
    _cast: Callable[[ValueNode, str], ValueNode]
    _read_text: Callable[[ValueNode, str], ValueNode]
    _of_table: Callable[[str, list[ValueNode]], ValueNode]

    @property
    def has_fixed_zone(self) -> bool:
        """Returns whether clocks of the session's zone never change."""
        return self._zone == "UTC" or self._zone[0] in "+-"

    def sum_of_moments(self, name: str, nodes: list[ValueNode]) -> ValueNode | None:
        """Types a sum or difference with dates, timestamps or intervals; None for other types."""
        one, other = nodes
        if name == "+" and other.type in INSTANTS:
            one, other = other, one
        if one.type in LENGTHS and other.type in LENGTHS and (one.type == "months") == (other.type == "months"):
            type = one.type if one.type == other.type else "interval"
            parts = tuple([node._replace(type=type) for node in (one, other)])
            return ValueNode("add" if name == "+" else "subtract", type, parts)
        if one.type not in INSTANTS or name not in "+-":
            return None
        if other.type in INSTANTS:
            return None if name == "+" else self._difference(one, other)
        if one.type == "date" and other.type in ("tinyint", "smallint", "int"):
            days = self._cast(other, "int")
            return ValueNode("date_add", "date", (one, days if name == "+" else negative(days)))
        if other.type not in LENGTHS:
            return None
        amount = other if name == "+" else negative(other)
        if other.type == "months":
            return self._add_months(one, amount)
        if one.type == "date" and amount.type == "interval_days" and amount.function == "literal":
            days = ValueNode("literal", "int", (str(int(amount.arguments[0]) // DAY),))
            return ValueNode("date_add", "date", (one, days))
        return self._add_micros(self._cast(one, "timestamp") if one.type == "date" else one, amount)

    def _add_micros(self, one: ValueNode, amount: ValueNode) -> ValueNode:
        return ValueNode("add_micros", one.type, (one, amount, *([self._zone] if one.type == "timestamp" else [])))

    def _add_months(self, one: ValueNode, amount: ValueNode) -> ValueNode:
        if one.type == "date":
            return ValueNode("add_months", "date", (one, amount))
        return ValueNode("add_months_time", one.type, (one, amount, *([self._zone] if one.type == "timestamp" else [])))

    def _difference(self, one: ValueNode, other: ValueNode) -> ValueNode:
        if one.type == other.type == "date":
            return ValueNode("micros_between", "interval_days", (one, other))
        return ValueNode("micros_between", "interval", (self._clocks(one), self._clocks(other)))

    def _clocks(self, node: ValueNode) -> ValueNode:
        """Returns a moment on the clocks of the session, which differences are computed of."""
        if node.type == "timestamp" and self.has_fixed_zone:
            return node
        if node.type == "date" or (node.type == "timestamp_ntz" and self.has_fixed_zone):
            node = self._cast(node, "timestamp")
            return node if self.has_fixed_zone else self._cast(node, "timestamp_ntz")
        return self._cast(node, "timestamp_ntz")

    def _micros_between(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        if nodes[0].type != nodes[1].type or nodes[0].type not in INSTANTS:
            raise Refusal(f"{name} takes two timestamps")
        return ValueNode(name, "bigint", tuple(nodes))

    def _literal_interval(self, name: str, arguments: tuple[str, int]) -> ValueNode:
        return ValueNode("literal", _TYPES.get(arguments[0], "interval"), (str(arguments[1]),))

    def _timestampadd(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        unit, number, at = str(nodes[0].arguments[0]).lower(), *nodes[1:]
        if number.type not in INTEGERS or at.type not in INSTANTS:
            raise Refusal("timestampadd takes a unit, a whole number and a timestamp, as in timestampadd(HOUR, 2, at)")
        at = self._cast(at, "timestamp") if at.type == "date" else at
        factor, type = (_IN_MONTHS[unit], "months") if unit in _IN_MONTHS else (WHOLE_UNITS[unit], "interval")
        amount = ValueNode(
            "multiply_checked", type, (self._cast(number, type), ValueNode("literal", type, (str(factor),)))
        )
        if unit in _IN_MONTHS:
            return self._add_months(at, amount)
        if unit in ("day", "week"):
            return self._add_micros(at, amount)
        return ValueNode("add_micros", at.type, (at, amount))

    def _timestampdiff(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        unit, sooner, later = str(nodes[0].arguments[0]).lower(), *nodes[1:]
        if sooner.type not in INSTANTS or later.type not in INSTANTS:
            raise Refusal("timestampdiff takes a unit and two timestamps, as in timestampdiff(HOUR, at, now())")
        pair = (self._clocks(later), self._clocks(sooner))
        if unit in _IN_MONTHS:
            local = tuple([self._cast(self._cast(node, "timestamp"), "timestamp_ntz") for node in (later, sooner)])
            return ValueNode("whole_months", "bigint", (*local, _IN_MONTHS[unit]))
        return ValueNode("whole_units", "bigint", (ValueNode("micros_between", "bigint", pair), WHOLE_UNITS[unit]))

    def _months_between(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        nodes = [*(self._read_text(node, "timestamp") for node in nodes[:2]), *nodes[2:]]
        if any(node.type not in INSTANTS for node in nodes[:2]) or (len(nodes) == 3 and nodes[2].function != "literal"):
            raise Refusal(f"{name} takes two dates, as in {name}(later, day)")
        pair = [self._cast(node, "timestamp") for node in nodes[:2]]
        return ValueNode(name, "double", (*pair, nodes[2].arguments[0] if len(nodes) == 3 else "true", self._zone))

    def _at_zone(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types a timestamp on the clocks of a zone, or the moment when they show a local one."""
        at, zone = nodes
        if zone.function != "literal" or zone.type != "string" or at.type not in ("timestamp", "timestamp_ntz"):
            raise Refusal(
                "AT TIME ZONE takes a timestamp and the name of a zone, as in at AT TIME ZONE 'Europe/Berlin'"
            )
        try:
            arrow = check_zone(zone.arguments[0])
        except ValueError as error:
            raise Refusal(str(error)) from None
        return ValueNode("cast", "timestamp_ntz" if at.type == "timestamp" else "timestamp", (at, "", arrow))

    def _trunc(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        unit = _BY_DATE.get(str(nodes[1].arguments[0]).lower()) if nodes[1].function == "literal" else None
        nodes = [self._read_text(nodes[0], "date")]
        if unit is None or nodes[0].type not in INSTANTS:
            hint = ": CAST(price AS BIGINT) cuts the fraction of a number off"
            raise Refusal(f"trunc takes a date and a unit, as in trunc(day, 'MM'){hint}")
        day = ValueNode("cast", "timestamp", (self._cast(nodes[0], "date"), "", "UTC"))
        return ValueNode("cast", "date", (ValueNode("date_trunc", "timestamp", (day, unit, "UTC")), "", "UTC"))

    def _try_to_timestamp(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        made = self._of_table("to_timestamp", nodes)
        return made._replace(function="to_timestamp")

    def _to_timestamp_ntz(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types ``to_timestamp_ntz`` with a format, which the clocks of no zone change."""
        made = self._of_table("to_timestamp", nodes)
        if nodes[1].function == "literal" and set(str(nodes[1].arguments[0])) & set("XxZVzO"):
            raise Refusal(
                "to_timestamp_ntz takes no format with a zone: write CAST(to_timestamp(...) AS TIMESTAMP_NTZ)"
            )
        return ValueNode("cast", "timestamp_ntz", (made._replace(arguments=(*made.arguments[:-1], "UTC")), "", "UTC"))

    def _unix_timestamp(self, name: str, nodes: list[ValueNode]) -> ValueNode:
        """Types ``unix_timestamp``, which reads texts in a format."""
        if nodes[0].type == "string":
            format = nodes[1] if len(nodes) == 2 else ValueNode("literal", "string", (DEFAULT_FORMAT,))
            nodes = [self._of_table("to_timestamp", [nodes[0], format])]
        elif nodes[0].type not in (*INSTANTS, "void"):
            raise Refusal(f"{name} takes a text, a date or a timestamp, not {nodes[0].type}")
        return ValueNode("unix_timestamp", "bigint", (self._cast(nodes[0], "timestamp"),))


def negative(node: ValueNode) -> ValueNode:
    """Returns the negative of a value, which wraps."""
    if node.function == "literal":
        return node._replace(arguments=(str(-int(node.arguments[0])),))
    return ValueNode("negate", node.type, (node,))
