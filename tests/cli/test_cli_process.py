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
    said = [line for line in err.decode().splitlines() if not line.startswith("colmatch: compiling kernels to ")]
    assert (code, said) == (130, ["colmatch: interrupted"])
    assert kept() <= before + 2
    assert not (tmp_path / "new.cm").exists() and not (tmp_path / "o.csv").exists()


RULES = "id,expression\n1,a > 1\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rules.csv").write_text(RULES)
    Path("events.csv").write_text("a\n5\n")
    assert finish(start("build", "rules.csv", "--schema", "a: int64", "-o", "r.cm"))[0] == 0
    return tmp_path


def without(numbers: str, *args: str) -> tuple[int, str]:
    """Runs a command without some of its three streams: exit code and errors."""
    closed = " ".join(f"{number}{'<' if number == '0' else '>'}&-" for number in numbers)
    command = f"exec {sys.executable} -m colmatch {' '.join(args)} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "command", ["match r.cm events.csv", "--help", "kinds", "explain r.cm events.csv --row 0 --id 1"]
)
def test_standard_output_may_be_closed(shop: Path, command: str) -> None:
    assert without("1", *command.split()) == (1, "colmatch: error: standard output is closed: give a file with -o\n")


def test_standard_streams_may_all_be_closed(shop: Path) -> None:
    assert without("012", "match", "r.cm", "events.csv", "-o", "found.csv") == (0, "")
    assert Path("found.csv").read_text() == '"event","subscription"\n0,1\n'
    assert without("0", "match", "r.cm", "-", "--format", "csv") == (
        1,
        "colmatch: error: standard input: it is closed\n",
    )
    assert without("2", "match", "r.cm", "none.csv") == (1, "")


def test_names_that_are_not_utf8_are_told(shop: Path) -> None:
    odd = os.fsdecode(b"e\xff.csv")
    Path("folder").mkdir()
    for name in (odd, f"folder/{odd}"):
        Path(name).write_text("a\n7\n")
    for path in (odd, "e*.csv", "folder", "fold*/e*.csv"):
        code, _, said = finish(start("match", "r.cm", path))
        assert code == 1 and b"not UTF-8" in said and b"fault" not in said and said.count(b"\n") == 1, said
    assert finish(start("match", "r.cm", "events.csv", "-o", os.fsdecode(b"o\xff.csv")))[0] == 0
    assert (Path(os.fsdecode(b"o\xff.csv"))).exists()


def test_lines_may_end_with_a_carriage_return_alone(shop: Path) -> None:
    Path("rules.csv").write_bytes(b"id,expression\r1,a > 1\r2,t = '2020-01-01'\r")
    assert finish(start("build", "rules.csv", "--schema", "a: int64, t: string", "-o", "r.cm"))[0] == 0
    Path("events.csv").write_bytes(b'"a",t\r5,2020-01-01\r6,x\r')
    assert finish(start("match", "r.cm", "events.csv", "--keep", "t"))[1].split() == [
        b'"event","t","subscription"', b'0,"2020-01-01",1', b'0,"2020-01-01",2', b'1,"x",1',
    ]  # fmt: skip
    Path("events.csv").write_bytes(b"a,t\r5,y\rx,y\r")
    assert b"events.csv: line 3, column 'a': invalid value 'x'" in finish(start("match", "r.cm", "events.csv"))[2]
    Path("events.csv").write_bytes(b'"a\rb",a\r\n5,6\r\n')
    assert finish(start("match", "r.cm", "events.csv", "--missing-columns", "null"))[1].split()[1:] == [b"0,1"]


def test_a_mark_of_byte_order_alone_in_a_row_is_told(shop: Path) -> None:
    Path("events.csv").write_bytes(b"a,b,\n0,\xef\xbb\xbf")
    said = finish(start("match", "r.cm", "events.csv"))[2]
    assert said.startswith(b"colmatch: error: events.csv: line 2") and b"fault" not in said


@pytest.mark.parametrize("lines", [b"\na\n5\n", b"\r\na\r\n5\r\n", b"\n\nx\n"])
def test_a_blank_first_line_is_told(shop: Path, lines: bytes) -> None:
    Path("events.csv").write_bytes(lines)
    said = finish(start("match", "r.cm", "events.csv"))[2]
    assert said == b"colmatch: error: events.csv: line 1 is blank, but a line with the names of the columns is needed\n"
