"""Texts -> tokens, literals, and shapes of phrases.

This module knows only the words below, parentheses and the form of literals. A text is *unsure* if
anything else could change the end of a phrase, such as a comment or a backslash outside a string.
The reader of a new shape checks that its literals are at the places found here.
"""

import numpy as np

from colmatch.kernels._jit import device, kernel
from colmatch.kernels.bits import mix
from colmatch.kernels.layout import I32, I64, U8, Written
from colmatch.kernels.sql import arrays as sq
from colmatch.kernels.sql.arrays import Phrases, TokenTable

LINK = -16
QUOTE, DOUBLE_QUOTE, BACKTICK, BACKSLASH = 39, 34, 96, 92
LEFT, RIGHT, LEFT_BRACKET, RIGHT_BRACKET, COMMA, MINUS, PLUS, SLASH, STAR = 40, 41, 91, 93, 44, 45, 43, 47, 42
BLANK, LOWER_E, LOWER_U, ZERO, THREE, NINE, CASE = 32, 101, 117, 48, 51, 57, 32


@device
def is_word(data, i, end, word, kinds):
    """Returns whether the letters ``word``, a number in base 32, begin at a place.

    They are a complete word, with no letter, digit or dot after.
    """
    n = i
    while n < end and kinds[data[n]] == sq.LETTER:
        n += 1
    if n - i > 7 or (n < end and kinds[data[n]] in (sq.DIGIT, sq.DOT)):
        return False
    number = np.int64(0)
    for k in range(i, n):
        letter = np.int64(data[k] | CASE) - 96
        if letter < 1 or letter > 26:
            return False
        number = number * 32 + letter
    return number == word


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
    """Returns the place after the string with its quote at ``i``, and whether it is escaped.

    An escaped string has a quote written twice, or a backslash. The place is -1 where the string is
    not closed, or names a character by its number.
    """
    quote, escaped = data[i], False
    i += 1
    while i < end:
        # Skip an escaped byte, or end at a quote that is not written twice
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
    """Returns the place after the digits from ``i`` on."""
    while i < end and kinds[data[i]] == sq.DIGIT:
        i += 1
    return i


@device
def number_end(data, i, end, kinds):
    """Returns the place after the number at ``i``, and its class.

    The class is 0 where there is no usable number, such as one with too many digits or a suffix.
    """
    # Read the digits and the exponent
    j = digits_end(data, i, end, kinds)
    whole = j - i
    mark, many = sq.INT, False
    if j < end and kinds[data[j]] == sq.DOT:
        k = digits_end(data, j + 1, end, kinds)
        many = k - j - 1 > 19
        j = k
        mark = sq.DECIMAL
    if j < end and data[j] | CASE == LOWER_E:
        k = j + 1
        if k < end and (data[k] == MINUS or data[k] == PLUS):
            k += 1
        last = digits_end(data, k, end, kinds)
        if last == k or last - k > 2:
            return last, 0
        j = last
        mark = sq.DOUBLE
    # Refuse too many digits, and suffixes
    if many or whole > (38 if mark == sq.INT else 19):
        return j, 0
    if j < end and (kinds[data[j]] == sq.LETTER or kinds[data[j]] == sq.DOT):
        return j, 0
    return j, mark


@device
def blanks_end(data, i, end, kinds):
    """Returns the place after the blanks from ``i`` on."""
    while i < end and kinds[data[i]] == sq.SPACE:
        i += 1
    return i


@device
def list_end(data, i, end, kinds):
    """Returns the place after the list with its parenthesis at ``i``, and its class.

    The class is 0 where it is no list of literals of one class.
    """
    mark, escapes = 0, 0
    i += 1
    while True:
        i = blanks_end(data, i, end, kinds)
        if i >= end:
            return i, 0
        # Read a literal
        if data[i] == QUOTE:
            i, escaped = string_end(data, i, end)
            if i < 0:
                return i, 0
            one = sq.STRINGS
            escapes |= sq.ESCAPED if escaped else 0
        else:
            if data[i] == MINUS:
                i += 1
            if i >= end or kinds[data[i]] != sq.DIGIT:
                return i, 0
            i, one = number_end(data, i, end, kinds)
            if one != sq.INT and one != sq.DECIMAL:
                return i, 0
            one = sq.INTS if one == sq.INT else sq.DECIMALS
        # Compare its class with the class of the others
        if mark and mark != one:
            return i, 0
        mark = one
        i = blanks_end(data, i, end, kinds)
        if i >= end:
            return i, 0
        # End at a parenthesis, or go on after a comma
        if data[i] == RIGHT:
            return i + 1, mark | escapes
        if data[i] != COMMA:
            return i, 0
        i += 1


@device
def piece_end(data, i, end, kinds, free, escape):
    """Returns the place after the piece of a phrase at ``i``, and its class if it is a literal.

    The place is -1 where it is unsure. The class is 0 for all other pieces.

    free : whether a literal may begin here
    escape : whether the word ESCAPE was there
    """
    byte = data[i]
    j = i + 1
    if byte == QUOTE or byte == DOUBLE_QUOTE:
        j, escaped = string_end(data, i, end)
        if j < 0 or (escaped and byte == DOUBLE_QUOTE):
            return -1, 0
        # Leave a backslash after ESCAPE, and a string before AS, in the shape
        fixed = escape and j - i == 4 and data[i + 1] == BACKSLASH and data[i + 2] == BACKSLASH
        fixed |= is_word(data, blanks_end(data, j, end, kinds), end, WORD_AS, kinds)  # of a CAST
        mark = (sq.STRING if byte == QUOTE else sq.QUOTED) | (sq.ESCAPED if escaped else 0)
        return j, (mark if free and not fixed else 0)
    if byte == BACKTICK:
        while j < end and data[j] != BACKTICK:
            j += 1
        return (j + 1 if j < end else -1), 0
    if kinds[byte] == sq.DIGIT and free:
        return number_end(data, i, end, kinds)
    if byte == LEFT and free:
        j, mark = list_end(data, i, end, kinds)
        return (j if mark else i + 1), mark
    if j < end and (data[j] == byte or (byte == SLASH and data[j] == STAR)) and (byte == MINUS or byte == SLASH):
        return -1, 0  # a comment, perhaps
    return j, 0


@device
def phrase_end(data, i, end, kinds, shape, w, cut, n):
    """Copies the shape of the phrase at ``i`` to ``shape[w:]``, and enters its literals from ``n``
    on.

    Returns the place after the phrase, -1 where it is unsure, and the ends of shape and literals.
    """
    inside, brackets, between, escape, blank = np.int64(0), np.int64(0), False, False, False
    before, start = sq.PLAIN, w
    while i < end:
        byte = data[i]
        kind = kinds[byte]
        if kind == sq.SPACE:
            blank, before = True, sq.PLAIN
            i += 1
            continue
        # End at a word or parenthesis that is not part of the phrase
        if inside == 0 and brackets == 0:
            if byte == RIGHT:
                break
            if kind == sq.LETTER and before == sq.PLAIN:
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
        # Read a piece, and count parentheses and brackets
        j, mark = piece_end(data, i, end, kinds, brackets == 0 and (before == sq.PLAIN or byte == LEFT), escape)
        if mark == 0:
            inside += np.int64(byte == LEFT) - np.int64(byte == RIGHT)
            brackets += np.int64(byte == LEFT_BRACKET) - np.int64(byte == RIGHT_BRACKET)
        if kind == sq.REFUSED or j < 0 or inside < 0 or brackets < 0:
            return -1, w, n
        # Copy the piece, or its mark if it is a literal
        if blank and w > start:
            shape[w] = BLANK
            w += 1
        blank = False
        if mark:
            skipped = 1 if mark & ~sq.ESCAPED <= sq.QUOTED else 0
            shape[w] = mark & ~sq.ESCAPED
            w += 1
            cut.begin[n], cut.end[n], cut.mark[n] = i + skipped, j - skipped, mark
            n += 1
        else:
            for k in range(i, j):
                shape[w] = data[k]
                w += 1
        before = kinds[data[j - 1]]
        i = j
    return (-1 if inside or brackets else i), w, n


@device
def hash_shape(shape, w, end):
    """Returns the hash of ``shape[w:end]``."""
    h = int(end - w)
    for k in range(w, end):
        h = mix(np.int64(shape[k]), h)
    return h


@kernel
def enter_phrases(phrases: Written[Phrases], count: int) -> None:
    """Enters the first ``count`` phrases into an empty table."""
    mask = len(phrases.slot) - 1
    for phrase in range(count):
        place = hash_shape(phrases.shape, phrases.first[phrase], phrases.first[phrase + 1]) & mask
        while phrases.slot[place] >= 0:
            place = (place + 1) & mask
        phrases.slot[place] = phrase


@device
def find_phrase(phrases, count, w, end):
    """Returns the phrase with the shape ``shape[w:end]``.

    The result is ``count`` for a new phrase, which then takes a slot.
    """
    shape, first, slot = phrases.shape, phrases.first, phrases.slot
    mask = len(slot) - 1
    place = hash_shape(shape, w, end) & mask
    while slot[place] >= 0:
        # Compare the shapes
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
    """Writes the literals that distinguish phrases of one shape after it, at ``shape[w:]``.

    The phrase's literals begin at ``n``. Returns the new end.
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
    """Returns the place after IS TRUE and the like at ``i``, and the token of the parenthesis
    before it.

    The token is 0 where something else is there.
    """
    i, token, no = blanks_end(data, i + 2, end, kinds), 0, False
    if is_word(data, i, end, WORD_NOT, kinds):
        i, no = blanks_end(data, i + 3, end, kinds), True
    if is_word(data, i, end, WORD_TRUE, kinds):
        i += 4
        token = sq.OPEN_NOT_TRUE if no else sq.OPEN_TRUE
    elif is_word(data, i, end, WORD_FALSE, kinds):
        i += 5
        token = sq.OPEN_NOT_FALSE if no else sq.OPEN_FALSE
    return i, token


@device
def cut_phrase(data, i, end, kinds, phrases, count, cut, n):
    """Finds the phrase at ``i``, and enters its literals from ``n`` on.

    Returns the place after it, -1 where that is unsure; its number, ``count`` for a new phrase;
    and the end of the literals.
    """
    w = phrases.first[count]
    stop, after, last = phrase_end(data, i, end, kinds, phrases.shape, w, cut, n)
    if stop < 0 or after == w:
        return -1, np.int64(0), last
    phrase = find_phrase(phrases, count, w, after)
    # Distinguish phrases of one shape by their literals
    if phrase < count and phrases.baked[phrase]:
        after = add_baked(data, phrases, phrase, after, cut, n)
        phrase = find_phrase(phrases, count, w, after)
    # Enter a new phrase
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
    # The token of an open parenthesis is ``LINK`` minus the place of the parenthesis around it.
    inner, closed = np.int64(-1), np.int64(-1)
    while True:
        i = blanks_end(data, i, end, kinds)
        if i >= end:
            return count, t, n, (-1 if operand or inner >= 0 else deep)
        if operand and data[i] == LEFT:
            # Open a parenthesis
            cut.token[t] = LINK - (inner - first)
            inner = np.int64(t)
            depth += 1
            i += 1
        elif operand and is_word(data, i, end, WORD_NOT, kinds):
            cut.token[t] = sq.NOT
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
            # Close the innermost parenthesis
            cut.token[t] = sq.CLOSE
            closed = inner
            inner = LINK - cut.token[closed]
            inner = first + inner if inner >= 0 else np.int64(-1)
            cut.token[closed] = sq.OPEN
            depth -= 1
            i += 1
            t += 1
            continue
        elif is_word(data, i, end, WORD_IS, kinds) and closed >= 0:
            # Change the parenthesis before IS TRUE and the like
            i, token = truth_end(data, i, end, kinds)
            if token == 0:
                return count, t, n, -1
            cut.token[closed] = token
            closed = np.int64(-1)
            continue
        elif is_word(data, i, end, WORD_AND, kinds):
            cut.token[t] = sq.AND
            i += 3
            operand, nots = True, nots if depth > 0 else 0
        elif is_word(data, i, end, WORD_OR, kinds):
            cut.token[t] = sq.OR
            i += 2
            operand, nots = True, nots if depth > 0 else 0
        else:
            return count, t, n, -1
        closed = np.int64(-1)
        # Count the depth after each token
        deep = max(deep, depth + nots)
        t += 1


@kernel
def cut_texts(
    data: U8,
    offset: I32,
    start: int,
    kinds: Written[U8],
    phrases: Written[Phrases],
    cut: Written[TokenTable],
    filled: Written[I64],
) -> int:
    """Cuts the texts ``data[offset[i]:offset[i + 1]]`` from ``start`` on.

    Parameters
    ----------
    kinds : (256) uint8, class of each byte
    filled : (3) int64, numbers of phrases, tokens and literals so far; changed
    cut : ``unsure`` is read, too: such texts are not cut

    Returns
    -------
    text : the first text that may lack room; all texts before it were cut
    """
    count, t, n = filled[0], filled[1], filled[2]
    text = start
    while text < len(offset) - 1:
        begin, end = offset[text], offset[text + 1]
        size = end - begin
        # Stop where there may be no room
        if (
            t + size + 1 > len(cut.token)
            or n + size + 1 > len(cut.begin)
            or phrases.first[count] + 2 * size > len(phrases.shape)
            or count + size > len(phrases.begin)
            or 2 * (count + size) > len(phrases.slot)
        ):
            break
        before = t
        # Cut the text, and drop its tokens if it is unsure
        if not cut.unsure[text]:
            count, t, n, depth = cut_text(data, begin, end, kinds, phrases, count, cut, t, n)
            cut.depth[text] = depth
            if depth < 0:
                cut.unsure[text] = sq.UNSURE
                t = before
        cut.first[text + 1] = t
        cut.literal_first[text + 1] = n
        text += 1
    filled[0], filled[1], filled[2] = count, t, n
    return text
