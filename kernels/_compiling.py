"""The choice of the thread that compiles kernels, and messages to the user about compiling.

Python runs signal handlers in the main thread. If a handler raises an exception within numba, for
example after Ctrl-C, numba's registries become unusable: these are generators, and end.
LLVM's passes over a kernel take seconds, during which no handler runs. So the main thread never
compiles or loads a kernel. It has another thread do it and waits, and Ctrl-C ends this wait at
once. The other thread finishes its kernel, which is kept for the next call, and starts no other.

Threads of a pool would compile unnoticed by the thread that waits for them, which could not stop
them. There ``forbid_compiling`` makes the first call of a kernel an error, and the caller does that
work itself.

Ctrl-C ends the wait of the main thread within 0.2 s.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from colmatch.errors import KernelError
from colmatch.kernels import _forks

T = TypeVar("T")

SAY_AFTER = 1.0  # seconds of compiling in this process
TICK = 0.1  # seconds between looks at the clock; also how late a signal may be where waiting cannot be interrupted

# Part of a kernel's module -> use of the kernel. Each use has a message.
USES = {
    "topk": "find the best matches", "match_topk": "find the best matches", "update": "update rules", "change": "update rules",
    "labels": "update rules", "segments": "update rules", "sql": "read rules", "lowering": "read rules", "text": "search texts",
}  # fmt: skip
MATCHING = "match events"
ONCE = (
    "compiling kernels to {use}, once on this machine, which can take half a minute; `colmatch warm` does it beforehand"
)
EACH = (
    "compiling kernels to {use}, in each process since they cannot be kept, which can take half a minute; set "
    "COLMATCH_CACHE_DIR to a folder of your own that nobody else can write"
)
MEANWHILE = (
    "small inputs are interpreted, slowly, until another process has compiled the kernels for them, once on this machine; "
    "`colmatch warm` does it beforehand"
)

_log = logging.getLogger("colmatch")
_thread = threading.local()


class NotCompiledError(Exception):
    """An error: a thread called a kernel that it may neither compile nor load."""


class _Progress:
    """The progress of compiling in this process.

    Attributes
    ----------
    missed : modules of the kernels that were not on disk
    seconds : use of kernels -> time spent on calls that compiled them
    said : messages that the user has seen
    """

    def __init__(self) -> None:
        self.missed: list[str] = []
        self.seconds: dict[str, float] = {}
        self.said: set[str] = set()


state = _Progress()


@contextmanager
def forbid_compiling() -> Iterator[None]:
    """Makes the first call of a kernel raise ``NotCompiledError``, in this thread."""
    before = getattr(_thread, "compiled_only", False)
    _thread.compiled_only = True
    try:
        yield
    finally:
        _thread.compiled_only = before


def run_compiling(action: Callable[[], T], kept: Callable[[], bool]) -> T:
    """Runs ``action``, which compiles or loads a kernel, and returns its result.

    ``kept`` returns whether compiled kernels can be kept on disk.
    """
    check()
    # Refuse after a fork that left numba half way
    if _forks.is_torn():
        raise KernelError(
            "this process was forked while another thread of its parent compiled a kernel, and can neither compile nor "
            f"load one: the fork waited {_forks.WAIT_MOST:.0f} seconds for it. Fork before the parent matches, or when "
            "it has matched once"
        )
    _forks.give_way()
    began, misses = time.monotonic(), len(state.missed)

    def look() -> None:
        if len(state.missed) > misses:
            use, spent = _spent(misses, began)
            if spent >= SAY_AFTER:
                say((ONCE if kept() else EACH).format(use=use))

    # Run the action, and tell the user of a long wait
    try:
        result = _run_apart(action, look)
        look()
        return result
    finally:
        if len(state.missed) > misses:
            use, spent = _spent(misses, began)
            state.seconds[use] = spent


def _spent(first: int, began: float) -> tuple[str, float]:
    """Returns the use of a kernel that is compiled, and the seconds spent on such kernels so far.

    first : number of the kernel among those that were missed. Other kernels that it calls follow
    began : start of the call
    """
    folder, *parts = state.missed[first].split(".")
    other = f"match events with {parts[0]}" if folder == "kinds" else MATCHING
    use = next((USES[part] for part in (*parts, folder) if part in USES), other)
    return use, state.seconds.get(use, 0.0) + time.monotonic() - began


def check() -> None:
    """Raises ``NotCompiledError`` in a thread that may run compiled kernels only."""
    if getattr(_thread, "compiled_only", False):
        raise NotCompiledError("a kernel is not compiled yet")


def run_loading(action: Callable[[], T]) -> T:
    """Runs ``action``, which loads a kernel if there is one, and returns its result."""
    _forks.give_way()
    return _run_apart(action, lambda: None)


def _run_apart(action: Callable[[], T], look: Callable[[], None]) -> T:
    """Runs ``action`` in a thread where no signal handler runs."""
    if threading.current_thread() is not threading.main_thread():
        return action()
    busy = threading.Lock()  # not an event: a child could find its inner lock held
    busy.acquire()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(action())
        except BaseException as error:
            errors.append(error)
        finally:
            busy.release()

    # Run the action in another thread
    thread = threading.Thread(target=run, name="colmatch-compile", daemon=True)
    thread.start()
    # Wait in short steps
    while not busy.acquire(timeout=TICK):
        look()
        if not thread.is_alive() and busy.locked():  # a signal handler has forked, and this is the child
            return _run_apart(action, look)
    if errors:
        try:
            raise errors[0]
        finally:
            errors.clear()  # its traceback leads here
    return results[0]


def say(text: str) -> None:
    """Writes a warning once: to the log, or to standard error where nothing reads the log."""
    if text in state.said:
        return
    state.said.add(text)
    if _log.hasHandlers():
        _log.warning(text)
        return
    with suppress(AttributeError, OSError, ValueError):  # no standard error, or one that is closed
        # A line in the middle of a progress bar would leave pieces of it. A child has no bar,
        # and might wait for ever for the lock of its parent's bar.
        bars = None if _forks.is_child() or not sys.stderr.isatty() else sys.modules.get("tqdm")
        write = sys.stderr.write if bars is None else lambda line: bars.tqdm.write(line, sys.stderr, end="")
        write(f"colmatch: {text}\n")
        sys.stderr.flush()
