"""The locators stand beside the benchmarks, and are imported as the benchmarks import them."""

from __future__ import annotations

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "asv_benchmarks"
if BENCHMARKS.is_dir():
    sys.path.append(str(BENCHMARKS))
else:
    collect_ignore_glob = ["test_*.py"]
