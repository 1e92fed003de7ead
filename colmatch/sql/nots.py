"""The two places of NOT: before an operand, and behind a subject, as in ``a NOT IN (1)``.

sqlglot makes the same tree of ``NOT a IN (1)`` and ``a NOT IN (1)``. Where an absent value makes a
predicate false, these differ: the first is true of it, the second is false. So the parser is given
each NOT before an operand twice: NOT NOT a IN (1), and a NOT IN (1). In the tree, an odd number of
nested NOTs then has one that stood behind the subject. sqlglot's own classes for this, ``exp.Not``
and the argument ``negate`` of LIKE and ILIKE, stay as they are.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from colmatch.sql.literals import ENDS

T = TokenType

RANGES = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike)  # nodes whose NOT may stand behind the subject


def doubled(tokens: list[Token]) -> list[Token]:
    """Returns tokens with each NOT before an operand twice."""
    found: list[Token] = []
    for token in tokens:
        if token.token_type is T.NOT and not (found and (found[-1].token_type in ENDS or found[-1].token_type is T.IS)):
            found.append(token)
        found.append(token)
    return found


def counted(node: exp.Expr, is_doubled: bool) -> tuple[int, bool, exp.Expr]:
    """Counts the NOTs that stand one around the other.

    Returns how many of them stand before their operand, whether one stands behind a subject or an
    IS, and the node within them all.

    is_doubled : those before an operand are there twice
    """
    count = 0
    while type(node) is exp.Not:
        count += 1
        node = node.args["this"]
    return (count // 2, bool(count % 2), node) if is_doubled else (count, False, node)
