"""JavaScript's rules for values of two types, between literals and columns."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from colmatch.expr.ast import Expr
from colmatch.expr.build_computed import make_comparison
from colmatch.expr.computed import FLIPPED
from colmatch.rules.joined import FALSE, Condition, any_of, constant
from colmatch.rules.refusal import Unusable
from colmatch.rules.values import (
    ANY,
    ARRAY,
    BOOLEAN,
    MOMENT,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Leaf,
    Literal,
    Value,
    Variable,
    cast,
    change,
    computed,
    decide,
    literal,
    size_of,
)

SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "===": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CONTAINERS = {ARRAY, OBJECT}


def number_of_text(text: str) -> int | float:
    """Returns a text as JavaScript's Number does; NaN if it is none."""
    text = text.strip()
    if not text:
        return 0
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII) and len(text) < 300:
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if re.fullmatch(r"[+-]?Infinity", text):
        return float(text)
    if re.fullmatch(r"0[xX][\da-fA-F]{1,200}", text):
        return int(text, 16)
    return math.nan


def text_of(value: Any) -> str:
    """Returns a null, Boolean, number or text as JavaScript writes it."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def truth(value: Value, place: str) -> Condition:
    """Makes the condition that a value counts as true."""

    def is_true(leaf: Leaf) -> Condition:
        if isinstance(leaf, Literal):
            return constant((leaf.kind == ARRAY and leaf.value is None) or bool(leaf.value))
        if leaf.kind == NUMBER:
            return Condition(leaf.handle != 0)
        if leaf.kind == STRING:
            return Condition(leaf.handle != "")
        if leaf.kind == ARRAY or (leaf.kind == OBJECT and leaf.type is not None and pa.types.is_map(leaf.type)):
            return Condition(size_of(leaf.handle) > 0)
        return Condition(leaf.handle.node() if leaf.kind == ANY else leaf.handle.is_not_null())

    return decide(value, is_true, place)


def number(value: Value, place: str) -> Value:
    """Returns a value as a number."""
    return change(value, lambda leaf: _number(leaf, place), place)


def _number(leaf: Leaf, place: str) -> Value:
    if isinstance(leaf, Literal):
        if leaf.kind in (NULL, BOOLEAN):
            return literal(int(leaf.value or 0))
        if leaf.kind == STRING:
            return literal(number_of_text(leaf.value))
        if leaf.kind == NUMBER:
            return literal(leaf.value)
    elif leaf.kind in (NUMBER, ANY):
        return Value((), leaf)
    elif leaf.kind == STRING:  # of an empty text, or of spaces, it is 0
        made = Variable(NUMBER, cast(leaf.handle, "double", "try_cast"), pa.float64())
        return Value(((Condition(computed("trim", leaf.handle) == ""), Literal(NUMBER, 0)),), made)
    raise Unusable(place, f"a number is needed, not {_article(leaf.kind)}")


def text(value: Value, place: str) -> Value:
    """Returns a value as a text."""
    return change(value, lambda leaf: _text(leaf, place), place)


def _text(leaf: Leaf, place: str) -> Value:
    if isinstance(leaf, Literal) and leaf.kind in (NULL, BOOLEAN, NUMBER, STRING):
        return literal(text_of(leaf.value))
    if isinstance(leaf, Variable) and leaf.kind in (STRING, ANY):
        return Value((), leaf)
    if isinstance(leaf, Variable) and leaf.kind == NUMBER:
        if leaf.type is not None and pa.types.is_integer(leaf.type):
            return Value((), Variable(STRING, cast(leaf.handle, "string"), pa.string()))
        raise Unusable(place, "a number with a fraction has no text here: use a column of whole numbers or of texts")
    raise Unusable(place, f"a text is needed, not {_article(leaf.kind)}")


def compare(sign: str, left: Value, right: Value, place: str) -> Condition:
    """Makes a comparison: ``==`` converts types, ``===`` does not, and an order makes numbers."""

    def against(one: Leaf) -> Condition:
        return decide(right, lambda other: compare_leaves(sign, one, other, place), place)

    return decide(left, against, place)


def compare_leaves(sign: str, left: Leaf, right: Leaf, place: str) -> Condition:
    """Makes the comparison of two leaves."""
    kinds = [left.kind, right.kind]
    if NULL in kinds and sign in ("==", "==="):
        return constant(kinds == [NULL, NULL])
    if NULL in kinds and MOMENT in kinds:
        return FALSE
    if ANY in kinds and NULL not in kinds:
        kinds = [kind for kind in kinds if kind != ANY] * 2 or [NUMBER, NUMBER]
    if MOMENT in kinds and STRING in kinds:
        return _operate(sign, *(_moment(leaf) for leaf in (left, right)))
    if kinds[0] != kinds[-1] and sign == "===":
        return FALSE
    if _CONTAINERS & set(kinds):
        raise Unusable(place, "a list or an object cannot be compared: compare its elements or fields")
    if kinds[0] == kinds[-1] and kinds[0] != NULL:
        return _operate(sign, left, right)
    return _numbers(sign, left, right, place)


def _moment(leaf: Leaf) -> Leaf:
    if leaf.kind == MOMENT:
        return leaf
    return Variable(MOMENT, computed("to_timestamp", leaf.handle if isinstance(leaf, Variable) else leaf.value))


def _numbers(sign: str, left: Leaf, right: Leaf, place: str) -> Condition:
    sides = [_number(leaf, place) for leaf in (left, right)]
    return decide(sides[0], lambda one: decide(sides[1], lambda other: _operate(sign, one, other), place), place)


def _operate(sign: str, left: Leaf, right: Leaf) -> Condition:
    """Compares two leaves of one kind."""
    if isinstance(left, Literal):
        if isinstance(right, Literal):
            return constant(bool(SIGNS[sign](left.value, right.value)))
        return _operate(FLIPPED.get(sign, sign), right, left)
    if isinstance(right, Variable):
        word = "=" if sign in ("==", "===") else sign
        return Condition(make_comparison(word, left.handle, right.handle))
    if isinstance(right.value, float) and math.isnan(right.value):
        return FALSE
    made: Expr = SIGNS[sign](left.handle, right.value)
    return Condition(made)


def is_among(value: Value, members: list[Value], place: str) -> Condition:
    """Makes the condition that a value is one of a list, without converting types."""
    plain = [member.only.value for member in members if isinstance(member.only, Literal)]
    others = [member for member in members if not isinstance(member.only, Literal)]

    def within(leaf: Leaf) -> Condition:
        of_kind = [one for one in plain if _is_kind(one, leaf.kind)]
        if isinstance(leaf, Literal):
            return constant(leaf.kind not in _CONTAINERS and leaf.value in of_kind)
        return Condition(leaf.handle.isin(of_kind)) if of_kind else FALSE

    found = [decide(value, within, place)] + [compare("===", value, member, place) for member in others]
    return any_of(found, place)


def _is_kind(value: Any, kind: str) -> bool:
    own = literal(value).last.kind
    return own == kind or (kind == ANY and own not in (NULL, ARRAY, OBJECT))


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'ao' else 'a'} {kind}" if kind != ANY else "this"
