"""A forked child has no lock of a file, and keeps no other process from writing the file."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import forking
import pyarrow as pa
import pytest
from forking import in_child

import colmatch as cm
from colmatch.store import locks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")

SCHEMA = pa.schema({"a": pa.int64(), "s": pa.string()})
TEXTS = {1: "a = 1", 2: "a = 2 OR s LIKE '%x'", 3: "s = 'x'"}
EVENTS = pa.table({"a": [1, 2], "s": ["x", "yx"]})
THERE = [(0, 1), (0, 2), (0, 3), (1, 2)]


@contextmanager
def child_that_waits() -> Iterator[int]:
    """Forks a child that only waits. It lives when the block begins."""
    wait, there = os.pipe()
    child = forking.fork()
    if not child:
        os.write(there, b"x")
        signal.pause()
    try:
        assert select.select([wait], [], [], 60)[0]
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(wait)
        os.close(there)


def is_free(path: Path) -> bool:
    handle = os.open(path, os.O_RDWR)
    try:
        return locks.lock(handle) is True
    finally:
        locks.close(handle)


@pytest.mark.skipif(not locks.THERE_ARE, reason="files are not locked on this system")
def test_a_child_has_no_lock_of_a_file(tmp_path: Path) -> None:
    """The other thread may be at any step of locking, and may or may not have noted the file."""
    path = tmp_path / "file"
    path.touch()
    handle = os.open(path, os.O_RDWR)
    assert locks.lock(handle)
    copy = locks.duplicate(handle)
    with child_that_waits():
        assert not is_free(path)
        locks.close(handle)
        assert not is_free(path)
        locks.close(copy)
        assert is_free(path)  # although the child lives


def test_a_handle_that_is_of_another_file_by_now_stays(tmp_path: Path) -> None:
    for name in ("locked", "other"):
        (tmp_path / name).write_text(name)
    handle = os.open(tmp_path / "locked", os.O_RDWR)
    locks.lock(handle)
    other = os.open(tmp_path / "other", os.O_RDWR)
    os.dup2(other, handle)
    assert in_child(lambda: os.read(handle, 10)) == "b'other'"
    locks.close(handle)
    os.close(other)


WRITER = """
    import os, signal, sys
    import colmatch as cm

    matcher = cm.Matcher.open(sys.argv[1], **({"journal": True} if sys.argv[2] == "journal" else {}))
    matcher.insert({5: "a = 1"})
    child = os.fork()
    if not child:
        print(os.getpid(), flush=True)
        signal.pause()
    signal.pause()
"""


@pytest.mark.parametrize("what", ["journal", "pages"])
def test_the_child_of_a_writer_that_was_killed_leaves_the_file_to_others(tmp_path: Path, what: str) -> None:
    path = tmp_path / "file"
    if what == "pages":
        cm.Matcher.build(TEXTS, SCHEMA, index=cm.index("pbtree", path=str(path)))
    else:
        cm.Matcher.build(TEXTS, SCHEMA).save(path)

    def update() -> int:
        with cm.Matcher.open(path, **({"journal": True} if what == "journal" else {})) as matcher:
            matcher.insert({6: "a = 1"})
            return len(matcher)

    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path), what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        child = int(writer.stdout.readline())
        try:
            with pytest.raises(cm.StoreError, match=r"is being (changed|written) by"):
                update()
            writer.kill()
            writer.wait()
            os.kill(child, 0)  # it lives
            assert update() == 5
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_child_has_no_lock_of_a_file_that_is_being_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.touch()
    handle = os.open(path, os.O_RDWR)
    assert locks.lock(handle)
    close = os.close

    def closed(stand: Callable[[], None]) -> None:
        def slowly(one: int) -> None:
            if one == handle:
                stand()
            close(one)

        monkeypatch.setattr(locks.os, "close", slowly)
        locks.close(handle)

    with forking.beside(closed, after=0.3) as thread, child_that_waits():
        thread.join()
        monkeypatch.undo()
        assert is_free(path)
