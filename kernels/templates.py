"""Computed values that differ in their constants alone, such as ``i % 7`` and ``i % 9``.

A *template* is such a value with its constants left open, as a program of few steps. A step runs
for many members at a time, each with its own constants: 5,000 remainders take 17 us an event. A
result outside the reach of all predicates is left out, since it makes none of them true or false.
"""

import math
from typing import NamedTuple

import numpy as np

from colmatch.kernels import layout
from colmatch.kernels._jit import device, kernel
from colmatch.kernels.arrow.values import float_key
from colmatch.kernels.bits import multiply_add
from colmatch.kernels.layout import I32, I64, U8, Table, Written
from colmatch.kernels.ranges import group_pairs

BLOCK = 256  # members that a step runs for at a time
# Operations of steps. Each of whole numbers wraps into the step's bits; a division by zero is NULL.
ADD, SUBTRACT, MULTIPLY, MODULO, DIVIDE, AND, OR, XOR, NEGATE, ABS, NARROW, TO_DOUBLE = range(12)
# Operations of doubles
ADD_REAL, SUBTRACT_REAL, MULTIPLY_REAL, DIVIDE_REAL, MODULO_REAL, NEGATE_REAL, ABS_REAL = range(12, 19)
SMALL = 1 << 52  # of whole numbers, whose quotients are computed as doubles
MOST_QUOTIENT = 2.0**53  # of doubles whose remainder is found by their quotient
LEAST_DIVISOR, MOST_DIVISOR = 2.0**-900, 2.0**900  # of these: no product is subnormal or infinite
FILL, ROW = 0, 1  # places of ``TemplateWork.state``


class Template(NamedTuple):
    """A template of P parts and K members, each with H constants.

    Registers 0 to P - 1 have the parts, the next H the constants, and each step writes one more.
    """

    step: layout.Table[I64]  # (steps, 4) operation, register of each operand, bits of the result
    constant: layout.Table[I64]  # (H, K) whole numbers, or bits of doubles
    number: I32  # (K) number of each member among those of all templates
    is_real: int  # whether the results are doubles


class TemplateWork(NamedTuple):
    """The arrays that ``compute_members`` writes. They belong to one thread."""

    whole: layout.Table[layout.I64]  # (registers, BLOCK)
    real: layout.Table[layout.F64]  # the same memory
    there: layout.U8  # (BLOCK) whether the value of each member is not NULL
    number: layout.I32  # (room) member of each result
    row: layout.I32  # (room)
    key: layout.I64  # (room)
    state: layout.I64  # (2) number of results; row to go on with


@kernel
def compute_members(
    template: Template,
    part: Table[I64],
    valid: U8,
    lowest: I64,
    highest: I64,
    work: Written[TemplateWork],
) -> bool:
    """Adds the results of all members that predicates can reach, row by row.

    Returns whether all had room; otherwise ``state[ROW]`` is the first row without.

    Parameters
    ----------
    part : (P, rows) int64, whole numbers or bits of doubles
    valid : (rows) uint8, whether no part is NULL
    lowest, highest : (K) int64, the keys that predicates can reach
    """
    step, constant, state = template.step, template.constant, work.state
    whole, real, there = work.whole, work.real, work.there
    parts, constants, members = len(part), len(constant), len(template.number)
    last = parts + constants + len(step) - 1
    fill = state[FILL]
    for r in range(state[ROW], len(valid)):
        if not valid[r]:
            continue
        if fill + members > len(work.number):
            state[FILL], state[ROW] = fill, r
            return False
        for begin in range(0, members, BLOCK):
            n = min(BLOCK, members - begin)
            # Fill the registers of parts and constants
            for k in range(n):
                there[k] = 1
            for p in range(parts):
                for k in range(n):
                    whole[p, k] = part[p, r]
            for h in range(constants):
                for k in range(n):
                    whole[parts + h, k] = constant[h, begin + k]
            # Run the steps
            for s in range(len(step)):
                operation, one, other, bits = step[s, 0], step[s, 1], step[s, 2], step[s, 3]
                to = parts + constants + s
                if operation < ADD_REAL:
                    run_whole(operation, whole[one], whole[other], n, whole[to], real[to], there)
                    if bits < 64:
                        wrap(whole[to], n, bits)
                else:
                    run_real(operation, real[one], real[other], n, real[to], there)
            # Keep the results that predicates can reach
            value = whole[last]
            if template.is_real:
                for k in range(n):
                    value[k] = float_key(value[k])
            low, high = lowest[begin:], highest[begin:]
            found = 0
            for k in range(n):  # looked at first, since most blocks have none
                found |= there[k] & (value[k] >= low[k]) & (value[k] <= high[k])
            if found == 0:
                continue
            for k in range(n):
                if there[k] and low[k] <= value[k] <= high[k]:
                    work.number[fill] = template.number[begin + k]
                    work.row[fill] = r
                    work.key[fill] = value[k]
                    fill += 1
    state[FILL], state[ROW] = fill, len(valid)
    return True


@device
def run_whole(operation, one, other, n, out, real, there):
    """Runs a step of whole numbers for ``n`` members."""
    if operation == ADD:
        for k in range(n):
            out[k] = one[k] + other[k]
    elif operation == SUBTRACT:
        for k in range(n):
            out[k] = one[k] - other[k]
    elif operation == MULTIPLY:
        for k in range(n):
            out[k] = one[k] * other[k]
    elif operation == MODULO or operation == DIVIDE:
        divide(operation == MODULO, one, other, n, out, there)
    elif operation == AND:
        for k in range(n):
            out[k] = one[k] & other[k]
    elif operation == OR:
        for k in range(n):
            out[k] = one[k] | other[k]
    elif operation == XOR:
        for k in range(n):
            out[k] = one[k] ^ other[k]
    elif operation == NEGATE:
        for k in range(n):
            out[k] = -one[k]
    elif operation == ABS:
        for k in range(n):
            out[k] = -one[k] if one[k] < 0 else one[k]
    elif operation == NARROW:
        for k in range(n):
            out[k] = one[k]
    else:
        for k in range(n):
            real[k] = np.float64(one[k])


@device
def divide(is_modulo, one, other, n, out, there):
    """Divides towards zero, or writes the remainder, which has the sign of the dividend."""
    # Small numbers as doubles have the exact quotient, cut off: one that is rounded up to a whole
    # number is, times the divisor, 2^53 or more. 5,000 remainders take 30 us instead of 54
    large = one[0] & 0
    for k in range(n):
        large |= abs(one[k]) | abs(other[k])  # below 0 for the least number
        there[k] &= other[k] != 0
    if 0 <= large < SMALL:
        for k in range(n):
            divisor = other[k] + (other[k] == 0)
            quotient = np.int64(np.true_divide(np.float64(one[k]), np.float64(divisor)))
            out[k] = one[k] - quotient * divisor if is_modulo else quotient
        return
    for k in range(n):
        value = one[k]
        divisor = other[k] + (other[k] == 0)
        sign = np.int64(1)
        if divisor == -1:  # the least number has no quotient
            divisor = np.int64(1)
            sign = np.int64(-1)
        quotient = value // divisor
        rest = value - quotient * divisor
        if rest != 0 and (rest < 0) != (value < 0):
            rest -= divisor
            quotient += 1
        out[k] = rest if is_modulo else sign * quotient


@device
def run_real(operation, one, other, n, out, there):
    """Runs a step of doubles for ``n`` members."""
    if operation == ADD_REAL:
        for k in range(n):
            out[k] = one[k] + other[k]
    elif operation == SUBTRACT_REAL:
        for k in range(n):
            out[k] = one[k] - other[k]
    elif operation == MULTIPLY_REAL:
        for k in range(n):
            out[k] = one[k] * other[k]
    elif operation == NEGATE_REAL:
        for k in range(n):
            out[k] = -one[k]
    elif operation == ABS_REAL:
        for k in range(n):
            out[k] = abs(one[k])
    elif operation == DIVIDE_REAL:
        for k in range(n):
            there[k] &= other[k] != 0
            out[k] = np.true_divide(one[k], other[k] + np.float64(other[k] == 0))
    else:
        find_rests(one, other, n, out, there)


@device
def find_rests(one, other, n, out, there):
    """Writes the remainders of doubles, which have the sign of the dividend."""
    # With a quotient below 2^53, quotient * divisor is too large by at most one divisor, and what
    # it leaves of the dividend is a double: 5,000 remainders take 9 us instead of 42. Where one is
    # larger, or a value is odd, C's function computes all of them
    is_plain = True
    for k in range(n):
        there[k] &= other[k] != 0
        value, divisor = one[k], abs(other[k]) + np.float64(other[k] == 0)
        quotient = np.trunc(np.true_divide(value, divisor))
        is_plain &= (abs(quotient) < MOST_QUOTIENT) & (divisor > LEAST_DIVISOR) & (divisor < MOST_DIVISOR)
        rest = multiply_add(-quotient, divisor, value)
        beyond = (rest != 0) & ((rest < 0) != (value < 0))
        out[k] = math.copysign(rest + np.float64(beyond) * math.copysign(divisor, value), value)
    if not is_plain:
        for k in range(n):
            out[k] = np.fmod(one[k], other[k] + np.float64(other[k] == 0))


@device
def wrap(value, n, bits):
    """Keeps the lower bits of whole numbers, the highest of which is the sign."""
    shift = np.int64(64 - bits)
    for k in range(n):
        value[k] = (value[k] << shift) >> shift


@kernel
def order_members(
    number: Written[I32],
    row: Written[I32],
    key: Written[I64],
    first: Written[I64],
    out_row: Written[I32],
    out_key: Written[I64],
) -> None:
    """Orders results by member; their rows ascend for each member, as they do before.

    Parameters
    ----------
    number, row, key : int32, int32, int64, of each result
    first : (members + 1) int64, written, member -> its results
    out_row, out_key : int32, int64, written
    """
    group_pairs(number, row, key, first, out_row, out_key)
