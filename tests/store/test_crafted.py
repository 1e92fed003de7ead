"""Files from elsewhere with right checksums: refused, or used without harm to the process."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import crafted
import inside
import numpy as np
import pyarrow as pa
import pytest
from contract import pairs
from sizes import THOROUGH

import colmatch as cm
from colmatch.kinds.registry import KINDS
from colmatch.store.file import pack, read_arrays, write_arrays
from colmatch.store.journal import JOURNAL
from colmatch.store.log import HEADER, open_locked
from colmatch.store.saved import literals_of
from colmatch.updates import records

EACH = 800 if THOROUGH else 24  # files of each kind, half of them with ids that are numbers


@pytest.mark.parametrize("kind", cm.index_kinds())
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


LITERALS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "an attribute more": ("first", lambda first: np.append(first, first[-1]), "first has .* rows, not"),
    "ranges that descend": ("first", lambda first: np.append(0, first[:0:-1]), "first does not ascend from 0 to"),
    "more literals than there are": ("first", lambda first: first + (first == first[-1]), "first does not ascend"),
    "bytes behind the last": ("offset", lambda offset: offset + (offset == offset[-1]), "offset does not ascend"),
    "bytes in front of the first": ("offset", lambda offset: offset - (offset == 0), "offset does not ascend"),
    "a label more": ("label", lambda label: np.append(label, label[-1] + 1), "label has .* rows, not"),
    "labels in no order": ("label", lambda label: label[::-1], "labels of literals do not ascend"),
    "a label too low": ("label", lambda label: label - label.max(), "labels of literals do not ascend"),
}


@pytest.mark.parametrize("how", LITERALS)
def test_literals_that_are_not_where_they_are_said_to_be_are_refused(tmp_path: Path, how: str) -> None:
    name, other, said = LITERALS[how]

    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        array = arrays[f"literals.{name}"]
        assert len(array) > 2
        arrays[f"literals.{name}"] = np.ascontiguousarray(other(array), array.dtype)

    path = changed(crafted.saved(tmp_path / "index", "scan", "number"), change)
    with pytest.raises(cm.StoreError, match=f"cannot read {path}, .*{said}"):
        cm.Matcher.open(path)


@pytest.mark.parametrize("how", [how for how in LITERALS if how != "an attribute more"])
def test_literals_of_pages_are_looked_at_too(tmp_path: Path, how: str) -> None:
    """They are read when they are needed, by themselves."""
    name, other, said = LITERALS[how]
    _, arrays = read_arrays(crafted.saved(tmp_path / "index", "scan", "number"))
    own = {name: arrays[f"literals.{name}"] for name in ("first", "offset", "data", "label")}
    assert len(literals_of(pack({}, own)).offset) == len(own["offset"]) > 2
    own[name] = np.ascontiguousarray(other(own[name]), own[name].dtype)
    with pytest.raises(cm.StoreError, match=f"the string literals of the pages cannot be read .*{said}"):
        literals_of(pack({}, own))


def stream(*parts: pa.Array) -> Any:
    """Events as a sample has them, which Arrow takes as they are."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, pa.schema([("c", parts[0].type)])) as written:
        for texts in parts:
            written.write_batch(pa.record_batch({"c": texts}))
    return np.frombuffer(out.getvalue(), np.uint8)


def texts_of(offsets: list[int], data: bytes) -> pa.Array:
    buffers = None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data)
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, list(buffers))


SAMPLES = {
    "no UTF-8": stream(texts_of([0, 1, 2], b"x\xff")),
    "no UTF-8 in its second batch": stream(texts_of([0, 1, 2], b"xy"), texts_of([0, 1, 2], b"x\xff")),
    "no texts": stream(texts_of([0, 9, 2], b"xy")),
    "half of its description": stream(texts_of([0, 1, 2], b"xy"))[:-60],
    "half of its texts": stream(texts_of([0, 1, 2], b"xy"))[:-20],
    "no stream": np.arange(64, dtype=np.uint8),
}


@pytest.mark.parametrize("how", SAMPLES)
def test_a_sample_that_is_no_events_is_refused(tmp_path: Path, how: str) -> None:
    path = crafted.saved(tmp_path / "index", "scan", "number")
    changed(path, lambda header, arrays: arrays.update(sample=stream(texts_of([0, 1, 2], b"xy"))))
    with cm.Matcher.open(path) as matcher:
        matcher.compact()
    changed(path, lambda header, arrays: arrays.update(sample=SAMPLES[how]))
    with pytest.raises(cm.StoreError, match=f"cannot read {path}, .*the sample of events: "):
        cm.Matcher.open(path)


@pytest.mark.parametrize("how", SAMPLES)
def test_a_journal_with_a_sample_that_is_no_events_is_refused(tmp_path: Path, how: str) -> None:
    """It stands in the record of ``compact(sample=...)``."""
    path = crafted.saved(tmp_path / "index", "scan", "number")
    with cm.Matcher.open(path, journal=True) as matcher:
        matcher.compact(sample=crafted.EVENTS)
    with_record(path, records.of_sample(stream(texts_of([0, 1, 2], b"xy"))))
    with cm.Matcher.open(path, journal=True) as matcher:
        assert matcher.match(crafted.EVENTS).num_rows > 0
    with_record(path, records.of_sample(SAMPLES[how]))
    with pytest.raises(cm.StoreError, match=f"cannot read {path}.journal .*the sample of events: "):
        cm.Matcher.open(path, journal=True)


def test_an_index_that_is_not_looked_at_is_made_anew(tmp_path: Path) -> None:
    """Its arrays do not count then; where the file is trusted, they are taken as they are."""
    for kind in cm.index_kinds():
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
    path = crafted.saved(tmp_path / "index", "scan", "number")
    with cm.Matcher.open(path, journal=True) as matcher:
        matcher.insert({501: "a IN (3, 5, 9) AND (b > 4 OR c = 'new')", 502: "b < 3"})
    record = with_record(path)
    refused = 0
    for at in range(0, len(record), 1 if THOROUGH else 3):
        for flip in (0x01, 0x80, 0xFF):
            other = record[:at] + bytes([record[at] ^ flip]) + record[at + 1 :]
            with_record(path, other)
            try:
                with cm.Matcher.open(path, journal=True) as matcher:
                    matcher.match(crafted.EVENTS)
            except cm.ColmatchError:
                refused += 1
    assert refused > 30


def with_record(path: Path, other: bytes | None = None) -> bytes:
    """What the only record of a journal has; something else may take its place."""
    with closing(open_locked(JOURNAL, str(path))) as log:
        assert log.read_header()
        [record] = log.records()
        if other is not None:
            log.append(HEADER, record.number, [other], zlib.crc32(other))
        return record.content
