"""Values of an Arrow array to keys: a loop for each physical form.

Keys are those of ``colmatch/keys.py``, which does the same for literals.
"""

from colmatch.kernels._jit import device
from colmatch.kernels.arrow import (
    AFTER,
    BITS,
    DIVIDED,
    F16,
    F32,
    F64,
    FACTOR,
    FIXED,
    FLIPPED,
    FLOATED,
    FORM,
    I32,
    I64,
    NOTHING,
    SCALED,
    TEXTS,
    U64,
    UTF32,
    UTF64,
    WIDE,
    WIDTH,
    bit,
    buffer,
    integer,
)
from colmatch.kernels.layout import KEY_MAX
from colmatch.kernels.memory import KEY_MIN, float_bits, load_f32, load_i32, load_i64, load_prefix, load_u16
from colmatch.kernels.text import label, number

EXPONENT = 0x7FF0000000000000
NAN = 0x7FF8000000000000


@device
def float_key(bits):
    """Bits of a float64 as a number with the order of floats: one NaN above all, one zero."""
    size = bits & KEY_MAX
    if size > EXPONENT:
        return NAN
    if size == 0:
        return 0
    return bits if bits >= 0 else bits ^ KEY_MAX


@device
def half_bits(half):
    """Bits of the float64 that equals a float16, from its bits."""
    exponent = half >> 10 & 31
    fraction = half & 1023
    if exponent == 31:
        bits = EXPONENT | fraction << 42
    elif exponent == 0:
        bits = float_bits(fraction * 2.0**-24)
    else:
        bits = exponent + 1008 << 52 | fraction << 42
    return bits ^ KEY_MIN if half >> 15 else bits


@device
def dense_number_keys(leaf, array, base, out):
    """Keys of numbers side by side from slot ``base``, in the forms worth a loop that vectorises; False for other forms."""
    data = buffer(array, 1)
    form = leaf[FORM]
    if leaf[AFTER] != NOTHING:
        return False
    if form == I64:
        for j in range(len(out)):
            out[j] = load_i64(data, base + j)
    elif form == F64:
        for j in range(len(out)):
            out[j] = float_key(load_i64(data, base + j))
    elif form == I32:
        for j in range(len(out)):
            out[j] = load_i32(data, base + j)
    else:
        return False
    return True


@device
def number_keys(leaf, array, slot, out):
    """Keys of the numbers in slots, none of them NULL: -1, or the first of them that does not fit into a key."""
    data = buffer(array, 1)
    form = leaf[FORM]
    after = leaf[AFTER]
    factor = leaf[FACTOR]
    n = len(out)
    if form == I64 or form == U64:
        for j in range(n):
            out[j] = load_i64(data, slot[j])
    elif form == F64:
        for j in range(n):
            out[j] = float_key(load_i64(data, slot[j]))
    elif form == F32:
        for j in range(n):
            out[j] = float_key(load_f32(data, slot[j]))
    elif form == F16:
        for j in range(n):
            out[j] = float_key(half_bits(load_u16(data, slot[j])))
    elif form == BITS:
        for j in range(n):
            out[j] = bit(data, slot[j])
    elif form == WIDE:  # the low word says it all: at most 18 digits
        words = leaf[WIDTH]
        for j in range(n):
            out[j] = load_i64(data, words * slot[j])
    else:
        for j in range(n):
            out[j] = integer(form, data, slot[j])
    if after == FLOATED:
        for j in range(n):
            out[j] = float_key(float_bits(float(out[j])))
    elif after == DIVIDED:
        for j in range(n):
            out[j] = out[j] // factor
    elif after == FLIPPED:
        for j in range(n):
            out[j] = out[j] ^ KEY_MIN
    elif after == SCALED:
        limit = KEY_MAX // factor
        for j in range(n):
            if out[j] > limit or out[j] < -limit:
                return j
            out[j] = out[j] * factor
    return -1


@device
def text_keys(leaf, array, base, slot, at, n, out, known, words, hints, group, distinct):
    """Labels of ``n`` strings in slots from ``slot[at]`` among the literals of set ``group``, to ``out[at]`` and on.

    With a negative ``group``, the numbers of the strings among the distinct ones instead, False where these need more room. Where ``known``
    is not empty, it has a place for each value of ``array``, a dictionary that starts at slot ``base``, and each is looked up once.
    Integers are taken for strings of 8 bytes: the known keys of a map may be either.
    """
    if group >= 0 and words.first[group] == words.first[group + 1]:
        for j in range(n):
            out[at + j] = 0
        return True
    form = leaf[FORM]
    ends = buffer(array, 1)
    data = buffer(array, 2) if form == UTF32 or form == UTF64 else 0
    begin = distinct.total[0]
    remember = len(known) > 0
    for j in range(at, at + n):
        i = slot[j]
        if remember and known[i - base] >= 0:
            out[j] = known[i - base]
            continue
        if form < TEXTS:
            address = 0
            length = 8
            prefix = integer(form, ends, i)
        else:
            if form == UTF32:
                start = load_i32(ends, i)
                length = load_i32(ends, i + 1) - start
                address = data + start
            elif form == UTF64:
                start = load_i64(ends, i)
                length = load_i64(ends, i + 1) - start
                address = data + start
            elif form == FIXED:
                length = leaf[WIDTH]
                address = ends + i * length
            else:
                length = load_i32(ends, 4 * i)
                address = ends + 16 * i + 4
                if length > 12:
                    address = buffer(array, 2 + load_i32(ends, 4 * i + 2)) + load_i32(ends, 4 * i + 3)
            prefix = load_prefix(address, length)
        if group >= 0:
            found = label(prefix, address, length, words, hints, group)
        else:
            found = number(prefix, address, length, distinct, begin)
            if found < 0:
                return False
        out[j] = found
        if remember:
            known[i - base] = found
    return True
