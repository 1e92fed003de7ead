"""Which tests run when: marks by file, so that the choice can be read in one place.

``pytest -m quick`` takes a minute. ``pytest`` leaves out what is slow. ``.ci/nightly`` runs that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent

# Files and folders of the quick tests; of the contract's cases only those for three kinds.
QUICK = ("expr", "lowering", "test_house.py", "test_contract_cases.py")
NOT_QUICK = ("expr/test_fuzz.py", "expr/test_fuzz_calls.py", "expr/test_dialects.py", "expr/test_text_size.py")
QUICK_KINDS = ("scan", "bitslice", "bestar")

# Files whose tests start processes that compile. One worker runs them all: two would share a core
# with the compilers that they wait for.
COLD = (
    "test_warming.py", "kernels/test_bundle.py", "kernels/test_closure.py", "kernels/test_compiling.py",
    "kernels/test_interpret.py", "kernels/test_jit.py", "kernels/test_jit_folder.py", "kernels/test_unknown_numba.py",
)  # fmt: skip

# Files, or tests of a file, that are kept for the night.
SLOW = (
    # state machines
    "indexing/test_pstkinds_machine.py", "indexing/test_pstree_machine.py", "indexing/test_tree_machine.py",
    "updates/test_state_machine.py",
    # comparisons with other engines at full size
    "test_differential_computed.py", "test_differential_duckdb.py", "test_differential_spark.py",
    # kills, forks, interrupts, threads that go on for long
    "store/test_journal_killed.py", "store/test_forked_writers.py", "updates/test_forks.py", "updates/test_interrupted.py",
    "updates/test_stress.py",
    # crafted files
    "store/test_crafted.py", "paged/test_paged_crafted.py",
    # Spark through Connect, its streams and all ways at once, shards of many rows
    "spark/test_all_ways.py", "spark/test_connect.py", "spark/test_match_stream.py", "spark/test_sail.py",
    "spark/test_shards.py", "spark/test_stream_killed.py", "spark/test_streams_and_saves.py",
    # cold starts
    "kernels/test_interpret.py::test_interpreted_and_compiled_kernels_find_the_same", "kernels/test_unknown_numba.py",
    "test_warming.py::test_after_warming_no_kernel_is_compiled",
    # types over all pages, pictures, the papers' experiments
    "test_types.py", "test_pictures.py", "bench/test_experiments.py",
)  # fmt: skip


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
    if (
        is_among(file, QUICK)
        and not is_among(file, NOT_QUICK)
        and (file != "test_contract_cases.py" or any(f"[{kind}" in name or f"-{kind}" in name for kind in QUICK_KINDS))
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
