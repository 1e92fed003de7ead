"""The folder of compiled kernels, and checks that nobody else can change it.

A compiled kernel is code: anyone who can exchange the file runs code with its reader's rights. So a
folder is used only if this user and root alone can change its contents. ``distrust`` checks the
folder, and all folders and links on the way to it. Anyone who can write one of these can exchange
everything below it. In a sticky folder such as ``/tmp``, nobody can exchange another user's files.
There the owner of the next folder or link counts. A group may write only if it is the user's own,
without other members. Many systems give each user such a group, and let it write by default. On
Linux, an access list may name more users and groups. On Windows, the access lists of the user's
profile are relied on.
"""

import os
import shutil
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

FOLDERS_KEPT = 32  # of different versions and settings, next to each other
LINKS_MOST = 40  # links that are followed on the way to a folder, as in Linux

# An access list of Linux: a version, then entries of a tag, permissions, and a user or group.
_ACL = "system.posix_acl_access"
_ACL_USER, _ACL_GROUP_OBJ, _ACL_GROUP = _ACL_OTHERS = 0x02, 0x04, 0x08


def base() -> str | None:
    """Returns ``$COLMATCH_CACHE_DIR``, else the user's cache folder: absolute, with links kept.

    The result is None when there is no home folder.
    """
    folder = os.environ.get("COLMATCH_CACHE_DIR") or _user_cache_dir()
    return None if folder is None else os.path.join(os.getcwd(), folder)


def _user_cache_dir() -> str | None:
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        folder = os.path.join(
            os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"), "colmatch", "Cache"
        )
    elif sys.platform == "darwin":
        folder = os.path.join(home, "Library", "Caches", "colmatch")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        folder = os.path.join(base if os.path.isabs(base) else os.path.join(home, ".cache"), "colmatch")
    return folder if os.path.isabs(folder) else None  # no home: "~" stays as it is


def distrust(folder: Path) -> str | None:
    """Returns the reason why others could change the contents of a folder, None when they cannot.

    Folders that do not exist yet are passed over. Links are followed, as long as others cannot
    exchange them.

    folder : an absolute path
    """
    if os.name != "posix":
        return None
    for place, is_last in _way_to(folder):
        try:
            status = os.lstat(place)
        except OSError:  # missing, or not accessible: then it cannot be read either, which is reported elsewhere
            continue
        is_sticky = not is_last and status.st_mode & stat.S_ISVTX
        why = _explain_distrust(status, place, bool(is_sticky))
        if why is not None:
            return f"{place} {why}"
    return None


def _way_to(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yields each folder and link that leads to a folder, and whether it is the folder itself."""
    place, todo, links = Path(folder.anchor), list(folder.parts[:0:-1]), 0
    yield place, not todo
    while todo:
        name = todo.pop()
        if name == "..":
            place = place.parent
            continue
        entry = place / name
        is_link = os.path.islink(entry)  # Path.is_symlink raises where a folder may not be looked at
        yield entry, not todo and not is_link
        if links < LINKS_MOST and is_link:
            # Follow a link
            target = Path(os.readlink(entry))
            links += 1
            if target.is_absolute():
                place = Path(target.anchor)
            todo += [part for part in reversed(target.parts) if part != target.anchor]
        else:
            place = entry


def distrust_file(handle: int) -> str | None:
    """Returns the reason why others could change an open file, None when they cannot."""
    return None if os.name != "posix" else _explain_distrust(os.fstat(handle), handle, False)


def _explain_distrust(status: os.stat_result, place: Path | int, is_sticky: bool) -> str | None:
    user = os.geteuid()
    if status.st_uid not in (0, user):
        return f"belongs to user {status.st_uid}, not to user {user}"
    if is_sticky or stat.S_ISLNK(status.st_mode):  # the folder of a link decides who may exchange it
        return None
    return let_others_write(status, place, user)


def let_others_write(status: os.stat_result, place: Path | str | int, *users: int) -> str | None:
    """Returns the reason why others than these users and root may write a file or folder.

    The result is None where the permissions let nobody else write.
    """
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_IWOTH:
        return f"may be written by everybody (mode {mode:04o})"
    if not mode & stat.S_IWGRP:  # these bits also limit everyone that an access list names
        return None
    for tag, number in _writers(place):
        if tag == _ACL_USER and number not in (0, *users):
            return f"may be written by user {number} (access list)"
        group = status.st_gid if tag == _ACL_GROUP_OBJ else number
        if tag != _ACL_USER and not any(_is_own_group(user, group) for user in users):
            return f"may be written by group {group} ({'access list' if tag == _ACL_GROUP else f'mode {mode:04o}'})"
    return None


def _writers(place: Path | str | int) -> list[tuple[int, int]]:
    """Returns tag and number of each user and group that an access list lets write.

    Without a list, the result is the owning group, with 0 in place of its number.
    """
    try:
        entries = list(struct.iter_unpack("<HHI", os.getxattr(place, _ACL)[4:]))
    except (AttributeError, OSError, struct.error):  # AttributeError: not Linux
        return [(_ACL_GROUP_OBJ, 0)]
    return [(tag, number) for tag, allowed, number in entries if tag in _ACL_OTHERS and allowed & 2]


def _is_own_group(user: int, group: int) -> bool:
    import grp
    import pwd

    try:
        own, record = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return own.pw_gid == group and record.gr_name == own.pw_name and set(record.gr_mem) <= {own.pw_name}


def make(folder: Path) -> None:
    """Makes a folder, and those above it, that nobody else can write, whatever the umask.

    Drops the oldest folders next to it.
    """
    if folder.is_dir():
        return
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            place.mkdir(mode=0o755, exist_ok=True)
    # A process that still uses an old folder has read its kernels, or compiles them again.
    drop_old(folder.parent.glob("kernels-" + "[0-9a-f]" * 20), FOLDERS_KEPT)


def drop_old(places: Iterable[Path], kept: int) -> None:
    """Drops all files or folders but the ``kept`` ones that were changed last."""
    for old in sorted(places, key=_time)[:-kept]:
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)


def _time(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except OSError:  # another process drops it at this moment
        return 0.0


def write(path: Path, data: bytes) -> None:
    """Writes a file, whole or not at all. Nobody else may write it, whatever the umask."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
