"""``colmatch test`` and ``colmatch diff``: expectations of rules, and what a release changes."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from shell import fails, invoke, run, write

import colmatch as cm
from colmatch.cli.files import read_table

SCHEMA = {"price": "double", "dest": "string"}
OLD = {"cheap": "price < 100", "beach": "dest IN ('LIS', 'NCE')", "gone": "price > 500"}
NEW = {"cheap": "price < 90", "beach": "dest IN ('LIS', 'NCE')", "new": "dest = 'OPO'"}
EVENTS = pa.table({"price": [89.5, 95.0, None, 600.0], "dest": ["LIS", "OPO", "NCE", "OPO"]})


def saved(folder: Path, name: str, rules: dict[str, str]) -> Path:
    cm.Matcher.build(rules, SCHEMA).save(folder / name)
    return folder / name


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    return saved(tmp_path, "old", OLD), saved(tmp_path, "new", NEW), write(tmp_path / "events.parquet", EVENTS)


def expecting(folder: Path, text: str) -> Path:
    path = folder / "expected.csv"
    path.write_text(text)
    return path


def test_what_is_expected_and_holds(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    old, _, events = files
    rows = "id,event,expected,at_least,at_most\ncheap,0,true,,\ncheap,2,false,,\nbeach,2,,,\ncheap,,,2,2\ngone,,,,1\nbeach,,,2,\n"
    told = run("test", old, events, "--expect", expecting(tmp_path, rows)).stdout
    assert told == "6 expectations, 0 failed\n"


def test_what_fails_is_explained(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    old, _, events = files
    rows = "id,event,expected,at_least,at_most\ncheap,3,true,,\nbeach,0,no,,\ngone,,,2,\ncheap,,,,1\ncheap,0,1,,\nbeach,,,3,4\n"
    junit = tmp_path / "result.xml"
    result = invoke("test", old, events, "--expect", expecting(tmp_path, rows), "--junit", junit)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "subscription 'cheap' and event 3: does not match, and must",
        "  └─ False   price < 100   [600.0]",
        "subscription 'beach' and event 0: matches, and must not",
        "  └─ True    dest IN ('LIS', 'NCE')   ['LIS']",
        "subscription 'gone': matches 1 events, not at least 2",
        "subscription 'cheap': matches 2 events, not at most 1",
        "subscription 'beach': matches 2 events, not at least 3 and at most 4",
        "6 expectations, 5 failed",
    ]
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib == {"name": str(old), "tests": "6", "failures": "5"}
    cases = list(suite)
    assert [case.get("name") for case in cases][4] == "subscription 'cheap' and event 0" and not len(cases[4])
    failure = cases[0].find("failure")
    assert failure is not None and failure.get("message") == "does not match, and must"
    assert "price < 100" in str(failure.text)


def test_many_failures_are_counted(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    rows = "id,event\n" + "gone,0\n" * 25 + "".join(f"cheap,{i}\n" for i in range(4))
    result = invoke("test", files[0], files[2], "--expect", expecting(tmp_path, rows))
    assert result.stdout.splitlines()[-1] == "29 expectations, 3 failed"
    parts = pa.table({"id": ["cheap"] * 40, "event": range(40)})
    events = write(tmp_path / "many.parquet", pa.table({"price": [300.0] * 40, "dest": ["x"] * 40}))
    result = invoke("test", files[0], events, "--expect", write(tmp_path / "many-expected.parquet", parts))
    assert result.stdout.splitlines()[-2:] == ["and 20 more", "40 expectations, 40 failed"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            "rule,event\ncheap,0\n",
            "the columns id, event and expected are needed, or id with at_least or at_most; there are rule",
        ),
        ("id,expected\ncheap,true\n", "the columns id, event and expected are needed"),
        ("id,event\ncheep,0\n", "row 0: there is no subscription 'cheep'"),
        ("id,event\ncheap,9\n", "has 4 rows, so there is no row 9"),
        ("id,event\ncheap,-1\n", "row 0: event -1: rows count from 0"),
        ("id,event,expected\ncheap,0,maybe\n", "row 0: expected is 'maybe': true or false is needed"),
        ("id,event,expected,at_least\ncheap,,true,\n", "row 0: expected goes with the number of an event"),
        ("id,event,at_least\ncheap,0,1\n", "row 0: at_least and at_most are about all events"),
        ("id,at_least,at_most\nbeach,1,2\ncheap,,\n", "row 1: it has no event, and neither at_least nor at_most"),
        ("id,at_least,at_most\ncheap,3,2\n", "row 0: at least 3 and at most 2 events cannot be"),
    ],
)
def test_expectations_that_cannot_be_read(tmp_path: Path, files: tuple[Path, Path, Path], rows: str, said: str) -> None:
    assert said in fails("test", files[0], files[2], "--expect", expecting(tmp_path, rows))


def test_what_a_release_changes(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    old, new, events = files
    out = tmp_path / "out.parquet"
    result = invoke("diff", old, new, events, "-o", out, "--exit-code")
    assert result.exit_code == 1
    assert read_table(str(out)).to_pylist() == [
        {"event": 1, "subscription": "cheap", "change": "lost"},
        {"event": 1, "subscription": "new", "change": "gained"},
        {"event": 3, "subscription": "gone", "change": "lost"},
        {"event": 3, "subscription": "new", "change": "gained"},
    ]
    assert "new rules: 1, written in another way: 1, gone: 1" in result.stderr
    counted = run("diff", old, new, events, "--count")
    assert counted.stdout == '"subscription","gained","lost"\n"new",2,0\n"cheap",0,1\n"gone",0,1\n'
    same = invoke("diff", old, old, events, "--exit-code")
    assert (same.exit_code, same.stdout) == (0, '"event","subscription","change"\n')
    assert run("diff", old, old, events, "--count").stdout == '"subscription","gained","lost"\n'


def test_differences_of_indexes_that_do_not_fit(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    old, _, events = files
    cm.Matcher.build({1: "price < 90"}, SCHEMA).save(tmp_path / "numbers")
    assert "are string, those of" in fails("diff", old, tmp_path / "numbers", events)
    assert "standard input will not do" in fails("diff", old, old, "-", "--format", "csv")
    cm.Matcher.build({}, SCHEMA).save(tmp_path / "empty")
    assert run("diff", tmp_path / "empty", tmp_path / "numbers", events).stdout.splitlines()[1:] == ['0,1,"gained"']
    assert run("diff", tmp_path / "numbers", tmp_path / "empty", events).stdout.splitlines()[1:] == ['0,1,"lost"']
    cm.Matcher.build(OLD, SCHEMA, options={"keep_texts": False}).save(tmp_path / "bare")
    assert "note" not in invoke("diff", old, tmp_path / "bare", events).stderr


def test_a_report_is_printed_and_its_rules_are_written(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    old, _, events = files
    told = run("report", old, events, "--noisy", "0.4", "-o", tmp_path / "rules.csv").stdout
    assert told == str(cm.Matcher.open(old).report(EVENTS, noisy=0.4)) + "\n"
    assert "more than 40%: 2: 'cheap' 50%, 'beach' 50%" in told
    columns = {"subscription": list(OLD), "matches": [2, 2, 1], "share": [0.5, 0.5, 0.25]}
    columns |= {"conjunctions": [1] * 3, "predicates": [1] * 3, "checked": [2, 2, 1], "tests": [2, 2, 1]}
    assert read_table(str(tmp_path / "rules.csv")).to_pydict() == columns
    assert run("report", old, events, "-o", "-").stdout.startswith('"subscription","matches"')


def test_a_report_takes_columns_that_no_file_has(tmp_path: Path, files: tuple[Path, Path, Path]) -> None:
    old, _, _ = files
    events = write(tmp_path / "e.jsonl", pa.table({"price": [1.0]}))
    assert "columns that rules use and no event has: dest" in run("report", old, events).stdout
    assert "from 0 to 1" in fails("report", old, events, "--noisy", "2")


def test_definitions_that_differ_are_named(tmp_path: Path) -> None:
    events = write(tmp_path / "events.parquet", pa.table({"a": [1]}))
    for name, text in (("old.cm", "a > 5 OR a = 9"), ("new.cm", "a > 7 OR a = 9")):
        cm.Matcher.build({1: "big"}, {"a": "int64"}, define={"big": text, "same": "a = 1"}).save(tmp_path / name)
    told = run("diff", tmp_path / "old.cm", tmp_path / "new.cm", events).stderr
    assert "written in another way: 0" in told and "definitions that differ: big\n" in told
