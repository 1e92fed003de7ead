"""Turns come in order, and end with their holder."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import colmatch as cm
from colmatch.updates import mutex
from colmatch.updates.mutex import FairMutex


def test_who_comes_again_and_again_lets_others_in() -> None:
    one, asked, got = FairMutex(), threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        with one.take():
            got.set()

    with one.take():
        thread = threading.Thread(target=wait)
        thread.start()
        asked.wait()
        while len(one._line) < 2:
            time.sleep(1e-4)
    with one.take():
        assert got.is_set()
    thread.join()


def test_one_at_a_time() -> None:
    one, inside, most = FairMutex(), 0, []

    def work() -> None:
        nonlocal inside
        for _ in range(100):
            with one.take():
                inside += 1
                most.append(inside)
                time.sleep(0)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 400
    assert len(one._line) == 1


def test_who_gives_up_waiting_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback, which somebody keeps, would hold the turn for ever."""
    one = FairMutex()
    held = one.take()
    monkeypatch.setattr(mutex.time, "sleep", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    kept: list[BaseException] = []

    def give_up() -> None:
        try:
            one.take()
        except KeyboardInterrupt as error:
            kept.append(error)

    thread = threading.Thread(target=give_up)
    thread.start()
    thread.join()
    del held
    with one.take():
        assert len(kept) == 1


def test_who_cannot_even_stand_in_line_is_told_why() -> None:
    one = FairMutex()

    class Full(list[Any]):
        def append(self, _: object) -> None:
            raise MemoryError

    one._line = Full()
    with pytest.raises(MemoryError):
        one.take()


def test_a_turn_within_a_turn_is_refused() -> None:
    """As in a signal handler: it would wait for itself."""
    one = FairMutex()
    with one.take(), pytest.raises(cm.OptionError, match="in the middle of an update of the matcher"):
        one.take()
    with one.take():
        pass


def test_what_the_caller_gives_is_read_before_the_turn() -> None:
    """Other updates do not wait for its source, which may be one of them."""
    matcher = cm.Matcher.build({1: "a = 1", 2: "a = 2"}, {"a": "int64"})

    def rows() -> Iterator[tuple[int, str]]:
        matcher.delete([1])
        yield 3, "a = 3"
        matcher.insert(iter([(4, "a = 4")]))

    def gone() -> Iterator[int]:
        yield 2
        matcher.upsert({3: "a = 5"})

    matcher.insert(rows())
    assert sorted(matcher.ids.to_pylist()) == [2, 3, 4]
    matcher.delete(gone())
    assert sorted(matcher.ids.to_pylist()) == [3, 4] and matcher.version == 5
    assert matcher.match_lists(pa.table({"a": [3, 5, 4]})).to_pylist() == [[], [3], [4]]


def test_who_closes_the_matcher_meanwhile_ends_the_update() -> None:
    for update in (cm.Matcher.insert, cm.Matcher.delete):
        matcher = cm.Matcher.build({1: "a = 1"}, {"a": "int64"})

        def given() -> Iterator[Any]:
            yield 1 if update is cm.Matcher.delete else (2, "a = 2")  # noqa: B023
            matcher.close()  # noqa: B023

        with pytest.raises(cm.OptionError, match="is closed"):
            update(matcher, given())
        assert matcher.ids.to_pylist() == [1] and matcher.version == 0


def test_updates_without_a_gap_pause_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: list[float] = [10.0]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(round(clock[0], 6))
        clock[0] += seconds

    monkeypatch.setattr(mutex.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(mutex.time, "sleep", sleep)
    pace = mutex.Throttle()
    for gap, expected in ((0.00001, [10.00105, 10.00215]), (0.0002, [])):
        pauses.clear()
        for _ in range(10):
            clock[0] += gap
            began = clock[0]
            clock[0] += 0.0002
            pace.pause_after(began)
        assert pauses == expected


@pytest.mark.parametrize("update", ["insert", "upsert", "sync", "delete"])
def test_each_update_may_pause_when_it_has_ended(update: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[tuple[float, int]] = []
    matcher = cm.Matcher.build({1: "a = 1"}, {"a": "int64"})
    monkeypatch.setattr(mutex.Throttle, "pause_after", lambda pace, began: ended.append((began, matcher.version)))
    before = time.perf_counter()
    getattr(matcher, update)([1] if update == "delete" else {2: "a = 2"})
    ((began, version),) = ended
    assert before <= began <= time.perf_counter() and version == 1
