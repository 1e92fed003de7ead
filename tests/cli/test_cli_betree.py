"""Rules, domains and events of the be-tree library on the command line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shell import EVENTS, SCHEMA, an_index, fails, invoke, run, subscriptions, write

import colmatch as cm
from colmatch.cli.files import read_table
from colmatch.cli.writing import writing

DOMAINS = "age|integer|false|0|150\n# what they like\ncity|string|true\ntags|string list|true\nseen|segments|true\nnow|integer|true\n"
RULES = (
    "id\texpression\tconstants\n"
    '1\tage >= 18 and city in ("NYC", "LA")\t\n'
    "2\tnot (tags one of ('a', \"b\"))\t{}\n"
    '3\twithin_frequency_cap("flight", "ns", 2, 0) or segment_within(seen, 12, 3600)\t{"flight_id": 7}\n'
)
LINES = (
    '{"age": 20, "city": "LA", "tags": ["a"], "now": 100000, "seen": [[12, 99000000000]]}\n'
    '{"city": "LA"}\n\n'
    '{"AGE": 5, "tags": null}\n'
)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("domains.txt").write_text(DOMAINS + "frequency_caps|frequency|true\n")
    Path("rules.tsv").write_text(RULES)
    Path("events.jsonl").write_text(LINES)
    return tmp_path


def build(*more: object) -> Any:
    return run("build", "rules.tsv", "--language", "betree", "--domains", "domains.txt", "-o", "r.cm", *more)


def test_build_and_match(shop: Path) -> None:
    assert "3 subscriptions" in build().stderr
    result = run("match", "r.cm", "events.jsonl")
    assert result.stdout == '"event","subscription"\n0,1\n0,3\n2,2\n'
    assert "note: 1 event matches nothing, lacking what must be defined: 'age' (1)" in result.stderr
    assert run("match", "r.cm", "-", "--format", "jsonl", "--count", input=LINES).stdout.split()[1:] == [
        "0,2",
        "1,0",
        "2,1",
    ]
    kept = run("match", "r.cm", "events.jsonl", "--keep", "city", "--lists").stdout.splitlines()
    assert kept[1] == '{"event": 1, "city": "LA", "subscriptions": []}'
    Path("packed.jsonl.gz").write_bytes(gzip.compress(LINES.encode()))
    assert run("match", "r.cm", "packed.jsonl.gz").stdout == result.stdout
    write(shop / "events.parquet", cm.betree.events(LINES, DOMAINS + "frequency_caps|frequency|true"))
    assert run("match", "r.cm", "events.parquet").stdout == result.stdout
    told = run("explain", "r.cm", "events.jsonl", "--row", 2, "--id", 2).stdout
    assert told.startswith("subscription 2: matches (what is missing is false)")


def test_the_time_is_given(shop: Path) -> None:
    build()
    for now, fired in ((102600, "0,3"), ("1970-01-02T04:30:01", None), ("1970-01-02T05:30:00+01:00", "0,3")):
        rows = run("match", "r.cm", "events.jsonl", "--now", now).stdout.split()[1:]
        assert rows == [row for row in ("0,1", fired, "2,2") if row]
    told = run("explain", "r.cm", "events.jsonl", "--id", 3, "--now", "102601").stdout
    assert told.startswith("subscription 3: does not match") and "'now': 102601" in told
    write(shop / "events.parquet", cm.betree.events(LINES, DOMAINS + "frequency_caps|frequency|true").drop(["now"]))
    assert run("match", "r.cm", "events.parquet", "--now", 102600).stdout.split()[1:] == ["0,1", "0,3", "2,2"]
    assert run("match", "r.cm", "events.parquet", "--now", 102600, "--keep", "now").stdout.split()[1] == "0,102600,1"
    assert "no column 'now'" in fails("match", "r.cm", "events.parquet")
    assert "should be seconds since 1970" in fails("match", "r.cm", "events.jsonl", "--now", "noon", code=2)


def test_both_languages_have_either_meaning(shop: Path) -> None:
    build("--missing", "unknown")
    assert run("match", "r.cm", "events.jsonl").stdout.split()[1:] == ["0,1", "0,3"]
    rows = write(shop / "events.parquet", EVENTS)
    subs = subscriptions(shop / "s.csv", {1: "NOT city = 'Nice'", 2: "city <> 'Nice'"})
    for missing, expected in (("unknown", ["1,1", "1,2"]), ("false", ["1,1", "1,2", "3,1"])):
        run("build", subs, "--schema", SCHEMA, "--missing", missing, "-o", "s.cm")
        assert sorted(run("match", "s.cm", rows).stdout.split()[1:]) == expected


def test_errors(shop: Path) -> None:
    command = ["build", "rules.tsv", "--language", "betree", "-o", "r.cm"]
    assert "or --domains, without them" in fails(*command, code=2)
    assert "--domains goes with --language betree" in fails(
        "build", "rules.tsv", "--domains", "domains.txt", "-o", "r.cm", code=2
    )
    assert "No such file" in fails(*command, "--domains", "none.txt")
    Path("wrong.txt").write_text("age|integer|false\ncity|text|true\n")
    assert "wrong.txt: line 2 of the domains: no type is called 'text'" in fails(*command, "--domains", "wrong.txt")
    Path("wrong.txt").write_bytes(b"age|integer|\xff")
    assert "wrong.txt: " in fails(*command, "--domains", "wrong.txt")
    Path("rules.tsv").write_text("id\texpression\n7\tage == 1\n")
    assert "(subscription 7, line 1, column 6)" in fails(*command, "--domains", "domains.txt")
    Path("rules.tsv").write_text("id\texpression\n7\tage == 1\n8\tage = 1\n")
    result = run(*command, "--domains", "domains.txt", "--errors", "collect")
    assert "rejected 7: a literal is expected here, where there is '=' (line 1, column 6)" in result.stderr
    Path("events.jsonl").write_text('{"age": 1}\n{"age": 1.5, "b": 2}\n{"b": 2}\n')
    said = fails("match", "r.cm", "events.jsonl", "-o", "out.csv")
    assert (
        "events.jsonl: line 2: 'age' is 1.5: a whole number of 64 bits is needed; line 3: unknown attribute 'b'" in said
    )
    assert not Path("out.csv").exists()


def test_domains_may_be_a_schema(shop: Path) -> None:
    Path("rules.csv").write_text('id,expression\n1,"age >= 18"\n')
    run("build", "rules.csv", "--language", "betree", "--schema", "age: int32, name: string", "-o", "s.cm")
    assert run("match", "s.cm", "-", "--format", "jsonl", input='{"age": 20}\n{"name": "x"}\n').stdout.split()[1:] == [
        "0,1"
    ]


def test_tab_separated_files_have_no_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text('id\texpression\n1\tcity = "it\'s, so"\n2\t"\n')
    assert read_table(str(path)).to_pylist() == [
        {"id": 1, "expression": 'city = "it\'s, so"'},
        {"id": 2, "expression": '"'},
    ]
    path.write_text("age\tcity\n36\tLyon\n\tNice\n")
    assert run("match", an_index(tmp_path), path, "--missing-columns", "null").stdout.split()[1:] == [
        "0,1",
        "0,3",
        "1,2",
    ]
    with pytest.raises(cm.ColmatchError, match="tsv is only read"), writing(str(path), pa.schema([])):
        pass
    assert invoke("match", an_index(tmp_path), path, "--out-format", "tsv").exit_code == 2
