"""Snippets of README and the guide, run as a reader pastes them: each page from its top."""

import contextlib
import io
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from contract import NO_JIT
from guide import GUIDE, README, ROOT, blocks_of

PAGES = [README, *GUIDE]
RUN = {"python", "bash"}
WRITTEN = {"csv", "json", "jsonl", "python", "tsv", "text"}  # a named block of Python is a file that other tests run
ELSEWHERE = {"c", "js", "dockerfile", "yaml"}  # programs of others that a page begins with, and what colmatch runs in

# Commands that are not run here: .ci/run has the first.
NOT_RUN = ("python3 -m venv ", "pip install ")

# Commands that a page tells of without what they print, which is long or depends on the machine.
UNSHOWN = ("colmatch bench ",)

# Commands that refuse to run where nothing is compiled.
COMPILES = ("colmatch warm ",)

# Large inputs, and the small ones that are as good here; and where programs of a clone are.
SMALLER = {
    "subscriptions=100000 --predicates --rows 4096": "subscriptions=100 --predicates --rows 64",
    "python asv_benchmarks/": f"'{sys.executable}' '{ROOT}'/asv_benchmarks/",
    "1000,10000,100000": "1,2",
    "warm --index bitslice": "warm --index scan",
}

# Modules that some snippets need: without them, pages end there.
NEEDS = {
    "colmatch.spark": "pyspark",
    "colmatch.tables.polars": "polars",
    "import duckdb": "duckdb",
    "from datafusion": "datafusion",
    "import ibis": "ibis",
    "import deltalake": "deltalake",
    "--plot": "matplotlib",
    "matplotlib": "matplotlib",
}


def named(page):
    return page.relative_to(ROOT).as_posix()


def needed(page):
    text = page.read_text()
    marks = {"engines": any(word in text for word in NEEDS), "spark": "colmatch.spark" in text}
    return [getattr(pytest.mark, name) for name, has in marks.items() if has]


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    """A PATH on which ``colmatch`` is that of this checkout."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "colmatch"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m colmatch "$@"\n')
    command.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def ran_python(block, page, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), names)
    return printed.getvalue()


def ran_commands(block, path):
    text = block.text
    for large, small in SMALLER.items():
        text = text.replace(large, small)
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert not run.returncode, f"{run.stderr}\n{text}"
    return run.stdout


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # which ibis calls
@pytest.mark.parametrize("page", [pytest.param(page, id=named(page), marks=needed(page)) for page in PAGES])
def test_a_page_does_what_it_says(page, path, tmp_path, monkeypatch, request):
    text = page.read_text()
    if "colmatch.spark" in text and find_spec("pyspark"):
        request.getfixturevalue("spark")  # with settings of the tests; ``local_session`` returns it
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in blocks_of(text):
        where = f"{named(page)}:{block.line}"
        if block.name:
            assert block.language in WRITTEN and block.answer is None, where
            Path(block.name).write_text(block.text)
        elif block.language not in RUN:
            assert block.language in ELSEWHERE, f"{where}: nothing runs this block, nor is it a file"
        elif absent := [module for word, module in NEEDS.items() if word in block.text and not find_spec(module)]:
            pytest.skip(f"the rest of the page, from {where}: {absent[0]} is not installed")
        else:
            lines = block.text.splitlines()
            if block.language == "bash" and any(line.startswith(NOT_RUN) for line in lines):
                assert all(line.startswith(NOT_RUN) for line in lines), where
                continue
            if NO_JIT and any(line.startswith(COMPILES) for line in lines):
                continue
            printed = ran_python(block, where, names) if block.language == "python" else ran_commands(block, path)
            if block.answer is not None or not any(line.startswith(UNSHOWN) for line in lines):
                assert printed == (block.answer or ""), where


def test_nearly_every_page_has_code_that_is_run():
    some = [page for page in PAGES if sum(block.language in RUN for block in blocks_of(page.read_text()))]
    assert len(some) > 15 and len(PAGES) - len(some) < 3


def test_small_inputs_stand_for_large_ones():
    texts = "".join(page.read_text() for page in PAGES)
    assert not [large for large in SMALLER if large not in texts]
    assert not [word for word in (*NEEDS, *UNSHOWN, *NOT_RUN, *COMPILES) if word not in texts]
