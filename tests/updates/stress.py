"""Threads match while others update and merge, and whatever is seen must be of one version.

    python tests/updates/stress.py --kinds bitslice opindex auto --threads 1 2 --seconds 600

What every table of events must show, however it is cut:

- *Pairs* are inserted, replaced and deleted in one call: a row shows both of one, or none.
- One pair of each thread has a text, and the name of a definition with this text. One call changes
  both the text and the definition.
- A *counter* is one subscription that matches every row. One call exchanges it for the next one:
  all rows show the same, and none that is older than the last call that had returned before.
- Nothing is found twice, and in the end there is what was inserted last.
"""

from __future__ import annotations

import argparse
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import colmatch as cm
from colmatch.matching import threads as workers_threads
from colmatch.matching import worker
from colmatch.updates import policy

SCHEMA = pa.schema({"x": pa.int64(), "s": pa.string(), "d": pa.float64()})
COUNTERS = 1 << 40  # ids: pairs below, counters above
OF_ONE = 1 << 32  # ids of counters of one thread
PAIRS = 1 << 30  # ids of pairs of one thread
MOST_PAIRS = 60  # of a thread
STREAM = 300  # rows of a batch of a stream
OLD = 40  # counters that have gone by and are not deleted yet
SMALL = {"GROWING_MOST": 48, "DELETED_LEAST": 32}  # of ``policy``: many merges
SINK = 1500  # matches of a batch that are held before it is cut
SHARE = 100  # rows of a batch that a thread takes


@dataclass
class Outcome:
    """What was done, and what was wrong."""

    tables: int = 0
    matches: int = 0
    updates: int = 0
    subscriptions: int = 0
    merges: int = 0
    compacted: int = 0
    violations: list[str] = field(default_factory=list)


class Updating:
    """One thread that updates: its pairs and its counter.

    Attributes
    ----------
    there : text of each of its subscriptions, as of the last update that has returned
    begun, done : the counter's number as of the last update that has begun, that has returned
    """

    def __init__(self, matcher: cm.Matcher, number: int, seed: int) -> None:
        self.matcher = matcher
        self.rng = Random(f"{seed} {number}")
        self.there: dict[int, str] = {}
        self.begun = self.done = 0
        self.updates = self.subscriptions = 0
        self._counter = COUNTERS + number * OF_ONE
        self._pairs = number * PAIRS
        self._old: list[int] = []
        self._defined = 2 * (self._pairs + PAIRS - 1)
        self._name = f"same_{number}"
        self._replace({self._counter: "x IS NULL OR x IS NOT NULL"})
        self._redefine({self._defined + 1: self._name})

    def one(self) -> None:
        """Makes an update of some kind, after a moment that others have."""
        time.sleep(self.rng.choice([0, 0.001, 0.005]))
        most = self.rng.choice([1, 1, 1, 1, 5, 60])
        pairs = sorted({id // 2 for id in self.there if id < COUNTERS and id // 2 != self._defined // 2})
        some = self.rng.sample(pairs, min(most, len(pairs)))
        what = self.rng.random()
        if what < 0.35 or not pairs:
            self._count()
        elif len(self._old) > OLD:
            self._delete(self._old)
            self._old = []
        elif what < 0.6 and len(pairs) < MOST_PAIRS:
            first = max(pairs) + 1
            self._replace(self._texts(range(first, first + most)), insert=True)
        elif what < 0.8:
            self._replace(self._texts(some))
        elif what < 0.9:
            self._redefine({})
        elif what < 0.98:
            self._delete([id for pair in some for id in (2 * pair, 2 * pair + 1)])
        else:
            self._refused(some[0])

    def _count(self) -> None:
        old = self._counter + self.begun
        self.begun += 1
        texts = {old + 1: "x IS NULL OR x IS NOT NULL"}
        if not any(id < COUNTERS and id != self._defined and id != self._defined + 1 for id in self.there):
            texts |= self._texts([self._pairs])
        if self.rng.random() < 0.5:
            self.matcher.update(delete=[old], upsert=texts)
            del self.there[old]
            self.there |= texts
            self._counted(1 + len(texts))
        else:
            self._replace({old: "x < -1"} | texts)
            self._old.append(old)
        self.done = self.begun

    def _redefine(self, more: dict[int, str]) -> None:
        text = a_text(self.rng)
        self.matcher.update(define={self._name: text}, upsert={self._defined: text} | more)
        self.there |= dict.fromkeys((self._defined, self._defined + 1), text)
        self._counted(2)

    def _texts(self, pairs: Any) -> dict[int, str]:
        texts = {}
        for pair in pairs:
            texts[2 * pair] = texts[2 * pair + 1] = a_text(self.rng)
        return texts

    def _replace(self, texts: dict[int, str], insert: bool = False) -> None:
        (self.matcher.insert if insert else self.matcher.upsert)(texts)
        self.there |= texts
        self._counted(len(texts))

    def _delete(self, ids: list[int]) -> None:
        self.matcher.delete(ids)
        for id in ids:
            del self.there[id]
        self._counted(len(ids))

    def _refused(self, pair: int) -> None:
        try:
            self.matcher.upsert({2 * pair: "x < -1", 2 * pair + 1: "y = 1"})
        except cm.ExpressionError:
            return
        raise AssertionError("an expression about a column that is not there was taken")

    def _counted(self, subscriptions: int) -> None:
        self.updates += 1
        self.subscriptions += subscriptions


def a_text(rng: Random) -> str:
    x, s, t, d = rng.randrange(60), rng.randrange(12), rng.randrange(1000), round(rng.random(), 3)
    return rng.choice(
        [
            f"x > {x} AND s IN ('v{s}', 'v{t}')",
            f"(d < {d} OR s = 'v{s}') AND x <> {x}",
            f"x BETWEEN {x} AND {x + 5} AND NOT (s = 'v{s}')",
            f"s LIKE '%{s}' AND x IN ({x}, {x + 1}, {t})",
            f"d >= {d} AND x <= {x} OR s IS NULL AND x = {x}",
        ]
    )


def events(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    strings = np.array([f"v{i}" for i in range(12)], object)[rng.integers(0, 12, rows)]
    columns = [rng.integers(0, 60, rows), strings, rng.random(rows)]
    table = pa.table([pa.array(column, mask=rng.random(rows) < 0.05) for column in columns], SCHEMA)
    return pa.concat_tables([table.slice(0, rows // 3), table.slice(rows // 3)])  # in chunks


def wrong(event: np.ndarray, id: np.ndarray, rows: int, counters: list[tuple[int, int]]) -> str | None:
    """Says what is wrong about the matches of events that must have seen one version.

    counters : numbers that the counter of each thread may have
    """
    pair = id < COUNTERS
    both = np.stack([event[pair], id[pair] >> 1, id[pair] & 1], 1)
    both = both[np.lexsort(both.T[::-1])]
    if len(both) % 2 or (both[::2, :2] != both[1::2, :2]).any() or (both[:, 2] != np.arange(len(both)) % 2).any():
        return "one of a pair without the other, or twice"
    event, id = event[~pair], id[~pair] - COUNTERS
    for thread, (least, most) in enumerate(counters):
        own = id // OF_ONE == thread
        if not np.array_equal(np.sort(event[own]), np.arange(rows)):
            return f"not one state of a counter in each row: {own.sum()} in {rows} rows"
        seen = set((id[own] % OF_ONE).tolist())
        if len(seen) > 1 or not least <= min(seen) <= most:
            return f"counters {sorted(seen)[:9]}: one from {least} to {most} was to be seen"
    return None


@contextmanager
def going_on(actions: list[Callable[[], Any]], errors: list[str]) -> Iterator[None]:
    """Does each thing over and over in a thread of its own, until the end of the block."""
    stop = threading.Event()

    def run(action: Callable[[], Any]) -> None:
        try:
            while not stop.is_set():
                action()
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=run, args=(action,), daemon=True) for action in actions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(120)
            if thread.is_alive():
                errors.append("a thread does not end")


def stress(
    kind: str, threads: int, seconds: float, updates: int | None = None, rows: int = 800, seed: int = 0
) -> Outcome:
    """Runs for some seconds, or until so many updates were made.

    threads : of the matcher; its batches are of 128 rows at most, or of all
    """
    outcome, lock = Outcome(), threading.Lock()
    tables = [events(rows, i) for i in range(3)]
    with (
        patch.multiple(worker, FIRST_CAPACITY=SINK, LARGE_CAPACITY=SINK),
        patch.object(workers_threads, "SHARE_ROWS", SHARE),
        patch.multiple(policy, **SMALL),
    ):
        base = {-1 - i: f"({a_text(Random(i))}) AND x = 99" for i in range(min(3 * rows, 1000))}
        matcher = cm.Matcher.build(base, SCHEMA, index=kind, options=cm.Options(threads=threads, batch_rows=128))
        updating = [Updating(matcher, number, seed) for number in range(2)]
        choice = Random(seed)

        def ask() -> None:
            table = choice.choice(tables)
            options = cm.Options(threads=threads, batch_rows=choice.choice([128, 8192]))
            matcher.options = options  # of all threads that ask
            way = choice.choice(["match", "lists", "stream"])
            parts = [table] if way != "stream" else [table.slice(start, STREAM) for start in range(0, rows, STREAM)]
            reader = pa.RecordBatchReader.from_batches(
                SCHEMA, [b for p in parts for b in p.combine_chunks().to_batches()]
            )
            least = [each.done for each in updating]
            if way == "lists":
                lists = matcher.match_lists(table).combine_chunks()
                event, id = lists.value_parent_indices().to_numpy(), lists.flatten().to_numpy()
            else:
                found = matcher.match(table if way == "match" else reader)
                event, id = (found[name].to_numpy() for name in found.column_names)
            most = [each.begun for each in updating]
            for part, start in zip(parts, range(0, rows, STREAM), strict=False):
                among = (event >= start) & (event < start + len(part))
                what = wrong(event[among] - start, id[among], len(part), list(zip(least, most, strict=True)))
                if what is not None:
                    outcome.violations.append(f"{kind}, {threads} threads, {options.batch_rows} rows, {way}: {what}")
            with lock:
                outcome.tables += 1
                outcome.matches += len(id)

        def compact() -> None:
            time.sleep(choice.choice([0.01, 0.3]))
            matcher.compact()
            outcome.compacted += 1

        end = time.monotonic() + seconds
        with going_on([ask, ask, *(each.one for each in updating), compact], outcome.violations):
            while time.monotonic() < end and not outcome.violations:
                time.sleep(0.01)
                if updates is not None and min(outcome.tables, *(each.updates for each in updating)) >= updates:
                    break
        outcome.updates = sum(each.updates for each in updating)
        outcome.subscriptions = sum(each.subscriptions for each in updating)
        outcome.merges = matcher.stats()["merges"]
        outcome.violations += [matcher.stats()["merge_error"]] if matcher.stats()["merge_error"] else []
        there = base | {id: text for each in updating for id, text in each.there.items()}
        fresh = cm.Matcher.build(there, SCHEMA, index=kind)
        both = [sorted(zip(*m.match(tables[0]).to_pydict().values(), strict=True)) for m in (matcher, fresh)]
        if both[0] != both[1]:
            outcome.violations.append(f"{kind}: in the end there is something else than a fresh build has")
        matcher.close()
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=["bitslice", "opindex", "auto"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="of a matcher")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each kind and number of threads")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong = 0
    for kind in given.kinds:
        for threads in given.threads:
            outcome = stress(kind, threads, given.seconds, seed=given.seed)
            wrong += len(outcome.violations)
            print(f"{kind}, threads={threads}: {len(outcome.violations)} violations, {outcome.tables:,} tables, "
                  f"{outcome.matches:,} matches, {outcome.updates:,} updates of {outcome.subscriptions:,} subscriptions, "
                  f"{outcome.merges:,} merges, {outcome.compacted:,} of them forced", flush=True)  # fmt: skip
            print(*outcome.violations[:5], sep="\n")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
