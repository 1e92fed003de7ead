"""Another process that compiles kernels while this one interprets them, and requests to it.

It is a process and not a thread, since half of compiling holds the interpreter's lock. It starts
when this process has interpreted for ``BEFORE`` seconds, so a short script starts none. It ends
with this process, or after ``IDLE`` seconds without a request.

Many processes may start at once, as Spark's workers do. Lock files in the folder of compiled
kernels make sure that nothing is compiled twice. Each kernel has a lock, held by any process that
compiles the kernel. The process that compiles for others holds ``BACKGROUND`` as long as it lives.
A second one waits for this lock before it imports anything, and then compiles the missing kernels.
The system frees the locks of a process, however it ends.
"""

import atexit
import logging
import os
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from colmatch.kernels import _folders, _forks

BEFORE = 0.3  # seconds that this process has interpreted
IDLE = 30.0  # seconds without a request after which the other process ends
BACKGROUND = "background.lock"

_log = logging.getLogger("colmatch")
_START = """
import sys
sys.path[:] = {path!r}
from colmatch.kernels import _background
held = _background.begin({lock!r})
from colmatch.kernels import _requests
_requests.compile_all(held)
"""


def can_start() -> bool:
    """Returns whether another process can be started: not from a program that embeds Python."""
    return os.path.basename(sys.executable or "").startswith("python")


class CompilerProcess:
    """The connection to the process that compiles, and the requests sent so far."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: set[bytes] = set()
        self._unsent = b""
        self._is_possible = True
        self._lock = _forks.lock()
        _forks.renew_in_child(self)

    def ask(self, request: bytes, folder: Path) -> bool:
        """Requests a kernel, once. Returns whether another process compiles it or will.

        request : the pickled arguments of ``_jit.keep``
        folder : the folder of compiled kernels, which holds the lock file
        """
        with self._lock:
            if not self._is_possible:
                return False
            if self._process is None or self._process.poll() is not None:
                self._is_possible = self._start(folder)
                if not self._is_possible:
                    return False
            if request not in self._asked:
                self._asked.add(request)
                self._unsent += struct.pack("<I", len(request)) + request
            self._send()
            return True

    def _start(self, folder: Path) -> bool:
        if self._process is not None and self._process.poll():  # it failed: it would fail again
            return False
        if os.name != "posix" or not can_start():
            return False  # no such pipes
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()  # it had nothing to do for a while, and ended
        # Start the process
        try:
            path = [place or os.getcwd() for place in sys.path if isinstance(place, str)]
            command = _START.format(path=path, lock=str(folder / BACKGROUND))
            _folders.make(folder)
            self._process = subprocess.Popen(
                [sys.executable, "-c", command],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that Ctrl-C does not end it
            )
        except OSError as error:
            _log.info("no other process compiles kernels: %s", error)
            return False
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._asked, self._unsent = set(), b""
        return True

    def _send(self) -> None:
        """Writes as many bytes of the requests as the pipe has room for."""
        assert self._process is not None and self._process.stdin is not None
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._process.stdin.fileno(), self._unsent) :]
        except (BlockingIOError, BrokenPipeError):
            pass

    def end(self) -> None:
        """Kills the other process. Files appear whole, so no kernel is left half written."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def in_child(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # it is no child of this process
            assert process.stdin is not None
            process.stdin.close()


compiler = CompilerProcess()
atexit.register(compiler.end)


def begin(lock: str) -> Any:
    """Waits, in the other process, until it may compile. Returns the open file with the lock."""
    end_with_parent()
    os.nice(5)
    return lock_file(Path(lock))


def end_with_parent() -> None:
    """Makes this process end as soon as the process that started it has ended."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:  # forks of the parent keep a pipe open
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=look, daemon=True).start()


def lock_file(path: Path, waits: bool = True) -> Any:
    """Takes the lock of a file, and returns the open file, which holds the lock until it is closed.

    Without file locks, as on Windows, several processes may compile the same kernel.

    waits : whether to wait for another process that holds the lock; otherwise the result is then
        None
    """
    file = open(path, "ab")
    try:
        import fcntl
    except ImportError:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
