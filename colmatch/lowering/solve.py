"""Tests of computed values, solved for the only column that the value has.

``amount + 3 > 5`` asks for amounts from 3 on, except those so large that the sum wraps. So 5,000
expressions with a constant each need one column instead of 5,000 computed values. A value is a
chain of *steps* from the column: a function of one key each, with a constant. An interval of the
value is followed backwards, step by step, to intervals of the column.

Whole numbers and decimals are solved in Python's integers. A step on doubles rounds, but never
exchanges the order of two values. So its intervals are found by bisection, with the same function
that would compute the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from colmatch.arrays.pieces import concat
from colmatch.given.schema import Attributes
from colmatch.kernels.layout import I64, KEY_MAX, KEY_MIN
from colmatch.lowering.keys import HIGHEST, LOWEST, NAN, float_keys

MOST_SCALE = 32  # of all steps together on whole numbers that wrap: a product with c has |c| intervals for one

_Function = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
DOUBLES: dict[str, _Function] = {
    "add": lambda x, c: x + c,
    "subtract": lambda x, c: c - x,
    "multiply": lambda x, c: x * c,
    "divide": lambda x, c: x / c,
}
_FALLING = ("subtract",)  # the value falls where the column rises
_SIGNED = ("multiply", "divide")  # it falls if the constant is negative
_KEY_BITS, _FAR = 64, 1 << 80  # more than any sum or product of numbers of 64 bits and small factors


class Step(NamedTuple):
    """A function of one key.

    function : "linear", ``scale * x + constant`` of whole numbers; "abs" of whole numbers;
        "distance", the absolute value of a double; "double" of a whole number; or one of
        ``DOUBLES``, with ``constant`` as the other number
    bits : size of whole numbers, which wrap; 0 for all others
    """

    function: str
    bits: int = 0
    scale: int = 1
    constant: int | float = 0

    @property
    def form(self) -> tuple[Any, ...]:
        """Returns what steps must have in common to be solved together."""
        falls = self.function in _FALLING or (self.function in _SIGNED and self.constant < 0)
        return self.function, self.bits, falls


class _Pieces(NamedTuple):
    """Intervals of keys, and for each the interval of the value from which it comes."""

    source: I64
    low: I64
    high: I64


def solve(attributes: Attributes, leaf_attr: I64, leaf: I64, low: I64, high: I64) -> tuple[I64, I64, I64]:
    """Replaces tests of solved values by tests of their columns.

    leaf_attr : attribute of each leaf; ids below 0 are replaced
    leaf, low, high : of every interval

    Returns leaf, low and high of every interval then.
    """
    about = leaf_attr < 0
    if not about.any():
        return leaf, low, high
    which = leaf_attr[leaf]
    rows = np.flatnonzero(which < 0)
    used, member = np.unique(~which[rows], return_inverse=True)
    chains = [attributes.solved[i].steps for i in used.tolist()]
    # Solve values of one form together
    forms: dict[tuple[Any, ...], list[int]] = {}
    for i, steps in enumerate(chains):
        forms.setdefault(tuple([step.form for step in steps]), []).append(i)
    form_of = np.empty(len(chains), np.int64)
    for number, alike in enumerate(forms.values()):
        form_of[alike] = number
    others = np.flatnonzero(which >= 0)
    parts = [(leaf[others], low[others], high[others])]
    for number, alike in enumerate(forms.values()):
        of_form = rows[form_of[member] == number]
        place = np.searchsorted(used[alike], ~which[of_form])
        found = _Pieces(of_form, low[of_form], high[of_form])
        for k in reversed(range(len(chains[alike[0]]))):
            steps = [chains[i][k] for i in alike]
            before = _precede(steps, place, found.low, found.high)
            place, found = place[before.source], before._replace(source=found.source[before.source])
        parts.append((leaf[found.source], found.low, found.high))
    used, number_of = np.unique(~leaf_attr[about], return_inverse=True)
    leaf_attr[about] = np.array([attributes.solved[i].column for i in used.tolist()], np.int64)[number_of]
    leaf, low, high = (concat(column) for column in zip(*parts, strict=True))
    return leaf, low, high


def _precede(steps: list[Step], place: I64, low: I64, high: I64) -> _Pieces:
    """Returns the intervals whose keys a step turns into keys of the given ones.

    steps : of one form
    place : of each interval, its step
    """
    function, bits = steps[0].function, steps[0].bits
    if function in ("linear", "abs"):
        scale, constant = (np.array([step[k] for step in steps], object)[place] for k in (2, 3))
        ends = low.astype(object), high.astype(object)
        pieces = list(_of_linear(bits, scale, constant, *ends) if function == "linear" else _of_abs(bits, *ends))
    elif function == "distance":
        least = np.maximum(low, 0)
        pieces = [(least, high), (~high, ~least)]
    else:
        constants = np.array([step.constant for step in steps], np.float64)[place]
        pieces = [_bisect(steps[0], constants, low, high)]
        if function != "double":  # NaN stays NaN
            has_nan = (low <= NAN) & (high >= NAN)
            pieces.append((np.full(len(low), HIGHEST + 1), np.where(has_nan, KEY_MAX, KEY_MIN)))
    kept = [np.flatnonzero(first <= last) for first, last in pieces]
    low, high = (
        concat([piece[k][at] for piece, at in zip(pieces, kept, strict=True)]).astype(np.int64) for k in (0, 1)
    )
    if function not in ("linear", "abs", "double"):
        low = np.where(low <= LOWEST, KEY_MIN, low)  # no double is below
    return _Pieces(concat(kept), low, high)


def _ends(bits: int) -> tuple[int, int]:
    """Returns the least and the greatest whole number; without bits, those of a key."""
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if bits else (KEY_MIN, KEY_MAX)


def _of_linear(bits: int, scale: Any, constant: Any, low: Any, high: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the intervals of a column whose values are linear, in columns of Python's integers."""
    least, most = _ends(bits)

    def before(low: Any, high: Any) -> tuple[Any, Any]:
        begin, end = np.where(scale > 0, low, high) - constant, np.where(scale > 0, high, low) - constant
        return -(-begin // scale), end // scale

    ends = scale * least + constant, scale * most + constant
    first, last = ((end - least) >> bits if bits else end * 0 for end in (np.minimum(*ends), np.maximum(*ends)))
    for turn in range(min(first, default=0), max(last, default=-1) + 1):  # how often the value has wrapped
        shift = turn << bits
        begin, end = before(np.maximum(low, least) + shift, np.minimum(high, most) + shift)
        yield np.maximum(begin, least), np.minimum(end, most)
    yield from _beyond(bits, *before(*_without_ends(low, high)))


def _of_abs(bits: int, low: Any, high: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the intervals of a column whose absolute values are in the given ones."""
    least, most = _ends(bits)
    begin, end = np.maximum(low, 0), np.minimum(high, most)
    yield begin, end
    yield -end, np.minimum(-begin, -1)  # 0 is in the first
    if bits:  # the absolute value of the least number is itself
        has_least = (low <= least) & (high >= least)
        yield np.where(has_least, least, 0), np.where(has_least, least, -1)
    low, high = _without_ends(low, high)
    yield from _beyond(bits, low, high)[1:]
    yield from _beyond(bits, -high, -low)[:1]


def _without_ends(low: Any, high: Any) -> tuple[Any, Any]:
    """Returns intervals that go on beyond the keys where they have no end."""
    return np.where(low == KEY_MIN, -_FAR, low), np.where(high == KEY_MAX, _FAR, high)


def _beyond(bits: int, low: Any, high: Any) -> list[tuple[Any, Any]]:
    """Returns the parts of intervals below and above all numbers of their type, if keys are wider.

    Only events with columns of a wider type have such numbers. They are computed with as they are.
    """
    if bits in (0, _KEY_BITS):
        return []
    least, most = _ends(bits)
    below = np.maximum(low, KEY_MIN), np.minimum(high, least - 1)
    return [below, (np.maximum(low, most + 1), np.minimum(high, KEY_MAX))]


def _bisect(step: Step, constant: NDArray[np.float64], low: I64, high: I64) -> tuple[I64, I64]:
    """Returns the interval of a column whose values, as doubles, are in an interval."""
    function, _, falls = step.form
    least, most = (KEY_MIN, KEY_MAX) if function == "double" else (LOWEST, HIGHEST)

    def rank(keys: I64) -> I64:
        """Returns keys of the value, or their complements: they never fall where ``keys`` rise."""
        with np.errstate(all="ignore"):
            values = keys.astype(np.float64) if function == "double" else DOUBLES[function](_values(keys), constant)
        return ~float_keys(values) if falls else float_keys(values)

    if falls:
        low, high = ~high, ~low
    begin, is_met = _first(lambda keys: rank(keys) >= low, len(low), least, most)
    after, is_left = _first(lambda keys: rank(keys) > high, len(low), least, most)
    is_some = is_met & ~(is_left & (after == least))
    last = np.where(is_left, np.maximum(after, least + 1) - 1, most)
    return np.where(is_some, begin, 0), np.where(is_some, last, -1)


def _values(keys: I64) -> NDArray[np.float64]:
    return np.where(keys >= 0, keys, keys ^ np.int64(KEY_MAX)).view(np.float64)


def _first(
    test: Callable[[I64], NDArray[np.bool_]], count: int, least: int, most: int
) -> tuple[I64, NDArray[np.bool_]]:
    """Returns, for each of ``count`` rows, the first key that passes a test, and whether any does.

    All keys behind a passing one must pass, too.
    """
    low, high = np.full(count, least, np.int64), np.full(count, most, np.int64)
    while np.any(low < high):
        middle = (low & high) + ((low ^ high) >> 1)
        passes = test(middle)
        high = np.where(passes, middle, high)
        low = np.where(passes | (low >= high), low, middle + 1)
    return low, test(low)
