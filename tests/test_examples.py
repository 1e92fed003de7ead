"""The examples of public docstrings, run as a reader pastes them after those of the class."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

import colmatch as cm

# Each way to find matches, and each way to change and to save a matcher.
SHOWN = {
    "columns_with", "count", "counters", "delete", "exists", "explain",
    "explain_many", "hits", "insert", "match", "match_batches", "match_lists",
    "match_one", "match_topk", "reasons", "replace", "save", "subset", "upsert", "update", "sync", "snapshot", "restore", "verify",
    "expression", "to_table", "redefine", "check", "report",
}  # fmt: skip


def names() -> dict[str, Any]:
    """Returns what the example of the class defines."""
    found: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(cm.Matcher.__doc__ or ""):
        exec(example.source, found)
    return found


@pytest.mark.parametrize("name", sorted(name for name in vars(cm.Matcher) if not name.startswith("_")))
def test_an_example_does_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser, text = doctest.DocTestParser(), getattr(cm.Matcher, name).__doc__ or ""
    test = parser.get_doctest(text, names() if ">>>" in text else {}, name, None, None)
    assert name not in SHOWN or test.examples, "an example is to show it"
    said: list[str] = []
    failed, _ = doctest.DocTestRunner().run(test, out=said.append)
    assert not failed, "".join(said)
