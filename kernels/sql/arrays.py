"""Phrases and their meanings, and the parts that texts are cut into."""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import I32, I64, U8

# Classes of literals, and their marks in a shape. A text with such a byte, or one of these and
# ESCAPED, is unsure.
STRING, QUOTED, INT, DECIMAL, DOUBLE, STRINGS, INTS, DECIMALS = range(1, 9)
ESCAPED = 16  # added to the class of a literal with a backslash, or with a quote written twice

# Tokens that are no phrases.
AND, OR, NOT, OPEN, CLOSE = -1, -2, -3, -4, -5
# Parentheses that IS TRUE and the like follow.
OPEN_TRUE, OPEN_FALSE, OPEN_NOT_TRUE, OPEN_NOT_FALSE = -6, -7, -8, -9

# Classes of bytes.
PLAIN, SPACE, LETTER, DIGIT, DOT, REFUSED = range(6)

# Reasons to leave a text to the reader in Python; 0 is none.
UNSURE = 1


class Phrases(NamedTuple):
    """P shapes of phrases, and a table that finds them; there is room for more."""

    slot: I32  # (power of two) phrase, or -1
    first: I64  # (P + 1) phrase -> its shape
    shape: U8  # bytes, marks in place of literals
    literals: I32  # (P) marks in it
    baked: I64  # (P) bits of literals that are part of a computed value, and so distinguish phrases
    begin: I64  # (P) start of the place where it was first found, in the texts of that time
    end: I64  # (P) end of that place
    literal: I64  # (P) first literal of that place, among the literals of that time


class TokenTable(NamedTuple):
    """N texts cut into T tokens and L literals; there is room for more."""

    first: I64  # (N + 1) text -> tokens
    token: I32  # (T) a phrase, or one of the words and parentheses above
    literal_first: I64  # (N + 1) text -> literals
    begin: I64  # (L) a literal's bytes, without quotes; a list's with its parentheses
    end: I64  # (L)
    mark: U8  # (L) its class, and ESCAPED
    depth: I64  # (N) nesting depth of the text above its phrases, at most
    unsure: U8  # (N)


class Meanings(NamedTuple):
    """The meanings of P phrases: four formulas over leaves for each, one for each mode of
    ``expr/modes.py``.
    """

    usable: U8  # (P) 0: texts with it are left to the reader in Python
    depth: I64  # (P) its nesting depth
    slots: I64  # (P) literals in it, including those that are part of its shape
    first: I64  # (4 P + 1) phrase * 4 + mode -> its formula
    formula: I32  # postfix: a leaf, or ``-(count << 1 | kind) - 4``, or ALWAYS, NEVER
    leaf_attr: I64  # (F) attribute of a leaf
    leaf_none: U8  # (F)
    leaf_merges: U8  # (F) whether leaves of its attribute may be merged with it
    leaf_first: I64  # (F + 1) leaf -> tests
    most_tests: I64  # (1) most tests of any leaf


ALWAYS, NEVER = -2, -3
EVERY, EITHER = 0, 1  # kinds of groups


class LoweredTexts(NamedTuple):
    """Leaves, tests and conjunctions of texts, the rows of ``TokenTable``. It has spare room."""

    leaf: I32  # (leaves) leaf of ``Meanings`` that gives attribute and sense
    leaf_text: I64  # (leaves) text
    test: I32  # (tests) test of ``Meanings``
    test_leaf: I64  # (tests) its leaf, a place in ``leaf``
    test_base: I64  # (tests) first literal of the phrase that it is from
    test_slot: I64  # (tests) literals of the text before that phrase, ``Meanings.slots``
    owner: I64  # (conjunctions) text
    size: I64  # (conjunctions) leaves
    ref: I64  # leaves of all conjunctions, one after the other
    program: I64  # (programs) conjunction
    tokens: I64  # (programs) tokens of its tree
    jump: Annotated[I32, 2]  # (J, 2) for each leaf of all programs the next ones, see ``layout.Predicates``
    tree: I32  # (T) tokens of all programs
