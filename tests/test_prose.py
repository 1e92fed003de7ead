"""Rules of the house about prose, in docstrings and documents."""

import ast
import re

import pytest
from test_house import ROOT, everywhere, modules

MOST_WORDS = 20
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(some):
    """(Place, docstring) of each module, class and function that has one."""
    return [
        (f"{module.path}:{getattr(node, 'lineno', 1)}", " ".join(text.split()))
        for module in some
        for node in ast.walk(module.tree)
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node))
    ]


def test_no_docstring_leans_on_another():
    """It is read alone, in an editor's window: "The same for ..." says nothing there."""
    assert not [place for place, text in docstrings(everywhere()) if text.startswith("The same")]


def test_docstrings_begin_with_a_short_sentence():
    some = docstrings(
        module for folder in ("colmatch", "kernels", "asv_benchmarks") for module in modules(folder).values()
    )
    assert len(some) > 500
    firsts = [(place, re.split(r"(?<=[.!?]) ", text)[0]) for place, text in some]
    assert not [(place, first) for place, first in firsts if len(first.split()) > MOST_WORDS]


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "BENCHMARKS.md"])
def test_files_that_documents_name_are_there(name):
    text = (ROOT / name).read_text()
    paths = {path for path in re.findall(r"`([\w/.]+)`", text) if path.endswith(("/", ".py")) and "/" in path}
    homes = (ROOT, ROOT / "colmatch", ROOT / "kernels")
    assert not {path for path in paths if not any((home / path).exists() for home in homes)}


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "BENCHMARKS.md", "CHANGELOG.md"])
def test_documents_tell_no_history(name):
    assert not re.findall(r"\bso far\b|\bused to\b|\bfor now\b", (ROOT / name).read_text())
