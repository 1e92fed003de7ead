"""Public types: type checkers take right uses of colmatch and refuse wrong ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

import colmatch as cm
from colmatch.indexing.registry import IndexName

ROOT = Path(__file__).parent.parent
USES = ROOT / "tests" / "typed_uses.py"


def wrong_lines() -> set[int]:
    return {number for number, line in enumerate(USES.read_text().splitlines(), 1) if line.endswith("  # wrong")}


def run(*command: str) -> str:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_finds_the_wrong_uses_and_no_others() -> None:
    said = run(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(USES))
    found = {int(line) for line in re.findall(r"typed_uses\.py:(\d+): error:", said)}
    assert len(wrong_lines()) > 25
    assert found == wrong_lines(), said


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright_finds_the_wrong_uses_and_no_others() -> None:
    said = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable, str(USES)))
    errors = [one for one in said["generalDiagnostics"] if one["severity"] == "error"]
    assert {one["range"]["start"]["line"] + 1 for one in errors} == wrong_lines(), errors


def test_names_of_kinds_are_those_of_the_registry() -> None:
    assert set(get_args(IndexName)) == {*cm.kinds(), "auto"}


def test_types_are_installed() -> None:
    assert (Path(cm.__file__).parent / "py.typed").is_file()


def test_dir_has_the_public_names() -> None:
    import colmatch.spark

    for module in (cm, colmatch.spark):
        assert [name for name in dir(module) if not name.startswith("_")] == list(module.__all__)
        assert {"__all__", "__doc__"} <= set(dir(module))
    assert "__version__" in dir(cm)
