"""Machine code of kernels that a wheel carries, so that no user waits for a compiler.

A *bundle* is one file beside the sources of the kernels. It has what the folder of compiled kernels
has, for each kernel and each signature, compiled for a *level*: a name for the features that a
processor must have. ``.ci/wheel`` makes it.

The first line is a digest of the second. That is JSON: ``key`` has the versions and settings that
the code depends on, and ``entries`` says where the file of each signature begins and how long it
is. The name of a file depends on its sources. A file has a digest of its own.

Objects call Python by exported names alone, and numba's structures are those of its version. So one
bundle serves all minor versions of Python: the tests of the contract run with 3.11, 3.12 and 3.13.
"""

import hashlib
import json
import logging
import os
import platform
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_MAGIC = b"colmatch kernels 2 "
_ROOT = Path(__file__).parent
_log = logging.getLogger("colmatch")


class Level(NamedTuple):
    """What code is compiled for.

    Attributes
    ----------
    machine : as ``platform.machine()`` of Linux names it
    cpu : LLVM's name
    features : that a processor must have, by LLVM's names
    """

    machine: str
    cpu: str
    features: frozenset[str]


_V3 = "avx avx2 bmi bmi2 cmov cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3"
LEVELS = {
    "x86-64-v3": Level("x86_64", "x86-64-v3", frozenset([*_V3.split(), "xsave"])),
    "arm64": Level("aarch64", "generic", frozenset(["fp-armv8", "neon"])),
}


class Bundle:
    """The entries of an open bundle; without a path, there are none."""

    def __init__(
        self, path: Path | None = None, start: int = 0, entries: Mapping[str, tuple[int, int]] | None = None
    ) -> None:
        self._path, self._start, self._entries = path, start, entries or {}

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, name: str) -> bytes | None:
        """Returns the entry of that name, None where there is none."""
        place = self._entries.get(name)
        if place is None or self._path is None:
            return None
        try:
            with open(self._path, "rb") as file:  # not kept open: a child would share its position
                file.seek(self._start + place[0])
                return file.read(place[1])
        except OSError:  # the package is being replaced
            return None


def level_here() -> str | None:
    """Returns the level of code for this machine, None where there is none."""
    machine = platform.machine().lower()
    machine = "aarch64" if machine == "arm64" else machine  # as macOS calls it
    return next((name for name, level in LEVELS.items() if level.machine == machine), None)


def is_usual_python() -> bool:
    """Says whether objects of Python have the form that compiled wrappers expect."""
    return platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def path_of(level: str) -> Path:
    """Returns where the bundle of a level stands."""
    return _ROOT / f"{level}.bundle"


def opened(key: dict[str, Any], features: Mapping[str, bool]) -> Bundle:
    """Returns the bundle for this process: empty where none can be used, and a warning says why.

    key : everything that code depends on here, beside the processor
    features : of this processor, by LLVM's names
    """
    level = level_here()
    if level is None or not is_usual_python():
        return Bundle()
    path = path_of(level)
    try:
        with open(path, "rb") as file:
            first, second = file.readline(), file.readline()
            start = file.tell()
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return Bundle()
    found = _header(first, second, size - start)
    if found is not None and found["key"]["settings"] != key["settings"]:
        return Bundle()  # bounds are to be checked, say
    why = "it is damaged" if found is None else _difference(found["key"], key) or _lack(level, features)
    if found is None or why is not None:
        _log.warning("the compiled kernels that came with colmatch (%s) are not used: %s", path, why)
        return Bundle()
    return Bundle(path, start, found["entries"])


def _header(first: bytes, second: bytes, size: int) -> dict[str, Any] | None:
    if first != _MAGIC + hashlib.sha256(second).hexdigest().encode() + b"\n":
        return None
    header: dict[str, Any] = json.loads(second)
    return header if header["size"] == size else None


def _difference(made: dict[str, Any], here: dict[str, Any]) -> str | None:
    """Says in what a bundle's key is not that of this process."""
    for name, value in here.items():
        if made.get(name) != value:
            return f"they are for {name} {made.get(name)}, and this is {value}"
    return None


def _lack(level: str, features: Mapping[str, bool]) -> str | None:
    lacking = sorted(name for name in LEVELS[level].features if not features.get(name))
    return f"this processor is below {level}: it has no {', '.join(lacking)}" if lacking else None


def write(path: Path, key: dict[str, Any], entries: Mapping[str, bytes]) -> None:
    """Writes a bundle, whole or not at all."""
    places, end = {}, 0
    for name, data in sorted(entries.items()):
        places[name] = end, len(data)
        end += len(data)
    header = json.dumps({"key": key, "size": end, "entries": places}).encode() + b"\n"
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as file:
        file.write(_MAGIC + hashlib.sha256(header).hexdigest().encode() + b"\n" + header)
        for _, data in sorted(entries.items()):
            file.write(data)
    os.replace(temporary, path)
