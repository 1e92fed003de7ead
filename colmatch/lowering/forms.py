"""Forms: the expressions that the front ends hand to the lowering.

Their attributes are resolved and their structure is normal.

An expression text is split into its *form* and its *literals*. The form is parsed and normalised
once, for all texts that share it. The literals are carried in columns and turned into keys all at
once (``lower.py``). The text::

    age BETWEEN 22 AND 36 AND NOT (city = 'Nice')

has the literals ``22``, ``36`` and ``'Nice'`` in slots 0, 1, 2. Its form has one conjunction of two
leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from colmatch.given.schema import Type
from colmatch.given.special import unpack
from colmatch.kernels.lowering import operators


class Op(IntEnum):
    """Operators on one attribute. Their negations are ``KeyTest.outside`` and ``Leaf.none``."""

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
    PREFIX = operators.PREFIX  # made of some patterns: two operands, the prefix and its successor; in no form


PATTERNS = frozenset({Op.STARTSWITH, Op.ENDSWITH, Op.CONTAINS, Op.LIKE, Op.ILIKE, Op.RLIKE})


class Kind(IntEnum):
    """The notation of a literal; with the attribute's type it decides how the literal becomes a
    key.
    """

    INT = 0  # 17
    DECIMAL = 1  # 1.5
    DOUBLE = 2  # 1.5e3, CAST('NaN' AS DOUBLE)
    STRING = 3  # 'x'
    BOOL = 4  # TRUE
    DATE = 5  # DATE '2013-01-31'
    TIMESTAMP = 6  # TIMESTAMP '2013-01-31 10:00:00', in the session's zone when it has none
    TIMESTAMP_NTZ = 7  # TIMESTAMP_NTZ '…'
    BINARY = 8  # X'1F'


def quote_text(text: str) -> str:
    """Writes a string literal as Spark SQL reads it, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def arguments_text(function: str, data: bytes) -> str:
    """Writes the packed arguments of a special function."""
    values = unpack(function, data)
    return ", ".join([quote_text(value) if isinstance(value, str) else repr(value) for value in values])


class Packing(NamedTuple):
    """Arguments of a special function in a text: the kind of each, and whether a minus is before
    it.
    """

    function: str
    arguments: tuple[tuple[Kind, bool], ...]


class Operand(NamedTuple):
    """One literal, or a list of literals: from ``slot``, or ``value`` itself.

    If it has a slot and a ``Packing`` as its value, the arguments in the slot and behind it are
    packed into one literal. So are the literals of an ``ElementPacking``, wherever they are.

    A value is the literal's text without quotes, already unescaped, or a Python value of its kind
    (int, Decimal, float, str, bool, datetime.date, datetime.datetime, bytes).
    """

    kind: Kind
    slot: int = -1
    many: bool = False  # the slot holds a list of literals
    negative: bool = False  # it follows a minus
    value: Any = None


class ElementPacking(NamedTuple):
    """A condition on elements of lists in a text: its parts around literals, and these.

    The parts and the literals make one literal, of the form in ``given/elements.py``.
    """

    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    checks: tuple[tuple[Type, Op, Operand], ...]  # literals that may be no values of a type
    least: int  # number of elements; 0 for one, as exists has it
    maybe: bool  # whether elements count where the condition is Unknown


class KeyTest(NamedTuple):
    """The set of keys that ``op`` and its operands name, or with ``outside`` all other keys."""

    op: Op
    operands: tuple[Operand, ...] = ()
    outside: bool = False


# Weights of leaves other than the literal of a slot.
NO_WEIGHT = -1
PART = -2  # a further part of a predicate: another leaf has the weight
BY_ATTRIBUTE = -3  # the weight that the subscription gives to the attribute, or else to its column
BY_COLUMN = -4  # the weight that it gives to the column: the predicate is about that, not about its size


class Leaf(NamedTuple):
    """A condition: the event has an entry of ``attr`` in the union of ``tests``.

    With ``none``, the event must have no such entry.

    A pattern test is the only test of its leaf, and is never ``outside``.
    """

    attr: int
    tests: tuple[KeyTest, ...]
    none: bool = False
    weight: int = NO_WEIGHT  # or the slot of a literal

    @property
    def scores(self) -> bool:
        """Returns whether the leaf has the weight of a predicate."""
        return self.weight not in (NO_WEIGHT, PART)


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Indexes of leaves.

    Without ``jumps``, all leaves must be true. With them, it is a program, see
    ``kernels.layout.Predicates``.
    """

    leaves: tuple[int, ...]
    jumps: tuple[tuple[int, int], ...] = ()  # one (on_true, on_false) for each of ``leaves``
    tree: tuple[int, ...] = ()  # the program as a postfix expression


@dataclass(frozen=True, slots=True)
class Form:
    """An expression without its literals: true when any conjunction is.

    Without conjunctions it is never true. A conjunction without leaves is always true.
    """

    leaves: tuple[Leaf, ...]
    conjunctions: tuple[Conjunction, ...]
    slots: int = 0  # number of literals that it needs
    packings: tuple[tuple[int, Packing | ElementPacking], ...] = ()  # slots to be packed into one literal first
