"""Compilation of kernels before anybody waits for them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, cast

from colmatch.errors import KernelError, OptionError, StoreError, show_value
from colmatch.given.arguments import check_flag, members
from colmatch.kernels import _background, _closure, _code, _disk, _folders, _jit, _warm
from colmatch.kinds.base import IndexKind
from colmatch.kinds.plan import AutoSettings, read_settings
from colmatch.kinds.registry import FEWEST, KINDS, IndexName
from colmatch.matching.threads import cores
from colmatch.show.progress import bar

LOOK_EVERY = 0.5  # seconds between looks at how many kernels are ready
SURE_AFTER = 0.05  # share of all work that is done before the remaining time is shown


class Warmed(NamedTuple):
    """The kernels that ``warm`` compiled or found, and their folder.

    Attributes
    ----------
    kernels : number of kernels; all have machine code now
    compiled : number of kernels that were compiled during the call, by this process or others
    loaded : number of kernels that were there before, on the disk or in the package
    seconds : duration of the call
    folder : folder of the machine code
    """

    kernels: int
    compiled: int
    loaded: int
    seconds: float
    folder: Path


def warm(index: Any = None, *, progress: bool = False) -> Warmed:
    """Compiles all kernels that matchers may need, and keeps their machine code on the disk.

    There is a process for each processor. Machine code that is on the disk, or came with the
    package, is kept. Several calls at once, on one folder, share the work.

    ``COLMATCH_CACHE_DIR`` names another folder. With ``COLMATCH_KERNELS=native``, the machine code
    of the package does not count, since it is made for many processors. Its kernels are compiled
    once more for this processor. Later processes prefer such code.

    Parameters
    ----------
    index : one index kind or several, as names or as settings from ``colmatch.index``. The values
        of settings are ignored. The call compiles the code of these kinds with any settings, and
        the code that every matcher needs. The default, and ``"auto"``, which may choose any kind,
        compile the code of all kinds
    progress : show a bar on standard error, or a line each ten seconds where it is no terminal

    Raises
    ------
    OptionError : a kind is unknown. Or the cache folder cannot be used: it is absent and cannot be
        made, or others could write to it. Or ``NUMBA_DISABLE_JIT`` is set, so nothing is compiled.
        Or machine code of this version of numba cannot be kept
    KernelError : a kernel could not be compiled, or this program embeds Python and cannot start
        another process
    StoreError : the machine code could not be written to the folder
    """
    kinds, progress = _kinds(index), check_flag("progress={}", progress)
    if not _code.IS_KNOWN:
        raise OptionError(f"nothing can be kept in a folder: {_code.WHY}")
    began, folder, without = time.monotonic(), _make_folder(), _folders_of_others(kinds)
    all_of_them = _warm.list_tasks(without)
    if not all_of_them:
        raise OptionError("NUMBA_DISABLE_JIT is set, so that no kernel is compiled: unset it to warm a folder")
    bundled = _jit.MODE != "native"
    missing = [task for task in all_of_them if not task.is_there(bundled)]
    _compile(missing, folder, without, bundled, progress)
    if lost := [task for task in missing if not task.is_there(bundled)]:
        if lost[0].kernel._cache.file_name(lost[0].types) is None:
            raise KernelError("the sources of kernels were changed meanwhile: warm again")
        raise StoreError(
            f"{len(lost)} of {len(missing)} kernels that were compiled could not be kept in {folder}, the first is "
            f"{lost[0].kernel._cache.name}: see that it can be written and that its disk has room, or let "
            "COLMATCH_CACHE_DIR name another folder"
        )
    kernels, compiled = (len({task.kernel for task in tasks}) for tasks in (all_of_them, missing))
    return Warmed(kernels, compiled, kernels - compiled, time.monotonic() - began, folder)


def _kinds(index: Any) -> list[IndexName]:
    """Returns the names of the requested kinds, each once."""
    several = members(index)
    if several is None:
        several = [] if index is None else [index]
    elif not several:
        raise OptionError(f"index={show_value(index)}: a kind of index is needed, or several of them")
    names = [read_settings(one).kind for one in several]
    kinds = KINDS if not names or AutoSettings.kind in names else dict.fromkeys(names)
    return cast(list[IndexName], list(kinds))


def _folders_of(kind: IndexKind) -> set[str]:
    """Returns the folders of kernels that a kind's match kernel imports from, its own included.

    Names of nested folders are joined by dots.
    """
    module = kind.match.__module__.removeprefix(f"{_disk.PACKAGE}.")
    return {name.rpartition("/")[0].replace("/", ".") for name in _closure.closure(module) if "/" in name}


def _folders_of_others(kinds: list[IndexName]) -> list[str]:
    """Returns the folders of kernels that none of the kinds needs.

    The folders of ``FEWEST`` are always needed: that kind indexes new subscriptions.
    """
    every = set().union(*map(_folders_of, KINDS.values()))
    return sorted(every.difference(*map(_folders_of, [FEWEST, *(KINDS[kind] for kind in kinds)])))


def _make_folder() -> Path:
    """Makes the folder of this process's compiled kernels.

    Raises
    ------
    OptionError : there can be no folder, or it cannot be used
    """
    folder = _disk.cache_dir()
    if folder is None and _folders.base() is None:
        raise OptionError("this user has no home folder: let COLMATCH_CACHE_DIR say where kernels are kept")
    if folder is None:
        raise OptionError(
            "the sources of the kernels cannot be read, so no kernel is kept: install colmatch in a folder, not in a zip file"
        )
    why = _folders.distrust(folder)
    if why is None:
        try:
            _folders.make(folder)
        except OSError as error:
            raise OptionError(
                f"the cache folder {folder} cannot be made: {error.strerror}; let COLMATCH_CACHE_DIR name a folder that "
                "you can write"
            ) from error
        why = _folders.distrust(folder)  # another process may have been quicker
    if why is not None:
        raise OptionError(
            f"the cache folder {folder} is not used: {why}, so that others could exchange the code in it; let "
            "COLMATCH_CACHE_DIR name a folder of your own that nobody else can write"
        )
    return folder


def _compile(missing: list[_warm.CompileTask], folder: Path, without: list[str], bundled: bool, progress: bool) -> None:
    """Compiles missing kernels in other processes, and shows the progress."""
    if not missing:
        return
    if not _background.can_start():
        raise KernelError(
            f"other processes of Python compile the kernels, and {sys.executable!r} is no Python: run colmatch warm beforehand"
        )
    left = {task.kernel._cache.file_name(task.types): task for task in missing}
    shape = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} kernels"
    processes = _warm.start_processes(min(cores(0), len(missing)), without, bundled)
    clock, ready, kernels = _TimeLeft(missing, len(processes)), 0, len({task.kernel for task in missing})
    try:
        with bar(kernels, "kernels", progress, lines=True, shape=shape) as display:
            while left and any(process.poll() is None for process in processes):
                time.sleep(LOOK_EVERY)
                for name in left.keys() & os.listdir(folder):
                    del left[name]
                clock.look(list(left.values()))
                before, ready = ready, kernels - len({task.kernel for task in left.values()})
                display.update(ready - before)
                display.set_description(clock.describe_rest())
                display.refresh()
                _check(processes)
        for process in processes:
            process.wait()
        _check(processes)
    finally:
        for process in processes:
            process.end()


class _TimeLeft:
    """An estimate of the remaining time, made when kernels become ready; it counts down in between.

    Kernels that are being compiled at that moment, one in each process, count as half done.
    """

    def __init__(self, tasks: list[_warm.CompileTask], processes: int) -> None:
        self._all = sum(task.cost for task in tasks)
        self._processes = processes
        self._count = len(tasks)
        self._began = time.monotonic()
        self._end: float | None = None  # the time when all will be ready; None while unknown

    def look(self, left: list[_warm.CompileTask]) -> None:
        """Updates the estimate.

        left : tasks that are still to be compiled, the most expensive first
        """
        if len(left) == self._count:
            return
        self._count, now = len(left), time.monotonic()
        rest = sum(task.cost for task in left) - sum(task.cost for task in left[: self._processes]) / 2
        if self._all - rest > SURE_AFTER * self._all:
            self._end = now + (now - self._began) * rest / (self._all - rest)

    def describe_rest(self) -> str:
        """Returns the remaining time in words, or an empty text while it is unknown."""
        return "" if self._end is None else f"{max(self._end - time.monotonic(), 1):.0f} s left"


def _check(processes: list[_warm.Process]) -> None:
    """Raises KernelError if a process has failed."""
    for process in processes:
        if process.poll():
            lines = process.read_errors().strip().splitlines()
            why = lines[-1] if lines else f"a process that compiles ended with code {process.returncode}"
            raise KernelError(f"kernels could not be compiled: {why}")
