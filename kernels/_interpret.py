"""Kernels as plain Python: for small inputs, while there is no machine code.

To compile the kernels of a first match takes 20 seconds; to interpret them on three subscriptions
takes 0.05. So where a kernel has no machine code yet, a call with little work is interpreted, and
another process compiles meanwhile (``_background.py``). As soon as its file is there, the next call
loads it. What is interpreted is the same source, and gives the same results.

The work of a call must be known before, since a kernel that has begun to write cannot be given up.
``matching`` tells of batches: rows times subscriptions. All other kernels take time in proportion
to their arrays.

A kernel calls others by the names of its module, which stand for numba's compilers of them. Its
*twin* is the same code with other globals, in which each of these names stands for a twin. An
intrinsic, which is no Python, has a function in its place (``has_twin``).
"""

import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from colmatch.kernels import _forks

SMALL = 1_000_000  # elements of all arrays of a call
SMALL_MATCH = 10_000_000  # rows times subscriptions
ROW_ALONE = 100  # subscriptions that take as long as reading a row

_PACKAGE = __name__.rpartition(".")[0] + "."
_thread = threading.local()
_twins: dict[int, Any] = {}  # by id of what they are twins of, which lives as long as its module
_globals: dict[int, dict[str, Any]] = {}  # of twins, by id of the globals of what they are twins of


class Spent:
    """What this process has interpreted: seconds in all."""

    seconds = 0.0


@contextmanager
def matching(rows: int, subscriptions: int) -> Iterator[None]:
    """Tells the kernels that this thread calls how much work a batch is."""
    before = getattr(_thread, "is_small", None)
    _thread.is_small = rows * (subscriptions + ROW_ALONE) <= SMALL_MATCH
    try:
        yield
    finally:
        _thread.is_small = before


def is_small(arguments: tuple[Any, ...]) -> bool:
    """Says whether a call is so little work that it can be interpreted."""
    known: bool | None = getattr(_thread, "is_small", None)
    return _elements(arguments) <= SMALL if known is None else known


def _elements(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(map(_elements, value))
    return getattr(value, "size", 1)


def interpreted(kernel: Any) -> Callable[..., Any]:
    """Returns a function that does what a kernel does, and counts its seconds."""
    with _forks.whole:  # a twin is not to be seen before all of its globals are there
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
    if isinstance(value, types.ModuleType) and value.__name__.startswith(_PACKAGE):
        made = _twins[id(value)] = types.ModuleType(value.__name__)
        made.__dict__.update(_twin_globals(value.__dict__))
        return made
    function = getattr(value, "py_func", value)
    if not isinstance(function, types.FunctionType) or (function is value and not _is_own(value)):
        return value
    cells = tuple(types.CellType(twin(cell.cell_contents)) for cell in function.__closure__ or ())
    copy = _twins[id(value)] = types.FunctionType(
        function.__code__, _twin_globals(function.__globals__), function.__name__, function.__defaults__, cells
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _is_own(function: types.FunctionType) -> bool:
    return function.__module__.startswith(_PACKAGE) and not function.__module__.startswith(_PACKAGE + "_")


def _twin_globals(names: dict[str, Any]) -> dict[str, Any]:
    known = _globals.get(id(names))
    if known is None:
        known = _globals[id(names)] = {}
        known.update({name: twin(value) for name, value in list(names.items())})
    return known
