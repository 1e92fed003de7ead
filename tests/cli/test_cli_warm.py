"""``colmatch warm``: what it is asked for, what it shows, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from contract import NO_JIT
from shell import fails, invoke, run

from colmatch import progress
from colmatch.kernels.ranges import list_members
from colmatch.warming import warm
from colmatch.warming.calls import Step, steps

pytestmark = pytest.mark.skipif(NO_JIT, reason="nothing is compiled")


@pytest.fixture(autouse=True)
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The kinds that the command asks for; one kernel is called, in a folder of the test."""
    monkeypatch.setenv("COLMATCH_CACHE_DIR", str(tmp_path / "usual"))
    found: list[list[str]] = []

    def one_step(kinds: list[str]) -> list[Step]:
        found.append(kinds)
        return [Step("a step", lambda _: list_members(np.zeros(1, np.int64), np.array([0, 1]), np.empty(1, np.int64)))]

    monkeypatch.setattr(warm, "steps", one_step)
    return found


def test_the_last_line_says_how_many_kernels_are_where(tmp_path: Path, asked: list[list[str]]) -> None:
    for arguments, folder, kinds in (
        (["--index", "scan", "--index", "bitslice"], tmp_path / "usual", ["scan", "bitslice"]),
        (["--to", tmp_path / "other"], tmp_path / "other", warm._kinds(None)),
    ):
        result = run("warm", *arguments)
        assert result.stdout == "" and asked.pop() == kinds
        (place,) = folder.iterdir()
        assert re.fullmatch(
            rf"colmatch: \d+ kernels are ready: \d compiled into {re.escape(str(place))}, and \d loaded, in \d+ s\n",
            result.stderr,
        )
        assert [file.suffix for file in place.iterdir()].count(".bin") == 1


def test_a_bar_is_shown_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a step" not in invoke("warm").stderr
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    shown = invoke("warm").stderr
    assert "a step: " in shown and "/" in shown and "kernels" in shown


def test_a_bar_moves_while_a_step_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "LOOK_EVERY", 0.01)

    def long_step(_: Path) -> None:
        list_members(np.zeros(1, np.int64), np.array([0, 1]), np.empty(1, np.int64))
        time.sleep(0.5)

    monkeypatch.setattr(warm, "steps", lambda kinds: [Step("a step", long_step)])
    monkeypatch.setattr(progress, "LINE_EVERY", 0.1)
    lines = invoke("warm").stderr.splitlines()
    assert len(lines) > 3 and all(re.fullmatch(r"colmatch: [01] of \d+ kernels", line) for line in lines[:-1])
    assert lines[-2].startswith("colmatch: 1 of ")
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    shown = invoke("warm").stderr
    assert re.search(r"a step: .* 1\.00/\d+ ", shown) and "colmatch: 1 of" not in shown


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
        "from colmatch.progress import bar\nwith bar(2, 'kernels', True, True) as made: print(type(made).__name__)"
    )
    said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=ends[1], text=True)
    for end in ends:
        os.close(end)
    assert said.stdout == f"{shown}\n"


def test_what_cannot_be_done_is_one_line(tmp_path: Path) -> None:
    assert "index='nope': the kinds are" in fails("warm", "--index", "nope")
    (tmp_path / "file").touch()
    assert "name a folder that you can write" in fails("warm", "--to", tmp_path / "file" / "x")
    assert "name of a folder is needed" in fails("warm", "--to", "")


def test_each_kind_has_its_steps() -> None:
    """Those of every matcher come first, and pages only where a kind has them."""
    names = {kind: [step.name for step in steps([kind])] for kind in ("scan", "pbtree")}
    assert names["scan"][:4] == names["pbtree"][:4]
    assert not [name for name in names["scan"][4:] if not name.startswith("scan")]
    assert "pbtree: pages" in names["pbtree"] and "scan (tiles=False)" in names["scan"]


def test_a_wrong_mode_is_no_fault_of_colmatch() -> None:
    command = [sys.executable, "-m", "colmatch", "kinds"]
    ran = subprocess.run(command, env={**os.environ, "COLMATCH_KERNELS": "fast"}, capture_output=True, text=True)
    line = "colmatch: error: COLMATCH_KERNELS is 'fast': it must be one of auto, native, ready\n"
    assert (ran.returncode, ran.stderr) == (1, line)
