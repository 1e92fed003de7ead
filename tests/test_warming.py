"""``colmatch.warm``: nothing is left to be compiled, one process compiles, and what cannot be kept
is said.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract import NO_JIT
from kernel_copy import plain_environment

import colmatch as cm
from colmatch.kernels import _compiling, _disk, _folders
from colmatch.kernels.ranges import copy_ranges, list_members
from colmatch.warming import lock, warm
from colmatch.warming.calls import Step

BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
jit = pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
cold = pytest.mark.skipif(NO_JIT or BOUNDS, reason="compiles much, in processes that have no such settings")

WARM = """
    import json, sys
    from importlib import import_module
    from pkgutil import walk_packages
    import colmatch as cm
    import colmatch.kernels
    from colmatch.kernels import _disk, _jit

    for module in walk_packages(colmatch.kernels.__path__, "colmatch.kernels."):
        import_module(module.name)
    found = cm.warm(json.loads(sys.argv[1]))
    several = {kernel._cache.name: len(kernel.overloads) for kernel in _jit.kernels() if len(kernel.overloads) > 1}
    print(json.dumps({
        "report": found._replace(folder=str(found.folder)),
        "kernels": len(_jit.kernels()),
        "unused": [kernel._cache.name for kernel in _jit.kernels() if not kernel.signatures],
        "several": several,
    }))
"""

# Written without a look at the calls that ``warm`` makes: workloads of the literature, and whatever
# the guide shows.
OWN = """
    import json, pickle, sys, warnings
    warnings.simplefilter("error")
    import numpy as np
    import pyarrow as pa
    import colmatch as cm
    from colmatch.kernels import _disk, _jit
    from colmatch.workload import named

    folder, kinds = sys.argv[1], sys.argv[2:]
    schema = {"n": "int64", "x": "float64", "s": "string", "b": "bool", "tags": pa.list_(pa.string())}
    texts = {
        0: "n = 1 OR x < 0.5",
        1: "s LIKE 'a%' AND NOT b",
        2: "n IN (1, 2, 3) AND s <> 'b'",
        3: "array_contains(tags, 'x')",
        4: "n IS NULL",
        5: "(n BETWEEN 2 AND 9 OR s > 'b') AND (x > 2.5 OR b)",
    }
    rows = [{"n": i % 7 or None, "x": i / 4, "s": "abc"[i % 3], "b": i % 2 == 0, "tags": ["x"] * (i % 3)} for i in range(50)]

    def small(kind):
        matcher = cm.Matcher.build(texts, schema, index=kind)
        path = f"{folder}/small-{kind}"
        matcher.save(path)
        table = pa.Table.from_pylist(rows, matcher.schema.arrow)
        expected = matcher.match(table)
        assert len(expected)
        encoded = table.set_column(2, "s", table["s"].dictionary_encode())
        opened = cm.Matcher.open(path), cm.Matcher.open(path, mmap=False)
        for one in (matcher, pickle.loads(pickle.dumps(matcher)), *opened):
            for events in (table, encoded, pa.concat_tables([table.slice(0, 13), table.slice(13)])):
                assert one.match(events) == expected
            assert len(one.match(table.slice(0, 0))) == 0 and sum(one.count(table)) == len(expected)
            one.match_lists(table)
            one.explain(rows[0], 0)
            one.insert({6: "n = 99 AND s > 'bb' OR x BETWEEN 1.25 AND 7.5"})
            one.replace({0: "s = 'a' OR n > 3"})
            one.delete([1])
            assert len(one.match(encoded)) and len(one) == 6

    def large(kind, name, **sizes):
        workload = named(name, subscriptions=2000, **sizes)
        table, schema, events = workload.predicate_table(), workload.schema(), workload.events(300)
        with cm.Matcher.build(table, schema, index=kind, sample=events) as matcher:
            count = matcher.count(events)
            assert count.tolist() == [len(some) for some in matcher.match_lists(events).to_pylist()]
            matcher.match(events, ids=np.arange(50))
            for k in (1, 10):
                for score in ("dot", "sum", "max", "priority"):
                    matcher.match_topk(events, k, score)
            matcher.reasons(events.slice(0, 40), ids=np.arange(50))
            matcher.delete(np.arange(0, 900))
            matcher.compact()
            assert (matcher.exists(events) <= (count > 0)).all()

    def ranges(kind):
        texts = {i: f"a BETWEEN {i} AND {i + 3} AND (b <> 'x{i % 3}' OR c < {i})" for i in range(80)}
        if kind == "pbtree":
            kind = cm.index(kind, path=f"{folder}/ranges.pages")
        events = pa.table({"low": [1, None], "high": [9, 3], "b": ["x1", "q"], "c": [70, 2]})
        with cm.Matcher.build(texts, {"a": "int64", "b": "string", "c": "int64"}, index=kind) as matcher:
            for one in (events, events.slice(0, 1)):
                assert len(matcher.match(one, ranges={"a": ("low", "high")}))
            for i in range(100, 130):
                matcher.insert({i: f"a = {i - 100} AND b = 'new {i}'"})
            matcher.delete([1, 120])
            matcher.match(events, ranges={"a": ("low", "high"), "c": ("c", "c")})
            matcher.match_topk(events.append_column("a", [[3, 4]]), 2)

    def texts_and_places():
        schema = {"s": "string", "lat": "double", "lon": "double", "m": pa.map_(pa.string(), pa.string())}
        texts = {i: f"s LIKE '%word{i}%' OR m['k{i % 5}'] = 'v{i}'" for i in range(40)}
        texts |= {100 + i: f"geo_within_radius(lat, lon, {i}, 16.4, 10.0) AND s RLIKE '^wo+rd{i}'" for i in range(9)}
        matcher = cm.Matcher.build(texts, schema)
        rows = [{"s": "a word7 is here", "lat": 3.0, "lon": 16.4, "m": [("k1", "v1")]}, {"s": None}]
        events = pa.Table.from_pylist(rows, matcher.schema.arrow)
        assert matcher.match_lists(events).to_pylist() == [[1, 7], []]

    for kind in kinds:
        small(kind)
        ranges(kind)
        for name in ("dense", "ads"):
            large(kind, name)
        if kind in ("betree", "bestar", "opindex", "pstbloom", "psthash"):
            large(cm.index(kind, construction="dynamic"), "dense")
    texts_and_places()
    kernels = _jit.kernels()
    print(json.dumps({
        "used": sum(bool(kernel.signatures) for kernel in kernels),
        "compiled": [str(kernel) for kernel in kernels if kernel.stats.cache_misses],
    }))
"""

# Kernels for which numba has two signatures, and why.
SEVERAL = {
    "ranges.copy_ranges": 2,  # bytes and numbers
    "pstree.build.choose_all": 2,  # trees of pstbloom and of psthash, and so below
    "pstree.build.make_cells": 2,
    "pstree.build.make_spaces": 2,
    "lowering.codes.code_predicates": 2,  # as ``lower_few`` calls it, and so below
    "lowering.codes.find_repeats": 2,
}


def started(program: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    environment = plain_environment(COLMATCH_CACHE_DIR=str(folder))
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> tuple[Any, str]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out), err


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.bin")}


def seeded(folder: Path, wanted: Callable[[str], bool] = bool) -> set[str]:
    """Copies kernels that earlier tests have compiled, since compiling all takes minutes.

    ``.ci/wheel`` compiles all from an empty folder.
    """
    usual = _disk.cache_dir()
    assert usual is not None
    for path in usual.glob("*.bin"):
        if wanted(path.name):
            (folder / usual.name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / usual.name / path.name)
    return names(folder)


@cold
def test_after_warming_no_kernel_is_compiled(tmp_path: Path) -> None:
    """However the arrays came about: built, pickled, mapped, sliced. Else the first caller would
    wait for it.
    """
    before = seeded(tmp_path / "cache")
    first, _ = said(started(WARM, tmp_path / "cache", "null"))
    kernels, compiled, loaded, _, folder = first["report"]
    assert first["unused"] == [] and first["several"].items() <= SEVERAL.items()
    assert kernels == first["kernels"] > 150 and loaded + compiled == kernels
    # a kernel that was kept is compiled again where another calls it
    assert (
        len({name.partition("-")[0] for name in names(tmp_path) - before}) <= compiled
        and Path(folder).parent == tmp_path / "cache"
    )
    second, _ = said(started(OWN, tmp_path / "cache", str(tmp_path), *cm.kinds()))
    assert second["used"] > 100
    assert second["compiled"] == []


@cold
def test_one_process_compiles_and_another_waits_for_it(tmp_path: Path) -> None:
    """Of one kind; kernels of other kinds are left out."""
    others = {*cm.kinds(), "trees", "pstree"} - {"scan"}
    before = seeded(tmp_path, lambda name: name.partition(".")[0] not in others and "few" not in name)
    both = [said(process) for process in [started(WARM, tmp_path, '"scan"'), started(WARM, tmp_path, '["scan"]')]]
    reports = sorted((found["report"] for found, _ in both), key=lambda report: report[1])
    (_, waited, loaded, _, _), (_, compiled, _, _, _) = reports
    new = {name.partition("-")[0] for name in names(tmp_path) - before}
    assert waited == 0 < len(new) <= compiled and loaded > 0
    told = "".join(err for _, err in both)
    assert told.count("another process compiles kernels into") == 1
    assert not {name.partition(".")[0] for name in names(tmp_path)} & others
    found, _ = said(started(OWN, tmp_path, str(tmp_path), "scan"))
    assert found["compiled"] == []


@pytest.fixture
def one_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has ``warm`` call one kernel alone."""

    def call(folder: Path | None = None) -> None:
        list_members(np.zeros(1, np.int64), np.array([0, 1]), np.empty(1, np.int64))

    monkeypatch.setattr(warm, "steps", lambda kinds: [Step("one", call)])
    return call


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual folder of compiled kernels."""
    monkeypatch.setenv("COLMATCH_CACHE_DIR", str(tmp_path / "usual"))
    return tmp_path / "usual"


@jit
def test_what_is_in_memory_is_kept_in_another_folder(tmp_path: Path, usual: Path, one_step: Callable[[], None]) -> None:
    one_step()
    shutil.rmtree(usual, ignore_errors=True)  # another test may have had the kernel in memory
    found = cm.warm(to=tmp_path / "other")
    (name,) = names(tmp_path / "other")
    assert name.startswith("ranges.list_members-")
    assert found.folder == tmp_path / "other" / _disk.cache_dir().name  # type: ignore[union-attr]
    assert (found.kernels, found.compiled, found.loaded) == (1, 1, 0)
    assert os.environ["COLMATCH_CACHE_DIR"] == str(usual)
    again = cm.warm(to=tmp_path / "other")
    assert (again.kernels, again.compiled, again.loaded) == (1, 0, 1)  # it was in memory


@jit
def test_another_folder_gets_what_is_in_the_usual_one(
    tmp_path: Path, usual: Path, one_step: Callable[[], None]
) -> None:
    found = cm.warm(progress=True)
    assert found.folder.parent == usual and found.compiled == 1
    (file,) = usual.rglob("*.bin")
    before = file.read_bytes()
    found = cm.warm(to=tmp_path / "other")
    assert found.compiled == 0 and (found.folder / file.name).read_bytes() == before
    if os.name == "posix":
        file.chmod(0o666)  # others could have written it
        assert cm.warm(to=tmp_path / "third").compiled == 1
        usual.chmod(0o777)
        file.chmod(0o644)
        assert cm.warm(to=tmp_path / "fourth").compiled == 1


@jit
def test_each_kernel_counts_once(usual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one with two signatures, and one that is compiled as another kernel calls it."""

    def call(_: Path) -> None:
        start = np.zeros(1, np.int64)
        for type in (np.int64, np.uint8):
            copy_ranges(np.zeros(1, type), 1, start, start + 1, start, np.empty(1, type))

    monkeypatch.setattr(warm, "steps", lambda kinds: [Step("two signatures", call)])
    for compiled in (1, 0):
        found = cm.warm()
        assert (found.kernels, found.compiled, found.loaded) == (1, compiled, 1 - compiled)
    assert len(names(usual)) == 2


@jit
def test_who_warms_is_not_told_to(
    usual: Path,
    one_step: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(_compiling, "SAY_AFTER", 0.0)
    monkeypatch.setattr(_compiling.state, "said", set())
    monkeypatch.setattr(warm, "steps", lambda kinds: [Step("one", one_step)])
    with caplog.at_level(logging.WARNING, "colmatch"):
        assert cm.warm().compiled == 1
    assert not caplog.records and not _compiling.state.said


@jit
def test_what_cannot_be_kept_is_an_error(
    usual: Path, one_step: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_folders, "write", refused)
    with pytest.raises(
        cm.StoreError, match=r"1 of 1 kernels .* could not be kept in .*ranges\.list_members-.*disk has room"
    ):
        cm.warm()


@jit
@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_folders_that_cannot_be_used(tmp_path: Path, usual: Path, one_step: Callable[[], None]) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for to, why in (
        ("", "to='': the name of a folder is needed"),
        ("a\0b", "the name of a folder is needed"),
        (3.5, "to=3.5: the name of a folder is needed"),
        (tmp_path / "file" / "x", "cannot be made: .*; name a folder that you can write"),
        (tmp_path / "open", r"may be written by everybody \(mode 0777\), so that others .* name a folder of your own"),
    ):
        with pytest.raises(cm.OptionError, match=why):
            cm.warm(to=to)  # type: ignore[arg-type]
    assert not list((tmp_path / "open").iterdir()) and not usual.exists()
    usual.mkdir()
    usual.chmod(0o777)
    with pytest.raises(cm.OptionError, match="the cache folder .* is not used: .* may be written by everybody"):
        cm.warm()


@jit
def test_without_a_folder_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_folders, "base", lambda: None)
    with pytest.raises(cm.OptionError, match="no home folder: say by to=, or by COLMATCH_CACHE_DIR"):
        cm.warm()
    monkeypatch.undo()
    monkeypatch.setattr(_disk, "SOURCES", "")
    with pytest.raises(cm.OptionError, match="sources of the kernels cannot be read"):
        cm.warm()


def test_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(warm, "steps", lambda kinds: asked.append(list(kinds)) or [])
    if NO_JIT:
        with pytest.raises(cm.OptionError, match="NUMBA_DISABLE_JIT is set"):
            cm.warm()
        return
    settings = cm.index("betree", construction="dynamic")
    for index in (None, "auto", ["scan", "auto"], "scan", ("scan", settings, "betree"), settings):
        cm.warm(index, to=tmp_path)
    assert asked == [cm.kinds()] * 3 + [["scan"], ["scan", "betree"], ["betree"]]
    for index, why in (("nope", "index='nope': the kinds are"), ([], "a kind of index is needed"), (7, "index=7")):
        with pytest.raises(cm.OptionError, match=why):
            cm.warm(index)


HOLD = """
    import sys, time
    from pathlib import Path
    from colmatch.warming.lock import alone

    with alone(Path(sys.argv[1])):
        print("held", flush=True)
        time.sleep(600)
"""


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_killed_process_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lock, "SAY_AFTER", 0.2)
    entered = threading.Event()

    def wait() -> None:
        with lock.alone(tmp_path):
            entered.set()

    thread = threading.Thread(target=wait)
    process = started(HOLD, tmp_path, str(tmp_path))
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with caplog.at_level(logging.WARNING, "colmatch"):
            thread.start()
            assert not entered.wait(0.6)
        assert [record.getMessage() for record in caplog.records] == [
            f"another process compiles kernels into {tmp_path}: waiting until it has ended"
        ]
        os.kill(process.pid, signal.SIGKILL)
        assert entered.wait(30)
    finally:
        process.kill()
        process.communicate()
        thread.join()


def test_a_folder_that_cannot_be_written_has_no_lock(tmp_path: Path) -> None:
    with lock.alone(tmp_path / "no such folder"):
        pass
    assert not (tmp_path / "no such folder").exists()
