"""Files of pages from elsewhere, with right checksums, in ``colmatch check`` and ``open``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import crafted_pages
import inside
import numpy as np
import pytest
from crafted_pages import crafted
from sizes import THOROUGH
from some_pages import built

import colmatch as cm
from colmatch.kernels.kinds.pbtree.arrays import HEAD, KIND, RECORDS
from colmatch.paged import root_page
from colmatch.paged.cache import PAGE
from colmatch.paged.check import check
from colmatch.paged.header import header_bytes
from colmatch.paged.log import PAGES, base_of, first_part
from colmatch.store.file import read_arrays, write_arrays
from colmatch.store.log import HEADER, open_locked

EACH = 3000 if THOROUGH else 60
LENGTH, SECTIONS, SIZE, SLOT = 0, 1, 3, 12  # words of a record: size of the first section, one of its slots


def test_no_crafted_pages_harm_who_checks_them(tmp_path: Path) -> None:
    """Each file is refused, or used without harm, since pages without a fault lead nowhere else."""
    source = crafted_pages.source(tmp_path / "source")
    said = {str(tmp_path / str(seed)): crafted_pages.craft(source, tmp_path / str(seed), seed) for seed in range(EACH)}
    done = subprocess.run(
        [sys.executable, crafted_pages.__file__, *said], capture_output=True, text=True, timeout=540, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    wrong = [f"{said[path[6:]]}: {line}" for path, line in zip(lines[::2], lines[1::2]) if line.startswith("foreign")]
    last = said.get(lines[-1][6:], "") if lines else done.stderr
    assert (done.returncode, wrong) == (0, []), last
    counts = Counter(line.split()[0] for line in lines[1::2])
    assert counts["used"] + counts["refused"] == EACH and min(counts["used"], counts["refused"]) > 0


@pytest.mark.parametrize(
    ("is_root", "word", "value", "said"),
    [
        (True, root_page.SLOT_COUNT, 2**32 - 1, "page 2 says that there is more than the file has room for"),
        (True, root_page.RECORD_PAGE, 3, "page 2 leads to no page of records"),
        (True, root_page.FREE_SLOT, 1, "page 2 leads to other free slots than there are"),
        (True, root_page.FREE_SLOTS, 1, "page 2 leads to other free slots than there are"),
        (True, root_page.TEXT_IDS, 1, "page 2 says that ids are of another type than they are"),
        (False, LENGTH, 2**32 - 1, "is not what was written"),
        (False, LENGTH, 14, "a record is not as long as its parts are"),
        (False, SECTIONS, 2**31, "a record is not as long as its parts are"),
        (False, SIZE, 2**31, "a record is not as long as its parts are"),
        # as others that no check foresees
        (False, SLOT, 2**31, "it cannot be read .IndexError: .* out of bounds.*: take a copy"),
    ],
)
def test_a_number_that_no_file_has_is_found(tmp_path: Path, is_root: bool, word: int, value: int, said: str) -> None:
    def change(words: crafted_pages.Words) -> None:
        page = 2 if is_root else int(np.flatnonzero(words[2:, KIND] == RECORDS)[0]) + 2  # behind the headers
        words[page, word if is_root else HEAD + word] = value

    built(tmp_path / "a").close()
    check(str(tmp_path / "a"))
    with pytest.raises(cm.StoreError, match=said):
        check(str(crafted_pages.changed(tmp_path / "a", tmp_path / "b", change)))


@pytest.mark.parametrize("pages", [0, 2, 2**24, 2**40, 2**63])
def test_a_header_that_says_more_pages_than_there_are(tmp_path: Path, pages: int) -> None:
    """Nothing is allocated by that number."""
    built(tmp_path / "a").close()
    crafted_pages.of_so_many(tmp_path / "a", tmp_path / "b", pages)
    for opens in (cm.Matcher.open, check):
        with pytest.raises(cm.StoreError, match="is damaged: page"):
            opens(str(tmp_path / "b"))


@pytest.mark.parametrize("numbers", [(2**64 - 1, 1), (1 << 60, 2**64 - 1)])
def test_a_header_whose_numbers_have_no_next_ones(tmp_path: Path, numbers: tuple[int, int]) -> None:
    with built(tmp_path / "a") as matcher:
        pages = inside.page_file(matcher).pages
    data = (tmp_path / "a").read_bytes()
    (tmp_path / "b").write_bytes(header_bytes(*numbers, pages) * 2 + data[2 * PAGE :])
    (tmp_path / "b.log").write_bytes(bytes(100))
    with pytest.raises(cm.StoreError, match="is damaged: page"):
        cm.Matcher.open(tmp_path / "b").insert({99: "a = 1"})


@pytest.mark.parametrize(("total", "pages"), [(2**40, [2]), (2**63, [2]), (9, [1]), (9, [30])])
def test_a_log_with_pages_that_the_file_cannot_have(tmp_path: Path, total: int, pages: list[int]) -> None:
    with built(tmp_path / "a") as matcher:
        matcher.save(tmp_path / "b")
    with cm.Matcher.open(tmp_path / "b") as matcher:
        generation, update_number = inside.page_file(matcher).generation, inside.page_file(matcher).update_number
    words = np.frombuffer((tmp_path / "b").read_bytes(), np.uint32).reshape(-1, 1024)[[2] * len(pages)].copy()
    for page, own in zip(pages, words):
        own[0] = crafted_pages.checksum(own.tobytes(), page)
    first, checksum = first_part(generation, total, np.array(pages), words[:, :1].tobytes())
    with closing(open_locked(PAGES, str(tmp_path / "b"))) as log:
        log.base, log.start = base_of(generation, update_number)
        log.append(HEADER, update_number + 1, [first, words.tobytes()], checksum)
    with pytest.raises(cm.StoreError, match="has pages that the file cannot have"):
        cm.Matcher.open(tmp_path / "b")


def test_what_describes_the_subscriptions_is_checked(tmp_path: Path) -> None:
    """It is checked as a saved matcher is, one without subscriptions."""
    for name, value in (("attributes", [[["a"], 0, [1, {}, "", None, ""], None, None]]), ("schema", "AAAA")):

        def change(header: dict[str, object], arrays: object, name: str = name, value: object = value) -> None:
            if header:
                header[name] = value

        with pytest.raises(cm.StoreError, match="cannot read what describes the pages"):
            crafted_pages.source(tmp_path / name, change)  # which opens it at the end


def no_events(header: dict[str, Any], arrays: dict[str, Any], other: Path) -> None:
    arrays["sample"] = np.arange(64, dtype=np.uint8)


def of_another_kind(header: dict[str, Any], arrays: dict[str, Any], other: Path) -> None:
    header["requested"] = read_arrays(other)[0]["requested"]


def with_subscriptions(header: dict[str, Any], arrays: dict[str, Any], other: Path) -> None:
    known, there = read_arrays(other)
    header |= known | {"requested": header["requested"]}
    arrays |= there


@pytest.mark.parametrize(
    ("craft", "said"),
    [
        (no_events, "the sample of events: "),
        (of_another_kind, "it has subscriptions, or is not of pages"),
        (with_subscriptions, "it has subscriptions, or is not of pages"),
    ],
)
def test_a_description_of_something_else_is_refused(tmp_path: Path, craft: Callable[..., None], said: str) -> None:
    other = crafted.saved(tmp_path / "other", "scan", "number")

    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        if header:
            craft(header, arrays, other)

    with pytest.raises(cm.StoreError, match=f"cannot read what describes the pages, .*{said}"):
        crafted_pages.source(tmp_path / "pages", change)


def test_a_saved_matcher_that_asks_for_pages_is_refused(tmp_path: Path) -> None:
    path = crafted.saved(tmp_path / "index", "scan", "number")
    header, arrays = read_arrays(path, mmap=False)
    header["requested"] = {"kind": "pbtree", "settings": {"path": str(tmp_path / "pages")}}
    write_arrays(path, header, arrays)
    with pytest.raises(cm.StoreError, match=f"cannot read {path}, .*it asks for a file of pages"):
        cm.Matcher.open(path)
