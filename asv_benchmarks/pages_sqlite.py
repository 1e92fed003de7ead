"""Pages of `pbtree` in a file of our own form and as rows in SQLite, in turns.

    python asv_benchmarks/pages_sqlite.py 1000000

SQLite's log, locks, snapshots and search for a page stand in the place of ours. What stands in
pages is the same, with its checksums, which SQLite lacks. The table has medians of processor time
and of time by the clock, and what SQLite takes times ours. What becomes of SQLite's files after a
fork, or a flipped bit, says ``pages_sqlite_faults.py``.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.measure import machine, versions
from workload import Workload, named

import colmatch as cm
from colmatch import matcher as matchers
from colmatch.kernels.kinds.pbtree.arrays import CHECKSUM, STAMP, STAMP_HIGH, WORDS
from colmatch.paged import build, reading
from colmatch.paged.cache import PAGE, checksum
from colmatch.paged.file import LOG_MOST, ROOT, PageFile

SHARES = (0.01, 0.05, 0.1, 0.3, 0.5, 1.0)  # of the file, in the cache
EVENTS, UPDATES, STORES = 64, 1000, ("ours", "SQLite")
STATE = struct.Struct("<QQ")  # update_number and pages, in row 0
Taken = dict[str, list[tuple[float, float]]]


class SqlitePages(PageFile):
    """Pages as rows, as far as one process needs that reads and changes them."""

    def __init__(self, path: str, cache_bytes: int, fsync: bool = False) -> None:
        self.known = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.known.executescript(f"PRAGMA cache_size=-4096; PRAGMA wal_autocheckpoint={LOG_MOST // PAGE}")
        super().__init__(path, cache_bytes, fsync)

    def refresh(self) -> bool:
        """Begins to read the last state, which nobody else changes here."""
        if not self.is_writer:
            self._end()
            self.known.execute("BEGIN")
        update_number, pages = STATE.unpack(*self.known.execute("SELECT data FROM page WHERE number = 0").fetchone())
        if self.update_number != update_number:
            self.generation, self.update_number, self.pages, self._there = 1, update_number, pages, pages
            self.in_log = np.zeros(pages, np.int64)
            self.cache.resize(pages)
        return True

    def _end(self) -> None:
        if self.known.in_transaction:
            self.known.execute("COMMIT")

    def _fill(self, first: int, views: list[memoryview]) -> None:
        last = first + len(views) - 1
        rows = self.known.execute("SELECT data FROM page WHERE number BETWEEN ? AND ? ORDER BY number", (first, last))
        for page, view, (data,) in zip(range(first, last + 1), views, rows, strict=True):
            view[:] = data
            assert self.cache.is_whole(page, view)

    def begin_writing(self) -> None:
        self._end()
        if not self.is_writer:
            self.known.execute(f"PRAGMA synchronous={'FULL' if self.fsync else 'NORMAL'}")
        self.known.execute("BEGIN IMMEDIATE")
        self.is_writer = True
        self.refresh()

    def commit(self) -> None:
        frames = self.cache.dirty_frames()
        frames = frames[np.argsort(self.cache.page[frames])]
        pages, update_number = self.cache.page[frames], self.update_number + 1
        rows = list(zip(self.cache.seal_pages(frames, pages, update_number), pages.tolist(), strict=True))
        old = int(np.searchsorted(pages, self._there))
        self.known.executemany("UPDATE page SET data = ? WHERE number = ?", rows[:old])
        self.known.executemany("INSERT INTO page (data, number) VALUES (?, ?)", rows[old:])
        self.known.execute("UPDATE page SET data = ? WHERE number = 0", (STATE.pack(update_number, self.pages),))
        self.known.execute("COMMIT")
        self.update_number, self._there = update_number, self.pages
        self.cache.dirty[frames] = 0
        self.cache.end_update()

    def checkpoint(self) -> None:
        self.known.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def write(path: str, pages: build.BuiltPages, generation: int, update_number: int) -> None:
    """Writes a new file, as ``build.write`` does."""
    Path(path).unlink(missing_ok=True)
    known = sqlite3.connect(path, isolation_level=None)
    known.executescript(f"PRAGMA page_size={PAGE}; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")
    known.executescript("CREATE TABLE page (number INTEGER PRIMARY KEY, data BLOB NOT NULL); BEGIN")
    known.execute("INSERT INTO page VALUES (0, ?)", (STATE.pack(update_number, pages.total),))
    words = np.concatenate(pages.blocks).reshape(-1, WORDS)
    words[:, STAMP], words[:, STAMP_HIGH] = update_number & 0xFFFFFFFF, update_number >> 32
    words[:, CHECKSUM] = [checksum(page.data.cast("B"), i) for i, page in enumerate(words, ROOT)]
    known.executemany("INSERT INTO page VALUES (?, ?)", ((i, page.data) for i, page in enumerate(words, ROOT)))
    known.executescript("PRAGMA journal_mode=WAL")  # Python commits before
    known.close()
    synced(path)


def synced(path: str | Path) -> None:
    """Brings a file to the disk, and out of the system's memory."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def kept(store: str, work: Callable[..., cm.Matcher], *given: Any, **settings: Any) -> cm.Matcher:
    """Builds or opens a matcher whose pages are kept in one of the two ways."""
    if store == "ours":
        return work(*given, **settings)
    rows = patch.object(reading, "PageFile", SqlitePages), patch.object(build, "write", write)
    with rows[0], rows[1], patch.object(matchers, "is_pages", os.path.isfile):
        return work(*given, **settings)


def timed(action: Callable[..., object], given: object) -> tuple[float, float]:
    """Returns seconds of the processor and of the clock."""
    clock, processor = time.perf_counter(), time.process_time()
    action(given)
    return time.process_time() - processor, time.perf_counter() - clock


def in_turns(action: Callable[[str], object], times: int) -> Taken:
    taken = [[timed(action, store) for store in STORES] for _ in range(times)]
    return {store: [row[i] for row in taken] for i, store in enumerate(STORES)}


def show(what: str, taken: Taken, unit: float, middle: Callable[..., float] = statistics.median) -> None:
    cells = []
    for times in zip(*([unit * middle(column) for column in zip(*taken[store])] for store in STORES)):
        cells += [*times, times[1] / times[0]]
    print("|", what, "|", " | ".join(f"{cell:.2f}" for cell in cells), "|", flush=True)


def main(count: int, folder: Path) -> None:
    workload = named("dense", subscriptions=count + UPDATES)
    print(machine(), versions("colmatch", "numba", "numpy"), f"SQLite {sqlite3.sqlite_version}\n", sep="\n")
    print("| | processor: ours | SQLite | times | clock: ours | SQLite | times |\n|---|---|---|---|---|---|---|")
    paths = {store: str(folder / store) for store in STORES}

    def built(store: str) -> None:
        kept(store, cm.Matcher.build, table, workload.schema(), index=cm.index("pbtree", path=paths[store])).close()

    for some, times in ((100, 1), (count, 3)):  # the first time compiles
        table = workload.predicate_table(0, some)
        taken = in_turns(built, times)
    show("build, s", taken, 1)
    show("open, ms", in_turns(lambda store: kept(store, cm.Matcher.open, paths[store]).close(), 15), 1e3)
    for share in SHARES:
        reads(workload, paths, share)
    for fsync in (False, True):
        updates(workload.texts(count, None).slice(0, UPDATES).to_pylist(), fsync, paths)
    print("\nMB:", *(f"{os.path.getsize(paths[store]) / 1e6:.0f}" for store in STORES))


def reads(workload: Workload, paths: dict[str, str], share: float) -> None:
    events, size = workload.events(EVENTS), max(int(share * os.path.getsize(paths["ours"])), 1 << 15)
    cold, warm = {store: [] for store in STORES}, {store: [] for store in STORES}
    for store in STORES * 3:
        synced(paths[store])
        with kept(store, cm.Matcher.open, paths[store], cache_bytes=size) as matcher:
            cold[store].append(timed(matcher.match, events))
            warm[store] += [timed(matcher.match, events) for _ in range(3)]
    show(f"event, ms, cache of {share:.0%}, disk cold", cold, 1e3 / EVENTS)
    show(f"event, ms, cache of {share:.0%}, warm", warm, 1e3 / EVENTS)


def updates(texts: list[dict[str, Any]], fsync: bool, paths: dict[str, str]) -> None:
    both = {store: kept(store, cm.Matcher.open, paths[store], fsync=fsync) for store in STORES}
    for what in ("insert", "delete"):
        taken: Taken = {store: [] for store in STORES}
        for one in texts:
            given = [(one["id"], one["expression"])] if what == "insert" else [one["id"]]
            for store in STORES:
                taken[store].append(timed(getattr(both[store], what), given))
        for name, middle in (("median", statistics.median), ("mean", statistics.fmean)):
            show(f"{what}{' with fsync' if fsync else ''}, us, {name}", taken, 1e6, middle)
    for matcher in both.values():
        matcher.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(int(sys.argv[1]), Path(name))
