"""A version of numba that colmatch does not know: kernels are compiled as any other code, and one
warning says so.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from kernel_copy import MAIN, Copy, plain_environment

from colmatch.kernels import _code

ROOT = Path(__file__).parents[2]

# Of what colmatch uses of its inner workings, all is gone that numba does not ask for again.
PRETENDED = """
import sys

import numba
from numba.core import caching

numba.__version__ = "0.99.1"
del numba._dynfunc, caching._Cache
sys.modules["numba._dynfunc"] = None
"""
PROGRAM = PRETENDED + textwrap.dedent(MAIN)


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def test_kernels_are_compiled_and_not_kept(copy):
    for _ in range(2):
        said = copy.run("get", "float", program=PROGRAM)
        assert (said["total"], said["one"], said["float"], said["loaded"]) == (15, 1, 4.5, 0)
        ((level, text),) = said["logs"]
        assert level == "WARNING" and "numba 0.99.1" in text and f"numba=={_code.KNOWN}.*" in text
    assert said["folder"] == "None" and not copy.cache.exists()


def test_without_the_jit_nothing_is_said(copy):
    said = copy.run("get", program=PROGRAM, NUMBA_DISABLE_JIT="1")
    assert (said["total"], said["one"], said["logs"]) == (15, 1, [])


def test_what_forbids_to_compile_is_an_error(copy):
    process = copy.start(program=PROGRAM, COLMATCH_KERNELS="ready")
    _, err = process.communicate(timeout=300)
    assert process.returncode and "KernelError: numba 0.99.1" in err and "COLMATCH_KERNELS=ready" in err


MATCHING = """
import colmatch as cm
import pyarrow as pa

events = pa.table({"price": [89.5, 310, None], "dest": ["LIS", "NCE", "LIS"]})
matcher = cm.Matcher.build({1: "price < 100 AND dest LIKE 'L%'", 2: "dest IS NOT NULL"}, events.schema)
matcher.insert({3: "price > 300"})
matcher.delete([2])
print(matcher.match_lists(events).to_pylist(), matcher.match_one({"price": 400.0, "dest": None}))
try:
    cm.warm("scan")
except cm.OptionError as error:
    print(error)
"""


def test_a_matcher_matches_and_nothing_can_be_warmed(tmp_path):
    settings = {"PYTHONPATH": str(ROOT), "COLMATCH_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_OPT": "0"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRETENDED + MATCHING],
        env=plain_environment(**settings) | {"COLMATCH_KERNELS": "auto"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    found, refused = run.stdout.splitlines()
    assert (found, run.returncode) == ("[[1], [3], []] [3]", 0), run.stderr
    assert "numba 0.99.1" in refused and "nothing can be kept" in refused
    (said,) = run.stderr.splitlines()
    assert said.startswith("colmatch: numba 0.99.1 ")
    assert not os.path.exists(tmp_path / "cache")


def test_the_version_is_written_once():
    """A later numba is taken; an earlier one is not."""
    text = (ROOT / "pyproject.toml").read_text()
    assert re.search(r'^  "numba>=(.*?)",', text, re.MULTILINE)[1] == _code.KNOWN
