#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.5"]
# ///
"""The checks of this repository, each by a name: ``nox -l`` lists them.

``nox -s lint`` makes an environment for a check. ``nox --no-venv -s lint`` runs it in the one that
is active; so does ``.ci/run``, which has the order of the checks and takes their commands from
here.
"""

import os
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True

PROJECT = nox.project.load_toml("pyproject.toml")
PARALLEL = ("-q", "-n", "2")
# Of the benchmarks mypy says which names of colmatch are gone, and not which types differ.
TYPES_OF_BENCHMARKS = (
    "arg-type,assignment,call-overload,func-returns-value,index,misc,operator,return,union-attr,var-annotated"
)
NAMES_ALONE = ("--config-file=", "--python-version=3.11", "--follow-imports=silent", "--ignore-missing-imports")
NAMES_ALONE += tuple(f"--disable-error-code={code}" for code in TYPES_OF_BENCHMARKS.split(","))

# Tests that reach every line and branch of the kernels: .ci/reaching.py chooses them. They run with
# bounds checked and without the JIT, and all that run kernels where arguments are given.
REACHING = ("-m", "", "@tests/kernels/reaching.txt")
KERNELS = (
    "tests/kernels", "tests/kinds", "tests/events", "tests/text", "tests/lowering", "tests/updates", "tests/matching",
    "tests/paged", "tests/test_contract.py", "tests/test_contract_best.py", "tests/test_contract_cases.py",
    "tests/test_contract_order.py", "tests/test_contract_ranges.py", "tests/test_contract_updates.py", "tests/subscriptions",
    "tests/store/test_saved.py", "tests/store/test_crafted.py",
    "--ignore=tests/kinds/test_settings.py",
)  # fmt: skip

FROM_SDIST = (
    "tests/test_contract_cases.py", "tests/test_house.py", "tests/test_documents.py", "tests/test_packaging.py",
)  # fmt: skip


def ready(session: nox.Session, group: str) -> None:
    """Installs colmatch and a group of dependencies, unless the session has no environment."""
    if session.venv_backend != "none":
        session.install("-e", ".", *nox.project.dependency_groups(PROJECT, group))


@nox.session
def lint(session: nox.Session) -> None:
    """Style: ruff's checks and its format."""
    ready(session, "dev")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types: mypy on colmatch, mypy and pyright on uses of it and on the guide's pages."""
    ready(session, "dev")
    session.run("mypy", "--strict", "colmatch")
    session.run("mypy", *NAMES_ALONE, "asv_benchmarks")
    session.run("pytest", "-q", "-m", "", "tests/test_types.py", *session.posargs)


@nox.session(default=False)
def quick(session: nox.Session) -> None:
    """The tests of a minute."""
    ready(session, "test")
    session.run("pytest", *PARALLEL, "-m", "quick", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but slow ones; arguments behind ``--`` replace the choice."""
    ready(session, "test")
    session.run("pytest", *(session.posargs or PARALLEL))


@nox.session(default=False)
def all(session: nox.Session) -> None:
    """All tests."""
    ready(session, "test")
    session.run("pytest", *PARALLEL, "-m", "", *session.posargs)


@nox.session(default=False)
def engines(session: nox.Session) -> None:
    """The tests that need Spark, DuckDB or another engine."""
    ready(session, "engines")
    session.run("pytest", *PARALLEL, "-m", "engines and not slow", *session.posargs)


@nox.session(default=False)
def cold(session: nox.Session) -> None:
    """The tests that start many processes, each of which imports or compiles."""
    ready(session, "test")
    session.run("pytest", *PARALLEL, "-m", "cold", *session.posargs)


@nox.session(default=False)
def bounds(session: nox.Session) -> None:
    """Tests of kernels with every index checked; with arguments, such as -m "", all of them."""
    ready(session, "test")
    checked = {"NUMBA_BOUNDSCHECK": "1"} | ({} if session.posargs else {"COLMATCH_TESTS": "least"})
    session.run("pytest", *PARALLEL, *((*KERNELS, *session.posargs) if session.posargs else REACHING), env=checked)


@nox.session(default=False)
def nojit(session: nox.Session) -> None:
    """Tests of kernels as plain Python, and whether they reach all; with arguments all of them."""
    ready(session, "test")
    plain = {"NUMBA_DISABLE_JIT": "1"}
    if session.posargs:
        session.run("pytest", *PARALLEL, *KERNELS, *session.posargs, env=plain)
    else:
        session.run("pytest", *PARALLEL, *REACHING, "--cov", "--cov-report=", env=plain)
        session.run("python", ".ci/reaching.py", "check")


@nox.session(default=False)
def reaching(session: nox.Session) -> None:
    """Chooses the tests of kernels for bounds and nojit anew; takes forty minutes."""
    ready(session, "test")
    report = Path(session.create_tmp()).resolve() / "junit.xml"
    traced = ("--cov", "--cov-report=", "--cov-context=test", f"--junitxml={report}")
    plain = {"NUMBA_DISABLE_JIT": "1"}
    session.run("pytest", *PARALLEL, *KERNELS, *traced, env=plain)
    session.run("python", ".ci/reaching.py", "choose", str(report))
    session.run("pytest", *PARALLEL, *REACHING, "--cov", "--cov-report=", env=plain)
    session.run("python", ".ci/reaching.py", "write")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site, in which every warning is an error: docs/_build/html."""
    ready(session, "docs")
    session.run("sphinx-build", "-W", "--keep-going", "-n", "-b", "html", "docs", "docs/_build/html", *session.posargs)


@nox.session(default=False)
def benchmarks(session: nox.Session) -> None:
    """Whether the benchmarks can be run; a quick look at some of them."""
    ready(session, "engines")
    session.chdir("asv_benchmarks")
    session.run("asv", "machine", "--yes")
    session.run("asv", "check")
    session.run("asv", "run", "--quick", "--bench", *(session.posargs or ["Quick|Import|First.*ten lines|FourAtOnce"]))


@nox.session(default=False)
def sdist(session: nox.Session) -> None:
    """The source distribution, in dist/, and some of its tests from where it is unpacked."""
    ready(session, "dev")
    for old in Path("dist").glob("*.tar.gz"):
        old.unlink()
    session.run("python", "-m", "build", "--sdist", "--outdir", "dist")
    (made,) = Path("dist").glob("*.tar.gz")
    folder = Path(session.create_tmp()).resolve() / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(made, folder, filter="data")
    (source,) = folder.iterdir()
    session.run("python", "-m", "venv", str(folder / "venv"))
    python, tests = str(folder / "venv" / "bin" / "python"), nox.project.dependency_groups(PROJECT, "test")
    session.run(python, "-m", "pip", "install", "-q", str(source), *tests, external=True)
    with session.chdir(source):
        session.run(
            python,
            "-P",
            "-m",
            "pytest",
            *PARALLEL,
            *(session.posargs or FROM_SDIST),
            env={"PYTHONPATH": ""},
            external=True,
        )


@nox.session(default=False)
def wheel(session: nox.Session) -> None:
    """Uses the wheel in dist/ where nothing can be compiled; makes it if a source is newer."""
    ready(session, "dev")
    built = list(Path("dist").glob("*.whl"))
    sources = [Path("pyproject.toml"), *Path("colmatch").rglob("*.py"), *Path("kernels").rglob("*.py")]
    if len(built) != 1 or built[0].stat().st_mtime < max(source.stat().st_mtime for source in sources):
        for old in built:
            old.unlink()
        session.run(".ci/wheel", env={"PYTHON": "python"}, external=True)
    (made,) = Path("dist").resolve().glob("*.whl")
    folder = Path(session.create_tmp()).resolve() / "installed"
    session.run("python", "-m", "venv", "--clear", str(folder))
    python, check = folder / "bin" / "python", Path(".ci", "wheel_check.py").resolve()
    session.run(str(python), "-m", "pip", "install", "-q", f"colmatch[fast,spark] @ {made.as_uri()}", external=True)
    with session.chdir(folder):  # not here, where the sources are
        kept = folder / "none"
        ready_made = {"COLMATCH_KERNELS": "ready", "COLMATCH_CACHE_DIR": str(kept), "PYTHONPATH": ""}
        session.run(
            str(python), str(check), *(session.posargs or ["spark"]), env=os.environ | ready_made, external=True
        )
    if kept.exists():
        session.error("the wheel has kept kernels of its own")


if __name__ == "__main__":
    nox.main()
