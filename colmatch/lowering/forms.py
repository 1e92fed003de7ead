"""Forms are what the front ends hand to the lowering.

They are expressions whose attributes are resolved and whose structure is normal.

An expression text is split into its *form*, which is parsed and normalised once however many texts
share it, and its *literals*, which are carried in columns and turned into keys all at once
(``lower.py``). The text::

    age BETWEEN 22 AND 36 AND NOT (city = 'Nice')

has the literals ``22``, ``36`` and ``'Nice'`` in slots 0, 1, 2, and its form has one conjunction of
two leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from colmatch.given.special import unpacked
from colmatch.kernels.lowering import operators


class Op(IntEnum):
    """Operators on one attribute. Their negations are ``Test.outside`` and ``Leaf.none``."""

    EQ = operators.EQ
    LT = operators.LT
    LE = operators.LE
    GT = operators.GT
    GE = operators.GE
    BETWEEN = operators.BETWEEN  # two operands
    IN = operators.IN  # any number
    PRESENT = operators.PRESENT  # no operand: every key
    STARTSWITH = 8  # patterns: one operand, a string
    ENDSWITH = 9
    CONTAINS = 10
    LIKE = 11
    ILIKE = 12
    RLIKE = 13
    PREFIX = operators.PREFIX  # what a pattern may become: two operands, the prefix and its successor; in no form


PATTERNS = frozenset({Op.STARTSWITH, Op.ENDSWITH, Op.CONTAINS, Op.LIKE, Op.ILIKE, Op.RLIKE})


class Kind(IntEnum):
    """How a literal is written; with the attribute's type it decides how it becomes a key."""

    INT = 0  # 17
    DECIMAL = 1  # 1.5
    DOUBLE = 2  # 1.5e3, CAST('NaN' AS DOUBLE)
    STRING = 3  # 'x'
    BOOL = 4  # TRUE
    DATE = 5  # DATE '2013-01-31'
    TIMESTAMP = 6  # TIMESTAMP '2013-01-31 10:00:00', in the session's zone when it has none
    TIMESTAMP_NTZ = 7  # TIMESTAMP_NTZ '…'
    BINARY = 8  # X'1F'


def quoted(text: str) -> str:
    """Writes a string literal as Spark SQL reads it, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def arguments_text(function: str, data: bytes) -> str:
    """Writes the arguments of a special function, which are packed."""
    values = unpacked(function, data)
    return ", ".join([quoted(value) if isinstance(value, str) else repr(value) for value in values])


class Packing(NamedTuple):
    """Arguments of a special function in a text: kind of each, and whether a minus is before it."""

    function: str
    arguments: tuple[tuple[Kind, bool], ...]


class Operand(NamedTuple):
    """One literal, or a list of them: the one in ``slot``, or ``value`` itself.

    With a slot and a ``Packing`` for its value, it is the literal that arguments make which stand
    in the slot and behind it.

    Values are the literal's text without quotes, already unescaped, or a Python value of its kind
    (int, Decimal, float, str, bool, datetime.date, datetime.datetime, bytes).
    """

    kind: Kind
    slot: int = -1
    many: bool = False  # the slot holds a list of literals
    negative: bool = False  # a minus stood before it
    value: Any = None


class Test(NamedTuple):
    """The set of keys that ``op`` and its operands name, or with ``outside`` all other keys."""

    op: Op
    operands: tuple[Operand, ...] = ()
    outside: bool = False


# What a leaf weighs where that is not the literal of a slot.
NO_WEIGHT = -1
PART = -2  # it is only a further part of a predicate, whose weight other leaves have
BY_ATTRIBUTE = -3  # what the subscription gives to the attribute, or else to its column
BY_COLUMN = -4  # what it gives to the column: the predicate is about that, not about its size


class Leaf(NamedTuple):
    """True when the event has an entry of ``attr`` in the union of ``tests``.

    With ``none``, it is true when the event has no such entry.

    More than one test only where no pattern is among them. A pattern test is alone and never
    ``outside``.
    """

    attr: int
    tests: tuple[Test, ...]
    none: bool = False
    weight: int = NO_WEIGHT  # or the slot of a literal

    @property
    def scores(self) -> bool:
        """Returns whether it has the weight of a predicate."""
        return self.weight not in (NO_WEIGHT, PART)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Indexes of leaves.

    Without ``jumps``: all must be true. With: a program, see ``kernels.layout.Predicates``.
    """

    leaves: tuple[int, ...]
    jumps: tuple[tuple[int, int], ...] = ()  # one (on_true, on_false) for each of ``leaves``
    tree: tuple[int, ...] = ()  # the program as a postfix expression


@dataclass(frozen=True, slots=True)
class Form:
    """An expression without its literals: true when any conjunction is.

    None: never true. One without leaves: always true.
    """

    leaves: tuple[Leaf, ...]
    conjunctions: tuple[Conjunction, ...]
    slots: int = 0  # literals it expects
    packings: tuple[tuple[int, Packing], ...] = ()  # slots of arguments that are to be made one literal first
