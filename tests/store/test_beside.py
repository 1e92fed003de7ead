"""Journals and logs beside their files: their permissions, and foreign files in their places."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from journals import log_of, saved_in
from shell import run

import colmatch as cm
from colmatch.kernels import _folders
from colmatch.store import beside as besides

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes, links and locks of POSIX")
ROOT = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a file away")
OTHER = 54321


def mode(path: object) -> int:
    return stat.S_IMODE(os.stat(str(path)).st_mode)


def paged(path: Path) -> cm.Matcher:
    return cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, index=cm.index("pbtree", path=str(path)))


def pages_in(folder: Path) -> tuple[Path, Path]:
    path = folder / "pages"
    paged(path).close()
    Path(f"{path}.log").unlink(missing_ok=True)
    return path, Path(f"{path}.log")


def journalled_in(folder: Path) -> tuple[Path, Path]:
    path = saved_in(folder)
    return path, log_of(path)


def insert(path: Path) -> None:
    """Makes an update, in a file of pages or in a journal."""
    is_pages = path.name == "pages"
    with cm.Matcher.open(path, journal=not is_pages) as matcher:
        matcher.insert({9: "a = 9"})


MADE = pytest.mark.parametrize("made", [pages_in, journalled_in])
Made = Callable[[Path], tuple[Path, Path]]


@MADE
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o604])
def test_what_stands_beside_is_as_secret_as_the_file(tmp_path: Path, made: Made, kept: int) -> None:
    path, beside = made(tmp_path)
    path.chmod(kept)
    insert(path)
    assert oct(mode(beside)) == oct(kept)


@MADE
def test_permissions_that_have_changed_are_followed(tmp_path: Path, made: Made) -> None:
    path, beside = made(tmp_path)
    insert(path)
    path.chmod(0o600)
    with cm.Matcher.open(path, journal=path.name != "pages") as matcher:
        matcher.insert({10: "a = 10"})
        assert oct(mode(beside)) == oct(0o600)


@MADE
def test_nobody_else_can_read_it_before_it_has_its_permissions(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, beside = made(tmp_path)
    path.chmod(0o600)
    beside.unlink(missing_ok=True)
    seen, real = [], besides.make_like

    def look(handle: int, target: str, owner: os.stat_result) -> None:
        seen.append(mode(beside))
        real(handle, target, owner)

    monkeypatch.setattr(besides, "make_like", look)
    umask = os.umask(0)
    try:
        insert(path)
    finally:
        os.umask(umask)
    assert set(seen) == {0o600}


@MADE
@pytest.mark.parametrize("kept", [0o600, 0o640])
def test_the_copy_of_what_is_damaged_is_as_secret_as_the_file(tmp_path: Path, made: Made, kept: int) -> None:
    path, beside = made(tmp_path)
    with cm.Matcher.open(path, journal=path.name != "pages") as matcher:
        for id in (8, 9):
            matcher.insert({id: f"a = {id}"})
        data, log = path.read_bytes(), beside.read_bytes()
    path.write_bytes(data)
    path.chmod(kept)
    beside.write_bytes(bytes(100) + log[100:])
    run("recover", path)
    assert oct(mode(f"{beside}.damaged-1")) == oct(kept)


@ROOT
@MADE
def test_owner_and_group_are_those_of_the_file(tmp_path: Path, made: Made) -> None:
    path, beside = made(tmp_path)
    os.chown(path, OTHER, OTHER + 1)
    path.chmod(0o660)
    insert(path)
    assert (beside.stat().st_uid, beside.stat().st_gid, mode(beside)) == (OTHER, OTHER + 1, 0o660)


def test_pages_that_take_the_place_of_others_are_as_secret(tmp_path: Path) -> None:
    """Built anew, made compact, saved and copied: file and log keep the permissions."""
    path, log, copy = tmp_path / "pages", tmp_path / "pages.log", tmp_path / "copy"
    paged(path).close()
    copy.write_bytes(path.read_bytes())
    copy.chmod(0o640)
    path.chmod(0o600)
    said = []
    for change in ("build", "compact", "save", "copy"):
        with paged(path) if change == "build" else cm.Matcher.open(path) as matcher:
            if change == "compact":
                matcher.compact()
            elif change != "build":
                matcher.save(path if change == "save" else copy)
            matcher.upsert({5: f"a = {len(change)}"})
            said.append((change, oct(mode(path)), oct(mode(log))))
    assert said == [(change, "0o600", "0o600") for change, *_ in said]
    with cm.Matcher.open(copy) as matcher:
        matcher.delete([1])
        assert (mode(copy), mode(f"{copy}.log")) == (0o640, 0o640)


@MADE
@pytest.mark.parametrize("there", [True, False])
def test_a_planted_link_is_not_followed(tmp_path: Path, made: Made, there: bool) -> None:
    path, beside = made(tmp_path)
    victim = tmp_path / "victim"
    if there:
        victim.write_bytes(b"")
    beside.unlink(missing_ok=True)
    beside.symlink_to(victim)
    with pytest.raises(cm.StoreError, match=f"{beside} is a link, which is not followed"):
        insert(path)
    if path.name != "pages":
        with pytest.raises(cm.StoreError, match="is a link, which is not followed"):
            cm.Matcher.open(path).save(path)
    assert beside.is_symlink() and (victim.read_bytes() == b"" if there else not victim.exists())


@MADE
def test_a_link_that_takes_its_place_is_not_followed(tmp_path: Path, made: Made) -> None:
    """Not even where it leads to the very file that stood there."""
    path, beside = made(tmp_path)
    with cm.Matcher.open(path, journal=path.name != "pages") as matcher:
        matcher.insert({9: "a = 9"})
        os.replace(beside, tmp_path / "elsewhere")
        beside.symlink_to(tmp_path / "elsewhere")
        before = (tmp_path / "elsewhere").read_bytes()
        with pytest.raises(cm.StoreError, match="was removed or replaced|is a link, which is not followed"):
            matcher.insert({10: "a = 10"})
        assert (tmp_path / "elsewhere").read_bytes() == before and len(matcher) == (2 if path.name == "pages" else 4)


def test_a_link_to_a_log_is_not_read(tmp_path: Path) -> None:
    path, log = pages_in(tmp_path)
    insert(path)
    os.replace(log, tmp_path / "elsewhere") if log.exists() else (tmp_path / "elsewhere").write_bytes(b"")
    log.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(cm.StoreError, match="is a link, which is not followed"):
        cm.Matcher.open(path)


@MADE
def test_a_second_name_is_not_written(tmp_path: Path, made: Made) -> None:
    path, beside = made(tmp_path)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    victim.chmod(0o400)
    beside.unlink(missing_ok=True)
    os.link(victim, beside)
    with pytest.raises(cm.StoreError, match="has another name as well"):
        insert(path)
    assert (victim.read_bytes(), mode(victim)) == (b"", 0o400)


@ROOT
@MADE
def test_a_file_of_another_user_is_not_taken(tmp_path: Path, made: Made) -> None:
    path, beside = made(tmp_path)
    beside.unlink(missing_ok=True)
    beside.write_bytes(b"")
    os.chown(beside, OTHER, OTHER)
    with pytest.raises(cm.StoreError, match=f"{beside} belongs to user {OTHER}"):
        insert(path)
    path.chmod(0o664)  # but the group is of nobody else
    with pytest.raises(cm.StoreError, match=f"{beside} belongs to user {OTHER}"):
        insert(path)
    os.chown(path, -1, OTHER)  # others may write the file: one of them may have made it
    insert(path)


@ROOT
@MADE
def test_the_group_of_the_owner_alone_is_no_other(tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file is another user's, its group may be that user's own, or this one's."""
    own = [(OTHER + 1, OTHER + 2), (os.geteuid(), OTHER + 3)]
    monkeypatch.setattr(_folders, "_is_own_group", lambda user, group: (user, group) in own)
    for group, is_shared in ((OTHER + 2, False), (OTHER + 3, False), (OTHER + 4, True)):
        folder = tmp_path / str(group)
        folder.mkdir()
        path, beside = made(folder)
        os.chown(path, OTHER + 1, group)
        path.chmod(0o660)
        beside.unlink(missing_ok=True)
        beside.write_bytes(b"")
        os.chown(beside, OTHER, OTHER)
        if is_shared:
            insert(path)
            continue
        with pytest.raises(cm.StoreError, match=f"{beside} belongs to user {OTHER}"):
            insert(path)


@ROOT
@MADE
@pytest.mark.parametrize(("who", "is_shared"), [(OTHER + 1, True), (0, False)])
def test_an_access_list_lets_others_write(tmp_path: Path, made: Made, who: int, is_shared: bool) -> None:
    path, beside = made(tmp_path)
    entries = [(1, 6, -1), (2, 6, who), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
    except (OSError, AttributeError):
        pytest.skip("no access lists in this file system")
    beside.unlink(missing_ok=True)
    beside.write_bytes(b"")
    os.chown(beside, OTHER, OTHER)
    if is_shared:
        insert(path)
        return
    with pytest.raises(cm.StoreError, match=f"{beside} belongs to user {OTHER}"):
        insert(path)


@MADE
def test_a_planted_pipe_makes_nobody_wait(tmp_path: Path, made: Made) -> None:
    path, beside = made(tmp_path)
    beside.unlink(missing_ok=True)
    os.mkfifo(beside)
    with pytest.raises(cm.StoreError, match="is a pipe or a device"):
        insert(path)


def test_something_short_that_is_no_log_is_left_alone(tmp_path: Path) -> None:
    path, log = pages_in(tmp_path)
    log.write_text("started at nine\n")
    with pytest.raises(cm.StoreError, match="is not a log of colmatch: move it away"):
        insert(path)
    assert log.read_text() == "started at nine\n"
