"""``colmatch generate``: the files that it writes, what the other commands make of them, and its
errors.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from shell import fails, pairs, run

import colmatch as cm
from colmatch.cli.files import read_table
from colmatch.workload import NAMES, Workload, named


@pytest.mark.parametrize(
    ("name", "subs", "events"),
    [("dense", "parquet", "parquet"), ("opindex", "jsonl", "arrow"), ("dense", "csv", "csv")],
)
def test_generate_build_match(tmp_path: Path, name: str, subs: str, events: str) -> None:
    s, e = tmp_path / f"s.{subs}", tmp_path / f"e.{events}"
    changed = [
        "--subscriptions",
        200,
        "--planted",
        0.5,
        "--around",
        10,
        "--seed",
        7,
        "--attributes",
        40,
        "--event-size",
        40,
    ]
    result = run("generate", name, *changed, "--rows", 20, "--subs", s, "--events", e)
    assert "200 subscriptions, saved as" in result.stderr and "20 events, saved as" in result.stderr
    run("build", s, "--like", e, "-o", tmp_path / "i")
    run("match", tmp_path / "i", e, "-o", tmp_path / "out.parquet")
    workload = named(name, subscriptions=200, planted=0.5, around=10, seed=7, attributes=40, event_size=(40, 40))
    found = cm.Matcher.build(workload.predicate_table(), workload.schema()).match(workload.events(20))
    assert pairs(tmp_path / "out.parquet") == [tuple(row.values()) for row in found.to_pylist()]
    assert len(found) > 90


def test_generate_into_a_folder_with_every_option(tmp_path: Path) -> None:
    options = "--subscriptions 50 --attributes 9 --cardinality 7 --subscription-size 2,3 --subscription-mean 2.2"
    options += " --event-size 4 --equality 0.1"
    options += " --attribute-zipf 1 --value-zipf 0.5 --clusters 2 --cluster-size 3 --width 0,0.5 --list-size 1,2 --planted 0.2 --around 5"
    options += " --layout map --seed 3 --weights --format arrow --rows 12"
    run("generate", "dense", *options.split(), "--operators", "not in:1,<=:0.5", "-o", tmp_path / "new" / "folder")
    workload = Workload(
        "dense",
        50,
        9,
        7,
        (2, 3),
        2.2,
        (4, 4),
        0.1,
        (("not in", 1.0), ("<=", 0.5)),
        1.0,
        0.5,
        2,
        3,
        (0, 0.5),
        (1, 2),
        0.2,
        5,
        True,
        "map",
        3,
    )
    assert read_table(str(tmp_path / "new" / "folder" / "subs.arrow")).equals(workload.predicates())
    assert read_table(str(tmp_path / "new" / "folder" / "events.arrow")).equals(workload.events(12))
    run("generate", "dense", "--text", "--subscriptions", 9, "-o", tmp_path, "--rows", 0)
    assert read_table(str(tmp_path / "subs.parquet")).equals(named("dense", subscriptions=9).texts())
    assert read_table(str(tmp_path / "events.parquet")).num_rows == 0


def test_help_names_every_workload_and_every_field() -> None:
    said = run("generate", "--help").stdout
    for name in NAMES:
        assert name in said
    for field in fields(Workload):
        assert field.name == "name" or f"--{field.name.replace('_', '-')}" in said


def test_errors_of_generate(tmp_path: Path) -> None:
    out = tmp_path / "s.parquet"
    assert "no workload is called 'dance'" in fails("generate", "dance", "--subs", out)
    assert "Workload(equality=2.0)" in fails("generate", "dense", "--equality", 2, "--subs", out)
    assert "-o DIR, or --subs and --events" in fails("generate", "dense", code=2)
    assert "same file" in fails("generate", "dense", "--subs", out, "--events", out, code=2)
    assert "two whole numbers are needed, as in 3,7" in fails(
        "generate", "dense", "--event-size", "1,2,3", "--subs", out, code=2
    )
    assert "two numbers are needed" in fails("generate", "dense", "--width", "x", "--subs", out, code=2)
    assert "'<' should be OPERATOR:SHARE" in fails("generate", "dense", "--operators", "in:1,<", "--subs", out, code=2)
    assert "names no format" in fails("generate", "dense", "--subs", tmp_path / "s.txt", "--events", out)
    assert "which CSV cannot carry" in fails("generate", "dense", "--predicates", "--subs", tmp_path / "s.csv")
    assert "which CSV cannot carry" in fails("generate", "opindex", "--events", tmp_path / "e.csv")
    assert list(tmp_path.iterdir()) == []
