"""Rules of json-rules-engine on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shell import fails, run

SCHEMA = "amount: double, customer: struct<country: string>"
RULES: list[dict[str, Any]] = [
    {"name": "large", "conditions": {"all": [{"fact": "amount", "operator": "greaterThan", "value": 100}]}},
    {
        "name": "foreign",
        "conditions": {"any": [{"fact": "customer", "path": "$.country", "operator": "notEqual", "value": "FR"}]},
    },
]
ORDERS = '{"amount": 120, "customer": {"country": "FR"}}\n{"amount": 5}\n{"customer": {"country": "PT"}}\n'


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_text(json.dumps(RULES, indent=2))
    Path("orders.jsonl").write_text(ORDERS)


def build(rules: str, *more: object) -> tuple[object, ...]:
    return ("build", rules, "--language", "json-rules", "-o", "r.cm", *more)


@pytest.mark.parametrize("columns", [("--schema", SCHEMA), ("--like", "orders.jsonl")], ids=["schema", "like"])
def test_rules_are_built_and_matched(columns: tuple[str, ...]) -> None:
    assert "2 subscriptions" in run(*build("rules.json", *columns)).stderr
    printed = run("match", "r.cm", "orders.jsonl").stdout.split()
    assert printed == ['"event","subscription"', '0,"large"', '1,"foreign"', '2,"foreign"']


def test_lines_from_standard_input() -> None:
    lines = "".join(json.dumps({"conditions": rule["conditions"]}) + "\n" for rule in RULES)
    run(*build("-", "--schema", SCHEMA), input=lines)
    assert run("match", "r.cm", "orders.jsonl").stdout.split()[1:] == ["0,0", "1,1", "2,1"]


def test_errors_name_the_file_and_the_path() -> None:
    Path("bad.json").write_text(json.dumps([{**RULES[0], "conditions": {"all": [{"condition": "x"}]}}]))
    assert "bad.json: rule 'large': conditions.all[0].condition: there is no named condition 'x'" in fails(
        *build("bad.json", "--schema", SCHEMA)
    )
    assert "rules come in one file, and 2 are named" in fails(*build("rules.json", "rules.json", "--schema", SCHEMA))
    for more in (("--ids", "string"), ("--format", "csv")):
        assert "--ids and --format do not go with" in fails(*build("rules.json", "--schema", SCHEMA, *more), code=2)
    assert "--domains goes with" in fails(*build("rules.json", "--domains", "d.txt"), code=2)
