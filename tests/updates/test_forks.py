"""A child process has none of its parent's threads, and waits for none of them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import inside
import pyarrow as pa
import pytest
from contract import NO_JIT, pairs
from forking import beside, held, in_child
from stress_forks import stress

import colmatch as cm
from colmatch.events import range_reader
from colmatch.events.reader import Reader
from colmatch.kernels import _forks
from colmatch.matching.threads import run_in_order
from colmatch.sql import stack
from colmatch.updates import segments

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")

SCHEMA = pa.schema({"a": pa.int64(), "s": pa.string()})
TEXTS = {1: "a = 1", 2: "a = 2 OR s LIKE '%x'", 3: "s = 'x'"}
EVENTS = pa.table({"a": [1, 2], "s": ["x", "yx"]})
THERE = [(0, 1), (0, 2), (0, 3), (1, 2)]


@pytest.fixture(params=["memory", "pages"])
def matcher(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[cm.Matcher]:
    index = cm.index("pbtree", path=str(tmp_path / "pages")) if request.param == "pages" else "auto"
    with cm.Matcher.build(TEXTS, SCHEMA, index=index) as made:
        made.insert({4: "a = 4"})
        assert pairs(made.match(EVENTS)) == THERE
        yield made


def found(matcher: cm.Matcher) -> str:
    """Returns what a child finds."""
    return in_child(lambda: pairs(matcher.match(EVENTS)))


def test_the_lock_of_logging_is_taken_last() -> None:
    """Else a fork holds it, and waits for a thread that compiles and wants to log."""
    code = "import sys; import colmatch.kernels._forks; print('logging' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


def test_a_child_updates_whoever_had_the_turn() -> None:
    matcher = cm.Matcher.build(TEXTS, SCHEMA)
    live = inside.live(matcher)

    def update() -> Any:
        matcher.insert({5: "a = 1"})
        matcher.compact()
        return pairs(matcher.match(EVENTS))

    def take(stand: Callable[[], None]) -> None:
        with live.turn.take(), live.merger._one.take():
            stand()

    with beside(take):
        assert in_child(update) == repr(sorted([*THERE, (0, 5)]))
    matcher.insert({6: "a = 1"})
    assert len(matcher) == 4


def test_a_turn_of_the_thread_that_forks_is_its_own() -> None:
    matcher = cm.Matcher.build(TEXTS, SCHEMA)
    with inside.live(matcher).turn.take():
        said = in_child(lambda: matcher.insert({5: "a = 1"}))
    assert "OptionError" in said and "in the middle of an update" in said


def test_a_child_saves_whoever_was_saving(matcher: cm.Matcher, tmp_path: Path) -> None:
    def take(stand: Callable[[], None]) -> None:
        with inside.live(matcher).turn.take():
            stand()

    with beside(take):
        assert in_child(lambda: matcher.save(tmp_path / "saved")) == "None"
    assert len(cm.Matcher.open(tmp_path / "saved")) == 4


def test_a_child_says_whose_the_journal_is_whoever_was_saving(tmp_path: Path) -> None:
    cm.Matcher.build(TEXTS, SCHEMA).save(tmp_path / "saved")
    with cm.Matcher.open(tmp_path / "saved", journal=True) as matcher:
        matcher.insert({5: "a = 5"})
        journal: Any = inside.live(matcher).journal

        def take(stand: Callable[[], None]) -> None:
            with journal.saving.take():
                stand()

        with beside(take):
            said = in_child(lambda: matcher.save(tmp_path / "saved"))
            told = in_child(lambda: matcher.insert({9: "a = 9"}))
        assert "StoreError" in said and "is being written by" in said
        assert "OptionError" in told and "the parent process" in told
        assert in_child(lambda: matcher.stats()["journal"]) == "None"
        matcher.insert({6: "a = 6"})
    assert len(cm.Matcher.open(tmp_path / "saved", journal=True)) == 5


def test_a_child_matches_whoever_used_the_cache(matcher: cm.Matcher) -> None:
    lock = getattr(inside.live(matcher), "lock", None) or _forks.lock()
    with held(lock):
        said = found(matcher)  # showing an error would need the lock
    assert said == repr(THERE)


def test_a_child_reads_pages_that_were_half_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child forgets a cache, or a description, that another thread was changing."""
    index = cm.index("pbtree", path=str(tmp_path / "pages"))
    matcher = cm.Matcher.build(TEXTS, SCHEMA, index=index)
    live: Any = inside.live(matcher)

    def update(stand: Callable[[], None]) -> None:
        def commit() -> None:
            cache = live.file.cache
            cache.mem[:], cache.frame[2:] = 0, 3  # as if pages came and went
            stand()
            raise OSError

        monkeypatch.setattr(live.file, "commit", commit)
        with pytest.raises(OSError):
            matcher.insert({7: "a = 1"})

    with beside(update):
        said = found(matcher)
        told = in_child(lambda: matcher.insert({8: "a = 1"}))
    assert said == repr(THERE) and "forked" in told


def changed_pages(path: Path) -> cm.Matcher:
    """A matcher in pages whose counts of predicates are known, as a batch was matched."""
    index = cm.index("pbtree", path=str(path))
    matcher = cm.Matcher.build({1: "a = 1 AND s = 'x'", 2: "a = 2 AND s = 'yx'"}, SCHEMA, index=index)
    assert pairs(matcher.match(EVENTS)) == [(0, 1), (1, 2)]
    matcher.delete([2])
    assert pairs(matcher.match(EVENTS)) == [(0, 1)]
    return matcher


def test_a_child_has_nothing_of_an_update_that_was_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what describes the subscriptions, nor how many predicates each has."""
    matcher = changed_pages(tmp_path / "pages")
    file: Any = inside.page_file(matcher)
    events = pa.table({"a": [1, 1], "s": ["x", "y"]})

    def update(stand: Callable[[], None]) -> None:
        def commit() -> None:
            stand()
            raise OSError

        monkeypatch.setattr(file, "commit", commit)
        with pytest.raises(OSError):
            matcher.upsert({1: "a = 1", 3: "a = 1", 4: "a <"}, errors="collect")

    with beside(update):
        assert in_child(lambda: (matcher.rejected, pairs(matcher.match(events)))) == repr(([], [(0, 1)]))


def test_a_child_takes_no_update_for_one_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the parent writes next stands in the same pages, with the same numbers."""
    matcher = changed_pages(tmp_path / "pages")
    file: Any = inside.page_file(matcher)
    events = pa.table({"a": [1, 1], "s": ["failed", "made"]})
    (there, is_there), (go_on, goes_on) = os.pipe(), os.pipe()

    def update(stand: Callable[[], None]) -> None:
        def commit() -> None:
            stand()
            raise OSError

        with monkeypatch.context() as context:
            context.setattr(file, "commit", commit)
            with pytest.raises(OSError):
                matcher.insert({5: "s = 'failed'"})

    def later() -> Any:
        os.write(is_there, b"x")
        os.read(go_on, 1)
        return pairs(matcher.match(events))

    with ThreadPoolExecutor(1) as pool:
        with beside(update):
            said = pool.submit(in_child, later)
            os.read(there, 1)
        matcher.insert({6: "s = 'made'"})
        os.write(goes_on, b"x")
        assert said.result() == repr([(1, 6)]) == repr(pairs(matcher.match(events)))
    for end in (there, is_there, go_on, goes_on):
        os.close(end)


def test_a_child_that_is_forked_in_the_middle_of_reading_pages_reads_on(tmp_path: Path) -> None:
    """Its log is closed, as that is locked: it opens the log again as one who only reads."""
    matcher = cm.Matcher.build(TEXTS, SCHEMA, index=cm.index("pbtree", path=str(tmp_path / "pages")))
    matcher.insert({4: "a = 4"})
    live: Any = inside.live(matcher)

    def begin_again() -> Any:
        live.file.cache.clear()
        return pairs(matcher.match(EVENTS)), live.file.is_writer

    def work() -> tuple[str, str]:
        assert len(live.all_places()) == 4
        return in_child(lambda: len(live.all_places())), in_child(begin_again)

    assert live.run_on_state(work) == ("4", repr((THERE, False)))


def test_a_child_makes_what_another_thread_was_making(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attributes that are computed on first use have no lock."""
    matcher = cm.Matcher.build(TEXTS, SCHEMA, index="scan")
    only = inside.segment(matcher)
    only.__dict__.pop("hints", None)
    real, threads = segments.hints_of, []

    def wait(*arrays: Any) -> Any:
        threads.append(None)
        if len(threads) == 1:
            stand[0]()
        return real(*arrays)

    stand: list[Callable[[], None]] = []
    monkeypatch.setattr(segments, "hints_of", wait)

    def make(standing: Callable[[], None]) -> None:
        stand.append(standing)
        _ = only.hints

    with beside(make):
        assert found(matcher) == repr(THERE)


def test_attributes_are_made_once_for_all_who_ask() -> None:
    made: list[object] = []

    class Thing:
        @_forks.cached_property
        def value(self) -> object:
            """Says so."""
            made.append(own := object())
            if len(made) == 1:
                stand[0]()
            return own

    thing, seen = Thing(), []
    stand: list[Callable[[], None]] = []
    assert Thing.value.__doc__ == "Says so."

    def make(standing: Callable[[], None]) -> None:
        stand.append(standing)
        seen.append(thing.value)

    with beside(make):
        assert thing.value is made[1]
    assert seen == [made[1]] and thing.value is made[1]


def test_a_child_reads_events_and_expressions_whoever_did(matcher: cm.Matcher) -> None:
    with held(range_reader._deriving), held(stack._lock):
        said = found(matcher)

        def build() -> Any:
            with stack.room(100):
                return pairs(cm.Matcher.build(TEXTS, SCHEMA).match(EVENTS))

        built = in_child(build)
    assert said == built == repr(THERE)


def test_a_child_has_the_limit_of_its_own_threads() -> None:
    limit = sys.getrecursionlimit()

    def deep(stand: Callable[[], None]) -> None:
        with stack.room(5000):
            stand()

    with beside(deep):
        assert sys.getrecursionlimit() == limit + 5000
        assert in_child(sys.getrecursionlimit) == str(limit)
        with stack.room(100):
            assert in_child(lambda: sys.getrecursionlimit() > limit) == "True"
    assert sys.getrecursionlimit() == limit


def test_a_child_goes_on_with_a_stream_that_its_parent_began() -> None:
    matcher = cm.Matcher.build(TEXTS, SCHEMA, options=cm.Options(threads=2, batch_rows=2))
    stream = matcher.match_batches(pa.concat_tables([EVENTS] * 20))
    first = next(stream)

    def rest() -> int:
        return first.num_rows + sum(batch.num_rows for batch in stream)

    assert in_child(rest) == str(20 * len(THERE))
    assert rest() == 20 * len(THERE)


def test_no_child_is_forked_while_arrow_hands_over_a_batch() -> None:
    """Arrow locks the batch meanwhile: a child that matches the same one would wait for ever."""
    version = inside.version(cm.Matcher.build(TEXTS, SCHEMA))
    (batch,) = EVENTS.to_batches()
    steps: list[str] = []

    class Slow:
        num_rows, schema = batch.num_rows, batch.schema

        def _export_to_c(self, address: int) -> None:
            steps.append("begun")
            stand[0]()
            steps.append("ended")
            batch._export_to_c(address)

    stand: list[Callable[[], None]] = []

    def read(standing: Callable[[], None]) -> None:
        stand.append(standing)
        Reader(version.attributes, version.literals, False).read(Slow())  # type: ignore[arg-type]

    with beside(read, after=0.5):
        assert in_child(lambda: steps) == "['begun', 'ended']"


def test_a_child_drops_a_stream_that_its_parent_began() -> None:
    """The child takes no lock of the pool's threads."""

    def task(batch: pa.RecordBatch, seen: int, offset: int) -> Iterator[int]:
        yield offset

    batches = ((pa.record_batch({"a": [i]}), 0) for i in range(40))
    stream = run_in_order(batches, 2, task)
    assert next(stream) == 0
    frame = stream.gi_frame.f_locals  # type: ignore[attr-defined]
    futures = [future for *_, future in frame["pending"]]

    def hold(stand: Callable[[], None]) -> None:
        with futures[0]._condition, frame["pool"]._shutdown_lock:
            stand()

    with beside(hold):
        assert in_child(stream.close) == "None"
        assert in_child(lambda: list(stream)) == repr(list(range(1, 40)))
    assert list(stream) == list(range(1, 40))


@pytest.mark.skipif(NO_JIT, reason="takes too long")
def test_children_do_not_hang_beside_threads_that_are_at_work() -> None:
    """The command ``stress_forks.py`` makes any number of forks, with all kinds."""
    outcome = stress(int(os.environ.get("COLMATCH_FORKS", "24")), ["scan", "bitslice", "pbtree", "pages"])
    assert not outcome.hangs and not outcome.wrong
    assert outcome.done["match pages"] and outcome.done["update pbtree"] and outcome.beside["update"]


def test_locks_are_made_where_forks_know_of_them() -> None:
    """Any other lock could be held in a child for a thread that it does not have."""
    allowed = {
        "kernels/_forks.py": {"RLock"},  # which makes them
        "kernels/_requests.py": {"Queue"},  # in a process that nothing is forked from
        "kernels/_compiling.py": {"Lock"},  # for one call, which checks that the other thread lives
        "colmatch/matching/threads.py": {"ThreadPoolExecutor"},  # for one call, which a child leaves alone
        "colmatch/spark/source.py": {"ThreadPoolExecutor"},  # for one task, in which nothing forks
    }
    made = re.compile(
        r"R?Lock|Condition|Event|Semaphore|BoundedSemaphore|Barrier|Queue|SimpleQueue|LifoQueue|PriorityQueue|"
        r"cached_property|ThreadPoolExecutor|allocate_lock"
    )
    root = Path(__file__).parent.parent.parent
    for path in [*(root / "colmatch").rglob("*.py"), *(root / "kernels").rglob("*.py")]:
        name = path.relative_to(root).as_posix()
        if name.startswith("colmatch/kernels/"):
            continue
        used = set()
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module in ("threading", "_thread", "queue", "functools", "concurrent.futures", "multiprocessing"):
                used |= {alias.name for alias in node.names}  # type: ignore[union-attr]
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used |= (
                    {node.attr} if node.value.id in ("threading", "queue", "functools", "multiprocessing") else set()
                )
        wrong = {one for one in used if made.fullmatch(one)} - allowed.get(name, set())
        assert not wrong, f"{name} uses {wrong}: take what colmatch.kernels._forks has"


def test_all_are_renewed_in_a_child_even_if_some_fail() -> None:
    class Renewed:
        done = False

        def in_child(self) -> None:
            self.done = True

    class Fails:
        def in_child(self) -> None:
            raise ValueError("half done")

    some = [Renewed() if i % 2 else Fails() for i in range(20)]
    for one in some:
        _forks.renew_in_child(one)
    assert in_child(lambda: [one.done for one in some[1::2] if isinstance(one, Renewed)]) == repr([True] * 10)
