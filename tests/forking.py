"""Children that are forked to do something, and ended if they hang."""

from __future__ import annotations

import os
import select
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

HANGS = "the child hangs"


def fork() -> int:
    """Forks, whatever threads there are: Python 3.12 and later warn of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def in_child(action: Callable[[], Any], seconds: float = 120) -> str:
    """Makes a child do something. Returns its result, or what went wrong, as a text.

    A child that takes too long is ended; its result is ``HANGS``.
    """
    answer, write = os.pipe()
    child = fork()
    if not child:  # the child runs nothing else, so no test ends twice
        try:
            os.write(write, repr(action()).encode())
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(write)
    said = b""
    try:
        while select.select([answer], [], [], seconds)[0]:
            more = os.read(answer, 1 << 16)
            if not more:
                return said.decode()
            said += more
        return HANGS
    finally:
        os.close(answer)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def beside(action: Callable[[Callable[[], None]], Any], after: float | None = None) -> Iterator[threading.Thread]:
    """Does something in another thread, which stops where it calls its argument.

    The thread goes on at the end of the block, or ``after`` so many seconds.
    """
    there, go_on = threading.Event(), threading.Event()

    def stand() -> None:
        there.set()
        go_on.wait(after)

    def run() -> None:
        try:
            action(stand)
        finally:
            there.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert there.wait(120)
        yield thread
    finally:
        go_on.set()
        thread.join()


@contextmanager
def held(lock: Any, after: float | None = None) -> Iterator[None]:
    """Lets another thread hold a lock."""

    def hold(stand: Callable[[], None]) -> None:
        with lock:
            stand()

    with beside(hold, after):
        yield
