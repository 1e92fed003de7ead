"""Rules of json-rules-engine and of other products on the command line."""

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
    assert "bad.json: rule 'large' (line 1): conditions.all[0].condition: there is no named condition 'x'" in fails(
        *build("bad.json", "--schema", SCHEMA)
    )
    assert "rules come in one file, and 2 are named" in fails(*build("rules.json", "rules.json", "--schema", SCHEMA))
    for more in (("--ids", "string"), ("--format", "csv")):
        assert "--ids and --format do not go with" in fails(*build("rules.json", "--schema", SCHEMA, *more), code=2)
    assert "--domains goes with" in fails(*build("rules.json", "--domains", "d.txt"), code=2)


BAD: list[dict[str, Any]] = [
    {"name": "odd", "conditions": {"all": [{"fact": "amount", "operator": "custom", "value": 1}]}},
    {"name": "none", "conditions": {"all": [{"fact": "colour", "operator": "equal", "value": 1}]}},
]


@pytest.mark.parametrize("form", ["list", "lines", "object"])
def test_bad_rules_are_collected(form: str) -> None:
    rules = [BAD[0], RULES[0], BAD[1]]
    if form == "lines":
        text = "\n\n" + "\n".join(map(json.dumps, rules)) + "\n"
    elif form == "list":
        text = "[\n\n  " + ",\n  ".join(map(json.dumps, rules)) + "]\n"
    else:
        text = "{\n\n  " + ",\n  ".join(f"{json.dumps(rule['name'])}:{json.dumps(rule)}" for rule in rules) + "}\n"
    Path("some.json").write_text(text)
    column = {"lines": 1, "list": 3, "object": 9}[form]
    said = fails(*build("some.json", "--schema", SCHEMA))
    assert "some.json: rule 'odd' (line 3): conditions.all[0].operator: there is no operator 'custom'" in said
    result = run(*build("some.json", "--schema", SCHEMA, "--errors", "collect"))
    assert "rejected 'odd': conditions.all[0].operator: there is no operator 'custom'" in result.stderr
    assert (
        f"(line 3, column {column})" in result.stderr and "rejected 'none': unknown attribute 'colour'" in result.stderr
    )
    assert "1 subscriptions, 2 rejected" in result.stderr
    assert run("match", "r.cm", "orders.jsonl").stdout.split()[1:] == ['0,"large"']
    run(*build("some.json", "--schema", SCHEMA, "--rejected", "bad.jsonl"))
    bad = [json.loads(line) for line in Path("bad.jsonl").read_text().splitlines()]
    assert [(row["id"], row["line"], row["column"]) for row in bad] == [("odd", 3, column), ("none", None, None)]


# Other formats of rules
# --------------------------------------------------------------------------

FLAG = {"state": "ENABLED", "variants": {"on": 1, "off": 0}, "defaultVariant": "off"}
TARGETING = {"if": [{">": [{"var": "amount"}, 100]}, "on"]}
FORMATS: dict[str, tuple[Any, list[str]]] = {
    "jsonlogic": ({"large": {">": [{"var": "amount"}, "100"]}}, ['0,"large"']),
    "growthbook": ({"some": {"customer.country": {"$inGroup": "eu"}}}, ['0,"some"']),
    "flagd": ({"flags": {"x": {**FLAG, "targeting": TARGETING}}}, ['0,"x/on"', '1,"x/off"', '2,"x/off"']),
}


@pytest.mark.parametrize("language", FORMATS)
def test_rules_of_other_formats(language: str) -> None:
    rules, matches = FORMATS[language]
    Path("other.json").write_text(json.dumps(rules))
    Path("groups.json").write_text('{"eu": ["FR"]}')
    named = ["--named", "groups.json"] if language == "growthbook" else []
    run("build", "other.json", "--language", language, "--like", "orders.jsonl", "-o", "o.cm", *named)
    assert run("match", "o.cm", "orders.jsonl").stdout.split()[1:] == matches


def test_what_rules_refer_to_by_name() -> None:
    conditions = {"all": [{"fact": "amount", "operator": "greaterThan", "value": 100}]}
    Path("named.json").write_text(json.dumps({"large": conditions}))
    Path("refers.json").write_text('[{"name": "a", "conditions": {"condition": "large"}}]')
    run(*build("refers.json", "--schema", SCHEMA, "--named", "named.json"))
    assert run("match", "r.cm", "orders.jsonl").stdout.split()[1:] == ['0,"a"']
    Path("named.json").write_text("{")
    assert "refers.json: the named conditions: this is not JSON" in fails(
        *build("refers.json", "--schema", SCHEMA, "--named", "named.json")
    )
    for language, goes in (("betree", "sql, json-rules and growthbook"), ("flagd", "sql, json-rules and growthbook")):
        assert f"--named goes with --language {goes}" in fails(
            "build",
            "refers.json",
            "--language",
            language,
            "--schema",
            SCHEMA,
            "-o",
            "r.cm",
            "--named",
            "named.json",
            code=2,
        )


def test_flags_that_are_disabled_are_named() -> None:
    Path("flags.json").write_text(json.dumps({"flags": {"x": FLAG, "y": {**FLAG, "state": "DISABLED"}, "z": {}}}))
    result = run("build", "flags.json", "--language", "flagd", "--schema", SCHEMA, "-o", "f.cm", "--errors", "collect")
    assert "note: 1 flags are disabled, so they have no rules: y" in result.stderr
    assert "rejected 'z': state: ENABLED or DISABLED is needed, not None" in result.stderr
    assert "2 subscriptions, 1 rejected" in result.stderr
