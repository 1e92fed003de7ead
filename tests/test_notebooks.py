"""What a notebook shows of a matcher, an explanation and figures."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.show.notebook import ROWS_MOST, bytes_of, cell, fold_body, table

EVIL = "<script>alert(1)</script>"
SCHEMA = pa.schema({"a": pa.float64(), "b": pa.string(), EVIL: pa.int64()})


class Seen(HTMLParser):
    """Tags and texts of HTML, whose tags must be closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[tuple[str, Any]] = []
        self.texts: list[str] = []
        self.unfolded: list[tuple[bool, str]] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open[-1][0] == "summary":
            self.unfolded.append(("open" in self.open[-2][1], data))


def seen(shown: Any) -> Seen:
    found = Seen(shown._repr_html_())
    assert set(found.tags) <= {"table", "caption", "tbody", "tr", "th", "td", "details", "summary", "div"}
    return found


@pytest.fixture
def matcher() -> cm.Matcher:
    rules = {
        EVIL: f"a > 1 AND (b = '{EVIL}' OR (b = 'x' AND a < 9)) AND (a < 5 OR b = 'y')",
        "plain": "`" + EVIL + "` > 1",
    }
    return cm.Matcher.build(rules, SCHEMA)


def test_a_matcher(matcher: cm.Matcher) -> None:
    found = seen(matcher)
    text = " ".join(found.texts)
    assert EVIL in found.texts  # a column of the schema
    for told in ("scan", "3 columns", "double", "bytes a subscription", "lowest estimated time"):
        assert told in text
    assert seen(matcher).texts[found.texts.index("subscriptions") + 1] == "2"
    matcher.close()
    assert seen(matcher).texts == found.texts


def test_a_matcher_in_pages(tmp_path: Path) -> None:
    built = cm.Matcher.build({1: "a > 1"}, {"a": "double"}, index=cm.index("pbtree", path=str(tmp_path / "x.pages")))
    assert "pbtree" in " ".join(seen(built).texts)
    assert "costs" not in built.stats()
    built.close()


def test_many_columns_are_counted() -> None:
    wide = cm.Matcher.build({1: "c0 > 1"}, {f"c{i}": "int64" for i in range(1000)})
    found = seen(wide).texts
    assert "c49" in found and "c50" not in found and "and 950 more" in found
    assert len(seen(wide.stats()).tags) > ROWS_MOST


def test_an_explanation_folds(matcher: cm.Matcher) -> None:
    event = {"a": 3.0, "b": EVIL, EVIL: 7}
    told = matcher.explain(event, EVIL)
    found = seen(told)
    assert told.matched and f"subscription {EVIL!r}: matches" in found.texts
    assert any(EVIL in text and "IN" not in text for text in found.texts if text.startswith("True b"))
    assert (True, "True all of") in found.unfolded and (False, "False all of") in found.unfolded
    lines = [line.lstrip("│├└─ ").split() for line in str(told).splitlines()]
    assert [text.split() for text in found.texts] == lines


def test_an_explanation_tells_what_is_lacking() -> None:
    strict = pa.schema([pa.field("a", pa.float64()), pa.field(EVIL, pa.string(), nullable=False)])
    told = cm.Matcher.build({1: "a > 1"}, strict).explain({"a": 3.0}, 1)
    assert any("the event lacks" in text and EVIL in text for text in seen(told).texts)


def test_figures_are_dictionaries(matcher: cm.Matcher) -> None:
    stats = matcher.stats()
    assert isinstance(stats, dict) and json.loads(json.dumps(stats)) == stats
    assert "bytes_per_subscription" in seen(stats).texts
    counters = matcher.counters(pa.table({"a": [1.0], "b": ["x"], EVIL: [1]}))
    assert seen(counters).texts == [text for name, n in counters.items() for text in (name, str(n))]


def test_cells_are_escaped() -> None:
    for value, shown in (
        (EVIL, "&lt;script&gt;"), ({EVIL: EVIL}, "&lt;script&gt;"), ([EVIL], "&lt;script&gt;"), (12345, "12,345"),
        (None, "None"), (True, "True"), ({}, "none"), (b"<b>", "&lt;b&gt;"), (0.26, "0.3"),
    ):  # fmt: skip
        assert shown in cell(value) and "<script" not in cell(value) and "<b>" not in cell(value)
    assert "<script" not in table([], EVIL) and "<script" not in fold_body(EVIL, "")
    assert [bytes_of(n) for n in (0, 999, 1000, 92_100_000, 10**15)] == [
        "0 bytes", "999 bytes", "1.0 kB", "92.1 MB", "1,000.0 TB",
    ]  # fmt: skip


def test_bars_are_those_of_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook, ``tqdm.auto`` has a widget."""
    made: list[dict[str, Any]] = []

    class Widget:
        def __init__(self, **said: Any) -> None:
            made.append(said)

        def __enter__(self) -> Widget:
            return self

        def __exit__(self, *error: object) -> None: ...

        def update(self, n: int) -> None: ...

    import tqdm.auto

    monkeypatch.setattr(tqdm.auto, "tqdm", Widget)
    cm.Matcher.build({i: f"a > {i}" for i in range(20)}, {"a": "double"}, progress=True)
    assert made and made[0]["file"] is sys.stderr


def test_costs_are_those_of_the_reason(matcher: cm.Matcher) -> None:
    stats = matcher.stats()
    said = re.search(r"event, ([0-9.]+) us", stats["reason"])
    assert sorted(stats["costs"]) == sorted(cm.index_kinds())
    assert min(stats["costs"], key=stats["costs"].get) == matcher.kind
    assert said and stats["costs"][matcher.kind] == pytest.approx(1e3 * float(said[1]), rel=0.01)
