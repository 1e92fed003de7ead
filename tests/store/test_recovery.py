"""Holes in logs and journals: a command reaches the state before them, and says what is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from journals import log_of, saved_in, update
from journals import opened as journalled
from shell import fails, run

import colmatch as cm

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")


def paged(path: Path, updates: int) -> tuple[list[int], list[list[int]]]:
    """A file of pages with updates in its log: where each ends, and the ids after each."""
    matcher = cm.Matcher.build({0: "a = 0"}, {"a": "int64"}, index=cm.index("pbtree", path=str(path)))
    ends, states = [], [[0]]
    for id in range(1, updates + 1):
        matcher.insert({id: f"a = {id}"})
        ends.append(os.path.getsize(f"{path}.log"))
        states.append(sorted(matcher.ids.to_pylist()))
    shutil.copy(path, f"{path}.kept")
    shutil.copy(f"{path}.log", f"{path}.kept.log")
    del matcher
    return ends, states


def hole(data: bytes, begin: int, end: int) -> bytes:
    return data[:begin] + bytes(end - begin) + data[end:]


def ids(path: Path) -> list[int]:
    with cm.Matcher.open(path) as matcher:
        return sorted(matcher.ids.to_pylist())


@pytest.mark.parametrize("number", range(5))
def test_a_hole_in_a_log_costs_what_comes_behind_it(tmp_path: Path, number: int) -> None:
    path = tmp_path / "pages"
    ends, states = paged(path, 5)
    path, log = Path(f"{path}.kept"), Path(f"{path}.kept.log")
    data = log.read_bytes()
    begin = ends[number - 1] if number else 32
    damaged = hole(data, begin + 100, begin + 4196)
    log.write_bytes(damaged)
    if number == 4:  # the last one was never finished
        assert ids(path) == states[4]
        return
    with pytest.raises(
        cm.StoreError, match=f"is damaged: what stands from byte {begin} on .* `colmatch recover {path}`"
    ):
        cm.Matcher.open(path)
    said = run("recover", path).stdout
    assert f"updates before the damage  {number}\n" in said
    assert f"updates lost               {5 - number}\n" in said
    assert f"bytes lost                 {len(data) - begin:,}\n" in said
    assert f"number of the next update  {number + 1}\n" in said
    assert Path(f"{log}.damaged-1").read_bytes() == damaged
    assert ids(path) == states[number]
    assert "as it was written" in run("check", path).stdout
    with cm.Matcher.open(path) as matcher:
        matcher.insert({77: "a = 77"})
    assert ids(path) == [*states[number], 77]


@pytest.mark.parametrize("end", [32, 4096])
def test_a_hole_at_the_beginning_of_a_log(tmp_path: Path, end: int) -> None:
    """Zeros in the place of the head are no empty log. Without the head alone nothing is lost."""
    path = tmp_path / "pages"
    _, states = paged(path, 3)
    path, log = Path(f"{path}.kept"), Path(f"{path}.kept.log")
    damaged = hole(log.read_bytes(), 0, end)
    log.write_bytes(damaged)
    with pytest.raises(cm.StoreError, match=f"is damaged, or no log.*`colmatch recover {path}`"):
        cm.Matcher.open(path)
    said = run("recover", path).stdout
    assert f"updates lost               {0 if end == 32 else 3}\n" in said
    assert ids(path) == states[3 if end == 32 else 0]
    assert Path(f"{log}.damaged-1").read_bytes() == damaged


def test_a_header_that_is_gone_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    paged(path, 2)
    path = Path(f"{path}.kept")
    with cm.Matcher.open(path) as matcher:
        matcher.insert({3: "a = 3"})  # and copied to the file
        matcher.save(path)
        matcher.insert({4: "a = 4"})
        shutil.copy(path, tmp_path / "two")
        shutil.copy(f"{path}.log", tmp_path / "two.log")
    two, refused = tmp_path / "two", 0
    data, whole = two.read_bytes(), ids(path)
    for page in (0, 1):
        two.write_bytes(hole(data, page * 4096, (page + 1) * 4096))
        shutil.copy(tmp_path / "two", tmp_path / "three")
        shutil.copy(tmp_path / "two.log", tmp_path / "three.log")
        three = tmp_path / "three"
        try:
            cm.Matcher.open(three)
        except cm.StoreError as error:
            refused += f"`colmatch recover {three}`" in str(error)
            assert "updates lost               0\n" in run("recover", three).stdout
        assert ids(three) == whole
    assert refused == 1


def test_a_hole_in_a_journal_costs_what_comes_behind_it(tmp_path: Path) -> None:
    path = saved_in(tmp_path)
    matcher = journalled(path)
    ends, states = [], []
    for now in update(matcher):
        ends.append(log_of(path).stat().st_size)
        states.append(now[1])
    matcher.close()
    whole = log_of(path).read_bytes()
    for number in (0, 1):
        damaged = hole(whole, ends[number] + 10, ends[number] + 40)
        log_of(path).write_bytes(damaged)
        with pytest.raises(cm.StoreError, match=f"is damaged: .* at byte {ends[number]} .*`colmatch recover {path}`"):
            journalled(path)
        said = run("recover", path).stdout
        assert f"updates before the damage  {number}\n" in said
        assert f"updates lost               {3 - number}\n" in said
        assert f"bytes lost                 {len(whole) - ends[number]}\n" in said
        assert f"number of the next update  {number + 1}\n" in said
        assert Path(f"{path}.journal.damaged-{number + 1}").read_bytes() == damaged
        with journalled(path) as matcher:
            assert sorted(matcher.ids.to_pylist()) == states[number]
    for end in (16, 48):
        log_of(path).write_bytes(hole(whole, 0, end))
        with pytest.raises(cm.StoreError, match=f"is damaged in its first 48 bytes.*`colmatch recover {path}`"):
            journalled(path)
        assert "updates lost               3\n" in run("recover", path).stdout
        with journalled(path) as matcher:
            assert sorted(matcher.ids.to_pylist()) == states[0]


def test_nothing_is_changed_where_nothing_is_damaged(tmp_path: Path) -> None:
    path = saved_in(tmp_path)
    assert "nothing is damaged" in run("recover", path).stderr
    with journalled(path) as matcher:
        matcher.insert({9: "a = 9"})
        assert "is being written by" in fails("recover", path)
    before = log_of(path).read_bytes()
    assert "nothing is damaged" in run("recover", path).stderr
    assert log_of(path).read_bytes() == before
    pages = tmp_path / "pages"
    paged(pages, 2)
    for name in (f"{pages}.kept", pages):
        before = Path(f"{name}.log").read_bytes()
        assert "nothing is damaged" in run("recover", name).stderr
        assert Path(f"{name}.log").read_bytes() == before
    log_of(path).write_bytes(b"something else")
    assert "is not a journal of colmatch" in fails("recover", path)
    assert sorted(os.listdir(tmp_path)) == [
        "index",
        "index.journal",
        "pages",
        "pages.kept",
        "pages.kept.log",
        "pages.log",
    ]
    assert "No such file" in fails("recover", tmp_path / "nothing")


@pytest.mark.parametrize("updates", [1, 3, 40])
@pytest.mark.parametrize(("begin", "end"), [(0, 8), (0, 64), (0, 4096), (300, 600), (4096, 8192)])
def test_a_command_never_says_that_less_is_lost_than_is(tmp_path: Path, updates: int, begin: int, end: int) -> None:
    """Lost updates cannot be counted if the last record, or the first, is damaged as well."""
    path, journal = tmp_path / "rules", tmp_path / "rules.journal"
    cm.Matcher.build({0: "a = 0"}, {"a": "int64"}).save(path)
    with cm.Matcher.open(path, journal=True) as matcher:
        for id in range(1, updates + 1):
            matcher.insert({id: f"a = {id}"})
    data = journal.read_bytes()
    if begin >= len(data):
        pytest.skip("the journal is shorter")
    journal.write_bytes(hole(data, begin, min(end, len(data))))
    if end >= len(data):  # nothing tells of what was never finished
        cm.Matcher.open(path, journal=True).close()
        return
    with pytest.raises(cm.StoreError, match=f"`colmatch recover {path}`"):
        cm.Matcher.open(path, journal=True)
    said = dict(line.rsplit("  ", 1) for line in run("recover", path).stdout.splitlines() if "  " in line)
    kept, lost = (
        said[next(name for name in said if name.startswith(what))] for what in ("updates before", "updates lost")
    )
    with cm.Matcher.open(path, journal=True) as matcher:
        left = len(matcher) - 1
    assert int(kept) == left and lost.strip() in ("unknown", str(updates - left))
