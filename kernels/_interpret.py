"""Kernels as plain Python: for small inputs, while there is no machine code.

Compiling the kernels of a first match takes 20 seconds. Interpreting them on three subscriptions
takes 0.05 seconds. So a call with little work is interpreted where its kernel has no machine code
yet, and another process compiles the kernel (``_background.py``). As soon as its file exists, the
next call loads it. Interpreted kernels have the same source, and give the same results.

The work of a call must be known before, since a kernel that has begun to write cannot be abandoned.
``WorkEstimate`` describes the batch: its rows, bytes and subscriptions. All other kernels take time
in proportion to their arrays.

A kernel calls others by the names of its module, which refer to numba's dispatchers. Its *twin* is
the same code with other globals, where each of these names refers to a twin. An intrinsic has no
Python code, so a function replaces it (``register_twin``).
"""

import threading
import time
import types
from collections.abc import Callable
from typing import Any

from colmatch.kernels import _forks

SMALL = 1_000_000  # elements of all arrays of a call
SMALL_MATCH = 5_000_000  # rows times subscriptions
SMALL_BYTES = 1_000_000  # of a batch
ROW_ALONE = 100  # subscriptions that take as long as reading a row

_PACKAGE = __name__.rpartition(".")[0] + "."
_thread = threading.local()
_twins: dict[int, Any] = {}  # id of a global, which lives as long as its module -> its twin
_lock = _forks.lock()


class Spent:
    """The time that this process has interpreted: seconds in all."""

    seconds = 0.0


class WorkEstimate:
    """A block that tells the kernels called by this thread how much work a match is."""

    __slots__ = ("_before", "_work")

    def __init__(self, batch: Any, subscriptions: int) -> None:
        self._work = batch, subscriptions

    def __enter__(self) -> None:
        self._before = getattr(_thread, "batch", None)
        _thread.batch = self._work

    def __exit__(self, *error: object) -> None:
        _thread.batch = self._before


def is_small(arguments: tuple[Any, ...]) -> bool:
    """Returns whether a call is so little work that it can be interpreted."""
    context: tuple[Any, int] | None = getattr(_thread, "batch", None)
    if context is None:
        return _elements(arguments) <= SMALL
    batch, subscriptions = context
    work: int = batch.num_rows * (subscriptions + ROW_ALONE)
    return work <= SMALL_MATCH and _bytes(batch) <= SMALL_BYTES


def _bytes(batch: Any) -> int:
    """Returns the bytes of a batch; of those that it shares with others, if Arrow does not know."""
    try:
        return int(batch.nbytes)
    except TypeError:  # pyarrow before 26, of string views
        return int(batch.get_total_buffer_size())


def _elements(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(map(_elements, value))
    return getattr(value, "size", 1)


def interpret_kernel(kernel: Any) -> Callable[..., Any]:
    """Returns a function that interprets a kernel, and counts its seconds."""
    function = find_twin(kernel)

    def call(*arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*arguments)
        finally:
            Spent.seconds += time.thread_time() - began

    return call


def register_twin(compiled: Any, function: Any) -> Any:
    """Registers the Python function that replaces an intrinsic. Returns the intrinsic."""
    _twins[id(compiled)] = function
    return compiled


def find_twin(value: Any) -> Any:
    """Returns the twin of a global for interpreted code. Most globals are their own twins."""
    entry = _twins.get(id(value))
    if entry is not None:
        return entry
    with _lock:
        making = _Making()
        result = making.make_twin(value)
        _twins.update(making.twins)  # all at once, or after Ctrl-C not at all
        return result


class _Making:
    """New twins, which no other thread sees until everything that they call exists."""

    def __init__(self) -> None:
        self.twins = dict(_twins)
        self._globals: dict[int, dict[str, Any]] = {}  # id of a kernel's globals -> globals of its twin

    def make_twin(self, value: Any) -> Any:
        entry = self.twins.get(id(value))
        if entry is not None:
            return entry
        if isinstance(value, types.ModuleType) and value.__name__.startswith(_PACKAGE):
            module = self.twins[id(value)] = types.ModuleType(value.__name__)
            module.__dict__.update(self._names(value.__dict__))
            return module
        function = getattr(value, "py_func", value)
        if not isinstance(function, types.FunctionType) or (function is value and not _is_own(value)):
            return value
        cells = tuple(types.CellType(self.make_twin(cell.cell_contents)) for cell in function.__closure__ or ())
        copy = self.twins[id(value)] = types.FunctionType(
            function.__code__, self._names(function.__globals__), function.__name__, function.__defaults__, cells
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

    def _names(self, names: dict[str, Any]) -> dict[str, Any]:
        twins = self._globals.get(id(names))
        if twins is None:
            twins = self._globals[id(names)] = {}
            twins.update({name: self.make_twin(value) for name, value in list(names.items())})
        return twins


def _is_own(function: types.FunctionType) -> bool:
    return function.__module__.startswith(_PACKAGE) and not function.__module__.startswith(_PACKAGE + "_")
