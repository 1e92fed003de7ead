"""Small inputs are interpreted until another process has compiled the kernels for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from kernel_copy import MAIN, Copy, plain_environment

import colmatch as cm
from colmatch.kernels import _background, _interpret, bits, layout
from colmatch.kernels.arrow import memory
from colmatch.kernels.kinds.scan import match as scan
from colmatch.matching import workers

pytestmark = [
    pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"),
    pytest.mark.skipif(os.name != "posix", reason="signals and locks of POSIX"),
]

SHORT = """
    import json, logging, sys, time
    import numpy as np
    from colmatch.kernels import _background, _compiling, _disk, _interpret, _jit, probe

    said = []
    logging.getLogger("colmatch").addHandler(logging.NullHandler())
    logging.getLogger("colmatch").addFilter(lambda record: said.append(record.getMessage()))
    values = np.arange(5 if "small" in sys.argv else _interpret.SMALL + 1)
    if "at-once" in sys.argv:
        _background.BEFORE = 0.0
    totals, end = set(), time.monotonic() + 100
    while True:
        totals.add(int(probe.total(probe.State(values), len(values) - 5)))
        loaded = sum(sum(k.stats.cache_hits.values()) for k in _jit.kernels())
        if "at-once" not in sys.argv or loaded or time.monotonic() > end:
            break
        time.sleep(0.01)
    process = _background.compiler._process
    print(json.dumps({
        "totals": len(totals),
        "right": totals == {int(values[-5:].sum()) + 5},
        "loaded": loaded,
        "compiled": sum(sum(k.stats.cache_misses.values()) for k in _jit.kernels()),
        "interpreted": _interpret.Spent.seconds > 0,
        "process": process and process.pid,
        "said": said,
    }), flush=True)
    if "wait" in sys.argv:
        time.sleep(100)
"""


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def ends(process: int) -> bool:
    """Waits until a process has ended."""
    end = time.monotonic() + 20
    while lives(process) and time.monotonic() < end:
        time.sleep(0.05)
    return not lives(process)


def test_what_is_small_is_interpreted_and_leaves_nothing(copy):
    said = copy.run("small", program=SHORT, COLMATCH_KERNELS="auto")
    assert said["right"] and said["interpreted"] and not said["compiled"] and not said["said"]
    assert said["process"] is None and not copy.cache.exists()


def test_what_is_large_is_compiled(copy):
    said = copy.run(program=SHORT, COLMATCH_KERNELS="auto")
    assert said["right"] and not said["interpreted"] and said["compiled"] == 1


@pytest.mark.parametrize("mode", ["native", ""])
def test_one_may_wish_for_machine_code_always(copy, mode):
    said = copy.run("small", program=SHORT, COLMATCH_KERNELS=mode)
    assert (said["interpreted"], said["compiled"]) == ((False, 1) if mode else (True, 0))


def test_other_modes_are_refused(copy):
    process = copy.start(program=SHORT, COLMATCH_KERNELS="fast")
    assert "COLMATCH_KERNELS is 'fast': it must be one of auto, warm, native, ready" in process.communicate()[1]


def test_another_process_compiles_meanwhile(copy):
    said = copy.run("small", "at-once", program=SHORT, COLMATCH_KERNELS="auto")
    assert said["right"] and said["interpreted"] and (said["loaded"], said["compiled"]) == (1, 0)
    (text,) = said["said"]
    assert "interpreted, slowly, until another process has compiled" in text
    assert [Path(name).name.partition("-")[0] for name in copy.files()] == ["probe.total"]
    assert ends(said["process"])
    again = copy.run("small", program=SHORT, COLMATCH_KERNELS="auto")
    assert (again["loaded"], again["interpreted"]) == (1, False)


def test_the_other_process_ends_with_the_one_that_asked(copy):
    """However that ends."""
    process = copy.start("small", "at-once", "wait", program=SHORT, COLMATCH_KERNELS="auto")
    said = json.loads(process.stdout.readline())
    assert lives(said["process"])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert ends(said["process"])


def test_one_that_had_nothing_to_do_is_followed_by_another(tmp_path, monkeypatch):
    monkeypatch.setattr(_background, "_START", "")
    compiler = _background.CompilerProcess()
    assert compiler.ask(b"a kernel", tmp_path)
    first = compiler._process
    assert first.wait(20) == 0
    assert compiler.ask(b"another", tmp_path)
    assert compiler._process is not first and first.stdin.closed
    compiler.end()


def test_one_process_compiles_at_a_time(copy):
    """The others go on interpreting, and load what the first has made."""
    folder = Path(
        copy.run(
            program="import json; from colmatch.kernels import _disk, _jit; print(json.dumps(str(_disk.cache_dir())))"
        )
    )
    folder.mkdir(parents=True)
    held = _background.lock_file(folder / _background.BACKGROUND)
    process = copy.start("small", "at-once", program=SHORT, COLMATCH_KERNELS="auto")
    time.sleep(3)
    assert process.poll() is None and not copy.files()
    held.close()
    assert copy.finish(process)["loaded"] == 1


def test_each_kernel_is_compiled_by_one_of_many_processes(copy):
    """However large their inputs are."""
    processes = [copy.start("get", program=MAIN) for _ in range(4)]
    said = [copy.finish(process) for process in processes]
    assert [one["total"] for one in said] == [15] * 4
    assert (sum(one["compiled"] for one in said), sum(one["loaded"] for one in said)) == (2, 6)


def test_where_no_other_process_can_compile_this_one_does(copy):
    (copy.cache.parent / "file").touch()
    program = textwrap.dedent(SHORT).replace("values =", "_jit.ALONE = 0.0\nvalues =", 1)
    said = copy.run(
        "small",
        "at-once",
        program=program.replace("or time.monotonic()", "or True or time.monotonic()"),
        COLMATCH_KERNELS="auto",
        COLMATCH_CACHE_DIR=str(copy.cache.parent / "file"),
    )
    assert said["right"] and said["process"] is None
    assert said["compiled"] == 1


FORK = """
import os
child = os.fork()
if not child:
    os._exit(_background.compiler._process is not None)
assert os.waitpid(child, 0)[1] == 0
"""


def test_what_another_process_does_not_compile_is_compiled_here_at_last(copy):
    """Its disk may be full, or it stands still."""
    folder = Path(
        copy.run(
            program="import json; from colmatch.kernels import _disk, _jit; print(json.dumps(str(_disk.cache_dir())))"
        )
    )
    folder.mkdir(parents=True)
    with _background.lock_file(folder / _background.BACKGROUND):
        program = textwrap.dedent(SHORT).replace("values =", "_jit.PATIENCE = 0.02\nvalues =", 1)
        program = program.replace(
            "loaded = sum", "loaded = sum(sum(k.stats.cache_misses.values()) for k in _jit.kernels()) or sum", 1
        )
        said = copy.run("small", "at-once", program=program, COLMATCH_KERNELS="auto")
    assert said["right"] and said["compiled"] == 1 and said["process"]


BUSY = """
import threading
from numba.core.compiler_lock import global_compiler_lock
threading.Thread(target=global_compiler_lock.acquire).start()
"""


def test_where_another_thread_compiles_this_one_interprets(copy):
    program = textwrap.dedent(SHORT).replace("values =", f"{BUSY}values =", 1)
    said = copy.run("small", program=program, COLMATCH_KERNELS="auto")
    assert said["right"] and said["interpreted"] and not said["compiled"]


def test_a_forked_child_has_another_process_of_its_own(copy):
    program = textwrap.dedent(SHORT).replace("process = _background", f"{FORK}process = _background")
    said = copy.run("small", "at-once", program=program, COLMATCH_KERNELS="auto")
    assert said["right"] and said["process"]


def test_twins_are_python_and_nothing_else():
    """Also where a kernel calls others, by name or by module, and where it is an intrinsic."""
    twin = _interpret.find_twin(scan.match)
    seen, todo = set(), [twin]
    while todo:
        function = todo.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            assert not hasattr(value, "py_func"), name
            if isinstance(value, type(twin)):
                todo.append(value)
    assert len(seen) > 5
    assert _interpret.find_twin(layout.Predicates) is layout.Predicates and _interpret.find_twin(np) is np
    assert _interpret.find_twin(bits).ctz(np.uint64(8)) == 3
    words = np.array([5, -7], np.int64)
    assert _interpret.find_twin(memory.load_i64)(words.ctypes.data, 1) == -7


def batch(rows: int, text: str = "") -> pa.RecordBatch:
    return pa.record_batch({"s": [text] * rows})


class UnsizedBatch:
    """A batch of string views, which pyarrow before 26 cannot size."""

    num_rows = 2

    def __init__(self, size: int) -> None:
        self.get_total_buffer_size = lambda: size

    @property
    def nbytes(self) -> int:
        raise pa.ArrowTypeError("Extracting byte ranges not supported for type string_view")


def test_work_is_known_before():
    arrays = (np.zeros(_interpret.SMALL - 10), (np.zeros(8), 3))
    assert _interpret.is_small(arrays) and not _interpret.is_small((*arrays, np.zeros(9)))
    with _interpret.WorkEstimate(batch(100), 1_000):
        assert _interpret.is_small((np.zeros(2 * _interpret.SMALL),))
        with _interpret.WorkEstimate(batch(10_000), 1_000):
            assert not _interpret.is_small((1,))
        with _interpret.WorkEstimate(batch(2, "x" * _interpret.SMALL_BYTES), 1):
            assert not _interpret.is_small((1,))
        assert _interpret.is_small((1,))
        with _interpret.WorkEstimate(UnsizedBatch(10), 1):
            assert _interpret.is_small((1,))
        with _interpret.WorkEstimate(UnsizedBatch(_interpret.SMALL_BYTES + 1), 1):
            assert not _interpret.is_small((1,))
    assert not _interpret.is_small((np.zeros(2 * _interpret.SMALL),))


def test_a_matcher_tells_of_its_batches(monkeypatch):
    told, real = [], workers.WorkEstimate
    monkeypatch.setattr(workers, "WorkEstimate", lambda batch, n: told.append((batch.num_rows, n)) or real(batch, n))
    matcher = cm.Matcher.build({1: "a = 1", 2: "a = 2", 3: "a = 3"}, {"a": "int64"})
    events = pa.table({"a": [1, 2]})
    for call in (
        matcher.match,
        matcher.count,
        matcher.exists,
        matcher.reasons,
        lambda rows: matcher.match_topk(rows, 1),
    ):
        told.clear()
        call(events)
        assert set(told) == {(2, 3)}


def test_twins_are_there_whole_or_not_at_all(monkeypatch):
    """Ctrl-C while they are made, and threads that need them at once."""
    real, calls = _interpret._Making._names, []

    def interrupted(making, names):
        calls.append(names)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(making, names)

    monkeypatch.setattr(_interpret, "_twins", {})
    monkeypatch.setattr(_interpret._Making, "_names", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _interpret.find_twin(scan.match)
    assert _interpret._twins == {}
    _interpret.find_twin(scan.match)
    assert len(calls) > 3 and id(scan.match) in _interpret._twins


@pytest.mark.parametrize(("seed", "kinds"), [(0, "scan or bitslice or pstbloom"), (1, "betree or opindex or pbtree")])
def test_interpreted_and_compiled_kernels_find_the_same(seed, kinds):
    """Chance says which kernels are interpreted: the contract holds within one matcher of both."""
    tests = Path(__file__).parent.parent
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-k",
        kinds,
        "test_contract_cases.py",
    ]
    environment = plain_environment(COLMATCH_MIXED=str(seed), COLMATCH_TESTS="least")
    said = subprocess.run(command, cwd=tests, env=environment, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-1000:]
