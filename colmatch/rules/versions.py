"""Comparisons of versions in rules, in the order of Semantic Versioning."""

from __future__ import annotations

import re

import pyarrow as pa

from colmatch.errors import show_value
from colmatch.expr.build_computed import make_comparison
from colmatch.expr.computed import FLIPPED
from colmatch.rules.javascript import SIGNS
from colmatch.rules.joined import Condition, all_of, constant, negate
from colmatch.rules.refusal import Unusable
from colmatch.rules.values import (
    ANY,
    NOTHING,
    NULL,
    NUMBER,
    STRING,
    YES,
    Leaf,
    Literal,
    Value,
    Variable,
    cast,
    change,
    computed,
    decide,
    literal,
    of_column,
    of_condition,
    pair_leaves,
)
from colmatch.text.versions import version_key

_SIGNS = ("=", "!=", "<", "<=", ">", ">=", "^", "~")


def compare_versions_of_rule(values: list[Value], place: str) -> Value:
    """Makes a comparison of versions, which is null if one of them is none."""
    sign = values[1].only
    if not isinstance(sign, Literal) or sign.value not in _SIGNS:
        raise Unusable(f"{place}[1]", f"the sign of a comparison is one of {' '.join(_SIGNS)}")
    left, right = (change(value, lambda leaf: _version(leaf, place), place) for value in (values[0], values[2]))
    return pair_leaves(lambda one, other: _compare_versions(sign.value, one, other, place), place, left, right)


def _version(leaf: Leaf, place: str) -> Value:
    if isinstance(leaf, Literal):
        return literal(
            str(leaf.value) if leaf.kind in (STRING, NUMBER) and version_key(str(leaf.value)) is not None else None
        )
    if leaf.kind not in (STRING, NUMBER, ANY):
        return NOTHING
    if leaf.kind == NUMBER and (leaf.type is None or not pa.types.is_integer(leaf.type)):
        raise Unusable(place, "a version is a text: as a number with a fraction, 1.10 is 1.1")
    handle = computed("semver", leaf.handle if leaf.kind != NUMBER else cast(leaf.handle, "string"))
    return of_column(STRING, handle, pa.string())


def _compare_versions(sign: str, left: Leaf, right: Leaf, place: str) -> Value:
    if NULL in (left.kind, right.kind):
        return NOTHING
    if sign in "^~":
        if not isinstance(right, Literal):
            raise Unusable(place, f"{sign} needs a version that no event changes behind it")
        numbers = [int(one) for one in re.findall(r"\d+", re.split("[-+]", right.value)[0])]
        same = [*numbers, 0][: 1 if sign == "^" else 2]
        after = [*same[:-1], same[-1] + 1]
        ends = [".".join(map(str, [*end, 0, 0][:3])) + "-0" for end in (same, after)]  # -0 is the first prerelease
        return of_condition(all_of([_order_versions(">=", left, ends[0]), _order_versions("<", left, ends[1])], place))
    if isinstance(right, Literal):
        made = _order_versions("=" if sign == "!=" else sign, left, right.value)
    elif isinstance(left, Literal):
        made = _order_versions(FLIPPED.get(sign, "="), right, left.value)
    else:
        made = Condition(make_comparison("=" if sign == "!=" else sign, left.handle, right.handle))
    return of_condition(negate(made) if sign == "!=" else made)


def compare_versions(sign: str, left: Leaf, right: Leaf, place: str) -> Condition:
    """Makes a comparison of versions; false for what is no version."""
    if isinstance(right, Literal) and _version(right, place) == NOTHING:
        raise Unusable(place, f"{show_value(right.value)} is no version: write it as in 1.2.0")
    made = pair_leaves(
        lambda one, other: _compare_versions(sign, one, other, place),
        place,
        _version(left, place),
        _version(right, place),
    )
    return decide(made, lambda leaf: constant(leaf == YES.last), place)


def _order_versions(sign: str, left: Leaf, right: str) -> Condition:
    if isinstance(left, Variable):
        return Condition(make_comparison(sign, left.handle, computed("semver", right)))
    one, other = version_key(left.value) or "", version_key(right) or ""
    return constant(SIGNS["==" if sign == "=" else sign](one, other))
