"""The table of functions: each is what its row says, wherever it is written."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pytest
from contract import every_kind
from inside import version

import colmatch as cm
from colmatch.expr.functions import COLUMNS, CONSTANTS, SYNONYMS_OF_TABLE, TABLE, Function

SCHEMA = cm.Schema(COLUMNS)
RULES = {name: f"{function.call} {function.test}" for name, function in TABLE.items()}
each = pytest.mark.parametrize("function", TABLE.values(), ids=TABLE)


@every_kind
def test_examples_are_true(kind: str) -> None:
    """In batches and single events, and not for an event without values."""
    matcher = cm.Matcher.build(RULES, SCHEMA, index=kind)
    for name, function in TABLE.items():
        events = pa.Table.from_pylist([function.row, {}], schema=SCHEMA.arrow)
        first, nothing = matcher.match_lists(events).to_pylist()
        assert name in first and nothing == [], name
        assert sorted(matcher.match_one(function.row)) == sorted(first)


@each
def test_other_names_mean_the_same(function: Function) -> None:
    for name in (function.name.upper(), *function.synonyms):
        text = name + function.call.removeprefix(function.name)
        assert cm.Matcher.build({1: f"{text} {function.test}"}, SCHEMA).match_one(function.row) == [1]
    assert function.name not in SYNONYMS_OF_TABLE


@each
def test_a_wrong_call_says_how_it_is_written(function: Function) -> None:
    wrong = [f"{function.name}()", f"{function.name}({', '.join(['path'] * 5)})", f"{function.name}(flags > 1)"]
    for place, kind in enumerate(function.arguments):
        arguments = _arguments(function)
        if place >= len(arguments):
            continue
        arguments[place] = "name" if kind in CONSTANTS or kind != "string" else "flags"
        wrong.append(f"{function.name}({', '.join(arguments)})")
    for text in wrong:
        with pytest.raises(cm.ExpressionError, match=re.escape(function.name)):
            cm.Matcher.build({1: f"{text} IS NULL"}, SCHEMA)


def _arguments(function: Function) -> list[str]:
    inner = function.call[len(function.name) + 1 : -1]
    return re.findall(r"'[^']*'|[^,' ][^,']*", inner)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("split_part(path, '/', 0) = 'x'", "parts count from 1, or from -1 at the end"),
        ("split_part(path, name, 1) = 'x'", r"takes a literal string here, as in split_part\(path, '/', 1\)"),
        ("lpad(path, 5000) = 'x'", "4,096 characters at most"),
        ("regexp_extract(path, '(a', 1) = 'x'", "no regular expression"),
        ("regexp_extract(path, 'a', 1) = 'x'", "has 0 groups in parentheses, and 1 is none of them"),
        ("regexp_extract(path, 'a(?=b)', 0) = 'x'", "no regular expression"),
        ("regexp_replace(path, 'a', '$2') = 'x'", "is no group"),
        ("regexp_count(path, 'a*') = 1", "could match nothing"),
        ("regexp_replace(path, '\\\\b', '-') = 'a'", "could match nothing"),
        ("regexp_replace(path, 'a', '$1') = 'a'", "is no group"),
        ("unix_date(at) = 1", "unix_date needs a date, not timestamp"),
        ("shiftleft(x, 1) = 2", "shiftleft needs a whole number, not double"),
    ],
)
def test_constants_that_cannot_be_used(text: str, said: str) -> None:
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, SCHEMA)


def test_what_is_no_day_is_refused_in_ansi_mode() -> None:
    for text, said in (
        ("make_date(y, 2, 30) IS NULL", "not computed in ANSI mode"),
        ("next_day(day, 'x') IS NULL", "'x' is no day of the week"),
    ):
        assert cm.Matcher.build({1: text}, SCHEMA).match_one({"y": 2024, "day": TABLE["last_day"].row["day"]}) == [1]
        with pytest.raises(cm.ExpressionError, match=said):
            cm.Matcher.build({1: text}, SCHEMA, options=cm.Options(ansi=True))


def test_concat_ws_leaves_nulls_out() -> None:
    rules = {
        1: "concat_ws('-', path, name) = 'a'",
        2: "concat_ws('-', path, name) IS NULL",
        3: "concat_ws('-', path, name) = ''",
    }
    matcher = cm.Matcher.build(rules, SCHEMA)
    events = [{"path": "a"}, {"name": "a"}, {}, {"path": "a", "name": "b"}]
    assert matcher.match_lists(pa.Table.from_pylist(events, schema=SCHEMA.arrow)).to_pylist() == [[1], [1], [3], []]
    assert [matcher.match_one(event) for event in events] == [[1], [1], [3], []]


def test_the_builder_has_them() -> None:
    rule = cm.function("split_part", cm.col("path"), "/", 1) == "shop"
    assert str(rule) == "split_part(path, '/', 1) = 'shop'"
    assert cm.Matcher.build({1: rule}, SCHEMA).match_one({"path": "shop/x"}) == [1]


def test_names_of_zones_and_modes_are_texts_here() -> None:
    rules = {1: "translate(name, 'UTC', 'x') = 'ansi'", 2: "replace(name, 'UTC', 'ansi') = 'ansi'"}
    matcher = cm.Matcher.build(rules, SCHEMA, options=cm.Options(timezone="UTC"))
    assert version(matcher).session_parts.zone is None
    assert matcher.match_one({"name": "UTC"}) == [2]


def test_each_has_a_page_whose_program_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed: pip install -e . --group docs")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs" / "_ext"))
    monkeypatch.delitem(sys.modules, "values", raising=False)
    from values import page  # type: ignore[import-not-found]

    for function in TABLE.values():
        text: str = page(function)
        program, answer = [dedent(block).strip() for block in re.findall(r"code-block:: \w+\n((?:\n|   .*\n)+)", text)]
        names: dict[str, Any] = {}
        exec(compile(ast.parse(program), function.name, "exec"), names)
        assert capsys.readouterr().out.strip() == answer == "[1]"
