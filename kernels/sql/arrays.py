"""What is known of phrases, and what texts are cut into."""

from typing import Annotated, NamedTuple

from colmatch.kernels.layout import I32, I64, U8

# What stands for a literal in a shape, as are these and ESCAPED. A text with such a byte is unsure.
STRING, QUOTED, INT, DECIMAL, DOUBLE, STRINGS, INTS, DECIMALS = range(1, 9)
ESCAPED = 16  # is added to the class of a literal that has a backslash, or a quote written twice

# Tokens that are no phrase.
AND, OR, NOT, OPEN, CLOSE = -1, -2, -3, -4, -5
# A parenthesis behind which IS TRUE and the like stands.
OPEN_TRUE, OPEN_FALSE, OPEN_NOT_TRUE, OPEN_NOT_FALSE = -6, -7, -8, -9

# Classes of bytes.
PLAIN, SPACE, LETTER, DIGIT, DOT, REFUSED = range(6)

# Why a text is left to the reader in Python; 0 is none.
UNSURE = 1


class Phrases(NamedTuple):
    """P shapes of phrases, and a table that finds them; there is room for more."""

    slot: I32  # (power of two) phrase, or -1
    first: I64  # (P + 1) phrase -> its shape
    shape: U8  # bytes, marks in place of literals
    literals: I32  # (P) marks in it
    baked: I64  # (P) bits of literals that are a part of what is computed, and so distinguish phrases
    begin: I64  # (P) the phrase that it was first found in, in the texts of then
    end: I64  # (P)
    literal: I64  # (P) the first literal of that phrase, among those of then


class Cut(NamedTuple):
    """N texts cut into T tokens and L literals; there is room for more."""

    first: I64  # (N + 1) text -> tokens
    token: I32  # (T) a phrase, or one of the words and parentheses above
    literal_first: I64  # (N + 1) text -> literals
    begin: I64  # (L) a literal's bytes, without quotes; a list's with its parentheses
    end: I64  # (L)
    mark: U8  # (L) its class, and ESCAPED
    depth: I64  # (N) how deep the text may nest, above its phrases
    unsure: U8  # (N)


class Meanings(NamedTuple):
    """What P phrases mean: for each four formulas over leaves, one for each mode of
    ``expr/modes.py``.
    """

    usable: U8  # (P) 0: texts with it are left to the reader in Python
    depth: I64  # (P) how deep it nests
    slots: I64  # (P) literals in it, those included that are a part of its shape
    first: I64  # (4 P + 1) phrase * 4 + mode -> its formula
    formula: I32  # postfix: a leaf, or ``-(count << 1 | kind) - 4``, or ALWAYS, NEVER
    leaf_attr: I64  # (F) attribute of a leaf
    leaf_none: U8  # (F)
    leaf_merges: U8  # (F) leaves of its attribute may be merged with it
    leaf_first: I64  # (F + 1) leaf -> tests
    most_tests: I64  # (1) of any leaf


ALWAYS, NEVER = -2, -3
EVERY, EITHER = 0, 1  # kinds of groups


class Made(NamedTuple):
    """Leaves, tests and conjunctions of texts, the rows of ``Cut``; there is room for more."""

    leaf: I32  # (leaves) leaf of ``Meanings`` that gives attribute and sense
    leaf_text: I64  # (leaves) text
    test: I32  # (tests) test of ``Meanings``
    test_leaf: I64  # (tests) leaf, a place above
    test_base: I64  # (tests) first literal of the phrase that it is from
    test_slot: I64  # (tests) literals of the text before that phrase, ``Meanings.slots``
    owner: I64  # (conjunctions) text
    size: I64  # (conjunctions) leaves
    ref: I64  # leaves of all conjunctions, one after the other
    program: I64  # (programs) conjunction
    tokens: I64  # (programs) tokens of its tree
    jump: Annotated[I32, 2]  # (J, 2) for each leaf of all programs where to go on, see ``layout.Predicates``
    tree: I32  # (T) tokens of all programs
