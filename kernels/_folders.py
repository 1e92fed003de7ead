"""Where compiled kernels are kept, and whether what lies there may be run.

A compiled kernel is code: whoever can exchange the file runs what they like as its reader. So a
folder is used only if nobody but this user and root can change what is in it. ``distrust`` looks at
the folder and at every one above it, since who may write a folder may exchange all that is below.
In a sticky folder such as ``/tmp`` nobody can exchange what another owns; there it counts who owns
the next one. A group may write only if it is the user's own, with nobody else in it: many systems
give each user one and let it write by default. On Windows all this is left to the profile's access
lists.
"""

import os
import shutil
import stat
import sys
from pathlib import Path

FOLDERS_KEPT = 32  # of different sources, versions and settings, beside each other; an edit of a kernel makes a new one


def base() -> str | None:
    """``$COLMATCH_CACHE_DIR``, else the user's cache folder, with no links left in it.

    None when there is no home folder.
    """
    folder = os.environ.get("COLMATCH_CACHE_DIR") or _user_cache_dir()
    return None if folder is None else os.path.realpath(folder)


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
    """Why others could change what is in a folder, in words; None when they cannot.

    What does not exist yet is passed over.

    ``folder`` is absolute and has no links in it.
    """
    if os.name != "posix":
        return None
    for place in (folder, *folder.parents):
        try:
            status = os.stat(place)
        except OSError:  # not there, or not to be looked at: then it cannot be read either, which is said elsewhere
            continue
        sticky = place != folder and status.st_mode & stat.S_ISVTX
        why = _open_to_others(status, bool(sticky))
        if why is not None:
            return f"{place} {why}"
    return None


def distrust_file(status: os.stat_result) -> str | None:
    """Why others could change an open file, in words; None when they cannot."""
    return None if os.name != "posix" else _open_to_others(status, False)


def _open_to_others(status: os.stat_result, sticky: bool) -> str | None:
    user = os.geteuid()
    if status.st_uid not in (0, user):
        return f"belongs to user {status.st_uid}, not to user {user}"
    if sticky:
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"may be written by everybody (mode {stat.S_IMODE(status.st_mode):04o})"
    if status.st_mode & stat.S_IWGRP and not _own_group(user, status.st_gid):
        return f"may be written by group {status.st_gid} (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _own_group(user: int, group: int) -> bool:
    import grp
    import pwd

    try:
        own, found = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return own.pw_gid == group and found.gr_name == own.pw_name and set(found.gr_mem) <= {own.pw_name}


def make(folder: Path) -> None:
    """Makes a folder that nobody else can write, and those above it, whatever the umask.

    The oldest folders beside it are dropped.
    """
    if folder.is_dir():
        return
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            place.mkdir(mode=0o755, exist_ok=True)
    # Whoever still uses an old one has read it, or compiles it again.
    for old in sorted(folder.parent.glob("kernels-" + "[0-9a-f]" * 20), key=_time)[:-FOLDERS_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def _time(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another process drops it at this moment
        return 0.0


def write(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all, which nobody else may write whatever the umask."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
