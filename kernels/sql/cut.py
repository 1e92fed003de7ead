"""Texts -> tokens, literals, and shapes of phrases.

Nothing here knows the language beyond its words AND, OR, NOT and BETWEEN, its parentheses and the
look of its literals. A text that has anything else which could change where a phrase ends, such as
a comment or a backslash, is *unsure*. Whoever reads a new shape checks that its literals are where
they were found here.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import mix
from colmatch.kernels.sql.arrays import (
    AND,
    CLOSE,
    DECIMAL,
    DECIMALS,
    DIGIT,
    DOT,
    DOUBLE,
    ESCAPED,
    INT,
    INTS,
    LETTER,
    NOT,
    OPEN,
    OPEN_FALSE,
    OPEN_NOT_FALSE,
    OPEN_NOT_TRUE,
    OPEN_TRUE,
    OR,
    PLAIN,
    QUOTED,
    REFUSED,
    SPACE,
    STRING,
    STRINGS,
    UNSURE,
)

LINK = -16
QUOTE, DOUBLE_QUOTE, BACKTICK, BACKSLASH = 39, 34, 96, 92
LEFT, RIGHT, LEFT_BRACKET, RIGHT_BRACKET, COMMA, MINUS, PLUS, SLASH, STAR = 40, 41, 91, 93, 44, 45, 43, 47, 42
BLANK, LOWER_E, LOWER_U, ZERO, THREE, NINE, CASE = 32, 101, 117, 48, 51, 57, 32


@device
def is_word(data, i, end, word, kinds):
    """Returns whether the letters ``word``, a number in base 32, end at a place.

    They are a word by themselves, with no letter, digit or dot behind.
    """
    n = i
    while n < end and kinds[data[n]] == LETTER:
        n += 1
    if n - i > 7 or (n < end and kinds[data[n]] in (DIGIT, DOT)):
        return False
    found = np.int64(0)
    for k in range(i, n):
        letter = np.int64(data[k] | CASE) - 96
        if letter < 1 or letter > 26:
            return False
        found = found * 32 + letter
    return found == word


# Words in base 32, a = 1.
WORD_AND = (1 * 32 + 14) * 32 + 4
WORD_OR = 15 * 32 + 18
WORD_NOT = (14 * 32 + 15) * 32 + 20
WORD_AS = 1 * 32 + 19
WORD_IS = 9 * 32 + 19
WORD_TRUE = ((20 * 32 + 18) * 32 + 21) * 32 + 5
WORD_FALSE = (((6 * 32 + 1) * 32 + 12) * 32 + 19) * 32 + 5
WORD_ESCAPE = ((((5 * 32 + 19) * 32 + 3) * 32 + 1) * 32 + 16) * 32 + 5
WORD_BETWEEN = (((((2 * 32 + 5) * 32 + 20) * 32 + 23) * 32 + 5) * 32 + 5) * 32 + 14


@device
def string_end(data, i, end):
    """Returns the place behind the string that begins with the quote at ``i``, and whether it has
    a quote written twice or a backslash.

    The place is -1 where it is not closed, or names a character by its number.
    """
    quote, escaped = data[i], False
    i += 1
    while i < end:
        if data[i] == BACKSLASH:
            i += 1
            if (
                i >= end
                or data[i] | CASE == LOWER_U
                or (ZERO <= data[i] <= THREE and i + 1 < end and ZERO <= data[i + 1] <= NINE)
            ):
                return -1, escaped
            escaped = True
        elif data[i] == quote:
            if i + 1 >= end or data[i + 1] != quote:
                return i + 1, escaped
            i += 1
            escaped = True
        i += 1
    return -1, escaped


@device
def digits_end(data, i, end, kinds):
    """Returns the place behind the digits from ``i`` on."""
    while i < end and kinds[data[i]] == DIGIT:
        i += 1
    return i


@device
def number_end(data, i, end, kinds):
    """Returns the place behind the number at ``i`` and its class; class 0 for what is none, such
    as one with too many digits or a suffix.
    """
    j = digits_end(data, i, end, kinds)
    whole = j - i
    mark, many = INT, False
    if j < end and kinds[data[j]] == DOT:
        k = digits_end(data, j + 1, end, kinds)
        many = k - j - 1 > 19
        j = k
        mark = DECIMAL
    if j < end and data[j] | CASE == LOWER_E:
        k = j + 1
        if k < end and (data[k] == MINUS or data[k] == PLUS):
            k += 1
        last = digits_end(data, k, end, kinds)
        if last == k or last - k > 2:
            return last, 0
        j = last
        mark = DOUBLE
    if many or whole > (38 if mark == INT else 19):
        return j, 0
    if j < end and (kinds[data[j]] == LETTER or kinds[data[j]] == DOT):
        return j, 0
    return j, mark


@device
def blanks_end(data, i, end, kinds):
    """Returns the place behind the blanks from ``i`` on."""
    while i < end and kinds[data[i]] == SPACE:
        i += 1
    return i


@device
def list_end(data, i, end, kinds):
    """Returns the place behind the list whose parenthesis is at ``i``, and its class.

    The class is 0 where it is no list of literals of one class.
    """
    mark, escapes = 0, 0
    i += 1
    while True:
        i = blanks_end(data, i, end, kinds)
        if i >= end:
            return i, 0
        if data[i] == QUOTE:
            i, escaped = string_end(data, i, end)
            if i < 0:
                return i, 0
            one = STRINGS
            escapes |= ESCAPED if escaped else 0
        else:
            if data[i] == MINUS:
                i += 1
            if i >= end or kinds[data[i]] != DIGIT:
                return i, 0
            i, one = number_end(data, i, end, kinds)
            if one != INT and one != DECIMAL:
                return i, 0
            one = INTS if one == INT else DECIMALS
        if mark and mark != one:
            return i, 0
        mark = one
        i = blanks_end(data, i, end, kinds)
        if i >= end:
            return i, 0
        if data[i] == RIGHT:
            return i + 1, mark | escapes
        if data[i] != COMMA:
            return i, 0
        i += 1


@device
def phrase_end(data, i, end, kinds, shape, w, cut, n):
    """Copies the shape of the phrase at ``i`` to ``shape[w:]``, and enters its literals from ``n``
    on.

    Returns the place behind it, -1 where that is unsure, and the ends of shape and literals.
    """
    inside, brackets, between, escape, blank = 0, 0, False, False, False
    before = PLAIN
    start = w
    while i < end:
        byte = data[i]
        kind = kinds[byte]
        if kind == SPACE:
            blank = True
            before = PLAIN
            i += 1
            continue
        if kind == REFUSED:
            return -1, w, n
        if inside == 0 and brackets == 0:
            if byte == RIGHT:
                break
            if kind == LETTER and before == PLAIN:
                if is_word(data, i, end, WORD_AND, kinds):
                    if not between:
                        break
                    between = False
                elif is_word(data, i, end, WORD_OR, kinds):
                    break
                elif is_word(data, i, end, WORD_BETWEEN, kinds):
                    between = True
                elif is_word(data, i, end, WORD_ESCAPE, kinds):
                    escape = True
        if blank and w > start:
            shape[w] = BLANK
            w += 1
        blank = False
        j, mark, skipped = i + 1, 0, 0
        if byte == QUOTE or byte == DOUBLE_QUOTE:
            j, escaped = string_end(data, i, end)
            if j < 0 or (escaped and byte == DOUBLE_QUOTE):
                return -1, w, n
            fixed = escape and j - i == 4 and data[i + 1] == BACKSLASH and data[i + 2] == BACKSLASH
            fixed |= is_word(data, blanks_end(data, j, end, kinds), end, WORD_AS, kinds)  # of a CAST
            if brackets == 0 and before == PLAIN and not fixed:
                mark, skipped = (STRING if byte == QUOTE else QUOTED) | (ESCAPED if escaped else 0), 1
            kind = PLAIN
        elif byte == BACKTICK:
            while j < end and data[j] != BACKTICK:
                j += 1
            if j >= end:
                return -1, w, n
            j += 1
            kind = LETTER
        elif kind == DIGIT and brackets == 0 and before == PLAIN:
            j, mark = number_end(data, i, end, kinds)
            kind = LETTER
        elif byte == LEFT:
            if brackets == 0:
                j, mark = list_end(data, i, end, kinds)
            if mark == 0:
                inside += 1
                j = i + 1
        elif byte == RIGHT:
            inside -= 1
        elif byte == LEFT_BRACKET:
            brackets += 1
        elif byte == RIGHT_BRACKET:
            brackets -= 1
        elif (byte == MINUS or byte == SLASH) and j < end and (data[j] == byte or (byte == SLASH and data[j] == STAR)):
            return -1, w, n  # a comment, perhaps
        if inside < 0 or brackets < 0:
            return -1, w, n
        if mark:
            shape[w] = mark & ~ESCAPED
            w += 1
            cut.begin[n] = i + skipped
            cut.end[n] = j - skipped
            cut.mark[n] = mark
            n += 1
            before = LETTER if kind == LETTER else PLAIN
        else:
            for k in range(i, j):
                shape[w] = data[k]
                w += 1
            before = kind
        i = j
    if inside or brackets:
        return -1, w, n
    return i, w, n


@device
def hash_shape(shape, w, end):
    """Returns the hash of ``shape[w:end]``."""
    h = int(end - w)
    for k in range(w, end):
        h = mix(np.int64(shape[k]), h)
    return h


@kernel
def enter_phrases(phrases, count):
    """Enters all phrases into a table that is empty."""
    mask = len(phrases.slot) - 1
    for phrase in range(count):
        place = hash_shape(phrases.shape, phrases.first[phrase], phrases.first[phrase + 1]) & mask
        while phrases.slot[place] >= 0:
            place = (place + 1) & mask
        phrases.slot[place] = phrase


@device
def find_phrase(phrases, count, w, end):
    """Returns the phrase whose shape is ``shape[w:end]``; ``count`` where it is new, and then its
    slot is taken.
    """
    shape, first, slot = phrases.shape, phrases.first, phrases.slot
    mask = len(slot) - 1
    place = hash_shape(shape, w, end) & mask
    while slot[place] >= 0:
        phrase = slot[place]
        begin = first[phrase]
        size = first[phrase + 1] - begin
        if size == end - w:
            k = 0
            while k < size and shape[begin + k] == shape[w + k]:
                k += 1
            if k == size:
                return np.int64(phrase)
        place = (place + 1) & mask
    slot[place] = count
    return np.int64(count)


@device
def add_baked(data, phrases, phrase, w, cut, n):
    """Writes the literals that distinguish phrases of one shape behind it, at ``shape[w:]``.

    The phrase's literals are those from ``n`` on. Returns where what was written ends.
    """
    bits, literal = phrases.baked[phrase], n
    while bits:
        if bits & 1:
            phrases.shape[w] = 0
            w += 1
            for k in range(cut.begin[literal], cut.end[literal]):
                phrases.shape[w] = data[k]
                w += 1
        bits >>= 1
        literal += 1
    return w


@device
def truth_end(data, i, end, kinds):
    """Returns the place behind IS TRUE, IS NOT TRUE and the like at ``i``, and the parenthesis that
    has it behind; 0 where something else is there.
    """
    i, known, no = blanks_end(data, i + 2, end, kinds), 0, False
    if is_word(data, i, end, WORD_NOT, kinds):
        i, no = blanks_end(data, i + 3, end, kinds), True
    if is_word(data, i, end, WORD_TRUE, kinds):
        i += 4
        known = OPEN_NOT_TRUE if no else OPEN_TRUE
    elif is_word(data, i, end, WORD_FALSE, kinds):
        i += 5
        known = OPEN_NOT_FALSE if no else OPEN_FALSE
    return i, known


@device
def cut_phrase(data, i, end, kinds, phrases, count, cut, n):
    """Finds the phrase at ``i``, whose literals are entered from ``n`` on.

    Returns the place behind it, -1 where that is unsure, its number, which is ``count`` where it is
    new, and the end of the literals.
    """
    w = phrases.first[count]
    stop, after, last = phrase_end(data, i, end, kinds, phrases.shape, w, cut, n)
    if stop < 0 or after == w:
        return -1, np.int64(0), last
    phrase = find_phrase(phrases, count, w, after)
    if phrase < count and phrases.baked[phrase]:
        after = add_baked(data, phrases, phrase, after, cut, n)
        phrase = find_phrase(phrases, count, w, after)
    if phrase == count:
        phrases.first[count + 1] = after
        phrases.literals[count] = last - n
        phrases.baked[count] = 0
        phrases.begin[count] = i
        phrases.end[count] = stop
        phrases.literal[count] = n
    return stop, phrase, last


@device
def cut_text(data, i, end, kinds, phrases, count, cut, t, n):
    """Cuts a text into tokens from ``t`` and literals from ``n`` on.

    Returns the ends of phrases, tokens and literals, and the depth; -1 for an unsure text.
    """
    first, depth, deep, nots, operand = t, 0, 0, 0, True
    # A parenthesis that is open has the place of the one around it for a token, ``LINK`` minus it.
    inner, closed = np.int64(-1), np.int64(-1)
    while True:
        i = blanks_end(data, i, end, kinds)
        if i >= end:
            return count, t, n, (-1 if operand or inner >= 0 else deep)
        if operand and data[i] == LEFT:
            cut.token[t] = LINK - (inner - first)
            inner = np.int64(t)
            depth += 1
            i += 1
        elif operand and is_word(data, i, end, WORD_NOT, kinds):
            cut.token[t] = NOT
            nots += 1
            i += 3
        elif operand:
            i, phrase, n = cut_phrase(data, i, end, kinds, phrases, count, cut, n)
            if i < 0:
                return count, t, n, -1
            count += phrase == count
            cut.token[t] = phrase
            operand = False
        elif data[i] == RIGHT and inner >= 0:
            cut.token[t] = CLOSE
            closed = inner
            inner = LINK - cut.token[closed]
            inner = first + inner if inner >= 0 else np.int64(-1)
            cut.token[closed] = OPEN
            depth -= 1
            i += 1
            t += 1
            continue
        elif is_word(data, i, end, WORD_IS, kinds) and closed >= 0:
            i, known = truth_end(data, i, end, kinds)
            if known == 0:
                return count, t, n, -1
            cut.token[closed] = known
            closed = np.int64(-1)
            continue
        elif is_word(data, i, end, WORD_AND, kinds):
            cut.token[t] = AND
            i += 3
            operand, nots = True, nots if depth > 0 else 0
        elif is_word(data, i, end, WORD_OR, kinds):
            cut.token[t] = OR
            i += 2
            operand, nots = True, nots if depth > 0 else 0
        else:
            return count, t, n, -1
        closed = np.int64(-1)
        deep = max(deep, depth + nots)
        t += 1


@kernel
def cut_texts(data, offset, start, kinds, phrases, cut, filled):
    """Cuts the texts ``data[offset[i]:offset[i + 1]]`` from ``start`` on.

    Parameters
    ----------
    kinds : (256) uint8 class of each byte
    filled : (3) how many phrases there are, tokens and literals; changed
    cut : ``unsure`` is read, too: such texts are not cut

    Returns
    -------
    text : the first for which there may be no room; then all that are shorter than it were cut
    """
    count, t, n = filled[0], filled[1], filled[2]
    text = start
    while text < len(offset) - 1:
        begin, end = offset[text], offset[text + 1]
        size = end - begin
        if (
            t + size + 1 > len(cut.token)
            or n + size + 1 > len(cut.begin)
            or phrases.first[count] + 2 * size > len(phrases.shape)
            or count + size > len(phrases.begin)
            or 2 * (count + size) > len(phrases.slot)
        ):
            break
        before = t
        if not cut.unsure[text]:
            count, t, n, depth = cut_text(data, begin, end, kinds, phrases, count, cut, t, n)
            cut.depth[text] = depth
            if depth < 0:
                cut.unsure[text] = UNSURE
                t = before
        cut.first[text + 1] = t
        cut.literal_first[text + 1] = n
        text += 1
    filled[0], filled[1], filled[2] = count, t, n
    return text
