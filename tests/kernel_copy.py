"""A copy of ``kernels/`` with a small kernel more, run in processes of its own, so that its
sources and cache can be changed.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from colmatch import errors
from colmatch.kernels import _compiling, _jit

KERNELS = Path(_jit.__file__).parent
ERRORS = Path(errors.__file__)

PROBE = """
    from typing import NamedTuple

    from numpy.typing import NDArray

    from colmatch.kernels._jit import kernel
    from colmatch.kernels.probe_step import step


    class State(NamedTuple):
        values: NDArray


    @kernel
    def total(state, start):
        sum = 0
        for i in range(start, state.values.size):
            sum += step(state.values[i])
        return sum


    @kernel
    def get(values, i):
        return values[i]
"""

STEP = """
    from colmatch.kernels._jit import device


    @device
    def step(x):
        return x + 1
"""

MAIN = """
    import json, logging, sys, warnings

    warnings.simplefilter("error")
    logs = []
    handler = logging.Handler()
    handler.emit = lambda record: logs.append((record.levelname, record.getMessage()))
    logging.getLogger("colmatch").addHandler(handler)
    logging.getLogger("colmatch").setLevel("INFO")
    import numpy as np
    from colmatch.kernels import _compiling, _disk, _jit, probe

    _compiling.SAY_AFTER = float("inf")  # however slow the machine
    values = np.arange(5)
    said = {"total": int(probe.total(probe.State(values), 0))}
    if "get" in sys.argv:
        said["one"] = int(probe.get(values, 1))
    if "outside" in sys.argv:
        try:
            probe.get(values[:3], 4)
            said["outside"] = "unnoticed"
        except IndexError:
            said["outside"] = "found"
    if "float" in sys.argv:
        said["float"] = float(probe.total(probe.State(np.arange(3) / 2), 0))
    said["folder"] = str(_disk.cache_dir())
    said["kernels"] = [k.py_func.__name__ for k in _jit.kernels()]
    said["compiled"] = sum(sum(k.stats.cache_misses.values()) for k in _jit.kernels())
    said["loaded"] = sum(sum(k.stats.cache_hits.values()) for k in _jit.kernels())
    said["logs"] = logs
    print(json.dumps(said))
"""


def plain_environment(**more):
    """The environment without this run's settings of numba."""
    return {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")} | more


class Copy:
    """A copy of the kernels with a probe in it, and a cache folder."""

    def __init__(self, folder: Path) -> None:
        self.sources = folder / "src" / "colmatch" / "kernels"
        self.cache = folder / "cache"
        shutil.copytree(KERNELS, self.sources, ignore=shutil.ignore_patterns("__pycache__", "*.bundle"))
        (self.sources.parent / "__init__.py").touch()
        shutil.copy(ERRORS, self.sources.parent)
        self.write("probe", PROBE)
        self.write("probe_step", STEP)

    def write(self, name, text):
        (self.sources / f"{name}.py").write_text(textwrap.dedent(text))

    def start(self, *what, program=MAIN, cwd=None, **settings):
        own = {"PYTHONPATH": str(self.sources.parent.parent), "COLMATCH_CACHE_DIR": str(self.cache)}
        own["PYTHONDONTWRITEBYTECODE"] = "1"  # Python takes a file of the same size and second for the same
        own["PYTHONFAULTHANDLER"] = "1"
        environment = plain_environment(**own) | settings
        environment = {name: value for name, value in environment.items() if value is not None}
        command = [sys.executable, "-c", textwrap.dedent(program), *what]
        cwd = cwd or self.cache.parent  # not the repository's folder, where python -c would find the original
        return subprocess.Popen(
            command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self, process):
        try:
            out, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # faulthandler says where each thread is
            raise AssertionError("".join(process.communicate())) from None
        err = err.replace(f"colmatch: {_compiling.ONCE.format(use=_compiling.MATCHING)}\n", "")  # on a slow machine
        assert (process.returncode, err) == (0, "")
        return json.loads(out) if out else None

    def run(self, *what, **settings):
        """What MAIN or another program prints."""
        return self.finish(self.start(*what, **settings))

    def files(self):
        """The files of kernels; those that are locked have nothing in them."""
        found = (path for path in self.cache.rglob("*") if path.is_file() and path.suffix != ".lock")
        return sorted(str(path.relative_to(self.cache)) for path in found)
