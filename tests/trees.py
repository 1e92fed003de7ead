"""Random trees and events, and what a tree means for an event: evaluated in plain Python,
three-valued.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from colmatch.expr.ast import And, Constant, Expr, Not, Or, Predicate, Subject, Truth, Verb, conjoin, truth
from colmatch.lowering.forms import Kind, Operand

# What a tree means: three-valued, None for Unknown
# --------------------------------------------------------------------------


def negate(x: bool | None) -> bool | None:
    return None if x is None else not x


def every(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def some(values: list[bool | None]) -> bool | None:
    return negate(every([negate(v) for v in values]))


def compare(verb: Verb, x: Any, y: Any) -> bool | None:
    if x is None or y is None:
        return None
    tests = {Verb.EQ: x == y, Verb.NE: x != y, Verb.LT: x < y, Verb.LE: x <= y, Verb.GT: x > y, Verb.GE: x >= y}
    return tests[verb]


def values_of(operands: tuple[Operand | None, ...]) -> list[Any]:
    found: list[Any] = []
    for operand in operands:
        found.extend([None] if operand is None else operand.value if operand.many else [operand.value])
    return found


def has(elements: list[Any] | None, x: Any) -> bool | None:
    if elements is None:
        return None
    return True if x in elements else None if None in elements else False


def meaning(e: Expr, event: dict[str, Any]) -> bool | None:
    if isinstance(e, And):
        return every([meaning(p, event) for p in e.parts])
    if isinstance(e, Or):
        return some([meaning(p, event) for p in e.parts])
    if isinstance(e, Not):
        return negate(meaning(e.part, event))
    if isinstance(e, Truth):
        return meaning(e.part, event) is e.value
    if isinstance(e, Constant):
        return e.value
    assert isinstance(e, Predicate)
    x = event[e.subject.path[0]]
    if e.subject.key is not None:
        x = None if x is None else x.get(e.subject.key)
    if e.subject.size:
        x = None if x is None else len(x)
    ys = values_of(e.operands)
    match e.verb:
        case Verb.NULL:
            return x is None
        case Verb.BARE:
            return x
        case Verb.SAME:
            return x == ys[0]
        case Verb.BETWEEN:
            return every([compare(Verb.GE, x, ys[0]), compare(Verb.LE, x, ys[1])])
        case Verb.IN:
            return some([compare(Verb.EQ, x, y) for y in ys])
        case Verb.STARTSWITH | Verb.ENDSWITH | Verb.CONTAINS:
            if x is None or ys[0] is None:
                return None
            return {Verb.STARTSWITH: x.startswith(ys[0]), Verb.ENDSWITH: x.endswith(ys[0]), Verb.CONTAINS: ys[0] in x}[
                e.verb
            ]
        case Verb.ARRAY_CONTAINS:
            return has(x, ys[0])
        case Verb.CONTAINS_ALL:
            return every([has(x, y) for y in ys])
        case Verb.ARRAYS_OVERLAP:
            if x is None:
                return None
            if any(y is not None and y in x for y in ys):
                return True
            return None if x and ys and (None in x or None in ys) else False
    return compare(e.verb, x, ys[0])


def plain_meaning(e: Expr, event: dict[str, Any]) -> bool:
    """What a tree means where a predicate on what is absent is false, and nothing is unknown."""
    if isinstance(e, And):
        return all(plain_meaning(p, event) for p in e.parts)
    if isinstance(e, Or):
        return any(plain_meaning(p, event) for p in e.parts)
    if isinstance(e, Not):
        return not plain_meaning(e.part, event)
    if isinstance(e, Truth):
        return plain_meaning(e.part, event) is e.value
    if isinstance(e, Predicate) and e.negated:
        return meaning(replace(e, negated=False), event) is False
    return meaning(e, event) is True


# Trees
# --------------------------------------------------------------------------

SMALL = st.integers(-2, 3)
WORDS = st.sampled_from(["", "x", "xy", "yx"])


def numbers(values: list[int]) -> tuple[Operand | None, ...]:
    return tuple(Operand(Kind.INT, value=v) if v is not None else None for v in values)


@st.composite
def predicates(draw: st.DrawFn) -> Expr:
    maybe = st.none() | SMALL
    subject = draw(
        st.sampled_from([Subject(("a",)), Subject(("b",)), Subject(("m",), "k"), Subject(("t",), None, True)])
    )
    kind = draw(st.integers(0, 9))
    if kind <= 3:
        verb = draw(st.sampled_from([Verb.EQ, Verb.NE, Verb.LT, Verb.LE, Verb.GT, Verb.GE, Verb.SAME]))
        return Predicate(verb, subject, numbers([draw(maybe)]))
    if kind == 4:
        return Predicate(Verb.BETWEEN, subject, numbers([draw(maybe), draw(maybe)]))
    if kind == 5:
        values = draw(st.lists(maybe, min_size=1, max_size=3))
        many = None not in values
        return Predicate(
            Verb.IN, subject, (Operand(Kind.INT, many=True, value=tuple(values)),) if many else numbers(values)
        )
    if kind == 6:
        return Predicate(Verb.NULL, draw(st.sampled_from([subject, Subject(("t",)), Subject(("m",)), Subject(("v",))])))
    if kind == 7:
        return Predicate(Verb.BARE, Subject(("v",)))
    if kind == 8:
        verb = draw(st.sampled_from([Verb.STARTSWITH, Verb.ENDSWITH, Verb.CONTAINS]))
        word = draw(st.none() | WORDS)
        return Predicate(verb, Subject(("s",)), (None if word is None else Operand(Kind.STRING, value=word),))
    verb = draw(st.sampled_from([Verb.ARRAY_CONTAINS, Verb.ARRAYS_OVERLAP, Verb.CONTAINS_ALL]))
    low, high = {Verb.ARRAY_CONTAINS: (1, 1), Verb.ARRAYS_OVERLAP: (0, 3), Verb.CONTAINS_ALL: (1, 3)}[verb]
    values = draw(st.lists(maybe if verb is Verb.ARRAYS_OVERLAP else SMALL, min_size=low, max_size=high))
    if verb is Verb.ARRAYS_OVERLAP and values and None not in values:
        return Predicate(verb, Subject(("t",)), (Operand(Kind.INT, many=True, value=tuple(values)),))
    return Predicate(verb, Subject(("t",)), numbers(values))


def wider(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    parts = st.lists(inner, min_size=2, max_size=4)
    return (
        parts.map(lambda p: conjoin(And, p))
        | parts.map(lambda p: conjoin(Or, p))
        | inner.map(Not)
        | st.tuples(inner, st.sampled_from([True, False, None])).map(lambda p: truth(*p))
    )


TREES = st.recursive(predicates() | st.sampled_from([True, False, None]).map(Constant), wider, max_leaves=12)
LISTS = st.none() | st.lists(st.none() | SMALL, max_size=3)
EVENTS = st.fixed_dictionaries(
    {
        "a": st.none() | SMALL,
        "b": st.none() | SMALL,
        "v": st.none() | st.booleans(),
        "s": st.none() | WORDS,
        "t": LISTS,
        "m": st.none() | st.dictionaries(st.sampled_from(["k", "l"]), st.none() | SMALL),
    }
)


def random_predicate(rng: random.Random) -> Expr:
    def maybe() -> int | None:
        return rng.choice([None, -2, -1, 0, 1, 2, 3, 3])

    subject = rng.choice([Subject(("a",)), Subject(("b",)), Subject(("m",), "k"), Subject(("t",), None, True)])
    kind = rng.randrange(9)
    if kind < 3:
        return Predicate(
            rng.choice([Verb.EQ, Verb.NE, Verb.LT, Verb.LE, Verb.GT, Verb.GE, Verb.SAME]), subject, numbers([maybe()])
        )
    if kind == 3:
        return Predicate(rng.choice([Verb.BETWEEN, Verb.IN]), subject, numbers([maybe(), maybe()]))
    if kind == 4:
        return Predicate(Verb.NULL, rng.choice([subject, Subject(("t",)), Subject(("m",))]))
    if kind == 5:
        return rng.choice([Predicate(Verb.BARE, Subject(("v",))), Constant(rng.choice([True, False, None]))])
    if kind == 6:
        verb = rng.choice([Verb.STARTSWITH, Verb.ENDSWITH, Verb.CONTAINS])
        return Predicate(
            verb, Subject(("s",)), (rng.choice([None, *[Operand(Kind.STRING, value=w) for w in ("", "x", "y", "yx")]]),)
        )
    verb = rng.choice([Verb.ARRAY_CONTAINS, Verb.ARRAYS_OVERLAP, Verb.CONTAINS_ALL])
    if verb is Verb.ARRAYS_OVERLAP:
        return Predicate(verb, Subject(("t",)), numbers([maybe() for _ in range(rng.randrange(3))]))
    return Predicate(
        verb, Subject(("t",)), numbers([rng.randrange(-2, 4) for _ in range(1 if verb is Verb.ARRAY_CONTAINS else 2)])
    )


def random_tree(rng: random.Random, depth: int) -> Expr:
    kind = rng.randrange(8)
    if depth == 0 or kind == 0:
        return random_predicate(rng)
    if kind == 1:
        return Not(random_tree(rng, depth - 1))
    if kind == 2:
        return truth(random_tree(rng, depth - 1), rng.choice([True, False, None]))
    return conjoin(rng.choice([And, Or]), [random_tree(rng, depth - 1) for _ in range(rng.randrange(2, 4))])


def random_event(rng: random.Random) -> dict[str, Any]:
    def maybe() -> int | None:
        return rng.choice([None, -2, -1, 0, 1, 2, 3])

    return {
        "a": maybe(),
        "b": maybe(),
        "v": rng.choice([None, True, False]),
        "s": rng.choice([None, "", "x", "xy", "yx"]),
        "t": rng.choice([None, [], [maybe()], [maybe(), maybe()], [maybe(), maybe(), maybe()]]),
        "m": rng.choice([None, {}, {"k": maybe()}, {"k": maybe(), "l": maybe()}]),
    }
