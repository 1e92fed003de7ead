"""What stands in a log behind the last whole update: one that was never finished, or damage."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import inside
import pytest
from shell import fails, run
from some_pages import as_said, built
from writer import text

import colmatch as cm
from colmatch.paged import log
from colmatch.paged import logged as logged_updates
from colmatch.paged.cache import PAGE, checksum, number_of
from colmatch.paged.header import State
from colmatch.paged.logged import UPDATE, beginning

UPDATES = 5


def logged(path: Path) -> tuple[list[int], bytes]:
    """A file with updates in its log: where each ends, and the log."""
    matcher, ends = built(path), [log.BEGIN]
    for id in range(100, 100 + UPDATES):
        matcher.insert({id: text(id)})
        ends.append(os.path.getsize(log.log_path(str(path))))
    inside.page_file(matcher).close()
    return ends, Path(log.log_path(str(path))).read_bytes()


def state(number: int) -> set[int]:
    """The ids that there are after so many updates."""
    return {*range(60), *range(100, 100 + number)}


def zeros(size: int) -> bytes:
    return bytes(size)


def garbage(size: int) -> bytes:
    return Random(size).randbytes(size)


def struck(data: bytes, *spans: tuple[int, int], by: Callable[[int], bytes] = zeros) -> bytes:
    """The log with something else in some places."""
    for begin, end in spans:
        data = data[:begin] + by(end - begin) + data[end:]
    return data


Spans = Callable[[list[int]], list[tuple[int, int]]]
# What is damaged of five updates, and how many are lost of it as far as can be told.
TOLD: dict[str, tuple[Spans, int | None]] = {
    "the head of the third says that more came behind": (lambda ends: [(ends[2] + 500, ends[5])], None),
    "the last page is of the fifth": (lambda ends: [(ends[2], ends[5] - PAGE - 9)], 3),
    "a page before the last is of the fifth": (
        lambda ends: [(ends[2], ends[4] + 500), (ends[5] - 4000, ends[5])],
        None,
    ),
    "the head of the fifth stands": (lambda ends: [(ends[2] + 500, ends[4]), (ends[5] - 4000, ends[5])], 3),
    "the head of the fourth stands": (lambda ends: [(ends[2], ends[3]), (ends[3] + 500, ends[5])], None),
    "the head of the fourth and the last page stand": (
        lambda ends: [(ends[2], ends[3]), (ends[3] + 500, ends[5] - PAGE - 9)],
        3,
    ),
    "the fifth is whole": (lambda ends: [(ends[2], ends[4])], 3),
}


@pytest.mark.parametrize("by", [zeros, garbage])
@pytest.mark.parametrize("how", TOLD)
def test_a_hole_through_the_last_updates_is_damage(tmp_path: Path, how: str, by: Callable[[int], bytes]) -> None:
    path = tmp_path / "pages"
    ends, data = logged(path)
    spans, lost = TOLD[how]
    damaged = struck(data, *spans(ends), by=by)
    Path(f"{path}.log").write_bytes(damaged)
    with pytest.raises(cm.StoreError, match=f"from byte {ends[2]} on is not what was .*`colmatch recover {path}`"):
        cm.Matcher.open(path)
    assert Path(f"{path}.log").read_bytes() == damaged
    said = run("recover", path).stdout
    assert "updates before the damage  2\n" in said
    assert f"updates lost               {'unknown' if lost is None else lost}\n" in said
    assert f"bytes lost                 {len(data) - ends[2]:,}\n" in said
    as_said(cm.Matcher.open(path), state(2))


def test_garbage_where_an_update_should_begin_is_damage(tmp_path: Path) -> None:
    """A process that was killed leaves the beginning of an update, and a power cut leaves zeros."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for begin, end in ((ends[2], ends[5]), (ends[4], ends[5]), (ends[5], ends[5])):
        Path(f"{path}.log").write_bytes(data[:begin] + garbage(max(end - begin, 50)))
        with pytest.raises(cm.StoreError, match=f"what stands from byte {begin} on is not what was written"):
            cm.Matcher.open(path)
    assert "updates lost               unknown\n" in run("recover", path).stdout
    as_said(cm.Matcher.open(path), state(5))


ALONE: dict[str, Spans] = {
    "its pages": lambda ends: [(ends[4] + 500, ends[5])],
    "its head": lambda ends: [(ends[4], ends[4] + UPDATE)],
    "half of its head": lambda ends: [(ends[4] + 13, ends[5])],
    "all of it": lambda ends: [(ends[4], ends[5])],
    "all but the last page": lambda ends: [(ends[4], ends[5] - PAGE)],
    # how many updates were in zeros is said nowhere: the file opens at what stands before them
    "all of the last three": lambda ends: [(ends[2], ends[5])],
}


@pytest.mark.parametrize("which", ALONE)
def test_the_last_update_alone_was_never_finished(tmp_path: Path, which: str) -> None:
    path = tmp_path / "pages"
    ends, data = logged(path)
    Path(f"{path}.log").write_bytes(struck(data, *ALONE[which](ends)))
    assert "nothing is damaged" in run("recover", path).stderr
    matcher = cm.Matcher.open(path)
    as_said(matcher, state(2 if "three" in which else 4))
    matcher.insert({200: text(200)})
    assert 200 in cm.Matcher.open(path).ids.to_pylist()


def test_a_byte_of_the_number_of_pages(tmp_path: Path) -> None:
    """The last update seems to end before the log does, which its last page contradicts."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    (count,) = struct.unpack_from("<I", data, ends[4] + 24)
    for other in (0, count - 1, count + 1, 2**32 - 1):
        Path(f"{path}.log").write_bytes(data[: ends[4] + 24] + struct.pack("<I", other) + data[ends[4] + 28 :])
        as_said(cm.Matcher.open(path), state(4))


@pytest.mark.parametrize("gone", [2, 3])
def test_updates_without_one_between_are_damage(tmp_path: Path, gone: int) -> None:
    """Their numbers say that one is missing, or that one stands there twice."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for kept, rest in ((ends[gone], ends[gone + 1]), (ends[gone], ends[gone - 1])):
        Path(f"{path}.log").write_bytes(data[:kept] + data[rest:])
        with pytest.raises(cm.StoreError, match=f"what stands from byte {ends[gone]} on is not .*`colmatch recover"):
            cm.Matcher.open(path)
    run("recover", path)
    as_said(cm.Matcher.open(path), state(gone))


@pytest.mark.parametrize("how", TOLD)
def test_a_log_whose_beginning_is_zero_too(tmp_path: Path, how: str) -> None:
    """Zeros in the place of the head are no log that nobody has begun."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    moved = [log.BEGIN, log.BEGIN, log.BEGIN, *ends[3:]]  # as if the first one were the third
    damaged = struck(data, (0, ends[2]), *TOLD[how][0](ends if "says" in how else moved))
    Path(f"{path}.log").write_bytes(damaged)
    if "says" in how:  # its head is not where an update should begin
        damaged = struck(data, (0, log.BEGIN), (log.BEGIN + 500, ends[5]))
        Path(f"{path}.log").write_bytes(damaged)
    with pytest.raises(cm.StoreError, match=f"is damaged, or no log.*`colmatch recover {path}`"):
        cm.Matcher.open(path)
    assert "updates before the damage  0\n" in run("recover", path).stdout
    as_said(cm.Matcher.open(path), state(0))


def test_lost_updates_are_counted_where_the_end_tells_of_them(tmp_path: Path) -> None:
    """One that was never finished is not lost, and a number that cannot be is none."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    damaged = struck(data, (ends[2] + 500, ends[4]))
    update_number = ends[4] + 16
    for log_of, lost in (
        (damaged[: ends[5] - 100], 2),
        (
            damaged[: update_number + 5] + b"x" + struck(damaged, (ends[5] - 4000, ends[5]))[update_number + 6 :],
            "unknown",
        ),
    ):
        Path(f"{path}.log").write_bytes(log_of)
        assert f"updates lost               {lost}\n" in run("recover", path).stdout
        as_said(cm.Matcher.open(path), state(2))


def test_who_reads_while_another_writes_takes_nothing_for_damage(tmp_path: Path) -> None:
    """What was there when the size was asked for may be another by now."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    known = State(inside.page_file(matcher := cm.Matcher.open(path)).generation, 0, 0)
    known = known._replace(
        update_number=inside.page_file(matcher).update_number - 3, pages=inside.page_file(matcher).pages
    )
    Path(f"{path}.log").write_bytes(struck(data, (ends[2], ends[3])))
    handle = os.open(f"{path}.log", os.O_RDONLY)
    assert log.next_update(str(path), handle, known, ends[2], len(data) - 1) is None
    with pytest.raises(cm.StoreError, match="is not what was written"):
        log.next_update(str(path), handle, known, ends[2], len(data))
    os.close(handle)


def test_what_a_failed_update_leaves_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next one, unfinished, would seem to have another one behind it."""
    path, real = tmp_path / "pages", os.pwritev
    matcher = built(path)
    matcher.insert({99: text(99)})

    def fails(handle: int, parts: list[memoryview], at: int) -> int:
        monkeypatch.setattr(os, "pwritev", real)
        real(handle, parts, at)
        raise OSError(5, "")

    def refuses(*given: int) -> None:
        monkeypatch.undo()
        raise OSError(5, "")

    monkeypatch.setattr(os, "pwritev", fails)
    monkeypatch.setattr(os, "ftruncate", refuses)
    with pytest.raises(cm.StoreError, match="cannot be written"):
        matcher.insert({id: text(id) for id in range(100, 300)})
    size = os.path.getsize(f"{path}.log")
    matcher.insert({100: text(100)})
    assert inside.page_file(matcher).log_end == os.path.getsize(f"{path}.log") < size


def test_a_page_says_what_its_number_is() -> None:
    rng = Random(7)
    for number in (0, 1, 2, 5, 1 << 20, (1 << 32) - 1, *(rng.randrange(1 << 31) for _ in range(20))):
        page = rng.randbytes(PAGE)
        page = struct.pack("<I", checksum(page, number)) + page[4:]
        assert number_of(page) == number
    assert number_of(bytes(PAGE)) > 1 << 20  # zeros are no page


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each call of the system reads."""
    real, sizes = os.pread, []

    def counted(handle: int, size: int, at: int) -> bytes:
        data = real(handle, size, at)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    return sizes


def test_a_log_is_not_read_again_for_each_update_that_it_seems_to_have(tmp_path: Path, read: list[int]) -> None:
    """Each page has an update inside, to which the pages behind it belong as well."""
    path, many, room = tmp_path / "pages", 100, 400
    logged(path)
    generation = inside.page_file(cm.Matcher.open(path)).generation
    head = head_of(generation, 0, many)
    page = bytearray(PAGE)
    page[PAGE - len(head) - 4 * many :] = head + struct.pack("<I", 2) * many
    page[:4] = struct.pack("<I", checksum(bytes(page), 2))
    data = log.begin_bytes(generation) + bytes(page) * room
    Path(f"{path}.log").write_bytes(data)
    read.clear()
    with pytest.raises(cm.StoreError, match="is not what was written"):
        cm.Matcher.open(path)
    assert sum(read) < 4 * len(data)


def head_of(generation: int, update_number: int, many: int) -> bytes:
    """What stands before the numbers of the pages of an update, with a wrong checksum."""
    return beginning(generation, update_number) + struct.pack("<IQI", many, 9, 0)


@pytest.mark.parametrize("many", [1 << 22, (1 << 32) - 1])
def test_a_log_that_seems_larger_than_any_disk(tmp_path: Path, read: list[int], many: int) -> None:
    """Nothing is made as large as it says, and what the system has not stored is not read."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    file = inside.page_file(cm.Matcher.open(path))
    head = head_of(file.generation, file.update_number + 1, many)
    Path(f"{path}.log").write_bytes(data + head)
    try:
        os.truncate(f"{path}.log", min(ends[5] + len(head) + (PAGE + 4) * many, 1 << 35))
    except OSError:
        pytest.skip("files on this system cannot seem so large")
    if os.stat(f"{path}.log").st_blocks > 1 << 16:
        pytest.skip("zeros are stored on this system")
    read.clear()
    matcher = cm.Matcher.open(path)
    assert sum(read) < 1 << 23
    as_said(matcher, state(5))


def test_a_log_that_belongs_to_a_header_that_is_gone_too(tmp_path: Path) -> None:
    """No state is left that the file could go back to."""
    path = tmp_path / "pages"
    logged(path)
    with cm.Matcher.open(path) as matcher:
        matcher.save(path)
        matcher.insert({200: text(200)})
        inside.page_file(matcher).close()
    newer = inside.page_file(cm.Matcher.open(path)).generation % 2 * PAGE
    data, whole = path.read_bytes(), Path(f"{path}.log").read_bytes()
    path.write_bytes(struck(data, (newer, newer + PAGE)))
    for head in (whole[log.BEGIN :][:UPDATE], bytes(500) + whole[log.BEGIN :][:UPDATE]):
        Path(f"{path}.log").write_bytes(bytes(log.BEGIN) + head)
        with pytest.raises(cm.StoreError, match="is damaged, or no log"):
            cm.Matcher.open(path)
        assert "damaged, both at their beginnings" in fails("recover", path)


@pytest.mark.parametrize("what", [b"a text of somebody else's, which is longer than the head of a log", bytes(20)])
def test_a_file_that_is_no_log_is_not_recovered(tmp_path: Path, what: bytes) -> None:
    path, log_of = tmp_path / "pages", tmp_path / "pages.log"
    logged(path)
    log_of.write_bytes(what)
    if any(what):
        assert f"{log_of} is no log of {path}, or nothing of it can be read" in fails("recover", path)
    else:
        assert "nothing is damaged" in run("recover", path).stderr
    assert log_of.read_bytes() == what and len(os.listdir(tmp_path)) == 2


def test_a_log_of_which_only_the_beginning_is_damaged(tmp_path: Path) -> None:
    """An update that was not finished is not lost, and one that is whole is not, either."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for cut, spans, kept, lost in (
        (log.BEGIN, [(20, 24)], 0, 0),
        (ends[1] - 100, [(20, 24)], 0, 0),
        (ends[1], [(20, 24)], 1, 0),
        (ends[5], [(0, 500)], 0, 5),
    ):
        Path(f"{path}.log").write_bytes(struck(data[:cut], *spans, by=garbage))
        with pytest.raises(cm.StoreError, match="is damaged, or no log"):
            cm.Matcher.open(path)
        assert f"updates lost               {lost}\n" in run("recover", path).stdout
        as_said(cm.Matcher.open(path), state(kept))
    Path(f"{path}.log").write_bytes(struck(data[: ends[1]], (0, log.BEGIN)))
    with pytest.raises(cm.StoreError, match="is damaged, or no log"):
        cm.Matcher.open(path)
    Path(f"{path}.log").write_bytes(data[:5])  # as a process leaves it that was killed at once
    as_said(cm.Matcher.open(path), state(0))


def test_a_log_of_another_file_is_not_recovered(tmp_path: Path) -> None:
    """It has nothing for this one, whether it is damaged or not."""
    path, other = tmp_path / "pages", tmp_path / "other"
    ends, data = logged(other)
    built(path).close()
    data = struck(data, (ends[2], ends[3]))
    Path(f"{path}.log").write_bytes(data)
    as_said(cm.Matcher.open(path), state(0))
    assert "nothing is damaged" in run("recover", path).stderr
    assert Path(f"{path}.log").read_bytes() == data


def test_beginnings_of_updates_are_found_between_two_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_updates, "PIECE", PAGE)
    places = [place for middle in range(1, 90) for place in (middle * PAGE - middle, middle * PAGE + PAGE // 2)]
    data = bytearray(92 * PAGE)
    for update_number, place in enumerate(places):
        data[place : place + UPDATE] = head_of(7, update_number, 1)
    path = tmp_path / "log"
    path.write_bytes(data)
    handle = os.open(path, os.O_RDONLY)
    found = logged_updates.heads(handle, 7, 0, len(data))
    assert [(head.at, head.update_number) for head in found] == [
        (place, update_number) for update_number, place in enumerate(places)
    ]
    os.close(handle)
