"""Saves of a matcher with a journal, by itself and by others, and its only writer."""

from __future__ import annotations

import errno
import gc
import logging
import os
import pickle
import subprocess
import sys
import textwrap
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from journals import SCHEMA, closed_state, log_of, opened, saved_in, state, update

import colmatch as cm
from colmatch.store import file as store
from colmatch.store import journal, replacing, saved
from colmatch.store import log as logs

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return saved_in(tmp_path)


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


@pytest.mark.parametrize("crash", ["replaced", "reset", "named"])
def test_a_crash_between_file_and_journal(path: Path, crash: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost and nothing done twice, in two saves."""
    matcher = opened(path)

    def fail(*arguments: Any) -> None:
        raise KeyboardInterrupt

    for wanted in update(matcher):
        with monkeypatch.context() as broken:
            if crash == "replaced":
                broken.setattr(journal.Journal, "follow_next", fail)
            elif crash == "reset":
                broken.setattr(journal, "replacing", fail)
            else:  # the next journal is there
                calls = iter([str, fail])
                broken.setattr(replacing, "sync_folder", lambda folder, calls=calls: next(calls)(folder))
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


def test_a_power_cut_takes_records_that_are_saved(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = opened(path)
    matcher.insert({10: "a = 5"})
    first = log_of(path).stat().st_size
    matcher.delete([10, 1])
    monkeypatch.setattr(journal.Journal, "follow_next", lambda *_: None)
    matcher.save(path)
    monkeypatch.undo()
    wanted = state(matcher)
    matcher.close()
    whole = log_of(path).read_bytes()
    for size in (first, first - 1, 5):
        log_of(path).write_bytes(whole[:size])
        assert closed_state(path) == wanted
        log_of(path).write_bytes(whole[:size])
        with opened(path) as matcher:
            matcher.insert({1: "a = 30"})
            after = state(matcher)
        assert closed_state(path) == after


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


def test_a_journal_that_says_another_number_of_updates(path: Path) -> None:
    with opened(path) as matcher:
        matcher.insert({9: "a = 9"})
    with closing(logs.open_locked(journal.JOURNAL, str(path))) as log:
        assert log.read_header()
        log.start += 1
        log.append(logs.HEADER, 2, [b"odd"], zlib.crc32(b"odd"))
    with pytest.raises(cm.StoreError, match="belongs to another save than"):
        opened(path)


def test_a_file_knows_the_save_before_it_only_with_a_journal(path: Path) -> None:
    assert "folded" not in store.read_arrays(path)[0]
    before = store.content_hash(path)
    with opened(path) as matcher:
        matcher.save(path)
    assert store.read_arrays(path)[0]["folded"] == before


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
        os.close(write)
        try:
            matcher.insert({101: "a = 1"})
        except cm.OptionError as error:
            os.write(1, f"{error}\\n".encode())  # in one piece
        assert len(matcher) == 4
        os.read(read, 1)  # it outlives its parent's matcher
        os._exit(0)
    try:
        cm.Matcher.open(sys.argv[1], journal=True)
    except cm.StoreError as error:
        os.write(1, f"{error}\\n".encode())  # in one piece
    matcher.insert({102: "a = 1"})
    matcher.close()
    cm.Matcher.open(sys.argv[1], journal=True).close()
    os.write(write, b"x")
    os.waitpid(child, 0)
    os.write(1, b"done\\n")
"""


def test_a_child_process_has_no_part_in_it(path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(FORKS), str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    child, parent, done = sorted(run.stdout.splitlines(), key=lambda line: (line == "done", "being" in line))
    assert "belongs to the parent process: make updates there" in child
    assert "is being written by" in parent and done == "done"
    assert closed_state(path)[1] == [1, 2, 3, 100, 102]


def test_without_locks_there_is_no_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "lock", lambda handle: None)
    with pytest.raises(cm.StoreError, match="cannot be locked on this system: open the matcher without a journal"):
        opened(path)


def test_a_journal_that_is_gone(path: Path) -> None:
    matcher = opened(path)
    log_of(path).unlink()
    with pytest.raises(cm.StoreError, match="was removed or replaced by somebody: no update is made; save"):
        matcher.insert({9: "a = 9"})
    assert matcher.version == 0 and len(matcher) == 3
    matcher.save(path.with_name("other"))
