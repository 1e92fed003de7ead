"""Nodes of other dialects, expressed by nodes of the language.

Tuples are compared as Spark compares structs: NULL is a value there, so the comparison is true or
false, and never NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from sqlglot import exp

from colmatch.expr.ast import Refusal
from colmatch.expr.computed import PREFIX
from colmatch.sql.checks import strip_parentheses

Begin = Callable[[exp.Expr], int]

_SAME = (exp.EQ, exp.NullSafeEQ)
_OTHER = (exp.NEQ, exp.NullSafeNEQ)


def express(node: exp.Expr, begin: Begin) -> exp.Expr | None:
    """Returns a node of the language for one of another dialect; None for any other node.

    - ``(a, b) = (1, 'x')`` becomes ``a <=> 1 AND b <=> 'x'``; IN is an OR of these
    - ``a = ANY(array(1, 2))`` becomes ``a IN (1, 2)``, and ``a <> ALL`` its negation
    - ``'x' IN tags`` becomes ``array_contains(tags, 'x')``
    - ``array_contains(array(1, 2), a)`` becomes ``a IN (1, 2)``
    - ``tags @> array('x')`` becomes ``contains_all(tags, 'x')``
    - ``a << 1`` becomes ``shiftleft(a, 1)``

    begin : returns the offset of a node's text

    Raises Refusal: the node has no meaning in the language.
    """
    change = _CHANGES.get(type(node))
    return None if change is None else change(node, begin)


# Tuples


def _pairs(left: exp.Expr, right: exp.Expr, begin: Begin) -> exp.Expr:
    """Compares two tuples for equality."""
    ones, others = (list(side.args["expressions"]) if type(side) is exp.Tuple else [] for side in (left, right))
    if not ones or len(ones) != len(others):
        example = "(country, city) IN (('FR', 'Nice'), ('DE', 'Berlin'))"
        raise Refusal(f"tuples of one length are compared with each other, as in {example}", begin(left))
    for part in (*ones, *others):
        if type(strip_parentheses(part)) is exp.Null:
            raise Refusal(
                "a tuple with NULL has no type: write (a = 1 AND b IS NULL) for (a, b) = (1, NULL)", begin(left)
            )
    parts: list[exp.Expr] = [
        exp.NullSafeEQ(this=one, expression=other) for one, other in zip(ones, others, strict=True)
    ]
    return reduce(lambda one, other: exp.And(this=one, expression=other), parts)


def _in(node: exp.Expr, begin: Begin) -> exp.Expr | None:
    args = node.args
    of, members = strip_parentheses(args["this"]), args.get("expressions")
    if type(of) is exp.Tuple and members:
        pairs = [_pairs(of, strip_parentheses(member), begin) for member in members]
        return reduce(lambda one, other: exp.Or(this=one, expression=other), pairs)
    if type(args.get("field")) is exp.Column:
        return exp.ArrayContains(this=args["field"], expression=args["this"])
    return None


def _comparison(node: exp.Expr, begin: Begin) -> exp.Expr | None:
    left, right = strip_parentheses(node.args["this"]), node.args["expression"]
    kind = type(node)
    if type(right) is exp.Any or (type(right) is exp.Anonymous and str(right.args["this"]).upper() == "ALL"):
        return _quantified(node, right, begin)
    if type(left) is not exp.Tuple and type(right) is not exp.Tuple:
        return None
    if kind not in (*_SAME, *_OTHER):
        raise Refusal(
            "tuples are compared with =, <> and IN: write (a > 1 OR (a = 1 AND b > 2)) for (a, b) > (1, 2)", begin(left)
        )
    pairs = _pairs(left, strip_parentheses(right), begin)
    return pairs if kind in _SAME else exp.Not(this=exp.Paren(this=pairs))


# ANY and ALL


def _quantified(node: exp.Expr, right: exp.Expr, begin: Begin) -> exp.Expr:
    """Expresses a comparison with ANY or ALL elements of a list."""
    left, kind, is_any = node.args["this"], type(node), type(right) is exp.Any
    inside = right.args["this"] if is_any else (right.args["expressions"] or [None])[0]
    of = None if inside is None else strip_parentheses(inside)
    is_in = kind is (exp.EQ if is_any else exp.NEQ)
    if type(of) is exp.Array and of.args["expressions"]:
        members = of.args["expressions"]
        if is_in:
            among = exp.In(this=left, expressions=members)
            return among if is_any else exp.Not(this=among)
        if len(members) > 1:
            parts = [kind(this=left, expression=member) for member in members]
            join = exp.Or if is_any else exp.And
            return exp.Paren(this=reduce(lambda one, other: join(this=one, expression=other), parts))
    if type(of) is exp.Column and is_in:
        has = exp.ArrayContains(this=of, expression=left)
        return has if is_any else exp.Not(this=has)
    raise Refusal(
        "ANY and ALL take a list, as in a = ANY(array(1, 2)), and a list column behind = ANY and <> ALL: write a IN (1, 2), or "
        "array_contains(tags, 'x')",
        begin(node),
    )


def _array_contains(node: exp.Expr, begin: Begin) -> exp.Expr | None:
    """Expresses ``array_contains('x', tags)``, the order of Snowflake, and a list of literals."""
    first, second = strip_parentheses(node.args["this"]), strip_parentheses(node.args["expression"])
    for array, other in ((first, second), (second, first)):
        if type(array) is exp.Array and array.args["expressions"]:
            return exp.In(this=other, expressions=array.args["expressions"])
    if type(first) is exp.Literal and type(second) is exp.Column:
        return exp.ArrayContains(this=second, expression=first)
    return None


# Signs


def _contains_all(node: exp.Expr, begin: Begin) -> exp.Expr:
    column, array = node.args["this"], node.args["expression"]
    if type(node) is exp.ArrayContainedBy:
        column, array = array, column
    return exp.Anonymous(this="contains_all", expressions=[column, array])


def _overlaps(node: exp.Expr, begin: Begin) -> exp.Expr:
    return exp.ArrayOverlaps(this=node.args["this"], expression=node.args["expression"])


def _shift(node: exp.Expr, begin: Begin) -> exp.Expr:
    name = "shiftleft" if type(node) is exp.BitwiseLeftShift else "shiftright"
    return exp.Anonymous(this=PREFIX + name, expressions=[node.args["this"], node.args["expression"]])


def _positive(node: exp.Expr, begin: Begin) -> exp.Expr:
    """Expresses ``+a``: the reader of tokens writes ``~a``, since sqlglot drops the plus."""
    return exp.Anonymous(this=PREFIX + "positive", expressions=[node.args["this"]])


_CHANGES: dict[type[exp.Expr], Callable[[exp.Expr, Begin], exp.Expr | None]] = {
    exp.In: _in,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ), _comparison),
    exp.ArrayContains: _array_contains,
    exp.ArrayContainsAll: _contains_all,
    exp.ArrayContainedBy: _contains_all,
    exp.Adjacent: _overlaps,
    exp.BitwiseLeftShift: _shift,
    exp.BitwiseRightShift: _shift,
    exp.BitwiseNot: _positive,
}
