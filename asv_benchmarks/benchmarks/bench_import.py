"""What a new process costs: the import alone, and everything up to the first match."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = [
    "numba",
    "llvmlite",
    "pyspark",
    "sqlglot",
    "pyarrow",
    "numpy",
    "pandas",
    "click",
    "tqdm",
    "duckdb",
    "polars",
    "matplotlib",
]

FIRST_MATCH = """
import colmatch as cm
import pyarrow as pa
matcher = cm.Matcher.build(subscriptions, schema)
events = pa.table({
    "age": [36, 7], "city": ["c1", None], "carrier": ["C1", "AA"], "delay": [None, 7.5], "distance": [120, None], "vip": [True, False],
    "day": pa.array([15_000, None], pa.date32()),
})
matched = matcher.match(events)
"""

READ_TEXTS = """
import json
with open("shop.json") as file:
    schema, subscriptions = json.load(file)
"""


class Import:
    """``import colmatch`` in a process of its own, without the start of Python."""

    number = 1
    repeat = 7

    def timeraw_import(self) -> str:
        return "import colmatch"


class ImportedBy:
    """1 when ``import colmatch`` imports a package, 0 when that waits for its use."""

    params = HEAVY
    param_names = ("package",)
    unit = "imported"

    def track_imported(self, package: str) -> int:
        code = f"import sys, colmatch; print(int({package!r} in sys.modules))"
        return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


class ImportAndMatch:
    """Import, build of 1,000 texts of 20 shapes, and first match.

    Each runs in a process of its own, whose kernels an earlier one has compiled.
    """

    number = 1
    repeat = 5

    def setup(self) -> None:
        from benchmarks.workloads import SHOP, shaped_texts

        with open("shop.json", "w") as file:
            json.dump([SHOP, shaped_texts(1000)], file)
        subprocess.run([sys.executable, "-c", READ_TEXTS + FIRST_MATCH], check=True)

    def timeraw_import_build_match(self) -> tuple[str, str]:
        return FIRST_MATCH, READ_TEXTS
