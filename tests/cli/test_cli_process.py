"""The command line as a process of its own: pipes, exit codes, signals, and what it imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shell import EVENTS, PAIRS, an_index, pairs, write

from colmatch.kernels import _compiling


def start(*args: object, **how: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "colmatch", *(str(arg) for arg in args)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


def finish(process: subprocess.Popen[bytes], input: bytes = b"") -> tuple[int, bytes, bytes]:
    out, err = process.communicate(input, timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize("format", ["csv", "jsonl", "arrows"])
def test_a_pipe(tmp_path: Path, format: str) -> None:
    index = an_index(tmp_path)
    given = Path(write(tmp_path / f"e.{format}", EVENTS.select(["age", "city"]))).read_bytes()
    for _ in range(2):  # the first may tell that it compiles
        code, out, err = finish(start("match", index, "-", "--format", format, "--out-format", format), given)
    assert (code, err) == (0, b"")
    (tmp_path / f"out.{format}").write_bytes(out)
    assert pairs(tmp_path / f"out.{format}") == PAIRS


def test_errors_of_a_process(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    code, out, err = finish(start("match", index, tmp_path / "no.csv"))
    assert (code, out) == (1, b"")
    assert err.startswith(b"colmatch: error: ")
    assert err.count(b"\n") == 1
    code, _, err = finish(start("match", index, tmp_path / "no.csv", env={**os.environ, "COLMATCH_TRACEBACK": "1"}))
    assert code == 1
    assert b"Traceback" in err
    code, _, err = finish(start("nothing"))
    assert code == 2
    assert b"Usage" in err


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from colmatch.cli.commands import cli; cli.main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'sqlglot', 'tqdm', 'pyspark'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL, timeout=60)


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    big = write(tmp_path / "big.parquet", pa.concat_tables([EVENTS] * 50_000))
    with start("match", index, big) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        says = process.stderr.read().decode()
    assert (process.returncode, says) == (141, "")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_control_c(tmp_path: Path) -> None:
    index = an_index(tmp_path)
    process = start("match", index, "-", "--format", "csv", "-o", tmp_path / "out.csv")
    assert process.stdin
    process.stdin.write(b"age,city\n" + b"1,Nice\n" * 1000)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".out.csv.*")) and time.monotonic() < deadline:
        if process.poll() is not None:
            break
        process.stdin.write(b"1,Nice\n" * 100_000)
        process.stdin.flush()
        time.sleep(0.05)
    # as people do: one that comes while Arrow changes its own handlers can get lost, seen once on a
    # busy machine
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)  # standard input is still open
            break
    code, _, err = finish(process)
    assert code == 130, err
    assert b"Traceback" not in err
    assert not list(tmp_path.glob("*out.csv*"))


@pytest.mark.skipif(
    os.name != "posix" or os.environ.get("NUMBA_DISABLE_JIT") == "1",
    reason="signals of POSIX, while kernels are compiled",
)
@pytest.mark.parametrize("command", ["build", "match"])
def test_control_c_while_kernels_are_compiled(tmp_path: Path, command: str) -> None:
    """It ends at once: no kernel is compiled after the one under way, in whatever thread."""
    index = an_index(tmp_path)
    many = write(tmp_path / "many.parquet", pa.concat_tables([EVENTS] * 10_000))  # enough for several threads
    arguments = {
        "build": (tmp_path / "subs.csv", "--like", many, "-o", tmp_path / "new.cm"),
        "match": (index, many, "-o", tmp_path / "o.csv"),
    }
    cache = tmp_path / "cache"
    process = start(
        command, *arguments[command], env={**os.environ, "COLMATCH_CACHE_DIR": str(cache), "COLMATCH_KERNELS": "native"}
    )

    def kept() -> int:
        return len(list(cache.rglob("*.bin")))

    while not kept() and process.poll() is None:
        time.sleep(0.01)
    before = kept()
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err.replace(f"colmatch: {_compiling.ONCE}\n".encode(), b"")) == (130, b"colmatch: interrupted\n")
    assert kept() <= before + 2
    assert not (tmp_path / "new.cm").exists() and not (tmp_path / "o.csv").exists()
