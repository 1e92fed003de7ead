"""Threads for batches: each batch is a task, and results come in the order of the batches."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from colmatch.kernels._compiling import NotCompiledError, forbid_compiling

SHARE_ROWS = 1024  # least rows of a part, if threads share a single batch

Seen = TypeVar("Seen")
Result = TypeVar("Result")


def cores(threads: int) -> int:
    """Returns the number of threads to run.

    threads : number from the options, or 0 for one on each core that this process may use
    """
    if threads:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_in_order(
    batches: Iterator[tuple[pa.RecordBatch, Seen]],
    threads: int,
    task: Callable[[pa.RecordBatch, Seen, int], Iterator[Result]],
) -> Iterator[Result]:
    """Yields the results of ``task`` for each batch, in the order of the batches.

    ``task`` takes a batch, the object that came with the batch, and the number of its first row.
    Kernels release the interpreter's lock, so threads run at once. At most one batch a thread waits
    for its turn. A task runs in one thread and must share no working memory with another. The
    threads run compiled kernels only. A task that needs another kernel is given up, and done again
    in the caller's thread. A child that is forked in between has none of the pool's threads, so its
    only thread does all remaining work.
    """
    offset = 0
    if threads == 1:
        for batch, seen in batches:
            yield from task(batch, seen, offset)
            offset += batch.num_rows
        return
    first = next(batches, None)
    if first is None:
        return
    second = next(batches, None)
    if second is None and first[0].num_rows < 2 * SHARE_ROWS:
        yield from task(*first, offset)
        return
    if second is None:
        whole, seen = first
        size = max(-(-whole.num_rows // threads), SHARE_ROWS)
        batches = ((whole.slice(start, size), seen) for start in range(0, whole.num_rows, size))
    else:
        batches = chain((first, second), batches)
    pending: deque[tuple[pa.RecordBatch, Seen, int, Future[list[Result]]]] = deque()

    def run_in_pool(batch: pa.RecordBatch, seen: Seen, offset: int) -> list[Result]:
        with forbid_compiling():
            return list(task(batch, seen, offset))

    def next_result() -> list[Result]:
        *arguments, future = pending.popleft()
        try:
            if os.getpid() == owner:
                return future.result()
        except NotCompiledError:
            pass
        return list(task(*arguments))

    pool, owner = ThreadPoolExecutor(threads, "colmatch"), os.getpid()
    try:
        for batch, seen in batches:
            if os.getpid() != owner:
                while pending:
                    yield from next_result()
                yield from task(batch, seen, offset)
            else:
                pending.append((batch, seen, offset, pool.submit(run_in_pool, batch, seen, offset)))
            offset += batch.num_rows
            if len(pending) > threads:
                yield from next_result()
        while pending:
            yield from next_result()
    finally:
        if os.getpid() == owner:  # in a child, threads that do not exist may hold its locks
            for *_, future in pending:
                future.cancel()
            pool.shutdown()
