"""The scripts of CI: what they run, and how they tell what failed. Nothing here runs a check."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import marks
import pytest

ROOT = Path(__file__).parent.parent
RUN = {
    "copy_tree", "readme 1", "readme 2", "machine_code", "check cold", "check engines", "check lint", "check types",
    "kernel_tests bounds", "kernel_tests nojit", "examples", "site check docs", "check wheel", "check sdist",
    "other_python 3.13", "other_python 3.14",
}  # fmt: skip
NIGHTLY = {
    "copy_tree", "machine_code", "all_tests", "check bounds -- -m \"not cold\"",
    "check nojit -- -m \"not cold and not slow\"", "other_spark 4.0", "other_python 3.13 tests/test_contract.py", "thorough",
    ".venv/bin/python tests/cli/fuzz.py 1000 --seed \"$seed\"", "check benchmarks", "site .ci/docs",
}  # fmt: skip

pytestmark = pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="the scripts are not beside the tests")


def sections(script: str) -> set[str]:
    """Returns the commands of a script's sections."""
    text = (ROOT / ".ci" / script).read_text().replace("\\\n", " ")
    return set(re.findall(r'^ *(?:constraints=.*|section|try) "[^"]*" (.*?)(?: *#.*)?$', text, re.MULTILINE))


def body(script: str, function: str) -> str:
    """Returns the commands of a function of a script."""
    text = (ROOT / ".ci" / script).read_text()
    (found,) = re.findall(rf"^{function}\(\) \{{(.*?)\}}$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def test_every_check_is_a_section() -> None:
    assert sections("run") >= RUN, RUN - sections("run")
    assert sections("nightly") >= NIGHTLY, NIGHTLY - sections("nightly")
    for script, beginning in (
        ("run", "other_python 3.12 tests/tables"), ("nightly", "readme 2"),
        ("nightly", ".venv/bin/python tests/updates/stress.py"), ("nightly", ".venv/bin/python tests/updates/stress_forks.py"),
        ("nightly", ".venv/bin/python tests/spark/streaming.py"), ("nightly", ".venv/bin/python examples/spark_orders.py connect"),
    ):  # fmt: skip
        assert any(command.startswith(beginning) for command in sections(script)), beginning
    assert 'COLMATCH_TESTS=all .venv/bin/pytest -q -n 2 -m "not cold" "${further[@]/#/--ignore=}"' in body(
        "nightly", "all_tests"
    )
    assert 'COLMATCH_TESTS=thorough .venv/bin/pytest -q -n 2 -m "" "${further[@]}"' in body("nightly", "thorough")


def test_the_readmes_second_command_runs_the_tests() -> None:
    (_, second) = re.findall(r"^python3 -m venv .*", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert second.endswith("&& .venv/bin/pytest -q -n 2")


def test_sessions_run_the_kernels_as_they_say() -> None:
    text = (ROOT / "noxfile.py").read_text()
    for session, setting in (("bounds", '"NUMBA_BOUNDSCHECK": "1"'), ("nojit", '"NUMBA_DISABLE_JIT": "1"')):
        (own,) = re.findall(rf"^def {session}\(.*?(?=^@|\Z)", text, re.MULTILINE | re.DOTALL)
        assert setting in own and own.count("env=") == own.count('"pytest"')


def test_every_file_of_tests_is_collected() -> None:
    left_out = [path for path in marks.TESTS.rglob("test_*.py") if marks.is_left_out(path, "not slow")]
    assert {marks.place(path).partition("/")[0] for path in left_out} <= {"spark"}
    assert not any(marks.is_left_out(path, "") for path in marks.TESTS.iterdir() if path.name != "spark")


def run_shell(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program in a shell that has read ``.ci/common``."""
    return subprocess.run(
        ["bash", "-c", f"source {ROOT}/.ci/common\n{program}"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )


def shell(program: str, folder: Path) -> list[str]:
    """Returns the lines that a program prints after it has read ``.ci/common``."""
    done = run_shell(program, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_fails_at_night_is_told_at_the_end(tmp_path: Path) -> None:
    program = """
        bad() { echo begun; false; echo "goes on"; }
        absent() { printf " python9" >>"$work/left-out"; }
        try one bad
        try two absent
        all_green || echo "status $?"
        failed=()
        all_green
    """
    said = shell(program, tmp_path)
    assert "begun" in said and "goes on" not in said
    assert said[-5:-3] == ["", "=== failed: one"] and said[-3] == "status 1"
    assert re.fullmatch(r"=== all green in \d+ s, without python9", said[-1])


SIDE = """
    early() { section "one of two" echo first; section "two of two" LAST; }
    begin early
    section "meanwhile" echo second
    end
    echo after
"""


def test_sections_that_run_beside_others_print_together(tmp_path: Path) -> None:
    said = shell(SIDE.replace("LAST", "echo third"), tmp_path)
    assert [line for line in said if line in ("first", "second", "third", "after")] == [
        "second",
        "first",
        "third",
        "after",
    ]


def test_a_failure_beside_other_sections_is_one(tmp_path: Path) -> None:
    done = run_shell(SIDE.replace("LAST", "false"), tmp_path)
    assert done.returncode == 1 and "second" in done.stdout and "first" in done.stdout and "after" not in done.stdout


def test_sections_beside_one_that_fails_are_ended(tmp_path: Path) -> None:
    program = 'late() { echo begun; sleep 300; }\nbegin late\necho $lane\nuntil [ -s "$work/lane" ]; do sleep 0.05; done\nfalse'
    done = run_shell(program, tmp_path)
    process, said = done.stdout.split()
    assert done.returncode == 1 and said == "begun" and not Path("/proc", process).exists()


def test_kernels_that_changed_are_tested_by_all_tests(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "Scan a" "scan b" "sql.cut $KERNEL"\n')
    python.chmod(0o755)
    program = """
        check() { echo "check $*"; }
        kernels_are_those_of_main() { false; }
        mkdir -p "$COLMATCH_CACHE_DIR"
        for KERNEL in one one two one; do export KERNEL; echo "kernel $KERNEL"; kernel_tests bounds; done
    """
    some, every = "check bounds", "check bounds -- -m not slow"
    said = [line for line in shell(program, tmp_path) if line.startswith(("check", "kernel"))]
    assert said == ["kernel one", every, some, "kernel one", some, "kernel two", every, some, "kernel one", some]


def test_modules_that_change_no_machine_code_count_as_those_of_main(tmp_path: Path) -> None:
    """As for files of compiled kernels: ``kernels/_closure.py`` leaves them out."""
    git = "git -C repository -c user.name=one -c user.email=one@example.org"
    program = f"""
        mkdir -p repository/kernels
        for name in sink _jit _code _compiling; do echo 1 >"repository/kernels/$name.py"; done
        git init -q repository
        {git} add . && {git} commit -qm first
        {git} update-ref refs/remotes/origin/main HEAD
        root=repository
        for name in _compiling sink _jit _code; do
            echo 2 >"repository/kernels/$name.py"
            kernels_are_those_of_main && echo "$name same" || echo "$name differs"
            {git} checkout -q .
        done
        touch repository/kernels/new.py
        kernels_are_those_of_main || echo "new differs"
    """
    assert shell(program, tmp_path) == [
        "_compiling same",
        "sink differs",
        "_jit differs",
        "_code differs",
        "new differs",
    ]
