"""Refusal of conditions that no value within the bounds of a domain makes true.

The README of be-tree requires this. Events may have values beyond the bounds, but no expression may
need one: ``age > 200`` is an error if ``age`` goes from 0 to 150. After a NOT, a condition must be
false for some value. An event without the attribute also counts, if the domain allows that.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from colmatch.betree.domains import Domain
from colmatch.errors import show_value
from colmatch.expr.ast import Refusal

Number = int | float


def check_comparison(domain: Domain, sign: str, value: Number, at: int, odd: bool) -> None:
    """Refuses a comparison that needs a value out of bounds.

    at : place of the literal
    odd : an odd number of NOTs precedes the condition

    Raises Refusal: the comparison needs such a value.
    """
    low, high = _bounds(domain)
    inside, alone = low <= value <= high, low == high == value
    true, false = {
        "=": (inside, not alone),
        "<>": (not alone, inside),
        "<": (low < value, high >= value),
        "<=": (low <= value, high > value),
        ">": (high > value, low <= value),
        ">=": (high >= value, low < value),
    }[sign]
    _check(domain, f"{sign} {show_value(value)}", true, false, at, odd)


def check_member(domain: Domain, values: Collection[Number], negated: bool, at: int, odd: bool) -> None:
    """Refuses ``in`` or ``not in`` that needs a value out of bounds, as ``check_comparison``."""
    low, high = _bounds(domain)
    inside = sum(low <= value <= high for value in values)
    any_inside, other = inside > 0, inside < high - low + 1
    true, false = (other, any_inside) if negated else (any_inside, other)
    _check(domain, "not in this list" if negated else "in this list", true, false, at, odd)


def check_elements(domain: Domain, values: Collection[Number], word: str, at: int, odd: bool) -> None:
    """Refuses ``one of``, ``none of`` or ``all of`` that needs an element out of bounds."""
    low, high = _bounds(domain)
    inside = sum(low <= value <= high for value in values)
    true, false = {"one": (inside > 0, True), "none": (True, inside > 0), "all": (inside == len(values), True)}[word]
    _check(domain, f"{word} of this list", true, false, at, odd)


def _bounds(domain: Domain) -> tuple[Number, Number]:
    return (-math.inf if domain.low is None else domain.low, math.inf if domain.high is None else domain.high)


def _check(domain: Domain, said: str, true: bool, false: bool, at: int, odd: bool) -> None:
    if true if not odd else (false or domain.allow_undefined):
        return
    low, high = ("nothing" if bound is None else bound for bound in (domain.low, domain.high))
    raise Refusal(
        f"{domain.name!r} goes from {low} to {high}, and no such value is {'other than ' if odd else ''}{said}: correct "
        "the literal, or the bounds of the domain",
        at,
    )
