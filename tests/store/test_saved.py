"""Files of a matcher that lack something, or whose arrays are not what kernels read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from contract import every_kind

import colmatch as cm
from colmatch.errors import StoreError
from colmatch.matcher import Matcher
from colmatch.store import file as store


def test_arrays_of_another_type_are_refused(tmp_path: Path) -> None:
    """Kernels are called without a look at types, so the file's must be those that they are for."""
    path, changed = tmp_path / "some.cm", tmp_path / "changed.cm"
    Matcher.build({i: f"a = {i} AND b > {i}" for i in range(70)}, {"a": "int64", "b": "int64"}, index="scan").save(path)
    header, arrays = store.read_arrays(path)
    for name, other in (
        ("ids", "i4"),
        ("sample", "i8"),
        ("segments.0.predicates.first", "f8"),
        ("segments.0.codes.bound", "f8"),
        ("segments.0.predicates.owner", "i4"),
        ("segments.0.index.head", "u8"),
        ("deleted", "i8"),
        ("literals.offset", "f8"),
    ):
        store.write_arrays(changed, header, {**arrays, name: arrays[name].astype(other)})
        with pytest.raises(StoreError, match=f"{name} is"):
            Matcher.open(changed)


@every_kind
def test_arrays_of_another_shape_are_refused(kind: str, tmp_path: Path) -> None:
    """Of each kind of index, each array; and those that there are of string ids."""
    path, changed = tmp_path / "some.cm", tmp_path / "changed.cm"
    texts = {f"x{i}": f"a = {i} AND (b > {i} OR s LIKE 'x{i}%') OR b < {i} AND a > {i}" for i in range(70)}
    Matcher.build(texts, {"a": "int64", "b": "int64", "s": "string"}, index=cm.index(kind, dnf_budget=1)).save(path)
    header, arrays = store.read_arrays(path)
    for name, array in arrays.items():
        others = [array[..., None], np.zeros((), array.dtype)]
        if array.ndim > 1:
            others += [array.reshape(-1), np.concatenate([array, array[:, :1]], axis=1)]
        for other in others:
            store.write_arrays(changed, header, {**arrays, name: other})
            with pytest.raises(StoreError, match=rf"\({name} is .* of the shape"):
                Matcher.open(changed)


def test_what_a_file_of_another_version_does_not_have_is_named(tmp_path: Path) -> None:
    Matcher.build({1: "a = 1"}, {"a": "int64"}).save(tmp_path / "i")
    header, arrays = store.read_arrays(tmp_path / "i", False, True)
    for name in ("merges", "segments"):
        store.write_arrays(tmp_path / "i", {key: value for key, value in header.items() if key != name}, arrays)
        with pytest.raises(StoreError, match=rf"wrote \('{name}' is not there\): build it again"):
            Matcher.open(tmp_path / "i")
    for name in ("deleted", "literals.first", "segments.0.codes.bound"):
        store.write_arrays(tmp_path / "i", header, {key: value for key, value in arrays.items() if key != name})
        with pytest.raises(StoreError, match=rf"wrote \('{name}' is not there\): build it again"):
            Matcher.open(tmp_path / "i")


@every_kind
@pytest.mark.parametrize("text", ["TRUE", "a IS NULL", "b IS NOT NULL"])
def test_what_has_no_boundary_is_opened(kind: str, text: str, tmp_path: Path) -> None:
    """Nothing of it has a code; of a growing segment, nothing has a label."""
    events = pa.table({"a": pa.array([None], pa.int64()), "b": [1]})
    for first in ({}, {1: text}, {1: "a > 1"}):
        matcher = cm.Matcher.build(first, events.schema, index=kind)
        matcher.insert({2: text})
        matcher.save(tmp_path / "it")
        opened = cm.Matcher.open(tmp_path / "it")
        opened.insert({3: "b = 1"})
        assert opened.match_lists(events)[0].as_py() == [id for id in (1, 2, 3) if id > 1 or first == {1: text}]


@pytest.mark.parametrize("index", ["scan", "pbtree"])
def test_options_of_who_opens(tmp_path: Path, index: str) -> None:
    path = tmp_path / "a.cm"
    settings = cm.index("pbtree", path=str(path)) if index == "pbtree" else index
    built = cm.Options(ansi=True, threads=2, timezone="Europe/Paris")
    with cm.Matcher.build({1: "a = 1"}, {"a": "int64"}, settings, built) as matcher:
        if index != "pbtree":
            matcher.save(path)
    given = cm.Options(threads=1, missing_columns="null", timezone="America/New_York")
    with cm.Matcher.open(path, options=given) as opened:
        assert opened.options == cm.Options(ansi=True, threads=1, missing_columns="null", timezone="America/New_York")
        assert opened.count(pa.table({"b": [1]})).tolist() == [0]
        opened.insert({2: "a IS NULL"})
        assert opened.count(pa.table({"b": [1]})).tolist() == [1]
    with cm.Matcher.open(path) as opened:
        assert (opened.options.timezone, opened.options.threads) == ("Europe/Paris", 2)
    with pytest.raises(cm.OptionError, match="built with max_depth=.*rebuild"):
        cm.Matcher.open(path, options=cm.Options(max_depth=7))
    with cm.Matcher.open(path, options={"threads": 0, "timezone": "UTC"}) as opened:
        assert opened.options == cm.Options(ansi=True)
    with pytest.raises(cm.OptionError, match="no option 'thread': did you mean 'threads'"):
        cm.Matcher.open(path, options={"thread": 1})
    with pytest.raises(cm.OptionError, match="Options"):
        cm.Matcher.open(path, options="fast")  # type: ignore[arg-type]


def test_a_zone_that_a_literal_was_read_in_stays(tmp_path: Path) -> None:
    path, schema = tmp_path / "a.cm", {"at": pa.timestamp("us", "UTC")}
    built = cm.Options(timezone="Europe/Paris")
    cm.Matcher.build({1: "at > TIMESTAMP '2020-01-01 00:00:00'"}, schema, options=built).save(path)
    with pytest.raises(cm.OptionError, match="timezone='America/New_York': .*2020.* was read in 'Europe/Paris'"):
        cm.Matcher.open(path, options=cm.Options(timezone="America/New_York"))
    assert cm.Matcher.open(path, options=cm.Options(threads=1)).options == cm.Options(
        threads=1, timezone="Europe/Paris"
    )


ADDRESSES = ["file:{}", "file://{}", "file://localhost{}"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_path_may_be_an_address_of_a_local_file(tmp_path: Path, address: str) -> None:
    folder = tmp_path / "a b%20#?"
    folder.mkdir()
    written = address.format(folder.as_uri().removeprefix("file://"))
    rules, events = {1: "a = 1"}, pa.table({"a": [1]})
    Matcher.build(rules, events.schema).save(f"{written}/alerts")
    assert [path.name for path in folder.iterdir()] == ["alerts"]
    assert Matcher.open(f"{written}/alerts", journal=True).match_lists(events).to_pylist() == [[1]]
    pages = cm.index("pbtree", path=f"{written}/pages")
    assert pages == cm.index("pbtree", path=str(folder / "pages"))
    with Matcher.build(rules, events.schema, index=pages):
        assert Matcher.open(f"{written}/pages".encode()).match_lists(events).to_pylist() == [[1]]


@pytest.mark.parametrize(
    "address", ["s3://bucket/alerts", "file://host/alerts", "dbfs:///alerts", "HDFS://host:9000/a"]
)
def test_an_address_elsewhere_is_refused(address: str) -> None:
    matcher = Matcher.build({1: "a = 1"}, {"a": "int64"})
    for call in (Matcher.open, matcher.save):
        with pytest.raises(StoreError, match="is an address, and a matcher is a file of this machine"):
            call(address)
