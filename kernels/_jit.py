"""The one compile policy: ``@kernel`` for what Python calls, ``@device`` for what kernels call.

Compiled kernels are kept on disk, because a process that compiles them waits seconds for its first
match. numba's own cache (``cache=True``) was tried and lost on four counts, each seen to happen:

- it looks at one source file, so an edit to a function that a kernel calls, in another file, left
  stale machine code in use;
- ``NUMBA_BOUNDSCHECK`` and the optimisation settings are not in its key, so checking bounds with a
  warm cache checked nothing;
- two processes that compile different signatures of one function at once can store each other's
  code, since both number the same files;
- it raises at import where no folder can be written.

Here, a folder is named by everything that machine code depends on: all of this package's sources,
the versions below it, the processor and numba's settings (``cache_dir``). A file in it holds one
signature of one kernel. Files appear whole or not at all, and are never changed. What cannot be
read is compiled, what cannot be written is kept in memory, and a warning says why, once for each
folder.

The base folder is ``$COLMATCH_CACHE_DIR``, read whenever a kernel is first called, else the user's
cache folder. Cached code is run as it is, so a folder that others could write is not used
(``_folders.py``).

``numba.core.caching``, ``Dispatcher._cache``, ``_code.py`` and the locks that a fork waits for
(``_forks.py``) use numba's inner workings, so pyproject.toml pins its minor version.

Kernels count no references to arrays (``POLICY``): the caller holds all arrays until a kernel
returns, and a kernel makes none. With counting, building ``pstbloom`` took twice as long, one by
one three times. ``betree`` (200,000 ``dense``) took 0.7 s instead of 0.3, an event of
``propagation`` a third longer, and ``bitslice`` as long.
"""

import functools
import hashlib
import importlib
import logging
import os
import pickle
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from llvmlite.binding.ffi import lib as llvm
from numba.core import caching, config
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from colmatch.kernels import _background, _bundle, _code, _compiling, _folders, _forks, _interpret

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = __name__.rpartition(".")[0]

# ``_nrt`` False: arrays are not counted. Who calls a kernel holds them until it returns, and none
# is made inside, nor given back. Else each array that a function is handed is counted in and out
# atomically, unless LLVM sees that it need not be: choosing the access predicates of a million
# conjunctions took 1.2 s instead of 0.16, and entering them one by one three to five times as long.
POLICY: dict[str, Any] = {"_nrt": False, "nogil": True, "error_model": "python", "no_cfunc_wrapper": True}

# Settings of numba that change the code it makes and that its own key forgets. The processor's name
# and features are in ``magic_tuple``.
SETTINGS = (
    "BOUNDSCHECK",
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "ENABLE_AVX",
    "DISABLE_INTEL_SVML",
    "USING_SVML",
    "DEBUGINFO_DEFAULT",
    "EXTEND_VARIABLE_LIFETIMES",
    "ENABLE_PROFILING",
    "DEBUG_NRT",
    "NRT_STATS",
    "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS",
)

# How kernels come to be run. "auto" takes the machine code that is there, and where there is none
# it interprets small inputs while another process compiles. "native" compiles each kernel for this
# very processor when it is first called. "ready" compiles and interprets none.
MODES = ("auto", "native", "ready")
MODE = os.environ.get("COLMATCH_KERNELS") or "auto"
if MODE not in MODES:
    raise _compiling.ModeError(f"COLMATCH_KERNELS is {MODE!r}: it must be one of {', '.join(MODES)}")

WARM = "warm"  # like "auto", but nothing is interpreted: for benchmarks, and to compile ahead of time

LOOK_AGAIN = 0.25  # seconds until an interpreted kernel is looked for on disk again
ALONE = 1.0  # seconds that this process interprets where no other process can compile
PATIENCE = 10.0  # seconds that it interprets where another one should have compiled
BUSY = object()  # another thread compiles or loads a kernel

_log = logging.getLogger("colmatch")
_kernels: list[Any] = []
_looked: dict[str, float] = {}  # when a kernel was looked for, by its name
_entries: dict[Any, Callable[..., Any]] = {}  # kernel -> what ``entry`` says once it is compiled
_unusable: set[Path | None] = set()  # folders that the log has told of


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
        # What numba calls where there is no machine code for the arguments.
        compiled._compile_for_args = functools.partial(_code_for, compiled, compiled._compile_for_args)
        # A closure's cells and sources outside this package are not in the folder's name.
        if function.__module__.startswith(f"{_PACKAGE}.") and function.__closure__ is None:
            compiled._cache = _DiskCache(function, kind)
            compiled.get_call_template = functools.partial(_call_template, compiled, compiled.get_call_template)
    return compiled  # type: ignore[no-any-return]


def _code_for(kernel: Any, compile: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Returns what Python calls for arguments that a kernel has had none like."""
    if MODE == "auto" and isinstance(kernel._cache, _DiskCache) and not named and _interpret.is_small(arguments):
        instead = _code_or_twin(kernel, arguments)
        if instead is not None:
            return instead
    return _compiling.compiling(lambda: _kept_or_made(kernel, compile, arguments, named), _is_kept)


def _kept_or_made(kernel: Any, compile: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Loads a kernel, or compiles it, unless only what is there may be used."""
    is_kept = isinstance(kernel._cache, _DiskCache)
    types = tuple(map(kernel.typeof_pyval, arguments)) if is_kept else ()
    before = kernel._cache.written(types) if is_kept else None
    code = _kept_code(kernel, arguments)
    if code is not None:
        return code
    if MODE == "ready":
        raise _compiling.NotReadyError(
            f"kernel {kernel.py_func.__module__}.{kernel.py_func.__qualname__} is not compiled for these arguments, and "
            "COLMATCH_KERNELS=ready forbids to compile it: set it to auto, or run colmatch warm before"
        )
    with global_compiler_lock, _alone():
        if is_kept and kernel._cache.written(types) != before:  # by another process
            code = _kept_code(kernel, arguments)
        return code or compile(*arguments, **named)


@contextmanager
def _alone() -> Iterator[None]:
    """Keeps other processes from compiling, which may be about to compile the same.

    numba's lock is held meanwhile, so that no process is forked that has the lock, too.
    """
    with ExitStack() as stack:
        folder = _trusted()
        if folder is not None and folder not in _unusable:
            with suppress(OSError):  # then nothing can be kept, and no lock is needed
                _folders.make(folder)
                stack.enter_context(_background.locked(folder / _background.ONE_KERNEL))
        yield


def _code_or_twin(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """Returns machine code that is there by now, else what interprets the kernel.

    The result is None where the kernel should be compiled.
    """
    _compiling.check()
    now, name = time.monotonic(), kernel._cache._name
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


def _is_asked(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """Has another process compile a kernel. Says whether one can."""
    folder = _trusted()
    if folder is None or folder in _unusable:
        return False
    types = tuple(map(kernel.typeof_pyval, arguments))
    request = dumps((kernel.py_func.__module__, kernel._cache._name, types))
    if not _background.compiler.ask(request, SOURCES, folder):
        return False
    _compiling.say(_compiling.MEANWHILE)
    return True


def keep(module: str, name: str, types: tuple[Any, ...]) -> None:
    """Compiles a kernel for arguments of some types and keeps it, unless it is kept already."""
    importlib.import_module(module)
    for kernel in _kernels:
        if isinstance(kernel._cache, _DiskCache) and kernel._cache._name == name:
            with global_compiler_lock, _alone():
                if kernel._cache.load(types) is None:
                    kernel.compile(types)
            return


def _kept_code(kernel: Any, arguments: tuple[Any, ...], waits: bool = True) -> Any:
    """Returns machine code that is on disk, or came with the package; None where there is none.

    waits : for another thread that compiles or loads a kernel; else the result is ``BUSY``
    """
    if not isinstance(kernel._cache, _DiskCache):
        return None
    types = tuple(map(kernel.typeof_pyval, arguments))
    lock = global_compiler_lock._lock
    if not lock.acquire(blocking=waits):
        return BUSY
    try:
        if types in kernel.overloads:  # another thread was quicker
            return kernel.overloads[types].entry_point
        code = kernel._cache.load(types)
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
    return numba.njit(**POLICY, no_cpython_wrapper=True)(function)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Compiles ``function`` into each place that calls it.

    To hand over ten arrays takes longer than a few steps of work on them. Offering a subscription
    to the best 5 of a row takes 115 ns without this instead of 60.
    """
    return numba.njit(**POLICY, no_cpython_wrapper=True, forceinline=True)(function)  # type: ignore[no-any-return]


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
    if config.BOUNDSCHECK or len(overloads) != 1:
        return kernel
    (compiled,) = overloads.values()
    return _entries.setdefault(kernel, compiled.entry_point)


def kernels() -> list[Any]:
    """Every kernel imported so far, as numba's dispatchers (``signatures``, ``py_func``,
    ``stats``); none when the JIT is off.
    """
    return list(_kernels)


def cache_dir() -> Path | None:
    """Folder of this process's compiled kernels; it need not exist.

    None when there can be none: no home folder, or no sources.
    """
    base = _folders.base()
    # Sources that have changed since they were imported would file the old code under the new name.
    if base is None or not SOURCES or _sources() != SOURCES:
        return None
    parts = (
        SOURCES,
        cpu_target.target_context.codegen().magic_tuple(),
        tuple((name, str(getattr(config, name, None))) for name in SETTINGS),
        (
            numba.__version__,
            llvmlite.__version__,
            np.__version__,
            platform.python_implementation(),
            sys.version_info[:2],
        ),
    )
    return Path(base) / f"kernels-{_digest(repr(parts).encode())}"


class _DiskCache(caching._Cache):  # type: ignore[misc]
    """Keeps one kernel's machine code: what numba's dispatcher asks before it compiles and tells
    afterwards.
    """

    def __init__(self, function: Callable[..., Any], kind: str = "") -> None:
        below = function.__module__.removeprefix(f"{_PACKAGE}.")  # sub-folders may have modules of one name
        self._name = f"{below}.{function.__qualname__}{kind}"

    @property
    def cache_path(self) -> str | None:
        folder = cache_dir()
        return None if folder is None else str(folder)

    def _file(self, signature: Any) -> Path | None:
        folder = _trusted()
        return None if folder is None else folder / f"{self._name}-{_digest(repr(signature).encode())}.bin"

    def written(self, types: tuple[Any, ...]) -> int | None:
        """Returns when a kernel's file was written, None where there is none."""
        path = self._file(types)
        try:
            return None if path is None else path.stat().st_mtime_ns
        except OSError:
            return None

    def load_overload(self, signature: Any, target_context: Any) -> None:
        """Numba asks before it compiles: for Python's calls, ``load`` has looked already."""
        _compiling.state.misses += 1

    def load(self, types: tuple[Any, ...]) -> _code.Code | None:
        """Returns a kernel's code for arguments of some types, None where it must be compiled.

        Code that was compiled on this machine goes before the bundle's, which knows it less.
        """
        name = f"{self._name}-{_digest(repr(types).encode())}.bin"
        folder = _trusted()
        found = None if folder is None else self._of_file(folder / name)
        if found is None and MODE != "native":
            found = _sound(bundle().read(name), f"{name} of the bundle")
        # Types of the same name need not be the same type.
        return found if found is not None and found.signature.args == types else None

    def _of_file(self, path: Path) -> _code.Code | None:
        try:
            with open(path, "rb") as file:
                why = _folders.distrust_file(file.fileno())
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn_unusable(path.parent, error.strerror)
            return None
        if why is not None:
            _log.warning("compiled kernel %s %s: it is not run but made anew", path, why)
            return None
        return _sound(data, path)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keeps what was just compiled, if a folder can be written."""
        if compiled.library.has_dynamic_globals:
            warnings.warn(
                f"kernel {self._name} holds an address or a large constant: it is compiled in each process",
                stacklevel=2,
            )
            return
        path = self._file(signature)
        if path is None:
            return
        body = dumps(_code.code_of(compiled))
        try:
            _folders.make(path.parent)
            if _trusted() is not None:  # others may have been quicker to make it
                _folders.write(path, hashlib.sha256(body).digest() + body)
        except OSError as error:
            _warn_unusable(path.parent, error.strerror)

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass


def _sound(data: bytes | None, where: object) -> _code.Code | None:
    """Returns the code in some bytes: None where they are damaged, since it would be run."""
    if data is None:
        return None
    if hashlib.sha256(data[32:]).digest() != data[:32]:
        _log.info("compiled kernel %s is damaged and is made anew", where)
        return None
    code: _code.Code = pickle.loads(data[32:])
    return code


@functools.cache
def bundle() -> _bundle.Bundle:
    """Returns what came with the package: empty where this process cannot use it."""
    if config.CPU_NAME or config.CPU_FEATURES or not SOURCES or _sources() != SOURCES:
        return _bundle.Bundle()  # code for another processor is asked for, or the sources were edited
    return _bundle.opened(bundle_key(), llvmlite.binding.get_host_cpu_features())


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


def bundle_key() -> dict[str, Any]:
    """Returns everything that the code of a bundle depends on, beside the processor."""
    return {
        "system": llvmlite.binding.get_process_triple(),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__.partition(".")[0],
        "sources": SOURCES,
        # vectors of Intel's library are not used in bundles
        "settings": {name: str(getattr(config, name, None)) for name in SETTINGS if "SVML" not in name},
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:20]


def _sources() -> str:
    """Returns the hash of this package's sources, sub-folders included; empty where there are none
    (a zip file, say).
    """
    root = os.path.dirname(os.path.abspath(__file__))
    try:
        files = sorted(
            os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")
        )
        return (
            _hash_sources(root, tuple((file, (status := os.stat(file)).st_mtime_ns, status.st_size) for file in files))
            if files
            else ""
        )
    except OSError:
        return ""


@functools.lru_cache(maxsize=2)
def _hash_sources(root: str, files: tuple[tuple[str, int, int], ...]) -> str:
    """The times and sizes are there to be looked at again only when one of them changes."""
    whole = hashlib.sha256()
    for name, _, _ in files:
        data = Path(name).read_bytes()
        whole.update(f"{Path(name).relative_to(root).as_posix()} {len(data)}\n".encode() + data)
    return whole.hexdigest()


def _trusted() -> Path | None:
    """The folder of compiled kernels if it can be used, whether or not it exists yet.

    Where it cannot, a warning says why.
    """
    folder = cache_dir()
    if folder is None:
        if _folders.base() is None:
            _warn_unusable(None, "this user has no home folder")
        return None
    why = _folders.distrust(folder)
    if why is not None:
        _warn_unusable(folder, f"{why}, so that others could exchange the code in it")
        return None
    return folder


def _is_kept() -> bool:
    """Returns whether what is compiled can be kept, as far as is known."""
    folder = _trusted()
    return folder is not None and folder not in _unusable


def _warn_unusable(folder: Path | None, why: str | None) -> None:
    if folder not in _unusable:
        _unusable.add(folder)
        what = "kernels are compiled in each process; set COLMATCH_CACHE_DIR to a folder of your own that nobody else can write"
        _log.warning("the cache folder %s is not used: %s; %s", folder or "of compiled kernels", why, what)


SOURCES = _sources()

_forks.wait_for(global_compiler_lock._lock, llvm._lock._lock)
