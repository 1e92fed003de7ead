"""What stands in a log behind the last whole update: one that was never finished, or damage."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import inside
import pytest
from shell import fails, run
from some_pages import as_said, built
from writer import text

import colmatch as cm
from colmatch.paged.cache import PAGE, checksum
from colmatch.paged.log import PAGES, base_of
from colmatch.store import log as logs
from colmatch.store.log import HEAD, HEADER, Damage, Log

UPDATES = 5


def logged(path: Path) -> tuple[list[int], bytes]:
    """A file with updates in its log: where each ends, and the log."""
    matcher, ends = built(path), [HEADER]
    for id in range(100, 100 + UPDATES):
        matcher.insert({id: text(id)})
        ends.append(os.path.getsize(f"{path}.log"))
    inside.page_file(matcher).close()
    return ends, Path(f"{path}.log").read_bytes()


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
TOLD: dict[str, Spans] = {  # what is damaged of five updates
    "the head of the third says that more came behind": lambda ends: [(ends[2] + 500, ends[5])],
    "the last page is of the fifth": lambda ends: [(ends[2], ends[5] - HEAD - PAGE - 9)],
    "a page before the last is of the fifth": lambda ends: [(ends[2], ends[4] + 500), (ends[5] - 4000, ends[5])],
    "the fifth is whole": lambda ends: [(ends[2], ends[4])],
}


@pytest.mark.parametrize("by", [zeros, garbage])
@pytest.mark.parametrize("how", TOLD)
def test_a_hole_through_the_last_updates_is_damage(tmp_path: Path, how: str, by: Callable[[int], bytes]) -> None:
    path = tmp_path / "pages"
    ends, data = logged(path)
    damaged = struck(data, *TOLD[how](ends), by=by)
    Path(f"{path}.log").write_bytes(damaged)
    with pytest.raises(cm.StoreError, match=f"of record 3, at byte {ends[2]} of .*`colmatch recover {path}`"):
        cm.Matcher.open(path)
    assert Path(f"{path}.log").read_bytes() == damaged
    said = run("recover", path).stdout
    assert "updates before the damage  2\n" in said
    assert f"bytes lost                 {len(data) - ends[2]:,}\n" in said
    as_said(cm.Matcher.open(path), state(2))


def test_garbage_where_an_update_should_begin_is_damage(tmp_path: Path) -> None:
    """A process that was killed leaves the beginning of an update, and a power cut leaves zeros."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for begin, end in ((ends[2], ends[5]), (ends[4], ends[5]), (ends[5], ends[5])):
        size = max(end - begin, 50)
        Path(f"{path}.log").write_bytes(data[:begin] + garbage(size))
        with pytest.raises(cm.StoreError, match=f"the head of record ., at byte {begin} of {begin + size}"):
            cm.Matcher.open(path)
    assert "bytes lost                 50\n" in run("recover", path).stdout
    as_said(cm.Matcher.open(path), state(5))


ALONE: dict[str, Spans] = {
    "its pages": lambda ends: [(ends[4] + 500, ends[5])],
    "some of its pages": lambda ends: [(ends[4] + 500, ends[4] + 500 + PAGE)],
    "its head": lambda ends: [(ends[4], ends[4] + HEAD)],
    "half of its head": lambda ends: [(ends[4] + 13, ends[5])],
    "all of it": lambda ends: [(ends[4], ends[5])],
    "all but the last page": lambda ends: [(ends[4], ends[5] - PAGE - HEAD)],
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


@pytest.mark.parametrize("cut", [HEADER + HEAD, HEADER + PAGE, None])
def test_the_first_update_alone_was_never_finished(tmp_path: Path, cut: int | None) -> None:
    """The header of the log comes with it, and may be zero with its head."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    Path(f"{path}.log").write_bytes(struck(data[: ends[1]], (0, cut or ends[1])))
    assert "nothing is damaged" in run("recover", path).stderr
    matcher = cm.Matcher.open(path)
    as_said(matcher, state(0))
    matcher.insert({200: text(200)})
    assert 200 in cm.Matcher.open(path).ids.to_pylist()


def test_a_flipped_bit_of_the_last_update_is_damage(tmp_path: Path) -> None:
    """Nothing but zeros is left of an update that was not finished."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for place in (ends[4] + 3, ends[4] + HEAD, ends[4] + 100, ends[5] - HEAD - 9):
        Path(f"{path}.log").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(cm.StoreError, match=f"of record 5, at byte {ends[4]} of"):
            cm.Matcher.open(path)


def test_the_end_of_another_update_tells_nothing_of_one_without_a_head(tmp_path: Path) -> None:
    """As where an update is missing, or where there is more in front of the end."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for begin, more in ((ends[3], b""), (ends[4], garbage(100))):
        damaged = data[:begin] + bytes(HEAD) + data[ends[4] + HEAD : -HEAD] + more + data[-HEAD:]
        Path(f"{path}.log").write_bytes(damaged)
        with pytest.raises(cm.StoreError, match=f"the head of record ., at byte {begin} of"):
            cm.Matcher.open(path)


def test_an_update_that_says_another_length(tmp_path: Path) -> None:
    """It is damage if it ends before the log does; else it is not all there."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    length = ends[5] - ends[4] - 2 * HEAD
    for other in (0, length - PAGE - 4, length + PAGE + 4, 2**40):
        head = head_of(other, first_of(data) + 4)
        Path(f"{path}.log").write_bytes(data[: ends[4]] + head + data[ends[4] + HEAD :])
        if other > length:
            as_said(cm.Matcher.open(path), state(4))
            continue
        with pytest.raises(cm.StoreError, match=f"the content of record 5, at byte {ends[4]}"):
            cm.Matcher.open(path)


@pytest.mark.parametrize("gone", [2, 3])
def test_updates_without_one_between_are_damage(tmp_path: Path, gone: int) -> None:
    """Their numbers say that one is missing, or that one stands there twice."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for kept, rest in ((ends[gone], ends[gone + 1]), (ends[gone], ends[gone - 1])):
        Path(f"{path}.log").write_bytes(data[:kept] + data[rest:])
        with pytest.raises(
            cm.StoreError, match=f"the number . of record {gone + 1}, at byte {ends[gone]} .*`colmatch recover"
        ):
            cm.Matcher.open(path)
    run("recover", path)
    as_said(cm.Matcher.open(path), state(gone))


def test_a_log_whose_beginning_is_zero_too(tmp_path: Path) -> None:
    """Zeros in the place of the head are no log that nobody has begun."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for spans in (
        [(0, HEADER), (HEADER + 500, ends[5])],
        [(0, ends[5] - HEAD - PAGE - 9)],
        [(0, ends[4] + 500), (ends[5] - 4000, ends[5])],
    ):
        Path(f"{path}.log").write_bytes(struck(data, *spans))
        with pytest.raises(cm.StoreError, match=f"is damaged in its first 48 bytes.*`colmatch recover {path}`"):
            cm.Matcher.open(path)
        assert "updates before the damage  0\n" in run("recover", path).stdout
        as_said(cm.Matcher.open(path), state(0))


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[tuple[cm.Matcher, Path]]:
    """A matcher that has read two updates of a log, in which the next one is damaged by now."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    Path(f"{path}.log").write_bytes(data[: ends[2]])
    matcher = cm.Matcher.open(path)
    as_said(matcher, state(2))
    Path(f"{path}.log").write_bytes(struck(data, (ends[2], ends[3])))
    yield matcher, path
    with pytest.raises(cm.StoreError, match="of record 3, at byte"):
        len(matcher)


def test_who_reads_while_another_writes_takes_nothing_for_damage(
    reader: tuple[cm.Matcher, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there when the size was asked for may be another by now."""
    less = [0, 1, 0]  # for the header, for the updates, and for their damage
    with monkeypatch.context() as context:
        context.setattr(Log, "size", property(lambda log: os.fstat(log.handle).st_size - less.pop(0)))
        assert len(reader[0]) == len(state(2)) and not less


def test_who_reads_a_log_that_begins_anew_takes_nothing_for_damage(
    reader: tuple[cm.Matcher, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher, path = reader
    data = Path(f"{path}.log").read_bytes()

    def begins_anew(log: Log, *place: int) -> None:
        log_of = Log(PAGES, str(path))
        log_of.base, log_of.start = base_of(inside.page_file(matcher).generation + 2, 9)
        with open(f"{path}.log", "r+b") as file:
            file.write(log_of.header())
        raise Damage("as it seems")

    with monkeypatch.context() as context:
        context.setattr(Log, "record", begins_anew)
        assert len(matcher) == len(state(2))
    Path(f"{path}.log").write_bytes(data)


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


def head_of(length: int, number: int) -> bytes:
    """The head of an update, whole by itself, with a wrong checksum of what follows."""
    head = struct.pack("<QQI", length, number, 0)
    return head + struct.pack("<I", zlib.crc32(head))


def first_of(data: bytes) -> int:
    """The number of the first update of a log."""
    number: int = struct.unpack_from("<Q", data, HEADER + 8)[0]
    return number


def test_a_log_is_not_read_again_for_each_update_that_it_seems_to_have(tmp_path: Path, read: list[int]) -> None:
    """Each page is whole, and has the head of an update inside."""
    path, room = tmp_path / "pages", 400
    _, data = logged(path)
    head = head_of(8 + room * (4 + PAGE), first_of(data))
    page = garbage(PAGE - HEAD) + head
    page = struct.pack("<I", checksum(page, 2)) + page[4:]
    data = data[:HEADER] + head + struct.pack("<Q", 9) + struct.pack("<I", 2) * room + page * room + head
    Path(f"{path}.log").write_bytes(data)
    read.clear()
    with pytest.raises(cm.StoreError, match="the content of record 1"):
        cm.Matcher.open(path)
    assert len(data) < sum(read) < 4 * len(data)


@pytest.mark.parametrize(("many", "is_ended"), [(0, False), (1 << 22, False), (1 << 22, True), ((1 << 32) - 1, False)])
def test_a_log_that_seems_larger_than_any_disk(tmp_path: Path, read: list[int], many: int, is_ended: bool) -> None:
    """Nothing is made as large as it says, and what the system has not stored is not read."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    head = head_of(8 + (4 + PAGE) * many, first_of(data) + UPDATES) if many else b""
    Path(f"{path}.log").write_bytes(data + head)
    try:
        os.truncate(f"{path}.log", min(ends[5] + 2 * HEAD + 8 + (PAGE + 4) * (many or 1 << 24), 1 << 35))
        if is_ended:
            with open(f"{path}.log", "r+b") as file:
                file.seek(-HEAD, os.SEEK_END)
                file.write(head)
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
    for head in (whole[HEADER:][:HEAD], bytes(500) + whole[HEADER:][:HEAD]):
        Path(f"{path}.log").write_bytes(bytes(HEADER) + head)
        with pytest.raises(cm.StoreError, match="is damaged in its first 48 bytes"):
            cm.Matcher.open(path)
        assert f"{path} has parts of updates that are damaged in {path}.log: build it" in fails("recover", path)


@pytest.mark.parametrize("what", [b"a text of somebody else's, which is longer than the head of a log", bytes(20)])
def test_a_file_that_is_no_log_is_not_recovered(tmp_path: Path, what: bytes) -> None:
    path, log_of = tmp_path / "pages", tmp_path / "pages.log"
    logged(path)
    log_of.write_bytes(what)
    if any(what):
        assert f"{log_of} is not a log of colmatch: move it away" in fails("recover", path)
    else:
        assert "nothing is damaged" in run("recover", path).stderr
    assert log_of.read_bytes() == what and len(os.listdir(tmp_path)) == 2


def test_a_log_of_which_only_the_beginning_is_damaged(tmp_path: Path) -> None:
    """An update that was not finished is not lost, and one that is whole is not, either."""
    path = tmp_path / "pages"
    ends, data = logged(path)
    for cut, spans, kept, lost in (
        (HEADER, [(20, 24)], 0, HEADER),
        (ends[1] - 100, [(20, 24)], 0, ends[1] - 100),
        (ends[1], [(20, 24)], 1, 0),
        (ends[4] + 90, [(20, 24)], 4, 90),
        (ends[5], [(0, 500)], 0, ends[5]),
    ):
        Path(f"{path}.log").write_bytes(struck(data[:cut], *spans, by=garbage))
        with pytest.raises(cm.StoreError, match="is damaged in its first 48 bytes"):
            cm.Matcher.open(path)
        assert f"bytes lost                 {lost:,}\n" in run("recover", path).stdout
        as_said(cm.Matcher.open(path), state(kept))
    Path(f"{path}.log").write_bytes(struck(data[: ends[1]], (0, HEADER)))
    with pytest.raises(cm.StoreError, match="is damaged in its first 48 bytes"):
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
    Path(f"{path}.log").write_bytes(struck(data, (0, HEADER)))  # the numbers of its updates would do
    assert f"bytes lost                 {len(data):,}\n" in run("recover", path).stdout
    as_said(cm.Matcher.open(path), state(0))


def test_zeros_are_found_between_two_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "PIECE", 5000)
    path, data = tmp_path / "pages", b"x" * 20_000
    for place in range(0, len(data) - PAGE, 500):
        for size in (PAGE - 1, PAGE):
            Path(f"{path}.log").write_bytes(struck(data, (place, place + size)))
            log = Log(PAGES, str(path), os.open(f"{path}.log", os.O_RDONLY))
            assert log._has_hole(0, len(data)) == (size == PAGE)
            log.close()
