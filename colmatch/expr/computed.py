"""Values computed from columns, as an expression writes them: ``price * qty``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from colmatch.expr.functions import SYNONYMS_OF_TABLE, TABLE
from colmatch.expr.spelling import quote_name
from colmatch.lowering.forms import Kind, quote_text

ARITHMETIC = {"+", "-", "*", "/", "%", "div", "&", "|", "^"}
SIGNS = {*ARITHMETIC, "=", "<>", "<", "<=", ">", ">=", "<=>"}
WORDS = {"like": "LIKE", "rlike": "RLIKE", "and": "AND", "or": "OR"}  # functions that are written between their values
TRUTHS = {"isnull": "NULL", "istrue": "TRUE", "isfalse": "FALSE"}  # functions that are written with IS
DEEPEST = 64  # levels of a computed value
MOST_PARTS = 1000  # operators of a computed value in a text, and arguments of each function
ADDRESS = "ip_key"  # of an address, a text in the order of addresses: a network is a range of such texts
PREFIX = "cm_"  # of functions, so that sqlglot does not change them
CAST = f"{PREFIX}cast_"  # followed by the number of the type
PARTS = {
    "year": "date", "quarter": "date", "month": "date", "day": "date", "dayofmonth": "date", "dayofyear": "date",
    "dayofweek": "date", "weekday": "date", "week": "date", "weekofyear": "date", "hour": "time", "minute": "time", "second": "time",
}  # fmt: skip
SYNONYMS = {
    "ucase": "upper", "lcase": "lower", "char_length": "length", "character_length": "length", "len": "length",
    "substr": "substring", "dayofmonth": "day", "mod": "%", "nvl": "coalesce", "ifnull": "coalesce", "weekofyear": "week",
    "ceiling": "ceil", "iff": "if", "strpos": "instr", "charindex": "locate", "date_diff": "datediff", "dateadd": "date_add",
    "signum": "sign", "map_contains": "map_contains_key", "dow": "dayofweek", **SYNONYMS_OF_TABLE,
}  # fmt: skip
CHOICES = frozenset({"coalesce", "if", "case"})  # they are conditions where their results are
FUNCTIONS = frozenset(
    {*PARTS, *SYNONYMS, "abs", "lower", "upper", "trim", "ltrim", "rtrim", "length", "coalesce", "concat", "substring"}
    | {"date_trunc", "cidr_contains", "floor", "ceil", "round", "sign", "sqrt", "isnan", "nanvl", "greatest", "least"}
    | {"if", "case", "case_of", "decode", "nvl2", "nullif", "left", "right", "replace", "reverse", "instr", "locate"}
    | {"date_add", "date_sub", "datediff", "element_at", "map_contains_key", "pmod", "concat_ws"}
    | TABLE.keys()
)
PATTERN_FUNCTIONS = frozenset({"instr", "locate", "left", "substring"})  # some comparisons of these are text patterns
INT_MOST, BIGINT_MOST = 1 << 31, 1 << 63
_INTEGERS = {"L": "bigint", "S": "smallint", "Y": "tinyint"}
_SUFFIXES = {"bigint": "L", "float": "F", "double": "D"}


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
        if self.function in ("cast", "try_cast"):
            return f"{self.function.upper()}({self.arguments[0].sql()} AS {self.arguments[1].upper()})"
        if self.function == "negate":
            return f"-({self.arguments[0].sql()})"
        if self.function in SIGNS or self.function in WORDS:
            sign = WORDS.get(self.function, self.function)
            text = f" {sign} ".join([argument.sql(True) for argument in self.arguments])
            return f"({text})" if within else text
        return self._call()

    def _call(self) -> str:
        """Writes a function call, or a function with special syntax, such as CASE."""
        if self.function == "null":
            return "NULL"
        if self.function == "not":
            return f"(NOT {self.arguments[0].sql(True)})"
        if self.function in TRUTHS:
            return f"({self.arguments[0].sql(True)} IS {TRUTHS[self.function]})"
        if self.function == "entry":
            column, key = self.arguments
            return f"{column.sql()}[{quote_text(key) if isinstance(key, str) else key}]"
        if self.function in ("case", "case_of"):
            return _case_sql(self.arguments[:1] if self.function == "case_of" else (), self.arguments)
        return f"{self.function}({', '.join(argument.sql() for argument in self.arguments)})"


def _case_sql(of: tuple[ComputedValue, ...], arguments: tuple[ComputedValue, ...]) -> str:
    """Writes a CASE; ``of`` has the value to compare with each WHEN, if there is one."""
    texts = [argument.sql() for argument in arguments]
    words = ["CASE", *texts[: len(of)]]
    pairs, other = divmod(len(texts) - len(of), 2)
    for i in range(len(of), len(of) + 2 * pairs, 2):
        words += ["WHEN", texts[i], "THEN", texts[i + 1]]
    return " ".join([*words, *(["ELSE", texts[-1]] if other else []), "END"])


def _literal_sql(type: str, text: str) -> str:
    if type == "string":
        return quote_text(text)
    if type in ("date", "timestamp", "timestamp_ntz"):
        return f"{type.upper()} {quote_text(text)}"
    if type == "boolean":
        return text.upper()
    if type.startswith("decimal"):
        return text if "." in text else text + "BD"
    if type in ("double", "float") and not text[-1].isdigit():
        return f"CAST({quote_text(text)} AS {type.upper()})"
    return text + _SUFFIXES.get(type, "")


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
    left, right = value.arguments
    if value.function == "=":
        return f"{left.sql(True)} <> {right.sql(True)}"
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
