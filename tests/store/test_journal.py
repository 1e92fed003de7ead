"""The journal as a file: damage, cuts, locks, saves by others, disks that are full."""

from __future__ import annotations

import errno
import gc
import logging
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import inside
import pyarrow as pa
import pytest
from contract import pairs

import colmatch as cm
from colmatch.store import file as store
from colmatch.store import journal, journal_file, saved

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
THOROUGH = os.environ.get("COLMATCH_HYPOTHESIS") == "thorough"
EVENTS = pa.table({"a": [1, 5, 9, 30], "s": ["x", "yy", None, "zz"]})
SCHEMA = {"a": "int64", "s": "string"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "index"
    cm.Matcher.build({1: "a = 1", 2: "s = 'x'", 3: "a > 5"}, SCHEMA, index="scan").save(path)
    return path


def log_of(path: Path) -> Path:
    return Path(f"{path}.journal")


def opened(path: Path, **options: Any) -> cm.Matcher:
    return cm.Matcher.open(path, journal=True, **options)


def state(matcher: cm.Matcher) -> Any:
    return pairs(matcher.match(EVENTS)), sorted(matcher.ids.to_pylist()), matcher.rejected, matcher.version


def update(matcher: cm.Matcher) -> Iterator[Any]:
    """Makes some updates, and yields the state before each of them and at the end."""
    yield state(matcher)
    matcher.insert({10: "a = 5 AND s LIKE '%y'"})
    yield state(matcher)
    matcher.delete([2])
    yield state(matcher)
    matcher.replace({3: "a IN (1, 30) OR s = 'zz'", 4: "a <"}, errors="collect")
    yield state(matcher)


def closed_state(path: Path) -> Any:
    """What a matcher has that is opened with the journal, which is closed again."""
    with opened(path) as matcher:
        return state(matcher)


# What happens to the file


def test_each_flip_of_a_byte_is_found_or_harmless(path: Path) -> None:
    matcher = opened(path)
    *_, wanted = update(matcher)
    matcher.close()
    whole = log_of(path).read_bytes()
    assert len(whole) < 1000
    harmless = 0
    for at in range(len(whole)):
        for flip in range(1, 256) if THOROUGH else (1, 0x10, 0x80, 0xFF, whole[at] or 0x55):  # the last makes it 0
            log_of(path).write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            try:
                found = closed_state(path)
            except cm.StoreError as error:
                assert f"{path}.journal" in str(error)
            else:
                assert found == wanted, (at, flip)
                harmless += 1
    assert harmless  # those in what ends a record


@pytest.mark.parametrize("zeros", [0, 1, 7, 8, 100, 5000])
def test_what_is_cut_short_is_dropped(path: Path, zeros: int, caplog: pytest.LogCaptureFixture) -> None:
    """With zeros behind, as after a power cut, as well."""
    matcher = opened(path)
    ends, states = [], []
    for now in update(matcher):
        ends.append(log_of(path).stat().st_size)
        states.append(now)
    matcher.close()
    whole = log_of(path).read_bytes()
    for size in range(len(whole) + 1):
        log_of(path).write_bytes(whole[:size] + bytes(zeros))
        # What is there but for the bytes that end a record is there.
        data, mark = whole[:size] + bytes(zeros), len(journal_file.FINISHED)
        there = [
            i for i, end in enumerate(ends) if not i or data[: end - mark] == whole[: end - mark] and end <= len(data)
        ]
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            found = closed_state(path)
        assert found == states[there[-1]] and (
            zeros or there == [i for i, end in enumerate(ends) if not i or end <= size]
        )
        assert log_of(path).stat().st_size == ends[states.index(found)]
        dropped = size + zeros > max(ends[states.index(found)], journal_file.HEADER) and size >= journal_file.HEADER
        assert ("is dropped" in caplog.text) == dropped
    matcher = opened(path)
    matcher.insert({77: "a = 30"})
    after = state(matcher)
    matcher.close()
    assert closed_state(path) == after


def test_damage_says_where(path: Path) -> None:
    matcher = opened(path)
    ends = [log_of(path).stat().st_size for _ in update(matcher)]
    wanted = None
    matcher.close()
    whole = log_of(path).read_bytes()
    for at, what in ((ends[1] + 3, "head"), (ends[1] + 30, "content")):
        log_of(path).write_bytes(whole[:at] + b"?" + whole[at + 1 :])
        with pytest.raises(cm.StoreError, match=f"the {what} of record 2, at byte {ends[1]} of {len(whole)}; copy it"):
            opened(path)
    with open(log_of(path), "r+b") as file:  # as it says
        file.truncate(ends[1])
    wanted = closed_state(path)
    assert wanted[1] == [1, 2, 3, 10]
    for at in (0, 20, 47):
        log_of(path).write_bytes(whole[:at] + b"?" + whole[at + 1 :])
        with pytest.raises(cm.StoreError, match="damaged in its first 48 bytes|is not a journal of colmatch"):
            opened(path)
    second = whole[ends[1] : ends[2]]
    log_of(path).write_bytes(whole[: ends[1]] + second + second + whole[ends[2] :])
    with pytest.raises(cm.StoreError, match="the number 2 of record 3"):
        opened(path)


def test_another_version_and_what_is_no_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setattr(journal_file, "VERSION", 9)
        opened(path).close()
    with pytest.raises(cm.StoreError, match="has format version 9, this colmatch reads version 1"):
        opened(path)
    log_of(path).write_bytes(b"something else")
    for call in (lambda: opened(path), lambda: cm.Matcher.open(path).save(path)):
        with pytest.raises(cm.StoreError, match="is not a journal of colmatch: move it away"):
            call()
    log_of(path).unlink()
    os.mkfifo(log_of(path))
    with pytest.raises(cm.StoreError, match="is a pipe or a device"):
        opened(path)


def test_a_file_that_is_none_gets_no_journal(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 100)
    for name, error in (("x", cm.StoreError), ("y", FileNotFoundError)):
        with pytest.raises(error):
            opened(tmp_path / name)
    assert os.listdir(tmp_path) == ["x"]


def test_the_journal_is_as_secret_as_the_file(path: Path) -> None:
    path.chmod(0o640)
    matcher = opened(path)
    matcher.insert({9: "a = 9"})
    modes = [log_of(path).stat().st_mode & 0o777]
    matcher.save(path)
    assert [*modes, log_of(path).stat().st_mode & 0o777] == [0o640, 0o640]


# Saves


def test_a_save_folds_the_journal_in(path: Path) -> None:
    matcher = opened(path, fsync=True)
    empty = log_of(path).stat().st_size
    *_, wanted = update(matcher)
    stats = matcher.stats()["journal"]
    assert stats == {"path": f"{path}.journal", "records": 3, "bytes": log_of(path).stat().st_size}
    assert cm.Matcher.open(path).ids.to_pylist() == [1, 2, 3]  # a reader sees the last save
    matcher.save(os.path.relpath(path))
    assert log_of(path).stat().st_size == empty and matcher.stats()["journal"]["records"] == 0
    assert state(cm.Matcher.open(path)) == wanted
    matcher.insert({50: "a = 1"})
    after = state(matcher)
    matcher.close()
    assert matcher.stats()["journal"] is None
    assert closed_state(path) == after != wanted == state(cm.Matcher.open(path))
    assert sorted(os.listdir(path.parent)) == ["index", "index.journal"]


def test_a_link_has_the_journal_of_its_file(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    matcher = opened(link)
    matcher.insert({9: "a = 9"})
    matcher.save(path)
    assert matcher.stats()["journal"]["records"] == 0
    matcher.close()
    assert sorted(os.listdir(path.parent)) == ["index", "index.journal", "link"]


def test_a_copy_is_plain(path: Path) -> None:
    matcher = opened(path)
    *_, wanted = update(matcher)
    other = path.with_name("other")
    matcher.save(other)
    copy = pickle.loads(pickle.dumps(matcher))
    copy.insert({60: "a = 1"})
    assert state(cm.Matcher.open(other)) == wanted == state(matcher)
    assert copy.stats()["journal"] is None and not log_of(other).exists()
    assert matcher.stats()["journal"]["records"] == 3
    matcher.close()
    assert closed_state(path) == wanted


@pytest.mark.parametrize("crash", ["replaced", "reset"])
def test_a_crash_between_file_and_journal(path: Path, crash: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost and nothing done twice, in two saves."""
    matcher = opened(path)

    def fail(*arguments: Any) -> None:
        raise KeyboardInterrupt

    for wanted in update(matcher):
        with monkeypatch.context() as broken:
            if crash == "replaced":
                broken.setattr(journal.Journal, "follow_next", fail)
            else:
                broken.setattr(journal, "replacing", fail)
            with pytest.raises(KeyboardInterrupt):
                matcher.save(path)
        there = {name: (path.parent / name).read_bytes() for name in ("index", "index.journal")}
        copy = path.parent / "copy"
        copy.mkdir(exist_ok=True)
        for name, data in there.items():
            (copy / name).write_bytes(data)
        assert closed_state(copy / "index") == wanted == state(matcher)
        with opened(copy / "index") as other:
            other.delete([1])
            other.save(copy / "index")
            other.insert({1: "a = 30"})
            after = state(other)
        assert closed_state(copy / "index") == after
    matcher.save(path)
    last = state(matcher)
    matcher.close()
    assert closed_state(path) == last == state(cm.Matcher.open(path))


def test_updates_during_a_save_are_in_the_next_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = opened(path)
    matcher.insert({10: "a = 5"})
    write = saved.write_arrays

    def slow(*arguments: Any) -> str:
        matcher.insert({11: "a = 9"})
        hash = write(*arguments)
        matcher.delete([10])
        return hash

    with monkeypatch.context() as broken:
        broken.setattr(saved, "write_arrays", slow)
        matcher.save(path)
    assert matcher.stats()["journal"]["records"] == 2
    matcher.insert({12: "a = 30"})
    wanted = state(matcher)
    matcher.close()
    assert closed_state(path) == wanted
    assert cm.Matcher.open(path).ids.to_pylist() == [1, 2, 3, 10]


def test_a_journal_that_cannot_be_emptied_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    matcher = opened(path)
    matcher.insert({10: "a = 5"})

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING):
        broken.setattr(journal, "replacing", full)
        matcher.save(path)
    assert "keeps updates that are saved: [Errno 28]" in caplog.text
    matcher.insert({11: "a = 9"})
    wanted = state(matcher)
    matcher.close()
    assert closed_state(path) == wanted


def test_others_do_not_save_over_updates(path: Path) -> None:
    plain = cm.Matcher.open(path)
    fresh = cm.Matcher.build({7: "a = 7"}, SCHEMA)
    matcher = opened(path)
    before = path.read_bytes()
    for other in (plain, fresh):
        with pytest.raises(cm.StoreError, match="is being written by this process: one process at a time"):
            other.save(path)
    *_, wanted = update(matcher)
    matcher.close()
    for other in (plain, fresh, matcher):
        with pytest.raises(cm.StoreError, match="has updates, which would be lost: open .* with journal=True and save"):
            other.save(path)
    assert path.read_bytes() == before and closed_state(path) == wanted
    with opened(path) as matcher:
        matcher.save(path)
    fresh.save(path)  # which has nothing to lose
    assert os.listdir(path.parent) == ["index"]
    assert closed_state(path) == state(fresh)


def test_a_journal_of_another_save(path: Path) -> None:
    older = path.read_bytes()
    with opened(path) as matcher:
        matcher.insert({9: "a = 9"})
        matcher.save(path)
    path.write_bytes(older)
    assert closed_state(path) == state(cm.Matcher.open(path))  # the journal has nothing to say
    with opened(path) as matcher:
        matcher.insert({9: "a = 9"})
        matcher.save(path)
        matcher.insert({10: "a = 9"})
    path.write_bytes(older)
    with pytest.raises(cm.StoreError, match="belongs to another save than .*, and has updates: put the file back"):
        opened(path)


# One writer


def test_one_writer(path: Path) -> None:
    matcher = opened(path)
    for _ in range(2):
        with pytest.raises(
            cm.StoreError, match=r"by this process: one process at a time makes updates; without journal=True the last"
        ):
            opened(path)
        matcher.save(path)  # the next journal is locked too
    matcher.close()
    matcher = opened(path)
    del matcher
    gc.collect()
    opened(path).close()
    with pytest.raises(cm.OptionError, match="is closed"):
        closed = opened(path)
        closed.close()
        closed.insert({9: "a = 9"})


WRITER = """
    import sys, os
    import colmatch as cm

    matcher = cm.Matcher.open(sys.argv[1], journal=True)
    matcher.insert({100: "a = 1"})
    print(os.getpid(), flush=True)
    sys.stdin.readline()
"""


def test_a_writer_in_another_process(path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = process.stdout.readline().strip()
        whom = rf"process {pid}" if sys.platform == "linux" else "another process"
        with pytest.raises(cm.StoreError, match=f"is being written by ({whom}|another process)"):
            opened(path)
        assert cm.Matcher.open(path).ids.to_pylist() == [1, 2, 3]
        process.kill()
    assert closed_state(path)[1] == [1, 2, 3, 100]


FORKS = """
    import os, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks
    import colmatch as cm

    matcher = cm.Matcher.open(sys.argv[1], journal=True)
    matcher.insert({100: "a = 1"})
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            matcher.insert({101: "a = 1"})
        except cm.OptionError as error:
            print(error, flush=True)
        assert len(matcher) == 4
        os.read(read, 1)  # it outlives its parent's matcher
        os._exit(0)
    try:
        cm.Matcher.open(sys.argv[1], journal=True)
    except cm.StoreError as error:
        print(error, flush=True)
    matcher.insert({102: "a = 1"})
    matcher.close()
    cm.Matcher.open(sys.argv[1], journal=True).close()
    os.write(write, b"x")
    os.waitpid(child, 0)
    print("done", flush=True)
"""


def test_a_child_process_has_no_part_in_it(path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(FORKS), str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    child, parent, done = sorted(run.stdout.splitlines(), key=lambda line: ("done" == line, "being" in line))
    assert "is the parent process's: updates are to be made there" in child
    assert "is being written by" in parent and done == "done"
    assert closed_state(path)[1] == [1, 2, 3, 100, 102]


def test_without_locks_there_is_no_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "lock", lambda handle: None)
    with pytest.raises(cm.StoreError, match="cannot be locked on this system: open the matcher without a journal"):
        opened(path)


def test_a_journal_that_is_gone(path: Path) -> None:
    matcher = opened(path)
    log_of(path).unlink()
    with pytest.raises(cm.StoreError, match="was removed or replaced by somebody: no update is made; save"):
        matcher.insert({9: "a = 9"})
    assert matcher.version == 0 and len(matcher) == 3
    matcher.save(path.with_name("other"))


# What fails


FULL = """
    import resource, signal, sys
    import colmatch as cm

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    matcher = cm.Matcher.open(sys.argv[1], journal=True)
    matcher.insert({100: "a = 1"})
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, -1))
    done, i = [100], 101
    while True:
        try:
            matcher.insert({i: f"a = {i} OR s = 'x{i}'"})
        except cm.StoreError as error:
            print(error)
            break
        done.append(i)
        i += 1
    assert len(done) > 1 and matcher.ids.to_pylist()[3:] == done
    matcher.delete([100])  # for which there is room
    print(*done[1:])
"""


def test_a_disk_that_is_full(path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(FULL), str(path)]
    message, done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert message == (
        f"{path}.journal cannot be written (File too large): nothing was changed; see that there is room, and do it again"
    )
    assert closed_state(path)[1] == [1, 2, 3, *map(int, done.split())]


def test_what_cannot_be_cut_off_is_so_before_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = opened(path)
    matcher.insert({10: "a = 5"})
    size = log_of(path).stat().st_size

    def fail(handle: int, *more: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def half(handle: int, data: bytes, at: int) -> None:
        os.pwrite(handle, data[: len(data) // 2], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(journal, "write", half)
        broken.setattr(os, "ftruncate", fail)
        with pytest.raises(cm.StoreError, match="Input/output error"):
            matcher.insert({11: "a IN (1, 2, 3, 4, 5, 6, 7, 8, 9) AND s = 'a long one'"})
        assert log_of(path).stat().st_size > size
        broken.undo()
        broken.setattr(os, "ftruncate", fail)
        with pytest.raises(cm.StoreError, match="Input/output error"):  # as long as it is there
            matcher.insert({12: "a = 1"})
    assert state(matcher)[1] == [1, 2, 3, 10]
    matcher.delete([1])
    wanted = state(matcher)
    shutil.copy(log_of(path), path.with_name("kept"))
    matcher.close()
    assert closed_state(path) == wanted


def test_what_is_not_on_the_disk_is_not_done(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = opened(path, fsync=True)
    synced = []
    monkeypatch.setattr(journal, "sync", synced.append)
    matcher.insert({10: "a = 5"})
    assert len(synced) == 1

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(journal, "sync", fail)
    size = log_of(path).stat().st_size
    with pytest.raises(cm.StoreError, match="cannot be written"):
        matcher.insert({11: "a = 5"})
    assert log_of(path).stat().st_size == size and len(matcher) == 4
    monkeypatch.undo()
    matcher.close()
    assert closed_state(path)[1] == [1, 2, 3, 10]


def test_without_fsync_nothing_waits_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = opened(path)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, None)
    matcher.insert({10: "a = 5"})
    assert inside.live(matcher).journal is not None


def test_a_file_knows_the_save_before_it_only_with_a_journal(path: Path) -> None:
    assert "folded" not in store.read_arrays(path)[0]
    before = store.content_hash(path)
    with opened(path) as matcher:
        matcher.save(path)
    assert store.read_arrays(path)[0]["folded"] == before
