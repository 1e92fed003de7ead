"""Which kernels an edit makes stale: exactly those that can reach the edited source."""

from __future__ import annotations

import importlib
import json
import pkgutil
import statistics
import textwrap
from pathlib import Path

import pytest
from kernel_copy import STEP, Copy
from test_imports import MODULES, SOURCES, reached

import colmatch.kernels
from colmatch.kernels import _closure


def test_an_edit_reaches_few_kernels() -> None:
    """As most files are edited for one kind of index alone."""
    for module in pkgutil.walk_packages(colmatch.kernels.__path__, "colmatch.kernels."):
        importlib.import_module(module.name)
    from colmatch.kernels import _jit

    ours = [
        kernel.py_func.__module__
        for kernel in _jit.kernels()
        if kernel.py_func.__module__.startswith(f"{_closure.PACKAGE}.")
    ]
    closures = [_closure.closure(module.removeprefix(f"{_closure.PACKAGE}.")) for module in ours]
    if not closures:
        pytest.skip("the JIT is off")
    stale = [sum(name in closure for closure in closures) for name in MODULES]
    print(
        f"of {len(closures)} kernels an edit makes {statistics.mean(stale):.1f} stale, median {statistics.median(stale)}"
    )
    assert statistics.median(stale) <= 8 and statistics.mean(stale) <= 30


def module_of(kernel: str, modules: list[str]) -> str:
    """Returns the path of the module that a kernel stands in, by the longest name that fits."""
    fitting = [name for name in modules if kernel.startswith(name.removesuffix(".py").replace("/", ".") + ".")]
    return max(fitting, key=len)


EVERY = """
    import importlib, json, os, pkgutil, sys
    import numpy as np
    from numba import typeof
    import colmatch.kernels
    from colmatch.kernels import _closure, _jit

    for module in pkgutil.walk_packages(colmatch.kernels.__path__, "colmatch.kernels."):
        importlib.import_module(module.name)
    types = typeof(1), typeof(np.empty(0, np.int64))

    def names():
        # As a new process has it: statuses are those of its imports.
        _closure.STATUSES.update(_closure._statuses())
        _closure._read.cache_clear()
        _closure._digest.cache_clear()
        return {kernel._cache.name: kernel._cache.file_name(types) for kernel in _jit.kernels()}

    before, found = names(), {}
    for source in json.loads(sys.argv[1]):
        path = os.path.join(_closure.ROOT, source)
        with open(path, "a") as file:
            file.write("# edited\\n")
        after = names()
        found[source] = [name for name in before if before[name] != after[name]]
        before = after
    print(json.dumps(found))
"""


def test_each_module_makes_exactly_those_kernels_stale_that_can_reach_it(tmp_path: Path) -> None:
    """Each source is edited in turn, the machinery and faces of packages included."""
    expected = reached()
    found = Copy(tmp_path).run(json.dumps(SOURCES), program=EVERY)
    kernels = set(found["_jit.py"])
    assert len(kernels) > 150 and kernels == set(found["_code.py"])
    for source in SOURCES:
        if source in _closure.ALWAYS:
            continue
        want = {
            name for name in kernels if not name.startswith("probe.") and source in expected[module_of(name, MODULES)]
        }
        assert {name for name in found[source] if not name.startswith("probe.")} == want, source


SWAPPED = """
    import json
    from typing import NamedTuple
    import numpy as np
    from colmatch.kernels import _disk, _jit, probe
    from colmatch.kernels.probe_pair import Pair

    pair = Pair(**{"a": np.array([1]), "b": np.array([10])})
    print(json.dumps([int(probe.first(pair)), sum(sum(k.stats.cache_hits.values()) for k in _jit.kernels())]))
"""

PAIR = """
    from typing import NamedTuple

    from numpy.typing import NDArray


    class Pair(NamedTuple):
        a: NDArray
        b: NDArray
"""


def test_fields_of_a_tuple_in_another_order_are_noticed(tmp_path: Path) -> None:
    """numba's types are the same, and the kernel's module need not import the tuple's."""
    copy = Copy(tmp_path)
    probe = """
        from colmatch.kernels._jit import kernel


        @kernel
        def first(pair):
            return pair.a[0]
    """
    copy.write("probe", probe)
    copy.write("probe_pair", PAIR)
    assert copy.run(program=SWAPPED) == [1, 0]
    assert copy.run(program=SWAPPED) == [1, 1]
    lines = textwrap.dedent(PAIR).replace("a: NDArray", "c: NDArray").replace("b: NDArray", "a: NDArray")
    copy.write("probe_pair", lines.replace("c: NDArray", "b: NDArray"))
    assert copy.run(program=SWAPPED) == [1, 0]


AWAY = """
    import json, os
    from pathlib import Path
    from colmatch.kernels import _closure, _disk, probe

    path = Path(_closure.ROOT, "probe_step.py")
    status, text = path.stat(), path.read_text()
    path.write_text(text.replace("+ 1", "+ 22"))
    away = _closure.digest("probe")
    path.write_text(text)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    back = _closure.digest("probe")
    os.utime(path)
    touched = _closure.digest("probe")
    path.write_text(text.replace("+ 1", "+ 22"))
    print(json.dumps([away, back, touched, _closure.digest("probe")]))
"""


def test_a_source_that_is_exchanged_for_a_while_is_not_taken_for_what_was_imported(tmp_path: Path) -> None:
    """One that is only written again has not changed."""
    copy = Copy(tmp_path)
    away, back, touched, changed = copy.run(program=AWAY)
    assert away is None and changed is None
    assert back == touched is not None
    copy.write("probe_step", STEP.replace("+ 1", "+ 22"))
    other, *_ = copy.run(
        program="import json; from colmatch.kernels import _closure; print(json.dumps([_closure.digest('probe')]))"
    )
    assert other != back


def test_an_edit_elsewhere_leaves_a_kernel_as_it_is(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    assert copy.run("get")["compiled"] == 2
    for name in ("layout.py", "_compiling.py", "kinds/trees/match.py"):
        path = copy.sources / name
        path.write_text(path.read_text() + "# edited\n")
    said = copy.run("get")
    assert (said["compiled"], said["loaded"]) == (0, 2)
