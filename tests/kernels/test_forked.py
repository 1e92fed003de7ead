"""A fork waits for threads that compile or import."""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forking
import numpy as np
import pytest
from contract import NO_JIT
from forking import HANGS, beside, held, in_child

import colmatch as cm
from colmatch.kernels import _forks
from colmatch.kernels._compiling import run_compiling
from colmatch.kernels._jit import kernel

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")


def fresh() -> Any:
    @kernel
    def double(values):  # type: ignore[no-untyped-def]
        return values[0] * 2

    return double


def numbas() -> list[Any]:
    from llvmlite.binding.ffi import lib
    from numba.core.compiler_lock import global_compiler_lock

    return [global_compiler_lock._lock, lib._lock._lock]


compiles = pytest.mark.skipif(NO_JIT, reason="nothing is compiled")


@compiles
@pytest.mark.parametrize("number", [0, 1])
def test_a_fork_waits_for_the_thread_that_compiles(number: int) -> None:
    double, lock = fresh(), numbas()[number]

    def compile() -> int:
        assert lock.acquire(timeout=20)  # in this thread, since a new one may get the number of the one that held it
        lock.release()
        return int(double(np.array([21])))

    with held(lock, after=0.5):
        assert in_child(compile) == "42"
    assert double(np.array([4])) == 8


@compiles
def test_a_fork_does_not_wait_for_itself() -> None:
    with numbas()[0], numbas()[1], _forks.hold_off_forks():
        assert in_child(lambda: (_forks.is_torn(), numbas()[0]._is_owned())) == "(False, True)"
        assert numbas()[0]._is_owned()
    assert not numbas()[0]._is_owned()


def test_a_thread_compiles_nothing_while_a_fork_waits() -> None:
    """Otherwise it would take numba's lock again and again before the fork gets it."""
    done: list[int] = []
    _forks._forking.append(-1)
    thread = threading.Thread(target=lambda: done.append(run_compiling(lambda: 42, lambda: True)))
    thread.start()
    try:
        thread.join(0.2)
        assert not done
    finally:
        _forks._forking.remove(-1)
    thread.join()
    assert done == [42]


def test_a_child_sees_both_of_two_steps_or_none() -> None:
    steps: list[int] = []

    def change(stand: Callable[[], None]) -> None:
        with _forks.hold_off_forks():
            steps.append(1)
            stand()
            steps.append(2)

    with beside(change, after=0.3):
        assert in_child(lambda: steps) == "[1, 2]"


@compiles
def test_a_child_that_was_forked_in_the_middle_of_compiling_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_forks, "WAIT_MOST", 0.05)
    monkeypatch.setattr(_forks, "LEAST_SECONDS", 0.01)
    double, known = fresh(), fresh()
    known(np.array([1]))

    def all_of_it() -> Any:
        with pytest.raises(RuntimeError, match="while another thread of its parent compiled a kernel"):
            double(np.array([21]))
        with _forks.hold_off_forks():
            pass
        monkeypatch.setattr(_forks, "WAIT_MOST", 1e6)
        return int(known(np.array([4]))), in_child(lambda: (int(known(np.array([3]))), _forks.is_torn()))

    with held(numbas()[0]):
        assert in_child(all_of_it) == repr((8, "(6, True)"))
    assert double(np.array([21])) == 42 and not _forks.is_torn()


def test_a_handler_that_forks_while_a_kernel_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child does not have the thread that compiles, so it begins again."""
    forked: list[int] = []
    answer, write = os.pipe()
    runs = 0

    def handle(*_: Any) -> None:
        forked.append(forking.fork())

    def compile() -> int:
        nonlocal runs
        runs += 1
        if not forked:
            os.kill(os.getpid(), signal.SIGUSR1)
            while not forked:
                pass
        return 42

    before = signal.signal(signal.SIGUSR1, handle)
    parent = os.getpid()
    try:
        result = run_compiling(compile, lambda: True)
        if os.getpid() != parent:
            os.write(write, repr((result, runs)).encode())
    finally:
        if os.getpid() != parent:
            os._exit(0)
        signal.signal(signal.SIGUSR1, before)
    assert result == 42 and runs == 1
    os.close(write)
    try:
        assert select.select([answer], [], [], 60)[0], HANGS
        assert os.read(answer, 100) == b"(42, 2)"
    finally:
        os.kill(forked[0], signal.SIGKILL)
        os.waitpid(forked[0], 0)


def test_a_fork_waits_for_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is half imported would stay so in the child."""
    (tmp_path / "slow.py").write_text("import forking\nforking.stand()\nvalue = 42\n")
    monkeypatch.setattr(cm, "__path__", [*cm.__path__, str(tmp_path)])

    def load(stand: Callable[[], None]) -> None:
        monkeypatch.setattr(forking, "stand", stand, raising=False)
        importlib.import_module("colmatch.slow")

    with beside(load, after=0.5):
        assert in_child(lambda: importlib.import_module("colmatch.slow").value) == "42"
    del sys.modules["colmatch.slow"]


def test_a_fork_that_waits_for_imports_keeps_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that compiles something while it is imported needs the lock for that."""
    (tmp_path / "slow.py").write_text("import forking\nforking.stand()\nvalue = forking.take()\n")
    monkeypatch.setattr(cm, "__path__", [*cm.__path__, str(tmp_path)])
    lock = threading.RLock()  # one of its own: others would stay held where this is red
    monkeypatch.setattr(_forks, "_waited", [lock])

    def take() -> bool:
        got = lock.acquire(timeout=5)
        if got:
            lock.release()
        return got

    def load(stand: Callable[[], None]) -> None:
        monkeypatch.setattr(forking, "stand", stand, raising=False)
        monkeypatch.setattr(forking, "take", take, raising=False)
        importlib.import_module("colmatch.slow")

    with beside(load, after=0.3):
        said = in_child(lambda: importlib.import_module("colmatch.slow").value, 20)
    del sys.modules["colmatch.slow"]
    assert said == "True"


def test_a_child_imports_what_another_thread_began_to_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other thread begins between the last look at imports and the fork."""
    (tmp_path / "slow.py").write_text("import forking\nforking.stand()\nvalue = 42\n")
    monkeypatch.setattr(cm, "__path__", [*cm.__path__, str(tmp_path)])
    monkeypatch.setattr(_forks, "_is_imported_by_others", lambda: False)

    def load(stand: Callable[[], None]) -> None:
        monkeypatch.setattr(forking, "stand", stand, raising=False)
        importlib.import_module("colmatch.slow")

    def again() -> int:
        monkeypatch.setattr(forking, "stand", lambda: None)
        return int(importlib.import_module("colmatch.slow").value)

    with beside(load):
        assert in_child(again, 20) == "42"
    del sys.modules["colmatch.slow"]


def test_a_child_waits_for_no_imports_of_threads_that_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of a module that was half imported stays held in it for ever."""
    (tmp_path / "endless.py").write_text("import forking\nforking.stand()\n")
    monkeypatch.setattr(cm, "__path__", [*cm.__path__, str(tmp_path)])
    monkeypatch.setattr(_forks, "WAIT_MOST", 0.05)

    def load(stand: Callable[[], None]) -> None:
        monkeypatch.setattr(forking, "stand", stand, raising=False)
        importlib.import_module("colmatch.endless")

    def fork_again() -> str:
        waits: list[float] = []
        monkeypatch.setattr(_forks.time, "sleep", waits.append)
        return in_child(lambda: len(waits))

    with beside(load):
        assert in_child(fork_again) == repr("0")
    del sys.modules["colmatch.endless"]
