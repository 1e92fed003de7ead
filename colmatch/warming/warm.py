"""Compiles kernels before anybody waits for them."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from colmatch.arguments import checked_flag, file_name, members
from colmatch.errors import OptionError, StoreError, shown
from colmatch.indexing.plan import AutoSettings, asked_for
from colmatch.indexing.registry import KINDS, IndexName
from colmatch.kernels import _code, _compiling, _disk, _folders, _forks, _jit
from colmatch.progress import bar
from colmatch.warming.calls import Step, steps
from colmatch.warming.lock import alone

LOOK_EVERY = 1.0  # seconds between looks at how many kernels are ready
TICK = 0.05  # seconds after which it is seen that all steps have ended

_VARIABLE = "COLMATCH_CACHE_DIR"

_one = _forks.lock()  # the mode and the folder are the whole process's
_forgotten: list[Any] = []  # numba's results, which own machine code


class Warmed(NamedTuple):
    """What ``warm`` has done.

    Attributes
    ----------
    kernels : kernels whose machine code is there now, also those that were there before
    compiled : how many of them were compiled and kept
    loaded : how many were not, since their machine code was there: in this process, on the disk, or
        in the package
    seconds : how long it took
    folder : where the machine code is
    """

    kernels: int
    compiled: int
    loaded: int
    seconds: float
    folder: Path


def warm(
    index: Any = None, *, to: str | os.PathLike[str] | None = None, native: bool = False, progress: bool = False
) -> Warmed:
    """Compiles all kernels that matchers may need, and keeps their machine code on the disk.

    Code that is on the disk, or came with the package, is only loaded, so a second call takes
    seconds. If several processes warm one folder, one compiles and the others wait.

    Parameters
    ----------
    index : one index kind or several, as names or as settings from ``colmatch.index``, whose values
        are ignored. The call compiles the code of these kinds with any settings, and the code that
        every matcher needs: all types of columns, patterns, computed values, special functions,
        languages, updates (which index new subscriptions by ``scan``), ranges, best matches,
        reasons and files. The default, and ``"auto"``, which may choose any kind, compile the code
        of all kinds
    to : folder for the machine code, as if ``COLMATCH_CACHE_DIR`` were set to it during the call.
        It is made if needed, and gets a copy of the code in the usual folder. The default is the
        usual folder of this process
    native : compile the code of the package, made for many processors, anew for this one. Later
        processes prefer such code
    progress : show a bar on standard error, or a line each ten seconds where it is no terminal

    Raises
    ------
    OptionError : a kind is unknown; or ``to``, or the usual folder, cannot be used: it is absent
        and cannot be made, or others could write to it. Or ``NUMBA_DISABLE_JIT`` is set, so nothing
        is compiled. Or machine code of this version of numba cannot be kept
    StoreError : the compiled code could not be written to the folder
    """
    kinds, progress = _kinds(index), checked_flag("progress={}", progress)
    mode = "native" if checked_flag("native={}", native) else _jit.WARM
    if not _jit.kernels():
        raise OptionError("NUMBA_DISABLE_JIT is set, so that no kernel is compiled: unset it to warm a folder")
    if not _code.IS_KNOWN:
        raise OptionError(f"nothing can be kept in a folder: {_code.WHY}")
    began, usual = time.monotonic(), _disk.cache_dir()
    with _one, _kept_in(to), _jit.in_mode(mode):
        folder = _made(to)
        with alone(folder), tempfile.TemporaryDirectory(prefix="colmatch-warm-") as scratch:
            _copy(usual, folder)
            _forget(folder)
            before = _compiled()
            for step in _shown(steps(kinds), progress):
                step.run(Path(scratch))
            new = _compiled() - before
        kept, made = _names(folder), {_name_of(*one) for one in new}
    if lost := sorted(made - kept):
        raise StoreError(
            f"{len(lost)} of {len(made)} kernels that were compiled could not be kept in {folder}, the first is "
            f"{lost[0]}: see that it can be written and that its disk has room, or name another folder"
        )
    # A kernel with two signatures counts once, and so does one that is loaded, then made anew.
    ready, compiled = len(_ready()), len({kernel for kernel, _ in new})
    return Warmed(ready, compiled, ready - compiled, time.monotonic() - began, folder)


def _kinds(index: Any) -> list[IndexName]:
    """Returns the names of the kinds that are asked for, each once."""
    several = members(index)
    if several is None:
        several = [] if index is None else [index]
    elif not several:
        raise OptionError(f"index={shown(index)}: a kind of index is needed, or several of them")
    names = [asked_for(one).kind for one in several]
    found = KINDS if not names or AutoSettings.kind in names else dict.fromkeys(names)
    return cast(list[IndexName], list(found))


@contextmanager
def _kept_in(to: str | os.PathLike[str] | None) -> Iterator[None]:
    """Keeps machine code below another folder meanwhile."""
    if to is None:
        yield
        return
    name, before = file_name(to), os.environ.get(_VARIABLE)
    if not name or "\0" in name:
        raise OptionError(f"to={shown(to)}: the name of a folder is needed")
    os.environ[_VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before


def _made(to: object) -> Path:
    """Makes the folder of this process's compiled kernels.

    Raises
    ------
    OptionError : there can be none, or it cannot be used
    """
    folder = _disk.cache_dir()
    if folder is None and _folders.base() is None:
        raise OptionError("this user has no home folder: say by to=, or by COLMATCH_CACHE_DIR, where kernels are kept")
    if folder is None:
        raise OptionError(
            "the sources of the kernels cannot be read, or have changed since this process imported them, so no kernel "
            "is kept: install colmatch in a folder, not in a zip file, and start a new process"
        )
    where = "the cache folder" if to is None else f"to={shown(to)}:"
    why = _folders.distrust(folder)
    if why is None:
        try:
            _folders.make(folder)
        except OSError as error:
            raise OptionError(
                f"{where} {folder} cannot be made: {error.strerror}; name a folder that you can write"
            ) from error
        why = _folders.distrust(folder)  # others may have been quicker to make it
    if why is not None:
        raise OptionError(
            f"{where} {folder} is not used: {why}, so that others could exchange the code in it; name a folder of your "
            "own that nobody else can write"
        )
    return folder


def _copy(usual: Path | None, folder: Path) -> None:
    """Copies what the usual folder has, if nobody else can write it."""
    if usual is None or usual == folder or _folders.distrust(usual) is not None:
        return
    there = _names(folder)
    for name in sorted(_names(usual) - there):
        with suppress(OSError), open(usual / name, "rb") as file:  # or it is compiled
            if _folders.distrust_file(file.fileno()) is None:
                _folders.write(folder / name, file.read())


def _names(folder: Path) -> set[str]:
    return {file.name for file in folder.glob("*.bin")}


def _forget(folder: Path) -> None:
    """Forgets kernels of this process whose machine code is not in a folder.

    They are compiled anew when they are called. Their old code stays in memory: another thread may
    run it at this moment.
    """
    there = _names(folder)
    for kernel in _kept_kernels():
        if any(_name_of(kernel, types) not in there for types in list(kernel.overloads)):
            _forgotten.extend(kernel.overloads.values())
            kernel._reset_overloads()
            kernel.overloads.clear()
            _jit._entries.pop(kernel, None)


def _kept_kernels() -> list[Any]:
    """Returns the kernels whose machine code is kept: all but those of tests and notebooks."""
    return [kernel for kernel in _jit.kernels() if isinstance(kernel._cache, _disk.DiskCache)]


def _ready() -> list[Any]:
    return [kernel for kernel in _kept_kernels() if kernel.overloads]


def _name_of(kernel: Any, types: Any) -> str:
    """Returns the name of the file that has the machine code of a kernel for some types."""
    path = kernel._cache._file(types)
    return "" if path is None else path.name


def _compiled() -> Counter[Any]:
    """Counts how often kernels were compiled, by kernel and types."""
    found = Counter[Any]()
    for kernel in _kept_kernels():
        found.update({(kernel, types): count for types, count in kernel.stats.cache_misses.items()})
    return found


def _shown(some: list[Step], progress: bool) -> Iterator[Step]:
    """Yields steps, with a bar that counts kernels and says which step is at work.

    A step may take most of a minute, so a thread looks each second how many kernels are ready.
    """
    said, ended = _compiling.state.said, list[bool]()
    with bar(len(_kept_kernels()), "kernels", progress, lines=True) as made:

        def watch() -> None:
            shown, looked = 0, time.monotonic()
            while not ended:  # no Event: its lock could be held in a forked child
                time.sleep(TICK)
                if time.monotonic() - looked < LOOK_EVERY:
                    continue
                ready, made.total, looked = len(_ready()), len(_kept_kernels()), time.monotonic()
                made.update(ready - shown)
                made.refresh()
                shown = ready

        watcher = threading.Thread(target=watch, name="colmatch-warm", daemon=True)
        try:
            _compiling.state.said = {_compiling.ONCE, _compiling.EACH}  # whoever warms need not be told to
            if progress:
                watcher.start()
            for step in some:
                made.set_description(step.name)
                yield step
        finally:
            _compiling.state.said = said
            ended.append(True)
            if progress:
                watcher.join()
