"""The arrays that all kernels share.

A range is always ``first[i]:first[i + 1]``. ``row``, ``sub``, ``conj`` and ``attr`` are dense ids.
Values are *keys* (order-preserving int64, see ``colmatch/lowering/keys.py``) until they are
*coded*. The boundaries of all predicates on one attribute cut its key domain into elementary
intervals. A *code* is the number of the interval that a key lies in, from 1; 0 means that the event
has no value. Comparing codes is comparing keys as far as any stored predicate can tell, in half the
memory.

Example: ``age BETWEEN 22 AND 36`` and ``age > 30`` give the boundaries 22, 31, 37 and the codes::

    key    ... 21 | 22 ... 30 | 31 ... 36 | 37 ...        absent
    code        1 |     2     |     3     |  4               0

so the two predicates are the code ranges [2, 3] and [3, 4].

Growing segments have *labels* instead: codes with gaps. An inserted boundary finds a place between
its neighbours, and no stored predicate changes. Labels ascend as codes do. The code of a label is 1
plus the number of boundaries with labels up to it. Suppose that the boundaries above have the
labels 100, 200, 300. Then a value below 22 has 1, and a value of 22 to 30 has 100. The predicates
are [100, 299] and [200, ``LABEL_TOP``], which has no upper end. Neighbouring keys have neighbouring
labels (``labels/boundaries.py``). So a range of one label is a range of one key, or the interval
between two boundaries with no room left.

Single letters are numbers of the same things in all kernels. The folder decides between two
meanings::

    a  attribute                        n  count so far, and place of the next
    b  boundary; bit; block             p  predicate; text pattern
    c  conjunction                      q  a second p, or a second place
    d  digit; depth; a second c         r  row; run of slots; literal within its attribute
    e  entry of an event, or of a list  s  segment; slot; struct of Arrow; survivor
    f  leaf of a form                   t  token; node of a trie
    g  group                            v  value in the table of an event; distinct string
    h  place by a hash                  w  word of 64 bits, or the first place in one
    m  map; bounds so far               x  list within its attribute

    i, j, k  places in the range of a loop, in this order from the outside: postings, intervals
             and things that these refer to

``a`` and ``b`` are also two strings or words that are compared. Shapes are written with capitals: A
attributes; B boundaries; C conjunctions; D bytes of text; E entries; F leaves of a schema; G
groups; H cells of hints; J jumps of programs; K known keys; L literals; M maps; N rows; P
predicates (postings in an index, patterns of text); R intervals; S structs, segments or sets of
strings; T tokens of trees; V distinct strings.
"""

from typing import Annotated, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
I8 = NDArray[np.int8]
U32 = NDArray[np.uint32]
U16 = NDArray[np.uint16]
U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
F64 = NDArray[np.float64]
F32 = NDArray[np.float32]
Bools = NDArray[np.bool_]
# The dtype of each, since versions of numpy differ in the way that ``NDArray`` keeps it. In a
# NamedTuple, an array with columns is ``Annotated`` with their number.
DTYPES = {
    I64: np.dtype(np.int64),
    I32: np.dtype(np.int32),
    I8: np.dtype(np.int8),
    U32: np.dtype(np.uint32),
    U16: np.dtype(np.uint16),
    U8: np.dtype(np.uint8),
    U64: np.dtype(np.uint64),
    F64: np.dtype(np.float64),
    F32: np.dtype(np.float32),
    Bools: np.dtype(np.bool_),
}

T = TypeVar("T")
# Marks for the arguments of kernels (``_signatures.py``). An array is read-only unless it is
# ``Written``. In a NamedTuple that is written, the ``Fixed`` arrays are read-only.
Written = Annotated[T, "written"]
Fixed = Annotated[T, "fixed"]
Table = Annotated[T, "table"]  # an array with two dimensions

KEY_MIN = -(2**63)
KEY_MAX = 2**63 - 1
CODE_MAX = 2**32 - 1
ENTRIES_MOST = 2**31 - 1  # entries of a batch: their places are int32
LABEL_TOP = 2**32 - 2  # highest label; all are above 0

# The first word of a predicate: attribute id in the low bits, flags above.
ATTR_BITS = 29
ATTR_MASK = 2**ATTR_BITS - 1
FLAG_MULTI = 1 << 29  # the attribute may have several entries in one row (a list's elements)
FLAG_RUN = 1 << 30  # several intervals: words 1 and 2 are the range in run_lo / run_hi
FLAG_NONE = 1 << 31  # true when no entry of the attribute lies in the intervals (also when there is no entry at all)

# Jump targets that end a program.
ACCEPT = -1
REJECT = -2

# Kinds of scores, see ``Predicates.weight`` and ``kernels/scores.py``.
DOT = 0  # sum of predicates' weights times the event's weights of their attributes
SUM = 1  # sum of predicates' weights
MAX = 2  # largest product
PRIORITY = 3  # the subscription's own, for any event

# Columns of a predicate's weight: several conditions may have become one predicate.
ADDED, LARGEST = 0, 1
# The largest weight where there is none: the predicate is a further part of a condition, and
# another predicate has its weight. It is finite, since an event may give 0 to an attribute.
LOWEST = -1.7976931348623157e308

# Counters, the same in every kernel. A kernel adds to them and never resets them.
CONJUNCTIONS = 0  # conjunctions looked at
CANDIDATES = 1  # conjunctions that passed the kind's filter and were verified
PREDICATES = 2  # predicate evaluations during verification
NODES = 3  # nodes, postings or pages visited, as the kind defines
MATCHES = 4  # pairs of row and subscription, each once (the caller subtracts repeats), none of deleted ones
N_COUNTERS = 8


_NO_CODE_LABELS, _NO_LITERAL_LABELS = np.empty(0, np.uint32), np.empty(0, np.int64)
for _array in (_NO_CODE_LABELS, _NO_LITERAL_LABELS):
    _array.setflags(write=False)


class Predicates(NamedTuple):
    """All conjunctions of all subscriptions: C conjunctions, P predicates, R intervals of
    predicates that have several.

    A conjunction is true when all of its predicates are, unless ``jump_first`` gives it a program.
    A program begins at its first predicate and follows ``jump`` (always forward) to ACCEPT or
    REJECT. A plain conjunction is a program that is not written down. Each of its predicates goes
    on to the next when true, and rejects when false.
    """

    first: I64  # (C + 1) conjunction -> its predicates
    pred: Annotated[U32, 3]  # (P, 3) attribute and flags; lowest and highest code, or the range in run_lo / run_hi
    run_lo: U32  # (R) lowest code of an interval; intervals of one predicate ascend and do not touch
    run_hi: U32  # (R) highest code
    # (C) conjunction -> subscription, ascending until a kind of index reorders the conjunctions
    owner: U32
    # (P, 2) sum of the weights of the conditions that became the predicate, and the largest; (0, 2)
    # when none has a weight
    weight: Annotated[F64, 2]
    jump_first: I64  # (C), or (0) when there are no programs: conjunction -> first row of ``jump``, -1 for a plain one
    # (J, 2) for each predicate of a program the next one, as its index within the conjunction: when
    # true, when false; or ACCEPT, REJECT
    jump: Annotated[I32, 2]
    tree_first: I64  # (C + 1), or (0): conjunction -> tokens of ``tree``
    # (T) the program as a postfix expression. Predicate n is the token n >= 0. An AND of the last k
    # parts is -2k, an OR -2k - 1
    tree: I32
    priority: F64  # (C) of the conjunction's subscription, or (0) when none has one


class Codes(NamedTuple):
    """Key -> code, for A attributes and B boundaries."""

    first: I64  # (A + 1) attribute -> its boundaries
    bound: I64  # (B) key; strictly ascending within an attribute. code(key) = 1 + how many of them are <= key
    multi: U8  # (A) 1 where a row may have several entries
    # (0) when codes are dense; or (B + 1) label of the code that begins at each boundary. Code 1
    # has 1. The last label is LABEL_TOP, so that the array shows labels even without a boundary
    label: Fixed[U32] = _NO_CODE_LABELS


class Batch(NamedTuple):
    """The events of one batch by attribute: E entries.

    NULL has no entry. Rows ascend within an attribute.
    """

    rows: I64  # (1) number of rows
    col: I64  # (A + 1) attribute -> its entries
    row: I32  # (E)
    key: I64  # (E)


class Rows(NamedTuple):
    """The events of one batch by row, coded. Attributes ascend within a row."""

    first: I64  # (N + 1) row -> its entries
    attr: U32  # (E)
    code: U32  # (E) at least 1


class Literals(NamedTuple):
    """The sorted distinct string literals of each attribute (L in all).

    Literal number r within its attribute has the key 2r + 1, a value between literals r - 1 and r
    the key 2r.

    With labels, the key of literal r is its label. A value between literals r - 1 and r has the
    label of r - 1 plus one. A value before the first has 0.
    """

    first: I64  # (A + 1) attribute -> its literals
    offset: I64  # (L + 1) literal -> bytes of ``data``
    data: U8  # (D)
    label: I64 = _NO_LITERAL_LABELS  # (L) above 0, at least 2 apart; (0) when keys are numbers


class Sink(NamedTuple):
    """The output of a match kernel.

    The caller owns it, drains it, and makes it larger when not even one block of rows fits.
    """

    row: U32  # (capacity) row of each pair, in any order
    sub: U32  # (capacity) number of the subscription of each pair
    hits: I64  # (N) pairs of each row of the batch
    # (W) bits of the numbers of deleted subscriptions, to leave out their pairs; zeros beyond its
    # end
    deleted_bits: Fixed[U64]
    # (4) number of pairs written; COUNTS, PAIRS or ANY of ``kernels/sink.py``, for the results that
    # are wanted. Then the room that an unfinished block needs, 0 if unknown; and the number of the
    # index's first subscription
    state: I64


class EventWeights(NamedTuple):
    """The weights that the events of a batch give to attributes: E weights, at least 0.

    All other attributes weigh 1.
    """

    first: I64  # (N + 1) row -> its weights, or (0) when no event gives any
    attr: U32  # (E) each once in a row
    value: F64  # (E)


class Top(NamedTuple):
    """The best subscriptions so far of each row of a batch, at most k.

    The first entries of a row are a heap with its worst entry first: the lowest score, or the
    highest id among equal ones.
    """

    score: Table[F64]  # (N, k)
    number: Table[U32]  # (N, k) of the subscription
    fill: I64  # (N) how many there are
    id: Fixed[I64]  # (S) ids by number, or (0) where they are strings
    offset: Fixed[I64]  # (S + 1) id -> bytes of ``data``, or (0)
    data: Fixed[U8]  # (D)
    # (W) bits of the numbers of deleted subscriptions, which are left out; zeros beyond its end
    deleted_bits: Fixed[U64]
    # (3) number of the index's first subscription; kind of score, such as ``DOT``; 1 when a kernel
    # may find a subscription again
    state: I64
