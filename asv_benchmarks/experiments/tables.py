"""Tables of results, each a CSV file, and ``runs.csv``, which says how each was made."""

from __future__ import annotations

import csv
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.measure import machine, versions

from experiments.facts import Row

RESULTS = Path(__file__).parents[1] / "results"
RUNS = "runs.csv"


def write(folder: Path, name: str, rows: Sequence[Row], took: float, about: str) -> Path:
    """Writes a table, and a row of ``runs.csv`` that says when, where and how it was made."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.csv"
    _write(path, rows)
    system, _, day = machine().rpartition(", ")
    run = {
        "table": name,
        "about": about,
        "date": day,
        "machine": system,
        "versions": versions("colmatch", "numba", "numpy", "pyarrow"),
        "seconds": round(took),
        "command": shlex.join(["python", f"asv_benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
    }
    known = {row["table"]: row for row in read(folder / RUNS)} if (folder / RUNS).exists() else {}
    _write(folder / RUNS, [row for _, row in sorted((known | {name: run}).items())])
    return path


def read(path: Path) -> list[Row]:
    """Reads a table; all cells are strings."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: Iterable[Row]) -> None:
    rows = list(rows)
    columns = dict.fromkeys(column for row in rows for column in row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({column: _cell(value) for column, value in row.items()} for row in rows)


def _cell(value: object) -> object:
    """Returns a value as text, with four digits, as a measurement knows no more."""
    return (
        f"{value:.4g}"
        if isinstance(value, float) and abs(value) < 10_000
        else f"{value:.0f}"
        if isinstance(value, float)
        else value
    )
