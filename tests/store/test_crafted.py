"""Files from elsewhere with right checksums: refused, or used without harm to the process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crafted
import inside
import numpy as np
import pytest
from contract import THOROUGH, pairs

import colmatch as cm
from colmatch.indexing.registry import KINDS
from colmatch.store.file import read_arrays, write_arrays

EACH = 800 if THOROUGH else 24  # files of each kind, half of them with ids that are numbers


@pytest.mark.parametrize("kind", cm.kinds())
def test_no_crafted_file_harms_the_process(tmp_path: Path, kind: str) -> None:
    """Each use ends with results or an error of colmatch: no signal, and no other exception."""
    sources = [crafted.saved(tmp_path / ids, kind, ids) for ids in ("number", "text")]
    said = {
        str(tmp_path / str(seed)): crafted.craft(sources[seed % 2], tmp_path / str(seed), seed) for seed in range(EACH)
    }
    done = subprocess.run(
        [sys.executable, crafted.__file__, *said], capture_output=True, text=True, timeout=540, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    wrong = [f"{said[path[6:]]}: {line}" for path, line in zip(lines[::2], lines[1::2]) if line.startswith("foreign")]
    last = said.get(lines[-1][6:], "") if lines else done.stderr
    assert (done.returncode, wrong) == (0, []), last
    counts = Counter(line.split()[0] for line in lines[1::2])
    assert counts["used"] + counts["refused"] == EACH and min(counts["used"], counts["refused"]) > 0


def changed(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """Writes a file anew with a change, and with right checksums."""
    header, arrays = read_arrays(path, mmap=False)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    write_arrays(path, header, arrays)
    return path


def large(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        place = 0 if name.endswith("head") else -1  # an attribute: any code will do
        arrays[name].reshape(-1)[place] = np.iinfo(arrays[name].dtype).max

    return change


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("attributes", 2, 0), [7]),  # its column
        (("attributes", 2, 2, 3), ["UTC"]),  # its zone
        (("attributes", 2, 3), {"a": 1}),  # what of the column it is
        (("attributes", 2, 4), ["like", {}]),  # its pattern
        (("rejected", 0, 1), [{}, 1]),  # line and column
        (("rejected", 0, 2), None),  # message
    ],
)
def test_a_header_with_a_value_of_another_type_is_refused(
    tmp_path: Path, way: tuple[str | int, ...], value: Any
) -> None:
    """The error comes when the file is opened, not when the value is first used."""

    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        place: Any = header
        for key in way[:-1]:
            place = place[key]
        place[way[-1]] = value

    path = changed(crafted.saved(tmp_path / "index", "scan", "number"), change)
    with pytest.raises(cm.StoreError, match=f"cannot read {path}"):
        cm.Matcher.open(path)


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        (kind, array)
        for kind, arrays in {
            "scan": ("predicates.first", "predicates.owner", "predicates.pred", "codes.first", "index.head"),
            "bitslice": ("index.attr_group", "index.group_first", "index.lo", "index.who", "index.rank", "index.top"),
        }.items()
        for array in arrays
    ],
)
def test_a_number_out_of_its_bounds_is_refused(tmp_path: Path, kind: str, array: str) -> None:
    path = changed(crafted.saved(tmp_path / "index", kind, "number"), large(f"segments.0.{array}"))
    with pytest.raises(cm.StoreError, match=f"cannot read {path}"):
        cm.Matcher.open(path)


def test_an_index_that_is_not_looked_at_is_made_anew(tmp_path: Path) -> None:
    """Its arrays do not count then; where the file is trusted, they are taken as they are."""
    for kind in cm.kinds():
        path = crafted.saved(tmp_path / kind, kind, "text")
        want = pairs(cm.Matcher.open(path, trusted=True).match(crafted.EVENTS))
        _, arrays = read_arrays(path)
        own = [name for name in arrays if name.startswith("segments.0.index.")]
        kept = inside_arrays(cm.Matcher.open(path, trusted=True))
        assert kept == sum(arrays[name].nbytes for name in own)
        if KINDS[kind].sound is None:

            def nonsense(header: dict[str, Any], arrays: dict[str, Any], own: list[str] = own) -> None:
                for name in own:
                    arrays[name].reshape(-1).view(np.uint8)[:] = 0xFF

            changed(path, nonsense)
        assert pairs(cm.Matcher.open(path).match(crafted.EVENTS)) == want


def inside_arrays(matcher: cm.Matcher) -> int:
    return sum(array.nbytes for array in inside.live(matcher).now.segments[0].index.arrays)


def test_a_journal_with_right_checksums(tmp_path: Path) -> None:
    """A record that names something unknown is refused before anything uses it."""
    from colmatch.store import journal_file
    from colmatch.updates import records

    path = crafted.saved(tmp_path / "index", "scan", "number")
    with cm.Matcher.open(path, journal=True) as matcher:
        matcher.insert({501: "a IN (3, 5, 9) AND (b > 4 OR c = 'new')", 502: "b < 3"})
    log = Path(f"{path}.journal")
    data = log.read_bytes()
    [(number, record, _)] = journal_file.records_of(opened_journal(path), str(log))
    refused = 0
    for at in range(0, len(record), 1 if THOROUGH else 3):
        for flip in (0x01, 0x80, 0xFF):
            other = record[:at] + bytes([record[at] ^ flip]) + record[at + 1 :]
            log.write_bytes(data[: journal_file.HEADER] + journal_file.record_of(number, other))
            try:
                with cm.Matcher.open(path, journal=True) as matcher:
                    matcher.match(crafted.EVENTS)
            except cm.ColmatchError:
                refused += 1
    assert refused > 30 and records.SECTIONS


def opened_journal(path: Path) -> Any:
    from colmatch.store import journal_file
    from colmatch.store.journal import Journal

    journal = Journal(str(path), False)
    file = journal._current()
    journal_file.is_begun(file, journal.path)
    return file
