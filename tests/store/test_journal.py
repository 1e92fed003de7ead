"""The journal as a file: bytes that are changed, cut off or zero, and what cannot be written."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import inside
import pytest
from journals import closed_state, log_of, opened, saved_in, state, update
from sizes import THOROUGH

import colmatch as cm
from colmatch.store import file, journal
from colmatch.store import log as logs
from colmatch.store.recovery import recover_journal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return saved_in(tmp_path)


def records_in(path: Path) -> list[tuple[int, bytes]]:
    """What a journal is read as."""
    log = journal.Journal(str(path), False)
    try:
        log.follow(file.content_hash(path), None, 0)
        return list(log.records())
    finally:
        log.close()


def test_each_flip_of_a_byte_is_found_or_harmless(path: Path) -> None:
    matcher = opened(path)
    *_, wanted = update(matcher)
    matcher.close()
    whole, records = log_of(path).read_bytes(), records_in(path)
    assert len(whole) < 1000 and len(records) == 3
    harmless: set[int] = set()
    for at in range(len(whole)):
        for flip in range(1, 256) if THOROUGH else (1, 128, 255, whole[at] or 0x55):  # makes it 0
            log_of(path).write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            try:
                found = records_in(path)
            except cm.StoreError as damage:
                assert f"{path}.journal " in str(damage)  # noqa: PT017
            else:
                assert found == records, (at, flip)
                harmless.add(at)
                assert flip != 1 or closed_state(path) == wanted
    assert len(harmless) == 3 * logs.HEAD  # what stands behind a record that is whole


@pytest.mark.parametrize("zeros", [0, 9, 5000])
def test_what_is_cut_short_is_dropped(path: Path, zeros: int, caplog: pytest.LogCaptureFixture) -> None:
    """With zeros behind, as after a power cut, as well."""
    matcher = opened(path)
    ends, states = [], []
    for now in update(matcher):
        ends.append(log_of(path).stat().st_size)
        states.append(now)
    matcher.close()
    whole, records = log_of(path).read_bytes(), records_in(path)
    for size in range(len(whole) + 1):
        log_of(path).write_bytes(whole[:size] + bytes(zeros))
        # What is there but for the bytes that end a record is there.
        data, mark = whole[:size] + bytes(zeros), logs.HEAD
        there = [end <= len(data) and data[: end - mark] == whole[: end - mark] for end in ends[1:]].count(True)
        assert zeros or there == sum(end <= size for end in ends[1:])
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert records_in(path) == records[:there]
        assert log_of(path).stat().st_size == ends[there]
        assert ("is dropped" in caplog.text) == (len(data) > ends[there] and size >= logs.HEADER)
        assert size % 50 or closed_state(path) == states[there]
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
    with open(log_of(path), "r+b") as log:  # as it says
        log.truncate(ends[1])
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
        other.setattr(logs, "VERSION", 9)
        opened(path).close()
    with pytest.raises(cm.StoreError, match=f"has format version 9, this colmatch reads version {logs.VERSION}: "):
        opened(path)
    older = logs._add_checksum(logs._HEADER.pack(b"colmatch journal", 2, bytes(16), 0))  # of a format before, with
    older += logs._add_checksum(logs._HEAD.pack(0, 1, 0)) * 2  # an update
    for other in (b"something else", b"as long as some records, and finished, " * 9, older):
        log_of(path).write_bytes(other)
        for call in (
            lambda: opened(path),
            lambda: cm.Matcher.open(path).save(path),
            lambda: recover_journal(str(path)),
        ):
            with pytest.raises(cm.StoreError, match="is not a journal of colmatch: move it away"):
                call()
        assert log_of(path).read_bytes() == other
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


FULL = """
    import resource, signal, sys
    import colmatch as cm

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    matcher = cm.Matcher.open(sys.argv[1], journal=True)
    matcher.insert({100: "a = 1"})
    resource.setrlimit(resource.RLIMIT_FSIZE, (800, -1))
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

    def half(handle: int, parts: list[bytes], at: int) -> None:
        data = b"".join(parts)
        os.pwrite(handle, data[: len(data) // 2], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(logs, "write", half)
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
    matcher.close()
    assert closed_state(path) == wanted


def test_the_disk_is_waited_for_with_a_journal_alone(path: Path) -> None:
    with pytest.raises(cm.OptionError, match="fsync=True goes with journal=True"):
        cm.Matcher.open(path, fsync=True)


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


def test_more_pieces_than_one_call_takes(tmp_path: Path) -> None:
    parts = [b"%d " % i for i in range(2 * logs.VECTOR_MOST + 7)]
    with open(tmp_path / "file", "w+b") as written:
        end = logs.write(written.fileno(), parts, 5)
        assert (end, written.read()) == (5 + len(b"".join(parts)), bytes(5) + b"".join(parts))


def test_without_fsync_nothing_waits_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = opened(path)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, None)
    matcher.insert({10: "a = 5"})
    assert inside.live(matcher).journal is not None
