"""What becomes of a file of SQLite with a log (WAL) in cases that our files of pages outlast.

    python asv_benchmarks/pages_sqlite_faults.py

Each case is a line. It needs nothing but Python, on Linux.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS = 3000
COUNT = "SELECT count(*) FROM page WHERE data LIKE 'new%'"
OTHER = """
import sqlite3, sys
known = sqlite3.connect(sys.argv[1], isolation_level=None)
known.execute("UPDATE page SET data = zeroblob(4000) WHERE number = 1")
told = known.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
known.execute("UPDATE page SET data = zeroblob(3999) WHERE number % 2")
known.close()
print("it was kept from copying the log" if told[0] else "it copied the log as if nobody read")
"""


def opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def build_pages(folder: Path, name: str) -> Path:
    path = folder / name
    with opened(path) as known:
        known.execute("PRAGMA journal_mode=WAL")
        known.execute("CREATE TABLE page (number INTEGER PRIMARY KEY, data BLOB)")
        known.execute("BEGIN")
        known.executemany("INSERT INTO page VALUES (?, zeroblob(4096))", ((i,) for i in range(ROWS)))
    known.close()
    return path


def other(path: Path) -> str:
    """Has another process change the file and close it."""
    return subprocess.run(
        [sys.executable, "-c", OTHER, path], check=True, capture_output=True, text=True
    ).stdout.strip()


def updated(path: Path) -> tuple[sqlite3.Connection, list[int]]:
    """Makes five updates. Returns the connection, and where each ends in the log."""
    known, ends = opened(path), []
    for i in range(5):
        known.execute("UPDATE page SET data = ? WHERE number = ?", ("new" * 1000, i))
        ends.append(os.path.getsize(f"{path}-wal"))
    return known, ends


def new(known: sqlite3.Connection) -> int:
    found: int = known.execute(COUNT).fetchone()[0]
    return found


def a_flipped_bit_of_the_log(folder: Path) -> str:
    path, copy = build_pages(folder, "flip"), folder / "copy"
    _writer, ends = updated(path)
    shutil.copy(path, copy)
    log = bytearray(Path(f"{path}-wal").read_bytes())
    log[ends[1] - 2000] ^= 1  # of the second update
    Path(f"{copy}-wal").write_bytes(log)
    again = opened(copy)
    (said,) = again.execute("PRAGMA integrity_check").fetchone()
    return f"{new(again)} of 5 finished updates are there, integrity_check says {said!r}"


def a_process_that_reads_its_own_file(folder: Path) -> str:
    path = build_pages(folder, "read")
    known, _ = updated(path)
    path.read_bytes()  # to close the file lets go of all locks of this process
    other(path)
    before = new(known)
    known.execute("UPDATE page SET data = ? WHERE number = 20", ("new" * 1000,))
    code = f"import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute({COUNT!r}).fetchone())"
    elsewhere = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True).stdout
    return f"after one more update it has {new(known) - before} more row, other processes see {int(elsewhere) - 3} more"


def a_forked_child_with_a_connection_of_its_own(folder: Path) -> str:
    path = build_pages(folder, "fork")
    known, _ = updated(path)
    ready, go, done = os.pipe(), os.pipe(), os.pipe()
    if not os.fork():
        own = opened(path)
        own.executescript("PRAGMA cache_size=1; BEGIN")
        seen = []
        for _ in range(2):
            seen.append(own.execute("SELECT sum(length(data)) FROM page").fetchone())
            os.write(ready[1], b"x")
            os.read(go[0], 1)
        os.write(done[1], f"in one transaction the child reads {seen[0][0]:,} bytes, then {seen[1][0]:,}".encode())
        os._exit(0)
    os.read(ready[0], 1)
    known.close()
    told = other(path)
    os.write(go[1], b"xx")
    said = os.read(done[0], 999).decode()
    os.wait()
    return f"of another process: {told}; {said}"


def a_log_beside_another_file(folder: Path) -> str:
    one, two = build_pages(folder, "one"), build_pages(folder, "two")
    _writer, _ = updated(one)
    shutil.copy(f"{one}-wal", f"{two}-wal")
    return f"updates of one file stand in the other: {new(opened(two))} of 5"


def readers_that_take_turns(folder: Path) -> str:
    path = build_pages(folder, "long")
    readers, writer = [opened(path), opened(path)], opened(path)
    for i in range(ROWS):
        if i % 10 == 0:  # one begins, and then the other one ends
            readers[0].execute("BEGIN")
            readers[0].execute("SELECT data FROM page").fetchone()
            if i:
                readers[1].execute("COMMIT")
            readers.reverse()
        writer.execute("UPDATE page SET data = zeroblob(4001) WHERE number = ?", (i,))
    size = os.path.getsize(f"{path}-wal") / 1e6
    return f"the log, which should be copied at 4 MB, has {size:.0f} MB after {ROWS:,} updates"


if __name__ == "__main__":
    print(f"SQLite {sqlite3.sqlite_version}")
    with tempfile.TemporaryDirectory() as name:
        for case in (
            a_flipped_bit_of_the_log,
            a_process_that_reads_its_own_file,
            a_forked_child_with_a_connection_of_its_own,
            a_log_beside_another_file,
            readers_that_take_turns,
        ):
            print(f"{case.__name__.replace('_', ' ')}: {case(Path(name))}", flush=True)
