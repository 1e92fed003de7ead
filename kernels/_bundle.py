"""Machine code of kernels that a wheel carries, so that no user waits for a compiler.

A *bundle* is one file next to the sources of the kernels. Like the folder of compiled kernels, it
has the machine code of each signature of each kernel. All of it is compiled for one *level*: a name
for the features that a processor must have. ``.ci/wheel`` makes the bundle.

The first line has a digest of the second line, which is JSON. ``key`` lists the versions and
settings that the code depends on. ``entries`` gives the place and size of each signature's file.
The name of a file depends on its sources, and each file also has a digest.

Objects call Python by exported names only, and numba's structures depend on its version only. So
one bundle serves all minor versions of Python: the tests of the contract run with 3.11, 3.12 and
3.13.
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


class MachineLevel(NamedTuple):
    """A target of compilation.

    Attributes
    ----------
    machine : as ``platform.machine()`` of Linux names it
    cpu : LLVM's name
    features : LLVM's names of the features that a processor must have
    """

    machine: str
    cpu: str
    features: frozenset[str]


_V3 = "avx avx2 bmi bmi2 cmov cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3"
LEVELS = {
    "x86-64-v3": MachineLevel("x86_64", "x86-64-v3", frozenset([*_V3.split(), "xsave"])),
    "arm64": MachineLevel("aarch64", "generic", frozenset(["fp-armv8", "neon"])),
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
        """Returns the entry of a name, None where there is none."""
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
    """Returns whether Python's objects have the layout that compiled wrappers expect."""
    return platform.python_implementation() == "CPython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def path_of(level: str) -> Path:
    return _ROOT / f"{level}.bundle"


def open_bundle(key: dict[str, Any], features: Mapping[str, bool]) -> Bundle:
    """Returns the bundle for this process, which is empty where none can be used.

    A warning gives the reason if the bundle is damaged, or if its versions or processor do not fit.

    key : the versions and settings that the code depends on here
    features : of this processor, by LLVM's names
    """
    level = level_here()
    if level is None or not is_usual_python():
        return Bundle()
    path = path_of(level)
    # Read the header
    try:
        with open(path, "rb") as file:
            first, second = file.readline(), file.readline()
            start = file.tell()
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return Bundle()
    # Check that the code fits this process
    header = _header(first, second, size - start)
    if header is not None and header["key"]["settings"] != key["settings"]:
        return Bundle()  # for example, bounds are to be checked
    why = (
        "it is damaged"
        if header is None
        else _describe_difference(header["key"], key) or _describe_lack(level, features)
    )
    if header is None or why is not None:
        _log.warning("the compiled kernels that came with colmatch (%s) are not used: %s", path, why)
        return Bundle()
    return Bundle(path, start, header["entries"])


def _header(first: bytes, second: bytes, size: int) -> dict[str, Any] | None:
    if first != _MAGIC + hashlib.sha256(second).hexdigest().encode() + b"\n":
        return None
    header: dict[str, Any] = json.loads(second)
    return header if header["size"] == size else None


def _describe_difference(made: dict[str, Any], here: dict[str, Any]) -> str | None:
    """Describes the first difference between a bundle's key and the key of this process."""
    for name, value in here.items():
        if made.get(name) != value:
            return f"they are for {name} {made.get(name)}, and this is {value}"
    return None


def _describe_lack(level: str, features: Mapping[str, bool]) -> str | None:
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
