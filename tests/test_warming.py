"""``colmatch.warm``: nothing is left to be compiled, processes share the work, and what cannot be
kept is said.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from contract import NO_JIT
from kernel_copy import plain_environment

import colmatch as cm
from colmatch import warming
from colmatch.kernels import _background, _closure, _disk, _folders, _jit, _warm

BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
jit = pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
cold = pytest.mark.skipif(NO_JIT or BOUNDS, reason="compiles much, in processes that have no such settings")

BENCHMARKS = Path(__file__).parents[1] / "asv_benchmarks"  # has the workloads

WARM = """
    import json, sys
    import colmatch as cm

    found = cm.warm(json.loads(sys.argv[1]))
    print(json.dumps(found._replace(folder=str(found.folder))))
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
    from workload import named

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
            one.upsert({0: "s = 'a' OR n > 3"})
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


def started(program: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    environment = plain_environment(COLMATCH_CACHE_DIR=str(folder), PYTHONPATH=str(BENCHMARKS))
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
    (kernels, compiled, loaded, _, folder), _ = said(started(WARM, tmp_path / "cache", "null"))
    assert kernels > 150 and loaded + compiled == kernels
    assert {name.partition("-")[0] for name in names(tmp_path) - before} or not compiled
    assert Path(folder).parent == tmp_path / "cache"
    second, _ = said(started(OWN, tmp_path / "cache", str(tmp_path), *cm.index_kinds()))
    assert second["used"] > 100
    assert second["compiled"] == []


SHARE = """
    import json
    from colmatch.kernels import _disk, _folders, _warm

    _folders.make(_disk.cache_dir())
    some = [task for task in _warm.list_tasks() if task.kernel._cache.name.startswith(("ranges.", "sink.", "hints."))]
    _warm.compile_missing(some, False)
    compiled = [task.kernel._cache.name for task in some if task.types in task.kernel.stats.cache_misses]
    print(json.dumps({"asked": len(some), "compiled": compiled, "left": sum(not task.is_there(False) for task in some)}))
"""


@cold
def test_processes_share_the_work(tmp_path: Path) -> None:
    """Nothing is compiled twice, and nothing is left when both have ended."""
    first, second = (said(process)[0] for process in [started(SHARE, tmp_path), started(SHARE, tmp_path)])
    assert first["left"] == second["left"] == 0
    assert len(first["compiled"]) + len(second["compiled"]) == first["asked"] == len(names(tmp_path)) > 8
    assert first["compiled"] and second["compiled"]


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of compiled kernels, which those of the package do not stand in for."""
    monkeypatch.setenv("COLMATCH_CACHE_DIR", str(tmp_path / "usual"))
    monkeypatch.setattr(_jit, "MODE", "native")
    return tmp_path / "usual"


@pytest.fixture
def one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has this process ask for one cheap kernel, and others compile it alone."""
    only(monkeypatch, "ranges.list_members")


def only(monkeypatch: pytest.MonkeyPatch, *wanted: str) -> None:
    def few(without: Iterable[str] = ()) -> list[_warm.CompileTask]:
        return [task for task in tasks(without) if task.kernel._cache.name in wanted]

    tasks, start = (
        _warm.list_tasks,
        f"_warm.compile_missing([t for t in _warm.list_tasks() if t.kernel._cache.name in {wanted}]",
    )
    monkeypatch.setattr(_warm, "list_tasks", few)
    monkeypatch.setattr(
        _warm, "_START", _warm._START.replace("_warm.compile_missing(_warm.list_tasks({without!r})", start)
    )


@jit
def test_each_kernel_counts_once(usual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one with two signatures."""
    only(monkeypatch, "ranges.copy_ranges")
    for compiled in (1, 0):
        found = cm.warm()
        assert (found.kernels, found.compiled, found.loaded) == (1, compiled, 1 - compiled)
    assert len(names(usual)) == 2 and found.folder.parent == usual


@jit
@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_what_others_could_have_written_is_compiled(usual: Path, one_kernel: None) -> None:
    assert cm.warm().compiled == 1
    (file,) = usual.rglob("*.bin")
    assert file.name.startswith("ranges.list_members-")
    before = file.stat().st_mtime_ns
    file.chmod(0o666)
    assert cm.warm().compiled == 1 and file.stat().st_mtime_ns > before
    assert cm.warm().compiled == 0


@jit
def test_damaged_files_are_compiled(usual: Path, one_kernel: None) -> None:
    cm.warm()
    (file,) = usual.rglob("*.bin")
    file.write_bytes(file.read_bytes()[:-1])
    assert cm.warm().compiled == 1 and cm.warm().compiled == 0


@jit
def test_a_kernel_that_cannot_be_kept_is_an_error(
    usual: Path, one_kernel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = "def refused(path, data): raise OSError(28, 'No space left on device')\n"
    start = f"from colmatch.kernels import _folders\n{refused}_folders.write = refused\n"
    monkeypatch.setattr(_warm, "_START", _warm._START.replace("_background.end", f"{start}_background.end"))
    with pytest.raises(
        cm.StoreError, match=r"1 of 1 kernels .* could not be kept in .*ranges\.list_members: .*disk has room"
    ):
        cm.warm()


@jit
def test_a_kernel_that_cannot_be_compiled_is_an_error(
    usual: Path, one_kernel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_warm, "_START", _warm._START + "\nraise ValueError('no such type')")
    with pytest.raises(cm.KernelError, match="kernels could not be compiled: ValueError: no such type"):
        cm.warm()


@jit
def test_a_program_with_python_inside_compiles_nothing(
    usual: Path, one_kernel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/editor")
    with pytest.raises(cm.KernelError, match="'/usr/bin/editor' is no Python: run colmatch warm beforehand"):
        cm.warm()


@jit
def test_what_a_process_says_does_not_stop_it(usual: Path, one_kernel: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds."""
    monkeypatch.setattr(_warm, "_START", "import sys\nsys.stderr.write('x' * 1_000_000)\n" + _warm._START)
    assert cm.warm().compiled == 1


ALL_BUT_LOCKED = """
    import json
    from colmatch.kernels import _disk, _warm

    some = [task for task in _warm.list_tasks() if task.kernel._cache.name in ("ranges.list_members", "sink.number_events")]
    _warm.compile_missing(some, False)
"""


@cold
def test_a_kernel_that_another_process_compiles_keeps_nobody_from_others(usual: Path) -> None:
    """Each kernel has a lock of its own."""
    folder = _disk.cache_dir()
    assert folder is not None
    _folders.make(folder)
    with _background.lock_file(folder / "ranges.list_members.lock"):
        process = started(ALL_BUT_LOCKED, usual)
        end = time.monotonic() + 100
        while not names(usual) and time.monotonic() < end:
            time.sleep(0.05)
        assert [name.partition("-")[0] for name in names(usual)] == ["sink.number_events"]
        assert process.poll() is None  # it waits
    process.communicate(timeout=100)
    assert not process.returncode and len(names(usual)) == 2


@jit
def test_a_folder_where_no_lock_can_be_made(usual: Path, one_kernel: None) -> None:
    """It is compiled all the same, and kept where only the lock's name is taken."""
    folder = _disk.cache_dir()
    assert folder is not None
    (folder / "ranges.list_members.lock").mkdir(parents=True)
    folder.chmod(0o755)
    assert cm.warm().compiled == 1 and len(names(usual)) == 1


@jit
def test_there_is_a_process_for_each_processor(usual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(_warm, "start_processes", lambda count, *rest: asked.append(count) or [])
    monkeypatch.setattr(warming, "cores", lambda _: 3)
    only(monkeypatch, "ranges.list_members", "ranges.copy_ranges", "sink.number_events")
    for wanted in (3, 1):
        with pytest.raises(cm.StoreError, match="could not be kept"):
            cm.warm()
        assert asked.pop() == wanted
        only(monkeypatch, "ranges.list_members")


@jit
def test_an_interrupt_ends_the_other_processes(usual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes: list[subprocess.Popen[str]] = []

    start = _warm.start_processes
    monkeypatch.setattr(warming.time, "sleep", lambda _: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(_warm, "start_processes", lambda *arguments: processes.extend(start(*arguments)) or processes)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of pytest-xdist ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            cm.warm("scan")
    finally:
        signal.signal(signal.SIGINT, before)
    assert processes and all(process.returncode == -signal.SIGKILL for process in processes)


@jit
@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_folders_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_kernel: None) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for folder, why in (
        (tmp_path / "file" / "x", "cannot be made: .*; let COLMATCH_CACHE_DIR name a folder that you can write"),
        (tmp_path / ("x" * 300), "cannot be made: File name too long; let COLMATCH_CACHE_DIR name a folder"),
        (tmp_path / "open", r"may be written by everybody \(mode 0777\), so that others .* name a folder of your own"),
    ):
        monkeypatch.setenv("COLMATCH_CACHE_DIR", str(folder))
        with pytest.raises(cm.OptionError, match=f"the cache folder .*{why}"):
            cm.warm()
    assert not list((tmp_path / "open").iterdir())


@jit
def test_without_a_folder_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_folders, "base", lambda: None)
    with pytest.raises(cm.OptionError, match="no home folder: let COLMATCH_CACHE_DIR say"):
        cm.warm()
    monkeypatch.undo()
    monkeypatch.setattr(_closure, "STATUSES", {})
    with pytest.raises(cm.OptionError, match="sources of the kernels cannot be read"):
        cm.warm()


def test_kinds(usual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of other kinds are left out, but for those of new subscriptions."""
    asked: list[list[str]] = []

    def noted(without: Iterable[str]) -> list[_warm.CompileTask]:
        asked.append(list(without))
        return []

    monkeypatch.setattr(_warm, "list_tasks", noted)
    settings = cm.index("betree", construction="dynamic")
    for index in (None, "auto", ["scan", "auto"], "scan", ("scan", settings, "pstbloom"), settings):
        with pytest.raises(cm.OptionError, match="NUMBA_DISABLE_JIT is set"):
            cm.warm(index)
    folders = ["bitslice", "kindex", "opindex", "pbtree", "propagation", "pstbloom", "psthash", "pstree", "trees"]
    every = [f"kinds.{folder}" for folder in folders]
    few = [name for name in every if name not in ("kinds.pstbloom", "kinds.pstree", "kinds.trees")]
    assert asked == [[], [], [], every, few, [name for name in every if name != "kinds.trees"]]
    for index, why in (("nope", "index='nope': the kinds are"), ([], "a kind of index is needed"), (7, "index=7")):
        with pytest.raises(cm.OptionError, match=why):
            cm.warm(index)


def test_the_time_that_is_left_follows_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(warming.time, "monotonic", lambda: now[0])
    tasks = [_warm.CompileTask(None, (), cost) for cost in (400, 300, *[100] * 3)]
    clock = warming._TimeLeft(tasks, 2)
    clock.look(tasks)
    assert clock.describe_rest() == ""
    now[0] += 30
    clock.look(tasks[1:])  # 400 and half of 300 and 100 are done in 30 s, 400 are left
    assert clock.describe_rest() == "20 s left"
    now[0] += 15
    clock.look(tasks[1:])
    assert clock.describe_rest() == "5 s left"  # while none becomes ready, it counts down
    now[0] += 15
    assert clock.describe_rest() == "1 s left"
    clock.look(tasks[2:])  # slower than it seemed
    assert clock.describe_rest() == "15 s left"
