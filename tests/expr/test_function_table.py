"""The table of functions: each is what its row says, wherever it is written."""

from __future__ import annotations

import ast
import datetime as dt
import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pytest
from contract import ALL, every_kind
from inside import version

import colmatch as cm
from colmatch.events.computed.variant_bytes import variant_of
from colmatch.expr.ast import Refusal
from colmatch.expr.functions import ANY, COLUMNS, CONSTANTS, NAMES, SYNONYMS, SYNTAX, TABLE, VALUE, Function
from colmatch.sql.quotes import Quotes
from colmatch.sql.tokens import read_text

SCHEMA = cm.Schema(COLUMNS)
RULES = {name: f"{function.call} {function.test}" for name, function in TABLE.items()}
READ = ("text or bytes", "text or whole number", "date", "timestamp")
each = pytest.mark.parametrize("function", TABLE.values(), ids=TABLE)


@every_kind
def test_examples_are_true(kind: str) -> None:
    """In batches and single events, and not for an event without values."""
    matcher = cm.Matcher.build(RULES, SCHEMA, index=kind)
    rows = [dict(function.row) for function in TABLE.values()]
    for row in rows:
        if "doc" in row:
            row["doc"] = variant_of(row["doc"], "doc")
    *found, nothing = matcher.match_lists(pa.Table.from_pylist([*rows, {}], schema=SCHEMA.arrow)).to_pylist()
    assert nothing == [] and [name for name, ids in zip(TABLE, found, strict=True) if name not in ids] == []
    for i in range(ALL.index(kind), len(rows), len(ALL)):
        assert sorted(matcher.match_one(rows[i])) == sorted(found[i])


@each
def test_other_names_mean_the_same(function: Function) -> None:
    rule = RULES[function.name]
    for name in (function.name.upper(), *function.synonyms):
        text = re.sub(rf"\b{function.name}(?=\()", name, rule, flags=re.IGNORECASE)
        assert text != rule or function.form or function.call == "now()"
        assert cm.Matcher.build({1: text}, SCHEMA).match_one(function.row) == [1]
    assert function.name not in SYNONYMS


@each
def test_a_wrong_call_says_how_it_is_written(function: Function) -> None:
    counts = [count for count in range(9) if function.find_fault(function.name, count)]
    assert counts or function.repeats
    for count in counts if function.kind != SYNTAX and not function.form else ():
        with pytest.raises(Refusal, match=re.escape(f"it is written {function.written}, as in ")):
            read_text(f"{function.name}({', '.join(['1'] * count)}) IS NULL", 99, Quotes())
    if not _has_types(function):
        return
    wrong = [] if ANY in function.arguments else [f"{function.name}(flags > 1)"]
    for place, kind in enumerate(function.arguments if not function.repeats else ()):
        arguments = _arguments(function)
        if place >= len(arguments) or kind == ANY:
            continue
        # A text is read as a date or timestamp, and a whole number may be written as a text
        arguments[place] = "x" if kind in READ else "name" if kind in CONSTANTS or kind != "string" else "flags"
        wrong.append(f"{function.name}({', '.join(arguments)})")
    for text in wrong:
        with pytest.raises(cm.ExpressionError, match=f"{re.escape(function.name)}|^CAST of"):
            cm.Matcher.build({1: f"{text} IS NULL"}, SCHEMA)


def _has_types(function: Function) -> bool:
    """Whether the row's types say all about the arguments."""
    return (
        function.kind == VALUE and function.rule in ("_of_table", "_tried") and function.call.startswith(function.name)
    )


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
        ("map_contains(now(), 'a') <=> true", "map_contains_key takes a map and a literal"),
        ("map_contains(array(1), 'a')", "map_contains_key takes a map and a literal"),
        ("get(day, 1) = 1", "get needs a list column; 'day' is date32"),
        ("get(attrs, 1) = 'a'", "get needs a list column; 'attrs' is map"),
    ],
)
def test_constants_that_cannot_be_used(text: str, said: str) -> None:
    with pytest.raises(cm.ExpressionError, match=said):
        cm.Matcher.build({1: text}, SCHEMA)


def test_what_is_no_day_is_refused_in_ansi_mode() -> None:
    for text, said in (("next_day(day, 'x') IS NULL", "'x' is no day of the week"),):
        assert cm.Matcher.build({1: text}, SCHEMA).match_one({"y": 2024, "day": TABLE["last_day"].row["day"]}) == [1]
        with pytest.raises(cm.ExpressionError, match=said):
            cm.Matcher.build({1: text}, SCHEMA, options=cm.Options(ansi=True))


def test_a_literal_place_chooses_a_text_in_both_modes() -> None:
    for ansi in (False, True):
        matcher = cm.Matcher.build({1: "elt(2, path, name) = 'b'"}, SCHEMA, options=cm.Options(ansi=ansi))
        assert [matcher.match_one({"path": "b", "name": name}) for name in ("b", "a", None)] == [[1], [], []]


def test_narrow_numbers_become_wider_as_in_spark() -> None:
    """The least number of 16 bits has no negation; nanvl makes doubles of whole numbers."""
    rules = {1: "date_sub(day, i) = DATE '2089-09-18'", 2: "nanvl(big, 0) = 9007199254740992.0", 3: "pmod(-7Y, i) = -7"}
    matcher = cm.Matcher.build(rules, {"day": "date32", "i": "int16", "big": "int64"})
    event = {"day": dt.date(2000, 1, 1), "i": -32768, "big": 9007199254740993}
    assert matcher.match_one(event) == [1, 2, 3]


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


def _words() -> set[str]:
    """Names that the code which reads expressions has in quotes, and the functions of DuckDB."""
    root = Path(cm.__file__).parent
    sources = [path.read_text() for folder in ("sql", "expr", "given") for path in (root / folder).glob("*.py")]
    words = {word.lower() for source in sources for word in re.findall(r"""["']([A-Za-z_]\w*)["']""", source)}
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    asked = duckdb.sql("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    return words | {name for (name,) in asked if name.isidentifier()} | NAMES.keys()


def test_the_parser_knows_the_functions_of_the_table_and_no_others() -> None:
    """A call is refused for its name, or the table has the name."""
    known = set()
    for word in _words():
        for arguments in ("", "path", "'x'"):
            try:
                read_text(f"{word}({arguments}) = path", 99, Quotes())
            except Refusal as refusal:
                if re.match(rf"function '{word}' is not|'{word}' is not expected|subqueries", refusal.message, re.I):
                    continue
            known.add(word)
    grammar = {"and", "between", "false", "ilike", "in", "is", "like", "not", "null", "or", "true", "where"}
    assert known - NAMES.keys() <= grammar
    assert NAMES.keys() - known == set()


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
