"""Files that are one array of JSON, in place of a line for each object."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shell import EVENTS, PAIRS, SCHEMA, SUBS, an_index, fails, pairs, run

from colmatch.cli.files import read_table, reading
from colmatch.errors import ColmatchError

RULES = [{"id": id, "expression": text, "tags": ["x"]} for id, text in SUBS.items()]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_rules_and_events_may_be_arrays(indent: int | None, packed: bool) -> None:
    for name, rows in (("rules.json", RULES), ("events.json", EVENTS.to_pylist())):
        text = "\ufeff \r\n" + json.dumps(rows, indent=indent).replace("\n", "\r\n") + "\n"
        data = text.encode()
        Path(name + ".gz" * packed).write_bytes(gzip.compress(data) if packed else data)
    rules, events = ("rules.json.gz", "events.json.gz") if packed else ("rules.json", "events.json")
    run("build", rules, "--schema", SCHEMA, "-o", "i.cm")
    run("build", rules, "--like", events, "-o", "like.cm")
    for index in ("i.cm", "like.cm"):
        run("match", index, events, "--tag", "x", "-o", "out.parquet")
        assert pairs(Path("out.parquet")) == PAIRS


def test_an_array_comes_by_a_pipe_and_beside_lines() -> None:
    run("build", "-", "--format", "jsonl", "--schema", SCHEMA, "-o", "i.cm", input=json.dumps(RULES))
    Path("a.json").write_text('[{"age": 20}, {"age": 1}]')
    Path("b.jsonl").write_text('{"age": 30}\n')
    run("match", "i.cm", "a.json", "b.jsonl", "--missing-columns", "null", "-o", "out.csv")
    assert pairs(Path("out.csv")) == [(0, 1), (2, 1)]


def test_values_are_read_as_in_lines() -> None:
    rows = '{"n": 12345678901234567.25, "s": "a,]\\n[{\\"é", "l": [[1], []]}'
    schema = pa.schema({"n": pa.decimal128(20, 2), "s": pa.string(), "l": pa.list_(pa.list_(pa.int64()))})
    Path("a.json").write_text(f"[{rows} , {rows}]")
    Path("a.jsonl").write_text(f"{rows}\n{rows}\n")
    assert read_table("a.json", types=dict(zip(schema.names, schema.types, strict=True))) == read_table(
        "a.jsonl", types=dict(zip(schema.names, schema.types, strict=True))
    )
    for empty in ("[]", " [ \n]\n"):
        Path("none.json").write_text(empty)
        with reading("none.json", schema=schema) as found:
            assert list(found.batches) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"id": 1}, 5]', "rules.json: element 2: a JSON object is needed, not int"),
        ('[[{"id": 1}]]', "rules.json: element 1: a JSON object is needed, not list"),
        (
            '[{"id": 1},\n {"id": 2}',
            "rules.json: line 2, column 11: Expecting ',' delimiter; a file that begins with [",
        ),
        ('[{"id": 1}]\n{"id": 2}\n', "rules.json: line 2, column 1: Extra data; a file that begins with ["),
        ('[{"id": 1}, {"id": "x", "expression": 1}]', "rules.json: element 2: Column(/"),
        ("[" * 100_000, "rules.json: "),
    ],
)
def test_errors_say_which_element(text: str, said: str) -> None:
    Path("rules.json").write_text(text)
    assert said in fails("build", "rules.json", "--schema", SCHEMA, "-o", "i.cm")


def test_an_event_of_a_wrong_type_is_an_element(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    events: list[Any] = [*EVENTS.to_pylist(), {"age": "x"}]
    Path("events.json").write_text(json.dumps(events, indent=1))
    assert "events.json: element 5: Column(/age) changed from number to string" in fails("match", index, "events.json")
    with pytest.raises(ColmatchError, match=r"events\.json: element 5"):
        read_table("events.json")
