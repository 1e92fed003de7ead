"""NOT before an operand and behind a subject, against an evaluator that shares no code."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from sizes import SMALL, share

import colmatch as cm
from colmatch.subscriptions.intake import FEWEST_TEXTS

Row = dict[str, Any]
SCHEMA = {"z": "string", "y": "string", "a": "int64", "b": "int64"}
WORDS = ("a", "ab", "ba", "b%", "", None)
ROWS: list[Row] = [
    {"z": z, "y": y, "a": a, "b": b}
    for z in WORDS
    for y in ("a", "b", None)
    for a in (1, 2, None)
    for b in (1, 3, None)
]
EVENTS = pa.Table.from_pylist(ROWS, pa.schema([("z", "string"), ("y", "string"), ("a", "int64"), ("b", "int64")]))


class Written(NamedTuple):
    """A text, and what it is of a row: True, False or None, or a value."""

    text: str
    of: Callable[[Row], Any]


def kleene_not(value: bool | None) -> bool | None:
    return None if value is None else not value


def kleene_or(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def kleene_and(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def like(value: str | None, pattern: str, escape: str = "\\", flags: int = 0) -> bool | None:
    if value is None:
        return None
    regex, i = "", 0
    while i < len(pattern):
        if pattern[i] == escape:
            i += 1
            regex += re.escape(pattern[i])
        else:
            regex += {"%": ".*", "_": "."}.get(pattern[i], re.escape(pattern[i]))
        i += 1
    return re.fullmatch(regex, value, re.DOTALL | flags) is not None


class Writer:
    """Writes random conditions.

    collapses : whether what is said of an absent value is False
    """

    def __init__(self, rng: Random, collapses: bool) -> None:
        self.rng, self.collapses = rng, collapses

    def ended(self, value: bool | None) -> bool | None:
        return False if value is None and self.collapses else value

    def condition(self, depth: int) -> Written:
        kind = self.rng.randrange(6) if depth else 9
        if kind == 0:
            parts = [self.condition(depth - 1) for _ in range(2)]
            return Written(
                "({} AND {})".format(*[p.text for p in parts]), lambda r: kleene_and([p.of(r) for p in parts])
            )
        if kind == 1:
            parts = [self.condition(depth - 1) for _ in range(2)]
            return Written("({} OR {})".format(*[p.text for p in parts]), lambda r: kleene_or([p.of(r) for p in parts]))
        inner = self.predicate(depth)
        text, of = inner
        for _ in range(self.rng.randrange(3)):
            if self.rng.random() < 0.3:
                text = f"({text})"
            text, of = f"NOT {text}", lambda r, of=of: kleene_not(of(r))  # type: ignore[misc]
        return Written(text, of)

    def subject(self, depth: int) -> Written:
        """A text column, or a value of one with operators inside."""
        kind = self.rng.randrange(6) if depth else 0
        name = self.rng.choice(("z", "y"))
        column = Written(name, lambda r: r[name])
        if kind < 3:
            return column
        test, other = self.within(depth - 1), self.subject(0)
        if kind == 3:
            return Written(
                f"if({test.text}, {column.text}, {other.text})", lambda r: column.of(r) if test.of(r) else other.of(r)
            )
        if kind == 4:
            return Written(
                f"CASE WHEN {test.text} THEN {column.text} END", lambda r: column.of(r) if test.of(r) else None
            )
        return Written(
            f"coalesce({column.text}, {other.text})", lambda r: other.of(r) if column.of(r) is None else column.of(r)
        )

    def within(self, depth: int) -> Written:
        """A condition that may stand within a value."""
        if self.rng.random() < 0.3:
            name = self.rng.choice(("z", "y"))
            inside = self.rng.random() < 0.5
            return Written(f"{name} IS {'NOT ' * inside}NULL", lambda r: (r[name] is None) != inside)
        found = self.predicate(depth, values=True)
        if self.rng.random() < 0.4:
            return Written(f"NOT {found.text}", lambda r: kleene_not(found.of(r)))
        return found

    def predicate(self, depth: int, values: bool = False) -> Written:
        rng = self.rng
        inside = rng.random() < 0.5
        word = "NOT " * inside
        kind = rng.randrange(4 if values else 8)
        subject = self.subject(depth)
        if kind == 0:
            some = rng.sample(["a", "ab", "b", "x"], rng.randint(1, 3))
            listed = ", ".join(f"'{one}'" for one in some)
            text = f"{subject.text} {word}IN ({listed})"
            of: Any = lambda r: None if subject.of(r) is None else subject.of(r) in some  # noqa: E731
        elif kind == 1:
            low, high = rng.randint(1, 2), rng.randint(1, 3)
            other = rng.choice(("a", "b"))
            end = rng.choice((str(high), "b" if other == "a" else "a"))
            text = f"{other} {word}BETWEEN {low} AND {end}"
            last = lambda r: r[end] if end.isalpha() else int(end)  # noqa: E731
            of = lambda r: kleene_and(  # noqa: E731
                [
                    None if r[other] is None else r[other] >= low,
                    None if None in (r[other], last(r)) else r[other] <= last(r),
                ]
            )
        elif kind == 2:
            pattern = rng.choice(("a_", "%a%", "a%", "_", "%"))
            text = f"{subject.text} {word}LIKE '{pattern}'"
            of = lambda r: like(subject.of(r), pattern)  # noqa: E731
        elif kind == 3:
            pattern = rng.choice(("^a", "b$", "a", "^$"))
            text = f"{subject.text} {word}RLIKE '{pattern}'"
            of = lambda r: None if subject.of(r) is None else re.search(pattern, subject.of(r)) is not None  # noqa: E731
        elif kind in (4, 5):
            some = rng.sample(["a_", "%b", "a%", "x%"], rng.randint(1, 3))
            quantity = "ANY" if kind == 4 else "ALL"
            text = f"{subject.text} {word}LIKE {quantity} ({', '.join(f'{one!r}' for one in some)})"
            joined = kleene_or if kind == 4 else kleene_and

            def of(r: Row) -> bool | None:  # NOT LIKE ANY asks each pattern with its NOT, as in Spark
                each = [like(subject.of(r), one) for one in some]
                return joined([self.ended(kleene_not(one) if inside else one) for one in each])

            return Written(text, lambda r: self.ended(of(r)))
        elif kind == 6:
            pattern = rng.choice(("b|%", "a|_", "|%%", "_|%"))
            text = f"{subject.text} {word}LIKE '{pattern}' ESCAPE '|'"
            of = lambda r: like(subject.of(r), pattern, "|")  # noqa: E731
        else:
            pattern = rng.choice(("A_", "%B%", "a%"))
            text = f"{subject.text} {word}ILIKE '{pattern}'"
            of = lambda r: like(subject.of(r), pattern, flags=re.IGNORECASE)  # noqa: E731
        return Written(text, lambda r: self.ended(kleene_not(of(r)) if inside else of(r)))


def written(count: int, missing: str) -> dict[int, Written]:
    writer = Writer(Random(count), missing == "false")
    return {number: writer.condition(2) for number in range(count)}


@pytest.mark.parametrize("missing", ["unknown", "false"])
@pytest.mark.parametrize("reader", ["python", "kernels"])
def test_not_stands_where_it_is_written(missing: str, reader: str) -> None:
    count = {"python": share(2000), "kernels": FEWEST_TEXTS if SMALL else 2000}[reader]
    some = written(count, missing)
    size = count if reader == "kernels" else FEWEST_TEXTS // 2
    for first in range(0, len(some), size):
        part = {number: one for number, one in some.items() if first <= number < first + size}
        matcher = cm.Matcher.build({n: one.text for n, one in part.items()}, SCHEMA, "scan", missing=missing)
        found = [set(ids) for ids in matcher.match_lists(EVENTS).to_pylist()]
        for number, one in part.items():
            for row, ids in zip(ROWS, found, strict=True):
                assert (number in ids) is (one.of(row) is True), (one.text, row)
