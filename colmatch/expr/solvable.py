"""Computed values that are solved for their column, and the steps of the solution.

These are chains of sums, products, differences, casts and the like, each of one value and a
constant, down to a column. ``lowering/solve.py`` solves them.
"""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa

from colmatch.events.computed.derived import constant
from colmatch.events.computed.nodes import BITS, INTEGERS, LEAVES, ValueNode, digits, is_constant, is_decimal
from colmatch.lowering.keys import NEVER_ROUNDS
from colmatch.lowering.solve import MOST_SCALE, Step

_DAYS = 32  # bits


def steps_of(node: ValueNode) -> tuple[tuple[str, ...], tuple[Step, ...]] | None:
    """Returns the path of a value's only column, and the steps from the column to the value.

    The value's keys must be numbers. Then so are those of all values before it, since decimals only
    get more digits.

    The result is None if the value is not solved.
    """
    steps: list[Step] = []
    while node.function != "column":
        found = None if node.function in LEAVES else _step(node)
        if found is None:
            return None
        step, node = found
        if step is not None:
            steps.append(step)
    wrapping = math.prod(abs(step.scale) for step in steps if step.bits)
    return None if wrapping > MOST_SCALE else (node.arguments, tuple(reversed(steps)))


def _step(node: ValueNode) -> tuple[Step | None, ValueNode] | None:
    """Returns the last step of a value, and the value before it; no step if both have one key."""
    name, parts = node.function.removesuffix("_checked"), node.arguments
    if name == "cast":
        return _cast(node.type, parts[0])
    if name in ("negate", "abs"):
        return _of_one(name, node.type, parts[0])
    if len(parts) != 2 or node.constants:
        return None
    fixed = [is_constant(part) for part in parts]
    if fixed[0] == fixed[1]:
        return None
    other = constant(parts[fixed[1]])
    if not other.is_valid:
        return None
    before = parts[fixed[0]]
    step = _of_two(name, node.type, other, before, is_first=fixed[0])
    return None if step is None else (step, before)


def _cast(type: str, before: ValueNode) -> tuple[Step | None, ValueNode] | None:
    have = before.type
    if have in INTEGERS:
        if type in INTEGERS:
            return (None, before) if INTEGERS.index(type) >= INTEGERS.index(have) else None
        if type == "double":
            return Step("double"), before
    if (have, type) == ("float", "double"):
        return None, before
    if not is_decimal(type) or not (have in INTEGERS or is_decimal(have)):
        return None
    (precision, scale), (whole, fraction) = digits(type), _digits(have)
    fits = scale >= fraction and precision - scale >= whole
    return (Step("linear", scale=10 ** (scale - fraction)), before) if fits else None


def _digits(type: str) -> tuple[int, int]:
    """Returns the most digits before and behind the point."""
    if type in INTEGERS:
        return len(str(1 << (BITS[type] - 1))), 0
    precision, scale = digits(type)
    return precision - scale, scale


def _of_one(name: str, type: str, before: ValueNode) -> tuple[Step, ValueNode] | None:
    if type in INTEGERS or is_decimal(type):
        bits = BITS.get(type, 0)
        return (Step("abs", bits) if name == "abs" else Step("linear", bits, -1)), before
    if type != "double":
        return None
    return (Step("distance") if name == "abs" else Step("subtract", constant=0.0)), before


def _of_two(name: str, type: str, other: pa.Scalar, before: ValueNode, is_first: bool) -> Step | None:
    """Returns the step of a function of a value and a constant, None if it has none.

    other, before : the constant and the value
    is_first : whether the constant is the first argument
    """
    if name == "date_add":
        return Step("linear", _DAYS, 1, _days(other))
    if name == "datediff":
        return Step("linear", _DAYS, -1, _days(other)) if is_first else Step("linear", _DAYS, 1, -_days(other))
    if type == "double":
        return _of_doubles(name, other.as_py(), is_first)
    if is_decimal(type):
        return _of_decimals(name, digits(type)[1], other.as_py(), digits(before.type)[1], is_first)
    bits, number = BITS.get(type, 0), other.as_py()
    if not bits:
        return None
    if name == "multiply":
        return Step("linear", bits, number) if number else None
    if name == "add":
        return Step("linear", bits, 1, number)
    if name == "subtract":
        return Step("linear", bits, -1, number) if is_first else Step("linear", bits, 1, -number)
    return None


def _days(value: pa.Scalar) -> int:
    """Returns a number of days, or a date as days since 1970."""
    days: int = value.cast(pa.int32()).as_py()
    return days


def _of_doubles(name: str, other: float, is_first: bool) -> Step | None:
    if not math.isfinite(other) or (name in ("multiply", "divide") and other == 0):
        return None
    if name == "subtract":
        return Step("subtract", constant=other) if is_first else Step("add", constant=-other)
    if name in ("add", "multiply") or (name == "divide" and not is_first):
        return Step(name, constant=other)
    return None


def _of_decimals(name: str, places: int, other: Decimal, before: int, is_first: bool) -> Step | None:
    """Returns the step of decimals, whose keys are unscaled numbers.

    places, before : digits behind the point of the result and of the value before
    """
    if name == "multiply":
        factor = _unscaled(other, places - before)
        return Step("linear", scale=factor) if factor else None
    if name not in ("add", "subtract"):
        return None
    scale, number = 10 ** (places - before), _unscaled(other, places)
    if name == "add":
        return Step("linear", scale=scale, constant=number)
    return Step("linear", scale=-scale, constant=number) if is_first else Step("linear", scale=scale, constant=-number)


def _unscaled(value: Decimal, places: int) -> int:
    return int(value.scaleb(places, NEVER_ROUNDS))
