"""Conversion of an Arrow array's values to keys: a loop for each physical form.

Keys are those of ``colmatch/lowering/floors.py``, which converts literals.
"""

from colmatch.kernels._jit import device
from colmatch.kernels.arrow import structs
from colmatch.kernels.arrow.memory import KEY_MIN, float_bits, load_f32, load_i32, load_i64, load_prefix, load_u16
from colmatch.kernels.arrow.select import CODE, FULL_BYTES, FULL_STRINGS, NEEDED, OVERFLOW, ROW
from colmatch.kernels.arrow.structs import bit, buffer, integer
from colmatch.kernels.arrow.words import hint_place, key_of, label, number, start_group
from colmatch.kernels.layout import KEY_MAX

EXPONENT = 0x7FF0000000000000
NAN = 0x7FF8000000000000


@device
def float_key(bits):
    """Returns a number with the order of floats from the bits of a float64: one NaN above all, one
    zero.
    """
    size = bits & KEY_MAX
    if size > EXPONENT:
        return NAN
    if size == 0:
        return 0
    return bits if bits >= 0 else bits ^ KEY_MAX


@device
def half_bits(half):
    """Returns the bits of the float64 that equals a float16, from the float16's bits."""
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
def is_dense(leaf, array, mask):
    """Returns whether numbers are side by side, and none is NULL.

    Then a loop that vectorises is worth it. The leaf has one of the three common forms.
    """
    if mask != 0 or leaf[structs.INDEX] >= 0 or leaf[structs.AFTER] != structs.NOTHING or buffer(array, 0) != 0:
        return False
    form = leaf[structs.FORM]
    return form == structs.I64 or form == structs.F64 or form == structs.I32


@device
def dense_number_keys(leaf, array, base, n, out):
    """Writes the keys of ``n`` numbers side by side from slot ``base`` on (see ``is_dense``)."""
    data = buffer(array, 1)
    form = leaf[structs.FORM]
    if form == structs.I64:
        for j in range(n):
            out[j] = load_i64(data, base + j)
    elif form == structs.F64:
        for j in range(n):
            out[j] = float_key(load_i64(data, base + j))
    else:
        for j in range(n):
            out[j] = load_i32(data, base + j)


@device
def number_keys(leaf, state, array, slot, n, row, out):
    """Writes the keys of the numbers in ``n`` slots, none of them NULL.

    row : rows of the numbers. ``state`` gets the row of the first number that does not fit into a
        key
    """
    data = buffer(array, 1)
    form = leaf[structs.FORM]
    after = leaf[structs.AFTER]
    factor = leaf[structs.FACTOR]
    words = leaf[structs.WIDTH]
    # Load the numbers
    if form == structs.I64 or form == structs.U64:
        for j in range(n):
            out[j] = load_i64(data, slot[j])
    elif form == structs.F64:
        for j in range(n):
            out[j] = float_key(load_i64(data, slot[j]))
    elif form == structs.F32:
        for j in range(n):
            out[j] = float_key(load_f32(data, slot[j]))
    elif form == structs.BITS or form == structs.WIDE or form == structs.F16:
        for j in range(n):
            i = slot[j]
            if form == structs.BITS:
                out[j] = bit(data, i)
            elif form == structs.WIDE:  # the low word is enough: at most 18 digits
                out[j] = load_i64(data, words * i)
            else:
                out[j] = float_key(half_bits(load_u16(data, i)))
    else:
        for j in range(n):
            out[j] = integer(form, data, slot[j])
    # Convert them
    if after == structs.FLOATED:
        for j in range(n):
            out[j] = float_key(float_bits(float(out[j])))
    elif after != structs.NOTHING:
        limit = KEY_MAX // factor
        for j in range(n):
            value = out[j]
            if after == structs.DIVIDED:
                out[j] = value // factor
            elif after == structs.FLIPPED:
                out[j] = value ^ KEY_MIN
            elif value > limit or value < -limit:
                state[CODE] = OVERFLOW
                state[ROW] = row[j]
                return
            else:
                out[j] = value * factor


@device
def text_at(leaf, array, ends, data, slot):
    """Returns the address and length of the string in a slot. ``ends`` and ``data`` are buffers 1
    and 2.
    """
    form = leaf[structs.FORM]
    if form == structs.UTF32:
        start = load_i32(ends, slot)
        return data + start, load_i32(ends, slot + 1) - start
    if form == structs.UTF64:
        start = load_i64(ends, slot)
        return data + start, load_i64(ends, slot + 1) - start
    if form == structs.FIXED:
        return ends + slot * leaf[structs.WIDTH], leaf[structs.WIDTH]
    length = load_i32(ends, 4 * slot)
    if length <= 12:
        return ends + 16 * slot + 4, length
    return buffer(array, 2 + load_i32(ends, 4 * slot + 2)) + load_i32(ends, 4 * slot + 3), length


@device
def text_keys(leaf, array, n, key, known, base, group, literals, hints, distinct, state):
    """Writes the labels of the strings in ``n`` slots among the literals of set ``group``.

    The slots are in ``key``, and labels take their places.

    With a negative ``group``, it writes the numbers of the strings among the distinct strings of
    group -1 - ``group``. If these need more room, ``state`` gets the size. With a non-negative
    ``base``, ``array`` is a dictionary that starts at slot ``base``, and ``known`` has a place for
    each of its values. Then each value is looked up once.
    """
    literal_first = literals.first
    place = literals.place
    hint_first = literals.hint
    table = distinct.table
    ends = distinct.offset
    bytes = distinct.data
    ranges = distinct.range
    total = distinct.total
    # Begin a group of distinct strings
    begin = -1
    own = group
    if group < 0:
        if not start_group(table, len(ends), total, n):
            state[CODE] = FULL_STRINGS
            state[NEEDED] = total[1]
            return
        begin = total[0]
        own = 0
    # Write zeros if the set has no literals
    low = literal_first[own]
    high = literal_first[own + 1]
    recent, recent_end = literals.recent[own], literals.recent[own + 1]
    labels = place[3] != 0 or place[7] != 0
    if group >= 0 and low == high and recent == recent_end:
        for j in range(n):
            key[j] = 0
        return
    # Find the hints and the buffers
    hint_low = hint_first[own]
    size = hint_first[own + 1] - hint_low
    form = leaf[structs.FORM]
    first = buffer(array, 1)
    second = buffer(array, 2) if form == structs.UTF32 or form == structs.UTF64 else 0
    remember = base >= 0
    heads = place[0]
    offsets = place[1]
    data = place[2]
    for j in range(n):
        # Take a value of the dictionary that is known already
        i = key[j]
        if remember and known[i - base] >= 0:
            key[j] = known[i - base]
            continue
        # Load the string
        address, length = text_at(leaf, array, first, second, i)
        prefix = load_prefix(address, length)
        # Find its label among the literals, old and recent
        if group >= 0:
            h = hint_low
            hint = begin  # -1, by a name: label would be compiled again for the constant
            if size > 0:
                h += hint_place(prefix, address, length, size)
                hint = hints[h]
            result = label(prefix, address, length, low, high, heads, offsets, data, hint)
            if size > 0:
                hints[h] = result >> 1
            if labels:
                result = key_of(result, low, place[3])
                if recent < recent_end:
                    other = label(prefix, address, length, recent, recent_end, place[4], place[5], place[6], begin)
                    result = max(result, key_of(other, recent, place[7]))
        else:
            # Or number it among the distinct strings
            result = number(prefix, address, length, begin, table, ends, bytes, total)
            if result < 0:
                state[CODE] = FULL_BYTES
                state[NEEDED] = total[1]
                return
        # Write the result
        key[j] = result
        if remember:
            known[i - base] = result
    # Write the range of the group
    if group < 0:
        ranges[-1 - group, 0] = begin
        ranges[-1 - group, 1] = total[0]
