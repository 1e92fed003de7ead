"""Files of pages whose names others take, remove, or have by a link."""

from __future__ import annotations

import os
from pathlib import Path

import inside
import pyarrow as pa
import pytest
from contract import pairs
from some_pages import EVENTS, SCHEMA, as_said, built, reopened
from writer import text

import colmatch as cm
from colmatch.paged import replace_lock
from colmatch.paged.log import open_log
from colmatch.store import log as logs
from colmatch.store.replacing import is_there

SOME = set(range(60))


def test_a_file_that_others_change_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    writer = built(path)
    writer.insert({100: text(100)})
    others = built(tmp_path / "other", 5), cm.Matcher.build({1: "a > 3"}, SCHEMA)
    for other in others:
        with pytest.raises(cm.StoreError, match="is being changed by another"):
            other.save(path)
    with pytest.raises(cm.StoreError, match="is being changed by another"):
        built(path, 7)
    as_said(reopened(writer, path), SOME | {100})


@pytest.mark.parametrize("pages", [True, False])
def test_a_copy_takes_nothing_of_what_it_replaces(tmp_path: Path, pages: bool) -> None:
    """The log of what was there is not that of the copy, whatever their generations were."""
    backup = tmp_path / "backup"
    matcher = built(tmp_path / "pages", 5) if pages else cm.Matcher.build({id: text(id) for id in range(5)}, SCHEMA)
    matcher.save(backup)
    for id in range(100, 103):
        there = cm.Matcher.open(backup)
        if pages:
            there.insert({id: text(id)})
            reopened(there, backup)
        else:
            built(backup, 7).insert({id: text(id)})
        matcher.save(backup)
        as_said(cm.Matcher.open(backup), set(range(5)))
        assert not os.path.exists(f"{backup}.log")


def test_a_copy_that_fails_leaves_file_and_log(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, folder = tmp_path / "backup", tmp_path_factory.mktemp("other")
    there = built(backup)
    there.insert({100: text(100)})
    reopened(there, backup)
    other = built(folder / "pages", 5)
    with monkeypatch.context() as context:
        context.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises((cm.StoreError, OSError), match="No space left"):
            other.save(backup)
        with pytest.raises((cm.StoreError, OSError), match="No space left"):
            built(tmp_path / "another")
    assert sorted(os.listdir(tmp_path)) == ["backup", "backup.log"]
    as_said(cm.Matcher.open(backup), SOME | {100})


def test_a_journal_is_not_lost_to_pages(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    cm.Matcher.build({1: "a > 3"}, SCHEMA).save(path)
    with cm.Matcher.open(path, journal=True) as matcher:
        matcher.insert({2: "a > 4"})
    with pytest.raises(cm.StoreError, match="has updates, which would be lost"):
        built(path)
    with cm.Matcher.open(path, journal=True) as matcher:
        assert matcher.ids.to_pylist() == [1, 2]


def test_a_log_of_something_else_is_not_removed(tmp_path: Path) -> None:
    other = tmp_path / "service.log"
    other.write_text("2026-01-01 started\n")
    with pytest.raises(cm.StoreError, match=r"service\.log is no log of a file of pages"):
        built(tmp_path / "service")
    cm.Matcher.build({1: "a > 3"}, SCHEMA).save(tmp_path / "service")
    assert other.read_text() == "2026-01-01 started\n"


def test_a_link_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "pages")
    one = built(tmp_path / "link")
    one.insert({100: text(100)})
    with pytest.raises(cm.StoreError, match="is being changed by another"):
        cm.Matcher.open(tmp_path / "folder" / "pages").insert({101: text(101)})
    assert os.path.islink(tmp_path / "link") and sorted(os.listdir(tmp_path)) == ["folder", "link"]
    one.save(tmp_path / "folder" / "pages")
    as_said(cm.Matcher.open(tmp_path / "folder" / "pages"), SOME | {100})


@pytest.mark.parametrize("by", ["removed", "replaced"])
def test_a_file_that_is_gone_takes_no_updates(tmp_path: Path, by: str) -> None:
    path = tmp_path / "pages"
    matcher = built(path)
    matcher.insert({100: text(100)})
    if by == "removed":
        path.unlink()
    else:
        built(tmp_path / "other", 5).save(tmp_path / "third")
        os.replace(tmp_path / "third", path)
    for _ in range(2):
        with pytest.raises(cm.StoreError, match="was removed, or replaced, since it was opened: nothing was changed"):
            matcher.insert({101: text(101)})
        as_said(matcher, SOME | {100})
    matcher.save(tmp_path / "kept")
    as_said(cm.Matcher.open(tmp_path / "kept"), SOME | {100})


def test_a_reader_follows_another_log(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    one, two = built(path), cm.Matcher.open(path)
    one.insert({100: text(100)})
    as_said(two, SOME | {100})
    os.unlink(f"{path}.log")
    one.insert({101: text(101)})
    as_said(two, SOME | {100, 101})
    one.insert({102: text(102)})
    as_said(two, SOME | {100, 101, 102})


def test_a_log_that_is_removed_while_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who had the lock removed the log: the lock of a file without a name keeps nobody out."""
    path, real = str(tmp_path / "pages"), logs.lock
    removed: list[str] = []

    def lock(handle: int) -> bool | None:
        if not removed:
            removed.append(path)
            os.unlink(f"{path}.log")
        return real(handle)

    monkeypatch.setattr(logs, "lock", lock)
    log = open_log(path)
    assert removed and is_there(f"{path}.log", log.handle)
    log.close()


def test_what_is_matched_while_a_file_is_exchanged(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    reader = built(path)
    for count in (5, 60, 7):
        built(path, count)
        assert pairs(reader.match(EVENTS)) == pairs(cm.Matcher.open(path).match(EVENTS))
        assert pa.array(range(count)).equals(reader.ids.sort())
    assert not inside.page_file(reader).is_writer


def test_a_log_that_was_left_behind_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a process was killed between putting a file in its place and removing the log."""
    path = tmp_path / "pages"
    other, there = built(tmp_path / "other", 5), built(path)
    there.insert({100: text(100)})
    reopened(there, path)
    with monkeypatch.context() as context:
        context.setattr(replace_lock, "_remove", lambda path: None)
        other.save(path)
    assert os.path.getsize(f"{path}.log") > 0
    as_said(cm.Matcher.open(path), set(range(5)))


def test_a_log_is_not_the_name_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    matcher = built(path)
    matcher.insert({100: text(100)})
    for other in (matcher, built(tmp_path / "other", 5), cm.Matcher.build({1: "a > 3"}, SCHEMA)):
        with pytest.raises(cm.StoreError, match=r"pages\.log is the log of .*: give another name"):
            other.save(f"{path}.log")
    as_said(reopened(matcher, path), SOME | {100})


def test_a_log_of_a_file_that_was_removed_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it where the program that made the new file was killed before it removed the log."""
    path = tmp_path / "pages"
    there = built(path)
    there.insert({100: text(100)})
    reopened(there, path).close()
    path.unlink()
    with monkeypatch.context() as context:
        context.setattr(replace_lock, "_remove", lambda path: None)
        built(path, 5).close()
    as_said(cm.Matcher.open(path), set(range(5)))
