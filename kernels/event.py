"""One event: its values -> the text patterns that match, and the codes of a segment.

A batch goes through nine kernels: five for text patterns, then reading, labels of strings,
transposing and codes. Here two kernels do all of it for a single event, since calling the nine
takes longer than their work. They take some microseconds, so they keep the interpreter's lock.
Long texts are not for them (``events/single/texts.py``).
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels import layout
from colmatch.kernels._jit import brief, device
from colmatch.kernels.arrow.memory import load_prefix
from colmatch.kernels.arrow.values import float_key
from colmatch.kernels.arrow.words import Words, key_of, label
from colmatch.kernels.bits import ctz, without_lowest
from colmatch.kernels.hints import Hints, find_code
from colmatch.kernels.layout import I64, U8, U32, U64, Codes, Rows, Written
from colmatch.kernels.text.search import FILL, Filters, TextHits, find
from colmatch.kernels.text.verify import LikePrograms, verify

KEY, DOUBLE, TEXT = 0, 1, 2  # forms of an attribute's value in ``EventValues.value``
TRUE = 1  # the key of a pattern that matches


class EventValues(NamedTuple):
    """The values of one event, up to E, with ascending attributes. It belongs to one owner."""

    form: layout.Fixed[layout.U8]  # (A) KEY, DOUBLE or TEXT
    attr: layout.U32  # (E) attribute of each value
    value: layout.I64  # (E) key; bits of a double; number of a text
    end: layout.Fixed[layout.I64]  # (T + 1) text t is ``data[end[t]:end[t + 1]]``
    place: layout.I64  # (1) address of data


@brief
def code_event(
    values: Written[EventValues],
    count: int,
    literals: Words,
    codes: Codes,
    hints: Hints,
    used: U8,
    events: Written[Rows],
) -> None:
    """Fills ``layout.Rows`` of one row with the codes of a segment.

    count : number of the event's values
    literals : as ``arrow.words.Words``
    used : (A) uint8, whether the segment has predicates on an attribute
    """
    n = 0
    for i in range(count):
        a = values.attr[i]
        # Skip attributes without predicates
        if a >= len(used) or not used[a]:
            continue
        # Find the key of the value
        key = values.value[i]
        form = values.form[a]
        if form == DOUBLE:
            key = float_key(key)
        elif form == TEXT:
            begin = values.end[key]
            key = text_key(literals, a, values.place[0] + begin, values.end[key + 1] - begin)
        # Turn the key into a code or a label
        begin = codes.first[a]
        code = find_code(
            codes.bound, begin, hints.lowest[a], hints.highest[a], hints.first[a], hints.shift[a], hints.below, key
        )
        if len(codes.label) > 0 and code > 1:
            events.code[n] = codes.label[begin + code - 2]
        else:
            events.code[n] = code
        events.attr[n] = a
        n += 1
    events.first[0] = 0
    events.first[1] = n


@device
def text_key(literals, a, address, length):
    """Returns the key of a string among the literals of attribute ``a``."""
    place = literals.place
    low, high = literals.first[a], literals.first[a + 1]
    recent, recent_end = literals.recent[a], literals.recent[a + 1]
    if low == high and recent == recent_end:
        return np.int64(0)
    # Search the sorted literals, then the recent ones
    prefix = load_prefix(address, length)
    none = low - high - 1  # no hint; a variable, since label would be compiled again for a constant
    key = label(prefix, address, length, low, high, place[0], place[1], place[2], none)
    if place[3] == 0 and place[7] == 0:
        return key
    key = key_of(key, low, place[3])
    if recent < recent_end:
        other = label(prefix, address, length, recent, recent_end, place[4], place[5], place[6], none)
        key = max(key, key_of(other, recent, place[7]))
    return key


@brief
def find_in_event(
    values: Written[EventValues],
    count: int,
    data: U8,
    base: I64,
    texts: int,
    filters: Filters,
    programs: LikePrograms,
    attr_of: U32,
    hits: Written[TextHits],
    seen: Written[U64],
    seen_words: Written[U64],
    merged: Written[EventValues],
) -> int:
    """Adds the patterns that match an event's texts to its values.

    Returns the number of values in ``merged``; -1 if ``hits`` had too little room.

    Parameters
    ----------
    values, count : the event's values, in the order of their attributes
    data : uint8, the bytes of the texts, which ``values.end`` cuts
    base : (texts) int64, base of each text; -1 if it has no patterns
    attr_of : (P) uint32, number of a pattern in the results -> its attribute
    hits : has the patterns that regular expressions have found, and room for all that literals find
    seen : (attributes / 64) uint64, scratch, zeros before and after
    seen_words : (attributes / 64^2) uint64, the same: the words of ``seen`` that are not zero
    merged : the values and the patterns, in the order of their attributes
    """
    # Search each text for the patterns of its base
    state, none = hits.state, texts - texts  # a variable, since find would be compiled again for a constant
    for t in range(texts):
        if base[t] >= 0:
            fill = state[FILL]
            if find(values.end, data, t, t + 1, none, base[t], filters, hits) == t:
                return -1
            state[FILL] = verify(values.end, data, none, programs, fill, state[FILL], hits.value, hits.pattern)
    # Mark the attributes of the patterns
    for j in range(state[FILL]):
        a = np.uint64(attr_of[hits.pattern[j]])
        w = a >> np.uint64(6)
        seen[w] |= np.uint64(1) << (a & np.uint64(63))
        seen_words[w >> np.uint64(6)] |= np.uint64(1) << (w & np.uint64(63))
    # Merge them with the values
    i = n = 0
    for k in range(len(seen_words)):
        words = seen_words[k]
        seen_words[k] = 0
        while words != 0:
            w = np.uint64(k) * np.uint64(64) + ctz(words)
            words = without_lowest(words)
            word = seen[w]
            seen[w] = 0
            while word != 0:
                a = w * np.uint64(64) + ctz(word)
                word = without_lowest(word)
                while i < count and values.attr[i] < a:
                    merged.attr[n] = values.attr[i]
                    merged.value[n] = values.value[i]
                    i += 1
                    n += 1
                merged.attr[n] = a
                merged.value[n] = TRUE
                n += 1
    while i < count:
        merged.attr[n] = values.attr[i]
        merged.value[n] = values.value[i]
        i += 1
        n += 1
    return n
