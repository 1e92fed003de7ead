"""Public types: type checkers take right uses of colmatch and refuse wrong ones."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
from guide import GUIDE, README, blocks_of

import colmatch as cm
from colmatch.kinds.registry import IndexName

ROOT = Path(__file__).parent.parent
USES = ROOT / "tests" / "typed_uses.py"

# Rules of strict mode that pyright breaks for users of any library without types. They are off for
# the pages of the guide, which use pyarrow, pandas, duckdb and PySpark.
OFF = {
    "reportMissingTypeStubs": "pyarrow and pandas have no types of their own",
    "reportMissingModuleSource": "a package that this environment has not",
    "reportUnknownMemberType": "methods of a pyarrow.Table, rows of PySpark",
    "reportUnknownVariableType": "what pyarrow and pandas return, and empty lists",
    "reportUnknownArgumentType": "the same, handed to print",
    "reportUnknownLambdaType": "the same, from a lambda",
    "reportMissingParameterType": "functions that a page writes without annotations",
    "reportUnknownParameterType": "the same",
}

# What pyright cannot know: namespaces of polars, and functions that pyarrow.compute makes when it
# is imported.
UNTYPED = re.compile(
    r'"colmatch" for class "(DataFrame|LazyFrame|Expr)"|"colmatch.tables.polars" is not accessed|of module "pyarrow.compute"'
)


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


def pyright(*what: str) -> list[tuple[str, int, str]]:
    """Returns file, line and text of each error."""
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    said = json.loads(run(sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *what))
    assert said["summary"]["filesAnalyzed"]
    return [
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1, f"{one.get('rule')}: {one['message']}")
        for one in said["generalDiagnostics"]
        if one["severity"] == "error"
    ]


def test_pyright_finds_the_wrong_uses_and_no_others() -> None:
    errors = pyright(str(USES))
    assert {line for _, line, _ in errors} == wrong_lines(), errors


def test_pages_are_typed(tmp_path: Path) -> None:
    """The Python of each page, from its top, is right for pyright in strict mode."""
    pages = 0
    for page in (README, *GUIDE):
        text = ""
        for block in blocks_of(page.read_text()):
            if block.language == "python":
                text += "\n" * (block.line - 1 - text.count("\n")) + block.text  # errors name lines of the page
        if text:
            name = re.sub(r"\W", "_", page.relative_to(ROOT).with_suffix("").as_posix())
            (tmp_path / f"{name}.py").write_text(text)
            pages += 1
    assert pages > 15
    config = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT), str(ROOT / "asv_benchmarks")],
    } | dict.fromkeys(OFF, False)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    errors = [error for error in pyright("--project", str(tmp_path)) if not UNTYPED.search(error[2])]
    assert not errors, "\n".join(f"{file}:{line}: {text}" for file, line, text in errors)


def test_names_of_kinds_are_those_of_the_registry() -> None:
    assert set(get_args(IndexName)) == {*cm.index_kinds(), "auto"}


def test_public_methods_name_all_arguments() -> None:
    """Help and completion show ``ids``, ``tags`` and ``now``."""
    from colmatch.tables.polars import DataFrameMatches, ExprMatches, LazyFrameMatches

    takers = set()
    for home in (cm.Matcher, DataFrameMatches, LazyFrameMatches, ExprMatches):
        for name, member in inspect.getmembers(home, inspect.isroutine):
            if name.startswith("_"):
                continue
            parameters = inspect.signature(member).parameters.values()
            assert not [one for one in parameters if one.kind is one.VAR_KEYWORD], name
            if {"ids", "tags", "now"} <= {one.name for one in parameters}:
                takers.add(f"{home.__name__}.{name}")
    assert len(takers) > 30
    assert {"Matcher.match_one", "Matcher.report", "DataFrameMatches.filter", "ExprMatches.match_topk"} <= takers


def test_types_are_installed() -> None:
    assert (Path(cm.__file__).parent / "py.typed").is_file()


def test_dir_has_the_public_names() -> None:
    import colmatch.spark
    import colmatch.tables.columns
    import colmatch.tables.duckdb
    import colmatch.tables.polars

    tables = colmatch.tables
    for module in (cm, cm.rules, cm.betree, colmatch.spark, tables.columns, tables.duckdb, tables.polars):
        assert [name for name in dir(module) if not name.startswith("_")] == list(module.__all__)
        assert {"__all__", "__doc__"} <= set(dir(module))
    assert "__version__" in dir(cm)


def test_dir_of_an_object_has_its_public_names() -> None:
    matcher = cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, "scan")
    objects = (
        matcher,
        matcher.schema,
        matcher.subset([1]),
        matcher.explain({"a": 1}, 1),
        cm.col("a"),
        cm.col("a") == 1,
    )
    for one in objects:
        assert not [name for name in dir(one) if name.startswith("_") and not name.endswith("__")], one
        assert {"__class__", "__doc__", "__repr__"} <= set(dir(one))
    assert {"match", "schema", "open"} <= set(dir(matcher))
    for one, names in (
        (matcher.subset([1]), ["ids", "match"]),
        (cm.col("a") == 1, ["is_false", "is_true", "is_unknown", "weight"]),
    ):
        assert [name for name in dir(one) if name[0] != "_"] == names
