"""Parts of a matcher in a file of pages: the cache, chains of pages, what events must have."""

from __future__ import annotations

import gc
import os
import select
import signal
from pathlib import Path
from random import Random

import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from some_pages import EVENTS, built, reopened
from writer import text

import colmatch as cm
from colmatch.kernels.kinds.pbtree.arrays import CHILDREN
from colmatch.paged.cache import PAGE, Cache
from colmatch.paged.store import PageStore


@pytest.mark.parametrize("frames", [8, 300, 1000])
def test_a_cache_uses_all_of_its_frames(frames: int) -> None:
    """Whatever was asked for, each frame has a page or is free."""
    read: list[int] = []

    def fill(first: int, views: list[memoryview]) -> None:
        for i, view in enumerate(views):
            read.append(first + i)
            view[:4] = (first + i).to_bytes(4, "little")

    cache, rng = Cache(frames * PAGE, fill), Random(0)
    cache.resize(3000)
    for turn in range(2000):
        page = rng.randrange(1, 3000)
        if turn % 100 == 99:
            cache.load(np.array(sorted(rng.sample(range(1, 3000), 5))))
        assert cache.words(cache.at(page))[0] == page
    there = cache.page[1:]
    assert len(there) == frames and np.count_nonzero(there >= 0) >= frames - max(frames // 128, 5)
    assert np.count_nonzero(there >= 0) + len(cache._free) == frames
    assert len(read) == cache.reads


def test_a_cache_grows_with_the_file() -> None:
    cache = Cache(5000 * PAGE, lambda first, views: None)
    cache.resize(100)
    cache.at(1)
    cache.resize(4000)
    for _ in range(2):
        for page in range(1, 4000):
            cache.at(page)
    assert cache.reads == 3999 and len(cache.page) <= 5001


def test_a_chain_of_pages_that_lie_apart(tmp_path: Path) -> None:
    matcher = built(tmp_path / "pages")
    file = inside.page_file(matcher)
    file.begin_writing()
    file.cache.begin_update()
    store = PageStore(file)
    first = store.write_chain(np.zeros(3 * CHILDREN, np.uint32))
    other = np.arange(2 * CHILDREN, dtype=np.uint32)
    second = store.write_chain(other)
    store.remove_chain(first)
    words = np.arange(7 * CHILDREN - 5, dtype=np.uint32)
    third = store.write_chain(words)
    file.commit()
    for pages in (1, 7, 100):
        assert (store.read_chain(third, pages) == words).all()
        assert (store.read_chain(second, pages) == other).all()


@pytest.mark.parametrize("size", [9, 3 * CHILDREN])
def test_a_record_is_written_over_one_of_its_length(tmp_path: Path, size: int) -> None:
    """In a page, and in a chain of pages."""
    file = inside.page_file(built(tmp_path / "pages"))
    file.begin_writing()
    file.cache.begin_update()
    store = PageStore(file)
    old, new = np.arange(size, dtype=np.uint32), np.full(size, 7, np.uint32)
    old[0] = new[0] = size
    place = store.write_record(old)
    store.write_over(*place, new)
    for other in (size - 1, size + 1):
        with pytest.raises(cm.StoreError, match="another length than before; nothing was changed"):
            store.write_over(*place, np.zeros(other, np.uint32))
    file.commit()
    words, first = store.records(*(np.array([number]) for number in place))
    assert words[first[0] : first[0] + size].tolist() == new.tolist()


def test_events_that_lack_what_they_must_have(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    texts = {1: "a > 3 OR b > 3", 2: "b > 3"}
    index = cm.index("pbtree", path=tmp_path / "pages", cache_bytes=1 << 15)
    with cm.Matcher.build(texts, schema, index=index) as matcher:
        found, lacks = matcher.match(pa.table({"a": [5, None, 5], "b": [5, 5, None]}), invalid="collect")
        assert pairs(found) == [(0, 1), (0, 2), (2, 1)]
        assert lacks["event"].to_pylist() == [1]


def test_a_matcher_that_is_closed_before_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = built(tmp_path / "pages")
    turn = inside.turn(matcher)
    take = turn.take

    def closes() -> object:
        matcher.close()
        return take()

    monkeypatch.setattr(turn, "take", closes)
    with pytest.raises(cm.OptionError, match="closed"):
        matcher.insert({100: "a > 3"})
    assert len(cm.Matcher.open(tmp_path / "pages")) == 60


def test_a_process_that_was_forked_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = built(tmp_path / "pages")
    matcher.insert({100: "a > 3"})
    with monkeypatch.context() as context:
        context.setattr(os, "getpid", lambda: 1)
        for change in (lambda: matcher.insert({101: "a > 3"}), lambda: matcher.delete([100]), matcher.compact):
            with pytest.raises(cm.OptionError, match="opened before this process was forked"):
                change()
    matcher = reopened(matcher, tmp_path / "pages")
    matcher.delete([100])
    assert len(matcher) == 60


def test_a_matcher_that_nobody_has_any_more_lets_go_of_its_file(tmp_path: Path) -> None:
    matcher = built(tmp_path / "pages")
    matcher.insert({100: "a > 3"})
    assert len(matcher.match(EVENTS)) > 0
    gc.disable()
    try:
        del matcher
        other = cm.Matcher.open(tmp_path / "pages")
        other.insert({101: "a > 3"})
        assert len(other) == 62
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12 where there are threads
def test_a_process_that_was_forked_goes_on_reading(tmp_path: Path) -> None:
    """It sees what the process that it comes from writes, whatever that had written before."""
    path = tmp_path / "pages"
    parent = built(path)
    parent.insert({100: text(100)})
    begin, answer = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:  # no more is run here than what reads, so that nothing of the tests ends twice
        try:
            for _ in range(3):
                os.read(begin[0], 1)
                found = set(parent.ids.to_pylist()), pairs(parent.match(EVENTS))
                os.write(answer[1], repr(found).encode().ljust(8192))
        except BaseException as error:
            os.write(answer[1], repr(error).encode().ljust(8192))
        finally:
            os._exit(0)
    try:
        for turn in range(3):
            parent.insert({101 + turn: text(101 + turn)})
            if turn == 1:
                parent.save(path)  # which copies the log
            os.write(begin[1], b"x")
            assert select.select([answer[0]], [], [], 120)[0]
            said = os.read(answer[0], 8192).decode().strip()
            assert said == repr((set(parent.ids.to_pylist()), pairs(parent.match(EVENTS))))
        with pytest.raises(cm.StoreError, match="is being changed by another"):
            cm.Matcher.open(path).insert({999: "a > 3"})
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for end in (*begin, *answer):
            os.close(end)
