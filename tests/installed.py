"""Libraries that some tests need, but the README's second command does not install."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

ENGINES = ("pyspark", "pandas", "polars", "duckdb", "datafusion", "ibis", "deltalake", "pyiceberg", "lance", "hudi")


class needs:
    """Gives a test the mark ``engines``, and skips it where one of its engines is not installed."""

    def __init__(self, *engines: str) -> None:
        absent = [engine for engine in engines if find_spec(engine) is None]
        skip = pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")
        self.marks = (pytest.mark.engines, skip)  # for a parameter

    def __call__(self, test: Any) -> Any:
        for mark in self.marks:
            test = mark(test)
        return test
