"""The one compile policy: ``@kernel`` for calls from Python, ``@device`` for calls from kernels.

A process that compiles kernels waits seconds for its first match. So machine code is kept
(``_disk.py``), small inputs are interpreted until it exists (``_interpret.py``), and another
process compiles it (``_background.py``). This module chooses between these for each call.

All this uses numba's inner workings, so it is done for one version of numba (``_code.KNOWN``). With
another version, kernels are plain functions of ``numba.njit``, and a warning says so.

Kernels count no references to arrays (``POLICY``): the caller holds all arrays until a kernel
returns, and a kernel makes none. With counting, building ``pstbloom`` took twice as long, and one
by one three times as long. ``betree`` (200,000 ``dense``) took 0.7 s instead of 0.3, an event of
``propagation`` a third longer, and ``bitslice`` as long as without.
"""

import functools
import importlib
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

# ``_nrt`` False: arrays are not counted. The caller of a kernel holds them until it returns, and
# the kernel neither makes nor returns any. Otherwise each array passed to a function is counted in
# and out atomically, unless LLVM proves this needless. Then choosing the access predicates of a
# million conjunctions took 1.2 s instead of 0.16. Entering them one by one took three to five times
# as long.
POLICY: dict[str, Any] = {"_nrt": False, "nogil": True, "error_model": "python", "no_cfunc_wrapper": True}

# The ways to run kernels. "auto" takes the machine code that exists. For kernels without any, it
# interprets small inputs while another process compiles. "warm" interprets none: it is for tests
# and measurements. "native" does not take the package's machine code, either: it compiles each
# kernel for this very processor. "ready" compiles and interprets none.
MODES = ("auto", "warm", "native", "ready")
MODE = os.environ.get("COLMATCH_KERNELS") or "auto"
if MODE not in MODES:
    raise OptionError(f"COLMATCH_KERNELS is {MODE!r}: it must be one of {', '.join(MODES)}")

IS_OURS = _code.IS_KNOWN and not config.DISABLE_JIT  # whether this module decides how kernels are run
if not _code.IS_KNOWN and not config.DISABLE_JIT:
    if MODE == "ready":
        raise KernelError(f"{_code.WHY}; COLMATCH_KERNELS=ready forbids to compile kernels: set it to auto")
    _compiling.say(f"{_code.WHY}; kernels are compiled in each process, which can take half a minute")

LOOK_AGAIN = 0.25  # seconds until an interpreted kernel is looked for on disk again
ALONE = 1.0  # seconds that this process interprets where no other process can compile
PATIENCE = 10.0  # seconds that it interprets where another one should have compiled
BUSY = object()  # another thread compiles or loads a kernel

_kernels: list[Any] = []
_looked: dict[str, float] = {}  # name of a kernel -> time of the last search for it
_entries: dict[Any, Callable[..., Any]] = {}  # compiled kernel -> result of ``entry``


def kernel(function: F) -> F:
    """Compiles ``function`` on its first call from Python or from another kernel, and keeps the
    machine code on disk.
    """
    return _compile_function(function, "", **POLICY)


def brief(function: F) -> F:
    """Compiles ``function`` as a ``kernel`` that keeps the interpreter's lock: for microseconds of
    work.

    Releasing the lock and taking it again costs nothing, unless a merge or a batch is running. Then
    another thread is woken each time, which takes 15 us. A single insert calls eight of them.
    """
    return _compile_function(function, ".brief", **POLICY | {"nogil": False})


def _compile_function(function: F, kind: str, **policy: Any) -> F:
    compiled = numba.njit(**policy)(function)
    if not config.DISABLE_JIT:
        _kernels.append(compiled)
    if IS_OURS:
        # numba calls this where there is no machine code for the arguments.
        compiled._compile_for_args = functools.partial(_code_for, compiled, compiled._compile_for_args)
        # The name of the file does not cover a closure's cells, nor sources outside this package.
        if function.__module__.startswith(f"{_disk.PACKAGE}.") and function.__closure__ is None:
            compiled._cache = _disk.DiskCache(function, kind)
            compiled.get_call_template = functools.partial(_call_template, compiled, compiled.get_call_template)
    return compiled


def _code_for(kernel: Any, compile: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Returns the function that Python calls for arguments of types that are new to a kernel."""
    if MODE == "auto" and isinstance(kernel._cache, _disk.DiskCache) and not named and _interpret.is_small(arguments):
        instead = _code_or_twin(kernel, arguments)
        if instead is not None:
            return instead
    return _compiling.run_compiling(lambda: _load_or_compile(kernel, compile, arguments, named), _disk.is_usable)


def _load_or_compile(
    kernel: Any, compile: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """Loads a kernel, or compiles it unless ``MODE`` is "ready", where it raises KernelError."""
    is_kept = isinstance(kernel._cache, _disk.DiskCache)
    types = tuple(map(kernel.typeof_pyval, arguments)) if is_kept else ()
    before = kernel._cache.written(types) if is_kept else None
    code = _load_code(kernel, arguments)
    if code is not None:
        return code
    if MODE == "ready":
        raise KernelError(
            f"kernel {kernel.py_func.__module__}.{kernel.py_func.__qualname__} is not compiled for these arguments, and "
            "COLMATCH_KERNELS=ready forbids to compile it: set it to auto, or run colmatch warm before"
        )
    with _code.global_compiler_lock, _lock_kernel(kernel, types):
        if is_kept and kernel._cache.written(types) != before:  # by another process
            code = _load_code(kernel, arguments)
        return code or compile(*arguments, **named)


@contextmanager
def _lock_kernel(kernel: Any, types: tuple[Any, ...]) -> Iterator[None]:
    """Keeps other processes from compiling the same kernel at once.

    The caller holds numba's lock, so no process is forked that also holds the file's lock.
    """
    with ExitStack() as stack:
        path = kernel._cache.path(types) if _disk.is_usable() and isinstance(kernel._cache, _disk.DiskCache) else None
        if path is not None:
            with suppress(OSError):  # then nothing can be kept, and no lock is needed
                _folders.make(path.parent)
                stack.enter_context(_background.lock_file(path.with_name(f"{kernel._cache.name}.lock")))
        yield


def _code_or_twin(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """Returns machine code that exists by now, else a function that interprets the kernel.

    The result is None where the kernel should be compiled.
    """
    _compiling.check()
    now, name = time.monotonic(), kernel._cache.name
    if now - _looked.get(name, 0.0) >= LOOK_AGAIN:
        code = None if _forks.is_torn() else _compiling.run_loading(lambda: _load_code(kernel, arguments, waits=False))
        if code is BUSY:
            return _interpret.interpret_kernel(kernel)
        _looked[name] = now
        if code is not None:
            return code
    spent = _interpret.Spent.seconds
    if spent >= _background.BEFORE and spent >= (PATIENCE if _request_kernel(kernel, arguments) else ALONE):
        return None
    return _interpret.interpret_kernel(kernel)


def is_ready(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """Returns whether a kernel can be called without waiting until it is compiled.

    If it cannot, another process is asked to compile it. This is for callers that have another way
    to the same result.
    """
    if not IS_OURS:
        return not config.DISABLE_JIT  # it cannot be known, and another process cannot help
    if not isinstance(kernel._cache, _disk.DiskCache):
        return False
    if MODE in ("native", "warm") or kernel.overloads:
        return True
    if _forks.is_torn():
        return False
    if _compiling.run_loading(lambda: _load_code(kernel, arguments, waits=False)) not in (None, BUSY):
        return True
    if MODE == "auto":
        _request_kernel(kernel, arguments)
    return False


def _request_kernel(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """Has another process compile a kernel. Returns whether one can."""
    folder = _disk.find_usable()
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

    Nothing happens where the sources no longer match the name of the file.
    """
    importlib.import_module(module)
    for kernel in _kernels:
        if not isinstance(kernel._cache, _disk.DiskCache) or kernel._cache.name != file_name.rpartition("-")[0]:
            continue
        if kernel._cache.file_name(types) == file_name:
            with _code.global_compiler_lock, _lock_kernel(kernel, types):
                if kernel._cache.load(types, MODE != "native") is None:
                    kernel.compile(types)


def _load_code(kernel: Any, arguments: tuple[Any, ...], waits: bool = True) -> Any:
    """Returns machine code that is on disk, or came with the package; None where there is none.

    waits : whether to wait for another thread that compiles or loads a kernel; otherwise the result
        is then ``BUSY``
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
        # Link the code that is kept
        code = kernel._cache.load(types, MODE != "native")
        if code is None:
            return None
        kernel._cache_hits[types] += 1
        kernel.add_overload(linked := _code.link_code(code))
        return linked.entry_point
    finally:
        lock.release()


def _call_template(kernel: Any, template: Callable[..., Any], *types: Any) -> Any:
    """Returns numba's template for calls of a kernel from another compiled kernel.

    Such a call needs more than machine code, so a kernel that was only linked is compiled after
    all.
    """
    if any(isinstance(overload, _code.Linked) for overload in kernel.overloads.values()):
        kernel._reset_overloads()
        kernel.overloads.clear()
    return template(*types)


def device(function: F) -> F:
    """Compiles ``function`` into each kernel that calls it.

    It has no file: its machine code is in the kernels'.
    """
    return numba.njit(**POLICY, no_cpython_wrapper=True)(function)


def inlined(function: F) -> F:
    """Compiles ``function`` into each place that calls it.

    Passing ten arrays takes longer than a few steps of work on them. Offering a subscription to the
    best 5 of a row takes 115 ns without this instead of 60.
    """
    return numba.njit(**POLICY, no_cpython_wrapper=True, forceinline=True)(function)


def entry(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a kernel's machine code, once it is compiled, to be called in place of the kernel.

    The dispatcher checks the types of all arguments first: 20 us for 60 arrays, which a match of
    one event waits for. A kernel has one signature, so there is nothing to choose from. But machine
    code trusts its signature, so the caller must be sure of the types.

    The result is the kernel itself for the first call, and where bounds are checked.
    """
    call = _entries.get(kernel)
    if call is not None:
        return call
    overloads = getattr(kernel, "overloads", {})  # none when the JIT is off
    if not IS_OURS or config.BOUNDSCHECK or len(overloads) != 1:
        return kernel
    (compiled,) = overloads.values()
    return _entries.setdefault(kernel, compiled.entry_point)


def kernels() -> list[Any]:
    """Returns every kernel imported so far, as numba's dispatchers (``signatures``, ``py_func``,
    ``stats``). There are none when the JIT is off.
    """
    return list(_kernels)


@contextmanager
def in_mode(mode: str) -> Iterator[None]:
    """Changes, in the whole process and for a block, how kernels without machine code are run."""
    global MODE
    before, MODE = MODE, mode
    try:
        yield
    finally:
        MODE = before


def forbid_interpreting() -> Any:
    """Returns a context where kernels without machine code are compiled, for measurements."""
    return in_mode("warm" if MODE == "auto" else MODE)


_forks.wait_for(*_code.LOCKS)
