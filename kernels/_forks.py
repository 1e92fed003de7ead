"""No lock of a parent is needed by a forked child.

``os.fork`` copies a process at one moment, with one of its threads. The other threads are not in
the child, but the locks that they held are held there, and what they were changing is half changed.
A child that asked for such a lock would wait for ever. There are two ways out of that.

*Made anew.* A ``lock`` that another thread held is free in the child. What is ``renewed`` is told
that it is in a child, and makes good what another thread may have left half done. And
``cached_property`` needs no lock at all.

*Waited for.* numba and LLVM cannot be made anew, nor can a module that is half imported. So the
thread that forks waits, before it does, until no other thread

- imports a module of ``IMPORTED``,
- compiles or loads a kernel, or is inside LLVM (``_jit.py`` hands these locks to ``wait_for``),
- is between two steps that belong together (``whole``): some microseconds.

It waits for one kernel, for seconds where that is compiled and for milliseconds where it is loaded:
a thread lets go of numba's lock behind each, and takes it for no other while a fork waits
(``give_way``).

Who waits for whom: the thread that forks takes these locks in the order in which a thread that
compiles does, numba's before LLVM's, and ``whole`` last, inside which nobody takes another. It has
none of them while it waits for an import, which needs numba's. It may hold locks of its caller's,
which a thread that compiles could wait for: a handler of the log may have one. For that case the
wait ends after ``WAIT_MOST``. Then the child has what it has compiled already, and what it has not
is an error there (``is_torn``). A thread that forks inside of what it would wait for goes on at
once, since these locks let their holder in again.

Handlers run in the opposite order of their registration before a fork. So ``logging``, whose own
handler takes its lock, is imported here first: a thread that compiles writes to the log.
"""

import importlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Generic, Protocol, TypeVar, overload

T = TypeVar("T")

WAIT_MOST = 300.0  # seconds that a fork waits; a kernel took 60 where six threads shared a core
LEAST = 1.0  # seconds for each lock, even then
TICK = 0.001  # seconds between looks at imports

# packages that matching and updating import from when they are needed first
IMPORTED = frozenset(
    ("colmatch", "numba", "llvmlite", "numpy", "pyarrow", "pandas", "sqlglot", "sqlglotc", "re2", "tqdm")
)


class Renewed(Protocol):
    """What is told of a fork."""

    def in_child(self) -> None:
        """Makes good what threads that are not in this process may have left half done.

        It waits for nothing, and reads no file.
        """


_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_renewed: weakref.WeakSet[Any] = weakref.WeakSet()
_waited: list[Any] = []
_forking: list[int] = []  # threads that wait until they may fork
_mine = threading.local()
_is_child = _is_torn = False


def lock() -> Any:
    """Makes a lock that a child does not get from its parent's other threads.

    It is Python's own ``RLock``: what is in Python between its two halves, an interrupt could cut.
    """
    made = threading.RLock()
    _locks.add(made)
    return made


def is_held(lock: Any) -> bool:
    """Says whether this thread has a lock."""
    return bool(lock._is_owned())


def renewed(thing: Renewed) -> None:
    """Sees that something is told of each fork, in the child, for as long as it is there."""
    _renewed.add(thing)


def wait_for(*locks: Any) -> None:
    """Sees that no fork comes while another thread has one of these locks.

    They are taken before those that were named earlier, and in the order given.
    """
    _waited.extend(locks[::-1])


def give_way() -> None:
    """Waits until no fork waits for what this thread is about to take."""
    while _forking:
        time.sleep(TICK)


def is_child() -> bool:
    """Says whether this process was forked from one that had this module."""
    return _is_child


def is_torn() -> bool:
    """Says whether numba and LLVM are as another thread of the parent left them half way."""
    return _is_torn


class cached_property(Generic[T]):  # as functools names its own
    """An attribute that is made when it is first asked for, as that of ``functools`` is.

    That one has a lock for all objects of a class in Python 3.11, and none later. This one has
    none. Threads that ask at once may each make the value, but all get the one that is there first.
    So a value that is changed later stays the only one.
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


def _before() -> None:
    end = time.monotonic() + WAIT_MOST
    _forking.append(threading.get_ident())
    try:
        while True:
            _mine.taken = taken = []
            for each in _waited[::-1]:
                if each.acquire(timeout=max(end - time.monotonic(), LEAST)):
                    taken.append(each)
            if time.monotonic() > end or not _is_imported_by_others():
                return
            _release()
            time.sleep(TICK)
    finally:
        _forking.remove(threading.get_ident())


def _is_imported_by_others() -> bool:
    """Says whether another thread is importing a module that a child may need."""
    known: dict[str, Any] = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    owners = {getattr(of(), "owner", None) for name, of in list(known.items()) if name.partition(".")[0] in IMPORTED}
    # of threads that there are: in a child, the parent's others may have some
    return not (owners & sys._current_frames().keys()) <= {threading.get_ident()}


def _release() -> None:
    taken, _mine.taken = getattr(_mine, "taken", []), []
    for each in reversed(taken):
        each.release()


def _in_child() -> None:
    global _is_child, _is_torn
    _is_child = True
    _forking.clear()
    _release()
    for each in list(_locks):
        if not _is_free(each):
            each._at_fork_reinit()
    free = list(filter(_is_free, _waited))
    _is_torn = _is_torn or len(free) < len(_waited)
    _waited[:] = free  # lest its own children wait for what nobody gives back
    with ExitStack() as all_of_them:  # also those that come after one that fails
        for thing in list(_renewed):
            all_of_them.callback(thing.in_child)


def _is_free(lock: Any) -> bool:
    """Says whether this thread has a lock or may have it."""
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


whole = lock()  # held between two steps that a child must see both of, or none
wait_for(whole)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
