"""The arrays of Propagation: distinct predicates, and the conjunctions behind them.

Each distinct predicate has a *bit*. An equality is found by its value in a hash table; ranges stand
in *groups* of like width ordered by lowest code, so that those which can contain a code are
neighbours. A negated predicate shares the bit of what it negates and is true where that is not set.

A conjunction stands under its *access predicate*. The conjunctions of one access predicate stand in
*slabs*, one for each number of predicates that remain::

    pool   next | columns | size | conjunctions ... |
           first remaining predicate of each ... | second ... | ...

with ``size`` conjunctions in each column. The slabs of one predicate are a list; so
are those of conjunctions without access predicate, which are always checked.
"""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import F64, I64, U8, U32, U64, Fixed

# A slab of ``pool``
NEXT, COLUMNS, SIZE = range(3)
HEADER = 3
PROGRAM = 2**32 - 1  # COLUMNS: the conjunctions are programs, evaluated themselves
NEGATED = 2**31  # in the word of a remaining predicate

# A row of ``group``
GROUP_NEXT, START, LENGTH, REACH = range(4)  # REACH: the widest interval is so much higher than low
GROUP_WORDS = 4

# ``state``
ALWAYS, PROGRAMS, SEVERAL = range(3)
STATE_WORDS = 3

HITS = 256  # slabs that are on their way from memory together
BLOCK = 1024  # conjunctions of a slab that are looked at together


class PropagationIndex(NamedTuple):
    """D predicates, H slots, A attributes, G groups of E entries."""

    # (D, 3) bit -> predicate, without FLAG_MULTI and FLAG_NONE
    key: Annotated[U32, 3]
    # (H) hash table of the predicates: bit + 1, or 0. H is a power of two, at least twice as many
    # as are used
    slot: U32
    slab: U32  # (D) first slab in the pool, 0 if it is no access predicate
    access: U64  # (words of D) bits of those that have a slab
    group_of: U32  # (A) attribute -> its first group + 1, or 0
    # (G, 4) next group of the attribute + 1; first entry, number of entries; reach
    group: Annotated[U32, 4]
    entry_lo: U32  # (E) lowest code of an interval, ascending within a group
    entry_hi: U32  # (E) highest code
    entry_bit: U32  # (E) its predicate
    pool: U32  # slabs; the first word belongs to none
    multi: U8  # (A) attribute may have several entries in a row
    # (3) first slab of what is always checked, or 0; 1 when there are programs; 1 when a
    # subscription may have several conjunctions
    state: I64


class Estimates(NamedTuple):
    """What says how often a predicate is thought to hold, of A attributes and B boundaries."""

    present: F64  # (A) how many events are thought to have the attribute
    codes: F64  # (A) how many elementary intervals it has
    top: F64  # (A) highest code that a predicate has
    # Values of a sample of events, as ``kernels/window.py`` reads them; (0) without a sample
    window: Fixed[I64]  # (W + 1)
    window_first: Fixed[I64]  # (A + 1)
    window_key: Fixed[I64]  # (W)
    code_first: Fixed[I64]  # this and the next two as in ``layout.Codes``
    bound: Fixed[I64]
    label: Fixed[U32]


class PropagationScratch(NamedTuple):
    bits: U64  # (words of D) the predicate bit vector, zero between rows
    touched: U32  # (words of D + 1) words that are not zero
    hit: U32  # (HITS) first slabs of access predicates that hold
    survivor: U32  # (BLOCK)
    table: U32  # (A) zero between rows; of use to programs only
