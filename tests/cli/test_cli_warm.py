"""``colmatch warm``: what it is asked for, what it shows, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract import NO_JIT
from shell import fails, invoke, run

from colmatch import warming
from colmatch.kernels import _warm
from colmatch.show import progress

pytestmark = pytest.mark.skipif(NO_JIT, reason="nothing is compiled")


class FakeProcess:
    """A process that writes two kernels, while it is looked at."""

    returncode = 0

    def __init__(self, files: list[Path], written: Iterator[int]) -> None:
        self._files, self._written = files, written

    def poll(self) -> int | None:
        ready = next(self._written)
        for file in self._files[:ready]:
            file.touch()
        return None if ready < 2 else 0

    def wait(self) -> None: ...
    def end(self) -> None: ...


@pytest.fixture(autouse=True)
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The folders that are left out; two kernels are asked for, and written by a fake."""
    monkeypatch.setenv("COLMATCH_CACHE_DIR", str(tmp_path / "usual"))
    monkeypatch.setattr(warming, "LOOK_EVERY", 0.3)
    found: list[list[str]] = []
    tasks = _warm.list_tasks

    class Task(_warm.CompileTask):
        @property
        def file(self) -> Path:
            return self.kernel._cache.path(self.types)

        def is_there(self, bundled: bool) -> bool:
            return self.file.exists()

    names = ["ranges.list_members", "sink.number_events"]

    def two(without: Any = ()) -> list[_warm.CompileTask]:
        found.append(without)
        return [Task(*task) for task in tasks() if task.kernel._cache.name in names]

    def started(count: int, without: Any, bundled: bool) -> Any:
        return [FakeProcess([task.file for task in two()], iter([0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]))]

    monkeypatch.setattr(_warm, "list_tasks", two)
    monkeypatch.setattr(_warm, "start_processes", started)
    return found


def test_the_last_line_says_how_many_kernels_are_where(tmp_path: Path, asked: list[list[str]]) -> None:
    result = run("warm", "--index", "scan", "--index", "bitslice")
    assert result.stdout == "" and "kinds.trees" in asked[0] and "kinds.bitslice" not in asked[0]
    (place,) = (tmp_path / "usual").iterdir()
    assert re.fullmatch(
        rf"colmatch: 2 kernels are ready: 2 compiled into {re.escape(str(place))}, and 0 were there, in \d s\n",
        result.stderr,
    )


def test_lines_say_how_many_kernels_there_are_and_how_long_it_will_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.1)
    lines = invoke("warm").stderr.splitlines()
    assert len(lines) > 2
    assert re.fullmatch(r"colmatch: [01] of 2 kernels(, \d+ s left)?", lines[0]) and " s left" in "".join(lines)
    assert lines[-1].startswith("colmatch: 2 kernels are ready") and "|" not in "".join(lines)


def test_a_bar_is_shown_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    shown = invoke("warm").stderr
    assert re.search(r"\d+ s left: +50%\|.*\| 1\.00/2\.00 kernels", shown) and "colmatch: 1 of" not in shown


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize(("size", "shown"), [((0, 0), "_Lines"), ((24, 80), "tqdm_asyncio")])
def test_a_terminal_without_a_size_gets_lines(size: tuple[int, int], shown: str) -> None:
    """As of ``docker run -t`` in a build: tqdm shows nothing there."""
    import fcntl
    import struct
    import termios

    ends = os.openpty()
    fcntl.ioctl(ends[1], termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    program = (
        "from colmatch.show.progress import bar\nwith bar(2, 'kernels', True, True) as made: print(type(made).__name__)"
    )
    said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=ends[1], text=True)
    for end in ends:
        os.close(end)
    assert said.stdout == f"{shown}\n"


def test_what_cannot_be_done_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "index='nope': the kinds are" in fails("warm", "--index", "nope")
    (tmp_path / "file").touch()
    monkeypatch.setenv("COLMATCH_CACHE_DIR", str(tmp_path / "file" / "x"))
    assert "name a folder that you can write" in fails("warm")


def test_a_wrong_mode_is_no_fault_of_colmatch() -> None:
    command = [sys.executable, "-m", "colmatch", "kinds"]
    ran = subprocess.run(command, env={**os.environ, "COLMATCH_KERNELS": "fast"}, capture_output=True, text=True)
    line = "colmatch: error: COLMATCH_KERNELS is 'fast': it must be one of auto, warm, native, ready\n"
    assert (ran.returncode, ran.stderr) == (1, line)
