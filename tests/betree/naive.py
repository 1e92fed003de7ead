"""What an expression of be-tree's language means, in the plainest Python; and random ones.

It shares no code with colmatch. An expression is a tuple, its operator first; an event is what JSON
makes of it. For example ``a > 1 and not (s in ("x", "y"))`` is::

    ("and", (">", "a", 1), ("not", ("in", "s", ("x", "y"))))
"""

from __future__ import annotations

import json
import math
import operator
from random import Random
from typing import Any

Expr = tuple[Any, ...]
Event = dict[str, Any]

DOMAINS = """
    b | boolean | true
    c | boolean | true
    i | integer | true | -10 | 10
    j | integer | true
    must | integer | false
    f | float | true
    s | string | true
    x-1 | string | true
    e | integer enum | true
    il | integer list | true
    sl | string list | true
    seen | segments | true
    segments_with_timestamp | segments | true
    now | integer | true
    frequency_caps | frequency | true
    latitude | float | true
    longitude | float | true
"""
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
CONSTANTS = {"flight_id": 7, "campaign_group_id": 9}
EPSILON = 2.220446049250313e-16


def holds(e: Expr, event: Event) -> bool:
    """Whether an event matches: it has what it must have, and the expression is true of it."""
    return event.get("must") is not None and value(e, event)


def value(e: Expr, event: Event) -> bool:
    op, *args = e
    if op in ("true", "false"):
        return bool(op == "true")
    if op == "and":
        return all(value(part, event) for part in args)
    if op == "or":
        return any(value(part, event) for part in args)
    if op == "not":
        return not value(args[0], event)
    if op == "geo_within_radius":
        return near(event, *args)
    if op == "within_frequency_cap":
        return within_cap(event, *args)
    if op in ("segment_within", "segment_before"):
        return segment(op, event, *args)
    x = event.get(args[0])
    if op == "is null":
        return x is None
    if op == "is not null":
        return x is not None
    if x is None:
        return False
    return of_defined(op, x, *args[1:])


def of_defined(op: str, x: Any, y: Any = None) -> bool:
    match op:
        case "bare":
            return bool(x)
        case "=" | "<>":
            equal = abs(x - y) < EPSILON if isinstance(x, float) else x == y
            return equal is (op == "=")
        case "in" | "not in":
            return (x in y) is (op == "in")
        case "has" | "has not":
            return (y in x) is (op == "has")
        case "one of":
            return any(one in x for one in y)
        case "none of":
            return not any(one in x for one in y)
        case "all of":
            return all(one in x for one in y)
        case "is empty":
            return len(x) == 0
        case "contains":
            return y in x
        case "starts_with":
            return bool(x.startswith(y))
        case "ends_with":
            return bool(x.endswith(y))
    return bool(COMPARE[op](x, y))


def segment(op: str, event: Event, name: str, id: int, seconds: int) -> bool:
    now, found = event.get("now"), [at for one, at in event.get(name) or [] if one == id]
    if now is None or not found:
        return False
    within = now - seconds <= found[0] / 1e6
    return within is (op == "segment_within")


def within_cap(event: Event, type: str, space: str, most: int, length: int) -> bool:
    caps, now = event.get("frequency_caps"), event.get("now")
    if caps is None:
        return False
    if not caps:
        return True
    if now is None:
        return False
    for cap, count, at in caps:
        if cap == [type, CONSTANTS[type.removesuffix(":ip") + "_id"], space]:
            return most > count or (length != 0 and now - at / 1e6 > length)
    return True


def near(event: Event, latitude: float, longitude: float, radius: float) -> bool:
    if event.get("latitude") is None or event.get("longitude") is None:
        return False
    here, there = (
        [math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a)]
        for a, b in (
            (math.radians(latitude), math.radians(longitude)),
            (math.radians(event["latitude"]), math.radians(event["longitude"])),
        )
    )
    return 6372.8 * 2 * math.asin(min(math.dist(here, there) / 2, 1)) <= radius


# As text
# --------------------------------------------------------------------------


def text_of(e: Expr, rng: Random) -> str:
    """An expression as text, with blanks, signs and names in any of their ways."""
    op, *args = e

    def name(one: str) -> str:
        return rng.choice([one, one, one.upper(), one.title()])

    def gap(words: str) -> str:
        return words.replace(" ", rng.choice([" ", "  ", "\n", "\t "]))

    def literals(values: Any) -> str:
        return "(" + rng.choice([",", ", ", " , "]).join(literal(one, rng) for one in values) + ")"

    if op in ("true", "false"):
        return str(op)
    if op in ("and", "or"):
        word = rng.choice([f" {op} ", " && " if op == "and" else " || ", f"\n{op}  "])
        return word.join(bracketed(part, rng, ("or",) if op == "and" else ()) for part in args)
    if op == "not":
        return gap("not ") + bracketed(args[0], rng, ("and", "or"))
    if op == "bare":
        return name(args[0])
    if op in ("is null", "is not null", "is empty"):
        return gap(f"{name(args[0])} {op}")
    if op in ("in", "not in", "one of", "none of", "all of"):
        return gap(f"{name(args[0])} {op} ") + literals(args[1])
    if op in ("has", "has not"):
        return literal(args[1], rng) + gap(" in " if op == "has" else " not in ") + name(args[0])
    if op in ("contains", "starts_with", "ends_with"):
        return f"{op}({name(args[0])}, {literal(args[1], rng)})"
    if op in ("segment_within", "segment_before"):
        own = [] if args[0] == "segments_with_timestamp" and rng.random() < 0.5 else [name(args[0])]
        return f"{op}({', '.join([*own, str(args[1]), str(args[2])])})"
    if op in ("within_frequency_cap", "geo_within_radius"):
        return f"{op}({', '.join(literal(one, rng) for one in args)})"
    if rng.random() < 0.3:
        flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
        return f"{literal(args[1], rng)} {flipped} {name(args[0])}"
    return f"{name(args[0])}{rng.choice([' ', ''])}{op}{rng.choice([' ', ''])}{literal(args[1], rng)}"


def bracketed(e: Expr, rng: Random, needed: tuple[str, ...]) -> str:
    text = text_of(e, rng)
    return f"({text})" if e[0] in needed or rng.random() < 0.2 else text


def literal(one: Any, rng: Random) -> str:
    if isinstance(one, str):
        quote = rng.choice(["'", '"'])
        return quote + one.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    if isinstance(one, float):
        return f"{one:.17f}" if abs(one) < 1e-9 else repr(one).removesuffix("0" if one == int(one) else "")
    return str(one)


# At random
# --------------------------------------------------------------------------

WORDS = ["", "x", "xy", "y x", 'say "x"', "it's", "a\\b", "é", "X"]
FLOATS = [-1.5, 0.0, 1.0, 2.5, 1e-16, 1.0000000000000002, 3]
PLACES = [48.2, 48.3, -16.25, 16.4, 0.0, 90.0, 179.75]


def random_leaf(rng: Random) -> Expr:
    some = [rng.randrange(-3, 4) for _ in range(rng.randrange(1, 4))]
    words = [rng.choice(WORDS) for _ in range(rng.randrange(1, 4))]
    number, word = rng.choice(["i", "j", "must"]), rng.choice(["s", "x-1"])
    name, literal, members = rng.choice([("il", some[0], tuple(some)), ("sl", words[0], tuple(words))])
    sign = rng.choice([*COMPARE, "=", "<>"])
    nullable = ["b", "i", "f", "s", "e", "il", "sl", "seen", "frequency_caps"]
    return rng.choice(
        [
            (rng.choice(["true", "false"]),),
            ("bare", rng.choice("bc")),
            (sign, number, some[0]),
            (sign, "f", rng.choice(FLOATS)),
            (rng.choice(["=", "<>"]), *rng.choice([("e", some[0]), (word, words[0])])),
            (rng.choice(["in", "not in"]), *rng.choice([(number, tuple(some)), (word, tuple(words))])),
            (rng.choice(["has", "has not"]), name, literal),
            (rng.choice(["one of", "none of", "all of"]), name, members),
            (rng.choice(["one of", "none of", "all of"]), name, members),
            ("is empty", name),
            (rng.choice(["is null", "is not null"]), rng.choice(nullable)),
            (rng.choice(["contains", "starts_with", "ends_with"]), word, words[0]),
            random_call(rng),
        ]
    )


def random_call(rng: Random) -> Expr:
    seconds = rng.choice([0, 5, 20, -5])
    kind = rng.randrange(3)
    if kind == 0:
        name = rng.choice(["seen", "segments_with_timestamp"])
        return (rng.choice(["segment_within", "segment_before"]), name, rng.randrange(3), seconds)
    if kind == 1:
        type = rng.choice(["flight", "flight:ip", "campaign_group"])
        return ("within_frequency_cap", type, rng.choice(["ns", "other"]), rng.randrange(4), rng.choice([0, 0, 5, 20]))
    return ("geo_within_radius", rng.choice(PLACES), rng.choice(PLACES), rng.choice([1.0, 12, 2000.5, 20100.0]))


def random_expr(rng: Random, depth: int = 4) -> Expr:
    kind = rng.randrange(6)
    if depth == 0 or kind == 0:
        return random_leaf(rng)
    if kind == 1:
        return ("not", random_expr(rng, depth - 1))
    return (rng.choice(["and", "or"]), *(random_expr(rng, depth - 1) for _ in range(rng.randrange(2, 4))))


def random_event(rng: Random) -> Event:
    """An event of which each attribute may be missing, or null."""
    segments = [[rng.randrange(3), rng.choice([10, 35, 60]) * 1_000_000] for _ in range(rng.randrange(3))]
    segments = list({id: [id, at] for id, at in segments}.values())
    caps = [
        [
            [
                rng.choice(["flight", "flight:ip", "campaign_group"]),
                rng.choice([7, 9]),
                rng.choice(["ns", "other", "3rd"]),
            ],
            rng.randrange(4),
            rng.choice([10, 35]) * 1_000_000,
        ]
        for _ in range(rng.randrange(4))
    ]
    whole = {
        "b": rng.random() < 0.5,
        "c": rng.random() < 0.5,
        "i": rng.randrange(-4, 5),
        "j": rng.randrange(-4, 5),
        "must": rng.randrange(-4, 5),
        "f": float(rng.choice(FLOATS)),
        "s": rng.choice(WORDS),
        "x-1": rng.choice(WORDS),
        "e": rng.randrange(-3, 4),
        "il": [rng.randrange(-3, 4) for _ in range(rng.randrange(4))],
        "sl": [rng.choice(WORDS) for _ in range(rng.randrange(4))],
        "seen": segments,
        "segments_with_timestamp": segments[::-1],
        "now": rng.choice([10, 40, 50]),
        "frequency_caps": caps,
        "latitude": rng.choice(PLACES[:-1]),
        "longitude": rng.choice(PLACES),
    }
    missing = rng.choice([0.05, 0.3, 0.7])
    event: Event = {}
    for name, value in whole.items():
        if rng.random() >= (missing if name != "must" else 0.05):
            event[name] = value
        elif rng.random() < 0.5:
            event[name] = None
    return event


def line_of(event: Event, rng: Random) -> str:
    """An event as a line of JSON; names in any case, floats that are whole maybe as integers."""
    told = {rng.choice([name, name.upper()]): value for name, value in event.items()}
    for name, value in told.items():
        if isinstance(value, float) and value == int(value) and rng.random() < 0.5:
            told[name] = int(value)
    return json.dumps(told, ensure_ascii=rng.random() < 0.5)
