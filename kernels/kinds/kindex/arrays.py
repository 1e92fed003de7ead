"""The arrays of a k-index, and how posting lists lie in them.

An entry says that a predicate of a conjunction holds, or for a negated one that it fails, where the
event has a value in some piece of the attribute's domain. ``a NOT IN (1, 2)``, which needs a value,
has a positive entry in the list that all values of ``a`` have, and a negated one for 1 and for 2. A
conjunction's negated entries come before its others, and reject it.

Conjunctions are *numbered* by size, so the entries of one size, a *segment*, are neighbours in each
list.
"""

from typing import NamedTuple

import numpy as np

from colmatch.kernels.layout import F64, I32, I64, U8, U16, U32, U64

FANOUT_BITS = np.int64(2)  # a piece of the domain is cut into so many bits' worth of pieces on the next level
NO_CLAUSE = 2**16 - 1
ONCE = 2**15  # with the number of a clause: several entries of its negated predicate are no more than one
FREE = 2**30  # a counter that never becomes 0


class KIndex(NamedTuple):
    """The lists of k-index; numbers in them stand for conjunctions.

    First come those without clauses by size K, then those with clauses by K; a *part* are those of
    one K.

    The segments of a list ascend by part.

    Lists exist up to three times (``planes``): for conjunctions without clauses, for those with,
    and for the second and later entries that one of these has for the same piece. The last list of
    a plane is Z: all numbers of K = 0.
    """

    # (A + 1) attribute -> its levels, the elementary intervals first; the last of several is one
    # list, of all values
    level_first: I64
    level_list: I64  # (levels) first list of the level
    raw: I64  # (codes + A + 1), or (0): code -> its first list, where every value has its own
    raw_first: I64  # (A + 1), or (0): attribute -> place of its code 1 in ``raw``
    planes: I64  # (2) number of planes, lists in a plane
    list_first: U32  # (planes * lists + 1) list -> segments
    segment_part: U32  # (segments)
    segment_first: U32  # (segments + 1) segment -> entries
    entry: U32  # (entries) 2 * number + 1, or 2 * number for a negated predicate
    # (entries of conjunctions with clauses, which are the last) clause of each, maybe with ONCE;
    # NO_CLAUSE in Z
    clause: U16
    part_size: U32  # (parts) K
    with_clauses: I64  # (2) first part, first number of conjunctions with clauses
    clause_first: I64  # (numbers with clauses + 1) -> clause_true
    # (clauses) 2 for each negated predicate, 1 for that of the entries with ONCE; FREE: true as far
    # as lists can tell
    clause_true: I32
    unsure: U8  # (numbers with clauses) 1 where the lists give a necessary condition only
    conj: U32  # (numbers) number -> conjunction
    multi: U8  # (A) attribute may have several entries in a row
    skipping: U8  # (1) 0: entries are passed one by one, to see what skipping saves
    repeats: U8  # (1) a subscription may have several conjunctions
    # Bounds of scores, at least 0, for events that give no weights. All are (0) where subscriptions
    # have neither weights nor priorities, ``segment_weight`` and ``part_rest`` without weights.
    bound: F64  # (numbers) largest score of each, falling within a part
    part_first: I64  # (parts + 1) part -> numbers
    # (segments) what its predicates add to the score of one conjunction, at most
    segment_weight: F64
    # (parts) what predicates without a positive entry add to the score of a conjunction, at most
    part_rest: F64


class Domains(NamedTuple):
    """How the values of each of A attributes are cut into lists."""

    top: I64  # (A) highest code
    tree: U8  # (A) 1 where intervals are gathered into pieces
    level_first: I64  # this and what follows: as ``KIndex`` has it
    level_list: I64
    raw: I64
    raw_first: I64
    lists: int  # in one plane, with Z


class Numbering(NamedTuple):
    """How C conjunctions of P predicates are numbered."""

    conj: U32  # (numbers) number -> conjunction
    begin: int  # first number of a conjunction with clauses
    size: U32  # (C) K
    clause: U16  # (P) clause of a predicate; NO_CLAUSE if it has none


class KIndexScratch(NamedTuple):
    table: U32  # (A) zero between calls
    seen: U8  # (lists of a plane), or (0) where no attribute has several entries: zero between calls
    low: I64  # (lists of an event) first segment of each
    next: I64  # (lists of an event) behind the segment that is next: parts descend
    whose: U32  # (lists of an event) which of the event's values has the list; ascending
    at: U64  # (lists of an event) place of the current entry
    end: U64  # (lists of an event)
    heap: U64  # (lists of an event) current entry and number of the list
    front: U64  # (largest K + 1)
    # (most clauses of a conjunction) as ``clause_true``, of the predicates that are true; 0: the
    # clause is false
    counter: I32
    waiting: U32  # (unsure conjunctions)
    # (lists of an event) segment, and above it which of the event's values has its list
    opened: U64
    value: F64  # (lists of an event) what each can add to a score
    largest: F64  # (largest K + 1) ascending
