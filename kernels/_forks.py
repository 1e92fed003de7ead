"""Locks that never keep a forked child waiting.

``os.fork`` copies a process at one moment, with one of its threads. The other threads are not in
the child. But their locks stay held, and the data that they were changing is half changed. A child
that needs such a lock would wait for ever. There are two ways out.

*Renewal.* A ``lock`` that another thread held is free in the child. An object registered by
``renew_in_child`` is called in the child, and repairs anything that another thread may have left
half done. A ``cached_property`` needs no lock at all.

*Waiting.* numba, LLVM and half imported modules cannot be renewed. So the thread that forks waits
until no other thread

- imports a module of ``IMPORTED``,
- compiles or loads a kernel, or is inside LLVM (``_jit.py`` passes these locks to ``wait_for``),
- is between two steps that belong together (``hold_off_forks``), which takes some microseconds.

An import may still begin between the last check and the fork. The child forgets it, and imports the
module itself.

A fork waits for one kernel at most: seconds where it is compiled, milliseconds where it is loaded.
Other threads release numba's lock after each kernel, and do not take it again while a fork waits
(``give_way``).

Order of locks: the thread that forks takes numba's before LLVM's, like a thread that compiles. It
holds none of them while it waits for an import, which needs numba's lock, or for such steps.
Its caller may hold a lock that the compiling thread waits for, such as a log handler's. For that
case the wait ends after ``WAIT_MOST``. The child can then run the kernels that are compiled, and
any other is an error (``is_torn``). A thread that forks while it holds one of numba's or LLVM's
locks goes on at once, since they are reentrant.

Before a fork, handlers run in the reverse order of their registration. A thread that compiles
writes to the log, and the handler of ``logging`` takes its lock. So ``logging`` has to be imported
before this module.
"""

import importlib
import logging  # noqa: F401 - so that its handler of forks runs after the one below
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Generic, Protocol, TypeVar, overload

T = TypeVar("T")

WAIT_MOST = 300.0  # seconds that a fork waits at most; a kernel took 60 where six threads shared a core
LEAST_SECONDS = 1.0  # seconds that a fork waits for each lock after ``WAIT_MOST``
TICK = 0.001  # seconds between two looks at imports, or at waiting forks

# packages from which matching and updating import on first use
IMPORTED = frozenset(
    ("colmatch", "numba", "llvmlite", "numpy", "pyarrow", "pandas", "sqlglot", "sqlglotc", "hyperscan", "tqdm")
)


class Renewed(Protocol):
    """An object that is called in the child after each fork."""

    def in_child(self) -> None:
        """Repairs anything that threads of the parent may have left half done.

        It waits for nothing, and reads no file.
        """


_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_renewed: weakref.WeakSet[Any] = weakref.WeakSet()
_waited: list[Any] = []
_forking: list[int] = []  # ids of threads that wait until they may fork
_about_to_fork: set[int] = set()  # ids of threads that wait or fork, until they have forked
_inside: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # ``Steps`` -> thread
_mine = threading.local()
_is_child = _is_torn = False


def lock() -> Any:
    """Makes a lock that is free in a child even if another thread of the parent held it.

    It is Python's own ``RLock``, since a lock written in Python could be interrupted between two
    steps.
    """
    rlock = threading.RLock()
    _locks.add(rlock)
    return rlock


def is_held(lock: Any) -> bool:
    """Returns whether this thread holds a lock."""
    return bool(lock._is_owned())


def renew_in_child(thing: Renewed) -> None:
    """Registers an object to be called in the child after each fork, as long as it lives."""
    _renewed.add(thing)


def wait_for(*locks: Any) -> None:
    """Keeps any fork waiting while another thread holds one of these locks.

    A fork takes the locks in this order, before the locks of earlier calls.
    """
    _waited.extend(locks[::-1])


class Steps:
    """Two steps or more that a child must see completely or not at all, as long as this object
    exists.

    It is made in a ``with`` statement, and no variable holds it. So it is freed when the block
    ends, even after an exception. A lock would stay held if an exception came just before its
    release.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def hold_off_forks() -> Steps:
    """Begins steps between which no process is forked: ``with hold_off_forks():``."""
    steps, me = Steps(), threading.get_ident()
    _inside[steps] = me
    while not _about_to_fork <= {me}:  # checked only after this thread is in ``_inside``
        del _inside[steps]
        time.sleep(TICK)
        _inside[steps] = me
    return steps


def give_way() -> None:
    """Waits until no fork waits for a lock that this thread is about to take."""
    while _forking:
        time.sleep(TICK)


def is_child() -> bool:
    """Returns whether this process was forked from a process that had this module."""
    return _is_child


def is_torn() -> bool:
    """Returns whether another thread was within numba or LLVM when this process was forked."""
    return _is_torn


class cached_property(Generic[T]):  # named like the one of functools
    """An attribute that is computed on first use, like ``functools.cached_property``.

    In Python 3.11 ``functools`` has one lock for all objects of a class; this one has none. Threads
    that read it at once may each compute the value, but all get the value that was stored first. So
    an object that is changed later is the only one.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, thing: None, owner: type) -> "cached_property[T]": ...

    @overload
    def __get__(self, thing: object, owner: type) -> T: ...

    def __get__(self, thing: Any, owner: type) -> Any:
        if thing is None:
            return self
        return thing.__dict__.setdefault(self._name, self._make(thing))


def _prepare_fork() -> None:
    end, me = time.monotonic() + WAIT_MOST, threading.get_ident()
    _forking.append(me)
    _about_to_fork.add(me)
    try:
        while True:
            # Take the locks of numba and LLVM
            _mine.taken = taken = []
            for each in _waited[::-1]:
                if each.acquire(timeout=max(end - time.monotonic(), LEAST_SECONDS)):
                    taken.append(each)
            # Keep them only if no other thread must be waited for
            others_work = _is_imported_by_others() or any(owner != me for owner in list(_inside.values()))
            if time.monotonic() > end or not others_work:
                return
            _release_taken()
            time.sleep(TICK)
    finally:
        _forking.remove(me)


def _is_imported_by_others() -> bool:
    """Returns whether another thread is importing a module that a child may need."""
    locks: dict[str, Any] = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    owners = {getattr(of(), "owner", None) for name, of in list(locks.items()) if name.partition(".")[0] in IMPORTED}
    return not owners <= {None, threading.get_ident()}


def _forget_imports() -> None:
    """Forgets imports that other threads began after the last look at them.

    Python has a lock for each module that is imported, and does not free it in a child.
    """
    locks: dict[str, Any] = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    for name, of in list(locks.items()):
        if getattr(of(), "owner", None) == threading.get_ident():
            continue
        locks.pop(name, None)  # Python makes another one
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]


def _finish_fork() -> None:
    _about_to_fork.discard(threading.get_ident())
    _release_taken()


def _release_taken() -> None:
    taken, _mine.taken = getattr(_mine, "taken", []), []
    for each in reversed(taken):
        each.release()


def _repair_child() -> None:
    global _is_child, _is_torn
    _is_child = True
    # Forget the other threads of the parent
    _forking.clear()
    _about_to_fork.clear()
    for steps, owner in list(_inside.items()):
        if owner != threading.get_ident():
            _inside.pop(steps, None)
    _release_taken()
    _forget_imports()
    # Free the locks, and drop those that cannot be freed
    for each in list(_locks):
        if not _is_free(each):
            each._at_fork_reinit()
    free = list(filter(_is_free, _waited))
    _is_torn = _is_torn or len(free) < len(_waited)
    _waited[:] = free  # its own children must not wait for locks that are never released
    with ExitStack() as all_of_them:  # all are called, even if one raises
        for thing in list(_renewed):
            all_of_them.callback(thing.in_child)


def _is_free(lock: Any) -> bool:
    """Returns whether this thread holds a lock, or could take it at once."""
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_prepare_fork, after_in_parent=_finish_fork, after_in_child=_repair_child)
