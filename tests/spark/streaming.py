"""A stream whose driver and workers are killed, while its index changes and its events come in.

    python tests/spark/streaming.py 50 --seed 7

Each run of the stream is a process, ``run`` below. At the end nothing is lost, nothing is there
twice, and each batch has the matches of one version, that of its record.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import colmatch as cm
from colmatch.store.file import content_hash

ROWS = 50  # of a file, which is a batch
AHEAD = 5  # files that wait for the stream at most
FIRST = 240.0  # seconds in which a driver begins its first batch, or is killed without one


def run(folder: Path, once: bool) -> None:
    """Runs the stream until it is killed, or until it has done all that is there."""
    from colmatch.spark import local_session, match_stream

    quick = {"spark__ui__enabled": False, "spark__driver__extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    spark = local_session("2,4", spark__driver__bindAddress="127.0.0.1", **quick)  # a task may fail four times
    source = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    stream = match_stream(source, folder / "alerts", folder / "out", folder / "checkpoint", keep=["id"])
    if once:
        stream = stream.trigger(availableNow=True)
    stream.start().awaitTermination()


class Killed:
    """The outside of such a stream.

    Attributes
    ----------
    versions : the matchers that were saved, by what rows call them
    drivers, workers : how many were killed
    ended : how many streams ended with an error, because their workers were killed
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, Random(seed)
        self.versions: dict[str, cm.Matcher] = {}
        self.files = self.drivers = self.workers = self.ended = self.begun = 0
        (folder / "in").mkdir()
        self.save()
        self.add()

    def save(self) -> None:
        """Saves the next version. A subscription of all has each event."""
        number = len(self.versions)
        texts = {"all": "id >= 0", f"v{number}": f"id % 7 = {number % 7}", "some": f"id % {number % 5 + 2} = 0"}
        matcher = cm.Matcher.build(texts, {"id": "bigint"}, options=cm.Options(ansi=True))
        matcher.save(self.folder / "alerts")
        self.versions[content_hash(self.folder / "alerts")[:12]] = matcher

    def add(self) -> None:
        new = self.folder / ".new"
        pq.write_table(pa.table({"id": range(self.files * ROWS, (self.files + 1) * ROWS)}), new)
        new.rename(self.folder / "in" / f"{self.files:06}.parquet")
        self.files += 1

    def start(self, once: bool) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, __file__, "--run", str(self.folder), *["--once"] * once]
        with open(self.folder / "log", "ab") as log:
            return subprocess.Popen(arguments, stdout=log, stderr=log)

    def kill(self, workers_too: bool) -> None:
        """Starts the stream, and kills it within its next batches, or before them."""
        before, driver, started = self.batches(), self.start(once=False), time.monotonic()
        until = started + (self.rng.uniform(0, 10) if self.rng.random() < 0.1 else FIRST)
        begun, before_workers = False, self.workers
        while time.monotonic() < until and driver.poll() is None:
            time.sleep(self.rng.uniform(0, 0.5))
            if self.files < self.batches() + AHEAD:
                self.add()
            if self.rng.random() < 0.3:
                self.save()
            if not begun and self.batches() > before:
                begun, until = True, time.monotonic() + self.rng.uniform(0, 3)
            if begun and workers_too and self.rng.random() < 0.5:
                self.workers += kill_workers(driver.pid, self.rng)
        # A task whose worker is killed four times ends the stream with an error, which is as good.
        ended = driver.poll() is not None
        assert not ended or self.workers > before_workers, "the stream ended by itself: " + self.end_of_log()
        kill_all(driver)
        self.begun += begun
        self.drivers += not ended
        self.ended += ended

    def batches(self) -> int:
        """Returns the number of the last batch that was begun, from 1."""
        names = [path.name for path in (self.folder / "checkpoint/offsets").glob("*") if path.name.isdecimal()]
        return max(map(int, names), default=-1) + 1

    def finish(self) -> None:
        driver = self.start(once=True)
        try:
            assert driver.wait(900) == 0, self.end_of_log()
        finally:
            kill_all(driver)

    def end_of_log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def check(self) -> int:
        """Checks all that was written; returns how many batches there are."""
        found = ds.dataset(self.folder / "out", format="parquet", partitioning="hive").to_table()
        found = found.sort_by([("batch", "ascending"), ("id", "ascending")])
        everything = found.filter(pa.compute.equal(found["subscription"], "all"))
        assert sorted(everything["id"].to_pylist()) == list(range(self.files * ROWS))
        numbers = sorted(set(found["batch"].to_pylist()))
        assert numbers == list(range(len(numbers)))
        for number in numbers:
            batch = found.filter(pa.compute.equal(found["batch"], number))
            (version,) = set(batch["index_version"].to_pylist())
            events = pa.table({"id": sorted(set(batch["id"].to_pylist()))})
            pairs = self.versions[version].match(events, keep=["id"]).select(["id", "subscription"]).to_pylist()
            assert sorted(batch.select(["id", "subscription"]).to_pylist(), key=str) == sorted(pairs, key=str), number
            record = self.folder / f"checkpoint/colmatch/batches/{number}.json"
            if record.exists():
                told = json.loads(record.read_text())
                assert told["index_version"] == version and told.get("matches", len(pairs)) == len(pairs)
        left = {path.name for path in (self.folder / "checkpoint/colmatch/versions").iterdir()}
        assert len(left) <= 2 and all(name.startswith("colmatch-") for name in left)
        return len(numbers)


def processes() -> dict[int, tuple[int, str]]:
    """Returns parent and command of each process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(path.name)] = parent, (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def descendants(of: int) -> list[tuple[int, str]]:
    there, wanted, found = processes(), {of}, []
    while children := {pid: command for pid, (parent, command) in there.items() if parent in wanted}:
        wanted = set(children)
        found += children.items()
    return found


def kill_workers(driver: int, rng: Random) -> int:
    """Kills some of the Python workers of a driver, but not the process that makes them."""
    daemons = [pid for pid, command in descendants(driver) if "pyspark.daemon" in command]
    workers = [pid for daemon in daemons[:1] for pid, _ in descendants(daemon)]
    some = rng.sample(workers, min(len(workers), rng.choice([1, 2])))
    for pid in some:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(some)


def kill_all(driver: subprocess.Popen[bytes]) -> None:
    """Kills a driver with its JVM and its workers."""
    pids = [driver.pid, *(pid for pid, _ in descendants(driver.pid))]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    driver.wait()


def killed(kills: int, seed: int, folder: Path) -> str:
    """Kills a stream some times, and checks what it has written in the end."""
    stream = Killed(folder, seed)
    for number in range(kills):
        stream.kill(workers_too=number % 2 == 1)
        print(
            f"kill {number + 1}: batch {stream.batches()}, {stream.files} files, {len(stream.versions)} versions",
            flush=True,
        )
    assert stream.begun, "no driver began a batch before it was killed"
    stream.finish()
    batches = stream.check()
    return (
        f"{stream.drivers + stream.ended} streams killed, {stream.begun} of them within batches, {stream.ended} of them by "
        f"their workers alone, of which {stream.workers} were killed; {batches} batches, {stream.files * ROWS} events, "
        f"{len(stream.versions)} versions: nothing lost, nothing twice"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="run the stream of a folder instead")
    parser.add_argument("--once", action="store_true", help="with --run: end when all files are done")
    given = parser.parse_args()
    if given.run:
        run(given.run, given.once)
    else:
        with TemporaryDirectory() as name:
            print(killed(given.kills, given.seed, Path(name)))
