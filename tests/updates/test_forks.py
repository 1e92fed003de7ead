"""A child process has none of its parent's threads, and waits for none of them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

FORKS = """
    import os, sys, threading, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks
    import inside, pyarrow as pa
    import colmatch as cm

    matcher = cm.Matcher.build({1: "a = 1", 2: "a = 2"}, {"a": "int64"})
    matcher.insert({3: "a = 3"})
    there, done = threading.Event(), threading.Event()

    def update():
        with inside.live(matcher).turn.take(), inside.live(matcher).merger._one.take():
            there.set()
            done.wait()

    thread = threading.Thread(target=update)
    thread.start()
    there.wait()
    child = os.fork()
    if not child:
        matcher.insert({4: "a = 1"})
        matcher.compact()
        assert matcher.match_lists(pa.table({"a": [1]})).to_pylist() == [[1, 4]]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    done.set()
    thread.join()
    matcher.insert({5: "a = 1"})
    assert len(matcher) == 4
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
def test_a_child_updates_whoever_had_the_turn() -> None:
    tests = str(Path(__file__).parent.parent)
    path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    run = [sys.executable, "-c", textwrap.dedent(FORKS)]
    subprocess.run(run, check=True, timeout=120, env=os.environ | {"PYTHONPATH": path})
