"""Files that are replaced: what they keep, what cannot be replaced, and what processes that were
killed leave behind.
"""

import os
import signal
import stat
import struct
import subprocess
import sys
import textwrap
import time

import pytest

from colmatch.errors import StoreError
from colmatch.store import file as store
from colmatch.store import replacing

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes, pipes and locks of POSIX")
ROOT = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a file away")


def write(path, header=None):
    store.write_arrays(path, header or {}, {})


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "index.colmatch"
    write(path)
    return path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def start(program, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def end(process):
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o644, 0o664, 0o400])
def test_the_mode_is_kept(saved, kept):
    saved.chmod(kept)
    write(saved, {"n": 1})
    assert (mode(saved), store.read_arrays(saved)[0]) == (kept, {"n": 1})


def test_a_new_file_follows_the_umask(tmp_path):
    for umask, kept in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(umask)
        try:
            write(tmp_path / f"{umask}")
        finally:
            os.umask(before)
        assert mode(tmp_path / f"{umask}") == kept


def test_nobody_else_can_read_it_while_it_is_written(saved, monkeypatch):
    saved.chmod(0o600)
    seen = []
    fsync = os.fsync

    def look(handle):
        seen.extend(mode(path) for path in saved.parent.iterdir())
        fsync(handle)

    with replacing.replacing(saved) as file:
        file.write(b"secret")
        seen.extend(mode(path) for path in saved.parent.iterdir())
        monkeypatch.setattr(os, "fsync", look)
    assert len(seen) >= 4 and set(seen) == {0o600}


@ROOT
def test_the_owner_is_kept(saved):
    os.chown(saved, 1234, 4321)
    saved.chmod(0o660)
    write(saved, {"n": 1})
    assert (saved.stat().st_uid, saved.stat().st_gid, mode(saved)) == (1234, 4321, 0o660)


@ROOT
def test_another_group_gets_no_more_than_everybody(saved, monkeypatch):
    """Where the group cannot be kept, what it was allowed is not handed to this process's group."""
    os.chown(saved, 1234, 4321)
    saved.chmod(0o664)

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    write(saved, {"n": 1})
    assert (saved.stat().st_uid, saved.stat().st_gid, mode(saved)) == (os.geteuid(), os.getegid(), 0o644)


@pytest.mark.skipif(sys.platform != "linux", reason="access lists of Linux")
def test_an_access_list_is_kept(saved):
    # Version 2; the owner rw, user 1234 rw, the group nothing, the mask rw, all others nothing.
    entries = [(1, 6, -1), (2, 6, 1234), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(saved, replacing._ACL, acl)
    except OSError:
        pytest.skip("no access lists in this file system")
    before = mode(saved)
    write(saved, {"n": 1})
    assert (os.getxattr(saved, replacing._ACL), mode(saved)) == (acl, before)


def test_what_is_no_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for path in (pipe, tmp_path / "link", os.devnull):
        with pytest.raises(StoreError, match="is a pipe or a device, which .* cannot replace: give the name of a file"):
            write(path)
    with pytest.raises(StoreError, match="is a folder: give the name of a file"):
        write(tmp_path)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


def test_names_as_long_as_they_may_be(tmp_path):
    for name in ("x" * 255, "é" * 127):
        write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == sorted(["x" * 255, "é" * 127])


WRITER = """
    import sys, numpy as np
    from colmatch.store import file as store

    print("ready", flush=True)
    while True:
        store.write_arrays(sys.argv[1], {"n": 1}, {"a": np.arange(200_000)})
"""


def test_what_killed_processes_leave_is_cleared(saved):
    """Whichever process saves next, and under whatever name."""
    left = 0
    for n in range(12):
        process = start(WRITER, saved)
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.002 * (n + 1))
        process.send_signal(signal.SIGKILL)
        end(process)
        assert process.returncode == -signal.SIGKILL  # until then it was at work
        left += len(os.listdir(saved.parent)) > 1
        assert len(os.listdir(saved.parent)) <= 2  # the one after clears what the one before has left
        assert store.read_arrays(saved)[0] in ({}, {"n": 1})
    if not left:  # as good as never
        pytest.skip("none was killed while it wrote")
    write(saved.with_name("another"))
    assert sorted(os.listdir(saved.parent)) == ["another", saved.name]


PAUSED = """
    import os, sys
    from colmatch.store import replacing

    with replacing.replacing(sys.argv[1]) as file:
        file.write(b"first")
        file.flush()
        print("ready", flush=True)
        sys.stdin.readline()
        file.write(b"last")
    print("done", flush=True)
    sys.stdin.readline()
"""


def test_what_a_living_process_writes_is_left_alone(saved):
    """However long it takes; and when it is done it leaves nothing."""
    process = start(PAUSED, saved)
    try:
        assert process.stdout.readline() == b"ready\n"
        (name,) = {*os.listdir(saved.parent)} - {saved.name}
        os.utime(saved.parent / name, (0, 0))
        write(saved, {"n": 1})
        assert sorted(os.listdir(saved.parent)) == sorted([name, saved.name])
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"
        assert saved.read_bytes() == b"firstlast"
        assert os.listdir(saved.parent) == [saved.name]
    finally:
        end(process)


def test_a_file_that_is_cleared_before_it_is_locked(saved, monkeypatch):
    """Between making it and locking it, another process may take it for one that was left."""
    lock, turns = replacing.lock, []

    def late(handle):
        turns.append(handle)
        if len(turns) == 1:
            monkeypatch.setattr(replacing, "lock", lock)
            replacing.clear(str(saved.parent))
            assert os.listdir(saved.parent) == [saved.name]
            monkeypatch.setattr(replacing, "lock", late)
        return lock(handle)

    monkeypatch.setattr(replacing, "lock", late)
    write(saved, {"n": 1})
    assert len(turns) == 2
    assert store.read_arrays(saved)[0] == {"n": 1} and os.listdir(saved.parent) == [saved.name]


def left_by(folder, machine, days=0.0):
    path = folder / f".x.{machine}{'0' * 8}.colmatch-tmp"
    path.write_bytes(b"x")
    then = time.time() - days * replacing.DAY
    os.utime(path, (then, then))
    return path


def test_files_of_another_machine_are_left_for_a_day(tmp_path):
    """Its locks need not be seen here."""
    recent, old, own = (
        left_by(tmp_path, "ab" * 4, 0.9),
        left_by(tmp_path, "cd" * 4, 1.1),
        left_by(tmp_path, replacing._machine()),
    )
    write(tmp_path / "x")
    assert (recent.exists(), old.exists(), own.exists()) == (True, False, False)


def test_without_locks_files_are_left_for_a_day(tmp_path, monkeypatch):
    own = left_by(tmp_path, replacing._machine(), 0.9)
    monkeypatch.setattr(replacing, "lock", lambda handle: None)
    write(tmp_path / "x")
    assert own.exists()
    left_by(tmp_path, replacing._machine(), 1.1)
    write(tmp_path / "x")
    assert os.listdir(tmp_path) == ["x"]


def test_what_only_looks_like_one_is_left_alone(tmp_path):
    name = f".x.{replacing._machine()}{'0' * 8}.colmatch-tmp"
    others = [name + "~", name.lstrip("."), ".x.colmatch-tmp", f".{name[3:]}"]
    for other in others:
        (tmp_path / other).touch()
    os.mkfifo(tmp_path / f".pipe{name}")
    (tmp_path / f".folder{name}").mkdir()
    (tmp_path / f".link{name}").symlink_to(tmp_path / others[0])
    before = sorted(os.listdir(tmp_path))
    write(tmp_path / "x")
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "x"])
