"""What becomes of a file of pages when processes are killed, disks are full, bytes are flipped, and
others read or write.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import inside
import pytest
from contract import pairs
from sizes import SMALL
from some_pages import EVENTS, SCHEMA, as_said, built, reopened
from writer import changes, text

import colmatch as cm
from colmatch.kernels import _forks
from colmatch.paged import file as paged_file
from colmatch.paged.check import check
from colmatch.paged.workers import PagedWorkers

KILLS = int(os.environ.get("COLMATCH_KILLS", "2" if SMALL else "6"))
WRITER = Path(__file__).with_name("writer.py")


def test_pages_are_read_under_the_lock(tmp_path: Path) -> None:
    """Another thread, or process, may change them otherwise between two pages."""
    matcher = built(tmp_path / "pages")
    lock, file = inside.live(matcher).lock, inside.page_file(matcher)
    read, unlocked = file.read, []

    def looking(page: int) -> Any:
        if not _forks.is_held(lock):
            unlocked.append("".join(traceback.format_stack(limit=4)))
        return read(page)

    with patch.object(file, "read", looking):
        matcher.insert({100: "a = 1", 101: "b < 7"}, tags={100: ["x"]})
        matcher.delete([101])
        calls: list[Callable[[], object]] = [
            lambda: matcher.match(EVENTS, ids=[1, 100]),
            lambda: matcher.match_lists(EVENTS, tags=["x"]),
            lambda: matcher.match_one({"a": 1}),
            lambda: matcher.match_topk(EVENTS, 2),
            lambda: matcher.hits(EVENTS),
            lambda: matcher.reasons(EVENTS),
            lambda: matcher.explain({"a": 1}, 100),
            lambda: (matcher.ids, len(matcher), matcher.stats(), matcher.schema, matcher.version),
            lambda: matcher.save(tmp_path / "copy"),
        ]
        for call in calls:
            call()
    assert not unlocked, unlocked[0]


def test_a_killed_process_loses_no_finished_update(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    built(path).close()
    ids, version = set(range(60)), 0
    rng = Random(3)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for turn in range(KILLS):
        command = [sys.executable, str(WRITER), str(path), str(turn)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        said = int(process.stdout.readline())  # it has begun
        time.sleep(rng.random() * 0.4)
        process.kill()
        for line in process.stdout.read().splitlines():
            said = int(line) if line.isdigit() else said
        process.stdout.close()
        process.wait()
        matcher = cm.Matcher.open(path)
        assert said <= matcher.version <= said + 1
        steps, now = changes(turn, set(ids)), set(ids)
        for _ in range(matcher.version - version):
            new, gone = next(steps)
            while not new and not gone:
                new, gone = next(steps)
            now = (now | set(new)) - set(gone)
        ids, version = now, matcher.version
        as_said(matcher, ids)
        check(str(path))


def test_a_checkpoint_that_ends_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    matcher = built(path)
    matcher.insert({100: text(100), 101: text(101)})
    matcher.delete([5])
    ids = set(range(60)) - {5} | {100, 101}
    calls = 0
    for fail_at in range(1000):
        for end in ("", "log"):
            (tmp_path / f"copy{'.' + end if end else ''}").write_bytes(
                (tmp_path / f"pages{'.' + end if end else ''}").read_bytes()
            )
        copy = cm.Matcher.open(tmp_path / "copy")
        inside.page_file(copy).begin_writing()
        with failing(fail_at) as failed, suppress(OSError):
            inside.page_file(copy).checkpoint()
        copy = reopened(copy, tmp_path / "copy")
        as_said(copy, ids)
        copy.insert({200: text(200)})
        copy = reopened(copy, tmp_path / "copy")
        as_said(copy, ids | {200})
        calls += 1
        if not failed:
            break
    assert calls > 5


class failing:
    """Lets the n-th write of this process fail, in the middle of what it writes."""

    def __init__(self, at: int, number: int = errno.ENOSPC) -> None:
        self.left, self.number, self.failed = at, number, []

    def _counted(self, name: str) -> Any:
        real = getattr(os, name)

        def write(handle: int, data: Any, *place: Any) -> Any:
            self.left -= 1
            if self.left < 0 and name in ("pwrite", "pwritev"):
                self.failed.append(name)
                part = b"".join(data) if name == "pwritev" else bytes(data)
                os_pwrite(handle, part[: len(part) // 2], *place)
                raise OSError(self.number, os.strerror(self.number))
            if self.left < 0:
                self.failed.append(name)
                raise OSError(self.number, os.strerror(self.number))
            return real(handle, data, *place)

        def plain(handle: int, *rest: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                self.failed.append(name)
                raise OSError(self.number, os.strerror(self.number))
            return real(handle, *rest)

        return write if name in ("pwrite", "pwritev") else plain

    def __enter__(self) -> list[str]:
        names = ("pwrite", "pwritev", "fsync", "ftruncate")
        self.patches = [patch.object(os, name, self._counted(name)) for name in names]
        for one in self.patches:
            one.start()
        return self.failed

    def __exit__(self, *error: object) -> None:
        for one in self.patches:
            one.stop()


os_pwrite = os.pwrite


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_leaves_the_old_state_or_the_new(number: int, tmp_path: Path) -> None:
    path = tmp_path / "pages"
    matcher = built(path)
    ids, told = set(range(60)), []
    with patch.object(paged_file, "LOG_MOST", 200_000):
        for turn in range(12 if SMALL else 40):
            id, before = 1000 + turn, matcher.version
            with failing(turn % 8, number):
                try:
                    matcher.insert({id: text(id)}) if turn % 3 else matcher.delete([min(ids)])
                except cm.StoreError as error:
                    told.append(str(error))
            now = set(matcher.ids.to_pylist())
            assert (now == ids) == (matcher.version == before)
            assert now in (ids, ids | {id}, ids - {min(ids)})
            as_said(matcher, now)
            ids = now
            if turn % 5 == 0:
                matcher = reopened(matcher, path)
                as_said(matcher, ids)
            check(str(path))
    assert len(told) > (2 if SMALL else 3)
    assert all(os.strerror(number) in said for said in told)


def test_a_build_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    built(path).close()
    with (
        patch.object(os, "fsync", side_effect=OSError(errno.ENOSPC, "")),
        pytest.raises(cm.StoreError, match="No space"),
    ):
        built(path, 5)
    matcher = cm.Matcher.open(path)
    as_said(matcher, set(range(60)))
    with (
        patch.object(os, "replace", side_effect=OSError(errno.EIO, "")),
        pytest.raises(cm.StoreError, match="cannot be written"),
    ):
        matcher.compact()
    matcher.insert({77: text(77)})
    as_said(matcher, {*range(60), 77})
    assert sorted(os.listdir(tmp_path)) == ["pages", "pages.log"]


def test_a_read_error_says_so_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    matcher = built(path)
    with patch.object(os, "preadv", side_effect=OSError(errno.EIO, "")):
        for work in (lambda: matcher.match(EVENTS), lambda: matcher.insert({70: text(70)})):
            with pytest.raises(cm.StoreError, match=f"{path} cannot be read: Input/output error"):
                work()
    as_said(matcher, set(range(60)))


def test_any_flipped_byte_is_detected_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    built(path, 12).close()
    wanted = pairs(cm.Matcher.open(path).match(EVENTS))
    whole = path.read_bytes()
    rng = Random(1)
    detected: list[str] = []
    told: list[str] = []
    places = rng.sample(range(2 * 4096, len(whole)), 40 if SMALL else 300)
    for place in [*range(40), *range(4092, 4136), *places]:
        data = bytearray(whole)
        data[place] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            check(str(path))
        except cm.StoreError as error:
            detected.append(str(error))
        else:
            assert place < 2 * 4096  # one of two headers, of which the other is whole
        try:
            assert pairs(cm.Matcher.open(path).match(EVENTS)) == wanted
        except cm.StoreError as error:
            told.append(str(error))
    assert len(detected) == len(places)
    assert all("damaged" in said for said in detected + told)


def test_two_processes_read_while_one_writes(tmp_path: Path) -> None:
    """What readers see is the state after some update, and they follow."""
    path = tmp_path / "pages"
    ids = list(range(60))
    matcher = built(path, cache=1 << 20)
    code = (
        "import sys; import colmatch as cm; import pyarrow as pa\n"
        f"matcher = cm.Matcher.open({str(path)!r})\n"
        "events = pa.table({'a': [1], 'b': [1], 'c': ['all']})\n"
        "print('ready', flush=True)\n"
        "last = 0\n"
        "while last < 1060:\n"
        "    found = sorted(matcher.match(events)['subscription'].to_pylist())\n"
        "    found = [id for id in found if id >= 1000]\n"
        "    assert found == list(range(1000, 1000 + len(found))) and len(found) >= last - 1000, (last, found)\n"
        "    last = max(last, 1000 + len(found))\n"
        "print('done', len(matcher), flush=True)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    readers = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    with patch.object(paged_file, "LOG_MOST", 150_000):
        for reader in readers:
            assert reader.stdout is not None and reader.stdout.readline() == "ready\n"
        for id in range(1000, 1060):
            matcher.insert({id: f"c = 'all' and a < {id}"})
            time.sleep(0.01)
            if id == 1030:
                matcher.compact()
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.read() == f"done {len(ids) + 60}\n"
        reader.stdout.close()
        assert reader.wait() == 0


def test_a_header_that_is_being_written_is_read_again(tmp_path: Path) -> None:
    path, log = tmp_path / "pages", tmp_path / "pages.log"
    writer, reader = built(path), cm.Matcher.open(path)
    writer.insert({70: text(70)})
    whole = log.read_bytes()
    log.write_bytes(whole[:20] + bytes(28) + whole[48:])
    with patch.object(paged_file.time, "sleep", side_effect=lambda seconds: log.write_bytes(whole)) as waited:
        as_said(reader, {*range(60), 70})
    assert waited.call_count == 1
    log.write_bytes(whole[:20] + bytes(28) + whole[48:])
    with pytest.raises(cm.StoreError, match="damaged in its first 48 bytes"):
        reader.match(EVENTS)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    one, two = built(path), cm.Matcher.open(path)
    one.insert({70: text(70)})
    for work in (lambda: two.insert({71: text(71)}), lambda: two.delete([1]), two.compact, lambda: built(path)):
        with pytest.raises(cm.StoreError, match="is being changed by another process"):
            work()
    as_said(two, {*range(60), 70})
    one.close()
    two.insert({71: text(71)})
    as_said(two, {*range(60), 70, 71})
    two.close()


@contextmanager
def nobody() -> Iterator[None]:
    """Goes on as a user who may write nothing of root's, if root runs the tests."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


def test_a_folder_that_cannot_be_written() -> None:
    folder = Path(tempfile.mkdtemp())  # in a folder that everybody may look into
    try:
        built(folder / "pages").close()
        folder.chmod(0o555)
        with nobody():
            matcher = cm.Matcher.open(folder / "pages")
            as_said(matcher, set(range(60)))
            with pytest.raises(cm.StoreError, match="cannot be written: Permission denied"):
                matcher.insert({70: text(70)})
            as_said(matcher, set(range(60)))
            with pytest.raises(cm.StoreError, match="cannot be written: Permission denied"):
                built(folder / "other")
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_what_comes_from_others_is_seen_at_once(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    one = built(path)
    two = cm.Matcher.open(path)
    for id in range(100, 104):
        one.insert({id: text(id)})
        assert (two.version, len(two)) == (one.version, len(one))
    one.save(path)
    one.delete([100])
    as_said(two, {*range(60), 101, 102, 103})


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "")])
def test_an_update_that_is_written_is_there_whatever_comes_behind(
    error: BaseException, many: bool, tmp_path: Path
) -> None:
    """Others may have seen it, so it cannot be taken back where it does not get to the disk."""
    path = tmp_path / "pages"
    index = cm.index("pbtree", path=path, cache_bytes=1 << 15, fsync=True)
    matcher = cm.Matcher.build({id: text(id) for id in range(60)}, SCHEMA, index=index)
    matcher.insert({60: text(60)})
    reader, ids = cm.Matcher.open(path), set(range(61))

    def fails(handle: int) -> None:
        as_said(reader, ids)  # which sees the update before the call has failed
        raise error

    for turn in range(3):
        new = {id: text(id) for id in range(100 * (turn + 1), 100 * (turn + 1) + (130 if many else 1))}
        ids |= set(new)
        expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else cm.StoreError
        with patch.object(os, "fsync", fails), pytest.raises(expected, match="may not outlast a power cut|^$"):
            matcher.upsert(new)
        for there in (matcher, reader, cm.Matcher.open(path)):
            as_said(there, ids)
        matcher.insert({1000 + turn: text(1000 + turn)})
        ids.add(1000 + turn)
        as_said(reader, ids)
    check(str(path))


def test_a_checkpoint_that_is_interrupted(tmp_path: Path) -> None:
    """Its header may count or not: what is written next is seen by others either way."""
    path = tmp_path / "pages"
    matcher, real = built(path), os.fsync
    for turn, at in enumerate((1, 2, 3)):
        matcher.insert({100 + turn: text(100)})
        calls = 0

        def interrupted(handle: int, at: int = at) -> None:
            nonlocal calls
            calls += 1
            real(handle)
            if calls == at:
                raise KeyboardInterrupt

        with patch.object(os, "fsync", interrupted), pytest.raises(KeyboardInterrupt):
            matcher.save(path)
        matcher.insert({200 + turn: text(200)})
        ids = {*range(60), *range(100, 101 + turn), *range(200, 201 + turn)}
        assert set(cm.Matcher.open(path).ids.to_pylist()) == set(matcher.ids.to_pylist()) == ids


def test_a_batch_of_some_ids_sees_one_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pages"
    there = dict.fromkeys(range(60), "a > 3")
    writer = cm.Matcher.build(
        there, SCHEMA, index=cm.index("pbtree", path=path, cache_bytes=1 << 15), tags=dict.fromkeys(there, "t")
    )
    reader, real = cm.Matcher.open(path), PagedWorkers._find
    expected = pairs(reader.match(EVENTS))
    for asked in ({"ids": list(there)}, {"tags": ["t"]}):
        left = [1, 2]

        def found(*given: Any, left: list[int] = left) -> Any:
            result = real(*given)
            if left:
                left.pop()
                writer.upsert(there, tags=dict.fromkeys(there, "t"))
            return result

        with monkeypatch.context() as context:
            context.setattr(PagedWorkers, "_find", found)
            assert pairs(reader.match(EVENTS, **asked)) == expected


def test_a_copy_to_no_folder(tmp_path: Path) -> None:
    with pytest.raises(cm.StoreError, match=r"none/copy cannot be written: No such file"):
        built(tmp_path / "pages").save(tmp_path / "none" / "copy")
