"""The arrays of Propagation: distinct predicates, and the conjunctions behind them.

Each distinct predicate has a *bit*. An equality is found by its value in a hash table. Ranges are
in *groups* of similar width, ordered by lowest code, so the ranges that can contain a code are
neighbours. A negated predicate shares the bit of the predicate without its negation, and is true if
the bit is not set.

A conjunction is listed under its *access predicate*. The conjunctions of one access predicate are
in *slabs*, one for each number of remaining predicates::

    pool   next | columns | size | conjunctions ... |
           first remaining predicate of each ... | second ... | ...

Each column has ``size`` entries. The slabs of one access predicate form a linked list. So do the
slabs of conjunctions without access predicate, which are always checked.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import F64, I64, U8, U32, U64, Fixed

# A slab of ``pool``
NEXT, COLUMNS, SIZE = range(3)
HEADER = 3
PROGRAM = 2**32 - 1  # COLUMNS: the conjunctions are programs, which are evaluated
NEGATED = 2**31  # set in the word of a remaining predicate

# A row of ``group``
GROUP_NEXT, START, LENGTH, REACH = range(4)  # REACH: largest difference of highest and lowest code
GROUP_WORDS = 4

# ``state``
ALWAYS, PROGRAMS, SEVERAL = range(3)
STATE_WORDS = 3

HITS = 256  # slabs that are prefetched together
BLOCK = 1024  # conjunctions of a slab that are tested together


class PropagationIndex(NamedTuple):
    """D predicates, H slots, A attributes, G groups of E entries."""

    # (D, 3) bit -> predicate, without FLAG_MULTI and FLAG_NONE
    key: Annotated[U32, 3]
    # (H) hash table of the predicates: bit + 1, or 0. H is a power of two, at least twice the
    # number of predicates
    slot: U32
    slab: U32  # (D) first slab in the pool, 0 without conjunctions under it
    access: U64  # (words of D) bits of the access predicates
    group_of: U32  # (A) attribute -> its first group + 1, or 0
    # (G, 4) next group of the attribute + 1, or 0; first entry, number of entries; reach
    group: Annotated[U32, 4]
    entry_lo: U32  # (E) lowest code of an interval, ascending within a group
    entry_hi: U32  # (E) highest code
    entry_bit: U32  # (E) its predicate
    pool: U32  # slabs; the first word is unused
    multi: U8  # (A) 1 where a row may have several entries
    # (3) first slab of conjunctions without access predicate, or 0; 1 if there are programs; 1 if a
    # subscription may have several conjunctions
    state: I64


class Estimates(NamedTuple):
    """Estimates for the number of events that satisfy a predicate: A attributes, B boundaries."""

    present: F64  # (A) expected number of events that have the attribute
    codes: F64  # (A) number of its elementary intervals
    top: F64  # (A) highest code of its predicates
    # Values of a sample of events, as ``kernels/window.py`` reads them; (0) without a sample
    window: Fixed[I64]  # (W + 1)
    window_first: Fixed[I64]  # (A + 1)
    window_key: Fixed[I64]  # (W)
    code_first: Fixed[I64]  # this field and the next two are as in ``layout.Codes``
    bound: Fixed[I64]
    label: Fixed[U32]


class PropagationScratch(NamedTuple):
    bits: U64  # (words of D) the predicate bit vector, zero between rows
    touched: U32  # (words of D + 1) places of the words that are not zero
    hit: U32  # (HITS) first slabs of satisfied access predicates
    survivor: U32  # (BLOCK)
    table: U32  # (A) table of the event, zero between rows; used for programs only
