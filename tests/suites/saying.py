"""Cases of public suites of rules with expected answers, said in colmatch's language.

A converter makes a case of a rule and a context, and never reads the answer. The data stand beside
the repository, and tests are skipped where they are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import colmatch as cm

SUITES = Path(__file__).parents[3] / "shared/suites"
needs_suites = pytest.mark.skipif(not SUITES.is_dir(), reason=f"the public suites are not in {SUITES}")
MISMATCH = "FALSE"  # what a comparison of values of two types is


class CannotSay(Exception):
    """A rule has no equal in the language; the text names what is lacking."""


class Said(NamedTuple):
    clause: Any  # a text, or a condition of the builder
    event: dict[str, Any]
    schema: pa.Schema


Case = tuple[str, Callable[[], Said], bool]  # name, conversion, expected answer


class Results(NamedTuple):
    agree: int
    disagree: list[str]  # names of cases
    unsaid: dict[str, int]  # cases by what is lacking


def answer(said: Said) -> bool:
    """Returns whether the event fulfils the clause; NULL is False, as in most rule engines."""
    matcher = cm.Matcher.build({1: said.clause}, said.schema, missing="false")
    return bool(matcher.exists_one(said.event, unknown="ignore"))


def run(cases: Iterator[Case]) -> Results:
    agree, disagree, unsaid = 0, list[str](), Counter[str]()
    known: dict[str, bool | None] = {}  # many cases are equal
    for name, convert, expected in cases:
        try:
            said = convert()
        except CannotSay as reason:
            unsaid[str(reason)] += 1
            continue
        if known.setdefault(repr(said), None) is None:
            known[repr(said)] = answer(said)
        if known[repr(said)] is expected:
            agree += 1
        else:
            disagree.append(name)
    return Results(agree, disagree, dict(unsaid))


def shown_counts(page: str) -> list[tuple[int, ...]]:
    """Returns the counts that a page of the guide shows: cases, agree, differ, refused."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text()
    found = re.findall(r"(\d+)(?: of its)? cases [^\n]*: (\d+) agree, (\d+) differ and (\d+) are refused", text)
    found += re.findall(r"\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", text)
    return [tuple(map(int, counts)) for counts in found]


# JSON values


def kind(value: Any) -> str:
    """Returns the JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number", type(None): "null"}
    return names[type(value)]


def type_of(value: Any, otherwise: pa.DataType | None = None) -> pa.DataType:
    """Returns the type of a column with a value; ``otherwise`` is that of NULL."""
    if value is None:
        return otherwise or pa.string()
    if isinstance(value, list):
        if len({kind(one) for one in value} - {"null"}) > 1:
            raise CannotSay("a list of values of several types")
        fields: dict[str, Any] = {}
        for one in value:
            fields |= one if isinstance(one, dict) else {}
        return pa.list_(type_of(fields or next((one for one in value if one is not None), None)))
    if isinstance(value, dict):
        if not value:
            return pa.map_(pa.string(), pa.string())
        return pa.struct({name: type_of(one) for name, one in value.items()})
    return pa.scalar(value).type


# SQL


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, list):
        return f"array({', '.join(map(literal, value))})"
    return str(value).upper() if isinstance(value, bool) else f"{value!r}D" if isinstance(value, float) else repr(value)


def name_of(*path: str) -> str:
    return ".".join(["`" + part.replace("`", "``") + "`" for part in path])


def any_of(parts: list[str]) -> str:
    return " OR ".join([f"({part})" for part in parts]) or "FALSE"


def all_of(parts: list[str]) -> str:
    return " AND ".join([f"({part})" for part in parts]) or "TRUE"


def not_(condition: str) -> str:
    return f"NOT ({condition})"


def is_in(value: str, members: list[Any]) -> str:
    return f"{value} IN ({', '.join(map(literal, members))})" if members else "FALSE"
