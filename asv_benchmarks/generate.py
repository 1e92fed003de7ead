"""Subscriptions and events of a workload, as files.

    python asv_benchmarks/generate.py dense subscriptions=100000 --subs s.parquet --events e.parquet
    python asv_benchmarks/generate.py dense equality=0.1 event_size=4,9 --predicates --subs p.arrow
    python asv_benchmarks/generate.py detections subscriptions=2000 --subs rules.csv

A workload is one of the papers' (``workload.NAMES``) or one of text patterns
(``workload.strings.NAMES``). FIELD is a field of ``workload.parameters.Parameters``, or of
``workload.TextWorkload``; its value is written as in Python. The same arguments give the same
files. Their extensions say the format: parquet, arrow, or csv, which carries no lists and maps.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv
from pyarrow import parquet as pq
from workload import NAMES, TextWorkload, named
from workload import strings as texts
from workload.subscriptions import TEXTS, schema

WRITERS: dict[str, Callable[..., Any]] = {
    ".parquet": pq.ParquetWriter, ".arrow": pa.ipc.new_file, ".csv": csv.CSVWriter,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=(*NAMES, *texts.NAMES), metavar="NAME", help=", ".join((*NAMES, *texts.NAMES)))
    parser.add_argument("fields", nargs="*", type=_field, metavar="FIELD=VALUE")
    parser.add_argument("--subs", metavar="FILE", help="where the subscriptions go")
    parser.add_argument("--events", metavar="FILE", help="where the events go")
    parser.add_argument("--rows", type=int, default=4096, help="events")
    parser.add_argument("--predicates", action="store_true", help="a row for each predicate, instead of expressions")
    given = parser.parse_args()
    if given.subs is None and given.events is None:
        parser.error("say where to write: --subs, --events")
    for path in filter(None, (given.subs, given.events)):
        if Path(path).suffix not in WRITERS:
            parser.error(f"{path}: the extension must be one of {', '.join(WRITERS)}")
    if given.predicates and given.name in texts.NAMES:
        parser.error(f"the subscriptions of {given.name} are expressions: leave --predicates out")
    workload: Any = (TextWorkload if given.name in texts.NAMES else named)(given.name, **dict(given.fields))
    if given.events is not None:
        write(given.events, workload.event_batches(given.rows), workload.schema())
    if given.subs is not None:
        batches = workload.predicate_batches() if given.predicates else workload.text_batches()
        write(given.subs, batches, schema(workload) if given.predicates else TEXTS)


def write(path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    with WRITERS[Path(path).suffix](path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _field(text: str) -> tuple[str, Any]:
    """Reads ``equality=0.1``; what is no value of Python is a string."""
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is no FIELD=VALUE, as in equality=0.1")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


if __name__ == "__main__":
    main()
