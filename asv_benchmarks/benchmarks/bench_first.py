"""The first answer of a process, in each state that compiled kernels may be in.

``compiled``: there is no machine code, and each kernel is compiled when it is first called.
``interpreted``: there is none either, and small inputs are interpreted, as after ``pip install .``.
``bundle``: the package carries machine code (``.ci/wheel`` makes it). ``kept``: an earlier process
has compiled what this one needs.

    cd asv_benchmarks && ../.venv/bin/asv run --quick --python=same --bench 'First|FourAtOnce'
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time

STATES = ["compiled", "interpreted", "bundle", "kept"]

TEN_LINES = """
import colmatch as cm
import pyarrow as pa

alerts = {
    "cheap": "price < 100 AND dest IN ('LIS', 'OPO')",
    "long weekend": "nights BETWEEN 3 AND 4 AND NOT (price > 400 OR dest LIKE 'L%')",
    "anything new": "dest IS NOT NULL",
}
matcher = cm.Matcher.build(alerts, {"price": "double", "dest": "string", "nights": "int32"})
offers = pa.table({"price": [89.5, 310, None], "dest": ["LIS", "NCE", "LIS"], "nights": pa.array([2, 4, 3], pa.int32())})
assert matcher.match_lists(offers).to_pylist() == [["cheap", "anything new"], ["long weekend", "anything new"], ["anything new"]]
"""

BITSLICE = """
from random import Random

import colmatch as cm
import pyarrow as pa

rng = Random(0)
names = [f"a{i}" for i in range(20)]
texts = {i: " AND ".join(f"{rng.choice(names)} {rng.choice('<>=')} {rng.randrange(100)}" for _ in range(4)) for i in range(2000)}
matcher = cm.Matcher.build(texts, dict.fromkeys(names, "int64"), index="bitslice")
events = pa.table({name: [rng.randrange(100) for _ in range(500)] for name in names})
before = matcher.match(events).num_rows
matcher.insert({-1: "a0 >= 0"})
assert matcher.match(events).num_rows == before + 500
assert matcher.match_topk(events, 3).num_rows >= 500
"""

PROGRAMS = {"ten lines": TEN_LINES, "2,000 bitslice": BITSLICE}


def has_bundle() -> bool:
    """Says whether the installed package carries machine code for this machine."""
    code = "from colmatch.kernels import _disk, _jit; print(len(_disk.bundle()))"
    return (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() != "0"
    )


def is_possible(state: str) -> bool:
    """Says whether the installed package can be in a state."""
    return has_bundle() == (state == "bundle") or state in ("compiled", "kept")


def check(state: str) -> None:
    """Makes asv leave out what the installed package cannot be measured with."""
    if not is_possible(state):
        raise NotImplementedError("the package has machine code, or lacks it: see .ci/wheel")


def environment(state: str, folder: str) -> dict[str, str]:
    """Returns the environment of a process in one of the states, with a cache folder of its own."""
    mode = {"compiled": "native", "interpreted": "auto", "bundle": "ready", "kept": "native"}[state]
    return {**os.environ, "COLMATCH_KERNELS": mode, "COLMATCH_CACHE_DIR": folder}


def seconds(program: str, state: str, at_once: int = 1) -> float:
    """Returns how long some processes take that do the same at the same time."""
    folder = tempfile.mkdtemp()
    try:
        if state == "kept":
            before = environment("compiled", folder)
            subprocess.run([sys.executable, "-c", PROGRAMS[program]], check=True, env=before)
        command, own = [sys.executable, "-c", PROGRAMS[program]], environment(state, folder)
        began = time.perf_counter()
        processes = [subprocess.Popen(command, env=own, stderr=subprocess.DEVNULL) for _ in range(at_once)]
        codes = [process.wait() for process in processes]
        taken = time.perf_counter() - began
        assert not any(codes), codes
        return taken
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class First:
    """Seconds from the start of Python to the end of a short program."""

    params = (list(PROGRAMS), STATES)
    param_names = ("program", "state")
    unit = "s"
    timeout = 600

    def setup(self, program: str, state: str) -> None:
        check(state)

    def track_seconds(self, program: str, state: str) -> float:
        return seconds(program, state)


class FourAtOnce:
    """Times as long as one process takes, where four begin at once on a machine without kernels."""

    params = STATES[1:]
    param_names = ("state",)
    unit = "times"
    timeout = 600

    def setup(self, state: str) -> None:
        check(state)

    def track_ratio(self, state: str) -> float:
        return seconds("ten lines", state, 4) / seconds("ten lines", state)
