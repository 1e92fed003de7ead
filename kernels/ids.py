"""Places of ids by hashing: which subscription has an id.

Ids are numbers or strings. Numbers are ``number`` (N), with ``offset`` and ``data`` empty; strings
are ``data[offset[i]:offset[i + 1]]``, with ``number`` empty.

A table has room for more ids than it was made for, and several look-ups share it: each knows as
many of its ids as it has in its own arrays. An id has one slot, the first that was free from where
its hash says:

slot : uint32 (S), 0 where it is free. The bits of ``mask`` are 1 + the last place with the id, the
    others are bits of its hash, so that hardly any other id is read
earlier : uint32, for each place from ``base`` on that there is room for: what the bits of ``mask``
    were in its id's slot before; 0 if there was none

Slots change while others read them. A look-up that knows n ids and meets a place from n on does not
read that id: it goes back by ``earlier`` to a place that it knows. So an id that is exchanged over
and over has one slot still. Without ``earlier`` it would need one for each of its places, and all
would be gone through for each new one.
"""

import numpy as np

from colmatch.kernels._jit import brief, device, kernel
from colmatch.kernels.bits import ask_for, mix, writes_before
from colmatch.kernels.layout import I32, I64, U8, U32, Written

FREE = 0
LOW = 2**32 - 1
BLOCK = 32  # ids that are taken together, so that memory is waited for once


@device
def id_at(number, offset, i):
    """Returns the number of an id, and where its string begins and ends; 0 for what it has not."""
    if len(number) > 0:
        return number[i], np.int64(0), np.int64(0)
    return np.int64(0), np.int64(offset[i]), np.int64(offset[i + 1])


@device
def word_at(data, at):
    """8 bytes from ``data[at]`` on as a number: one load, once it is compiled."""
    at = np.uint64(at)
    word = np.int64(data[at])
    for k in range(1, 8):
        word |= np.int64(data[at + np.uint64(k)]) << (8 * k)
    return word


@device
def hash_id(wanted, text, start, end):
    """Returns the hash of an id: of the number ``wanted``, or of the string
    ``text[start:end]``.

    Each word goes through ``mix`` twice at least: after once, the multiples of some number would
    have hashes next to each other.
    """
    h = mix(wanted, end - start)
    at = start
    while at + 8 <= end:
        h = mix(word_at(text, at), h)
        at += 8
    if at < end:
        word = np.int64(0)
        if end - start >= 8:
            word = word_at(text, end - 8)  # overlaps the one before
        else:
            for k in range(at, end):
                word = word << 8 | np.int64(text[k])
        h = mix(word, h)
    return mix(h, 0)


@kernel
def hash_texts(offset: I32, data: U8, hash: Written[I64]) -> None:
    """Writes ``hash_id`` of strings. Files of pages have these, so they stay what they are."""
    for i in range(len(hash)):
        hash[i] = hash_id(np.int64(0), data, np.int64(offset[i]), np.int64(offset[i + 1]))


@device
def is_at(number, offset, data, place, wanted, text, start, end):
    """Returns whether an id, as ``hash_id`` takes it, is the one at ``place``."""
    if len(number) > 0:
        return number[place] == wanted
    begin = np.int64(offset[place])
    size = end - start
    if np.int64(offset[place + 1]) - begin != size:
        return False
    k = np.int64(0)
    while k + 8 <= size:
        if word_at(data, begin + k) != word_at(text, start + k):
            return False
        k += 8
    while k < size:
        if data[begin + k] != text[start + k]:
            return False
        k += 1
    return True


@device
def first_slot(slot, h):
    """Returns where the search for a hash begins: its upper bits as a share of all slots."""
    return (h >> 33 & 2**31 - 1) * len(slot) >> 31


@device
def slot_like(slot, s, h, others):
    """Returns the first slot from ``s`` on with the bits ``others`` of a hash.

    It is -1 if a free one comes before it.
    """
    word = np.int64(slot[s])
    while word != FREE:
        if (word ^ h) & others == 0:
            return s
        s = s + 1 if s + 1 < len(slot) else 0
        word = np.int64(slot[s])
    return -1


@device
def place_of(number, offset, data, slot, earlier, base, mask, wanted, text, start, end):
    """Place of an id, as ``hash_id`` takes it; -1 where it is not there."""
    known = max(len(number), len(offset) - 1)
    h = hash_id(wanted, text, start, end)
    s = slot_like(slot, first_slot(slot, h), h, LOW ^ mask)
    while s >= 0:
        after = np.int64(slot[s]) & mask
        while after > known:
            after = np.int64(earlier[after - 1 - base])
        if after > 0 and is_at(number, offset, data, after - 1, wanted, text, start, end):
            return after - 1
        s = slot_like(slot, s + 1 if s + 1 < len(slot) else 0, h, LOW ^ mask)
    return -1


@kernel
def find(
    number: I64,
    offset: I32,
    data: U8,
    slot: U32,
    earlier: U32,
    base: int,
    mask: int,
    wanted: I64,
    wanted_offset: I32,
    wanted_data: U8,
    place: Written[I64],
) -> None:
    """Places of all wanted ids, into ``place``; -1 where one is not there.

    It asks for the memory that a block of ids is compared with before it compares the first:
    100,000 among a million strings of 20 bytes take 11 ms, in blocks of one 50.
    """
    known = max(len(number), len(offset) - 1)
    for begin in range(0, len(place), BLOCK):
        stop = min(begin + BLOCK, len(place))
        for i in range(begin, stop):
            one, start, end = id_at(wanted, wanted_offset, i)
            h = hash_id(one, wanted_data, start, end)
            place[i] = h
            ask_for(slot, np.uint64(first_slot(slot, h)))
        for i in range(begin, stop):
            h = place[i]
            s = slot_like(slot, first_slot(slot, h), h, LOW ^ mask)
            place[i] = -1
            if s >= 0:
                place[i] = (np.int64(slot[s]) & mask) - 1
                if len(number) > 0:
                    ask_for(number, np.uint64(place[i]))
                else:
                    ask_for(offset, np.uint64(place[i]))
        for i in range(begin, stop):
            if 0 <= place[i] < len(offset) - 1:
                ask_for(data, np.uint64(offset[place[i]]))
        for i in range(begin, stop):
            p = place[i]
            if p < 0:
                continue
            one, start, end = id_at(wanted, wanted_offset, i)
            if p >= known or not is_at(number, offset, data, p, one, wanted_data, start, end):
                place[i] = place_of(number, offset, data, slot, earlier, base, mask, one, wanted_data, start, end)


@brief
def find_one(
    number: I64, offset: I32, data: U8, slot: U32, earlier: U32, base: int, mask: int, wanted: int, text: U8
) -> int:
    """Place of the number ``wanted``, or of the string ``text``; -1 where it is not there."""
    return place_of(number, offset, data, slot, earlier, base, mask, wanted, text, 0, len(text))


def _enter(
    number: I64,
    offset: I32,
    data: U8,
    first: int,
    base: int,
    mask: int,
    hashes: Written[I64],
    slot: Written[U32],
    earlier: Written[U32],
) -> None:
    """Writes the ids from ``first`` on into a table that has those before them, and room.

    Others may search it meanwhile. A million int64 take 30 ms, in blocks of one 110.

    hashes : int64 (BLOCK), scratch
    """
    known = max(len(number), len(offset) - 1)
    for begin in range(first, known, BLOCK):
        stop = min(begin + BLOCK, known)
        for i in range(begin, stop):
            one, start, end = id_at(number, offset, i)
            h = hash_id(one, data, start, end)
            hashes[i - begin] = h
            ask_for(slot, np.uint64(first_slot(slot, h)))
        for i in range(begin, stop):
            one, start, end = id_at(number, offset, i)
            h = hashes[i - begin]
            s = first_slot(slot, h)
            word = np.int64(slot[s])
            while word != FREE:
                like = (word ^ h) & (LOW ^ mask) == 0
                if like and is_at(number, offset, data, (word & mask) - 1, one, data, start, end):
                    break
                s = s + 1 if s + 1 < len(slot) else 0
                word = np.int64(slot[s])
            if i >= base:
                earlier[i - base] = word & mask
                writes_before()
            slot[s] = h & (LOW ^ mask) | i + 1


enter, enter_few = kernel(_enter), brief(_enter)
