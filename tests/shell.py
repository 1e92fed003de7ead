"""The command line in this process, and events, subscriptions and an index in files for it to
work on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner, Result

from colmatch.cli.commands import cli
from colmatch.cli.files import read_table
from colmatch.cli.writing import writing

EVENTS = pa.table(
    {
        "age": pa.array([17, 36, None, 64], pa.int64()),
        "city": pa.array(["Nice", "Lyon", "Nice", None]),
        "tags": pa.array([["a"], ["a", "b"], [], None], pa.list_(pa.string())),
        "note": pa.array(["w", "x", "y", "z"]),
    }
)
SUBS = {1: "age >= 18", 2: "city = 'Nice' AND (age < 18 OR age IS NULL)", 3: "city LIKE 'L%'", 7: "age > 100"}
SCHEMA = "age:int64, city:string, tags: list<string>"
PAIRS = [(0, 2), (1, 1), (1, 3), (2, 2), (3, 1)]


def write(path: Path, table: pa.Table) -> str:
    with writing(str(path), table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return str(path)


def subscriptions(path: Path, subs: dict[Any, str] = SUBS) -> str:
    return write(path, pa.table({"id": list(subs), "expression": list(subs.values())}))


def invoke(*args: object, input: bytes | str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args], input=input)


def run(*args: object, input: bytes | str | None = None) -> Result:
    """Invokes, and expects success."""
    result = invoke(*args, input=input)
    assert result.exit_code == 0, result.output
    return result


def fails(*args: object, code: int = 1, input: bytes | str | None = None) -> str:
    """Invokes, expects one line of error and no traceback, and returns it."""
    result = invoke(*args, input=input)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if code == 1:
        assert result.stderr.startswith("colmatch: error: ")
        assert result.stderr.count("\n") == 1
        assert "fault in colmatch" not in result.stderr
    return result.stderr


def an_index(folder: Path) -> Path:
    run("build", subscriptions(folder / "subs.csv"), "--schema", SCHEMA, "-o", folder / "i.colmatch")
    return folder / "i.colmatch"


def pairs(path: Path) -> list[tuple[int, int]]:
    return [(row["event"], row["subscription"]) for row in read_table(str(path)).to_pylist()]
