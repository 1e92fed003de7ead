"""``colmatch check`` and ``stats`` of a file with a journal beside it, which neither changes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from journals import SCHEMA, log_of, opened, saved_in
from shell import fails, run

import colmatch as cm
from colmatch.errors import StoreError
from colmatch.store.log import HEADER, Log


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A file with three subscriptions, in whose journal are four updates."""
    path = saved_in(tmp_path)
    with opened(path) as matcher:
        for id in range(10, 13):
            matcher.insert({id: f"a = {id} AND s <> 'x'"})
        matcher.delete([1])
    return path


@pytest.fixture
def unchanged(index: Path) -> Iterator[None]:
    before = {name: (index.parent / name).read_bytes() for name in os.listdir(index.parent)}
    yield
    assert {name: (index.parent / name).read_bytes() for name in os.listdir(index.parent)} == before


def told(index: Path) -> tuple[dict[str, Any], str]:
    result = run("stats", index, "--json")
    return json.loads(result.stdout), result.stderr


def test_the_journal_is_checked_and_its_updates_are_told_of(index: Path, unchanged: None) -> None:
    said = f"{log_of(index)} is as it was written, with 4 updates since the last save"
    assert run("check", index).stdout.splitlines() == [f"{index} is as it was written", said]
    figures, note = told(index)
    assert figures["subscriptions"] == 3
    assert figures["journal"] == {"path": str(log_of(index)), "records": 4, "bytes": log_of(index).stat().st_size}
    assert note == f"colmatch: note: {log_of(index)} has 4 updates that no other figure counts\n"


def test_somebody_may_write_it_meanwhile(index: Path) -> None:
    with opened(index) as matcher:
        for updates in (5, 6):
            matcher.upsert({2: f"a = {updates}"})
            assert f"with {updates} updates since" in run("check", index).stdout
            assert told(index)[0]["journal"]["records"] == updates
        matcher.save(index)
        assert "with 0 updates since" in run("check", index).stdout and told(index)[1] == ""
        assert told(index)[0]["subscriptions"] == 5
        matcher.insert({7: "a = 7"})  # the writer has its lock still
    assert "with 1 update since" in run("check", index).stdout


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (3, f"is damaged in its first {HEADER} bytes"),
        (HEADER + 2, f"is damaged: the head of record 1, at byte {HEADER} of "),
        (HEADER + 60, f"is damaged: the content of record 1, at byte {HEADER} of "),
    ],
)
def test_damage_is_an_error_of_check_and_a_note_of_stats(index: Path, at: int, said: str) -> None:
    data = bytearray(log_of(index).read_bytes())
    data[at] ^= 1
    log_of(index).write_bytes(data)
    assert f"{log_of(index)} {said}" in fails("check", index)
    figures, note = told(index)
    assert figures["subscriptions"] == 3 and f"colmatch: note: {log_of(index)} {said}" in note
    assert log_of(index).read_bytes() == data
    with pytest.raises(StoreError, match="is damaged"):
        opened(index)


def test_an_update_that_was_not_finished_is_none(index: Path) -> None:
    whole = log_of(index).read_bytes()
    log_of(index).write_bytes(whole[:-5])
    assert "with 3 updates since" in run("check", index).stdout
    assert log_of(index).read_bytes() == whole[:-5]
    log_of(index).write_bytes(b"")
    assert "with 0 updates since" in run("check", index).stdout


def test_a_journal_of_another_save_is_an_error(index: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    cm.Matcher.build({1: "a = 77"}, SCHEMA, index="scan").save(other)
    os.replace(other, index)
    assert f"{log_of(index)} belongs to another save than {index}, and has updates" in fails("check", index)


def test_what_looks_wrong_is_looked_at_again(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer may be in the middle of something."""
    read, errors = Log.records, [StoreError("the journal has become shorter"), StoreError("damaged")]

    def at_first_wrong(*given: Any) -> Any:
        if errors:
            raise errors.pop()
        return read(*given)

    monkeypatch.setattr(Log, "records", at_first_wrong)
    assert "with 4 updates since" in run("check", index).stdout and not errors


def test_what_is_no_journal_of_the_file_is_not_followed(index: Path, tmp_path: Path) -> None:
    os.replace(log_of(index), tmp_path / "elsewhere")
    assert run("check", index).stdout == f"{index} is as it was written\n"
    assert told(index)[0]["journal"] is None and not log_of(index).exists()
    log_of(index).symlink_to(tmp_path / "elsewhere")
    assert "is a link, which is not followed" in fails("check", index)
    assert "No such file" in fails("check", tmp_path / "nowhere")
