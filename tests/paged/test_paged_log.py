"""Logs and files of pages that are cut, flipped, gone or changed by others."""

from __future__ import annotations

import os
import shutil
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import inside
import pytest
from some_pages import SCHEMA, as_said, built, reopened
from writer import text

import colmatch as cm
from colmatch.paged import file as paged_file
from colmatch.paged.check import check
from colmatch.store.log import HEAD, HEADER


def test_what_is_in_the_log_counts_to_the_last_whole_update(tmp_path: Path) -> None:
    """Cut anywhere, the log gives the state after some update, never part of one."""
    path, log = tmp_path / "pages", tmp_path / "pages.log"
    matcher = built(path)
    states, ends = [set(range(60))], [0]
    for id in range(100, 106):
        matcher.insert({id: text(id)})
        states.append(states[-1] | {id})
        ends.append(os.path.getsize(log))
    whole = log.read_bytes()
    rng = Random(0)
    for cut in sorted([*rng.sample(range(len(whole)), 25), *ends]):
        log.write_bytes(whole[:cut])
        opened = cm.Matcher.open(path)
        number = max(i for i, end in enumerate(ends) if end <= max(cut, ends[0]))
        assert (set(opened.ids.to_pylist()), opened.version) == (states[number], number)
        opened.close()


def test_a_byte_of_the_log_that_is_flipped(tmp_path: Path) -> None:
    """It is damage, but in what only ends an update that is whole."""
    path, log = tmp_path / "pages", tmp_path / "pages.log"
    matcher, ends = built(path), []
    for id in (70, 71, 72):
        matcher.insert({id: text(id)})
        ends.append(log.stat().st_size)
    inside.page_file(matcher).close()
    data = log.read_bytes()
    rng = Random(1)
    for part, (begin, end) in enumerate(zip([HEADER, *ends[:-1]], ends)):
        for place in [*range(begin, begin + 60), *rng.sample(range(begin, end), 40), end - 1]:
            log.write_bytes(data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :])
            if place >= end - HEAD:
                as_said(cm.Matcher.open(path), {*range(60), 70, 71, 72})
                continue
            with pytest.raises(
                cm.StoreError, match=f"pages.log is damaged: the .* of record {part + 1}, at byte {begin} "
            ):
                cm.Matcher.open(path)
    for place in range(HEADER):
        log.write_bytes(data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :])
        with pytest.raises(cm.StoreError, match="pages.log is damaged in its first 48 bytes"):
            cm.Matcher.open(path)
    as_said(built(path), set(range(60)))


def test_a_header_that_is_flipped_hides_no_update(tmp_path: Path) -> None:
    """Of two headers one counts; the other is needed by nobody."""
    path = tmp_path / "pages"
    for checkpoint in (False, True):
        told = 0
        for place in (0, 20, 40, 4095, 4096, 4116, 4136, 8191):
            matcher = built(path)
            matcher.insert({70: text(70)})
            if checkpoint:
                inside.page_file(matcher).checkpoint()
                matcher.insert({71: text(71)})
            inside.page_file(matcher).close()
            data = path.read_bytes()
            path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            try:
                as_said(cm.Matcher.open(path), {*range(60), 70, *([71] if checkpoint else [])})
            except cm.StoreError as error:
                told += "newer header is not what was written" in str(error)
        assert 0 < told < 8


def test_a_log_that_is_gone_or_of_another_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    matcher, other = built(one), built(two)
    matcher.insert({70: text(70)})
    os.unlink(f"{one}.log")
    matcher.insert({71: text(71)})
    matcher = reopened(matcher, one)
    as_said(matcher, {*range(60), 70, 71})
    matcher.delete([70])
    inside.page_file(matcher).close()
    inside.page_file(other).close()
    shutil.copy(f"{one}.log", f"{two}.log")
    other = cm.Matcher.open(two)
    as_said(other, set(range(60)))
    other.insert({72: text(72)})
    as_said(reopened(other, two), {*range(60), 72})


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    built(path).close()
    data = path.read_bytes()
    for size in (0, 100, 4096, 8192, 9000, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(cm.StoreError, match="is damaged|is empty|is not a saved matcher"):
            check(str(path)) if size > 9000 else cm.Matcher.open(path)
    for odd in ("/dev/null", str(tmp_path)):
        with pytest.raises(cm.StoreError, match="is a pipe or a device|is a folder"):
            cm.Matcher.build({1: "a > 1"}, SCHEMA, index=cm.index("pbtree", path=odd))
        assert not os.path.exists(odd + ".log")
    for odd in ("a\0b", "folder/", 3, None):  # type: ignore[assignment]
        with pytest.raises(cm.OptionError, match="the name of a file is needed"):
            cm.index("pbtree", path=odd)
    assert cm.index("pbtree", path=path).path == cm.index("pbtree", path=os.fsencode(path)).path == str(path)  # type: ignore


def test_who_meets_a_newer_page_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    one, two = built(path, 600), cm.Matcher.open(path)
    paged, states = inside.live(two), []

    def work() -> set[int]:
        states.append(inside.page_file(two).update_number)
        if len(states) == 1:
            one.upsert({id: text(id + 1) for id in range(600)})
            one.delete(range(500, 600))
            one.save(path)  # copies the pages to the file, where they are newer
        return set(paged.store.to_keys(paged.all_places()).ids.array.to_pylist())

    assert paged.run_on_state(work) == set(range(500))
    assert len(states) == 2 and states[0] < states[1]


def test_who_meets_a_torn_page_begins_again(tmp_path: Path) -> None:
    """A writer that was killed while it copied a page leaves the whole one in the log."""
    path = tmp_path / "pages"
    one, two = built(path, 600), cm.Matcher.open(path)
    paged, states = inside.live(two), []

    def work() -> set[int]:
        file = inside.page_file(two)
        states.append(file.update_number)
        if len(states) == 1:
            one.delete(range(500, 600))
            data = bytearray(path.read_bytes())
            for page in inside.page_file(one).in_log.nonzero()[0].tolist():
                data[4096 * page + 100 : 4096 * page + 200] = bytes(100)
            path.write_bytes(data)
        return set(paged.store.to_keys(paged.all_places()).ids.array.to_pylist())

    assert paged.run_on_state(work) == set(range(500))
    assert len(states) == 2 and states[0] < states[1]


def test_a_log_that_is_long_is_copied_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paged_file, "LOG_MOST", 200_000)
    path, log = tmp_path / "pages", tmp_path / "pages.log"
    matcher = built(path)
    sizes = []
    for id in range(60, 120):
        matcher.insert({id: text(id)})
        sizes.append(log.stat().st_size)
    assert max(sizes) <= 200_000 and sum(a > b for a, b in pairwise(sizes)) > 3
    as_said(reopened(matcher, path), set(range(120)))


def test_pages_are_on_the_disk_before_the_header_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls = tmp_path / "pages", []
    matcher = built(path)
    matcher.insert({70: text(70)})

    def noting(name: str) -> Any:
        real = getattr(os, name)

        def noted(handle: int, *rest: Any) -> Any:
            what = "header" if name == "pwrite" and rest[1] < 8192 else "page" if name == "pwrite" else name
            which = "log" if os.readlink(f"/proc/self/fd/{handle}").endswith(".log") else "file"
            if not calls or calls[-1] != (what, which):
                calls.append((what, which))
            return real(handle, *rest)

        return noted

    for name in ("pwrite", "fsync", "ftruncate"):
        monkeypatch.setattr(os, name, noting(name))
    matcher.save(path)
    assert calls == [
        ("fsync", "log"), ("page", "file"), ("fsync", "file"), ("header", "file"), ("fsync", "file"), ("ftruncate", "log"),
    ]  # fmt: skip
    first = path.read_bytes()[:8192]
    matcher.delete([70])
    matcher.save(path)
    second = path.read_bytes()[:8192]
    assert (first[:4096] == second[:4096]) != (first[4096:] == second[4096:])  # one header stays
