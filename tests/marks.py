"""Which tests run when: marks by file, so that the choice can be read in one place.

``pytest -m quick`` takes a minute. ``pytest`` leaves out what is slow. ``.ci/nightly`` runs that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent

# Files and folders of the quick tests; of the contract's cases only those for three kinds.
QUICK = ("expr", "lowering", "test_house.py", "test_contract_cases.py")
QUICK_KINDS = ("scan", "bitslice", "bestar")

# Files whose tests start processes that compile. One worker runs them all: two would share a core
# with the compilers that they wait for.
COLD = (
    "test_warming.py", "kernels/test_bundle.py", "kernels/test_closure.py", "kernels/test_compiling.py",
    "kernels/test_interpret.py", "kernels/test_jit.py", "kernels/test_jit_folder.py", "kernels/test_unknown_numba.py",
)  # fmt: skip

# Files, or tests of a file, that are kept for the night.
SLOW: tuple[str, ...] = ()


def place(path: Path) -> str:
    """Returns the place of a file among the tests."""
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""


def is_among(name: str, some: tuple[str, ...]) -> bool:
    """Says whether a file, or a test of it, is one of some or stands below one."""
    return any(name == one or name.startswith((f"{one}/", f"{one}::", f"{one}[")) for one in some)


def mark(item: pytest.Item) -> None:
    """Gives a test its marks."""
    file = place(item.path)
    name = f"{file}::{item.nodeid.partition('::')[2]}"
    if is_among(file, QUICK) and (
        file != "test_contract_cases.py" or any(f"[{kind}" in name or f"-{kind}" in name for kind in QUICK_KINDS)
    ):
        item.add_marker(pytest.mark.quick)
    if is_among(name, SLOW):
        item.add_marker(pytest.mark.slow)
    if "spark" in getattr(item, "fixturenames", ()):  # one JVM for all workers
        item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.xdist_group("spark"))
    elif is_among(file, COLD):
        item.add_marker(pytest.mark.cold)
        item.add_marker(pytest.mark.xdist_group("cold"))


def is_left_out(path: Path, wanted: str) -> bool:
    """Says whether a file need not be imported, by the marks that are asked for."""
    file = place(path)
    return wanted == "quick" and path.is_file() and file.partition("/")[0] not in QUICK
