"""An exception at any line of an update or of a merge leaves the state before it or after it."""

from __future__ import annotations

import gc
import itertools
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import inside
import pyarrow as pa
import pytest
from contract import ALL, every_kind, pairs
from sizes import SMALL, THOROUGH

import colmatch as cm
from colmatch.kernels import _forks
from colmatch.updates import policy

OURS = str(Path(cm.__file__).parent)
KERNELS = str(Path(OURS, "kernels"))
STEP = 1 if THOROUGH else 101 if SMALL else 4 * len(ALL)  # of so many lines that are passed, one raises
FIRST = {kind: 1 + 7 * i % STEP for i, kind in enumerate(ALL)}  # not the same lines for all kinds
EVENTS = pa.table({"a": [1, 5, 9, 30], "s": ["x", "yy", None, "zz"]})
SCHEMA = {"a": "int64", "s": "string"}


class Injected(BaseException):
    """Not an Exception, as KeyboardInterrupt is not."""


class Lines:
    """Counts the lines of colmatch that a call passes, and raises at one of them."""

    def __init__(self, raises_at: int) -> None:
        self.passed = 0
        self.raises_at = raises_at

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(OURS) or name.startswith(KERNELS) or "/kernels/" in name:
            return None
        return self.line

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.passed += 1
            if self.passed == self.raises_at:
                raise Injected(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return self.line


def passed(action: Callable[[], Any], raises_at: int = -1) -> tuple[int, str | None]:
    """Does something. Returns the lines that were passed, and the place that raised."""
    lines = Lines(raises_at)
    before = sys.gettrace()
    sys.settrace(lines)
    try:
        action()
    except Injected as error:
        return lines.passed, str(error)
    finally:
        sys.settrace(before)
    return lines.passed, None


def texts(ids: Any, more: str = "") -> dict[int, str]:
    return {i: f"a > {i % 7} AND (s <> 'x{i % 3}' OR a IN ({i}, {i + 4})){more}" for i in ids}


def refused(matcher: cm.Matcher) -> None:
    with pytest.raises(cm.ExpressionError):
        matcher.insert({50: "a = 5", 51: "b = 2"})


CHANGES: dict[str, Callable[[cm.Matcher], Any]] = {
    "insert": lambda m: m.insert({50: "a = 5 OR s LIKE 'y%'"}),
    "insert that is refused": refused,
    "insert of many": lambda m: m.insert(texts(range(60, 80))),
    "upsert": lambda m: m.upsert({3: "s = 'zz'", 31: "a = 9", 52: "a < 2"}),
    "delete": lambda m: m.delete([2, 31, 12]),
    "compact": lambda m: m.compact(),
    "compact with a sample": lambda m: m.compact(sample=EVENTS),
}


def state(matcher: cm.Matcher) -> Any:
    assert gc.isenabled() and not list(_forks._inside)
    found = pairs(matcher.match(EVENTS))
    assert len(found) == sum(matcher.count(EVENTS))
    return found, sorted(matcher.ids.to_pylist()), len(matcher), matcher.stats()["arrays"]["sample"] > 0


@every_kind
@pytest.mark.parametrize("change", CHANGES)
def test_the_state_is_that_before_or_after(kind: str, change: str) -> None:
    with patch.object(policy, "GROWING_MOST", 8), patch.object(policy, "TIER", 0):
        matcher = cm.Matcher.build(texts(range(10)), SCHEMA, index=kind)
        matcher.insert(texts(range(10, 30)))
        for i in range(30, 36):
            matcher.insert(texts([i]))
        matcher.delete([1, 11, 33])
        assert len(matcher.stats()["segments"]) == 3
        saved = pickle.dumps(matcher)
        act = CHANGES[change]

        def fresh() -> cm.Matcher:
            made: cm.Matcher = pickle.loads(saved)
            made.upsert({5: "a = 5"})  # so that what the first update makes is there
            return made

        before, reference = fresh(), fresh()
        lines, _ = passed(lambda: act(reference))
        states = [state(before), state(reference)]
        assert change in ("compact", "insert that is refused") or states[0] != states[1]
        for at in range(FIRST[kind], lines + 1, STEP):
            made = fresh()
            _, place = passed(lambda: act(made), at)  # noqa: B023
            assert state(made) in states, place
            after = states.index(state(made))
            act(made) if not after or change.startswith("compact") else None
            made.insert({90: "a = 30"})
            made.delete([90])
            assert state(made) == states[1], place
            made.compact()
            assert state(made) == states[1], place


JOURNALLED: dict[str, Callable[[cm.Matcher, Path], Any]] = {
    "insert": lambda m, _: m.insert({50: "a = 5 OR s LIKE 'y%'"}),
    "upsert many": lambda m, _: m.upsert(texts(range(5, 80))),
    "what is rejected": lambda m, _: m.insert({60: "a = 5", 61: "b = 1"}, errors="collect"),
    "delete": lambda m, _: m.delete([2, 31]),
    "save": lambda m, path: m.save(path),
    "compact with a sample": lambda m, _: m.compact(sample=EVENTS),
}


# What raises in a finaliser, or where a file was opened that nobody has yet, is told and no more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["bitslice", "opindex"])
@pytest.mark.parametrize("change", JOURNALLED)
def test_the_journal_has_what_was_finished(kind: str, change: str, tmp_path: Path) -> None:
    """An interrupted update is in it or not, but not in part, and the next one works."""
    act, saved, numbers = JOURNALLED[change], tmp_path / "index", itertools.count()
    matcher = cm.Matcher.build(texts(range(30)), SCHEMA, index=kind)
    for i in range(30, 36):
        matcher.insert(texts([i]))
    matcher.save(saved)

    def copied(path: Path) -> Path:
        (folder := tmp_path / str(next(numbers))).mkdir()
        for name in ("index", "index.journal"):
            if path.with_name(name).exists():
                shutil.copy(path.with_name(name), folder)
        return folder / "index"

    def fresh() -> tuple[cm.Matcher, Path]:
        path = copied(saved)
        made = cm.Matcher.open(path, journal=True)
        made.upsert({5: "a = 5"})
        return made, path

    def left_by(path: Path) -> Any:
        with cm.Matcher.open(copied(path), journal=True) as opened:
            return state(opened)

    with patch.object(policy, "GROWING_MOST", 8):
        (before, _), (reference, reference_path) = fresh(), fresh()
        lines, _ = passed(lambda: act(reference, reference_path))
        states = [state(before), state(reference)]
        assert left_by(reference_path) == states[1]
        for at in range(FIRST[kind], lines + 1, STEP):
            made, path = fresh()
            _, place = passed(lambda: act(made, path), at)  # noqa: B023
            after = states.index(state(made))
            assert left_by(path) in states[after:], place
            act(made, path) if not after or change == "save" else None
            assert left_by(path) == state(made) == states[1], place
            made.delete([7])
            assert left_by(path) == state(made), place
            made.save(path)
            made.close()
            assert left_by(path) == state(made), place
            shutil.rmtree(path.parent)


def test_a_merge_that_is_given_up_changes_nothing() -> None:
    """Not by a line, as above, but in another thread: what it raises is seen and not lost."""
    with patch.object(policy, "GROWING_MOST", 2):
        matcher = cm.Matcher.build(texts(range(5)), SCHEMA, index="bitslice")
        with patch("colmatch.updates.merger.combine", side_effect=MemoryError("no memory")):
            for i in range(20, 30):
                matcher.insert(texts([i]))
            inside.settle(matcher)
        assert matcher.stats()["merge_error"] == "no memory" and matcher.stats()["merges"] == 0
        reference = cm.Matcher.build(texts([*range(5), *range(20, 30)]), SCHEMA, index="bitslice")
        assert state(matcher) == state(reference)
        for i in range(30, 34):
            matcher.insert(texts([i]))
        inside.settle(matcher)
        assert matcher.stats()["merge_error"] is None and matcher.stats()["merges"] > 0


def test_a_closed_matcher_matches_and_takes_no_updates() -> None:
    with cm.Matcher.build(texts(range(5)), SCHEMA) as matcher:
        matcher.insert(texts([7]))
    found = state(matcher)
    for update in (lambda: matcher.insert(texts([8])), lambda: matcher.delete([7]), matcher.compact):
        with pytest.raises(cm.OptionError, match="is closed"):
            update()
    assert state(matcher) == found == state(pickle.loads(pickle.dumps(matcher)))
    matcher.close()
