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
    INDEX,
    NOTHING,
    SCALED,
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
from colmatch.kernels.text import hint_place, label, number

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
def is_dense(leaf):
    """Whether numbers of this leaf, side by side, are worth a loop that vectorises: ``dense_number_keys``."""
    form = leaf[FORM]
    return leaf[INDEX] < 0 and leaf[AFTER] == NOTHING and (form == I64 or form == F64 or form == I32)


@device
def dense_number_keys(leaf, array, base, out):
    """Keys of numbers side by side from slot ``base``, of a leaf that ``is_dense``."""
    data = buffer(array, 1)
    form = leaf[FORM]
    if form == I64:
        for j in range(len(out)):
            out[j] = load_i64(data, base + j)
    elif form == F64:
        for j in range(len(out)):
            out[j] = float_key(load_i64(data, base + j))
    else:
        for j in range(len(out)):
            out[j] = load_i32(data, base + j)


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
def text_at(leaf, array, ends, data, slot):
    """Address and length of the string in a slot; ``ends`` and ``data`` are buffers 1 and 2."""
    form = leaf[FORM]
    if form == UTF32:
        start = load_i32(ends, slot)
        return data + start, load_i32(ends, slot + 1) - start
    if form == UTF64:
        start = load_i64(ends, slot)
        return data + start, load_i64(ends, slot + 1) - start
    if form == FIXED:
        return ends + slot * leaf[WIDTH], leaf[WIDTH]
    length = load_i32(ends, 4 * slot)
    if length <= 12:
        return ends + 16 * slot + 4, length
    return buffer(array, 2 + load_i32(ends, 4 * slot + 2)) + load_i32(ends, 4 * slot + 3), length


@device
def text_keys(leaf, array, slot, out, known, base, low, high, place, hints, begin, table, ends, bytes, total):
    """Labels of the strings in slots among the literals ``low:high``; ``out`` says how many strings.

    Where ``begin`` is not negative, instead their numbers among the distinct strings from there on, and False where these need more room.
    Where ``known`` is not empty, it has a place for each value of ``array``, a dictionary that starts at slot ``base``, and each is
    looked up once.
    """
    if begin < 0 and low == high:
        for j in range(len(out)):
            out[j] = 0
        return True
    form = leaf[FORM]
    first = buffer(array, 1)
    second = buffer(array, 2) if form == UTF32 or form == UTF64 else 0
    remember = len(known) > 0
    size = len(hints)
    heads = place[0]
    offsets = place[1]
    literals = place[2]
    for j in range(len(out)):
        i = slot[j]
        if remember and known[i - base] >= 0:
            out[j] = known[i - base]
            continue
        address, length = text_at(leaf, array, first, second, i)
        prefix = load_prefix(address, length)
        if begin < 0:
            if size > 0:
                h = hint_place(prefix, address, length, size)
                found = label(prefix, address, length, low, high, heads, offsets, literals, hints[h])
                hints[h] = found >> 1
            else:
                found = label(prefix, address, length, low, high, heads, offsets, literals, -1)
        else:
            found = number(prefix, address, length, begin, table, ends, bytes, total)
            if found < 0:
                return False
        out[j] = found
        if remember:
            known[i - base] = found
    return True
