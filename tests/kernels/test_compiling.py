"""Where kernels are compiled: where Ctrl-C cannot tear numba apart, and not where a pool's
caller could not stop it.
"""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pyarrow as pa
import pytest
from kernel_copy import Copy, plain_environment

from colmatch.kernels import _compiling
from colmatch.kernels._compiling import NotCompiledError, forbid_compiling
from colmatch.kernels._jit import kernel
from colmatch.matching.threads import run_in_order

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def fresh():
    """A kernel that has not been compiled, and the threads in which it will be."""

    @kernel
    def double(values):
        return values[0] * 2

    threads = []
    compile = double.compile

    def noted(signature):
        threads.append(threading.current_thread())
        return compile(signature)

    double.compile = noted
    return double, threads


def test_the_main_thread_does_not_compile():
    double, threads = fresh()
    assert double(np.array([21])) == 42
    assert [thread.name for thread in threads] == ["colmatch-compile"]
    assert double(np.array([4])) == 8 and len(threads) == 1


def test_another_thread_compiles_by_itself():
    """It gets no signals."""
    double, threads = fresh()
    other = threading.Thread(target=lambda: double(np.array([21])))
    other.start()
    other.join()
    assert threads == [other]


def test_errors_of_compiling_reach_the_caller():
    from numba.core.errors import TypingError

    @kernel
    def wrong(values):
        return values.nothing

    for _ in range(2):
        with pytest.raises(TypingError, match="nothing"):
            wrong(np.zeros(1))


def test_where_only_compiled_kernels_are_run():
    double, threads = fresh()
    with forbid_compiling(), pytest.raises(NotCompiledError):
        double(np.array([21]))
    assert threads == []
    double(np.array([21]))
    with forbid_compiling():
        assert double(np.array([1])) == 2


def test_threads_of_a_pool_leave_compiling_to_their_caller():
    double, threads = fresh()
    began, ended = [], []

    def task(batch, seen, offset):
        began.append(threading.current_thread().name)
        found = int(double(np.array([offset])))
        ended.append(threading.current_thread().name)
        yield found

    batches = ((pa.record_batch({"a": [i]}), None) for i in range(40))
    assert list(run_in_order(batches, 3, task)) == [2 * i for i in range(40)]
    assert [thread.name for thread in threads] == ["colmatch-compile"]
    caller = threading.current_thread().name
    assert ended[0] == caller and began[0] != caller
    assert ended.count(caller) <= 4  # those that were under way
    assert any(name.startswith("colmatch_") for name in ended)


INTERRUPTED = """
    import json, os, signal, sys, threading

    when, place = int(sys.argv[1]), sys.argv[2]
    import numpy as np
    from colmatch.kernels import _compiling, probe

    calls = 0

    def look(frame, event, _):
        global calls
        if event == "call" and frame.f_code.co_name == place:
            calls += 1
            if calls == when:
                os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.setprofile(look)
    threading.setprofile(look)
    interrupted = 0
    for _ in range(3):
        try:
            found = int(probe.total(probe.State(np.arange(5)), 0))
            break
        except KeyboardInterrupt:
            interrupted += 1
    sys.setprofile(None)
    threading.setprofile(None)
    print(json.dumps([interrupted, found, int(probe.get(np.arange(5), 1))]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
    ("place", "when"), [("stream_list", 1), ("stream_list", 60), ("refresh", 1), ("link_code", 1), ("save_overload", 1)]
)
def test_an_interrupt_leaves_numba_usable(copy, warm, place, when):
    """Wherever it comes; the call is interrupted, and the next one works."""
    if (place == "link_code") != warm:
        pytest.skip("not on that way")
    if warm:
        copy.run("get")
    assert copy.run(str(when), place, program=INTERRUPTED) == [1, 15, 1]


SLOW = """
    import logging, sys
    import numpy as np
    from colmatch.kernels import _compiling, probe

    _compiling.SAY_AFTER = 0.0
    if "bar" in sys.argv:
        from tqdm import tqdm

        bar = tqdm(total=10, file=sys.stderr, mininterval=0)
        bar.update(3)
    if "logging" in sys.argv:
        logging.basicConfig(level="INFO", format="logged: %(message)s")
    probe.total(probe.State(np.arange(5)), 0)
    probe.get(np.arange(5), 1)
    if "bar" in sys.argv:
        bar.close()
"""


def at_a_terminal(copy, *what, **settings):
    """Lines that are to be seen on standard error."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = (
        plain_environment(PYTHONPATH=str(copy.sources.parent.parent), COLMATCH_CACHE_DIR=str(copy.cache)) | settings
    )
    command = [sys.executable, "-c", textwrap.dedent(SLOW), *what]
    process = subprocess.Popen(command, env=environment, cwd=copy.cache.parent, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait() == 0, seen
    return [line.rpartition("\r")[2] for line in seen.decode().replace("\r\n", "\n").splitlines() if line.strip()]


LINE = _compiling.ONCE.format(use=_compiling.MATCHING)


def test_it_is_said_at_a_terminal(copy):
    assert at_a_terminal(copy) == [f"colmatch: {LINE}"]
    assert at_a_terminal(copy) == []  # nothing is compiled


def test_a_progress_bar_stays_whole(copy):
    line, *bar = at_a_terminal(copy, "bar")
    assert line == f"colmatch: {LINE}"
    assert all("3/10" in part for part in bar)


def test_it_is_said_once_where_it_is_logged(copy):
    assert at_a_terminal(copy, "logging") == [f"logged: {LINE}"]


def test_it_says_so_where_kernels_cannot_be_kept(copy):
    (copy.cache.parent / "file").touch()
    said = at_a_terminal(copy, COLMATCH_CACHE_DIR=str(copy.cache.parent / "file"))
    assert "compiling kernels to match events, in each process since they cannot be kept" in said[-1]


def test_each_use_of_kernels_has_a_line(copy):
    """A user who has seen the first line waits again for the first insert."""
    copy.write("segments/probe", (copy.sources / "probe.py").read_text())
    again = """
    from colmatch.kernels.segments import probe as other

    other.get(np.arange(5), 1)
    other.total(other.State(np.arange(5)), 0)
    """
    process = copy.start(program=textwrap.dedent(SLOW) + textwrap.dedent(again))
    _, err = process.communicate(timeout=300)
    lines = [f"colmatch: {_compiling.ONCE.format(use=use)}" for use in ("match events", "update rules")]
    assert (process.returncode, err.splitlines()) == (0, lines)


def test_it_is_said_where_there_is_no_terminal(copy):
    """The driver of a Spark job has none."""
    process = copy.start(program=SLOW)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, f"colmatch: {LINE}\n")


def test_it_is_a_warning(copy):
    program = textwrap.dedent(SLOW) + textwrap.dedent("""
        import json
        print(json.dumps([(record.levelname, record.getMessage()) for record in caught]))
    """)
    caught = "log = logging.getLogger('colmatch'); log.addHandler(logging.NullHandler()); caught = []; log.addFilter(caught.append)\n"
    assert copy.run(program=program.replace("probe.total", f"{caught}probe.total", 1)) == [["WARNING", LINE]]
    assert copy.files()
