"""Conditions on elements of lists as trees, their texts, and their truth in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

ELEMENT = pa.struct({"a": pa.int32(), "s": pa.string(), "p": pa.float64(), "n": pa.list_(pa.int64())})
SCHEMA = pa.schema(
    {
        "l": pa.list_(ELEMENT),
        "w": pa.struct({"m": pa.large_list(pa.string())}),
        "o": pa.int32(),
        "t": pa.string(),
        "d": pa.map_(pa.string(), pa.int64()),
    }
)
Event = dict[str, Any]
Truth = bool | None
Test = Callable[[dict[str, Any]], Truth]  # of the names that are bound: columns, and elements

NUMBERS = [None, -1, 0, 1, 2, 7]
STRINGS = [None, "", "a", "b", "ab", "ä"]
PRICES = [None, -0.0, 0.5, 2.0, 1e9]


def some(values: list[Truth]) -> Truth:
    return True if True in values else None if None in values else False


def every(values: list[Truth]) -> Truth:
    return False if False in values else None if None in values else True


def negate(truth: Truth) -> Truth:
    return None if truth is None else not truth


def get(names: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = names
    for part in path:
        value = None if value is None else value[part]
    return value


def compare(sign: str, one: Any, other: Any) -> Truth:
    if one is None or other is None:
        return None
    return {"=": one == other, "<>": one != other, "<": one < other, ">=": one >= other}[sign]


class Drawer:
    """Draws conditions: each is a text and a function for its truth."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def rule(self, depth: int = 2) -> tuple[str, Test]:
        rng = self.rng
        kind = rng.choice(
            ["exists", "exists", "exists", "forall", "count", "and", "or", "not", "outer", "null", "field"]
        )
        if depth == 0 and kind in ("and", "or", "not", "null"):
            kind = "exists"
        if kind in ("and", "or"):
            (one, test), (other, last) = self.rule(depth - 1), self.rule(depth - 1)
            join = every if kind == "and" else some
            return f"({one}) {kind.upper()} ({other})", lambda names: join([test(names), last(names)])
        if kind == "not":
            text, test = self.rule(depth - 1)
            return f"NOT ({text})", lambda names: negate(test(names))
        if kind == "null":
            text, test = self.rule(depth - 1)
            return f"({text}) IS NULL", lambda names: test(names) is None
        if kind == "outer":
            return self.test(("o",), "number")
        return self.field() if kind == "field" else self.of_list(kind, ("l",), "x")

    def of_list(self, kind: str, path: tuple[str, ...], name: str) -> tuple[str, Test]:
        """A condition on the elements of a list at a path, which are called ``name``."""
        rng = self.rng
        if path == ("l",) and rng.random() < 0.3:
            path = rng.choice([("w", "m"), ("map_keys",), ("map_values",)])
        scalar = {"l": "", "n": "number", "m": "text", "map_keys": "text", "map_values": "number"}[path[-1]]
        text, test = self.test((name,), scalar) if scalar else self.within(name)
        column, count = f"{path[0]}(d)" if path[0].startswith("map") else ".".join(path), rng.randint(0, 3)

        def truths(names: dict[str, Any]) -> list[Truth] | None:
            if path[0].startswith("map"):
                values = names["d"] and list(names["d"].keys() if path[0] == "map_keys" else names["d"].values())
                values = [] if names["d"] == {} else values
            else:
                values = get(names, path)
            return None if values is None else [test({**names, name: value}) for value in values]

        if kind == "count":
            sign = rng.choice(["=", "<>", "<", ">="])
            return (
                f"size(filter({column}, {name} -> {text})) {sign} {count}",
                lambda names: None if (found := truths(names)) is None else compare(sign, found.count(True), count),
            )
        join = some if kind == "exists" else every
        return (
            f"{kind}({column}, {name} -> {text})",
            lambda names: None if (found := truths(names)) is None else join(found),
        )

    def within(self, name: str) -> tuple[str, Test]:
        """A condition on an element that is a struct."""
        rng = self.rng
        parts = [self.part(name) for _ in range(rng.randint(1, 3))]
        join, word = rng.choice([(every, " AND "), (some, " OR ")])
        text, tests = word.join(part for part, _ in parts), [test for _, test in parts]
        return text, lambda names: join([test(names) for test in tests])

    def part(self, name: str) -> tuple[str, Test]:
        rng = self.rng
        field = rng.choice(["a", "s", "p", "n", "outer", "computed", "not", "choice", "symmetric"])
        if field == "symmetric":
            ends = sorted(rng.sample([0, 1, 2, 7], 2))
            return (
                f"{name}.a BETWEEN SYMMETRIC {ends[1]} AND {ends[0]}",
                lambda names: (
                    None if get(names, (name, "a")) is None else ends[0] <= get(names, (name, "a")) <= ends[1]
                ),
            )
        if field == "choice":
            (when, is_when), (then, is_then), (other, is_other) = (
                self.test((name, part), kind) for part, kind in (("a", "number"), ("s", "text"), ("p", "price"))
            )
            return (
                f"CASE WHEN {when} THEN {then} ELSE {other} END",
                lambda names: is_then(names) if is_when(names) else is_other(names),
            )
        if field == "not":
            text, test = self.part(name)
            return f"NOT ({text})", lambda names: negate(test(names))
        if field == "outer":
            sign = rng.choice(["=", "<", ">="])
            return f"{name}.a {sign} o", lambda names: compare(sign, get(names, (name, "a")), names["o"])
        if field == "computed":
            return f"concat({name}.s, t) = 'ab'", lambda names: compare(
                "=",
                None if None in (get(names, (name, "s")), names["t"]) else get(names, (name, "s")) + names["t"],
                "ab",
            )
        if field == "n":
            return self.of_list(rng.choice(["exists", "count"]), (name, "n"), rng.choice(["y", name]))
        return self.test((name, field), {"a": "number", "s": "text", "p": "price"}[field])

    def test(self, path: tuple[str, ...], kind: str) -> tuple[str, Test]:
        """A comparison of a value with literals."""
        rng, name = self.rng, ".".join(path)
        values: list[Any] = [v for v in {"number": NUMBERS, "text": STRINGS, "price": PRICES}[kind] if v is not None]
        shown = {v: f"'{v}'" if isinstance(v, str) else repr(v) + "D" * isinstance(v, float) for v in values}
        verb, value = rng.choice(["=", "<>", "<", ">=", "IN", "IS NULL", "LIKE"]), rng.choice(values)
        if verb == "IS NULL":
            return f"{name} IS NULL", lambda names: get(names, path) is None
        if verb == "LIKE" and kind == "text":
            return (
                f"{name} LIKE '%{value}%'",
                lambda names: None if get(names, path) is None else value in get(names, path),
            )
        if verb in ("IN", "LIKE"):
            several = [value, rng.choice(values)]
            return (
                f"{name} IN ({', '.join(shown[v] for v in several)})",
                lambda names: None if get(names, path) is None else get(names, path) in several,
            )
        return f"{name} {verb} {shown[value]}", lambda names: compare(verb, get(names, path), value)

    def field(self) -> tuple[str, Test]:
        """A test of a field of all elements, or of one of them."""
        rng, value = self.rng, self.rng.choice(["a", "b", "ab"])

        def strings(names: dict[str, Any]) -> list[Any] | None:
            return None if names["l"] is None else [get({"x": x}, ("x", "s")) for x in names["l"]]

        def has(names: dict[str, Any], values: list[str]) -> Truth:
            found = strings(names)
            return None if found is None else some([None if s is None else s in values for s in found])

        which = rng.randint(0, 6)
        if which == 6:
            number = rng.randint(0, 2)

            def place(names: dict[str, Any]) -> int | None:
                found = [i for i, x in enumerate(names["l"] or [], 1) if x is not None and x["s"] == value]
                return None if names["l"] is None else found[0] if found else 0

            return f"array_position(l.s, '{value}') = {number}", lambda names: compare("=", place(names), number)
        if which == 5:
            return (
                f"array_contains(map_keys(d), '{value}')",
                lambda names: None if names["d"] is None else value in names["d"],
            )
        if which == 4:
            number = rng.choice([0, 1, 7])

            def largest(names: dict[str, Any]) -> Any:
                return max([x["a"] for x in names["l"] or [] if x is not None and x["a"] is not None], default=None)

            return f"array_max(l.a) = {number}", lambda names: compare("=", largest(names), number)
        if which == 0:
            return f"array_contains(l.s, '{value}')", lambda names: has(names, [value])
        if which == 1:
            return f"arrays_overlap(l.s, array('{value}', 'ä'))", lambda names: has(names, [value, "ä"])
        if which == 2:
            return f"size(l) = {(count := rng.randint(0, 3))}", lambda names: compare(
                "=", None if names["l"] is None else len(names["l"]), count
            )
        at = rng.randint(0, 2)
        return f"l[{at}].s = '{value}'", lambda names: compare(
            "=", (strings(names) or [])[at] if len(strings(names) or []) > at else None, value
        )


def drawn_events(rng: Random, count: int) -> list[Event]:
    def element() -> Any:
        if rng.random() < 0.1:
            return None
        inner = None if rng.random() < 0.2 else [rng.choice(NUMBERS) for _ in range(rng.randint(0, 3))]
        return {"a": rng.choice(NUMBERS), "s": rng.choice(STRINGS), "p": rng.choice(PRICES), "n": inner}

    def event() -> Event:
        elements = None if rng.random() < 0.1 else [element() for _ in range(rng.randint(0, 4))]
        entries = {s: rng.choice(NUMBERS) for s in rng.sample(STRINGS[1:], rng.randint(0, 3))}
        words = None if rng.random() < 0.2 else [rng.choice(STRINGS) for _ in range(rng.randint(0, 3))]
        return {
            "l": elements,
            "w": {"m": words} if rng.random() < 0.9 else None,
            "o": rng.choice(NUMBERS),
            "t": rng.choice(STRINGS),
            "d": entries if rng.random() < 0.8 else None,
        }

    return [event() for _ in range(count)]
