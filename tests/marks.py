"""Which tests run when: marks by file, so that the choice can be read in one place.

``pytest -m quick`` takes a minute. ``pytest`` leaves out what is slow. ``.ci/nightly`` runs that.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from colmatch.kinds.registry import KINDS

TESTS = Path(__file__).parent

# Files and folders of the quick tests: of those for each kind only the ones for three kinds, and
# none that needs Spark.
QUICK = ("expr", "lowering", "test_house.py", "test_contract_cases.py", "kernels/test_imports.py")
NOT_QUICK = ("expr/test_fuzz.py", "expr/test_fuzz_calls.py", "expr/test_dialects.py", "expr/test_text_size.py")
NOT_QUICK_KINDS = {"auto", *KINDS} - {"scan", "bitslice", "bestar"}

# Files, or tests of a file, that start many processes, each of which imports colmatch or compiles.
# They are slow, but .ci/run runs them.
COLD = (
    "cli/test_cli_process.py", "kernels/test_bundle.py", "kernels/test_closure.py", "kernels/test_compiling.py",
    "kernels/test_interpret.py", "kernels/test_jit.py", "kernels/test_jit_folder.py",
    "test_documents.py::test_programs_that_documents_run_begin",
    "test_guide.py::test_a_page_does_what_it_says[docs/command-line.md]", "test_warming.py",
)  # fmt: skip

# Files and folders whose tests all need Spark or another engine that the README's second command
# does not install. Single tests say so themselves (installed.py).
ENGINES = (
    "spark", "tables/test_datafusion_function.py", "tables/test_duckdb_function.py", "tables/test_ibis_function.py",
    "tables/test_polars_frames.py", "test_differential_duckdb.py", "test_differential_elements.py",
    "test_differential_casts.py", "test_differential_functions.py", "test_differential_spark.py", "test_differential_times.py",
    "test_differential_variants.py", "test_site.py", "test_spark_examples.py", "test_types.py",
)  # fmt: skip

# Files, or tests of a file, that are kept for the night.
SLOW = (
    # state machines
    "kinds/test_pstkinds_machine.py", "kinds/test_pstree_machine.py", "kinds/test_tree_machine.py",
    "updates/test_state_machine.py",
    # comparisons with other engines at full size
    "test_differential_casts.py", "test_differential_computed.py", "test_differential_duckdb.py", "test_differential_elements.py",
    "test_differential_functions.py", "test_differential_spark.py", "test_differential_times.py", "test_differential_variants.py",
    "test_spark_examples.py",
    # kills, forks, interrupts, threads that go on for long, flips of every byte
    "paged/test_paged_log.py::test_a_byte_of_the_log_that_is_flipped", "paged/test_paged_safety.py",
    "store/test_journal_killed.py", "store/test_forked_writers.py", "updates/test_forks.py", "updates/test_interrupted.py",
    "updates/test_stress.py",
    # crafted files
    "store/test_crafted.py", "paged/test_paged_crafted.py",
    # Spark through Connect, its streams and all ways at once, shards of many rows
    "spark/test_all_ways.py", "spark/test_connect.py", "spark/test_match_stream.py", "spark/test_pipelines.py", "spark/test_sail.py",
    "spark/test_shards.py", "spark/test_stream_killed.py", "spark/test_streams_and_saves.py",
    # cold starts
    "kernels/test_interpret.py::test_interpreted_and_compiled_kernels_find_the_same", "kernels/test_unknown_numba.py",
    "test_warming.py::test_after_warming_no_kernel_is_compiled",
    # files and texts of many megabytes, sizes of memory
    "cli/test_places.py::test_a_wrong_line_of_json[many]", "expr/test_fuzz.py::test_a_hundred_thousand_strings_with_escapes",
    "expr/test_fuzz.py::test_a_hundred_thousand_times", "expr/test_fuzz.py::test_deep_nesting",
    "expr/test_fuzz.py::test_long_expressions", "expr/test_parse.py::test_huge_expressions",
    "expr/test_parse.py::test_huge_nonsense_is_refused", "expr/test_text_size.py::test_work_grows_as_the_text_does",
    "kinds/test_bitslice.py::test_columns_of_many_attributes_stay_open",
    "kinds/test_opindex.py::test_memory_follows_the_predicates_and_not_the_square_of_the_attributes",
    "paged/test_paged_trees.py::test_inner_pages_divide_and_merge",
    # the data structures and the rivals of benchmarks
    "bench/test_bench.py::test_a_rival_finds_what_colmatch_finds", "bench/test_bench.py::test_figures_of_every_system",
    "locators",
    # Spark in further ways
    "spark/test_among_in_spark.py", "spark/test_functions.py::test_a_column_of_lists[long]",
    "spark/test_functions.py::test_a_table_function[long]", "spark/test_functions.py::test_what_a_worker_is_given_is_told_in_words",
    "spark/test_source.py::test_files_give_what_their_rows_give[300]", "spark/test_source.py::test_filters_mean_what_spark_means",
    "spark/test_source.py::test_timestamps_as_spark_writes_them", "spark/test_task_log.py::test_spark_collects_the_lines_of_workers",
    # types over all pages, pictures, the papers' experiments
    "test_types.py", "test_pictures.py", "bench/test_experiments.py",
)  # fmt: skip


def place(path: Path) -> str:
    """Returns the place of a file among the tests."""
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""


def section(test: str) -> str:
    """Returns the part of the tests that a test belongs to: its folder, or its file."""
    file = test.partition("::")[0].removeprefix("tests/")
    folder, _, name = file.partition("/")
    return f"tests/{folder}" if name else f"tests/{file}"


def is_among(name: str, some: tuple[str, ...]) -> bool:
    """Says whether a file, or a test of it, is one of some or stands below one."""
    return any(name == one or name.startswith((f"{one}/", f"{one}::", f"{one}[")) for one in some)


def mark(item: pytest.Item) -> None:
    """Gives a test its marks."""
    file = place(item.path)
    name = f"{file}::{item.nodeid.partition('::')[2]}"
    is_slow = is_among(name, SLOW) or is_among(name, COLD)
    if (
        not is_slow
        and is_among(file, QUICK)
        and not is_among(file, NOT_QUICK)
        and NOT_QUICK_KINDS.isdisjoint(name.partition("[")[2].removesuffix("]").split("-"))
        and "spark" not in getattr(item, "fixturenames", ())
    ):
        item.add_marker(pytest.mark.quick)
    if is_among(file, ENGINES):
        item.add_marker(pytest.mark.engines)
    if is_slow:
        item.add_marker(pytest.mark.slow)
    if is_among(name, COLD) and not is_among(name, SLOW):
        item.add_marker(pytest.mark.cold)
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)
        item.add_marker(pytest.mark.engines)


def is_left_out(path: Path, wanted: str) -> bool:
    """Says whether a file need not be imported, by the marks that are asked for."""
    file = place(path)
    if file == "spark" and find_spec("pyspark") is None:  # conftest.py says so at the end of a run
        return True
    return wanted == "quick" and path.is_file() and not is_among(file, QUICK)
