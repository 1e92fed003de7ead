"""``colmatch check`` of rules: of an index, and of a file of rules."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from shell import fails, invoke, run, write

import colmatch as cm

SCHEMA = "price: double, dest: string"
RULES = {"cheap": "price < 100", "less": "price < 50", "odd": "price < 1 AND price > 2", "same": "price < 100.0"}


def saved(folder: Path, rules: dict[str, str] = RULES) -> Path:
    cm.Matcher.build(rules, {"price": "double", "dest": "string"}).save(folder / "index")
    return folder / "index"


def lines(text: str) -> list[tuple[str, str, str | None]]:
    rows = [json.loads(line) for line in text.splitlines()]
    return [(row["id"], row["finding"], row["other"]) for row in rows]


def test_findings_of_an_index(tmp_path: Path) -> None:
    index = saved(tmp_path)
    found = invoke("check", index, "--rules", "--out-format", "jsonl")
    assert lines(found.stdout) == [("odd", "never", None), ("same", "duplicate", "cheap")]
    assert "is as it was written" in found.stderr and "4 rules, 2 findings" in found.stderr
    assert run("check", index).stdout.splitlines() == [f"{index} is as it was written"]
    strict = invoke("check", index, "--strict")
    assert strict.exit_code == 1
    assert strict.stdout.splitlines()[0] == '"id","finding","other","status","reason","example"'
    clean = invoke("check", saved(tmp_path, {"a": "price < 1"}), "--strict")
    assert (clean.exit_code, len(clean.stdout.splitlines())) == (0, 1)


def test_examples_are_json(tmp_path: Path) -> None:
    index = saved(tmp_path)
    told = run("check", index, "--check", "contained", "--check", "overlaps", "--ids", "less", "--out-format", "jsonl")
    assert lines(told.stdout) == [
        ("less", "contained", "cheap"),
        ("less", "contained", "same"),
        ("less", "overlaps", "cheap"),
        ("less", "overlaps", "same"),
    ]
    for line in told.stdout.splitlines():
        assert json.loads(json.loads(line)["example"])["price"] < 50


def test_a_file_of_rules_and_a_sample(tmp_path: Path) -> None:
    rules = tmp_path / "rules.csv"
    rules.write_text("id,expression\n1,dest = 'LSI'\n2,price > 5 AND price < 3\n3,dest = 'LIS'\n")
    events = write(tmp_path / "events.parquet", pa.table({"price": [1.0, None], "dest": ["LIS", "OPO"]}))
    found = invoke("check", rules, "--like", events, "--events", events, "--strict", "--out-format", "jsonl")
    assert lines(found.stdout) == [(2, "never", None), (1, "odd literal", None)] and found.exit_code == 1
    assert lines(run("check", rules, "--schema", SCHEMA, "--check", "never", "--out-format", "jsonl").stdout) == [
        (2, "never", None)
    ]
    assert "give a sample, too" in fails("check", rules, "--schema", SCHEMA, "--check", "odd literal")
    for flags in ((), ("--strict",)):
        assert "a file of rules needs --schema or --like" in fails("check", rules, *flags)
    assert "checks: 'nope'" in fails("check", rules, "--schema", SCHEMA, "--check", "nope")
    assert "No such file" in fails("check", tmp_path / "nowhere", "--rules")


def test_a_limit_for_bad_expressions(tmp_path: Path) -> None:
    rules = tmp_path / "rules.csv"
    rules.write_text("id,expression\n1,price < 1\n2,prise < 1\n3,prise < 2\n")
    build = ("build", rules, "--schema", SCHEMA, "-o", tmp_path / "i", "--errors", "collect", "--max-rejected")
    assert "2 were rejected, more than --max-rejected 1, and nothing is saved" in invoke(*build, "1").stderr
    assert "2 were rejected" in invoke(*build, "0.5").stderr and not (tmp_path / "i").exists()
    assert "'some' is neither" in invoke(*build, "some").stderr
    run(*build, "2")
    run(*build, "0.7")
    assert "goes with errors='collect'" in fails(
        "build", rules, "--schema", SCHEMA, "-o", tmp_path / "i", "--max-rejected", "1"
    )


def test_rules_with_tags_and_other_names_of_columns(tmp_path: Path) -> None:
    rules = tmp_path / "rules.csv"
    rules.write_text("rule_id;where_clause;team\n1;price > 5 AND price < 3;eu\n2;price > 7 AND price < 3;us\n")
    names = ("--schema", SCHEMA, "--id", "rule_id", "--expression", "where_clause", "--tags", "team")
    found = run("check", rules, *names, "--check", "never", "--tag", "eu", "--out-format", "jsonl")
    assert lines(found.stdout) == [(1, "never", None)]
    run("build", rules, *names, "-o", tmp_path / "t.cm")
    assert cm.Matcher.open(tmp_path / "t.cm").tags.to_pylist() == [["eu"], ["us"]]
    assert "no rule has 'xx'" in fails("check", rules, *names, "--tag", "xx", code=2)
    built = ("build", tmp_path / "r.json", "--language", "jsonlogic", "-o", tmp_path / "r.cm")
    assert "--expression, --tags, --ids and --format do not go with" in fails(*built, *names, code=2)
