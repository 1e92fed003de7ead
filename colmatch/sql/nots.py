"""The two places of NOT: before an operand, and behind a subject, as in ``a NOT IN (1)``.

sqlglot makes the same tree of ``NOT a IN (1)`` and ``a NOT IN (1)``. They differ where an absent
value makes a predicate false: the first is then true, and the second false. So the parser gets each
NOT before an operand twice: NOT NOT a IN (1), and a NOT IN (1). In the tree, an odd number of
nested NOTs then includes one from behind the subject. The classes of sqlglot for this, ``exp.Not``
and the argument ``negate`` of LIKE and ILIKE, do not change.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from colmatch.sql.literals import ENDS

T = TokenType

RANGES = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike)  # nodes that may have NOT behind their subject


def double_nots(tokens: list[Token]) -> list[Token]:
    """Returns tokens with each NOT before an operand twice."""
    out: list[Token] = []
    for token in tokens:
        if token.token_type is T.NOT and not (out and (out[-1].token_type in ENDS or out[-1].token_type is T.IS)):
            out.append(token)
        out.append(token)
    return out


def count_nots(node: exp.Expr, is_doubled: bool) -> tuple[int, bool, exp.Expr]:
    """Counts the NOTs directly around one another.

    Returns the number of NOTs before their operand, a Boolean, and the node within them all. The
    Boolean is True if a NOT is behind a subject or an IS.

    is_doubled : each NOT before an operand occurs twice
    """
    count = 0
    while type(node) is exp.Not:
        count += 1
        node = node.args["this"]
    return (count // 2, bool(count % 2), node) if is_doubled else (count, False, node)
