"""Kernels as plain Python: for small inputs, while there is no machine code.

To compile the kernels of a first match takes 20 seconds, and to interpret them on three
subscriptions 0.05 seconds. So where a kernel has no machine code yet, a call with little work is
interpreted, and another process compiles meanwhile (``_background.py``). As soon as its file is
there, the next call loads it. What is interpreted is the same source, and gives the same results.

The work of a call must be known before, since a kernel that has begun to write cannot be given up.
``Matching`` tells of batches: their rows, bytes and subscriptions. All other kernels take time in
proportion to their arrays.

A kernel calls others by the names of its module, which stand for numba's compilers of them. Its
*twin* is the same code with other globals, in which each of these names stands for a twin. An
intrinsic, which is no Python, has a function in its place (``has_twin``).
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
_twins: dict[int, Any] = {}  # by id of what they are twins of, which lives as long as its module
_lock = _forks.lock()


class Spent:
    """What this process has interpreted: seconds in all."""

    seconds = 0.0


class Matching:
    """Tells kernels that this thread calls how much work there is, as long as a block lasts."""

    __slots__ = ("_before", "_work")

    def __init__(self, batch: Any, subscriptions: int) -> None:
        self._work = batch, subscriptions

    def __enter__(self) -> None:
        self._before = getattr(_thread, "batch", None)
        _thread.batch = self._work

    def __exit__(self, *error: object) -> None:
        _thread.batch = self._before


def is_small(arguments: tuple[Any, ...]) -> bool:
    """Says whether a call is so little work that it can be interpreted."""
    known: tuple[Any, int] | None = getattr(_thread, "batch", None)
    if known is None:
        return _elements(arguments) <= SMALL
    batch, subscriptions = known
    work: int = batch.num_rows * (subscriptions + ROW_ALONE)
    return work <= SMALL_MATCH and bool(batch.nbytes <= SMALL_BYTES)


def _elements(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(map(_elements, value))
    return getattr(value, "size", 1)


def interpreted(kernel: Any) -> Callable[..., Any]:
    """Returns a function that does what a kernel does, and counts its seconds."""
    function = twin(kernel)

    def call(*arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*arguments)
        finally:
            Spent.seconds += time.thread_time() - began

    return call


def has_twin(compiled: Any, function: Any) -> Any:
    """Says which Python function does what an intrinsic does. Returns the intrinsic."""
    _twins[id(compiled)] = function
    return compiled


def twin(value: Any) -> Any:
    """Returns what stands for a global in interpreted code: most of them stand for themselves."""
    known = _twins.get(id(value))
    if known is not None:
        return known
    with _lock:
        making = _Making()
        made = making.twin(value)
        _twins.update(making.twins)  # whole, or after Ctrl-C not at all
        return made


class _Making:
    """Twins that no other thread sees until all that they call is there."""

    def __init__(self) -> None:
        self.twins = dict(_twins)
        self._globals: dict[int, dict[str, Any]] = {}  # of twins, by id of what they stand for

    def twin(self, value: Any) -> Any:
        known = self.twins.get(id(value))
        if known is not None:
            return known
        if isinstance(value, types.ModuleType) and value.__name__.startswith(_PACKAGE):
            made = self.twins[id(value)] = types.ModuleType(value.__name__)
            made.__dict__.update(self._names(value.__dict__))
            return made
        function = getattr(value, "py_func", value)
        if not isinstance(function, types.FunctionType) or (function is value and not _is_own(value)):
            return value
        cells = tuple(types.CellType(self.twin(cell.cell_contents)) for cell in function.__closure__ or ())
        copy = self.twins[id(value)] = types.FunctionType(
            function.__code__, self._names(function.__globals__), function.__name__, function.__defaults__, cells
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

    def _names(self, names: dict[str, Any]) -> dict[str, Any]:
        known = self._globals.get(id(names))
        if known is None:
            known = self._globals[id(names)] = {}
            known.update({name: self.twin(value) for name, value in list(names.items())})
        return known


def _is_own(function: types.FunctionType) -> bool:
    return function.__module__.startswith(_PACKAGE) and not function.__module__.startswith(_PACKAGE + "_")
