"""Sources that the machine code of a kernel depends on: its module, and all that it imports.

An edit makes stale the kernels that it can reach, and no others.

Modules with a leading underscore decide when kernels are compiled and where they are kept. They
change no machine code, so they are left out, except two. ``_jit.py`` has the settings of the
compiler, and ``_code.py`` selects the parts of a kernel that are kept. An ``__init__.py`` has no
code (``tests/test_house.py``) and is left out, too.

Machine code also depends on the types of arguments (``_code.describe_type``), and on versions,
settings and the processor (``_disk.py``).
"""

import functools
import hashlib
import os
import re

ROOT = os.path.dirname(os.path.abspath(__file__))
PACKAGE = __name__.rpartition(".")[0]
ALWAYS = frozenset(["_code.py", "_jit.py"])

Status = tuple[int, int]  # time of the last change in nanoseconds, bytes

# A regular expression, since Python's parser takes half a second for all sources.
# ``tests/kernels/test_closure.py`` compares the two.
_IMPORT = re.compile(rf"^[ \t]*from {re.escape(PACKAGE)}([.\w]*) import (\([^)]*\)|.*)".encode(), re.MULTILINE)


def _statuses() -> dict[str, Status]:
    """Returns the status of each source, by its path within the package; none in a zip file."""
    names = ((folder, name) for folder, _, names in os.walk(ROOT) for name in names)
    paths = [os.path.join(*one) for one in names if re.fullmatch(r"\w+\.py", one[1])]  # not links of editors
    try:
        return {os.path.relpath(path, ROOT).replace(os.sep, "/"): _status(path) for path in paths}
    except OSError:
        return {}


def _status(path: str) -> Status:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


class ChangedError(Exception):
    """A source has changed since this process imported it."""


@functools.cache
def _read(name: str) -> tuple[str, frozenset[str]]:
    """Returns a source's hash, and the sources that it imports.

    Raises ChangedError if the source has changed since this process imported it.
    """
    with open(os.path.join(ROOT, name), "rb") as file:
        status = os.fstat(file.fileno())
        data = file.read()
    if (status.st_mtime_ns, status.st_size) != STATUSES.get(name):
        raise ChangedError(name)
    imports = set()
    for package, names in _IMPORT.findall(data):
        place = package.decode().replace(".", "/").lstrip("/")
        inside = f"{place}/" if place else ""
        imports |= {f"{place}.py", *(f"{inside}{word.decode()}.py" for word in re.findall(rb"\w+", names))}
    return hashlib.sha256(data).hexdigest(), frozenset(imports & STATUSES.keys())


def closure(module: str) -> frozenset[str]:
    """Returns the sources that the kernels of a module depend on, as paths within the package.

    module : its dotted name within the package, such as ``kinds.trees.match``
    """
    sources: set[str] = set()
    todo = {f"{module.replace('.', '/')}.py", *ALWAYS}
    while todo:
        name = todo.pop()
        sources.add(name)
        if name not in ALWAYS:
            todo |= {one for one in _read(name)[1] - sources if not one.startswith("_")}
    return frozenset(sources)


@functools.cache
def _digest(module: str) -> tuple[str, frozenset[str]]:
    names = closure(module)
    return hashlib.sha256(repr(sorted((name, _read(name)[0]) for name in names)).encode()).hexdigest(), names


def digest(module: str) -> str | None:
    """Returns the hash of all sources that the kernels of a module depend on.

    It is None where a source cannot be read, or has changed since this process imported it.
    Otherwise old machine code would be filed under the new source's name. A source that was written
    again with the same content has not changed.
    """
    try:
        combined, names = _digest(module)
        return combined if all(map(_is_unchanged, names)) else None
    except (OSError, ChangedError):
        return None


def _is_unchanged(name: str) -> bool:
    path = os.path.join(ROOT, name)
    status = _status(path)
    if status == STATUSES.get(name):
        return True
    with open(path, "rb") as file:
        is_same = hashlib.sha256(file.read()).hexdigest() == _read(name)[0]
    if is_same and _status(path) == status:
        STATUSES[name] = status
    return is_same


STATUSES = _statuses()  # as this process imported them
