"""How times are taken: in turns, and by medians."""

from __future__ import annotations

import gc
import os
import platform
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def seconds(action: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """What one call takes.

    With ``time.process_time`` of the processor, on which other programs have less influence.
    """
    gc.collect()
    began = clock()
    action()
    return clock() - began


def medians(
    actions: Mapping[str, Callable[[], Any]],
    repeat: int,
    budget: float = 60.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each action, all measured in turns so that whatever else the machine does
    hits all alike.

    At most ``repeat`` rounds; at least one, and no new one when ``budget`` seconds are over.
    """
    taken: dict[str, list[float]] = {name: [] for name in actions}
    began = time.perf_counter()
    for number in range(repeat):
        if number and time.perf_counter() - began > budget:
            break
        for name, action in actions.items():
            taken[name].append(seconds(action, clock))
    return {name: statistics.median(times) for name, times in taken.items()}


@contextmanager
def within(limit: float, clock: Callable[[], float] = time.perf_counter) -> Iterator[None]:
    """Ends what takes longer than so many seconds of a clock, once it comes back to Python.

    Engines may make an error of their own of it.

    Raises
    ------
    TimeoutError : it did
    """

    ended: list[TimeoutError] = []

    def late(*_: Any) -> None:
        ended.append(TimeoutError(f"over {limit:g} s"))
        raise ended[0]

    processor = clock is time.process_time
    timer, number = (signal.ITIMER_PROF, signal.SIGPROF) if processor else (signal.ITIMER_REAL, signal.SIGALRM)
    before = signal.signal(number, late)
    signal.setitimer(timer, limit, 1.0)  # again, where an engine catches it
    try:
        yield
    except Exception as error:
        if ended and error is not ended[0]:
            raise ended[0] from error
        raise
    finally:
        signal.setitimer(timer, 0.0)
        signal.signal(number, before)


def one_thread() -> None:
    """Whatever shares this process with colmatch, which is measured on one thread, gets one as
    well.

    Before polars is imported.
    """
    import pyarrow as pa

    os.environ.setdefault("POLARS_MAX_THREADS", "1")

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def machine() -> str:
    """Processor, number of cores, system, day."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {datetime.now(UTC):%Y-%m-%d}"


def versions(*packages: str) -> str:
    """Python and packages with their versions."""
    found = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} from a source folder" if package == "colmatch" else f"no {package}")
    return ", ".join(found)
