"""The folder of compiled kernels: where it is, what is done when it cannot be used, and what of
it is kept.
"""

import os
import shutil
import struct
import sys
import textwrap
from pathlib import Path

import pytest
from kernel_copy import MAIN, Copy

from colmatch.kernels import _disk, _folders


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def test_read_only_folder_is_read_in_silence(copy):
    copy.run("get")
    # Root may write everywhere, so the calls that write are made to fail. A warm run makes none of
    # them.
    guard = """
        import os
        def refuse(*_, **__):
            raise OSError(30, "Read-only file system")
        os.replace = os.mkdir = os.open = refuse
    """
    program = textwrap.dedent(guard) + textwrap.dedent(MAIN)
    said = copy.run("get", program=program)
    assert (said["compiled"], said["loaded"], said["logs"]) == (0, 2, [])
    said = copy.run("float", program=program)
    assert (said["float"], said["compiled"]) == (4.5, 1)
    [(level, message)] = said["logs"]
    assert level == "WARNING" and "Read-only file system" in message


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc/none"])
def test_without_a_folder_it_compiles_and_says_so_once(copy, place, tmp_path):
    (tmp_path / "file").write_text("x")
    folder = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "a" / "b"}.get(place, place)
    said = copy.run("get", COLMATCH_CACHE_DIR=str(folder))
    assert (said["total"], said["one"], said["compiled"]) == (15, 1, 2)
    [(level, message)] = said["logs"]
    assert level == "WARNING"
    assert "set COLMATCH_CACHE_DIR to a folder" in message
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.skipif(sys.platform != "linux", reason="the rule for Linux")
def test_where_the_folder_is(monkeypatch, tmp_path):
    name = _disk.cache_dir().name
    monkeypatch.delenv("COLMATCH_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for xdg, base in (
        ("", ".cache/colmatch"),
        ("relative", ".cache/colmatch"),
        (str(tmp_path / "xdg"), "xdg/colmatch"),
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
        assert _disk.cache_dir() == tmp_path / base / name
    monkeypatch.setenv("COLMATCH_CACHE_DIR", str(tmp_path / "own"))
    assert _disk.cache_dir() == tmp_path / "own" / name


def test_without_a_home_nothing_is_kept(copy, tmp_path):
    said = copy.finish(copy.start(cwd=tmp_path, HOME="nowhere", COLMATCH_CACHE_DIR=None, XDG_CACHE_HOME=None))
    [(level, message)] = said["logs"]
    assert (said["total"], said["folder"], level) == (15, "None", "WARNING")
    assert "no home folder" in message and "COLMATCH_CACHE_DIR" in message
    assert [entry.name for entry in tmp_path.iterdir()] == ["src"]


def test_damaged_files_are_made_anew(copy):
    copy.run()
    [name] = copy.files()
    whole = (copy.cache / name).read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (whole[:1000], flipped, b""):
        (copy.cache / name).write_bytes(damaged)
        said = copy.run()
        assert (said["total"], said["compiled"]) == (15, 1)
        assert "damaged" in said["logs"][0][1]
    assert copy.run()["loaded"] == 1


POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and owners of POSIX")
ROOT = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a folder away")
OTHER = 54321  # a user and a group that are nobody's


def chain(folder, mode, owner=None):
    """``folder``/top/base/kernels, of which base has the mode and the owner."""
    base = folder / "top" / "base"
    (base / "kernels").mkdir(parents=True)
    for place in (folder / "top", base, base / "kernels"):
        place.chmod(0o755)
    base.chmod(mode)
    if owner:
        os.chown(base, *owner)
    return base


@POSIX
@pytest.mark.parametrize(
    ("mode", "why"), [(0o755, None), (0o700, None), (0o1777, None), (0o777, "everybody"), (0o757, "everybody")]
)
def test_folders_that_others_may_write(tmp_path, mode, why):
    """Above the folder a sticky one will do, since nobody can exchange in it what another owns."""
    base = chain(tmp_path, mode)
    (said,) = {_folders.distrust(base / "kernels"), _folders.distrust(base / "kernels" / "not" / "yet")}
    assert said == (why and f"{base} may be written by {why} (mode {mode:04o})")
    assert _folders.distrust(base) == (f"{base} may be written by everybody (mode {mode:04o})" if mode & 2 else None)


@ROOT
@pytest.mark.parametrize(
    ("mode", "owner", "why"),
    [
        (0o755, (OTHER, -1), f"belongs to user {OTHER}"),
        (0o1777, (OTHER, -1), f"belongs to user {OTHER}"),  # who owns a sticky folder may exchange all in it
        (0o775, (-1, OTHER), f"may be written by group {OTHER}"),
        (0o1775, (-1, OTHER), None),
        (0o755, (-1, OTHER), None),
    ],
)
def test_folders_of_others(tmp_path, mode, owner, why):
    said = _folders.distrust(chain(tmp_path, mode, owner) / "kernels")
    assert said is None if why is None else why in said


@ROOT
def test_what_another_user_has_put_into_a_sticky_folder(tmp_path):
    base = chain(tmp_path, 0o1777)
    os.chown(base / "kernels", OTHER, OTHER)
    assert f"belongs to user {OTHER}" in _folders.distrust(base / "kernels")


@POSIX
def test_a_group_with_nobody_else_in_it(tmp_path, monkeypatch):
    import grp
    import pwd

    base = chain(tmp_path, 0o775)
    user, status = os.geteuid(), base.stat()
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(("ann", "x", user, status.st_gid, "", "", "")))
    for name, members, good in (
        ("ann", [], True),
        ("ann", ["ann"], True),
        ("ann", ["bob"], False),
        ("staff", [], False),
    ):
        monkeypatch.setattr(
            grp, "getgrgid", lambda gid, name=name, members=members: grp.struct_group((name, "x", gid, members))
        )
        assert (_folders.distrust(base) is None) == good


def access_list(place, *named, mask=7):
    """Gives a folder an access list with more entries (tag, permissions, number)."""
    entries = [(1, 7, -1), *named, (4, 5, -1), (16, mask, -1), (32, 5, -1)]
    data = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in sorted(entries))
    try:
        os.setxattr(place, "system.posix_acl_access", data)
    except (OSError, AttributeError):
        pytest.skip("no access lists in this file system")


@POSIX
@pytest.mark.parametrize(
    ("named", "mask", "why"),
    [
        ((2, 7, OTHER), 7, f"may be written by user {OTHER} (access list)"),
        ((8, 7, OTHER), 7, f"may be written by group {OTHER} (access list)"),
        ((2, 5, OTHER), 7, None),  # may read
        ((2, 7, OTHER), 5, None),  # the mask takes it away
    ],
)
def test_an_access_list_names_others(tmp_path, monkeypatch, named, mask, why):
    """The owning group is the user's own, so without the list the folder would be used."""
    base = chain(tmp_path, 0o755)
    own = base.stat().st_gid
    monkeypatch.setattr(_folders, "_is_own_group", lambda user, group: group == own)
    access_list(base, named, mask=mask)
    said = _folders.distrust(base / "kernels")
    assert said == (why and f"{base} {why}")
    file = base / "kernel"
    file.touch()
    access_list(file, named, mask=mask)
    with open(file) as opened:
        assert _folders.distrust_file(opened.fileno()) == why


@POSIX
def test_a_link_below_a_folder_that_others_may_write(tmp_path):
    """Others could exchange the link, however safe its target is."""
    base, shared = chain(tmp_path, 0o755), tmp_path / "shared"
    shared.mkdir()
    (shared / "link").symlink_to(base)
    shared.chmod(0o777)
    said = f"{shared} may be written by everybody (mode 0777)"
    assert _folders.distrust(shared / "link" / "kernels") == said
    (tmp_path / "second").symlink_to("shared/link")
    assert _folders.distrust(tmp_path / "second" / "kernels") == said
    (base / "up").symlink_to("../../shared/link/kernels")
    assert _folders.distrust(base / "up") == said
    shared.chmod(0o1777)  # nobody can exchange this user's link there
    assert _folders.distrust(shared / "link" / "kernels") is None
    if os.geteuid() == 0:
        os.chown(shared / "link", OTHER, OTHER, follow_symlinks=False)
        assert f"{shared / 'link'} belongs to user {OTHER}" in _folders.distrust(shared / "link" / "kernels")
    (tmp_path / "round").symlink_to("round")
    assert _folders.distrust(tmp_path / "round") is None  # and cannot be opened


@POSIX
def test_the_cache_folder_keeps_its_links(tmp_path, monkeypatch):
    """Their targets are checked together with the folders in which they stand."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("COLMATCH_CACHE_DIR", str(tmp_path / "link" / "x"))
    assert _folders.base() == str(tmp_path / "link" / "x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLMATCH_CACHE_DIR", "link")
    assert _folders.base() == str(tmp_path / "link")


@POSIX
@pytest.mark.parametrize("place", ["the folder", "above it", "behind a link", "of the sources"])
def test_code_that_others_may_exchange_is_not_run(copy, place):
    """Neither read nor written, and a warning says why and what to do."""
    folder = Path(copy.run("get")["folder"])
    (copy.cache.parent / "link").symlink_to(copy.cache)
    open_to_all = {"above it": copy.cache.parent, "of the sources": folder}.get(place, copy.cache)
    open_to_all.chmod(0o777)
    before = copy.files()
    if place == "behind a link":
        copy.cache = copy.cache.parent / "link"
    said = copy.run("get", "float")
    assert (said["total"], said["one"], said["compiled"], said["loaded"]) == (15, 1, 3, 0)
    [(level, message)] = said["logs"]
    assert level == "WARNING"
    assert f"{open_to_all} may be written by everybody (mode 0777)" in message and "set COLMATCH_CACHE_DIR" in message
    assert copy.files() == before
    open_to_all.chmod(0o755)
    assert copy.run("get")["loaded"] == 2


@POSIX
def test_what_is_made_is_for_this_user_alone_to_write(copy, tmp_path):
    """Whatever the umask. A file that others could write is made anew."""
    program = "import os; os.umask(0)\n" + textwrap.dedent(MAIN)
    copy.cache = copy.cache / "a" / "b"
    assert copy.run(program=program, cwd=tmp_path)["logs"] == []
    [name] = copy.files()
    for place in ((copy.cache / name), *(copy.cache / name).parents[:4]):
        assert not place.stat().st_mode & 0o022, place
    assert copy.run(program=program, cwd=tmp_path)["loaded"] == 1
    (copy.cache / name).chmod(0o666)
    said = copy.run(cwd=tmp_path)
    [(level, message)] = said["logs"]
    assert (said["compiled"], level) == (1, "WARNING") and "may be written by everybody (mode 0666)" in message
    assert copy.run(cwd=tmp_path)["loaded"] == 1


def test_old_folders_are_dropped(copy):
    copy.cache.mkdir()
    (copy.cache / "mine").mkdir()
    for n in range(_folders.FOLDERS_KEPT + 5):
        folder = copy.cache / f"kernels-{n:020x}"
        folder.mkdir()
        os.utime(folder, (n, n))
    said = copy.run()
    left = {folder.name for folder in copy.cache.iterdir()}
    assert len(left) == _folders.FOLDERS_KEPT + 1
    assert {"mine", Path(said["folder"]).name, f"kernels-{_folders.FOLDERS_KEPT + 4:020x}"} <= left
    assert "kernels-" + "0" * 20 not in left


def test_a_copied_cache_is_used(copy, tmp_path):
    folder = Path(copy.run("get")["folder"])
    copy.cache = shutil.copytree(copy.cache, tmp_path / "other")
    said = copy.run("get")
    assert (said["compiled"], said["loaded"]) == (0, 2)
    assert Path(said["folder"]) == tmp_path / "other" / folder.name
