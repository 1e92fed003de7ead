"""Holes in logs and journals: a command reaches the state before them, and says what is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
from journals import log_of, saved_in
from journals import opened as journalled
from shell import fails, run

import colmatch as cm
from colmatch.store.log import HEAD, HEADER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")


class Logged(NamedTuple):
    """A file with updates in its log or journal: where each ends, and the ids after each."""

    path: Path
    log: Path
    ends: list[int]
    states: list[list[int]]

    def opened(self) -> cm.Matcher:
        return cm.Matcher.open(self.path, journal=self.log.suffix == ".journal")

    def ids(self) -> list[int]:
        with self.opened() as matcher:
            return sorted(matcher.ids.to_pylist())


def logged(folder: Path, form: str, updates: int = 5) -> Logged:
    path = folder / "rules"
    index = cm.index("pbtree", path=str(folder / "built")) if form == "log" else "scan"
    cm.Matcher.build({0: "a = 0"}, {"a": "int64"}, index=index).save(path)
    made = Logged(path, Path(f"{path}.{form}"), [HEADER], [[0]])
    with made.opened() as matcher:
        for id in range(1, updates + 1):
            matcher.insert({id: f"a = {id}"})
            made.ends.append(os.path.getsize(made.log))
            made.states.append(sorted(matcher.ids.to_pylist()))
        kept = {one: one.read_bytes() for one in (made.path, made.log)}
    for one, data in kept.items():  # as if it had been killed: a matcher of pages that ends copies its log
        one.write_bytes(data)
    return made


def hole(data: bytes, begin: int, end: int) -> bytes:
    return data[:begin] + bytes(end - begin) + data[end:]


FORMS = pytest.mark.parametrize("form", ["log", "journal"])


@FORMS
@pytest.mark.parametrize("number", range(5))
def test_a_hole_costs_what_comes_behind_it(tmp_path: Path, form: str, number: int) -> None:
    made = logged(tmp_path, form)
    data, begin = made.log.read_bytes(), made.ends[number]
    damaged = hole(data, begin + 100, begin + 4196) if form == "log" else hole(data, begin + 30, begin + 60)
    made.log.write_bytes(damaged)
    if (form, number) == ("log", 4):  # the last one was never finished
        assert made.ids() == made.states[4]
        return
    with pytest.raises(
        cm.StoreError,
        match=f"the content of record {number + 1}, at byte {begin} of .* `colmatch recover {made.path}`",
    ):
        made.opened()
    said = run("recover", made.path).stdout
    assert f"damage                     {made.log} is damaged: the content of record {number + 1}, at byte" in said
    assert f"updates before the damage  {number}\n" in said
    assert f"bytes lost                 {len(data) - begin:,}\n" in said
    assert f"number of the next update  {number + 1}\n" in said
    assert Path(f"{made.log}.damaged-1").read_bytes() == damaged
    assert made.ids() == made.states[number]
    assert "as it was written" in run("check", made.path).stdout
    with made.opened() as matcher:
        matcher.insert({77: "a = 77"})
    assert made.ids() == [*made.states[number], 77]


@FORMS
@pytest.mark.parametrize("cut", [0, 9])
@pytest.mark.parametrize(("begin", "end"), [(0, 8), (0, 16), (16, 40), (0, HEADER), (0, HEADER + 16), (0, 4096)])
def test_a_hole_at_the_beginning(tmp_path: Path, form: str, begin: int, end: int, cut: int) -> None:
    """Zeros in place of the header are no empty log. Pages know what their log follows."""
    made = logged(tmp_path, form, 40)
    data = made.log.read_bytes()
    damaged = hole(data[: len(data) - cut], begin, end)
    made.log.write_bytes(damaged)
    with pytest.raises(cm.StoreError, match=f"is damaged in its first 48 bytes.*`colmatch recover {made.path}`"):
        made.opened()
    kept = 40 - bool(cut) if form == "log" and end <= HEADER else 0
    said = run("recover", made.path).stdout
    assert f"updates before the damage  {kept}\n" in said
    assert f"bytes lost                 {len(damaged) - (made.ends[kept] if kept else 0):,}\n" in said
    assert made.ids() == made.states[kept]
    assert Path(f"{made.log}.damaged-1").read_bytes() == damaged


@FORMS
def test_a_last_record_without_its_head(tmp_path: Path, form: str) -> None:
    """Of pages, a block may be zero where a power cut came; a journal must be zero to the end."""
    made = logged(tmp_path, form, 2)
    data = made.log.read_bytes()
    made.log.write_bytes(hole(data, made.ends[1], made.ends[1] + HEAD))
    if form == "log":
        assert made.ids() == made.states[1]
        return
    with pytest.raises(cm.StoreError, match=f"the head of record 2, at byte {made.ends[1]} of {len(data)}"):
        made.opened()


@FORMS
def test_a_hole_through_records(tmp_path: Path, form: str) -> None:
    """Of three records, the head of the second and all of the third but its end are zero."""
    made = logged(tmp_path, form, 3)
    data = made.log.read_bytes()
    for begin, end in ((made.ends[1], made.ends[3] - HEAD), (made.ends[1] + 9, made.ends[2] + 9)):
        made.log.write_bytes(hole(data, begin, end))
        with pytest.raises(cm.StoreError, match=f"the head of record 2, at byte {made.ends[1]}"):
            made.opened()
        assert f"bytes lost                 {len(data) - made.ends[1]:,}\n" in run("recover", made.path).stdout
        assert made.ids() == made.states[1]


def test_a_header_that_is_gone_is_written_again(tmp_path: Path) -> None:
    path, logs = logged(tmp_path, "log", 2)[:2]
    with cm.Matcher.open(path) as matcher:
        matcher.insert({3: "a = 3"})  # and copied to the file
        matcher.save(path)
        matcher.insert({4: "a = 4"})
        data, log = path.read_bytes(), logs.read_bytes()
        whole = sorted(matcher.ids.to_pylist())
    two, refused = tmp_path / "two", 0
    for page in (0, 1):
        two.write_bytes(hole(data, page * 4096, (page + 1) * 4096))
        Path(f"{two}.log").write_bytes(log)
        try:
            cm.Matcher.open(two)
        except cm.StoreError as error:
            refused += f"`colmatch recover {two}` writes it again" in str(error)
            assert "bytes lost                 0\n" in run("recover", two).stdout
        with cm.Matcher.open(two) as matcher:
            assert sorted(matcher.ids.to_pylist()) == whole
    assert refused == 1


def test_nothing_is_changed_where_nothing_is_damaged(tmp_path: Path) -> None:
    path = saved_in(tmp_path)
    assert "nothing is damaged" in run("recover", path).stderr
    with journalled(path) as matcher:
        matcher.insert({9: "a = 9"})
        assert "is being written by" in fails("recover", path)
    made = logged(tmp_path, "log", 2)
    for one, log in ((path, log_of(path)), (made.path, made.log), (tmp_path / "built", tmp_path / "built.log")):
        before = log.read_bytes() if log.exists() else b""
        assert "nothing is damaged" in run("recover", one).stderr
        assert (log.read_bytes() if log.exists() else b"") == before
    log_of(path).write_bytes(b"something else")
    assert "is not a journal of colmatch" in fails("recover", path)
    there = ["built", "index", "index.journal", "rules", "rules.log"]
    assert [name for name in sorted(os.listdir(tmp_path)) if name != "built.log"] == there
    assert "No such file" in fails("recover", tmp_path / "nothing")
