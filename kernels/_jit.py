"""The one compile policy: ``@kernel`` for what Python calls, ``@device`` for what kernels call.

A process that compiles kernels waits seconds for its first match. So what is compiled is kept
(``_disk.py``), small inputs are interpreted meanwhile (``_interpret.py``), and another process
compiles (``_background.py``). Here is decided which of these a call comes to.

All this uses numba's inner workings, so it is done for one version of numba (``_code.KNOWN``). With
another one, kernels are what ``numba.njit`` makes of them, and a warning says so.

Kernels count no references to arrays (``POLICY``): the caller holds all arrays until a kernel
returns, and a kernel makes none. With counting, building ``pstbloom`` took twice as long, one by
one three times. ``betree`` (200,000 ``dense``) took 0.7 s instead of 0.3, an event of
``propagation`` a third longer, and ``bitslice`` as long.
"""

import functools
import importlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

import numba
from numba.core import config

from colmatch.errors import KernelError, OptionError
from colmatch.kernels import _background, _code, _compiling, _disk, _folders, _forks, _interpret

F = TypeVar("F", bound=Callable[..., Any])

# ``_nrt`` False: arrays are not counted. Who calls a kernel holds them until it returns, and none
# is made inside, nor given back. Else each array that a function is handed is counted in and out
# atomically, unless LLVM sees that it need not be: choosing the access predicates of a million
# conjunctions took 1.2 s instead of 0.16, and entering them one by one three to five times as long.
POLICY: dict[str, Any] = {"_nrt": False, "nogil": True, "error_model": "python", "no_cfunc_wrapper": True}

# How kernels come to be run. "auto" takes the machine code that is there, and where there is none
# it interprets small inputs while another process compiles. "warm" interprets none: it is for tests
# and measurements. "native" does not take the package's machine code, either: it compiles each
# kernel for this very processor. "ready" compiles and interprets none.
AUTO, WARM, NATIVE, READY = MODES = ("auto", "warm", "native", "ready")
MODE = os.environ.get("COLMATCH_KERNELS") or "auto"
if MODE not in MODES:
    raise OptionError(f"COLMATCH_KERNELS is {MODE!r}: it must be one of {', '.join(MODES)}")

IS_OURS = _code.IS_KNOWN and not config.DISABLE_JIT  # whether it is decided here how kernels come to be run
if not _code.IS_KNOWN and not config.DISABLE_JIT:
    if MODE == "ready":
        raise KernelError(f"{_code.WHY}; COLMATCH_KERNELS=ready forbids to compile kernels: set it to auto")
    _compiling.say(f"{_code.WHY}; kernels are compiled in each process, which can take half a minute")

LOOK_AGAIN = 0.25  # seconds until an interpreted kernel is looked for on disk again
ALONE = 1.0  # seconds that this process interprets where no other process can compile
PATIENCE = 10.0  # seconds that it interprets where another one should have compiled
BUSY = object()  # another thread compiles or loads a kernel

_log = logging.getLogger("colmatch")
_kernels: list[Any] = []
_looked: dict[str, float] = {}  # when a kernel was looked for, by its name
_entries: dict[Any, Callable[..., Any]] = {}  # kernel -> what ``entry`` says once it is compiled


def kernel(function: F) -> F:
    """Compiles ``function`` when it is first called, from Python or from another kernel, and keeps
    the machine code on disk.
    """
    return _compiled(function, "", **POLICY)


def brief(function: F) -> F:
    """Compiles ``function`` as a ``kernel`` that keeps the interpreter's lock: for what takes
    microseconds.

    To let go of it and take it again costs nothing, unless a merge or a batch is running: then
    another thread is woken each time, and it takes 15 us. A single insert calls eight of them.
    """
    return _compiled(function, ".brief", **POLICY | {"nogil": False})


def _compiled(function: F, kind: str, **policy: Any) -> F:
    compiled = numba.njit(**policy)(function)
    if not config.DISABLE_JIT:
        _kernels.append(compiled)
    if IS_OURS:
        # What numba calls where there is no machine code for the arguments.
        compiled._compile_for_args = functools.partial(_code_for, compiled, compiled._compile_for_args)
        # A closure's cells and sources outside this package are not in the name of the file.
        if function.__module__.startswith(f"{_disk.PACKAGE}.") and function.__closure__ is None:
            compiled._cache = _disk.DiskCache(function, kind)
            compiled.get_call_template = functools.partial(_call_template, compiled, compiled.get_call_template)
    return compiled


def _code_for(kernel: Any, compile: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Returns what Python calls for arguments that a kernel has had none like."""
    if MODE == "auto" and isinstance(kernel._cache, _disk.DiskCache) and not named and _interpret.is_small(arguments):
        instead = _code_or_twin(kernel, arguments)
        if instead is not None:
            return instead
    return _compiling.compiling(lambda: _kept_or_made(kernel, compile, arguments, named), _disk.is_usable)


def _kept_or_made(kernel: Any, compile: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Loads a kernel, or compiles it, unless only what is there may be used."""
    is_kept = isinstance(kernel._cache, _disk.DiskCache)
    types = tuple(map(kernel.typeof_pyval, arguments)) if is_kept else ()
    before = kernel._cache.written(types) if is_kept else None
    code = _kept_code(kernel, arguments)
    if code is not None:
        return code
    if MODE == "ready":
        raise KernelError(
            f"kernel {kernel.py_func.__module__}.{kernel.py_func.__qualname__} is not compiled for these arguments, and "
            "COLMATCH_KERNELS=ready forbids to compile it: set it to auto, or run colmatch warm before"
        )
    with _code.global_compiler_lock, _alone(kernel, types):
        if is_kept and kernel._cache.written(types) != before:  # by another process
            code = _kept_code(kernel, arguments)
        return code or compile(*arguments, **named)


@contextmanager
def _alone(kernel: Any, types: tuple[Any, ...]) -> Iterator[None]:
    """Keeps other processes from compiling the same kernel at once.

    numba's lock is held meanwhile, so that no process is forked that has the file's lock, too.
    """
    with ExitStack() as stack:
        path = kernel._cache.path(types) if _disk.is_usable() and isinstance(kernel._cache, _disk.DiskCache) else None
        if path is not None:
            with suppress(OSError):  # then nothing can be kept, and no lock is needed
                _folders.make(path.parent)
                stack.enter_context(_background.locked(path.with_name(f"{kernel._cache.name}.lock")))
        yield


def _code_or_twin(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """Returns machine code that is there by now, else what interprets the kernel.

    The result is None where the kernel should be compiled.
    """
    _compiling.check()
    now, name = time.monotonic(), kernel._cache.name
    if now - _looked.get(name, 0.0) >= LOOK_AGAIN:
        code = None if _forks.is_torn() else _compiling.loading(lambda: _kept_code(kernel, arguments, waits=False))
        if code is BUSY:
            return _interpret.interpreted(kernel)
        _looked[name] = now
        if code is not None:
            return code
    spent = _interpret.Spent.seconds
    if spent >= _background.BEFORE and spent >= (PATIENCE if _is_asked(kernel, arguments) else ALONE):
        return None
    return _interpret.interpreted(kernel)


def is_ready(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """Says whether a kernel can be called without waiting until it is compiled.

    Where it cannot, another process is asked to compile it. That is for callers who have another
    way to the same result.
    """
    if not IS_OURS:
        return not config.DISABLE_JIT  # it cannot be known, and another process cannot help
    if not isinstance(kernel._cache, _disk.DiskCache):
        return False
    if MODE in ("native", WARM) or kernel.overloads:
        return True
    if _forks.is_torn():
        return False
    if _compiling.loading(lambda: _kept_code(kernel, arguments, waits=False)) not in (None, BUSY):
        return True
    if MODE == "auto":
        _is_asked(kernel, arguments)
    return False


def _is_asked(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """Has another process compile a kernel. Says whether one can."""
    folder = _disk.usable()
    if folder is None:
        return False
    types = tuple(map(kernel.typeof_pyval, arguments))
    name = kernel._cache.file_name(types)
    if name is None:
        return False
    request = _code.dumps((kernel.py_func.__module__, name, types))
    if not _background.compiler.ask(request, folder):
        return False
    _compiling.say(_compiling.MEANWHILE)
    return True


def keep(module: str, file_name: str, types: tuple[Any, ...]) -> None:
    """Compiles a kernel for arguments of some types and keeps it, unless it is kept already.

    Nothing happens where the sources are no longer those of the file that is named.
    """
    importlib.import_module(module)
    for kernel in _kernels:
        if not isinstance(kernel._cache, _disk.DiskCache) or kernel._cache.name != file_name.rpartition("-")[0]:
            continue
        if kernel._cache.file_name(types) == file_name:
            with _code.global_compiler_lock, _alone(kernel, types):
                if kernel._cache.load(types, MODE != "native") is None:
                    kernel.compile(types)


def _kept_code(kernel: Any, arguments: tuple[Any, ...], waits: bool = True) -> Any:
    """Returns machine code that is on disk, or came with the package; None where there is none.

    waits : for another thread that compiles or loads a kernel; else the result is ``BUSY``
    """
    if not isinstance(kernel._cache, _disk.DiskCache):
        return None
    types = tuple(map(kernel.typeof_pyval, arguments))
    lock, _ = _code.LOCKS
    if not lock.acquire(blocking=waits):
        return BUSY
    try:
        if types in kernel.overloads:  # another thread was quicker
            return kernel.overloads[types].entry_point
        code = kernel._cache.load(types, MODE != "native")
        if code is None:
            return None
        kernel._cache_hits[types] += 1
        kernel.add_overload(linked := _code.linked(code))
        return linked.entry_point
    finally:
        lock.release()


def _call_template(kernel: Any, template: Callable[..., Any], *types: Any) -> Any:
    """Returns how a kernel is called by another one that is compiled.

    That needs more than machine code, so a kernel that was only linked is compiled after all.
    """
    if any(isinstance(known, _code.Linked) for known in kernel.overloads.values()):
        kernel._reset_overloads()
        kernel.overloads.clear()
    return template(*types)


def device(function: F) -> F:
    """Compiles ``function`` into each kernel that calls it.

    It needs no file of its own: its machine code is in the kernels'.
    """
    return numba.njit(**POLICY, no_cpython_wrapper=True)(function)


def inlined(function: F) -> F:
    """Compiles ``function`` into each place that calls it.

    To hand over ten arrays takes longer than a few steps of work on them. Offering a subscription
    to the best 5 of a row takes 115 ns without this instead of 60.
    """
    return numba.njit(**POLICY, no_cpython_wrapper=True, forceinline=True)(function)


def entry(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Returns what to call in place of a kernel: its machine code, once it is compiled.

    The dispatcher looks at the types of all arguments first: 20 us for 60 arrays, which a match of
    one event waits for. A kernel has one signature, so there is nothing to choose from. But machine
    code takes an array for what its signature says, so the caller must be sure of the types.

    It is the kernel itself that is called for the first time, and where bounds are checked.
    """
    known = _entries.get(kernel)
    if known is not None:
        return known
    overloads = getattr(kernel, "overloads", {})  # none when the JIT is off
    if not IS_OURS or config.BOUNDSCHECK or len(overloads) != 1:
        return kernel
    (compiled,) = overloads.values()
    return _entries.setdefault(kernel, compiled.entry_point)


def kernels() -> list[Any]:
    """Every kernel imported so far, as numba's dispatchers (``signatures``, ``py_func``,
    ``stats``); none when the JIT is off.
    """
    return list(_kernels)


@contextmanager
def in_mode(mode: str) -> Iterator[None]:
    """Changes for the whole process how kernels without machine code are run."""
    global MODE
    before, MODE = MODE, mode
    try:
        yield
    finally:
        MODE = before


def not_interpreting() -> Any:
    """Returns a context in which kernels without machine code are compiled, for measurements."""
    return in_mode(WARM if MODE == "auto" else MODE)


_forks.wait_for(*_code.LOCKS)
