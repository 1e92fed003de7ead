"""The arrays of a k-index, and its posting lists in them.

An entry belongs to a predicate of a conjunction and a piece of the attribute's domain. If the event
has a value in this piece, the predicate holds, or fails if the entry is negated. ``a NOT IN (1,
2)`` needs a value. It has a positive entry in the list of all values of ``a``, and negated entries
for 1 and for 2. A conjunction's negated entries come before its others, and reject it.

Conjunctions are *numbered* by size, so the entries of one size, a *segment*, are neighbours in each
list.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels.layout import F64, I32, I64, U8, U16, U32, U64

FANOUT_BITS = np.int64(2)  # 2**FANOUT_BITS pieces of one level make a piece of the next
NO_CLAUSE = 2**16 - 1
ONCE = 2**15  # flag of a clause: several entries of its negated predicate count as one
FREE = 2**30  # a counter that never becomes 0


class KIndex(NamedTuple):
    """The lists of k-index; numbers in them stand for conjunctions.

    Conjunctions without clauses come first, by size K, then conjunctions with clauses, by K. A
    *part* has the conjunctions of one K. The segments of a list ascend by part.

    Lists exist up to three times (``planes``). The first plane is for conjunctions without clauses,
    the second for conjunctions with clauses. The third has the second and later entries of a
    conjunction with clauses for the same piece. The last list of a plane is Z: all numbers of
    K = 0.
    """

    # (A + 1) attribute -> its levels, the elementary intervals first. The last of several levels is
    # one list, of all values
    level_first: I64
    level_list: I64  # (levels) first list of the level
    raw: I64  # (codes + A + 1), or (0): code -> its first list, if every value has its own list
    raw_first: I64  # (A + 1), or (0): attribute -> place of its code 1 in ``raw``
    planes: I64  # (2) number of planes, lists in a plane
    list_first: U32  # (planes * lists + 1) list -> segments
    segment_part: U32  # (segments)
    segment_first: U32  # (segments + 1) segment -> entries
    entry: U32  # (entries) 2 * number + 1, or 2 * number for a negated predicate
    # (entries of conjunctions with clauses, the last ones) clause of each, perhaps with ONCE;
    # NO_CLAUSE in Z
    clause: U16
    part_size: U32  # (parts) K
    with_clauses: I64  # (2) first part and first number of conjunctions with clauses
    clause_first: I64  # (numbers with clauses + 1) -> clause_true
    # (clauses) 2 for each negated predicate, 1 for a negated predicate of entries with ONCE; FREE:
    # true as far as lists can decide
    clause_true: I32
    unsure: U8  # (numbers with clauses) 1 where the lists give a necessary condition only
    conj: U32  # (numbers) number -> conjunction
    multi: U8  # (A) attribute may have several entries in a row
    skipping: U8  # (1) 0: entries are passed one by one, to measure the gain of skipping
    repeats: U8  # (1) 1 if a subscription may have several conjunctions
    # Bounds of scores, at least 0, for events that give no weights. All are (0) if subscriptions
    # have neither weights nor priorities; ``segment_weight`` and ``part_rest`` also without weights
    bound: F64  # (numbers) largest score of each, descending within a part
    part_first: I64  # (parts + 1) part -> numbers
    # (segments) most that its predicates add to the score of one conjunction
    segment_weight: F64
    # (parts) most that predicates without a positive entry add to the score of a conjunction
    part_rest: F64


class DomainLists(NamedTuple):
    """The lists into which the values of each of A attributes are cut."""

    top: I64  # (A) highest code
    tree: U8  # (A) 1 where intervals are gathered into pieces
    level_first: I64  # this and the next three: see ``KIndex``
    level_list: I64
    raw: I64
    raw_first: I64
    lists: int  # in one plane, with Z


class Numbering(NamedTuple):
    """The numbering of C conjunctions with P predicates."""

    conj: U32  # (numbers) number -> conjunction
    begin: int  # first number of a conjunction with clauses
    size: U32  # (C) K
    clause: U16  # (P) clause of a predicate; NO_CLAUSE if it has none


class KIndexScratch(NamedTuple):
    table: U32  # (A) zero between calls
    seen: U8  # (lists of a plane), or (0) where no attribute has several entries: zero between calls
    low: I64  # (lists of an event) first segment of each
    next: I64  # (lists of an event) one past the next segment: parts descend
    whose: U32  # (lists of an event) number of the event's value that has the list; ascending
    at: U64  # (lists of an event) place of the current entry
    end: U64  # (lists of an event)
    heap: U64  # (lists of an event) current entry and number of the list
    front: U64  # (largest K + 1)
    # (most clauses of a conjunction) as ``clause_true``, for the predicates that are true; 0: the
    # clause is false
    counter: I32
    waiting: U32  # (unsure conjunctions)
    # (lists of an event) segment in the low half, number of the event's value in the high half
    opened: U64
    value: F64  # (lists of an event) most that each can add to a score
    largest: F64  # (largest K + 1) ascending
