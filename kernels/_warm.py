"""Compiles kernels ahead of time, from the types that they declare.

Several processes take kernels from the same list, the most expensive first. A process skips a
kernel that another one has locked, and returns to it later. So processes share the work without
messages, even if they were started separately. A kernel that another kernel calls may be compiled
twice.
"""

import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, NamedTuple

from colmatch.kernels import _background, _closure, _code, _disk, _jit
from colmatch.kernels._signatures import signatures

_START = """
import sys
sys.path[:] = {path!r}
from colmatch.kernels import _background, _warm
_background.end_with_parent()
_warm.compile_missing(_warm.list_tasks({without!r}), {bundled!r})
"""


class CompileTask(NamedTuple):
    """A kernel that must exist for some types.

    Attributes
    ----------
    kernel : numba's dispatcher
    types : of its arguments
    cost : an estimate: the bytes of Python's code that are compiled, to the power of 1.5. Its
        correlation with seconds is 0.91 over 183 kernels (2026-11-27)
    """

    kernel: Any
    types: tuple[Any, ...]
    cost: float

    def is_there(self, bundled: bool) -> bool:
        """Returns whether the machine code exists, and is sound.

        bundled : whether the bundle's will do
        """
        return self.kernel._cache.load(self.types, bundled) is not None


def list_tasks(without: Iterable[str] = ()) -> list[CompileTask]:
    """Returns the kernels to compile, the most expensive first.

    without : folders to leave out
    """
    for module in pkgutil.walk_packages([_closure.ROOT], f"{_disk.PACKAGE}."):
        importlib.import_module(module.name)
    left_out = tuple(f"{_disk.PACKAGE}.{folder}." for folder in without)
    all_tasks = [
        CompileTask(kernel, types, _bytes_of(kernel, set()) ** 1.5)
        for kernel in _jit.kernels()
        if isinstance(kernel._cache, _disk.DiskCache) and not kernel.py_func.__module__.startswith(left_out)
        for types in signatures(kernel.py_func)
    ]
    return sorted(all_tasks, key=lambda task: -task.cost)


def _bytes_of(function: Any, seen: set[Any]) -> int:
    """Returns the bytes of code that are compiled with a function, except functions in ``seen``."""
    function = getattr(function, "py_func", function)
    if function in seen:
        return 0
    seen.add(function)
    called = map(function.__globals__.get, function.__code__.co_names)
    below = (_bytes_of(one, seen) for one in called if isinstance(getattr(one, "py_func", None), types.FunctionType))
    return len(function.__code__.co_code) + sum(below)


def compile_missing(todo: list[CompileTask], bundled: bool) -> None:
    """Compiles missing kernels into the folder of compiled kernels, which must exist.

    bundled : whether the bundle's machine code will do
    """
    folder, waits = _disk.cache_dir(), False
    assert folder is not None
    while todo:
        later = []
        for task in todo:
            if task.is_there(bundled):
                continue
            # Lock the kernel, or leave it for later
            try:
                held = _background.lock_file(folder / f"{task.kernel._cache.name}.lock", waits)
            except OSError:  # then the kernel cannot be kept either, which the caller notices
                held = nullcontext()
            if held is None:
                later.append(task)
                continue
            # Compile it unless another process has done so
            with held, _code.global_compiler_lock:
                if not task.is_there(bundled):
                    task.kernel.compile(task.types)
        todo, waits = later, True


class Process(subprocess.Popen[bytes]):
    """Another process of Python. Its errors go to a file, since nobody reads them while it runs."""

    def __init__(self, program: str) -> None:
        self._errors = tempfile.TemporaryFile("w+")
        super().__init__(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C is for the process that waits for it
        )

    def read_errors(self) -> str:
        """Returns the text that the process has written to standard error."""
        self._errors.seek(0)
        return self._errors.read()

    def end(self) -> None:
        """Kills the process if it still runs."""
        self.kill()
        self.wait()
        self._errors.close()


def start_processes(count: int, without: Iterable[str], bundled: bool) -> list[Process]:
    """Starts processes that compile missing kernels. They end when done, or with this process."""
    path = [place or os.getcwd() for place in sys.path if isinstance(place, str)]
    program = _START.format(path=path, without=list(without), bundled=bundled)
    return [Process(program) for _ in range(count)]
