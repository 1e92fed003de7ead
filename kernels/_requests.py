"""The work of the process that compiles kernels in the background (``_background.py``)."""

import os
import pickle
import queue
import struct
import sys
import threading
from typing import Any

from colmatch.kernels import _jit
from colmatch.kernels._background import IDLE


def compile_all(held: Any) -> None:
    """Compiles the kernels requested on standard input, and ends the process.

    held : the open file with the lock, which is free when the process ends
    """
    requests: queue.Queue[bytes] = queue.Queue()

    def read() -> None:
        while len(head := sys.stdin.buffer.read(4)) == 4:
            requests.put(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
        os._exit(0)  # the process that sends requests has ended

    threading.Thread(target=read, daemon=True).start()
    try:
        while True:
            _jit.keep(*pickle.loads(requests.get(timeout=IDLE)))
    except queue.Empty:
        os._exit(0)
    finally:
        os._exit(1)
