"""Machine code of kernels on disk, and in the package.

The name of a folder depends on everything that changes the machine code of all kernels: versions,
the processor and numba's settings (``cache_dir``). A file in it has one signature of one kernel.
Its name depends on the kernel, on the kernel's sources (``_closure.py``), and on the types of its
arguments. So an edit makes stale only the kernels that it can reach.

Files appear whole or not at all, and are never changed. A kernel that cannot be read is compiled. A
kernel that cannot be written is kept in memory, and a warning gives the reason, once for each
folder. A *bundle* is the file of machine code that a wheel brings (``_bundle.py``).

The base folder is ``$COLMATCH_CACHE_DIR``, read whenever a kernel is first called, else the user's
cache folder. Cached code is executed, so a folder that others could write is not used
(``_folders.py``).

numba's own cache (``cache=True``) was tried and rejected for four faults, each of them observed:

- it looks at one source file, so an edit to a called function in another file left stale machine
  code in use;
- ``NUMBA_BOUNDSCHECK`` and the optimisation settings are not in its key, so checking bounds with a
  warm cache checked nothing;
- two processes that compile different signatures of one function at once can store each other's
  code, since both number the same files;
- it raises at import where no folder can be written.
"""

import functools
import hashlib
import logging
import pickle
import platform
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import config

from colmatch.kernels import _bundle, _closure, _code, _compiling, _folders

PACKAGE = __name__.rpartition(".")[0]

# Settings of numba that change machine code, but are missing from numba's own key. The processor's
# name and features are in ``magic_tuple``.
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

FILES_KEPT = 16  # of one kernel: its signatures, before and after edits

_log = logging.getLogger("colmatch")
_unusable: set[Path | None] = set()  # folders that a warning was logged for


def cache_dir() -> Path | None:
    """Returns the folder of this process's compiled kernels, which need not exist.

    It is None without a home folder, without sources, or with an unknown version of numba.
    """
    base = _folders.base() if _code.IS_KNOWN and _closure.STATUSES else None
    if base is None:
        return None
    parts = (
        _code.cpu_target.target_context.codegen().magic_tuple(),
        tuple((name, str(getattr(config, name, None))) for name in SETTINGS),
        (
            numba.__version__,
            llvmlite.__version__,
            np.__version__,
            platform.python_implementation(),
            sys.version_info[:2],
            _bundle.is_usual_python(),
        ),
    )
    return Path(base) / f"kernels-{_digest(repr(parts).encode())}"


class DiskCache:
    """A cache of one kernel's machine code, as numba's dispatcher uses it before and after
    compiling.
    """

    def __init__(self, function: Callable[..., Any], kind: str = "") -> None:
        self._module = function.__module__.removeprefix(f"{PACKAGE}.")  # sub-folders may have modules of one name
        self.name = f"{self._module}.{function.__qualname__}{kind}"

    @property
    def cache_path(self) -> str | None:
        folder = cache_dir()
        return None if folder is None else str(folder)

    def file_name(self, types: tuple[Any, ...]) -> str | None:
        """Returns the name of the file for some types of arguments.

        It is None where the sources cannot be read, or have changed since this process imported
        them.
        """
        sources = _closure.digest(self._module)
        if sources is None:
            return None
        return f"{self.name}-{_digest(repr((sources, *map(_code.describe_type, types))).encode())}.bin"

    def path(self, types: tuple[Any, ...]) -> Path | None:
        """Returns the path of the file for some types of arguments, None where there is none."""
        folder, name = find_trusted(), self.file_name(types)
        return None if folder is None or name is None else folder / name

    def written(self, types: tuple[Any, ...]) -> int | None:
        """Returns the time in nanoseconds at which a kernel's file was written, None without a
        file.
        """
        path = self.path(types)
        try:
            return None if path is None else path.stat().st_mtime_ns
        except OSError:
            return None

    def load_overload(self, signature: Any, target_context: Any) -> None:
        """Counts a kernel that numba is about to compile. Calls from Python have tried ``load``
        before.
        """
        _compiling.state.missed.append(self._module)

    def load(self, types: tuple[Any, ...], bundled: bool) -> _code.Code | None:
        """Returns a kernel's code for arguments of some types, None where it must be compiled.

        Code that was compiled on this machine goes before the bundle's, which is less specific to
        it.

        bundled : whether the bundle's code will do
        """
        folder, name = find_trusted(), self.file_name(types)
        if name is None:
            return None
        code = None if folder is None else self._read_file(folder / name)
        if code is None and bundled:
            code = unpickle_code(bundle().read(name), f"{name} of the bundle")
        # Types of the same name need not be the same type.
        return code if code is not None and code.signature.args == types else None

    def _read_file(self, path: Path) -> _code.Code | None:
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
        return unpickle_code(data, path)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keeps newly compiled code, if a folder can be written."""
        if compiled.library.has_dynamic_globals:
            warnings.warn(
                f"kernel {self.name} holds an address or a large constant: it is compiled in each process",
                stacklevel=2,
            )
            return
        path = self.path(signature)
        if path is None:
            return
        body = _code.dumps(_code.code_of(compiled))
        try:
            _folders.make(path.parent)
            if find_trusted() is not None:  # others may have been quicker to make it
                _folders.write(path, hashlib.sha256(body).digest() + body)
                _folders.drop_old(path.parent.glob(f"{self.name}-*.bin"), FILES_KEPT)
        except OSError as error:
            _warn_unusable(path.parent, error.strerror)

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass


def unpickle_code(data: bytes | None, where: object) -> _code.Code | None:
    """Returns the code in some bytes, None where they are damaged, since the code would be run."""
    if data is None:
        return None
    if hashlib.sha256(data[32:]).digest() != data[:32]:
        _log.info("compiled kernel %s is damaged and is made anew", where)
        return None
    code: _code.Code = pickle.loads(data[32:])
    return code


@functools.cache
def bundle() -> _bundle.Bundle:
    """Returns the bundle of the package, which is empty where this process cannot use it."""
    if config.CPU_NAME or config.CPU_FEATURES:
        return _bundle.Bundle()  # the user wants code for another processor
    return _bundle.open_bundle(bundle_key(), llvmlite.binding.get_host_cpu_features())


def bundle_key() -> dict[str, Any]:
    """Returns the versions and settings that the code of a bundle depends on."""
    return {
        "system": llvmlite.binding.get_process_triple(),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__.partition(".")[0],
        # vectors of Intel's library are not used in bundles
        "settings": {name: str(getattr(config, name, None)) for name in SETTINGS if "SVML" not in name},
    }


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:20]


def find_trusted() -> Path | None:
    """Returns the folder of compiled kernels if it can be used, whether or not it exists yet.

    A warning gives the reason where there is no home folder, or others could change the folder.
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


def _warn_unusable(folder: Path | None, why: str | None) -> None:
    if folder not in _unusable:
        _unusable.add(folder)
        what = "kernels are compiled in each process; set COLMATCH_CACHE_DIR to a folder of your own that nobody else can write"
        _log.warning("the cache folder %s is not used: %s; %s", folder or "of compiled kernels", why, what)


def find_usable() -> Path | None:
    """Returns the folder that kernels can be kept in, None where it has proved unusable."""
    folder = find_trusted()
    return None if folder in _unusable else folder


def is_usable() -> bool:
    """Returns whether kernels can be kept on disk."""
    return find_usable() is not None
