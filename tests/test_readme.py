"""The README's snippets, run in order in one namespace, as a reader would paste them."""

import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```\n", README, re.MULTILINE | re.DOTALL)


def needs_what_is_not_there(code):
    return "colmatch.spark" in code or ("import duckdb" in code and not find_spec("duckdb"))


def test_python_prints_what_stands_behind_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some of it writes files
    names, checked = {}, 0
    for (language, code), (answers, expected) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if language != "python" or needs_what_is_not_there(code):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), names)
        if printed.getvalue():
            assert answers == "" and printed.getvalue() == expected
            checked += 1
    assert checked >= 5


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with the files that the snippets of the command line name."""
    monkeypatch.chdir(tmp_path)
    flights = pa.table({"origin": ["JFK", "LGA"] * 20, "delay": [None, 31.5] * 20})
    alerts = pa.table({"id": [4711, 4712], "expression": ["delay > 30", "origin = 'JFK'"]})
    pyarrow.parquet.write_table(flights, "flights.parquet")
    pyarrow.parquet.write_table(alerts, "alerts.parquet")
    weights = pa.array([{"delay": 2.0}, {"origin": 1.0}], pa.map_(pa.string(), pa.float64()))
    pyarrow.parquet.write_table(alerts.append_column("weights", weights), "wishes.parquet")
    pyarrow.csv.write_csv(alerts, "alerts.csv")
    texts = [text for language, text in BLOCKS if language == "csv"]
    for name, text in zip(["trips.csv", "offers.csv", "hotels.csv"], texts, strict=True):
        Path(name).write_text(text)


def command(line):
    """What a line of the README prints."""
    program, *words = shlex.split(line)
    assert program == "colmatch"
    run = subprocess.run([sys.executable, "-m", "colmatch.cli", *words], capture_output=True, text=True)
    assert not run.returncode, (line, run.stderr)
    return run.stdout


def section(title):
    (text,) = re.findall(rf"^##+ {title}\n(.*?)(?=^##)", README, re.MULTILINE | re.DOTALL)
    return [
        line
        for _, code in re.findall(r"^```(bash)\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL)
        for line in code.splitlines()
    ]


def test_commands_of_the_command_line(shop):
    lines = section("On the command line")
    printed = [command(line) for line in lines]
    assert pyarrow.parquet.read_table("fired.parquet").num_rows == 40
    assert "delay > 30" in printed[2]
    assert set(pyarrow.parquet.read_table("best.parquet")["score"].to_pylist()) == {1.0, 2.0}
    said = dict(zip(lines, printed, strict=True))
    header = '"event","subscription","score"\n'
    assert [text for line, text in said.items() if "trips.cm offers" in line] == [
        header + "0,2,3\n0,1,2\n", header + "0,1,8\n0,2,4\n", header + "0,2,3\n"
    ]  # fmt: skip
    (ranges,) = [text for line, text in said.items() if "--range" in line]
    assert sorted(ranges.splitlines()[1:]) == ["0,1", "0,2", "1,2"]


def test_commands_for_rules_of_betree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("domains.txt").write_text("age|integer|false|0|150\ncity|string|true\n")
    Path("rules.tsv").write_text('id\texpression\n1\tage >= 18 and city in ("NYC", "LA")\n')
    Path("events.jsonl").write_text('{"age": 36, "city": "LA"}\n{"city": "NYC"}\n')
    printed = [command(line) for line in section("be-tree")]
    assert printed[1].split() == ['"event","subscription"', "0,1"]


def test_commands_for_rules_of_json_rules_engine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = {"fact": "amount", "operator": "lessThan", "value": 5}
    gift = {"fact": "tags", "operator": "contains", "value": "gift"}
    Path("rules.json").write_text(json.dumps([{"conditions": {"all": [{"not": small}, gift]}}]))
    Path("orders.jsonl").write_text('{"amount": 1, "tags": ["gift"]}\n{"tags": ["gift"]}\n{"amount": 9}\n')
    printed = [command(line) for line in section("json-rules-engine")]
    assert printed[1].split() == ['"event","subscription"', "1,0"]


def test_commands_that_measure(shop):
    pytest.importorskip("matplotlib")
    bench, generate = section("Measure your own")
    command(generate.replace("100000", "100").replace("4096", "64"))
    assert pyarrow.parquet.read_table("subs.parquet").num_rows
    assert "bitslice" in command(bench.replace("1000,10000,100000", "1,2"))
    assert Path("bench.svg").exists()
