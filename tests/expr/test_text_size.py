"""Large texts: the limit of their size, and work that grows as the text does."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.betree import compile as betree_compile
from colmatch.lowering import few, groups
from colmatch.lowering.few import FewExpressions
from colmatch.sql import compile, parse, tokens
from colmatch.sql.split import split
from colmatch.sql.tokens import read_text

SCHEMA = {"a": "int64", "f": "float64", "s": "string", "tags": pa.list_(pa.int64())}
DOMAINS = ["a|integer|true", "s|string|true", "tags|integer list|true"]
TOO_LARGE = r"the expression has more than {:,} bytes: .*Options\(max_text_bytes=\.\.\.\)"


def built(text: str, language: str = "sql", **options: Any) -> cm.Matcher:
    schema = SCHEMA if language == "sql" else cm.betree.Domains(DOMAINS)
    return cm.Matcher.build({1: text}, schema, "scan", cm.Options(**options), language=language)


@pytest.mark.parametrize("language", ["sql", "betree"])
def test_a_text_with_more_bytes_is_refused_before_it_is_read(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile, "split", lambda text: pytest.fail("the text was cut"))
    monkeypatch.setattr(betree_compile, "parse_betree", lambda *_: pytest.fail("the text was read"))
    with pytest.raises(cm.ExpressionError, match=TOO_LARGE.format(1 << 20)):
        built("(" * ((1 << 20) + 1), language)
    with pytest.raises(cm.ExpressionError, match=TOO_LARGE.format(9)):
        built("s = 'éé'", language, max_text_bytes=9)  # ten bytes, eight characters


@pytest.mark.parametrize("language", ["sql", "betree"])
@pytest.mark.parametrize(
    ("text", "most", "line", "column"),
    [
        ("a = 1\nAND a = 10", 8, 2, 3),
        ("a = 1\nAND a = 10", 6, 2, 1),
        ("a = 1", 2, 1, 3),
        ("s = 'éé'", 6, 1, 6),  # the sixth byte is half a character
        ("s = 'éé'", 7, 1, 7),
    ],
)
def test_the_place_of_a_large_text_is_where_too_much_begins(
    language: str, text: str, most: int, line: int, column: int
) -> None:
    with pytest.raises(cm.ExpressionError, match=rf"\(subscription 1, line {line}, column {column}\)$"):
        built(text, language, max_text_bytes=most)


@pytest.mark.parametrize("language", ["sql", "betree"])
def test_a_text_with_as_many_bytes_is_read(language: str) -> None:
    assert len(built("s = 'éé'", language, max_text_bytes=10)) == 1


def test_tables_of_predicates_and_the_builder_have_no_such_limit() -> None:
    options = cm.Options(max_text_bytes=1)
    rows = {"id": [1], "attribute": ["a"], "op": ["in"], "operands": [list(range(100))]}
    assert len(cm.Matcher.build(cm.PredicateTable(pa.table(rows)), SCHEMA, "scan", options)) == 1
    assert len(cm.Matcher.build({1: cm.col("a").isin(range(100))}, SCHEMA, "scan", options)) == 1


def test_the_limit_counts_for_texts_to_come_alone(tmp_path: Path) -> None:
    """Expressions that were saved, or written to a journal, are not read as text again."""
    built("a = 1 OR a = 2").save(tmp_path / "m.cm")
    with cm.Matcher.open(tmp_path / "m.cm", journal=True) as matcher:
        matcher.insert({2: "a = 3 OR a = 4"})
        matcher.options = cm.Options(max_text_bytes=5)
        with pytest.raises(cm.ExpressionError, match=TOO_LARGE.format(5)):
            matcher.insert({3: "a = 10"})
        matcher.insert({3: "a = 5"})
        assert matcher.insert({4: "a = 10"}, errors="collect") is None and len(matcher.rejected) == 1
    with cm.Matcher.open(tmp_path / "m.cm", journal=True) as again:
        assert len(again) == 3


# Work is measured in calls of functions of Python and C, the same on every machine
# --------------------------------------------------------------------------


def calls_of(text: str, language: str) -> int:
    """Counts the functions that are called to build a matcher of a text, which may be refused."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += 1

    gc.disable()
    sys.setprofile(note)
    try:
        built(text, language)
    except cm.ColmatchError:
        pass
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def test_a_single_text_is_read_without_garbage_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection would look through all objects of a large text, again and again."""
    enabled: list[bool] = []
    monkeypatch.setattr(compile, "split", lambda text: enabled.append(gc.isenabled()) or split(text))
    assert gc.isenabled() and len(built("a = 1 AND a = 2")) == 1
    assert enabled and not any(enabled) and gc.isenabled()


@pytest.mark.parametrize("text", ["b = 1", "concat(s, s) = 1", "a = 1 AND a = 1 AND b = 1", "a IN (1, 'x')", "s LIKE"])
def test_a_text_that_is_refused_is_read_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts: list[str] = []
    reads: list[str] = []
    skeletons: list[str] = []
    skeleton = parse.Parser._skeleton
    monkeypatch.setattr(compile, "split", lambda text: cuts.append(text) or split(text))
    monkeypatch.setattr(parse, "read_text", lambda text, *more: reads.append(text) or read_text(text, *more))
    monkeypatch.setattr(parse.Parser, "_skeleton", lambda self, it: skeletons.append(it.text) or skeleton(self, it))
    with pytest.raises(cm.ExpressionError) as refused:
        built(text)
    assert refused.value.line == 1
    assert cuts.count(text) == reads.count(text) == 1
    assert skeletons.count(text) <= 1


def test_texts_are_let_go_of() -> None:
    for text in ("(a = 1 AND a = 2)", "(a = 1 AND b = 2)"):
        expression = f"{text} OR a = 3"
        before = sys.getrefcount(expression)
        matcher = cm.Matcher.build({1: expression}, SCHEMA, "scan", errors="collect", max_rejected=1.0)
        assert len(matcher) == ("b" not in text)
        assert sys.getrefcount(expression) == before


def test_a_large_expression_is_lowered_by_columns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FewExpressions, "_plain_plan", lambda *_: pytest.fail("a plan was made for it"))
    n = few.MOST_INTERVALS + 1
    for text in (
        " AND ".join(f"a <> {i}" for i in range(n)),
        f"f IN (1.5, {', '.join(map(str, range(n)))})",
        f"contains_all(tags, {', '.join(map(str, range(n)))})",
    ):
        assert len(built(text)) == 1


@pytest.mark.parametrize(
    ("text", "event", "calls"),
    [
        ("f IN (1.5, -1, 1e3, {})", {"f": [1.5, -1.0, 1000.0, 7.0, -7.0]}, 4),
        ("a IN (NULL, -1, {})", {"a": [0, -1, 7, 5000, -7]}, 2),
    ],
)
def test_a_list_of_kinds_is_converted_kind_by_kind(
    text: str, event: dict[str, list[Any]], calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    floors = groups.literal_floors
    monkeypatch.setattr(groups, "literal_floors", lambda *some: found.append(len(some[2])) or floors(*some))
    matcher = built(text.format(", ".join(map(str, range(few.MOST_INTERVALS)))))
    assert len(found) == calls and max(found) == few.MOST_INTERVALS
    wanted = [1, 1, 1, 1, 0] if "f" in event else [1, 1, 1, 0, 0]
    assert matcher.count(pa.table(event)).tolist() == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("concat({}) = 'x'", "^concat has more than 1,000 arguments: compute it beforehand, as a column"),
        ("lower(coalesce(s, (lower(s)), {})) = 'x'", "^coalesce has more than 1,000 arguments: compute it beforehand"),
        ("{} > 1", "a computed value has more than 1,000 operators: compute it beforehand, as a column"),
        ("a > 1 AND (a = 2 OR abs({}) > 1)", "a computed value has more than 1,000 operators"),
    ],
)
def test_a_value_of_very_many_parts_is_refused_before_it_is_parsed(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign = " + " if "operators" in said else ", "
    name = "a" if sign == " + " else "s"
    whole = text.format(sign.join([name] * 1002))
    skeletons: list[int] = []
    skeleton = parse.Parser._skeleton
    monkeypatch.setattr(
        parse.Parser, "_skeleton", lambda self, it: skeletons.append(len(it.text)) or skeleton(self, it)
    )
    with pytest.raises(cm.ExpressionError, match=said) as refused:
        built(whole)
    assert max(skeletons, default=0) < 10  # of other phrases only
    last = [found.start() for found in re.finditer(re.escape(sign.strip()), whole)][1000 if sign == " + " else 999]
    assert refused.value.column == last + 1


def test_values_of_a_thousand_parts_are_computed() -> None:
    """The bound is for each value and each function: commas and comparisons begin anew."""
    many = ", ".join(["s"] * 1000)
    assert built(f"concat({many}) <> 'x' AND coalesce({many}) = 'x'").count(pa.table({"s": ["x"]})).tolist() == [1]
    text = " OR ".join(f"a + {i} = 5" for i in range(1100))
    assert built(text).count(pa.table({"a": pa.array([3, 6])})).tolist() == [1, 0]


class Sliced(str):
    """A text that counts the characters that are copied out of it."""

    copied = 0

    def __getitem__(self, key: Any) -> str:
        found = str.__getitem__(self, key)
        Sliced.copied += len(found)
        return found


class Baked(dict[int, None]):
    """Slots that may be entered, and read in order, but never searched."""

    def __contains__(self, key: object) -> bool:
        raise AssertionError("the slots are searched")


def test_literals_of_computed_values_neither_search_nor_copy() -> None:
    """Without this, each literal copies the text behind it, and searches those before it."""
    text = Sliced(" OR ".join(f"concat(s, 'x{i}') = 'y' OR a + {i} = 5" for i in range(200)))
    parser = parse.Parser(200)
    reading = parser.read(text)
    reading.baked = Baked()
    Sliced.copied = 0
    parser.parse(reading)
    assert sorted(reading.baked) == list(range(0, 800, 2))
    assert Sliced.copied < len(text)


SHAPES: dict[str, tuple[str, Callable[[int], str]]] = {
    "an AND of one condition": ("sql", lambda n: " AND ".join(["a = 1"] * n)),
    "an OR of conditions": ("sql", lambda n: " OR ".join(f"a = {i}" for i in range(n))),
    "a list": ("sql", lambda n: f"a IN ({', '.join(map(str, range(n)))})"),
    "a list of kinds": ("sql", lambda n: f"f IN (1.5, {', '.join(map(str, range(n)))})"),
    "contains_all": ("sql", lambda n: f"contains_all(tags, {', '.join(map(str, range(n)))})"),
    "concat": ("sql", lambda n: f"concat(s, {', '.join(f'{i!s:s}' for i in range(n))}) = 'x'"),
    "concat of texts": ("sql", lambda n: "concat(s, " + ", ".join(f"'x{i}'" for i in range(n)) + ") = 'x'"),
    "LIKE ANY": ("sql", lambda n: "s LIKE ANY (" + ", ".join(f"'x{i}%'" for i in range(n)) + ")"),
    "quotes": ("sql", lambda n: "'" * n),
    "comments": ("sql", lambda n: "/* x */ " * n + "a = 1"),
    "be-tree AND": ("betree", lambda n: " and ".join(["a = 1"] * n)),
    "be-tree all of": ("betree", lambda n: f"tags all of ({','.join(map(str, range(n)))})"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_as_the_text_does(shape: str) -> None:
    language, make = SHAPES[shape]
    built("a = 1", language)  # imports, and kernels
    one, two = (calls_of(make(n), language) for n in (1000, 2000))
    assert two < 2.3 * one


def test_the_ends_of_casts_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look for each by itself took a megabyte of casts 20 s."""
    looks, closed = [], tokens._find_closings
    monkeypatch.setattr(tokens, "_find_closings", lambda raw: looks.append(len(raw)) or closed(raw))
    built("CAST(" * 60 + "a" + " AS INT)" * 60 + " = 1", "sql")
    assert len(looks) == 1


def test_bytes_count_and_not_characters() -> None:
    text, schema = f"s = '{chr(0x1F600) * 230}'", {"s": "string"}
    assert len(text) < 300 and len(text.encode()) > 900
    with pytest.raises(cm.ExpressionError, match="more than 900 bytes"):
        cm.Matcher.build({1: text}, schema, "scan", cm.Options(max_text_bytes=900))
    assert len(cm.Matcher.build({1: text}, schema, "scan", cm.Options(max_text_bytes=len(text.encode())))) == 1


def test_half_a_character_counts_as_well() -> None:
    for half, most, said in (("\ud800", 20, "half a surrogate pair"), ("\ud800" * 2, 9, "more than 9 bytes")):
        with pytest.raises(cm.ExpressionError, match=said):
            cm.Matcher.build({1: f"s = '{half}'"}, {"s": "string"}, "scan", cm.Options(max_text_bytes=most))
