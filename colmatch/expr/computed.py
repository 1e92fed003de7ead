"""Values computed from columns, as an expression writes them: ``price * qty``."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from colmatch.events.computed.nodes import INSTANTS
from colmatch.expr.intervals import Interval, show_interval
from colmatch.expr.spelling import quote_name
from colmatch.lowering.forms import Kind, quote_text

ARITHMETIC = {"+", "-", "*", "/", "%", "div", "&", "|", "^"}
SIGNS = {*ARITHMETIC, "=", "<>", "<", "<=", ">", ">=", "<=>"}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}  # signs of a comparison with its sides exchanged
BETWEEN = "micros_between"  # two moments, which only ``differences.py`` writes
XOR = "XOR"  # of conditions; the normal form is <>
WORDS = {
    "like": "LIKE",
    "rlike": "RLIKE",
    "and": "AND",
    "or": "OR",
    XOR: XOR,
}  # functions that are written between their values
_UNITED = ("timestampadd", "timestampdiff")  # they begin with a unit, which is a word
DEEPEST = 64  # levels of a computed value
FORALL = "forall"
AT_LEAST, FEWER_THAN = "at_least", "fewer_than"  # of a list, a condition and a number of elements that pass it
MAP_PARTS = {"map_keys": "key", "map_values": "value", "map_entries": "entry"}  # lists, and a name for an element
ADDRESS = "ip_key"  # of an address, a text in the order of addresses: a network is a range of such texts
PREFIX = "cm_"  # of functions, so that sqlglot does not change them
CAST = f"{PREFIX}cast_"  # followed by the number of the type
AT_ZONE = "at time zone"
TRIMS = {"ltrim of": "LEADING", "rtrim of": "TRAILING"}  # trim(LEADING 'x' FROM name)
SECONDS = "seconds from"  # extract(SECOND FROM at), which has a fraction
# Steps of a path into JSON, with a text before them. The parser knows calls of the first three only
JSON_VALUE, JSON_TEXT, JSON_FIELD, JSON_KEYS = "->", "->>", ":", "json_extract_path_text"
JSON_SIGNS = frozenset({JSON_VALUE, JSON_TEXT, JSON_FIELD})
CASE_OF = "case of"  # a CASE with a value to compare, which has no name in the language
CHOICES = frozenset({"coalesce", "if", "case"})  # they are conditions where their results are
PATTERN_FUNCTIONS = frozenset({"instr", "locate", "left", "substring"})  # some comparisons of these are text patterns
INT_MOST, BIGINT_MOST = 1 << 31, 1 << 63
_INTEGERS = {"L": "bigint", "S": "smallint", "Y": "tinyint"}
_WHOLE_SUFFIXES = "".join(_INTEGERS)
_SUFFIXES = {"tinyint": "Y", "smallint": "S", "bigint": "L", "float": "F", "double": "D"}


class ComputedValue(NamedTuple):
    """A function with its arguments.

    A column has the parts of its name for arguments. A literal has its type and text, and a cast a
    value and a type.
    """

    function: str
    arguments: tuple[Any, ...]

    @property
    def columns(self) -> Iterator[tuple[str, ...]]:
        """Yields the names of the columns that it reads, as written."""
        if self.function == "column":
            yield self.arguments
        elif self.function != "literal":
            for argument in self.arguments:
                if isinstance(argument, ComputedValue):
                    yield from argument.columns

    def sql(self, within: bool = False) -> str:
        """Writes the value as Spark SQL, with parentheses around an operator ``within`` another."""
        if self.function == "column":
            return ".".join(map(quote_name, self.arguments))
        if self.function == "literal":
            return _literal_sql(*self.arguments)
        if self == _TODAY:
            return "current_date()"
        if self.function in ("cast", "try_cast"):
            return f"{self.function.upper()}({self.arguments[0].sql()} AS {self.arguments[1].upper()})"
        if self.function in _FORMS:
            return _FORMS[self.function].format(*[argument.sql() for argument in self.arguments])
        if self.function in _FORMS_WITHIN:
            return _FORMS_WITHIN[self.function].format(*[argument.sql(True) for argument in self.arguments])
        if self.function == "in":
            text = _membership_sql("IN", *self.arguments)
            return f"({text})" if within else text
        if self.function in SIGNS or self.function in WORDS:
            sign = WORDS.get(self.function, self.function)
            text = f" {sign} ".join([argument.sql(True) for argument in self.arguments])
            return f"({text})" if within else text
        return self._call()

    def _call(self) -> str:
        """Writes a function call, or a function with special syntax, such as CASE."""
        if self.function == "interval" and len(self.arguments) == 2:
            return show_interval(Interval(*self.arguments))
        if self.function == "entry":
            column, key = self.arguments
            return f"{column.sql()}[{quote_text(key) if isinstance(key, str) else key}]"
        if self.function == "field":
            element, *fields = self.arguments
            return ".".join([element.sql(), *map(quote_name, fields)])
        if self.function in ("case", CASE_OF):
            return _case_sql(self.arguments[:1] if self.function == CASE_OF else (), self.arguments)
        if self.function == JSON_FIELD:
            path = self.arguments[1].arguments[1][1:]
            return f"{self.arguments[0].sql(True)}:{path[path[:1] == '.' :]}"
        texts = [argument.sql() for argument in self.arguments]
        if self.function in _UNITED and texts[0][:1] == "'":
            texts[0] = texts[0].strip("'")
        return f"{self.function}({', '.join(texts)})"


NULL = ComputedValue("null", ())
_TODAY = ComputedValue("cast", (ComputedValue("current_timestamp", ()), "date"))
_FORMS = {  # functions with a syntax of their own
    "null": "NULL", "negate": "-({})", "whole": "({})", SECONDS: "extract(SECOND FROM {})",
    AT_LEAST: "size(filter({}, {})) >= {}", FEWER_THAN: "size(filter({}, {})) < {}",
    **{name: f"trim({side} {{1}} FROM {{0}})" for name, side in TRIMS.items()},
}  # fmt: skip
_FORMS_WITHIN = {  # those with parentheses around operators
    "not": "(NOT {})", "isnull": "({} IS NULL)", "istrue": "({} IS TRUE)", "isfalse": "({} IS FALSE)",
    BETWEEN: "({} - {})", AT_ZONE: "{} AT TIME ZONE {}",
}  # fmt: skip


def _membership_sql(word: str, value: ComputedValue, *members: ComputedValue) -> str:
    return f"{value.sql(True)} {word} ({', '.join([member.sql() for member in members])})"


def _case_sql(of: tuple[ComputedValue, ...], arguments: tuple[ComputedValue, ...]) -> str:
    """Writes a CASE; ``of`` has the value to compare with each WHEN, if there is one."""
    texts = [argument.sql() for argument in arguments]
    words = ["CASE", *texts[: len(of)]]
    pairs, other = divmod(len(texts) - len(of), 2)
    for i in range(len(of), len(of) + 2 * pairs, 2):
        words += ["WHEN", texts[i], "THEN", texts[i + 1]]
    return " ".join([*words, *(["ELSE", texts[-1]] if other else []), "END"])


def _literal_sql(type: str, text: str) -> str:
    if type == "binary":
        return f"X'{text}'"
    if type == "string":
        return quote_text(text)
    if type in INSTANTS:
        return f"{type.upper()} {quote_text(text)}"
    if type == "boolean":
        return text.upper()
    if type.startswith("decimal"):
        return text if "." in text else text + "BD"
    if type in ("double", "float") and not text[-1].isdigit():
        return f"CAST({quote_text(text)} AS {type.upper()})"
    return text + _SUFFIXES.get(type, "")


def literal_of(kind: Kind, value: Any) -> ComputedValue:
    """Makes a literal of a value, which may be its text."""
    if kind in (Kind.INT, Kind.DECIMAL, Kind.DOUBLE):
        text = format(value, "f") if isinstance(value, Decimal) else str(value)
        return number(kind, text.rstrip(_WHOLE_SUFFIXES), text[-1]) if kind is Kind.INT else number(kind, text)
    if kind is Kind.BOOL:
        return ComputedValue("literal", ("boolean", str(value).lower()))
    return ComputedValue("literal", (kind.name.lower(), str(value)))  # a time as ISO 8601, with a space


def comparison(sign: str, left: ComputedValue, right: ComputedValue) -> tuple[ComputedValue, bool]:
    """Returns a comparison by = or < or <=>, and whether its negation is meant.

    All values have one order, so ``a >= b`` is the negation of ``a < b``.
    """
    if sign in (">", "<="):
        left, right = right, left
    plain = {"<>": "=", ">": "<", "<=": "<", ">=": "<"}.get(sign, sign)
    return ComputedValue(plain, (left, right)), sign in ("<>", "<=", ">=")


def write_negation(value: ComputedValue) -> str:
    """Writes the negation of a comparison as a comparison."""
    if value.function == "in":
        return _membership_sql("NOT IN", *value.arguments)
    left, right = value.arguments
    if value.function in ("=", "like"):
        sign = "<>" if value.function == "=" else "NOT LIKE"
        return f"{left.sql(True)} {sign} {right.sql(True)}"
    return f"{right.sql(True)} <= {left.sql(True)}"


def number(kind: Kind, text: str, suffix: str = "") -> ComputedValue:
    """Makes a literal of the type that Spark gives to a number."""
    if kind is Kind.DOUBLE:
        return ComputedValue("literal", ("float" if suffix == "F" else "double", repr(float(text))))
    if kind is Kind.INT:
        value = int(text)
        type = _INTEGERS.get(suffix, "int")
        if type == "int" and not -INT_MOST <= value < INT_MOST:
            type = "bigint"
        if -BIGINT_MOST <= value < BIGINT_MOST:
            return ComputedValue("literal", (type, str(value)))
    digits = text.lstrip("+-")
    whole, _, fraction = digits.partition(".")
    precision = max(len((whole + fraction).lstrip("0")), len(fraction), 1)
    sign = "-" if text.startswith("-") else ""
    plain = f"{whole or '0'}.{fraction}" if fraction else whole or "0"
    return ComputedValue("literal", (f"decimal({precision},{len(fraction)})", sign + plain))
