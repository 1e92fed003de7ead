"""The benchmarks are found as asv finds them, which has not their folder on its path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "asv_benchmarks" / "benchmarks"
PROGRAM = """
import importlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("benchmarks", sys.argv[1] + "/__init__.py", submodule_search_locations=[sys.argv[1]])
package = sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
for name in sys.argv[2:]:
    importlib.import_module("benchmarks." + name)
"""


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not beside the tests")
def test_every_module_of_benchmarks_can_be_imported(tmp_path: Path) -> None:
    names = sorted(path.stem for path in FOLDER.glob("bench_*.py"))
    assert len(names) > 5
    command = [sys.executable, "-c", PROGRAM, str(FOLDER), *names]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
