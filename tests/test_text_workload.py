"""Workloads of text patterns: any part comes out alike, and rules match some events, not all."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from workload import TextWorkload, named
from workload.strings import CHUNK, NAMES

import colmatch as cm
from colmatch.cli.files import read_table


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_alike(name: str) -> None:
    workload = TextWorkload(name, subscriptions=CHUNK + 50)
    texts, events = workload.texts(), workload.events(CHUNK + 50)
    assert (len(texts), len(events)) == (CHUNK + 50, CHUNK + 50)
    assert workload.texts(CHUNK - 3, 10) == texts.slice(CHUNK - 3, 10)
    assert workload.events(10, CHUNK - 3) == events.slice(CHUNK - 3, 10)
    assert workload.events(0).schema == workload.schema() and len(workload.texts(5, 0)) == 0
    again = TextWorkload(name, subscriptions=CHUNK + 50, seed=1)
    assert again.texts(0, 20) != texts.slice(0, 20) and again.events(20) != events.slice(0, 20)


@pytest.mark.parametrize("name", NAMES)
def test_rules_match_some_events(name: str) -> None:
    workload = TextWorkload(name, subscriptions=400)
    matcher = cm.Matcher.build(workload.texts(), workload.schema())
    counts = matcher.count(workload.events(300))
    assert 3 < sum(count > 0 for count in counts) < 300
    expressions = set(workload.texts()["expression"].to_pylist())
    assert len(expressions) > 390


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "dense"}, "a workload of texts called 'dense': 'detections' or 'user-agents' is needed"),
        ({"name": "detections", "subscriptions": -1}, "subscriptions=-1"),
        ({"name": "detections", "subscriptions": 2.5}, "subscriptions=2.5"),
        ({"name": "detections", "seed": "x"}, "seed='x'"),
    ],
)
def test_errors(given: dict[str, Any], message: str) -> None:
    with pytest.raises(cm.OptionError) as error:
        TextWorkload(**given)
    assert message in str(error.value)


def test_parts_that_are_not_there() -> None:
    workload = TextWorkload("detections", subscriptions=10)
    with pytest.raises(cm.OptionError, match="there are no subscriptions 5 to 15, but 10 in all"):
        workload.texts(5, 10)
    with pytest.raises(cm.OptionError, match="rows=-1"):
        workload.events(-1)


def test_files_are_what_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subs, events, rows = tmp_path / "subs.parquet", tmp_path / "events.arrow", tmp_path / "rows.parquet"

    def generate(*words: object) -> None:
        monkeypatch.setattr("sys.argv", ["generate.py", *map(str, words)])
        importlib.import_module("generate").main()

    generate("user-agents", "subscriptions=300", "seed=3", "--rows", 50, "--subs", subs, "--events", events)
    workload = TextWorkload("user-agents", 300, 3)
    assert read_table(str(subs)).equals(workload.texts()) and read_table(str(events)).equals(workload.events(50))
    changed = {"subscriptions": 9, "event_size": (4, 5), "layout": "map", "weights": True}
    generate("dense", *(f"{name}={value}" for name, value in changed.items()), "--predicates", "--subs", rows)
    assert read_table(str(rows)).equals(named("dense", **changed).predicates())
    for words, said in (
        (["dense"], "say where to write"),
        (["dance", "--subs", subs], "invalid choice: 'dance'"),
        (["dense", "--subs", "s.jsonl"], "s.jsonl: the extension must be one of .parquet, .arrow, .csv"),
        (["dense", "equality", "--subs", subs], "'equality' is no FIELD=VALUE"),
        (["detections", "--predicates", "--subs", subs], "leave --predicates out"),
    ):
        with pytest.raises(SystemExit):
            generate(*words)
        assert said in capsys.readouterr().err
    with pytest.raises(cm.OptionError, match=r"Workload\(equality=2.0\)"):
        generate("dense", "equality=2.0", "--subs", subs)
